//! Ways in which an agent could make a task done that is not.

use std::fs;

use crate::policies::{agent, attempts, beside, prompt};
use crate::run_tasks::{GOOD, WORDS, add, ends, log, status, tasks};
use crate::scratch::{Run, Scratch, Started, wait_for};

fn run(scratch: &Scratch, args: &str) -> Run {
    let mut run = scratch.ralph(args);
    Scratch::finish(run.env("RALPH", env!("CARGO_BIN_EXE_ralph")))
}

#[test]
fn a_trivial_part_makes_nothing_done() {
    let hangs = "if [ $verifies = 0 ] && [ $n = 1 ]; then $RALPH task add trivial --parent $id > ../trivial; done_; else";
    let scratch = tasks(&format!("{hangs} {GOOD}; fi"));
    let hard = add(&scratch, "hard");
    let ended = run(&scratch, "run --all");
    ends(&scratch, &ended, 0, "complete");
    let trivial = fs::read_to_string(beside(&scratch, "trivial")).unwrap();
    // An agent, which is released, then both of them with a verification each.
    let attempts = attempts(&scratch);
    let worked: Vec<String> = (1..=attempts)
        .filter_map(|number| {
            prompt(&scratch, number)
                .lines()
                .find_map(|line| line.strip_prefix("## Your task: ").map(str::to_owned))
        })
        .collect();
    assert_eq!(worked.last(), Some(&hard), "{worked:?}");
    assert_eq!(worked.iter().filter(|id| *id == trivial.trim()).count(), 2, "{worked:?}");
    let last = prompt(&scratch, attempts - 1);
    assert!(last.contains(&format!("- {}: **trivial**", trivial.trim())), "{last}");
    assert_eq!(
        log(&scratch, &hard),
        ["released: it has got parts meanwhile, and comes again after them", "done"]
    );
}

