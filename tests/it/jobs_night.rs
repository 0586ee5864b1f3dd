//! Nights of many jobs: kills at random times, a gate that fails now and then, and a user who goes on working.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::jobs::{attempts, jobs, refs};
use crate::run_tasks::{add, log, status};
use crate::scratch::{Run, Scratch, finish, wait_for};

/// Works on files of its own; every tenth task rewrites one line, and every twelfth takes the next number.
const BODY: &str = r#"
number() { echo $(($(cat numbers/* | sort -n | tail -1) + 1)) > "numbers/$id"; }
if [ $fixes = 1 ]; then
    [ -e "numbers/$id" ] && { rm "numbers/$id"; number; }
    grep -q '^<<<<<<<' tracked.txt && echo "$id" > tracked.txt
    commit "fixed $id"
elif [ ! -e "work-$id" ]; then
    case $title in *0) echo "$id" > tracked.txt ;; *5) number ;; esac
    work
fi
done_"#;

/// Passes if no number is there twice, and fails now and then for no reason.
const GATE: &str = r#"[ -z "$(cat numbers/* | sort | uniq -d)" ] || exit 1; [ $((RANDOM % 10)) -gt 0 ]"#;

struct Night {
    scratch: Scratch,
    ids: Vec<String>,
}

impl Night {
    fn new(tasks: usize) -> Self {
        let scratch = jobs(BODY);
        scratch.write("numbers/first", "1\n");
        scratch.git(&["add", "."]);
        scratch.git(&["commit", "-qm", "numbers"]);
        let ids = (0..tasks).map(|number| add(&scratch, &format!("task-{number}"))).collect();
        Self { scratch, ids }
    }

    /// Starts a run, and kills it after this time.
    fn run(&self, jobs: usize, killed_after: Option<Duration>) -> Run {
        let mut command =
            self.scratch.ralph(&format!("run --all --no-verify --proof place --jobs {jobs} --max-errors 0"));
        command.env("RALPH_LANDING_COMMAND", format!("bash -c '{}'", GATE.replace('\'', "'\\''")));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if let Some(after) = killed_after {
            // When it is cut off is the point: there is no event to wait for.
            thread::sleep(after);
            let pid = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        finish(child)
    }

    /// A commit of the user's on the trunk.
    fn commits(&self, number: usize) {
        self.scratch.write(&format!("user-{number}"), "");
        // A git of a run that was killed may be finishing there.
        let git = |args: &[&str]| {
            let done = self.scratch.command("git").args(args).output().unwrap().status.success();
            done.then_some(())
        };
        wait_for("git to add a file", || git(&["add", &format!("user-{number}")]));
        wait_for("git to commit", || git(&["commit", "-qm", &format!("user {number}")]));
    }
}

#[test]
fn after_a_night_of_kills_everything_has_landed_or_failed_for_a_true_reason() {
    // More of both in the long run: see CONTRIBUTING.md.
    let number = |name: &str, usual: usize| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let (tasks, kills, jobs) = (number("NIGHT_TASKS", 40), number("NIGHT_KILLS", 6), number("NIGHT_JOBS", 4));
    let night = Night::new(tasks);
    let began = Instant::now();
    for kill in 0..kills {
        // Spread over what a run does: more than its start, less than all of it.
        let after = Duration::from_millis(700 + 331 * u64::try_from(kill).unwrap() % 1500);
        night.run(jobs, Some(after));
        night.commits(kill);
    }
    let mut run = night.run(jobs, None);
    // A task that failed because of the gate's moods is done again by a person.
    for _ in 0..3 {
        let failed: Vec<&String> =
            night.ids.iter().filter(|id| status(&night.scratch, id) == "failed").collect();
        for id in &failed {
            let last = log(&night.scratch, id).pop().unwrap();
            assert!(last.starts_with("failed: it could not land after"), "{last}");
        }
        if run.code == Some(0) {
            break;
        }
        for id in failed {
            night.scratch.run(&format!("task reset {id}"));
        }
        run = night.run(jobs, None);
    }
    assert_eq!(run.code, Some(0), "{run:?}");
    let scratch = &night.scratch;
    let files = scratch.git(&["ls-tree", "-r", "--name-only", "main"]);
    for id in &night.ids {
        assert!(files.contains(&format!("work-{id}\n")) && status(scratch, id) == "done", "{id}");
    }
    for kill in 0..kills {
        assert!(files.contains(&format!("user-{kill}\n")), "{files}");
    }
    // The trunk is what has landed, green, in the user's checkout, with nothing left beside it.
    assert_eq!(scratch.git(&["rev-parse", "main"]), scratch.git(&["rev-parse", "refs/ralph/landed/main"]));
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    let mut numbers: Vec<String> = fs::read_dir(scratch.path("numbers"))
        .unwrap()
        .flatten()
        .map(|entry| fs::read_to_string(entry.path()).unwrap())
        .collect();
    let count = numbers.len();
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
    let left = refs(scratch, "tasks");
    assert!(
        left.iter().all(|reference| !night.ids.iter().any(|id| reference.contains(id.as_str()))
            || reference.ends_with(|c: char| c.is_ascii_digit())),
        "{left:?}"
    );
    assert_eq!(scratch.git(&["fsck", "--no-dangling", "--no-progress"]), "");
    eprintln!("{tasks} tasks, {kills} kills, {} attempts, {:?}", attempts(scratch), began.elapsed());
}
