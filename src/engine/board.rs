//! What loops that run side by side know of each other: the usage limits of the logins that they share, so that no one of them
//! probes while another has been told to wait, and what all of them have spent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{fmt, mem};

use chrono::{DateTime, Utc};

use super::budget::Spent;
use super::tally::Tally;
use super::wait::Wait;

/// What parallel loops share; a single loop has a board of its own.
#[derive(Debug, Clone, Default)]
pub struct Board {
    known: Arc<Mutex<Known>>,
    /// This loop's place in the list of what was spent.
    place: usize,
    /// What is known beyond this process.
    limits: Option<Arc<dyn LoginLimits>>,
}

#[derive(Debug, Default)]
struct Known {
    /// Until when the usage limits of logins are known to last.
    closed: BTreeMap<String, Wait>,
    spent: Vec<Spent>,
    asks: Option<Asks>,
}

/// Where usage limits are known beyond this process, by the login.
pub trait LoginLimits: fmt::Debug + Send + Sync {
    /// The limit of this login lasts until then, as its provider has said.
    fn close(&self, login: &str, until: DateTime<Utc>);

    /// Until when the limit of this login is known to last.
    fn closed_until(&self, login: &str) -> Option<DateTime<Utc>>;

    /// Forgets the limit of this login.
    fn open(&self, login: &str);
}

/// Asks for what loops of other processes have spent.
#[derive(Clone)]
struct Asks(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asks")
    }
}

impl Board {
    /// A board that also knows these limits.
    #[must_use]
    pub fn with(limits: Option<Arc<dyn LoginLimits>>) -> Self {
        Self { limits, ..Self::default() }
    }

    /// This board, for another loop.
    #[must_use]
    pub fn join(&self) -> Self {
        let mut known = self.lock();
        known.spent.push(Spent::default());
        // The first place belongs to the loop that made the board.
        let place = known.spent.len();
        Self { known: Arc::clone(&self.known), place, limits: self.limits.clone() }
    }

    /// Notes until when the limit of this login lasts, as an agent said or as we guess.
    pub fn close(&self, login: &str, until: DateTime<Utc>, time: DateTime<Utc>, clock: Instant) {
        if self.closed_until(login, time, clock).is_none_or(|end| end < until) && until > time {
            self.lock().closed.insert(login.to_owned(), Wait::new(until, time, clock));
        }
    }

    /// Tells loops of other processes until when the limit of this login lasts, as its provider has said.
    pub fn publish(&self, login: &str, until: DateTime<Utc>) {
        if let Some(limits) = self.limits.as_ref().filter(|_| !login.is_empty()) {
            limits.close(login, until);
        }
    }

    /// Forgets the limit of this login, because the user wants an attempt now.
    pub fn open(&self, login: &str) {
        self.lock().closed.remove(login);
        if let Some(limits) = &self.limits {
            limits.open(login);
        }
    }

    /// Until when no loop should start an attempt with this login; `None` while no limit is known.
    #[must_use]
    pub fn closed_until(&self, login: &str, time: DateTime<Utc>, clock: Instant) -> Option<DateTime<Utc>> {
        let here = self.lock().closed.get(login).and_then(|wait| wait.end(time, clock));
        here.max(
            self.limits.as_ref().and_then(|limits| limits.closed_until(login)).filter(|until| *until > time),
        )
    }

    /// Notes what this loop has spent, and returns what the others have.
    #[must_use]
    pub fn spent_by_others(&self, tally: &Tally) -> Spent {
        let Some(own) = self.place.checked_sub(1) else { return Spent::default() };
        let spent = tally.spent;
        let (noted, asks) = {
            let mut known = self.lock();
            let noted = known.spent.get_mut(own).map(|noted| mem::replace(noted, spent));
            (noted, known.asks.clone())
        };
        // What loops of other processes have spent is to be known before another attempt may begin.
        if let Some(Asks(asks)) = asks.filter(|_| noted != Some(spent)) {
            asks();
        }
        self.spent_beside()
    }

    /// From here on this is done when a loop here has spent something: it notes what loops of other processes have.
    pub fn ask_by(&self, asks: impl Fn() + Send + Sync + 'static) {
        self.lock().asks = Some(Asks(Arc::new(asks)));
    }

    /// What all places but this one have spent.
    #[must_use]
    pub fn spent_beside(&self) -> Spent {
        let known = self.lock();
        let own = self.place.checked_sub(1);
        let others = known.spent.iter().enumerate().filter(|(place, _)| Some(*place) != own);
        others.fold(Spent::default(), |sum, (_, spent)| sum.and(*spent))
    }

    /// Notes what this place has spent: a loop, or loops of other processes.
    pub fn note(&self, spent: Spent) {
        if let Some(own) = self.place.checked_sub(1)
            && let Some(noted) = self.lock().spent.get_mut(own)
        {
            *noted = spent;
        }
    }

    /// A panic of another thread cannot leave the board half-written.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ME: &str = "claude/me";

    #[test]
    fn the_latest_end_of_a_limit_counts_for_all_until_it_has_passed() {
        let (time, clock) = (Utc::now(), Instant::now());
        let minute = Duration::from_mins(1);
        let ours = Board::default();
        let theirs = ours.join();
        assert_eq!(ours.closed_until(ME, time, clock), None);
        ours.close(ME, time + 2 * minute, time, clock);
        theirs.close(ME, time + minute, time, clock);
        theirs.close(ME, time - minute, time, clock);
        assert_eq!(theirs.closed_until(ME, time, clock), Some(time + 2 * minute));
        assert_eq!(theirs.closed_until(ME, time + 2 * minute, clock + 2 * minute), None);
        theirs.close(ME, time + 5 * minute, time, clock);
        assert_eq!(ours.closed_until(ME, time + minute, clock + minute), Some(time + 5 * minute));
        ours.open(ME);
        assert_eq!(theirs.closed_until(ME, time, clock), None);
        theirs.close("codex/me", time + minute, time, clock);
        assert_eq!(ours.closed_until(ME, time, clock), None, "another login has its own");
    }

    #[test]
    fn what_others_spend_is_known_and_ones_own_counts_once() {
        let spent = |cost, input, output| Spent::reported(Some(cost), Some(input), Some(output));
        let tally = |cost| Tally { spent: spent(cost, 10, 1), ..Tally::default() };
        let alone = Board::default();
        assert_eq!(alone.spent_by_others(&tally(7.0)), Spent::default());
        let loops = [alone.join(), alone.join(), alone.join()];
        assert_eq!(loops[0].spent_by_others(&tally(1.0)), Spent::default());
        assert_eq!(loops[0].spent_by_others(&tally(2.0)), Spent::default());
        assert_eq!(loops[1].spent_by_others(&tally(4.0)), spent(2.0, 10, 1));
        assert_eq!(loops[2].spent_by_others(&tally(0.0)), spent(6.0, 20, 2));
    }
}
