//! `ralph task import` and `ralph task export`.

use std::fs;
use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::scratch::{Run, Scratch, finish};

fn good(scratch: &Scratch, args: &str) -> String {
    let run = scratch.run(args);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args}: {run:?}");
    run.stdout
}

fn refused(scratch: &Scratch, args: &str) -> String {
    let before = good(scratch, "task export");
    let run = scratch.run(args);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{args}: {run:?}");
    assert!(run.stderr.starts_with("error: cannot import ") && run.stderr.lines().count() == 1, "{run:?}");
    assert_eq!(good(scratch, "task export"), before);
    run.stderr
}

/// The titles in the tree, with their signs.
fn tree(scratch: &Scratch) -> Vec<String> {
    let plain = |line: &str| {
        let (before, title) = line.rsplit_once("  ").unwrap();
        format!("{} {title}", before.split_once(" t-").unwrap().0)
    };
    good(scratch, "task tree").lines().map(plain).collect()
}

const PLAN: &str =
    "## Branch: one\nGoal: First\n- [x] a\n- [ ] b\n\n## Branch: two\nGoal: Second\nBase: one\n- [ ] c\n";

#[test]
fn the_same_file_twice_changes_nothing() {
    for (name, text, count) in [
        ("TODO.md", "- [ ] a\n  - [x] b\n", 2),
        (
            "prd.json",
            r#"{"userStories":[{"id":"1","title":"a"},{"id":"2","title":"b","dependsOn":["1"]}]}"#,
            2,
        ),
        ("beads.jsonl", "{\"id\":\"bd-1\",\"title\":\"a\",\"status\":\"open\"}\n", 1),
        ("IMPLEMENTATION_PLAN.md", PLAN, 5),
    ] {
        let scratch = Scratch::new();
        scratch.write(name, format!("\u{feff}{text}"));
        assert_eq!(
            good(&scratch, &format!("task import {name} --dry-run")),
            format!("would be {count} added, 0 updated, 0 unchanged\n")
        );
        assert!(!scratch.path(".ralph/progress.db").exists());
        let args = format!("task import {name}");
        assert_eq!(good(&scratch, &args), format!("{count} added, 0 updated, 0 unchanged\n"));
        let before = good(&scratch, "task export");
        assert_eq!(good(&scratch, &args), format!("0 added, 0 updated, {count} unchanged\n"));
        assert_eq!(good(&scratch, "task export"), before);
    }
}

#[test]
fn a_plan_of_branches_becomes_a_graph() {
    let scratch = Scratch::new();
    scratch.write("IMPLEMENTATION_PLAN.md", PLAN);
    good(&scratch, "task import IMPLEMENTATION_PLAN.md --json");
    assert_eq!(tree(&scratch), ["○ one", "├─ ✓ a", "└─ ○ b", "⊘ two", "└─ ⊘ c"]);
    scratch.write("IMPLEMENTATION_PLAN.md", PLAN.replace("[ ] b", "[x] b"));
    assert_eq!(good(&scratch, "task import IMPLEMENTATION_PLAN.md"), "0 added, 1 updated, 4 unchanged\n");
    assert_eq!(tree(&scratch), ["✓ one", "├─ ✓ a", "└─ ✓ b", "○ two", "└─ ○ c"]);
}

#[test]
fn an_export_can_be_taken_in_elsewhere() {
    let scratch = Scratch::new();
    scratch.write("TODO.md", "- [ ] a\n  - [x] b\n  - [ ] c\n");
    good(&scratch, "task import TODO.md");
    let exported = good(&scratch, "task export");
    scratch.write("tasks.jsonl", &exported);
    let mut from_stdin = scratch.ralph("task import - --ralph-dir copy/.ralph --json");
    from_stdin.stdin(fs::File::open(scratch.path("tasks.jsonl")).unwrap());
    assert_eq!(
        Scratch::finish(&mut from_stdin).stdout,
        "{\"added\":3,\"updated\":0,\"unchanged\":0,\"left_deleted\":0,\"skipped\":{\"closed\":0,\"pull_requests\":0,\"twice\":0},\"closed\":[],\"reported\":[]}\n"
    );
    assert_eq!(good(&scratch, "task export --ralph-dir copy/.ralph"), exported);
}

