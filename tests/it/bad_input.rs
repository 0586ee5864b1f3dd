//! Bad input: one clear line, exit 1 (2 for the missing plan), nothing created, nothing lost.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::scratch::{Run, Scratch, claude_says, finish, process_in};

/// A project in which a loop would run.
fn sound() -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    scratch
}

/// Runs ralph, which has to refuse with `code` and one line that holds all of `words`, and to leave no trace.
pub(crate) fn refuses_with(code: i32, scratch: &Scratch, args: &str, words: &[&str]) -> Run {
    let before = scratch.snapshot();
    let run = scratch.run(args);
    check(code, &run, args, words);
    assert!(scratch.snapshot() == before, "'ralph {args}' changed something: {run:?}");
    run
}

fn check(code: i32, run: &Run, args: &str, words: &[&str]) {
    assert_eq!(run.code, Some(code), "ralph {args}: {run:?}");
    assert_eq!(run.stdout, "", "ralph {args}");
    assert!(run.stderr.starts_with("error: "), "ralph {args}: {run:?}");
    assert_eq!(run.stderr.trim_end().lines().count(), 1, "ralph {args}: {run:?}");
    for word in words {
        assert!(run.stderr.contains(word), "ralph {args}: '{word}' is missing: {run:?}");
    }
}

pub(crate) fn refuses(scratch: &Scratch, args: &str, words: &[&str]) {
    refuses_with(1, scratch, args, words);
}

#[test]
fn the_command_line() {
    let scratch = sound();
    for (args, words) in [
        ("--quiet", &["no mode", "ralph plan", "ralph build", "ralph prompt FILE"][..]),
        ("7", &["no mode"]),
        ("biuld", &["'biuld'", "'build'"]),
        ("xyzzy", &["'xyzzy'", "--help"]),
        ("build --jsn", &["'--jsn'", "'--json'"]),
        ("--max-retry 1 build", &["'--max-retry'", "'--max-retries'"]),
        ("build -x", &["'-x'"]),
        ("build --config", &["--config"]),
        ("plan abc", &["'abc'", "ralph build 20"]),
        ("plan -1", &["'-1'"]),
        ("plan 0", &["'0'"]),
        ("plan 1.5", &["'1.5'"]),
        ("plan 99999999999999999999999", &["'99999999999999999999999'"]),
        ("plan 1 2", &["'1'", "'2'"]),
        ("3 build 4", &["'3'", "'4'"]),
        ("build 1 2 3", &["at most one number"]),
        ("prompt", &["FILE", "ralph prompt --help"]),
        ("prompt p.md abc", &["'abc'"]),
        ("prompt p.md 0", &["'0'"]),
        ("prompt p.md -1", &["'-1'"]),
        ("prompt p.md 1 2", &["'1'", "'2'"]),
        ("plan --json=yes", &["--json"]),
        ("completions tcsh", &["'tcsh'", "bash"]),
    ] {
        refuses(&scratch, args, words);
    }
}

#[test]
fn names_of_loops() {
    let scratch = sound();
    for verb in ["prompt p.md 1 --name", "spawn --prompt-file p.md -n 1 --name"] {
        for name in ["", " ", "two\nlines", "a\tb"] {
            let mut command = scratch.ralph(verb);
            let is_spawn = verb.starts_with("spawn");
            let run =
                Scratch::finish(command.arg(name).args(if is_spawn { &["--", "true"][..] } else { &[] }));
            check(1, &run, verb, &["--name"]);
        }
    }
    assert!(!scratch.path(".ralph/runs").exists());
    let help = scratch.run("spawn --help");
    let line = help.stdout.lines().find(|line| line.contains("--max-iterations <N>")).unwrap();
    assert!(help.code == Some(0) && !line.contains("default"), "what is required has none: {line}");
}

