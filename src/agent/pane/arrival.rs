//! Whether a program has taken a pasted prompt, and has begun with it after Enter.

use std::time::{Duration, Instant};

use regex::Regex;

use super::programs::Program;
use super::text::{bare, flowed, letters, written};
use super::{SETTLED, Since};

/// How many letters of a prompt's beginning or end identify it. Input lines show at least one of them.
const ENOUGH: usize = 24;

/// One prompt, from the paste to what follows Enter.
#[derive(Debug)]
pub struct Arrival {
    input: Option<Regex>,
    placeholder: Option<Regex>,
    /// Beginning and end of the prompt's letters; both empty for a prompt that has none.
    head: String,
    tail: String,
    /// All of the prompt but its white space, by which its lines are known.
    dense: String,
    before: Vec<String>,
    seen: Option<Since<Vec<String>>>,
    enter: Option<Enter>,
}

/// The observations since Enter was pressed.
#[derive(Debug)]
struct Enter {
    at: Instant,
    screen: Vec<String>,
    again: bool,
}

/// The result of a look after Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submission {
    /// The program has begun with the prompt.
    Submitted,
    /// It has not begun, by its screen.
    Waiting,
    /// It has taken Enter for something else: press it again. Returned at most once.
    EnterAgain,
}

/// Where a prompt is that was being typed when ralph was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is nowhere on the screen or above it.
    Absent,
    /// It is in the input line.
    Typed,
    /// It is above the input line: the program has it.
    Submitted,
    /// Its place does not show whether Enter was pressed.
    Unclear,
}

impl Arrival {
    /// How long after Enter something shows; a busy machine has taken three seconds.
    const SHOWS: Duration = Duration::from_secs(6);

    /// `before`: the screen that was ready.
    #[must_use]
    pub fn new(program: &Program, prompt: &str, before: &[String]) -> Self {
        // All patterns are tried by a test.
        let compiled = |pattern: &str| Regex::new(pattern).ok().filter(|_| !pattern.is_empty());
        let letters = letters(prompt);
        let head = letters.iter().take(ENOUGH).collect();
        let tail = letters[letters.len().saturating_sub(ENOUGH)..].iter().collect();
        let (input, placeholder) = (compiled(program.input), compiled(program.placeholder));
        let (dense, before) = (dense(prompt), before.to_vec());
        Self { input, placeholder, head, tail, dense, before, seen: None, enter: None }
    }

    /// A look after the paste: whether the input line shows the prompt, or its placeholder, and has settled. An empty prompt
    /// shows nothing.
    #[must_use]
    pub fn has_arrived(&mut self, screen: &[String], now: Instant) -> bool {
        if self.head.is_empty() {
            return true;
        }
        let input = self.input(screen);
        let arrived = input != self.input(&self.before) && self.holds(input);
        let stands = Since::update(&mut self.seen, input.to_vec(), now);
        arrived && stands >= SETTLED
    }

    /// Books that Enter is pressed now, on this screen.
    pub fn enter(&mut self, screen: &[String], now: Instant) {
        let again = self.enter.is_some();
        self.enter = Some(Enter { at: now, screen: screen.to_vec(), again });
    }

    /// A look after Enter.
    #[must_use]
    pub fn submission(&self, screen: &[String], now: Instant) -> Submission {
        let Some(enter) = &self.enter else { return Submission::Waiting };
        let waited = now.saturating_duration_since(enter.at) >= Self::SHOWS;
        let has_gone = !self.holds(self.input(screen));
        if self.head.is_empty() || (has_gone && screen != enter.screen) || self.has_more(screen, enter) {
            return Submission::Submitted;
        }
        match (waited, self.is_plain(&enter.screen), enter.again) {
            (false, ..) | (true, false, true) => Submission::Waiting,
            // A program that only echoes shows nothing new yet.
            (true, true, _) => Submission::Submitted,
            (true, false, false) => Submission::EnterAgain,
        }
    }

