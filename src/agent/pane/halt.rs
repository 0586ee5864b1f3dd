//! Why a program with its prompt stops: a question that only a person can answer, or an error that ended its turn.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use regex::{Captures, Regex};

use super::Since;
use super::ready::Screens;
use super::text::{alphanumeric, bare, flowed, side, split};
use crate::presets::fault::Reported;
use crate::reply::usage::Fault;

/// Why a program has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// It waits for a person, for this reason, as the end of a sentence ("it asks for permission").
    Question(&'static str),
    /// An error ended its turn, in these words of its own.
    Error(String),
}

impl Screens {
    /// The reason to stop on this screen of a working program. An error counts if no other message follows it, and if its words
    /// are not in the prompt, which is given as its letters.
    #[must_use]
    fn halt(&self, screen: &[String], prompt: &str) -> Option<Halt> {
        self.error(screen, prompt).map(Halt::Error).or_else(|| self.question(screen).map(Halt::Question))
    }

    fn error(&self, screen: &[String], prompt: &str) -> Option<String> {
        let (error, message) = self.messages.as_ref()?;
        // Text beside the messages is no message.
        let lines: Vec<&str> = screen.iter().map(String::as_str).collect();
        let column = side(&lines).unwrap_or(usize::MAX);
        let lines: Vec<&str> = lines.into_iter().map(|line| split(line, column).0.trim_end()).collect();
        let text = lines.join("\n");
        let place = |found: &Captures<'_>| found.get(1).or(found.get(0)).map_or(0, |found| found.start());
        let errors: Vec<usize> = error.captures_iter(&text).map(|found| place(&found)).collect();
        let others = message.find_iter(&text).map(|found| found.start());
        let latest = others.filter(|start| !errors.contains(start)).last();
        let start = errors.iter().find(|start| latest.is_none_or(|latest| **start > latest))?;
        let words: Vec<&str> = text[*start..].lines().take_while(|line| !bare(line).is_empty()).collect();
        let words = flowed(&words);
        // The text without its mark.
        let words = words.trim_start_matches(|char: char| !char.is_alphanumeric() && char != '[');
        let words = words.strip_prefix("[API Error: ").map_or(words, |rest| rest.trim_end_matches(']'));
        let is_of_prompt = prompt.contains(&alphanumeric(words));
        (!is_of_prompt).then(|| words.to_owned())
    }
}

/// Waits until a reason to stop has been visible for long enough: a working program shows and clears much by itself.
#[derive(Debug)]
pub struct HaltWatch {
    /// The letters of the prompt.
    prompt: String,
    screen: Option<Since<Vec<String>>>,
    halt: Option<Since<Option<Halt>>>,
}

impl HaltWatch {
    /// How long a question must be visible: some blink. An error as long on a still screen, because programs retry by
    /// themselves and count the seconds.
    pub const HOLDS: Duration = Duration::from_secs(3);

    /// The wait of a program with this prompt.
    #[must_use]
    pub fn new(prompt: &str) -> Self {
        Self { prompt: alphanumeric(prompt), screen: None, halt: None }
    }

    /// What this screen shows, however briefly.
    #[must_use]
    pub fn glimpse(&self, screens: &Screens, screen: &[String]) -> Option<Halt> {
        screens.halt(screen, &self.prompt)
    }

    /// A look: the reason to stop, and whether it has been visible for long enough.
    #[must_use]
    pub fn look(&mut self, screens: &Screens, screen: &[String], now: Instant) -> Option<(Halt, bool)> {
        let halt = self.glimpse(screens, screen);
        let stands = Since::update(&mut self.screen, screen.to_vec(), now);
        let holds = Since::update(&mut self.halt, halt.clone(), now);
        halt.map(|halt| {
            let time = if matches!(halt, Halt::Question(_)) { holds } else { stands };
            (halt, time >= Self::HOLDS)
        })
    }
}

/// The class of an error on a screen, as over a pipe.
#[must_use]
pub fn fault(words: &str) -> Fault {
    let understood = Reported { status: status(words), name: "", message: words }.understood();
    Fault::told(understood.class, understood.message)
}

