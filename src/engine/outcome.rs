//! How a loop ended, and why: the one table from outcome to exit code, words and status.

use serde::{Deserialize, Serialize};

use crate::files::FileError;

/// How a loop ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Why.
    pub outcome: Outcome,
    /// What led there, where the outcome alone does not say it: what, where, and what to do.
    pub detail: Option<String>,
}

impl End {
    /// An end for the reason that `detail` says.
    #[must_use]
    pub fn because(outcome: Outcome, detail: impl Into<String>) -> Self {
        Self { outcome, detail: Some(detail.into()) }
    }
}

impl From<Outcome> for End {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, detail: None }
    }
}

impl From<FileError> for End {
    fn from(error: FileError) -> Self {
        Self::because(Outcome::RecordFailed, error.to_string())
    }
}

/// Why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The agent said that all work is done.
    Complete,
    /// All tasks are done.
    AllDone,
    /// All that was to be written is written.
    Written,
    /// What an agent has made does not pass, however often it is tried.
    Unproven,
    /// The assistant's text matched the user's pattern.
    DonePattern,
    /// Iterations change nothing any more.
    Idle,
    /// The loop was cancelled from another terminal.
    Cancelled,
    /// As many iterations as allowed have run.
    MaxIterations,
    /// The same, and the last one failed.
    LastFailed,
    /// As much money or as many tokens as allowed are used up.
    BudgetReached,
    /// As much time as allowed has passed.
    DurationReached,
    /// As much money or as many tokens as allowed are used up, and the last work is not proven.
    BudgetUnproven,
    /// As much time as allowed has passed, and the last work is not proven.
    DurationUnproven,
    /// The agent asked for a new plan.
    Replan,
    /// Build mode without an implementation plan.
    PlanMissing,
    /// There are no tasks.
    NoTasks,
    /// Some tasks are neither done nor failed, and none of them can be worked on here.
    Blocked,
    /// All tasks are done or failed, some have failed.
    TasksFailed,
    /// The agent said that nothing can be done.
    GivenUp,
    /// The prompt file vanished, or became unusable, while the loop ran.
    PromptLost,
    /// A file of ours cannot be written, as when the disk is full.
    RecordFailed,
    /// The graph of tasks was removed or replaced by another program while the loop ran.
    GraphLost,
    /// One iteration failed more often than it may be retried.
    AgentFailed,
    /// An iteration failed, and the user wants the loop to end then.
    StoppedOnError,
    /// Too many iterations in a row failed.
    Breaker,
    /// The same of a worker.
    WorkerFailed,
    /// The agent's program cannot be started any more.
    AgentMissing,
    /// The agent is not logged in.
    NotLoggedIn,
    /// The agent's account is out of credit.
    OutOfCredit,
    /// The agent's usage limit lasts longer than we may wait.
    LimitTooFar,
    /// The agent's provider is overloaded or out of order for longer than we may wait.
    Overloaded,
    /// The work is not where it belongs: a push or a pull request failed, or the work tree could not be made.
    GitFailed,
    /// Ctrl+C, SIGTERM or SIGHUP.
    Interrupted,
    /// A worker works on by itself, for a later ralph to watch.
    Detached,
    /// SIGTERM or SIGHUP: the machine or the session ends, the loop may go on later.
    Terminated,
}

/// What the world is told about a loop, running or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// An agent is at work.
    Running,
    /// Held, or ended in a way that invites to go on.
    Paused,
    /// Waiting for a usage limit to pass, or for a provider that is overloaded.
    Waiting,
    /// Waiting for a person to answer what stands on the agent's screen.
    NeedsAttention,
    /// Ended.
    Stopped,
    /// Ended by a failure.
    Failed,
}

/// The end of a loop in one word, the same wherever it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All work is done, as far as anybody looks whether it is.
    Done,
    /// It is said to be done, and what should prove that does not.
    Unproven,
    /// As many iterations as allowed have run, or the agent's usage limit is too far away.
    Limit,
    /// As much money, time or as many tokens as allowed are used up.
    Budget,
    /// Nothing changes any more.
    Idle,
    /// By Ctrl+C or a signal.
    Interrupted,
    /// From another terminal.
    Cancelled,
    /// The plan is to be made anew.
    Replan,
    /// What is left waits for something that is not done here.
    Blocked,
    /// There is nothing to do.
    Empty,
    /// The agent has failed.
    Failed,
    /// Something around the agent has: a file, git, a login.
    Error,
    /// Its process was killed.
    Killed,
}

