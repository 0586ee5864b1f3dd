//! Which runs are kept; the logs of older ones stay readable.

use std::fs;

use crate::scratch::{Scratch, Started, claude_says, wait_for};

fn runs(scratch: &Scratch) -> usize {
    fs::read_dir(scratch.path(".ralph/runs")).unwrap().count()
}

#[test]
fn the_oldest_runs_are_removed_and_older_logs_are_compressed() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("on it"));
    for _ in 0..14 {
        assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    }
    assert_eq!(runs(&scratch), 14);
    // It works long enough for the housekeeping beside its agent.
    scratch.agent("claude", "cat > /dev/null; until [ -e go ]; do sleep 0.02; done");
    scratch.write(".ralph/config", "KEEP_RUNS=13\n");
    let ralph = Started::new(&scratch, "prompt p.md 1");
    wait_for("old runs to go", || (runs(&scratch) == 13).then_some(()));
    let compressed = || {
        let links = fs::read_dir(scratch.path(".ralph/logs")).unwrap();
        let links: Vec<_> = links.map(|link| link.unwrap().path()).collect();
        let all_lead = links.iter().all(|link| link.exists());
        (all_lead && links.iter().filter(|link| link.extension().unwrap() == "gz").count() == 2).then_some(())
    };
    wait_for("the logs of two to be compressed, and no link to lead nowhere", compressed);
    scratch.write("go", "");
    ralph.finish();
    let history = scratch.run("history --json").stdout;
    assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(&history).unwrap().len(), 13);

    // What was compressed is read as it was.
    let mut folders: Vec<_> =
        fs::read_dir(scratch.path(".ralph/runs")).unwrap().map(|run| run.unwrap().path()).collect();
    folders.sort();
    let of_run = |folder: &std::path::Path| {
        let name = folder.file_name().unwrap().to_str().unwrap();
        scratch.run(&format!("logs --raw --run {name}"))
    };
    for folder in [&folders[0], &folders[11]] {
        let run = of_run(folder);
        assert!(run.code == Some(0) && run.stdout.contains("SESSION SUMMARY"), "{run:?}");
        assert!(run.stdout.contains("on it"), "{run:?}");
    }
    // By other programs as well.
    let log = |folder: &std::path::Path, end: &str| {
        let mut files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        files.find(|file| file.to_str().unwrap().ends_with(end)).unwrap()
    };
    let unpacked = Scratch::finish(scratch.command("zcat").arg(log(&folders[0], ".log.gz")));
    assert_eq!((unpacked.code, unpacked.stdout), (Some(0), of_run(&folders[0]).stdout));
    assert!(scratch.run("logs --run 2026").stderr.contains("--agent"), "of whom is not said");

    // The newest one forgotten, the next older logs are read; in the end one that was compressed.
    for newer in &folders[1..] {
        fs::remove_dir_all(newer).unwrap();
    }
    let run = scratch.run("logs --raw");
    assert!(run.code == Some(0) && run.stdout.contains("SESSION SUMMARY"), "{run:?}");
    let two = scratch.run("logs --raw --lines 2").stdout;
    assert!(two.lines().count() == 2 && run.stdout.ends_with(&two), "{two}");
    assert!(scratch.run("logs --agent").stdout.contains("on it"));
}

#[test]
fn loops_that_end_at_once_remove_what_is_not_kept_as_well() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("on it"));
    for _ in 0..12 {
        assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    }
    scratch.write(".ralph/config", "KEEP_RUNS=3\n");
    for _ in 0..2 {
        assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
        assert_eq!(runs(&scratch), 3);
    }
}

#[test]
fn a_size_or_a_number_that_is_none_is_refused() {
    let scratch = Scratch::new();
    for (setting, word) in
        [("KEEP_SIZE=much", "2 GB or 500 MB"), ("KEEP_RUNS=few", "KEEP_RUNS"), ("KEEP_SIZE=5%", "nor 0")]
    {
        scratch.write(".ralph/config", format!("{setting}\n"));
        let run = scratch.run("prompt p.md 1");
        assert!(run.code == Some(1) && run.stderr.contains(word), "{run:?}");
    }
}
