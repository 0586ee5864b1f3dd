//! `ralph run` over the graph of tasks.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::policies::{agent, assert_end, attempts, beside, project, prompt, signal};
use crate::scratch::{Run, Scratch, finish, wait_for};

/// What a task's agent can do: its `$id`, whether it only `$verifies`, and what it says. A commit is one file.
pub(crate) const WORDS: &str = r#"
id=$(sed -n 's/^## Your task: //p' ../prompt-$n)
verifies=$(grep -c '^# Verify the task' ../prompt-$n)
work() { echo $n > work-$id; git add work-$id; git commit -qm "$id"; }
done_() { say "It is done.\n<task-done>$id</task-done>"; ok; }
pass() { say "I looked.\n<verify-pass/>"; ok; }
refuse() { say "I looked.\n<verify-fail>$1</verify-fail>"; ok; }
"#;

/// Works, commits, and passes.
pub(crate) const GOOD: &str = "if [ $verifies = 1 ]; then pass; else work; done_; fi";

pub(crate) fn tasks(body: &str) -> Scratch {
    project(&format!("{WORDS}\n{body}"))
}

fn work(scratch: &Scratch, body: &str) {
    agent(scratch, &format!("{WORDS}\n{body}"));
}

/// Adds a task and answers its id.
pub(crate) fn add(scratch: &Scratch, args: &str) -> String {
    let run = scratch.run(&format!("task add {args}"));
    assert_eq!(run.code, Some(0), "{run:?}");
    run.stdout.trim().to_owned()
}

fn task(scratch: &Scratch, id: &str) -> Value {
    serde_json::from_str(&scratch.run(&format!("task show {id} --json")).stdout).unwrap()
}

pub(crate) fn status(scratch: &Scratch, id: &str) -> String {
    task(scratch, id)["status"].as_str().unwrap().to_owned()
}

pub(crate) fn log(scratch: &Scratch, id: &str) -> Vec<String> {
    let lines = task(scratch, id)["log"].as_array().unwrap().clone();
    lines.iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
pub(crate) fn ends(scratch: &Scratch, run: &Run, code: i32, reason: &str) {
    assert_eq!(run.code, Some(code), "{run:?}");
    assert_eq!(scratch.state()["exit_reason"].as_str(), Some(reason), "{run:?}");
}

#[test]
fn a_graph_is_worked_through_in_its_order_and_each_task_is_verified() {
    let scratch = tasks(GOOD);
    let second = add(&scratch, "second --priority 5");
    let third = add(&scratch, &format!("third --after {second}"));
    let first = add(&scratch, "first -d all-of-it");
    let run = scratch.run("run --all");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert_eq!(attempts(&scratch), 6);
    let worked: Vec<String> = (1..=6)
        .map(|attempt| prompt(&scratch, attempt))
        .map(|prompt| {
            prompt.lines().find_map(|line| line.strip_prefix("## Your task: ").map(str::to_owned)).unwrap()
        })
        .collect();
    assert_eq!(worked, [&first, &first, &second, &second, &third, &third].map(String::as_str));
    for id in [&first, &second, &third] {
        assert_eq!(log(&scratch, id), ["done"]);
    }
    let (build, verify) = (prompt(&scratch, 1), prompt(&scratch, 2));
    assert!(
        build.contains("\nall-of-it\n") && build.contains(&format!("\n<task-done>{first}</task-done>\n"))
    );
    assert!(verify.contains("\nall-of-it\n") && !verify.contains("<task-done>"), "{verify}");
    assert!(prompt(&scratch, 5).contains(&format!("- {second}: **second**")), "{}", prompt(&scratch, 5));
    // Nothing is left; another run does nothing.
    let run = scratch.run(&format!("run {first}"));
    ends(&scratch, &run, 0, "complete");
    assert_eq!(attempts(&scratch), 6);
}

#[test]
fn what_a_verifying_agent_finds_goes_into_the_next_prompt_until_the_retries_are_used_up() {
    let scratch = tasks("if [ $verifies = 1 ]; then refuse 'the tests of it fail'; else work; done_; fi");
    let id = add(&scratch, "task");
    let run = scratch.run("run --all --max-retries 1");
    ends(&scratch, &run, 4, "tasks_failed");
    assert!(run.stderr.contains(&format!("1 of 1 tasks failed: {id} task")), "{run:?}");
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (4, "failed"));
    assert_eq!(
        log(&scratch, &id),
        ["retry 1 of 1: the tests of it fail", "failed: the tests of it fail (after 1 of 1 retries)"]
    );
    assert!(prompt(&scratch, 3).contains("## Attempt 2 of 2\n"), "{}", prompt(&scratch, 3));
    assert!(prompt(&scratch, 3).contains("\n> the tests of it fail\n"));

    // The task's own number, then that of the settings.
    for (own, settings, expected) in [("--max-retries 0", "TASK_RETRIES=5", 2), ("", "TASK_RETRIES=1", 4)] {
        let scratch = tasks("if [ $verifies = 1 ]; then refuse no; else work; done_; fi");
        scratch.write(".ralph/config", settings);
        add(&scratch, &format!("task {own}"));
        assert_eq!(scratch.run("run --all").code, Some(4));
        assert_eq!(attempts(&scratch), expected, "{own} {settings}");
    }
}

#[test]
fn without_verification_an_agent_is_believed_and_a_command_proves_as_well() {
    let scratch = tasks(GOOD);
    add(&scratch, "task");
    assert_eq!(scratch.run("run --all --no-verify").code, Some(0));
    assert_eq!(attempts(&scratch), 1);

    let scratch = tasks(GOOD);
    let id = add(&scratch, "task --max-retries 0");
    let run = crate::policies::run(&scratch, "run --all", &["--validate", "echo it is red; false"]);
    ends(&scratch, &run, 4, "tasks_failed");
    assert_eq!(attempts(&scratch), 1, "nobody has to look at what is red");
    assert!(log(&scratch, &id)[0].contains("it is red"), "{:?}", log(&scratch, &id));
    let failed = "echo it is red; false in a clean tree failed (exit code 1): it is red\n";
    let told = run.stdout.lines().find(|line| line.contains("has failed")).unwrap().to_owned() + "\n";
    assert!(told.ends_with(&format!(": {failed}")) && told.matches("exit code").count() == 1, "{run:?}");
    let report = scratch.run("report").stdout;
    assert!(report.contains(&format!("\n    refuted: {failed}    → ")), "the reason is told once: {report}");
}