impl Ended {
    /// Every word, in the order of the declaration.
    pub const ALL: [Self; 13] = [
        Self::Done,
        Self::Unproven,
        Self::Limit,
        Self::Budget,
        Self::Idle,
        Self::Interrupted,
        Self::Cancelled,
        Self::Replan,
        Self::Blocked,
        Self::Empty,
        Self::Failed,
        Self::Error,
        Self::Killed,
    ];

    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Unproven => "unproven",
            Self::Limit => "limit",
            Self::Budget => "budget",
            Self::Idle => "idle",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::Replan => "replan",
            Self::Blocked => "blocked",
            Self::Empty => "empty",
            Self::Failed => "failed",
            Self::Error => "error",
            Self::Killed => "killed",
        }
    }
}

/// One row of the table.
struct Row {
    code: u8,
    reason: &'static str,
    word: &'static str,
    status: Status,
    ended: Ended,
}

impl Outcome {
    /// Every outcome, in the order of the declaration.
    pub const ALL: [Self; 35] = [
        Self::Complete,
        Self::AllDone,
        Self::Written,
        Self::Unproven,
        Self::DonePattern,
        Self::Idle,
        Self::Cancelled,
        Self::MaxIterations,
        Self::LastFailed,
        Self::BudgetReached,
        Self::DurationReached,
        Self::BudgetUnproven,
        Self::DurationUnproven,
        Self::Replan,
        Self::PlanMissing,
        Self::NoTasks,
        Self::Blocked,
        Self::TasksFailed,
        Self::GivenUp,
        Self::PromptLost,
        Self::RecordFailed,
        Self::GraphLost,
        Self::AgentFailed,
        Self::StoppedOnError,
        Self::Breaker,
        Self::WorkerFailed,
        Self::AgentMissing,
        Self::NotLoggedIn,
        Self::OutOfCredit,
        Self::LimitTooFar,
        Self::Overloaded,
        Self::GitFailed,
        Self::Interrupted,
        Self::Detached,
        Self::Terminated,
    ];

    const fn row(self) -> Row {
        use Status::{Failed, Paused, Running, Stopped};
        let (code, reason, word, status, ended) = match self {
            Self::Complete => (0, "completion signal detected", "complete", Stopped, Ended::Done),
            Self::AllDone => (0, "all tasks are done", "complete", Stopped, Ended::Done),
            Self::Written => (0, "all is written", "complete", Stopped, Ended::Done),
            Self::Unproven => (4, "not proven", "unproven", Failed, Ended::Unproven),
            Self::MaxIterations => (0, "max iterations reached", "max_iterations", Stopped, Ended::Limit),
            Self::DonePattern => (0, "done pattern matched", "done_pattern", Stopped, Ended::Done),
            Self::Idle => (0, "nothing changes any more", "idle", Stopped, Ended::Idle),
            Self::Cancelled => (0, "cancelled", "cancelled", Stopped, Ended::Cancelled),
            Self::BudgetReached => (0, "budget reached", "budget", Paused, Ended::Budget),
            Self::DurationReached => (0, "max duration reached", "max_duration", Paused, Ended::Budget),
            Self::BudgetUnproven => {
                (4, "budget reached, the last work is not proven", "budget", Paused, Ended::Unproven)
            }
            Self::DurationUnproven => (
                4,
                "max duration reached, the last work is not proven",
                "max_duration",
                Paused,
                Ended::Unproven,
            ),
            Self::PromptLost => (1, "prompt file lost", "prompt_lost", Failed, Ended::Error),
            Self::RecordFailed => (1, "cannot write records", "record_failed", Failed, Ended::Error),
            Self::GraphLost => (5, "the graph of tasks was lost", "graph_lost", Failed, Ended::Error),
            Self::PlanMissing => (2, "implementation plan missing", "plan_missing", Failed, Ended::Empty),
            Self::NoTasks => (2, "there are no tasks", "empty", Failed, Ended::Empty),
            Self::Blocked => (3, "no task is ready", "blocked", Stopped, Ended::Blocked),
            Self::Replan => (3, "replan signal detected", "replan", Stopped, Ended::Replan),
            Self::AgentFailed => (4, "agent failure exceeded retries", "failed", Failed, Ended::Failed),
            Self::StoppedOnError => (4, "an iteration failed", "stop_on_error", Failed, Ended::Failed),
            Self::LastFailed => {
                (4, "max iterations reached, the last one failed", "max_iterations", Failed, Ended::Failed)
            }
            Self::TasksFailed => {
                (4, "no task is left, some have failed", "tasks_failed", Failed, Ended::Failed)
            }
            Self::GivenUp => (4, "the agent gave up", "failure", Failed, Ended::Failed),
            Self::WorkerFailed => {
                (1, "too many failures in a row of a worker", "failed", Failed, Ended::Failed)
            }
            Self::Breaker => (4, "too many failures in a row", "failed", Failed, Ended::Failed),
            Self::AgentMissing => (4, "agent cannot be started", "agent_missing", Failed, Ended::Error),
            Self::NotLoggedIn => (4, "agent is not logged in", "not_logged_in", Failed, Ended::Error),
            Self::OutOfCredit => (4, "account is out of credit", "out_of_credit", Failed, Ended::Error),
            Self::Overloaded => {
                (4, "provider is overloaded for too long", "overloaded", Failed, Ended::Error)
            }
            Self::LimitTooFar => (4, "usage limit is too far away", "usage_limit", Failed, Ended::Limit),
            Self::GitFailed => (5, "git operation failed", "git_failed", Failed, Ended::Error),
            Self::Interrupted => (130, "interrupted", "interrupted", Stopped, Ended::Interrupted),
            Self::Detached => (0, "it works on by itself", "monitor_disconnected", Running, Ended::Killed),
            Self::Terminated => (130, "terminated", "terminated", Paused, Ended::Interrupted),
        };
        Row { code, reason, word, status, ended }
    }

