//! The lander of one trunk: takes what waits, tries it together, and brings it onto the trunk.

mod booking;
mod telling;
pub(crate) use booking::at_work;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::candidate::{Candidate, Maker, Put, Style};
use super::gate::{Gate, Judged};
use super::team::{Standstill, Team};
use crate::engine::fact::Fact;
use crate::engine::outcome::End;
use crate::git::GitError;
use crate::git::landing::{Stand, Trunk, landed_as};
use crate::graph::landing::{Base, Next, Round, Verdict};
use crate::graph::{GraphError, Holder, Landing, Lead, Scope, Standing, Store};
use crate::landing::exchange::{Exchange, Failed};
use crate::text::head_and_tail::head_and_tail;
use crate::text::jitter;
use crate::text::list::some_of;
use crate::threads;

/// How often the tip of the remote is looked for while nothing waits.
const SEEN: Duration = Duration::from_secs(20);
/// How often another run's landings, and the trunk, are looked for.
const LOOK: Duration = Duration::from_secs(4);
/// How rarely at last, where many machines ask one server.
const RARELY: Duration = Duration::from_secs(30);
/// How long something is handed in at least before it lands from a server: longer than what a failover may lose.
const SETTLED: Duration = Duration::from_secs(4);
/// The longest reason that is kept, in bytes.
const REASON: usize = 6000;
/// At most this many files are named.
const SOME: usize = 10;

/// The refs of claims, which name their tasks, fences and nonces.
type Claims = Vec<String>;

/// How work lands.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// How many landings are tried together.
    pub(crate) batch: usize,
    /// How often one that could not land is given back.
    pub(crate) retries: u32,
    /// What lands.
    pub(crate) style: Style,
    /// Whether the tip is pushed.
    pub(crate) pushes: bool,
    /// How long the lead holds for processes that cannot see ours.
    pub(crate) lease: Duration,
}

/// The lander.
pub(crate) struct Lander {
    store: Box<dyn Store + Send>,
    /// The remote that has the tip, where many machines land on it.
    exchange: Option<Arc<Exchange>>,
    /// When the tip was brought from there last.
    brought: Option<Instant>,
    /// How long it waits before it looks again.
    idle: Duration,
    team: Arc<Team>,
    trunk: Trunk,
    /// A work tree of the repository, and the author of merge commits.
    place: (PathBuf, Vec<(OsString, OsString)>),
    holder: Holder,
    /// What the run is about, for its counts.
    scope: Scope,
    gate: Option<Gate>,
    rules: Rules,
    /// What was tried last and found red without anyone to blame: the base, the claims, and why.
    paused: Option<(String, Claims, String)>,
    /// The base of a tip and another commit of the trunk, so that it is made once.
    merged: Option<(String, String, String)>,
    /// The tip that the trunk was seen at.
    settled: Option<String>,
    /// Until when another run had the lead when that was seen first.
    stalled: Option<(DateTime<Utc>, Instant)>,
    /// What was reported last, so that it is reported once.
    told: Option<String>,
    /// The run whose other gate was reported.
    other_gate: Option<String>,
}

/// How a round ended.
enum Ran {
    /// There was something to do.
    On,
    /// The lander stands still.
    Stands(Standstill),
}

/// Why a round was left.
enum Left {
    /// Another run was faster: what is there now is looked at anew.
    Again,
    /// Nothing lands any more in this run.
    Ends(End),
    /// The user wants to leave.
    Cancelled,
}

impl From<GraphError> for Left {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::LeadLost { .. } => Self::Again,
            error => Self::Ends(error.into()),
        }
    }
}

impl From<Failed> for Left {
    fn from(failed: Failed) -> Self {
        failed.end().map_or(Self::Cancelled, Self::Ends)
    }
}

impl From<GitError> for Left {
    fn from(error: GitError) -> Self {
        Self::Ends(error.into())
    }
}

/// One round, with the commit that the next candidate is put on.
struct Way {
    lead: Lead,
    /// The landed tip.
    tip: String,
    /// The tip with what others have committed on the trunk.
    base: String,
    waiting: usize,
    /// When it was read what waits.
    read: Instant,
}

