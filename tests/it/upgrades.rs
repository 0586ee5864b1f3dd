//! The program file of ralph is replaced while it works, as a package manager does that, and files of other releases are met.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run_tasks::{add, tasks};
use crate::scratch::{Scratch, agent_on_screen, claude_says, executable, finish, wait_for};
use crate::workers::Tmux;

/// A ralph that is installed for this project alone.
fn install(scratch: &Scratch) -> PathBuf {
    let installed = scratch.outside().join("installed/ralph");
    fs::create_dir(installed.parent().unwrap()).unwrap();
    // By another program: one that we had open to write could not be started while a thread of ours forks.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_ralph")).arg(&installed).status().unwrap();
    assert!(copied.success());
    installed
}

/// Puts a program in its place that only fails.
fn replace(installed: &Path) {
    let other = installed.with_extension("new");
    executable(&other, "#!/bin/sh\nexit 9\n");
    fs::rename(other, installed).unwrap();
}

#[test]
fn an_agent_reaches_the_graph_with_a_ralph_that_was_replaced() {
    let body = r#"
prompt=$(cat)
touch begun; until [ -e go ]; do sleep 0.01; done
eval "$(grep -o -m1 '[^ `]*/ralph.* task add' <<<"$prompt") second" >&2
say "<task-done>$(sed -n 's/^## Your task: //p' <<<"$prompt")</task-done>"; result"#;
    for walls in ["off", "on"] {
        let scratch = Scratch::new();
        scratch.agent("claude", body);
        add(&scratch, "first");
        let installed = install(&scratch);
        let mut run = scratch.command(&installed);
        run.args(["run", "--all", "--once", "--no-verify", "--sandbox", walls]);
        let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("the attempt", || scratch.path("begun").exists().then_some(()));
        replace(&installed);
        scratch.write("go", "");
        let run = finish(run);
        assert_eq!(run.code, Some(0), "{run:?}");
        let tree = scratch.run("task tree").stdout;
        assert!(tree.contains("✓") && tree.contains("second"), "{walls}: {tree}\n{run:?}");
    }
}

#[test]
fn a_program_file_that_cannot_be_kept_is_told() {
    let scratch = tasks("work; done_");
    add(&scratch, "first");
    let folder = scratch.home().join("state/ralph/programs");
    fs::write(&folder, "").unwrap();
    let run = scratch.run("run --all --no-verify");
    assert_eq!(run.code, Some(0), "{run:?}");
    let told = format!("cannot be kept in {}: ", folder.display());
    assert!(run.stderr.contains(&told) && run.stderr.contains("do not replace or remove it"), "{run:?}");
}

#[test]
fn a_worker_goes_on_with_a_ralph_that_was_replaced() {
    let tmux = Tmux::new();
    let installed = install(&tmux.scratch);
    let mut worker = tmux.scratch.command(&installed);
    worker
        .args(["spawn", "--name", "w", "--prompt-file", "prompt.md", "-n", "2", "--"])
        .args(agent_on_screen());
    worker.env("RALPH_TMUX_SOCKET", tmux.socket()).stdout(Stdio::piped()).stderr(Stdio::piped());
    worker.env("RALPH_SCRIPT_PLAY", "keep first; spin until go; exit 0,keep second; exit 0");
    let worker = worker.spawn().unwrap();
    wait_for("the first attempt", || tmux.scratch.path("first").exists().then_some(()));
    replace(&installed);
    tmux.scratch.write("go", "");
    let run = finish(worker);
    assert_eq!((run.code, tmux.scratch.path("second").exists()), (Some(0), true), "{run:?}");
    tmux.assert_nothing_left();
}

/// What `scripts/keep-release` has kept, unpacked where it was made, in a mount namespace of the test. Prints what ralph says to each
/// line of its input, between marks.
const UNPACKED: &str = r#"set -eu
mount -t tmpfs tmpfs /mnt
tar -xz --no-same-owner -f "$1" -C /mnt
mkdir -p /mnt/kept/bin && ln -s "$2" /mnt/kept/bin/ralph
export HOME=/mnt/kept/home XDG_STATE_HOME=/mnt/kept/home/state XDG_CONFIG_HOME=/mnt/kept/home/config
export PATH=/mnt/kept/bin:$PATH RALPH_TMUX_SOCKET=kept
while read -r folder line; do
    cd "/mnt/kept/$folder"
    code=0
    eval "$line" 2>&1 </dev/null || code=$?
    echo "== $code"
done"#;

