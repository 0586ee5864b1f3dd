//! `ralph revert`: undoing what iterations committed.

use crate::scratch::{CLAUDE_RESULT, Run, Scratch, Started, claude_text, wait_for};

/// An agent that commits a file of its own in iterations 1 and 2, two in iteration 3, and nothing in iteration 4.
fn committing(scratch: &Scratch) {
    let says = format!("echo '{}'\necho '{CLAUDE_RESULT}'", claude_text("on it"));
    scratch.agent(
        "claude",
        &format!(
            r#"cat > /dev/null
commit() {{ echo "$1" > "$1"; git add "$1"; git commit --quiet -m "write $1"; }}
case $RALPH_ITERATION in
1|2) commit file$RALPH_ITERATION;;
3) commit file3; commit more3;;
esac
{says}"#
        ),
    );
    scratch.git(&["add", "p.md"]);
    scratch.git(&["commit", "--quiet", "-m", "start"]);
}

fn files(scratch: &Scratch) -> String {
    scratch.git(&["ls-files"]).replace('\n', " ")
}

fn good(run: &Run) -> &str {
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    &run.stdout
}

fn refused(run: &Run, why: &str) {
    assert!(run.code == Some(1) && run.stderr.contains(why), "{why}: {run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
}

#[test]
fn the_last_iterations_are_undone_one_after_the_other() {
    let scratch = Scratch::new();
    committing(&scratch);
    assert_eq!(scratch.run("prompt p.md 4").code, Some(0));
    assert_eq!(files(&scratch), "file1 file2 file3 more3 p.md ");
    scratch.write("mine", "not committed");

    let run = scratch.run("revert");
    assert!(good(&run).starts_with("reverted iteration 3:\n"), "{run:?}");
    assert!(run.stdout.find("write more3") < run.stdout.find("write file3"), "newest first: {run:?}");
    assert_eq!(files(&scratch), "file1 file2 p.md ");
    assert_eq!(scratch.git(&["log", "--format=%s"]).lines().count(), 7, "nothing is lost");

    let run = scratch.run("revert prompt --last 5");
    assert!(good(&run).contains("iteration 2") && run.stdout.contains("iteration 1"), "{run:?}");
    assert_eq!(files(&scratch), "p.md ");
    assert!(good(&scratch.run("revert")).starts_with("nothing to undo"));
    assert_eq!(scratch.read("mine"), "not committed");
}

#[test]
fn it_is_refused_where_something_could_get_lost() {
    let scratch = Scratch::new();
    refused(&scratch.run("revert"), "there is no loop");
    committing(&scratch);
    scratch.run("prompt p.md 2");
    let head = scratch.git(&["rev-parse", "HEAD"]);

    scratch.write("file2", "edited");
    refused(&scratch.run("revert"), "uncommitted changes would be touched (file2)");
    scratch.git(&["add", "file2"]);
    refused(&scratch.run("revert"), "changes are staged (file2)");
    scratch.git(&["reset", "--quiet"]);
    scratch.git(&["checkout", "--quiet", "file2"]);

    for mark in ["assume-unchanged", "skip-worktree"] {
        scratch.git(&["update-index", &format!("--{mark}"), "file2"]);
        scratch.write("file2", "hidden from git");
        refused(&scratch.run("revert"), "uncommitted changes would be touched (file2)");
        assert_eq!(scratch.read("file2"), "hidden from git");
        scratch.git(&["update-index", &format!("--no-{mark}"), "file2"]);
        scratch.git(&["checkout", "--quiet", "file2"]);
    }

    scratch.git(&["bisect", "start"]);
    refused(&scratch.run("revert"), "a bisect is in progress");
    scratch.git(&["bisect", "reset"]);
    scratch.write(".git/rebase-merge/x", "");
    refused(&scratch.run("revert"), "a rebase is in progress");
    std::fs::remove_dir_all(scratch.path(".git/rebase-merge")).unwrap();

    for (words, why) in [("--last 0", "whole number"), ("--last -1", "whole number"), ("nobody", "nobody")] {
        refused(&scratch.run(&format!("revert {words}")), why);
    }
    assert_eq!(scratch.git(&["rev-parse", "HEAD"]), head);

    scratch.git(&["checkout", "--quiet", "-b", "elsewhere", "HEAD~2"]);
    refused(&scratch.run("revert"), "not part of what HEAD names");
    scratch.git(&["checkout", "--quiet", "main"]);

    scratch.write("file2", "changed since\n");
    scratch.git(&["commit", "--quiet", "-am", "by hand"]);
    scratch.write("p.md", "edited, in another file");
    let before = scratch.git(&["rev-parse", "HEAD"]);
    refused(&scratch.run("revert --last 2"), "nothing was changed");
    assert_eq!(scratch.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(scratch.git(&["status", "--porcelain", "--untracked-files=no"]), " M p.md\n");
    assert_eq!(scratch.read("p.md"), "edited, in another file");
}

#[test]
fn without_an_author_nothing_is_changed() {
    let scratch = Scratch::new();
    committing(&scratch);
    scratch.run("prompt p.md 1");
    let before = scratch.git(&["rev-parse", "HEAD"]);
    let mut revert = scratch.ralph("revert");
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        revert.env_remove(name);
    }
    // Nor does git make one up of the user and the machine.
    revert.envs([
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "user.useConfigOnly"),
        ("GIT_CONFIG_VALUE_0", "true"),
    ]);
    let run = Scratch::finish(&mut revert);
    assert!(run.code == Some(1) && run.stderr.contains("user.email"), "{run:?}");
    assert_eq!(scratch.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(scratch.git(&["diff", "--cached", "--name-only"]), "");
}

#[test]
fn it_goes_by_time_wherever_the_clock_was_read() {
    let scratch = Scratch::new();
    let says = format!("echo '{}'\necho '{CLAUDE_RESULT}'", claude_text("on it"));
    scratch.agent(
        "claude",
        &format!("cat > /dev/null; echo > $FILE; git add $FILE; git commit --quiet -m \"$FILE\"\n{says}"),
    );
    // Each later than the one before, and earlier by its own time zone.
    for (file, zone) in [("first", "XXX-14"), ("second", "XXX0"), ("third", "XXX11")] {
        let run = Scratch::finish(scratch.ralph("prompt p.md 1").env("FILE", file).env("TZ", zone));
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    for (file, left) in [("third", "first second "), ("second", "first ")] {
        let run = scratch.run("revert");
        assert!(good(&run).contains(file), "{file}: {run:?}");
        assert_eq!(files(&scratch), left);
    }
}

#[test]
fn it_goes_by_ancestry_when_the_clock_was_set_back() {
    let scratch = Scratch::new();
    let says = format!("echo '{}'\necho '{CLAUDE_RESULT}'", claude_text("on it"));
    scratch.agent(
        "claude",
        &format!("cat > /dev/null; echo > $FILE; git add $FILE; git commit --quiet -m \"$FILE\"\n{says}"),
    );
    for (file, begun) in [("first", "2036-"), ("second", "2034-"), ("third", "2035-")] {
        let run = Scratch::finish(scratch.ralph("prompt p.md 1").env("FILE", file));
        assert_eq!(run.code, Some(0), "{run:?}");
        let log = scratch.session_logs().pop().unwrap().with_extension("events.jsonl");
        let events = std::fs::read_to_string(&log).unwrap();
        let (year, at) = (&events[events.find("\"at\":\"").unwrap()..][..11], format!("\"at\":\"{begun}"));
        std::fs::write(&log, events.replace(year, &at[..11])).unwrap();
    }
    for (file, left) in [("third", "first second "), ("second", "first ")] {
        let run = scratch.run("revert");
        assert!(good(&run).contains(file), "{file}: {run:?}");
        assert_eq!(files(&scratch), left);
    }
}

#[test]
fn it_is_refused_while_a_loop_runs() {
    let scratch = Scratch::new();
    scratch.agent("claude", "cat > /dev/null; touch started; sleep 600");
    let ralph = Started::new(&scratch, "prompt p.md 2");
    wait_for("the agent", || scratch.path("started").exists().then_some(()));
    refused(&scratch.run("revert"), "'prompt' is running");
    // Also from another ralph dir of the same work tree.
    std::fs::create_dir(scratch.path(".other")).unwrap();
    refused(&scratch.run("revert --ralph-dir .other"), "there is no loop");
    drop(ralph);
}
