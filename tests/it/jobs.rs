//! `ralph run --jobs N`: agents side by side on one graph, and how their work lands.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::policies::signal;
use crate::run_tasks::{add, log, status};
use crate::scratch::{Run, Scratch, finish, wait_for};

/// An agent that commits a file of its task's name, and what a test lets it do besides.
const AGENT: &str = r#"
prompt=$(cat)
id=$(sed -n 's/^## Your task: //p' <<<"$prompt")
title=$(sed -n "/^## Your task/,\$s/^\*\*\(.*\)\*\*\$/\1/p" <<<"$prompt" | head -1)
fixes=$(grep -c '^## It could not land' <<<"$prompt")
echo "$id" >> "$HOME/attempts"
printf '%s' "$prompt" > "$HOME/prompt-$id-$(grep -c "$id" "$HOME/attempts")"
commit() { git add -A; git commit -qm "${1:-work on $id}"; }
work() { echo "$id" > "work-$id"; commit; }
done_() { say "It is done.\n<task-done>$id</task-done>"; result; }
"#;

/// A project with one commit of `tracked.txt`, whose agent does this.
pub(crate) fn jobs(body: &str) -> Scratch {
    let scratch = Scratch::new();
    agent(&scratch, body);
    scratch.write("tracked.txt", "one\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "--message", "begin"]);
    scratch
}

pub(crate) fn agent(scratch: &Scratch, body: &str) {
    scratch.agent("claude", &format!("{AGENT}\n{body}"));
}

pub(crate) fn attempts(scratch: &Scratch) -> usize {
    fs::read_to_string(scratch.outside().join("home/attempts")).unwrap_or_default().lines().count()
}

fn prompt(scratch: &Scratch, id: &str, attempt: usize) -> String {
    fs::read_to_string(scratch.outside().join(format!("home/prompt-{id}-{attempt}"))).unwrap()
}

pub(crate) const RUN: &str = "run --all --no-verify --proof place --jobs";

/// The refs below `refs/ralph/` in this folder.
pub(crate) fn refs(scratch: &Scratch, folder: &str) -> Vec<String> {
    let refs = scratch.git(&["for-each-ref", "--format=%(refname)", &format!("refs/ralph/{folder}")]);
    refs.lines().map(str::to_owned).collect()
}

/// The events of this name in the logs of all runs.
pub(crate) fn events(scratch: &Scratch, name: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut folders = vec![scratch.path(".ralph/runs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(".events.jsonl") {
                let text = fs::read_to_string(path).unwrap();
                let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                found.extend(lines.filter(|event| event["event"] == name));
            }
        }
    }
    found
}

#[track_caller]
pub(crate) fn ended(run: &Run, code: i32) {
    assert_eq!(run.code, Some(code), "{run:?}");
    assert!(!run.stderr.contains("panicked"), "{run:?}");
}

/// Every commit of an agent is on `main`, its files are in the checkout, and nothing is left on the way.
#[track_caller]
pub(crate) fn assert_all_landed(scratch: &Scratch, ids: &[String]) {
    for id in ids {
        assert_eq!(status(scratch, id), "done");
        assert!(scratch.path(&format!("work-{id}")).exists(), "{id}");
    }
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    assert_eq!(refs(scratch, "tasks"), [""; 0]);
    let tips = scratch.git(&["rev-parse", "main", "refs/ralph/landed/main"]);
    let tips: Vec<&str> = tips.lines().collect();
    assert_eq!(tips[0], tips[1]);
}

