//! The rules on screens of the real programs: `tests/screens/PROGRAM/NAME-WIDTHxHEIGHT.txt`. A file that ends in `.frames` is a whole
//! start: every change of the screen, and the keys that were pressed, with the seconds since it began.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::arrival::{Arrival, Submission};
use super::done::DonePattern;
use super::halt::{Halt, HaltWatch, fault};
use super::programs::Program;
use super::ready::{ReadyWait, Screens, Verdict};

/// What the prompts of the recordings end with, and what the model says.
const WORDS: &str = "THE WORK IS DONE";

/// One recorded screen.
struct Recording {
    path: PathBuf,
    program: String,
    /// Without the size.
    name: String,
    size: String,
    screen: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens")
}

fn read(path: &Path) -> Option<Vec<String>> {
    fs::read_to_string(path).ok().map(|text| text.lines().map(str::to_owned).collect())
}

fn recordings() -> Vec<Recording> {
    let mut all = Vec::new();
    for program in
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        let files = fs::read_dir(&program).unwrap().map(|entry| entry.unwrap().path());
        for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "txt")) {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let (name, size) = stem.rsplit_once('-').unwrap();
            let program = program.file_name().unwrap().to_str().unwrap().to_owned();
            let screen = read(&path).unwrap();
            all.push(Recording { name: name.to_owned(), size: size.to_owned(), program, screen, path });
        }
    }
    assert!(all.len() > 200, "only {} screens", all.len());
    all
}

impl Recording {
    fn screens(&self) -> Screens {
        Screens::of(std::slice::from_ref(&self.program), None).unwrap()
    }

    /// Another step of the same prompt.
    fn step(&self, step: &str) -> Option<Vec<String>> {
        let (kind, _) = self.name.split_once('-').unwrap();
        // An input line is ready for all prompts alike.
        let kind = if step == "before" && kind == "huge" { "many" } else { kind };
        read(&self.path.with_file_name(format!("{kind}-{step}-{}.txt", self.size)))
    }

    /// The prompt that was given here.
    fn prompt(&self) -> Option<String> {
        let lines = match self.name.split('-').next()? {
            _ if stops_at(&self.name).is_some() => 1,
            "one" => 1,
            "five" => 5,
            "many" => 200,
            "huge" => 840,
            _ => return None,
        };
        if lines == 1 {
            return Some(format!("Do the first open task of the plan. Say {WORDS} when it is done."));
        }
        let line = |line| format!("Line {line} of the prompt: look at file {line} and say nothing about it.");
        let middle = (2..lines).map(line).collect::<Vec<_>>().join("\n");
        Some(format!("Do the first open task of the plan.\n{middle}\nSay {WORDS} when it is done."))
    }
}

/// What a program has stopped at that has its prompt: words of what a person is called for, or the kind of an error.
fn stops_at(name: &str) -> Option<&'static str> {
    Some(match name {
        "asks-command" | "asks-edit" => "for permission",
        "asks-question" => "a question",
        "auto-mode" => "auto mode",
        "login-refused" | "not-logged-in" | "key-refused" | "forbidden" => "Auth",
        "limit" | "limit-far" | "rate" => "Limit",
        "no-credit" => "Billing",
        "overloaded" => "Overload",
        "context" => "Context",
        // It says what others stop at.
        "quotes" => "nothing",
        _ => return None,
    })
}

/// What is expected of a screen before a prompt: `ready`, the keys, or words of what a person is called for.
fn expected(program: &str, name: &str) -> &'static str {
    match (program, name) {
        (_, "trust") | ("claude", "exited-untrusted") => "whether to trust the folder",
        (_, "login-method") => "a login",
        (_, "login-browser") => "a login in a browser",
        ("claude", "theme" | "security-notes") => "Enter",
        ("claude", "api-key") => "the API key",
        ("claude", "bypass-warning") => "the mode that skips permissions",
        ("codex", "update" | "offer-model") => "Down Enter",
        ("cline", "offer") => "Escape",
        ("aider", "answered") => "not yet",
        ("aider", "analytics" | "gitignore" | "docs") => "n Enter",
        (_, name) if name.starts_with("ready") || name.ends_with("-before") => "ready",
        _ => panic!("{program}/{name}: what does it mean?"),
    }
}