impl Lander {
    /// The lander of a trunk in the repository of `place`, whose author is that of its merge commits.
    pub(crate) fn new(
        store: Box<dyn Store + Send>,
        team: Arc<Team>,
        trunk: Trunk,
        place: (PathBuf, Vec<(OsString, OsString)>),
        (holder, scope): (Holder, Scope),
        gate: Option<Gate>,
        rules: Rules,
    ) -> Self {
        // What the others read of it.
        let named = gate.as_ref().map(|gate| telling::named(gate.shown())).unwrap_or_default();
        let holder = Holder { gate: Some(named), ..holder };
        Self {
            store,
            exchange: None,
            brought: None,
            idle: LOOK,
            team,
            trunk,
            place,
            holder,
            scope,
            gate,
            rules,
            paused: None,
            merged: None,
            settled: None,
            stalled: None,
            told: None,
            other_gate: None,
        }
    }

    /// The lander, where the tip is on a remote that other machines land on, too.
    pub(crate) fn through(mut self, exchange: Option<Arc<Exchange>>) -> Self {
        self.exchange = exchange;
        self
    }

    /// Lands until all loops have ended.
    pub(crate) fn run(mut self) {
        if self.rules.pushes && self.trunk.unpushed().is_some() {
            // An earlier run was cut off before that.
            self.team.landed();
        }
        self.put_replayed_away();
        while !self.team.is_over() {
            match self.round() {
                Ok(Ran::On) | Err(Left::Again) => self.idle = LOOK,
                Ok(Ran::Stands(at)) => {
                    // Another machine that lands may do so for long, too.
                    self.idle =
                        if matches!(at, Standstill::Idle | Standstill::None) { self.idle } else { LOOK };
                    self.team.stands(at);
                    self.wait();
                }
                Err(Left::Cancelled) => break,
                Err(Left::Ends(end)) => {
                    self.team.end(&end);
                    break;
                }
            }
        }
        // Another run can take it at once, and does so anyway when this process is gone.
        if let Ok(Some(lead)) = self.store.lead(self.trunk.name(), &self.holder, self.rules.lease) {
            let _ = self.store.give_up_lead(&lead);
        }
    }

    /// Waits until something is handed in here, or for some time: longer each time, where many machines ask one server.
    fn wait(&mut self) {
        if self.exchange.is_none() {
            return self.team.wait(LOOK);
        }
        self.team.wait(jitter::around(self.idle));
        self.idle = RARELY.min(self.idle * 3 / 2);
    }

    /// Tries what waits.
    fn round(&mut self) -> Result<Ran, Left> {
        self.bring_tip(SEEN)?;
        let tip = self.tip()?;
        let stand = self.stand(&tip)?;
        let waiting: Vec<Landing> = { self.store.landings()?.into_iter() }
            .filter(|one| one.standing == Standing::Waiting && one.made.trunk == self.trunk.name())
            .collect();
        let read = Instant::now();
        if waiting.is_empty() && !matches!(stand, Stand::Ahead(_)) {
            if stand != Stand::Level || self.settled.as_ref() != Some(&tip) {
                self.follow(&tip)?;
            }
            return Ok(Ran::Stands(Standstill::Idle));
        }
        // Another run lands here, and its process lives. Looked at first, which writes nothing: all machines do it.
        let leader = self.store.leader(self.trunk.name())?;
        self.tell_stalled(leader.as_ref().filter(|_| !waiting.is_empty()));
        self.tell_other_gate(leader.as_ref().map(|(leader, _)| leader));
        let lead = if leader.is_none_or(|(leader, _)| leader == self.holder) {
            self.store.lead(self.trunk.name(), &self.holder, self.rules.lease)?
        } else {
            None
        };
        let Some(lead) = lead else {
            let at = if waiting.is_empty() { Standstill::Idle } else { Standstill::None };
            return Ok(Ran::Stands(at));
        };
        self.bring_tip(Duration::ZERO)?;
        let tip = self.tip()?;
        let stand = self.stand(&tip)?;
        let base = self.base(&tip, &stand)?;
        if let Some((at, tried, why)) = &self.paused
            && *at == base
            && *tried == claims(&waiting)
        {
            return Ok(Ran::Stands(Standstill::Paused(why.clone())));
        }
        if waiting.is_empty() && base == tip {
            return Ok(Ran::Stands(Standstill::Idle));
        }
        let way = Way { lead, tip, base, waiting: waiting.len(), read };
        if let Some(gate) = &mut self.gate {
            gate.trust(self.team.take_green());
        }
        if waiting.is_empty() { self.catch_up(way) } else { self.land(way, &waiting) }
    }

