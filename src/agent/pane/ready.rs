//! Whether a program can take a prompt, by one look at its screen and by several.
//!
//! Screens that are not ready are looked for first, because dialogs begin with the mark of an input line as well, and Enter
//! accepts them.

use std::time::{Duration, Instant};

use regex::{Regex, RegexBuilder};

use super::known;
use super::menu;
use super::text::{flowed, written};
use super::{SETTLED, Since};
use crate::presets::screens::{Known, Means, Program, Sight};

/// The result of a look at a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It takes a prompt.
    Ready,
    /// It asks `what`; these keys, as tmux names them, are the answer. The next look sees the result.
    Answer {
        /// The keys, one after the other.
        keys: Vec<&'static str>,
        /// The question, for people.
        what: String,
    },
    /// It waits for a person, for `what`, as the end of a sentence ("it wants a login").
    Attention {
        /// The question, for people.
        what: String,
    },
    /// None of these, or not for long enough.
    NotYet,
}

/// The rules for the screens of one program.
#[derive(Debug)]
pub struct Screens {
    program: &'static Program,
    past: Option<Regex>,
    not_ready: Vec<(Look, Means)>,
    ready: Vec<(Look, Duration)>,
    asks: Vec<(Look, &'static str)>,
    /// The first lines of errors and of other messages; `None`: no error is known.
    pub(super) messages: Option<(Regex, Regex)>,
    /// How it waits for its network, if that is known.
    offline: Option<Regex>,
}

/// A program with unknown screens, and no pattern for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot tell when '{0}' is ready for a prompt, as for {known}: say what its screen shows then with --ready-pattern RE",
    known = Program::known().collect::<Vec<_>>().join(", ")
)]
pub struct UnknownProgram<'a>(&'a str);

#[derive(Debug)]
enum Look {
    Text(Regex),
    Line(Regex),
    Last(Regex),
}

impl Screens {
    /// The screens of the program of this command line. A `pattern` alone decides what is ready; known screens that are not ready
    /// come first.
    pub fn of<'a>(command: &'a [String], pattern: Option<&Regex>) -> Result<Self, UnknownProgram<'a>> {
        let program = Program::of(command);
        if program.is_none() && pattern.is_none() {
            return Err(UnknownProgram(command.first().map_or("", String::as_str)));
        }
        let program = program.unwrap_or(Program::unknown());
        let not_ready = program.not_ready.iter().chain(known::ANY);
        let not_ready = not_ready.filter_map(|Known { sight, means }| Some((look(*sight)?, *means)));
        let known = program.ready.iter().filter_map(|(sight, time)| Some((look(*sight)?, *time)));
        let ready = match pattern {
            // As on a screen: a phrase without a line break is searched in each line and across lines.
            Some(pattern) => {
                vec![(Look::Line(pattern.clone()), SETTLED), (Look::Text(pattern.clone()), SETTLED)]
            }
            None => known.collect(),
        };
        let past = Regex::new(program.past).ok().filter(|_| !program.past.is_empty());
        let not_ready = not_ready.collect();
        let any = known::ANY.iter().filter_map(|Known { sight, means }| match means {
            Means::Attention(what) => Some((*sight, *what)),
            _ => None,
        });
        let asks = program.asks.iter().copied().chain(any);
        let asks = asks.filter_map(|(sight, what)| Some((look(sight)?, what))).collect();
        let lines = |pattern: &str| RegexBuilder::new(pattern).multi_line(true).build().ok();
        let messages = lines(program.error).zip(lines(program.message));
        let messages = messages.filter(|_| !program.error.is_empty());
        let offline = lines(program.offline).filter(|_| !program.offline.is_empty());
        Ok(Self { program, past, not_ready, ready, asks, messages, offline })
    }

    /// The program, if it is known.
    #[must_use]
    pub fn program(&self) -> &'static Program {
        self.program
    }

    /// Why a working program with this screen waits for its network, in words; `None`: it does not.
    #[must_use]
    pub fn offline(&self, screen: &[String]) -> Option<String> {
        let screen = screen.join("\n");
        let found = self.offline.as_ref()?.captures(&screen)?;
        let why = found.get(1).map(|why| format!(" ({})", why.as_str().trim())).unwrap_or_default();
        Some(format!("waiting for network{why}"))
    }

    /// What this screen of a working program asks of a person.
    pub(super) fn question(&self, screen: &[String]) -> Option<&'static str> {
        let text = flowed(screen);
        self.asks.iter().find(|(look, _)| look.finds(screen, &text)).map(|(_, what)| *what)
    }

    /// The verdict on this screen alone, and how long it must last before it counts.
    #[must_use]
    pub fn judge(&self, screen: &[String], trust: bool) -> (Verdict, Duration) {
        let past = self.past.as_ref().and_then(|past| screen.iter().rposition(|line| past.is_match(line)));
        let screen = &screen[past.unwrap_or(0)..];
        let text = flowed(screen);
        let shows = |look: &Look| look.finds(screen, &text);
        if let Some((_, means)) = self.not_ready.iter().find(|(look, _)| shows(look)) {
            return (verdict(*means, screen, trust), SETTLED);
        }
        let times = self.ready.iter().filter(|(look, _)| shows(look)).map(|(_, time)| *time);
        times.min().map_or((Verdict::NotYet, SETTLED), |time| (Verdict::Ready, time))
    }
}

