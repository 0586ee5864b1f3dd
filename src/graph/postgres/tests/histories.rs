//! Workers and landers on 64 connections at one graph on a real server, as the simulation in `source/tasks` has them on a model: claims
//! run out, answers are lost, bookings come too late or with another nonce, and landers stop between push and booking.

mod checks;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::postgres_server::PostgresServer;
use super::proxy::{Way, What, proxy};
use super::{chance, open};
use crate::graph::postgres::{Address, PostgresStore};
use crate::graph::suite::us;
use crate::graph::{
    Claim, Ended, GraphError, Holder, HowDone, Landing, Lead, Made, NewTask, Scope, Standing, Store as _,
};
use crate::text::jitter;

const CONNECTIONS: u64 = 64;
const LANDERS: u64 = 4;
const TASKS: usize = 200;
/// How many landings are brought onto the trunk together.
const BATCH: usize = 16;
/// How long a claim and a lead hold.
const LEASE: Duration = Duration::from_millis(500);
const LEAD: Duration = Duration::from_millis(300);
/// How long a connection waits at first that has nothing to do.
const PAUSE: Duration = Duration::from_millis(50);
/// How long all of it may take.
const LONGEST: Duration = Duration::from_mins(2);

/// The trunk of a remote: its tip moves by compare-and-swap.
#[derive(Default)]
struct Trunk {
    tip: usize,
    /// The claims whose work it has, each with the tip that brought it.
    landed: Vec<(Claim, usize)>,
}

impl Trunk {
    /// The tip that brought the work of a claim.
    fn has(&self, claim: &Claim) -> Option<usize> {
        self.landed.iter().find(|(landed, _)| landed == claim).map(|(_, tip)| *tip)
    }
}

/// What the store has answered.
#[derive(Default)]
struct Answers {
    claimed: Vec<Claim>,
    released: Vec<Claim>,
    completed: Vec<Claim>,
    handed_in: Vec<Claim>,
    returned: Vec<Claim>,
    /// Booked as landed, each with the commit.
    landed: Vec<(Claim, String)>,
    refused: usize,
    leads_lost: usize,
}

/// What all connections share.
struct Shared {
    trunk: Mutex<Trunk>,
    answers: Mutex<Answers>,
    began: Instant,
    /// A check of one connection has failed.
    has_failed: AtomicBool,
}

impl Shared {
    fn trunk(&self) -> MutexGuard<'_, Trunk> {
        self.trunk.lock().unwrap()
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap()
    }
}

/// One connection, with its chance.
struct Client<'a> {
    store: PostgresStore,
    holder: Holder,
    state: u64,
    shared: &'a Shared,
}

