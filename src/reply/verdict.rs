//! Decides whether an attempt succeeded.

use anstream::adapter::strip_str;
use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::decode::Counters;
use super::usage::{Class, Fault, known_word};
use crate::process::OUT_OF_SIGHT;
use crate::text::line::one_line_within;

/// The longest quotation of an agent in a failure's message, in characters.
const MAX_QUOTE: usize = 300;
/// The verb for an error reported by the agent itself.
const REPORTED: &str = "reported an error";

/// How the agent's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEnd {
    /// It exited by itself with this code.
    Exited(i32),
    /// A signal that ralph did not send killed it.
    Signaled(i32),
    /// Its supervisor was killed, and ralph ended the rest.
    OutOfSight,
    /// Ralph ended it: it ran longer than an attempt may.
    TimedOut,
    /// Ralph ended it: it showed no sign of life for too long.
    Inactive,
    /// Ralph ended it: it did not exit within the grace period after its successful final event.
    EndedAfterFinal,
    /// Ralph ended it at the user's request.
    Interrupted,
    /// Ralph ended it: it tried what cannot succeed.
    Hopeless,
}

/// The origin of the response and result filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The preset: the format is known, and missing output is an error.
    Preset,
    /// The user: missing output proves nothing.
    User,
    /// No filters: only the exit code counts.
    Nobody,
}

/// What an agent says besides its stream; each preset has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asides {
    /// The meaning of its exit codes without another message.
    pub exits: &'static [(i32, Class)],
    /// The prefixes of stderr lines that it always writes.
    pub chatter: &'static [&'static str],
    /// How it refuses to work as root, if it does.
    pub root: Option<RootRefusal>,
}

/// How an agent refuses to work as root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootRefusal {
    /// What it says then.
    pub says: &'static str,
    /// It refuses with this option,
    pub option: &'static str,
    /// unless this variable has this value.
    pub unless: (&'static str, &'static str),
}

impl RootRefusal {
    /// What the user can do.
    #[must_use]
    pub fn way_out(&self) -> String {
        let (name, value) = self.unless;
        format!("run as a normal user, or set {name}={value} yourself if this really is a sandbox")
    }
}

impl Asides {
    /// For an unknown agent.
    pub const NONE: Self = Self { exits: &[], chatter: &[], root: None };

    /// The meaning of an exit code alone.
    #[must_use]
    pub fn class_of_exit(&self, code: i32) -> Class {
        self.exits.iter().find(|(known, _)| *known == code).map_or(Class::Other, |(_, class)| *class)
    }
}

/// The evidence about an attempt that ended.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The agent's name for messages.
    pub agent: &'a str,
    /// How its process ended.
    pub end: AgentEnd,
    /// The origin of the filters.
    pub readers: Readers,
    /// Whether the agent has final events.
    pub has_final: bool,
    /// Whether a final event came.
    pub final_seen: bool,
    /// Whether the assistant said something that is not blank.
    pub said: bool,
    /// The decoder's counts.
    pub counters: Counters,
    /// The agent's own last error.
    pub fault: Option<&'a Fault>,
    /// A response or result filter that died.
    pub dead_filter: Option<&'a str>,
    /// The meaning of the agent's exit codes and stderr.
    pub asides: Asides,
    /// The end of the agent's stderr.
    pub stderr_tail: &'a str,
    /// The class of an error by its words alone.
    pub class_of_words: fn(&str) -> Class,
}

/// The way in which an attempt failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The exit code is not 0.
    Exit,
    /// A signal killed the agent.
    Signal,
    /// It ran too long.
    TimedOut,
    /// It showed no sign of life.
    Inactive,
    /// The user ended it.
    Interrupted,
    /// The agent itself reports an error.
    #[default]
    Reported,
    /// A filter died, so the agent's reply is unknown.
    Filter,
    /// No JSON object came.
    NoOutput,
    /// The final event never came.
    NoFinal,
    /// The assistant said nothing.
    Silent,
    /// The prompt is too long for the agent, so it was not started.
    PromptTooLong,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "LineFailure"))]
