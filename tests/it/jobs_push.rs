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

/// A repository at github.com, as far as git and `gh` can tell: ssh runs its command here.
fn at_github(scratch: &Scratch) -> String {
    let remotes = scratch.outside().join("remotes");
    let remote = remotes.join("ann/tool.git").to_str().unwrap().to_owned();
    scratch.git(&["init", "--quiet", "--bare", &remote]);
    let ssh = scratch.outside().join("ssh");
    executable(
        &ssh,
        &format!("#!/bin/sh\nfor last; do :; done\ncd '{}' && exec sh -c \"$last\"\n", remotes.display()),
    );
    scratch.git(&["config", "core.sshCommand", ssh.to_str().unwrap()]);
    scratch.git(&["remote", "add", "origin", "git@github.com:ann/tool.git"]);
    scratch.git(&["push", "--quiet", "origin", "main"]);
    let gh = r#"
printf '%s\n' "$*" >> "$HOME/gh"
case "$1 $2" in
  'pr create')
    [ ! -e "$HOME/opened" ] || { echo 'a pull request for branch "x" already exists: https://github.com/ann/tool/pull/5' >&2; exit 1; }
    touch "$HOME/opened"; echo "https://github.com/ann/tool/pull/5" ;;
  'pr view') echo '{"body":"My own words.\n","state":"OPEN","url":"https://github.com/ann/tool/pull/5"}' ;;
esac
"#;
    scratch.agent("gh", gh);
    scratch.write("ralph.toml", "[landing]\npush = true\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "--message", "settings"]);
    remote
}

/// Imports issues with these addresses, lets agents do them, and returns what `gh` was asked then.
fn landed_issues(scratch: &Scratch, addresses: &[&str]) -> String {
    let issue = |address: &&str| {
        let number: u64 = address.rsplit('/').next().unwrap().parse().unwrap();
        serde_json::json!({ "number": number, "title": format!("No. {number} closes #99"), "url": address })
    };
    let list: serde_json::Value = addresses.iter().map(issue).collect();
    fs::write(scratch.outside().join("issues.json"), list.to_string()).unwrap();
    assert_eq!(scratch.run("task import ../issues.json").code, Some(0));
    let asked = scratch.outside().join("home/gh");
    let _ = fs::remove_file(&asked);
    let run = scratch.run(&format!("{RUN} 2 --validate ls"));
    ended(&run, 0);
    fs::read_to_string(asked).unwrap_or_default()
}

/// How often these requests have this line.
fn lines(requests: &str, line: &str) -> usize {
    requests.lines().filter(|known| known.split(" --").next() == Some(line)).count()
}

#[test]
fn a_request_closes_the_issues_of_its_tasks() {
    let scratch = jobs("work; done_");
    let remote = at_github(&scratch);
    add(&scratch, "other");
    let asked = landed_issues(
        &scratch,
        &[
            "https://github.com/Ann/Tool/issues/1",
            "https://github.com/ann/tool/issues/2",
            "https://github.com/bo/other/issues/3",
            "https://git.example.org/ann/tool/issues/4",
        ],
    );
    for line in ["Closes #1", "Closes #2", "Closes bo/other#3"] {
        assert!(lines(&asked, line) > 0, "{line}: {asked}");
    }
    assert!(!asked.contains("#4"), "another host has its own issues: {asked}");
    let messages = scratch.git(&["--git-dir", &remote, "log", "--format=%B", "ralph/landed/main"]);
    assert!(messages.contains("closes # 99") && !messages.contains("#99"), "{messages}");
    let calls = asked.lines().filter(|line| line.starts_with("pr "));
    assert!(calls.count() > 0 && asked.contains("--repo github.com/ann/tool"), "{asked}");

    // One that is open already keeps the words that it has.
    let asked = landed_issues(&scratch, &["https://github.com/ann/tool/issues/5"]);
    let (_, edited) =
        asked.split_once("pr edit ralph/landed/main --body ").unwrap_or_else(|| panic!("{asked}"));
    assert!(edited.starts_with("My own words.\n\nCloses "), "{asked}");
    let given = [1, 2, 5].map(|number| lines(edited, &format!("Closes #{number}")));
    assert_eq!(given, [1; 3], "{asked}");

    // What the trunk has there is closed.
    scratch.git(&["--git-dir", &remote, "update-ref", "refs/heads/main", "refs/heads/ralph/landed/main"]);
    let asked = landed_issues(&scratch, &["https://github.com/ann/tool/issues/6"]);
    assert!(lines(&asked, "Closes #6") > 0, "{asked}");
    assert!(lines(&asked, "Closes #2") == 0 && lines(&asked, "Closes #5") == 0, "{asked}");
}

#[test]
fn a_run_without_issues_asks_for_no_trunk() {
    let scratch = jobs("work; done_");
    at_github(&scratch);
    add(&scratch, "first");
    let asked = landed_issues(&scratch, &[]);
    assert!(asked.starts_with("pr create --base main --head ralph/landed/main "), "{asked}");
    assert!(!asked.contains("Closes") && !asked.contains("pr view"), "{asked}");
    assert_eq!(refs(&scratch, "theirs"), [""; 0]);
}

#[test]
fn a_fork_asks_the_repository_that_gh_was_told() {
    let scratch = jobs("work; done_");
    at_github(&scratch);
    scratch.git(&["remote", "add", "upstream", "https://github.com/bo/tool.git"]);
    scratch.git(&["config", "remote.upstream.gh-resolved", "base"]);
    let asked = landed_issues(
        &scratch,
        &["https://github.com/bo/tool/issues/1", "https://github.com/ann/tool/issues/2"],
    );
    assert!(asked.starts_with("pr create --base main --head ann:ralph/landed/main "), "{asked}");
    assert!(asked.contains("--repo github.com/bo/tool") && !asked.contains("github.com/ann/tool"), "{asked}");
    assert!(lines(&asked, "Closes #1") > 0 && lines(&asked, "Closes ann/tool#2") > 0, "{asked}");
}