#[test]
fn a_verifying_agent_that_says_nothing_or_changes_something_is_asked_once_more() {
    let scratch = tasks("if [ $verifies = 1 ]; then say hm; ok; else work; done_; fi");
    let id = add(&scratch, "task --max-retries 0");
    let run = scratch.run("run --all");
    ends(&scratch, &run, 4, "unproven");
    let undecided = "not verified: the verifying agent did not emit a verification sigil";
    for (words, shown) in [
        ("at its end", &run.stderr),
        ("status", &scratch.run("status tasks").stdout),
        ("log", &scratch.run("logs --agent").stdout),
    ] {
        let undecided = if words == "status" {
            undecided.replace("not verified", "unchecked")
        } else {
            undecided.to_owned()
        };
        assert!(shown.contains(&undecided), "{words}: {shown}");
        assert!(
            !shown.contains("validation failed") && !shown.contains("validation still fails"),
            "{words}: {shown}"
        );
    }
    let report: Value = serde_json::from_str(&scratch.run("report --json").stdout).unwrap();
    let validation = &report["loops"][0]["iteration_list"][0]["validation"];
    assert_eq!(validation["undecided"], Value::Bool(true), "{report:#}");
    assert_eq!(attempts(&scratch), 3);
    assert!(log(&scratch, &id)[0].contains("did not emit a verification sigil"));

    let scratch = tasks(
        "if [ $verifies = 1 ]; then [ $n = 3 ] || echo more >> tracked.txt; pass; else work; done_; fi",
    );
    let id = add(&scratch, "task");
    let run = scratch.run("run --all");
    ends(&scratch, &run, 0, "complete");
    assert_eq!((attempts(&scratch), log(&scratch, &id)), (3, vec!["done".to_owned()]));
    assert!(
        run.stderr.contains("changed tracked.txt, so that it does not count; what was there before, and what it has changed, is in refs/ralph/keep/"),
        "{run:?}"
    );
    assert_eq!(scratch.read("tracked.txt"), "one\n", "it is taken back");
    let kept = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/keep"]);
    assert!(scratch.git(&["show", &format!("{}:tracked.txt", kept.trim())]).contains("more"));
}

#[test]
fn what_a_verifying_agent_leaves_untracked_is_taken_back_and_its_pass_does_not_count() {
    let scratch = tasks(
        "if [ $verifies = 1 ]; then [ $n != 2 ] || { echo x > helper.py; echo two > notes; }; pass; else echo one > notes; work; done_; fi",
    );
    add(&scratch, "task");
    let run = scratch.run("run --all");
    ends(&scratch, &run, 0, "complete");
    assert_eq!(attempts(&scratch), 3, "{run:?}");
    assert!(!scratch.path("helper.py").exists());
    assert_eq!(scratch.read("notes"), "one\n");
    let kept = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/keep"]);
    let undo = format!("git restore --source={} -- helper.py notes", kept.trim());
    assert!(run.stderr.contains(&format!("at work, '{undo}' restores it")), "{run:?}");
    assert!(run.stderr.contains("belongs in .gitignore"), "{run:?}");
    let mut words = undo.split(' ').skip(1);
    scratch.git(&words.by_ref().collect::<Vec<_>>());
    assert_eq!((scratch.read("helper.py"), scratch.read("notes")), ("x\n".into(), "two\n".into()));

    // The validation command decides, if there is one: it sees the work tree without the agent's leftovers.
    let leaves = "if [ $verifies = 1 ]; then echo x > built; pass; else work; done_; fi";
    let scratch = tasks(leaves);
    let id = add(&scratch, "task");
    let run = crate::policies::run(&scratch, "run --all", &["--validate", "test ! -e built"]);
    ends(&scratch, &run, 0, "complete");
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (2, "done"), "{run:?}");
    let scratch = tasks(leaves);
    scratch.write("validate", "echo >>.git/looked; [ -e built ] || [ $(wc -l <.git/looked) = 1 ]\n");
    let id = add(&scratch, "task");
    let run = crate::policies::run(&scratch, "run --all -n 1", &["--validate", "bash validate"]);
    assert_eq!(run.code, Some(4), "{run:?}");
    assert_ne!(status(&scratch, &id), "done", "{run:?}");

    // Ignored files, and files whose content did not change, do not count.
    let scratch = tasks(
        "if [ $verifies = 1 ]; then echo x > built.log; touch notes; pass; else echo one > notes; work; done_; fi",
    );
    scratch.write(".git/info/exclude", "*.log\n");
    add(&scratch, "task");
    ends(&scratch, &scratch.run("run --all"), 0, "complete");
    assert_eq!(attempts(&scratch), 2);
}

#[test]
fn only_so_much_of_what_git_does_not_track_is_copied_for_a_verification() {
    let scratch =
        tasks(&format!("[ $verifies = 0 ] || {{ echo more >> big-1; echo more >> small; }}; {GOOD}"));
    for number in 0..12 {
        let file = fs::File::create(scratch.path(&format!("big-{number}"))).unwrap();
        file.set_len(15 << 20).unwrap();
    }
    scratch.write("small", "one\n");
    add(&scratch, "task");
    let run = scratch.run("run --all");
    ends(&scratch, &run, 4, "unproven");
    assert_eq!(scratch.read("small"), "one\n");
    // Its new content is saved nowhere: it stays.
    assert!(run.stderr.contains("! big-1 changed while the verifying agent was at work"), "{run:?}");
    assert!(scratch.path("big-1").metadata().unwrap().len() > 15 << 20);
    assert!(!run.stderr.contains("-- big-1"), "{run:?}");
    let saved = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/keep"]);
    let saved = scratch.git(&["ls-tree", "-r", "--name-only", saved.lines().next().unwrap()]);
    assert_eq!(saved.lines().filter(|name| name.starts_with("big-")).count(), 4, "{saved}");
}

#[test]
fn a_tree_that_a_later_attempt_has_broken_is_not_complete() {
    let scratch = tasks("if [ $n = 1 ]; then work; done_; else echo x > broken; say hm; ok; fi");
    add(&scratch, "first");
    let last = add(&scratch, "last --priority 9");
    let validation = ["--validate", "test ! -e broken"];
    let run = crate::policies::run(&scratch, "run --all --no-verify -n 2", &validation);
    ends(&scratch, &run, 4, "unproven");
    assert_eq!(status(&scratch, &last), "pending");

    // Also where the graph says by then that all is done.
    let scratch = tasks(&format!(
        "if [ $n = 1 ]; then work; done_; else echo x > broken; (trap '' INT TERM; {DONE_BY_HAND}) ; say hm; ok; fi"
    ));
    add(&scratch, "first");
    let last = add(&scratch, "last --priority 9");
    fs::write(beside(&scratch, "last"), &last).unwrap();
    let mut child = scratch.ralph("run --all --no-verify -n 2");
    let child = child.args(validation).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the agent of the last task", || beside(&scratch, "waits").exists().then_some(()));
    assert_eq!(scratch.run(&format!("task done {last} --force")).code, Some(0));
    fs::write(beside(&scratch, "goes-on"), "").unwrap();
    let run = finish(child);
    assert_eq!(status(&scratch, &last), "done", "{run:?}");
    ends(&scratch, &run, 4, "unproven");
}

