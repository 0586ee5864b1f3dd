//! How finished tasks come onto the trunk: what waits for that, and in which order it is tried. Pure: no store, no git, no clock.
//!
//! Invariants: a landing is judged only by candidates that contain it; one alone is blamed only after two red gates over a green
//! base, and over a red one none is; every round lands or returns its first landing, or finds that the base is red; a tip follows
//! only from one that it contains, with all landings that it was made of.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::text::references::unlinked;

/// From this number on, landings that are red together are tried one by one, and no longer in halves.
const ONE_BY_ONE: usize = 4;
/// The refs that keep what agents have committed for tasks.
const TASKS: &str = "refs/ralph/tasks";

/// What agents have committed for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The branch that it is to land on.
    pub trunk: String,
    /// The commit where work on it began; of what has landed, the tip that it was put on.
    pub base: String,
    /// The last commit.
    pub head: String,
}

/// What has become of commits for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The task's next agent goes on from them.
    Kept,
    /// They wait to land.
    Waiting,
    /// They could not land: the task's next agent fixes that.
    Returned,
    /// They have landed.
    Landed,
}

impl Standing {
    /// Every value, in the order of their numbers in a store.
    pub const ALL: [Self; 4] = [Self::Kept, Self::Waiting, Self::Returned, Self::Landed];

    /// It as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Waiting => "waiting",
            Self::Returned => "returned",
            Self::Landed => "landed",
        }
    }

    /// Its number in a store.
    #[must_use]
    pub fn number(self) -> usize {
        Self::ALL.iter().position(|standing| *standing == self).unwrap_or_default()
    }
}

/// A task's commits on their way to the trunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// The task's id.
    pub task: String,
    /// Its title.
    pub title: String,
    /// The name of its feature.
    pub feature: Option<String>,
    /// The fence of the claim that made it.
    pub fence: i64,
    /// The nonce of that claim.
    pub nonce: String,
    /// The commits.
    pub made: Made,
    /// What has become of them.
    pub standing: Standing,
    /// Since when.
    pub since: DateTime<Utc>,
    /// How often they were returned.
    pub returned: u32,
    /// How many runs of the gate were about them.
    pub gates: u32,
    /// Why they were returned; empty if they were not.
    pub reason: String,
    /// The commit that brought them onto the trunk.
    pub landed: Option<String>,
}

impl Landing {
    /// The ref that keeps its commits.
    #[must_use]
    pub fn reference(&self) -> String {
        reference(&self.task, self.fence, &self.nonce)
    }

    /// The task and its title, for messages of commits: without references, by which a forge would close issues.
    #[must_use]
    pub fn named(&self) -> String {
        format!("{}: {}", self.task, unlinked(&self.title))
    }
}

/// The ref that keeps what a claim on a task has made.
#[must_use]
pub(in crate::graph) fn reference(task: &str, fence: i64, nonce: &str) -> String {
    format!("{TASKS}/{task}/{fence}-{nonce}")
}

/// The right to land on a trunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// The branch.
    pub trunk: String,
    /// Grows each time another process takes the lead.
    pub fence: i64,
    /// The process that has it, as the store writes it: a server that has lost its last seconds hands numbers out again.
    pub holder: String,
}

/// A gate that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtGate {
    /// The branch.
    pub trunk: String,
    /// The ids of the tasks that it is about; none: it is the trunk itself.
    pub tasks: Vec<String>,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// The verdict of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Green,
    /// It failed.
    Red,
}

/// Whether another task may begin while so many landings wait: not while there are as many as jobs.
#[must_use]
pub fn may_begin(waiting: usize, jobs: usize) -> bool {
    waiting < jobs
}

/// What comes next in a round.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a, L> {
    /// These are to be gated together, on top of the tip. `again`: an earlier verdict about the same files does not count.
    Gate {
        /// In the order in which they come onto the tip.
        group: &'a [L],
        /// Whether the gate has to run.
        again: bool,
    },
    /// The tip is to be gated as it is. `again`: as above.
    GateBase {
        /// Whether the gate has to run.
        again: bool,
    },
    /// It is to be returned.
    Return(&'a L),
    /// The tip itself is red, and none of these changes that: nothing can land, and no landing is to blame.
    Paused,
    /// All have landed, or were returned or left out.
    Over,
}

