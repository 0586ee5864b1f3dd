//! State that survives: `kill -9`, resuming, damaged files, and many iterations.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::scratch::{CLAUDE_RESULT, Scratch, Started, claude_says, claude_text, wait_for};

fn status(scratch: &Scratch) -> Value {
    serde_json::from_str(&scratch.run("status --json").stdout).unwrap()
}

/// An agent that works well, but hangs in iteration 2 as long as there is no file `go`; it keeps its prompts.
fn hangs_in_the_second(scratch: &Scratch) {
    let says = format!("echo '{}'\necho '{CLAUDE_RESULT}'", claude_text("on it"));
    scratch.agent(
        "claude",
        &format!(
            r"cat > prompt.$RALPH_ITERATION
if [ $RALPH_ITERATION = 2 ] && [ ! -e go ]; then touch hangs; sleep 600; fi
{says}"
        ),
    );
}

#[test]
fn killed_while_the_agent_runs_it_tells_the_truth_and_goes_on() {
    let scratch = Scratch::new();
    hangs_in_the_second(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 3");
    wait_for("the first iteration", || scratch.path("prompt.1").exists().then_some(()));
    wait_for("the second iteration", || scratch.path("hangs").exists().then_some(()));
    assert_eq!(status(&scratch)["status"], "running");
    drop(ralph);

    let dead = status(&scratch);
    assert_eq!(dead["status"], "killed", "{dead}");
    assert_eq!(dead["exit_reason"], "killed");
    assert_eq!((&dead["pid"], &dead["current_iteration"]), (&Value::Null, &2.into()));
    let text = scratch.run("status prompt").stdout;
    assert!(text.contains("Exit reason: killed (ralph was killed; 'ralph resume prompt'"), "{text}");
    let run = scratch.run("pause prompt");
    assert!(run.code == Some(1) && run.stderr.contains("is not running"), "{run:?}");

    scratch.write("go", "");
    // The limit is the one that it had.
    let run = scratch.run("prompt p.md --resume");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("resuming at iteration 2"), "{run:?}");
    assert!(run.stdout.contains("Total Iterations: 3\n"), "{run:?}");
    let log = scratch.read(".ralph/iterations.log");
    let steps: Vec<&str> =
        log.lines().filter_map(|line| line.split_once(' ').map(|(_, step)| step)).collect();
    let starts: Vec<&str> = steps.iter().copied().filter(|step| step.starts_with("[START]")).collect();
    let expected = ["1/3", "2/3", "2/3", "3/3"].map(|which| format!("[START] iteration {which}"));
    assert_eq!(starts, expected, "append-only, and the one that was cut off runs again");
    assert_eq!(scratch.session_logs().len(), 2, "logs are kept");
}

#[test]
fn resume_runs_the_recorded_command_line_from_anywhere() {
    let scratch = Scratch::new();
    hangs_in_the_second(&scratch);
    fs::create_dir(scratch.path("sub")).unwrap();
    let ralph = {
        let mut command = scratch.ralph("prompt ../p.md 2 --name mine");
        Started::quietly(command.current_dir(scratch.path("sub")))
    };
    wait_for("the second iteration", || scratch.path("hangs").exists().then_some(()));
    drop(ralph);
    scratch.write("go", "");
    let mut resume = scratch.ralph("resume mine");
    resume.current_dir(scratch.outside());
    let run = Scratch::finish(&mut resume);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("resuming at iteration 2"), "{run:?}");
    assert!(run.stdout.contains("Total Iterations: 2\n"), "{run:?}");
    let after = status(&scratch);
    assert_eq!((&after["name"], &after["exit_reason"]), (&"mine".into(), &"max_iterations".into()));
    assert!(after["argv"].as_array().unwrap().iter().any(|word| word == "--resume"), "{after}");

    let run = scratch.run("resume mine");
    assert!(run.code == Some(1) && run.stderr.contains("has come to its end (limit)"), "{run:?}");
}

#[test]
fn notes_and_validation_errors_survive_the_kill() {
    let scratch = Scratch::new();
    hangs_in_the_second(&scratch);
    let mut command = scratch.ralph("prompt p.md 2");
    let ralph = Started::quietly(command.args(["--validate", "echo broken; exit 1", "--delay", "2s"]));
    wait_for("the delay", || status_or_null(&scratch)["last_iteration_ended"].is_string().then_some(()));
    assert!(Scratch::finish(scratch.ralph("note").arg("mind the gap")).stdout.contains("noted"));
    wait_for("the second iteration", || scratch.path("hangs").exists().then_some(()));
    drop(ralph);
    for part in ["mind the gap", "broken"] {
        assert!(scratch.read("prompt.2").contains(part));
    }
    fs::remove_file(scratch.path("prompt.2")).unwrap();
    scratch.write("go", "");
    assert_eq!(scratch.run("resume").code, Some(4), "the last validation has failed");
    for part in ["mind the gap", "broken"] {
        assert!(scratch.read("prompt.2").contains(part), "{part} is lost");
    }
}