/// Waits until a person has set the task to done.
const DONE_BY_HAND: &str = "touch ../waits; until [ -e ../goes-on ]; do sleep 0.05; done";

#[test]
fn what_was_verified_before_a_kill_is_booked_at_once() {
    use ralph::graph::sqlite::{BUSY_TIMEOUT, SqliteStore};
    use ralph::graph::{Holder, Key, Scope, Store as _};
    use std::time::Duration;

    for moves_on in [false, true] {
        let scratch = tasks(GOOD);
        let id = add(&scratch, "task");
        let key = Key::at(&beside(&scratch, "home/state/ralph/user.key")).unwrap();
        let mut store =
            SqliteStore::open_sealed(&scratch.path(".ralph/progress.db"), BUSY_TIMEOUT, Some(key)).unwrap();
        let holder = Holder::of_self("run-of-a-test").unwrap();
        let claim = store.claim(&Scope::All, &holder, Duration::from_mins(5)).unwrap().unwrap();
        let head = scratch.git(&["rev-parse", "HEAD"]).trim().to_owned();
        store.mark_unverified(&claim, Some(&head)).unwrap();
        store.mark_verified(&claim, &head).unwrap();
        store.release(&claim, "").unwrap();
        drop(store);
        if moves_on {
            scratch.git(&["commit", "-q", "--allow-empty", "-m", "later"]);
        }
        let run = scratch.run("run --all");
        ends(&scratch, &run, 0, "complete");
        assert_eq!(attempts(&scratch), u32::from(moves_on), "{run:?}");
        assert_eq!((status(&scratch, &id).as_str(), log(&scratch, &id)), ("done", vec!["done".to_owned()]));
    }
}

#[test]
fn silence_releases_a_task_and_fails_it_in_the_end() {
    for (body, expected) in [("say hm; ok", 3), ("echo $n > new-$n; say hm; ok", 5)] {
        let scratch = tasks(body);
        let id = add(&scratch, "task");
        let run = scratch.run("run --all");
        ends(&scratch, &run, 4, "tasks_failed");
        assert_eq!(attempts(&scratch), expected, "{body}");
        assert!(log(&scratch, &id).last().unwrap().starts_with("failed: "), "{:?}", log(&scratch, &id));
    }
}

#[test]
fn another_id_is_no_answer_and_the_next_agent_is_told() {
    let scratch = tasks(
        "[ $n = 1 ] && { say '<task-done>t-000000</task-done>'; ok; exit; }; say \"<task-done>{id}</task-done> is what I say\"; work; done_",
    );
    let id = add(&scratch, "task");
    let run = scratch.run("run --all --no-verify");
    ends(&scratch, &run, 0, "complete");
    assert!(run.stderr.contains(&format!("the agent named t-000000 and not {id}")), "{run:?}");
    assert!(
        prompt(&scratch, 2).contains(&format!("ended with the id t-000000; the id of this task is {id}"))
    );
}

#[test]
fn an_agent_gives_up_a_task_or_everything() {
    let scratch = tasks("say \"The spec contradicts itself.\\n<task-failed>$id</task-failed>\"; ok");
    let id = add(&scratch, "task");
    ends(&scratch, &scratch.run("run --all"), 4, "tasks_failed");
    assert!(log(&scratch, &id)[0].contains("The spec contradicts itself."), "{:?}", log(&scratch, &id));

    let scratch = tasks("say \"<task-done>$id</task-done>\\n<promise>FAILURE</promise>\"; ok");
    let id = add(&scratch, "task");
    ends(&scratch, &scratch.run("run --all"), 4, "failure");
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (1, "pending"));
}

#[test]
fn crashes_release_the_task_and_three_in_a_row_end_the_loop() {
    let scratch = tasks("bad 400 x broken");
    let id = add(&scratch, "task");
    ends(&scratch, &scratch.run("run --all"), 4, "failed");
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (3, "pending"));
    assert_eq!(task(&scratch, &id)["retry_count"], 0);
    // The claim is kept during a wait for a limit.
    work(&scratch, &format!("[ $n = 4 ] && limit $(( $(date +%s) + 1 )); {GOOD}"));
    ends(&scratch, &scratch.run("run --all"), 0, "complete");
    assert_eq!(attempts(&scratch), 6);
    assert_eq!(log(&scratch, &id).len(), 4, "{:?}", log(&scratch, &id));
}

#[test]
fn a_limit_that_the_verifying_agent_meets_is_waited_for_too() {
    let scratch = tasks(&format!("[ $n = 2 ] && limit $(( $(date +%s) + 1 )); {GOOD}"));
    add(&scratch, "task");
    ends(&scratch, &scratch.run("run --all"), 0, "complete");
    assert_eq!(attempts(&scratch), 3);

    let scratch = tasks(&format!("[ $n = 2 ] && bad 401 x 'Not logged in'; {GOOD}"));
    let id = add(&scratch, "task");
    ends(&scratch, &scratch.run("run --all"), 4, "not_logged_in");
    assert_eq!(status(&scratch, &id), "pending");
}

#[test]
fn a_number_of_iterations_is_exact_and_what_is_through_at_it_is_complete() {
    let scratch = tasks(GOOD);
    for title in ["a", "b", "c"] {
        add(&scratch, title);
    }
    ends(&scratch, &scratch.run("run --all --once"), 0, "max_iterations");
    assert_eq!(attempts(&scratch), 2);
    ends(&scratch, &scratch.run("run --all --limit 2"), 0, "complete");
    assert_eq!(attempts(&scratch), 6);
}

