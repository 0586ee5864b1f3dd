//! The lines that tell of a worker's loop.

use std::time::Duration;

use super::next_step::shell_word;
use crate::engine::event::{Event, Stamped};
use crate::engine::outcome::Outcome;
use crate::engine::report::{AttemptStatus, Report};
use crate::engine::stop::{Ask, Request, Urgency};

/// What is known of the loop so far.
#[derive(Debug)]
pub(crate) struct WorkerLines {
    name: String,
    /// The last iteration that may begin.
    last: Option<u64>,
    /// How the latest iteration failed: its number, and its exit.
    failed: Option<(u64, String)>,
    /// The first iteration, until the window is known that it begins in; of a worker that is there already none.
    first: Option<u64>,
    /// The iteration whose agent is about to be started.
    begins: Option<u64>,
    spawns: bool,
    /// The loop is to end, and its agent is not.
    leaves: bool,
}

impl WorkerLines {
    /// For the worker of this name, which is new where it `spawns`.
    pub(crate) fn new(name: &str, spawns: bool) -> Self {
        Self {
            name: name.to_owned(),
            last: None,
            failed: None,
            first: None,
            begins: None,
            spawns,
            leaves: false,
        }
    }

    /// The line that an event is worth, with its end; empty where it is told by none. `None`: it is told as in other loops.
    pub(crate) fn take(&mut self, stamped: &Stamped<'_>) -> Option<String> {
        let text = match stamped.event {
            Event::LoopStarted { limits, tally, .. } | Event::LimitsChanged { limits, tally } => {
                self.last = limits.last_iteration(tally);
                String::new()
            }
            Event::AttemptStarted { tally, .. } if self.spawns => {
                self.first = Some(tally.iteration);
                String::new()
            }
            Event::AttemptStarted { tally, .. } => {
                self.begins = Some(tally.iteration);
                String::new()
            }
            // One that is taken up has begun before.
            Event::AgentStarted { .. } if !self.spawns => match self.begins.take() {
                Some(iteration) => self.starting(iteration),
                None => String::new(),
            },
            Event::AgentKnown { session: Some(window), .. } if std::mem::take(&mut self.spawns) => {
                let first = self.first.unwrap_or(1);
                let (name, of) = (&self.name, self.of());
                let starting = self.starting(first);
                return Some(format!(
                    "spawned {name} (tmux: {window}) [ralph mode: iteration {first}{of}]\n[ralph] {name}: {starting}\n"
                ));
            }
            Event::AgentKnown { .. } => String::new(),
            Event::AttemptEnded { tally, report, .. } => self.ended(tally.iteration, report),
            Event::BackingOff { tally, breaker, pause } => {
                let (iteration, exit) = self.failed.take().unwrap_or((tally.iteration, "unknown".to_owned()));
                let most = breaker.map(|most| format!("/{most}")).unwrap_or_default();
                format!(
                    "iteration {iteration} failed (exit: {exit}), retrying in {}s (attempt {}{most})",
                    pause.as_secs(),
                    tally.consecutive_errors
                )
            }
            Event::Asked { ask: Ask::Request(Request::Detach), .. } => {
                self.leaves = true;
                return None;
            }
            Event::LoopEnded { outcome: Outcome::Detached, .. } if self.leaves => {
                "monitor disconnected (worker still running)".to_owned()
            }
            Event::Asked { ask: Ask::Terminate, urgency: Urgency::AfterAttempt } => {
                "received SIGTERM, pausing loop (current agent will complete)".to_owned()
            }
            Event::LoopEnded { outcome, tally, .. } => {
                let over = self.over(outcome, tally.iteration, tally.consecutive_errors);
                match self.failed.take() {
                    Some((iteration, exit)) if !over.is_empty() => {
                        format!("iteration {iteration} failed (exit: {exit})\n[ralph] {}: {over}", self.name)
                    }
                    _ => over,
                }
            }
            _ => return None,
        };
        Some(if text.is_empty() { text } else { format!("[ralph] {}: {text}\n", self.name) })
    }

    fn of(&self) -> String {
        self.last.map(|last| format!("/{last}")).unwrap_or_default()
    }

    fn starting(&self, iteration: u64) -> String {
        format!("starting iteration {iteration}{}", self.of())
    }

    fn ended(&mut self, iteration: u64, report: &Report) -> String {
        let exit = match (report.exit_code, report.signal) {
            (Some(code), _) => code.to_string(),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "unknown".to_owned(),
        };
        match report.status {
            AttemptStatus::Success | AttemptStatus::CompleteUnproven => {
                let took = spaced(report.duration);
                format!("iteration {iteration} completed (exit: {exit}, duration: {took})")
            }
            AttemptStatus::Still => {
                let limit = report.exceeded.unwrap_or(report.duration);
                format!("inactivity timeout ({}s), restarting", limit.as_secs())
            }
            AttemptStatus::Interrupted => format!("iteration {iteration} was ended"),
            AttemptStatus::AgentFailure | AttemptStatus::Timeout | AttemptStatus::UsageLimit => {
                self.failed = Some((iteration, exit));
                String::new()
            }
        }
    }

    fn over(&self, outcome: Outcome, iterations: u64, failures: u64) -> String {
        match outcome {
            // One that was never there has not failed; why is told by itself.
            Outcome::WorkerFailed if failures == 0 => String::new(),
            Outcome::Detached => String::new(),
            Outcome::DonePattern => "done pattern matched, stopping loop".to_owned(),
            Outcome::MaxIterations => format!("loop complete after {iterations} iterations"),
            Outcome::WorkerFailed => format!("{failures} consecutive failures, stopping loop"),
            outcome => {
                let goes_on = matches!(outcome, Outcome::Interrupted | Outcome::Terminated);
                let name = shell_word(&self.name);
                let how = if goes_on { format!(" ('ralph resume {name}' goes on)") } else { String::new() };
                format!("loop stopped after {iterations} iterations: {}{how}", outcome.reason())
            }
        }
    }
}

/// `5m 12s`
fn spaced(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, _) => format!("{hours}h {minutes}m"),
    }
}
