//! The result of a validation, the words for it, and what it shows of a loop's work.

use std::fmt;

use chrono::{DateTime, Utc};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reply::usage::Usage;
use crate::text::line::{last_lines, one_line_within};
use crate::text::telling::telling;
use crate::text::texts::{New, Texts};

/// The longest name of what validates, in characters.
const NAME: usize = 80;
/// The longest line of an output in a reason, in characters.
const LINE: usize = 160;
/// The longest reason in the words of an agent or of ralph, in characters.
const WORDS: usize = 600;
/// What the end of a loop rests on if nothing has checked it.
const WORD: &str = "the agent's word";

/// The name of a fresh agent that looks whether a task is done.
pub const VERIFYING_AGENT: &str = "a verifying agent";
/// What has looked at work, where a fresh agent has reviewed it.
pub const REVIEWING_AGENT: &str = "a reviewing agent";

/// What claims are measured against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Base {
    /// The commit where work on the claim began.
    pub commit: String,
    /// When the loop began.
    pub began: DateTime<Utc>,
}

/// The result of a validation.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Validation {
    /// The work is good.
    pub ok: bool,
    /// It had no verdict: nothing is known of the work, and the output says why.
    pub undecided: bool,
    /// What it printed, cut to a readable length.
    pub output: String,
    /// What has looked at the work, as in `npm test` or `a verifying agent`; `None` where the output says all.
    pub by: Option<String>,
    /// Its cost, if an agent took part in it.
    pub usage: Usage,
    /// Whether no other attempt follows if the work is not good.
    pub is_last: bool,
    /// Whether an agent has worked after the files were validated: it may have changed what git does not see.
    pub ended_with_agent: bool,
    /// What walls have refused it, in words, where its command ran without a loop that listens.
    pub refused: Vec<String>,
}

/// The words before the reason why a validation had no verdict.
pub const NOT_VERIFIED: &str = "not verified: ";

/// What shows that the work of a loop, or of a task, is good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Evidence {
    /// What has proven it, what it rests on, or why it is refuted: `npm test`.
    pub by: String,
    /// Whether it is proven.
    pub standing: Standing,
}

/// Whether work is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Something other than the agent that did the work has found it good.
    Proven,
    /// It passes the validation, and nothing says that it is done.
    Passed,
    /// Nothing has looked at it.
    Unchecked,
    /// Something has found it bad.
    Refuted,
}

impl Standing {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Passed => "passed",
            Self::Unchecked => "unchecked",
            Self::Refuted => "refuted",
        }
    }
}

impl Evidence {
    /// Work that something has found good; `None` where a record does not name it.
    #[must_use]
    pub fn proven(by: Option<&str>) -> Self {
        let by = by.unwrap_or("the validation");
        Self { by: one_line_within(by, NAME), standing: Standing::Proven }
    }

    /// Work that passes the validation, and that nothing calls done.
    #[must_use]
    pub fn passed(by: Option<&str>) -> Self {
        Self { standing: Standing::Passed, ..Self::proven(by) }
    }

    /// Work that only its agent calls good.
    #[must_use]
    pub fn unchecked() -> Self {
        Self { by: WORD.to_owned(), standing: Standing::Unchecked }
    }

    /// Work that a validation has not found good.
    #[must_use]
    pub fn against(by: Option<&str>, undecided: bool, output: &str) -> Self {
        let why = reason(by, undecided, output);
        match why.strip_prefix(NOT_VERIFIED) {
            Some(why) if undecided => Self { by: why.to_owned(), standing: Standing::Unchecked },
            _ => Self { by: why, standing: Standing::Refuted },
        }
    }
}

/// In the words of reports: `proven: npm test`, `unchecked: the agent's word`.
impl fmt::Display for Evidence {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.standing.word(), self.by)
    }
}

impl Texts for Evidence {
    fn replace_texts(&mut self, new: New<'_>) {
        self.by.replace_texts(new);
    }
}

/// The exit codes by which a shell says that it could not start a program: not executable, not there.
pub const CANNOT_RUN: [i32; 2] = [126, 127];

