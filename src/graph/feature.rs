//! A feature: tasks that belong together, with a spec and a plan.

use chrono::{DateTime, Utc};
use serde::Serialize;

/// The state of a feature; it follows from its plan and its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureStatus {
    /// It has neither a plan nor a task.
    Draft,
    /// It has a plan and no task.
    Planned,
    /// It has tasks that are not done.
    Ready,
    /// One of its tasks is claimed, or waits to land.
    Running,
    /// All its tasks are done.
    Done,
    /// A task has failed, and none is open.
    Failed,
}

impl FeatureStatus {
    /// The state as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Planned => "planned",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// How many tasks a feature has, by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All tasks.
    pub total: u64,
    /// Done tasks.
    pub done: u64,
    /// Failed tasks.
    pub failed: u64,
    /// Claimed tasks.
    pub in_progress: u64,
    /// Tasks that wait to land.
    pub landing: u64,
}

impl Counts {
    /// The state of a feature with these tasks.
    #[must_use]
    pub fn status(self, has_plan: bool) -> FeatureStatus {
        match self {
            Self { total: 0, .. } if has_plan => FeatureStatus::Planned,
            Self { total: 0, .. } => FeatureStatus::Draft,
            Self { in_progress: 1.., .. } | Self { landing: 1.., .. } => FeatureStatus::Running,
            Self { total, done, .. } if total == done => FeatureStatus::Done,
            Self { total, done, failed, .. } if total == done + failed => FeatureStatus::Failed,
            Self { .. } => FeatureStatus::Ready,
        }
    }
}

/// One feature. Its JSON is stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Feature {
    /// `f-` and hexadecimal digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its spec, below the ralph dir.
    pub spec_path: Option<String>,
    /// Its plan, below the ralph dir.
    pub plan_path: Option<String>,
    /// Its state.
    pub status: FeatureStatus,
    /// Its tasks.
    pub tasks: Counts,
    /// When it was added.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_follows_from_the_tasks() {
        let counts = |total, done, failed, in_progress| Counts {
            total,
            done,
            failed,
            in_progress,
            ..Counts::default()
        };
        for (counts, status) in [
            (counts(0, 0, 0, 0), "draft"),
            (counts(3, 0, 0, 0), "ready"),
            (counts(3, 2, 0, 1), "running"),
            (counts(3, 1, 1, 0), "ready"),
            (counts(3, 3, 0, 0), "done"),
            (counts(3, 2, 1, 0), "failed"),
        ] {
            assert_eq!(counts.status(false).word(), status, "{counts:?}");
        }
        assert_eq!(Counts::default().status(true).word(), "planned");
    }
}
