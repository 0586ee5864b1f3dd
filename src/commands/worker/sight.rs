//! Takes a snapshot of a loop; for a worker with its program and its pane.

use crate::agent::worker::held::Held;
use crate::process::pane::Pane;
use crate::record::lookup::Loop;
use crate::view::snapshot::LoopSnapshot;
use crate::view::snapshot::WorkerSight;

/// A snapshot of a loop.
pub(in crate::commands) fn snapshot(found: &Loop) -> LoopSnapshot<'_> {
    let worker = found.project.is_of_worker().then(|| {
        let folder = found.project.records();
        let window = Held::read(&folder).ok().flatten().map(|held| held.window.name);
        WorkerSight { runs: Pane::connect(&folder).is_ok_and(|pane| pane.is_some()), window }
    });
    LoopSnapshot::of(found, worker)
}
