//! The state that a process's lanes, their threads and their waiting callers share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::message::Message;

/// How often a waiting caller checks whether there is a hurry.
const LOOK: Duration = Duration::from_millis(50);

/// The shared state of all lanes of a process.
#[derive(Debug, Default)]
pub(super) struct Shared {
    words: Mutex<VecDeque<String>>,
    changed: Condvar,
    finishing: AtomicBool,
    pub(super) cancelled: AtomicBool,
}

impl Shared {
    fn words(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports something to the user.
    pub(super) fn word(&self, text: String) {
        self.words().push_back(text);
    }

    pub(super) fn next_word(&self) -> Option<String> {
        self.words().pop_front()
    }

    /// Announces that no more messages come.
    pub(super) fn finish(&self) {
        self.finishing.store(true, Ordering::Release);
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.finishing.load(Ordering::Acquire)
    }

    /// Cancels running commands.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Wakes waiting callers after a change.
    pub(super) fn changed(&self) {
        self.changed.notify_all();
    }

    /// Waits until `is_over`, or until there is a hurry.
    pub(super) fn wait(&self, hurry: &mut dyn FnMut() -> bool, is_over: impl Fn() -> bool) {
        let mut words = self.words();
        while !is_over() {
            words = self.changed.wait_timeout(words, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            if hurry() {
                return;
            }
        }
    }
}

/// An order to a lane's thread.
pub(super) enum Order {
    /// Send a message.
    Tell(Box<Message>),
    /// Check the shared state.
    Wake,
}

/// The load of a lane.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// The number of unsent messages.
    pub(super) waiting: AtomicUsize,
    /// Whether the thread has given up the waiting messages.
    pub(super) is_through: AtomicBool,
    /// Whether a message was dropped.
    pub(super) is_full: AtomicBool,
    /// Whether the user knows that waiting messages could not be sent, and what happens to them.
    pub(super) is_known: AtomicBool,
}

impl Load {
    pub(super) fn add(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn remove(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    /// Sets whether the user knows that the target fails.
    pub(super) fn known(&self, is_known: bool) {
        self.is_known.store(is_known, Ordering::Release);
    }

    pub(super) fn end(&self) {
        self.is_through.store(true, Ordering::Release);
    }
}
