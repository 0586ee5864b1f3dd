//! What agents, users and a git that is killed do to landing, without a task being blamed for it or a commit being lost.

use std::fs;
use std::process::Stdio;

use crate::jobs::{KILL, RUN, assert_all_landed, attempts, ended, events, jobs, refs};
use crate::run_tasks::{add, log, status};
use crate::scratch::{Scratch, executable, finish};

/// The user commits a change of the line that the first agent has rewritten.
const USER: &str = r#"
if [ $fixes = 1 ]; then
    grep -c '^<<<<<<< ' tracked.txt >> "$HOME/saw"; echo both > tracked.txt; git add -A; git commit -qm resolved
else
    echo "$id" > tracked.txt; work; cd "$HOME/../project"; echo user > tracked.txt; BAD; git add .; git commit -qm user
fi
done_"#;

fn hook(scratch: &Scratch, text: &str) {
    executable(&scratch.path(".git/hooks/reference-transaction"), &format!("#!/bin/bash\n{text}\nexit 0\n"));
}

#[test]
fn a_task_that_conflicts_with_the_users_commit_is_returned_with_that_conflict() {
    let scratch = jobs(&USER.replace("BAD", "true"));
    let id = add(&scratch, "first");
    let mut command = scratch.ralph(&format!("{RUN} 2"));
    let run = Scratch::finish(command.env("RALPH_LANDING_RETRIES", "1").env("RALPH_LANDING_COMMAND", "ls"));
    ended(&run, 0);
    assert_all_landed(&scratch, &[id]);
    assert_eq!(fs::read_to_string(scratch.home().join("saw")).unwrap(), "1\n", "the agent has seen it");
}

#[test]
fn a_task_that_conflicts_with_a_red_commit_of_the_users_waits() {
    let scratch = jobs(&USER.replace("BAD", "touch bad"));
    let id = add(&scratch, "first");
    let run = |gate: &str| {
        let mut command = scratch.ralph(&format!("{RUN} 2"));
        Scratch::finish(command.env("RALPH_LANDING_RETRIES", "0").env("RALPH_LANDING_COMMAND", gate))
    };
    let paused = run("! ls bad");
    ended(&paused, 3);
    assert_eq!((status(&scratch, &id).as_str(), attempts(&scratch)), ("landing", 1), "{paused:?}");
    assert_eq!(refs(&scratch, "tasks").len(), 1);
    // What is green now is taken in, and the conflict is the task's own then.
    ended(&run("true"), 4);
    assert!(
        log(&scratch, &id)
            .concat()
            .contains("it conflicts with what has landed on main meanwhile, in tracked.txt")
    );
}

#[test]
fn work_whose_tree_has_lost_its_repository_lands_all_the_same() {
    let own = "rm .git; git init -q; git add .; git commit -qm own";
    for deed in ["rm .git", "git rev-parse HEAD > .git", own] {
        let scratch = jobs(&format!("work; echo more > more; {deed}; done_"));
        scratch.write("staged.txt", "the user's");
        scratch.git(&["add", "staged.txt"]);
        let id = add(&scratch, "first");
        let run = scratch.run(&format!("{RUN} 2 --validate ls"));
        ended(&run, 0);
        let files = scratch.git(&["ls-tree", "--name-only", "main"]);
        let has = |name: &str| files.lines().any(|line| line == name);
        assert!(has("more") && has(&format!("work-{id}")) && !has("staged.txt"), "{deed}: {files} {run:?}");
        assert_eq!(scratch.git(&["status", "--porcelain"]), "A  staged.txt\n");
    }
}

#[test]
fn a_bisect_and_a_rebase_that_an_agent_leaves_are_ended_and_its_commits_land() {
    let bisect = "git bisect start -q; git bisect bad HEAD; git bisect good HEAD~2";
    let rebase = "git -c sequence.editor='sed -i 1s/pick/edit/' rebase -qi HEAD~2";
    for deed in [bisect, rebase] {
        let scratch = jobs(&format!("work; echo two > two; commit two; {deed} >&2; done_"));
        let id = add(&scratch, "first");
        let run = scratch.run(&format!("{RUN} 2 --validate ls"));
        ended(&run, 0);
        assert_all_landed(&scratch, &[id]);
        assert!(scratch.path("two").exists(), "{run:?}");
    }
}