/// One round of landing: all that waits, at most as many as a batch has, on one tip and those that follow from it in the round.
#[derive(Debug)]
pub struct Round<L> {
    groups: VecDeque<Vec<L>>,
    /// Red gates of the first group, if it is one alone.
    reds: u32,
    base: Base,
    /// Some were red alone on a red base, and wait on.
    are_some_aside: bool,
}

/// What is known of the commit that candidates are put on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Nothing.
    Unknown,
    /// It was red, which is not believed yet.
    RedOnce,
    /// This.
    Known(Verdict),
}

impl<L: PartialEq> Round<L> {
    /// A round about these, in this order.
    #[must_use]
    pub fn of(waiting: Vec<L>) -> Self {
        let groups = if waiting.is_empty() { VecDeque::new() } else { VecDeque::from([waiting]) };
        Self { groups, reds: 0, base: Base::Unknown, are_some_aside: false }
    }

    /// What comes next.
    #[must_use]
    pub fn next(&self) -> Next<'_, L> {
        let Some(group) = self.groups.front() else {
            return if self.are_some_aside { Next::Paused } else { Next::Over };
        };
        match (self.reds, self.base) {
            (0, _) => Next::Gate { group, again: false },
            (_, Base::Unknown) => Next::GateBase { again: false },
            (_, Base::RedOnce) => Next::GateBase { again: true },
            (1, _) => Next::Gate { group, again: true },
            _ => group.first().map_or(Next::Over, Next::Return),
        }
    }

    /// Takes this one out of the round: it conflicts with one before it, was returned, or is not waiting any more.
    pub fn leave_out(&mut self, one: &L) {
        if let Some(group) = self.groups.front_mut() {
            group.retain(|other| other != one);
            self.reds = 0;
        }
        self.groups.retain(|group| !group.is_empty());
    }

    /// Takes this one out of the round: it does not fit on a tip that is red itself, and waits on.
    pub fn set_aside(&mut self, one: &L) {
        self.leave_out(one);
        self.are_some_aside = true;
    }

    /// What is known of what candidates are put on.
    #[must_use]
    pub fn base(&self) -> Base {
        self.base
    }

    /// The verdict about a candidate of exactly this group; one about any other is ignored. A group that is green has landed by now,
    /// and is what the rest is gated on.
    pub fn judged(&mut self, gated: &[L], verdict: Verdict) {
        if self.groups.front().is_none_or(|group| group != gated) {
            return;
        }
        match verdict {
            Verdict::Green => {
                self.groups.pop_front();
                (self.reds, self.base) = (0, Base::Known(Verdict::Green));
                // They are tried again in the next round, on what is green now.
                self.are_some_aside = false;
            }
            Verdict::Red if gated.len() == 1 => {
                self.reds += 1;
                self.put_aside();
            }
            Verdict::Red => self.split(),
        }
    }

    /// The verdict about the tip alone.
    pub fn judged_base(&mut self, verdict: Verdict) {
        self.base = match (verdict, self.base) {
            (Verdict::Red, Base::Unknown) => Base::RedOnce,
            _ => Base::Known(verdict),
        };
        self.put_aside();
    }

    /// One that is red alone where the tip is red, too, waits on: the next one may be what fixes that.
    fn put_aside(&mut self) {
        if self.base == Base::Known(Verdict::Red) && self.reds > 0 {
            self.groups.pop_front();
            (self.reds, self.are_some_aside) = (0, true);
        }
    }

    fn split(&mut self) {
        let Some(mut group) = self.groups.pop_front() else { return };
        if group.len() <= ONE_BY_ONE {
            group.into_iter().rev().for_each(|one| self.groups.push_front(vec![one]));
            return;
        }
        let rest = group.split_off(group.len().div_ceil(2));
        self.groups.push_front(rest);
        self.groups.push_front(group);
    }
}