fn status_or_null(scratch: &Scratch) -> Value {
    serde_json::from_str(&scratch.run("status --json").stdout).unwrap_or_default()
}

#[test]
fn killed_before_a_retry_the_prompt_is_there_again() {
    let scratch = Scratch::new();
    scratch.agent("claude", "cat > prompt.1; exit 1");
    let ralph = Started::new(&scratch, "prompt p.md 1 --backoff 10m");
    wait_for("a failure", || (status_or_null(&scratch)["failed_attempts"] == 1).then_some(()));
    drop(ralph);
    let says = claude_says("<promise>COMPLETE</promise>").replace("cat > /dev/null", "cat > prompt.again");
    scratch.agent("claude", &says);
    let run = scratch.run("prompt p.md 1 --resume --backoff 0.01s");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(scratch.read("prompt.again").starts_with("Do it"), "{run:?}");
}

#[test]
fn killed_while_it_waits_it_goes_on_waiting() {
    let scratch = Scratch::new();
    let reset = chrono::Utc::now().timestamp() + 3600;
    scratch.agent(
        "claude",
        &format!(
            r#"cat > /dev/null
echo '{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{reset}}}}}'
echo '{{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit reached"}}'
exit 1"#
        ),
    );
    let waits = |what: &str| {
        wait_for(what, || Some(status_or_null(&scratch)).filter(|status| status["status"] == "waiting"))
    };
    let ralph = Started::new(&scratch, "prompt p.md 3");
    let first = waits("the wait");
    drop(ralph);
    let dead = status(&scratch);
    assert_eq!((&dead["status"], &dead["waiting_until"]), (&"killed".into(), &Value::Null));

    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    let ralph = Started::new(&scratch, "prompt p.md 3 --resume");
    let second = waits("the wait after the restart");
    assert_eq!(first["waiting_until"], second["waiting_until"]);
    assert_eq!(second["current_iteration"], 1);
    assert_eq!(scratch.run("resume").code, Some(0));
    let run = ralph.finish();
    assert!(run.stdout.contains("Total Iterations: 1\n"), "{run:?}");
}

#[test]
fn a_loop_that_goes_on_tells_of_the_time_that_its_iterations_took() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("sleep 0.4\n{}", claude_says("more")));
    assert_eq!(scratch.run("prompt p.md 9 --max-cost 0.01").code, Some(0));
    assert_eq!(scratch.run("resume prompt --max-cost 0.02").code, Some(0));
    let log = scratch.session_logs().pop().unwrap().with_extension("events.jsonl");
    let lines = std::fs::read_to_string(log).unwrap();
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["iterations"], &last["cost_usd"]),
        (&"loop_ended".into(), &2.into(), &0.02.into())
    );
    assert!(last["duration_s"].as_f64().unwrap() > 0.8, "{last}");
    let report: serde_json::Value = serde_json::from_str(&scratch.run("report --json").stdout).unwrap();
    let one = &report["loops"][0];
    assert_eq!((&one["iterations"], &one["cost_usd"]), (&1.into(), &0.01.into()));
    assert!(one["duration_s"].as_f64().unwrap() < 0.8, "a report is about one run: {one}");
}

#[test]
fn a_loop_that_ended_gets_a_new_allowance() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("more"));
    assert_eq!(scratch.run("prompt p.md 2").code, Some(0));
    let run = scratch.run("prompt p.md 2 --resume");
    assert!(run.stderr.contains("the last loop had ended; a new one goes on after iteration 2"), "{run:?}");
    assert!(run.stdout.contains("Total Iterations: 2\nSuccessful: 2\n"), "{run:?}");
    let after = status(&scratch);
    assert_eq!((&after["current_iteration"], &after["max_iterations"]), (&4.into(), &4.into()));
    assert!(scratch.read(".ralph/iterations.log").contains("[START] iteration 4/4\n"));

    let logs = scratch.session_logs().len();
    scratch.write("q.md", "<promise>COMPLETE</promise>");
    for (args, expected) in [("plan --resume", "'prompt', not 'plan'"), ("prompt q.md --resume", "p.md")] {
        let run = scratch.run(args);
        assert!(run.code == Some(1) && run.stderr.contains(expected), "{run:?}");
    }
    assert_eq!(scratch.session_logs().len(), logs, "a refused start leaves no log");
}