#[test]
fn agents_work_side_by_side_and_what_they_finish_lands_in_one_history() {
    // The first two can only end together.
    let together = r#"
if [ "$(wc -l < "$HOME/attempts")" -le 2 ]; then
    until [ "$(wc -l < "$HOME/attempts")" -ge 2 ]; do sleep 0.02; done
fi
work; echo uncommitted > "left-$id"; done_"#;
    let scratch = jobs(together);
    let first = add(&scratch, "first");
    let ids = [
        first.clone(),
        add(&scratch, "second"),
        add(&scratch, &format!("third --after {first}")),
        add(&scratch, "fourth"),
    ];
    let run = scratch.run(&format!("{RUN} 2 --validate ls"));
    ended(&run, 0);
    assert_all_landed(&scratch, &ids);
    assert_eq!(attempts(&scratch), 4);
    assert_eq!(log(&scratch, &first).len(), 2);
    // What an agent left uncommitted is committed in its name.
    let subjects = scratch.git(&["log", "--format=%s"]);
    assert!(subjects.contains(&format!("{first}: first")), "{subjects}");
    assert!(run.stderr.contains("uncommitted: committed in its name"), "{run:?}");
    // The third one was built on the first.
    let third = prompt(&scratch, &ids[2], 1);
    assert!(third.contains(&format!("{first}: **first**")), "{third}");
    for (name, count) in [("landing_queued", 4), ("landed", 4), ("returned", 0)] {
        assert_eq!(events(&scratch, name).len(), count, "{name}");
    }
    let (started, gates) = (events(&scratch, "gate_started"), events(&scratch, "gate_ended"));
    assert_eq!(started.len(), gates.len());
    let report: Value = serde_json::from_str(&scratch.run("report --json").stdout).unwrap();
    assert_eq!((&report["landed"], &report["returned"]), (&4.into(), &0.into()), "{run:?}");
    assert_eq!(report["gates"], gates.len(), "{report} {gates:?}");
    assert!(run.stdout.contains("4 tasks: 4 done") && run.stdout.contains("4 landed"), "{run:?}");
    let shown: Value =
        serde_json::from_str(&scratch.run(&format!("task show {first} --json")).stdout).unwrap();
    let landing = &shown["landing"];
    assert_eq!((&landing["standing"], &landing["onto"]), (&"landed".into(), &"main".into()));
    assert_eq!(landing["commits"], 2);
    assert!(scratch.run(&format!("task show {first}")).stdout.contains("landing    landed on main, "));
    // The trees are kept for the next run, and are no branches of anybody.
    assert_eq!(scratch.git(&["branch", "--format=%(refname)"]), "refs/heads/main\n");
    assert!(scratch.path(".worktrees/tasks/2/tracked.txt").exists());
    let clean = scratch.run("clean --worktrees");
    ended(&clean, 0);
    assert!(!scratch.path(".worktrees/tasks").exists(), "{clean:?}");
    assert_eq!(refs(&scratch, "keep"), [""; 0], "{clean:?}");
}

/// Both take the same line: what comes second is fixed by merging.
const SAME_LINE: &str = r#"
if [ $fixes = 1 ]; then
    grep -q '<<<<<<<' tracked.txt && { sed -i '/^[<=>]\{7\}/d' tracked.txt; commit "merged $id"; }
else
    until [ "$(wc -l < "$HOME/attempts")" -ge 2 ]; do sleep 0.02; done
    echo "$id" > tracked.txt; work
fi
done_"#;

#[test]
fn what_conflicts_is_returned_and_fixed_by_a_fresh_agent() {
    for style in ["merge", "rebase"] {
        let scratch = jobs(SAME_LINE);
        scratch.write("ralph.toml", format!("[landing]\nstyle = \"{style}\"\n"));
        scratch.git(&["add", "."]);
        scratch.git(&["commit", "-qm", "settings"]);
        let ids = [add(&scratch, "first"), add(&scratch, "second")];
        let run = scratch.run(&format!("{RUN} 2 --validate ls"));
        ended(&run, 0);
        assert_all_landed(&scratch, &ids);
        assert_eq!(attempts(&scratch), 3);
        let returned = &events(&scratch, "returned")[0];
        let id = returned["task"]["id"].as_str().unwrap();
        assert!(returned["reason"].as_str().unwrap().contains("in tracked.txt"), "{returned}");
        let told = prompt(&scratch, id, 2);
        let other = ids.iter().find(|other| *other != id).unwrap();
        assert!(told.contains("conflict markers:\n\n- tracked.txt\n"), "{told}");
        assert!(told.contains(&format!("work on {other}")), "{told}");
        let lines: Vec<String> = scratch.read("tracked.txt").lines().map(str::to_owned).collect();
        assert!(ids.iter().all(|id| lines.contains(id)), "{lines:?}");
        let merges = scratch.git(&["rev-list", "--merges", "--count", "main"]);
        assert_eq!(merges == "0\n", style == "rebase", "{merges}");
        // It did not count as a retry.
        assert!(scratch.run(&format!("task show {id}")).stdout.contains("retries    0 of 3"));
    }
}

