//! How many tests have run, as known runners say it at their end. Pure.

/// What a runner has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Tests that ran, failed ones included.
    pub(super) ran: u64,
    /// Tests that were left out.
    pub(super) skipped: u64,
}

/// What jest, vitest and mocha say if they find no test.
const NONE: [&str; 2] = ["No tests found", "No test files found"];

impl Counts {
    fn add(&mut self, ran: u64, skipped: u64) {
        self.ran = self.ran.saturating_add(ran);
        self.skipped = self.skipped.saturating_add(skipped);
    }
}

/// The tests that an output counts; `None` if it is of no known runner. A command may run several of them.
pub(super) fn counts(output: &str) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    let mut unittest = None;
    for line in output.lines().map(plain) {
        let line = line.trim();
        if let Some(one) = cargo(line).or_else(|| pytest(line)).or_else(|| js(line)).or_else(|| mocha(line)) {
            found.get_or_insert_default().add(one.ran, one.skipped);
        } else if let Some(ran) = ran_of_unittest(line) {
            unittest = Some(ran);
        } else if let Some(ran) = unittest.filter(|_| line.starts_with("OK") || line.starts_with("FAILED")) {
            let skipped = after(line, "skipped=").unwrap_or_default();
            found.get_or_insert_default().add(ran.saturating_sub(skipped), skipped);
            unittest = None;
        } else if NONE.iter().any(|words| line.contains(words)) {
            found.get_or_insert_default();
        } else if let Some((ran, skipped)) = go(line).or_else(|| tap(line)) {
            found.get_or_insert_default().add(ran, skipped);
        }
    }
    found
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
        return Some(Counts { ran: of("passed") + of("failed"), skipped: of("ignored") + of("filtered") });
    }
    let rest = line.strip_prefix("Summary [")?;
    let (_, rest) = rest.split_once(']')?;
    let ran = rest.split_whitespace().next()?.split('/').next()?.parse().ok()?;
    Some(Counts { ran, skipped: before(rest, "skipped").unwrap_or_default() })
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
    let ran = of("passed") + of("failed") + of("xfailed") + of("xpassed") + of("error") + of("errors");
    Some(Counts { ran, skipped: of("skipped") + of("deselected") })
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
    let counts = Counts { ran: of("passed") + of("failed"), skipped: of("skipped") + of("todo") };
    (counts != Counts::default() || rest.contains("total") || rest.contains("no tests")).then_some(counts)
}

/// `3 passing (12ms)`, then `1 pending` and `2 failing`.
fn mocha(line: &str) -> Option<Counts> {
    let (number, rest) = line.split_once(' ')?;
    let number = number.parse().ok()?;
    match rest.split(' ').next()? {
        "passing" if rest.contains('(') => Some(Counts { ran: number, skipped: 0 }),
        "failing" if rest == "failing" => Some(Counts { ran: number, skipped: 0 }),
        "pending" if rest == "pending" => Some(Counts { ran: 0, skipped: number }),
        _ => None,
    }
}

/// `--- PASS: TestA (0.00s)` of `go test -v`.
fn go(line: &str) -> Option<(u64, u64)> {
    let kind = line.strip_prefix("--- ")?.split(':').next()?;
    match kind {
        "PASS" | "FAIL" => Some((1, 0)),
        "SKIP" => Some((0, 1)),
        _ => None,
    }
}

/// `# pass 3`, `# fail 0`, `# skipped 1` and `# todo 0` of node's runner; its other reporter begins with `ℹ`.
fn tap(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
    let (word, number) = rest.split_once(' ')?;
    let number = number.trim().parse().ok()?;
    match word {
        "pass" | "fail" | "cancelled" => Some((number, 0)),
        "skipped" | "todo" => Some((0, number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, ran: u64, skipped: u64) {
        assert_eq!(counts(output), Some(Counts { ran, skipped }), "{output}");
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
