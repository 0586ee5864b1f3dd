//! Many loops at once: one engine each, in a thread of its own. This module only starts them, says when, and gathers what
//! became of them.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use crate::agent::Message;
use crate::engine::inbox::Inbox;

/// What became of one of many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate<T> {
    /// It ran.
    Ran(T),
    /// It was never started, because what it builds on was not done.
    NotStarted,
    /// Its thread panicked.
    Lost,
}

/// Runs `work(0)`, `work(1)` … each in a thread of its own, and answers what became of them, in this order.
///
/// `after[i]` is the one that `i` builds on: it is started only when that one has ended and `is_done` of what it
/// answered.
pub fn run<T: Send>(
    after: &[Option<usize>],
    work: &(dyn Fn(usize) -> T + Sync),
    is_done: &dyn Fn(&T) -> bool,
) -> Vec<Fate<T>> {
    let (sender, ended) = mpsc::channel();
    let mut fates: Vec<Fate<T>> = after.iter().map(|_| Fate::NotStarted).collect();
    thread::scope(|scope| {
        let start = |which: usize| {
            let sender = sender.clone();
            scope.spawn(move || {
                // One loop's bug must not take the others down.
                let result = catch_unwind(AssertUnwindSafe(|| work(which)));
                // The receiver lives until all have ended.
                let _ = sender.send((which, result));
            });
        };
        let builds_on = |base: Option<usize>| {
            after.iter().enumerate().filter(move |(_, after)| **after == base).map(|(which, _)| which)
        };
        let mut running = 0;
        for which in builds_on(None) {
            start(which);
            running += 1;
        }
        while running > 0 {
            let Ok((which, result)) = ended.recv() else { break };
            running -= 1;
            fates[which] = result.map_or(Fate::Lost, Fate::Ran);
            if matches!(&fates[which], Fate::Ran(result) if is_done(result)) {
                for next in builds_on(Some(which)) {
                    start(next);
                    running += 1;
                }
            }
        }
    });
    fates
}

/// Room for so many agents at once. Whoever waits for a place is served in the order of rank.
#[derive(Debug)]
pub struct Places(Mutex<State>);

#[derive(Debug)]
struct State {
    free: usize,
    /// Without an inbox: it is known to come.
    waiting: BTreeMap<usize, Option<Arc<Inbox<Message>>>>,
}

/// A place that is taken, until this is dropped.
#[derive(Debug)]
pub struct Place(Arc<Places>);

impl Places {
    /// Room for `count` agents.
    #[must_use]
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { free: count, waiting: BTreeMap::new() })))
    }

    /// The loop of this rank will ask for a place: those behind it leave one for it.
    pub fn expect(&self, rank: usize) {
        self.lock().waiting.insert(rank, None);
    }

    /// A place, if more are free than wanted by those of a lower rank. Otherwise the loop of this rank waits from now on,
    /// and its inbox is poked when it is its turn; see [`Places::leave`].
    pub fn take(self: &Arc<Self>, rank: usize, inbox: &Arc<Inbox<Message>>) -> Option<Place> {
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
    pub fn leave(&self, rank: usize) {
        let mut state = self.lock();
        state.waiting.remove(&rank);
        state.call_next();
    }

    /// A panic of another thread cannot leave the queue half-changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Pokes those for whom a place is free.
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
    fn what_builds_on_another_waits_for_it_and_falls_with_it() {
        // 1 and 2 build on 0, 3 on 2, 5 on 4.
        let after = [None, Some(0), Some(0), Some(2), None, Some(4)];
        let order = Mutex::new(Vec::new());
        let work = |which: usize| {
            order.lock().unwrap().push(which);
            which != 4
        };
        let fates = run(&after, &work, &|done| *done);
        let ran = Fate::Ran(true);
        assert_eq!(fates, [ran.clone(), ran.clone(), ran.clone(), ran, Fate::Ran(false), Fate::NotStarted]);
        let order = order.lock().unwrap().clone();
        let at = |which: usize| order.iter().position(|other| *other == which).unwrap();
        assert!(at(0) < at(1) && at(0) < at(2) && at(2) < at(3), "{order:?}");
        assert_eq!(run(&[], &work, &|done| *done), []);
    }

    #[test]
    fn a_panic_stays_in_its_thread() {
        let work = |which: usize| assert!(which != 0, "a bug");
        assert_eq!(
            run(&[None, None, Some(0)], &work, &|()| true),
            [Fate::Lost, Fate::Ran(()), Fate::NotStarted]
        );
    }

    #[test]
    fn places_go_to_those_who_wait_in_the_order_of_rank() {
        let places = Places::new(1);
        let inboxes: Vec<_> = (0..3).map(|_| Arc::new(Inbox::<Message>::default())).collect();
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
        let inbox = Arc::new(Inbox::<Message>::default());
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
