//! The snapshot of a loop: the contents of its row and of the lines about the selected one.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anstyle::Style;
use chrono::{DateTime, Local, Utc};

use crate::engine::fact::TaskCounts;
use crate::engine::outcome::{Ended, Phase, Stand, Status};
use crate::engine::validation::Evidence;
use crate::record::state::State;
use crate::tell::group::{Group, Place, UNKNOWN, place, rank};
use crate::tell::words::sign;
use crate::text::count::money;
use crate::text::{count, duration, timestamp};
use crate::view::cells::plain;
use crate::view::report::done_of;
use crate::view::snapshot::LoopSnapshot;
use crate::view::status::budget;

/// The identity of a loop: the folder of its records.
pub(crate) type Key = PathBuf;

/// One loop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: Key,
    /// Its name.
    pub(crate) name: String,
    /// The id of its newest run.
    pub(super) run: String,
    /// The folder of its project.
    pub(crate) project: String,
    /// Its state or its end.
    pub(crate) word: &'static str,
    /// Whether its process runs.
    pub(crate) is_alive: bool,
    /// Whether its agents run in windows of tmux.
    pub(crate) is_worker: bool,
    /// The path of its latest events.
    pub(crate) events_log: Option<PathBuf>,
    /// The path of its iterations log.
    pub(crate) iterations_log: PathBuf,
    /// When it began.
    pub(crate) started: Option<DateTime<Utc>>,
    /// In US dollars.
    pub(crate) cost: Option<f64>,
    /// Of its tasks.
    pub(crate) tasks: Option<TaskCounts>,
    /// `3/20` of its iterations.
    pub(crate) iteration: String,
    /// What to type next; `None` while it runs.
    pub(crate) next: Option<String>,
    pub(super) ended: Option<DateTime<Utc>>,
    pub(super) heard: Option<DateTime<Utc>>,
    pub(super) until: Option<DateTime<Utc>>,
    pub(super) pending: &'static str,
    /// Lines of facts that no clock changes, the most important first.
    pub(super) facts: Vec<String>,
    /// What is to be done about it, once it has ended.
    pub(super) group: Option<Group>,
    /// What shows that its work is good, once it has ended.
    pub(super) proof: Option<Evidence>,
    /// The failure, or why nothing is known.
    pub(super) trouble: Option<String>,
}

/// What is known of a loop besides its state.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// When its latest event was written.
    pub(crate) heard: Option<SystemTime>,
    /// Of its tasks.
    pub(crate) tasks: Option<TaskCounts>,
}

impl Row {
    /// Of what was seen.
    #[must_use]
    pub(crate) fn of(seen: &LoopSnapshot<'_>, beside: &Beside) -> Self {
        let found = seen.found;
        let project = &found.project;
        let root = project.root().file_name().map(|name| name.to_string_lossy().into_owned());
        let advice = seen.advice();
        let mut row = Self {
            key: project.records(),
            name: found.name.clone(),
            run: found.run().to_owned(),
            project: root.unwrap_or_default(),
            word: seen.word(),
            is_alive: seen.alive,
            is_worker: project.is_of_worker(),
            events_log: found.events_log(),
            iterations_log: project.iterations_log(),
            started: None,
            cost: None,
            tasks: beside.tasks.filter(|tasks| tasks.total > 0),
            iteration: String::new(),
            next: advice.as_ref().and_then(|advice| advice.command.clone()).filter(|_| found.is_own()),
            ended: None,
            heard: beside.heard.map(DateTime::from),
            until: None,
            pending: "",
            facts: Vec::new(),
            group: advice.map(|advice| advice.group),
            proof: None,
            trouble: None,
        };
        match &found.state {
            Ok(state) => row.tell(seen, state),
            Err(why) => row.trouble = Some(why.clone()),
        }
        row
    }

    fn tell(&mut self, seen: &LoopSnapshot<'_>, state: &State) {
        self.started = Some(state.started_at);
        self.ended = state.ended_at.filter(|_| !seen.alive);
        self.until = state.waiting_until.filter(|_| seen.alive && state.status == Status::Waiting);
        self.cost = state.tally.spent.cost_usd;
        self.pending = seen.pending(state);
        self.iteration = state.progress();
        self.facts = facts(state, seen.found.project.is_of_branch());
        self.proof = state.proof.clone().filter(|_| !seen.alive);
        // What refutes its work says so already.
        let is_told = |why: &String| self.proof.as_ref().is_some_and(|proof| proof.by == *why);
        self.trouble = trouble(state, seen.alive).filter(|why| !is_told(why));
    }