#[test]
fn an_agent_adds_parts_only_below_its_own_task() {
    let scratch = tasks(&format!(
        "for parent in $other $id; do $RALPH task add part --parent $parent >> ../added 2>> ../refused; done
        part=$(tail -n 1 ../added); $RALPH task add below --parent $part >> ../added; {GOOD}"
    ));
    let own = add(&scratch, "own");
    let other = add(&scratch, "other");
    let mut command = scratch.ralph("run --all --no-verify --once");
    command.env("RALPH", env!("CARGO_BIN_EXE_ralph")).env("other", &other);
    let ended = Scratch::finish(&mut command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let refused = fs::read_to_string(beside(&scratch, "refused")).unwrap();
    assert!(refused.starts_with("error: agents at work add parts only below their own task"), "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");
    let added = fs::read_to_string(beside(&scratch, "added")).unwrap();
    assert_eq!(added.lines().count(), 2, "{added}");
    let shown = scratch.run(&format!("task show {own} --json")).stdout;
    assert!(shown.contains(added.lines().next().unwrap()), "{shown}");
    // A person may.
    add(&scratch, &format!("part --parent {other}"));
}

#[test]
fn a_verdict_that_an_agent_writes_into_the_database_is_told_and_verified() {
    let forge = "sqlite3 .ralph/progress.db \"update tasks set status = 2, ready = 0; delete from ready; insert into task_logs \
        (task, message, at) select seq, 'done', 0 from tasks\"";
    let scratch = tasks(&format!("[ $n != 1 ] || {forge}; {GOOD}"));
    let hard = add(&scratch, "hard");
    let other = add(&scratch, "other");
    let by_hand = add(&scratch, "by-hand");
    assert_eq!(scratch.run(&format!("task done {by_hand}")).code, Some(0));
    let ended = run(&scratch, "run --all");
    ends(&scratch, &ended, 0, "complete");
    for (id, title) in [(&hard, "hard"), (&other, "other")] {
        let said = format!(
            "{id} {title} was called done in the graph, and neither a run nor a person has booked that"
        );
        assert!(ended.stderr.contains(&said), "{ended:?}");
        assert_eq!(
            (status(&scratch, id).as_str(), log(&scratch, id).last().unwrap().as_str()),
            ("done", "done")
        );
        assert!(log(&scratch, id).iter().any(|line| line.starts_with("opened again: ")));
    }
    assert!(!ended.stderr.contains(&format!("{by_hand} by-hand was called done")), "{ended:?}");
    assert!(
        prompt(&scratch, 2).starts_with("# Verify the task")
            || prompt(&scratch, 3).starts_with("# Verify the task")
    );

    // Before a run as well.
    let scratch = tasks(GOOD);
    let id = add(&scratch, "task");
    let forged = std::process::Command::new("sqlite3")
        .arg(scratch.path(".ralph/progress.db"))
        .arg("update tasks set work = 2, status = 2, done_by = ''")
        .status();
    assert!(forged.unwrap().success());
    let ended = run(&scratch, "run --all");
    ends(&scratch, &ended, 0, "complete");
    assert!(ended.stderr.contains(&format!("{id} task was called done")), "{ended:?}");
    assert_eq!(attempts(&scratch), 1, "it is verified");
}

/// Runs SQL on the graph, as an agent could.
fn sql(statement: &str) -> String {
    format!("sqlite3 .ralph/progress.db \"{statement}\"")
}

#[test]
fn traces_that_an_agent_makes_up_as_well_are_no_seal() {
    for who in ["''", "'run-1'"] {
        let forge = sql(&format!(
            "update tasks set work = 2, status = 2, ready = 0, done_by = {who} where title = 'hard'; delete from ready; insert
            into task_logs (task, message, at) select seq, 'done, by hand', 0 from tasks; insert into journal (run, iteration,
            task, title, outcome, duration_secs, input_tokens, output_tokens, files, notes, reason, at) select 'run-1', 1, id,
            title, 0, 1, 0, 0, '[]', '', '', 0 from tasks"
        ));
        let scratch = tasks(&format!("[ $n != 1 ] || {forge}; {GOOD}"));
        let own = add(&scratch, "own");
        let hard = add(&scratch, "hard");
        let ended = run(&scratch, "run --all");
        ends(&scratch, &ended, 0, "complete");
        assert!(ended.stderr.contains(&format!("{hard} hard was called done in the graph")), "{ended:?}");
        let verified = (1..=attempts(&scratch))
            .any(|number| prompt(&scratch, number).starts_with(&format!("# Verify the task {hard}")));
        assert!(verified && status(&scratch, &own) == "done", "{ended:?}");
    }
}

#[test]
fn a_copy_of_the_graph_is_not_sealed_for_an_agent() {
    let draft = ".ralph/task-draft/.ralph";
    let copy = sql(&format!("vacuum into '{draft}/progress.db'"));
    let back = sql(&format!(
        "attach '{draft}/progress.db' as copy; delete from tasks where title = 'hard'; insert into tasks select * from copy.tasks
        where title = 'hard'; insert into task_logs select * from copy.task_logs; delete from ready"
    ));
    let forge = format!(
        "mkdir -p {draft}; {copy}; $RALPH task done --force $(cat ../hard) --ralph-dir {draft}; echo $? > ../code; {back}"
    );
    let scratch = tasks(&format!("[ $n != 1 ] || {{ {forge}; }}; {GOOD}"));
    add(&scratch, "own");
    let hard = add(&scratch, "hard");
    fs::write(beside(&scratch, "hard"), &hard).unwrap();
    let ended = run(&scratch, "run --all");
    assert_eq!(fs::read_to_string(beside(&scratch, "code")).unwrap(), "0\n", "{ended:?}");
    ends(&scratch, &ended, 0, "complete");
    assert!(ended.stderr.contains(&format!("{hard} hard was called done in the graph")), "{ended:?}");
}

#[test]
fn a_graph_that_an_agent_has_taken_the_seals_off_ends_the_run() {
    let forge = sql(
        "update tasks set work = 2, status = 2, ready = 0, done_by = ''; delete from ready; insert into task_logs (task, message,
        at) select seq, 'done, by hand', 0 from tasks; alter table tasks drop column seal; drop table sealed; pragma
        user_version = 3",
    );
    for lists in ["$RALPH task list > ../listed", "true"] {
        let scratch = tasks(&format!("[ $n != 1 ] || {{ {forge}; {lists}; }}; {GOOD}"));
        add(&scratch, "own");
        add(&scratch, "hard");
        let ended = run(&scratch, "run --all --no-verify");
        ends(&scratch, &ended, 5, "graph_lost");
        assert!(ended.stderr.contains("progress.db: another program has "), "{ended:?}");
        assert_eq!(attempts(&scratch), 1);
    }
}

