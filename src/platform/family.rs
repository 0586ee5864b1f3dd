//! The processes that belong together: what a program has started, and what that has left behind.
//!
//! With the Linux backend, orphans become children of the supervisor, so that descent alone finds all of them. With
//! the portable one they become children of init. There a family remembers the processes that it has seen, finds
//! those that are in a session or a group which one of them leads, and those that carry the mark.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::backend::is_portable;
use super::mark::Mark;
use super::stat::{Stat, ticks_now};

/// How long processes that appear are stopped before all are killed.
const FREEZING: Duration = Duration::from_secs(1);
/// A process this old is no longer just being started, with an environment that cannot be read yet.
const SETTLED: u64 = 100;

/// Processes that belong together, as far as they have been seen.
#[derive(Debug)]
pub struct Family {
    /// The process that they descend from, which is not one of them; `None`: only the mark counts.
    root: Option<u32>,
    /// The session and group that count as a whole, where the root leads them.
    session: Option<u32>,
    mark: Option<Mark>,
    /// When the root was started. What carries its mark and is older got it from another one with its pid.
    since: u64,
    /// Processes that are not part of it although they descend from it.
    apart: Vec<u32>,
    /// The members, by pid, with the time of their start.
    known: HashMap<u32, u64>,
    /// The sessions and groups that members lead or have led.
    led: HashSet<u32>,
    /// Processes that were looked at and do not carry the mark.
    strangers: HashMap<u32, u64>,
}

/// How many looks in a row must find nothing until nothing is left. With the portable backend a process that forks and exits at once
/// can escape one look, because it is replaced by another one meanwhile.
#[must_use]
pub fn enough_looks() -> usize {
    if is_portable() { 3 } else { 1 }
}

impl Family {
    /// What descends from `root`; with the portable backend also what carries `mark`.
    #[must_use]
    pub fn below(root: u32, mark: Option<Mark>) -> Self {
        let mark = mark.filter(|mark| is_portable() && !mark.is_empty());
        let since = mark.as_ref().and_then(|_| Stat::read(root)).map_or(0, |root| root.start_ticks);
        Self { root: Some(root), mark, since, ..Self::empty() }
    }

    /// With what is in the session that the root leads, and in its group. Only for one that ralph has made: a shell
    /// makes ralph the leader of a whole pipeline, or is replaced by it.
    #[must_use]
    pub fn and_of_its_session(self) -> Self {
        Self { session: self.root, ..self }
    }

    /// What carries `mark`.
    #[must_use]
    pub fn carriers(mark: Mark) -> Self {
        Self { mark: Some(mark).filter(|mark| !mark.is_empty()), ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            root: None,
            session: None,
            mark: None,
            since: 0,
            apart: vec![std::process::id()],
            known: HashMap::new(),
            led: HashSet::new(),
            strangers: HashMap::new(),
        }
    }

    /// The family without this process.
    #[must_use]
    pub fn without(mut self, pid: Option<u32>) -> Self {
        self.apart.extend(pid);
        self
    }

    /// Another process is apart from the family now instead of this one, which has ended: its pid is free.
    pub fn replace_apart(&mut self, ended: u32, by: Option<u32>) {
        self.apart.retain(|pid| *pid != ended);
        self.apart.extend(by);
    }

    /// The living members, parents before children as a rule.
    pub fn look(&mut self) -> Vec<Stat> {
        if let Some(root) = self.root.filter(|_| !is_portable()) {
            return self.descendants(root);
        }
        let mut found = Vec::new();
        self.visit(|stat| found.push(stat.clone()));
        if self.root.is_some() {
            // A child with a lower pid than its parent's was missed.
            let mut before = 0;
            while before < self.known.len() {
                before = self.known.len();
                self.visit(|stat| {
                    if !found.iter().any(|known| known.pid == stat.pid) {
                        found.push(stat.clone());
                    }
                });
            }
        }
        found
    }

    /// The living members where descent alone counts: each process is read once.
    fn descendants(&mut self, root: u32) -> Vec<Stat> {
        let mut rest: Vec<Stat> = Stat::all().filter(|stat| !self.apart.contains(&stat.pid)).collect();
        let mut found = Vec::new();
        self.known.clear();
        loop {
            let before = rest.len();
            rest.retain(|stat| {
                let is_member =
                    stat.pid != root && (stat.ppid == root || self.known.contains_key(&stat.ppid));
                if is_member {
                    self.known.insert(stat.pid, stat.start_ticks);
                    found.push(stat.clone());
                }
                !is_member
            });
            // A child with a lower pid than its parent's is found by the next turn.
            if rest.len() == before {
                break;
            }
        }
        found.retain(|stat| !stat.is_dead());
        found
    }

