//! The table of `ralph ls`: a line per loop of this machine, cut for a narrow terminal.

use super::cells::{cut, plain};
use super::columns::Table;
use super::snapshot::LoopSnapshot;
use super::status::shown;
use crate::tell::words::{self, sign};
use crate::text::timestamp;

/// Columns: name, word, word of the worker, iteration, failures, agent, start, project, proof.
const CELLS: usize = 9;
/// The column of the word.
const WORD: usize = 1;
/// The column that is cut.
const PROJECT: usize = 7;
/// The least width of the name of a project, in cells.
const LEAST_PROJECT: usize = 12;
/// The columns in the order in which they are left out: start, agent, failures, iteration, project.
const LEAST_TELLING: [usize; 5] = [6, 5, 4, 3, PROJECT];
/// A proof is cut behind so many cells where there is a terminal, and to its word where that is narrow.
const LONGEST_PROOF: usize = 28;
/// With less room than this a terminal is narrow, in cells.
const NARROW: usize = 72;

/// The table; `width` is the terminal's, and without one nothing is cut.
#[must_use]
pub(crate) fn table(snapshots: &[LoopSnapshot<'_>], width: Option<usize>) -> String {
    let has_workers = snapshots.iter().any(|snapshot| snapshot.worker.is_some());
    let [word, of_worker] = if has_workers { ["RALPH_STATUS", "WORKER_STATUS"] } else { ["STATUS", ""] };
    let table = Table {
        heads: ["NAME", word, of_worker, "ITERATION", "FAILURES", "AGENT", "STARTED", "PROJECT", "PROOF"],
        coloured: WORD,
        least_telling: &LEAST_TELLING,
        gives: (PROJECT, LEAST_PROJECT),
    };
    let rows = snapshots
        .iter()
        .map(|snapshot| (cells(snapshot, has_workers, width), sign(snapshot.word(), snapshot.proof()).0));
    table.text(rows, width, PROJECT).0
}

fn cells(snapshot: &LoopSnapshot<'_>, has_workers: bool, width: Option<usize>) -> [String; CELLS] {
    let unknown = || "-".to_owned();
    let [iteration, failures, agent, started] = match &snapshot.found.state {
        Ok(state) => [
            state.progress(),
            state.tally.failed.to_string(),
            shown(&state.agent),
            timestamp::local(&state.started_at),
        ],
        Err(_) => std::array::from_fn(|_| unknown()),
    };
    let worker = match &snapshot.worker {
        _ if !has_workers => String::new(),
        Some(worker) => worker.word().to_owned(),
        None => unknown(),
    };
    let project = shown(&snapshot.found.project.root().to_string_lossy());
    let proof = snapshot.proof().map(|proof| match width {
        Some(..NARROW) => proof.standing.word().to_owned(),
        Some(_) => cut(&plain(&words::proof(proof).text), LONGEST_PROOF),
        None => plain(&words::proof(proof).text),
    });
    let proof = proof.unwrap_or_default();
    let word = snapshot.word().to_owned();
    [shown(&snapshot.found.name), word, worker, iteration, failures, agent, started, project, proof]
}
