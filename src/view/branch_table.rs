//! The results of branches: a fold over the events of each, a table for people and an object for programs.

use std::fmt::{self, Display};
use std::time::Duration;

use anstyle::Style;
use chrono::Local;

use super::cells::plain;
use super::columns::Table;
use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::fact::{BranchResult, Fact, LineBranch};
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::validation::Evidence;
use crate::record::event_line::to_line;
use crate::tell::words;
use crate::text::count::money;
use crate::text::duration;
use crate::text::list::some_of;
use crate::text::palette::{ERROR, FAINT, GOOD, NOTE};
use crate::text::wrap::wrapped;

/// The outcome of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Built {
    /// All its tasks are done.
    Done,
    /// There is more to do; a later run goes on.
    Unfinished,
    /// It ended by a failure.
    Failed,
    /// The branch of this name, its base, is not done yet.
    WaitingFor(String),
    /// Its turn never came.
    NotStarted,
}

impl Built {
    /// The branch outcome for an end of a loop.
    #[must_use]
    pub(crate) fn by(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Complete | Outcome::AllDone | Outcome::DonePattern => Self::Done,
            Outcome::Replan | Outcome::Interrupted | Outcome::Terminated => Self::Unfinished,
            outcome if outcome.code() == 0 => Self::Unfinished,
            _ => Self::Failed,
        }
    }

    fn style(&self) -> Style {
        match self {
            Self::Done => GOOD,
            Self::Unfinished => NOTE,
            Self::Failed => ERROR,
            Self::WaitingFor(_) | Self::NotStarted => FAINT,
        }
    }
}

impl Display for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WaitingFor(base) => write!(f, "waiting for {base}"),
            Self::NotStarted => f.write_str("not started"),
            Self::Done => f.write_str("done"),
            Self::Unfinished => f.write_str("unfinished"),
            Self::Failed => f.write_str("failed"),
        }
    }
}

/// One branch.
#[derive(Debug, Clone)]
pub(crate) struct BranchRow {
    /// The branch.
    pub name: String,
    /// Its outcome: by the end of its loop, until the build corrects it.
    pub built: Built,
    /// The result of its loop; `None` while it has not ended.
    pub end: Option<BranchEnd>,
    /// How many commits it is ahead of its base, if that was counted.
    pub commits: Option<u64>,
    /// The commit after its last attempt.
    pub head: Option<String>,
    /// The address of its pull request.
    pub pull_request: Option<String>,
    /// Notes: what was not done, and why; one line each.
    pub notes: Vec<String>,
}

/// The result of a branch's loop.
#[derive(Debug, Clone)]
pub(crate) struct BranchEnd {
    /// Why it ended.
    pub outcome: Outcome,
    /// Details beyond the outcome.
    pub detail: Option<String>,
    /// Iterations begun, including those of earlier runs.
    pub iterations: u64,
    /// Iterations that failed for good, including those of earlier runs.
    pub failed: u64,
    /// Attempts that failed, including those of earlier runs.
    pub failed_attempts: u64,
    /// How long it took in this run.
    pub duration: Duration,
    /// In US dollars, as far as agents reported it.
    pub cost_usd: Option<f64>,
    /// What shows that its work is good.
    pub proof: Option<Evidence>,
}

impl BranchRow {
    /// A branch whose loop has not started.
    #[must_use]
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            built: Built::NotStarted,
            end: None,
            commits: None,
            head: None,
            pull_request: None,
            notes: Vec::new(),
        }
    }

    /// Takes one fact of its loop.
    pub(crate) fn take(&mut self, stamped: &Stamped<'_>) {
        match (stamped.fact, stamped.outcome()) {
            (Fact::LoopStarted { .. }, _) => self.built = Built::Unfinished,
            (Fact::AttemptEnded(ended), _) => self.head = ended.head.as_ref().map(ToString::to_string),
            (Fact::LoopEnded(ended), Some(outcome)) => {
                self.built = Built::by(outcome);
                self.end = Some(BranchEnd {
                    outcome,
                    detail: ended.detail.as_ref().map(ToString::to_string),
                    iterations: ended.iterations,
                    failed: stamped.tally.failed,
                    failed_attempts: ended.failed,
                    duration: ended.duration(),
                    cost_usd: ended.cost_usd,
                    proof: ended.proof.clone(),
                });
            }
            _ => {}
        }
    }

    /// The cells after its result; unknown ones are empty.
    fn cells(&self) -> [String; COLUMNS] {
        let end = self.end.as_ref();
        let iterations = end.map(|end| match end.failed {
            0 => end.iterations.to_string(),
            failed => format!("{} ({failed} failed)", end.iterations),
        });
        let cells = [
            Some(self.name.clone()),
            Some(self.result()),
            iterations,
            end.map(|end| duration::elapsed(end.duration)),
            money(end.and_then(|end| end.cost_usd)),
            self.commits.map(|commits| commits.to_string()),
            self.pull_request.clone().or(self.reason()),
        ];
        cells.map(|cell| plain(&cell.unwrap_or_default()))
    }

    /// Its result in one word: the end of its loop, if that is precise.
    fn result(&self) -> String {
        match (&self.built, &self.end) {
            (Built::Unfinished | Built::Failed, Some(end)) => end.outcome.ended().word().to_owned(),
            // No loop of it could begin.
            (Built::Failed, None) => Ended::Error.word().to_owned(),
            (built, _) => built.to_string(),
        }
    }

    /// What shows that it is done, or why it is not.
    fn reason(&self) -> Option<String> {
        let end = self.end.as_ref()?;
        if self.built == Built::Done {
            return end.proof.as_ref().map(|proof| words::proof(proof).text);
        }
        let told = end.detail.as_deref().filter(|detail| !detail.is_empty());
        Some(told.unwrap_or(end.outcome.reason()).to_owned())
    }

    fn line(&self) -> LineBranch<'_> {
        let end = self.end.as_ref();
        let (result, waiting_for) = match &self.built {
            Built::Done => (BranchResult::Done, None),
            Built::Unfinished => (BranchResult::Unfinished, None),
            Built::Failed => (BranchResult::Failed, None),
            Built::WaitingFor(base) => (BranchResult::Waiting, Some(base.into())),
            Built::NotStarted => (BranchResult::NotStarted, None),
        };
        LineBranch {
            branch: (&self.name).into(),
            commits: self.commits,
            cost_usd: end.and_then(|end| end.cost_usd),
            detail: end.and_then(|end| end.detail.as_deref()).map(Into::into),
            duration_s: end.map(|end| end.duration.as_secs_f64()),
            exit_code: end.map(|end| end.outcome.code()),
            exit_reason: end.map(|end| end.outcome.word().into()),
            failed: end.map(|end| end.failed_attempts),
            iterations: end.map(|end| end.iterations),
            notes: (&self.notes).into(),
            proof: end.and_then(|end| end.proof.clone()),
            pull_request: self.pull_request.as_deref().map(Into::into),
            result: result.into(),
            end: end.map(|end| end.outcome.ended().into()),
            waiting_for,
        }
    }
}