#[test]
fn one_that_is_red_alone_is_returned_with_the_output_and_the_others_land() {
    let body = r#"
if [ $fixes = 1 ]; then git rm -q bad; commit fixed; else [ "$title" = second ] && echo > bad; work; fi
until [ "$(wc -l < "$HOME/attempts")" -ge 3 ]; do sleep 0.02; done
done_"#;
    let scratch = jobs(body);
    let ids = [add(&scratch, "first"), add(&scratch, "second"), add(&scratch, "third")];
    let run = Scratch::finish(
        scratch
            .ralph(&format!("{RUN} 3"))
            .env("RALPH_LANDING_COMMAND", "! ls bad || { echo it is bad; exit 3; }"),
    );
    ended(&run, 0);
    assert_all_landed(&scratch, &ids);
    assert_eq!(attempts(&scratch), 4);
    let told = prompt(&scratch, &ids[1], 2);
    assert!(
        told.contains("it is bad") && told.contains("is merged into it by now, without conflicts"),
        "{told}"
    );
    assert!(log(&scratch, &ids[1]).iter().any(|line| line.starts_with("returned: on main with it, ")));
    // One alone was gated twice before it was blamed.
    let alone = events(&scratch, "gate_ended").into_iter();
    let alone = alone
        .filter(|gate| gate["ok"] == false && gate["tasks"].as_array().is_some_and(|tasks| tasks.len() == 1));
    assert_eq!(alone.count(), 2);
}

#[test]
fn what_never_lands_fails_with_its_commits_kept() {
    let scratch = jobs("work; done_");
    let id = add(&scratch, "first");
    let run = Scratch::finish(
        scratch
            .ralph(&format!("{RUN} 2"))
            .env("RALPH_LANDING_COMMAND", "! ls work-*")
            .env("RALPH_LANDING_RETRIES", "1"),
    );
    ended(&run, 4);
    assert_eq!((status(&scratch, &id).as_str(), attempts(&scratch)), ("failed", 2));
    let last = log(&scratch, &id).pop().unwrap();
    let kept = refs(&scratch, "tasks");
    assert!(last.contains("after it was returned 1 time") && last.contains(&kept[0]), "{last} {kept:?}");
    assert_eq!(scratch.git(&["log", "--format=%s", "main"]), "begin\n");
    assert!(scratch.git(&["ls-tree", "--name-only", &kept[0]]).contains("work-"));
    let shown = scratch.run(&format!("task show {id}")).stdout;
    assert!(shown.contains(&kept[0]), "{shown}");
    // A person has it done anew: its commits stay.
    assert!(scratch.run(&format!("task reset {id}")).stderr.is_empty());
    assert_eq!(refs(&scratch, "tasks"), kept);
}

#[test]
fn a_red_trunk_pauses_landing_and_blames_nobody() {
    let scratch = jobs("work; done_");
    let ids = [add(&scratch, "first"), add(&scratch, "second")];
    scratch.write("bad", "");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "-qm", "bad"]);
    let command = || {
        let mut command = scratch.ralph(&format!("{RUN} 2"));
        command.env("RALPH_LANDING_COMMAND", "! ls bad");
        command
    };
    let run = Scratch::finish(&mut command());
    ended(&run, 3);
    assert!(run.stdout.contains("main itself does not pass '! ls bad'"), "{run:?}");
    assert_eq!(events(&scratch, "returned").len(), 0);
    assert!(ids.iter().all(|id| status(&scratch, id) == "landing"));
    assert_eq!(refs(&scratch, "tasks").len(), 2);
    let listed = scratch.run("status").stdout;
    assert!(listed.contains("landing · 2 waiting"), "{listed}");
    // One job in the checkout cannot do anything about it.
    let alone = scratch.run("run --all --no-verify");
    ended(&alone, 3);
    assert!(
        alone.stderr.contains("waits to land: 'ralph run --all --jobs 2 --onto main' lands it"),
        "{alone:?}"
    );
    scratch.git(&["rm", "-q", "bad"]);
    scratch.git(&["commit", "-qm", "fixed"]);
    ended(&Scratch::finish(&mut command()), 0);
    assert_all_landed(&scratch, &ids);
    assert_eq!(attempts(&scratch), 2, "nothing is done twice");
}