pub struct Failure {
    /// The class of the error that the agent reported.
    #[serde(deserialize_with = "known_word")]
    pub class: Class,
    /// In which way it failed.
    #[serde(deserialize_with = "known_word")]
    pub kind: Kind,
    /// One line for the user.
    pub message: String,
    /// When a usage limit ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<i64>,
}

/// Decides whether an attempt succeeded. The sigils of a failed one do not count.
pub fn judge(evidence: &Evidence<'_>) -> Result<(), Failure> {
    let Some((kind, what)) = problem(evidence) else { return Ok(()) };
    let (agent, Asides { chatter, root, .. }) = (evidence.agent, evidence.asides);
    let is_said = |refusal: &RootRefusal| match evidence.fault {
        Some(fault) => fault.message.contains(refusal.says),
        None => kind == Kind::Exit && evidence.stderr_tail.contains(refusal.says),
    };
    if let Some(refusal) = root.filter(is_said) {
        return Err(refused_root(agent, kind, &refusal));
    }
    let quote = match evidence.fault {
        _ if kind == Kind::Filter => String::new(),
        Some(fault) if !fault.message.trim().is_empty() => quoted(&fault.message),
        _ => last_words(evidence.stderr_tail, kind, chatter),
    };
    let message =
        if quote.is_empty() { format!("{agent} {what}") } else { format!("{agent} {what}: {quote}") };
    let class = evidence.fault.map_or(Class::Other, |fault| fault.class);
    let class = match evidence.end {
        AgentEnd::Exited(code) if class == Class::Other => evidence.asides.class_of_exit(code),
        _ => class,
    };
    let class = if class == Class::Other { class_of_stderr(evidence, kind) } else { class };
    let reset_at = evidence.fault.and_then(|fault| fault.reset_at);
    Err(Failure { class, kind, message, reset_at })
}

/// What stderr says where nothing else does: an agent may write there, and nowhere else, that it has no connection, or not the
/// model. Other words there say little: tools write to it, too.
fn class_of_stderr(evidence: &Evidence<'_>, kind: Kind) -> Class {
    if !matches!(kind, Kind::Exit | Kind::NoOutput | Kind::NoFinal | Kind::Silent | Kind::Reported) {
        return Class::Other;
    }
    let words = last_words(evidence.stderr_tail, kind, evidence.asides.chatter);
    let class = (evidence.class_of_words)(&words);
    if matches!(class, Class::Network | Class::Model) { class } else { Class::Other }
}

/// The failure of an agent whose turn has ended with this error, although its process still runs.
#[must_use]
pub fn reported(agent: &str, fault: &Fault) -> Failure {
    let message = format!("{agent} {REPORTED}: {}", quoted(&fault.message));
    Failure { kind: Kind::Reported, class: fault.class, message, reset_at: fault.reset_at }
}

/// The problem, if any, in words that follow the agent's name.
fn problem(evidence: &Evidence<'_>) -> Option<(Kind, String)> {
    match evidence.end {
        AgentEnd::Exited(0) | AgentEnd::EndedAfterFinal => {}
        AgentEnd::Exited(code) => return Some((Kind::Exit, format!("exited with code {code}"))),
        AgentEnd::Signaled(signal) => return Some((Kind::Signal, format!("was killed by signal {signal}"))),
        AgentEnd::OutOfSight => {
            return Some((Kind::Signal, format!("was ended, because {OUT_OF_SIGHT}")));
        }
        AgentEnd::TimedOut => return Some((Kind::TimedOut, "ran longer than its timeout allows".into())),
        AgentEnd::Inactive => {
            return Some((
                Kind::Inactive,
                "showed no sign of life for longer than its timeout allows".into(),
            ));
        }
        AgentEnd::Interrupted => return Some((Kind::Interrupted, "was interrupted".into())),
        AgentEnd::Hopeless => return Some((Kind::Reported, REPORTED.into())),
    }
    if evidence.readers == Readers::Nobody {
        return None;
    }
    if let Some(filter) = evidence.dead_filter {
        return Some((Kind::Filter, format!("ended well, but {filter}")));
    }
    if evidence.fault.is_some() {
        return Some((Kind::Reported, REPORTED.into()));
    }
    if evidence.readers == Readers::User {
        return None;
    }
    if evidence.counters.objects == 0 {
        return Some((Kind::NoOutput, format!("printed no JSON object{}", skipped(evidence.counters))));
    }
    if evidence.has_final && !evidence.final_seen {
        let what = format!("ended without its final event{}", skipped(evidence.counters));
        return Some((Kind::NoFinal, what));
    }
    if !evidence.said {
        return Some((Kind::Silent, format!("ended without saying anything{}", skipped(evidence.counters))));
    }
    None
}

