//! All readers of bytes that others have written, for a fuzzer: each is fed with whatever comes, and must not panic, hang or grow
//! without a limit. `scripts/fuzz` runs them with feedback of what they cover, the tests here with the inputs that are kept.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::agent::acp;
use crate::agent::pane::arrival::Arrival;
use crate::agent::pane::done::DonePattern;
use crate::agent::pane::halt::HaltWatch;
use crate::agent::pane::programs::Program;
use crate::agent::pane::ready::Screens;
use crate::engine::hindsight;
use crate::engine::policy::Limits;
use crate::plan::Plan;
use crate::presets::{self, Compiled};
use crate::prompt::front_matter;
use crate::proof::reads_junit;
use crate::record::replayed::{self, Replayed};
use crate::record::report::Live;
use crate::record::state_read::{self, Extent};
use crate::reply::Reply;
use crate::reply::decode::Decoder;
use crate::reply::sigil::SigilScanner;
use crate::settings::{shell, toml};
use crate::tell::seen::Seen;
use crate::tmux::control::parser::Parser;
use crate::view::transcript::Transcript;

/// A reader, and what it is called.
pub type Target = (&'static str, fn(&[u8]));

/// The readers. Their inputs are in a folder of the same name under `tests/fuzz/`, with links to what real agents have said.
pub const TARGETS: [Target; 12] = [
    ("acp", |bytes| acp::hear(bytes)),
    ("events", events),
    ("front_matter", |bytes| drop(front_matter::Document::parse(&text(bytes), &[]))),
    ("junit", |bytes| _ = reads_junit(&text(bytes))),
    ("plan", |bytes| drop(Plan::parse(&text(bytes), &|name| !name.contains("..")))),
    ("screens", screens),
    ("settings", |bytes| _ = toml::reads(&text(bytes))),
    ("shell_config", |bytes| drop(shell::parse(&text(bytes), &|_| None))),
    ("sigils", sigils),
    ("state", state),
    ("streams", streams),
    ("tmux", tmux),
];

/// Runs the reader of this name; `false`: there is none.
#[must_use]
pub fn run(name: &str, bytes: &[u8]) -> bool {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    if let Some((_, read)) = target {
        read(bytes);
    }
    target.is_some()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines of a log, and all that is folded from them.
fn events(bytes: &[u8]) {
    let (mut replayed, mut transcript) = (None::<Replayed>, Transcript::default());
    let (mut seen, mut report) = (Seen::default(), Live::default());
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some(line) = replayed::read(line) else { continue };
        let _ = transcript.entry(&line);
        if replayed.is_none() {
            replayed = Replayed::of(&line).ok();
        }
        let Some(replayed) = &mut replayed else { continue };
        if let Some(taken) = replayed.taken(&line) {
            let own = replayed.limits().unwrap_or(&Limits::UNKNOWN);
            let _ = hindsight::compare(taken.next, own, &Limits::UNKNOWN, taken.tally, taken.now);
        }
        replayed.take(&line, &mut |stamped| {
            seen.take(stamped);
            report.take(stamped);
        });
        let _ = (seen.of(), seen.doing.words());
    }
}

fn state(bytes: &[u8]) {
    for is_json in [false, true] {
        for extent in [Extent::Head, Extent::Whole] {
            let _ = state_read::of_text(&text(bytes), is_json, extent);
        }
    }
}

/// The stream of an agent of each kind, in one piece and in two.
fn streams(bytes: &[u8]) {
    static COMPILED: LazyLock<Vec<Compiled>> = LazyLock::new(|| {
        let presets = presets::all();
        presets.filter_map(|preset| preset.compile().ok()).collect()
    });
    for compiled in COMPILED.iter() {
        let (mut decoder, mut reply) = (Decoder::new(compiled.filters()), Reply::default());
        let (head, tail) = bytes.split_at(bytes.len() / 2);
        decoder.push(head, &mut |item| reply.fold(&item));
        decoder.push(tail, &mut |item| reply.fold(&item));
        decoder.finish(&mut |item| reply.fold(&item));
    }
}

/// Pieces say what the whole says.
fn sigils(bytes: &[u8]) {
    let text = text(bytes);
    let (mut whole, mut pieces) = (SigilScanner::default(), SigilScanner::default());
    whole.push(&text);
    for char in text.chars() {
        pieces.push(char.encode_utf8(&mut [0; 4]));
    }
    assert_eq!(format!("{:?}", whole.sigils()), format!("{:?}", pieces.sigils()));
}

/// What tmux says on a connection in control mode: pieces say what the whole says.
fn tmux(bytes: &[u8]) {
    let (mut whole, mut pieces) = (Vec::new(), Vec::new());
    Parser::default().push(bytes, |said| whole.push(said));
    let (head, tail) = bytes.split_at(bytes.len() / 2);
    let mut parser = Parser::default();
    parser.push(head, |said| pieces.push(said));
    parser.push(tail, |said| pieces.push(said));
    assert_eq!(whole, pieces);
}

/// A screen, and below a form feed the prompt that it may show.
fn screens(bytes: &[u8]) {
    let text = text(bytes);
    let (screen, prompt) = text.split_once('\x0c').unwrap_or((&text, "Do the next task."));
    let lines: Vec<String> = screen.lines().map(str::to_owned).collect();
    let now = Instant::now();
    for program in Program::known().filter_map(Program::named).chain([Program::unknown()]) {
        let Ok(screens) = Screens::of(&[program.name.to_owned()], None) else { continue };
        let _ = screens.judge(&lines, true);
        let mut arrival = Arrival::new(program, prompt, &[]);
        let _ = (arrival.has_arrived(&lines, now), arrival.standing(&lines, &lines));
        arrival.enter(&lines, now);
        let _ = arrival.submission(&lines, now + Duration::from_secs(9));
        let _ = HaltWatch::new(prompt).look(&screens, &lines, now);
    }
    let _ = DonePattern::new(prompt).map(|done| done.find(&lines, prompt));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use regex::Regex;

    use super::*;

    #[test]
    fn every_input_that_is_kept_is_survived() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
        for (name, read) in TARGETS {
            let mut count = 0;
            for entry in fs::read_dir(folder.join(name)).unwrap() {
                let entry = entry.unwrap();
                // Links lead to recordings, which other tests read.
                if entry.file_type().unwrap().is_file() {
                    read(&fs::read(entry.path()).unwrap());
                    count += 1;
                }
            }
            assert!(count > 0, "{name}");
        }
        assert!(!run("none", b""));
    }

    /// A line with each of its numbers replaced by the first one of these that it may have.
    fn with_numbers(line: &str, numbers: &[&str]) -> String {
        let number = Regex::new(r"[:\[,](-?[0-9][0-9.e+]*)[,}\]]").unwrap();
        let found: Vec<_> =
            number.captures_iter(line).filter_map(|found| Some(found.get(1)?.range())).collect();
        let mut line = line.to_owned();
        // From the end, so that the places before stay.
        for place in found.into_iter().rev() {
            let with = |number: &&str| format!("{}{number}{}", &line[..place.start], &line[place.end..]);
            let other = numbers.iter().map(with).find(|other| replayed::read(other.as_bytes()).is_some());
            line = other.unwrap_or(line);
        }
        line
    }

    /// An agent can write to the log of its loop.
    #[test]
    fn numbers_of_any_size_in_a_log_are_survived() {
        let most = ["1e308", "18446744073709551615", "9223372036854775807", "4294967295", "2147483647"];
        let least = ["-1e308", "-9223372036854775808", "-2147483648", "0"];
        let facts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/every_fact.jsonl");
        let facts = fs::read_to_string(facts).unwrap();
        for numbers in [most.as_slice(), &least] {
            let lines: Vec<String> = facts.lines().map(|line| with_numbers(line, numbers) + "\n").collect();
            let latest = |event: &str| lines.iter().rfind(|line| line.contains(event)).unwrap();
            let begins = latest(r#""event":"loop_started""#).clone() + latest(r#""event":"attempt_started""#);
            assert!(begins.contains(r#""tally":{"#) && lines.concat().contains(numbers[0]), "{begins}");
            let others = lines.iter().map(|line| line.replace("true", "false"));
            let log: String =
                lines.iter().cloned().chain(others).map(|line| begins.clone() + &line).collect();
            events((log.clone() + &log + &facts).as_bytes());
        }
    }
}
