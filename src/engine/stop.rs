//! Requests to a loop, as data: signals, and what comes from another terminal.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;

/// Why a loop ends whose terminal is gone.
const HUNG_UP: &str = "the terminal was closed; a loop started with --detach goes on without one";

/// Why a loop ends that got SIGTERM.
const TERMINATED: &str = "SIGTERM came: the system shuts down, or another program ended the loop";

/// A request to a running loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Ctrl+C, with or without a terminal.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal was closed.
    HangUp,
    /// The time is over that an attempt has after one of these two.
    GraceOver,
    /// From another terminal.
    Request(Request),
}

impl Ask {
    /// Whether it makes the loop stop, sooner or later.
    #[must_use]
    pub fn stops(&self) -> bool {
        match self {
            Self::Interrupt
            | Self::Terminate
            | Self::HangUp
            | Self::GraceOver
            | Self::Request(Request::Cancel | Request::CancelNow | Request::Detach) => true,
            Self::Request(Request::Pause | Request::Resume | Request::Note(_) | Request::Change(_)) => false,
        }
    }
}

/// The requests of another terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Hold after the current attempt.
    Pause,
    /// Go on, also while the loop waits for a usage limit.
    Resume,
    /// End the loop after the current attempt.
    Cancel,
    /// End the loop and its agent.
    CancelNow,
    /// End the loop only, if its agent can live on by itself.
    Detach,
    /// Put this into the next prompt.
    Note(String),
    /// Use these values from the next iteration on.
    Change(Change),
}

/// What can be changed of a running loop. A `None` leaves a value as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Change {
    /// Iterations that may begin, including those that have begun.
    pub max_iterations: Option<u64>,
    /// How a worker is watched.
    pub watching: Option<Watching>,
}

/// How a worker is watched, as far as that can be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watching {
    /// Where its prompts come from; absolute.
    pub prompt_file: PathBuf,
    /// The regular expression that ends its loop; `None`: there is none.
    pub done_pattern: Option<String>,
    /// Whether that expression is also looked for while it works.
    pub check_done_continuous: bool,
    /// How long its screen may stand still; zero: without a limit.
    pub inactivity: Duration,
}

impl Change {
    /// Merges a later change into this one.
    fn and(&mut self, later: Self) {
        self.max_iterations = later.max_iterations.or(self.max_iterations);
        self.watching = later.watching.or(self.watching.take());
    }
}

/// When a loop has to stop.
// It only grows, until the user takes the stop back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Stopping"))]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// It goes on.
    #[default]
    #[serde(rename = "not")]
    None,
    /// It stops when the running attempt has ended by itself.
    AfterAttempt,
    /// It stops now: the agent is ended.
    Now,
    /// It stops at once: the agent is killed.
    AtOnce,
}

/// The fold over all requests to one loop.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    urgency: Urgency,
    outcome: Option<Outcome>,
    /// What the outcome does not say of the first reason.
    reason: Option<&'static str>,
    /// Whether a stop was also requested from elsewhere than this terminal.
    is_final: bool,
    hold: bool,
    go_on: bool,
    notes: Vec<String>,
    change: Option<Change>,
}

impl Stop {
    /// Adds a request. Every further signal is one step more urgent; the first reason names the outcome.
    pub fn book(&mut self, ask: Ask) {
        match ask {
            Ask::Interrupt => self.signal(Outcome::Interrupted),
            Ask::Terminate => {
                self.is_final = true;
                if self.outcome.is_none() {
                    self.reason = Some(TERMINATED);
                }
                self.signal(Outcome::Terminated);
            }
            Ask::HangUp => {
                self.is_final = true;
                if self.outcome.is_none() {
                    self.reason = Some(HUNG_UP);
                }
                self.signal(Outcome::Terminated);
            }
            Ask::GraceOver => self.raise(Urgency::Now, Outcome::Terminated),
            Ask::Request(Request::Cancel) => {
                self.is_final = true;
                self.raise(Urgency::AfterAttempt, Outcome::Cancelled);
            }
            Ask::Request(Request::CancelNow) => {
                self.is_final = true;
                self.raise(Urgency::Now, Outcome::Cancelled);
            }
            Ask::Request(Request::Detach) => {
                self.is_final = true;
                self.raise(Urgency::AfterAttempt, Outcome::Detached);
                // Whatever was requested before, the agent must not be ended.
                self.outcome = Some(Outcome::Detached);
            }
            Ask::Request(Request::Pause) => self.hold = true,
            Ask::Request(Request::Resume) => {
                self.hold = false;
                self.go_on = true;
            }
            Ask::Request(Request::Note(text)) => self.notes.push(text),
            Ask::Request(Request::Change(change)) => self.change.get_or_insert_default().and(change),
        }
    }

