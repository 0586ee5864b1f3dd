//! What a clean tree is worth for the validation command, from what that finds in it at the base, and with the files beside it
//! that are not committed. Pure.

use super::counts::Counts;
use super::judgement::tests_in;
use crate::engine::validation::Validation;
use crate::text::line::one_line_within;
use crate::text::telling::telling_line;

/// The longest line of an output in a message, in characters.
const LINE: usize = 160;

/// What a clean tree is worth for this command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fitness {
    /// It has what the command needs.
    Fit {
        /// What the command printed about it, if it fails at the base.
        failure: Option<String>,
        /// The tests that it ran there, if its runner is known.
        tests: Option<Counts>,
    },
    /// It lacks something that is not committed.
    Lacking {
        /// What the command printed about it there.
        failure: String,
        /// The command that prepares it, if that has failed.
        preparation: Option<String>,
    },
}

/// Judges a clean tree. `at_base` is what the command finds in it at the base; `with_others` says what it finds there
/// in the user's home directory, beside the files that were not committed when the loop began; it is needed only if that
/// fails.
///
/// A command that fails in the same way both times fails for want of work. One that needs an installed package or a
/// file of the user's does not get that far without it.
pub(super) fn fitness(at_base: &Validation, with_others: Option<&Validation>) -> Fitness {
    if at_base.ok {
        return Fitness::Fit { failure: None, tests: tests_in(&at_base.output) };
    }
    let failure = failure_in(&at_base.output);
    let is_same = |others: &Validation| !others.ok && is_alike(&others.output, &at_base.output);
    if with_others.is_none_or(is_same) {
        Fitness::Fit { failure: Some(failure), tests: tests_in(&at_base.output) }
    } else {
        Fitness::Lacking { failure, preparation: None }
    }
}

/// Whether two runs have failed in the same way: they print the same, or as many tests have failed for the same reason. What is built
/// already is not built again, and says so.
fn is_alike(one: &str, other: &str) -> bool {
    let (lines, end) = outline(one);
    let (other_lines, other_end) = outline(other);
    let reason = |output: &str| plain(&failure_in(output));
    let has_failed = tests_in(one).is_some_and(|tests| tests.failed > 0);
    end == other_end
        && (lines == other_lines
            || has_failed && tests_in(one) == tests_in(other) && reason(one) == reason(other))
}

impl Fitness {
    /// That of a tree in which its preparation has failed.
    pub(super) fn unprepared(found: &Validation) -> Self {
        Self::Lacking {
            failure: failure_in(&found.output),
            preparation: Some(found.by.clone().unwrap_or_default()),
        }
    }

    /// That of a tree whose files lack filters of the repository's configuration.
    pub(super) fn unfiltered(found: &Validation) -> Self {
        let why = "filters of the repository's own configuration, as those of git-crypt, are off there";
        Self::Lacking { failure: format!("{}; {why}", failure_in(&found.output)), preparation: None }
    }

    /// The tests that the command has run at the base, if that is known.
    pub(super) fn tests(&self) -> Option<Counts> {
        match self {
            Self::Fit { tests, .. } => *tests,
            Self::Lacking { .. } => None,
        }
    }

    /// What the user should know of it, who may have been told something else `before`.
    pub(super) fn notice(&self, base: &str, before: Option<&Self>) -> Option<String> {
        match self {
            _ if before == Some(self) => None,
            Self::Fit { .. } if matches!(before, Some(Self::Lacking { .. })) => Some(format!(
                "a clean checkout of {base:.7} has all that the validation command needs: claims are proven there"
            )),
            Self::Fit { failure: None, .. } => None,
            Self::Fit { failure: Some(failure), .. } => {
                Some(format!("the validation command fails at {base:.7}, where the work began: {failure}"))
            }
            Self::Lacking { failure, preparation: Some(command) } => Some(format!(
                "'{command}', which prepares a clean checkout, fails in one of {base:.7} ({failure}): claims are validated in \
                 place only; fix proof.prepare"
            )),
            Self::Lacking { failure, preparation: None } => Some(format!(
                "the validation command needs something that is not committed, and fails in a clean checkout of {base:.7} \
                 ({failure}): claims are validated in place only; commit what it needs, have proof.prepare make it, or name it in proof.carry"
            )),
        }
    }
}

