//! The report of a run: a fold over the events logs in its folder, for users and for other programs.
//!
//! It reads neither git, nor a plan, nor the loop's state. It reports only what the events say, whatever has happened
//! to work trees since.

mod fold;
mod landings;
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
use super::newer;
use super::registry::WORKER;
use super::run_folder::{self, RunStart, SUMMARY};
use crate::engine::budget::Spent;
use crate::engine::fact::{BranchResult, Fact, LineBranch, TaskCounts, Word};
use crate::engine::outcome::{Phase, Stand};
use crate::engine::refused::Refused;
use crate::engine::validation::Evidence;
use crate::files::atomic::{self, Durability};
use crate::files::own;
use crate::parallel;
use crate::tell::group::Group;

pub use landings::Landings;

/// The words of the command line that builds branches.
const BRANCHES: &str = "loop build";
/// The version of `ralph report --json`.
pub const VERSION: u32 = 1;

/// Larger summaries are not ours, in bytes.
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
    /// The words of the command line that start such loops, as in `loop build`; null if unknown.
    pub verb: Option<String>,
    /// The command line; empty if unknown.
    pub argv: Vec<String>,
    /// When it began; null if unknown.
    pub started_at: Option<DateTime<FixedOffset>>,
    /// When it ended, or the time of its last event.
    pub ended_at: Option<DateTime<FixedOffset>>,
    /// Whether its process runs.
    pub is_running: bool,
    /// The command to type next.
    #[serde(default)]
    pub next: Option<String>,
    /// How much has landed.
    #[serde(flatten, default)]
    pub landings: Landings,
    /// Its loops: what runs first, then by their groups; within these by name.
    pub loops: Vec<LoopReport>,
    /// The folder of the run, with the logs.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// The report of one loop in one run.
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
    /// The model's name, if the agent reported it.
    pub model: Option<String>,
    /// How it ended in one word, or `running`, `killed`, `queued` (not begun yet).
    pub end: String,
    /// Why it ended, in the finer words of `loop_ended`; null if it has not.
    pub exit_reason: Option<String>,
    /// As in `loop_ended`.
    pub exit_code: Option<u8>,
    /// The cause of a bad end, in the words of the agent, of git or of the validation.
    pub reason: Option<String>,
    /// What shows that its work is good; null if nothing is said of it.
    #[serde(default)]
    pub proof: Option<Evidence>,
    /// When it began.
    pub started_at: Option<DateTime<FixedOffset>>,
    /// When it ended, or the time of its last event.
    pub ended_at: Option<DateTime<FixedOffset>>,
    /// How long it worked in this run, in seconds; waits included.
    pub duration_s: f64,
    /// Iterations begun in this run.
    pub iterations: u64,
    /// Attempts begun in this run.
    pub attempts: u64,
    /// How many of these failed; a usage limit is no failure.
    pub failed_attempts: u64,
    /// Its cost in this run in US dollars; null if no agent reported it.
    pub cost_usd: Option<f64>,
    /// Input tokens in this run, including cached ones.
    pub input_tokens: u64,
    /// Output tokens in this run, including reasoning.
    pub output_tokens: u64,
    /// Its commits.
    pub work: Option<Work>,
    /// The tasks of the loop's target or plan; null if it has none.
    pub tasks: Option<TaskCounts>,
    /// When they were counted.
    #[serde(skip)]
    pub counted_at: Option<DateTime<FixedOffset>>,
    /// The tasks of the graph that it worked on, in that order.
    pub task_list: Vec<TaskReport>,
    /// How often each tool was called.
    pub tools: BTreeMap<String, u64>,
    /// What walls have refused to its agents, and to what looks at their work.
    #[serde(default)]
    pub refused: Vec<Refused>,
    /// What each of its agents has done, by the agent's name.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentReport>,
    /// When another agent went on.
    #[serde(default)]
    pub agent_changes: Vec<AgentChange>,
    /// The times in which it waited.
    pub waits: Vec<Wait>,
    /// The address of its pull request.
    pub pull_request: Option<String>,
    /// What is to be done about it; null while it runs.
    #[serde(default)]
    pub group: Option<Group>,
    /// The command to type next.
    #[serde(default)]
    pub next: Option<String>,
    /// What follows that command, in words.
    #[serde(default)]
    pub then: Option<String>,
    /// What was not done, and why.
    pub notes: Vec<String>,
    /// Its iterations in order; left out of a summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iteration_list: Vec<IterationReport>,
    /// Its commits, the newest first, at most a few hundred; left out of a summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commit_list: Vec<CommitReport>,
    /// The number of lines in its events logs that cannot be read: torn, or of a later version.
    pub unreadable_lines: u64,
    /// What it has told of landings.
    #[serde(skip)]
    pub(crate) landings: Option<Landings>,
    /// The folder of its logs, below the folder of the run.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The counts at its beginning, if it continues an earlier run.
    #[serde(skip)]
    pub(crate) before: Before,
}

/// The counts of a loop before a run that continues it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Before {
    spent: Spent,
    iterations: u64,
    attempts: u64,
    failed: u64,
}

/// Commits and changed lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Work {
    /// How many commits were made; null if unknown.
    pub commits: Option<u64>,
    /// How many files differ.
    pub files: Option<u64>,
    /// How many lines were added.
    pub insertions: Option<u64>,
    /// How many lines were deleted.
    pub deletions: Option<u64>,
    /// HEAD before; null if it named no commit.
    pub from: Option<String>,
    /// HEAD at the end.
    pub to: String,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CommitReport {
    /// Its id.
    pub id: String,
    /// Its time.
    pub at: DateTime<FixedOffset>,
    /// Its author.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
    /// How many files differ; 0 for a merge.
    pub files: u64,
    /// How many lines were added.
    pub insertions: u64,
    /// How many lines were deleted.
    pub deletions: u64,
}