#[test]
fn a_state_file_that_is_not_understood_is_told_and_kept_aside() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let whole = scratch.read(".ralph/state.toml");
    let newer = whole.replacen("version = 1", "version = 99", 1);
    for (content, why) in [(&whole[..whole.len() / 2], "damaged"), ("", "empty"), (&newer, "newer ralph")] {
        scratch.write(".ralph/state.toml", content);
        let status = status(&scratch);
        assert_eq!(status["name"], "prompt", "the registry knows its name");
        let resume = scratch.run("resume");
        let run = scratch.run("prompt p.md 1 --resume");
        assert!(run.stderr.contains(why), "{run:?}");
        if why == "newer ralph" {
            assert_eq!(status["status"], "unknown", "{status}");
            assert!(status["error"].as_str().unwrap().contains(why), "{status}");
            assert!(resume.code == Some(1) && resume.stderr.contains(why), "{resume:?}");
            assert_eq!(
                (run.code, scratch.read(".ralph/state.toml")),
                (Some(1), content.to_owned()),
                "{run:?}"
            );
            continue;
        }
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stderr.contains("is set aside as"), "{run:?}");
        // Its log has all of it.
        assert_eq!((&status["status"], &status["attempts"]), (&"done".into(), &1.into()), "{status}");
        assert!(resume.code == Some(1) && resume.stderr.contains("has come to its end (done)"), "{resume:?}");
        assert!(run.stderr.contains("a new one goes on after iteration"), "{run:?}");
        let aside: Vec<_> =
            fs::read_dir(scratch.path(".ralph")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(aside.iter().any(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("state.toml.") && fs::read_to_string(path).unwrap() == content
        }));
    }
}

/// What ten thousand of them leave, `policy::tests` knows.
#[test]
fn many_iterations_take_no_memory_and_leave_a_small_state() {
    const COUNT: usize = 200;
    let scratch = Scratch::new();
    let config = "AGENT_TYPE=custom\nAGENT_CLI=/bin/echo\nAGENT_ARGS='{}'\n";
    scratch.write(".ralph/config", config);
    let ralph = Started::new(&scratch, &format!("prompt p.md {COUNT} --quiet"));
    let memory = |pid: u32| -> u64 {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default()
    };
    let pid = ralph.pid();
    let early = wait_for("a start", || {
        let at = status_or_null(&scratch)["current_iteration"].as_u64()?;
        (at > COUNT as u64 / 10).then(|| memory(pid))
    });
    let (mut late, deadline) = (early, Instant::now() + Duration::from_mins(10));
    while let Some(now) = Some(memory(pid)).filter(|now| *now > 0) {
        late = now;
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(50));
    }
    let run = ralph.finish();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(late < early + 512, "memory grew from {early} to {late} KiB");

    assert!(scratch.read(".ralph/state.toml").len() < 10_000);
    let lines = scratch.read(".ralph/iterations.log").lines().count();
    assert_eq!(lines, 2 * COUNT + 1);
    // To tell where it stands takes none of what grows.
    let told = status(&scratch);
    assert_eq!(told["current_iteration"], COUNT);
    fs::remove_dir_all(scratch.path(".ralph/logs")).unwrap();
    fs::remove_file(scratch.path(".ralph/iterations.log")).unwrap();
    assert_eq!(status(&scratch), told);
}

#[test]
fn a_loop_that_was_killed_can_be_cancelled_and_is_not_gone_on_with() {
    let scratch = Scratch::new();
    hangs_in_the_second(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 3");
    wait_for("the second iteration", || scratch.path("hangs").exists().then_some(()));
    drop(ralph);
    assert_eq!(scratch.run("cancel").stdout, "prompt: cancelled (was at iteration 2)\n");
    let ended = status(&scratch);
    assert_eq!((&ended["status"], &ended["exit_code"]), (&"cancelled".into(), &0.into()));
    assert!(
        scratch
            .read(".ralph/iterations.log")
            .ends_with("[DONE] loop complete after 2 iterations reason=cancelled\n")
    );
    assert_eq!(scratch.run("cancel").stdout, "no active loop\n");
    let run = scratch.run("resume");
    assert!(run.code == Some(1) && run.stderr.contains("has come to its end (cancelled)"), "{run:?}");
    scratch.await_nothing_left();
}

/// Of the program that kept its state under the same name, without a version.
#[test]
fn the_state_of_an_older_program_is_read_and_gone_on_with() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("more"));
    scratch.write(
        ".ralph/state.toml",
        "active = true\niteration = 7\nmode = \"plan\"\nstarted_at = \"2026-01-02T03:04:05Z\"\nmax_iterations = 20\n\
         error_count = 2\nconsecutive_errors = 0\nidle_iterations = 0\n",
    );
    let old = status(&scratch);
    assert_eq!((&old["status"], &old["current_iteration"]), (&"killed".into(), &7.into()), "{old}");
    let run = scratch.run("loop plan -m 9");
    assert!(run.stderr.contains("resuming after iteration 7"), "{run:?}");
    assert_eq!(status(&scratch)["current_iteration"], 9);
}
