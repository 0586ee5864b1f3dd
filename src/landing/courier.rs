//! Brings what agents commit to the remote while they work, so that a machine that is lost takes little with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::exchange::Exchange;
use super::team::{AtWork, Team};
use crate::git::landing::head_of;
use crate::git::range::is_ancestor;
use crate::graph::{Made, Store};

/// Another view of the graph, for a moment.
pub(crate) type OpenGraph = Box<dyn Fn() -> Box<dyn Store + Send> + Send>;

/// What pushes the commits of all jobs of a run.
pub(crate) struct Courier {
    pub(crate) team: Arc<Team>,
    pub(crate) exchange: Arc<Exchange>,
    /// The graph, which is told of them.
    pub(crate) graph: OpenGraph,
    /// How often.
    pub(crate) every: Duration,
}

impl Courier {
    /// Pushes new commits again and again, until the run is over. What fails is pushed with the next ones, or when the work ends.
    pub(crate) fn run(self) {
        let mut told = BTreeMap::new();
        while self.team.goes_on_for(self.every) {
            let all = self.team.all_at_work();
            told.retain(|place, _| all.iter().any(|(other, _)| other == place));
            for (place, at_work) in all {
                let head = head_of(&self.exchange.root, &at_work.tree);
                let is_new = |head: &String| !is_ancestor(&self.exchange.root, head, &at_work.base);
                // Its tree may be at another task by now.
                let is_still = self.team.is_at_work(place, &at_work);
                let Some(head) = head.filter(is_new).filter(|_| is_still) else { continue };
                if told.get(&place) != Some(&head) && self.bring((place, &at_work), &head) {
                    told.insert(place, head);
                }
            }
        }
    }

    /// Pushes the commits of a claim up to this one, and tells the graph; returns whether that is done.
    fn bring(&self, (place, at_work): (usize, &AtWork), head: &str) -> bool {
        let AtWork { claim, base, .. } = at_work;
        if self.exchange.push_claim(&claim.reference(), head, self.team.hurries()).is_err() {
            return false;
        }
        // Its loop may have told the graph of newer ones meanwhile.
        if !self.team.is_at_work(place, at_work) {
            return true;
        }
        let trunk = self.exchange.trunk.name().to_owned();
        let made = Made { trunk, base: base.clone(), head: head.to_owned() };
        // A claim that is lost meanwhile is told where it is renewed.
        (self.graph)().keep(claim, &made).is_ok()
    }
}