/// Unreadable lines may explain what is missing.
fn skipped(counters: Counters) -> String {
    match (counters.malformed, counters.oversized) {
        (0, 0) => String::new(),
        (malformed, 0) => format!(" ({malformed} unreadable lines)"),
        (0, oversized) => format!(" ({oversized} lines too long to be read)"),
        (malformed, oversized) => {
            format!(" ({malformed} unreadable lines, {oversized} too long to be read)")
        }
    }
}

fn refused_root(agent: &str, kind: Kind, refusal: &RootRefusal) -> Failure {
    // In a session, the flag is set by ralph, not by the user.
    let without = if kind == Kind::Exit { "; or set AGENT_ARGS without the flag" } else { "" };
    let message = format!("{agent} refuses {} as root: {}{without}", refusal.option, refusal.way_out());
    Failure { kind, class: Class::Permission, message, reset_at: None }
}

/// The stderr line with the reason: the last one that mentions an error. If the agent gave up by itself, or left
/// nothing else, any last line with text counts. A JSON line gives its `message`. Lines of `chatter` are ignored.
fn last_words(stderr: &str, kind: Kind, chatter: &[&str]) -> String {
    let clean: String = strip_str(stderr).collect();
    let is_chatter = |line: &str| chatter.iter().any(|words| line.starts_with(words));
    let lines = || clean.lines().rev().filter(|line| is_telling(line) && !is_chatter(line));
    let mentions_error = |line: &&str| line.to_ascii_lowercase().contains("error");
    let line = lines().find(mentions_error).or_else(|| match kind {
        Kind::Exit | Kind::NoOutput => lines().next(),
        _ => None,
    });
    let Some(line) = line else { return String::new() };
    let json = serde_json::from_str::<serde_json::Value>(line).ok();
    let message = json.as_ref().and_then(|json| json.get("message")?.as_str());
    quoted(message.unwrap_or(line))
}

/// Whether a line of stderr may say why an agent failed: not an indented stack trace, a warning, or a log line, which
/// agents write all the time.
fn is_telling(line: &str) -> bool {
    let is_log = || {
        let time = line.split(' ').next().unwrap_or_default().trim_matches(['[', ']']);
        time == "STARTUP" || DateTime::parse_from_rfc3339(time).is_ok()
    };
    let is_warning = || line.split([' ', ':']).next().is_some_and(|word| word.ends_with("Warning"));
    line.chars().any(char::is_alphabetic)
        && !line.starts_with([' ', '\t'])
        && !line.starts_with("(node:")
        && !is_warning()
        && !is_log()
}

