//! Places for a number of parallel agents. A loop that waits for its turn is poked in its inbox when it comes, so that it takes
//! requests like any other loop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::inbox::Inbox;

/// A loop's turn to put agents to work: waited for once, and kept until the ticket is given back.
#[derive(Debug)]
pub struct Ticket {
    places: Arc<Places>,
    rank: usize,
    place: Option<Place>,
}

impl Ticket {
    /// The ticket of the loop of this rank; later ones leave a place for it from here on.
    #[must_use]
    pub fn new(places: &Arc<Places>, rank: usize) -> Self {
        places.expect(rank);
        Self { places: Arc::clone(places), rank, place: None }
    }

    /// Whether it is this loop's turn. If not, its inbox is poked when it could be; see [`Ticket::leave`].
    pub(super) fn take(&mut self, inbox: &Arc<Inbox>) -> bool {
        if self.place.is_none() {
            self.place = self.places.take(self.rank, inbox);
        }
        self.place.is_some()
    }

    /// Gives back the place, or stops waiting for one.
    pub(super) fn leave(&mut self) {
        self.place = None;
        self.places.leave(self.rank);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Places that are given to waiting loops in the order of their ranks.
#[derive(Debug)]
pub struct Places(Mutex<Waiting>);

#[derive(Debug)]
struct Waiting {
    free: usize,
    /// Without an inbox: a loop that is expected.
    waiting: BTreeMap<usize, Option<Arc<Inbox>>>,
}

/// A place that is taken, until this is dropped.
#[derive(Debug)]
struct Place(Arc<Places>);

impl Places {
    /// Places for `count` agents.
    #[must_use]
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Waiting { free: count, waiting: BTreeMap::new() })))
    }

    /// The loop of this rank will ask for a place: later ones leave one for it.
    pub fn expect(&self, rank: usize) {
        self.lock().waiting.insert(rank, None);
    }

    /// A place, if more are free than loops of a lower rank want. Otherwise the loop of this rank waits from now on, and its inbox
    /// is poked when it is its turn; see [`Places::leave`].
    fn take(self: &Arc<Self>, rank: usize, inbox: &Arc<Inbox>) -> Option<Place> {
        let mut state = self.lock();
        state.waiting.insert(rank, Some(Arc::clone(inbox)));
        if state.waiting.range(..rank).count() >= state.free {
            return None;
        }
        state.free -= 1;
        state.waiting.remove(&rank);
        state.call_next();
        Some(Place(Arc::clone(self)))
    }

    /// The loop of this rank does not wait any more, and is not expected.
    fn leave(&self, rank: usize) {
        let mut state = self.lock();
        state.waiting.remove(&rank);
        state.call_next();
    }

    /// A panic of another thread cannot leave the queue half-changed.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Pokes the loops for which a place is free.
    fn call_next(&self) {
        self.waiting.values().take(self.free).flatten().for_each(|inbox| inbox.poke());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.free += 1;
        state.call_next();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::engine::inbox::Wake;

    #[test]
    fn places_go_to_those_who_wait_in_the_order_of_rank() {
        let places = Places::new(1);
        let inboxes: Vec<_> = (0..3).map(|_| Arc::new(Inbox::default())).collect();
        let first = places.take(1, &inboxes[1]).unwrap();
        assert!(places.take(2, &inboxes[2]).is_none());
        assert!(places.take(0, &inboxes[0]).is_none());
        drop(first);
        let soon = || Some(Instant::now() + Duration::from_secs(20));
        assert!(matches!(inboxes[0].wait(soon()), Wake::Poked));
        assert!(places.take(2, &inboxes[2]).is_none(), "it is not its turn");
        places.leave(0);
        assert!(matches!(inboxes[2].wait(soon()), Wake::Poked));
        let _second = places.take(2, &inboxes[2]).unwrap();
        assert!(places.take(1, &inboxes[1]).is_none());
    }

    #[test]
    fn whoever_is_expected_finds_a_place() {
        let places = Places::new(2);
        let inbox = Arc::new(Inbox::default());
        places.expect(0);
        places.expect(1);
        assert!(places.take(2, &inbox).is_none());
        let first = places.take(0, &inbox).unwrap();
        assert!(places.take(2, &inbox).is_none());
        places.leave(1);
        let _last = places.take(2, &inbox).unwrap();
        drop(first);
        places.take(3, &inbox).unwrap();
    }
}