/// What is said of a validation that has not passed, without its output: what has failed, and how, or the line of its output
/// that says why it is `undecided`. `by`: see [`Validation::by`].
#[must_use]
pub fn failure(by: Option<&str>, undecided: bool, output: &str) -> String {
    if undecided {
        return output.lines().next().unwrap_or("the validation failed").to_owned();
    }
    let what = if cannot_run(output) { "cannot run" } else { "failed" };
    let by = by.map_or_else(|| "the validation".to_owned(), |by| one_line_within(by, NAME));
    let how = ending(output).map(|how| format!(" {how}")).unwrap_or_default();
    format!("{by} {what}{how}")
}

/// Whether a command that has left this output could not be started, or something in it.
#[must_use]
pub fn cannot_run(output: &str) -> bool {
    let how = ending(output);
    CANNOT_RUN.iter().any(|code| how == Some(&*format!("(exit code {code})")))
}

/// Why a validation has not passed, in one line: what has failed, how, and the line of its output that says why, with the one
/// before and the one after it: `npm test failed (exit code 1): 1..2 | not ok 1 - adds | ---`.
#[must_use]
pub fn reason(by: Option<&str>, undecided: bool, output: &str) -> String {
    if undecided {
        return failure(by, true, output);
    }
    let Some(how) = ending(output) else {
        // It has run no command: these are the words of an agent, or of ralph.
        let output = one_line_within(output, WORDS);
        return match by {
            _ if output.is_empty() => failure(by, false, &output),
            Some(by) => format!("{}: {output}", one_line_within(by, NAME)),
            None => output,
        };
    };
    let printed = output.trim_end().strip_suffix(how).unwrap_or(output);
    let printed = match printed.split_once('\n') {
        // What follows says more.
        Some((remark, rest)) if remark.starts_with(IN_CHECKOUT) => rest,
        _ if printed.starts_with(NO_OUTPUT) => "",
        _ => printed,
    };
    let lines: Vec<String> = telling(printed).into_iter().map(|line| one_line_within(line, LINE)).collect();
    let why = if lines.is_empty() { "it printed nothing".to_owned() } else { lines.join(" | ") };
    format!("{}: {why}", failure(by, false, output))
}

/// The output of a validation that has not passed; that of a command with the reason before it.
#[must_use]
pub fn with_reason(validation: &Validation) -> String {
    let Validation { by, undecided, output, .. } = validation;
    let output = output.trim();
    if *undecided || ending(output).is_none() {
        return output.to_owned();
    }
    format!("{}\n{output}", reason(by.as_deref(), false, output))
}

/// How the line begins that says in which commit a command ran, before its output.
pub const IN_CHECKOUT: &str = "(run in a clean checkout";

/// What stands before the name of a command that has printed nothing.
pub const NO_OUTPUT: &str = "(no output from the validation command: ";

/// How a command ended that has not succeeded, as the last line of its output says: `(exit code 1)`.
fn ending(output: &str) -> Option<&str> {
    let last = last_lines(output, 1).pop()?;
    let is_one = ["(exit code ", "(ended ", "(did not end "].iter().any(|begin| last.starts_with(begin));
    (is_one && last.ends_with(')')).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_the_command_its_exit_and_the_line_that_says_why() {
        let output =
            "TAP version 13\n1..2\nnot ok 1 - adds\n  ---\n# todo 0\n# duration_ms 568\n(exit code 1)";
        let why = "npm test failed (exit code 1): 1..2 | not ok 1 - adds |   ---".replace("|   ", "| ");
        assert_eq!(reason(Some("npm test"), false, output), why);
        assert_eq!(failure(None, false, output), "the validation failed (exit code 1)");
        let silent = format!("{NO_OUTPUT}false)\n(exit code 1)");
        assert_eq!(reason(Some("false"), false, &silent), "false failed (exit code 1): it printed nothing");
        let missing = "/bin/sh: 1: ./check: not found\n(exit code 127)";
        let why = "./check cannot run (exit code 127): /bin/sh: 1: ./check: not found";
        assert_eq!(reason(Some("./check"), false, missing), why);
    }

    #[test]
    fn what_an_agent_or_ralph_says_is_the_reason() {
        assert_eq!(reason(Some("a verifying agent"), false, "no\ntests"), "a verifying agent: no tests");
        assert_eq!(reason(None, false, "the plan\nis broken"), "the plan is broken");
        assert_eq!(reason(Some("x"), true, "2 tasks are open\n- [ ] one"), "2 tasks are open");
        let undecided = Evidence::against(Some("x"), true, "not verified: no verdict");
        assert_eq!((undecided.standing, &*undecided.by), (Standing::Unchecked, "no verdict"));
    }
}