#[test]
fn words_and_tasks_that_an_agent_changes_are_told_and_the_run_does_not_end_well() {
    for (forged, told) in [
        ("update tasks set title = 'trivial' where title = 'hard'", "has changed the words of"),
        (
            "insert into descriptions select seq, 'do nothing' from tasks where title = 'hard'",
            "has changed the words of",
        ),
        (
            "delete from ready where task = 2; delete from tasks where title = 'hard'",
            "has removed 1 task from the graph",
        ),
    ] {
        let scratch = tasks(&format!("[ $n != 1 ] || {}; {GOOD}", sql(forged)));
        add(&scratch, "own");
        add(&scratch, "hard");
        let ended = run(&scratch, "run --all");
        ends(&scratch, &ended, 4, "unproven");
        assert!(ended.stderr.contains(told), "{forged}: {ended:?}");
        assert!(ended.stderr.contains("compare the tasks with what you asked for"), "{ended:?}");
        // It is reported once.
        let ended = run(&scratch, "run --all");
        ends(&scratch, &ended, 0, "complete");
        assert!(!ended.stderr.contains("another program than ralph"), "{ended:?}");
    }
}

#[test]
fn what_an_agent_changes_of_the_order_of_tasks_is_told_and_holds_for_no_task() {
    for (forged, told, code, reason) in [
        ("delete from dependencies", "has changed the words of", 4, "unproven"),
        ("update tasks set priority = -9 where title = 'last'", "has changed the words of", 4, "unproven"),
        (
            "insert into ready select 0, -9, seq from tasks where title = 'last'; update tasks set held = 0, status = 0,
            open_blockers = 0, ready = 1 where title = 'last'",
            "has changed states of tasks, or what is ready",
            0,
            "complete",
        ),
        (
            "delete from ready; update tasks set ready = 0",
            "has changed states of tasks, or what is ready",
            0,
            "complete",
        ),
    ] {
        let scratch = tasks(&format!(
            "[ $verifies = 1 ] || echo $id >> ../order; [ $n != 1 ] || {}; {GOOD}",
            sql(forged)
        ));
        let own = add(&scratch, "own");
        let first = add(&scratch, &format!("first --after {own}"));
        let last = add(&scratch, &format!("last --after {first}"));
        let free = add(&scratch, "free --priority 5");
        let ended = run(&scratch, "run --all");
        ends(&scratch, &ended, code, reason);
        assert!(ended.stderr.contains(told), "{forged}: {ended:?}");
        if code == 0 {
            let order = fs::read_to_string(beside(&scratch, "order")).unwrap();
            assert_eq!(order.lines().collect::<Vec<_>>(), [&*own, &*first, &*last, &*free], "{forged}");
        }
        // It is reported once.
        let ended = run(&scratch, "run --all");
        ends(&scratch, &ended, 0, "complete");
        assert!(!ended.stderr.contains("another program than ralph"), "{ended:?}");
    }
    let scratch =
        tasks(&format!("[ $n != 1 ] || {}; {GOOD}", sql("insert into dependencies values (2, 1), (1, 2)")));
    add(&scratch, "own");
    add(&scratch, "other");
    let ended = run(&scratch, "run --all");
    ends(&scratch, &ended, 5, "graph_lost");
    assert!(ended.stderr.contains("a cycle, ") && ended.stderr.contains("task deps rm"), "{ended:?}");
}