/// The line of an output that tells most, which is not the one about its end.
fn failure_in(output: &str) -> String {
    let (printed, end) = output.trim_end().rsplit_once('\n').unwrap_or(("", output));
    let printed = if end.starts_with('(') { printed } else { output };
    one_line_within(telling_line(printed).unwrap_or("it printed nothing"), LINE)
}

/// The lines of an output, sorted and without numbers and marks of progress, except for how it has ended: times, process ids,
/// addresses and the order of what runs at once differ between two runs.
fn outline(output: &str) -> (Vec<String>, &str) {
    let (printed, end) = output.trim_end().rsplit_once('\n').unwrap_or(("", output));
    let mut lines: Vec<String> = printed.lines().map(plain).filter(|line| !line.is_empty()).collect();
    lines.sort();
    (lines, end)
}

/// A line without numbers and marks of progress.
fn plain(line: &str) -> String {
    // Test runners print a letter or a dot for each test, and break that line where one has failed.
    let is_mark = |char: char| char.is_ascii_digit() || char.is_ascii_punctuation() || "FEsxX".contains(char);
    let words = line.split_whitespace().filter(|word| !word.chars().all(is_mark));
    let has_number = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
    words.map(|word| if has_number(word) { "#" } else { word }).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ok: bool, output: &str) -> Validation {
        Validation { ok, output: output.to_owned(), ..Validation::default() }
    }

    #[test]
    fn a_command_that_passes_at_the_base_lacks_nothing() {
        assert_eq!(fitness(&found(true, ""), None), Fitness::Fit { failure: None, tests: None });
    }

    #[test]
    fn one_that_fails_in_the_same_way_with_all_files_fails_for_want_of_work() {
        let base = found(false, "1 test failed in 12 ms\n(exit code 1)");
        let others = found(false, "1 test failed in 7 ms\n(exit code 1)");
        let fit = Fitness::Fit { failure: Some("1 test failed in 12 ms".to_owned()), tests: None };
        assert_eq!(fitness(&base, Some(&others)), fit);
        assert_eq!(fitness(&base, None), fit);
        // What runs at once comes in any order.
        assert_eq!(outline("a\nb 1\n\n(exit code 1)"), outline("b 2\na\n(exit code 1)"));
        assert_eq!(outline(". 1/2\nadd FAILED\n(exit code 1)"), outline("add FAILED\n.\n(exit code 1)"));
        assert_eq!(outline(".F [100%]\nadd\n(exit code 1)"), outline("F. [100%]\nadd\n(exit code 1)"));
    }

    #[test]
    fn what_is_built_only_once_is_no_other_failure() {
        let tests = |failed: u32, why: &str| {
            format!(
                "running 2 tests\n{why}\ntest result: FAILED. {} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; \
                 finished in 0.0{failed}s\n\nerror: test failed, to rerun pass `--test adds`\n(exit code 101)",
                2 - failed
            )
        };
        let built =
            "   Compiling calc v0.1.0 (/t/calc)\nwarning: `calc` (lib) generated 1 warning (1 duplicate)\n";
        let base = found(false, &(built.to_owned() + &tests(1, "assertion failed: add(1, 2)")));
        let fits = |others: &str| matches!(fitness(&base, Some(&found(false, others))), Fitness::Fit { .. });
        assert!(fits(&tests(1, "assertion failed: add(1, 2)")));
        assert!(!fits(&tests(2, "assertion failed: add(1, 2)")), "another one has failed");
        assert!(!fits(&tests(1, "cannot open /etc/calc.conf")), "for another reason");
    }

    #[test]
    fn one_that_passes_or_fails_otherwise_with_them_lacks_something() {
        let base = found(false, "sh: 1: vitest: not found\n(exit code 127)");
        for others in
            [found(true, ""), found(false, "2 tests failed\n(exit code 1)"), found(false, "(exit code 1)")]
        {
            let found = fitness(&base, Some(&others));
            assert!(matches!(found, Fitness::Lacking { failure, .. } if failure.contains("vitest")));
        }
        assert_ne!(outline("a\n(exit code 1)"), outline("a\n(exit code 2)"));
    }
}
