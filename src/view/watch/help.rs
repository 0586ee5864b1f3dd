//! The keys, as `?` shows them. They fit the smallest screen.

/// Keys and what they do.
pub(super) const KEYS: [(&str, &str); 16] = [
    ("↑ ↓  k j", "select a loop"),
    ("PgUp PgDn", "scroll; also space, b; Home and End, g and G"),
    ("Tab", "transcript or history"),
    ("p", "pause after the current attempt"),
    ("r", "resume; also ends a wait: tries now"),
    ("c", "cancel after the current attempt"),
    ("C", "cancel now: ends the agent"),
    ("n", "note for the next prompt"),
    ("d", "diff: what the work has changed"),
    ("l", "log of its agents, in a pager"),
    ("a", "attach to a worker's window"),
    ("R", "report"),
    ("/", "filter by name, project, state; Esc takes it away"),
    ("s", "sort by state, name, cost or start"),
    ("Ctrl+L", "draw everything again;  Ctrl+Z: to the shell"),
    ("q", "leave; loops go on"),
];

/// The text of the last row while there is no message, as much as fits.
pub(super) const HINTS: [&str; 13] = [
    "? help", "q quit", "p pause", "r resume", "c cancel", "n note", "d diff", "l log", "/ filter", "s sort",
    "C now", "R report", "a attach",
];
