//! `[landing] push`: what has landed is brought to the remote.

use std::fs;
use std::path::Path;

use crate::branch_project::GH;
use crate::jobs::{RUN, assert_all_landed, ended, jobs, refs};
use crate::run_tasks::add;
use crate::scratch::{Scratch, executable};

/// Makes `origin`, a bare repository, and `gh`; returns its folder.
fn with_remote(scratch: &Scratch) -> String {
    let remote = scratch.outside().join("remote.git").to_str().unwrap().to_owned();
    scratch.git(&["init", "--quiet", "--bare", &remote]);
    scratch.git(&["remote", "add", "origin", &remote]);
    scratch.git(&["push", "--quiet", "origin", "main"]);
    scratch.agent("gh", GH);
    remote
}

/// What is on a branch of the remote.
fn pushed(scratch: &Scratch, remote: &str, branch: &str) -> String {
    let tip =
        ["--git-dir", remote, "for-each-ref", "--format=%(objectname)", &format!("refs/heads/{branch}")];
    scratch.git(&tip).trim().to_owned()
}

#[test]
fn what_has_landed_is_pushed_and_beside_a_branch_that_takes_no_pushes() {
    let gh = |scratch: &Scratch| fs::read_to_string(scratch.outside().join("home/gh")).unwrap_or_default();
    for (settings, refuses, is_aside) in [
        ("[git]\nprotected_branches = []\n", false, false),
        ("", false, true),
        ("[git]\nprotected_branches = []\n", true, true),
    ] {
        let scratch = jobs("work; done_");
        let remote = with_remote(&scratch);
        let begun = pushed(&scratch, &remote, "main");
        if refuses {
            let hook = "#!/bin/sh\n[ \"$1\" != refs/heads/main ] || { echo 'not this one' >&2; exit 1; }\n";
            executable(&Path::new(&remote).join("hooks/update"), hook);
        }
        scratch.write("ralph.toml", format!("{settings}[landing]\npush = true\n"));
        scratch.git(&["add", "."]);
        scratch.git(&["commit", "--quiet", "--message", "settings"]);
        let ids = [add(&scratch, "first"), add(&scratch, "second"), add(&scratch, "third")];
        let run = scratch.run(&format!("{RUN} 2 --validate ls"));
        ended(&run, 0);
        assert_all_landed(&scratch, &ids);
        let tip = scratch.git(&["rev-parse", "main"]).trim().to_owned();
        let (main, beside) = if is_aside { (begun, tip) } else { (tip, String::new()) };
        assert_eq!(pushed(&scratch, &remote, "main"), main, "{run:?}");
        assert_eq!(pushed(&scratch, &remote, "ralph/landed/main"), beside, "{run:?}");
        assert_eq!(refs(&scratch, "unpushed"), [""; 0]);
        let requests = gh(&scratch);
        assert_eq!(requests.matches("pr create").count(), usize::from(is_aside), "{requests}");
        assert!(!is_aside || requests.starts_with("pr create --base main --head ralph/landed/main "));
        assert_eq!(run.stderr.contains("main itself is not pushed"), is_aside, "{run:?}");
        assert_eq!(run.stderr.contains("does not take it: "), refuses, "{run:?}");
    }
}

#[test]
fn what_has_landed_goes_where_git_pushes_that_branch() {
    let scratch = jobs("work; done_");
    let origin = with_remote(&scratch);
    let begun = pushed(&scratch, &origin, "main");
    let fork = scratch.outside().join("fork.git").to_str().unwrap().to_owned();
    scratch.git(&["init", "--quiet", "--bare", &fork]);
    scratch.git(&["remote", "add", "fork", &fork]);
    scratch.git(&["config", "branch.main.pushRemote", "fork"]);
    let ids = [add(&scratch, "first")];
    let mut run = scratch.ralph(&format!("{RUN} 1 --onto main --validate ls"));
    run.env("RALPH_LANDING_PUSH", "true").env("RALPH_PROTECTED_BRANCHES", "release");
    let run = Scratch::finish(&mut run);
    ended(&run, 0);
    assert_all_landed(&scratch, &ids);
    let on_fork = pushed(&scratch, &fork, "main") + &pushed(&scratch, &fork, "ralph/landed/main");
    assert_eq!(on_fork, scratch.git(&["rev-parse", "main"]).trim(), "{run:?}");
    assert_eq!(pushed(&scratch, &origin, "main"), begun, "{run:?}");
    // One that is not there is no reason to push to another one.
    scratch.git(&["config", "branch.main.pushRemote", "gone"]);
    add(&scratch, "second");
    let mut run = scratch.ralph(&format!("{RUN} 1 --onto main --validate ls"));
    let run = Scratch::finish(run.env("RALPH_LANDING_PUSH", "true"));
    ended(&run, 0);
    assert!(run.stderr.contains("nothing is pushed"), "{run:?}");
    assert_eq!(pushed(&scratch, &origin, "main"), begun, "{run:?}");
}

#[test]
fn what_could_not_be_pushed_is_pushed_by_the_next_run() {
    let scratch = jobs("work; done_");
    scratch.write("ralph.toml", "[git]\nprotected_branches = []\n[landing]\npush = true\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "--message", "settings"]);
    let first = add(&scratch, "first");
    let run = scratch.run(&format!("{RUN} 2 --validate ls"));
    ended(&run, 0);
    assert!(run.stderr.contains("the repository has no remote: nothing is pushed"), "{run:?}");
    let remote = with_remote(&scratch);
    fs::rename(&remote, format!("{remote}.away")).unwrap();
    let second = add(&scratch, "second");
    let run = scratch.run(&format!("{RUN} 2 --validate ls"));
    ended(&run, 0);
    assert!(run.stderr.contains("the push failed: ") && run.stderr.contains("by the next run"), "{run:?}");
    assert_eq!(refs(&scratch, "unpushed"), ["refs/ralph/unpushed/main"]);
    fs::rename(format!("{remote}.away"), &remote).unwrap();
    let run = scratch.run(&format!("{RUN} 2 --validate ls"));
    ended(&run, 0);
    assert_eq!(pushed(&scratch, &remote, "main"), scratch.git(&["rev-parse", "main"]).trim());
    assert_eq!(refs(&scratch, "unpushed"), [""; 0]);
    assert_all_landed(&scratch, &[first, second]);
}
