//! A loop that was killed between writing its events log and its state: the log counts.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::policies::{agent, attempts, project};
use crate::scratch::{Run, Scratch, finish, wait_for};
use crate::workers::Tmux;

/// Keeps copies of the state and the log while the agent of the second iteration works, as if its end had not been
/// written.
const KEEPS: &str = "[ $n = 2 ] && cp .ralph/state.toml ../state; say hi; ok";

fn log(scratch: &Scratch) -> PathBuf {
    let log = scratch.session_logs().pop().unwrap();
    log.canonicalize().unwrap().with_extension("events.jsonl")
}

/// Cuts an events log in the line after the end of the second attempt.
fn cut(log: &Path) {
    let events = fs::read_to_string(log).unwrap();
    let ended = events.match_indices(r#""event":"attempt_ended""#).nth(1).unwrap().0;
    let end = ended + events[ended..].find('\n').unwrap() + 1;
    fs::write(log, &events[..end + 40]).unwrap();
}

/// A loop that was killed when the end of its second attempt was only in its log.
fn cut_off() -> Scratch {
    let scratch = project(KEEPS);
    assert_eq!(scratch.run("prompt p.md 5").code, Some(0));
    cut(&log(&scratch));
    let state = fs::read_to_string(crate::policies::beside(&scratch, "state")).unwrap();
    assert!(state.contains("iteration = 2\n") && state.contains("in_attempt = true\n"), "{state}");
    scratch.write(".ralph/state.toml", state);
    let steps = scratch.read(".ralph/iterations.log");
    let end = steps.find(" [END] iteration 2 ").unwrap() - "2026-11-23T12:00:00".len();
    scratch.write(".ralph/iterations.log", &steps[..end]);
    fs::write(crate::policies::beside(&scratch, "attempts"), "\n\n").unwrap();
    agent(&scratch, "say hi; ok");
    scratch
}

fn started(scratch: &Scratch) -> Vec<u64> {
    let events = fs::read_to_string(log(scratch)).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    events
        .filter(|event| event["event"] == "attempt_started")
        .filter_map(|event| event["iteration"].as_u64())
        .collect()
}

/// Goes on, and ends after five iterations in all.
fn goes_on(scratch: &Scratch, told: &str) -> Run {
    let run = scratch.run("resume");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains(told), "{told}: {run:?}");
    assert_eq!((attempts(scratch), started(scratch)), (5, vec![3, 4, 5]), "{run:?}");
    let state = scratch.state();
    assert_eq!((state["succeeded"].as_integer(), state["iteration"].as_integer()), (Some(5), Some(5)));
    assert_eq!(format!("{:.2}", state["cost_usd"].as_float().unwrap()), "0.10");
    let steps = scratch.read(".ralph/iterations.log");
    for iteration in 1..=5 {
        assert_eq!(steps.matches(&format!(" [END] iteration {iteration} exit=0 ")).count(), 1, "{steps}");
    }
    run
}

const TOLD: &str = "! the last run was cut off: 1 attempt that it had not booked is counted ($0.02)";

