//! The record of a proof, for people.

use std::fmt::Write as _;
use std::time::Duration;

use crate::engine::fact::{ProofMutant, ProofRecord, ProofRun};
use crate::engine::validation::Standing;
use crate::text::count;
use crate::text::duration;
use crate::text::line::{last_lines, one_line};
use crate::text::palette::{FAINT, STRONG};

/// How many lines of a failed run are shown.
const LINES: usize = 12;

/// The first line, which reports have as well.
#[must_use]
pub(crate) fn head(record: &ProofRecord) -> String {
    let standing = if record.ok { Standing::Proven } else { Standing::Refuted };
    format!("{STRONG}{}: {}{STRONG:#}\n", standing.word(), one_line(&record.by))
}

/// The whole record below its first line; `of` says when it was made and for which loop.
#[must_use]
pub(crate) fn text(record: &ProofRecord, of: &str) -> String {
    let mut text = head(record) + &format!("  {FAINT}{}{FAINT:#}\n", one_line(of));
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<9}{}", one_line(value)); // to a String it cannot fail
    };
    let texts = [
        ("about", &record.about),
        ("commit", &record.commit),
        ("tree", &record.tree),
        ("base", &record.base),
    ];
    for (name, value) in texts.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))) {
        line(name, value);
    }
    for change in &record.protected {
        line(&change.change, &format!("{} ({:.7} → {:.7})", change.path, change.before, change.after));
    }
    let (same, other): (Vec<_>, Vec<_>) =
        record.programs.iter().partition(|program| program.before.is_none());
    for program in other {
        line("program", &program.what_differs());
    }
    if !same.is_empty() {
        let names: Vec<&str> = same.iter().map(|program| program.name.as_str()).collect();
        line("programs", &format!("{}: as when the loop began", names.join(", ")));
    }
    if let Some(voice) = &record.voice {
        let says = match voice.ok {
            Some(true) => "a second agent agrees".to_owned(),
            Some(false) => format!("a second agent objects: {}", voice.words),
            None => format!("a second agent gave no verdict: {}", voice.words),
        };
        line("voice", &says);
    }
    for carried in &record.carried {
        line("carried", &format!("{carried}, where an agent can write"));
    }
    for mutant in record.mutants.iter().flat_map(|mutants| &mutants.unnoticed) {
        let ProofMutant { after, before, line: number, path } = mutant;
        line("mutant", &format!("{path}:{number}: no test notices '{after}' in place of '{before}'"));
    }
    for skipped in &record.skipped {
        line("not seen", skipped);
    }
    for run in &record.runs {
        add_run(&mut text, run);
    }
    text
}

fn add_run(text: &mut String, run: &ProofRun) {
    let place = ProofRun::place(&run.of);
    let result = if run.ok { "passed" } else { "failed" };
    let took = duration::elapsed_tenths(Duration::try_from_secs_f64(run.duration_s).unwrap_or_default());
    let tests = run.tests.map(|tests| {
        let skipped = if tests.skipped > 0 { format!(", {} skipped", tests.skipped) } else { String::new() };
        format!(", {}{skipped}", count::of(tests.ran, "test"))
    });
    let tests = tests.unwrap_or_default();
    let _ = writeln!(text, "  {:<9}{} {place}: {took}{tests}", result, one_line(&run.command));
    for line in last_lines(&run.output, LINES).iter().filter(|_| !run.ok) {
        let _ = writeln!(text, "           {FAINT}{}{FAINT:#}", one_line(line));
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;
    use crate::engine::fact::{ProofChange, ProofFile, ProofProgram, ProofTests, ProofVoice};

    #[test]
    fn a_record_says_what_ran_and_what_differs() {
        let run = |of: &str, ok| ProofRun {
            command: "npm test".to_owned(),
            digest: "d".to_owned(),
            duration_s: 1.25,
            of: of.to_owned(),
            ok,
            output: "one\nnot ok 1\n(exit code 1)".to_owned(),
            tests: Some(ProofTests { ran: 3, skipped: 1 }),
        };
        let program = |name: &str, before| ProofProgram {
            before,
            digest: "d".to_owned(),
            name: name.to_owned(),
            path: format!("/bin/{name}"),
        };
        let before = ProofFile { digest: "e".to_owned(), path: "/usr/bin/node".to_owned() };
        let record = ProofRecord {
            programs: vec![program("npm", None), program("node", Some(before)), program("sh", None)],
            base: Some("1111111aaa".to_owned()),
            by: "clean tree 2222222, 3 tests, a second agent agrees, 1s".to_owned(),
            commit: Some("2222222aaa".to_owned()),
            ok: true,
            protected: vec![ProofChange {
                after: "3333333bbb".to_owned(),
                before: "4444444bbb".to_owned(),
                change: "changed".to_owned(),
                path: "tests/a".to_owned(),
            }],
            runs: vec![run("claim", true), run("claim_with_base", false)],
            skipped: vec!["nothing".to_owned()],
            voice: Some(ProofVoice { ok: Some(true), words: String::new() }),
            ..ProofRecord::default()
        };
        let shown = strip_str(&text(&record, "loop build, iteration 3")).to_string();
        let expected = "\
proven: clean tree 2222222, 3 tests, a second agent agrees, 1s
  loop build, iteration 3
  commit   2222222aaa
  base     1111111aaa
  changed  tests/a (4444444 → 3333333)
  program  node is /bin/node now, and was /usr/bin/node
  programs npm, sh: as when the loop began
  voice    a second agent agrees
  not seen nothing
  passed   npm test at the claimed commit: 1.2s, 3 tests, 1 skipped
  failed   npm test at the claimed commit, with the base's version of what it is measured by: 1.2s, 3 tests, 1 skipped
           one
           not ok 1
           (exit code 1)
";
        assert_eq!(shown, expected);
    }
}
