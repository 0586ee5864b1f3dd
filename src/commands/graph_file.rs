//! Finds and opens the graph for verbs: the file of a project, or one on a server.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use anyhow::{anyhow, bail};

use super::output::remark;
use crate::cli::{GraphArgs, PlaceArgs};
use crate::engine::outcome::End;
use crate::git;
use crate::git::landing::has_commit;
use crate::git::repository::is_shallow;
use crate::graph::postgres::{Address, PostgresStore};
use crate::graph::sqlite::{BUSY_TIMEOUT, SqliteStore};
use crate::graph::{GraphError, Key, Store};
use crate::job::Refused;
use crate::job::ready::place_of;
use crate::job::workspace::{self, locate};
use crate::project::{Project, ProjectError};
use crate::settings::Settings;
use crate::text::count;

/// The environment variable with the feature to which an agent adds tasks.
pub(super) const FEATURE_VARIABLE: &str = "RALPH_FEATURE";
/// What the address of a loop's socket begins with, which agents have in the place of a server's.
pub(super) const SCHEME: &str = "loop:";
/// The setting with the address of a graph on a server.
const STORE: &str = "execution.store";
/// The variable that has it, too.
pub(super) const STORE_VARIABLE: &str = "RALPH_STORE";
/// The folder below the run dir where agents make tasks. A folder of this name is ours alone, with the graph right in it.
pub(super) const DRAFT: &str = "task-draft/.ralph";

/// A graph.
pub(super) enum Opened {
    /// The file of a project, or one that is kept nowhere yet.
    File(SqliteStore),
    /// On a server.
    Server(PostgresStore),
}

impl Opened {
    /// A graph on a server, or an empty one where there is none.
    pub(super) fn on_server(store: Option<PostgresStore>) -> anyhow::Result<Self> {
        Ok(match store {
            Some(store) => Self::Server(store),
            None => Self::File(SqliteStore::nowhere()?),
        })
    }
}

impl Deref for Opened {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::File(store) => store,
            Self::Server(store) => store,
        }
    }
}

impl DerefMut for Opened {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::File(store) => store,
            Self::Server(store) => store,
        }
    }
}

/// The graph on a server that is meant; `None`: the file of the project. If there is none there it is empty, and none is made.
pub(super) fn on_server(args: &GraphArgs) -> anyhow::Result<Option<Opened>> {
    let Some(address) = meant(args)? else { return Ok(None) };
    Opened::on_server(there(address)?).map(Some)
}

/// The graph at an address; if there is none, a message says so.
pub(super) fn there(address: Address) -> anyhow::Result<Option<PostgresStore>> {
    let shown = address.to_string();
    let store = PostgresStore::open(address)?;
    if store.is_none() {
        remark(&format!(
            "{shown}: there is no graph there yet: 'ralph task add' and 'ralph task import' make one"
        ));
    }
    Ok(store)
}

/// Refuses to change the graph of another repository from this one.
fn require_ours(store: &PostgresStore, args: &GraphArgs) -> anyhow::Result<()> {
    let Ok(project) = locate(args.ralph_dir.as_ref()) else { return Ok(()) };
    match store.repository()? {
        Some(known) if !may_be_of(&project, &known) => Err(store.of_another(&known).into()),
        _ => Ok(()),
    }
}

/// Whether a project may be of the repository with this first commit; a folder without git may be of any, and so may a clone that
/// has not all commits.
pub(super) fn may_be_of(project: &Project, first_commit: &str) -> bool {
    let root = project.root();
    !project.in_git() || has_commit(root, first_commit) || is_shallow(root)
}

/// Whether a graph on a server is meant.
pub(super) fn is_on_server(args: &GraphArgs) -> anyhow::Result<bool> {
    Ok(meant(args)?.is_some())
}

/// The address of the graph on a server that is meant.
fn meant(args: &GraphArgs) -> anyhow::Result<Option<Address>> {
    if let Some(text) = &args.store {
        return read("--store", text).map(Some);
    }
    // A draft is a file, wherever the graph is that its tasks are for.
    if locate(args.ralph_dir.as_ref()).is_ok_and(|project| is_draft(&project)) {
        return Ok(None);
    }
    let place = PlaceArgs { ralph_dir: args.ralph_dir.clone(), ..PlaceArgs::default() };
    match workspace::open(&place) {
        Ok(workspace) => address(None, &workspace.settings),
        // They are about other things, too, without which a graph can be worked with; the environment says more.
        Err(error) => {
            let named = std::env::var(STORE_VARIABLE).ok();
            if named.is_none() && args.ralph_dir.is_none() {
                remark(&format!(
                    "the graph in this folder is meant, as the settings cannot be read: {error:#}"
                ));
            }
            named.map(|text| read(STORE_VARIABLE, &text)).transpose()
        }
    }
}

/// The address that was given, or that the settings have. A wrong one is not repeated: it may have a password.
pub(super) fn address(given: Option<&str>, settings: &Settings) -> anyhow::Result<Option<Address>> {
    match (given, &settings.store) {
        (Some(text), _) => read("--store", text).map(Some),
        (None, Some(text)) => read(&place_of(settings, STORE), text).map(Some),
        (None, None) => Ok(None),
    }
}