/// Runs lines in the folders of what a release has left; each with its exit code, and what it has said.
fn in_files_of(release: &Path, lines: &[&str]) -> Vec<(i32, String)> {
    let scratch = Scratch::new();
    let mut inside = scratch.container();
    inside.args(["bash", "-c", UNPACKED, "bash"]).arg(release).arg(env!("CARGO_BIN_EXE_ralph"));
    let input = scratch.outside().join("lines");
    fs::write(&input, lines.join("\n") + "\n").unwrap();
    let run = Scratch::finish(inside.stdin(fs::File::open(input).unwrap()));
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut said = Vec::new();
    let mut rest = &*run.stdout;
    for line in lines {
        let (text, after) = rest.split_once("== ").unwrap_or_else(|| panic!("{line}: {run:?}"));
        let (code, after) = after.split_once('\n').unwrap();
        said.push((code.parse().unwrap(), text.to_owned()));
        rest = after;
    }
    said
}

/// All that was kept, oldest first.
fn releases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/releases");
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

#[test]
fn files_of_each_release_are_read_resumed_reported_and_cleaned() {
    for release in releases() {
        let steps: &[(&str, i32, &[&str])] = &[
            ("demo ralph status", 0, &["build", "done"]),
            ("demo ralph report", 0, &["weather", "failed", "count", "done"]),
            ("demo ralph history", 0, &["plan", "build", "loop build"]),
            ("demo ralph logs build", 0, &["loop complete after 4 iterations"]),
            ("tasks ralph task list --all", 0, &["done", "Say good-bye"]),
            ("tasks ralph feature list", 0, &["greeting"]),
            ("tasks ralph report", 0, &["done"]),
            ("tasks ralph run greeting", 0, &["all tasks are done"]),
            ("project ralph config", 0, &["loop.max_retries"]),
            ("project ralph ls", 0, &["helper", "killed"]),
            ("project ralph status", 0, &["killed"]),
            ("project ralph status helper", 0, &["helper"]),
            ("project ralph resume", 0, &["completion signal detected"]),
            ("project ralph report", 0, &["done"]),
            ("project ralph clean --all", 0, &[]),
            ("project ralph ls", 0, &[]),
        ];
        let lines: Vec<&str> = steps.iter().map(|(line, ..)| *line).collect();
        for ((line, code, words), said) in steps.iter().zip(in_files_of(&release, &lines)) {
            let is_as_it_should = said.0 == *code && words.iter().all(|word| said.1.contains(word));
            assert!(is_as_it_should, "{}: {line}: {}\n{}", release.display(), said.0, said.1);
            for bad in ["damaged", "set aside", "newer ralph", "no signature", "cannot be read", "dropped"] {
                assert!(!said.1.contains(bad), "{}: {line}: {}", release.display(), said.1);
            }
            let is_cleaned = *line != "project ralph ls" || !words.is_empty() || !said.1.contains("helper");
            assert!(is_cleaned, "{}", said.1);
        }
    }
}

#[test]
fn files_of_a_newer_release_are_told_and_left_as_they_are() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("more"));
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let state = scratch.read(".ralph/state.toml");
    let own = format!("ralph = \"{}\"\n", env!("CARGO_PKG_VERSION"));
    assert!(state.contains(&own), "{state}");
    let newer = state.replacen("version = 1\n", "version = 2\n", 1).replacen(&own, "ralph = \"9.8.7\"\n", 1);
    scratch.write(".ralph/state.toml", newer + "[of_the_future]\nkey = []\n");
    let before = scratch.snapshot();
    for (line, code) in [
        ("status prompt", 0),
        ("ls", 0),
        ("resume prompt", 1),
        ("prompt p.md 1", 1),
        ("prompt p.md 1 --resume", 1),
        ("clean prompt", 1),
    ] {
        let run = scratch.run(line);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(run.code, Some(code), "{line}: {run:?}");
        // A list only shows that it is not known.
        assert!(said.contains(if line == "ls" { "unknown" } else { "newer ralph 9.8.7" }), "{line}: {run:?}");
        assert!(scratch.snapshot() == before, "{line} has changed something");
    }
}

/// The one file below a folder that has this end.
fn file_below(folder: &Path, end: &str) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                return path;
            }
        }
    }
    panic!("there is no {end}")
}

