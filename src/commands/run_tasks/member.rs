//! A run as one of the workers of a graph on a server: it says what it is at, and hears what others have spent, met and asked.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use crate::engine::board::Board;
use crate::engine::budget::Spent;
use crate::engine::stop::{Ask, Request};
use crate::graph::postgres::{Heard, PostgresStore, Said};
use crate::job::signals::Signals;
use crate::landing::Team;
use crate::memory::knowledge::{self, Knowledge};
use crate::text::jitter;

/// How often it looks whether it is asked something: a request reaches it within ten seconds.
const LOOK: Duration = Duration::from_secs(6);
/// How often it reports at least, if nothing has changed: those that are not heard of for two minutes count as lost.
const REPORT: Duration = Duration::from_mins(1);
/// How often old notes of the store are removed.
const TIDY: Duration = Duration::from_mins(10);
/// Numbers of findings are given before they can be seen: each time after so many reports, so many are looked at again.
const OVERLAP: (u32, i64) = (10, 100);

/// One worker.
pub(super) struct Member {
    pub(super) store: PostgresStore,
    pub(super) team: Arc<Team>,
    /// A place of its own, for what the others spend.
    pub(super) board: Board,
    pub(super) signals: Signals,
    pub(super) run: String,
    pub(super) machine: String,
    pub(super) logs: String,
    /// What agents are called that share a usage limit.
    pub(super) login: String,
    /// What it has said last, and when.
    pub(super) told: Told,
    /// The number of the last request that it has heard.
    pub(super) heard: i64,
    /// What all had spent when it began.
    pub(super) before: Option<Spent>,
    /// Where what agents have found out is kept here.
    pub(super) knowledge: PathBuf,
    /// What is still to be told of that.
    pub(super) found: Vec<Knowledge>,
    /// The numbers of what others have found out that is kept here.
    pub(super) known: BTreeSet<i64>,
}

/// What a worker has said.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// What this run had spent.
    spent: Spent,
    tasks: Vec<String>,
    closed_until: Option<DateTime<Utc>>,
    at: Option<Instant>,
    /// How many times.
    count: u32,
}

impl Member {
    /// Reports until the run is over.
    pub(super) fn run(mut self) {
        let (mut tidied, mut question) = (Instant::now(), 0);
        loop {
            // A server that is away is told by the loops.
            if self.has_news() || self.store.is_asked(&self.run).unwrap_or_default() {
                self.report();
            }
            self.team.has_reported(question);
            if tidied.elapsed() > TIDY {
                tidied = Instant::now();
                let _ = self.store.tidy();
            }
            match self.team.next_report(jitter::around(LOOK)) {
                Some(asked) => question = asked,
                None => break,
            }
        }
        self.report();
        let _ = self.store.leave(&self.run);
    }

    /// Whether there is something to say, if only that it is still there.
    fn has_news(&mut self) -> bool {
        self.found.extend(self.team.take_found());
        let told = &self.told;
        told.at.is_none_or(|at| at.elapsed() > REPORT)
            || !self.found.is_empty()
            || told.spent != self.board.spent_beside()
            || told.tasks != self.team.tasks()
            // It is known to some milliseconds.
            || told.closed_until.map(|until| until.timestamp()) != self.closed_until().map(|until| until.timestamp())
    }

    fn closed_until(&self) -> Option<DateTime<Utc>> {
        self.board.closed_until(&self.login, Utc::now(), Instant::now())
    }

    /// Says what it is at, and hears the others; again, to say that it has heard what it is asked.
    pub(super) fn report(&mut self) {
        while self.report_once() {}
    }

    /// Returns whether it was asked something.
    fn report_once(&mut self) -> bool {
        self.found.extend(self.team.take_found());
        let spent = self.board.spent_beside();
        let (tasks, closed_until) = (self.team.tasks(), self.closed_until());
        let known = self.known.last().copied().unwrap_or_default();
        let (often, overlap) = OVERLAP;
        let said = Said {
            run: &self.run,
            machine: &self.machine,
            tasks: &tasks,
            logs: &self.logs,
            login: &self.login,
            closed_until,
            spent: (spent.dollars(), spent.tokens()),
            told: (self.told.spent.dollars(), self.told.spent.tokens()),
            found: &self.found,
            known: if self.told.count.is_multiple_of(often) { known - overlap } else { known },
            heard: self.heard,
        };
        let Ok(heard) = self.store.report(&said) else { return false };
        let (at, count) = (Some(Instant::now()), self.told.count + 1);
        self.told = Told { spent, tasks, closed_until, at, count };
        self.found.clear();
        self.hear(heard)
    }

    fn hear(&mut self, heard: Heard) -> bool {
        // The server has one count of all tokens.
        let counted = |(cost, tokens)| Spent::reported(Some(cost), Some(tokens), None);
        let all = counted(heard.spent);
        let own = counted((self.told.spent.dollars(), self.told.spent.tokens()));
        let before = *self.before.get_or_insert(all.without(own));
        self.board.note(all.without(before).without(own));
        if let Some(until) = heard.closed_until {
            self.board.close(&self.login, until, Utc::now(), Instant::now());
        }
        for (number, found) in heard.found {
            // What cannot be written is tried again with the next ones.
            if !self.known.contains(&number) && knowledge::keep(&self.knowledge, found).is_ok() {
                self.known.insert(number);
            }
        }
        let asks: Vec<(i64, String)> =
            heard.asks.into_iter().filter(|(number, _)| *number > self.heard).collect();
        self.heard = asks.last().map_or(self.heard, |(number, _)| *number);
        for (_, ask) in &asks {
            // One of a later release is not known here.
            if let Ok(request) = serde_json::from_str::<Request>(ask) {
                self.signals.pass(&Ask::Request(request));
            }
        }
        !asks.is_empty()
    }
}
