//! The answers that an agent owes before it gets its prompt.

use std::time::{Duration, Instant};

use crate::text::duration;

/// How long each answer may take.
const LIMIT: Duration = Duration::from_mins(1);

/// How long an agent may stay that has closed its stdout and cannot answer any more.
const LEAVE: Duration = Duration::from_secs(1);

/// The answer that is awaited, if any.
#[derive(Debug, Clone, Default)]
pub(super) struct Handshake {
    /// The deadline, and the message if it is missed.
    asked: Option<(Instant, String)>,
}

impl Handshake {
    /// A request was sent now; `None`: no answer is awaited any more.
    pub(super) fn asked(&mut self, step: Option<&'static str>, now: Instant) {
        let limit = duration::format(LIMIT);
        self.asked = step.map(|step| (now + LIMIT, format!("it did not answer '{step}' within {limit}")));
    }

    /// The agent has closed its stdout without this answer.
    pub(super) fn closed(&mut self, step: &str, now: Instant) {
        self.asked = Some((now + LEAVE, format!("it closed its stdout without an answer to '{step}'")));
    }

    /// When the answer is overdue.
    pub(super) fn until(&self) -> Option<Instant> {
        self.asked.as_ref().map(|(until, _)| *until)
    }

    /// The message when it is overdue.
    pub(super) fn overdue(&self, now: Instant) -> Option<String> {
        self.asked.as_ref().filter(|(until, _)| now >= *until).map(|(_, why)| why.clone())
    }

    /// Moves the deadline: we and the agent were stopped for this long.
    pub(super) fn shift(&mut self, gap: Duration) {
        if let Some((until, _)) = &mut self.asked {
            *until += gap;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_a_minute_that_a_pause_does_not_count_to() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut handshake = Handshake::default();
        assert_eq!((handshake.until(), handshake.overdue(after(1000))), (None, None));
        handshake.asked(Some("initialize"), start);
        assert_eq!((handshake.until(), handshake.overdue(after(59))), (Some(after(60)), None));
        assert_eq!(handshake.overdue(after(60)).unwrap(), "it did not answer 'initialize' within 1m");
        handshake.asked(Some("session/new"), after(50));
        handshake.shift(Duration::from_mins(10));
        assert_eq!(handshake.overdue(after(709)), None);
        assert!(handshake.overdue(after(710)).unwrap().contains("'session/new'"));
        handshake.asked(None, after(705));
        assert_eq!(handshake.overdue(after(1000)), None);
        handshake.closed("session/prompt", after(1000));
        assert_eq!(handshake.overdue(after(1000)), None);
        let why = handshake.overdue(after(1001)).unwrap();
        assert_eq!(why, "it closed its stdout without an answer to 'session/prompt'");
    }
}
