//! The thread that posts to a webhook: in order, with retries after growing pauses; unsent messages stay in the
//! outbox.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::outbox::{Found, Outbox, QueuedMessage};
use super::shared::{Load, Order, Shared};
use super::webhook::{Answer, Poster};
use crate::text::{count, jitter};

/// The pause after a first failure; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// How often a failing receiver is tried at the end of a run.
const LAST_TRIES: u32 = 2;
/// The most messages that may wait, each with an open file.
const ROOM: usize = 100;

pub(super) struct Sender {
    poster: Poster,
    outbox: Outbox,
    shared: Arc<Shared>,
    load: Arc<Load>,
    waiting: VecDeque<QueuedMessage>,
    /// The number of failures in a row.
    failures: u32,
    /// How many of them happened after the end of the run.
    last_failures: u32,
    next_try: Instant,
    has_refused: bool,
    has_dropped: bool,
}

impl Sender {
    pub(super) fn new(poster: Poster, outbox: Outbox, shared: Arc<Shared>, load: Arc<Load>) -> Self {
        Self {
            poster,
            outbox,
            shared,
            load,
            waiting: VecDeque::new(),
            failures: 0,
            last_failures: 0,
            next_try: Instant::now(),
            has_refused: false,
            has_dropped: false,
        }
    }

    /// Sends until the notifier is dropped.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        self.take_over();
        let mut was_finishing = false;
        loop {
            let order = if self.waiting.is_empty() {
                orders.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                orders.recv_timeout(self.next_try.saturating_duration_since(Instant::now()))
            };
            match order {
                Ok(Order::Tell(message)) => {
                    let (entry, error) = self.outbox.keep(*message);
                    if let Some(error) = error {
                        self.shared.word(format!("notices for the webhook cannot be kept: {error}"));
                    }
                    match entry {
                        Some(entry) => self.push(entry),
                        None => self.load.remove(),
                    }
                    // All new messages are stored before anything is sent.
                    continue;
                }
                Ok(Order::Wake) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.shared.is_finishing() && !std::mem::replace(&mut was_finishing, true) {
                self.next_try = Instant::now();
            }
            if Instant::now() >= self.next_try {
                self.send_first();
                if was_finishing && self.last_failures >= LAST_TRIES {
                    break;
                }
            }
        }
        self.load.end();
        self.shared.changed();
    }

    /// Takes over the messages of earlier processes.
    fn take_over(&mut self) {
        let Found { entries, dropped } = self.outbox.take_over();
        if dropped > 0 {
            let dropped = count::of(dropped as u64, "notice");
            self.shared.word(format!(
                "{dropped} of more than a day ago could not be sent to the webhook, and will not be"
            ));
        }
        for entry in entries {
            self.load.add();
            self.push(entry);
        }
    }

    fn push(&mut self, entry: QueuedMessage) {
        self.waiting.push_back(entry);
        if self.waiting.len() > ROOM
            && let Some(oldest) = self.waiting.pop_front()
        {
            oldest.remove();
            self.load.remove();
            if !std::mem::replace(&mut self.has_dropped, true) {
                self.shared
                    .word(format!("more than {ROOM} notices wait for the webhook: the oldest are dropped"));
            }
        }
    }

    fn send_first(&mut self) {
        let Some(first) = self.waiting.front() else { return };
        let answer = self.poster.post(&first.message);
        let host = self.poster.host().to_owned();
        let (why, pause) = match answer {
            Answer::Taken => {
                (self.failures, self.has_refused) = (0, false);
                self.load.known(false);
                return self.remove_first();
            }
            Answer::Refused(why) => {
                if !std::mem::replace(&mut self.has_refused, true) {
                    self.shared.word(format!("the webhook at {host} refuses notices: {why}"));
                }
                return self.remove_first();
            }
            Answer::Later(why, pause) => (why, pause),
        };
        if self.failures == 0 {
            let kept = if first.is_kept() { "kept and tried again" } else { "tried again" };
            self.shared.word(format!("the webhook at {host} does not take notices: {why}; they are {kept}"));
        }
        self.failures += 1;
        let mut wait = jitter::around(pause_after(self.failures)).max(pause.unwrap_or_default());
        if self.shared.is_finishing() {
            self.last_failures += 1;
            wait = FIRST_PAUSE;
        }
        self.next_try = Instant::now() + wait;
    }

    fn remove_first(&mut self) {
        if let Some(first) = self.waiting.pop_front() {
            first.remove();
            self.load.remove();
            self.shared.changed();
        }
    }
}

/// The pause after this many failures in a row.
fn pause_after(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stop_growing() {
        let pauses = [1, 2, 3, 9, 10, 100].map(|failures| pause_after(failures).as_secs());
        assert_eq!(pauses, [1, 2, 4, 256, 300, 300]);
    }
}