const COLUMNS: usize = 7;
/// How many branches a note names.
const NAMED: usize = 8;
/// The column that is coloured.
const RESULT: usize = 1;
/// The column with reasons and addresses.
const LAST: usize = COLUMNS - 1;
/// Columns in the order in which they are left out: reasons, times, costs, commits, iterations.
const LEAST_TELLING: [usize; 5] = [LAST, 3, 4, 5, 2];

/// The table, and below it the notes. An empty column is left out. If a terminal of `width` cells is too narrow for all columns,
/// the last one follows below the table, and then the least important ones are left out.
#[must_use]
pub(crate) fn table(rows: &[BranchRow], width: Option<usize>) -> String {
    let mut cells: Vec<([String; COLUMNS], Style)> =
        rows.iter().map(|row| (row.cells(), row.built.style())).collect();
    let below: Vec<String> = cells.iter().filter(|(cells, _)| !cells[LAST].is_empty()).map(below).collect();
    for column in 0..COLUMNS {
        if cells.iter().any(|(cells, _)| !cells[column].is_empty()) {
            let unknown = cells.iter_mut().filter(|(cells, _)| cells[column].is_empty());
            unknown.for_each(|(cells, _)| "-".clone_into(&mut cells[column]));
        }
    }
    let table = Table {
        heads: ["BRANCH", "RESULT", "ITERATIONS", "TIME", "COST", "COMMITS", last_head(rows)],
        coloured: RESULT,
        least_telling: &LEAST_TELLING,
        gives: (0, usize::MAX),
    };
    let (mut text, has_last) = table.text(cells, width, LAST);
    let below = below.into_iter().filter(|_| !has_last);
    let notes = notes(rows);
    let notes =
        notes.iter().map(|(note, names)| plain(&format!("{}: {note}", some_of(names.clone(), NAMED))));
    for note in below.chain(notes) {
        text += &wrapped(&note, width.unwrap_or(usize::MAX), usize::MAX).join("\n");
        text += "\n";
    }
    text
}

/// Every note once, with its branches.
fn notes(rows: &[BranchRow]) -> Vec<(&str, Vec<&str>)> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for (row, note) in rows.iter().flat_map(|row| row.notes.iter().map(move |note| (row, note))) {
        match notes.iter_mut().find(|(known, _)| known == note) {
            Some((_, names)) => names.push(&row.name),
            None => notes.push((note, vec![&row.name])),
        }
    }
    notes
}

fn last_head(rows: &[BranchRow]) -> &'static str {
    let linked = rows.iter().any(|row| row.pull_request.is_some());
    let explained = rows.iter().any(|row| row.pull_request.is_none() && row.reason().is_some());
    match (linked, explained) {
        (true, true) => "PULL REQUEST / REASON",
        (true, false) => "PULL REQUEST",
        (false, _) => "REASON",
    }
}

/// The last column of a branch, if it does not fit.
fn below((cells, _): &([String; COLUMNS], Style)) -> String {
    format!("{}: {}", cells[0], cells[LAST])
}

/// The last line of `--json`: the results of all branches. `identity` is the build's own.
#[must_use]
pub(crate) fn json(identity: &LoopIdentity, exit_code: u8, rows: &[BranchRow]) -> String {
    to_line(
        Local::now(),
        identity,
        &Fact::BuildEnded { branches: rows.iter().map(BranchRow::line).collect(), exit_code },
    )
}

#[cfg(test)]
mod tests;