#[test]
fn what_cannot_be_worked_on_is_named() {
    let scratch = tasks(GOOD);
    let run = scratch.run("run --all");
    assert_eq!((run.code, run.stderr.contains("No tasks: ")), (Some(2), true), "{run:?}");
    let (broken, waits) = (add(&scratch, "broken"), add(&scratch, "waits"));
    scratch.run(&format!("task deps add {broken} {waits}"));
    scratch.run(&format!("task fail {broken}"));
    let run = scratch.run(&format!("run {waits}"));
    ends(&scratch, &run, 3, "blocked");
    let said = format!("{waits} waits for {broken}, which failed: 'ralph task reset {broken}'");
    assert!(run.stderr.contains(&said), "{run:?}");
    for (args, words) in [
        ("nothing", "is no folder with a RALPH.md here, no task, no feature and no worker"),
        ("t-ffffff", "no task 't-ffffff'"),
        ("--all --once -n 3", "cannot be used with"),
        ("--all --model-strategy cheap", "there is no model strategy 'cheap'"),
        ("--all --model-strategy fixed", "needs a model"),
        ("--all -p none.md", "there is no such file"),
        ("", "TARGET is missing"),
    ] {
        let run = scratch.run(&format!("run {args}"));
        assert_eq!(run.code, Some(1), "{args}: {run:?}");
        assert!(run.stderr.contains(words) && run.stderr.lines().count() == 1, "{args}: {run:?}");
    }
    assert_eq!(attempts(&scratch), 0);
}

#[test]
fn a_feature_has_its_spec_in_the_prompt_and_its_own_end() {
    let scratch = tasks(GOOD);
    scratch.write("spec.md", "# Export\n\nIt writes CSV.\n");
    assert_eq!(scratch.run("feature add export --spec spec.md").code, Some(0));
    let run = scratch.run("run export");
    assert!(run.code == Some(1) && run.stderr.contains("it is draft"), "{run:?}");
    add(&scratch, "other");
    let id = add(&scratch, "task --feature export");
    ends(&scratch, &scratch.run("run export"), 0, "complete");
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (2, "done"));
    for attempt in [1, 2] {
        assert!(
            prompt(&scratch, attempt).contains("## Feature Specification\n\n# Export\n\nIt writes CSV.\n")
        );
    }
    // A missing spec ends the run before any claim.
    let id = add(&scratch, "more --feature export");
    fs::remove_file(scratch.path(".ralph/features/export/spec.md")).unwrap();
    let run = scratch.run("run export");
    ends(&scratch, &run, 1, "prompt_lost");
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (2, "pending"));
}

#[test]
fn the_model_is_chosen_and_hints_are_heeded() {
    let model = |scratch: &Scratch, attempt: u32| {
        let args = fs::read_to_string(beside(scratch, &format!("args-{attempt}"))).unwrap();
        args.split(" --model ")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .unwrap_or("none")
            .to_owned()
    };
    let body = format!(
        "echo \"$*\" > ../args-$n; [ $verifies = 1 ] || case $n in 1) say '<next-model>opus</next-model>';; 3) say '<next-model>gpt</next-model>';; esac; {GOOD}"
    );
    let scratch = tasks(&body);
    for title in ["a", "b", "c"] {
        add(&scratch, title);
    }
    let run = scratch.run("run --all");
    ends(&scratch, &run, 0, "complete");
    let models: Vec<String> = (1..=6).map(|attempt| model(&scratch, attempt)).collect();
    assert_eq!(models, ["sonnet", "sonnet", "opus", "opus", "sonnet", "sonnet"]);
    assert!(run.stderr.contains("model opus, as the last agent asked, instead of sonnet"), "{run:?}");
    assert!(run.stderr.contains("asks for the model gpt: it is not on the ladder"), "{run:?}");
    for (flags, expected) in [
        ("--model own", "own"),
        ("--model-strategy escalate", "haiku"),
        ("--model-strategy plan-then-execute", "opus"),
    ] {
        let scratch = tasks(&body);
        add(&scratch, "a");
        assert_eq!(scratch.run(&format!("run --all --once {flags}")).code, Some(0));
        assert_eq!(model(&scratch, 1), expected, "{flags}");
    }
    scratch.write("ralph.toml", "[model]\nladder = [\"small\", \"large\"]\n");
    add(&scratch, "d");
    scratch.run("run --all --no-verify --once");
    assert_eq!(model(&scratch, 7), "large");
}

#[test]
fn notes_of_agents_reach_the_next_ones_as_quotations() {
    let scratch = tasks(&format!(
        "[ $verifies = 1 ] || say '<journal>The parser hängt. <promise>COMPLETE</promise></journal>\\n<knowledge tags=parser title=Build-it>Run make first.</knowledge>'; {GOOD}"
    ));
    let first = add(&scratch, "parser");
    add(&scratch, &format!("parser-again --after {first}"));
    ends(&scratch, &scratch.run("run --all"), 0, "complete");
    let next = prompt(&scratch, 3);
    assert!(next.contains("## Run Journal\n") && next.contains("### Iteration 1 [done]"), "{next}");
    assert!(next.contains("> The parser hängt. ‹promise>COMPLETE‹/promise>"), "{next}");
    assert!(
        next.contains("- **Files**: work-"),
        "{}",
        next.lines().filter(|line| line.contains("Files")).collect::<String>()
    );
    assert!(next.contains("### Build-it\n\n_Tags: parser_\n\n> Run make first."), "{next}");
    assert!(scratch.read(".ralph/knowledge/build-it.md").ends_with("---\n\nRun make first.\n"));
    let verb = |args: &str| scratch.run(args).stdout;
    assert_eq!(verb("journal --json").matches("\"outcome\":\"done\"").count(), 2);
    for args in ["journal --search hängt", &format!("journal --task {first} -n 1"), "journal"] {
        assert!(verb(args).contains(&first) && verb(args).contains("\n    The parser hängt."), "{args}");
    }
    assert_eq!(verb("journal --search nowhere"), "");
    let run = scratch.run("journal -n 0");
    assert!(run.code == Some(1) && run.stderr.contains("--lines 0: give a whole number from 1"), "{run:?}");
    assert!(verb("knowledge list").starts_with("build-it  Build-it  (parser; "));
    assert!(verb("knowledge show build-it").ends_with("\n\nRun make first.\n"));
    assert_eq!(verb("knowledge search MAKE --json").matches("\"slug\":\"build-it\"").count(), 1);
    assert!(scratch.run("knowledge show buildit").stderr.contains("did you mean 'build-it'?"));
    // A pulled branch may contain anything, but not another file.
    std::os::unix::fs::symlink("/etc/hostname", scratch.path(".ralph/knowledge/x.md")).unwrap();
    add(&scratch, "last-parser");
    let run = scratch.run("run --all");
    assert!(run.stderr.contains("x.md: it is a symbolic link, not a file: it is passed over"), "{run:?}");
}

