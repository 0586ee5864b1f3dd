//! The transcripts of attempts, as in the live display: limited in size, and folded in the page.

use std::collections::VecDeque;

use super::markup::Html;
use crate::record::event_line::EventLine;
use crate::tell::words::{Entry, Kind};
use crate::text::count;
use crate::text::head_and_tail::head_and_tail;
use crate::view::cells::plain;
use crate::view::transcript::Transcript;

/// The most attempts of a loop with a transcript, the newest.
const ATTEMPTS: u64 = 400;
/// How much of an attempt's beginning, and of its end, is kept, in bytes.
const HEAD: usize = 12 << 10;
const TAIL: usize = 24 << 10;
/// How much of a single entry is kept, in bytes.
const ENTRY: usize = 6 << 10;
/// The size of an entry besides its text.
const FRAME: usize = 48;

/// The transcripts of the newest attempts of one loop.
#[derive(Debug, Default)]
pub(crate) struct Transcripts {
    /// The first attempt that is kept.
    from: u64,
    /// The most that is kept, in bytes.
    room: usize,
    /// The size of what is kept.
    taken: usize,
    reader: Transcript,
    kept: VecDeque<Kept>,
}

/// The transcript of one attempt.
#[derive(Debug, Default)]
struct Kept {
    number: u64,
    head: Vec<Entry>,
    tail: VecDeque<Entry>,
    /// The sizes of head and tail.
    sizes: (usize, usize),
    left_out: u64,
}

impl Transcripts {
    /// The transcripts of a loop with this many attempts.
    #[must_use]
    pub(crate) fn new(attempts: u64, room: usize) -> Self {
        Self { from: attempts.saturating_sub(ATTEMPTS) + 1, room, ..Self::default() }
    }

    /// Takes a line of the events log, with the name of its event. Most lines of a long loop are only counted.
    pub(crate) fn line(&mut self, event: &str, line: &[u8]) {
        let begins = event == "attempt_started";
        if !begins && self.reader.attempt() < self.from {
            return;
        }
        // A line of a later version, or a torn one, shows nothing.
        let Some(line) = std::str::from_utf8(line).ok().and_then(|line| EventLine::read(line).ok()) else {
            return;
        };
        let entry = self.reader.entry(&line);
        let number = self.reader.attempt();
        if number < self.from {
            return;
        }
        if begins {
            self.kept.push_back(Kept { number, ..Kept::default() });
            return;
        }
        if let (Some(entry), Some(kept)) = (entry, self.kept.back_mut()) {
            let before = kept.size();
            kept.take(entry);
            self.taken = self.taken + kept.size() - before;
        }
        while self.taken > self.room && self.kept.len() > 1 {
            self.taken -= self.kept.pop_front().map_or(0, |oldest| oldest.size());
        }
    }

    fn of(&self, attempt: u64) -> Option<&Kept> {
        self.kept.iter().find(|kept| kept.number == attempt)
    }
}

impl Kept {
    fn size(&self) -> usize {
        self.sizes.0 + self.sizes.1
    }

    fn take(&mut self, entry: Entry) {
        let last = self.tail.back_mut().or(self.head.last_mut());
        let goes_on = matches!(entry.kind, Kind::Piece | Kind::Thought);
        if let Some(last) = last.filter(|last| goes_on && last.kind == entry.kind && last.text.len() < ENTRY)
        {
            last.text += &entry.text;
            let size = if self.tail.is_empty() { &mut self.sizes.0 } else { &mut self.sizes.1 };
            *size += entry.text.len();
            return;
        }
        let entry = Entry { text: head_and_tail(&entry.text, ENTRY), ..entry };
        let size = size(&entry);
        if self.tail.is_empty() && self.sizes.0 + size <= HEAD {
            self.sizes.0 += size;
            self.head.push(entry);
            return;
        }
        self.sizes.1 += size;
        self.tail.push_back(entry);
        while self.sizes.1 > TAIL && self.tail.len() > 1 {
            self.sizes.1 -= self.tail.pop_front().map_or(0, |oldest| self::size(&oldest));
            self.left_out += 1;
        }
    }
}

fn size(entry: &Entry) -> usize {
    entry.text.len() + entry.mark.len() + FRAME
}

/// The transcript of an attempt, folded; `command` shows all of it. If it does not fit, only the command is named.
pub(super) fn transcript(
    html: &mut Html,
    transcripts: &Transcripts,
    attempt: u64,
    command: &str,
    has_room: bool,
) {
    let Some(kept) = transcripts.of(attempt).filter(|_| has_room) else {
        html.element("p", &[("class", "note")], |html| {
            html.text("Transcript: ").line("code", "", command);
        });
        return;
    };
    let entries = kept.head.len() + kept.tail.len();
    html.element("details", &[("class", "transcript")], |html| {
        let lines = count::of(entries as u64 + kept.left_out, "step");
        html.line("summary", "", format!("Transcript, {lines}"));
        kept.head.iter().for_each(|entry| self::entry(html, entry));
        if kept.left_out > 0 {
            html.element("p", &[("class", "note")], |html| {
                html.text(format!("{} left out here: ", count::of(kept.left_out, "step")));
                html.line("code", "", command);
            });
        }
        kept.tail.iter().for_each(|entry| self::entry(html, entry));
        if entries == 0 {
            html.line("p", "note", "The agent showed nothing.");
        }
    });
}