#[test]
fn what_the_user_does_meanwhile_is_never_lost() {
    // An uncommitted file where one is to land, and a commit of the user's.
    let body = r#"
[ "$title" = first ] && { echo mine > "$PROJECT/work-$id"; echo > "$PROJECT/user"; git -C "$PROJECT" add user; git -C "$PROJECT" commit -qm user; }
work; done_"#;
    let scratch = jobs(body);
    let first = add(&scratch, "first");
    let run =
        Scratch::finish(scratch.ralph(&format!("{RUN} 2 --validate ls")).env("PROJECT", scratch.root()));
    ended(&run, 0);
    assert!(run.stderr.contains("main does not follow what has landed: "), "{run:?}");
    assert_eq!(scratch.read(&format!("work-{first}")), "mine\n");
    assert_eq!(scratch.git(&["log", "-1", "--format=%s"]), "user\n");
    assert_eq!(refs(&scratch, "tasks").len(), 1, "the trunk does not have it yet");
    fs::remove_file(scratch.path(&format!("work-{first}"))).unwrap();
    let second = add(&scratch, "second");
    ended(
        &Scratch::finish(scratch.ralph(&format!("{RUN} 2 --validate ls")).env("PROJECT", scratch.root())),
        0,
    );
    assert_all_landed(&scratch, &[first, second]);
    assert!(scratch.path("user").exists());
}

#[test]
fn a_trunk_that_the_user_rewrites_ends_the_run_until_it_is_named_anew() {
    let body = r#"work
[ "$title" = first ] && git -C "$PROJECT" commit -q --amend -m rewritten
done_"#;
    let scratch = jobs(body);
    scratch.write("more", "");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "-qm", "second"]);
    let ids = [add(&scratch, "first"), add(&scratch, "second")];
    let run =
        |args: &str| Scratch::finish(scratch.ralph(&format!("{RUN} {args}")).env("PROJECT", scratch.root()));
    let first = run("1 --onto main");
    ended(&first, 5);
    assert!(first.stdout.contains("the branch main was rewritten"), "{first:?}");
    assert!(first.stdout.contains("or run again with --onto main"), "{first:?}");
    assert!(first.stdout.contains("git branch -f main refs/ralph/landed/main"), "{first:?}");
    let again = run("2");
    ended(&again, 5);
    assert_eq!(again.stderr.lines().last().unwrap().matches("was rewritten").count(), 1, "{again:?}");
    agent(&scratch, "work; done_");
    ended(&run("2 --onto main"), 0);
    assert_all_landed(&scratch, &ids);
    assert!(scratch.git(&["log", "--format=%s"]).contains("rewritten\n"));
}

#[test]
fn ctrl_c_lands_what_is_handed_in_and_a_second_one_leaves_it_to_the_next_run() {
    let body = "touch \"$HOME/began-$id\"; until [ -e \"$HOME/go\" ]; do sleep 0.02; done; work; done_";
    let scratch = jobs(body);
    let ids: Vec<String> = (0..4).map(|number| add(&scratch, &format!("task-{number}"))).collect();
    let began = || fs::read_dir(scratch.outside().join("home")).unwrap().flatten();
    let began = || began().filter(|entry| entry.file_name().to_string_lossy().starts_with("began-")).count();
    let go = scratch.outside().join("home/go");
    let child = scratch.start(&format!("{RUN} 2 --validate ls"));
    wait_for("two agents", || (began() == 2).then_some(()));
    signal(&child, Signal::INT);
    fs::write(&go, "").unwrap();
    let run = finish(child);
    ended(&run, 130);
    let landed: Vec<&String> = ids.iter().filter(|id| status(&scratch, id) == "done").collect();
    assert_eq!((landed.len(), attempts(&scratch)), (2, 2), "{run:?}");
    // The gate of the next ones never ends by itself.
    let gate = scratch.outside().join("home/gate");
    let mut command = scratch.ralph(&format!("{RUN} 2"));
    command.env("RALPH_LANDING_COMMAND", "touch \"$HOME/gate\"; sleep 600");
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    wait_for("the gate", || gate.exists().then_some(()));
    let asked = events(&scratch, "asked").len();
    signal(&child, Signal::INT);
    wait_for("both loops", || (events(&scratch, "asked").len() == asked + 2).then_some(()));
    let landing = || ids.iter().filter(|id| status(&scratch, id) == "landing").count();
    wait_for("both tasks to be handed in", || (landing() == 2).then_some(()));
    signal(&child, Signal::INT);
    let run = finish(child);
    ended(&run, 130);
    assert_eq!(landing(), 2, "{run:?}");
    assert_eq!(refs(&scratch, "tasks").len(), 2);
    ended(&scratch.run(&format!("{RUN} 2 --validate ls")), 0);
    assert_all_landed(&scratch, &ids);
    assert_eq!(attempts(&scratch), 4, "nothing is done twice");
}