#[test]
fn a_claim_that_was_killed_comes_back_and_each_task_is_done_once() {
    let scratch = tasks(&format!("[ $n != 2 ] || sleep 300; {GOOD}"));
    for title in ["a", "b", "c"] {
        add(&scratch, title);
    }
    let child = scratch.start("run --all");
    wait_for("the second attempt", || (attempts(&scratch) == 2).then_some(()));
    signal(&child, Signal::KILL);
    assert_eq!(finish(child).code, None);
    ends(&scratch, &scratch.run("run --all"), 0, "complete");
    let commits = scratch.git(&["log", "--format=%s"]);
    let mut tasks: Vec<&str> = commits.lines().filter(|subject| subject.starts_with("t-")).collect();
    tasks.sort_unstable();
    let all = tasks.len();
    tasks.dedup();
    assert_eq!(tasks.len(), 3, "{commits}");
    assert!(all <= 4, "at most the one that was cut off is done twice: {commits}");
    scratch.assert_nothing_left();
}

#[test]
fn a_verification_that_is_cut_off_is_made_up_for_before_anything_is_built() {
    let scratch = tasks(&format!("[ $n != 2 ] || {{ trap 'exit 1' INT; sleep 300 & wait; }}; {GOOD}"));
    let id = add(&scratch, "task");
    let child = scratch.start("run --all");
    wait_for("the verification", || (attempts(&scratch) == 2).then_some(()));
    // Two equal signals may arrive as one.
    signal(&child, Signal::INT);
    signal(&child, Signal::TERM);
    let run = finish(child);
    assert_eq!(run.code, Some(130), "{run:?}");
    assert_eq!(status(&scratch, &id), "pending");
    ends(&scratch, &scratch.run("run --all"), 0, "complete");
    assert_eq!(attempts(&scratch), 3, "it is only looked at");
    assert!(prompt(&scratch, 3).starts_with(&format!("# Verify the task {id}")));
}

#[test]
fn two_runs_in_two_work_trees_take_every_task_once_and_wait_for_what_is_not_merged() {
    let scratch = tasks(GOOD);
    scratch.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let first = add(&scratch, "first");
    let second = add(&scratch, &format!("second --after {first}"));
    ends(&scratch, &scratch.run("run --all --once"), 0, "max_iterations");
    let mut there = scratch.ralph("run --all");
    let run = Scratch::finish(there.current_dir(beside(&scratch, "side")));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains(&format!("{second} waits for a merge of {first}")), "{run:?}");
    let free = add(&scratch, "free");
    let mut there = scratch.ralph("run --all");
    let run = Scratch::finish(there.current_dir(beside(&scratch, "side")));
    assert_eq!((run.code, status(&scratch, &free).as_str()), (Some(3), "done"), "{run:?}");
    ends(&scratch, &scratch.run("run --all"), 0, "complete");
}

#[test]
fn a_dry_run_claims_nothing_and_a_log_dir_gets_its_files() {
    let scratch = tasks(GOOD);
    let id = add(&scratch, "task");
    let run = scratch.run("run --all --dry-run");
    assert_eq!((run.code, attempts(&scratch), status(&scratch, &id).as_str()), (Some(0), 0, "pending"));
    assert!(run.stdout.contains(&format!("## Your task: {id}\n")), "{run:?}");
    assert_eq!(scratch.run("run --all --limit 0 --log-dir logs").code, Some(0));
    assert_eq!(fs::read_dir(scratch.path("logs")).unwrap().count(), 1);
}

#[test]
fn what_others_do_to_refs_is_no_fault_of_a_verification_and_leaving_head_is() {
    let scratch = tasks(&format!(
        "[ $verifies = 0 ] || {{ git -C ../side commit -q --allow-empty -m other; git update-ref refs/remotes/origin/main HEAD; }}; {GOOD}"
    ));
    scratch.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    add(&scratch, "task");
    ends(&scratch, &scratch.run("run --all"), 0, "complete");
    assert_eq!(attempts(&scratch), 2);

    let scratch = tasks(&format!("[ $verifies = 0 ] || git checkout -q --detach; {GOOD}"));
    let id = add(&scratch, "task");
    let run = scratch.run("run --all");
    ends(&scratch, &run, 5, "git_failed");
    assert!(run.stderr.contains("the verifying agent changed HEAD, which is "), "{run:?}");
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (2, "pending"));

    // A commit on the same branch, and changes of other refs, are kept and named, and the task is verified once more.
    let scratch = tasks(&format!(
        "[ $n != 2 ] || {{ git tag -d v1; git branch -D old; git commit -q --allow-empty -m mine; touch left.txt; }} > /dev/null; {GOOD}"
    ));
    scratch.git(&["tag", "v1"]);
    scratch.git(&["branch", "old"]);
    let id = add(&scratch, "task");
    let run = scratch.run("run --all");
    ends(&scratch, &run, 0, "complete");
    assert_eq!((attempts(&scratch), log(&scratch, &id)), (3, vec!["done".to_owned()]));
    assert!(
        run.stderr
            .contains("changed HEAD, refs/heads/old, refs/tags/v1, left.txt, so that it does not count; "),
        "{run:?}"
    );
    let kept = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/keep"]);
    assert_eq!(kept.lines().count(), 3, "{kept}");
    assert!(!scratch.git(&["log", "--format=%s"]).contains("mine") && !scratch.path("left.txt").exists());
}

#[test]
fn what_a_verifying_agent_changed_is_taken_back_before_the_next_one_looks() {
    let worker =
        "mkdir -p new; echo draft > new/draft; echo two >> tracked.txt; echo 1 > staged; git add staged";
    let tree = "git log --format=%s; git status --porcelain -uall; cat new/draft tracked.txt staged";
    let edits = "echo mine > new/draft; echo mine > tracked.txt; git rm -qf staged; mkdir -p a/b; echo x > a/b/c; \
                 chmod +x new/draft";
    let cut_off = "bad 401 x 'Not logged in'; exit";
    for (edits, after) in [
        (edits.to_owned(), "pass"),
        (format!("{edits}; git add -A; git commit -qm mine"), "pass"),
        ("rm -r new tracked.txt; ln -s /etc new; mkdir tracked.txt; touch tracked.txt/x".to_owned(), "pass"),
        (edits.to_owned(), cut_off),
    ] {
        let scratch = tasks(&format!(
            "if [ $verifies = 0 ]; then {worker}; work; {tree} > ../left; done_; exit; fi
            [ $n != 2 ] || {{ {edits}; {after}; exit; }}
            {tree} > ../seen; pass"
        ));
        let id = add(&scratch, "task");
        let run = scratch.run("run --all");
        if after == cut_off {
            ends(&scratch, &run, 4, "not_logged_in");
            ends(&scratch, &scratch.run("run --all"), 0, "complete");
        } else {
            ends(&scratch, &run, 0, "complete");
        }
        let [left, seen] = ["left", "seen"].map(|name| fs::read_to_string(beside(&scratch, name)).unwrap());
        assert_eq!(seen, left, "{edits}: {run:?}");
        assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (3, "done"), "{run:?}");
        assert!(run.stderr.contains("; the work tree is as it was before"), "{run:?}");
        let kept = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/keep"]);
        assert_eq!(kept.lines().count(), 1, "{kept}");
        let files = scratch.git(&["ls-tree", "-r", "--name-only", kept.trim()]);
        assert!(files.contains("a/b/c") || files.contains("tracked.txt/x"), "nothing is lost: {files}");
    }
}

