//! What a clean checkout lacks is made by a command, or linked from the project.

use std::fs;

use crate::proofs::{CHECK, FIX, agent, project, start, tree};
use crate::scratch::{Scratch, executable};

#[test]
fn a_new_checkout_is_prepared_and_again_when_the_work_needs_more() {
    let scratch = project();
    scratch.write("list", "one\n");
    executable(
        &scratch.path("check"),
        &format!("{CHECK}for name in $(cat list); do test -e node_modules/$name || exit 1; done\n"),
    );
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "--message", "list"]);
    // What it does to a file of the commit is undone.
    let prepare =
        "mkdir node_modules; for name in $(cat list); do touch node_modules/$name; done; echo good > code";
    // The first claim leaves a checkout that is prepared for less than the second one needs.
    agent(&scratch, &["true", "echo good > code; echo two >> list; git commit -qam fix"]);
    let run = Scratch::finish(start(&scratch, 2, "./check").env("RALPH_PROOF_PREPARE", prepare));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.stderr.contains("in place only"), "{run:?}");
    let shown = scratch.run("proof").stdout;
    assert!(
        shown.contains("proven: clean tree ") && shown.matches("at the claimed commit").count() == 1,
        "{shown}"
    );

    let scratch = project();
    agent(&scratch, &[FIX]);
    let run =
        Scratch::finish(start(&scratch, 3, "./check").env("RALPH_PROOF_PREPARE", "echo no network; exit 1"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let told = run.stderr.matches("which prepares a clean checkout, fails in one of ").count();
    assert!(told == 1 && run.stderr.contains("(no network)"), "{run:?}");
    assert!(scratch.run("report").stdout.contains("proven: ./check, in place only"));
}

#[test]
fn a_preparation_counts_against_the_limit_of_a_proof() {
    let scratch = project();
    agent(&scratch, &[FIX]);
    let mut ralph = start(&scratch, 1, "./check");
    let run =
        Scratch::finish(ralph.env("RALPH_PROOF_PREPARE", "exec sleep 600").env("RALPH_PROOF_LIMIT", "1s"));
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("within 1s (proof.limit)"), "{run:?}");
}

#[test]
fn ignored_files_are_carried_into_the_checkout_if_the_user_says_so() {
    let scratch = project();
    scratch.write("node_modules/runner", "exit 0");
    executable(&scratch.path("check"), &format!("{CHECK}. ./node_modules/runner; exit 1\n"));
    scratch.git(&["commit", "--quiet", "-am", "check"]);
    agent(&scratch, &["true", FIX]);
    let mut ralph = start(&scratch, 3, "./check");
    let run = Scratch::finish(ralph.env("RALPH_PROOF_CARRY", "node_modules other"));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.stderr.contains("in place only"), "{run:?}");
    let proof = scratch.run("proof").stdout;
    assert!(proof.contains("proven: clean tree ") && proof.contains("carried  node_modules, "), "{proof}");
    assert!(proof.contains("other of proof.carry: it is not there"), "{proof}");
    let link = tree(&scratch).join("node_modules");
    assert_eq!(fs::read_link(link).unwrap(), scratch.path("node_modules").canonicalize().unwrap());
    // The user's own folder is still there after the trees are removed.
    assert_eq!(scratch.run("clean --worktrees").code, Some(0));
    assert!(scratch.path("node_modules/runner").exists());
    for wrong in ["/etc", "../x", "a/../../b"] {
        let mut ralph = start(&scratch, 1, "./check");
        let run = Scratch::finish(ralph.env("RALPH_PROOF_CARRY", wrong));
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stderr.contains("is no path below the project"), "{run:?}");
    }
}
