//! The user's own files beside ralph's: nothing that a run of ralph did not make is deleted, emptied or hidden from git.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use crate::scratch::{Run, Scratch, claude_says, finish, wait_for};

/// Files of a project that are called as run-time files of ralph's are.
const ALIKE: [&str; 8] = [
    "lock",
    "state.toml",
    "requests/order.json",
    "requests/20260101T000000000000000000-1.json",
    "logs/mine.log",
    "logs/session-20260101-000000.events.jsonl",
    "iterations.log",
    "last_agent_output",
];

/// Every verb that looks at loops or ends something, on the loop here.
const VERBS: [&str; 9] =
    ["status", "ls", "logs", "logs --agent", "pause", "cancel", "revert", "doctor", "clean"];

/// The content of all of them.
fn contents(scratch: &Scratch, folder: &str) -> Vec<Vec<u8>> {
    ALIKE.iter().map(|name| scratch.bytes(&format!("{folder}/{name}"))).collect()
}

/// A project with such files in `folder`, and the files.
fn with_files_alike(folder: &str) -> (Scratch, Vec<Vec<u8>>) {
    let scratch = Scratch::new();
    fs::remove_dir_all(scratch.path(".ralph")).unwrap();
    for name in ALIKE {
        scratch.write(&format!("{folder}/{name}"), format!("mine: {name}\n"));
    }
    scratch.write("specs/keep", "");
    let files = contents(&scratch, folder);
    (scratch, files)
}

fn run_dir_modes_and_verbs_leave_them(folder: &str, flag: &str) {
    let (scratch, files) = with_files_alike(folder);
    scratch.write(&format!("{folder}/config"), "AGENT_TYPE=codex\n");
    scratch.write(&format!("{folder}/prompts/plan.md"), "Plan <promise>COMPLETE</promise>.");
    scratch.agent("codex", "cat > prompt; touch works; while [ ! -e go ]; do sleep 0.02; done; exit 1");
    for _ in 0..2 {
        let ralph = scratch.start(&format!("plan 1 --max-retries 0{flag}"));
        wait_for("the agent", || scratch.path("works").exists().then_some(()));
        assert_eq!(scratch.run("note remember").code, Some(0));
        scratch.write("go", "");
        let run = finish(ralph);
        assert_eq!(run.code, Some(4), "the config counts: {run:?}");
        assert!(scratch.read("prompt").starts_with("Plan "), "and the prompt: {run:?}");
        fs::remove_file(scratch.path("works")).unwrap();
        fs::remove_file(scratch.path("go")).unwrap();
        assert_eq!(contents(&scratch, folder), files, "{run:?}");
    }
    assert!(scratch.path(folder).join(".ralph/state.toml").exists());
    let loops: serde_json::Value = serde_json::from_str(&scratch.run("ls --json").stdout).unwrap();
    assert_eq!(loops.as_array().unwrap().len(), 1, "{loops}");
    for verb in VERBS {
        let run = scratch.run(&format!("{verb}{}", if verb == "ls" { "" } else { flag }));
        assert_eq!(contents(&scratch, folder), files, "{verb}: {run:?}");
    }
    assert!(!scratch.path(folder).join(".ralph/state.toml").exists(), "that was ours");

    let listed = scratch.git(&["ls-files", "--others", "--exclude-standard"]);
    for name in ALIKE {
        let path = Path::new(folder).join(name);
        let path = path.strip_prefix(".").unwrap_or(&path).display().to_string();
        assert!(listed.lines().any(|line| line == path), "{path} is hidden: {listed}");
    }
    assert!(!listed.contains(".ralph"), "{listed}");
}

#[test]
fn at_the_project_root() {
    run_dir_modes_and_verbs_leave_them(".", "");
}

#[test]
fn in_a_folder_of_theirs() {
    run_dir_modes_and_verbs_leave_them("docs", " --ralph-dir docs");
}

#[test]
fn in_dot_ralph_itself() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    let theirs = ["requests/order.json", "state.toml.mine", "state.toml_old", "notes.md"];
    for name in theirs {
        scratch.write(&format!(".ralph/{name}"), "mine");
    }
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    assert_eq!(scratch.run("clean").code, Some(0));
    for name in theirs {
        assert_eq!(scratch.read(&format!(".ralph/{name}")), "mine");
    }
}