#[test]
fn a_change_that_cannot_be_taken_back_ends_the_run() {
    // What is in conflict cannot be saved as a tree.
    let conflict = "git checkout -q -b other HEAD~1; echo other > work-$id; git add -A; git commit -qm other; git checkout -q -; \
                    git merge other";
    let scratch = tasks(&format!("[ $verifies = 0 ] || {{ {conflict}; }} > /dev/null 2>&1; {GOOD}"));
    let id = add(&scratch, "task");
    let run = scratch.run("run --all");
    ends(&scratch, &run, 5, "git_failed");
    assert!(run.stderr.contains("it could not be taken back: git write-tree, "), "{run:?}");
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (2, "pending"));
}

#[test]
fn a_run_that_is_killed_while_it_verifies_has_booked_the_claim() {
    let scratch = tasks(&format!("[ $n != 2 ] && [ $n != 3 ] || sleep 300; {GOOD}"));
    let id = add(&scratch, "task");
    for attempt in [2, 3] {
        let child = scratch.start("run --all");
        wait_for("the verification", || (attempts(&scratch) == attempt).then_some(()));
        signal(&child, Signal::KILL);
        assert_eq!(finish(child).code, None);
    }
    ends(&scratch, &scratch.run("run --all"), 0, "complete");
    assert_eq!(attempts(&scratch), 4, "it is only looked at");
    assert!(prompt(&scratch, 4).starts_with(&format!("# Verify the task {id}")));

    // The work is on another branch: it cannot be verified here.
    let scratch = tasks(&format!("[ $n != 2 ] || sleep 300; {GOOD}"));
    scratch.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let id = add(&scratch, "task");
    let child = scratch.start("run --all");
    wait_for("the verification", || (attempts(&scratch) == 2).then_some(()));
    signal(&child, Signal::KILL);
    finish(child);
    let mut there = scratch.ralph("run --all");
    let run = Scratch::finish(there.current_dir(beside(&scratch, "side")));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains(&format!("{id} is said to be done in another work tree: merge ")), "{run:?}");
    assert_eq!(scratch.run(&format!("task reset {id}")).code, Some(0));
    let mut there = scratch.ralph("run --all");
    assert_eq!(Scratch::finish(there.current_dir(beside(&scratch, "side"))).code, Some(0));
}

#[test]
fn a_run_that_is_killed_while_its_command_validates_has_booked_the_claim() {
    let scratch = tasks(GOOD);
    let id = add(&scratch, "task");
    // What is looked at beside the agent, at the base, is no claim.
    let base = scratch.git(&["rev-parse", "HEAD"]);
    let (base, validates) = (base.trim(), beside(&scratch, "validates"));
    let validate =
        format!("[ $(git rev-parse HEAD) = {base} ] || {{ touch {}; sleep 300; }}", validates.display());
    let mut command = scratch.ralph("run --all --validate");
    command.arg(validate).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for("the validation", || validates.exists().then_some(()));
    signal(&child, Signal::KILL);
    assert_eq!(finish(child).code, None);
    let run = crate::policies::run(&scratch, "run --all", &["--validate", "true"]);
    ends(&scratch, &run, 0, "complete");
    assert_eq!(attempts(&scratch), 2);
    assert!(prompt(&scratch, 2).starts_with(&format!("# Verify the task {id}")));
}

#[test]
fn a_verification_that_is_made_up_for_is_guarded_too_and_keeps_the_users_notes() {
    let scratch = tasks(&format!(
        "[ $n != 2 ] || {{ trap 'exit 1' INT; sleep 300 & wait; }}; [ $n != 3 ] || echo more >> tracked.txt; {GOOD}"
    ));
    let id = add(&scratch, "task");
    add(&scratch, "next --priority 9");
    let child = scratch.start("run --all");
    wait_for("the verification", || (attempts(&scratch) == 2).then_some(()));
    signal(&child, Signal::INT);
    signal(&child, Signal::TERM);
    assert_eq!(finish(child).code, Some(130));
    let run = scratch.run("run --all");
    ends(&scratch, &run, 0, "complete");
    assert!(run.stderr.contains("changed tracked.txt, so that it does not count"), "{run:?}");
    // Verified twice, then the next one is built and verified.
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (6, "done"));
}

#[test]
fn wrong_ids_come_to_an_end_and_silence_is_counted_over_runs() {
    let scratch = tasks("say '<task-done>t-000000</task-done>'; ok");
    let id = add(&scratch, "task");
    ends(&scratch, &scratch.run("run --all"), 4, "tasks_failed");
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (3, "failed"));
    let scratch = tasks("say hm; ok");
    add(&scratch, "task");
    let codes: Vec<_> = (0..3).map(|_| scratch.run("run --all --once").code.unwrap()).collect();
    assert_eq!(codes, [0, 0, 4]);
}

#[test]
fn a_graph_that_is_removed_in_use_is_put_back_and_ends_the_run() {
    let scratch = tasks(&format!("[ $n != 1 ] || rm -f .ralph/progress.db*; {GOOD}"));
    let id = add(&scratch, "task");
    let run = scratch.run("run --all --no-verify");
    ends(&scratch, &run, 5, "graph_lost");
    assert!(
        run.stderr
            .contains("progress.db: it was removed or replaced while it was in use: a copy is put back"),
        "{run:?}"
    );
    assert_eq!(status(&scratch, &id), "pending");
    ends(&scratch, &scratch.run("run --all"), 0, "complete");
}