    fn signal(&mut self, outcome: Outcome) {
        let next = match self.urgency {
            Urgency::None => Urgency::AfterAttempt,
            Urgency::AfterAttempt => Urgency::Now,
            Urgency::Now | Urgency::AtOnce => Urgency::AtOnce,
        };
        self.raise(next, outcome);
    }

    fn raise(&mut self, urgency: Urgency, outcome: Outcome) {
        self.urgency = self.urgency.max(urgency);
        self.outcome.get_or_insert(outcome);
    }

    /// Whether the user at the terminal can still let the loop go on after Ctrl+C: no other request has come.
    #[must_use]
    pub fn can_be_forgiven(&self) -> bool {
        !self.is_final && matches!(self.urgency, Urgency::AfterAttempt | Urgency::Now)
    }

    /// Takes the stop back: the user at the terminal lets the loop go on.
    pub fn forgive(&mut self) {
        (self.urgency, self.outcome) = (Urgency::None, None);
    }

    /// How urgent the stop is now.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        self.urgency
    }

    /// The outcome of a loop that ends by request; `None` without a request.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// What the outcome alone does not say of why the loop ends.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        self.reason.filter(|_| self.outcome == Some(Outcome::Terminated))
    }

    /// Whether the loop must end now and its agent must not.
    #[must_use]
    pub fn detaches(&self) -> bool {
        self.outcome == Some(Outcome::Detached)
    }

    /// Whether the loop holds after the current attempt.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.hold
    }

    /// Whether there was a request to go on since this was last called: it ends a wait.
    pub fn take_go_on(&mut self) -> bool {
        std::mem::take(&mut self.go_on)
    }

    /// The notes that have come since this was last called.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Whether something was changed since it was last taken.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.change.is_some()
    }

    /// What was changed since this was last called.
    pub fn take_change(&mut self) -> Option<Change> {
        self.change.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_is_one_step_and_the_first_names_the_outcome() {
        let mut stop = Stop::default();
        assert_eq!((stop.urgency(), stop.outcome()), (Urgency::None, None));
        for step in [Urgency::AfterAttempt, Urgency::Now, Urgency::AtOnce, Urgency::AtOnce] {
            stop.book(Ask::Terminate);
            assert_eq!(stop.urgency(), step);
        }
        stop.book(Ask::Interrupt);
        assert_eq!(stop.outcome(), Some(Outcome::Terminated));
    }

    #[test]
    fn a_cancel_is_one_step_and_never_takes_one_back() {
        let mut stop = Stop::default();
        stop.book(Ask::Request(Request::CancelNow));
        stop.book(Ask::Request(Request::Cancel));
        assert_eq!((stop.urgency(), stop.outcome()), (Urgency::Now, Some(Outcome::Cancelled)));
    }

    #[test]
    fn an_agent_that_is_left_alone_is_not_ended() {
        let mut stop = Stop::default();
        stop.book(Ask::Request(Request::Cancel));
        stop.book(Ask::Request(Request::Detach));
        assert!(stop.detaches() && !stop.can_be_forgiven());
        assert_eq!((stop.urgency(), stop.outcome()), (Urgency::AfterAttempt, Some(Outcome::Detached)));
    }

    #[test]
    fn holding_and_going_on() {
        let mut stop = Stop::default();
        stop.book(Ask::Request(Request::Pause));
        assert!(stop.holds() && !stop.take_go_on());
        stop.book(Ask::Request(Request::Resume));
        assert!(!stop.holds() && stop.take_go_on() && !stop.take_go_on());
        stop.book(Ask::Request(Request::Note("look".into())));
        assert_eq!((stop.take_notes(), stop.take_notes()), (vec!["look".to_owned()], Vec::new()));
    }

    #[test]
    fn the_last_change_of_each_thing_counts() {
        let watching = Watching {
            prompt_file: "/p".into(),
            done_pattern: None,
            check_done_continuous: false,
            inactivity: Duration::ZERO,
        };
        let limit = |limit| Change { max_iterations: Some(limit), watching: None };
        let mut stop = Stop::default();
        stop.book(Ask::Request(Request::Change(limit(3))));
        stop.book(Ask::Request(Request::Change(Change {
            watching: Some(watching.clone()),
            ..Change::default()
        })));
        stop.book(Ask::Request(Request::Change(limit(4))));
        assert_eq!(stop.take_change(), Some(Change { watching: Some(watching), ..limit(4) }));
        assert_eq!(stop.take_change(), None);
    }
}
