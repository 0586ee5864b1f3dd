//! Showing and controlling a running loop from another terminal.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::processes::send;
use crate::scratch::{CLAUDE_RESULT, Run, Scratch, Started, claude_says, claude_text, process_in, wait_for};

/// An agent that says how often it was run, keeps its prompts, and works until a file `go` (then `go2`, …) is there.
fn patient(scratch: &Scratch) {
    let says = format!("echo '{}'\necho '{CLAUDE_RESULT}'", claude_text("on it"));
    scratch.agent(
        "claude",
        &format!(
            r"n=$(( $(cat n 2>/dev/null || echo 0) + 1 )); echo $n > n.new; mv n.new n
cat > prompt.$n
echo $$ > agent.pid
while [ ! -e go.$n ]; do sleep 0.02; done
{says}"
        ),
    );
}

/// An agent that meets a usage limit which ends in an hour, once.
fn limited(scratch: &Scratch) {
    let reset = chrono::Utc::now().timestamp() + 3600;
    let says = claude_says("<promise>COMPLETE</promise>");
    scratch.agent(
        "claude",
        &format!(
            r#"if [ ! -e limited ]; then touch limited; cat > /dev/null
echo '{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{reset}}}}}'
echo '{{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit reached"}}'
exit 1; fi
{says}"#
        ),
    );
}

fn status(scratch: &Scratch) -> Value {
    let run = scratch.run("status --json");
    assert_eq!(run.code, Some(0), "{run:?}");
    serde_json::from_str(&run.stdout).unwrap_or(Value::Null)
}

fn wait_for_status(scratch: &Scratch, wanted: &str) -> Value {
    wait_for(wanted, || Some(status(scratch)).filter(|status| status["status"] == wanted))
}

fn wait_for_attempt(scratch: &Scratch, number: u32) {
    wait_for("an attempt", || {
        let at = fs::read_to_string(scratch.path("n")).ok()?.trim().parse::<u32>().ok()?;
        (at == number && scratch.path(&format!("prompt.{number}")).exists()).then_some(())
    });
}

fn go(scratch: &Scratch, number: u32) {
    scratch.write(&format!("go.{number}"), "");
}

fn good(run: &Run) -> &str {
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    &run.stdout
}

#[test]
fn a_pause_holds_after_the_attempt_and_a_resume_goes_on() {
    let scratch = Scratch::new();
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 3");
    wait_for_attempt(&scratch, 1);

    let run = scratch.run("resume");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(0), "warning: loop 'prompt' is not paused\n"),
        "{run:?}"
    );
    let run = scratch.run("pause prompt");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "paused ralph loop for prompt\n"), "{run:?}");
    assert_eq!(run.stderr, "prompt holds after the current attempt\n");
    assert_eq!(status(&scratch)["pending"], "pause");
    assert!(
        scratch.run("status prompt").stdout.contains("Status: running (pausing after the current attempt)\n")
    );
    let run = scratch.run("pause");
    assert_eq!(run.stderr, "warning: loop 'prompt' is already paused\n", "{run:?}");

    go(&scratch, 1);
    let held = wait_for_status(&scratch, "paused");
    assert_eq!((&held["current_iteration"], &held["pending"]), (&1.into(), &Value::Null));
    assert!(scratch.run("pause").stderr.contains("is already paused"));
    assert!(!scratch.path("prompt.2").exists());

    assert_eq!(good(&scratch.run("resume")), "resumed ralph loop for prompt\n");
    wait_for_attempt(&scratch, 2);
    assert_eq!(status(&scratch)["current_iteration"], 2);
    go(&scratch, 2);
    go(&scratch, 3);
    assert_eq!(ralph.finish().code, Some(0));
}

#[test]
fn a_note_reaches_the_next_prompt_once() {
    let scratch = Scratch::new();
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 3");
    wait_for_attempt(&scratch, 1);
    let note = |args: &[&str]| Scratch::finish(scratch.ralph("note").args(args));
    assert_eq!(good(&note(&["mind the gap"])), "noted for the next prompt of prompt\n");
    assert_eq!(good(&note(&["prompt", "and\nthe step"])), "noted for the next prompt of prompt\n");
    for (bad, expected) in [(&["a", "b", "c"][..], "quotes"), (&[" "], "empty"), (&["nobody", "x"], "nobody")]
    {
        let run = note(bad);
        assert!(run.code == Some(1) && run.stderr.contains(expected), "{run:?}");
    }
    for number in 1..=3 {
        wait_for_attempt(&scratch, number);
        go(&scratch, number);
    }
    assert_eq!(ralph.finish().code, Some(0));
    assert!(!scratch.read("prompt.1").contains("gap"));
    let second = scratch.read("prompt.2");
    assert!(second.ends_with("## Notes from the user\n\n- mind the gap\n- and\n  the step\n"), "{second}");
    assert!(!scratch.read("prompt.3").contains("gap"));
}

