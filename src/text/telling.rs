//! The lines of a command's output that say why it failed.

use std::sync::LazyLock;

use regex::Regex;

use super::line::last_lines;

/// How many of the last lines are shown if none of them names an error.
const LAST: usize = 3;

/// What a line says that names an error.
static NAMES_ERROR: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i:error|panicked|assert(?:ion)?\b|assertion|\bnot ok\b)|FAIL|^\s*[✖✗×]"));
/// What a line says about something that has passed, or about no error.
static PASSES: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^\s*(?:ok\b|[✓✔√]|PASS)|\.\.\. ok$|(?i:\b(?:0|no) (?:errors?|fail)|\b(?:errors?|fail(?:ed|ures?)?)[:=]? ?0\b)",
    )
});

fn regex(pattern: &str) -> Regex {
    // The patterns are constants, which a test compiles.
    #[expect(clippy::unwrap_used, reason = "a constant pattern")]
    Regex::new(pattern).unwrap()
}

/// The first line that names an error, with the line before and the one after it; without one the last lines. Blank lines do
/// not count.
#[must_use]
pub(crate) fn telling(output: &str) -> Vec<&str> {
    let lines = last_lines(output, usize::MAX);
    match error_in(&lines) {
        Some(at) => lines[at.saturating_sub(1)..lines.len().min(at + 2)].to_vec(),
        None => lines[lines.len().saturating_sub(LAST)..].to_vec(),
    }
}

/// The first line that names an error; without one the last line. `None` if there is nothing but blank lines.
#[must_use]
pub(crate) fn telling_line(output: &str) -> Option<&str> {
    let lines = last_lines(output, usize::MAX);
    error_in(&lines).map_or_else(|| lines.last(), |at| lines.get(at)).copied()
}

fn error_in(lines: &[&str]) -> Option<usize> {
    lines.iter().position(|line| NAMES_ERROR.is_match(line) && !PASSES.is_match(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_names_an_error_tells_why() {
        let first = |output: &str| telling(output).into_iter().nth(1).map(str::to_owned);
        let tap = "ok 1 - reports errors\nok 2\nnot ok 3 - adds\n---\n# fail 1\n# todo 0\n# duration_ms 568";
        assert_eq!(telling(tap), ["ok 2", "not ok 3 - adds", "---"]);
        let cargo = "running 2 tests\ntest error::a ... ok\ntest b ... FAILED\n\nfailures:\n";
        assert_eq!(telling(cargo), ["test error::a ... ok", "test b ... FAILED", "failures:"]);
        assert_eq!(
            first("warming up\nsrc/a.ts(3,1): error TS2304\n").unwrap(),
            "src/a.ts(3,1): error TS2304"
        );
        assert_eq!(first("a\nthread 'b' panicked at src/lib.rs:3:5:\nleft").unwrap().find("thread"), Some(0));
        assert_eq!(first("0 errors\n E   AssertionError\n").unwrap(), " E   AssertionError");
    }

    #[test]
    fn without_one_the_last_lines_do() {
        assert_eq!(telling_line("a\nerror: b\nc\n\n"), Some("error: b"));
        assert_eq!((telling_line("a\nb\n"), telling_line("\n")), (Some("b"), None));
        assert_eq!(telling("a\n\nb\nc\nd\n"), ["b", "c", "d"]);
        assert_eq!(telling("0 errors, failures: 0"), ["0 errors, failures: 0"]);
        assert!(telling("").is_empty());
    }
}
