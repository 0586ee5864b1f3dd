//! What the graph says of finished tasks on their way to a trunk, for verbs that show it.

use chrono::Utc;
use serde_json::{Value, json};

use super::graph_file::on_server;
use super::task::glance;
use crate::cli::GraphArgs;
use crate::graph::{AtGate, Landing, Standing, Store};
use crate::project::Project;
use crate::tell::words::{figures, gated};
use crate::text::duration;

/// What is on its way in a project.
pub(super) struct Queue {
    /// The gate that runs.
    at: Option<AtGate>,
    /// How many wait, besides those at the gate.
    waiting: usize,
    /// How many were returned, and are not fixed yet.
    returned: usize,
}

impl Queue {
    /// What is on its way; `None`: nothing.
    pub(super) fn of(project: &Project) -> Option<Self> {
        Self::in_store(&glance(project)?)
    }

    /// What is on its way in a graph; `None`: nothing.
    pub(super) fn in_store(store: &dyn Store) -> Option<Self> {
        let landings = store.landings().ok()?;
        let at = store.gates().ok()?.into_iter().next();
        let are = |standing| landings.iter().filter(|one| one.standing == standing).count();
        let gated = at.as_ref().map_or(0, |at| at.tasks.len());
        let queue = Self {
            waiting: are(Standing::Waiting).saturating_sub(gated),
            returned: are(Standing::Returned),
            at,
        };
        (queue.at.is_some() || queue.waiting + queue.returned > 0).then_some(queue)
    }

    /// `landing t-3f9a01 with 3 others on main · gate 1m20s · 2 waiting · 1 returned`.
    pub(super) fn line(&self) -> String {
        let at = self.at.as_ref().map(|at| format!("landing {}", gated(&at.tasks, &at.trunk)));
        let gate =
            self.seconds().map(|seconds| format!("gate {}", duration::format(duration::of_seconds(seconds))));
        let some = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
        let first = at.or_else(|| Some("landing".to_owned()));
        figures([first, gate, some(self.waiting, "waiting"), some(self.returned, "returned")])
    }

    /// As JSON.
    pub(super) fn json(&self) -> Value {
        let tasks = self.at.as_ref().map(|at| at.tasks.as_slice()).unwrap_or_default();
        json!({
            "gate_s": self.seconds(),
            "returned": self.returned,
            "task": tasks.first(),
            "waiting": self.waiting,
            "with": tasks.len().saturating_sub(1),
        })
    }

    /// How long the gate has run, in whole seconds.
    fn seconds(&self) -> Option<f64> {
        let since = self.at.as_ref()?.since;
        Some((Utc::now() - since).to_std().unwrap_or_default().as_secs_f64().round())
    }
}

/// What has become of a task's commits, by its whole id.
///
/// # Errors
/// If the graph is on a server that cannot be asked.
pub(super) fn of_task(project: &Project, id: &str) -> anyhow::Result<Option<Landing>> {
    let args = GraphArgs { ralph_dir: Some(project.graph_dir()), ..GraphArgs::default() };
    let landing = match on_server(&args)? {
        Some(store) => match store.landing(id) {
            Err(error) if error.is_of_server() => return Err(error.into()),
            landing => landing.ok().flatten(),
        },
        None => glance(project).and_then(|store| store.landing(id).ok()?),
    };
    Ok(landing.filter(|landing| landing.task == id))
}