#[test]
fn what_another_program_writes_all_the_time_makes_nothing_done_unseen() {
    let scratch = tasks(GOOD);
    add(&scratch, "own");
    let hard = add(&scratch, "hard");
    let path = scratch.path(".ralph/progress.db");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        // As an agent of another run does.
        scope.spawn(|| {
            let graph = rusqlite::Connection::open(&path).unwrap();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let forge = "DELETE FROM ready WHERE task = 2; UPDATE tasks SET status = 2, work = 2, ready = 0, done_by = '' WHERE seq = 2";
                // Where the run is faster, the next time.
                let _ = graph.execute_batch(forge);
            }
        });
        let ended = run(&scratch, "run --all --limit 9");
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        ended
    });
    let is_verified = (1..=attempts(&scratch))
        .any(|number| prompt(&scratch, number).starts_with(&format!("# Verify the task {hard}")));
    // The other program may also take the claim away.
    assert!(is_verified || ended.code.is_some_and(|code| code != 0), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{hard} hard was called done in the graph")), "{ended:?}");
}

#[test]
fn without_a_place_for_a_key_a_run_says_so_and_goes_by_the_traces() {
    let scratch = tasks(GOOD);
    add(&scratch, "task");
    let key = beside(&scratch, "home/state/ralph/user.key");
    fs::remove_file(&key).unwrap();
    fs::create_dir(&key).unwrap();
    let ended = run(&scratch, "run --all");
    ends(&scratch, &ended, 0, "complete");
    assert_eq!(ended.stderr.matches("is not sealed").count(), 1, "{ended:?}");
}

#[test]
fn a_graph_that_was_moved_is_taken_by_its_traces_once_and_that_is_told() {
    let scratch = tasks(GOOD);
    let by_hand = add(&scratch, "by-hand");
    assert_eq!(scratch.run(&format!("task done {by_hand}")).code, Some(0));
    add(&scratch, "task");
    fs::remove_file(beside(&scratch, "home/state/ralph/user.key")).unwrap();
    let told = "the graph was not sealed with this user's key until now: 1 task taken as done";
    for times in [1, 0] {
        let ended = run(&scratch, "run --all --no-verify");
        ends(&scratch, &ended, 0, "complete");
        assert_eq!(ended.stderr.matches(told).count(), times, "{ended:?}");
    }
    assert_eq!(attempts(&scratch), 1);
}

