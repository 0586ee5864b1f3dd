//! A run as one of the workers of a graph on a server: it says what it is at, and hears what others have spent, met and asked.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;

use crate::engine::board::Board;
use crate::engine::budget::Spent;
use crate::engine::stop::{Ask, Request};
use crate::graph::postgres::{Heard, PostgresStore, Said};
use crate::job::signals::Signals;
use crate::landing::Team;
use crate::memory::knowledge::{self, Knowledge};
use crate::text::jitter;

/// How often it reports: a request reaches it within ten seconds.
const REPORT: Duration = Duration::from_secs(6);

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
    /// What this run has said it has spent.
    pub(super) told: Spent,
    /// What all had spent when it began.
    pub(super) before: Option<Spent>,
    /// Where what agents have found out is kept here.
    pub(super) knowledge: PathBuf,
    /// What is still to be told of that.
    pub(super) found: Vec<Knowledge>,
    /// The numbers of what others have found out that is kept here.
    pub(super) known: BTreeSet<i64>,
}

impl Member {
    /// Reports until the run is over.
    pub(super) fn run(mut self) {
        loop {
            // A server that is away is told by the loops.
            self.report();
            if !self.team.goes_on_for(jitter::around(REPORT)) {
                break;
            }
        }
        self.report();
        let _ = self.store.leave(&self.run);
    }

    /// Says what it is at, and hears the others.
    pub(super) fn report(&mut self) {
        self.found.extend(self.team.take_found());
        let spent = self.board.spent_beside();
        let tasks = self.team.tasks();
        let said = Said {
            run: &self.run,
            machine: &self.machine,
            tasks: &tasks,
            logs: &self.logs,
            login: &self.login,
            closed_until: self.board.closed_until(Utc::now(), Instant::now()),
            spent: (
                (spent.cost_usd - self.told.cost_usd).max(0.0),
                spent.tokens.saturating_sub(self.told.tokens),
            ),
            found: &self.found,
            known: self.known.last().copied().unwrap_or_default(),
        };
        if let Ok(heard) = self.store.report(&said) {
            self.told = spent;
            self.found.clear();
            self.hear(heard);
        }
    }

    fn hear(&mut self, heard: Heard) {
        let all = Spent { cost_usd: heard.spent.0, tokens: heard.spent.1 };
        let before = *self.before.get_or_insert(all.without(self.told));
        self.board.note(all.without(before).without(self.told));
        if let Some(until) = heard.closed_until {
            self.board.close(until, Utc::now(), Instant::now());
        }
        for (number, found) in heard.found {
            // What cannot be written is tried again with the next ones.
            if !self.known.contains(&number) && knowledge::keep(&self.knowledge, found).is_ok() {
                self.known.insert(number);
            }
        }
        for ask in heard.asks {
            // One of a later release is not known here.
            if let Ok(request) = serde_json::from_str::<Request>(&ask) {
                self.signals.pass(&Ask::Request(request));
            }
        }
    }
}
