//! The lander, as in `landing/lander.rs`: it takes what waits, tries it together, and brings it onto the trunk.

use std::cell::Cell;
use std::rc::Rc;

use super::checks::Brought;
use super::claim::{Claim, Landing, Lead, Lost};
use super::commits::Commit;
use super::events::Millis;
use super::process::{Away, Process};
use super::rules::Rule;
use super::store::Store;
use crate::graph::landing::{Next, Round, Verdict, unfit};

/// How often the tip of the remote is looked for while nothing waits.
const SEEN: Millis = 20_000;
/// How often what waits is looked for, at first and at last.
const LOOK: Millis = 4000;
const RARELY: Millis = 30_000;
/// How long something is handed in at least before it lands.
const SETTLED: Millis = 4000;

/// Why a round was left.
enum Left {
    /// Another lander was faster, or has the lead.
    Again,
    /// The process ends.
    Away,
}

impl From<Away> for Left {
    fn from(_: Away) -> Self {
        Self::Away
    }
}

impl From<Lost> for Left {
    fn from(_: Lost) -> Self {
        Self::Again
    }
}

/// How a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    /// There was something to do.
    On,
    /// Nothing waits.
    Idle,
    /// Another process has the lead.
    Waits,
}

/// One round.
struct Way {
    lead: Lead,
    tip: Commit,
    /// When it was read what waits.
    read: Millis,
}

/// The tip with landings on it.
struct Candidate {
    commit: Commit,
    /// Its landings, each with the commit that brings it.
    brings: Vec<(Landing, Commit)>,
}

/// How a landing was put on a candidate.
enum Put {
    On,
    Conflicts,
    Later,
}

/// Lands until the store or the remote is away for too long.
pub(super) async fn run(process: Rc<Process>) -> Result<(), Away> {
    let (world, mut idle) = (&process.world, LOOK);
    process.lander.set(Some(world.events.current()));
    loop {
        match process.round().await {
            Ok(Ran::On) | Err(Left::Again) => idle = LOOK,
            Ok(ran) => {
                idle = if ran == Ran::Idle { idle } else { LOOK };
                let until = world.now() + world.chance.between(idle / 2, idle * 3 / 2);
                world.events.until(until, || process.is_stirred.get()).await;
                process.is_stirred.set(false);
                idle = RARELY.min(idle * 3 / 2);
            }
            Err(Left::Away) => return Err(Away),
        }
    }
}

impl Process {
    /// Tries what waits.
    async fn round(self: &Rc<Self>) -> Result<Ran, Left> {
        let world = &self.world;
        if self.brought.get().is_none_or(|brought| world.now() >= brought + SEEN) {
            self.bring_tip().await?;
        }
        let most = world.size.batch;
        let waiting = self.look(move |store| store.landings(most)).await?;
        if waiting.is_empty() {
            return Ok(Ran::Idle);
        }
        let read = world.now();
        let Some(lead) = self.lead().await? else { return Ok(Ran::Waits) };
        self.bring_tip().await?;
        let tip = self.clone_of(|clone| clone.tip);
        self.land(Way { lead, tip, read }, waiting).await?;
        Ok(Ran::On)
    }

    /// Takes the lead, or prolongs it.
    async fn lead(&self) -> Result<Option<Lead>, Away> {
        let (holder, length) = (self.number, self.world.lease_millis().cast_signed());
        let taken = self.book(None, move |store, now| Ok(store.take_lead(now, now + length, holder))).await?;
        Ok(taken.unwrap_or_default())
    }

    async fn land(self: &Rc<Self>, mut way: Way, waiting: Vec<Landing>) -> Result<(), Left> {
        let mut round = Round::of(waiting);
        loop {
            match round.next() {
                Next::Over | Next::Paused => return Ok(()),
                Next::Return(one) => {
                    let one = *one;
                    self.give_back(&way, &one).await?;
                    round.leave_out(&one);
                }
                Next::GateBase { .. } => {
                    let verdict = self.judge(way.tip, &[]).await?;
                    round.judged_base(verdict);
                }
                Next::Gate { group, .. } => {
                    let group = group.to_vec();
                    let candidate = self.candidate(&group, &way, &mut round).await?;
                    if candidate.brings.is_empty() {
                        continue;
                    }
                    let gated: Vec<Landing> = candidate.brings.iter().map(|(one, _)| *one).collect();
                    let verdict = self.judge(candidate.commit, &gated).await?;
                    if verdict == Verdict::Green && self.world.rules.hold(Rule::Settled) {
                        self.world.events.until(way.read + SETTLED, || false).await;
                    }
                    let withdrawn = self.withdrawn(&gated).await?;
                    if !withdrawn.is_empty() {
                        for one in &withdrawn {
                            round.leave_out(one);
                        }
                        continue;
                    }
                    if verdict == Verdict::Green {
                        self.land_candidate(&mut way, &candidate).await?;
                    }
                    round.judged(&gated, verdict);
                }
            }
        }
    }

    /// Those of these landings that wait no more.
    async fn withdrawn(&self, landings: &[Landing]) -> Result<Vec<Landing>, Left> {
        let landings = landings.to_vec();
        let gone =
            move |store: &Store| landings.iter().filter(|one| !store.is_seen_to_wait(one)).copied().collect();
        Ok(self.look(gone).await?)
    }