fn read(place: &str, text: &str) -> anyhow::Result<Address> {
    if text.starts_with(SCHEME) {
        bail!(
            "the graph is on a server, and agents reach it by 'ralph task', 'feature', 'journal' and 'knowledge' only"
        );
    }
    Address::read(text).map_err(|why| anyhow!("{place}: {why}"))
}

/// Opens the graph to change it. If there is none it is empty, and none is made.
pub(super) fn open(args: &GraphArgs) -> anyhow::Result<Opened> {
    let mut store = if let Some(store) = on_server(args)? {
        if let Opened::Server(store) = &store {
            require_ours(store, args)?;
        }
        store
    } else {
        let project = place(args)?;
        let Some(store) = existing(&project)? else {
            return Ok(Opened::File(SqliteStore::nowhere_sealed(key(&project).ok())?));
        };
        hide(&project)?;
        Opened::File(store)
    };
    tell_recovered(store.recover()?);
    Ok(store)
}

/// Opens the graph that is meant, and makes it if there is none.
pub(super) fn create(args: &GraphArgs) -> anyhow::Result<Opened> {
    if let Some(address) = meant(args)? {
        let mut store = PostgresStore::create(address)?;
        require_ours(&store, args)?;
        tell_recovered(store.recover()?);
        return Ok(Opened::Server(store));
    }
    create_file(&place(args)?).map(Opened::File)
}

/// Opens the graph of a project, and makes it if there is none.
pub(super) fn create_file(project: &Project) -> anyhow::Result<SqliteStore> {
    if project.graph().symlink_metadata().is_err() {
        make_room(project)?;
    } else {
        // The repository may have been made later, and its rules may have changed.
        hide(project)?;
    }
    let mut store = opened(project)?;
    tell_recovered(store.recover()?);
    Ok(store)
}

/// The path of the graph. In a work tree whose repository is gone or was moved it is unknown: a graph of its own would be lost
/// when that is fixed.
pub(super) fn place(args: &GraphArgs) -> anyhow::Result<Project> {
    let project = locate(args.ralph_dir.as_ref())?;
    match project.require_git() {
        Err(error @ ProjectError::DanglingWorkTree { .. }) if args.ralph_dir.is_none() => Err(error.into()),
        _ => Ok(project),
    }
}

fn existing(project: &Project) -> anyhow::Result<Option<SqliteStore>> {
    let is_there = project.graph().symlink_metadata().is_ok();
    is_there.then(|| opened(project)).transpose()
}

/// Makes the folder of a graph, which an agent's `git add -A` must not commit.
pub(super) fn make_room(project: &Project) -> anyhow::Result<()> {
    project.create_graph_dir()?;
    hide(project)
}

pub(super) fn opened(project: &Project) -> anyhow::Result<SqliteStore> {
    // A graph that agents may change freely is not sealed: with its seals, an agent could replace the real graph.
    let key = if is_draft(project) { None } else { key(project).ok() };
    let store = SqliteStore::open_sealed(&project.graph(), BUSY_TIMEOUT, key)?;
    if let Some(copy) = store.taken_over() {
        hide(project)?;
        let (graph, copy) = (project.graph(), copy.display());
        remark(&format!(
            "{}: taken over from an older program; {copy} is a copy of what it was",
            graph.display()
        ));
    }
    Ok(store)
}

/// Opens the graph for a run, with the exit code that the run would have later.
pub(super) fn opened_for_run(project: &Project) -> anyhow::Result<SqliteStore> {
    opened(project).map_err(refuses_run)
}

/// An error that would end a run later refuses its start, with the same exit code.
pub(super) fn refuses_run(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<GraphError>() {
        Ok(error) if error.is_loss() => Refused::from(End::from(error)).into(),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

/// The key with which this user's ralph seals graphs; else why there is none.
pub(super) fn key(project: &Project) -> Result<Key, String> {
    let path = project.user_key().ok_or("there is no home directory")?;
    Key::at(&path).map_err(|error| error.to_string())
}

/// Opening a graph releases the claims of dead processes.
pub(super) fn tell_recovered(count: usize) {
    if count > 0 {
        remark(&format!("{} of runs that are gone can be claimed again", count::of(count as u64, "task")));
    }
}

fn hide(project: &Project) -> anyhow::Result<()> {
    if project.in_git() {
        git::exclude(project.root(), &git::runtime_patterns(project))?;
    }
    Ok(())
}

/// Whether this is a graph in which agents make tasks: the draft in a run dir. A link to another graph is not, and neither is the
/// graph of a project with the name of a draft.
pub(super) fn is_draft(project: &Project) -> bool {
    let Ok(folder) = fs::canonicalize(project.graph_dir()) else { return false };
    let around = folder.ancestors().nth(Path::new(DRAFT).components().count());
    around.is_some_and(|around| {
        folder.ends_with(DRAFT) && project.elsewhere(project.root(), around).run_dir() == around
    })
}
