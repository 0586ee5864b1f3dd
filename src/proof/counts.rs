//! How many tests have run, as known runners say it at their end. Pure.

/// What the line begins with that says what reports in the XML of `JUnit` count.
pub(super) const COUNTED: &str = "JUnit: ";

/// What a runner has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Tests that ran, failed ones included.
    pub(super) ran: u64,
    /// Those that failed.
    pub(super) failed: u64,
    /// Tests that were left out.
    pub(super) skipped: u64,
}

/// What jest, vitest and mocha say if they find no test.
const NONE: [&str; 2] = ["No tests found", "No test files found"];

impl Counts {
    pub(super) fn add(&mut self, Self { ran, failed, skipped }: Self) {
        self.ran = self.ran.saturating_add(ran);
        self.failed = self.failed.saturating_add(failed);
        self.skipped = self.skipped.saturating_add(skipped);
    }

    /// How many have failed; `None` if a runner that has failed says nothing of it.
    pub(super) fn failed(self) -> Option<u64> {
        (self.failed > 0).then_some(self.failed)
    }
}

/// The tests that an output counts; `None` if it is of no known runner. A command may run several of them.
pub(super) fn counts(output: &str) -> Option<Counts> {
    if let Some(counts) = output.lines().rev().find_map(junit) {
        return Some(counts);
    }
    let mut found: Option<Counts> = None;
    let mut unittest = None;
    for line in output.lines().map(plain) {
        let line = line.trim();
        let one = [cargo, pytest, js, mocha, go, tap].iter().find_map(|runner| runner(line));
        if let Some(one) = one {
            found.get_or_insert_default().add(one);
        } else if let Some(ran) = ran_of_unittest(line) {
            unittest = Some(ran);
        } else if let Some(ran) = unittest.filter(|_| line.starts_with("OK") || line.starts_with("FAILED")) {
            let of = |word| after(line, word).unwrap_or_default();
            let (skipped, failed) = (of("skipped="), of("failures=").saturating_add(of("errors=")));
            found.get_or_insert_default().add(Counts { ran: ran.saturating_sub(skipped), failed, skipped });
            unittest = None;
        } else if NONE.iter().any(|words| line.contains(words)) {
            found.get_or_insert_default();
        }
    }
    found
}

/// The line about reports, which stands there where no runner is known.
fn junit(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix(COUNTED)?;
    let of = |word| before(rest, word).unwrap_or_default();
    let ran = rest.split(' ').next()?.parse().ok()?;
    Some(Counts { ran, failed: of("failed"), skipped: of("skipped") })
}

/// Without the colours of a terminal.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        if char == '\u{1b}' {
            chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(char);
        }
    }
    plain
}

