//! How long claims hold, and what this process knows of its own (rule 1 of many machines).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::engine::context::Renewed;
use crate::engine::outcome::End;
use crate::engine::uptime::Uptime;
use crate::graph::GraphError;
use crate::text::duration;

/// How often it is looked whether a claim still holds.
const LOOK: Duration = Duration::from_secs(1);
/// How long before its lease is over an agent is ended, at most: its tools may go on for a moment.
const MARGIN: Duration = Duration::from_secs(30);
/// How long it may take until an agent that does not want to end is killed.
const ENDING: Duration = Duration::from_secs(6);

/// How long claims hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    /// How long, since the last renewal.
    pub(crate) length: Duration,
    /// Whether it counts on this machine, too, where the store could see that our process lives.
    pub(crate) counts_here: bool,
}

impl Default for Lease {
    fn default() -> Self {
        Self { length: Duration::from_mins(10), counts_here: false }
    }
}

impl Lease {
    /// How often it is renewed.
    pub(crate) fn renewal(self) -> Duration {
        self.length / 5
    }

    /// How long after a renewal was sent an agent may work.
    pub(crate) fn allowed(self) -> Duration {
        self.length.saturating_sub(MARGIN.min(self.length / 10).max(ENDING))
    }
}

/// What is known of one claim: written where it is renewed, read where its agent is watched.
#[derive(Debug)]
pub(super) struct Held {
    lease: Lease,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// When the last renewal that has succeeded was sent, or before: the server counts from later on.
    sent: Uptime,
    /// The claim is of another one.
    is_lost: bool,
    /// Why the last renewal has failed otherwise.
    failure: Option<GraphError>,
}

impl Held {
    /// A claim that was asked for at this moment.
    pub(super) fn new(lease: Lease, sent: Uptime) -> Self {
        Self { lease, known: Mutex::new(Known { sent, is_lost: false, failure: None }) }
    }

    /// Takes the answer to a renewal that was sent at this moment.
    pub(super) fn renewed(&self, sent: Uptime, answer: Result<(), GraphError>) {
        let mut known = self.lock();
        known.failure = None;
        match answer {
            Ok(()) => known.sent = sent,
            Err(GraphError::ClaimLost { .. }) => known.is_lost = true,
            Err(error) => known.failure = Some(error),
        }
    }

    /// Whether the agent may go on at this moment.
    ///
    /// # Errors
    /// If the store fails, where the lease does not count.
    pub(super) fn look(&self, now: Uptime) -> Result<Renewed, End> {
        let mut known = self.lock();
        if known.is_lost {
            return Ok(Renewed::Lost("its task was taken from this run meanwhile".to_owned()));
        }
        if !self.lease.counts_here {
            return known.failure.take().map_or(Ok(Renewed::After(LOOK)), |error| Err(error.into()));
        }
        if known.sent.until(now) < self.lease.allowed() {
            return Ok(Renewed::After(LOOK));
        }
        let length = duration::format(self.lease.length);
        let mut why = format!(
            "its claim could not be renewed for nearly {length}, after which another run may take the task"
        );
        if let Some(failure) = &known.failure {
            why = format!("{why}: {failure}");
        }
        Ok(Renewed::Lost(why))
    }

    /// A panic of another thread cannot leave it half-changed.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_may_work_until_some_time_before_its_lease_is_over() {
        let of = |seconds| Lease { length: Duration::from_secs(seconds), counts_here: true };
        assert_eq!(of(600).allowed(), Duration::from_secs(570));
        assert_eq!(of(120).allowed(), Duration::from_secs(108));
        assert_eq!(of(30).allowed(), Duration::from_secs(24));
        assert_eq!(of(600).renewal(), Duration::from_mins(2));
    }

    #[test]
    fn it_counts_from_before_a_renewal_was_sent() {
        let lease = Lease { length: Duration::from_secs(30), counts_here: true };
        let now = Uptime::now();
        let held = Held::new(lease, now);
        assert_eq!(held.look(Uptime::now()), Ok(Renewed::After(LOOK)));
        // Sent long ago, and answered only now.
        held.renewed(now.before(Duration::from_secs(28)), Ok(()));
        assert!(matches!(held.look(Uptime::now()), Ok(Renewed::Lost(why)) if why.contains("30s")));
        held.renewed(Uptime::now(), Ok(()));
        assert_eq!(held.look(Uptime::now()), Ok(Renewed::After(LOOK)));
        held.renewed(Uptime::now(), Err(GraphError::ClaimLost { id: "t-1".to_owned() }));
        assert!(matches!(held.look(Uptime::now()), Ok(Renewed::Lost(_))));
    }
}