    /// A candidate of all landings of a group that fit; the others leave the round. What has landed before is booked.
    async fn candidate(
        &self,
        group: &[Landing],
        way: &Way,
        round: &mut Round<Landing>,
    ) -> Result<Candidate, Left> {
        let mut candidate = Candidate { commit: way.tip, brings: Vec::new() };
        for one in group {
            let is_here = self.bring(one.claim, one.head).await?;
            let looks = is_here || self.world.rules.hold(Rule::FoundByNote);
            if let Some(commit) = self.landed_as(one, way.tip).filter(|_| looks) {
                self.world.checks.borrow_mut().counts.found += 1;
                self.book_landed(way, one, commit).await?;
                round.leave_out(one);
                continue;
            }
            if !is_here {
                self.give_back(way, one).await?;
                round.leave_out(one);
                continue;
            }
            match self.put(one, way.tip, &mut candidate) {
                Put::On => continue,
                Put::Later => {}
                Put::Conflicts => self.give_back(way, one).await?,
            }
            round.leave_out(one);
        }
        Ok(candidate)
    }

    /// The commit as which a landing is on the tip already; `None`: it is not.
    fn landed_as(&self, one: &Landing, tip: Commit) -> Option<Commit> {
        if !self.world.rules.hold(Rule::TrunkDecides) {
            return None;
        }
        let note = self.clone_of(|clone| clone.notes.get(&one.claim).copied());
        note.into_iter().chain([one.head]).find(|commit| self.world.contains(tip, *commit))
    }

    /// Puts a landing on a candidate, if it fits.
    fn put(&self, one: &Landing, tip: Commit, candidate: &mut Candidate) -> Put {
        let mut commits = self.world.commits.borrow_mut();
        let made = if self.world.is_linear && !commits.contains(one.head, candidate.commit) {
            commits.again(one.head, candidate.commit)
        } else {
            commits.merge(candidate.commit, one.head)
        };
        match made {
            Some(made) => {
                candidate.commit = made;
                candidate.brings.push((*one, made));
                Put::On
            }
            None if candidate.brings.is_empty() || commits.merge(tip, one.head).is_none() => Put::Conflicts,
            None => Put::Later,
        }
    }

    /// What the gate finds about a commit that brings these. The lead is prolonged meanwhile.
    async fn judge(self: &Rc<Self>, commit: Commit, brings: &[Landing]) -> Result<Verdict, Left> {
        let world = &self.world;
        let is_over = Rc::new(Cell::new(false));
        let (over, keeper) = (Rc::clone(&is_over), Rc::clone(self));
        world.events.start(self.machine, async move { keeper.keep_lead(&over).await });
        self.has_now(commit);
        let span = if world.chance.hits(300) { 10 } else { world.chance.between(500, 10_000) };
        world.events.pass(span).await;
        is_over.set(true);
        let is_red = |one: &Landing| world.commits.borrow().is_bad(one.head);
        let flakes = !brings.is_empty() && world.chance.hits(20);
        Ok(if flakes || brings.iter().any(is_red) { Verdict::Red } else { Verdict::Green })
    }

    async fn keep_lead(&self, is_over: &Cell<bool>) {
        loop {
            self.world.events.pass(self.clocks().real(self.world.lease.renewal())).await;
            if is_over.get() || self.lead().await.is_err() {
                return;
            }
        }
    }

    /// Makes a gated candidate the tip, and books what it brings.
    async fn land_candidate(&self, way: &mut Way, candidate: &Candidate) -> Result<(), Left> {
        let names = |commit: Commit| format!("{commit:040}");
        let heads: Vec<String> = candidate.brings.iter().map(|(_, commit)| names(*commit)).collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let contains =
            |commit: &str| commit.parse().is_ok_and(|commit| self.world.contains(candidate.commit, commit));
        assert_eq!(unfit(&names(way.tip), &heads, contains), None, "a candidate has what it was made of");
        let again: Vec<(Claim, Commit)> = { candidate.brings.iter() }
            .filter(|(one, _)| !self.world.contains(candidate.commit, one.head))
            .map(|(one, commit)| (one.claim, *commit))
            .collect();
        let brought = |(one, commit): &(Landing, Commit)| Brought {
            claim: one.claim,
            head: one.head,
            commit: *commit,
            was_there: self.world.contains(way.tip, one.head),
        };
        let brings = candidate.brings.iter().map(brought).collect();
        if !self.push_tip(candidate.commit, brings, &again).await? {
            return Err(Left::Again);
        }
        if !self.advance(way.tip, candidate.commit).await {
            return Err(Left::Again);
        }
        self.clone_of(|clone| clone.notes.extend(again));
        for (one, commit) in &candidate.brings {
            self.book_landed(way, one, *commit).await?;
        }
        let landed = candidate.brings.iter().map(|(one, _)| one.claim).collect();
        self.forget(landed, candidate.commit).await;
        way.tip = candidate.commit;
        Ok(())
    }

    /// Books that a landing is on the tip as this commit.
    async fn book_landed(&self, way: &Way, one: &Landing, commit: Commit) -> Result<(), Left> {
        let (lead, landing) = (way.lead, *one);
        self.book(true, move |store, _| store.land(&lead, &landing, commit)).await??;
        self.moment().await;
        self.clone_of(|clone| (clone.notes.remove(&landing.claim), clone.kept.remove(&landing.claim)));
        Ok(())
    }

    async fn give_back(&self, way: &Way, one: &Landing) -> Result<(), Left> {
        let (lead, landing) = (way.lead, *one);
        self.book(true, move |store, _| store.give_back(&lead, &landing)).await??;
        Ok(())
    }
}