#[test]
fn the_limit_holds_for_all_jobs_together() {
    let scratch = jobs("work; done_");
    let ids: Vec<String> = (0..5).map(|number| add(&scratch, &format!("task-{number}"))).collect();
    let run = scratch.run(&format!("{RUN} 3 --limit 3 --validate ls"));
    ended(&run, 0);
    assert_eq!(attempts(&scratch), 3);
    assert_eq!(ids.iter().filter(|id| status(&scratch, id) == "done").count(), 3);
    assert_eq!(ids.iter().filter(|id| status(&scratch, id) == "pending").count(), 2);
    // Failures in a row are counted over all of them, too.
    agent(&scratch, "exit 3");
    let run = scratch.run(&format!("{RUN} 2 --max-errors 2"));
    ended(&run, 4);
    assert!((5..=6).contains(&attempts(&scratch)), "{}", attempts(&scratch));
}

#[test]
fn bad_values_are_refused_in_a_line_and_nothing_is_claimed() {
    let scratch = jobs("work; done_");
    let id = add(&scratch, "first");
    scratch.git(&["tag", "v1"]);
    for (args, what) in [
        ("--jobs 0", "--jobs 0: give a whole number from 1 to 64"),
        ("--jobs 65", "from 1 to 64"),
        ("--jobs many", "--jobs many: "),
        ("--onto v1", "--onto v1: that is a commit and no branch"),
        ("--onto nope", "--onto nope: there is no such branch"),
        ("--jobs 2 --batch 0", "--batch 0: "),
        ("--jobs 2 --name x", "--name is not for jobs that land"),
    ] {
        let run = scratch.run(&format!("run --all --no-verify --model m {args}"));
        assert_eq!(run.code, Some(1), "{args}: {run:?}");
        assert!(run.stderr.contains(what) && run.stderr.lines().count() == 1, "{args}: {run:?}");
    }
    let run = Scratch::finish(scratch.ralph("run --all").env("RALPH_TASK_JOBS", "65"));
    assert!(run.stderr.contains("execution.jobs 65 (RALPH_TASK_JOBS in the environment)"), "{run:?}");
    scratch.git(&["checkout", "-q", "--detach"]);
    let run = scratch.run("run --all --jobs 2");
    assert!(run.code == Some(1) && run.stderr.contains("HEAD is on no branch"), "{run:?}");
    assert_eq!((status(&scratch, &id).as_str(), attempts(&scratch)), ("pending", 0));
    assert_eq!(refs(&scratch, ""), [""; 0]);
    ended(&scratch.run("run --all --no-verify --proof place --onto main"), 0);
    assert_eq!(scratch.git(&["log", "--format=%s", "main"]), format!("work on {id}\nbegin\n"));
}

