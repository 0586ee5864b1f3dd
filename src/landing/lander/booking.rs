//! What the lander books: what has landed, what is given back, and how the trunk follows.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Claims, Lander, Left, Way};
use crate::engine::fact::{Fact, TaskAtWork, TaskCounts};
use crate::engine::outcome::{End, Outcome};
use crate::git::GitError;
use crate::git::landing::{Followed, Trunk, forget_replayed, keep_old, replayed, replayed_refs};
use crate::git::range::is_ancestor;
use crate::graph::landing::unfit;
use crate::graph::{Ended, GraphError, Landing};
use crate::landing::candidate::Candidate;
use crate::landing::exchange::Moved;

impl Lander {
    /// Makes a gated candidate the tip, books what it brings, and lets the trunk follow.
    pub(super) fn advance(&mut self, way: &mut Way, candidate: &Candidate) -> Result<(), Left> {
        let root = self.place.0.clone();
        let commits: Vec<&str> = candidate.brings.iter().map(|(_, commit)| commit.as_str()).collect();
        let contains = |commit: &str| is_ancestor(&root, commit, &candidate.commit);
        if let Some(why) = unfit(&way.tip, &commits, contains) {
            return Err(Left::Ends(End::because(Outcome::GitFailed, format!("nothing is landed: {why}"))));
        }
        let renamed: Vec<(String, String)> = { candidate.brings.iter() }
            .filter(|(one, _)| !is_ancestor(&root, &one.made.head, &candidate.commit))
            .map(|(one, commit)| (one.reference(), commit.clone()))
            .collect();
        let was_aside = self.exchange.as_ref().is_some_and(|exchange| exchange.aside().is_some());
        // Before anything here says that it has landed.
        if let Some(exchange) = &self.exchange
            && exchange.push_tip((&way.tip, &candidate.commit), &renamed, self.team.hurries())?
                == Moved::NotNow
        {
            return Err(Left::Again);
        }
        if let Some(why) = self.exchange.as_ref().filter(|_| !was_aside).and_then(|exchange| exchange.aside())
        {
            self.tell_once(&why);
        }
        let advance = || self.trunk.advance((&way.tip, &candidate.commit), &renamed, self.rules.pushes);
        let advanced = match &self.exchange {
            Some(exchange) => exchange.in_turn(self.team.hurries(), advance)?,
            None => advance(),
        };
        if let Err(error) = advanced {
            let is_moved = self.trunk.tip().is_some_and(|tip| tip != way.tip);
            return Err(if is_moved { Left::Again } else { error.into() });
        }
        let mut before = &candidate.base;
        for (one, commit) in &candidate.brings {
            self.book(way, one, (before, commit))?;
            before = commit;
        }
        let landed: Claims = candidate.brings.iter().map(|(one, _)| one.reference()).collect();
        self.forget(&landed, &candidate.commit);
        (way.tip, way.base) = (candidate.commit.clone(), candidate.commit.clone());
        self.paused = None;
        let followed = self.follow(&way.tip);
        if self.rules.pushes {
            self.team.landed();
        }
        if let Some(exchange) = &self.exchange {
            let kept = exchange.keep_request(&*self.store, &way.tip, self.team.hurries());
            // Without one the branch is there all the same.
            kept.tell(&self.team, &exchange.remote);
        }
        followed
    }

    /// Removes the refs of these claims, which the tip has, from the remote.
    pub(super) fn forget(&mut self, references: &[String], tip: &str) {
        let Some(exchange) = &self.exchange else { return };
        if let Some(why) = exchange.forget(references, tip, self.team.hurries()) {
            self.tell_once(&why);
        }
    }

    /// Books that a landing is on the tip: put on `before`, it became `commit`.
    pub(super) fn book(
        &mut self,
        way: &mut Way,
        one: &Landing,
        (before, commit): (&str, &str),
    ) -> Result<(), Left> {
        way.waiting = way.waiting.saturating_sub(1);
        // It was reset, ended by hand or deleted a moment ago: its commits are on the trunk all the same.
        let is_booked = self.store.land(&way.lead, one, before, commit)?;
        put_away(&self.place.0, &one.reference())?;
        self.team.waits_no_more(&one.reference());
        if is_booked {
            let (task, tasks) = (at_work(one), self.counts()?);
            let trunk = self.trunk.name().to_owned().into();
            self.team.tell(Fact::Landed { commit: commit.to_owned().into(), task, tasks, trunk });
        }
        Ok(())
    }

    /// Puts the old commits of what has landed as others away, where a process was killed before it did that.
    pub(super) fn put_replayed_away(&self) {
        let Ok(waiting) = self.store.landings() else { return };
        for reference in replayed_refs(&self.place.0) {
            if !waiting.iter().any(|one| one.reference() == reference) {
                // If that fails, the next run does it.
                let _ = put_away(&self.place.0, &reference);
            }
        }
    }

    /// Has what was to land on branches that are gone land here.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) fn adopt(&mut self) -> Result<(), GraphError> {
        let trunks: BTreeSet<String> = self.store.landings()?.into_iter().map(|one| one.made.trunk).collect();
        for trunk in trunks {
            if Trunk::new(&self.place.0, &trunk).commit().is_none() {
                self.store.adopt(&trunk, self.trunk.name())?;
            }
        }
        Ok(())
    }

    pub(super) fn give_back(&mut self, way: &Way, one: &Landing, why: &str) -> Result<(), Left> {
        let ended = self.store.give_back(&way.lead, one, why, self.rules.retries)?;
        self.team.waits_no_more(&one.reference());
        let Some(ended) = ended else { return Ok(()) };
        let (task, tasks) = (at_work(one), self.counts()?);
        let (failed, trunk) = (ended == Ended::Failed, self.trunk.name().to_owned().into());
        self.team.tell(Fact::Returned { failed, reason: why.to_owned().into(), task, tasks, trunk });
        Ok(())
    }

    fn counts(&self) -> Result<TaskCounts, GraphError> {
        let counts = self.store.counts(&self.scope)?;
        Ok(TaskCounts { done: counts.done, failed: counts.failed, total: counts.total })
    }

    /// Lets the trunk follow the tip.
    pub(super) fn follow(&mut self, tip: &str) -> Result<(), Left> {
        match self.trunk.follow(tip)? {
            Followed::Level | Followed::Moved => {
                (self.told, self.settled) = (None, Some(tip.to_owned()));
            }
            Followed::Astray => {}
            Followed::InTheWay(why) => self.tell_once(&format!(
                "{} does not follow what has landed: {why}; it is tried again after the next landing",
                self.trunk.name()
            )),
        }
        Ok(())
    }
}

/// A landing's task, as facts name it.
pub(crate) fn at_work(one: &Landing) -> TaskAtWork<'static> {
    TaskAtWork {
        feature: one.feature.clone().map(Into::into),
        id: one.task.clone().into(),
        model: None,
        title: one.title.clone().into(),
    }
}

/// Keeps the commits of a task's ref where they have landed as others, and forgets the ref then.
fn put_away(root: &Path, reference: &str) -> Result<(), GitError> {
    if replayed(root, reference).is_none() {
        return Ok(());
    }
    keep_old(root, reference)?;
    forget_replayed(root, reference)
}