    /// Where the prompt is by this look. `whole` is all that the program has shown, `screen` the visible part. Lines that have
    /// scrolled away may be lost, so that only a program that has shown little has certainly not seen the prompt.
    #[must_use]
    pub fn standing(&self, screen: &[String], whole: &[String]) -> Standing {
        if self.head.is_empty() {
            return Standing::Unclear;
        }
        let has_scrolled = written(whole).len() > screen.len();
        match (self.input.is_some(), self.holds(whole)) {
            (true, true) if self.holds(self.input(screen)) => Standing::Typed,
            (true, true) => Standing::Submitted,
            (_, false) if !has_scrolled => Standing::Absent,
            _ => Standing::Unclear,
        }
    }

    /// The input line and what is below it. For a program whose input line is unknown: all that is new.
    fn input<'a>(&self, screen: &'a [String]) -> &'a [String] {
        let Some(input) = &self.input else {
            let same = screen.iter().zip(&self.before).take_while(|(now, before)| now == before).count();
            return &screen[same..];
        };
        let is_input = |line: &String| input.is_match(line);
        let Some(last) = screen.iter().rposition(is_input) else { return &[] };
        // An input line of several lines may have its mark on each.
        let above = |line: usize, belongs: &dyn Fn(&String) -> bool| {
            screen[..line].iter().rposition(|line| !belongs(line)).map_or(0, |above| above + 1)
        };
        // A line of the prompt may begin with such a mark: then the input line is above it, with nothing but the prompt between.
        let of_prompt = |line: &String| line.trim().is_empty() || self.has_line(line);
        let first = if self.has_line(&screen[last]) { above(last, &of_prompt) } else { last };
        let with_mark = first.checked_sub(1).filter(|&above| is_input(&screen[above]));
        &screen[above(with_mark.unwrap_or(first), &is_input)..]
    }

    /// Whether the prompt has this line, or what a narrow screen shows of one.
    fn has_line(&self, line: &str) -> bool {
        let line = dense(bare(line));
        !line.is_empty() && self.dense.contains(&line)
    }

    /// Whether the prompt, or its placeholder, is in these lines.
    fn holds(&self, lines: &[String]) -> bool {
        let text = flowed(lines);
        let shown: String = letters(&text).into_iter().collect();
        shown.contains(&self.head)
            || shown.contains(&self.tail)
            || self.placeholder.as_ref().is_some_and(|placeholder| placeholder.is_match(&text))
    }

    /// Whether there is a new line since Enter below an older one: an answer to the prompt.
    fn has_more(&self, screen: &[String], enter: &Enter) -> bool {
        let is_old = |line: &&String| enter.screen.contains(line) || self.before.contains(line);
        let is_blank = |line: &&String| line.trim().is_empty();
        let lines = self.input(screen).iter().skip_while(|line| !is_old(line));
        lines
            .filter(|line| !is_blank(line))
            .any(|line| !is_old(&line) && !self.holds(std::slice::from_ref(line)))
    }

    /// Whether nothing is below the prompt, as when a terminal echoes it.
    fn is_plain(&self, screen: &[String]) -> bool {
        let below = written(screen).last();
        self.input.is_none() || below.is_some_and(|line| self.holds(std::slice::from_ref(line)))
    }
}