#[test]
fn what_has_landed_is_shown_and_taken_back_by_its_task() {
    let scratch = jobs(SAME_LINE);
    let ids = [add(&scratch, "first"), add(&scratch, "second")];
    ended(&scratch.run(&format!("{RUN} 2 --validate ls")), 0);
    let fixed = events(&scratch, "returned")[0]["task"]["id"].as_str().unwrap().to_owned();
    let other = ids.iter().find(|id| **id != fixed).unwrap();
    let diff = scratch.run(&format!("diff {fixed}"));
    assert!(
        diff.stdout.contains(&format!("work-{fixed}")) && !diff.stdout.contains(&format!("work-{other}")),
        "{diff:?}"
    );
    let logs = scratch.run(&format!("logs {fixed}"));
    assert!(
        logs.stdout.contains(&format!("works on {fixed}"))
            && !logs.stdout.contains(&format!("works on {other}")),
        "{logs:?}"
    );
    assert!(scratch.run("revert tasks/1").stderr.contains("ralph revert TASK"));
    let reverted = scratch.run(&format!("revert {fixed}"));
    ended(&reverted, 0);
    assert!(
        !scratch.path(&format!("work-{fixed}")).exists() && scratch.path(&format!("work-{other}")).exists()
    );
    assert_eq!(scratch.read("tracked.txt"), format!("{other}\n"));
    assert!(scratch.git(&["log", "-1", "--format=%s"]).starts_with(&format!("Revert {fixed}: ")));
    assert!(scratch.run(&format!("revert {fixed}")).stdout.contains("nothing to undo"));
}

#[test]
fn people_withdraw_what_waits_to_land() {
    let scratch = jobs("work; done_");
    let ids =
        [add(&scratch, "first"), add(&scratch, "second"), add(&scratch, "third"), add(&scratch, "fourth")];
    scratch.write("bad", "");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "-qm", "bad"]);
    let run = Scratch::finish(scratch.ralph(&format!("{RUN} 4")).env("RALPH_LANDING_COMMAND", "! ls bad"));
    ended(&run, 3);
    let refused = scratch.run(&format!("task done {}", ids[0]));
    assert!(refused.code == Some(1) && refused.stderr.contains("is landing: "), "{refused:?}");
    for (verb, id, now) in
        [("done --force", &ids[0], "done"), ("fail", &ids[1], "failed"), ("reset", &ids[2], "pending")]
    {
        let run = scratch.run(&format!("task {verb} {id}"));
        ended(&run, 0);
        assert!(run.stderr.contains(&format!("its commits are kept as refs/ralph/tasks/{id}/")), "{run:?}");
        assert_eq!(status(&scratch, id), now);
    }
    let gone = scratch.run(&format!("task delete {}", ids[3]));
    assert!(gone.stderr.contains("nothing of it is landed"), "{gone:?}");
    assert_eq!(refs(&scratch, "tasks").len(), 4);
    assert_eq!(scratch.run("task list --status landing").stdout, "");
}

#[test]
fn two_runs_from_two_checkouts_share_the_queue() {
    let body = "until [ \"$(wc -l < \"$HOME/attempts\")\" -ge 4 ]; do sleep 0.02; done; work; done_";
    let scratch = jobs(body);
    let ids: Vec<String> = (0..6).map(|number| add(&scratch, &format!("task-{number}"))).collect();
    let elsewhere = scratch.outside().join("elsewhere");
    scratch.git(&["worktree", "add", "-q", "-b", "side", elsewhere.to_str().unwrap()]);
    let mut other = scratch.ralph(&format!("{RUN} 2 --onto main --validate ls"));
    let other = other
        .current_dir(&elsewhere)
        // What the other run does is no matter for a tripwire.
        .env("RALPH_SANDBOX_TRIPWIRE", "stop")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let other = other.spawn().unwrap();
    // Neither can go on before both are at work.
    let mut run = scratch.ralph(&format!("{RUN} 2 --validate ls"));
    let run = Scratch::finish(run.env("RALPH_SANDBOX_TRIPWIRE", "stop"));
    for run in [run, finish(other)] {
        ended(&run, 0);
        assert!(!run.stderr.contains("tripwire"), "{run:?}");
    }
    assert_all_landed(&scratch, &ids);
    assert_eq!(attempts(&scratch), 6);
}