#[test]
fn the_key_is_made_once_and_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Child, Stdio};

    let scratch = Scratch::new();
    let add = || scratch.ralph("task add a").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let children: Vec<Child> = (0..8).map(|_| add()).collect();
    for child in children {
        let run = crate::scratch::finish(child);
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    let graph = rusqlite::Connection::open(scratch.path(".ralph/progress.db")).unwrap();
    let keys = "SELECT count(*), count(DISTINCT substr(seal, 1, 4)) FROM tasks WHERE seal IS NOT NULL";
    let keys: (i64, i64) = graph.query_row(keys, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(keys, (8, 1));
    let key = beside(&scratch, "home/state/ralph/user.key");
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

/// A project whose validation looks at a file that git ignores, with an agent that builds it.
fn ignored_build(verifying: &str) -> Scratch {
    let scratch = tasks(&format!(
        "if [ $verifies = 1 ]; then {verifying} pass; else mkdir -p dist; touch dist/app; work; done_; fi"
    ));
    scratch.write(".gitignore", "dist/\n");
    scratch.git(&["add", ".gitignore"]);
    scratch.git(&["commit", "--quiet", "--message", "ignore"]);
    scratch
}

#[test]
fn what_a_verifying_agent_removes_unseen_by_git_is_validated_before_an_end_that_says_done() {
    let validate = ["--validate", "echo >> ../validated; test -f dist/app"];
    let validations =
        |scratch: &Scratch| fs::read_to_string(beside(scratch, "validated")).unwrap().lines().count();
    let scratch = ignored_build("rm -rf dist;");
    add(&scratch, "task");
    let ended = crate::policies::run(&scratch, "run --all --proof place", &validate);
    ends(&scratch, &ended, 4, "unproven");
    assert!(ended.stderr.contains("test -f dist/app failed (exit code 1)"), "{ended:?}");
    assert_eq!(validations(&scratch), 2, "{ended:?}");

    // After each task, and once more at the end of all.
    let scratch = ignored_build("");
    add(&scratch, "one");
    add(&scratch, "two");
    let ended = crate::policies::run(&scratch, "run --all --proof place", &validate);
    ends(&scratch, &ended, 0, "complete");
    assert_eq!((attempts(&scratch), validations(&scratch)), (4, 3), "{ended:?}");
}

#[test]
fn a_run_that_finds_nothing_to_do_is_proven_by_the_validation_all_the_same() {
    let scratch = tasks(GOOD);
    let id = add(&scratch, "task");
    assert_eq!(scratch.run("run --all").code, Some(0));
    for target in ["run --all", &format!("run {id}")] {
        let ended = crate::policies::run(&scratch, target, &["--validate", "echo it is red; false"]);
        ends(&scratch, &ended, 4, "unproven");
        for sign in ["✗", "■"] {
            let line =
                format!("{sign} echo it is red; false in a clean tree failed (exit code 1): it is red\n");
            assert_eq!(ended.stderr.matches(&line).count(), 1, "{ended:?}");
        }
        let ended = crate::policies::run(&scratch, target, &["--validate", "true"]);
        ends(&scratch, &ended, 0, "complete");
    }
    assert_eq!(attempts(&scratch), 2);
}

#[test]
fn a_shell_that_an_agent_puts_on_the_path_runs_no_validation() {
    let fake = "printf '#!/bin/sh\\nexit 0\\n' > ../bin/sh; chmod +x ../bin/sh";
    let scratch = tasks(&format!("{fake}; {GOOD}"));
    add(&scratch, "task --max-retries 0");
    let ended = crate::policies::run(&scratch, "run --all", &["--validate", "false"]);
    ends(&scratch, &ended, 4, "tasks_failed");
    assert!(beside(&scratch, "bin/sh").exists());
}

#[test]
fn what_a_killed_run_has_reported_of_other_words_keeps_the_next_one_from_ending_well() {
    for (forged, told) in [
        (
            "delete from dependencies; update tasks set title = 'trivial' where title = 'hard'",
            "has changed the words of",
        ),
        (
            "delete from dependencies; delete from tasks where title = 'hard'",
            "has removed 1 task from the graph",
        ),
    ] {
        let killed = "touch ../told; sleep 600";
        let scratch =
            tasks(&format!("[ $n != 1 ] || {}; [ $n = 1 ] || {{ {killed}; }}; {GOOD}", sql(forged)));
        let own = add(&scratch, "own");
        add(&scratch, &format!("hard --after {own}"));
        add(&scratch, "other");
        // The second agent is put to its task when the first one's writing was reported.
        let started = Started::new(&scratch, "run --all --no-verify");
        wait_for("the second agent", || beside(&scratch, "told").exists().then_some(()));
        drop(started); // kill -9
        agent(&scratch, &format!("{WORDS}\n{GOOD}"));
        let ended = run(&scratch, "run --all --no-verify");
        ends(&scratch, &ended, 4, "unproven");
        assert!(ended.stderr.contains(told), "{forged}: {ended:?}");
        // It has ended: it is reported once.
        let ended = run(&scratch, "run --all --no-verify");
        ends(&scratch, &ended, 0, "complete");
        assert!(!ended.stderr.contains("another program than ralph"), "{ended:?}");
    }
}

#[test]
fn a_failure_that_an_agent_writes_into_the_database_is_told_and_the_task_is_worked_on() {
    let forge = sql(
        "update tasks set work = 3, status = 4, ready = 0 where title = 'hard'; delete from ready where task = 2",
    );
    let scratch = tasks(&format!("[ $n != 1 ] || {forge}; {GOOD}"));
    add(&scratch, "own");
    let hard = add(&scratch, "hard");
    let ended = run(&scratch, "run --all");
    ends(&scratch, &ended, 0, "complete");
    assert!(ended.stderr.contains(&format!("{hard} hard was called failed in the graph")), "{ended:?}");
    let worked = (1..=attempts(&scratch))
        .any(|number| prompt(&scratch, number).contains(&format!("## Your task: {hard}")));
    assert!(worked && status(&scratch, &hard) == "done", "{ended:?}");
}

#[test]
fn a_claim_that_an_agent_changes_in_the_database_is_told_and_the_task_comes_again() {
    let forge = sql("update tasks set fence = fence + 1 where status = 1");
    let scratch = tasks(&format!("[ $n != 1 ] || {forge}; {GOOD}"));
    let own = add(&scratch, "own");
    let ended = run(&scratch, "run --all");
    ends(&scratch, &ended, 0, "complete");
    let told = format!("another program than ralph has changed the claim of {own} own in the graph");
    assert_eq!(ended.stderr.matches(&told).count(), 1, "{ended:?}");
    assert_eq!(
        log(&scratch, &own).first().unwrap(),
        "released: another program than ralph has changed its claim"
    );
}

#[test]
fn a_task_that_an_agent_marks_as_done_again_is_worked_on_by_the_next_run() {
    let forge = sql(
        "update tasks set work = 2, status = 2, done_by = '', seal = randomblob(length(seal)) where title = 'hard'",
    );
    let scratch = tasks(&format!("[ $n -gt 2 ] || {forge}; {GOOD}"));
    add(&scratch, "own");
    add(&scratch, "other");
    let hard = add(&scratch, "hard --priority 9");
    let args = "run --all --no-verify --validate true";
    let ended = run(&scratch, args);
    ends(&scratch, &ended, 4, "unproven");
    assert!(
        ended.stderr.contains(&format!("{hard} hard was called done or failed in the graph once more")),
        "{ended:?}"
    );
    let before = attempts(&scratch);
    let ended = run(&scratch, args);
    assert!(ended.stderr.contains(&format!("{hard} hard was called done in the graph")), "{ended:?}");
    assert!(attempts(&scratch) > before, "{ended:?}");
    assert!(prompt(&scratch, attempts(&scratch)).contains(&format!("## Your task: {hard}")));
    assert_eq!(status(&scratch, &hard), "done");
}

#[test]
fn an_end_that_does_not_tell_of_other_words_leaves_them_to_the_next_run() {
    let forge = sql("update tasks set title = 'trivial' where title = 'hard'");
    let scratch = tasks(&format!("[ $n = 1 ] && {{ {forge}; {GOOD}; exit; }}; exit 1"));
    add(&scratch, "own");
    add(&scratch, "hard");
    let ended = run(&scratch, "run --all --no-verify --max-errors 1 --max-retries 0");
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("has changed the words of"), "{ended:?}");
    agent(&scratch, &format!("{WORDS}\n{GOOD}"));
    let ended = run(&scratch, "run --all --no-verify");
    ends(&scratch, &ended, 4, "unproven");
    assert!(ended.stderr.contains("has changed the words of"), "{ended:?}");
    let ended = run(&scratch, "run --all --no-verify");
    ends(&scratch, &ended, 0, "complete");
}

#[test]
fn verified_work_that_a_later_agent_drops_is_done_again_before_an_end_that_says_done() {
    let good = "if [ $verifies = 1 ]; then if [ -e work-$id ]; then pass; else refuse gone; fi; else";
    for verify in ["", "--no-verify"] {
        let second = if verify.is_empty() { 3 } else { 2 };
        let scratch =
            tasks(&format!("{good} [ $n != {second} ] || git reset -q --hard HEAD~1; work; done_; fi"));
        let (one, two) = (add(&scratch, "one"), add(&scratch, "two"));
        scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "begin"]);
        let ended = run(&scratch, &format!("run --all {verify}"));
        ends(&scratch, &ended, 0, "complete");
        let told = format!("{one} one was done at ");
        assert_eq!(ended.stderr.matches(&told).count(), 1, "{ended:?}");
        let files = scratch.git(&["ls-tree", "--name-only", "HEAD"]);
        assert!([&one, &two].iter().all(|id| files.contains(&format!("work-{id}"))), "{files} {ended:?}");
    }

    // Where no iteration is left for it, that is no end that says done.
    let scratch = tasks("[ $n != 2 ] || git reset -q --hard HEAD~1; work; done_");
    scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    let one = add(&scratch, "one");
    add(&scratch, "two");
    let ended = run(&scratch, "run --all --no-verify --max-iterations 2");
    ends(&scratch, &ended, 0, "max_iterations");
    assert_eq!(status(&scratch, &one), "pending", "{ended:?}");

    // A commit that was made anew with the same files is the same work.
    let scratch = tasks("[ $n != 2 ] || git commit -q --amend -m other; work; done_");
    scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    add(&scratch, "one");
    add(&scratch, "two");
    let ended = run(&scratch, "run --all --no-verify");
    ends(&scratch, &ended, 0, "complete");
    assert_eq!(attempts(&scratch), 2, "{ended:?}");
}

