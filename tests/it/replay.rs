//! `ralph replay`: a run from its events alone, and the decisions of other settings.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use regex::Regex;

use crate::branch_project::{BranchProject, plan};
use crate::run_tasks;
use crate::scratch::{Scratch, claude_says, finish};

/// A project whose agent fails twice at its first iteration, and costs money.
fn failing_first() -> Scratch {
    let scratch = Scratch::new();
    let says = claude_says("on it");
    scratch.agent(
        "claude",
        &format!(
            "cat > /dev/null\necho x >> ../tries\nif [ $(wc -l < ../tries) -lt 3 ]; then exit 7; fi\n{says}"
        ),
    );
    scratch
}

#[test]
fn a_run_is_shown_as_it_was_and_nothing_is_written() {
    let scratch = failing_first();
    let refused = scratch.run("replay");
    assert!(
        refused.code == Some(1) && refused.stderr.contains("a loop has to be started first"),
        "{refused:?}"
    );
    let live = scratch.run("prompt p.md 2");
    assert_eq!(live.code, Some(0), "{live:?}");
    let before = listing(&scratch);
    let again = scratch.run("replay");
    assert_eq!((again.code, &again.stdout, &again.stderr), (Some(0), &live.stdout, &live.stderr));
    assert_eq!(scratch.run("replay prompt").stdout, live.stdout);
    assert_eq!(scratch.run("replay --speed 100000").stdout, live.stdout);
    assert_eq!(listing(&scratch), before);
    for wrong in ["replay --speed 0", "replay --speed -1", "replay --speed fast", "replay nothing"] {
        let refused = scratch.run(wrong);
        assert!(refused.code == Some(1) && refused.stderr.starts_with("error: "), "{refused:?}");
    }
}

#[test]
fn a_speed_keeps_the_time_between_events_and_ctrl_c_ends_it() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("cat > /dev/null\nsleep 1\n{}", claude_says("on it")));
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let began = Instant::now();
    assert_eq!(scratch.run("replay --speed 2").code, Some(0));
    assert!(began.elapsed() >= Duration::from_millis(500), "{:?}", began.elapsed());

    // The attempt lasts for 20 s.
    let mut replay = scratch.start("replay --speed 0.05");
    let mut line = String::new();
    BufReader::new(replay.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    kill_process(Pid::from_child(&replay), Signal::INT).unwrap();
    assert_eq!(finish(replay).code, Some(130), "{line}");
}

/// What real agents have said and done, how it ended, and which program it was.
fn recordings() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let entries = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let streams = entries(&folder).flat_map(|agent| entries(&agent).collect::<Vec<_>>());
    let streams = streams.filter(|path| path.extension().is_some_and(|extension| extension == "ndjson"));
    streams.map(|path| (path.with_extension(""), folder_name(&path))).collect()
}