/// The number behind a word.
fn after(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(word)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The number before a word: `3 passed`.
fn before(line: &str, word: &str) -> Option<u64> {
    let mut last = None;
    for part in line.split([' ', ',', ';', '|', '(', ')']).filter(|part| !part.is_empty()) {
        if part == word {
            return last;
        }
        last = part.parse().ok();
    }
    None
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out`, and nextest's
/// `Summary [ 0.1s] 3 tests run: 3 passed, 1 skipped`.
fn cargo(line: &str) -> Option<Counts> {
    if line.starts_with("test result: ") {
        let of = |word| before(line, word).unwrap_or_default();
        let failed = of("failed");
        return Some(Counts { ran: of("passed") + failed, failed, skipped: of("ignored") + of("filtered") });
    }
    let rest = line.strip_prefix("Summary [")?;
    let (_, rest) = rest.split_once(']')?;
    let ran = rest.split_whitespace().next()?.split('/').next()?.parse().ok()?;
    let of = |word| before(rest, word).unwrap_or_default();
    Some(Counts { ran, failed: of("failed"), skipped: of("skipped") })
}

/// `==== 3 passed, 1 skipped in 0.02s ====`, with `-q` without the bars.
fn pytest(line: &str) -> Option<Counts> {
    let line = line.trim_matches(['=', ' ']);
    let (counted, _) = line.rsplit_once(" in ").filter(|(_, time)| is_time(time))?;
    if counted == "no tests ran" {
        return Some(Counts::default());
    }
    if !counted.starts_with(|char: char| char.is_ascii_digit()) {
        return None;
    }
    let of = |word| before(counted, word).unwrap_or_default();
    let failed = of("failed");
    let ran = of("passed") + failed + of("xfailed") + of("xpassed");
    // What fails before or after a test: that one may have passed, and is counted then.
    let failed = failed + of("error") + of("errors");
    Some(Counts { ran, failed, skipped: of("skipped") + of("deselected") })
}

/// Whether it is `0.02s`, or `83.10s (0:01:23)`.
fn is_time(text: &str) -> bool {
    let time = text.split(' ').next().and_then(|time| time.strip_suffix('s'));
    time.is_some_and(|time| time.parse::<f64>().is_ok())
}

/// `Ran 3 tests in 0.001s`; how many were left out follows in another line.
fn ran_of_unittest(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("Ran ")?;
    let ran = rest.split(' ').next()?.parse().ok()?;
    (rest.contains(" test") && rest.contains(" in ")).then_some(ran)
}

/// `Tests:       1 failed, 1 skipped, 3 passed, 5 total` of jest, `Tests  3 passed | 1 skipped (4)` of vitest.
fn js(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests  "))?;
    let of = |word| before(rest, word).unwrap_or_default();
    let failed = of("failed");
    let counts = Counts { ran: of("passed") + failed, failed, skipped: of("skipped") + of("todo") };
    (counts != Counts::default() || rest.contains("total") || rest.contains("no tests")).then_some(counts)
}

/// `3 passing (12ms)`, then `1 pending` and `2 failing`.
fn mocha(line: &str) -> Option<Counts> {
    let (number, rest) = line.split_once(' ')?;
    let number = number.parse().ok()?;
    match rest.split(' ').next()? {
        "passing" if rest.contains('(') => Some(ran(number)),
        "failing" if rest == "failing" => Some(failed(number)),
        "pending" if rest == "pending" => Some(skipped(number)),
        _ => None,
    }
}

/// `--- PASS: TestA (0.00s)` of `go test -v`.
fn go(line: &str) -> Option<Counts> {
    let kind = line.strip_prefix("--- ")?.split(':').next()?;
    match kind {
        "PASS" => Some(ran(1)),
        "FAIL" => Some(failed(1)),
        "SKIP" => Some(skipped(1)),
        _ => None,
    }
}

/// `# pass 3`, `# fail 0`, `# skipped 1` and `# todo 0` of node's runner; its other reporter begins with `ℹ`.
fn tap(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
    let (word, number) = rest.split_once(' ')?;
    let number = number.trim().parse().ok()?;
    match word {
        "pass" => Some(ran(number)),
        "fail" | "cancelled" => Some(failed(number)),
        "skipped" | "todo" => Some(skipped(number)),
        _ => None,
    }
}

fn ran(number: u64) -> Counts {
    Counts { ran: number, ..Counts::default() }
}

fn failed(number: u64) -> Counts {
    Counts { ran: number, failed: number, skipped: 0 }
}

fn skipped(number: u64) -> Counts {
    Counts { skipped: number, ..Counts::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, ran: u64, skipped: u64) {
        let counted = counts(output).map(|counts| (counts.ran, counts.skipped));
        assert_eq!(counted, Some((ran, skipped)), "{output}");
    }

    #[test]
    fn what_failed_is_counted() {
        for (output, failed) in [
            ("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out", Some(2)),
            ("     Summary [   0.104s] 5 tests run: 3 passed, 2 failed, 2 skipped", Some(2)),
            ("===== 1 failed, 3 passed, 1 error in 0.02s =====", Some(2)),
            ("Ran 4 tests in 0.001s\n\nFAILED (failures=1, errors=1)", Some(2)),
            ("Tests:       2 failed, 1 skipped, 3 passed, 5 total", Some(2)),
            ("  3 passing (12ms)\n  1 pending\n  2 failing", Some(2)),
            ("--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)", Some(2)),
            ("# pass 3\n# fail 1\n# cancelled 1", Some(2)),
            ("3 passed in 0.01s", None),
        ] {
            assert_eq!(counts(output).and_then(Counts::failed), failed, "{output}");
        }
    }

    #[test]
    fn the_last_lines_of_known_runners_are_read() {
        let cargo =
            "test result: ok. 3 passed; 1 failed; 2 ignored; 0 measured; 4 filtered out; finished in 0.00s";
        check(&format!("{cargo}\n\nDoc-tests\n{cargo}"), 8, 12);
        check("     Summary [   0.104s] 5 tests run: 5 passed, 2 skipped", 5, 2);
        check("===== 1 failed, 3 passed, 1 skipped, 2 deselected in 0.02s =====", 4, 3);
        check("3 passed in 0.01s", 3, 0);
        check("===== no tests ran in 0.00s =====", 0, 0);
        check("Ran 4 tests in 0.001s\n\nOK (skipped=1)", 3, 1);
        check("Ran 1 test in 0.000s\n\nFAILED (failures=1)", 1, 0);
        check("Tests:       1 failed, 1 skipped, 3 passed, 5 total", 4, 1);
        check("\u{1b}[2m      Tests \u{1b}[22m 3 passed\u{1b}[2m | 1 skipped (4)", 3, 1);
        check("  3 passing (12ms)\n  1 pending\n  2 failing", 5, 1);
        check("--- PASS: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n--- SKIP: TestC (0.00s)", 2, 1);
        check("# tests 4\n# suites 0\n# pass 3\n# fail 0\n# cancelled 0\n# skipped 1\n# todo 0", 3, 1);
        check("ℹ tests 1\nℹ pass 1\nℹ fail 0", 1, 0);
        check("No tests found, exiting with code 1", 0, 0);
        check("JUnit: 1 test ran, 1 failed, 2 skipped, in 2 reports; failed: 3 skipped", 1, 2);
    }

    #[test]
    fn other_outputs_count_nothing() {
        for output in
            ["", "ok", "all 3 tests passed", "3 files in 2 folders", "ok  \tpkg\t0.01s", "Tests are good"]
        {
            assert_eq!(counts(output), None, "{output}");
        }
    }
}
