//! How a loop ended, and why: the one table from outcome to exit code, words and status.

use serde::{Deserialize, Serialize};

use Status::{Failed, Paused, Running, Stopped};

use crate::files::FileError;

/// How a loop ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Why.
    pub outcome: Outcome,
    /// Details beyond the outcome: what, where, and what to do.
    pub detail: Option<String>,
}

impl End {
    /// An end with this outcome and this detail.
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

/// Declares an enum with a table row for each variant, `ALL`, and `row`, which returns the row of a variant.
macro_rules! table {
    ($(#[$meta:meta])* $table:ident -> $row:ty { $($(#[$doc:meta])* $name:ident = $value:expr;)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $table { $($(#[$doc])* $name,)* }

        impl $table {
            /// All variants, in the order of the declaration.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            const fn row(self) -> $row {
                match self { $(Self::$name => $value,)* }
            }
        }
    };
}

table! {
    /// Why a loop ended.
    Outcome -> Row {
        /// The agent said that all work is done.
        Complete = row(0, "completion signal detected", "complete", Stopped, Ended::Done)
            .if_unproven(Outcome::Unproven);
        /// All tasks are done.
        AllDone = row(0, "all tasks are done", "complete", Stopped, Ended::Done)
            .if_unproven(Outcome::Unproven);
        /// Everything that was to be written is written.
        Written = row(0, "all is written", "complete", Stopped, Ended::Done).if_unproven(Outcome::Unproven);
        /// An agent's result was refused as often as it may be tried.
        Unproven = row(4, "not proven", "unproven", Failed, Ended::Unproven).wants_more_iterations();
        /// The assistant's text matched the user's pattern.
        DonePattern = row(0, "done pattern matched", "done_pattern", Stopped, Ended::Done)
            .if_unproven(Outcome::Unproven);
        /// Iterations change nothing any more.
        Idle = row(0, "nothing changes any more", "idle", Stopped, Ended::Idle)
            .if_unproven(Outcome::Unproven).by(By::Limits);
        /// The loop was cancelled from another terminal.
        Cancelled = row(0, "cancelled", "cancelled", Stopped, Ended::Cancelled).by(By::People);
        /// As many iterations as allowed have run.
        MaxIterations = row(0, "max iterations reached", "max_iterations", Stopped, Ended::Limit)
            .wants_more_iterations().if_unproven(Outcome::Unproven).if_failed(Outcome::LastFailed).by(By::Limits);
        /// As many iterations as allowed have run, and the last one failed.
        LastFailed = row(4, "max iterations reached, the last one failed", "max_iterations", Failed, Ended::Failed)
            .wants_more_iterations().by(By::Limits);
        /// As much money or as many tokens as allowed are used up.
        BudgetReached = row(0, "budget reached", "budget", Paused, Ended::Budget)
            .if_unproven(Outcome::BudgetUnproven).if_failed(Outcome::BudgetFailed).by(By::Limits);
        /// As much time as allowed has passed.
        DurationReached = row(0, "max duration reached", "max_duration", Paused, Ended::Budget)
            .if_unproven(Outcome::DurationUnproven).if_failed(Outcome::DurationFailed).by(By::Limits);
        /// As much money or as many tokens as allowed are used up, and the last work is not proven.
        BudgetUnproven = row(4, "budget reached, the last work is not proven", "budget", Paused, Ended::Unproven).by(By::Limits);
        /// As much time as allowed has passed, and the last work is not proven.
        DurationUnproven = row(4, "max duration reached, the last work is not proven", "max_duration", Paused, Ended::Unproven).by(By::Limits);
        /// As much money or as many tokens as allowed are used up, and the last iteration failed.
        BudgetFailed = row(4, "budget reached, the last iteration failed", "budget_failed", Paused, Ended::Failed)
            .if_unproven(Outcome::BudgetUnproven).by(By::Limits);
        /// As much time as allowed has passed, and the last iteration failed.
        DurationFailed =
            row(4, "max duration reached, the last iteration failed", "max_duration_failed", Paused, Ended::Failed)
            .if_unproven(Outcome::DurationUnproven).by(By::Limits);
        /// The agent asked for a new plan.
        Replan = row(3, "replan signal detected", "replan", Stopped, Ended::Replan);
        /// Build mode without an implementation plan.
        PlanMissing = row(2, "implementation plan missing", "plan_missing", Failed, Ended::Empty);
        /// There are no tasks.
        NoTasks = row(2, "there are no tasks", "empty", Failed, Ended::Empty);
        /// Some tasks are neither done nor failed, and none of them can be claimed here.
        Blocked = row(3, "no task is ready", "blocked", Stopped, Ended::Blocked);
        /// All tasks are done or failed, some have failed.
        TasksFailed = row(4, "no task is left, some have failed", "tasks_failed", Failed, Ended::Failed);
        /// The agent said that nothing can be done.
        GivenUp = row(4, "the agent gave up", "failure", Failed, Ended::Failed);
        /// The prompt file vanished, or became unusable, while the loop ran.
        PromptLost = row(1, "prompt file lost", "prompt_lost", Failed, Ended::Error);
        /// The validation names a program that does not exist, so that nothing can be proven.
        CannotValidate = row(1, "validation cannot run", "cannot_validate", Failed, Ended::Error).goes_on();
        /// A file of ours cannot be written, as when the disk is full.
        RecordFailed = row(1, "cannot write records", "record_failed", Failed, Ended::Error).goes_on();
        /// The graph of tasks was removed or replaced by another program while the loop ran.
        GraphLost = row(5, "the graph of tasks was lost", "graph_lost", Failed, Ended::Error);
        /// The server with the tasks, or the remote of the repository, cannot be used for longer than we may wait.
        StoreAway = row(5, "the store or the remote cannot be used", "store_away", Failed, Ended::Error);
        /// That server, or that remote, refuses what is to be kept there, which passes only when a person sees to it.
        StoreRefused = row(1, "the store or the remote refuses", "store_refused", Failed, Ended::Error);
        /// One iteration failed more often than it may be retried.
        AgentFailed = row(4, "agent failure exceeded retries", "failed", Failed, Ended::Failed);
        /// One iteration failed that was not retried: none is allowed, or it would fail again.
        NotRetried = row(4, "agent failure, not retried", "failed", Failed, Ended::Failed);
        /// An iteration failed, and the user wants the loop to end then.
        StoppedOnError = row(4, "an iteration failed", "stop_on_error", Failed, Ended::Failed);
        /// Too many iterations in a row failed.
        Breaker = row(4, "too many failures in a row", "failed", Failed, Ended::Failed);
        /// Too many iterations of a worker in a row failed.
        WorkerFailed = row(1, "too many failures in a row of a worker", "failed", Failed, Ended::Failed);
        /// An attempt has changed what no work needs to change, and the user wants the loop to end then.
        Tripped = row(4, "something beside the work was changed", "tripwire", Failed, Ended::Failed);
        /// The agent's program cannot be started any more.
        AgentMissing = row(4, "agent cannot be started", "agent_missing", Failed, Ended::Error).goes_on();
        /// The agent is not logged in.
        NotLoggedIn = row(4, "agent is not logged in", "not_logged_in", Failed, Ended::Error).goes_on();
        /// The agent's account is out of credit.
        OutOfCredit = row(4, "account is out of credit", "out_of_credit", Failed, Ended::Error).goes_on();
        /// The agent, or its provider, does not have the model.
        NoModel = row(4, "agent does not have the model", "no_model", Failed, Ended::Error).goes_on();
        /// The agent's usage limit lasts longer than the loop may wait.
        LimitTooFar = row(4, "usage limit is too far away", "usage_limit", Failed, Ended::Limit).goes_on().by(By::Limits);
        /// The agent's provider is overloaded or out of order for longer than the loop may wait.
        Overloaded = row(4, "provider is overloaded for too long", "overloaded", Failed, Ended::Error)
            .goes_on().by(By::Limits);
        /// There is no connection to the agent's provider for longer than we may wait.
        NoConnection =
            row(4, "no connection to the provider for too long", "no_connection", Failed, Ended::Error).goes_on().by(By::Limits);
        /// A push or a pull request failed, or the work tree could not be made.
        GitFailed = row(5, "git operation failed", "git_failed", Failed, Ended::Error);
        /// Ctrl+C, SIGTERM or SIGHUP.
        Interrupted = row(130, "interrupted", "interrupted", Stopped, Ended::Interrupted).goes_on().by(By::People);
        /// A worker goes on by itself; a later ralph can monitor it.
        Detached = row(0, "it works on by itself", "monitor_disconnected", Running, Ended::Killed).by(By::People);
        /// SIGTERM or SIGHUP: the machine or the session ends, and the loop can be resumed later.
        Terminated = row(130, "terminated", "terminated", Paused, Ended::Interrupted).by(By::People);
    }
}

/// The status of a loop, running or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// An agent is at work.
    Running,
    /// Held, or ended in a way that is meant to be resumed.
    Paused,
    /// Waiting for a usage limit to pass, or for a provider that is overloaded.
    Waiting,
    /// Waiting for a person to answer a question on the agent's screen.
    NeedsAttention,
    /// Ended.
    Stopped,
    /// Ended by a failure.
    Failed,
}

