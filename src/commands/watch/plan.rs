//! The plan or the tasks of the selected loop, read again when their file has changed.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::commands::status::planned;
use crate::commands::task;
use crate::graph::{Status, Store as _};
use crate::project::Project;
use crate::record::lookup::Loop;
use crate::record::state::AtTask;
use crate::view::watch::plan::{Plan, Standing, Task};

/// A plan is read at most so often.
const OFTEN: Duration = Duration::from_secs(1);
/// So many tasks of a graph are listed.
const MOST: usize = 500;

/// When the tasks of a loop were read.
#[derive(Debug, Default)]
pub(super) struct PlanLook {
    read: Option<(Instant, Vec<Option<Stamp>>)>,
}

/// Identifies one content of a file.
type Stamp = (u64, u64, i64, i64);

impl PlanLook {
    /// The tasks, if they may have changed since the last look.
    pub(super) fn look(&mut self, here: &Project, found: &Loop) -> Option<Plan> {
        if self.read.as_ref().is_some_and(|(at, _)| at.elapsed() < OFTEN) {
            return None;
        }
        let stamps: Vec<_> = files(here, found).iter().map(|file| stamp(file)).collect();
        let is_known = self.read.as_ref().is_some_and(|(_, known)| *known == stamps);
        self.read = Some((Instant::now(), stamps));
        (!is_known).then(|| plan(here, found))
    }
}

/// The files that the tasks of a loop may be in.
fn files(here: &Project, found: &Loop) -> Vec<PathBuf> {
    let project = &found.project;
    let graph = project.graph();
    let mut log = graph.clone().into_os_string();
    log.push("-wal");
    // What is at work among them is in the state.
    vec![
        project.branch_plan(),
        here.branch_plan(),
        project.implementation_plan(),
        graph,
        log.into(),
        project.state(),
    ]
}

fn stamp(file: &Path) -> Option<Stamp> {
    let found = file.symlink_metadata().ok()?;
    Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

fn plan(here: &Project, found: &Loop) -> Plan {
    let at = found.state.as_ref().ok().and_then(|state| state.at_task.as_ref());
    if let Some(at) = at {
        return Plan { what: "tasks", tasks: of_graph(&found.project, at).unwrap_or_default() };
    }
    let standing = |is_done| if is_done { Standing::Done } else { Standing::Open };
    let tasks = planned(here, found).unwrap_or_default().into_iter();
    Plan { what: "plan", tasks: tasks.map(|(text, done)| Task { standing: standing(done), text }).collect() }
}

/// The tasks of the feature that a loop works on, or all, as the graph lists them.
fn of_graph(project: &Project, at: &AtTask) -> Option<Vec<Task>> {
    let store = task::glance(project)?;
    let feature =
        at.task_feature.as_ref().and_then(|name| store.feature(name).ok()).map(|feature| feature.id);
    let mut tasks = Vec::new();
    let listed = store.tree(None, &mut |task, place| {
        if feature.is_none() || task.feature_id == feature {
            let standing = match task.status {
                Status::InProgress | Status::Landing => Standing::AtWork,
                Status::Done => Standing::Done,
                Status::Failed => Standing::Failed,
                Status::Pending | Status::Blocked => Standing::Open,
            };
            let text = format!("{}{}  {}", "  ".repeat(place.depth.min(8)), task.id, task.title);
            tasks.push(Task { standing, text });
        }
        tasks.len() < MOST
    });
    listed.is_ok().then_some(tasks)
}