    /// This end where the last work is not proven; `None` where the end says nothing about the work, or that already: that a
    /// person has cancelled the loop is no claim, although it ends with 0.
    #[must_use]
    pub const fn if_unproven(self) -> Option<Self> {
        match self {
            Self::Complete
            | Self::AllDone
            | Self::Written
            | Self::DonePattern
            | Self::Idle
            | Self::MaxIterations => Some(Self::Unproven),
            Self::BudgetReached => Some(Self::BudgetUnproven),
            Self::DurationReached => Some(Self::DurationUnproven),
            _ => None,
        }
    }

    /// The process exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.row().code
    }

    /// The words after `Exit Reason:` in the session summary.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        self.row().reason
    }

    /// The `exit_reason` in JSON and state files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.row().word
    }

    /// The same in the words of the files of workers, which scripts know; `None` for a pause.
    #[must_use]
    pub const fn worker_word(self) -> Option<&'static str> {
        Some(match self {
            Self::Terminated => return None,
            Self::Cancelled | Self::Interrupted => "killed",
            outcome if matches!(outcome.status(), Status::Failed) => "failed",
            outcome => outcome.word(),
        })
    }

    /// The outcome that a record tells of by its `exit_reason` and its exit code; where some share both, one of them.
    #[must_use]
    pub fn recorded(word: &str, code: Option<u8>) -> Option<Self> {
        let with_code = || Self::ALL.into_iter().filter(|outcome| Some(outcome.code()) == code);
        let of_worker = || with_code().find(|outcome| outcome.worker_word() == Some(word));
        with_code().find(|outcome| outcome.word() == word).or_else(of_worker)
    }

    /// Whether a record tells both by the same words.
    #[must_use]
    pub fn has_words_of(self, other: Self) -> bool {
        (self.word(), self.code()) == (other.word(), other.code())
    }

    /// The end in one word.
    #[must_use]
    pub const fn ended(self) -> Ended {
        self.row().ended
    }

    /// The status of a loop that ended this way.
    #[must_use]
    pub const fn status(self) -> Status {
        self.row().status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_all() {
        assert!(Outcome::ALL.iter().enumerate().all(|(at, outcome)| *outcome as usize == at));
        assert!(Ended::ALL.iter().enumerate().all(|(at, ended)| *ended as usize == at));
        assert!(Ended::ALL.iter().all(|ended| serde_json::to_value(ended).unwrap() == ended.word()));
    }

    #[test]
    fn a_record_tells_the_end_by_reason_and_code() {
        for outcome in Outcome::ALL {
            let recorded = Outcome::recorded(outcome.word(), Some(outcome.code())).map(Outcome::ended);
            assert_eq!(recorded, Some(outcome.ended()), "{outcome:?}");
        }
        assert_eq!(Outcome::recorded("complete", Some(4)), None);
    }
}