impl Status {
    /// The word in files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => Phase::Running.word(),
            Self::Paused => Phase::Paused.word(),
            Self::Waiting => Phase::Waiting.word(),
            Self::NeedsAttention => Phase::NeedsAttention.word(),
            Self::Stopped => "stopped",
            Self::Failed => Ended::Failed.word(),
        }
    }
}

table! {
    /// The end of a loop in one word, as every view shows it.
    Ended -> &'static str {
        /// All work is done, as far as it was checked.
        Done = "done";
        /// The agent claims that it is done, and the proof is missing.
        Unproven = "unproven";
        /// As many iterations as allowed have run, or the agent's usage limit is too far away.
        Limit = "limit";
        /// As much money, time or as many tokens as allowed are used up.
        Budget = "budget";
        /// The latest iterations have changed nothing.
        Idle = "idle";
        /// It was ended by Ctrl+C or a signal.
        Interrupted = "interrupted";
        /// It was cancelled from another terminal.
        Cancelled = "cancelled";
        /// The plan is to be made anew.
        Replan = "replan";
        /// The remaining work waits for something outside this run.
        Blocked = "blocked";
        /// There is nothing to do.
        Empty = "empty";
        /// The agent has failed.
        Failed = "failed";
        /// Something around the agent has failed: a file, git, a login.
        Error = "error";
        /// Its process was killed.
        Killed = "killed";
    }
}