    /// Brings the tip of the remote here, if it was brought longer ago than this.
    fn bring_tip(&mut self, ago: Duration) -> Result<(), Left> {
        let Some(exchange) = &self.exchange else { return Ok(()) };
        if self.brought.is_some_and(|brought| brought.elapsed() < ago) {
            return Ok(());
        }
        exchange.bring_tip(false, self.team.hurries())?;
        self.brought = Some(Instant::now());
        Ok(())
    }

    fn tip(&self) -> Result<String, Left> {
        Ok(self.trunk.tip().ok_or_else(|| self.trunk.tip_is_gone())?)
    }

    /// How the trunk stands to the tip; ends where it is gone or was rewritten.
    fn stand(&self, tip: &str) -> Result<Stand, Left> {
        let stand = match (self.trunk.stand(tip), &self.exchange) {
            (stand @ (Stand::Level | Stand::Behind), Some(exchange)) => {
                exchange.theirs(tip).map_or(stand, Stand::Ahead)
            }
            (stand, _) => stand,
        };
        match self.trunk.problem(&stand) {
            None => Ok(stand),
            Some(error) if self.exchange.is_some() => Err(Failed::Refused(error.to_string()).into()),
            Some(error) => Err(error.into()),
        }
    }

    /// What candidates are put on: the tip, with what others have committed on the trunk.
    fn base(&mut self, tip: &str, stand: &Stand) -> Result<String, Left> {
        let Stand::Ahead(theirs) = stand else { return Ok(tip.to_owned()) };
        if let Some((at, with, base)) = &self.merged
            && at == tip
            && with == theirs
        {
            return Ok(base.clone());
        }
        let message = format!("Merge {}", self.trunk.name());
        let base = match self.maker().merged(tip, theirs, &message)? {
            Ok(base) => base,
            Err(files) => {
                self.tell_once(&format!(
                    "{name} has commits that conflict with what has landed, in {files}: merge {reference} into it; until then it \
                     does not follow",
                    name = self.trunk.name(),
                    reference = self.trunk.reference(),
                    files = some_of(&files, SOME)
                ));
                tip.to_owned()
            }
        };
        self.merged = Some((tip.to_owned(), theirs.clone(), base.clone()));
        Ok(base)
    }

