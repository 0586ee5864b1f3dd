//! The pauses of a loop: between iterations, before retries, while it is held, while a usage limit lasts or a provider is
//! overloaded, and while the disk is full.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::fact::Fact;
use super::outcome::End;
use super::policy::shortage;
use super::run::{Job, Loop};
use super::stop::Urgency;
use super::wait::Wait;
use crate::files::room::Shortage;

/// The longest single wait without reading the clock, so that a stepped clock or a resumed machine is noticed.
const LOOK: Duration = Duration::from_secs(1);

impl Loop<'_> {
    /// Holds until a request lets the loop go on, or ends it.
    pub(super) fn hold(&mut self) -> Result<(), End> {
        let Job { context, tally, .. } = &mut self.job;
        context.count(tally).tell(Fact::Paused)?;
        while self.job.context.stop.holds() && self.job.context.urgency() == Urgency::None {
            self.wait(None)?;
        }
        // A request to go on after a pause does not cut a wait short.
        self.job.context.stop.take_go_on();
        self.tell_resumed()
    }

    /// Waits for a usage limit to pass, or for a provider; `false` if something else came first, after which the wait begins
    /// again.
    pub(super) fn wait_for_provider(&mut self, until: DateTime<Utc>) -> Result<bool, End> {
        let (began, until) = (Utc::now(), self.unless_taken_over(until));
        let Job { context, tally, .. } = &mut self.job;
        context.count(tally).tell(Fact::waiting(until, None, tally))?;
        let passed = self.wait_until(until)?;
        if passed {
            self.job.tally.waited(began, until.min(Utc::now()));
            self.tell_resumed()?;
        }
        Ok(passed)
    }

    /// Waits until the disk has space again, the user wants an attempt without it, or something else comes first.
    pub(super) fn wait_for_room(&mut self, lack: Shortage) -> Result<(), End> {
        self.job.context.stop.take_go_on();
        let Job { context, tally, .. } = &mut self.job;
        context.count(tally).tell(Fact::waiting(Utc::now() + LOOK, Some(lack), tally))?;
        let end = self.deadline();
        loop {
            if end.is_some_and(|end| Instant::now() >= end) || self.job.context.is_held_up() {
                return Ok(());
            }
            self.goes_without_room = self.job.context.stop.take_go_on();
            if self.goes_without_room || shortage(&self.job.limits, self.rooms()).is_none() {
                return self.tell_resumed();
            }
            self.wait(Some(Instant::now() + LOOK))?;
        }
    }

    fn tell_resumed(&mut self) -> Result<(), End> {
        let Job { context, tally, .. } = &mut self.job;
        context.count(tally).tell(Fact::resumed(tally))
    }

    /// Waits for `pause`; `false` if something else comes first, such as a usage limit that another loop has met.
    pub(super) fn pause(&mut self, pause: Duration) -> Result<bool, End> {
        if pause.is_zero() {
            return Ok(true);
        }
        let passed = self.wait_until(Utc::now() + pause)?;
        Ok(passed && self.closed_until(Utc::now(), Instant::now()).is_none())
    }

    /// Waits until this time, or until a request to go on. `false`: a request to hold or to stop came first, or the loop's own
    /// time is over.
    fn wait_until(&mut self, until: DateTime<Utc>) -> Result<bool, End> {
        self.job.context.stop.take_go_on();
        let wait = Wait::new(until, Utc::now(), Instant::now());
        let end = self.deadline();
        loop {
            let now = Instant::now();
            if end.is_some_and(|end| now >= end) || self.job.context.is_held_up() {
                return Ok(false);
            }
            let left = wait.left(Utc::now(), now);
            if self.job.context.stop.take_go_on() {
                self.open();
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(true);
            }
            self.wait(Some(now + left.min(LOOK)))?;
        }
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), End> {
        self.job.context.wait(deadline)?;
        self.take_notes();
        Ok(())
    }
}
