//! `ralph` without arguments: the state of the loops, or how to begin.

use std::fs;

use regex::Regex;

use crate::branch_project::plan;
use crate::scratch::{Run, Scratch, Started, claude_says, wait_for};
use crate::terminal::Terminal;

fn bare(scratch: &Scratch) -> Run {
    let run = scratch.run("");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    run
}

#[test]
fn outside_of_a_project_it_is_the_help() {
    let scratch = Scratch::new();
    for path in [".git", ".ralph", "specs"] {
        fs::remove_dir_all(scratch.path(path)).unwrap();
    }
    assert_eq!(bare(&scratch).stdout, scratch.run("-h").stdout);
}

#[test]
fn in_a_project_it_says_how_to_begin() {
    let scratch = Scratch::new();
    fs::remove_dir_all(scratch.path(".ralph")).unwrap();
    let before = scratch.snapshot();
    let told = bare(&scratch).stdout;
    assert!(
        told.contains("not set up") && told.contains("\n  ralph init ") && told.contains("ralph demo"),
        "{told}"
    );
    assert!(scratch.snapshot() == before, "it only looks");

    assert_eq!(scratch.run("init --agent claude").code, Some(0));
    let told = bare(&scratch).stdout;
    assert!(told.contains("no loop has run") && told.contains("\n  ralph plan "), "{told}");
    scratch.write("IMPLEMENTATION_PLAN.md", plan(&[("one", 1)]));
    let told = bare(&scratch).stdout;
    assert!(told.contains("no loop has run") && told.contains("\n  ralph loop build "), "{told}");
}

#[test]
fn where_loops_are_it_says_how_they_stand_and_what_to_type_next() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("on it"));
    assert_eq!(scratch.run("build 1 --name 'one").code, Some(0));
    let told = bare(&scratch).stdout;
    assert!(told.starts_with("Can go on\n■ 'one  limit  "), "{told}");
    assert!(told.contains(&format!("\nNext: ralph resume {} --max-iterations 2\n", r#""'one""#)), "{told}");
    assert!(told.contains("\n  ralph report  Why, "), "{told}");

    scratch.agent("claude", "cat > /dev/null; sleep 60");
    let ralph = Started::new(&scratch, "build --name two");
    wait_for("a loop at work", || bare(&scratch).stdout.contains("\ntwo   running  ").then_some(()));
    let told = bare(&scratch).stdout;
    assert!(told.starts_with("NAME  STATUS ") && told.contains("\n  ralph watch   "), "{told}");
    drop(ralph);
    wait_for("a loop that was killed", || bare(&scratch).stdout.contains("\n✗ two  killed").then_some(()));
    assert!(bare(&scratch).stdout.contains("\nNext: ralph resume two\n"));

    // Also where the runs were removed.
    fs::remove_dir_all(scratch.path(".ralph/runs")).unwrap();
    let told = bare(&scratch).stdout;
    assert!(
        told.starts_with("Can go on\n✗ two  killed\n    ralph was killed, ")
            && told.contains("Next: ralph resume two\n"),
        "{told}"
    );
}

#[test]
fn a_terminal_gets_lines_that_fit() {
    let scratch = Scratch::new();
    fs::remove_dir_all(scratch.path(".ralph")).unwrap();
    let colours = Regex::new("\x1b\\[[0-9;]*m").unwrap();
    for (args, columns) in [
        ("", 45),
        ("", 80),
        ("clean --help", 45),
        ("clean --help", 80),
        ("init --force --agent codex", 45),
        ("init --force --agent codex", 60),
        ("init --force --agent codex", 80),
        ("feature create --help", 45),
        ("help reports", 80),
        ("help stopping", 45),
    ] {
        let end = Terminal::start(&scratch.ralph(args), 200, columns).end();
        assert_eq!(end.code, Some(0), "{args}");
        let plain = colours.replace_all(&end.bytes, "").into_owned();
        let widest = plain.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(
            (usize::from(columns) - 12..=usize::from(columns)).contains(&widest),
            "{args} at {columns}: {plain}"
        );
    }
}