#[test]
fn values_of_flags() {
    let scratch = sound();
    for (args, words) in [
        ("plan --timeout 0", &["--timeout", "`0`", "30s"][..]),
        ("plan --timeout -1s", &["--timeout", "-1s"]),
        ("plan --timeout=abc", &["--timeout", "abc", "30s"]),
        ("plan --timeout 5x", &["--timeout", "5x"]),
        ("--inactivity-timeout soon build", &["--inactivity-timeout", "soon"]),
        ("plan --max-retries abc", &["--max-retries", "abc"]),
        ("plan --max-retries -1", &["--max-retries", "-1"]),
        ("plan --max-retries 1.5", &["--max-retries", "1.5"]),
        ("plan --config nowhere/config", &["nowhere/config", "not found"]),
        ("--config=nowhere plan", &["nowhere", "not found"]),
        ("plan --config=specs", &["specs", "folder"]),
        (
            "plan --agent cluade",
            &["'cluade'", "amp, claude, claude-acp, cline", "gemini, gemini-acp, kimi, opencode"],
        ),
        ("plan --agent=", &["agent"]),
        ("plan --ralph-dir=", &["--ralph-dir"]),
        ("plan --validate true", &["--validate", "'ralph plan' writes none", "leave it out"]),
        ("loop plan --proof clean", &["--proof", "'ralph loop plan'"]),
    ] {
        refuses(&scratch, args, words);
    }
    // So no help offers them.
    for (verb, is_offered) in [("plan", false), ("loop plan", false), ("build", true), ("loop build", true)] {
        assert_eq!(
            scratch.run(&format!("{verb} --help")).stdout.contains("--validate"),
            is_offered,
            "{verb}"
        );
    }
}

#[test]
fn lines_of_the_config() {
    for (config, words) in [
        ("# fine\nAGENT_ARGS=$(date)\n", &["config", "line 2", "column 12"][..]),
        ("AGENT_TYPE=claude\nif true; then\n", &["line 2"]),
        ("X='open\n", &["line 1"]),
        ("AGENT_TYPE=cluade\n", &["'cluade'", "claude, claude-acp, cline"]),
        ("MAX_RETRIES=many\n", &["MAX_RETRIES", "many"]),
        ("DEFAULT_MAX_ITERATIONS=0\n", &["DEFAULT_MAX_ITERATIONS", "0"]),
        ("AGENT_TIMEOUT=-5m\n", &["AGENT_TIMEOUT", "-5m"]),
        ("AGENT_ARGS=\"it's\"\n", &["AGENT_ARGS", "quote"]),
        ("AGENT_CLI=\"it's\"\n", &["AGENT_CLI", "quote"]),
        ("AGENT_TYPE=custom\n", &["custom", "AGENT_CLI"]),
        ("AGENT_RESPONSE_FILTER='.a |'\n", &["AGENT_RESPONSE_FILTER", "line 1, column"]),
        ("AGENT_RESULT_FILTER='nonsense(1)'\n", &["AGENT_RESULT_FILTER", "line 1, column"]),
        ("AGENT_DISPLAY_FILTER='.a | | .b'\n", &["AGENT_DISPLAY_FILTER", "line 1, column"]),
        ("AGENT_DISPLAY_FILTER=\"jq -r '.a['\"\n", &["AGENT_DISPLAY_FILTER", "line 1, column"]),
        ("AGENT_CLI=no-such-agent\n", &["'no-such-agent'", "PATH"]),
        ("AGENT_CLI=./no/such-agent\n", &["no/such-agent"]),
        ("AGENT_CLI=./p.md\n", &["p.md", "executable"]),
        ("AGENT_CLI=./specs\n", &["specs"]),
    ] {
        let scratch = sound();
        scratch.write(".ralph/config", config);
        refuses(&scratch, "plan", words);
    }
}

#[test]
fn files_of_settings() {
    let scratch = sound();
    scratch.write(".ralph/config", b"AGENT_TYPE=claude\nX=\xff\n");
    refuses(&scratch, "plan", &["config", "line 2", "UTF-8"]);

    let scratch = sound();
    fs::create_dir(scratch.path(".ralph/config")).unwrap();
    refuses(&scratch, "plan", &["config", "folder"]);

    let scratch = sound();
    let nonsense: &OsStr = OsStr::from_bytes(b"\xff");
    let run = Scratch::finish(scratch.ralph("plan").env("RALPH_AGENT_TYPE", nonsense));
    check(1, &run, "plan", &["unknown agent type"]);

    let scratch = sound();
    let mut homeless = scratch.ralph("build 1");
    homeless.env_remove("XDG_CONFIG_HOME").env("HOME", "/dev/null");
    assert_eq!(Scratch::finish(&mut homeless).code, Some(0), "there is nothing below a file");

    let scratch = sound();
    scratch.write("ralph.toml", "[agent]\nprovder = \"codex\"\n");
    refuses(&scratch, "plan", &["ralph.toml", "provder", "provider"]);
}

