//! How often it is told that something was painted, and when a pane is too loud to be listened to. Pure.

use std::time::{Duration, Instant};

/// It is told once in this time at most.
pub(super) const EVERY: Duration = Duration::from_millis(200);
/// In this time no more than [`LOUD`] bytes are taken in.
const SPAN: Duration = Duration::from_millis(500);
/// More than a person could read, by far.
pub(super) const LOUD: usize = 128 << 10;
/// How long nobody listens to a pane that is too loud.
const REST: Duration = Duration::from_millis(500);

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Step {
    /// Tell that something was painted.
    pub(super) tell: bool,
    /// Have tmux say no more of that pane.
    pub(super) pause: bool,
    /// Have it go on.
    pub(super) go_on: bool,
}

/// What is known of the output of one pane.
#[derive(Debug)]
pub(super) struct Painting {
    span_began: Instant,
    bytes: usize,
    told: Option<Instant>,
    is_untold: bool,
    rests_until: Option<Instant>,
}

impl Painting {
    pub(super) fn new(now: Instant) -> Self {
        Self { span_began: now, bytes: 0, told: None, is_untold: false, rests_until: None }
    }

    /// The pane has written so many bytes.
    pub(super) fn wrote(&mut self, bytes: usize, now: Instant) -> Step {
        if now.duration_since(self.span_began) >= SPAN {
            self.span_began = now;
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.is_untold = true;
        let pause = self.bytes > LOUD && self.rests_until.is_none();
        if pause {
            self.rests_until = Some(now + REST);
        }
        Step { pause, ..self.due(now) }
    }

    /// tmux has paused the pane by itself.
    pub(super) fn was_paused(&mut self, now: Instant) {
        self.rests_until.get_or_insert(now + REST);
    }

    /// When there is something to do next, where nothing is written.
    pub(super) fn next(&self) -> Option<Instant> {
        let tells = self.told.filter(|_| self.is_untold).map(|told| told + EVERY);
        [tells, self.rests_until].into_iter().flatten().min()
    }

    /// What is to be done by now.
    pub(super) fn due(&mut self, now: Instant) -> Step {
        let mut step = Step::default();
        if self.rests_until.is_some_and(|until| now >= until) {
            self.rests_until = None;
            (self.span_began, self.bytes) = (now, 0);
            step.go_on = true;
            // Nobody has heard what was written meanwhile.
            self.is_untold = true;
        }
        if self.is_untold && self.told.is_none_or(|told| now.duration_since(told) >= EVERY) {
            self.told = Some(now);
            self.is_untold = false;
            step.tell = true;
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TELL: Step = Step { tell: true, pause: false, go_on: false };
    const NOTHING: Step = Step { tell: false, pause: false, go_on: false };

    #[test]
    fn a_busy_screen_is_told_now_and_then() {
        let start = Instant::now();
        let mut painting = Painting::new(start);
        assert_eq!(painting.next(), None);
        assert_eq!(painting.wrote(10, start), TELL);
        assert_eq!(painting.next(), None);
        assert_eq!(painting.wrote(10, start + EVERY / 2), NOTHING);
        assert_eq!(painting.next(), Some(start + EVERY), "the last one is told as well");
        assert_eq!(painting.due(start + EVERY / 2), NOTHING);
        assert_eq!(painting.due(start + EVERY), TELL);
        assert_eq!(painting.next(), None);
        let told = (0..1000).filter(|ms| painting.wrote(10, start + EVERY + Duration::from_millis(*ms)).tell);
        assert_eq!(told.count(), 4);
    }

    #[test]
    fn a_loud_pane_rests() {
        let start = Instant::now();
        let mut painting = Painting::new(start);
        assert!(!painting.wrote(LOUD, start).pause);
        assert!(painting.wrote(1, start).pause);
        assert!(!painting.wrote(LOUD, start).pause, "once is enough");
        let end = painting.next().unwrap();
        assert_eq!(painting.due(end), TELL, "that of before is due first");
        let end = start + REST;
        assert_eq!(painting.due(end), Step { go_on: true, ..TELL }, "who knows what was painted");
        assert_eq!(painting.next(), None);
        assert!(!painting.wrote(LOUD, end).pause);
        painting.was_paused(end);
        assert_eq!(painting.next(), Some(end + EVERY));
        assert!(painting.due(end + REST).go_on);
    }
}
