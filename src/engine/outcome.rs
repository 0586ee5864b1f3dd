//! Why a loop ended: the one table from outcome to exit code, words and status.

use serde::{Deserialize, Serialize};

/// Why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The agent said that all work is done.
    Complete,
    /// As many iterations as allowed have run.
    MaxIterations,
    /// The agent asked for a new plan.
    Replan,
    /// Build mode without an implementation plan.
    PlanMissing,
    /// The prompt file vanished, or became unusable, while the loop ran.
    PromptLost,
    /// A file of ours cannot be written, as when the disk is full.
    RecordFailed,
    /// One iteration failed more often than it may be retried.
    AgentFailed,
    /// The agent's program cannot be started any more.
    AgentMissing,
    /// The agent is not logged in.
    NotLoggedIn,
    /// The agent's usage limit lasts longer than we may wait.
    LimitTooFar,
    /// Ctrl+C, SIGTERM or SIGHUP.
    Interrupted,
    /// SIGTERM or SIGHUP: the machine or the session ends, the loop may go on later.
    Terminated,
}

/// What the world is told about a loop, running or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// An agent is at work.
    Running,
    /// Held, or ended in a way that invites to go on.
    Paused,
    /// Waiting for a usage limit to pass.
    Waiting,
    /// Ended.
    Stopped,
    /// Ended by a failure.
    Failed,
}

/// One row of the table.
struct Row {
    code: u8,
    reason: &'static str,
    word: &'static str,
    status: Status,
}

impl Outcome {
    const fn row(self) -> Row {
        use Status::{Failed, Paused, Stopped};
        let (code, reason, word, status) = match self {
            Self::Complete => (0, "completion signal detected", "complete", Stopped),
            Self::MaxIterations => (0, "max iterations reached", "max_iterations", Stopped),
            Self::PromptLost => (1, "prompt file lost", "prompt_lost", Failed),
            Self::RecordFailed => (1, "cannot write records", "record_failed", Failed),
            Self::PlanMissing => (2, "implementation plan missing", "plan_missing", Failed),
            Self::Replan => (3, "replan signal detected", "replan", Stopped),
            Self::AgentFailed => (4, "agent failure exceeded retries", "failed", Failed),
            Self::AgentMissing => (4, "agent cannot be started", "agent_missing", Failed),
            Self::NotLoggedIn => (4, "agent is not logged in", "not_logged_in", Failed),
            Self::LimitTooFar => (4, "usage limit is too far away", "usage_limit", Failed),
            Self::Interrupted => (130, "interrupted", "killed", Stopped),
            Self::Terminated => (130, "terminated", "killed", Paused),
        };
        Row { code, reason, word, status }
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

    /// The status of a loop that ended this way.
    #[must_use]
    pub const fn status(self) -> Status {
        self.row().status
    }
}
