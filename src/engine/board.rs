//! What loops that run side by side know of each other: the usage limit of the agent that they share, so that no one of them
//! probes while another has been told to wait, and what all of them have spent.

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
}

#[derive(Debug, Default)]
struct Known {
    /// Until when the agent's usage limit is known to last.
    closed: Option<Wait>,
    spent: Vec<Spent>,
    asks: Option<Asks>,
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
    /// This board, for another loop.
    #[must_use]
    pub fn join(&self) -> Self {
        let mut known = self.lock();
        known.spent.push(Spent::default());
        // The first place belongs to the loop that made the board.
        Self { known: Arc::clone(&self.known), place: known.spent.len() }
    }

    /// Notes until when the limit lasts, as an agent said or as we guess.
    pub fn close(&self, until: DateTime<Utc>, time: DateTime<Utc>, clock: Instant) {
        let mut known = self.lock();
        let is_known = known.closed.and_then(|wait| wait.end(time, clock)).is_some_and(|end| end >= until);
        if !is_known && until > time {
            known.closed = Some(Wait::new(until, time, clock));
        }
    }

    /// Forgets the limit, because the user wants an attempt now.
    pub fn open(&self) {
        self.lock().closed = None;
    }

    /// Until when no loop should start an attempt; `None` while no limit is known.
    #[must_use]
    pub fn closed_until(&self, time: DateTime<Utc>, clock: Instant) -> Option<DateTime<Utc>> {
        self.lock().closed.and_then(|wait| wait.end(time, clock))
    }

    /// Notes what this loop has spent, and returns what the others have.
    #[must_use]
    pub fn spent_by_others(&self, tally: &Tally) -> Spent {
        let Some(own) = self.place.checked_sub(1) else { return Spent::default() };
        let spent = tally.spent();
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

    #[test]
    fn the_latest_end_of_a_limit_counts_for_all_until_it_has_passed() {
        let (time, clock) = (Utc::now(), Instant::now());
        let minute = Duration::from_mins(1);
        let ours = Board::default();
        let theirs = ours.join();
        assert_eq!(ours.closed_until(time, clock), None);
        ours.close(time + 2 * minute, time, clock);
        theirs.close(time + minute, time, clock);
        theirs.close(time - minute, time, clock);
        assert_eq!(theirs.closed_until(time, clock), Some(time + 2 * minute));
        assert_eq!(theirs.closed_until(time + 2 * minute, clock + 2 * minute), None);
        theirs.close(time + 5 * minute, time, clock);
        assert_eq!(ours.closed_until(time + minute, clock + minute), Some(time + 5 * minute));
        ours.open();
        assert_eq!(theirs.closed_until(time, clock), None);
    }

    #[test]
    fn what_others_spend_is_known_and_ones_own_counts_once() {
        let tally =
            |cost| Tally { cost_usd: Some(cost), input_tokens: 10, output_tokens: 1, ..Tally::default() };
        let alone = Board::default();
        assert_eq!(alone.spent_by_others(&tally(7.0)), Spent::default());
        let loops = [alone.join(), alone.join(), alone.join()];
        assert_eq!(loops[0].spent_by_others(&tally(1.0)), Spent::default());
        assert_eq!(loops[0].spent_by_others(&tally(2.0)), Spent::default());
        assert_eq!(loops[1].spent_by_others(&tally(4.0)), Spent { cost_usd: 2.0, tokens: 11 });
        assert_eq!(loops[2].spent_by_others(&tally(0.0)), Spent { cost_usd: 6.0, tokens: 22 });
    }
}
