//! What a run came to: a fold over the events logs in its folder, for people and programs that come later.
//!
//! Nothing here looks at git, at a plan or at the loop's state: what is told is what the events tell, whatever has become of
//! work trees since.

mod fold;
mod partial;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, Local};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use fold::Live;

use super::event_line::EventLine;
use super::registry::WORKER;
use super::run_folder::{self, RunStart, SUMMARY};
use crate::engine::fact::{BranchResult, Fact, LineBranch, LineSpent, TaskCounts, Word};
use crate::files::atomic::{self, Durability};
use crate::files::own;
use crate::parallel;

/// The words of the command line that build branches.
const BRANCHES: &str = "loop build";
/// The version of what `ralph report --json` prints.
pub const VERSION: u32 = 1;

/// A larger summary is none of ours, in bytes.
const LARGEST: u64 = 64 << 20;

/// A run: one start of a command, with all its loops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(title = "A report of ralph, version 1", extend("$id" = "ralph-report-1")))]
pub struct RunReport {
    /// The format's version.
    pub v: u32,
    /// Unique id of the run, the name of its folder.
    pub run: String,
    /// The words of the command line that start such loops, as in `loop build`; null where that is not known.
    pub verb: Option<String>,
    /// The command line; empty where that is not known.
    pub argv: Vec<String>,
    /// When it began; null where that is not known.
    pub started_at: Option<DateTime<FixedOffset>>,
    /// When it ended, or when something last happened.
    pub ended_at: Option<DateTime<FixedOffset>>,
    /// Its process is at work.
    pub is_running: bool,
    /// What to type next.
    #[serde(default)]
    pub next: Option<String>,
    /// Its loops; those of branches in the order of the plan, where that is known.
    pub loops: Vec<LoopReport>,
    /// The folder of the run, with the logs.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// What one loop did in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LoopReport {
    /// The loop's name.
    pub name: String,
    /// Unique id of the run of this loop, in each of its event lines.
    pub run: String,
    /// plan, build, prompt, run, tasks or feature.
    pub mode: String,
    /// The agent's name.
    pub agent: String,
    /// The model's name, where the agent told it.
    pub model: Option<String>,
    /// How it ended in one word, or `running`, `killed`, `queued` (its turn has not come).
    pub end: String,
    /// Why it ended, in the finer words of `loop_ended`; null while it has not.
    pub exit_reason: Option<String>,
    /// As in `loop_ended`.
    pub exit_code: Option<u8>,
    /// What led there, in the words of the agent, of git or of the validation, where it did not end well.
    pub reason: Option<String>,
    /// When it began.
    pub started_at: Option<DateTime<FixedOffset>>,
    /// When it ended, or when something last happened.
    pub ended_at: Option<DateTime<FixedOffset>>,
    /// How long it worked in this run, in seconds; waits included.
    pub duration_s: f64,
    /// Begun in this run.
    pub iterations: u64,
    /// Begun in this run.
    pub attempts: u64,
    /// Of these, how many failed; a usage limit is no failure.
    pub failed_attempts: u64,
    /// In US dollars, in this run; null where no agent reported it.
    pub cost_usd: Option<f64>,
    /// Cached ones included, in this run.
    pub input_tokens: u64,
    /// Reasoning included, in this run.
    pub output_tokens: u64,
    /// What was committed.
    pub work: Option<Work>,
    /// Of the loop's target, or of its plan; null where there are none.
    pub tasks: Option<TaskCounts>,
    /// The tasks of the graph that it worked on, in the order in which it met them.
    pub task_list: Vec<TaskReport>,
    /// How often each tool was called.
    pub tools: BTreeMap<String, u64>,
    /// Times in which it waited.
    pub waits: Vec<Wait>,
    /// The address of its pull request.
    pub pull_request: Option<String>,
    /// What to type next about it.
    #[serde(default)]
    pub next: Option<String>,
    /// What was not done, and why.
    pub notes: Vec<String>,
    /// What it did, one after the other; left out of a summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iteration_list: Vec<IterationReport>,
    /// What was committed, the newest first, the newest few hundred of them; left out of a summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commit_list: Vec<CommitReport>,
    /// Lines of its events logs that cannot be read: torn, or of a later version.
    pub unreadable_lines: u64,
    /// The logs, below the folder of the run.
    #[serde(skip)]
    pub folder: PathBuf,
    /// What was counted when it began, where it goes on.
    #[serde(skip)]
    pub(crate) before: Before,
}

/// What a loop had counted before a run that goes on with it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Before {
    spent: LineSpent,
    iterations: u64,
    attempts: u64,
    failed: u64,
}

