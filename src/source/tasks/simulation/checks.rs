//! What must hold in every history, and what is counted in it.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::Claim;
use super::commits::Commit;
use super::events::Millis;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrong {
    /// Work of one task came onto the trunk twice.
    LandedTwice,
    /// What was handed in is not on the remote any more, or what was booked as landed is not on the trunk.
    Missing,
    /// A task did not end.
    Unended,
    /// Something was booked by a process that had no right to.
    NoRight,
    /// Two agents that were awake worked on one task.
    TwoAgents,
    /// A ref lost commits that it had.
    Overwritten,
    /// The trunk lost commits that it had.
    TipLost,
    /// Commits on the remote were not found, so that their work is done again.
    NotFound,
}

/// An agent that works on a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtTask {
    pub(super) claim: Claim,
    pub(super) machine: usize,
    /// When its claim was asked for.
    pub(super) since: Millis,
}

/// Why two agents may work on one task at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excuse {
    /// The server's clock went forward.
    Clock,
    /// A failover has lost the claim of the first one.
    Failover,
    /// The machine of one has slept, and that one is being ended.
    Sleep,
}

/// How often some things happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Agents that began to work.
    pub(super) agents: u64,
    /// Pairs of agents at one task after the server's clock went forward.
    pub(super) beside_by_clock: u64,
    /// Pairs of agents at one task after a failover has lost a claim.
    pub(super) beside_by_failover: u64,
    /// Pairs of agents at one task, of which one is being ended, as its machine has slept.
    pub(super) beside_by_sleep: u64,
    /// Finished work of a task that had finished work already, which was not returned.
    pub(super) done_twice: u64,
    /// Landings on the trunk.
    pub(super) landed: u64,
    /// Landings that were given back.
    pub(super) returned: u64,
    /// Processes that were killed.
    pub(super) killed: u64,
    /// Bookings that a failover has lost.
    pub(super) unbooked: u64,
    /// Bookings that were refused.
    pub(super) refused: u64,
    /// Pushes of a tip that another lander was faster than.
    pub(super) behind: u64,
    /// Tasks that were found on the trunk, and not landed again.
    pub(super) found: u64,
}

/// What a tip brings onto the trunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Brought {
    pub(super) claim: Claim,
    /// The last commit of the claim.
    pub(super) head: Commit,
    /// The commit with which it is on the trunk.
    pub(super) commit: Commit,
    /// The tip that it was put on had its commits already.
    pub(super) was_there: bool,
}

/// The checks of one history.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) wrong: Vec<(Wrong, String)>,
    pub(super) counts: Counts,
    /// The agents that work, by task.
    agents: BTreeMap<usize, Vec<AtTask>>,
    /// What came onto the trunk, by task.
    landed: BTreeMap<usize, Vec<Brought>>,
    /// The claims whose work was given back.
    given_back: BTreeSet<Claim>,
    /// What was handed in, as far as the store has answered so.
    handed_in: Vec<(Claim, Commit)>,
    /// Tasks with finished work that was not returned.
    finished: BTreeSet<usize>,
}

impl Checks {
    /// Notes that something is wrong.
    pub(super) fn fail(&mut self, at: Millis, wrong: Wrong, what: &str) {
        self.wrong.push((wrong, format!("{}.{:03} s: {what}", at / 1000, at % 1000)));
    }

    /// An agent begins to work, or goes on. `is_awake` says on which machines others are awake, `excuse` why an agent may have another
    /// one beside it.
    pub(super) fn works(
        &mut self,
        now: Millis,
        agent: AtTask,
        is_awake: impl Fn(usize) -> bool,
        excuse: impl Fn(&AtTask) -> Option<Excuse>,
    ) {
        let others = self.agents.entry(agent.claim.task).or_default();
        let is_new = !others.iter().any(|other| other.claim == agent.claim);
        let beside: Vec<AtTask> = { others.iter() }
            .filter(|other| other.claim != agent.claim && is_awake(other.machine))
            .copied()
            .collect();
        if is_new {
            others.push(agent);
            self.counts.agents += 1;
        }
        for other in beside {
            match excuse(&other).or_else(|| excuse(&agent)) {
                Some(Excuse::Clock) => self.counts.beside_by_clock += 1,
                Some(Excuse::Failover) => self.counts.beside_by_failover += 1,
                Some(Excuse::Sleep) => self.counts.beside_by_sleep += 1,
                None => {
                    let what = format!("an agent begins for {agent:?} while one works for {other:?}");
                    self.fail(now, Wrong::TwoAgents, &what);
                }
            }
        }
    }

    /// The agent of a claim has ended.
    pub(super) fn ends(&mut self, claim: Claim) {
        if let Some(agents) = self.agents.get_mut(&claim.task) {
            agents.retain(|agent| agent.claim != claim);
            if agents.is_empty() {
                self.agents.remove(&claim.task);
            }
        }
    }

    /// The claims that agents of a machine work for.
    pub(super) fn of_machine(&self, machine: usize) -> Vec<Claim> {
        let all = self.agents.values().flatten().filter(|agent| agent.machine == machine);
        all.map(|agent| agent.claim).collect()
    }

    /// An agent has finished a task.
    pub(super) fn finishes(&mut self, claim: Claim) {
        self.counts.done_twice += u64::from(!self.finished.insert(claim.task));
    }

    /// The store has said that this is handed in.
    pub(super) fn handed_in(&mut self, claim: Claim, head: Commit) {
        self.handed_in.push((claim, head));
    }

    /// A landing was given back.
    pub(super) fn returned(&mut self, claim: Claim) {
        self.counts.returned += 1;
        self.given_back.insert(claim);
        self.finished.remove(&claim.task);
    }

    /// The tip of the trunk has moved, and brings this. Work that was given back may have landed all the same, and be gone on with:
    /// `goes_on` says whether this does.
    pub(super) fn lands(&mut self, now: Millis, brought: Brought, goes_on: impl Fn(&Brought) -> bool) {
        let landed = self.landed.entry(brought.claim.task).or_default();
        let is_again = |earlier: &&Brought| {
            earlier.claim == brought.claim || !goes_on(earlier) || !self.given_back.contains(&earlier.claim)
        };
        let again = landed.iter().find(is_again).copied();
        landed.push(brought);
        self.counts.landed += 1;
        if let Some(earlier) = again {
            self.fail(now, Wrong::LandedTwice, &format!("{brought:?} lands, and {earlier:?} has"));
        }
    }

    /// What came onto the trunk.
    pub(super) fn all_landed(&self) -> impl Iterator<Item = Brought> {
        self.landed.values().flatten().copied()
    }

    /// What was handed in.
    pub(super) fn all_handed_in(&self) -> Vec<(Claim, Commit)> {
        self.handed_in.clone()
    }
}
