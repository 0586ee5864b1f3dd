//! Where the graph of a run is: in the project's file, or on a server that many machines work with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::commands::graph_file;
use crate::commands::output::remark;
use crate::engine::outcome::{End, Outcome};
use crate::graph::postgres::{Address, PASSWORDS, PostgresStore};
use crate::graph::sqlite::SqliteStore;
use crate::graph::{GraphError, Patience, Store};
use crate::job::Refused;
use crate::job::signals::Signals;
use crate::process;
use crate::project::Project;
use crate::settings::Settings;
use crate::source::tasks::{Graph, Lease};
use crate::text::duration::format;

/// How long a lander in another pid namespace of this machine keeps the lead.
const LEAD: Duration = Duration::from_mins(20);

/// The graph of a run.
pub(super) enum RunGraph<'a> {
    /// The project's file.
    File(&'a Project),
    /// On a server.
    Server(Box<Server>),
}

/// A graph on a server, and how it is worked with.
pub(super) struct Server {
    pub(super) address: Address,
    pub(super) lease: Lease,
    /// How long it is waited for when it is away.
    pub(super) longest: Duration,
    /// Heard from here on: what places workers may end one at any time, and a first process is not ended by signals otherwise.
    pub(super) signals: Signals,
}

impl<'a> RunGraph<'a> {
    /// The graph that is meant. `works`: it is to be worked on: where it is on a server, that is waited for, and signals are heard from
    /// here on.
    pub(super) fn find(
        flag: Option<&str>,
        settings: &Settings,
        project: &'a Project,
        works: bool,
    ) -> anyhow::Result<Self> {
        Ok(match graph_file::address(flag, settings)? {
            None => Self::File(project),
            Some(address) => {
                process::withhold(&PASSWORDS);
                Self::Server(Box::new(Server {
                    address,
                    lease: Lease { length: settings.lease, counts_here: true },
                    longest: if works { settings.max_limit_wait } else { Duration::ZERO },
                    signals: if works { Signals::listen()? } else { Signals::default() },
                }))
            }
        })
    }

    /// The graph on a server; `None`: it is a file.
    pub(super) fn server(&self) -> Option<&Server> {
        match self {
            Self::File(_) => None,
            Self::Server(server) => Some(server),
        }
    }

    /// Opens it; `None`: there is none.
    pub(super) fn open(&self) -> anyhow::Result<Option<Box<dyn Store + Send>>> {
        match self {
            Self::File(project) if project.graph().symlink_metadata().is_err() => Ok(None),
            Self::File(_) => self.existing().map(Some),
            Self::Server(server) => Ok(server.open()?.map(|store| Box::new(store) as _)),
        }
    }

    /// One that is empty, and kept nowhere.
    pub(super) fn none() -> anyhow::Result<Box<dyn Store + Send>> {
        Ok(Box::new(SqliteStore::nowhere()?))
    }

    /// Opens it.
    pub(super) fn existing(&self) -> anyhow::Result<Box<dyn Store + Send>> {
        Ok(match self {
            Self::File(project) => Box::new(graph_file::opened_for_run(project)?),
            Self::Server(server) => Box::new(server.known()),
        })
    }

    /// It, as a loop asks it.
    pub(super) fn asked(&self) -> anyhow::Result<Graph> {
        let Self::Server(server) = self else { return Ok(Graph::new(self.existing()?, Lease::default())?) };
        let patience = Arc::new(Patience::of(server.longest));
        let store = Box::new(server.known().patient(Arc::clone(&patience)));
        let away = (server.longest, Box::new(move || patience.waits()) as _);
        Ok(Graph::waiting(store, server.lease, away)?)
    }

    /// It, as the lander asks it, until the user wants to leave.
    pub(super) fn landed_on(&self, leaves: &Arc<AtomicBool>) -> anyhow::Result<Box<dyn Store + Send>> {
        let Self::Server(server) = self else { return self.existing() };
        // A Ctrl+C ends the wait for a server that is away at once; what is handed in lands where it is there.
        let ends = [leaves, server.signals.has_come()].map(Arc::clone);
        let patience = Patience::until_set(server.longest, ends);
        Ok(Box::new(server.known().patient(Arc::new(patience))))
    }

    /// How long the lead on a trunk holds.
    pub(super) fn lead(&self) -> Duration {
        self.server().map_or(LEAD, |server| server.lease.length)
    }
}

impl Server {
    /// Refuses a clone of another repository than the one that the graph is of.
    pub(super) fn require_repository(&self, first_commit: &str) -> anyhow::Result<()> {
        self.ask(|| self.known().require_repository(first_commit))
    }

    fn open(&self) -> anyhow::Result<Option<PostgresStore>> {
        self.ask(|| PostgresStore::open(self.address.clone()))
    }

    /// Asks it before anything has begun. If it has no connection left, it is waited for, and a message says so.
    fn ask<T>(&self, ask: impl Fn() -> Result<T, GraphError>) -> anyhow::Result<T> {
        let patience = Patience::until_set(self.longest, [Arc::clone(self.signals.has_come())]);
        let mut tries = 0;
        loop {
            let full = match ask() {
                Err(_) if self.signals.count() > 0 => return Err(interrupted()),
                Err(full @ GraphError::ServerFull { .. }) if !self.longest.is_zero() => full,
                answer => return answer.map_err(refused),
            };
            if tries == 0 {
                remark(&format!("waiting for the store, at most {}: {full}", format(self.longest)));
            }
            if !patience.wait(&mut tries, "", &AtomicBool::new(false)) {
                return Err(if self.signals.count() > 0 { interrupted() } else { refused(full) });
            }
        }
    }

    /// Another view of it, once it was opened.
    pub(super) fn known(&self) -> PostgresStore {
        PostgresStore::at(self.address.clone())
    }
}

/// A run that a signal has ended before it has begun.
pub(super) fn interrupted() -> anyhow::Error {
    Refused::from(End::from(Outcome::Interrupted)).into()
}

/// A run that cannot begin for what may pass ends with the code that it would have later; else with that of what a person has to
/// see to.
fn refused(error: GraphError) -> anyhow::Error {
    if error.passes() { Refused::from(End::from(error)).into() } else { error.into() }
}