#[test]
fn a_number_that_none_can_be_is_told_with_its_key() {
    let scratch = Scratch::new();
    let task =
        |rest: &str| format!("{{\"ralph_tasks\":1}}\n{{\"id\":\"t-123456\",\"title\":\"x\",{rest}}}\n");
    for (rest, why) in [
        ("\"retry_count\":-1", "'retry_count' is -1: there belongs a whole number from 0 to 4294967295"),
        ("\"retry_count\":4294967296", "'retry_count' is 4294967296: there belongs a whole number from 0"),
        ("\"priority\":1e999", "'priority' is a number that is too large"),
        ("\"priority\":-}", "'priority' is no number"),
    ] {
        scratch.write("tasks.jsonl", task(rest));
        let told = refused(&scratch, "task import tasks.jsonl");
        assert!(told.contains(why), "{told}");
    }
    scratch.write(
        "issues.json",
        "[{\"number\":-3,\"title\":\"x\",\"body\":\"\",\"url\":\"https://github.com/a/b/issues/3\"}]",
    );
    let told = refused(&scratch, "task import issues.json");
    assert!(told.contains("'number' is -3: there belongs a whole number from 0\n"), "{told}");
    // What others call it is told as well.
    let run = scratch.run("task rm t-123456");
    assert!(run.stderr.starts_with("error: there is no 'ralph task rm': 'ralph task delete ID'"), "{run:?}");
}

/// What is written into its stdin is taken in when that ends.
fn importing(scratch: &Scratch) -> (Child, ChildStdin) {
    let mut import = scratch.ralph("task import -");
    import.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut import = import.spawn().unwrap();
    let mut stdin = import.stdin.take().unwrap();
    // More than pipes and buffers hold: most of it has been read when this returns.
    for number in 0..20_000 {
        writeln!(stdin, "{{\"id\":\"bd-{number}\",\"title\":\"One of many\",\"status\":\"open\"}}").unwrap();
    }
    (import, stdin)
}

#[test]
fn a_file_that_is_still_written_blocks_no_command() {
    let scratch = Scratch::new();
    good(&scratch, "task add first");
    let (import, stdin) = importing(&scratch);
    good(&scratch, "task add meanwhile");
    drop(stdin);
    let run = finish(import);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "20000 added, 0 updated, 0 unchanged\n"),
        "{run:?}"
    );
    assert_eq!(good(&scratch, "task list").lines().count(), 20_002);
}

#[test]
fn a_graph_that_another_process_makes_meanwhile_is_no_reason_to_lose_a_file() {
    let scratch = Scratch::new();
    let (import, stdin) = importing(&scratch);
    good(&scratch, "task add meanwhile");
    drop(stdin);
    let run = finish(import);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("another process has made a graph meanwhile: try again"), "{run:?}");
    assert_eq!(good(&scratch, "task list").lines().count(), 1);
}

#[test]
fn what_cannot_be_taken_in_is_named() {
    let scratch = Scratch::new();
    scratch.write("TODO.md", "- [ ] a\n");
    good(&scratch, "task import TODO.md");
    fs::create_dir(scratch.path("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(scratch.path("fifo")).status().unwrap().success());
    // Sparse: a single line of a gigabyte.
    fs::File::create(scratch.path("long")).unwrap().set_len(1 << 30).unwrap();
    scratch.write("empty", "");
    scratch.write("title", format!("- [ ] ok\n- [ ] {}\n", "x".repeat(1 << 20)));
    scratch.write("unknown", "{\"userStories\":[\n{\"id\":\"1\",\"title\":\"a\",\"dependsOn\":[\"7\"]}]}");
    scratch.write("twice", "- [ ] b\n- [ ] c\n- [ ] b\n");
    for (file, what) in [
        ("none", "No such file"),
        ("folder", "it is a folder, not a file"),
        ("fifo", "it is a FIFO, not a file"),
        ("long", "line 1: it is longer than"),
        ("empty", "there are no tasks in it"),
        ("title", "line 2: the title has 1048576 characters"),
        ("unknown", "line 2: no task '7'"),
        ("twice", "line 3: 'b' is there twice, first in line 1"),
    ] {
        let said = refused(&scratch, &format!("task import {file}"));
        assert!(said.contains(what), "{file}: {said}");
    }
}

#[test]
fn an_agent_takes_nothing_in() {
    let scratch = Scratch::new();
    scratch.write("TODO.md", "- [x] a\n");
    let ralph = env!("CARGO_BIN_EXE_ralph");
    scratch.agent(
        "claude",
        &format!("cat >/dev/null; \"{ralph}\" task import TODO.md 2> said; say '<promise>COMPLETE</promise>'; result"),
    );
    let run: Run = scratch.run("prompt p.md 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(scratch.read("said").contains("'ralph task import' is not for agents at work"));
    assert!(!scratch.path(".ralph/progress.db").exists());
}

#[test]
fn imports_that_all_find_no_graph_end_up_in_one() {
    let scratch = Scratch::new();
    let list: Vec<String> = (0..2000).map(|number| format!("- [ ] task {number}\n")).collect();
    scratch.write("list.md", list.concat());
    let children: Vec<_> = (0..6).map(|_| scratch.start("task import list.md")).collect();
    for run in children.into_iter().map(finish) {
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    assert_eq!(scratch.run("task list --all").stdout.lines().count(), 2000);
    let left = fs::read_dir(scratch.path(".ralph")).unwrap().flatten();
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().contains(".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}