#[test]
fn what_has_to_be_there() {
    let scratch = Scratch::new();
    refuses(&scratch, "plan", &["'claude'", "PATH", "npm install"]);
    refuses(&scratch, "plan --agent codex", &["'codex'", "PATH"]);

    let scratch = sound();
    fs::remove_dir(scratch.path("specs")).unwrap();
    refuses(&scratch, "plan", &["specs", "not found", "SPECS_DIR"]);
    scratch.write("specs", "a file");
    refuses(&scratch, "build", &["specs"]);
    scratch.write(".ralph/config", "SPECS_DIR=requirements\n");
    refuses(&scratch, "plan", &["requirements"]);
}

#[test]
fn no_repository() {
    let scratch = sound();
    fs::remove_dir_all(scratch.path(".git")).unwrap();
    refuses(&scratch, "plan", &["not a git repository", "git init"]);
    fs::create_dir(scratch.path(".git")).unwrap();
    refuses(&scratch, "plan", &["not a git repository"]);
    fs::remove_dir(scratch.path(".git")).unwrap();
    scratch.write(".git", "gitdir: /nowhere/at/all\n");
    refuses(&scratch, "plan", &["git"]);
}

#[test]
fn the_missing_plan_has_a_code_of_its_own() {
    let scratch = sound();
    fs::remove_file(scratch.path(".ralph/implementation_plan.md")).unwrap();
    let run = refuses_with(2, &scratch, "build", &[]);
    assert_eq!(run.stderr, "error: Implementation plan not found. Run 'ralph plan' first.\n");
    fs::create_dir(scratch.path(".ralph/implementation_plan.md")).unwrap();
    refuses_with(2, &scratch, "build 3", &[]);
}

#[test]
fn prompt_files() {
    let scratch = sound();
    scratch.write("empty.md", "");
    scratch.write("blank.md", " \n\t\n");
    scratch.write("latin1.md", b"caf\xe9 <promise>COMPLETE</promise>");
    scratch.write("endless.md", "Do it for ever. COMPLETE <promise>REPLAN</promise>");
    // Outside the project, every file of which is read to check that nothing changes.
    let mut pipe = scratch.command("mkfifo");
    assert!(pipe.arg("../pipe.md").status().unwrap().success());
    for (args, words) in [
        ("prompt ../pipe.md", &["pipe.md", "is a pipe", "save"][..]),
        ("prompt nowhere.md", &["nowhere.md", "not found"]),
        ("prompt empty.md", &["empty.md", "is empty"]),
        ("prompt blank.md 3", &["blank.md", "is empty"]),
        ("prompt latin1.md", &["latin1.md", "UTF-8"]),
        ("prompt specs", &["specs", "folder"]),
        ("prompt endless.md", &["endless.md", "<promise>COMPLETE</promise>"]),
    ] {
        refuses(&scratch, args, words);
    }
    // Only an ad-hoc prompt needs the marker.
    scratch.write(".ralph/prompts/plan.md", "Plan.");
    scratch.write(".ralph/implementation_plan.md", "- [ ] a task\n");
    let run = scratch.run("plan 1");
    assert_eq!(run.code, Some(0), "{run:?}");

    scratch.write(".ralph/prompts/build.md", "");
    let run = scratch.run("build 1");
    check(1, &run, "build 1", &["build.md", "is empty"]);
}

#[test]
fn a_ralph_dir_that_cannot_be_written() {
    let scratch = sound();
    scratch.write("taken", "a file");
    for (args, words) in [
        ("prompt p.md --ralph-dir taken", &["taken", "is a file"][..]),
        ("prompt p.md --ralph-dir taken/below", &["taken: is a file", "--ralph-dir"]),
        ("prompt p.md --ralph-dir /proc/ralph", &["/proc/ralph", "--ralph-dir"]),
        ("prompt p.md --ralph-dir /sys/kernel", &["/sys/kernel"]),
    ] {
        refuses(&scratch, args, words);
    }

    // If one of ralph's own files cannot be written, it is named, and no session log is left.
    for (taken, name) in [("logs", "logs"), ("lock/x", "lock"), ("iterations.log/x", "iterations.log")] {
        let scratch = sound();
        scratch.write(&format!(".ralph/{taken}"), "in the way");
        let run = scratch.run("prompt p.md 1");
        check(1, &run, name, &[name]);
        assert!(scratch.session_logs().is_empty(), "{name}");
    }
    for taken in ["state.toml", "last_agent_output"] {
        let scratch = sound();
        scratch.write(&format!(".ralph/{taken}/x"), "in the way");
        let run = scratch.run("prompt p.md 1");
        assert_eq!(run.code, Some(1), "{taken}: {run:?}");
        assert!(run.stderr.contains(taken), "{taken}: {run:?}");
    }
}

