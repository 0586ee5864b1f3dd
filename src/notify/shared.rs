//! What the lanes of a process, their threads and whoever waits for them share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::message::Message;

/// How often somebody who waits for the end looks whether there is a hurry.
const LOOK: Duration = Duration::from_millis(50);

/// What all lanes of a process share.
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

    /// Something that the user should know.
    pub(super) fn word(&self, text: String) {
        self.words().push_back(text);
    }

    pub(super) fn next_word(&self) -> Option<String> {
        self.words().pop_front()
    }

    /// From here on nothing new comes.
    pub(super) fn finish(&self) {
        self.finishing.store(true, Ordering::Release);
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.finishing.load(Ordering::Acquire)
    }

    /// What runs is to end.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Something has changed for who waits.
    pub(super) fn changed(&self) {
        self.changed.notify_all();
    }

    /// Waits until `is_over`, or somebody is in a hurry.
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

/// What comes in at a lane's thread.
pub(super) enum Order {
    /// To be told.
    Tell(Box<Message>),
    /// Look at what is shared.
    Wake,
}

/// How much waits in a lane.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Messages that are not told yet.
    pub(super) waiting: AtomicUsize,
    /// The thread does nothing more for what waits.
    pub(super) is_through: AtomicBool,
    /// A message was dropped.
    pub(super) is_full: AtomicBool,
    /// The user knows that what waits could not be told, and what becomes of it.
    pub(super) is_known: AtomicBool,
}

impl Load {
    pub(super) fn add(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn remove(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    /// The user was told that the target cannot be, or that it can again.
    pub(super) fn known(&self, is_known: bool) {
        self.is_known.store(is_known, Ordering::Release);
    }

    pub(super) fn end(&self) {
        self.is_through.store(true, Ordering::Release);
    }
}