/// What `ralph` answers to a project with FIFOs, which has to come at once.
fn at_once(run: Run) -> Run {
    assert!(run.elapsed < Duration::from_secs(20), "{run:?}");
    run
}

fn fifo(scratch: &Scratch, relative: &str) {
    let _ = fs::remove_file(scratch.path(relative));
    fs::create_dir_all(scratch.path(relative).parent().unwrap()).unwrap();
    assert!(scratch.command("mkfifo").arg(scratch.path(relative)).status().unwrap().success());
}

#[test]
fn fifos_and_devices_in_place_of_what_people_write_are_refused() {
    for (path, args) in [
        (".ralph/config", "plan 1"),
        (".ralph/config", "config"),
        (".ralph/config", "doctor"),
        ("ralph.toml", "plan 1"),
        (".ralph/prompts/plan.md", "plan 1"),
        (".ralph/prompts/plan.md", "doctor"),
        ("q.md", "prompt q.md 1"),
        ("IMPLEMENTATION_PLAN.md", "loop build"),
        ("PROMPT_plan.md", "loop plan"),
        ("fix/RALPH.md", "run fix -n 1"),
    ] {
        let scratch = Scratch::new();
        scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
        fifo(&scratch, path);
        let run = at_once(scratch.run(args));
        let said = run.stderr.clone() + &run.stdout;
        assert!(run.code == Some(1) && said.contains(path), "{path}, {args}: {run:?}");

        fs::remove_file(scratch.path(path)).unwrap();
        symlink("/dev/zero", scratch.path(path)).unwrap();
        let run = at_once(scratch.run(args));
        let said = run.stderr.clone() + &run.stdout;
        assert!(run.code == Some(1) && said.contains(path), "{path}, {args}: {run:?}");
    }
    let scratch = Scratch::new();
    fifo(&scratch, ".ralph/config");
    let run = at_once(scratch.run("init --force"));
    assert!(run.code == Some(1) && run.stderr.contains("a FIFO"), "{run:?}");
}

#[test]
fn git_files_that_are_fifos_do_not_block() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    fifo(&scratch, ".git/info/exclude");
    let run = at_once(scratch.run("prompt p.md 1"));
    assert!(run.stderr.contains("info/exclude: it is a FIFO"), "{run:?}");
}

#[test]
fn links_of_theirs_stay_links_and_keep_their_modes() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    fs::create_dir(scratch.path("shared")).unwrap();
    for name in ["config", "prompts"] {
        symlink(format!("../shared/{name}"), scratch.path(&format!(".ralph/{name}"))).unwrap();
    }
    scratch.write("shared/config", "AGENT_TYPE=claude\n");
    scratch.write("shared/prompts/plan.md", "Plan.");
    scratch.write(".ralph/implementation_plan.md", "- [ ] a task\n");
    fs::set_permissions(scratch.path("shared/config"), fs::Permissions::from_mode(0o664)).unwrap();
    assert_eq!(scratch.run("plan 1").code, Some(0));
    assert_eq!(scratch.run("init --force").code, Some(0));
    let target = fs::metadata(scratch.path("shared/config")).unwrap();
    assert_eq!(target.permissions().mode() & 0o777, 0o664);
    assert!(scratch.read("shared/config").lines().count() > 1 && scratch.path(".ralph/config").is_symlink());
}

#[test]
fn a_config_from_a_stream_that_the_user_names_is_read() {
    let scratch = Scratch::new();
    let ralph = env!("CARGO_BIN_EXE_ralph");
    for line in [
        format!("(sleep 0.3; echo AGENT_TYPE=codex) | '{ralph}' config --config /dev/stdin"),
        format!("'{ralph}' config --config <(sleep 0.3; echo AGENT_TYPE=codex)"),
    ] {
        let run = Scratch::finish(scratch.command("bash").args(["-c", &line]));
        assert!(run.code == Some(0) && run.stdout.contains("codex"), "{line}: {run:?}");
    }
    assert_eq!(scratch.run("config --config /dev/null").code, Some(0));
}