impl Client<'_> {
    /// Once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        chance(&mut self.state, times) == 0
    }

    /// Waits about so long if there is nothing to do now; returns whether all tasks are done.
    fn rests(&mut self, pause: Duration) -> bool {
        assert!(!self.shared.has_failed.load(Ordering::SeqCst), "another connection has failed");
        assert!(self.shared.began.elapsed() < LONGEST, "the tasks do not end");
        if usize::try_from(self.store.counts(&Scope::All).unwrap().done) == Ok(TASKS) {
            return true;
        }
        thread::sleep(jitter::around(pause));
        false
    }

    /// Works until all tasks are done.
    fn work(mut self) {
        let mut pause = PAUSE;
        loop {
            let (mut claimed, mut sent) = (None, Instant::now());
            if self.once_in(2) {
                claimed = self.store.claim_returned(&Scope::All, &self.holder, LEASE).unwrap();
            }
            if claimed.is_none() {
                sent = Instant::now();
                claimed = self.store.claim(&Scope::All, &self.holder, LEASE).unwrap();
            }
            match claimed {
                Some(claim) => {
                    pause = PAUSE;
                    self.shared.answers().claimed.push(claim.clone());
                    if let Err(error) = self.work_on(&claim, &mut sent) {
                        // It may have been taken back only after its lease.
                        assert!(matches!(error, GraphError::ClaimLost { .. }), "{error}");
                        assert!(sent.elapsed() >= LEASE, "{claim:?} is lost after {:?}", sent.elapsed());
                        self.shared.answers().refused += 1;
                    }
                }
                None if self.rests(pause) => return,
                // Most of them wait for the landers then, which need the processor.
                None => pause = LEASE.min(pause * 2),
            }
        }
    }

    /// Does a claimed task. `sent`: when its lease was asked for last.
    fn work_on(&mut self, claim: &Claim, sent: &mut Instant) -> Result<(), GraphError> {
        if self.once_in(8) {
            self.is_refused(&Claim { nonce: "0".repeat(16), ..claim.clone() });
        }
        if self.once_in(8) {
            let now = Instant::now();
            self.store.renew(claim, LEASE)?;
            *sent = now;
        }
        if self.once_in(30) {
            thread::sleep(LEASE * 3 / 2);
        }
        let made = Made { trunk: "main".into(), base: "base".into(), head: head(claim) };
        if self.once_in(2) {
            self.store.keep(claim, &made)?;
        }
        match chance(&mut self.state, 10) {
            0 => {
                self.store.release(claim, "")?;
                self.shared.answers().released.push(claim.clone());
            }
            1 => {
                assert_eq!(self.store.complete(claim, HowDone::default())?, Ended::Done);
                self.shared.answers().completed.push(claim.clone());
            }
            _ => {
                assert_eq!(self.store.queue(claim, &made, HowDone::default())?, Ended::Queued);
                self.shared.answers().handed_in.push(claim.clone());
            }
        }
        if self.once_in(4) {
            self.is_refused(claim);
        }
        Ok(())
    }

    /// Books with a claim that does not hold, which has to be refused.
    fn is_refused(&mut self, claim: &Claim) {
        let made = Made { trunk: "main".into(), base: "base".into(), head: "wrong".into() };
        let answer = match chance(&mut self.state, 5) {
            0 => self.store.renew(claim, LEASE),
            1 => self.store.keep(claim, &made),
            2 => self.store.release(claim, "wrong"),
            3 => self.store.complete(claim, HowDone::default()).map(drop),
            _ => self.store.queue(claim, &made, HowDone::default()).map(drop),
        };
        assert!(matches!(answer, Err(GraphError::ClaimLost { .. })), "{claim:?}: {answer:?}");
    }

    /// Lands until all tasks are done.
    fn land(mut self) {
        let (name, mut starts) = (self.holder.run.clone(), 0);
        loop {
            match self.round() {
                // Its process was killed, and another one is started.
                Ok(true) => {
                    starts += 1;
                    self.holder = us(&format!("{name}-{starts}"));
                }
                Ok(false) if self.rests(PAUSE) => return,
                Ok(false) => {}
                Err(error) => {
                    assert!(matches!(error, GraphError::LeadLost { .. }), "{error}");
                    self.shared.answers().leads_lost += 1;
                }
            }
        }
    }

    /// One round of landing; returns whether its process is killed in it.
    fn round(&mut self) -> Result<bool, GraphError> {
        let waiting: Vec<Landing> = self.waiting();
        if waiting.is_empty() {
            return Ok(false);
        }
        let Some(lead) = self.store.lead("main", &self.holder, LEAD)? else { return Ok(false) };
        let tip = self.shared.trunk().tip;
        if self.once_in(20) {
            thread::sleep(LEAD * 3 / 2);
        }
        let mut candidate = Vec::new();
        for one in waiting.into_iter().take(BATCH) {
            let landed = self.shared.trunk().has(&claim_of(&one));
            if let Some(tip) = landed {
                self.book(&lead, &one, tip)?;
            } else if self.once_in(10) {
                if let Some(ended) = self.store.give_back(&lead, &one, "red", u32::MAX)? {
                    assert_eq!(ended, Ended::Returned);
                    self.shared.answers().returned.push(claim_of(&one));
                }
            } else {
                candidate.push(one);
            }
        }
        let waiting: Vec<Claim> = self.waiting().iter().map(claim_of).collect();
        candidate.retain(|one| waiting.contains(&claim_of(one)));
        let Some(tip) = self.push(tip, &candidate) else { return Ok(false) };
        if self.once_in(10) {
            return Ok(true);
        }
        for one in &candidate {
            self.book(&lead, one, tip)?;
        }
        Ok(false)
    }

    /// What waits to land.
    fn waiting(&self) -> Vec<Landing> {
        let all = self.store.landings().unwrap().into_iter();
        all.filter(|one| one.standing == Standing::Waiting).collect()
    }

    /// Moves the tip of the trunk from this one; returns the new one, unless another lander was faster.
    fn push(&self, tip: usize, candidate: &[Landing]) -> Option<usize> {
        let mut trunk = self.shared.trunk();
        if trunk.tip != tip {
            return None;
        }
        trunk.tip += 1;
        let tip = trunk.tip;
        trunk.landed.extend(candidate.iter().map(|one| (claim_of(one), tip)));
        Some(tip)
    }

    fn book(&mut self, lead: &Lead, one: &Landing, tip: usize) -> Result<(), GraphError> {
        let commit = format!("tip-{tip}");
        if self.store.land(lead, one, "tip", &commit)? {
            self.shared.answers().landed.push((claim_of(one), commit));
        }
        Ok(())
    }
}