#[test]
fn every_screen_before_a_prompt_is_read_for_what_it_is() {
    for recording in recordings() {
        let Recording { program, name, screen, path, .. } = &recording;
        if recording.prompt().is_some() && !name.ends_with("-before") {
            continue;
        }
        let (verdict, _) = recording.screens().judge(screen, false);
        let shown = match &verdict {
            Verdict::Ready => "ready".to_owned(),
            Verdict::Answer { keys, .. } => keys.join(" "),
            Verdict::Attention { what } => what.clone(),
            Verdict::NotYet => "not yet".to_owned(),
        };
        let expected = expected(program, name);
        let is_attention = matches!(verdict, Verdict::Attention { .. });
        assert!(
            shown == expected || is_attention && shown.contains(expected),
            "{}: {verdict:?}",
            path.display()
        );
    }
}

#[test]
fn trust_goes_to_the_entry_that_gives_it() {
    for (program, keys) in [
        ("claude", "Down Enter"),
        ("codex", "Enter"),
        ("gemini", "Enter"),
        ("kimi", "Enter"),
        ("copilot", "Enter"),
    ] {
        let ours = recordings()
            .into_iter()
            .filter(|recording| recording.program == program && recording.name == "trust");
        for recording in ours {
            let (verdict, _) = recording.screens().judge(&recording.screen, true);
            assert!(
                matches!(&verdict, Verdict::Answer { keys: given, .. } if given.join(" ") == keys),
                "{}: {verdict:?}",
                recording.path.display()
            );
        }
    }
}

#[test]
fn an_input_line_before_the_program_has_started_does_not_count_for_long() {
    // As codex draws it at once, seconds before it asks whether to trust the folder.
    let text =
        "\n  >_ OpenAI Codex (v0.169.0)\n     ~/project\n\n› Ask Codex to do anything\n\n  ? for shortcuts";
    let screen: Vec<String> = text.lines().map(str::to_owned).collect();
    let (verdict, time) = Screens::of(&["codex".to_owned()], None).unwrap().judge(&screen, false);
    assert_eq!(verdict, Verdict::Ready);
    assert!(time > Duration::from_secs(8), "{time:?}");
}

#[test]
fn every_prompt_is_seen_to_arrive_and_to_be_submitted() {
    let mut count = 0;
    for recording in recordings().iter().filter(|recording| recording.name.ends_with("-pasted")) {
        let path = recording.path.display();
        let program = Program::named(&recording.program).unwrap();
        let before = recording.step("before").unwrap();
        let mut arrival = Arrival::new(program, &recording.prompt().unwrap(), &before);
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        assert!(!arrival.has_arrived(&before, at(0)) && !arrival.has_arrived(&before, at(900)), "{path}");
        assert!(!arrival.has_arrived(&recording.screen, at(1000)), "{path}: not settled");
        assert!(arrival.has_arrived(&recording.screen, at(1500)), "{path}: not arrived");
        arrival.enter(&recording.screen, at(1500));
        assert_eq!(arrival.submission(&recording.screen, at(1600)), Submission::Waiting, "{path}");
        let Some(entered) = recording.step("entered") else { continue };
        assert_eq!(arrival.submission(&entered, at(1700)), Submission::Submitted, "{path}: not submitted");
        count += 1;
    }
    assert!(count >= 35, "only {count} prompts");
}

#[test]
fn an_enter_that_was_swallowed_is_pressed_again() {
    // gemini takes Enter right after a paste for a part of it.
    let swallowed = recordings().into_iter().find(|recording| recording.name == "five-swallowed").unwrap();
    let pasted = swallowed.step("pasted").unwrap();
    let program = Program::named(&swallowed.program).unwrap();
    let mut arrival = Arrival::new(program, &swallowed.prompt().unwrap(), &swallowed.step("before").unwrap());
    let start = Instant::now();
    arrival.enter(&pasted, start);
    let later = start + Duration::from_secs(7);
    assert_eq!(arrival.submission(&swallowed.screen, start), Submission::Waiting);
    assert_eq!(arrival.submission(&swallowed.screen, later), Submission::EnterAgain);
    arrival.enter(&swallowed.screen, later);
    assert_eq!(arrival.submission(&swallowed.step("entered").unwrap(), later), Submission::Submitted);
}