#[test]
fn a_note_for_a_loop_that_does_not_run_is_kept_until_it_goes_on() {
    let scratch = Scratch::new();
    scratch.write(".ralph/implementation_plan.md", "- [ ] one\n");
    scratch.agent("claude", "cat > prompt.$RALPH_ITERATION; say '<promise>COMPLETE</promise>'; result");
    assert_eq!(scratch.run("build 1").code, Some(4));
    // It is what the status of an unproven loop advises.
    let advice = scratch.run("").stdout;
    assert!(advice.contains("'ralph note build TEXT'"), "{advice}");
    let note = |text: &str| Scratch::finish(scratch.ralph("note build").arg(text));
    assert_eq!(good(&note("mind the gap")), "noted for the next prompt of build, when it goes on\n");
    assert_eq!(good(&note("and the step")), "noted for the next prompt of build, when it goes on\n");
    let resume = |more: &[&str]| Scratch::finish(scratch.ralph("resume build").args(more));
    let run = resume(&["--max-iterations", "3", "--note", "be quick"]);
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stderr.find("is not as ralph has written it").is_none(), "{run:?}");
    let told = scratch.read("prompt.2");
    assert!(
        told.ends_with("## Notes from the user\n\n- mind the gap\n- and the step\n- be quick\n"),
        "{told}"
    );
    assert!(!scratch.read("prompt.3").contains("the gap"));
    // A loop that starts afresh gets it as well, and another one does not.
    good(&note("mind the step"));
    let run = scratch.run("prompt p.md 1");
    assert!(!scratch.read("prompt.1").contains("mind"), "{run:?}");
    assert_eq!(scratch.run("build 1").code, Some(4));
    good(&note("mind the edge"));
    let run = scratch.run("build 2");
    assert!(run.stderr.contains("the first prompt has 1 note of 'ralph note'"), "{run:?}");
    let told = scratch.read("prompt.1");
    assert!(told.ends_with("## Notes from the user\n\n- mind the edge\n"), "{told}");
    assert!(!scratch.read("prompt.2").contains("mind"));
    let run = scratch.run("note nothing");
    assert!(run.code == Some(1) && run.stderr.contains("no loop is running"), "{run:?}");
}

#[test]
fn a_note_for_a_loop_that_was_killed_goes_into_the_prompt_that_was_cut_off() {
    let scratch = Scratch::new();
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 1");
    wait_for_attempt(&scratch, 1);
    drop(ralph);
    let run = Scratch::finish(scratch.ralph("note prompt").arg("mind the gap"));
    assert_eq!(good(&run), "noted for the next prompt of prompt, when it goes on\n");
    go(&scratch, 2);
    let run = scratch.run("resume");
    assert_eq!(run.code, Some(0), "{run:?}");
    // It is the second attempt at the first iteration.
    assert!(scratch.read("prompt.2").contains("- mind the gap"), "{}", scratch.read("prompt.2"));
}

#[test]
fn cancel_lets_the_attempt_end_and_cancel_now_ends_it() {
    let scratch = Scratch::new();
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 3");
    wait_for_attempt(&scratch, 1);
    let run = scratch.run("cancel");
    assert!(good(&run).starts_with("cancelled (was at iteration 1)\n"), "{run:?}");
    assert_eq!(status(&scratch)["pending"], "stop");
    assert!(
        scratch.run("status prompt").stdout.contains("Status: running (ending after the current attempt)")
    );
    let agent = process_in(&scratch.path("agent.pid"));

    let asked = Instant::now();
    assert!(good(&scratch.run("cancel --now")).starts_with("cancelled (was at iteration 1)\n"));
    let run = ralph.finish();
    assert!(asked.elapsed() < Duration::from_secs(12), "{run:?}");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("Exit Reason: cancelled\n"), "{run:?}");
    assert!(!agent.is_alive());

    let ended = status(&scratch);
    assert_eq!((&ended["status"], &ended["exit_reason"]), (&"cancelled".into(), &"cancelled".into()));
    assert_eq!(ended["pid"], Value::Null);
    assert_eq!(good(&scratch.run("cancel")), "no active loop\n");
    assert_eq!(good(&scratch.run("cancel prompt --now")), "no active loop\n");
    assert_eq!(scratch.run("cancel nobody").code, Some(1));
    for verb in ["pause", "pause prompt", "note x", "resume"] {
        let run = scratch.run(verb);
        assert!(run.code == Some(1) && run.stderr.starts_with("error: "), "{verb}: {run:?}");
    }
}

