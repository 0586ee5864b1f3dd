//! The lines of a worker's loop.

use std::time::Duration;

use crate::engine::event::Stamped;
use crate::engine::fact::{Asked, AttemptEnded, Fact, Word};
use crate::engine::outcome::Outcome;
use crate::engine::report::AttemptStatus;
use crate::engine::stop::Urgency;
use crate::tell::seen::Seen;
use crate::text::duration::of_seconds;
use crate::text::line::shell_word;
use crate::text::terminal::message;

/// The state of the loop so far.
#[derive(Debug)]
pub(crate) struct WorkerLines {
    name: String,
    /// The latest failed iteration: its number, and its exit.
    failed: Option<(u64, String)>,
    /// The first iteration, until its window is known; none for an existing worker.
    first: Option<u64>,
    /// The iteration whose agent is about to be started.
    begins: Option<u64>,
    spawns: bool,
    /// Whether the loop must end and its agent must not.
    leaves: bool,
}

impl WorkerLines {
    /// The lines of the worker of this name, which is new if it `spawns`.
    pub(crate) fn new(name: &str, spawns: bool) -> Self {
        Self { name: name.to_owned(), failed: None, first: None, begins: None, spawns, leaves: false }
    }

    /// The line of a fact, with its newline; empty if it has none. `None`: it has the line of other loops.
    pub(crate) fn take(&mut self, stamped: &Stamped<'_>, seen: &Seen) -> Option<String> {
        let tally = stamped.tally;
        let text = match stamped.fact {
            Fact::AgentKnown { session_id: Some(window), .. } if std::mem::take(&mut self.spawns) => {
                let (first, window) = (self.first.unwrap_or(1), message(window));
                let (name, of, starting) = (&self.name, seen.of(), starting(first, seen));
                return Some(format!(
                    "spawned {name} (tmux: {window}) [ralph mode: iteration {first}{of}]\n[ralph] {name}: {starting}\n"
                ));
            }
            Fact::LoopStarted { .. } | Fact::LimitsChanged { .. } | Fact::AgentKnown { .. } => String::new(),
            Fact::AttemptStarted { iteration, .. } if self.spawns => {
                self.first = Some(*iteration);
                String::new()
            }
            Fact::AttemptStarted { iteration, .. } => {
                self.begins = Some(*iteration);
                String::new()
            }
            // A resumed iteration has begun before.
            Fact::AgentStarted { .. } if !self.spawns => match self.begins.take() {
                Some(iteration) => starting(iteration, seen),
                None => String::new(),
            },
            Fact::AttemptEnded(ended) => self.ended(ended, stamped.exceeded()),
            Fact::BackingOff { failures, iteration, max_failures, pause_s } => {
                let (iteration, exit) = self.failed.take().unwrap_or((*iteration, "unknown".to_owned()));
                let most = max_failures.map(|most| format!("/{most}")).unwrap_or_default();
                let pause = of_seconds(*pause_s).as_secs();
                format!(
                    "iteration {iteration} failed (exit: {exit}), retrying in {pause}s (attempt {failures}{most})"
                )
            }
            Fact::Asked { what: Word::Known(Asked::Detach), .. } => {
                self.leaves = true;
                return None;
            }
            Fact::Asked {
                stopping: Word::Known(Urgency::AfterAttempt),
                what: Word::Known(Asked::Terminate),
                ..
            } => "received SIGTERM, pausing loop (current agent will complete)".to_owned(),
            Fact::LoopEnded(_) => {
                let outcome = stamped.outcome()?;
                if outcome == Outcome::Detached && self.leaves {
                    return Some(self.line("monitor disconnected (worker still running)"));
                }
                let over = self.over(outcome, tally.iteration, tally.consecutive_errors);
                match self.failed.take() {
                    Some((iteration, exit)) if !over.is_empty() => {
                        let last =
                            if outcome == Outcome::MaxIterations { ", the last one failed" } else { "" };
                        let name = &self.name;
                        format!("iteration {iteration} failed (exit: {exit})\n[ralph] {name}: {over}{last}")
                    }
                    _ => over,
                }
            }
            _ => return None,
        };
        Some(if text.is_empty() { text } else { self.line(&text) })
    }

    fn line(&self, text: &str) -> String {
        format!("[ralph] {}: {text}\n", self.name)
    }

    fn ended(&mut self, ended: &AttemptEnded<'_>, exceeded: Duration) -> String {
        let iteration = ended.iteration;
        let exit = ended.exit("signal ");
        match ended.status() {
            AttemptStatus::Success | AttemptStatus::CompleteUnproven => {
                let took = spaced(ended.duration());
                format!("iteration {iteration} completed (exit: {exit}, duration: {took})")
            }
            AttemptStatus::Still => {
                format!("inactivity timeout ({}s), restarting", exceeded.as_secs())
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
            // A worker that never existed has not failed; its reason has a line of its own.
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

fn starting(iteration: u64, seen: &Seen) -> String {
    format!("starting iteration {iteration}{}", seen.of())
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
