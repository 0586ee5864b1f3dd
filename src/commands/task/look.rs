//! The graph for verbs that only read. One that this user's ralph has not written, as in a clone, is read from a copy: opening a
//! database can make files, take it over and release claims.

use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, anyhow};
use tempfile::TempDir;

use crate::cli::GraphArgs;
use crate::commands::graph_file::{Opened, on_server, opened, place, tell_recovered};
use crate::files::{FileId, own, way_to_read};
use crate::graph::sqlite::{BUSY_TIMEOUT, SqliteStore};
use crate::graph::{Key, Store};
use crate::job::workspace::locate_records;
use crate::project::{GRAPH, Project};

/// How often a copy is started again because another process has written meanwhile.
const TRIES: u32 = 20;

/// A graph to read from.
pub(in crate::commands) struct Look {
    store: Opened,
    /// Removed once the store is closed.
    _copy: Option<TempDir>,
}

impl Deref for Look {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

/// Opens the graph to read from it, without waiting for another process. If there is none it is empty, and none is made.
pub(in crate::commands) fn look(args: &GraphArgs) -> anyhow::Result<Look> {
    if let Some(store) = on_server(args)? {
        return Ok(Look { store, _copy: None });
    }
    let project = place(args)?;
    locate_records(args.ralph_dir.as_ref())?;
    let path = project.graph();
    let Ok(found) = path.symlink_metadata() else {
        return Ok(Look { store: Opened::File(SqliteStore::nowhere()?), _copy: None });
    };
    // Opening refuses what is no file.
    if !found.is_file() || is_ours(&project, &path) {
        let mut store = opened(&project)?;
        tell_recovered(store.recover_at_once());
        return Ok(Look { store: Opened::File(store), _copy: None });
    }
    let copy = tempfile::tempdir().context("cannot make a temporary folder")?;
    copied(&path, copy.path())
        .map_err(|error| anyhow!("graph of tasks, {}: {error}: {}", path.display(), way_to_read(&error)))?;
    let place = copy.path().join(GRAPH);
    let store = SqliteStore::open(&place, BUSY_TIMEOUT).map_err(|error| {
        // The advice is about the graph itself.
        anyhow!(error.to_string().replace(&*place.to_string_lossy(), &path.to_string_lossy()))
    })?;
    Ok(Look { store: Opened::File(store), _copy: Some(copy) })
}

/// The graph of a project, for displays that read it again and again: only one that this user's ralph has written.
pub(in crate::commands) fn glance(project: &Project) -> Option<SqliteStore> {
    let path = project.graph();
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    if is_file && is_ours(project, &path) { opened(project).ok() } else { None }
}

/// Whether this user's ralph has written the graph. Reading makes no key.
fn is_ours(project: &Project, graph: &Path) -> bool {
    let key = project.user_key().filter(|key| key.exists()).and_then(|key| Key::at(&key).ok());
    key.is_some_and(|key| SqliteStore::is_sealed_with(graph, key))
}

/// Copies a consistent state of a database into a folder.
fn copied(graph: &Path, into: &Path) -> io::Result<()> {
    let mut wal = graph.to_owned().into_os_string();
    wal.push("-wal");
    let files =
        [(graph.to_owned(), into.join(GRAPH)), (PathBuf::from(wal), into.join(format!("{GRAPH}-wal")))];
    let stamps = || files.each_ref().map(|(file, _)| stamp(file));
    for _ in 0..TRIES {
        let before = stamps();
        for (from, to) in &files {
            match own::open_to_read(from) {
                Ok(mut from) => {
                    let mut to = own::open(to, OpenOptions::new().write(true).create(true).truncate(true))?;
                    io::copy(&mut from, &mut to)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && from != graph => {
                    // The file may have existed a moment ago.
                    let _ = fs::remove_file(to);
                }
                Err(error) => return Err(error),
            }
        }
        if stamps() == before {
            return Ok(());
        }
    }
    Err(io::Error::other("another process writes it all the time"))
}

/// The version of a file's contents.
fn stamp(path: &Path) -> Option<(FileId, u64, SystemTime)> {
    let found = path.symlink_metadata().ok()?;
    Some((FileId::from(&found), found.len(), found.modified().ok()?))
}