/// Why a gated commit must not become the tip; `None`: it may. `contains` says whether it contains a commit.
#[must_use]
pub fn unfit(tip: &str, heads: &[&str], contains: impl Fn(&str) -> bool) -> Option<String> {
    let lost = [tip].into_iter().chain(heads.iter().copied()).find(|commit| !contains(commit))?;
    Some(format!("the candidate does not contain {lost:.10}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// What a gate finds: these are bad alone, these pairs are bad together, and the base is.
    #[derive(Debug, Clone)]
    struct World {
        bad: BTreeSet<u8>,
        pairs: Vec<(u8, u8)>,
        base: Verdict,
        /// This one makes a red base green.
        fixes: Option<u8>,
        /// Whether each run of a gate fails for no reason.
        flakes: Vec<bool>,
    }

    impl World {
        fn truth(&self, with: &BTreeSet<u8>) -> Verdict {
            let both = |(one, other): &(u8, u8)| with.contains(one) && with.contains(other) && one != other;
            let is_red = self.base == Verdict::Red && !self.fixes.is_some_and(|one| with.contains(&one))
                || with.iter().any(|one| self.bad.contains(one))
                || self.pairs.iter().any(both);
            if is_red { Verdict::Red } else { Verdict::Green }
        }
    }

    #[derive(Debug, Default)]
    struct Became {
        landed: BTreeSet<u8>,
        returned: Vec<u8>,
        gates: usize,
        paused: bool,
    }

    fn played(world: &World, waiting: Vec<u8>) -> Became {
        let (mut round, mut became) = (Round::of(waiting), Became::default());
        let gate = |with: &BTreeSet<u8>, gates: &mut usize| {
            let flake = world.flakes.get(*gates).copied().unwrap_or_default();
            *gates += 1;
            if flake { Verdict::Red } else { world.truth(with) }
        };
        for _ in 0..1000 {
            match round.next() {
                Next::Over => return became,
                Next::Paused => {
                    became.paused = true;
                    return became;
                }
                Next::GateBase { .. } => {
                    let verdict = gate(&became.landed.clone(), &mut became.gates);
                    round.judged_base(verdict);
                }
                Next::Return(one) => {
                    let one = *one;
                    became.returned.push(one);
                    round.leave_out(&one);
                }
                Next::Gate { group, .. } => {
                    let group = group.to_vec();
                    let with: BTreeSet<u8> = became.landed.iter().chain(&group).copied().collect();
                    let verdict = gate(&with, &mut became.gates);
                    if verdict == Verdict::Green {
                        assert_eq!(world.truth(&with), Verdict::Green, "the tip is green");
                        became.landed = with;
                    }
                    round.judged(&group, verdict);
                }
            }
        }
        panic!("a round has to end");
    }

    fn world(bad: &[u8], pairs: &[(u8, u8)]) -> World {
        let bad = bad.iter().copied().collect();
        World { bad, pairs: pairs.to_vec(), base: Verdict::Green, fixes: None, flakes: Vec::new() }
    }

    #[test]
    fn all_that_fit_together_need_one_gate() {
        let became = played(&world(&[], &[]), (0..8).collect());
        assert_eq!((became.landed.len(), became.gates), (8, 1));
    }

    #[test]
    fn one_that_is_red_is_found_in_halves_and_then_one_by_one() {
        let became = played(&world(&[2], &[]), (0..8).collect());
        assert_eq!(became.returned, [2]);
        assert_eq!(became.landed.len(), 7);
        // All, the first half, its four, the red one again, the other half.
        assert_eq!(became.gates, 1 + 1 + 4 + 1 + 1);
    }

    #[test]
    fn of_two_that_do_not_go_together_the_later_one_is_returned() {
        let became = played(&world(&[], &[(1, 6)]), (0..8).collect());
        assert_eq!((became.returned, became.landed.len()), (vec![6], 7));
    }

    #[test]
    fn a_red_base_blames_nobody_unless_a_landing_fixes_it() {
        let red = World { base: Verdict::Red, ..world(&[], &[]) };
        let became = played(&red, vec![0, 1, 2]);
        assert!(became.paused && became.landed.is_empty() && became.returned.is_empty(), "{became:?}");
        // All, the first alone, the base twice, and the others, which could have fixed it.
        assert_eq!(became.gates, 6);
        let fixed = World { fixes: Some(2), base: Verdict::Red, ..world(&[0], &[]) };
        let became = played(&fixed, vec![0, 1, 2, 3]);
        assert_eq!((became.landed.into_iter().collect::<Vec<_>>(), became.paused), (vec![2, 3], false));
    }

    #[test]
    fn a_gate_that_fails_once_for_no_reason_blames_nobody() {
        for at in 0..4 {
            let flakes = (0..4).map(|gate| gate == at).collect();
            let became = played(&World { flakes, ..world(&[], &[]) }, vec![0]);
            assert_eq!((became.landed.len(), became.returned.len()), (1, 0), "{at}");
        }
    }

    #[test]
    fn a_verdict_about_other_landings_is_ignored() {
        let mut round = Round::of(vec![1, 2]);
        round.judged(&[1], Verdict::Red);
        round.judged(&[2, 1], Verdict::Green);
        assert_eq!(round.next(), Next::Gate { group: &[1, 2], again: false });
        round.leave_out(&1);
        round.judged(&[1, 2], Verdict::Red);
        assert_eq!(round.next(), Next::Gate { group: &[2], again: false });
        round.leave_out(&2);
        assert_eq!(round.next(), Next::Over);
    }

    #[test]
    fn a_tip_contains_the_last_one_and_all_that_has_landed_with_it() {
        let has = |commits: &'static [&str]| move |commit: &str| commits.contains(&commit);
        assert_eq!(unfit("tip", &["a", "b"], has(&["tip", "a", "b"])), None);
        for (lost, there) in [("tip", &["a", "b"][..]), ("b", &["tip", "a"])] {
            let why = unfit("tip", &["a", "b"], has(there)).unwrap();
            assert!(why.ends_with(lost), "{why}");
        }
    }

    #[test]
    fn back_pressure() {
        assert!(may_begin(0, 1) && may_begin(2, 3));
        assert!(!may_begin(1, 1) && !may_begin(4, 3));
    }

    proptest! {
        #[test]
        fn every_round_ends_with_each_landing_landed_or_returned(
            count in 0_u8..20,
            bad in prop::collection::btree_set(0_u8..20, 0..4),
            pairs in prop::collection::vec((0_u8..20, 0_u8..20), 0..4),
            is_red in prop::bool::weighted(0.1),
            flakes in prop::collection::vec(prop::bool::weighted(0.1), 0..80),
        ) {
            let base = if is_red { Verdict::Red } else { Verdict::Green };
            let world = World { bad, pairs, base, fixes: None, flakes };
            let became = played(&world, (0..count).collect());
            let returned: BTreeSet<u8> = became.returned.iter().copied().collect();
            prop_assert!(returned.is_disjoint(&became.landed));
            if is_red {
                prop_assert!(became.landed.is_empty() && returned.is_empty());
                prop_assert_eq!(became.paused, count > 0);
            } else if !became.paused {
                // One that was set aside, as a flaky gate has found a green base red twice, comes again in the next round.
                prop_assert!(count == 0 || returned.len() + became.landed.len() > 0);
            }
            if world.flakes.iter().all(|flake| !flake) {
                prop_assert!(is_red || returned.len() + became.landed.len() == usize::from(count));
                // One that goes with all that has landed is not returned.
                for one in &returned {
                    let with = became.landed.iter().chain([one]).copied().collect();
                    prop_assert_eq!(world.truth(&with), Verdict::Red);
                }
            }
            // Four for each, at most: with all, in its half, alone, and again; two for the base.
            prop_assert!(became.gates <= 4 * usize::from(count) + 2);
        }
    }
}