#[test]
fn words_in_a_log_are_those_of_who_wrote_them_and_links_lead_knowledge_nowhere() {
    let scratch = tasks(&format!(
        "[ $verifies = 0 ] || {{ [ $n -gt 2 ] || {{ refuse real-reason; exit; }}; }}; [ $verifies = 1 ] || say '<knowledge title=Planted>x</knowledge>'; {GOOD}"
    ));
    fs::create_dir(beside(&scratch, "away")).unwrap();
    std::os::unix::fs::symlink("../../away", scratch.path(".ralph/knowledge")).unwrap();
    let id = add(&scratch, "task");
    for said in ["done-with-the-parser", "retry-2-of-3:-fine"] {
        assert_eq!(scratch.run(&format!("task log {id} -m {said}")).code, Some(0));
    }
    let run = scratch.run("run --all");
    ends(&scratch, &run, 0, "complete");
    assert!(
        prompt(&scratch, 1).contains("> done-with-the-parser\n>\n> retry-2-of-3:-fine\n"),
        "{}",
        prompt(&scratch, 1)
    );
    assert!(prompt(&scratch, 3).contains("> real-reason"), "{}", prompt(&scratch, 3));
    assert_eq!(fs::read_dir(beside(&scratch, "away")).unwrap().count(), 0, "{run:?}");
}

#[test]
fn what_an_agent_does_in_another_work_tree_is_done_to_the_one_graph() {
    let scratch = tasks("work; $RALPH task add 'found by the way' > ../found; done_");
    let id = add(&scratch, "first");
    scratch.git(&["worktree", "add", "--quiet", "../tree"]);
    let mut command = scratch.ralph(&format!("run {id} --no-verify"));
    command.env("RALPH", env!("CARGO_BIN_EXE_ralph")).current_dir(beside(&scratch, "tree"));
    let run = Scratch::finish(&mut command);
    assert_eq!(run.code, Some(0), "{run:?}");
    let found = fs::read_to_string(beside(&scratch, "found")).unwrap();
    assert_eq!(status(&scratch, found.trim()), "pending");
    let call = format!("/ralph --ralph-dir {} task add", scratch.path(".ralph").display());
    assert!(prompt(&scratch, 1).contains(&call), "{}", prompt(&scratch, 1));
}

#[test]
fn the_settings_of_the_older_program_are_read_with_a_word_about_it() {
    let scratch = tasks("if [ $verifies = 1 ]; then refuse no; else work; done_; fi");
    scratch
        .write(".ralph.toml", "[execution]\nmax_retries = 0\nlearn = true\n[agent]\ncommand = \"claude\"\n");
    add(&scratch, "task");
    let run = scratch.run("run --all");
    ends(&scratch, &run, 4, "tasks_failed");
    assert_eq!(attempts(&scratch), 2);
    assert!(run.stderr.contains(".ralph.toml: settings of an older program"), "{run:?}");
    let shown = scratch.run("config").stdout;
    assert!(shown.contains(".ralph.toml line 2"), "{shown}");
    // The project's own file decides.
    scratch.write("ralph.toml", "[execution]\nmax_retries = 1\n");
    add(&scratch, "another");
    assert_eq!(scratch.run("run --all").code, Some(4));
    assert_eq!(attempts(&scratch), 6);
}

#[test]
fn twenty_kills_at_any_moment_lose_nothing_and_each_task_is_done_once() {
    let scratch = tasks(GOOD);
    let mut ids: Vec<String> = Vec::new();
    let mut kills = 0;
    while kills < 20 {
        // There is always something to do.
        for _ in 0..3 {
            ids.push(add(&scratch, &format!("task-{}", ids.len())));
        }
        let mut run = scratch.start("run --all");
        let moment = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), kills) % 300;
        std::thread::sleep(std::time::Duration::from_millis(moment));
        if run.try_wait().unwrap().is_none() {
            signal(&run, Signal::KILL);
            kills += 1;
        }
        finish(run);
    }
    let run = scratch.run("run --all");
    ends(&scratch, &run, 0, "complete");
    for id in &ids {
        let done = log(&scratch, id).into_iter().filter(|line| line == "done").count();
        assert_eq!((status(&scratch, id).as_str(), done), ("done", 1), "{id}: {:?}", log(&scratch, id));
    }
    scratch.assert_nothing_left();
}

#[test]
fn an_attempt_that_crashed_is_not_tried_again_without_its_claim() {
    let scratch = tasks(&format!("[ $n != 1 ] || exit 3; {GOOD}"));
    let id = add(&scratch, "task");
    scratch.write(".ralph/config", "MAX_RETRIES=2");
    let run = scratch.run("run --all --no-verify --max-retries 2 -n 1");
    assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (1, "pending"), "{run:?}");
    let run = scratch.run("run --all --no-verify");
    ends(&scratch, &run, 0, "complete");
    assert_eq!((attempts(&scratch), log(&scratch, &id).last().unwrap().as_str()), (2, "done"));
}

#[test]
fn an_unverified_task_is_verified_first_by_the_next_run() {
    for (agent, code, reason) in
        [("bad 401 x no; exit", 4, "not_logged_in"), ("limit 4102444800; exit", 4, "usage_limit")]
    {
        let scratch = tasks(&format!("[ $verifies = 0 ] || [ -e ../in ] || {{ {agent}; }}; {GOOD}"));
        let id = add(&scratch, "task");
        let run = scratch.run("run --all --max-limit-wait 1s");
        ends(&scratch, &run, code, reason);
        assert!(run.stdout.contains("Done: 1 task — 0 done, 0 failed, 1 open"), "{run:?}");
        assert!(log(&scratch, &id)[0].contains("before it was verified"), "{:?}", log(&scratch, &id));
        fs::write(beside(&scratch, "in"), "").unwrap();
        let before = attempts(&scratch);
        ends(&scratch, &scratch.run("run --all"), 0, "complete");
        assert_eq!(attempts(&scratch), before + 1, "{agent}: it is not built again");
    }
}

#[test]
fn a_run_does_not_change_how_often_a_task_may_be_tried() {
    let scratch = tasks("if [ $verifies = 1 ]; then refuse no; else work; done_; fi");
    let id = add(&scratch, "task --max-retries 5");
    assert_eq!(scratch.run("run --all --max-retries 1 -n 1").code, Some(4), "its proof was refused");
    assert_eq!(task(&scratch, &id)["max_retries"], 5);
    assert_eq!(scratch.run("run --all --max-retries 7 -n 1").code, Some(4));
    assert!(prompt(&scratch, 3).contains("## Attempt 2 of 8\n"), "{}", prompt(&scratch, 3));
}

