//! The model of the remote: its refs, and the tip of the trunk.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::claim::Claim;
use super::commits::{Commit, Commits};

/// The name of a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// The commits of a claim. A history that was rewritten gets a new number.
    Claim(Claim, u32),
    /// As what the commits of a claim were made again, to land.
    Note(Claim, Commit),
}

/// A push was no fast-forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Behind;

/// A push of the tip that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TipMoved {
    /// Where it was; the same as where it is if it was there already.
    pub(super) from: Commit,
    /// It lost commits that it had.
    pub(super) has_lost: bool,
}

/// The remote.
#[derive(Debug, Default)]
pub(super) struct Remote {
    pub(super) tip: Commit,
    refs: BTreeMap<Place, Commit>,
}

/// The refs of all claims on a task.
fn of_task(task: usize) -> RangeInclusive<Place> {
    let least = Claim { task, number: 0, nonce: 0 };
    let most = Claim { task, number: u64::MAX, nonce: u64::MAX };
    Place::Claim(least, 0)..=Place::Claim(most, u32::MAX)
}

impl Remote {
    /// Pushes the tip.
    pub(super) fn push_tip(
        &mut self,
        commits: &mut Commits,
        new: Commit,
        forced: bool,
    ) -> Result<TipMoved, Behind> {
        let from = self.tip;
        let has_lost = !commits.contains(new, from);
        if has_lost && !forced {
            return Err(Behind);
        }
        if new != from {
            commits.becomes_tip(new, from);
            self.tip = new;
        }
        Ok(TipMoved { from, has_lost })
    }

    /// Pushes a commit to a ref; returns what was there and is not contained in it.
    pub(super) fn push(
        &mut self,
        commits: &Commits,
        place: Place,
        commit: Commit,
        forced: bool,
    ) -> Result<Option<Commit>, Behind> {
        let there = self.refs.get(&place).copied();
        let lost = there.filter(|there| !commits.contains(commit, *there));
        if lost.is_some() && !forced {
            return Err(Behind);
        }
        self.refs.insert(place, commit);
        Ok(lost)
    }

    /// The refs of all claims on a task.
    pub(super) fn claims_on(&self, task: usize) -> Vec<(Place, Commit)> {
        self.refs.range(of_task(task)).map(|(place, commit)| (*place, *commit)).collect()
    }

    /// As what the commits of a claim were made again, to land.
    pub(super) fn notes(&self, claim: Claim) -> Vec<Commit> {
        let all = Place::Note(claim, 0)..=Place::Note(claim, Commit::MAX);
        self.refs.range(all).map(|(_, commit)| *commit).collect()
    }

    /// Removes a ref, if it is still at this commit.
    pub(super) fn remove(&mut self, place: Place, commit: Commit) {
        if self.refs.get(&place) == Some(&commit) {
            self.refs.remove(&place);
        }
    }

    /// Whether a ref leads to a commit.
    pub(super) fn leads_to(&self, commits: &Commits, commit: Commit) -> bool {
        self.refs.values().chain([&self.tip]).any(|at| commits.contains(*at, commit))
    }
}