    /// Passes the living members to `take`, each as soon as it is found: a process that forks and exits repeatedly
    /// would be replaced by another one during a complete search. A parent is usually found before its children, as
    /// pids grow; a child that is missed is found by the next visit.
    pub fn visit(&mut self, mut take: impl FnMut(&Stat)) {
        let mut seen = HashSet::new();
        let mut inhabited = HashSet::new();
        for stat in Stat::all() {
            if self.apart.contains(&stat.pid) || Some(stat.pid) == self.root || !self.has(&stat) {
                continue;
            }
            seen.insert(stat.pid);
            inhabited.extend([stat.group, stat.session]);
            if is_portable() {
                self.led.extend([stat.group, stat.session].into_iter().filter(|id| *id == stat.pid));
            }
            self.known.insert(stat.pid, stat.start_ticks);
            if !stat.is_dead() {
                take(&stat);
            }
        }
        self.known.retain(|pid, _| seen.contains(pid));
        // The number of an empty group may be given to another process.
        self.led.retain(|id| inhabited.contains(id));
    }

    fn has(&mut self, stat: &Stat) -> bool {
        if self.known.get(&stat.pid).is_some_and(|start| *start != stat.start_ticks) {
            self.known.remove(&stat.pid);
            self.led.remove(&stat.pid);
        }
        let descends = Some(stat.ppid) == self.root || self.known.contains_key(&stat.ppid);
        if descends && self.root.is_some() || is_portable() && self.is_near(stat) {
            return true;
        }
        let Some(mark) = &self.mark else { return false };
        if is_portable() && self.strangers.get(&stat.pid) == Some(&stat.start_ticks) {
            return false;
        }
        let is_member = stat.start_ticks >= self.since && mark.is_carried_by(stat);
        if !is_member && is_portable() && stat.start_ticks + SETTLED < ticks_now() {
            self.strangers.insert(stat.pid, stat.start_ticks);
        }
        is_member
    }

    /// Whether the process was seen as a member, descends from one, or is in a session or group of theirs.
    fn is_near(&self, stat: &Stat) -> bool {
        let is_ours = |id: u32| id != 0 && (Some(id) == self.session || self.led.contains(&id));
        self.known.contains_key(&stat.pid)
            || self.known.contains_key(&stat.ppid)
            || is_ours(stat.session)
            || is_ours(stat.group)
    }

    /// Whether nothing is left, for certain as far as this backend can tell.
    pub fn is_gone(&mut self) -> bool {
        (0..enough_looks()).all(|_| self.look().is_empty())
    }

    /// Sends KILL to all members but those that are spared.
    pub fn kill(&mut self, spares: impl Fn(&Stat) -> bool) {
        if is_portable() {
            self.freeze(&spares);
        }
        self.visit(|stat| {
            if !spares(stat) {
                send(stat.pid, Signal::KILL);
            }
        });
    }

    /// Stops each member as soon as it is found, until two looks find no new one: nothing that is stopped can fork
    /// while the others are searched.
    fn freeze(&mut self, spares: &impl Fn(&Stat) -> bool) {
        let began = Instant::now();
        let mut stopped = HashSet::new();
        let mut halted: HashSet<u32> = HashSet::new();
        let mut quiet = 0;
        while quiet < 2 && began.elapsed() < FREEZING {
            let (mut groups, mut exempt) = (HashSet::new(), HashSet::new());
            let before = stopped.len();
            self.visit(|stat| {
                if spares(stat) {
                    exempt.insert(stat.group);
                    if halted.contains(&stat.group) {
                        // It was not seen before its group was stopped.
                        send(stat.pid, Signal::CONT);
                    }
                } else if stopped.insert((stat.pid, stat.start_ticks)) {
                    send(stat.pid, Signal::STOP);
                    groups.insert(stat.group);
                }
            });
            // The kernel stops a group as a whole: no fork in it can be between.
            let whole = |group: &u32| self.led.contains(group) && !exempt.contains(group);
            for group in groups.into_iter().filter(whole) {
                halted.insert(group);
                let _ = Pid::from_raw(i32::try_from(group).unwrap_or_default())
                    .map(|group| kill_process_group(group, Signal::STOP));
            }
            quiet = if stopped.len() == before { quiet + 1 } else { 0 };
        }
    }
}

/// Sends a signal to a process; one that has ended meanwhile needs none.
pub fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
