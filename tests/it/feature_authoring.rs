//! Agents write features and tasks: `ralph feature spec`, `plan`, `build`, `create`, `ralph task create`.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::policies::{attempts, beside, project, prompt};
use crate::postgres_server::PostgresServer;
use crate::run_tasks::ends;
use crate::scratch::{Run, Scratch, finish};
use crate::terminal::Terminal;

/// What an agent can do: `$role` is the first word behind the `#` of its prompt, `$piece` what it writes or reads.
const WORDS: &str = r##"
title=$(head -n 1 ../prompt-$n)
case $title in
  '# Review the '*) role=review; piece=$(echo "$title" | cut -d' ' -f4) ;;
  '# Write the '*) role=write; piece=$(echo "$title" | cut -d' ' -f4) ;;
  '# Cut the '*) role=cut ;;
  '# Add a task '*) role=add ;;
esac
file=.ralph/features/export/$piece.md
document() { echo "# The $piece, version $n" > $file; say 'I have written it.'; ok; }
pass() { say 'Good.\n<review-pass/>'; ok; }
changes() { say "No.\n<review-changes>$1</review-changes>"; ok; }
sound='Do it.

Acceptance criteria:
- it runs'
"##;

/// Does all of it well.
const GOOD: &str = r#"case $role in
  review) pass ;;
  write) document ;;
  cut) first=$("$RALPH" task add first -d "$sound"); second=$("$RALPH" task add second -d "$sound" --after $first)
    say "two tasks"; ok ;;
esac"#;

fn feature(body: &str) -> Scratch {
    project(&format!("{WORDS}\n{body}"))
}

fn run(scratch: &Scratch, args: &str, more: &[&str]) -> Run {
    let mut command = scratch.ralph(args);
    command.args(more).env("RALPH", env!("CARGO_BIN_EXE_ralph"));
    Scratch::finish(&mut command)
}

fn json(scratch: &Scratch, args: &str) -> Value {
    serde_json::from_str(&scratch.run(&format!("{args} --json")).stdout).unwrap()
}

