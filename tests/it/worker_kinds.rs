//! The kinds of agents in the matrix of faults.

/// How an agent behaves.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// What it plays up to the end of the iteration in which the fault comes. It is at work until there is a file `go`, in an
    /// earlier one until the user's window is there (`beside`), and notes each prompt in the file `got`. A `child` is in no hurry
    /// to end.
    pub(crate) plays: &'static str,
    /// How long its screen may stand still, in seconds.
    pub(crate) inactivity: u64,
    /// The iterations log when the fault comes, each line as it begins; `/N` is the last iteration.
    pub(crate) before: &'static [&'static str],
    /// What the end of the iteration adds; none: it has ended by then, and the loop waits before the next.
    pub(crate) end: Option<&'static str>,
    /// It would go on without an end.
    pub(crate) lasts: bool,
}

/// At work in the first iteration.
const FIRST: &[&str] = &["[START] iteration 1/N"];

pub(crate) const KINDS: [Kind; 8] = [
    Kind {
        name: "exits 0",
        plays: "child; keep got; silent until go; exit 0",
        inactivity: 60,
        before: FIRST,
        end: Some("[END] iteration 1 exit=0 duration="),
        lasts: false,
    },
    Kind {
        name: "exits 3",
        plays: "keep got; silent until go; exit 3",
        inactivity: 60,
        before: FIRST,
        end: Some("[FAIL] iteration 1 exit=3 attempt=1/5 backoff=1s"),
        lasts: false,
    },
    Kind {
        name: "dies by a signal",
        plays: "child; keep got; silent until go; signal 9",
        inactivity: 60,
        before: FIRST,
        end: Some("[FAIL] iteration 1 exit=signal-9 attempt=1/5 backoff=1s"),
        lasts: false,
    },
    // It has to be seen moving until the fault has come; what follows is its whole point.
    Kind {
        name: "never ends",
        plays: "keep got; spin until go; silent 3600",
        inactivity: 4,
        before: FIRST,
        end: Some("[TIMEOUT] iteration 1 inactivity_timeout=4s"),
        lasts: true,
    },
    // In the first iteration that would be no worker at all: `a_command_that_never_began_leaves_no_worker`. The third time in a
    // row the loop waits for long enough.
    Kind {
        name: "ends at once",
        plays: "keep got; silent until beside; exit 0,gone 4,gone 4,gone 4",
        inactivity: 60,
        before: &[
            "[START] iteration 1/N",
            "[END] iteration 1 exit=0 duration=",
            "[START] iteration 2/N",
            "[FAIL] iteration 2 exit=4 attempt=1/5 backoff=1s",
            "[START] iteration 3/N",
            "[FAIL] iteration 3 exit=4 attempt=2/5 backoff=2s",
            "[START] iteration 4/N",
            "[FAIL] iteration 4 exit=4 attempt=3/5 backoff=4s",
        ],
        end: None,
        lasts: false,
    },
    Kind {
        name: "is loud",
        plays: "keep got; loud until go; exit 0",
        inactivity: 60,
        before: FIRST,
        end: Some("[END] iteration 1 exit=0 duration="),
        lasts: true,
    },
    Kind {
        name: "has a spinner",
        plays: "keep got; spin until go; exit 0",
        inactivity: 60,
        before: FIRST,
        end: Some("[END] iteration 1 exit=0 duration="),
        lasts: true,
    },
    Kind {
        name: "has the alternate screen",
        plays: "alternate; child; keep got; spin until go; exit 0",
        inactivity: 60,
        before: FIRST,
        end: Some("[END] iteration 1 exit=0 duration="),
        lasts: true,
    },
];

/// What the next iteration plays.
pub(crate) const NEXT: &str = "keep got; exit 0";

/// All kinds.
pub(crate) fn all(_: &Kind) -> bool {
    true
}

impl Kind {
    /// The iteration in which the fault comes.
    pub(crate) fn iteration(&self) -> u64 {
        self.plays.split(',').count() as u64
    }

    /// Its agent is at work when the fault comes.
    pub(crate) fn is_at_work(&self) -> bool {
        self.end.is_some()
    }
}