    fn maker(&self) -> Maker<'_> {
        Maker { root: &self.place.0, style: self.rules.style, env: &self.place.1 }
    }

    /// Takes what others have committed on the trunk into the tip, if it passes the gate.
    fn catch_up(&mut self, mut way: Way) -> Result<Ran, Left> {
        let is_taken = self.take_in(&mut way, &mut Round::of(Vec::new()))?;
        Ok(if is_taken { Ran::On } else { self.pause(&way, &[]) })
    }

    /// Makes the base the tip, if it passes the gate; returns whether it is the tip now.
    fn take_in(&mut self, way: &mut Way, round: &mut Round<Landing>) -> Result<bool, Left> {
        while way.base != way.tip {
            let candidate = Candidate::on(&way.base);
            match round.base() {
                Base::Known(Verdict::Red) => return Ok(false),
                Base::Known(Verdict::Green) => self.advance(way, &candidate)?,
                unsure => {
                    let judged = self.judge(&candidate, way, unsure == Base::RedOnce)?;
                    round.judged_base(judged.verdict);
                }
            }
        }
        Ok(true)
    }

    /// Nothing can land: the trunk itself is red.
    fn pause(&mut self, way: &Way, waiting: &[Landing]) -> Ran {
        let command = self.gate.as_ref().map_or("", |gate| gate.shown());
        let why = format!(
            "{} itself does not pass '{command}', so that nothing can land on it: fix it there; no task is blamed",
            self.trunk.name()
        );
        self.tell_once(&why);
        self.paused = Some((way.base.clone(), claims(waiting), why.clone()));
        Ran::Stands(Standstill::Paused(why))
    }

    fn land(&mut self, mut way: Way, waiting: &[Landing]) -> Result<Ran, Left> {
        let some: Vec<Landing> = waiting.iter().take(self.rules.batch).cloned().collect();
        let mut round = Round::of(some);
        // What the gate has printed last.
        let mut output = String::new();
        loop {
            match round.next() {
                Next::Over => return Ok(Ran::On),
                Next::Paused => return Ok(self.pause(&way, waiting)),
                Next::Return(one) => {
                    let one = one.clone();
                    let why = self.why_red(&output);
                    // Its next agent finds there what it was tried with, which is green.
                    self.take_in(&mut way, &mut round)?;
                    self.give_back(&way, &one, &why)?;
                    round.leave_out(&one);
                }
                Next::GateBase { again } => {
                    let candidate = Candidate::on(&way.base);
                    let judged = self.judge(&candidate, &way, again)?;
                    round.judged_base(judged.verdict);
                }
                Next::Gate { group, again } => {
                    let group = group.to_vec();
                    let candidate = self.candidate(&group, &mut way, &mut round)?;
                    if candidate.brings.is_empty() {
                        continue;
                    }
                    let gated: Vec<Landing> = candidate.brings.iter().map(|(one, _)| one.clone()).collect();
                    let judged = self.judge(&candidate, &way, again)?;
                    let verdict = judged.verdict;
                    output = judged.output;
                    if verdict == Verdict::Green {
                        self.let_settle(&way)?;
                    }
                    let withdrawn = self.withdrawn(&gated)?;
                    if !withdrawn.is_empty() {
                        // The others are tried without them.
                        for one in &withdrawn {
                            round.leave_out(one);
                        }
                        continue;
                    }
                    if verdict == Verdict::Green {
                        self.advance(&mut way, &candidate)?;
                    }
                    round.judged(&gated, verdict);
                }
            }
        }
    }

    /// Waits until no failover of a store takes it back any more that these were handed in. If they still wait then, they are known
    /// to wait until it is booked that they have landed, whatever the store loses of that.
    fn let_settle(&self, way: &Way) -> Result<(), Left> {
        let left = SETTLED.saturating_sub(way.read.elapsed());
        if self.exchange.is_none() || left.is_zero() || self.team.goes_on_for(left) {
            return Ok(());
        }
        Err(Left::Cancelled)
    }

    /// Those of these landings that wait no more: their tasks were reset, ended or deleted meanwhile.
    fn withdrawn(&self, landings: &[Landing]) -> Result<Vec<Landing>, Left> {
        let mut waiting = self.store.landings()?;
        waiting.retain(|one| one.made.trunk == self.trunk.name());
        let waiting = claims(&waiting);
        let is_gone = |one: &&Landing| !waiting.contains(&one.reference());
        Ok(landings.iter().filter(is_gone).cloned().collect())
    }

    /// A candidate of all landings of a group that fit; the others leave the round. What has landed before is booked, what
    /// conflicts is returned.
    fn candidate(
        &mut self,
        group: &[Landing],
        way: &mut Way,
        round: &mut Round<Landing>,
    ) -> Result<Candidate, Left> {
        let mut candidate = Candidate::on(&way.base);
        for one in group {
            let bring = |exchange: &Arc<Exchange>| {
                exchange.bring(&one.reference(), &one.made.head, self.team.hurries())
            };
            let is_here = self.exchange.as_ref().map_or(Ok(true), bring)?;
            // What the trunk has, has landed (rule 6).
            if let Some(commit) = landed_as(&self.place.0, &one.reference(), &one.made.head, &way.tip) {
                self.book(way, one, (&one.made.base, &commit))?;
                // A run that was cut off has brought it there.
                self.forget(&[one.reference()], &way.tip);
                round.leave_out(one);
                continue;
            }
            if !is_here {
                let why = format!(
                    "its commits are not on the remote any more ({:.10}): do it again",
                    one.made.head
                );
                self.give_back(way, one, &why)?;
                round.leave_out(one);
                continue;
            }
            let put = match self.maker().put(one, &mut candidate) {
                // Once more.
                Err(error) if error.is_killed() => self.maker().put(one, &mut candidate),
                put => put,
            };
            match put {
                Ok(Put::On) => continue,
                Ok(Put::Later) => {}
                // Its next agent gets the tip, and so has to find there what it conflicts with.
                Ok(Put::Conflicts(_)) if !self.take_in(way, round)? => {
                    round.set_aside(one);
                    continue;
                }
                Ok(Put::Conflicts(files)) => {
                    let why = format!(
                        "it conflicts with what has landed on {} meanwhile, in {}",
                        self.trunk.name(),
                        some_of(&files, SOME)
                    );
                    self.give_back(way, one, &why)?;
                }
                Err(error) if !error.is_killed() => {
                    // Where git can make no commit at all, no landing is to blame.
                    self.maker().try_it(&way.tip)?;
                    self.give_back(way, one, &format!("git cannot merge it: {error}"))?;
                }
                Err(error) => return Err(error.into()),
            }
            round.leave_out(one);
        }
        Ok(candidate)
    }

    /// Why a landing is returned that was red alone, when the gate has printed this.
    fn why_red(&self, output: &str) -> String {
        let shown = self.gate.as_ref().map_or("", |gate| gate.shown());
        let why = format!("on {} with it, '{shown}' fails:\n{output}", self.trunk.name());
        head_and_tail(why.trim_end(), REASON)
    }

    /// What the gate finds about a candidate.
    fn judge(&mut self, candidate: &Candidate, way: &Way, again: bool) -> Result<Judged, Left> {
        let commit = candidate.commit.clone();
        let green = || Judged { verdict: Verdict::Green, output: String::new(), took: None };
        let Some(gate) = &mut self.gate else { return Ok(green()) };
        // One alone is not blamed for what another run of the gate has found.
        let reds = candidate.brings.len() > 1;
        if !again && let Some(judged) = gate.knows(&commit, reds) {
            return Ok(judged);
        }
        let landings: Vec<&Landing> = candidate.brings.iter().map(|(one, _)| one).collect();
        let tasks: Vec<String> = landings.iter().map(|one| one.task.clone()).collect();
        let trunk = self.trunk.name().to_owned();
        let waiting = way.waiting.saturating_sub(tasks.len()) as u64;
        self.team.tell(Fact::GateStarted {
            commit: commit.clone().into(),
            tasks: tasks.clone().into(),
            trunk: trunk.clone().into(),
            waiting,
        });
        self.store.gate_begins(&way.lead, &landings)?;
        self.team.at_gate(true);
        let (store, team) = (&mut self.store, &self.team);
        let keeps = (&way.lead, &self.holder, self.rules.lease);
        let judged = keeping_lead(&mut **store, keeps, || gate.judge(&commit, team.hurries()));
        self.team.at_gate(false);
        self.store.gate_ends(&way.lead)?;
        let judged = match judged {
            Ok(Some(judged)) => judged,
            Ok(None) => return Err(Left::Cancelled),
            Err(end) => return Err(Left::Ends(end)),
        };
        let ok = judged.verdict == Verdict::Green;
        self.team.tell(Fact::GateEnded {
            commit: commit.into(),
            duration_s: judged.took.unwrap_or_default().as_secs_f64(),
            ok,
            output: if ok { String::new() } else { head_and_tail(&judged.output, REASON) }.into(),
            tasks: tasks.into(),
            trunk: trunk.into(),
        });
        Ok(judged)
    }
}

/// Does something that may take longer than a lead holds, and prolongs that meanwhile. If it is lost, what is booked next says so.
fn keeping_lead<T>(
    store: &mut (dyn Store + Send),
    (lead, holder, lease): (&Lead, &Holder, Duration),
    act: impl FnOnce() -> T,
) -> T {
    let (over, is_over) = channel::<()>();
    thread::scope(|scope| {
        let keep = move || {
            while is_over.recv_timeout(lease / 5) == Err(RecvTimeoutError::Timeout) {
                let _ = store.lead(&lead.trunk, holder, lease);
            }
        };
        // Without a thread it holds for its lease alone.
        let _ = threads::start_in(scope, keep);
        let done = act();
        drop(over);
        done
    })
}

/// The claims that made these.
fn claims(landings: &[Landing]) -> Claims {
    let waiting = landings.iter().filter(|one| one.standing == Standing::Waiting);
    waiting.map(Landing::reference).collect()
}

/// However it ends, nothing waits for it any more.
impl Drop for Lander {
    fn drop(&mut self) {
        self.team.stands(Standstill::Ended);
    }
}
