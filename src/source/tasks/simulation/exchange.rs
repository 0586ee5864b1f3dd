//! What a process does with the remote, as in `landing/exchange.rs`.

use std::cell::Cell;
use std::rc::Rc;

use super::checks::{Brought, Wrong};
use super::claim::Claim;
use super::commits::Commit;
use super::network::Server;
use super::process::{Away, Process};
use super::remote::{Behind, Place};
use super::rules::Rule;
use super::store::Moment;
use super::world::World;

/// How often the commits of one claim may go apart.
const APART: u32 = 100;

/// Held while the tip of a clone is moved.
struct Turn<'a>(&'a Cell<bool>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Process {
    async fn take_turn(&self) -> Turn<'_> {
        while self.turn.replace(true) {
            self.world.events.pass(50).await;
        }
        Turn(&self.turn)
    }

    /// Whether a commit is in the clone.
    pub(super) fn has(&self, commit: Commit) -> bool {
        let clone = self.world.machines[self.machine].clone.borrow();
        clone.objects.contains(&commit) || self.world.contains(clone.fetched, commit)
    }

    /// A commit is in the clone, with all that it contains.
    pub(super) fn has_now(&self, commit: Commit) {
        let new = self.world.commits.borrow().unknown(commit, |commit| self.has(commit));
        self.clone_of(|clone| clone.objects.extend(new));
    }

    /// The time that it takes to fetch commits.
    async fn get(&self) -> Result<(), Away> {
        self.patiently(Server::Remote, |_| ()).await
    }

    /// Brings the landed tip of the remote here.
    pub(super) async fn bring_tip(&self) -> Result<(), Away> {
        let _turn = self.take_turn().await;
        let tip = self.patiently(Server::Remote, |world| world.remote.borrow().tip).await?;
        if !self.has(tip) {
            self.get().await?;
        }
        let seen = self.clone_of(|clone| clone.seen);
        if !self.world.contains(tip, seen) {
            self.world.fail(Wrong::TipLost, "the trunk was rewritten on the remote");
        }
        self.clone_of(|clone| (clone.fetched, clone.tip, clone.seen) = (tip, tip, tip));
        self.brought.set(Some(self.world.now()));
        Ok(())
    }

    /// Moves the tip on the remote to `new`, which brings these; returns whether it is there. `again`: claims whose commits were made
    /// again, with the last of the new ones.
    pub(super) async fn push_tip(
        &self,
        new: Commit,
        brings: Vec<Brought>,
        again: &[(Claim, Commit)],
    ) -> Result<bool, Away> {
        for (claim, commit) in again.iter().copied() {
            let note = move |world: &Rc<World>| {
                let place = Place::Note(claim, if world.rules.hold(Rule::OwnNotes) { commit } else { 0 });
                world.remote.borrow_mut().push(&world.commits.borrow(), place, commit, true)
            };
            let _ = self.patiently(Server::Remote, note).await?;
        }
        let machine = self.machine;
        let moved =
            self.patiently(Server::Remote, move |world| world.takes_tip(machine, new, &brings)).await?;
        self.world.checks.borrow_mut().counts.behind += u64::from(moved.is_err());
        Ok(moved.is_ok())
    }

    /// Moves the tip of the clone, if it is where it was.
    pub(super) async fn advance(&self, old: Commit, new: Commit) -> bool {
        let _turn = self.take_turn().await;
        self.moment().await;
        self.clone_of(|clone| {
            let is_there = clone.tip == old;
            if is_there {
                clone.tip = new;
            }
            is_there
        })
    }

    /// Brings what a claim has made to the remote, and returns when it is there.
    pub(super) async fn push_claim(&self, claim: Claim, commit: Commit) -> Result<(), Away> {
        let (mut number, last) = self.pushed.borrow().get(&claim).copied().unwrap_or((1, 0));
        if last == commit {
            return Ok(());
        }
        while number < APART {
            let pushed =
                self.patiently(Server::Remote, move |world| world.takes_claim(claim, number, commit)).await?;
            if pushed.is_ok() {
                self.pushed.borrow_mut().insert(claim, (number, commit));
                return Ok(());
            }
            number += 1;
        }
        Err(Away)
    }

    /// Brings the commits of a claim here, up to this one, and as what they have landed; returns whether they are here.
    pub(super) async fn bring(&self, claim: Claim, commit: Commit) -> Result<bool, Away> {
        let (there, notes) = self
            .patiently(Server::Remote, move |world| {
                let remote = world.remote.borrow();
                (remote.claims_on(claim.task), remote.notes(claim))
            })
            .await?;
        let tip = self.clone_of(|clone| clone.tip);
        if let Some(note) = notes.into_iter().find(|note| self.world.contains(tip, *note)) {
            self.clone_of(|clone| clone.notes.insert(claim, note));
        }
        if self.has(commit) {
            return Ok(true);
        }
        let its = self.world.claim_of_ref(claim);
        let is_its = |place: &Place| matches!(place, Place::Claim(of, _) if *of == its);
        let wanted = |at: Commit| {
            at == commit || self.world.rules.hold(Rule::FoundInside) && self.world.contains(at, commit)
        };
        if there.iter().any(|(place, at)| is_its(place) && wanted(*at)) {
            self.get().await?;
            self.has_now(commit);
            return Ok(true);
        }
        Ok(false)
    }

    /// The commits that the remote has for all claims.
    pub(super) async fn is_there(&self, claim: Claim, commit: Commit) -> Result<bool, Away> {
        self.patiently(Server::Remote, move |world| {
            world.remote.borrow().claims_on(claim.task).iter().any(|(_, at)| *at == commit)
        })
        .await
    }

    /// Removes the refs of these claims, which have landed, and those of their tasks' other claims whose commits the tip has. What
    /// fails stays there.
    pub(super) async fn forget(&self, claims: Vec<Claim>, tip: Commit) {
        let asked = claims.clone();
        let listed = self
            .world
            .question(self.machine, Server::Remote, move |world| {
                let remote = world.remote.borrow();
                asked.iter().flat_map(|claim| remote.claims_on(claim.task)).collect::<Vec<_>>()
            })
            .await;
        let Some(listed) = listed else { return };
        let is_gone = |(place, commit): &(Place, Commit)| {
            let is_its = |claim: &Claim| matches!(place, Place::Claim(of, _) if *of == self.world.claim_of_ref(*claim));
            let is_of = claims.iter().any(is_its);
            is_of || self.has(*commit) && self.world.contains(tip, *commit)
        };
        let gone: Vec<(Place, Commit)> = listed.into_iter().filter(is_gone).collect();
        let remove = move |world: &Rc<World>| {
            for (place, commit) in &gone {
                world.remote.borrow_mut().remove(*place, *commit);
            }
        };
        self.world.question(self.machine, Server::Remote, remove).await;
        self.pushed.borrow_mut().retain(|claim, _| !claims.contains(claim));
    }
}