#[test]
fn a_run_says_that_another_one_lands_by_another_gate() {
    // The first run has the lead while its gate runs, which ends when the other run has said so.
    let scratch = jobs("work; done_");
    let ids = [add(&scratch, "one"), add(&scratch, "two"), add(&scratch, "three"), add(&scratch, "four")];
    let elsewhere = scratch.outside().join("elsewhere");
    scratch.git(&["worktree", "add", "-q", "-b", "side", elsewhere.to_str().unwrap()]);
    let gate = "touch \"$HOME/gated\"; for n in $(seq 1200); do [ ! -e \"$HOME/told\" ] || exit 0; sleep 0.05; done; exit 1";
    let mut first = scratch.ralph(&format!("{RUN} 2 --limit 2"));
    let first = first.env("RALPH_LANDING_COMMAND", gate).stdout(std::process::Stdio::piped());
    let first = first.stderr(std::process::Stdio::piped()).spawn().unwrap();
    crate::scratch::wait_for("the gate", || scratch.outside().join("home/gated").exists().then_some(()));
    let mut other = scratch.ralph(&format!("{RUN} 2 --onto main --json"));
    other.env("RALPH_LANDING_COMMAND", "ls").current_dir(&elsewhere);
    let mut other = other.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(other.stdout.take().unwrap()));
    let mut told = Vec::new();
    for line in lines.map(Result::unwrap).filter(|line| line.contains("lands on main with the gate 'touch")) {
        assert!(line.contains("and this run has the gate 'ls'"), "{line}");
        fs::write(scratch.outside().join("home/told"), "").unwrap();
        told.push(line);
    }
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(other.wait().unwrap().code(), Some(0));
    ended(&finish(first), 0);
    assert_all_landed(&scratch, &ids);
}

/// Kills ralph with -9 once: when `$1` happens the first time. The id of its process is in `$HOME/ralph`.
pub(crate) const KILL: &str =
    r#"if [ ! -e "$HOME/killed" ]; then touch "$HOME/killed"; kill -9 "$(cat "$HOME/ralph")"; sleep 600; fi"#;

#[test]
fn a_lander_that_is_killed_anywhere_is_healed_by_the_next_run() {
    // In the gate; before the landed tip moves, and after that, before anything is booked; while the trunk follows.
    let hook = |state: &str, reference: &str| {
        format!("[ \"$1\" = {state} ] && grep -q ' {reference}$' && {{ {KILL}; }}; exit 0")
    };
    let scratches = [
        ("gate", String::new()),
        ("before the tip moves", hook("prepared", "refs/ralph/landed/main")),
        ("before it is booked", hook("committed", "refs/ralph/landed/main")),
        ("while the trunk follows", hook("committed", "refs/heads/main")),
        ("while it is handed in", hook("committed", "refs/ralph/tasks/.*")),
    ];
    crate::scratch::side_by_side(&scratches, |(place, hook)| {
        let scratch = jobs("work; done_");
        let ids = [add(&scratch, "first"), add(&scratch, "second"), add(&scratch, "third")];
        // What makes the tip once, before anything is at stake, is not meant.
        scratch.git(&["update-ref", "refs/ralph/landed/main", "main"]);
        if !hook.is_empty() {
            let path = scratch.path(".git/hooks/reference-transaction");
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            crate::scratch::executable(&path, &format!("#!/bin/bash\n{hook}\n"));
        }
        let gate = if hook.is_empty() { KILL } else { "ls" };
        let start = || {
            let mut command = scratch.ralph(&format!("{RUN} 2"));
            command.env("RALPH_LANDING_COMMAND", gate);
            let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            let child = child.spawn().unwrap();
            fs::write(scratch.outside().join("home/ralph"), child.id().to_string()).unwrap();
            finish(child)
        };
        let killed = start();
        assert_eq!(killed.code, None, "{place}: {killed:?}");
        let mut healed = start();
        // A git that is killed with -9 leaves this lock, which a person removes, as is said. Any other one is a fault.
        let lock = healed.stdout.split("delete it with 'rm ").nth(1).and_then(|rest| rest.split('\'').next());
        if let Some(lock) = lock.filter(|lock| lock.ends_with("/.git/packed-refs.lock")) {
            fs::remove_file(lock).unwrap();
            healed = start();
        }
        assert_eq!(healed.code, Some(0), "{place}: {healed:?}");
        assert_all_landed(&scratch, &ids);
        for id in &ids {
            // It landed once, and no commit was lost.
            let subjects = scratch.git(&["log", "--format=%s", "main"]);
            assert_eq!(subjects.matches(&format!("work on {id}")).count(), 1, "{place}: {subjects}");
        }
        assert_eq!(scratch.git(&["fsck", "--no-dangling", "--no-progress"]), "", "{place}");
    });
}