/// A text without its white space, and without what stands for borders of boxes.
fn dense(text: &str) -> String {
    text.lines().flat_map(|line| bare(line).split_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn claude() -> &'static Program {
        Program::named("claude").unwrap()
    }

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    const READY: &str = "Claude Code v2\n────\n❯ Try \"fix the tests\"\n────\n  ? for shortcuts";

    #[test]
    fn a_screen_tells_where_a_prompt_stands() {
        let prompt = "Do the first task of the plan, and say so when it is done.";
        let typed = READY.replace("Try \"fix the tests\"", prompt);
        let sent = format!("❯ {prompt}\n● Reading\n{READY}");
        let scrolled = format!("{}{READY}", "line\n".repeat(60));
        let unknown = Program::unknown();
        for (program, shown, standing) in [
            (claude(), READY, Standing::Absent),
            (claude(), &typed, Standing::Typed),
            (claude(), &sent, Standing::Submitted),
            (claude(), &scrolled, Standing::Unclear),
            (unknown, "> ", Standing::Absent),
            // An echo looks the same before and after Enter.
            (unknown, &format!("> {prompt}"), Standing::Unclear),
        ] {
            let whole = screen(shown);
            let visible = &whole[whole.len().saturating_sub(50)..];
            let arrival = Arrival::new(program, prompt, &[]);
            assert_eq!(arrival.standing(visible, &whole), standing, "{shown}");
        }
        assert_eq!(Arrival::new(claude(), "", &[]).standing(&[], &[]), Standing::Unclear);
    }

    #[test]
    fn a_prompt_arrives_when_its_line_has_settled() {
        let start = Instant::now();
        let prompt = "Do the first task of the plan, and say so\nwhen it is done.";
        let mut arrival = Arrival::new(claude(), prompt, &screen(READY));
        let part = READY.replace("Try \"fix the tests\"", "Do the first task of the plan, an");
        let whole = READY.replace(
            "Try \"fix the tests\"",
            "Do the first task of the plan, and\n  say so\n  when it is done.",
        );
        assert!(!arrival.has_arrived(&screen(READY), at(start, 0)));
        assert!(!arrival.has_arrived(&screen(READY), at(start, 1000)));
        assert!(!arrival.has_arrived(&screen(&part), at(start, 1100)));
        assert!(!arrival.has_arrived(&screen(&whole), at(start, 1600)));
        assert!(arrival.has_arrived(&screen(&whole), at(start, 2000)));
        // Changes elsewhere do not matter.
        assert!(arrival.has_arrived(&screen(&whole.replace("v2", "v3")), at(start, 2100)));

        let short = READY.replace("Try \"fix the tests\"", "[Pasted text #1 +1 lines]");
        assert!(!arrival.has_arrived(&screen(&short), at(start, 3000)));
        assert!(arrival.has_arrived(&screen(&short), at(start, 3400)));
    }

    #[test]
    fn lines_of_a_prompt_may_begin_as_an_input_line_does() {
        let prompt = "Answer this report:\n\n> It fails.\n>\n> $ cargo test\n$ cargo run\nEnd.";
        let others = prompt.replace('\n', "\n  ");
        let bar = prompt.replace('\n', "\n┃ ");
        for (name, typed, sent) in [
            ("claude", format!("────\n❯ {others}\n────\n"), format!("❯ {others}\n────\n❯ \n────\n")),
            ("codex", format!("› {others}\n\n  gpt · ~/p"), format!("› {others}\n\n› Ask\n\n  gpt · ~/p")),
            (
                "gemini",
                format!("▀▀▀▀\n > {others}\n▄▄▄▄\n"),
                format!("▀▀▀\n > {others}\n▄▄▄\n✦ Hm\n▀▀▀\n > \n▄▄▄"),
            ),
            (
                "opencode",
                format!("┃ {bar}\n┃ \n┃ Build · model"),
                format!("┃ {bar}\n\n  answer\n\n┃ \n┃ Build · model"),
            ),
            ("aider", format!("────\n> {prompt}\n"), format!("────\n> {prompt}\nOf course.\n────\n> ")),
        ] {
            let (start, before) = (Instant::now(), screen("────\n❯ \n────"));
            let mut arrival = Arrival::new(Program::named(name).unwrap(), prompt, &before);
            assert!(!arrival.has_arrived(&screen(&typed), at(start, 0)), "{name}");
            assert!(arrival.has_arrived(&screen(&typed), at(start, 400)), "{name}");
            arrival.enter(&screen(&typed), at(start, 400));
            let ticked = screen(&format!("12:00\n{typed}"));
            assert_eq!(arrival.submission(&ticked, at(start, 500)), Submission::Waiting, "{name}");
            assert_eq!(arrival.submission(&screen(&sent), at(start, 500)), Submission::Submitted, "{name}");
        }
    }

    #[test]
    fn an_empty_prompt_is_enter_alone() {
        let now = Instant::now();
        let mut arrival = Arrival::new(claude(), " \n", &screen(READY));
        assert!(arrival.has_arrived(&screen(READY), now));
        arrival.enter(&screen(READY), now);
        assert_eq!(arrival.submission(&screen(READY), now), Submission::Submitted);
    }

    #[test]
    fn a_prompt_is_submitted_when_the_input_line_has_let_go_of_it() {
        let start = Instant::now();
        let pasted = screen(&READY.replace("Try \"fix the tests\"", "Do it well"));
        let mut arrival = Arrival::new(claude(), "Do it well", &screen(READY));
        assert_eq!(arrival.submission(&pasted, at(start, 0)), Submission::Waiting);
        arrival.enter(&pasted, at(start, 0));
        assert_eq!(arrival.submission(&pasted, at(start, 100)), Submission::Waiting);
        let begun = screen("Claude Code v2\n❯ Do it well\n\n✶ Levitating…\n────\n❯\n────\n  ? for shortcuts");
        assert_eq!(arrival.submission(&begun, at(start, 200)), Submission::Submitted);
        // Enter became a line break: once more, and no third time.
        let broken = screen(&READY.replace("Try \"fix the tests\"", "Do it well\n"));
        assert_eq!(arrival.submission(&broken, at(start, 5900)), Submission::Waiting);
        assert_eq!(arrival.submission(&broken, at(start, 6000)), Submission::EnterAgain);
        arrival.enter(&broken, at(start, 6000));
        assert_eq!(arrival.submission(&broken, at(start, 19_000)), Submission::Waiting);
    }

    #[test]
    fn what_only_echoes_has_taken_it() {
        let start = Instant::now();
        let mut arrival = Arrival::new(claude(), "Do it well", &screen("❯"));
        let pasted = screen("❯ Do it well");
        assert!(!arrival.has_arrived(&pasted, at(start, 0)));
        assert!(arrival.has_arrived(&pasted, at(start, 400)));
        arrival.enter(&pasted, at(start, 400));
        let more = screen("❯ Do it well\nworking on it");
        assert_eq!(arrival.submission(&more, at(start, 500)), Submission::Submitted);
        assert_eq!(arrival.submission(&pasted, at(start, 500)), Submission::Waiting);
        assert_eq!(arrival.submission(&pasted, at(start, 6400)), Submission::Submitted);
    }

    #[test]
    fn a_shell_shows_it_behind_its_mark() {
        let start = Instant::now();
        let prompt = "echo one\nfor i in 1 2; do\n  echo \"said $i\"\ndone";
        let pasted = format!("bash-5.2# {prompt}");
        let mut arrival = Arrival::new(Program::named("a shell").unwrap(), prompt, &screen("bash-5.2#"));
        assert!(!arrival.has_arrived(&screen(&pasted), at(start, 0)));
        assert!(arrival.has_arrived(&screen(&pasted), at(start, 400)));
        arrival.enter(&screen(&pasted), at(start, 400));
        assert_eq!(arrival.submission(&screen(&pasted), at(start, 500)), Submission::Waiting);
        let entered = format!("{pasted}\none\nsaid 1\nsaid 2\nbash-5.2#");
        assert_eq!(arrival.submission(&screen(&entered), at(start, 500)), Submission::Submitted);
    }

    #[test]
    fn a_program_nobody_knows_shows_it_somewhere_new() {
        let start = Instant::now();
        let vim = &super::super::known::UNKNOWN;
        let mut arrival = Arrival::new(vim, "echo one", &screen("echo one\ngo>"));
        assert!(!arrival.has_arrived(&screen("echo one\ngo>"), at(start, 0)));
        assert!(!arrival.has_arrived(&screen("echo one\ngo> echo one"), at(start, 500)));
        assert!(arrival.has_arrived(&screen("echo one\ngo> echo one"), at(start, 900)));
        arrival.enter(&screen("echo one\ngo> echo one"), at(start, 900));
        assert_eq!(
            arrival.submission(&screen("echo one\ngo> echo one\none\ngo>"), at(start, 950)),
            Submission::Submitted
        );
    }
}