/// An agent's text on one line and without colours.
fn quoted(text: &str) -> String {
    one_line_within(&strip_str(text).collect::<String>(), MAX_QUOTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Evidence<'static> {
        Evidence {
            agent: "claude",
            end: AgentEnd::Exited(0),
            readers: Readers::Preset,
            has_final: true,
            final_seen: true,
            said: true,
            counters: Counters { objects: 3, malformed: 0, oversized: 0 },
            fault: None,
            dead_filter: None,
            asides: Asides {
                exits: &[(41, Class::Auth)],
                chatter: &["Ripgrep is not"],
                root: Some(RootRefusal {
                    says: "cannot be used with root",
                    option: "--yes",
                    unless: ("IS_SANDBOX", "1"),
                }),
            },
            stderr_tail: "",
            class_of_words: |words| if words.contains("ENOTFOUND") { Class::Network } else { Class::Other },
        }
    }

    fn kind(evidence: &Evidence<'_>) -> Option<Kind> {
        judge(evidence).err().map(|failure| failure.kind)
    }

    #[test]
    fn how_the_process_ended_comes_first() {
        for (end, expected) in [
            (AgentEnd::Exited(0), None),
            (AgentEnd::EndedAfterFinal, None),
            (AgentEnd::Exited(3), Some(Kind::Exit)),
            (AgentEnd::Signaled(9), Some(Kind::Signal)),
            (AgentEnd::OutOfSight, Some(Kind::Signal)),
            (AgentEnd::TimedOut, Some(Kind::TimedOut)),
            (AgentEnd::Inactive, Some(Kind::Inactive)),
            (AgentEnd::Interrupted, Some(Kind::Interrupted)),
            (AgentEnd::Hopeless, Some(Kind::Reported)),
        ] {
            for readers in [Readers::Preset, Readers::User, Readers::Nobody] {
                assert_eq!(kind(&Evidence { end, readers, ..good() }), expected, "{end:?} {readers:?}");
            }
        }
    }

    #[test]
    fn silence_counts_only_with_the_presets_own_filters() {
        let counters = Counters::default();
        let mute = Evidence { counters, said: false, final_seen: false, ..good() };
        assert_eq!(kind(&mute), Some(Kind::NoOutput));
        assert_eq!(kind(&Evidence { counters: good().counters, ..mute.clone() }), Some(Kind::NoFinal));
        assert_eq!(kind(&Evidence { said: false, ..good() }), Some(Kind::Silent));
        assert_eq!(kind(&Evidence { has_final: false, final_seen: false, ..good() }), None);
        assert_eq!(kind(&Evidence { readers: Readers::User, ..mute.clone() }), None);
        assert_eq!(kind(&Evidence { readers: Readers::Nobody, ..mute }), None);
    }

    #[test]
    fn an_error_the_agent_reports_fails_the_attempt_whatever_the_exit_code() {
        let fault = Fault { class: Class::Limit, message: "too\nmany".into(), reset_at: Some(7) };
        let failure = judge(&Evidence { fault: Some(&fault), ..good() }).unwrap_err();
        assert_eq!((failure.kind, failure.class, failure.reset_at), (Kind::Reported, Class::Limit, Some(7)));
        assert_eq!(failure.message, "claude reported an error: too many");
        let killed =
            Evidence { end: AgentEnd::Signaled(15), fault: Some(&fault), stderr_tail: "noise", ..good() };
        let failure = judge(&killed).unwrap_err();
        assert_eq!((failure.kind, failure.class), (Kind::Signal, Class::Limit));
        assert_eq!(failure.message, "claude was killed by signal 15: too many");
        assert_eq!(
            kind(&Evidence { fault: Some(&fault), readers: Readers::User, ..good() }),
            Some(Kind::Reported)
        );
        assert_eq!(kind(&Evidence { fault: Some(&fault), readers: Readers::Nobody, ..good() }), None);
    }

    #[test]
    fn an_exit_code_tells_the_class_where_no_error_does() {
        let class = |evidence| judge(&evidence).unwrap_err().class;
        assert_eq!(class(Evidence { end: AgentEnd::Exited(41), ..good() }), Class::Auth);
        assert_eq!(class(Evidence { end: AgentEnd::Exited(42), ..good() }), Class::Other);
        let fault = Fault { class: Class::Limit, message: "x".into(), reset_at: None };
        assert_eq!(
            class(Evidence { end: AgentEnd::Exited(41), fault: Some(&fault), ..good() }),
            Class::Limit
        );
    }

    #[test]
    fn stderr_tells_a_missing_connection_where_nothing_else_does() {
        let stderr_tail = "Error: getaddrinfo ENOTFOUND api.example.org\n";
        let class = |evidence| judge(&evidence).unwrap_err().class;
        let failed = Evidence { end: AgentEnd::Exited(1), stderr_tail, ..good() };
        assert_eq!(class(failed.clone()), Class::Network);
        assert_eq!(class(Evidence { readers: Readers::Nobody, ..failed.clone() }), Class::Network);
        assert_eq!(class(Evidence { end: AgentEnd::TimedOut, ..failed.clone() }), Class::Other);
        let fault = Fault { class: Class::Auth, message: "no key".into(), reset_at: None };
        assert_eq!(class(Evidence { fault: Some(&fault), ..failed.clone() }), Class::Auth);
        assert_eq!(class(Evidence { end: AgentEnd::Exited(41), ..failed }), Class::Auth);
        assert!(judge(&Evidence { stderr_tail, ..good() }).is_ok());
    }

    #[test]
    fn a_dead_filter_fails_the_attempt_and_is_named() {
        let dead = Evidence { dead_filter: Some("the response filter died: halt(1)"), ..good() };
        let failure = judge(&Evidence { readers: Readers::User, ..dead }).unwrap_err();
        assert_eq!(failure.kind, Kind::Filter);
        assert_eq!(failure.message, "claude ended well, but the response filter died: halt(1)");
    }

    #[test]
    fn the_last_telling_line_of_stderr_is_quoted() {
        for (stderr, words) in [
            ("", ""),
            ("one\ntwo\n\n", "two"),
            ("Error: bad key {\n    at x (file)\n  status: 401\n}\n", "Error: bad key {"),
            ("Error: first\nbye\n", "Error: first"),
            ("noise\n{\"type\":\"error\",\"message\":\"no\\nprompt\"}\n", "no prompt"),
            ("\u{1b}[31mIt is not trusted\u{1b}[0m\n", "It is not trusted"),
            ("no key\nWarning: an error may come\n", "no key"),
            ("no key\nDeprecationWarning: no error\n(node:7) bad error\n", "no key"),
            ("2026-11-21T14:14:23.910686Z ERROR codex_core::session: failed to record rollout items\n", ""),
            ("[STARTUP] Phase 'x' was started but never ended: error\n", ""),
        ] {
            assert_eq!(last_words(stderr, Kind::Exit, &[]), words);
        }
        assert_eq!(last_words("no key\nRipgrep is not there\n", Kind::Exit, &["Ripgrep is"]), "no key");
    }

    #[test]
    fn stderr_is_no_reason_where_it_says_nothing_of_an_error() {
        let stderr_tail = "YOLO mode is enabled.\nRipgrep is not available.\n";
        let message = |evidence| judge(&evidence).unwrap_err().message;
        let silent = Evidence { said: false, stderr_tail, ..good() };
        assert_eq!(message(silent.clone()), "claude ended without saying anything");
        assert_eq!(
            message(Evidence { end: AgentEnd::Signaled(9), stderr_tail, ..good() }),
            "claude was killed by signal 9"
        );
        let stderr_tail = "Error: the disk is full\n";
        assert_eq!(
            message(Evidence { stderr_tail, ..silent }),
            "claude ended without saying anything: Error: the disk is full"
        );
        let dead_filter = Some("the response filter died: x");
        assert_eq!(
            message(Evidence { dead_filter, stderr_tail, ..good() }),
            "claude ended well, but the response filter died: x"
        );
    }

    #[test]
    fn words_are_quoted_without_colours() {
        let fault =
            Fault { class: Class::Other, message: "\u{1b}[31mno\u{1b}[0m luck".into(), reset_at: None };
        assert_eq!(
            judge(&Evidence { fault: Some(&fault), ..good() }).unwrap_err().message,
            "claude reported an error: no luck"
        );
    }

    #[test]
    fn a_refusal_to_run_as_root_says_what_to_do() {
        let stderr_tail =
            "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons";
        let failure = judge(&Evidence { end: AgentEnd::Exited(1), stderr_tail, ..good() }).unwrap_err();
        assert_eq!(failure.class, Class::Permission);
        assert!(failure.message.contains("IS_SANDBOX=1") && failure.message.contains("AGENT_ARGS"));
        assert!(judge(&Evidence { stderr_tail, ..good() }).is_ok());
        // The agent's own report counts; other messages do not.
        let fault = Fault { class: Class::Limit, message: "try again".into(), reset_at: None };
        let end = AgentEnd::Exited(1);
        let limited = judge(&Evidence { end, stderr_tail, fault: Some(&fault), ..good() }).unwrap_err();
        assert_eq!(limited.class, Class::Limit);
        let other = judge(&Evidence { end, stderr_tail, asides: Asides::NONE, ..good() }).unwrap_err();
        assert_eq!(other.class, Class::Other);
    }
}
