//! What the model of the store can be asked: the operations of `graph/sql/claims.rs` and `graph/sql/lander.rs`, one by one.

use super::claim::{Claim, Landing, Lead, Lost};
use super::commits::Commit;
use super::rules::Rule;
use super::store::{Claimed, LeadRow, Made, Moment, Store};
use crate::graph::landing::{Standing, may_begin};
use crate::graph::transitions::Own;

impl Store {
    /// Opens the tasks again whose leases are over.
    fn recover(&mut self, now: i64) {
        while let Some((until, task)) = self.leases.first().copied()
            && until <= now
        {
            self.leave(task, Own::Open);
        }
    }

    /// Claims the task that was returned first, or, while fewer than `room` wait to land, the next one that is ready. The product asks
    /// for these one after the other; nothing depends on that.
    pub(super) fn claim(&mut self, now: i64, until: i64, nonce: u64, room: usize) -> Option<Claim> {
        self.recover(now);
        let is_ready = |task: &usize| self.ready.contains(task);
        let returned = self.returned.iter().map(|(_, task)| *task).find(is_ready);
        let next = || self.ready.first().copied().filter(|_| may_begin(self.waiting(), room));
        let task = returned.or_else(next)?;
        Some(self.give(task, until, nonce))
    }

    fn give(&mut self, task: usize, until: i64, nonce: u64) -> Claim {
        self.happened = Some(Moment::Claimed);
        self.change(task, |row| {
            row.number += 1;
            row.claimed = Some(Claimed { nonce, until });
        });
        Claim { task, number: self.rows[task].number, nonce }
    }

    /// Refuses a booking by a process that has lost the claim.
    fn held(&mut self, claim: &Claim) -> Result<(), Lost> {
        let row = &self.rows[claim.task];
        let Some(claimed) = row.claimed.filter(|_| row.number == claim.number) else {
            return Err(Lost::Claim);
        };
        if claimed.nonce == claim.nonce {
            return Ok(());
        }
        if self.rules.hold(Rule::Nonces) {
            return Err(Lost::Claim);
        }
        self.wrong.push(format!("{claim:?} books for a task that is claimed as {claimed:?}"));
        Ok(())
    }

    /// Prolongs the lease of a claim.
    pub(super) fn renew(&mut self, claim: &Claim, until: i64) -> Result<(), Lost> {
        self.held(claim)?;
        self.change(claim.task, |row| row.claimed = row.claimed.map(|claimed| Claimed { until, ..claimed }));
        Ok(())
    }

    /// Notes what was made for a claim, in this standing.
    fn put(&mut self, claim: &Claim, base: Commit, head: Commit, standing: Standing) {
        let since = self.clock();
        self.change(claim.task, |row| {
            let returned = row.made.map_or(0, |made| made.landing.returned);
            let landing = Landing { claim: *claim, base, head, returned };
            row.made = Some(Made { landing, standing, since });
            row.done_at = Some(head);
        });
    }

    /// Keeps what was made for a claim.
    pub(super) fn keep(&mut self, claim: &Claim, base: Commit, head: Commit) -> Result<(), Lost> {
        self.held(claim)?;
        self.put(claim, base, head, Standing::Kept);
        Ok(())
    }

    /// Hands a task in to land.
    pub(super) fn queue(&mut self, claim: &Claim, base: Commit, head: Commit) -> Result<(), Lost> {
        self.held(claim)?;
        self.put(claim, base, head, Standing::Waiting);
        self.leave(claim.task, Own::Landing);
        self.happened = Some(Moment::HandedIn);
        Ok(())
    }

    /// Books a task as done that had nothing to land.
    pub(super) fn complete(&mut self, claim: &Claim, done_at: Commit) -> Result<(), Lost> {
        self.held(claim)?;
        self.change(claim.task, |row| (row.made, row.done_at) = (None, Some(done_at)));
        self.leave(claim.task, Own::Done);
        Ok(())
    }