fn verdict(means: Means, screen: &[String], trust: bool) -> Verdict {
    let attention = |what: &str| Verdict::Attention { what: what.to_owned() };
    let choose = |entry: &str, what: &str, otherwise: &str| {
        let keys = Regex::new(entry).ok().and_then(|entry| menu::keys(screen, &entry));
        keys.map_or_else(|| attention(otherwise), |keys| Verdict::Answer { keys, what: what.to_owned() })
    };
    match means {
        Means::Press(keys, what) => Verdict::Answer { keys: keys.to_vec(), what: what.to_owned() },
        Means::Choose(entry, what) => choose(entry, what, "it asks a question"),
        Means::Trust(entry) if trust => {
            choose(entry, "the folder is trusted, as --trust says", "it asks whether to trust the folder")
        }
        Means::Trust(_) => attention("it asks whether to trust the folder (--trust answers that)"),
        Means::Attention(what) => attention(what),
        Means::Starting => Verdict::NotYet,
    }
}

/// All patterns are tried by a test.
fn look(sight: Sight) -> Option<Look> {
    let compiled = |pattern| Regex::new(pattern).ok();
    match sight {
        Sight::Text(pattern) => compiled(pattern).map(Look::Text),
        Sight::Line(pattern) => compiled(pattern).map(Look::Line),
        Sight::Last(pattern) => compiled(pattern).map(Look::Last),
    }
}

impl Look {
    fn finds(&self, screen: &[String], text: &str) -> bool {
        match self {
            Self::Text(pattern) => pattern.is_match(text),
            Self::Line(pattern) => screen.iter().any(|line| pattern.is_match(line)),
            Self::Last(pattern) => {
                written(screen).last().is_some_and(|line| pattern.is_match(line.trim_end()))
            }
        }
    }
}

/// Waits until a program is ready. A verdict counts when it has lasted for a while on a still screen, or longer on one that
/// changes.
#[derive(Debug)]
pub struct ReadyWait {
    trust: bool,
    screen: Option<Since<Vec<String>>>,
    verdict: Option<Since<Verdict>>,
    answered: Option<Answered>,
}

/// A given answer.
#[derive(Debug)]
struct Answered {
    screen: Vec<String>,
    what: String,
    at: Instant,
    times: u32,
}

impl ReadyWait {
    /// How long a verdict must last on a screen that never stands still.
    const TICKING: Duration = Duration::from_secs(3);
    /// A program may have dropped a key that came too early, or not read it yet, whatever it paints around its question: the
    /// answer is repeated after this time, this often on the same screen.
    const AGAIN: Duration = Duration::from_secs(3);
    const OFTEN: u32 = 3;

    /// `trust`: whether the user has allowed to trust the folder.
    #[must_use]
    pub fn new(trust: bool) -> Self {
        Self { trust, screen: None, verdict: None, answered: None }
    }

    /// A look. An answer is returned once for each screen that asks for it, and must be given at once.
    #[must_use]
    pub fn look(&mut self, screens: &Screens, screen: &[String], now: Instant) -> Verdict {
        let (verdict, needed) = screens.judge(screen, self.trust);
        let stands = Since::update(&mut self.screen, screen.to_vec(), now);
        let holds = Since::update(&mut self.verdict, verdict.clone(), now);
        if stands < needed && holds < needed.max(Self::TICKING) {
            return Verdict::NotYet;
        }
        match verdict {
            Verdict::Answer { keys, what } => self.answer(screen, keys, what, now),
            verdict => {
                self.answered = None;
                verdict
            }
        }
    }

