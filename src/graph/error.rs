//! Errors of the graph and its store.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::task::Status;

/// Why an operation on the graph was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// There is no such task.
    #[error("no task '{id}'{hint}: 'ralph task list --all' shows all", hint = meant(.nearest.as_deref()))]
    UnknownTask {
        /// The id as given.
        id: String,
        /// The nearest existing id.
        nearest: Option<String>,
    },
    /// More than one task has an id with this prefix.
    #[error("several tasks begin with '{prefix}': {some}: give more of the id")]
    AmbiguousTask {
        /// The prefix as given.
        prefix: String,
        /// Some of the matching ids.
        some: String,
    },
    /// There is no such feature.
    #[error("no feature '{name}'{hint}: add it with 'ralph feature add'", hint = meant(.nearest.as_deref()))]
    UnknownFeature {
        /// The name as given.
        name: String,
        /// The nearest existing name.
        nearest: Option<String>,
    },
    /// A state change that is not legal.
    #[error("{id} is {from} and cannot become {to}: {advice}", from = .from.word(), to = .to.word())]
    Illegal {
        /// The task.
        id: String,
        /// Its state.
        from: Status,
        /// The state it was to get.
        to: Status,
        /// What the user can do.
        advice: &'static str,
    },
    /// The state of a task with parts follows from its parts.
    #[error("{id} is {from} and cannot become {to}: it has parts, and is what they make it: see 'ralph task tree {id}'", from = .from.word(), to = .to.word())]
    HasParts {
        /// The task.
        id: String,
        /// Its state.
        from: Status,
        /// The state it was to get.
        to: Status,
    },
    /// The task is claimed.
    #[error("{id} is in_progress, claimed by {by}: {advice}")]
    Claimed {
        /// The task.
        id: String,
        /// The run at work on it.
        by: String,
        /// What to do.
        advice: &'static str,
    },
    /// The task waits to land.
    #[error("{id} is landing: wait for that, or take it as it is with --force, which lands nothing")]
    Landing {
        /// The task.
        id: String,
    },
    /// Another process lands on the trunk now.
    #[error("the lead on {trunk} is lost: another run lands there, and nothing is booked")]
    LeadLost {
        /// The trunk.
        trunk: String,
    },
    /// Another run holds the claim now.
    #[error("the claim on {id} is lost: it was taken back, and nothing is booked")]
    ClaimLost {
        /// The task.
        id: String,
    },
    /// The dependency would close a cycle.
    #[error("{blocked} cannot wait for {blocker}: that is a cycle, {path}: leave one of these out")]
    Cycle {
        /// The task that was to wait.
        blocked: String,
        /// The task it was to wait for.
        blocker: String,
        /// The ids along the cycle.
        path: String,
    },
    /// A task cannot wait for itself.
    #[error("{id} cannot wait for itself: name another task")]
    SelfDependency {
        /// The task.
        id: String,
    },
    /// A task cannot wait for what it is a part of, nor for its own parts.
    #[error("{blocked} cannot wait for {blocker}: one is a part of the other")]
    Kin {
        /// The task that was to wait.
        blocked: String,
        /// The task it was to wait for.
        blocker: String,
    },
    /// The dependency is already there.
    #[error("{blocked} waits for {blocker} already")]
    DuplicateDependency {
        /// The task that waits.
        blocked: String,
        /// The task it waits for.
        blocker: String,
    },
    /// There is no such dependency.
    #[error(
        "{blocked} does not wait for {blocker}: 'ralph task deps list {blocked}' shows what it waits for"
    )]
    NoDependency {
        /// The task.
        blocked: String,
        /// The other task.
        blocker: String,
    },
    /// Other tasks wait for a task that is to be deleted.
    #[error("{id} blocks {some}: remove that with 'ralph task deps rm' first")]
    Blocks {
        /// The task.
        id: String,
        /// Some of the waiting tasks.
        some: String,
    },
    /// A task with parts can only be deleted together with them.
    #[error("{id} has parts, {some}: delete them with it by --recursive")]
    Parts {
        /// The task.
        id: String,
        /// Some of them.
        some: String,
    },
    /// A value that a task cannot have.
    #[error("{0}")]
    BadValue(String),
    /// The file at the store's path belongs to another program.
    #[error("{path} {what}: it is left as it is: {advice}", path = .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        advice: Cow<'static, str>,
    },
    /// A file of the store was removed or replaced by another program while it was in use.
    #[error("{path}: it was removed or replaced while it was in use: {advice}", path = .path.display())]
    Lost {
        /// The file.
        path: PathBuf,
        /// What was kept, and what to do.
        advice: String,
    },
    /// Another program has damaged the store.
    #[error("{path}: {what}: {advice}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        advice: &'static str,
    },
    /// The store cannot be read or written.
    #[error("{path}: {reason}: {advice}", path = .path.display())]
    Storage {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: String,
        /// What to do.
        advice: &'static str,
    },
    /// The server of the store fails, or cannot be reached.
    #[error("{server}: {reason}: {advice}")]
    Server {
        /// Its address.
        server: String,
        /// What it says.
        reason: String,
        /// What to do.
        advice: &'static str,
        /// Whether that may pass by itself.
        passes: bool,
    },
    /// The server of the store has no connection left.
    #[error("{server}: {reason}: try again, or let the server have more connections")]
    ServerFull {
        /// Its address.
        server: String,
        /// What it says.
        reason: String,
    },
    /// The server of the store cannot be used.
    #[error("{server}: {reason}")]
    Refused {
        /// Its address.
        server: String,
        /// Why, and what to do.
        reason: String,
    },
}

impl GraphError {
    /// Whether the graph at the store's path is unusable: lost, damaged, or of another program.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Foreign { .. } | Self::Lost { .. } | Self::Damaged { .. })
    }

    /// Whether a server is to blame, and that may pass by itself.
    #[must_use]
    pub fn passes(&self) -> bool {
        matches!(self, Self::Server { passes: true, .. } | Self::ServerFull { .. })
    }

    /// Whether a server is to blame.
    #[must_use]
    pub fn is_of_server(&self) -> bool {
        matches!(self, Self::Server { .. } | Self::ServerFull { .. } | Self::Refused { .. })
    }

    /// What another program has done to the store at `path`.
    pub(super) fn damaged(path: &Path, what: &str) -> Self {
        let advice =
            "restore a backup of it, or move it away with its -wal and -shm files and import the tasks again";
        Self::Damaged { path: path.to_owned(), what: what.to_owned(), advice }
    }
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; '{nearest}' is there")).unwrap_or_default()
}
