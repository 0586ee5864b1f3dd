//! The state of a running loop: the one fold over its facts that all live displays and the iterations log use.

use chrono::{DateTime, FixedOffset};

use super::words::{PAUSED, QUEUED};
use crate::engine::budget::Budget;
use crate::engine::event::Stamped;
use crate::engine::fact::{Fact, TaskAtWork, TaskCounts, WaitReason, Word};
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::policy::Limits;
use crate::engine::stop::Urgency;
use crate::engine::tally::Tally;
use crate::engine::validation::reason;
use crate::text::line::one_line;
use crate::text::terminal::message;

/// The state of a loop for displays.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) iteration: u64,
    /// The number of the last iteration that may begin.
    pub(crate) last_iteration: Option<u64>,
    /// Its limits, if the beginning of its log has them.
    pub(crate) limits: Option<Limits>,
    /// The mean duration of its attempts so far, in seconds.
    pub(crate) mean: Option<f64>,
    /// Its cost in US dollars.
    pub(crate) cost_usd: Option<f64>,
    /// Its cost before this run.
    cost_before: f64,
    /// The current task of a graph.
    pub(crate) task: Option<AtTask>,
    /// The counts of its target's tasks.
    pub(crate) tasks: Option<TaskCounts>,
    pub(crate) doing: Doing,
    /// How urgently it was asked to stop.
    pub(crate) urgency: Urgency,
    /// Why the work of the current iteration has not passed its validation.
    pub(crate) refuted: Option<String>,
    pub(crate) end: Option<Ended>,
}

/// The current task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AtTask {
    /// Its title; says first if it is being verified.
    pub(crate) title: String,
    pub(crate) model: Option<String>,
    /// Whether its target has more than one task.
    pub(crate) is_of_many: bool,
}

/// The activity of a loop.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Doing {
    #[default]
    Starting,
    Thinking,
    Tool(String),
    Background(String),
    Validating,
    BetweenAttempts,
    Retrying {
        retry: u32,
        max_retries: u32,
    },
    Waiting {
        reason: Word<WaitReason>,
        until: DateTime<FixedOffset>,
    },
    Queued,
    Paused,
}

impl Seen {
    /// Applies one fact.
    pub(crate) fn take(&mut self, stamped: &Stamped<'_>) {
        let tally = stamped.tally;
        match stamped.fact {
            Fact::LoopStarted { limits, max_iterations, .. } => {
                self.end = None;
                self.cost_before = tally.spent.dollars();
                self.limits = limits.as_deref().map(Limits::from);
                self.last_iteration = tally.last_iteration(*max_iterations);
                self.count(tally);
            }
            Fact::LimitsChanged { max_iterations } => {
                self.last_iteration = tally.last_iteration(*max_iterations);
                self.count(tally);
            }
            Fact::AttemptStarted { .. } => {
                self.count(tally);
                self.refuted = None;
                self.doing = Doing::Thinking;
            }
            Fact::TaskStarted { task, tasks, verifies } => {
                self.tasks = Some(*tasks);
                self.begin_task(task, *verifies, tasks.total > 1);
            }
            Fact::TaskEnded { tasks, .. } | Fact::Landed { tasks, .. } | Fact::Returned { tasks, .. } => {
                self.tasks = Some(*tasks);
            }
            Fact::Verifying { task } => {
                let is_of_many = self.task.as_ref().is_some_and(|task| task.is_of_many);
                self.begin_task(task, true, is_of_many);
            }
            Fact::Validated { by, ok, output, undecided } => {
                self.refuted = (!ok).then(|| reason(by.as_deref(), *undecided, output));
            }
            Fact::AttemptEnded(_) => {
                self.count(tally);
                self.doing = Doing::BetweenAttempts;
            }
            Fact::Asked { stopping: Word::Known(urgency), .. } => self.urgency = *urgency,
            // An answer after Ctrl+C lets the loop continue.
            Fact::Answered { text: Some(_) } => self.urgency = Urgency::None,
            Fact::LoopEnded(_) => {
                self.count(tally);
                self.doing = Doing::BetweenAttempts;
                self.end = Some(stamped.outcome().map_or(Ended::Failed, Outcome::ended));
            }
            fact => self.does(fact),
        }
    }

    fn does(&mut self, fact: &Fact<'_>) {
        self.doing = match fact {
            Fact::Tool { input, name } => Doing::Tool(plain(&format!("{name} {input}"))),
            Fact::Text { .. } | Fact::TextDelta { .. } | Fact::Thought { .. } => Doing::Thinking,
            Fact::Background { tasks, .. } => Doing::Background(plain(tasks)),
            Fact::Validating { .. } => Doing::Validating,
            &Fact::Retrying { max_retries, retry, .. } => Doing::Retrying { retry, max_retries },
            Fact::Waiting { reason, until, .. } => Doing::Waiting { reason: reason.clone(), until: *until },
            Fact::Queued => Doing::Queued,
            Fact::Paused => Doing::Paused,
            Fact::Resumed { .. } => Doing::BetweenAttempts,
            _ => return,
        }
    }

    fn begin_task(&mut self, task: &TaskAtWork<'_>, verifies: bool, is_of_many: bool) {
        let what = if verifies { "verifying " } else { "" };
        let title = what.to_owned() + &plain(&task.title);
        self.task = Some(AtTask { title, model: task.model.as_deref().map(plain), is_of_many });
        self.doing = Doing::Thinking;
    }

    fn count(&mut self, tally: &Tally) {
        self.iteration = tally.iteration;
        self.mean = tally.durations.mean();
        self.cost_usd = tally.spent.cost_usd;
    }

    /// `/20` after the number of an iteration, if there is a limit.
    pub(crate) fn of(&self) -> String {
        self.last_iteration.map(|last| format!("/{last}")).unwrap_or_default()
    }

    /// Its limits besides iterations.
    pub(crate) fn budget(&self) -> Budget {
        self.limits.as_ref().map(|limits| limits.budget).unwrap_or_default()
    }

    /// The cost of this run in US dollars.
    pub(crate) fn own_cost(&self) -> Option<f64> {
        self.cost_usd.map(|cost| cost - self.cost_before)
    }

    /// Whether an attempt is running.
    pub(crate) fn is_at_work(&self) -> bool {
        matches!(self.doing, Doing::Thinking | Doing::Tool(_) | Doing::Background(_) | Doing::Validating)
    }
}

impl Doing {
    /// Whether the end of a wait is known; that of a full disk is not.
    pub(crate) fn has_end(&self) -> bool {
        matches!(self, Self::Waiting { reason, .. } if reason.has_end())
    }

    /// A few words, except for a wait, which its display words with its end.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Starting => "starting".to_owned(),
            Self::Thinking => "thinking".to_owned(),
            Self::Tool(tool) => tool.clone(),
            Self::Background(tasks) => format!("in the background: {tasks}"),
            Self::Validating => "validating".to_owned(),
            Self::BetweenAttempts => "between attempts".to_owned(),
            Self::Retrying { retry, max_retries } => format!("before retry {retry}/{max_retries}"),
            Self::Waiting { reason, .. } => super::words::wait(reason).to_owned(),
            Self::Queued => QUEUED.to_owned(),
            Self::Paused => PAUSED.to_owned(),
        }
    }
}

/// On one line, without anything that could control a terminal.
fn plain(text: &str) -> String {
    one_line(&message(text))
}