/// What was committed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Work {
    /// How many were made; null where it was not counted.
    pub commits: Option<u64>,
    /// Files that differ.
    pub files: Option<u64>,
    /// Lines that came.
    pub insertions: Option<u64>,
    /// Lines that went.
    pub deletions: Option<u64>,
    /// The commit that HEAD named before; null: there was none.
    pub from: Option<String>,
    /// The commit that HEAD named in the end.
    pub to: String,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CommitReport {
    /// Its name.
    pub id: String,
    /// When it was made.
    pub at: DateTime<FixedOffset>,
    /// By whom, as it says.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
    /// Files that differ; 0 for a merge.
    pub files: u64,
    /// Lines that came.
    pub insertions: u64,
    /// Lines that went.
    pub deletions: u64,
}

/// A time in which a loop waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Wait {
    /// What for, as in `waiting`; or `paused`, `queued`, `needs_attention`.
    pub what: String,
    /// Since then.
    pub from: DateTime<FixedOffset>,
    /// When it was over; null: it is not.
    pub to: Option<DateTime<FixedOffset>>,
    /// How long it was to last at most.
    pub until: Option<DateTime<FixedOffset>>,
}

/// The outcome of a task of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskReport {
    /// Its id.
    pub id: String,
    /// One line.
    pub title: String,
    /// As in `task_ended`; null: it was at hand when the run ended.
    pub outcome: Option<String>,
    /// Why; null where there is nothing to say.
    pub reason: Option<String>,
    /// How many iterations were about it.
    pub iterations: u64,
    /// How long its attempts took, in seconds.
    pub duration_s: f64,
    /// In US dollars; null where no agent reported it.
    pub cost_usd: Option<f64>,
    /// What was committed meanwhile.
    pub work: Option<Work>,
    /// What to type next about it.
    #[serde(default)]
    pub next: Option<String>,
}

/// One iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct IterationReport {
    /// Its number.
    pub number: u64,
    /// The id of the task that it was about.
    pub task: Option<String>,
    /// Its attempts.
    pub attempts: Vec<AttemptReport>,
    /// What its validation came to.
    pub validation: Option<ValidationReport>,
}

/// What a validation came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ValidationReport {
    /// It succeeded.
    pub ok: bool,
    /// It came to no verdict.
    pub undecided: bool,
    /// The end of what it printed.
    pub output: String,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct AttemptReport {
    /// 0 for the first attempt of the iteration.
    pub retry: u32,
    /// When it began.
    pub started_at: DateTime<FixedOffset>,
    /// As in `attempt_ended`; null: it was cut off, or runs.
    pub status: Option<String>,
    /// Why it failed.
    pub failure: Option<String>,
    /// How long it took, in seconds.
    pub duration_s: Option<f64>,
    /// In US dollars; null where the agent did not report it.
    pub cost_usd: Option<f64>,
    /// Cached ones included.
    pub input_tokens: Option<u64>,
    /// Reasoning included.
    pub output_tokens: Option<u64>,
    /// Tool calls.
    pub tool_calls: u64,
    /// The commit that HEAD named before.
    pub head_before: Option<String>,
    /// The commit that HEAD named after it.
    pub head_after: Option<String>,
    /// The end of what the assistant said last.
    pub said: Option<String>,
}

impl RunReport {
    /// What was [kept](Self::keep) of a run that has ended: its report without its iterations.
    #[must_use]
    pub fn kept(folder: &Path) -> Option<Self> {
        let text = own::read(&folder.join(SUMMARY), LARGEST).ok()?;
        let known: Self = serde_json::from_slice(&text).ok()?;
        (known.v == VERSION).then(|| Self { folder: folder.to_owned(), ..known })
    }

    /// Keeps the report of a run that has ended beside its logs, without its iterations, because to read those takes time. Where
    /// that cannot be done they are read again the next time.
    pub fn keep(&self) {
        // Of which nothing could be read now may be read another time.
        let is_unread = |one: &LoopReport| one.mode.is_empty() && !one.folder.as_os_str().is_empty();
        if run_folder::read_end(&self.folder).is_none() || self.loops.iter().any(is_unread) {
            return;
        }
        let brief = |one: &LoopReport| LoopReport {
            iteration_list: Vec::new(),
            commit_list: Vec::new(),
            ..one.clone()
        };
        let summary = Self { loops: self.loops.iter().map(brief).collect(), ..self.clone() };
        if let Ok(text) = serde_json::to_vec(&summary) {
            let _ = atomic::write_own(&self.folder.join(SUMMARY), &text, Durability::Atomic);
        }
    }

    /// Whether its loops are the branches of a plan.
    #[must_use]
    pub fn is_of_branches(&self) -> bool {
        self.verb.as_deref() == Some(BRANCHES)
    }

    /// Whether its loop is a worker.
    #[must_use]
    pub fn is_of_worker(&self) -> bool {
        self.verb.as_deref() == Some(WORKER)
    }