/// The HTTP status that an error names.
fn status(words: &str) -> Option<i64> {
    static STATUS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"(?i)\b(?:status|error|code|http)"?(?: code)?:? ([45]\d\d)\b"#).ok());
    STATUS.as_ref()?.captures(words)?[1].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::usage::Class;

    const ERROR: &str = "❯ Do it.\n  ⎿  Not logged in · Please run /login\n\n❯";
    const QUESTION: &str = " Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend";

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn claude() -> Screens {
        Screens::of(&["claude".to_owned()], None).unwrap()
    }

    #[test]
    fn a_glimpse_of_what_it_stops_at_does_not_count() {
        let (claude, start) = (claude(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut watch = HaltWatch::new("Do it.");
        let mut counts =
            |text: &str, second| watch.look(&claude, &lines(text), at(second)).map(|(_, counts)| counts);
        assert_eq!(counts("● working", 0), None);
        assert_eq!(counts(ERROR, 1), Some(false));
        assert_eq!(counts(ERROR, 3), Some(false));
        assert_eq!(counts(ERROR, 4), Some(true));
        // It goes on by itself.
        assert_eq!(counts(&format!("{ERROR}\n 1 s"), 5), Some(false));
        // A question may blink.
        assert_eq!(counts(QUESTION, 6), Some(false));
        assert_eq!(counts(&format!("●\n{QUESTION}"), 8), Some(false));
        assert_eq!(counts(QUESTION, 9), Some(true));
        assert_eq!(counts("● working", 10), None);
    }

    #[test]
    fn an_error_that_something_follows_or_that_the_prompt_quotes_is_none() {
        let halt = |text: &str, prompt: &str| HaltWatch::new(prompt).glimpse(&claude(), &lines(text));
        let words = "Not logged in · Please run /login";
        assert_eq!(halt(ERROR, "Do it."), Some(Halt::Error(words.to_owned())));
        assert_eq!(halt(&format!("{ERROR}\n● I go on."), "Do it."), None);
        assert_eq!(halt(ERROR, &format!("Do it.\n  ⎿  {words}")), None);
        assert_eq!(halt(&format!("{QUESTION}\n● It was answered."), "Do it."), None);
    }

    #[test]
    fn what_claude_says_of_an_error_is_none() {
        let is_error = |line: &str| HaltWatch::new("Do it.").glimpse(&claude(), &lines(line)).is_some();
        for (words, expected) in [
            ("API Error: 529 Overloaded. This is a server-side issue", true),
            ("API Error: 500", true),
            ("API Error: 400 {\"type\":\"error\"}", true),
            ("API Error: {\"type\":\"error\"}", true),
            ("API Error (529 {\"type\":\"error\"}) · Retrying in 5 seconds", true),
            ("API Error: Request rejected (429) · This request would exceed your limit", true),
            ("API Error: Connection error.", true),
            ("API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)", true),
            ("API Error: Can't reach the API server — check your internet or DNS (ENOTFOUND)", true),
            ("API Error: No internet route — check your connection or VPN (ENETUNREACH)", true),
            (
                "There's an issue with the selected model (x). It may not exist or you may not have access to it.",
                true,
            ),
            ("There's an issue with the selected models in the menu; it is fixed.", false),
            ("API Error: Opus 5.5's safeguards flagged this message", true),
            ("Please run /login · API Error: 403 not allowed here", true),
            ("API Error: the handler answers with 500 now, and all tests pass.", false),
            ("API Error: fixed in src/api.rs. All tests pass.", false),
            ("API Error: 5000 lines of the log have it", false),
            ("API Error handling is done", false),
        ] {
            assert_eq!(is_error(&format!("❯ Do it.\n\n● {words}")), expected, "{words}");
        }
        assert!(is_error("❯ Do it.\n  ⎿  API Error: 529 Overloaded"));
        assert!(!is_error("❯ Do it.\n  ⎿  API Error: it is in the log"));
    }

    #[test]
    fn an_error_means_what_it_means_over_a_pipe() {
        for (words, class) in [
            ("unexpected status 403 Forbidden: Forbidden, url: http://127.0.0.1", Class::Auth),
            ("exceeded retry limit, last status: 429 Too Many Requests", Class::Limit),
            ("API Error: 529 Overloaded. This is a server-side issue", Class::Overload),
            ("{\"error\":{\"code\":503,\"message\":\"Try later\"}}", Class::Overload),
            ("No such model: error 404", Class::Model),
            ("Authentication failed with provider at http://127.0.0.1 (HTTP 401).", Class::Auth),
        ] {
            assert_eq!(fault(words).class, class, "{words}");
        }
    }
}