#[test]
fn commits_that_were_made_in_the_middle_of_a_rebase_are_not_given_up() {
    let rebase = "git -c sequence.editor='sed -i 1s/pick/edit/' rebase -qi HEAD~2";
    let scratch = jobs(&format!(
        r#"if [ "$(wc -l < "$HOME/attempts")" = 1 ]; then
    work; echo two > two; commit two; {rebase} >&2; echo amid > amid; commit amid; done_; exit
fi
ls > "$HOME/saw"; echo more > more; commit; done_"#
    ));
    let id = add(&scratch, "first");
    let run = scratch.run(&format!("{RUN} 2 --validate ls"));
    ended(&run, 0);
    assert!(run.stderr.contains("the agent has left a rebase in progress"), "{run:?}");
    assert_eq!(status(&scratch, &id), "done");
    let saw = fs::read_to_string(scratch.home().join("saw")).unwrap();
    assert!(
        saw.contains("amid") && scratch.path("amid").exists(),
        "its next agent goes on from there: {saw}"
    );
    // What the rebase had not reached yet.
    let kept: String =
        refs(&scratch, "keep").iter().map(|kept| scratch.git(&["log", "--format=%s", kept])).collect();
    assert!(kept.contains("two"), "{kept} {run:?}");
}

#[test]
fn a_rebased_line_needs_no_identity_of_the_machines() {
    let scratch = jobs(r#"until [ "$(wc -l < "$HOME/attempts")" -ge 2 ]; do sleep 0.02; done; work; done_"#);
    let settings = "[landing]\nstyle = \"rebase\"\nretries = 0\n[git.worktree]\nname = \"Bot\"\nemail = \"bot@example.org\"\n";
    scratch.write("ralph.toml", settings);
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "-qm", "settings"]);
    let ids = [add(&scratch, "first"), add(&scratch, "second")];
    let mut command = scratch.ralph(&format!("{RUN} 2 --validate ls"));
    for name in ["AUTHOR", "COMMITTER"] {
        command.env_remove(format!("GIT_{name}_NAME")).env_remove(format!("GIT_{name}_EMAIL"));
    }
    ended(&Scratch::finish(&mut command), 0);
    assert_all_landed(&scratch, &ids);
    assert_eq!(scratch.git(&["log", "--merges", "--format=%s"]), "");
}