#[test]
fn an_attempt_that_had_ended_is_counted_and_not_run_again() {
    let scratch = cut_off();
    let doctor = scratch.run("doctor").stdout;
    assert!(doctor.contains("the state of loop 'prompt' lacks 1 attempt of its events log"), "{doctor}");
    // The agent sees its own identity.
    fs::write(crate::policies::beside(&scratch, "attempts"), "\n\n").unwrap();
    // Readers count it, too.
    let status = scratch.run("status --json").stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let found = status.to_string();
    assert!(found.contains(r#""attempts":2"#), "{found}");
    goes_on(&scratch, TOLD);
    let events = fs::read_to_string(log(&scratch)).unwrap();
    assert!(events.contains(r#""event":"recovered","attempts":1,"cost_usd":0.02,"from":"#), "{events}");
    // It is reported once.
    let run = scratch.run("prompt p.md 1 --resume");
    assert!(run.code == Some(0) && !run.stderr.contains("cut off"), "{run:?}");
}

#[test]
fn an_end_that_only_the_log_has_is_an_end() {
    let scratch = project(KEEPS);
    assert_eq!(scratch.run("prompt p.md 5").code, Some(0));
    scratch.write(".ralph/state.toml", fs::read(crate::policies::beside(&scratch, "state")).unwrap());
    let run = scratch.run("resume");
    assert!(run.code == Some(1) && run.stderr.contains("has come to its end (limit)"), "{run:?}");
    assert_eq!(attempts(&scratch), 5);
}

#[test]
fn a_log_that_has_lost_attempts_in_a_power_cut_hides_none_from_reports() {
    let scratch = project("say hi; ok");
    assert_eq!(scratch.run("prompt p.md 5").code, Some(0));
    let (log, whole) = (log(&scratch), fs::read_to_string(log(&scratch)).unwrap());
    let second = whole.match_indices(r#""event":"attempt_ended""#).nth(1).unwrap().0;
    for lost in [&whole[..second], "", "\0\0\0"] {
        fs::write(&log, lost).unwrap();
        let report = scratch.run("report --json").stdout;
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let one = &report["loops"][0];
        assert_eq!(
            (&one["iterations"], &one["attempts"], &one["end"]),
            (&5.into(), &5.into(), &"limit".into())
        );
        assert_eq!(format!("{:.2}", one["cost_usd"].as_f64().unwrap()), "0.10", "{one}");
    }
}

#[test]
fn a_state_that_is_lost_is_made_anew_from_the_log() {
    for content in [Some(""), Some("version = 1\nrun = \"x"), Some("\0\0\0\0\0\0"), None] {
        let scratch = cut_off();
        match content {
            Some(content) => scratch.write(".ralph/state.toml", content),
            None => fs::remove_file(scratch.path(".ralph/state.toml")).unwrap(),
        }
        let run = scratch.run("status");
        assert!(run.code == Some(0) && run.stdout.contains("killed"), "{content:?}: {run:?}");
        goes_on(&scratch, "2 attempts that it had not booked are counted ($0.04)");
    }
    // A forgotten loop stays forgotten.
    let scratch = cut_off();
    assert_eq!(scratch.run("clean prompt").code, Some(0));
    let run = scratch.run("resume");
    assert!(run.code == Some(1) && run.stderr.contains("nothing to resume"), "{run:?}");
    // The state of a newer ralph cannot be replaced.
    let scratch = cut_off();
    scratch.write(".ralph/state.toml", "version = 99\n");
    let run = scratch.run("resume");
    assert!(run.code == Some(1) && run.stderr.contains("newer ralph"), "{run:?}");
}

#[test]
fn a_power_cut_that_takes_state_and_log_leaves_what_was_started() {
    for lose in [|log: &Path| fs::write(log, "").unwrap(), |log: &Path| fs::remove_file(log).unwrap()] {
        let scratch = cut_off();
        lose(&log(&scratch));
        scratch.write(".ralph/state.toml", "");
        let run = scratch.run("status");
        assert!(run.code == Some(0) && run.stdout.contains("killed"), "{run:?}");
        let run = scratch.run("resume");
        assert_eq!(run.code, Some(0), "{run:?}");
        // All five of its command line: the two before are unknown.
        assert_eq!((attempts(&scratch), started(&scratch)), (7, vec![1, 2, 3, 4, 5]), "{run:?}");
    }
}

#[test]
fn a_loop_that_is_cancelled_after_a_cut_has_all_its_steps() {
    let scratch = cut_off();
    let run = scratch.run("cancel");
    assert!(run.code == Some(0) && run.stdout == "prompt: cancelled (was at iteration 2)\n", "{run:?}");
    assert!(run.stderr.contains(TOLD.trim_start_matches("! ")), "{run:?}");
    let steps = scratch.read(".ralph/iterations.log");
    let steps: Vec<&str> =
        steps.lines().filter_map(|line| line.split_once(' ')).map(|(_, step)| step).collect();
    let [.., second, third, end] = steps.as_slice() else { panic!("{steps:?}") };
    assert!(second.starts_with("[START] iteration 2/"), "{steps:?}");
    assert!(third.starts_with("[END] iteration 2 exit=0 "), "{steps:?}");
    assert!(end.starts_with("[DONE] loop complete after 2 iterations reason=cancelled"), "{steps:?}");
}

#[test]
fn a_loop_killed_anywhere_counts_each_attempt_once() {
    let scratch = project("say hi; ok");
    for round in 0..6 {
        let mut child = scratch.start(if round == 0 { "prompt p.md 400" } else { "resume" });
        let enough = 4 * (round + 1);
        wait_for("attempts", || (attempts(&scratch) >= enough).then_some(()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut child = scratch.start("resume");
    let more = attempts(&scratch) + 1;
    wait_for("another attempt", || (attempts(&scratch) >= more).then_some(()));
    assert_eq!(scratch.run("cancel --now").code, Some(0));
    child.wait().unwrap();
    let mut ended = Vec::new();
    for log in scratch.session_logs() {
        let events = fs::read_to_string(log.canonicalize().unwrap().with_extension("events.jsonl")).unwrap();
        let whole = events.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let good = whole.filter(|event| event["event"] == "attempt_ended" && event["status"] == "success");
        ended.extend(good.filter_map(|event| event["iteration"].as_u64()));
    }
    let state = scratch.state();
    assert_eq!(ended, (1..=ended.len() as u64).collect::<Vec<_>>());
    assert_eq!(state["succeeded"].as_integer(), i64::try_from(ended.len()).ok());
}

#[test]
fn what_killed_processes_have_left_of_writing_goes_at_the_next_start() {
    let scratch = project("complete");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let dead = format!(".ralph-{}-{}-aBc123.tmp", &boot[..8], gone.id());
    let living = format!(".ralph-{}-{}-aBc123.tmp", &boot[..8], std::process::id());
    let folders = [".ralph", ".ralph/knowledge", ".ralph/features/x", ".git", ".git/info", "."];
    for folder in folders {
        for name in [&*dead, ".ralph-0123abcd-1-x.tmp", &living, "state.toml.x1y2z3.tmp", ".ralph-mine.tmp"] {
            scratch.write(&format!("{folder}/{name}"), "");
        }
    }
    for name in [&dead, &living] {
        scratch.write(&format!(".git/index{name}/files/x"), "");
    }
    let doctor = scratch.run("doctor").stdout;
    assert!(doctor.contains("13 temporary files of processes that were killed"), "{doctor}");
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let is_there = |name: &str| scratch.path(&format!(".git/index{name}/files/x")).exists();
    assert!(!is_there(&dead) && is_there(&living));
    for folder in folders {
        let is_there = |name: &str| scratch.path(folder).join(name).exists();
        assert!(!is_there(&dead) && !is_there(".ralph-0123abcd-1-x.tmp"), "{folder}");
        assert!(
            is_there(&living) && is_there("state.toml.x1y2z3.tmp") && is_there(".ralph-mine.tmp"),
            "{folder}"
        );
    }
    // No agent commits them.
    let shown = scratch.git(&["status", "--porcelain"]);
    assert!(!shown.contains(&living) && shown.contains(".ralph-mine.tmp"), "{shown}");
}

#[test]
fn a_torn_line_of_the_iterations_log_is_ended() {
    let scratch = project("complete");
    scratch.write(".ralph/iterations.log", "2026-11-23T12:00:00 [END] it");
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let log = scratch.read(".ralph/iterations.log");
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("2026-11-23T12:00:00 [END] it"));
    assert!(lines.next().is_some_and(|line| line.contains(" [START] iteration 1/1")), "{log}");
}

#[test]
fn an_unheld_git_lock_of_an_ended_agent_is_removed() {
    let lock = |scratch: &Scratch, name: &str| scratch.path(&format!(".git/{name}.lock"));
    let scratch = project("touch .git/HEAD.lock; say hi; ok");
    // A user's lock from before.
    scratch.write(".git/index.lock", "");
    fs::File::options()
        .write(true)
        .open(lock(&scratch, "index"))
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    assert!(lock(&scratch, "HEAD").exists());
    agent(&scratch, "say hi; ok");
    // An open lock is in use.
    let open = fs::File::open(lock(&scratch, "HEAD")).unwrap();
    let run = scratch.run("prompt p.md 1 --resume");
    assert!(run.code == Some(0) && !run.stderr.contains("removed .git"), "{run:?}");
    assert!(lock(&scratch, "HEAD").exists());
    drop(open);

    let scratch = project("touch .git/HEAD.lock; say hi; ok");
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    // A git of the user's, which may have closed its lock while it waits for an editor.
    let mut git = scratch.command("git");
    git.args(["-c", "alias.wait=!sleep 600", "wait"]).process_group(0);
    let mut git = git.spawn().unwrap();
    wait_for("git", || {
        fs::read(format!("/proc/{}/cmdline", git.id()))
            .is_ok_and(|line| line.starts_with(b"git"))
            .then_some(())
    });
    agent(&scratch, "touch .git/HEAD.lock; say hi; ok");
    let run = scratch.run("prompt p.md 1");
    assert!(run.code == Some(0) && lock(&scratch, "HEAD").exists(), "{run:?}");
    kill_process_group(Pid::from_child(&git), Signal::KILL).unwrap();
    git.wait().unwrap();
    let doctor = scratch.run("doctor").stdout;
    assert!(
        doctor.contains(".git/HEAD.lock: an agent that was ended inside of git left this lock"),
        "{doctor}"
    );
    agent(&scratch, "git commit --quiet --allow-empty --message more; complete");
    let run = scratch.run("prompt p.md 1");
    let told = "removed .git/HEAD.lock: an agent that was ended inside of git left this lock, and no process holds it";
    assert!(run.code == Some(0) && run.stderr.contains(told), "{run:?}");
    assert!(scratch.git(&["log", "--format=%s"]).starts_with("more\n"));

    // No later start removes the lock of a loop that is forgotten.
    agent(&scratch, "touch .git/packed-refs.lock; say hi; ok");
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let run = scratch.run("clean");
    assert!(run.code == Some(0) && run.stdout.contains("removed .git/packed-refs.lock: "), "{run:?}");
    assert!(!lock(&scratch, "packed-refs").exists());
}

#[test]
fn a_start_that_was_cut_off_before_it_began_leaves_the_loop_before_it() {
    let scratch = cut_off();
    // It has entered itself in the user's list of loops, and nothing else.
    let state = scratch.read(".ralph/state.toml");
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    scratch.write(".ralph/state.toml", state);
    let run = scratch.run("resume");
    assert!(run.code == Some(0) && run.stderr.contains("resuming after iteration 2"), "{run:?}");
}

#[test]
fn an_iteration_of_a_worker_that_had_ended_stands_once() {
    let tmux = Tmux::new();
    let plays = "exit 0,silent 2; exit 0,exit 0,exit 0";
    let ralph = tmux.start(plays, "-n 3");
    let state = tmux.folder().join("state.json");
    let behind = wait_for("the second attempt", || {
        let read: serde_json::Value = serde_json::from_slice(&fs::read(&state).ok()?).ok()?;
        (read["current_iteration"] == 2 && read["loop"]["in_attempt"] == true).then_some(read)
    });
    assert_eq!(finish(ralph).code, Some(0));
    let steps = tmux.log();
    let session = PathBuf::from(behind["loop"]["session_log"].as_str().unwrap());
    cut(&session.with_extension("events.jsonl"));
    fs::write(&state, behind.to_string()).unwrap();
    let iterations = tmux.folder().join("iterations.log");
    let kept = fs::read_to_string(&iterations).unwrap();
    let end = kept.match_indices('\n').nth(3).unwrap().0;
    fs::write(&iterations, &kept[..=end]).unwrap();
    let run = finish(tmux.ralph("resume w").env("RALPH_SCRIPT_PLAY", plays).spawn().unwrap());
    assert!(
        run.code == Some(0) && run.stderr.contains("1 attempt that it had not booked is counted"),
        "{run:?}"
    );
    let words = |steps: &[String]| -> Vec<String> {
        steps.iter().map(|step| step.split(" exit=").next().unwrap().to_owned()).collect()
    };
    assert_eq!(words(&tmux.log()), words(&steps));
}

#[test]
fn a_state_of_a_worker_that_is_lost_is_made_anew_from_the_log() {
    for content in [Some(""), Some("{\"version\": 1, \"worker_n"), Some("\0\0\0\0\0\0"), None] {
        let tmux = Tmux::new();
        let mut ralph = tmux.start("spin 1000", "-n 3 --inactivity-timeout 30");
        tmux.wait_for_screen("Do the thing");
        wait_for("the prompt", || {
            let pane = fs::read_to_string(tmux.folder().join("pane.json")).unwrap_or_default();
            pane.contains("yes").then_some(())
        });
        let (state, before) = (tmux.folder().join("state.json"), tmux.state());
        ralph.kill().unwrap();
        ralph.wait().unwrap();
        match content {
            Some(content) => fs::write(&state, content).unwrap(),
            None => fs::remove_file(&state).unwrap(),
        }
        let listed = tmux.run("ls").stdout;
        let is_known = |line: &str| line.starts_with("w ") && !line.contains("unknown");
        assert!(listed.lines().any(is_known), "{content:?}: {listed}");
        let ralph = tmux.ralph("run w").spawn().unwrap();
        wait_for("a monitor", || {
            let is_written =
                serde_json::from_str::<serde_json::Value>(&fs::read_to_string(&state).ok()?).is_ok();
            let is_running = || tmux.run("status w --json").stdout.contains("\"status\":\"running\"");
            (is_written && is_running()).then_some(())
        });
        // The rest of what the worker was set up with is there again as well.
        let anew = tmux.state();
        for key in ["prompt_file", "max_iterations", "current_iteration", "inactivity_timeout"] {
            assert_eq!(anew[key], before[key], "{content:?}: {key}");
        }
        let worker = |state: &serde_json::Value| state["loop"]["worker"].as_object().unwrap().clone();
        assert_eq!(worker(&anew), worker(&before), "{content:?}");
        assert_eq!(tmux.run("cancel --now w").code, Some(0));
        let run = finish(ralph);
        assert!(run.stderr.contains("resumed in the middle of its iteration"), "{content:?}: {run:?}");
        tmux.assert_nothing_left();
    }
    // Without its logs, nothing is known of it: the message says what to do.
    let tmux = Tmux::new();
    assert_eq!(tmux.spawn("exit 0", "-n 1").code, Some(0));
    fs::remove_dir_all(tmux.scratch.path(".ralph/runs")).unwrap();
    fs::write(tmux.folder().join("state.json"), "").unwrap();
    let run = tmux.run("run w");
    let advice = "start it anew with 'ralph spawn --replace --name w'";
    assert!(run.code == Some(1) && run.stderr.contains(advice), "{run:?}");
    assert_eq!(tmux.spawn("exit 0", "-n 1 --replace").code, Some(0));
}

#[test]
fn a_worker_whose_pane_is_not_known_any_more_goes_on() {
    for content in ["", "{\"window\": {\"server", "\0\0\0\0\0\0"] {
        let tmux = Tmux::new();
        let plays = "spin 1000,exit 0,exit 0";
        let mut ralph = tmux.start(plays, "-n 2");
        tmux.wait_for_screen("Do the thing");
        ralph.kill().unwrap();
        ralph.wait().unwrap();
        fs::write(tmux.folder().join("pane.json"), content).unwrap();
        let run = finish(tmux.ralph("resume w").env("RALPH_SCRIPT_PLAY", plays).spawn().unwrap());
        assert_eq!(run.code, Some(0), "{content:?}: {run:?}");
        tmux.assert_nothing_left();
    }
}

#[test]
fn a_power_cut_that_takes_state_and_log_of_a_worker_leaves_what_was_started() {
    let tmux = Tmux::new();
    let mut ralph = tmux.start("exit 0,spin 1000", "-n 3");
    wait_for("the second attempt", || tmux.log().contains(&"[START] iteration 2/3".to_owned()).then_some(()));
    ralph.kill().unwrap();
    ralph.wait().unwrap();
    tmux.tmux(&["kill-server"]);
    let log = log(&tmux.scratch);
    for path in [log, tmux.folder().join("state.json"), tmux.folder().join("pane.json")] {
        fs::write(path, "").unwrap();
    }
    let plays = ["exit 0"; 5].join(",");
    let run = finish(tmux.ralph("resume w").env("RALPH_SCRIPT_PLAY", plays).spawn().unwrap());
    assert_eq!(run.code, Some(0), "{run:?}");
    // All three: the one before is unknown.
    assert_eq!(tmux.state()["current_iteration"], 3);
    tmux.assert_nothing_left();
}

#[test]
fn what_a_worker_left_of_writing_in_its_project_goes_at_its_next_start() {
    let tmux = Tmux::new();
    assert_eq!(tmux.spawn("exit 0", "-n 1").code, Some(0));
    let left = tmux.scratch.path(".ralph/.ralph-0123abcd-1-x.tmp");
    fs::write(&left, "").unwrap();
    assert_eq!(tmux.spawn("exit 0", "-n 1 --replace").code, Some(0));
    assert!(!left.exists());
}