fn titles(scratch: &Scratch, args: &str) -> Vec<String> {
    let tasks = json(scratch, args);
    tasks.as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn nothing_is_left(scratch: &Scratch) {
    assert!(!scratch.path(".ralph/task-draft").exists());
    assert_eq!(scratch.git(&["status", "--porcelain", "--", ".ralph/task-draft"]), "");
    scratch.assert_nothing_left();
}

#[test]
fn a_feature_comes_from_a_brief_to_tasks_that_can_be_run() {
    let scratch = feature(GOOD);
    let run_ = run(&scratch, "feature create export", &["The table as CSV"]);
    ends(&scratch, &run_, 0, "complete");
    // Spec and review, plan and review, tasks.
    assert_eq!(attempts(&scratch), 5);
    assert!(prompt(&scratch, 1).contains("## What the user wants\n\nThe table as CSV\n"));
    assert!(prompt(&scratch, 2).contains("\n> \\# The spec, version 1\n"), "{}", prompt(&scratch, 2));
    assert!(prompt(&scratch, 3).contains("\n## The spec\n\n# The spec, version 1\n"));
    assert!(prompt(&scratch, 5).contains("\n## The plan\n\n# The plan, version 3\n"));
    let call = format!("/ralph --ralph-dir {} task add", scratch.path(".ralph/task-draft/.ralph").display());
    assert!(prompt(&scratch, 5).contains(&call), "{}", prompt(&scratch, 5));
    assert!(run_.stderr.contains("↑ spec of export: .ralph/features/export/spec.md"), "{run_:?}");
    let feature = json(&scratch, "feature show export");
    assert_eq!((feature["status"].as_str(), feature["tasks"]["total"].as_u64()), (Some("ready"), Some(2)));
    assert_eq!(feature["plan_path"], "features/export/plan.md");
    assert_eq!(titles(&scratch, "task list --feature export"), ["first", "second"]);
    assert_eq!(titles(&scratch, "task list --feature export --ready"), ["first"]);
    nothing_is_left(&scratch);
    let ends = |run: &Run| run.stderr.contains("■ all is written");
    assert!(ends(&run_) && ends(&scratch.run("replay")), "{run_:?}");
    // Once more there is nothing to do.
    let again = run(&scratch, "feature create export", &[]);
    assert_eq!((again.code, attempts(&scratch)), (Some(1), 5));
    assert!(again.stderr.contains("'ralph run export' works on them"), "{again:?}");
}

#[test]
fn a_feature_on_a_server_is_written_as_one_of_the_project_is() {
    let server = PostgresServer::start(&[]);
    let (scratch, store) = (feature(GOOD), server.address("work"));
    let run_ = run(&scratch, "feature create export", &["The table as CSV", "--store", &store]);
    ends(&scratch, &run_, 0, "complete");
    assert_eq!(titles(&scratch, &format!("task list --all --store {store}")), ["first", "second"]);
    let shown = json(&scratch, &format!("feature show export --store {store}"));
    assert_eq!(shown["plan_path"], "features/export/plan.md", "{shown}");
    assert!(scratch.path(".ralph/features/export/spec.md").exists());
    assert!(!scratch.path(".ralph/progress.db").exists(), "nothing of it is in the file");
    nothing_is_left(&scratch);
}

#[test]
fn create_goes_on_where_it_was_killed() {
    let scratch =
        feature(&format!("[ $role != cut ] || [ -e ../go ] || {{ touch ../cutting; sleep 60; }}\n{GOOD}"));
    let mut command = scratch.ralph("feature create export");
    let child = command
        .arg("brief")
        .env("RALPH", env!("CARGO_BIN_EXE_ralph"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    crate::scratch::wait_for("the third piece", || beside(&scratch, "cutting").exists().then_some(()));
    crate::policies::signal(&child, rustix::process::Signal::KILL);
    finish(child);
    assert_eq!(json(&scratch, "feature show export")["status"], "planned");
    fs::write(beside(&scratch, "go"), "").unwrap();
    let run_ = run(&scratch, "feature create export", &[]);
    ends(&scratch, &run_, 0, "complete");
    assert_eq!(attempts(&scratch), 6);
    assert_eq!(titles(&scratch, "task list --feature export"), ["first", "second"]);
    nothing_is_left(&scratch);
}

#[test]
fn what_a_review_wants_goes_into_the_next_prompt_five_times_at_most() {
    let scratch = feature(
        "case $role in review) [ $n = 4 ] && pass || changes 'say the limit' ;; write) document ;; esac",
    );
    let run_ = run(&scratch, "feature spec export", &["brief"]);
    ends(&scratch, &run_, 0, "complete");
    assert_eq!(attempts(&scratch), 4);
    assert!(
        prompt(&scratch, 3)
            .contains("## The last attempt did not pass\n\nFor this reason:\n\n> say the limit\n")
    );

    let scratch = feature("case $role in review) changes \"change $n\" ;; write) document ;; esac");
    let run_ = run(&scratch, "feature spec export", &["brief"]);
    ends(&scratch, &run_, 4, "unproven");
    assert_eq!(attempts(&scratch), 10);
    assert!(
        run_.stderr
            .contains("wants changes for the 5th time: change 10: read .ralph/features/export/spec.md"),
        "{run_:?}"
    );
    assert_eq!(json(&scratch, "feature show export")["status"], "draft");
    assert_eq!(scratch.read(".ralph/features/export/spec.md"), "# The spec, version 9\n");
}

#[test]
fn a_document_that_is_not_written_or_not_changed_is_a_miss_that_the_next_prompt_names() {
    let scratch =
        feature("case $role in review) pass ;; *) if [ $n = 3 ]; then document; else say hm; ok; fi ;; esac");
    scratch.write(".ralph/features/export/spec.md", "old\n");
    let run_ = run(&scratch, "feature spec export", &["brief"]);
    ends(&scratch, &run_, 0, "complete");
    assert_eq!(attempts(&scratch), 4);
    assert!(
        prompt(&scratch, 2).contains("> .ralph/features/export/spec.md was not changed\n"),
        "{}",
        prompt(&scratch, 2)
    );

    let scratch = feature("say hm; ok");
    let run_ = run(&scratch, "feature spec export", &["brief"]);
    ends(&scratch, &run_, 4, "unproven");
    assert_eq!(attempts(&scratch), 3);
    assert!(
        run_.stderr
            .contains("3 attempts in a row were not good: .ralph/features/export/spec.md was not written"),
        "{run_:?}"
    );
    assert_eq!(scratch.run("feature list --json").stdout, "[]\n");

    // The suggested next command is valid as printed.
    let overview = scratch.run("").stdout;
    assert!(overview.contains(", then ralph resume export --max-iterations 6, and "), "{overview}");
    crate::policies::agent(&scratch, &format!("{WORDS}\n{GOOD}"));
    let run_ = scratch.run("resume export --max-iterations 6");
    ends(&scratch, &run_, 0, "complete");
}

#[test]
fn tasks_are_seen_when_all_of_them_are_sound() {
    let scratch = feature(&format!(
        "if [ $role = cut ] && [ $n -lt 3 ]; then \"$RALPH\" task add bad -d 'no word on how'; \"$RALPH\" task list --all > ../seen-$n; say x; ok; exit; fi\n{GOOD}"
    ));
    scratch.write(".ralph/features/export/plan.md", "the plan\n");
    let run_ = run(&scratch, "feature build export", &[]);
    ends(&scratch, &run_, 0, "complete");
    assert_eq!(attempts(&scratch), 3);
    for attempt in [1, 2] {
        let seen = fs::read_to_string(beside(&scratch, &format!("seen-{attempt}"))).unwrap();
        assert_eq!(seen.lines().count(), 1, "each attempt begins again: {seen}");
    }
    assert!(
        prompt(&scratch, 2).contains("'bad': its description has no line 'Acceptance criteria:'"),
        "{}",
        prompt(&scratch, 2)
    );
    assert_eq!(titles(&scratch, "task list --all"), ["first", "second"]);

    let scratch = feature("\"$RALPH\" task add bad; say x; ok");
    scratch.write(".ralph/features/export/plan.md", "the plan\n");
    let run_ = run(&scratch, "feature build export", &[]);
    ends(&scratch, &run_, 4, "unproven");
    assert_eq!((attempts(&scratch), titles(&scratch, "task list --all").len()), (3, 0));
    nothing_is_left(&scratch);
}

#[test]
fn on_a_terminal_the_agent_asks_and_the_user_answers() {
    let scratch = feature(
        "case $role in review) pass ;; write) case $n in 1) say 'Which format?'; ok ;; 2) say 'Which limit?'; ok ;; *) document ;; esac ;; esac",
    );
    let mut command = scratch.ralph("feature spec export");
    command.env("TERM", "xterm-256color");
    let mut terminal = Terminal::start(&command, 24, 100);
    let question = "? Your answer (empty: that is all, write it now):";
    terminal.wait_for("the first question", |screen| {
        screen.contains("Which format?") && screen.ends_with(question)
    });
    terminal.press("CSV\r");
    terminal.wait_for("the second", |screen| screen.contains("Which limit?") && screen.ends_with(question));
    terminal.press("\r");
    let end = terminal.end();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_eq!(attempts(&scratch), 4);
    assert!(prompt(&scratch, 1).contains("## You talk with the user"));
    assert!(
        prompt(&scratch, 2)
            .contains("**You asked**:\n\n> Which format?\n\n**The user answered**:\n\n> CSV\n")
    );
    let last = prompt(&scratch, 3);
    assert!(last.contains("## Nobody can be asked") && last.contains("> Which limit?"), "{last}");

    // Ctrl+C at a question leaves.
    let scratch = feature("say 'Which format?'; ok");
    let mut command = scratch.ralph("feature spec export");
    command.env("TERM", "xterm-256color");
    let mut terminal = Terminal::start(&command, 24, 100);
    terminal.wait_for("the question", |screen| screen.ends_with(question));
    terminal.press_ctrl_c();
    assert_eq!((terminal.end().code, attempts(&scratch)), (Some(130), 1));
}

#[test]
fn a_task_comes_from_a_brief_on_stdin() {
    let scratch = feature("\"$RALPH\" task add 'Reject old dates' -d \"$sound\"; say done; ok");
    let mut command = scratch.ralph("task create -");
    command.env("RALPH", env!("CARGO_BIN_EXE_ralph"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"Dates before 1970\nare wrong.\n").unwrap();
    let run_ = finish(child);
    ends(&scratch, &run_, 0, "complete");
    assert!(prompt(&scratch, 1).contains("## What the user wants\n\nDates before 1970\nare wrong.\n"));
    assert_eq!(titles(&scratch, "task list"), ["Reject old dates"]);
    assert!(run_.stderr.contains("↑ 1 task: t-"), "{run_:?}");
    nothing_is_left(&scratch);
}

#[test]
fn what_cannot_begin_is_refused_in_one_line_and_leaves_nothing() {
    let scratch = feature(GOOD);
    for (args, more, expected) in [
        ("feature spec export", &[][..], "there is no terminal to ask at, and no brief"),
        ("feature spec export", &[" "], "the brief is empty"),
        ("feature spec a/b", &["x"], "a/b"),
        ("feature plan export", &[], "has no spec: 'ralph feature spec export' writes it"),
        ("feature build export", &[], "has no plan: 'ralph feature create export' writes it"),
        ("task create", &[], "there is no terminal to ask at"),
        ("task create x --feature exprt", &[], "no feature 'exprt'"),
        ("feature spec export", &["x", "--agent", "nobody"], "unknown agent type"),
    ] {
        let run_ = run(&scratch, args, more);
        assert_eq!(run_.code, Some(1), "{args}: {run_:?}");
        assert!(run_.stderr.starts_with("error: ") && run_.stderr.contains(expected), "{args}: {run_:?}");
        assert_eq!(run_.stderr.lines().count(), 1, "{run_:?}");
    }
    assert!(!scratch.path(".ralph/progress.db").exists() && !scratch.path(".ralph/features").exists());
    // A link in a repository does not redirect an agent's files.
    fs::create_dir_all(scratch.path(".ralph")).unwrap();
    std::os::unix::fs::symlink("/tmp", scratch.path(".ralph/features")).unwrap();
    let run_ = run(&scratch, "feature spec export", &["brief"]);
    assert_eq!((run_.code, attempts(&scratch)), (Some(1), 0), "{run_:?}");
    assert!(run_.stderr.contains("is a symbolic link"), "{run_:?}");
}

#[test]
fn an_unreviewed_document_is_reviewed_before_the_next_piece() {
    let scratch = feature(&format!("[ $n != 2 ] || {{ limit 4102444800; exit; }}; {GOOD}"));
    let run_ = run(&scratch, "feature create export --max-limit-wait 1s", &["brief"]);
    ends(&scratch, &run_, 4, "usage_limit");
    let run_ = run(&scratch, "feature create export", &[]);
    ends(&scratch, &run_, 0, "complete");
    let roles: Vec<String> =
        (1..=attempts(&scratch)).map(|n| prompt(&scratch, n).lines().next().unwrap().to_owned()).collect();
    let specs = roles.iter().filter(|role| role.starts_with("# Review the spec")).count();
    assert_eq!(specs, 2, "{roles:?}");
}

#[test]
fn a_limit_in_the_middle_leaves_no_task_behind_and_another_s_tasks_are_not_mixed_in() {
    let scratch = feature(&format!(
        "[ $n != 1 ] || {{ \"$RALPH\" task add early -d \"$sound\" >&2; limit $(( $(date +%s) + 1 )); exit; }}; {GOOD}"
    ));
    scratch.write(".ralph/features/export/plan.md", "the plan\n");
    let run_ = run(&scratch, "feature build export", &[]);
    ends(&scratch, &run_, 0, "complete");
    assert_eq!(titles(&scratch, "task list --all"), ["first", "second"]);

    let scratch =
        feature(&format!("\"$RALPH\" --ralph-dir .ralph task add theirs --feature export >&2; {GOOD}"));
    scratch.write(".ralph/features/export/plan.md", "the plan\n");
    let run_ = run(&scratch, "feature build export", &[]);
    ends(&scratch, &run_, 4, "unproven");
    assert_eq!(titles(&scratch, "task list --all"), ["theirs"]);
}

#[test]
fn what_a_reviewer_changes_is_taken_back_and_reviewed_once_more() {
    let scratch =
        feature("case $role in review) [ $n != 2 ] || echo mine > $file; pass ;; write) document ;; esac");
    let run_ = run(&scratch, "feature spec export", &["brief"]);
    assert_eq!((run_.code, attempts(&scratch)), (Some(0), 3), "{run_:?}");
    let spec = ".ralph/features/export/spec.md";
    assert!(
        run_.stderr.contains(&format!("the reviewing agent changed {spec}, so that it does not count")),
        "{run_:?}"
    );
    assert_eq!(scratch.read(spec), "# The spec, version 1\n");
    let kept = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/keep"]);
    assert_eq!(scratch.git(&["show", &format!("{}:{spec}", kept.trim())]), "mine\n");
}

#[test]
fn a_reviewer_without_a_verdict_is_no_fault_of_the_writer() {
    let scratch = feature("case $role in review) say hm; ok ;; write) document ;; esac");
    let run_ = run(&scratch, "feature spec export", &["brief"]);
    ends(&scratch, &run_, 4, "unproven");
    assert_eq!(attempts(&scratch), 3);
    assert!(run_.stderr.contains("export/spec.md is kept, and has not been reviewed"), "{run_:?}");
}

#[test]
fn nothing_of_anybody_else_s_is_removed() {
    let scratch = feature("case $role in write) : > $file; say hm; ok ;; esac");
    scratch.write(".ralph/features/export/spec.md", "my own words\n");
    let run_ = run(&scratch, "feature spec export", &["brief"]);
    ends(&scratch, &run_, 4, "unproven");
    assert!(run_.stderr.contains("what was there before is back"), "{run_:?}");
    assert_eq!(scratch.read(".ralph/features/export/spec.md"), "my own words\n");

    let scratch = feature(GOOD);
    scratch.write(".ralph/task-draft/chapter1.md", "precious");
    let run_ = run(&scratch, "feature create export", &["brief"]);
    assert_eq!(run_.code, Some(1), "{run_:?}");
    assert!(run_.stderr.contains("task-draft: not written by ralph"), "{run_:?}");
    assert_eq!(scratch.read(".ralph/task-draft/chapter1.md"), "precious");
}

#[test]
fn what_was_answered_is_not_asked_again_after_a_kill() {
    let scratch = feature(
        "case $role in review) pass ;; write) case $n in 1) say 'Which format?'; ok ;; 2) say 'Which limit?'; ok ;; *) document ;; esac ;; esac",
    );
    let start = || {
        let mut command = scratch.ralph("feature spec export");
        command.env("TERM", "xterm-256color");
        Terminal::start(&command, 24, 100)
    };
    let mut terminal = start();
    terminal.wait_for("the question", |screen| screen.contains("? Your answer"));
    terminal.press("CSV\r");
    terminal.wait_for("the second", |screen| screen.matches("? Your answer").count() == 2);
    terminal.press_ctrl_c();
    assert_eq!(terminal.end().code, Some(130));
    let mut terminal = start();
    terminal.wait_for("the question once more", |screen| screen.contains("? Which limit? Your answer"));
    terminal.press("ten\r");
    assert_eq!(terminal.end().code, Some(0));
    let last = prompt(&scratch, 3);
    assert!(
        last.contains("> CSV\n") && last.contains("> Which limit?") && last.contains("> ten\n"),
        "{last}"
    );
    assert!(!scratch.path(".ralph/feature-talks/export.spec.json").exists());
}
