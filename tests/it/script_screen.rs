//! The agent of `tests/agents` on a terminal, checked with the rules for the screens of interactive agents.

use std::time::{Duration, Instant};

use ralph::agent::pane::arrival::{Arrival, Submission};
use ralph::agent::pane::done::DonePattern;
use ralph::agent::pane::ready::{ReadyWait, Screens, Verdict};

use crate::scratch::{Scratch, agent_on_screen, wait_for};
use crate::terminal::{End, Terminal};

const WORDS: &str = "ALL DONE";

/// The agent on its terminal, and what is known of its kind.
struct Agent {
    terminal: Terminal,
    screens: Screens,
    ready: ReadyWait,
}

impl Agent {
    fn start(scratch: &Scratch, play: &str, trust: bool) -> Self {
        let [program, option] = agent_on_screen();
        let mut command = scratch.command(program);
        command.arg(option);
        let terminal = Terminal::start(command.env("RALPH_SCRIPT_PLAY", play).env("TERM", "xterm"), 24, 80);
        let screens = Screens::of(&agent_on_screen().map(str::to_owned), None).unwrap();
        Self { terminal, screens, ready: ReadyWait::new(trust) }
    }

    fn screen(&self) -> Vec<String> {
        self.terminal.screen().lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Reads the screen until there is something to do; answers dialogs.
    fn look(&mut self) -> (Verdict, Vec<String>) {
        let mut given = Vec::new();
        let verdict =
            wait_for("a verdict", || match self.ready.look(&self.screens, &self.screen(), Instant::now()) {
                Verdict::NotYet => None,
                Verdict::Answer { keys, what } => {
                    given.push(what);
                    for key in keys {
                        self.terminal.press(if key == "Down" { "\x1b[B" } else { "\r" });
                    }
                    None
                }
                verdict => Some(verdict),
            });
        (verdict, given)
    }

    /// Pastes a prompt and presses Enter, as soon as it is there.
    fn give(&mut self, prompt: &str) {
        let mut arrival = Arrival::new(self.screens.program(), prompt, &self.screen());
        self.terminal.press(&format!("\x1b[200~{prompt}\x1b[201~"));
        wait_for("the paste", || arrival.has_arrived(&self.screen(), Instant::now()).then_some(()));
        arrival.enter(&self.screen(), Instant::now());
        self.terminal.press("\r");
        wait_for("the submission", || {
            let submission = arrival.submission(&self.screen(), Instant::now());
            assert_ne!(submission, Submission::EnterAgain);
            (submission == Submission::Submitted).then_some(())
        });
    }

    fn end(self) -> End {
        self.terminal.end()
    }
}

fn found(text: &str, prompt: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    DonePattern::new(WORDS).unwrap().find(&lines, prompt).is_some()
}

#[test]
fn dialogs_are_answered_and_a_prompt_goes_through() {
    for (begin, prompt) in [
        ("", format!("Do it and say {WORDS}.")),
        ("alternate; ", format!("Do it.\nAll of it.\nWell.\n\nThen say\n{WORDS}")),
        ("plain; ", format!("Do it\nand say {WORDS}.")),
    ] {
        let scratch = Scratch::new();
        let play =
            format!("{begin}slow 1; theme; trust; keep got.txt; spin 1; say {WORDS}; silent 1; exit 3");
        let mut agent = Agent::start(&scratch, &play, true);
        let (verdict, given) = agent.look();
        assert_eq!(verdict, Verdict::Ready, "{begin}: {}", agent.terminal.screen());
        assert_eq!(given.len(), 2, "{given:?}");
        agent.give(&prompt);
        agent.terminal.wait_for("the words", |screen| found(screen, &prompt));
        let end = agent.end();
        assert_eq!(end.code, Some(3), "{end:?}");
        assert_eq!(scratch.read("got.txt"), format!("{prompt}\n"));
        assert_eq!(end.bytes.contains("\x1b[?1049l"), begin.starts_with("alternate"));
        assert!(begin.starts_with("alternate") || found(&end.history, &prompt), "{}", end.history);
    }
}

#[test]
fn the_prompt_alone_is_no_end_however_it_is_shown() {
    for prompt in [
        format!("Say {WORDS}."),
        format!("1\n2\n3\n4\n5\n{WORDS}\n"),
        format!("{} {WORDS} {}", "x ".repeat(90), "y ".repeat(90)),
    ] {
        let scratch = Scratch::new();
        let mut agent = Agent::start(&scratch, "spin 1; exit 0", false);
        assert_eq!(agent.look(), (Verdict::Ready, vec![]));
        agent.give(&prompt);
        let end = agent.end();
        assert_eq!(end.code, Some(0), "{end:?}");
        assert!(end.history.contains(WORDS) && !found(&end.history, &prompt), "{}", end.history);
    }
}

#[test]
fn a_person_is_called_where_only_a_person_can_answer() {
    let scratch = Scratch::new();
    let mut agent = Agent::start(&scratch, "login; trust; exit 0", false);
    let (verdict, _) = agent.look();
    assert!(matches!(&verdict, Verdict::Attention { what } if what.contains("login")), "{verdict:?}");
    agent.terminal.press("\r");
    wait_for("the next dialog", || agent.terminal.screen().contains("trust").then_some(()));
    wait_for("another verdict", || {
        matches!(agent.look().0, Verdict::Attention { what } if what.contains("--trust")).then_some(())
    });
    // The marked entry is no.
    agent.terminal.press("\r");
    assert_eq!(agent.end().code, Some(1));
}

#[test]
fn ends_and_interruptions() {
    let scratch = Scratch::new();
    let agent = Agent::start(&scratch, "gone 7", false);
    let end = agent.end();
    assert_eq!(end.code, Some(7), "{end:?}");

    let scratch = Scratch::new();
    let mut agent = Agent::start(&scratch, "signal 15", false);
    assert_eq!(agent.look().0, Verdict::Ready);
    agent.give("Go.");
    assert_eq!(agent.end().code, None);

    let scratch = Scratch::new();
    let mut agent = Agent::start(&scratch, "commit It is made; loud 100; burn 3600", false);
    assert_eq!(agent.look().0, Verdict::Ready);
    let before = Instant::now();
    agent.give("Go.");
    agent.terminal.wait_for("the last line", |screen| screen.contains("line 99 of 100"));
    agent.terminal.press("\x1b");
    agent.terminal.wait_for("an interruption", |screen| screen.contains("Interrupted"));
    assert!(before.elapsed() < Duration::from_mins(1));
    assert_eq!(scratch.git(&["log", "-1", "--format=%s"]).trim(), "It is made");
    agent.terminal.press_ctrl_c();
    assert_eq!(agent.end().code, Some(0));
}

#[test]
fn a_screen_needs_a_terminal() {
    let scratch = Scratch::new();
    let run = Scratch::finish(&mut scratch.command(agent_on_screen()[0]));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("my input is no terminal"), "{run:?}");
}