    fn answer(&mut self, screen: &[String], keys: Vec<&'static str>, what: String, now: Instant) -> Verdict {
        let before = self.answered.take().filter(|answered| answered.what == what);
        let same_screen = before.as_ref().filter(|answered| answered.screen == screen);
        let times = same_screen.map_or(0, |answered| answered.times);
        let soon = before.as_ref().is_some_and(|answered| now < answered.at + Self::AGAIN);
        if soon || times == Self::OFTEN {
            self.answered = before;
            let unheard = Verdict::Attention { what: format!("it does not take the answer to this: {what}") };
            return if soon { Verdict::NotYet } else { unheard };
        }
        self.answered =
            Some(Answered { screen: screen.to_vec(), what: what.clone(), at: now, times: times + 1 });
        Verdict::Answer { keys, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn screens(command: &str) -> Screens {
        Screens::of(&[command.to_owned()], None).unwrap()
    }

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn every_pattern_can_be_compiled() {
        for program in Program::all() {
            for pattern in [program.input, program.placeholder, program.past, program.error, program.message]
            {
                Regex::new(pattern).unwrap();
            }
            let known = program.not_ready.iter().chain(known::ANY);
            for sight in known
                .clone()
                .map(|known| known.sight)
                .chain(program.ready.iter().map(|ready| ready.0))
                .chain(program.asks.iter().map(|asks| asks.0))
            {
                assert!(look(sight).is_some(), "{}: {sight:?}", program.name);
            }
            for means in known.map(|known| known.means) {
                if let Means::Choose(entry, _) | Means::Trust(entry) = means {
                    Regex::new(entry).unwrap();
                }
            }
        }
    }

    #[test]
    fn what_the_contract_calls_ready_is() {
        for (command, text) in [
            ("claude", "❯"),
            ("claude", ">"),
            ("claude", "> Try \"fix it\""),
            ("claude", "│ > Try │"),
            ("claude", "  ⏵⏵ bypass permissions on"),
            ("claude", "permission mode: plan"),
            ("claude", "(shift+tab to cycle)"),
            ("claude", "✻ Claude Code v2.0.1"),
            ("opencode", "opencode v1.2"),
            ("opencode", "tab switch agent"),
            ("opencode", "ctrl+p commands"),
            ("bash", "Welcome\nme@host:~$"),
            ("sh", "#"),
            ("python3", "Type \"help\"\n>>>"),
            ("aider", "Aider v0\n>"),
            ("aider", "architect multi>"),
        ] {
            assert_eq!(screens(command).judge(&screen(text), false).0, Verdict::Ready, "{command}: {text}");
        }
    }

    #[test]
    fn what_waits_for_a_person_wins() {
        for (command, text) in [
            ("claude", "Do you trust the files in this folder?\n❯ 1. Yes, proceed\n  2. No"),
            ("claude", "Select login method:\n❯ 1. Claude account"),
            ("claude", "❯\n bypass permissions\nNot logged in · Run /login"),
            ("bash", "[sudo] password for me:"),
            ("bash", "continue connecting (yes/no/[fingerprint])?"),
        ] {
            let verdict = screens(command).judge(&screen(text), false).0;
            assert!(matches!(verdict, Verdict::Attention { .. }), "{command}: {text}: {verdict:?}");
        }
        for text in ["", "Welcome to Claude Code v2.1.330\n.....\n   *   ░░", "$ "] {
            assert_eq!(screens("claude").judge(&screen(text), false).0, Verdict::NotYet, "{text}");
        }
    }

    #[test]
    fn trust_is_given_where_the_user_says_so() {
        let text = screen("Do you trust the files in this folder?\n  ❯ No, exit\n    Yes, I trust it");
        let Verdict::Attention { what } = screens("claude").judge(&text, false).0 else { panic!() };
        assert!(what.contains("--trust"), "{what}");
        let Verdict::Answer { keys, .. } = screens("claude").judge(&text, true).0 else { panic!() };
        assert_eq!(keys, ["Down", "Enter"]);
        // Without a menu that can be read nothing is pressed.
        let verdict = screens("claude").judge(&screen("Do you trust the files in this folder? y"), true).0;
        assert!(matches!(verdict, Verdict::Attention { .. }), "{verdict:?}");
    }

    #[test]
    fn a_program_nobody_knows_needs_a_pattern_and_that_wins() {
        let command = ["vim".to_owned(), "x".to_owned()];
        let error = Screens::of(&command, None).unwrap_err().to_string();
        assert!(error.contains("'vim'") && error.contains("as for claude, codex,"), "{error}");
        assert!(error.contains("--ready-pattern"), "{error}");
        let pattern = Regex::new("^All ready$").unwrap();
        let vim = Screens::of(&command, Some(&pattern)).unwrap();
        assert_eq!(vim.judge(&screen("a\nAll ready\nb"), false).0, Verdict::Ready);
        let claude = ["claude".to_owned()];
        let claude = Screens::of(&claude, Some(&pattern)).unwrap();
        assert_eq!(claude.judge(&screen("❯"), false).0, Verdict::NotYet);
        let trust = "All ready\nDo you trust the files in this folder?";
        assert!(matches!(claude.judge(&screen(trust), false).0, Verdict::Attention { .. }));
    }

    #[test]
    fn a_screen_counts_when_it_has_settled() {
        let start = Instant::now();
        let (claude, mut wait) = (screens("claude"), ReadyWait::new(false));
        let mut look = |text: &str, millis| wait.look(&claude, &screen(text), at(start, millis));
        assert_eq!(look("❯", 0), Verdict::NotYet);
        assert_eq!(look("❯\n\n? for shortcuts", 300), Verdict::NotYet);
        assert_eq!(look("❯\n\n? for shortcuts", 600), Verdict::NotYet);
        assert_eq!(look("❯\n\n? for shortcuts", 700), Verdict::Ready);
        // The header alone may be half a screen.
        assert_eq!(look("Claude Code v2", 1000), Verdict::NotYet);
        assert_eq!(look("Claude Code v2", 2900), Verdict::NotYet);
        assert_eq!(look("Claude Code v2", 3000), Verdict::Ready);
    }

    #[test]
    fn a_screen_that_ticks_counts_later() {
        let start = Instant::now();
        let (claude, mut wait) = (screens("claude"), ReadyWait::new(false));
        let verdicts: Vec<Verdict> = (0..32_u64)
            .map(|tick| wait.look(&claude, &screen(&format!("❯\n{tick}")), at(start, tick * 100)))
            .collect();
        assert_eq!(verdicts.iter().position(|verdict| *verdict == Verdict::Ready), Some(30));
    }

    #[test]
    fn an_answer_is_given_once_and_again_where_it_was_not_heard() {
        let start = Instant::now();
        let (claude, mut wait) = (screens("claude"), ReadyWait::new(false));
        let theme = screen("Choose the text style that looks best with your terminal\n❯ Auto");
        let mut given = Vec::new();
        let mut last = Verdict::NotYet;
        for tick in 0..200_u64 {
            last = wait.look(&claude, &theme, at(start, tick * 100));
            if let Verdict::Answer { keys, .. } = &last {
                assert_eq!(*keys, ["Enter"]);
                given.push(tick);
            }
        }
        assert_eq!(given, [4, 34, 64]);
        assert!(matches!(&last, Verdict::Attention { what } if what.contains("theme")), "{last:?}");
        // What is painted around the same question is no new one.
        let mut moved = theme.clone();
        moved.insert(0, "Claude Code v2".to_owned());
        let mut answers = |screen: &[String], millis| {
            (0..5).any(|tick| {
                let now = at(start, 30_000_u64 + millis + tick * 100);
                matches!(wait.look(&claude, screen, now), Verdict::Answer { .. })
            })
        };
        assert!(answers(&moved, 0));
        moved.insert(0, "a notice".to_owned());
        assert!(!answers(&moved, 500) && !answers(&moved, 2500) && answers(&moved, 3000));
        // Another screen begins anew.
        let mut look = |text: &str, millis| wait.look(&claude, &screen(text), at(start, 40_000_u64 + millis));
        assert_eq!(look("❯", 0), Verdict::NotYet);
        assert_eq!(look("❯", 500), Verdict::Ready);
    }
}