    /// Reads what is in the folder of a run. A run that is half deleted is told as far as it is there.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let start = RunStart::read(folder);
        let end = run_folder::read_end(folder);
        let end = end.as_deref().and_then(|line| EventLine::read(line).ok());
        let is_running = end.is_none() && start.as_ref().is_some_and(|start| start.process.is_alive());
        let read = |logs: &PathBuf| (logs.clone(), fold::of_folder(logs, is_running));
        let folders = run_folder::loop_folders(folder)?;
        let mut loops: Vec<LoopReport> = Vec::new();
        for (logs, report) in parallel::each(&folders, &read) {
            let report = report.unwrap_or_else(|error| LoopReport::unreadable(&logs, is_running, &error));
            let mut one = LoopReport { folder: logs, ..report };
            if one.folder == folder {
                // The folder of the run tells no name.
                if let Some(name) =
                    partial::loop_of_run(start.as_ref(), end.as_ref()).filter(|_| one.mode.is_empty())
                {
                    one.name = name;
                }
            } else if one.exit_code.is_none() {
                one.ended_later();
            }
            loops.push(one);
        }
        match end.as_ref().map(|end| &end.fact) {
            Some(Fact::BuildEnded { branches, .. }) => loops = in_order_of(branches, loops),
            // The log has lost its last line, and maybe others before it.
            Some(Fact::LoopEnded(_)) => {
                let torn = loops.iter_mut().filter(|one| one.exit_code.is_none());
                torn.zip(&end).for_each(|(one, end)| one.ended_by(end));
            }
            _ => {}
        }
        if loops.is_empty() && !is_running {
            loops.extend(LoopReport::without_log(start.as_ref(), end.as_ref()));
        }
        let verb = start.as_ref().map(|start| start.verb.clone());
        let of_end = || end.as_ref().map(|end| end.name.to_string()).filter(|name| name == BRANCHES);
        let started_at = start.as_ref().map(|start| start.started_at.with_timezone(&Local).fixed_offset());
        let ended_at = end.as_ref().map(|end| end.at);
        Ok(Self {
            v: VERSION,
            run: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            verb: verb.or_else(of_end),
            argv: start.map(|start| start.argv).unwrap_or_default(),
            started_at: started_at.or_else(|| loops.iter().filter_map(|one| one.started_at).min()),
            ended_at: ended_at.or_else(|| loops.iter().filter_map(|one| one.ended_at).max()),
            is_running,
            next: None,
            loops,
            folder: folder.to_owned(),
        })
    }
}

/// The loops of branches as the plan has them, those included whose turn never came, without those that were done before.
fn in_order_of(branches: &[LineBranch<'_>], mut loops: Vec<LoopReport>) -> Vec<LoopReport> {
    let mut ordered = Vec::new();
    for branch in branches {
        let place = loops.iter().position(|one| one.name == branch.branch);
        let was_done = branch.result == Word::Known(BranchResult::Done) && branch.exit_code.is_none();
        let mut report = match place {
            Some(place) => loops.remove(place),
            None if was_done => continue,
            None => never_begun(branch),
        };
        if report.exit_code.is_none()
            && let Some(end) = &branch.end
        {
            // Its log is torn.
            report.end = match end {
                Word::Known(end) => end.word().to_owned(),
                Word::Other(word) => word.clone(),
            };
        }
        report.pull_request = branch.pull_request.as_ref().map(ToString::to_string);
        report.notes = branch.notes.to_vec();
        ordered.push(report);
    }
    ordered.extend(loops);
    ordered
}

/// A branch that has no loop in this run.
fn never_begun(branch: &LineBranch<'_>) -> LoopReport {
    let is_failed = branch.result == Word::Known(BranchResult::Failed);
    let waits = branch.waiting_for.as_ref().map(|base| format!("waits for {base}"));
    LoopReport {
        end: if is_failed { "error" } else { "queued" }.to_owned(),
        reason: waits.or_else(|| branch.notes.first().cloned()),
        ..LoopReport::named(&branch.branch)
    }
}

impl LoopReport {
    /// Whether it is at work, also while it waits.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        matches!(&*self.end, "running" | "waiting" | "paused" | "needs_attention")
    }

    /// A loop of which nothing else is known.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            run: String::new(),
            mode: String::new(),
            agent: String::new(),
            model: None,
            end: String::new(),
            exit_reason: None,
            exit_code: None,
            reason: None,
            started_at: None,
            ended_at: None,
            duration_s: 0.0,
            iterations: 0,
            attempts: 0,
            failed_attempts: 0,
            cost_usd: None,
            input_tokens: 0,
            output_tokens: 0,
            work: None,
            tasks: None,
            task_list: Vec::new(),
            tools: BTreeMap::new(),
            waits: Vec::new(),
            pull_request: None,
            next: None,
            notes: Vec::new(),
            iteration_list: Vec::new(),
            commit_list: Vec::new(),
            unreadable_lines: 0,
            folder: PathBuf::new(),
            before: Before::default(),
        }
    }
}

#[cfg(test)]
mod tests;
