//! Many loops at once, in a thread of its own each: starts them, says when, and gathers what became of them. What they know
//! of each other is the engine's [`board`](crate::engine::board) and its [`places`](crate::engine::places).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};

use crate::threads;

/// What is said of a panic.
const BUG: &str = "ralph itself failed here; this is a bug";

/// What became of one of many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate<T> {
    /// It ran.
    Ran(T),
    /// It was never started, because what it builds on was not done.
    NotStarted,
    /// Its thread could not be started, or panicked: why.
    Lost(String),
}

/// Runs `work(0)`, `work(1)` … each in a thread of its own, and answers what became of them, in this order.
///
/// `after[i]` is the one that `i` builds on: it is started only when that one has ended and `is_done` of what it
/// answered.
pub(crate) fn run<T: Send>(
    after: &[Option<usize>],
    work: &(dyn Fn(usize) -> T + Sync),
    is_done: &dyn Fn(&T) -> bool,
) -> Vec<Fate<T>> {
    let (sender, ended) = mpsc::channel();
    let mut fates: Vec<Fate<T>> = after.iter().map(|_| Fate::NotStarted).collect();
    thread::scope(|scope| {
        let start = |which: usize| {
            let sender = sender.clone();
            let failed = sender.clone();
            let started = threads::start_in(scope, move || {
                // One loop's bug must not take the others down.
                let result = catch_unwind(AssertUnwindSafe(|| work(which)));
                // The receiver lives until all have ended.
                let _ = sender.send((which, result.map_or_else(|_| Fate::Lost(BUG.to_owned()), Fate::Ran)));
            });
            if let Err(error) = started {
                let _ = failed.send((which, Fate::Lost(error.to_string())));
            }
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
            fates[which] = result;
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

/// What both answer, the first in a thread of its own. Where there is no room for one, it is called after the other.
pub(crate) fn both<A: Send, B>(one: &(dyn Fn() -> A + Sync), other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let started = threads::start_in(scope, one);
        let other = other();
        let one = started.map_or_else(|_| one(), joined);
        (one, other)
    })
}

/// What a thread has answered; its panic goes on here.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What `work` makes of each of these, in their order; done on all processors where there are many.
pub(crate) fn each<T: Sync, R: Send>(things: &[T], work: &(dyn Fn(&T) -> R + Sync)) -> Vec<R> {
    /// So many are done in one go; fewer are not worth a thread.
    const SHARE: usize = 16;
    let shares: Vec<&[T]> = things.chunks(SHARE).collect();
    // How many there are takes as long to find out as to read some files.
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    // A thread that has finished its share takes the next one: processors are not equally free.
    let take_shares = || {
        let mut done = Vec::new();
        loop {
            let which = next.fetch_add(1, Ordering::Relaxed);
            let Some(share) = shares.get(which) else { return done };
            done.push((which, share.iter().map(work).collect::<Vec<R>>()));
        }
    };
    let mut done = thread::scope(|scope| {
        let threads = if shares.len() > 1 { processors().min(shares.len()) } else { 0 };
        let threads: Vec<_> =
            (0..threads).filter_map(|_| threads::start_in(scope, take_shares).ok()).collect();
        let mut done: Vec<_> = threads.into_iter().flat_map(joined).collect();
        // Where there is no room for a thread, or no need of one.
        done.extend(take_shares());
        done
    });
    done.sort_unstable_by_key(|(which, _)| *which);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

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
            [Fate::Lost(BUG.to_owned()), Fate::Ran(()), Fate::NotStarted]
        );
    }

    #[test]
    fn each_is_done_once_and_answered_in_order() {
        for count in [0, 1, 16, 17, 1000] {
            let things: Vec<usize> = (0..count).collect();
            let calls = AtomicUsize::new(0);
            let twice = |thing: &usize| {
                calls.fetch_add(1, Ordering::Relaxed);
                thing * 2
            };
            assert_eq!(each(&things, &twice), things.iter().map(|thing| thing * 2).collect::<Vec<_>>());
            assert_eq!(calls.load(Ordering::Relaxed), count);
        }
    }

    #[test]
    fn a_panic_in_one_of_many_reaches_the_caller() {
        let things: Vec<usize> = (0..1000).collect();
        let result = catch_unwind(|| each(&things, &|thing| assert!(*thing != 999, "a bug")));
        assert!(result.is_err());
        assert!(catch_unwind(|| both(&|| panic!("a bug"), || ())).is_err());
        assert_eq!(both(&|| 1, || 2), (1, 2));
    }
}
