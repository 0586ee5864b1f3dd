//! Work is measured by the tests and scripts of the commit where it began, and what differs is judged by a second agent.

use std::fs;

use crate::proofs::{COMPLETE, agent, agent_that, at_base, measured, project, tree};
use crate::scratch::{Run, Scratch, executable};

#[test]
fn work_is_measured_by_the_tests_and_scripts_of_its_base() {
    let cheats = [
        "echo true > tests/good; git commit -qam cheat",
        "git mv tests/good tests/other; echo true > tests/other; git commit -qam cheat",
        "printf '#!/bin/sh\\nexit 0\\n' > scripts/check; git commit -qam cheat",
    ];
    for cheat in cheats {
        let scratch = measured();
        let run = at_base(
            &scratch,
            &[cheat, "git checkout -q HEAD~1 -- tests scripts; echo good > code; git commit -qam fix"],
            &[],
            "scripts/check",
        );
        assert_eq!(run.code, Some(0), "{cheat}: {run:?}");
        let prompt = fs::read_to_string(scratch.outside().join("home/prompt.2")).unwrap();
        assert!(
            prompt.contains("that your work is measured by") && prompt.contains("git checkout "),
            "{cheat}: {prompt}"
        );
    }
    let scratch = measured();
    let run = at_base(&scratch, &[cheats[0]], &[("RALPH_PROOF_ON_PROTECTED", "tell")], "scripts/check");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("tests/good (changed)"), "{run:?}");
    let scratch = measured();
    let run = at_base(
        &scratch,
        &["echo better > .gitignore; git commit -qam x"],
        &[("RALPH_PROOF_PROTECTED", ".gitignore code")],
        "true",
    );
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// A cheat at the level `base` is refused, and the next prompt names this.
#[track_caller]
fn is_refused_at_base(scratch: &Scratch, deed: &str, validate: &str, reason: &str) {
    let run = at_base(
        scratch,
        &[deed, "git reset -q --hard HEAD~1; echo good > code; git commit -qam fix"],
        &[],
        validate,
    );
    let prompt = fs::read_to_string(scratch.outside().join("home/prompt.2")).unwrap_or_default();
    assert!(prompt.contains(reason), "{deed}: {reason}: {prompt}: {run:?}");
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn what_changes_how_tests_run_is_put_aside_also_where_it_is_new() {
    let make = "printf 'all:\n\t@true\n' > GNUmakefile; git add .; git commit -qm cheat";
    let scratch = measured();
    scratch.write("Makefile", "all:\n\t@scripts/check\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "-m", "make"]);
    is_refused_at_base(&scratch, make, "make -s all", "GNUmakefile (added)");

    let python =
        "echo 'print(\"Ran 1 test in 0.000s\\n\\nOK\")' > unittest.py; git add .; git commit -qm cheat";
    let scratch = measured();
    scratch.write("test_code.py", "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertIn('good', open('code').read())\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "-m", "python"]);
    is_refused_at_base(&scratch, python, "python3 -m unittest", "unittest.py (added)");
}

#[test]
fn the_script_that_the_command_names_is_protected_wherever_it_lies() {
    let scratch = project();
    executable(&scratch.path("all"), "#!/bin/sh\n. ./lib.sh\nlook\n");
    scratch.write("lib.sh", "look() { ./check; }\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "-m", "scripts"]);
    for (deed, reason) in [
        ("echo true > check", "check (changed)"),
        ("echo 'look() { :; }' > lib.sh", "lib.sh (changed)"),
        ("echo true > all", "all (changed)"),
    ] {
        at_base(&scratch, &[&format!("{deed}; git commit -qam cheat"), "true"], &[], "./all");
        let prompt = fs::read_to_string(scratch.outside().join("home/prompt.2")).unwrap_or_default();
        assert!(prompt.contains(reason), "{deed}: {prompt}");
        scratch.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
        fs::remove_dir_all(scratch.outside().join("home")).unwrap();
        fs::create_dir(scratch.outside().join("home")).unwrap();
    }
}

#[test]
fn a_claim_that_is_faster_than_the_first_look_waits_for_its_count_of_tests() {
    let scratch = project();
    scratch.write("list", "3\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "-m", "list"]);
    let go = scratch.outside().join("go");
    let validate = format!(
        "until grep -q good code || [ -e {} ]; do sleep 0.05; done; echo \"$(cat list) passed in 0.01s\"",
        go.display()
    );
    let deed = format!("echo 1 > list; echo good > code; git commit -qam fix; touch {}", go.display());
    let run = at_base(&scratch, &[&deed], &[], &validate);
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("1 tests ran and 0 were skipped, where at"), "{run:?}");
}

#[test]
fn an_agent_that_disturbs_the_first_look_gains_nothing() {
    let scratch = project();
    let (log, go, done) =
        (scratch.outside().join("log"), scratch.outside().join("go"), scratch.outside().join("done"));
    let (log, go, done) = (log.display(), go.display(), done.display());
    let validate = format!(
        "echo x >> {log}; until [ -e {go} ] || [ -e {done} ]; do sleep 0.05; done; rm -f {go}; ./check"
    );
    let code = tree(&scratch).join("code");
    let code = code.display();
    let deed = format!(
        "runs() {{ until [ \"$(grep -c x {log})\" = $1 ]; do sleep 0.05; done; }}
         runs 1; echo ugly > {code}; touch {go}; runs 2; echo bad > {code}; touch {go}
         git update-index --assume-unchanged code; echo good > code; touch {done}"
    );
    for level in ["clean", "base"] {
        agent(&scratch, &[&deed]);
        let _ = fs::remove_file(log.to_string()).and(fs::remove_file(done.to_string()));
        let mut ralph = scratch.ralph(&format!("prompt p.md 1 --proof {level} --validate"));
        let run = Scratch::finish(ralph.arg(&validate));
        assert_eq!(run.code, Some(4), "{level}: {run:?}");
        assert!(run.stdout.contains("code is bad"), "{level}: {run:?}");
        let report = scratch.run("report").stdout;
        assert!(!report.contains("in place only"), "{level}: {report}");
        scratch.git(&["update-index", "--no-assume-unchanged", "code"]);
        scratch.git(&["checkout", "--quiet", "code"]);
        fs::remove_file(scratch.outside().join("home/n")).unwrap();
    }
}

#[test]
fn what_an_agent_leaves_in_the_tree_of_the_first_look_is_no_part_of_a_proof() {
    let scratch = measured();
    let go = scratch.outside().join("go");
    let go = go.display();
    let validate = format!("until [ -e {go} ]; do sleep 0.05; done; test -e ignored || scripts/check");
    let tree = tree(&scratch);
    let tree = tree.display();
    let deed = format!("until [ -e {tree}/code ]; do sleep 0.05; done; touch {tree}/ignored; touch {go}");
    let run = at_base(&scratch, &[&deed], &[], &validate);
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("code is bad"), "{run:?}");
}

/// Work that changes a test, and what a second agent says of it.
fn judged(scratch: &Scratch, turns: &[(&str, &str)]) -> Run {
    let deed = "echo better > code; echo 'grep -q better code' > tests/good; git commit -qam 'it is better'";
    agent_that(scratch, &[&[(deed, COMPLETE)], turns].concat());
    let mut ralph = scratch.ralph("prompt p.md 2 --proof base --validate");
    Scratch::finish(ralph.arg("scripts/check"))
}

#[test]
fn changed_tests_count_if_a_second_agent_finds_them_right() {
    let scratch = measured();
    scratch.write("p.md", "Make the code better, and its test. Then say <promise>COMPLETE</promise>.");
    let run = judged(&scratch, &[("pwd > \"$HOME/pwd\"; cat code > \"$HOME/code\"", "<verify-pass/>")]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let home = |name: &str| fs::read_to_string(scratch.outside().join("home").join(name)).unwrap_or_default();
    // It is asked once, also for the end of the loop.
    assert_eq!((home("n").trim(), home("code").trim()), ("2", "better"));
    assert_eq!(home("pwd").trim(), tree(&scratch).canonicalize().unwrap().display().to_string());
    let prompt = home("prompt.2");
    for words in ["tests/good (changed)", "> +grep -q better code", "> Make the code better", "> code is bad"]
    {
        assert!(prompt.contains(words), "{words}: {prompt}");
    }
    let report = scratch.run("report").stdout;
    assert!(report.contains("proven: clean tree ") && report.contains("a second agent agrees"), "{report}");
}

#[test]
fn changed_tests_are_refused_for_the_reason_that_a_second_agent_gives() {
    let scratch = measured();
    let honest = "git checkout -q HEAD~1 -- tests; echo good > code; git commit -qam fix";
    let run =
        judged(&scratch, &[("true", "<verify-fail>nothing asked for it</verify-fail>"), (honest, COMPLETE)]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let prompt = fs::read_to_string(scratch.outside().join("home/prompt.3")).unwrap();
    assert!(
        prompt.contains("a second agent: nothing asked for it") && prompt.contains("git checkout "),
        "{prompt}"
    );

    // Without a verdict nothing counts.
    let scratch = measured();
    let run = judged(&scratch, &[("true", "hm"), ("true", "hm"), ("exit 1", "")]);
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("the judging agent did not emit"), "{run:?}");
}

#[test]
fn a_refused_claim_is_recorded_with_what_a_second_agent_said() {
    let scratch = measured();
    let run =
        judged(&scratch, &[("true", "<verify-fail>nothing asked for it</verify-fail>"), ("true", COMPLETE)]);
    let of_first =
        fs::read_dir(scratch.path(".ralph/runs")).unwrap().map(|run| run.unwrap().path().join("proofs"));
    let count: usize = of_first.filter_map(|folder| fs::read_dir(folder).ok()).map(Iterator::count).sum();
    assert_eq!((run.code, count), (Some(4), 2), "{run:?}");
    let shown = scratch.run("proof").stdout;
    for words in [
        "refuted: a second agent: nothing asked for it",
        "changed  tests/good",
        "failed   scripts/check at the claimed commit, with the base's version",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let again = scratch.run("proof --again");
    assert_eq!(again.code, Some(0), "the same verdict: {again:?}");
}

#[test]
fn honest_work_with_and_without_tests_passes_at_once() {
    for deed in [
        "true",
        "echo 'grep -q good code' > tests/more; git add tests",
        "echo 'echo more' >> tests/good",
        "git mv tests/good tests/renamed",
    ] {
        let scratch = measured();
        let run = at_base(
            &scratch,
            &[&format!("echo good > code; {deed}; git commit -qam fix")],
            &[],
            "scripts/check",
        );
        assert_eq!(run.code, Some(0), "{deed}: {run:?}");
    }
    let scratch = measured();
    let run = at_base(
        &scratch,
        &["echo good > code; git commit -qam fix"],
        &[],
        "echo '3 passed in 0.01s'; scripts/check",
    );
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn tests_that_do_not_run_prove_nothing() {
    let scratch = measured();
    let run =
        at_base(&scratch, &["echo good > code; git commit -qam fix"], &[], "echo 'no tests ran in 0.01s'");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("has run no test"), "{run:?}");
}