#[test]
fn a_second_loop_is_told_who_holds_the_first() {
    let scratch = sound();
    scratch.agent("claude", "cat > /dev/null; echo $$ > pid; read -r _ < go");
    let fifo = scratch.path("go");
    assert!(scratch.command("mkfifo").arg(&fifo).status().unwrap().success());
    let first = scratch.start("prompt p.md 1 --max-retries 0");
    process_in(&scratch.path("pid"));

    let logs = scratch.session_logs().len();
    let run = scratch.run("build 1");
    check(1, &run, "build 1", &[&format!("pid {}", first.id())]);
    assert_eq!(scratch.session_logs().len(), logs);
    // Another ralph dir is another loop.
    scratch.agent("codex", "exit 0");
    let other = scratch.run("prompt p.md 1 --ralph-dir other --agent codex --max-retries 0");
    assert_eq!(other.code, Some(4), "{other:?}");

    fs::write(fifo, "go\n").unwrap();
    finish(first);
    let run = scratch.run("prompt p.md 1 --agent codex --max-retries 0");
    assert_eq!(run.code, Some(4), "the lock is free again: {run:?}");
}

#[test]
fn flags_and_the_number_stand_anywhere() {
    let scratch = sound();
    scratch.agent("claude", &claude_says("more"));
    scratch.write("my config", "DEFAULT_MAX_ITERATIONS=2\n");
    for (args, iterations) in [
        ("prompt p.md 3", 3),
        ("prompt 3 p.md", 3),
        ("3 prompt p.md", 3),
        ("--quiet prompt p.md 3", 3),
        ("-q --max-retries 0 3 prompt p.md", 3),
        ("--max-retries=0 prompt --timeout=1m 3 p.md --quiet", 3),
        ("--agent claude build 2 --inactivity-timeout 1m", 2),
        ("--agent=claude --ralph-dir=.ralph plan", 10),
    ] {
        let run = scratch.run(args);
        assert_eq!(run.code, Some(0), "{args}: {run:?}");
        assert!(run.stdout.contains(&format!("Total Iterations: {iterations}\n")), "{args}: {run:?}");
    }
    for args in [["--config", "my config", "plan"], ["plan", "--config", "my config"]] {
        let run = Scratch::finish(scratch.ralph("").args(args));
        assert!(run.stdout.contains("Total Iterations: 2\n"), "{run:?}");
    }
    let run = Scratch::finish(scratch.ralph("--quiet").args(["--config=my config", "build", "--", "1"]));
    assert!(run.stdout.contains("Total Iterations: 1\n"), "{run:?}");
}

#[test]
fn a_ralph_dir_that_cannot_be_read() {
    let scratch = sound();
    let at = |name: &str| scratch.outside().join(name);
    fs::write(at("file"), "").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    std::os::unix::fs::symlink("endless", at("endless")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    let verbs = [
        "status",
        "status --json",
        "report",
        "history",
        "logs",
        "logs --raw",
        "diff",
        "replay",
        "task list",
        "task tree",
        "feature list",
        "journal",
        "knowledge list",
        "clean",
        "pause",
        "cancel",
        "resume",
    ];
    for verb in verbs {
        for (place, words) in [
            ("/dev/null".into(), "is a file: move it away"),
            (at("file"), "is a file: move it away"),
            (at("fifo"), "is a file: move it away"),
            (at("endless"), "cannot be read"),
            (at("missing"), "there is no such folder"),
        ] {
            let place = place.display().to_string();
            refuses(&scratch, &format!("{verb} --ralph-dir {place}"), &[&place, words, "--ralph-dir"]);
        }
    }
    for verb in ["status", "history", "task list"] {
        let run = scratch.run(&format!("{verb} --ralph-dir {}", at("empty").display()));
        assert_eq!(run.code, Some(0), "{verb}: no record is no error: {run:?}");
    }
}