impl World {
    /// A push of the tip arrives at the remote.
    fn takes_tip(self: &Rc<Self>, machine: usize, new: Commit, brings: &[Brought]) -> Result<(), Behind> {
        let forced = !self.rules.hold(Rule::SwappedTip);
        let moved = self.remote.borrow_mut().push_tip(&mut self.commits.borrow_mut(), new, forced)?;
        if moved.has_lost {
            self.fail(Wrong::TipLost, &format!("the tip goes from {} to {new}", moved.from));
        }
        if moved.from != new {
            self.happens(Moment::Pushed, machine);
            // Two landers may bring the same commits: they land once.
            let is_there = |brought: &&Brought| {
                let of = if brought.was_there { brought.commit } else { brought.head };
                self.contains(moved.from, brought.commit) || self.contains(moved.from, of)
            };
            for brought in brings.iter().filter(|brought| !is_there(brought)) {
                let goes_on = |earlier: &Brought| self.contains(brought.head, earlier.head);
                self.checks.borrow_mut().lands(self.now(), *brought, goes_on);
            }
        }
        Ok(())
    }

    /// The claim in the name of the ref for what a claim has made.
    fn claim_of_ref(&self, claim: Claim) -> Claim {
        if self.rules.hold(Rule::OwnRefs) { claim } else { Claim { number: 0, nonce: 0, ..claim } }
    }

    /// A push of what a claim has made arrives at the remote.
    fn takes_claim(&self, claim: Claim, number: u32, commit: Commit) -> Result<(), Behind> {
        let forced = !self.rules.hold(Rule::OwnRefs);
        let place = Place::Claim(self.claim_of_ref(claim), if forced { 1 } else { number });
        if let Some(lost) = self.remote.borrow_mut().push(&self.commits.borrow(), place, commit, forced)? {
            self.fail(Wrong::Overwritten, &format!("{claim:?} overwrites {lost} with {commit}"));
        }
        Ok(())
    }
}
