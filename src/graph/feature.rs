//! A feature: tasks that belong together, with a spec and a plan.

use chrono::{DateTime, Utc};
use serde::Serialize;

/// Where a feature stands; it follows from its plan and its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureStatus {
    /// There is neither a plan nor a task.
    Draft,
    /// There is a plan, and no task.
    Planned,
    /// It has tasks that are not done.
    Ready,
    /// Somebody is at work on one of its tasks.
    Running,
    /// All its tasks are done.
    Done,
    /// A task has failed, and none is open.
    Failed,
}

impl FeatureStatus {
    /// The word for it.
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

/// How many tasks a feature has, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All.
    pub total: u64,
    /// Those that are done.
    pub done: u64,
    /// Those that have failed.
    pub failed: u64,
    /// Those that somebody is at work on.
    pub in_progress: u64,
}

impl Counts {
    /// Where a feature with these tasks stands.
    #[must_use]
    pub fn status(self, has_plan: bool) -> FeatureStatus {
        match self {
            Self { total: 0, .. } if has_plan => FeatureStatus::Planned,
            Self { total: 0, .. } => FeatureStatus::Draft,
            Self { in_progress: 1.., .. } => FeatureStatus::Running,
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
    /// What people call it.
    pub name: String,
    /// Its spec, below the ralph dir.
    pub spec_path: Option<String>,
    /// Its plan, below the ralph dir.
    pub plan_path: Option<String>,
    /// Where it stands.
    pub status: FeatureStatus,
    /// Its tasks.
    pub tasks: Counts,
    /// When it was added.
    pub created_at: DateTime<Utc>,
    /// When it was changed last.
    pub updated_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_follows_from_the_tasks() {
        let counts = |total, done, failed, in_progress| Counts { total, done, failed, in_progress };
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