#[test]
fn requests_reach_a_loop_that_waits_for_a_usage_limit() {
    let scratch = Scratch::new();
    limited(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 3");
    let waiting = wait_for_status(&scratch, "waiting");
    assert!(waiting["waiting_until"].is_string(), "{waiting}");
    assert!(scratch.run("status prompt").stdout.contains("Waiting until: "));

    assert_eq!(good(&scratch.run("pause")), "paused ralph loop for prompt\n");
    assert_eq!(wait_for_status(&scratch, "paused")["waiting_until"], Value::Null);
    let run = scratch.run("resume");
    assert_eq!(good(&run), "resumed ralph loop for prompt\n");
    wait_for_status(&scratch, "waiting");
    assert!(good(&Scratch::finish(scratch.ralph("note").arg("while it waits"))).starts_with("noted"));

    let run = scratch.run("resume");
    assert_eq!(good(&run), "resumed ralph loop for prompt: it waits no longer\n");
    let run = ralph.finish();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("Exit Reason: completion signal detected"), "{run:?}");
    assert!(run.stdout.contains("Total Iterations: 1\n"), "waiting uses nothing up: {run:?}");
}

#[test]
fn requests_reach_a_loop_between_attempts() {
    let scratch = Scratch::new();
    scratch.agent("claude", "cat > /dev/null; echo >> runs; exit 1");
    let ralph = Started::new(&scratch, "prompt p.md 3 --backoff 5m");
    let runs = |count: usize| {
        wait_for("an attempt", || {
            let booked = status(&scratch)["failed_attempts"].as_u64()?;
            (booked == count as u64).then_some(())
        });
    };
    runs(1);
    assert_eq!(good(&scratch.run("resume")), "resumed ralph loop for prompt\n");
    runs(2);
    let asked = Instant::now();
    assert_eq!(good(&scratch.run("cancel")), "cancelled (was at iteration 1)\n");
    assert_eq!(ralph.finish().code, Some(0));
    assert!(asked.elapsed() < Duration::from_secs(5));

    scratch.agent("claude", &claude_says("more to do"));
    let ralph = Started::new(&scratch, "prompt p.md 3 --delay 1h");
    wait_for("the delay", || {
        let status = status(&scratch);
        (status["status"] == "running" && status["last_iteration_ended"].is_string()).then_some(())
    });
    assert_eq!(good(&scratch.run("pause")), "paused ralph loop for prompt\n");
    assert_eq!(good(&scratch.run("cancel --now")), "cancelled (was at iteration 1)\n");
    assert_eq!(ralph.finish().code, Some(0));
}

#[test]
fn a_request_for_a_dead_run_never_reaches_the_next() {
    let scratch = Scratch::new();
    patient(&scratch);
    let old = r#"{"run":"an-old-one","request":"cancel"}"#;
    scratch.write(".ralph/requests/20260101T000000000000000-1.json", old);
    go(&scratch, 1);
    go(&scratch, 2);
    let run = scratch.run("prompt p.md 2");
    assert!(run.stdout.contains("Total Iterations: 2\n"), "{run:?}");
    assert_eq!(fs::read_dir(scratch.path(".ralph/requests")).unwrap().count(), 0);
}

