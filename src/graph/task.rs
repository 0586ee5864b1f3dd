//! A task, as it is shown and as programs read it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Where a task stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing holds it back.
    #[default]
    Pending,
    /// Somebody is at work on it.
    InProgress,
    /// Finished.
    Done,
    /// It, or a task above it, waits for another one.
    Blocked,
    /// Given up.
    Failed,
}

impl Status {
    /// Every status, in the order of their numbers in a store.
    pub const ALL: [Self; 5] = [Self::Pending, Self::InProgress, Self::Done, Self::Blocked, Self::Failed];

    /// The word for it, in commands and in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
        }
    }
}

/// What a verifying agent said of the task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// Nothing yet.
    #[default]
    Pending,
    /// It is done indeed.
    Passed,
    /// It is not.
    Failed,
}

impl Verification {
    /// Every value, in the order of their numbers in a store.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Passed, Self::Failed];
}

/// One task. Its JSON is stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// `t-` and at least six hexadecimal digits.
    pub id: String,
    /// The task that this one is a part of.
    pub parent_id: Option<String>,
    /// One line.
    pub title: String,
    /// What is to be done; may be empty.
    pub description: String,
    /// Where it stands.
    pub status: Status,
    /// Lower numbers go first.
    pub priority: i64,
    /// When it was added.
    pub created_at: DateTime<Utc>,
    /// When anything of it changed last.
    pub updated_at: DateTime<Utc>,
    /// The run at work on it.
    pub claimed_by: Option<String>,
    /// The feature it belongs to: `f-` and hexadecimal digits.
    pub feature_id: Option<String>,
    /// `feature` or `standalone`.
    pub task_type: &'static str,
    /// How often it was tried again.
    pub retry_count: u32,
    /// How often it may be.
    pub max_retries: u32,
    /// What a verifying agent said of it.
    pub verification_status: Verification,
}

/// A line of a task's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// What happened.
    pub message: String,
    /// A person or an agent has written it, and not ralph.
    #[serde(default)]
    pub said: bool,
    /// When.
    pub timestamp: DateTime<Utc>,
}

/// All there is to say about a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Details {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The name of its feature.
    pub feature: Option<String>,
    /// The ids of the tasks that it waits for, finished ones included.
    pub blockers: Vec<String>,
    /// The ids of the tasks that wait for it.
    pub blocks: Vec<String>,
    /// The ids of its parts.
    pub children: Vec<String>,
    /// What happened to it, oldest first.
    pub log: Vec<LogLine>,
}