#[test]
fn the_words_are_found_in_the_answer_and_not_in_the_prompt() {
    let done = DonePattern::new(WORDS).unwrap();
    let mut answers = 0;
    for recording in recordings() {
        let Some(prompt) = recording.prompt() else { continue };
        if stops_at(&recording.name).is_some() {
            continue;
        }
        let path = recording.path.display();
        let found = done.find(&recording.screen, &prompt);
        let (_, step) = recording.name.split_once('-').unwrap();
        let is_answer = matches!(step, "done" | "history") && recording.program != "aider";
        assert_eq!(found.is_some(), is_answer, "{path}");
        answers += u32::from(is_answer);
    }
    assert!(answers >= 35, "only {answers} answers");
}

#[test]
fn what_a_program_stops_at_is_seen_and_nothing_else_is() {
    let mut stops = 0;
    for recording in recordings() {
        let Some(prompt) = recording.prompt() else { continue };
        let Recording { program, name, screen, path, .. } = &recording;
        let path = path.display();
        let halts = HaltWatch::new(&prompt);
        let expected = stops_at(name).unwrap_or("nothing");
        match halts.glimpse(&recording.screens(), screen) {
            None => assert_eq!(expected, "nothing", "{path}"),
            Some(Halt::Question(what)) => assert!(what.contains(expected), "{path}: {what}"),
            Some(Halt::Error(words)) => {
                let fault = fault(&words);
                assert_eq!(format!("{:?}", fault.class), expected, "{path}: {words}");
                let has_reset = name.starts_with("limit") && program != "gemini";
                assert_eq!(fault.reset_at.is_some(), has_reset, "{path}: {words}");
            }
        }
        stops += u32::from(expected != "nothing");
    }
    assert!(stops >= 50, "only {stops} stops");
}

/// What several looks say of a recorded start, and the second of each verdict; the keys are those of the recording.
fn replay(program: &str, name: &str) -> Vec<(f64, String)> {
    let text = fs::read_to_string(folder().join(program).join(name).with_extension("frames")).unwrap();
    let screens = Screens::of(&[program.to_owned()], None).unwrap();
    let (mut wait, start) = (ReadyWait::new(false), Instant::now());
    let (mut screen, mut time, mut verdicts) = (Vec::new(), 0.0, Vec::new());
    // The last frame stands.
    let end = "60.0 frame\n".to_owned();
    for part in text.split("##### ").skip(1).chain([end.as_str()]) {
        let (head, body) = part.split_once('\n').unwrap();
        let (at, what) = head.split_once(' ').unwrap();
        while time < at.parse::<f64>().unwrap().min(30.0) {
            let shown = match wait.look(&screens, &screen, start + Duration::from_secs_f64(time)) {
                Verdict::NotYet => None,
                Verdict::Ready => Some("ready".to_owned()),
                Verdict::Answer { keys, .. } => Some(keys.join(" ")),
                Verdict::Attention { what } => Some(what),
            };
            let is_new = |shown: &String| verdicts.last().is_none_or(|(_, last)| last != shown);
            verdicts.extend(shown.filter(is_new).map(|shown| (time, shown)));
            time += 0.1;
        }
        if what == "frame" {
            screen = body.lines().map(str::to_owned).collect();
        }
    }
    verdicts
}

#[test]
fn whole_starts_lead_to_what_they_have_to() {
    let trust = "it asks whether to trust the folder (--trust answers that)";
    let api_key = "it asks whether to use the API key of the environment";
    for (program, name, expected) in [
        ("claude", "start-80x24", &["ready"][..]),
        ("claude", "start-first-80x24", &["Enter", api_key, "Enter", trust]),
        // It draws an input line at once, and asks six seconds later.
        ("codex", "start-untrusted-80x24", &[trust, "ready"]),
        ("codex", "start-80x24", &["ready"]),
        // It draws one for a moment, then asks, and leaves the question standing above the next.
        ("gemini", "start-untrusted-80x24", &[trust, "ready"]),
        ("cline", "start-80x24", &["Escape", "ready"]),
        ("aider", "start-80x24", &["n Enter", "ready"]),
        ("pi", "start-80x24", &["ready"]),
        // It welcomes its user for twelve seconds, as it does where there is no login.
        ("vibe", "start-80x24", &["ready"]),
    ] {
        let verdicts = replay(program, name);
        let shown: Vec<&str> = verdicts.iter().map(|(_, verdict)| verdict.as_str()).collect();
        assert_eq!(shown, expected, "{program} {name}: {verdicts:?}");
    }
    let (time, _) = &replay("codex", "start-80x24")[0];
    assert!(*time > 6.0, "{time}");
}
