//! The states of a task, and the steps between them. Pure: no store, no clock.
//!
//! Two facts propagate through the graph. *Held* goes down: a task that waits for another one holds its parts back,
//! too. *Done* and *failed* go up: a group's state follows from its parts, and a task with work of its own comes
//! after its parts.

use super::task::Status;

/// The outcome of a task's own work, apart from its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// It is still to be done.
    Open,
    /// It was finished, and is not on the trunk yet.
    Landing,
    /// It was finished.
    Done,
    /// It was given up.
    Failed,
}

impl Own {
    /// The outcome of the own work of a task in this state.
    #[must_use]
    pub fn of(status: Status) -> Self {
        match status {
            Status::Landing => Self::Landing,
            Status::Done => Self::Done,
            Status::Failed => Self::Failed,
            Status::Pending | Status::InProgress | Status::Blocked => Self::Open,
        }
    }
}

/// What a task's state follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// It is claimed.
    pub claimed: bool,
    /// It has work besides its parts; otherwise it only groups them.
    pub has_work: bool,
    /// The outcome of its own work; open as long as a part is not done.
    pub own: Own,
    /// It, or a task above it, waits for a task that is not done.
    pub held: bool,
    /// How many parts it has.
    pub children: i64,
    /// How many of them are done.
    pub done: i64,
    /// How many of them have failed.
    pub failed: i64,
}

impl Facts {
    /// How many of its parts are not done.
    #[must_use]
    pub fn open_parts(&self) -> i64 {
        self.children - self.done
    }
}

/// The outcome of a task's own work: an open part makes an earlier outcome void.
#[must_use]
pub fn own(facts: &Facts) -> Own {
    if facts.open_parts() > 0 { Own::Open } else { facts.own }
}

/// The state of a task.
#[must_use]
pub fn status(facts: &Facts) -> Status {
    let became = if facts.failed > 0 {
        Own::Failed
    } else if facts.open_parts() == 0 && facts.children > 0 && !facts.has_work {
        Own::Done
    } else {
        own(facts)
    };
    match became {
        _ if facts.claimed => Status::InProgress,
        Own::Landing => Status::Landing,
        Own::Done => Status::Done,
        Own::Failed => Status::Failed,
        Own::Open if facts.held => Status::Blocked,
        Own::Open => Status::Pending,
    }
}

/// Whether a task is held back: by its own blockers, or with the task above it.
#[must_use]
pub fn is_held(open_blockers: i64, parent_held: bool) -> bool {
    open_blockers > 0 || parent_held
}

/// Whether a task can be claimed: nothing holds it back, none of its parts is open, and the task above it has not
/// failed.
#[must_use]
pub fn is_ready(status: Status, open_parts: i64, parent: Option<Status>) -> bool {
    status == Status::Pending && open_parts == 0 && parent != Some(Status::Failed)
}

/// Whether a task is in the lists of ready tasks. It stays there while it is claimed, so that a claim changes no
/// list: there are only as many claimed tasks as agents.
#[must_use]
pub fn is_listed(facts: &Facts, parent: Option<Status>) -> bool {
    is_ready(status(&Facts { claimed: false, ..*facts }), facts.open_parts(), parent)
}

/// Whether a task without open parts may go from one state to the other in one step. Only a reset leaves `done`.
/// Every change that a store shows is one of these steps; [`steps`] are made of them.
#[cfg(test)]
pub(super) fn is_legal(from: Status, to: Status) -> bool {
    use Status::{Blocked, Done, Failed, InProgress, Landing, Pending};
    matches!(
        (from, to),
        (Pending, InProgress | Blocked)
            | (InProgress, Landing | Done | Failed | Pending)
            | (Landing, Done | Failed | Pending)
            | (Blocked | Failed | Done, Pending)
    )
}