#[test]
fn logs_show_follow_and_end() {
    let scratch = Scratch::new();
    assert!(scratch.run("logs").stderr.contains("no loop in"));
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 2");
    wait_for_attempt(&scratch, 1);
    let follow = Started::new(&scratch, "logs --follow");
    let agent = Started::new(&scratch, "logs prompt --live --agent --lines 1");
    // What they begin with depends on when they begin.
    for follower in [&follow, &agent] {
        wait_for("the follower to read", || {
            let open = fs::read_dir(format!("/proc/{}/fd", follower.pid())).ok()?;
            let files = open.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
            files
                .into_iter()
                .any(|file| file.extension().is_some_and(|end| end == "log" || end == "jsonl"))
                .then_some(())
        });
    }
    // A follower ends when its reader closes the pipe.
    let mut left = scratch.ralph("logs --follow").stdout(Stdio::piped()).spawn().unwrap();
    drop(left.stdout.take());
    wait_for("the follower to end", || left.try_wait().unwrap().map(|status| assert!(status.success())));

    go(&scratch, 1);
    go(&scratch, 2);
    assert_eq!(ralph.finish().code, Some(0));
    let (follow, agent) = (follow.finish(), agent.finish());
    assert_eq!((follow.code, agent.code), (Some(0), Some(0)));
    let tags: Vec<&str> = follow.stdout.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(tags, ["[START]", "[END]", "[START]", "[END]", "[DONE]"], "{follow:?}");
    assert!(
        agent.stdout.contains("on it") && agent.stdout.ends_with("■ limit: max iterations reached\n"),
        "{agent:?}"
    );

    let logs = scratch.run("logs");
    assert_eq!(logs.stdout, scratch.read(".ralph/iterations.log"));
    assert!(
        logs.stderr.starts_with("loop 'prompt': ") && logs.stderr.contains("iterations.log\n"),
        "{logs:?}"
    );
    assert!(logs.stderr.ends_with(" 'ralph logs prompt --agent'\n"), "where the transcript is: {logs:?}");
    let last = scratch.run("logs prompt -n 2").stdout;
    assert!(last.starts_with(|first: char| first.is_ascii_digit()) && last.lines().count() == 2, "{last}");
    assert!(last.ends_with("[DONE] loop complete after 2 iterations reason=max_iterations\n"), "{last}");
    assert_eq!(
        scratch.run("logs --follow").stdout,
        scratch.run("logs").stdout,
        "an ended loop is not followed"
    );
    assert!(scratch.run("logs --lines 0").stderr.contains("whole number"));
}