/// A time in which a loop waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Wait {
    /// What it waited for, as in `waiting`; or `paused`, `queued`, `needs_attention`.
    pub what: String,
    /// When the wait began.
    pub from: DateTime<FixedOffset>,
    /// When the wait ended; null if it has not.
    pub to: Option<DateTime<FixedOffset>>,
    /// When the wait was to end at the latest.
    pub until: Option<DateTime<FixedOffset>>,
}

/// The outcome of a task of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskReport {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// As in `task_ended`; null if it had not ended when the run did.
    pub outcome: Option<String>,
    /// The reason, if there is one.
    pub reason: Option<String>,
    /// What shows that it is done; null if nothing is said of it.
    #[serde(default)]
    pub proof: Option<Evidence>,
    /// How many iterations worked on it.
    pub iterations: u64,
    /// How long its attempts took, in seconds.
    pub duration_s: f64,
    /// Its cost in US dollars; null if no agent reported it.
    pub cost_usd: Option<f64>,
    /// The commits of these iterations.
    pub work: Option<Work>,
    /// The command to type next about it.
    #[serde(default)]
    pub next: Option<String>,
}

/// One iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct IterationReport {
    /// Its number.
    pub number: u64,
    /// The id of its task.
    pub task: Option<String>,
    /// Its attempts.
    pub attempts: Vec<AttemptReport>,
    /// The result of its validation.
    pub validation: Option<ValidationReport>,
}

/// The result of a validation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ValidationReport {
    /// What has looked at the work, as in `npm test`; null if a record does not name it.
    #[serde(default)]
    pub by: Option<String>,
    /// Whether it succeeded.
    pub ok: bool,
    /// Whether it gave no verdict.
    pub undecided: bool,
    /// The end of its output.
    pub output: String,
}

/// What one agent has done in a loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct AgentReport {
    /// Its attempts.
    pub attempts: u64,
    /// Their cost in US dollars, with what looked at their work; null if it was not reported.
    pub cost_usd: Option<f64>,
    /// Input tokens, including cached ones.
    pub input_tokens: u64,
    /// Output tokens, including reasoning.
    pub output_tokens: u64,
}

/// Another agent goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct AgentChange {
    /// When.
    pub at: DateTime<FixedOffset>,
    /// The agent before.
    pub from: String,
    /// The agent that went on.
    pub to: String,
    /// Why, in words.
    pub why: String,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct AttemptReport {
    /// 0 for the first attempt of the iteration.
    pub retry: u32,
    /// When it began.
    pub started_at: DateTime<FixedOffset>,
    /// As in `attempt_ended`; null if it was cut off, or runs.
    pub status: Option<String>,
    /// Why it failed.
    pub failure: Option<String>,
    /// How long it took, in seconds.
    pub duration_s: Option<f64>,
    /// Its cost in US dollars; null if the agent did not report it.
    pub cost_usd: Option<f64>,
    /// Input tokens, including cached ones.
    pub input_tokens: Option<u64>,
    /// Output tokens, including reasoning.
    pub output_tokens: Option<u64>,
    /// How many tools it called.
    pub tool_calls: u64,
    /// HEAD before it.
    pub head_before: Option<String>,
    /// HEAD after it.
    pub head_after: Option<String>,
    /// The end of the assistant's last text.
    pub said: Option<String>,
}

impl RunReport {
    /// The summary that [`keep`](Self::keep) has written for an ended run: its report without iterations.
    #[must_use]
    pub fn kept(folder: &Path) -> Option<Self> {
        let text = own::read(&folder.join(SUMMARY), LARGEST).ok()?;
        let known: Self = serde_json::from_slice(&text).ok()?;
        (known.v == VERSION).then(|| Self { folder: folder.to_owned(), ..known })
    }

    /// Writes the summary of an ended run beside its logs, without iterations, because reading the logs is slow. If
    /// that fails, they are read again.
    pub fn keep(&self) {
        // An unreadable log may be readable next time.
        let is_unread = |one: &LoopReport| one.mode.is_empty() && !one.folder.as_os_str().is_empty();
        let is_newer = newer::of_run(&self.folder).is_some();
        if is_newer || run_folder::read_end(&self.folder).is_none() || self.loops.iter().any(is_unread) {
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

    /// Reads the folder of a run. Of a half-deleted run, the rest is reported.
    ///
    /// # Errors
    /// If the folder cannot be read.
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
                // The folder of the run does not have the name.
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
            // The log has lost its last line, and maybe more.
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
            landings: Landings::of(&mut loops),
            loops,
            folder: folder.to_owned(),
        })
    }
}

/// The loops of branches in the order of the plan, including those that never began, without those that were done
/// before.
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
            report.reason = branch.detail.as_ref().map(ToString::to_string);
            report.proof.clone_from(&branch.proof);
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
    /// Whether it runs; a waiting loop does, too.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        matches!(Stand::of(&self.end), Some(Stand::Live(live)) if live != Phase::Queued)
    }

    /// A loop of which only the name is known.
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
            proof: None,
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
            counted_at: None,
            task_list: Vec::new(),
            tools: BTreeMap::new(),
            refused: Vec::new(),
            agents: BTreeMap::new(),
            agent_changes: Vec::new(),
            waits: Vec::new(),
            pull_request: None,
            group: None,
            next: None,
            then: None,
            notes: Vec::new(),
            iteration_list: Vec::new(),
            commit_list: Vec::new(),
            unreadable_lines: 0,
            landings: None,
            folder: PathBuf::new(),
            before: Before::default(),
        }
    }
}

#[cfg(test)]
mod tests;