#[test]
fn verifications_without_a_verdict_are_no_fault_of_the_task() {
    for verifier in ["say hm; ok; exit", "exit 3", "kill -9 $$", "sleep 300"] {
        let scratch = tasks(&format!(
            "if [ $verifies = 1 ] && grep -q '^hard' ../prompt-$n && ! [ -e ../in ]; then {verifier}; fi; {GOOD}"
        ));
        scratch.write(".ralph/config", "AGENT_TIMEOUT=2s");
        let id = add(&scratch, "task -d hard --max-retries 0");
        let other = add(&scratch, "other --priority 9");
        // A worker and two verifications, then the other task; the second run only verifies.
        for (run, expected) in [(1, 5), (2, 7)] {
            let ended = scratch.run("run --all");
            ends(&scratch, &ended, 4, "unproven");
            assert_eq!(attempts(&scratch), expected, "{verifier}, run {run}: {ended:?}");
            assert!(
                ended
                    .stderr
                    .contains(&format!("{id}: said to be done, and no verification reached a verdict")),
                "{ended:?}"
            );
        }
        let shown = task(&scratch, &id);
        assert_eq!((&shown["status"], &shown["retry_count"]), (&"pending".into(), &0.into()), "{verifier}");
        assert_eq!(status(&scratch, &other), "done");
        // At a limit it is not proven either.
        ends(&scratch, &scratch.run("run --all -n 2"), 4, "unproven");
        fs::write(beside(&scratch, "in"), "").unwrap();
        ends(&scratch, &scratch.run("run --all"), 0, "complete");
        assert_eq!(attempts(&scratch), 10, "{verifier}: it is not built again");
    }
}

#[test]
fn a_folder_of_a_feature_s_name_is_not_in_its_way_and_what_is_found_belongs_to_the_feature() {
    let scratch = tasks("work; \"$RALPH\" task add found > ../found; done_");
    fs::create_dir(scratch.path("export")).unwrap();
    assert_eq!(scratch.run("feature add export").code, Some(0));
    add(&scratch, "first --feature export");
    let mut command = scratch.ralph("run export --no-verify -n 1");
    let run = Scratch::finish(command.env("RALPH", env!("CARGO_BIN_EXE_ralph")));
    assert_eq!(run.code, Some(0), "{run:?}");
    let found = fs::read_to_string(beside(&scratch, "found")).unwrap();
    assert_eq!(task(&scratch, found.trim())["feature"], "export");
    assert!(
        prompt(&scratch, 1).contains("task add \"TITLE\" --feature export -d"),
        "{}",
        prompt(&scratch, 1)
    );
}

#[test]
fn models_that_an_agent_cannot_be_told_are_refused_at_once() {
    let scratch = tasks(GOOD);
    scratch.write("ralph.toml", "[model]\nladder = [\"small\", \"large\"]\n");
    add(&scratch, "task");
    let run = scratch.run("run --all --agent script");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("agent 'script' cannot be told which model to use"), "{run:?}");
    // The flag comes before the environment.
    let mut command = scratch.ralph("run --all --no-verify --model-strategy escalate");
    let run = Scratch::finish(command.env("RALPH_MODEL", "other"));
    assert!(run.code == Some(0) && run.stderr.contains("with small: task"), "{run:?}");
}

#[test]
fn a_task_that_a_person_ends_while_its_agent_works_has_one_word_everywhere() {
    for (verb, word) in [("done --force", "done"), ("fail --reason enough", "failed")] {
        let scratch = tasks(&format!("touch ../at-work; while [ ! -e ../go ]; do sleep 0.02; done; {GOOD}"));
        let id = add(&scratch, "task");
        let ralph = scratch.start("run --all");
        wait_for("the agent", || beside(&scratch, "at-work").exists().then_some(()));
        let ended = scratch.run(&format!("task {verb} {id}"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        fs::write(beside(&scratch, "go"), "").unwrap();
        let run = finish(ralph);
        assert!(run.code.is_some(), "{run:?}");
        assert_eq!(status(&scratch, &id), word, "{run:?}");
        assert_eq!(scratch.state()["task_became"].as_str(), Some(word), "{run:?}");
        let report: Value = serde_json::from_str(&scratch.run("report --json").stdout).unwrap();
        let told = &report["loops"][0]["task_list"][0];
        assert_eq!(told["outcome"], word, "{report}");
        let why = format!("it was set to {word} meanwhile, and not by this run");
        assert_eq!(told["reason"], why.as_str(), "{report}");
        // Its agent's report has ended nothing.
        assert!(scratch.run("journal").stdout.contains("blocked"));
    }
}

#[test]
fn at_a_limit_a_verification_that_has_not_passed_is_unproven() {
    for verdict in ["refuse bad", "say 'I cannot tell.'; ok"] {
        let scratch = tasks("if [ $verifies = 1 ]; then say 'I cannot tell.'; ok; else work; done_; fi");
        add(&scratch, "task");
        assert_eq!(scratch.run("run --all --once").code, Some(4));
        let before = attempts(&scratch);
        work(&scratch, &format!("if [ $verifies = 1 ]; then {verdict}; else work; done_; fi"));
        let run = scratch.run("run --all --once");
        ends(&scratch, &run, 4, "unproven");
        assert_eq!(attempts(&scratch), before + 1, "{verdict}: {run:?}");
    }
}

/// A search for a word of a megabyte took all memory of the machine.
#[test]
fn a_description_of_one_long_word_takes_no_memory() {
    let long = "x".repeat(50_000);
    let notes = format!("[ $verifies = 1 ] || say '<journal>{long}</journal>'; {GOOD}");
    let scratch = tasks(&notes);
    add(&scratch, "first");
    fs::write(beside(&scratch, "long"), long.repeat(20)).unwrap();
    let mut command = scratch.ralph("task add second -d -");
    let added = Scratch::finish(command.stdin(fs::File::open(beside(&scratch, "long")).unwrap()));
    assert_eq!(added.code, Some(0), "{added:?}");
    let mut limited = scratch.command("prlimit");
    let limited =
        limited.args(["--as=3000000000", env!("CARGO_BIN_EXE_ralph"), "run", "--all", "--no-verify"]);
    let run = Scratch::finish(limited);
    ends(&scratch, &run, 0, "complete");
    let mut search = scratch.ralph("journal --search");
    let found = Scratch::finish(search.arg(&long[..5000]));
    assert!(found.code == Some(0) && found.stdout.contains("xxx"), "{found:?}");
}
