//! Judges an attempt of a worker.

use std::time::Duration;

use crate::agent::Timeouts;
use crate::agent::ended::{UNCONNECTED, with_remedy};
use crate::agent::pane::halt::fault;
use crate::engine::report::{AttemptStatus, Report};
use crate::presets::Preset;
use crate::presets::fault::class_of_words;
use crate::process::OUT_OF_SIGHT;
use crate::process::launch::Launch;
use crate::process::walls::TurnedAway;
use crate::reply::usage::Class;
use crate::reply::verdict::{Failure, Kind, reported};
use crate::text::duration;

/// How many of the last lines of a screen are reported.
const SHOWN: usize = 5;
/// In how many of them a reason is searched.
const SEARCHED: usize = 20;
/// Words of a line that is a reason. Below it may be hints about keys, or how to continue a session.
const REASONS: [&str; 12] = [
    "error",
    "fail",
    "cannot",
    "can't",
    "could not",
    "unable",
    "denied",
    "not found",
    "invalid",
    "expired",
    "refused",
    "limit",
];
/// Messages of programs without a terminal.
const NO_TERMINAL: [&str; 4] =
    ["through stdin or as a prompt argument", "not a TTY", "not a terminal", "stdin is not a tty"];

/// Why we have ended an agent that has not ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    /// Its screen stood still, which ends its turn.
    Still,
    /// The words that end the loop are on its screen.
    Done,
    /// An error ended its turn, in these words.
    Reported(String),
    /// It was not ready within this time.
    NotReady(Duration),
    /// Its prompt never showed.
    NoArrival,
    /// ralph was killed while it typed the prompt, and the screen does not show whether the agent has it.
    Unclear,
    /// The attempt took too long.
    TimedOut,
    /// The loop must end.
    Interrupted,
    /// Its pane, or all of tmux, is gone.
    Lost,
}

/// The evidence of an attempt.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) how: Option<How>,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    /// What was lost, in words.
    pub(super) lost: Option<String>,
    /// Why it never ran.
    pub(super) refused: Option<String>,
    /// What was checked before it counted as still.
    pub(super) evidence: String,
    /// Whether the words that end the loop were seen.
    pub(super) is_done: bool,
    /// The hosts that walls have kept it from.
    pub(super) turned_away: TurnedAway,
    /// The output of the pane in this iteration.
    pub(super) transcript: Vec<String>,
}

impl Left {
    /// The last line with a reason, or else the last one that is not empty.
    fn last_words(&self) -> String {
        let mut lines = self.transcript.iter().rev().filter(|line| line.chars().any(char::is_alphanumeric));
        let tells = |line: &&String| {
            let line = line.to_lowercase();
            REASONS.iter().any(|reason| line.contains(reason))
        };
        let line = lines.clone().take(SEARCHED).find(tells).or_else(|| lines.next());
        line.map(|line| format!(": {}", line.trim())).unwrap_or_default()
    }

    /// Whether its last words are about its connection.
    fn waits_for_network(&self) -> bool {
        self.transcript.iter().rev().take(SEARCHED).any(|line| class_of_words(line) == Class::Network)
    }

    /// Whether its program has ended by itself.
    pub(super) fn has_ended_by_itself(&self) -> bool {
        self.how.is_none() && self.lost.is_none()
    }

    /// Why a program has ended before it was ready: what is on its screen, and a likely cause.
    pub(super) fn why_it_never_began(&self, name: &str, launch: &Launch) -> String {
        if let Some(why) = &self.refused {
            return format!("{name} was not started: {why}");
        }
        let how = match (self.exit_code, self.signal) {
            (Some(code), _) => format!("with code {code}"),
            (None, Some(signal)) => format!("by signal {signal}"),
            (None, None) => "in an unknown way".to_owned(),
        };
        let shown: Vec<&str> =
            self.transcript.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
        let shown = shown[shown.len().saturating_sub(SHOWN)..].join(" | ");
        let shown =
            if shown.is_empty() { "it showed nothing".to_owned() } else { format!("it showed: {shown}") };
        let words: Vec<_> = launch.command_line().map(|word| word.to_string_lossy()).collect();
        let is_container = words.iter().any(|word| word.ends_with("docker") || word.ends_with("podman"));
        let has_terminal = words.iter().any(|word| {
            let is_short = word.starts_with('-') && !word.starts_with("--") && word.contains('t');
            is_short || word == "--tty"
        });
        let says_so = NO_TERMINAL.iter().any(|words| shown.contains(words));
        let likely = match (is_container && !has_terminal, says_so) {
            (true, _) => "; without '-it' a container has no terminal",
            (false, true) => "; it has no terminal: does it start a container, and without '-it'?",
            (false, false) => "",
        };
        format!("{name} ended {how} before it could take its prompt; {shown}{likely}")
    }