#[test]
fn a_partial_clone_that_an_agent_makes_starts_no_program_outside_of_its_attempt() {
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let forge =
        format!("echo x >> ../fetched; '{ralph}' task done --force $(cat ../hard) 2>> ../said; exit 1");
    let evil = format!(
        "cat > ../fetch <<'FETCH'
{forge}
FETCH
 for i in 1 2 3; do echo $i > w$i; git add .; git commit -qm c$i; done
         tree=$(git rev-parse HEAD~1^{{tree}}); git config core.repositoryformatversion 1
         git config extensions.partialClone evil; git config remote.evil.promisor true
         git config remote.evil.url \"$PWD\"; git config remote.evil.uploadpack \"bash $PWD/../fetch\"
         git config protocol.file.allow always; git config log.showSignature true
         rm .git/objects/${{tree:0:2}}/${{tree:2}}; done_; exit"
    );
    let scratch = tasks(&format!("[ $n != 1 ] || {{ {evil}; }}; {GOOD}"));
    // By the files of the latest commits, knowledge is chosen.
    scratch.write(".ralph/knowledge/hard.md", "---\ntitle: hard and own\n---\nwords of a hard task\n");
    add(&scratch, "own");
    let hard = add(&scratch, "hard");
    fs::write(beside(&scratch, "hard"), &hard).unwrap();
    run(&scratch, "run --all --no-verify");
    let said = fs::read_to_string(beside(&scratch, "said")).unwrap_or_default();
    let fetched = fs::read_to_string(beside(&scratch, "fetched")).unwrap_or_default();
    assert_eq!(said.matches("is not for agents at work").count(), fetched.lines().count(), "{said}");
    assert!(!log(&scratch, &hard).iter().any(|line| line.contains("by hand")), "{:?}", log(&scratch, &hard));
}

#[test]
fn an_agent_that_removes_the_repository_ends_the_run_and_its_task_is_not_done() {
    for (removes, told) in [
        ("rm -rf .git", "is gone, with all commits"),
        ("rm -rf .git; git init -q; git add -A; git commit -qm anew", "does not have commit"),
        ("rm -rf .git; exit 3", "is gone, with all commits"),
    ] {
        for verify in ["", "--no-verify"] {
            let scratch = tasks(&format!("work; {removes}; done_"));
            let id = add(&scratch, "task");
            add(&scratch, "other");
            let ended = run(&scratch, &format!("run --all {verify}"));
            ends(&scratch, &ended, 5, "git_failed");
            let said = format!("{}: its repository ", scratch.root().display());
            assert!(ended.stderr.contains(&said) && ended.stderr.contains(told), "{ended:?}");
            assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (1, "pending"), "{ended:?}");
        }
    }
    let scratch = crate::policies::project("rm -rf .git; complete");
    let ended = run(&scratch, "prompt p.md 3");
    ends(&scratch, &ended, 5, "git_failed");
    assert_eq!(attempts(&scratch), 1);
}
