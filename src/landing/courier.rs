//! Brings what agents commit to the remote while they work, so that a machine that is lost takes little with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::exchange::Exchange;
use super::team::Team;
use crate::git::landing::head_of;
use crate::git::range::is_ancestor;

/// What a job works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AtWork {
    /// Its work tree.
    pub(crate) tree: PathBuf,
    /// The id of its task.
    pub(crate) task: String,
    /// The ref of its claim.
    pub(crate) reference: String,
    /// The commit where it began.
    pub(crate) base: String,
}

/// What pushes the commits of all jobs of a run.
pub(crate) struct Courier {
    pub(crate) team: Arc<Team>,
    pub(crate) exchange: Arc<Exchange>,
    /// How often.
    pub(crate) every: Duration,
}

impl Courier {
    /// Pushes new commits again and again, until the run is over. What fails is pushed with the next ones, or when the work ends.
    pub(crate) fn run(self) {
        while self.team.goes_on_for(self.every) {
            for (place, at_work) in self.team.all_at_work() {
                let head = head_of(&self.exchange.root, &at_work.tree);
                let is_new = |head: &String| !is_ancestor(&self.exchange.root, head, &at_work.base);
                // Its tree may be at another task by now.
                let is_still = self.team.is_at_work(place, &at_work);
                if let Some(head) = head.filter(is_new).filter(|_| is_still) {
                    let _ = self.exchange.push_claim(&at_work.reference, &head, self.team.hurries());
                }
            }
        }
    }
}