#[test]
fn a_git_that_is_killed_while_a_candidate_is_made_blames_no_task() {
    for call in ["merge-tree", "commit-tree"] {
        let scratch =
            jobs(r#"until [ "$(wc -l < "$HOME/attempts")" -ge 2 ]; do sleep 0.02; done; work; done_"#);
        scratch.agent(
            "git",
            &format!(
                r#"case " $* " in *" {call} "*) [ -e "$HOME/killed" ] || {{ touch "$HOME/killed"; kill -9 $$; }};; esac
PATH=${{PATH#*:}} exec git "$@""#
            ),
        );
        let ids = [add(&scratch, "first"), add(&scratch, "second")];
        let mut command = scratch.ralph(&format!("{RUN} 2 --validate ls"));
        let run = Scratch::finish(command.env("RALPH_LANDING_RETRIES", "0"));
        ended(&run, 0);
        assert!(scratch.home().join("killed").exists());
        assert_all_landed(&scratch, &ids);
        assert_eq!(events(&scratch, "returned").len(), 0, "{run:?}");
    }
}

#[test]
fn a_fast_forward_of_the_checkout_that_was_killed_is_finished() {
    let scratch = jobs("echo \"$id\" > tracked.txt; work; done_");
    hook(
        &scratch,
        r#"[ "$1" = prepared ] && grep -q ' refs/heads/main$' && [ ! -e "$HOME/killed" ] && { touch "$HOME/killed"; kill -9 $PPID; }"#,
    );
    let first = add(&scratch, "first");
    let ids = [first.clone(), add(&scratch, &format!("second --after {first}"))];
    ended(&scratch.run(&format!("{RUN} 2 --validate ls")), 0);
    assert!(scratch.home().join("killed").exists());
    assert_all_landed(&scratch, &ids);
}

#[test]
fn what_a_gate_prints_is_kept_without_secrets() {
    let scratch = jobs("work; done_");
    let id = add(&scratch, "first");
    let mut command = scratch.ralph(&format!("{RUN} 2"));
    command.env("MY_PASSWORD", "hunter2hunter2").env("RALPH_LANDING_RETRIES", "0");
    command.env("RALPH_LANDING_COMMAND", "ls work-* && echo it is $MY_PASSWORD && exit 1; true");
    ended(&Scratch::finish(&mut command), 4);
    let log = log(&scratch, &id).concat();
    assert!(log.contains("it is [redacted:MY_PASSWORD]"), "{log}");
    let graph = fs::read(scratch.path(".ralph/progress.db")).unwrap();
    assert!(!graph.windows(14).any(|bytes| bytes == b"hunter2hunter2"));
}

#[test]
fn what_was_to_land_on_a_branch_that_is_gone_lands_on_the_one_that_is_named() {
    let renames = r#"work; [ -e "$HOME/renamed" ] || { touch "$HOME/renamed"; git -C "$HOME/../project" branch -m main other; }; done_"#;
    let scratch = jobs(renames);
    let first = add(&scratch, "first");
    let second = add(&scratch, &format!("second --after {first}"));
    ended(&scratch.run(&format!("{RUN} 2 --validate ls")), 5);
    assert_eq!(status(&scratch, &first), "landing");
    ended(&scratch.run(&format!("{RUN} 2 --validate ls --onto other")), 0);
    assert_eq!([first, second].map(|id| status(&scratch, &id)), ["done", "done"]);
    assert_eq!(refs(&scratch, "tasks"), [""; 0]);
}

#[test]
fn what_has_landed_is_not_taken_back_before_that_is_booked() {
    let scratch = jobs("work; done_");
    let id = add(&scratch, "first");
    scratch.git(&["update-ref", "refs/ralph/landed/main", "main"]);
    hook(&scratch, &format!("[ \"$1\" = committed ] && grep -q ' refs/ralph/landed/main$' && {{ {KILL}; }}"));
    let mut command = scratch.ralph(&format!("{RUN} 2 --validate ls"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    fs::write(scratch.home().join("ralph"), child.id().to_string()).unwrap();
    assert_eq!(finish(child).code, None);
    for verb in ["reset", "fail", "delete --recursive", "done --force"] {
        let refused = scratch.run(&format!("task {verb} {id}"));
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("has landed on main as "), "{refused:?}");
    }
    ended(&scratch.run(&format!("{RUN} 2 --validate ls")), 0);
    assert_all_landed(&scratch, &[id]);
    assert_eq!(attempts(&scratch), 1);
}

#[test]
fn a_trunk_that_an_agent_has_checked_out_does_not_move_under_it() {
    let scratch = jobs(
        r#"
if [ "$title" = first ]; then
    git checkout -q develop; touch "$HOME/on-it"; until grep -rqs "does not follow" "$HOME/../project/.ralph/runs"; do sleep 0.02; done
    ls > "$HOME/saw"; git checkout -q --detach
else
    until [ -e "$HOME/on-it" ]; do sleep 0.02; done
fi
work; done_"#,
    );
    scratch.git(&["branch", "develop"]);
    let ids = [add(&scratch, "first"), add(&scratch, "second")];
    let run = scratch.run(&format!("{RUN} 2 --onto develop --validate ls"));
    ended(&run, 0);
    assert!(
        run.stderr.contains("develop does not follow what has landed: an agent has checked it out"),
        "{run:?}"
    );
    assert!(!fs::read_to_string(scratch.home().join("saw")).unwrap().contains("work-"));
    let files = scratch.git(&["ls-tree", "--name-only", "develop"]);
    assert!(ids.iter().all(|id| files.contains(&format!("work-{id}"))), "{files}");
}
