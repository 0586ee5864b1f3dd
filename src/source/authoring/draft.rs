//! The graph in which an agent creates tasks, separate from the graph of the project.

use std::fs::{self, OpenOptions};
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use crate::files::{FileError, own};
use crate::git::refs::is_valid_branch;
use crate::graph::sqlite::{BUSY_TIMEOUT, SqliteStore};
use crate::graph::{Changes, Feature, GraphError, Selection, Store, import, sound};
use crate::project::GRAPH;

/// The file that marks a folder as a draft.
const MARK: &str = "made-by-ralph";
const MARK_TEXT: &str = "Tasks that an agent is about to add; this folder goes when they are taken over.\n";

/// A graph in its own folder, which is removed when its tasks are imported or discarded.
pub(super) struct Draft {
    /// The folder of the graph, as agents name it.
    folder: PathBuf,
}

impl Draft {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn open(&self) -> Result<SqliteStore, GraphError> {
        SqliteStore::open(&self.folder.join(GRAPH), BUSY_TIMEOUT)
    }

    /// Starts an empty draft with only the feature, if there is one.
    pub(super) fn begin(&self, feature: Option<&Feature>) -> Result<(), GraphError> {
        self.throw_away();
        let around = self.around();
        if around.symlink_metadata().is_ok() {
            let why = format!(
                "{}: not written by ralph, and tasks are to be made there: move it away",
                around.display()
            );
            return Err(GraphError::BadValue(why));
        }
        let mark = || own::open(&self.mark(), OpenOptions::new().write(true).create_new(true));
        let made = own::make_folders(&self.folder).and_then(|()| mark()?.write_all(MARK_TEXT.as_bytes()));
        made.map_err(|error| GraphError::BadValue(FileError::at(&self.folder)(error).to_string()))?;
        let mut graph = self.open()?;
        let Some(Feature { name, spec_path, plan_path, .. }) = feature else { return Ok(()) };
        graph.put_feature(name, spec_path.as_deref(), plan_path.as_deref())
    }

    /// Whether an agent has added anything to it.
    pub(super) fn has_tasks(&self) -> bool {
        let mut has_tasks = false;
        let listed = self.open().and_then(|graph| {
            graph.list(&Selection::default(), &mut |_| {
                has_tasks = true;
                false
            })
        });
        listed.is_ok() && has_tasks
    }

    /// The faults of the tasks in it.
    pub(super) fn faults(&self, graph: &dyn Store) -> Result<Vec<String>, GraphError> {
        let draft = self.open()?;
        let mut faults = sound::faults(&draft)?;
        for id in ids(&draft)? {
            if !matches!(graph.task(&id), Err(GraphError::UnknownTask { .. })) {
                faults.push(format!("{id} is the id of another task by chance: add them all once more"));
            }
        }
        Ok(faults)
    }

    /// Imports its tasks into the graph, all at once; returns their ids.
    pub(super) fn take_over(
        &self,
        graph: &mut dyn Store,
        feature: Option<&str>,
    ) -> Result<Vec<String>, GraphError> {
        let mut draft = self.open()?;
        draft.group_by_titles()?;
        let ids = ids(&draft)?;
        if let Some(feature) = feature {
            for id in &ids {
                let of_feature = Changes { feature: Some(feature.to_owned()), ..Changes::default() };
                draft.update(id, &of_feature)?;
            }
        }
        let mut lines = String::new();
        draft.export(&mut |line| {
            lines.push_str(line);
            lines.push('\n');
            true
        })?;
        let mut entries = import::read(Cursor::new(lines), &is_valid_branch)?;
        graph.import(&mut entries, false)?;
        drop(draft);
        self.throw_away();
        Ok(ids)
    }

    /// Removes it. A folder that ralph has not created stays.
    pub(super) fn throw_away(&self) {
        if self.mark().symlink_metadata().is_ok_and(|mark| mark.is_file()) && !self.around().is_symlink() {
            // What cannot be removed now is removed before the next draft.
            let _ = fs::remove_dir_all(self.around());
        }
    }

    fn around(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    fn mark(&self) -> PathBuf {
        self.around().join(MARK)
    }
}

fn ids(graph: &dyn Store) -> Result<Vec<String>, GraphError> {
    let mut ids = Vec::new();
    graph.tree(None, &mut |task, _| {
        ids.push(task.id);
        true
    })?;
    Ok(ids)
}
