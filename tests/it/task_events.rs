//! Events, state, status and status line of a run over tasks.

use serde_json::{Value, json};

use crate::json_events::events;
use crate::run_tasks::{GOOD, add, tasks};
use crate::scratch::{finish, wait_for};
use crate::terminal::Terminal;

#[test]
fn events_say_task_feature_model_and_verification() {
    let scratch = tasks(&format!("if [ $n = 2 ]; then refuse 'no test'; exit; fi; {GOOD}"));
    scratch.write("spec.md", "What is wanted");
    assert_eq!(scratch.run("feature add export --spec spec.md").code, Some(0));
    let id = add(&scratch, "first --feature export");
    add(&scratch, "second --feature export");
    let run = scratch.run("run export --json -n 2");
    assert_eq!(run.code, Some(0), "{run:?}");
    let events = events(&run);
    let of = |name: &str| -> Vec<&Value> { events.iter().filter(|event| event["event"] == name).collect() };
    let task = json!({ "id": id, "title": "first", "feature": "export", "model": "sonnet" });
    let (started, ended) = (of("task_started"), of("task_ended"));
    assert_eq!(started.len(), 2, "{run:?}");
    assert_eq!((&started[0]["task"], &started[0]["verifies"]), (&task, &json!(false)));
    assert_eq!(started[0]["tasks"], json!({ "done": 0, "failed": 0, "total": 2 }));
    assert_eq!((&ended[0]["task"], &ended[0]["outcome"]), (&task, &json!("retried")));
    assert_eq!(ended[0]["reason"], "no test");
    assert_eq!((&ended[1]["outcome"], &ended[1]["tasks"]["done"]), (&json!("done"), &json!(1)));
    let verdicts: Vec<_> = of("verified").iter().map(|event| (&event["ok"], &event["reason"])).collect();
    assert_eq!(verdicts, [(&json!(false), &json!("no test")), (&json!(true), &json!(""))]);
    assert_eq!(of("verifying").len(), 2);

    let status: Value = serde_json::from_str(&scratch.run("status --json").stdout).unwrap();
    assert_eq!(status["tasks"], json!({ "done": 1, "failed": 0, "total": 2 }));
    assert_eq!((&status["task"]["id"], &status["task"]["outcome"]), (&json!(id), &json!("done")));
}

#[test]
fn status_and_the_status_line_name_the_task_at_hand() {
    let scratch = tasks(&format!("until [ -e ../go ]; do sleep 0.02; done; {GOOD}"));
    let id = add(&scratch, "title");
    add(&scratch, "second");
    let mut command = scratch.ralph("run --all --model opus");
    command.env("TERM", "xterm-256color");
    let terminal = Terminal::start(&command, 24, 120);
    terminal.wait_for("the task", |screen| {
        let rows: Vec<&str> = screen.lines().collect();
        rows.len() > 1
            && rows[rows.len() - 2].starts_with("iteration 1 · ")
            && rows[rows.len() - 2].contains(" · opus · title: thinking · ")
            && rows[rows.len() - 1] == "0 of 2 done"
    });
    let status = scratch.run("status tasks").stdout;
    assert!(status.contains("\nTasks: 0/2 done\nTask: "), "{status}");
    assert!(status.contains(&format!("\nTask: {id} ")), "{status}");
    std::fs::write(scratch.root().parent().unwrap().join("go"), "").unwrap();
    let end = terminal.end();
    assert_eq!(end.code, Some(0), "{}", end.history);
    // The loop first, then each of its tasks, and last what to type.
    let told: Vec<&str> = end.history.trim_end().lines().rev().take(8).collect();
    let told: Vec<&str> = told.into_iter().rev().collect();
    assert!(end.history.contains("\n✓ tasks  done  2/2  "), "{}", end.history);
    assert!(
        end.history.contains("\n    2 iterations") && end.history.contains("\n    log "),
        "{}",
        end.history
    );
    assert!(told[0].starts_with(&format!("✓ {id}  done  ")), "{told:?}");
    assert_eq!(end.history.matches("\nNext: ").count(), 1, "{told:?}");
    assert!(told[7].starts_with("Next: ralph diff tasks"), "{told:?}");
    let log = scratch.session_log();
    assert!(log.contains(&format!("[ralph] {id} is done (1/2 tasks)\n")), "{log}");
}

#[test]
fn a_run_that_is_watched_in_plain_says_what_became_of_each_task() {
    let scratch = tasks(GOOD);
    let id = add(&scratch, "first");
    let run = finish(scratch.start("run --all"));
    for line in [
        format!("▶ works on {id} with sonnet: first"),
        format!("▶ a fresh agent verifies {id}"),
        format!("✓ {id} has passed its verification"),
        format!("✓ {id} is done (1/1 tasks)"),
    ] {
        assert!(format!("{}{}", run.stdout, run.stderr).contains(&line), "{line}: {run:?}");
    }
    wait_for("the loop's end", || (scratch.state()["active"].as_bool() == Some(false)).then_some(()));
}