/// The others do not wait for the tasks of a connection that has failed.
impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.shared.has_failed.fetch_or(thread::panicking(), Ordering::SeqCst);
    }
}

/// The last commit for a claim.
fn head(claim: &Claim) -> String {
    format!("{}-{}", claim.fence, claim.nonce)
}

fn claim_of(landing: &Landing) -> Claim {
    Claim { task: landing.task.clone(), fence: landing.fence, nonce: landing.nonce.clone() }
}

/// Adds the tasks; every seventh waits for the one before it.
fn add_tasks(store: &mut PostgresStore) -> Vec<String> {
    let mut tasks: Vec<String> = Vec::new();
    for number in 0..TASKS {
        let after = tasks.last().filter(|_| number % 7 == 6).cloned().into_iter().collect();
        let task = NewTask { title: format!("task {number}"), after, ..NewTask::default() };
        tasks.push(store.add(&task).unwrap());
    }
    tasks
}

#[test]
fn on_64_connections_each_task_is_done_once_and_nothing_handed_in_is_missing() {
    let server = PostgresServer::start(&["max_connections=200"]);
    let mut first = open(&server, "histories");
    let tasks = add_tasks(&mut first);
    let (asked, seed) = (AtomicU64::new(0), 7);
    let port = proxy(&server, move |commits| {
        let mut state = seed + asked.fetch_add(1, Ordering::SeqCst);
        match (chance(&mut state, if commits { 50 } else { 500 }), chance(&mut state, 2)) {
            (0, 0) => Some((Way::Request, What::Cut)),
            (0, _) => Some((Way::Answer, What::Cut)),
            _ => None,
        }
    });
    let address = format!("postgres://ralph@127.0.0.1:{port}/postgres?schema=histories");
    let shared = Shared {
        trunk: Mutex::default(),
        answers: Mutex::default(),
        began: Instant::now(),
        has_failed: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            let (address, shared) = (&address, &shared);
            scope.spawn(move || {
                let store = PostgresStore::create(Address::read(address).unwrap()).unwrap();
                let holder = us(&format!("run-{number}"));
                let client = Client { store, holder, state: seed * CONNECTIONS + number, shared };
                if number < LANDERS { client.land() } else { client.work() }
            });
        }
    });
    checks::check(&first, &tasks, &shared);
}