fn folder_name(path: &Path) -> String {
    path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn every_recording_of_an_agent_is_replayed_as_it_was_shown() {
    let recordings = recordings();
    assert!(recordings.len() > 40, "only {} were found", recordings.len());
    std::thread::scope(|scope| {
        for half in recordings.chunks(recordings.len().div_ceil(2)) {
            scope.spawn(move || half.iter().for_each(|(path, agent)| is_replayed_as_shown(path, agent)));
        }
    });
}

fn is_replayed_as_shown(recording: &Path, agent: &str) {
    let scratch = Scratch::new();
    let file = |extension: &str| recording.with_added_extension(extension);
    let exit: serde_json::Value = serde_json::from_slice(&fs::read(file("exit.json")).unwrap()).unwrap();
    let (stream, stderr) = (file("ndjson"), file("stderr"));
    let complaint = if stderr.exists() { format!("cat {} >&2\n", stderr.display()) } else { String::new() };
    let body = format!("cat > /dev/null\ncat {}\n{complaint}exit {}", stream.display(), exit["exit"]);
    scratch.agent(agent, &body);
    let live = scratch.run(&format!("prompt p.md 1 --max-retries 0 --max-limit-wait 1s --agent {agent}"));
    assert!(live.stdout.contains("ITERATION 1"), "{}: {live:?}", recording.display());
    let again = scratch.run("replay");
    let shown = (&again.stdout, &again.stderr);
    assert_eq!(shown, (&live.stdout, &live.stderr), "{}", recording.display());
    // Its own settings lead to each of its steps.
    scratch.write("own.toml", "[loop]\nmax_iterations = 1\nmax_retries = 0\nmax_limit_wait = \"1s\"\n");
    let same = scratch.run("replay --config own.toml");
    let is_same = same.code == Some(0) && same.stdout.starts_with("the same: ");
    assert!(is_same, "{}: {same:?}", recording.display());
}

#[test]
fn work_that_is_all_done_is_replayed_as_it_was_shown() {
    let scratch = run_tasks::tasks(run_tasks::GOOD);
    run_tasks::add(&scratch, "first");
    let live = scratch.run("run --all");
    assert!(live.stderr.contains("all tasks are done"), "{live:?}");
    let again = scratch.run("replay");
    // With which model it begins is said before the run.
    let (before, shown) = live.stderr.split_once('\n').unwrap();
    assert!(before.starts_with("begins with "), "{live:?}");
    assert_eq!((&*again.stdout, &*again.stderr), (&*live.stdout, shown));
}

fn listing(scratch: &Scratch) -> Vec<String> {
    let mut folders = vec![scratch.path(".ralph")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.metadata().unwrap());
            if kind.is_dir() {
                folders.push(path.clone());
            }
            found.push(format!("{} {:?}", path.display(), kind.modified().unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn other_settings_are_told_where_they_lead_to_another_step() {
    let scratch = failing_first();
    assert_eq!(scratch.run("prompt p.md 2 --max-retries 3").code, Some(0));
    let compared = |config: &str, text: &str| {
        scratch.write(config, text);
        let run = scratch.run(&format!("replay --config {config}"));
        (run.code, run.stdout)
    };
    let (code, told) = compared("own.toml", "[loop]\nmax_retries = 3\nmax_iterations = 2\n");
    assert!(code == Some(0) && told.starts_with("the same: "), "{told}");
    let (code, told) = compared("once.toml", "[loop]\nmax_retries = 1\n");
    assert_eq!((code, &*told), (Some(3), "iteration 1: retry → stop, agent failure exceeded retries\n"));
    let (code, told) = compared("config.sh", "MAX_RETRIES=0\nSTOP_ON_ERROR=false\n");
    assert_eq!(
        (code, &*told),
        (Some(3), "iteration 1: retry → next iteration\niteration 1: retry → next iteration\n")
    );
    let (code, told) = compared("more.toml", "[loop]\nmax_iterations = 5\n");
    assert_eq!((code, &*told), (Some(3), "iteration 2: stop, max iterations reached → next iteration\n"));
    let (code, told) = compared("less.toml", "[loop]\nmax_iterations = 1\n");
    assert_eq!((code, &*told), (Some(3), "iteration 1: next iteration → stop, max iterations reached\n"));
    let (code, _) = compared("wrong.toml", "[loop]\nmax_retries = \"many\"\n");
    assert_eq!(code, Some(1));
    assert_eq!(scratch.run("replay --config nowhere.toml").code, Some(1));
    scratch.write("near.sh", "MAX_RETRYS=1\n");
    let near = scratch.run("replay --config near.sh");
    assert!(near.code == Some(0) && near.stderr.contains("MAX_RETRYS is no setting"), "{near:?}");
}

#[test]
fn a_step_that_the_limits_of_the_run_do_not_explain_is_no_difference_of_the_settings() {
    let scratch = failing_first();
    assert_eq!(scratch.run("prompt p.md 2 --max-retries 3").code, Some(0));
    let run = fs::read_dir(scratch.path(".ralph/runs")).unwrap().next().unwrap().unwrap().path();
    let log = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.to_string_lossy().ends_with(".events.jsonl")).unwrap();
    let text = fs::read_to_string(&log).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let other = first.replace("\"max_retries\":3", "\"max_retries\":1");
    assert_ne!(other, first);
    fs::write(&log, format!("{other}\n{rest}")).unwrap();

    scratch.write("one.toml", "[loop]\nmax_retries = 1\n");
    let same = scratch.run("replay --config one.toml");
    let unexplained = "iteration 1: retry, which the limits of the run do not explain: not compared";
    assert!(same.code == Some(0) && same.stdout.starts_with(unexplained), "{same:?}");
    assert!(same.stdout.contains("\nthe same: "), "{same:?}");
    scratch.write("none.toml", "[loop]\nmax_retries = 0\n");
    let other = scratch.run("replay --config none.toml");
    assert_eq!(
        (other.code, &*other.stdout),
        (Some(3), "iteration 1: retry → stop, agent failure, not retried\n")
    );
}

#[test]
fn what_other_branches_have_spent_counts_for_the_budget_of_other_settings() {
    let project = BranchProject::without_remote(&plan(&[("a", 2), ("b", 2)]));
    let scratch = &project.scratch;
    assert_eq!(scratch.run("loop build --sequential --max-tokens 1000").code, Some(0));
    // Fifteen tokens each: no branch uses up this budget alone.
    scratch.write("less.toml", "[loop]\nmax_tokens = 45\n");
    for (args, told) in [("replay --config", "b: iteration 1"), ("replay b --config", "iteration 1")] {
        let run = scratch.run(&format!("{args} less.toml"));
        let expected = format!("{told}: next iteration → stop, budget reached\n");
        assert_eq!((run.code, run.stdout), (Some(3), expected));
    }
    let first = scratch.run("replay a --config less.toml");
    assert!(first.code == Some(0) && first.stdout.starts_with("the same: "), "{first:?}");
}

#[test]
fn all_branches_of_a_build_are_shown() {
    let project = BranchProject::without_remote(&plan(&[("one", 2), ("two", 1)]));
    let scratch = &project.scratch;
    assert_eq!(scratch.run("loop build -m 3").code, Some(0));
    let again = scratch.run("replay");
    assert_eq!(again.code, Some(0), "{again:?}");
    for said in ["one │ {} ▶ Iteration 1 of 3", "two │ {} ▶ Iteration 1 of 3", "one │ {} ■ ", "two │ {} ■ "]
    {
        let said = Regex::new(&said.replace("{}", r"\d\d:\d\d:\d\d")).unwrap();
        assert!(said.is_match(&again.stdout), "{said}: {again:?}");
    }
    let one = scratch.run("replay one");
    assert!(one.stdout.contains("one │ ") && !one.stdout.contains("two │ "), "{one:?}");
}

#[test]
fn foreign_bytes_in_a_log_are_passed_over_and_long_runs_are_replayed() {
    let scratch = failing_first();
    assert_eq!(scratch.run("prompt p.md 2").code, Some(0));
    let run = fs::read_dir(scratch.path(".ralph/runs")).unwrap().next().unwrap().unwrap().path();
    let log = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.to_string_lossy().ends_with(".events.jsonl")).unwrap();
    let text = fs::read_to_string(&log).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut foreign = format!("{first}\n").into_bytes();
    foreign.extend(b"\xff\xfe\n{\"v\":1}\n[]\n\0\0\0\n");
    let hostile = first.replace(
        "\"event\":\"loop_started\"",
        "\"event\":\"text\",\"text\":\"\\u001b]0;owned\\u0007\\u001b[2Jsaid\"",
    );
    foreign.extend(hostile.bytes().chain([b'\n']));
    for number in 1..=10_000 {
        let lines = rest.lines().filter(|line| line.contains("\"iteration\":2,"));
        for line in lines {
            foreign.extend(
                line.replace("\"iteration\":2,", &format!("\"iteration\":{number},")).bytes().chain([b'\n']),
            );
        }
    }
    foreign.extend(b"{\"agent\":\"cl");
    fs::write(&log, foreign).unwrap();
    let again = scratch.run("replay");
    assert!(again.code == Some(0) && again.stdout.contains("10000"), "{again:?}");
    assert!(!again.stderr.contains('\x1b') && again.stderr.contains("said"), "{}", again.stderr);
}