#[test]
fn each_kind_of_record_of_a_newer_release_is_told_and_left_as_it_is() {
    let own = env!("CARGO_PKG_VERSION");
    for kind in ["run.json", ".events.jsonl", "end.json", "/loops/prompt@"] {
        let scratch = Scratch::new();
        scratch.agent("claude", &claude_says("more"));
        assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
        let (runs, loops) = (scratch.path(".ralph/runs"), scratch.home().join("state/ralph/loops"));
        // What a newer ralph writes names it: the start of a run, and an entry of the registry.
        let start = file_below(&runs, "run.json");
        let of_newer = |text: String| text.replacen(own, "9.8.7", 1);
        fs::write(&start, of_newer(fs::read_to_string(&start).unwrap())).unwrap();
        let newer = if kind.starts_with('/') {
            fs::read_dir(&loops).unwrap().next().unwrap().unwrap().path()
        } else {
            file_below(&runs, kind)
        };
        let text = fs::read_to_string(&newer).unwrap();
        let bumped = text.replacen("\"v\":1", "\"v\":2", 1).replacen("version = 1\n", "version = 2\n", 1);
        assert_ne!(text, bumped, "{kind}");
        let bumped = if kind.starts_with('/') { of_newer(bumped) } else { bumped };
        fs::write(&newer, &bumped).unwrap();
        let before = scratch.snapshot();
        for (line, code) in [
            ("status", Some(0)),
            ("report", Some(0)),
            ("history", Some(0)),
            ("diff", None),
            ("doctor", None),
            ("note prompt x", Some(1)),
            ("revert prompt", Some(1)),
            ("resume prompt", Some(1)),
            ("prompt p.md 1", Some(1)),
            ("clean prompt", Some(1)),
        ] {
            let run = scratch.run(line);
            let said = format!("{}{}", run.stdout, run.stderr);
            assert!(code.is_none_or(|code| run.code == Some(code)), "{kind}: {line}: {run:?}");
            // These are about runs, and read nothing else.
            let is_told = !["report", "history", "diff"].contains(&line) || !kind.starts_with('/');
            let words = "newer ralph 9.8.7 (version 2 of its format, this one knows 1)";
            assert_eq!(said.contains(words), is_told, "{kind}: {line}: {run:?}");
            assert!(scratch.snapshot() == before, "{kind}: {line} has changed something");
            assert_eq!(fs::read_to_string(&newer).unwrap(), bumped, "{kind}: {line}");
        }
    }
}

#[test]
fn a_graph_of_a_newer_release_is_told_and_left_as_it_is() {
    let scratch = tasks("work; done_");
    add(&scratch, "first");
    let graph = scratch.path(".ralph/progress.db");
    let bumped = Command::new("sqlite3").arg(&graph).arg("PRAGMA user_version = 99").status().unwrap();
    assert!(bumped.success());
    let before = fs::read(&graph).unwrap();
    for (line, code) in [("task list", Some(1)), ("run --all --no-verify", None), ("doctor", None)] {
        let run = scratch.run(line);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(run.code != Some(0) && code.is_none_or(|code| run.code == Some(code)), "{line}: {run:?}");
        assert!(said.contains("written by a newer ralph (version 99 of its format"), "{line}: {run:?}");
        assert!(fs::read(&graph).unwrap() == before, "{line} has changed something");
    }
}

/// In a state folder of its own, agents call the program file itself, and a clear line says why.
#[test]
fn a_state_folder_where_no_program_starts_or_fits_is_told() {
    const INSIDE: &str = r#"mkdir -p "$1" && mount -t tmpfs -o "$2" tmpfs "$1" && exec "$3" run --all --no-verify --sandbox off"#;
    for (options, told) in [("noexec", "(noexec)"), ("size=1m", "No space left on device")] {
        let scratch = tasks("work; done_");
        add(&scratch, "first");
        let mut inside = scratch.container();
        inside.args(["--mount", "sh", "-c", INSIDE, "sh"]).arg(scratch.home().join("state/ralph/programs"));
        let run = Scratch::finish(inside.arg(options).arg(env!("CARGO_BIN_EXE_ralph")));
        assert_eq!(run.code, Some(0), "{options}: {run:?}");
        let is_told = run.stderr.contains(told) && run.stderr.contains("do not replace or remove it");
        assert!(is_told, "{options}: {run:?}");
    }
}

#[test]
fn a_read_only_state_folder_is_told_with_the_way_out() {
    const INSIDE: &str = r#"mkdir -p "$1" && mount -t tmpfs -o ro tmpfs "$1" && shift && exec "$@""#;
    let scratch = tasks("work; done_");
    add(&scratch, "first");
    let run = |words: &str| {
        let mut inside = scratch.container();
        inside.args(["--mount", "sh", "-c", INSIDE, "sh"]).arg(scratch.home().join("state/ralph"));
        inside.arg(env!("CARGO_BIN_EXE_ralph")).args(words.split_whitespace());
        Scratch::finish(&mut inside)
    };
    let doctor = run("doctor").stdout;
    let found = doctor.split("! state folder").nth(1).unwrap_or_else(|| panic!("{doctor}"));
    let said: Vec<&str> = found.lines().take(2).map(str::trim).collect();
    let why = "state/ralph/loops: Read-only file system (os error 30): loops are not listed, and no claim is proven in a clean checkout";
    assert!(said[0].ends_with(why), "{doctor}");
    assert_eq!(
        said[1], "→ make that file system writable, or set XDG_STATE_HOME to another folder",
        "{doctor}"
    );
    let done = run("run --all --no-verify --sandbox off");
    assert_eq!(done.code, Some(0), "{done:?}");
    for told in ["do not replace or remove it", "missing in lists", "have no signature", "is not sealed"] {
        let lines = done.stderr.lines().filter(|line| line.contains(told));
        let is_told_once = lines.collect::<Vec<_>>();
        assert!(matches!(is_told_once[..], [line] if line.contains("(os error 30)")), "{told}: {done:?}");
    }
}
