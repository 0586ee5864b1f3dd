//! The level `strict`: a claim passes twice, and new tests fail without the work.

use std::fs;

use crate::proofs::{FIX, agent, measured, project};
use crate::scratch::Scratch;

#[test]
fn a_pass_that_is_no_pass_the_second_time_is_flaky() {
    for (level, code) in [("base", 0), ("strict", 4)] {
        let scratch = project();
        agent(&scratch, &[FIX]);
        let seen = scratch.outside().join("seen");
        let validate = format!(
            "./check || exit 1; test -e {0} && test $(cat {0}) != $TMPDIR && {{ echo not ok 1 - adds; exit 1; }}; echo $TMPDIR > {0}",
            seen.display()
        );
        let mut ralph = scratch.ralph(&format!("prompt p.md 1 --proof {level} --validate"));
        let run = Scratch::finish(ralph.arg(&validate));
        assert_eq!(run.code, Some(code), "{level}: {run:?}");
        let shown = scratch.run("proof").stdout;
        let is_flaky = shown.contains("refuted: flaky: ") && shown.contains("not ok 1 - adds");
        assert_eq!(is_flaky, code == 4, "{shown}");
    }
    // Each commit is repeated once, and its record says so.
    let scratch = measured();
    agent(&scratch, &["echo good > code; echo true >> tests/good; git commit -qam fix"]);
    let mut ralph = scratch.ralph("prompt p.md 1 --proof strict --validate");
    let run = Scratch::finish(ralph.arg("scripts/check"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let shown = scratch.run("proof").stdout;
    assert_eq!(shown.matches("at the claimed commit once more").count(), 1, "{shown}");
    assert!(shown.contains("base's tests pass"), "{shown}");
}

#[test]
fn new_tests_have_to_fail_without_the_work() {
    let strict = |deeds: &[&str]| {
        let scratch = measured();
        scratch.write("code", "good\n");
        scratch.git(&["commit", "--quiet", "-am", "green"]);
        agent(&scratch, deeds);
        let mut ralph = scratch.ralph(&format!("prompt p.md {} --proof strict --validate", deeds.len()));
        let run = Scratch::finish(ralph.arg("scripts/check"));
        (scratch, run)
    };
    let empty = "echo good and better > code; echo true > tests/more; git add .; git commit -qm more";
    let honest = "echo grep -q better code > tests/more; git commit -qam test";
    let (scratch, run) = strict(&[empty, honest]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let prompt = fs::read_to_string(scratch.outside().join("home/prompt.2")).unwrap();
    assert!(
        prompt.contains("the new tests pass without the work") && prompt.contains("tests/more (added)"),
        "{prompt}"
    );
    let shown = scratch.run("proof").stdout;
    assert!(
        shown.contains("failed   scripts/check at the base, with the tests of the claimed commit"),
        "{shown}"
    );

    for deed in [
        "echo good and better > code; git commit -qam fix",
        "echo true > tests/more; git add .; git commit -qm tests",
    ] {
        let (scratch, run) = strict(&[deed]);
        assert_eq!(run.code, Some(0), "{deed}: {run:?}");
        let shown = scratch.run("proof").stdout;
        assert!(shown.contains("not seen whether the new tests fail without the work"), "{deed}: {shown}");
    }
}