#[test]
fn status_tells_the_fields_and_ls_every_loop() {
    let scratch = Scratch::new();
    let run = scratch.run("status");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stderr.starts_with("no loop in "), "{run:?}");
    assert_eq!(scratch.run("ls").stdout, "no loops on this machine\n");
    assert_eq!(scratch.run("ls --json").stdout, "[]\n");
    let unknown = scratch.run("status nobody");
    assert!(unknown.code == Some(1) && unknown.stderr.contains("nobody"), "{unknown:?}");

    scratch.agent("claude", &claude_says("working"));
    scratch.run("prompt p.md 2 --name mine --done-pattern NEVER --inactivity-timeout 90s --max-cost 5 --max-duration 2h");
    let status = status(&scratch);
    for (key, value) in [
        ("name", "mine".into()),
        ("mode", "prompt".into()),
        ("status", "limit".into()),
        ("current_iteration", 2.into()),
        ("max_iterations", 2.into()),
        ("consecutive_failures", 0.into()),
        ("total_failures", 0.into()),
        ("exit_reason", "max_iterations".into()),
        ("exit_code", 0.into()),
        ("done_pattern", "NEVER".into()),
        ("inactivity_timeout", 90.0.into()),
        ("max_cost_usd", 5.0.into()),
        ("max_tokens", Value::Null),
        ("max_duration", 7200.0.into()),
        ("prompt_file", scratch.path("p.md").canonicalize().unwrap().to_str().unwrap().into()),
        ("input_tokens", 20.into()),
        ("last_error", Value::Null),
        ("pid", Value::Null),
        ("remaining", Value::Null),
    ] {
        assert_eq!(status[key], value, "{key}: {status}");
    }
    assert_eq!(status["iteration_durations"].as_array().unwrap().len(), 2);
    for key in ["started", "ended", "last_iteration_started", "last_iteration_ended"] {
        chrono::DateTime::parse_from_rfc3339(status[key].as_str().unwrap()).unwrap();
    }
    let text = scratch.run("status mine").stdout;
    for line in [
        "Ralph Loop: mine\n",
        "Status: limit\n",
        "Iteration: 2/2 (avg ",
        "Consecutive failures: 0\n",
        "Total failures: 0\n",
        "Inactivity timeout: 90s\n",
        "Done pattern: NEVER\n",
        "Cost: $0.0200\n",
        "Budget: at most $5.00 · 2h\n",
        "Exit reason: max_iterations (exit code 0)\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }

    let other = scratch.path("other");
    fs::create_dir(&other).unwrap();
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(&other).status().unwrap();
    assert!(git.success());
    fs::write(other.join("p.md"), "<promise>COMPLETE</promise>").unwrap();
    let elsewhere = |args: &str| Scratch::finish(scratch.ralph(args).current_dir(&other));
    assert_eq!(elsewhere("prompt p.md 1 --name mine").code, Some(0));
    assert_eq!(elsewhere("prompt p.md 1 --name theirs --ralph-dir .second").code, Some(0));
    assert_eq!(elsewhere("status").stdout.lines().count(), 3, "all loops of that project");
    assert_eq!(elsewhere("status --ralph-dir .second").stdout.lines().count(), 2);
    let names = |run: &Run| -> Vec<String> {
        let loops: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
        loops.iter().map(|found| found["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&scratch.run("ls --json")), ["theirs", "mine", "mine"], "newest first");
    assert_eq!(scratch.run("ls").stdout.lines().count(), 4);
    assert!(scratch.run("status theirs").stdout.contains("Ralph Loop: theirs"), "found on the machine");
    assert_eq!(scratch.run("status mine").code, Some(0), "this project comes first");

    let third = scratch.path("third");
    fs::create_dir(&third).unwrap();
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(&third).status().unwrap();
    assert!(git.success());
    let ambiguous = Scratch::finish(scratch.ralph("status mine").current_dir(&third));
    assert_eq!(ambiguous.code, Some(1));
    assert!(
        ambiguous.stderr.contains("several loops") && ambiguous.stderr.contains("other/.ralph"),
        "{ambiguous:?}"
    );
}

#[test]
fn a_loop_is_found_without_the_registry() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    scratch.run("prompt p.md 1");
    fs::remove_dir_all(scratch.outside().join("home/state")).unwrap();
    assert_eq!(status(&scratch)["status"], "done");
    assert_eq!(scratch.run("status prompt").code, Some(0));
}

#[test]
fn clean_forgets_ended_loops_and_keeps_their_logs() {
    let scratch = Scratch::new();
    assert_eq!(good(&scratch.run("clean")), "nothing to clean\n");
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 1");
    wait_for_attempt(&scratch, 1);
    let run = scratch.run("clean prompt");
    assert!(run.code == Some(1) && run.stderr.contains("is running"), "{run:?}");
    let run = scratch.run("clean --all");
    assert!(run.code == Some(0) && run.stderr.contains("it is left alone"), "{run:?}");
    assert_eq!(status(&scratch)["status"], "running");
    go(&scratch, 1);
    assert_eq!(ralph.finish().code, Some(0));

    assert_eq!(good(&scratch.run("clean")), "cleaned ralph state for prompt\n");
    assert!(!scratch.path(".ralph/state.toml").exists() && !scratch.path(".ralph/requests").exists());
    assert!(scratch.path(".ralph/iterations.log").exists() && !scratch.session_logs().is_empty());
    assert_eq!(scratch.run("ls").stdout, "no loops on this machine\n");
    assert_eq!(scratch.run("clean prompt").code, Some(1));
    assert_eq!(good(&scratch.run("clean --all")), "nothing to clean\n");
}

#[test]
fn a_reader_that_is_gone_is_no_error() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    scratch.run("prompt p.md 1");
    for verb in ["status", "status --json", "ls", "logs", "logs --agent"] {
        let mut child = scratch.ralph(verb).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert!(child.wait().unwrap().success(), "{verb}");
    }
}

#[test]
fn a_loop_whose_project_was_moved_is_not_asked_in_vain() {
    let scratch = Scratch::new();
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 2");
    wait_for_attempt(&scratch, 1);
    // Otherwise it would notice within a second, and end.
    send(ralph.pid(), Signal::STOP);
    let moved = scratch.outside().join("moved");
    fs::rename(scratch.root(), &moved).unwrap();
    let said = format!(
        "looks for requests in {}, from where this project was moved",
        scratch.path(".ralph").display()
    );
    for verb in ["pause", "cancel", "cancel --now", "note x"] {
        let run = Scratch::finish(scratch.ralph(verb).current_dir(&moved));
        assert!(run.code == Some(1) && run.stderr.contains(&said), "{verb}: {run:?}");
        assert_eq!(run.stdout, "", "{verb}");
    }
    let left = fs::read_dir(moved.join(".ralph/requests")).into_iter().flatten().count();
    assert_eq!(left, 0, "nothing waits for the next loop");
    // Follows its advice.
    fs::rename(&moved, scratch.root()).unwrap();
    send(ralph.pid(), Signal::CONT);
    let run = scratch.run("cancel");
    assert!(run.code == Some(0) && run.stdout.starts_with("cancelled"), "{run:?}");
    go(&scratch, 1);
    assert_eq!(ralph.finish().code, Some(0));
}

#[test]
fn a_request_that_an_agent_writes_itself_is_dropped_and_reported() {
    let scratch = Scratch::new();
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt p.md 2");
    wait_for_attempt(&scratch, 1);
    let run = scratch.state()["run"].as_str().unwrap().to_owned();
    let file = ".ralph/requests/20260101T000000000000000-1.json";
    scratch.write(file, format!("{{\"run\":\"{run}\",\"request\":\"cancel\"}}"));
    // Requests are taken in their order, so the loop has seen both.
    assert_eq!(scratch.run("pause").stdout, "paused ralph loop for prompt\n");
    go(&scratch, 1);
    wait_for_status(&scratch, "paused");
    assert_eq!(good(&scratch.run("resume")), "resumed ralph loop for prompt\n");
    go(&scratch, 2);
    let ended = ralph.finish();
    assert_eq!((ended.code, scratch.state()["exit_reason"].as_str()), (Some(0), Some("max_iterations")));
    assert_eq!(ended.stderr.matches("no ralph of this user has signed it").count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("20260101T000000000000000-1.json"), "{ended:?}");
}

/// A loop in its first attempt, where the key lies that signs requests to it, and that key.
fn at_work_with_a_key() -> (Scratch, Started, PathBuf, Vec<u8>) {
    let scratch = Scratch::new();
    patient(&scratch);
    let key = scratch.outside().join("home/state/ralph/user.key");
    let ralph = Started::new(&scratch, "prompt p.md 2");
    wait_for_attempt(&scratch, 1);
    let own = fs::read(&key).unwrap();
    (scratch, ralph, key, own)
}

#[test]
fn a_request_that_the_loop_refuses_is_reported_to_its_sender() {
    let (scratch, ralph, key, own) = at_work_with_a_key();
    fs::write(&key, [7; 32]).unwrap();
    let advice = format!("end it with 'kill {}'", ralph.pid());
    for verb in ["pause", "cancel", "cancel --now", "note x", "resume prompt --max-iterations 3"] {
        let run = scratch.run(verb);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{verb}: {run:?}");
        let said = "loop 'prompt' (process ";
        assert!(run.stderr.contains(said) && run.stderr.contains("has refused this"), "{verb}: {run:?}");
        assert!(run.stderr.contains(&advice) && run.stderr.contains("user.key"), "{verb}: {run:?}");
    }
    let left = fs::read_dir(scratch.path(".ralph/requests")).unwrap().count();
    assert_eq!(left, 0, "what is refused is taken back");
    fs::write(&key, own).unwrap();
    let run = scratch.run("pause");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "paused ralph loop for prompt\n"), "{run:?}");
    assert_eq!(scratch.run("cancel --now").code, Some(0));
    assert_eq!(scratch.state()["exit_reason"].as_str(), Some("cancelled"));
    ralph.finish();
}

