//! The result of a validation, and the words for it.

use crate::reply::usage::Usage;
use crate::text::line::last_lines;

/// The result of a validation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Validation {
    /// The work is good.
    pub ok: bool,
    /// It had no verdict: nothing is known of the work, and the output says why.
    pub undecided: bool,
    /// What it printed, cut to a readable length.
    pub output: String,
    /// Its cost, if an agent took part in it.
    pub usage: Usage,
    /// Whether an agent has worked after the files were validated: it may have changed what git does not see.
    pub ended_with_agent: bool,
}

/// The words before the reason why a validation had no verdict.
pub const NOT_VERIFIED: &str = "not verified: ";

/// What is said of a validation that has not passed: that it failed, or the line of its output that says why it is `undecided`.
#[must_use]
pub fn failure(undecided: bool, output: &str) -> &str {
    output.lines().next().filter(|_| undecided).unwrap_or("the validation failed")
}

/// The lines of its output that say why it has not passed: the first one if it was `undecided`, else the last `count`.
#[must_use]
pub fn telling_lines(undecided: bool, output: &str, count: usize) -> Vec<&str> {
    if undecided { vec![failure(true, output)] } else { last_lines(output, count) }
}