impl Ended {
    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.row()
    }
}

table! {
    /// Where a loop stands that has not ended, in one word, as every view shows it.
    Phase -> &'static str {
        /// An agent is at work.
        Running = "running";
        /// It waits for a limit to pass, a provider, or room on the disk.
        Waiting = "waiting";
        /// It holds until it is resumed.
        Paused = "paused";
        /// It waits for its turn among other loops.
        Queued = "queued";
        /// It waits for a person to answer a question.
        NeedsAttention = "needs_attention";
    }
}

impl Phase {
    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.row()
    }
}

/// Where a loop stands, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// It has not ended.
    Live(Phase),
    /// It has.
    Ended(Ended),
}

impl Stand {
    /// The one with this word; `None`: it is a word of another version.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let live = Phase::ALL.into_iter().find(|live| live.word() == word).map(Self::Live);
        live.or_else(|| Ended::ALL.into_iter().find(|ended| ended.word() == word).map(Self::Ended))
    }
}

/// The properties of an outcome.
struct Row {
    code: u8,
    reason: &'static str,
    word: &'static str,
    status: Status,
    ended: Ended,
    if_unproven: Option<Outcome>,
    if_failed: Option<Outcome>,
    goes_on: bool,
    wants_more_iterations: bool,
    by: By,
}

/// What ends a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Only the policy, for a limit.
    Limits,
    /// A person or the system, before the policy is asked.
    People,
    /// An agent, its work, or something around it.
    Work,
}

/// The exit code, the words after `Exit Reason:`, the word in files, the status, and the end in one word.
const fn row(code: u8, reason: &'static str, word: &'static str, status: Status, ended: Ended) -> Row {
    Row {
        code,
        reason,
        word,
        status,
        ended,
        if_unproven: None,
        if_failed: None,
        goes_on: false,
        wants_more_iterations: false,
        by: By::Work,
    }
}

impl Row {
    const fn if_unproven(self, outcome: Outcome) -> Self {
        Self { if_unproven: Some(outcome), ..self }
    }

    const fn if_failed(self, outcome: Outcome) -> Self {
        Self { if_failed: Some(outcome), ..self }
    }

    const fn goes_on(self) -> Self {
        Self { goes_on: true, ..self }
    }

    const fn wants_more_iterations(self) -> Self {
        Self { wants_more_iterations: true, ..self }
    }

    const fn by(self, by: By) -> Self {
        Self { by, ..self }
    }
}

impl Outcome {
    /// This outcome when the last work is not proven; `None` if it claims nothing about the work (a cancelled loop ends with 0
    /// as well), or is an unproven one already.
    #[must_use]
    pub const fn if_unproven(self) -> Option<Self> {
        self.row().if_unproven
    }

    /// This outcome when the last iteration failed; `None` if it is no limit.
    #[must_use]
    pub const fn if_failed(self) -> Option<Self> {
        self.row().if_failed
    }

    /// Whether the loop was cut off, so that a resume goes on in the middle of it.
    #[must_use]
    pub const fn goes_on(self) -> bool {
        self.row().goes_on
    }

    /// Whether the loop has used all its iterations: to go on it needs more of them.
    #[must_use]
    pub const fn wants_more_iterations(self) -> bool {
        self.row().wants_more_iterations
    }

    /// Whether only the policy ends loops like this, for a limit.
    #[must_use]
    pub const fn is_by_limits(self) -> bool {
        matches!(self.row().by, By::Limits)
    }

    /// Whether a person or the system has ended the loop.
    #[must_use]
    pub const fn is_by_people(self) -> bool {
        matches!(self.row().by, By::People)
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

    /// The `exit_reason` in the files of workers, which scripts know; `None` for a pause.
    #[must_use]
    pub const fn worker_word(self) -> Option<&'static str> {
        Some(match self {
            Self::Terminated => return None,
            Self::Cancelled | Self::Interrupted => "killed",
            outcome if matches!(outcome.status(), Status::Failed) => "failed",
            outcome => outcome.word(),
        })
    }

    /// The outcome with this `exit_reason` and exit code in a record; if several share both, one of them.
    #[must_use]
    pub fn recorded(word: &str, code: Option<u8>) -> Option<Self> {
        let with_code = || Self::ALL.into_iter().filter(|outcome| Some(outcome.code()) == code);
        let of_worker = || with_code().find(|outcome| outcome.worker_word() == Some(word));
        with_code().find(|outcome| outcome.word() == word).or_else(of_worker)
    }

    /// Whether a record has the same words for both.
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
        for status in [
            Status::Running,
            Status::Paused,
            Status::Waiting,
            Status::NeedsAttention,
            Status::Stopped,
            Status::Failed,
        ] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.word());
        }
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