#[test]
fn a_key_that_an_agent_removes_is_written_back_and_requests_are_taken() {
    let (scratch, ralph, key, own) = at_work_with_a_key();
    fs::remove_file(&key).unwrap();
    // Asked at once: it waits for the key.
    let run = scratch.run("cancel");
    assert!(run.code == Some(0) && run.stdout.starts_with("cancelled"), "{run:?}");
    assert_eq!(fs::read(&key).unwrap(), own);
    go(&scratch, 1);
    let ended = ralph.finish();
    assert_eq!(scratch.state()["exit_reason"].as_str(), Some("cancelled"), "{ended:?}");
    assert_eq!(ended.stderr.matches("user.key was removed while the loop runs").count(), 1, "{ended:?}");
}

#[test]
fn a_key_that_cannot_be_used_is_reported_and_requests_are_taken_without_it() {
    let scratch = Scratch::new();
    patient(&scratch);
    let key = scratch.outside().join("home/state/ralph/user.key");
    fs::create_dir_all(key.parent().unwrap()).unwrap();
    fs::write(&key, "short").unwrap();
    let ralph = Started::new(&scratch, "prompt p.md 2");
    wait_for_attempt(&scratch, 1);
    assert_eq!(scratch.run("cancel").code, Some(0));
    go(&scratch, 1);
    let ended = ralph.finish();
    assert_eq!(scratch.state()["exit_reason"].as_str(), Some("cancelled"), "{ended:?}");
    assert!(ended.stderr.contains("requests to this loop and its state have no signature"), "{ended:?}");
    assert!(ended.stderr.contains("user.key: it is not the key that ralph has made"), "{ended:?}");
}