fn entry(html: &mut Html, entry: &Entry) {
    let class = match entry.kind {
        Kind::Text | Kind::Piece => "text",
        Kind::Thought => "thought",
        Kind::Tool => "tool",
        Kind::Good => "is-good",
        Kind::Error => "is-failed",
        Kind::Note | Kind::Question => "is-note",
        Kind::Begin | Kind::Faint => "faint",
    };
    html.element("div", &[("class", class), ("dir", "auto")], |html| match entry.kind {
        Kind::Text | Kind::Piece => {
            html.text(entry.text.trim_matches('\n'));
        }
        Kind::Thought => {
            html.raw("<span class=\"aside\">thought</span> ").text(entry.text.trim_matches('\n'));
        }
        Kind::Tool => {
            html.raw("<span aria-hidden=\"true\">▸ </span>").line("strong", "", plain(&entry.mark));
            html.text(" ").with("code", &[("dir", "auto")], plain(&entry.text));
        }
        _ => {
            html.with("span", &[("aria-hidden", "true")], &entry.mark).text(" ").text(entry.text.trim_end());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str =
        r#""agent":"a","at":"2026-01-31T23:59:59.120+01:00","loop":"l","mode":"m","run":"r","v":1"#;

    fn take(transcripts: &mut Transcripts, event: &str, own: &str) {
        transcripts.line(event, format!("{{{COMMON},\"event\":\"{event}\",{own}}}\n").as_bytes());
    }

    fn begin(transcripts: &mut Transcripts) {
        take(transcripts, "attempt_started", r#""head":null,"iteration":1,"retry":0"#);
    }

    fn page(transcripts: &Transcripts, attempt: u64) -> String {
        let mut html = Html::default();
        transcript(&mut html, transcripts, attempt, "ralph logs a", true);
        html.finish()
    }

    #[test]
    fn an_attempt_shows_what_the_agent_said_and_did() {
        let mut transcripts = Transcripts::new(1, 1 << 20);
        begin(&mut transcripts);
        take(&mut transcripts, "text_delta", r#""text":"<b>one ""#);
        take(&mut transcripts, "text_delta", r#""text":"line\n""#);
        take(&mut transcripts, "thought", r#""text":"hm""#);
        take(&mut transcripts, "tool", r#""input":"ls <x>","name":"bash""#);
        transcripts.line("tool", b"torn");
        let page = page(&transcripts, 1);
        assert!(page.contains("Transcript, 3 steps"), "{page}");
        assert!(page.contains("&lt;b&gt;one line</div>"), "{page}");
        assert!(page.contains("<strong>bash</strong> <code dir=\"auto\">ls &lt;x&gt;</code>"), "{page}");
    }

    #[test]
    fn what_is_left_out_is_said() {
        let mut transcripts = Transcripts::new(1, 1 << 20);
        begin(&mut transcripts);
        for number in 0..10_000 {
            take(&mut transcripts, "text", &format!(r#""text":"text {number}""#));
        }
        let page = page(&transcripts, 1);
        assert!(page.contains("text 0<") && page.contains("text 9999<"), "{page}");
        assert!(page.contains("Transcript, 10000 steps"), "{page}");
        assert!(page.contains(" left out here: <code>ralph logs a</code>"), "{page}");
        assert!(page.len() < 4 * (HEAD + TAIL), "{}", page.len());
    }

    #[test]
    fn a_text_without_an_end_is_bounded() {
        let mut transcripts = Transcripts::new(1, 1 << 20);
        begin(&mut transcripts);
        for _ in 0..1_000 {
            take(&mut transcripts, "text_delta", &format!(r#""text":"{}""#, "x".repeat(1_000)));
        }
        take(&mut transcripts, "text", &format!(r#""text":"{}""#, "x".repeat(1 << 20)));
        assert!(page(&transcripts, 1).len() < 3 * (HEAD + TAIL));
    }

    #[test]
    fn the_newest_attempts_are_kept() {
        let mut transcripts = Transcripts::new(1_000, 20 * ENTRY);
        for _ in 0..1_000 {
            begin(&mut transcripts);
            take(&mut transcripts, "text", &format!(r#""text":"{}""#, "x".repeat(ENTRY)));
        }
        assert!(transcripts.of(1_000).is_some());
        assert!(transcripts.of(900).is_none());
        assert!(transcripts.kept.len() >= 15, "{}", transcripts.kept.len());
        assert_eq!(page(&transcripts, 1), "<p class=\"note\">Transcript: <code>ralph logs a</code></p>");
    }
}
