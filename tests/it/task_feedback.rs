//! Ctrl+C on a terminal while a task is at work: ralph asks what to do better, and goes on with the answer.

use std::fs;

use crate::policies::{attempts, beside, project, prompt};
use crate::run_tasks::{GOOD, add, ends, log, status, tasks};
use crate::scratch::{Run, Scratch};
use crate::terminal::Terminal;

/// An agent whose first attempt waits for the test.
fn patient(rest: &str) -> Scratch {
    tasks(&format!("touch ../began; [ $n != 1 ] || until [ -e ../go ]; do sleep 0.02; done; {rest}"))
}

fn start(scratch: &Scratch, args: &str) -> Terminal {
    let mut command = scratch.ralph(args);
    command.env("TERM", "xterm-256color");
    let terminal = Terminal::start(&command, 24, 100);
    terminal.wait_for("the agent", |_| beside(scratch, "began").exists());
    terminal
}

fn go(scratch: &Scratch) {
    fs::write(beside(scratch, "go"), "").unwrap();
}

fn interrupt(terminal: &mut Terminal) {
    terminal.press_ctrl_c();
    terminal.wait_for("the stop", |screen| screen.contains("stopping after this attempt"));
}

#[test]
fn an_answer_goes_into_the_task_s_log_and_the_next_prompt_and_the_loop_goes_on() {
    let scratch = patient(&format!("if [ $n = 1 ]; then say 'not through'; ok; exit; fi; {GOOD}"));
    let id = add(&scratch, "first");
    let mut terminal = start(&scratch, "run --all --no-verify");
    // Typed before there was a question: no answer to it.
    terminal.press("\r");
    interrupt(&mut terminal);
    go(&scratch);
    let question = format!("? Feedback for {id} (empty: stop):");
    terminal.wait_for("the question", |screen| screen.trim_end().ends_with(&question));
    let state = scratch.state();
    assert_eq!(
        (state["status"].as_str(), status(&scratch, &id).as_str()),
        (Some("needs_attention"), "pending")
    );
    terminal.press("größer: use the cache\r");
    let end = terminal.end();
    assert!(end.code == Some(0) && end.history.contains("\n    2 iterations · "), "{end:?}");
    assert_eq!(attempts(&scratch), 2);
    assert!(prompt(&scratch, 2).contains("## Notes from the user\n\n- größer: use the cache\n"));
    assert_eq!(prompt(&scratch, 2).matches("use the cache").count(), 1);
    assert!(log(&scratch, &id).contains(&"größer: use the cache".to_owned()));
}

#[test]
fn after_the_second_ctrl_c_the_task_is_begun_anew_with_the_answer() {
    let scratch = patient(GOOD);
    let id = add(&scratch, "first");
    let mut terminal = start(&scratch, "run --all --no-verify --once");
    interrupt(&mut terminal);
    terminal.press_ctrl_c();
    terminal.wait_for("the question", |screen| screen.contains("? Feedback for "));
    terminal.press("smaller steps\r");
    assert_eq!((terminal.end().code, attempts(&scratch)), (Some(0), 2));
    assert!(prompt(&scratch, 2).contains("\n- smaller steps\n"), "{}", prompt(&scratch, 2));
    assert_eq!(status(&scratch, &id), "done");
}

#[test]
fn nothing_to_say_and_another_ctrl_c_stop() {
    for keys in ["\r", "  \r", "\x04", "\x03"] {
        let scratch = patient("say 'not through'; ok");
        let id = add(&scratch, "first");
        let mut terminal = start(&scratch, "run --all");
        interrupt(&mut terminal);
        go(&scratch);
        terminal.wait_for("the question", |screen| screen.contains("? Feedback for "));
        terminal.press(keys);
        assert_eq!(terminal.end().code, Some(130), "{keys:?}");
        assert_eq!((attempts(&scratch), status(&scratch, &id).as_str()), (1, "pending"));
        assert_eq!(scratch.state()["exit_reason"].as_str(), Some("interrupted"));
    }
}

#[test]
fn there_is_no_question_without_a_terminal() {
    let scratch = patient("say 'not through'; ok");
    add(&scratch, "first");
    for args in ["run --all --json", "run --all"] {
        for mark in ["began", "go", "count"] {
            let _ = fs::remove_file(beside(&scratch, mark));
        }
        let child = scratch.start(args);
        crate::scratch::wait_for("the agent", || beside(&scratch, "began").exists().then_some(()));
        scratch.ask_to_stop(child.id(), rustix::process::Signal::INT);
        go(&scratch);
        let run: Run = crate::scratch::finish(child);
        ends(&scratch, &run, 130, "interrupted");
        assert!(!run.stderr.contains("Feedback"), "{run:?}");
    }
    // A prompt file has no question.
    let scratch = project("touch ../began; until [ -e ../go ]; do sleep 0.02; done; say hm; ok");
    let mut terminal = start(&scratch, "prompt p.md 3");
    interrupt(&mut terminal);
    go(&scratch);
    assert_eq!(terminal.end().code, Some(130));
}

#[test]
fn who_else_wants_it_to_end_is_heard_and_several_lines_are_one_answer() {
    let scratch = patient("say 'not through'; ok");
    add(&scratch, "first");
    let mut terminal = start(&scratch, "run --all");
    interrupt(&mut terminal);
    assert_eq!(scratch.run("cancel").code, Some(0));
    terminal.wait_for("the cancel", |screen| screen.matches("stopping after this attempt").count() == 2);
    go(&scratch);
    let end = terminal.end();
    assert!(end.code == Some(130) && !end.history.contains("Feedback"), "{end:?}");

    let scratch = patient(&format!("if [ $n = 1 ]; then say 'not through'; ok; exit; fi; {GOOD}"));
    let id = add(&scratch, "first");
    let mut terminal = start(&scratch, "run --all --no-verify");
    interrupt(&mut terminal);
    go(&scratch);
    terminal.wait_for("the question", |screen| screen.contains("? Feedback for "));
    terminal.press("one \u{1b}[Dline\rand another\r");
    assert_eq!(terminal.end().code, Some(0));
    assert!(prompt(&scratch, 2).contains("- one line\n  and another\n"), "{}", prompt(&scratch, 2));
    assert_eq!(status(&scratch, &id), "done");
}