    /// The sign before its name and its colour.
    pub(super) fn sign(&self) -> (Style, &'static str) {
        match self.word {
            UNKNOWN => (sign(Ended::Failed.word(), None).0, "!"),
            word => match Stand::of(word) {
                Some(Stand::Live(Phase::Running)) if !self.is_alive => sign(Ended::Killed.word(), None),
                Some(Stand::Live(Phase::NeedsAttention)) => (sign(Ended::Failed.word(), None).0, "!"),
                _ => sign(word, self.proof.as_ref()),
            },
        }
    }

    /// Its group when the list is sorted by state: loops that need a person first, ended ones last.
    pub(super) fn rank(&self) -> u8 {
        rank(self.word, self.group)
    }

    /// Its place in the list, see [`place`].
    pub(super) fn place(&self) -> Place<'_> {
        place(self.word, self.group, &self.run, &self.name)
    }

    /// The time cell: how long it still waits, how long it has been silent, when it ended.
    pub(super) fn clock(&self, now: DateTime<Utc>) -> String {
        let since = |at: DateTime<Utc>| (now - at).to_std().unwrap_or_default();
        match (self.until, self.heard.or(self.started)) {
            (Some(until), _) => {
                format!("{} left", duration::rough((until - now).to_std().unwrap_or_default()))
            }
            (None, Some(heard)) if self.is_alive => duration::rough(since(heard)),
            _ => self.ended.map(|at| format!("{} ago", ago(since(at)))).unwrap_or_default(),
        }
    }

    /// Its state, in a line.
    pub(super) fn standing(&self, now: DateTime<Local>) -> String {
        let mut parts = vec![format!("{}{}", self.word.replace('_', " "), self.pending)];
        parts.extend(self.tasks.map(|tasks| format!("{} tasks", done_of(tasks))));
        if !self.iteration.is_empty() {
            parts.push(format!("iteration {}", self.iteration));
        }
        if let Some(started) = self.started {
            let end = self.ended.unwrap_or(now.to_utc());
            parts.push(duration::rough((end - started).to_std().unwrap_or_default()));
        }
        parts.extend(money(self.cost));
        if let Some(until) = self.until {
            let left = duration::rough((until - now.to_utc()).to_std().unwrap_or_default());
            parts.push(format!("until {}, {left} left, r tries now", timestamp::nearby(&until, now)));
        } else if self.is_alive
            && let Some(silent) = self.heard.and_then(|heard| (now.to_utc() - heard).to_std().ok())
            && silent >= SILENT
        {
            parts.push(format!("silent for {}", duration::rough(silent)));
        }
        parts.join(" · ")
    }

    /// Whether it matches this filter: all its words are in its name, its project, or its state.
    pub(super) fn is_meant(&self, filter: &str) -> bool {
        let text = format!("{} {} {}", self.name, self.project, self.word.replace('_', " "));
        let text = text.to_lowercase();
        filter.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }
}

/// How long a loop must be silent to be shown as silent.
const SILENT: Duration = Duration::from_secs(30);

/// The largest unit alone: `42s`, `16m`, `5h`, `3d`.
fn ago(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// The facts that no clock changes.
fn facts(state: &State, is_of_branch: bool) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(at) = &state.at_task {
        let what = match &at.task_became {
            Some(word) => format!("{word}: "),
            None if at.task_verifies => "verifying ".to_owned(),
            None => String::new(),
        };
        facts.push(format!("{what}{} {}", at.task, at.task_title));
    }
    let mut parts = vec![format!("{} with {}", state.mode, state.agent)];
    parts.extend(state.agent_model.clone());
    parts.extend(state.agent_context.map(|context| format!("context {context}")));
    let (read, written) = (state.tally.spent.input_tokens, state.tally.spent.output_tokens);
    if read + written > 0 {
        parts.push(format!("{} tokens read, {} written", count::short(read), count::short(written)));
    }
    if state.tally.failed > 0 {
        parts.push(format!("{} failed", count::of(state.tally.failed, "iteration")));
    }
    facts.push(parts.join(" · "));
    facts.extend(budget(&state.budget, is_of_branch));
    facts
}

/// Why it has ended, or what went wrong last.
fn trouble(state: &State, is_alive: bool) -> Option<String> {
    let is_at_odds = state.tally.consecutive_errors > 0 || state.tally.retries > 0;
    let error = || state.tally.last_error.clone().filter(|_| is_at_odds);
    let why = if is_alive { error() } else { state.reason() };
    why.as_deref().map(plain)
}