/// The steps by which a user brings a task to `done`, `failed` or `pending`; `None` if there is no way.
#[must_use]
pub fn steps(from: Status, to: Status) -> Option<&'static [Status]> {
    use Status::{Blocked, Done, Failed, InProgress, Landing, Pending};
    Some(match (from, to) {
        (Pending, Done) => &[InProgress, Done],
        (InProgress | Landing, Done) => &[Done],
        (Blocked | Failed, Done) => &[Pending, InProgress, Done],
        (Pending, Failed) => &[InProgress, Failed],
        (InProgress | Landing, Failed) => &[Failed],
        (Blocked, Failed) => &[Pending, InProgress, Failed],
        (InProgress | Landing | Done | Failed, Pending) => &[Pending],
        (Pending | Blocked, Pending) => &[],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: Facts = Facts {
        claimed: false,
        has_work: true,
        own: Own::Open,
        held: false,
        children: 0,
        done: 0,
        failed: 0,
    };

    #[test]
    fn a_leaf_is_what_became_of_it() {
        for (own, held, expected) in [
            (Own::Open, false, Status::Pending),
            (Own::Open, true, Status::Blocked),
            (Own::Done, true, Status::Done),
            (Own::Failed, true, Status::Failed),
            (Own::Landing, true, Status::Landing),
        ] {
            assert_eq!(status(&Facts { own, held, ..LEAF }), expected);
            assert_eq!(status(&Facts { own, held, claimed: true, ..LEAF }), Status::InProgress);
        }
    }

    #[test]
    fn a_task_that_only_groups_parts_is_what_they_make_it() {
        for (done, failed, held, expected) in [
            (0, 0, false, Status::Pending),
            (1, 0, true, Status::Blocked),
            (2, 0, true, Status::Done),
            (1, 1, true, Status::Failed),
            (0, 2, false, Status::Failed),
        ] {
            for own in [Own::Open, Own::Landing, Own::Done, Own::Failed] {
                let facts = Facts { has_work: false, own, held, children: 2, done, failed, ..LEAF };
                assert_eq!(status(&facts), expected);
            }
        }
    }

    #[test]
    fn a_task_with_work_of_its_own_comes_after_its_parts() {
        for (done, failed, own, expected, is_ready) in [
            (0, 0, Own::Open, Status::Pending, false),
            (1, 0, Own::Done, Status::Pending, false),
            (2, 0, Own::Open, Status::Pending, true),
            (2, 0, Own::Done, Status::Done, false),
            (2, 0, Own::Failed, Status::Failed, false),
            (1, 1, Own::Done, Status::Failed, false),
        ] {
            let facts = Facts { own, children: 2, done, failed, ..LEAF };
            assert_eq!((status(&facts), is_listed(&facts, None)), (expected, is_ready), "{facts:?}");
            let claimed = Facts { claimed: true, ..facts };
            assert_eq!(status(&claimed), Status::InProgress);
        }
        let reopened = Facts { own: Own::Done, children: 2, done: 1, ..LEAF };
        assert_eq!(super::own(&reopened), Own::Open, "it has to be looked at again");
    }

    #[test]
    fn what_waits_or_has_open_parts_or_a_failed_parent_is_not_ready() {
        assert!(is_ready(Status::Pending, 0, None) && is_ready(Status::Pending, 0, Some(Status::Pending)));
        assert!(!is_ready(Status::Pending, 1, None) && !is_ready(Status::Pending, 0, Some(Status::Failed)));
        for status in [Status::InProgress, Status::Landing, Status::Done, Status::Blocked, Status::Failed] {
            assert!(!is_ready(status, 0, None), "{status:?}");
        }
        assert!(is_held(1, false) && is_held(0, true) && !is_held(0, false));
    }

    #[test]
    fn people_go_by_legal_steps() {
        for from in Status::ALL {
            for to in [Status::Done, Status::Failed, Status::Pending] {
                let Some(steps) = steps(from, to) else { continue };
                let mut now = from;
                for &next in steps {
                    assert!(is_legal(now, next), "{now:?} {next:?}");
                    now = next;
                }
                assert!(now == to || (steps.is_empty() && to == Status::Pending), "{from:?} {to:?}");
            }
        }
        assert_eq!(steps(Status::Done, Status::Failed), None);
        assert_eq!(steps(Status::Done, Status::Done), None);
    }

    #[test]
    fn the_table_of_steps() {
        use Status::{Blocked, Done, Failed, InProgress, Landing, Pending};
        let legal: Vec<(Status, Status)> = Status::ALL
            .into_iter()
            .flat_map(|from| Status::ALL.map(|to| (from, to)))
            .filter(|&(from, to)| is_legal(from, to))
            .collect();
        assert_eq!(
            legal,
            [
                (Pending, InProgress),
                (Pending, Blocked),
                (InProgress, Pending),
                (InProgress, Done),
                (InProgress, Failed),
                (InProgress, Landing),
                (Done, Pending),
                (Blocked, Pending),
                (Failed, Pending),
                (Landing, Pending),
                (Landing, Done),
                (Landing, Failed),
            ]
        );
    }
}
