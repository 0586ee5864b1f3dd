//! Thousands of loops that have ended cost next to nothing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::scratch::{Scratch, Started, claude_says, wait_for};
use crate::terminal::Terminal;

/// So many loops as one that has run here left, each in a project of its own.
fn many(count: usize) -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let registry = scratch.outside().join("home/state/ralph/loops");
    let entry = fs::read_dir(&registry).unwrap().next().unwrap().unwrap().path();
    let (entry, state) = (fs::read_to_string(entry).unwrap(), scratch.read(".ralph/state.toml"));
    let here = scratch.root().display().to_string();
    for number in 1..count {
        let place = scratch.outside().join(format!("other{number}"));
        let at = |text: &str| text.replace(&here, &place.display().to_string());
        fs::create_dir_all(place.join(".ralph")).unwrap();
        fs::write(place.join(".ralph/state.toml"), at(&state)).unwrap();
        fs::write(registry.join(entry_name(&place.join(".ralph"))), at(&entry)).unwrap();
    }
    scratch
}

/// The name of an entry, as ARCHITECTURE.md says it.
fn entry_name(ralph_dir: &Path) -> String {
    let hash = ralph_dir.as_os_str().as_encoded_bytes().iter();
    let hash = hash.fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("prompt@{hash:08x}")
}

#[test]
fn a_list_fits_the_terminal_and_is_whole_where_there_is_none() {
    let scratch = many(3);
    let whole = scratch.run("ls").stdout;
    let head = "NAME    STATUS  ITERATION  FAILURES  AGENT   STARTED              PROJECT ";
    let lines: Vec<&str> = whole.lines().collect();
    assert!(lines[0].starts_with(head) && lines[0].ends_with("  PROOF"), "{whole}");
    assert!(lines[1..].iter().all(|line| line.ends_with("  unchecked: the agent's word")), "{whole}");
    let end = Terminal::start(&scratch.ralph("ls"), 24, 45).end();
    let rows: Vec<&str> = end.history.lines().collect();
    assert_eq!(rows.len(), 4, "{}", end.history);
    assert!(rows.iter().all(|row| row.chars().count() <= 45), "{}", end.history);
    assert!(rows[0].starts_with("NAME    STATUS  PROJECT ") && rows[0].ends_with("  PROOF"), "{rows:?}");
    let is_whole = |row: &&str| row.starts_with("prompt  done    /") && row.ends_with("  unchecked");
    assert!(rows[1..].iter().all(is_whole), "{rows:?}");
}

#[test]
fn all_are_listed_and_forgotten_in_one_go() {
    const COUNT: usize = 1500;
    let scratch = many(COUNT);
    assert_eq!(scratch.run("ls").stdout.lines().count(), COUNT + 1);
    assert_eq!(scratch.run("status --json").stdout.lines().count(), 1);
    let listed: serde_json::Value = serde_json::from_str(&scratch.run("ls --json").stdout).unwrap();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), COUNT);
    assert!(listed.iter().all(|found| found["iteration_durations"].as_array().unwrap().len() == 1));

    // Each of them once; locking all for each took minutes.
    let run = scratch.run("clean --all");
    assert_eq!((run.code, run.stdout.lines().count()), (Some(0), COUNT), "{}", run.stderr);
    assert!(run.elapsed < Duration::from_secs(20), "{:?}", run.elapsed);
    assert_eq!(fs::read_dir(scratch.outside().join("home/state/ralph/loops")).unwrap().count(), 0);
    assert_eq!(scratch.run("ls").stdout, "no loops on this machine\n");
}

#[test]
fn a_loop_that_begins_while_others_are_forgotten_stays_listed() {
    const COUNT: usize = 400;
    let scratch = many(COUNT);
    let registry = scratch.outside().join("home/state/ralph/loops");
    let entry = registry.join(entry_name(&scratch.path(".ralph")));
    assert!(entry.exists());
    // Its output is not read, so it stops in the middle of its work.
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    let mut clean = scratch.ralph("clean --all").stdout(writer).spawn().unwrap();
    wait_for("the first to be forgotten", || (!scratch.path(".ralph/state.toml").exists()).then_some(()));
    // Until a moment later no loop can begin there.
    wait_for("its lock", || fs::File::open(scratch.path(".ralph/lock")).ok()?.try_lock().ok());

    scratch.agent("claude", "cat > /dev/null; touch started; sleep 600");
    let ralph = Started::new(&scratch, "prompt p.md 1");
    wait_for("the agent", || scratch.path("started").exists().then_some(()));
    assert!(registry.read_dir().unwrap().count() >= COUNT, "it is still at work");
    let said = std::io::read_to_string(fs::File::from(reader)).unwrap();
    assert_eq!((clean.wait().unwrap().code(), said.lines().count()), (Some(0), COUNT));
    assert!(entry.exists());
    assert_eq!(registry.read_dir().unwrap().count(), 1);
    drop(ralph);
}
