//! A task, as it is shown and as programs read it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::landing::Landing;

/// The state of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits for nothing.
    #[default]
    Pending,
    /// It is claimed.
    InProgress,
    /// Its work is done and proven, and waits to come onto the trunk.
    Landing,
    /// It is finished.
    Done,
    /// It, or a task above it, waits for another one.
    Blocked,
    /// It was given up.
    Failed,
}

impl Status {
    /// Every state, in the order of their numbers in a store.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::InProgress, Self::Done, Self::Blocked, Self::Failed, Self::Landing];

    /// The state as one word, in commands and in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Landing => "landing",
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
        }
    }
}

/// The verdict of a verifying agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// None yet.
    #[default]
    Pending,
    /// The task is done.
    Passed,
    /// The task is not done.
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
    /// Its state.
    pub status: Status,
    /// Lower numbers go first.
    pub priority: i64,
    /// When it was added.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
    /// The run that has claimed it.
    pub claimed_by: Option<String>,
    /// The feature it belongs to: `f-` and hexadecimal digits.
    pub feature_id: Option<String>,
    /// `feature` or `standalone`.
    pub task_type: &'static str,
    /// How often it was retried.
    pub retry_count: u32,
    /// The limit of retries.
    pub max_retries: u32,
    /// The verdict of a verifying agent.
    pub verification_status: Verification,
}

/// A line of a task's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The text.
    pub message: String,
    /// A user or an agent has written it, not ralph.
    #[serde(default)]
    pub said: bool,
    /// When.
    pub timestamp: DateTime<Utc>,
}

/// A task with all that is known about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Details {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The name of its feature.
    pub feature: Option<String>,
    /// The ids of the tasks that it waits for, done ones included.
    pub blockers: Vec<String>,
    /// The ids of the tasks that wait for it.
    pub blocks: Vec<String>,
    /// The ids of its parts.
    pub children: Vec<String>,
    /// Its log, the oldest line first.
    pub log: Vec<LogLine>,
    /// What its agents have committed in a work tree of their own; left out where there is nothing.
    #[serde(skip)]
    pub landing: Option<Landing>,
}