    /// Gives a claim back.
    pub(super) fn release(&mut self, claim: &Claim) -> Result<(), Lost> {
        self.held(claim)?;
        self.leave(claim.task, Own::Open);
        Ok(())
    }

    /// Removes the claim of a task. What was waiting is withdrawn, unless it was booked.
    fn leave(&mut self, task: usize, own: Own) {
        self.change(task, |row| {
            (row.claimed, row.own) = (None, own);
            if let Some(made) = row.made.as_mut().filter(|made| made.standing == Standing::Waiting)
                && own != Own::Landing
            {
                made.standing = Standing::Kept;
            }
        });
    }

    /// What was made for a task.
    pub(super) fn made(&self, task: usize) -> Option<Made> {
        self.rows[task].made
    }

    /// The commits of the tasks that a task waits for.
    pub(super) fn commits_before(&self, task: usize) -> Vec<Commit> {
        self.blockers(task).iter().filter_map(|blocker| self.rows[*blocker].done_at).collect()
    }

    /// Takes the lead, or prolongs it; `None` while another process has it.
    pub(super) fn take_lead(&mut self, now: i64, until: i64, holder: u64) -> Option<Lead> {
        let row = self.lead;
        let number = match row.holder {
            own if own == holder => row.number,
            0 => row.number + 1,
            _ if now < row.until => return None,
            _ => row.number + 1,
        };
        self.change_lead(LeadRow { number, holder, until });
        self.happened = (number != row.number).then_some(Moment::Led);
        Some(Lead { number, holder })
    }

    /// Refuses a booking by a process that has lost the lead.
    fn require_lead(&mut self, lead: &Lead) -> Result<(), Lost> {
        let is_its = self.lead.holder == lead.holder;
        if self.lead.number != lead.number || !is_its && self.rules.hold(Rule::Holders) {
            return Err(Lost::Lead);
        }
        if !is_its && self.lead.holder != 0 {
            self.wrong.push(format!("{lead:?} books while {:?} leads", self.lead));
        }
        Ok(())
    }

    /// Whether a landing still waits as it was handed in, for a lander that is about to land it.
    pub(super) fn is_seen_to_wait(&self, landing: &Landing) -> bool {
        self.waits(landing, Rule::NonceThatWaits)
    }

    /// Whether a landing still waits as it was handed in. The nonce is compared under this rule.
    fn waits(&self, landing: &Landing, rule: Rule) -> bool {
        let (row, claim) = (&self.rows[landing.claim.task], landing.claim);
        let is_it = |other: Claim| {
            other.number == claim.number && (other.nonce == claim.nonce || !self.rules.hold(rule))
        };
        row.own == Own::Landing
            && row.made.is_some_and(|made| made.standing == Standing::Waiting && is_it(made.landing.claim))
    }

    /// Books that a landing is on the trunk as this commit; returns whether it was waiting.
    pub(super) fn land(&mut self, lead: &Lead, landing: &Landing, commit: Commit) -> Result<bool, Lost> {
        self.require_lead(lead)?;
        if !self.waits(landing, Rule::Nonces) {
            return Ok(false);
        }
        let since = self.clock();
        self.change(landing.claim.task, |row| {
            row.made = row.made.map(|made| Made { standing: Standing::Landed, since, ..made });
            row.done_at = Some(commit);
        });
        self.leave(landing.claim.task, Own::Done);
        self.happened = Some(Moment::Landed);
        Ok(true)
    }

    /// Gives a landing back, to the next agent of its task; returns whether it was waiting.
    pub(super) fn give_back(&mut self, lead: &Lead, landing: &Landing) -> Result<bool, Lost> {
        self.require_lead(lead)?;
        if !self.waits(landing, Rule::Nonces) {
            return Ok(false);
        }
        let since = self.clock();
        self.change(landing.claim.task, |row| {
            if let Some(made) = &mut row.made {
                (made.standing, made.since) = (Standing::Returned, since);
                made.landing.returned += 1;
            }
        });
        self.leave(landing.claim.task, Own::Open);
        self.given_back = Some(landing.claim);
        Ok(true)
    }
}
