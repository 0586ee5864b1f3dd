//! Requests to stop, as data.

use super::outcome::Outcome;

/// Who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl+C, with or without a terminal.
    Interrupt,
    /// SIGTERM or SIGHUP.
    Terminate,
}

/// How far a loop has been asked to stop. Only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Urgency {
    /// Not at all.
    #[default]
    None,
    /// When the running attempt has ended by itself.
    AfterAttempt,
    /// Now: the agent gets the ladder.
    Now,
    /// At once: the agent is killed and we leave.
    AtOnce,
}

/// The fold over all requests of one loop.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stop {
    urgency: Urgency,
    first: Option<StopSignal>,
}

impl Stop {
    /// Books one signal: every further one is one step more urgent.
    pub fn book(&mut self, signal: StopSignal) {
        self.first.get_or_insert(signal);
        self.urgency = match self.urgency {
            Urgency::None => Urgency::AfterAttempt,
            Urgency::AfterAttempt => Urgency::Now,
            Urgency::Now | Urgency::AtOnce => Urgency::AtOnce,
        };
    }

    /// How urgent it is by now.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        self.urgency
    }

    /// The outcome of a loop that ends because of these requests; `None` when nobody asked.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.first.map(|signal| match signal {
            StopSignal::Interrupt => Outcome::Interrupted,
            StopSignal::Terminate => Outcome::Terminated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_is_one_step_and_the_first_names_the_outcome() {
        let mut stop = Stop::default();
        assert_eq!((stop.urgency(), stop.outcome()), (Urgency::None, None));
        let steps = [Urgency::AfterAttempt, Urgency::Now, Urgency::AtOnce, Urgency::AtOnce];
        for (step, signal) in steps.into_iter().zip([StopSignal::Terminate; 4]) {
            stop.book(signal);
            assert_eq!(stop.urgency(), step);
        }
        stop.book(StopSignal::Interrupt);
        assert_eq!(stop.outcome(), Some(Outcome::Terminated));
    }
}