    /// Why it failed; `None` if it did not. `preset`: that of its agent.
    fn failure(&self, name: &str, timeouts: Timeouts, preset: &Preset) -> Option<Failure> {
        let ends_with = self.last_words();
        let limit = duration::format;
        let (kind, message) = match (&self.how, self.exit_code, self.signal) {
            _ if self.refused.is_some() => {
                let why = self.refused.as_deref().unwrap_or_default();
                (Kind::Exit, format!("{name} was not started: {why}"))
            }
            (Some(How::Still | How::Done), ..) | (None, Some(0), _) => return None,
            (Some(How::Reported(words)), ..) => return Some(reported(name, &fault(words))),
            (Some(How::Interrupted), ..) => (Kind::Interrupted, format!("{name} was ended")),
            (Some(How::TimedOut), ..) => {
                let most = limit(timeouts.attempt);
                let (class, why) =
                    if self.waits_for_network() { (Class::Network, UNCONNECTED) } else { (Class::Other, "") };
                let message = format!("{name} ran longer than {most}{why} and was ended (--timeout)");
                return Some(Failure { kind: Kind::TimedOut, class, message, reset_at: None });
            }
            (Some(How::NotReady(most)), ..) => (
                Kind::Exit,
                format!(
                    "{name} was not ready for its prompt within {} (--ready-timeout){ends_with}",
                    limit(*most)
                ),
            ),
            (Some(How::NoArrival), ..) => {
                (Kind::Exit, format!("{name} does not show the prompt that was pasted{ends_with}"))
            }
            (Some(How::Unclear), ..) => {
                let why = "ralph was killed while it typed the prompt";
                (Kind::Exit, format!("{name} does not show whether it has its prompt: {why}{ends_with}"))
            }
            (None, Some(code), _) => {
                let message = format!("{name} exited with code {code}{ends_with}");
                // Its last words come in no stream: only what they say of the connection counts.
                let said = class_of_words(&ends_with);
                let class = match preset.asides.class_of_exit(code) {
                    Class::Other if said == Class::Network => said,
                    class => class,
                };
                return Some(Failure { kind: Kind::Exit, class, message, reset_at: None });
            }
            (None, None, Some(signal)) => {
                (Kind::Signal, format!("{name} was killed by signal {signal}{ends_with}"))
            }
            (Some(How::Lost) | None, ..) => {
                let lost = self.lost.as_deref().unwrap_or(OUT_OF_SIGHT);
                (Kind::Signal, format!("the pane of {name} is lost: {lost}"))
            }
        };
        Some(Failure { kind, class: Class::Other, message, reset_at: None })
    }
}

/// Judges an attempt. The words that end the loop count more than how the program ended.
pub(super) fn report(
    name: &str,
    left: &Left,
    text: String,
    is_done: bool,
    took: Duration,
    timeouts: Timeouts,
    preset: &Preset,
) -> Report {
    let failure = left.failure(name, timeouts, preset);
    let failure = failure.filter(|failure| !is_done || failure.kind == Kind::Interrupted);
    let failure = failure.map(|failure| with_remedy(failure, preset));
    let status = match (&failure, &left.how) {
        (Some(failure), _) => AttemptStatus::of(failure),
        (None, Some(How::Still)) => AttemptStatus::Still,
        (None, _) => AttemptStatus::Success,
    };
    Report {
        exit_code: left.exit_code.filter(|_| left.how.is_none()),
        signal: left.signal.filter(|_| left.how.is_none()),
        exceeded: match status {
            AttemptStatus::Still => Some(timeouts.inactivity),
            AttemptStatus::Timeout => Some(timeouts.attempt),
            _ => None,
        },
        failure: failure.filter(|failure| failure.kind != Kind::Interrupted),
        matches_done: is_done,
        text,
        ..Report::given_up(status, took)
    }
}
