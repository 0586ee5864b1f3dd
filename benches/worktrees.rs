//! What making the work trees of many branches costs, compared with plain `git worktree add`, in alternating rounds.
//! Prints a verdict for `scripts/bench`; with `--quick` it only shows that it runs.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use ralph::git::identity::{CommitIdentity, configure, prepare};
use ralph::git::is_tracked;
use ralph::git::trees::list;
use ralph::git::worktrees::add;
use ralph::process::supervisor;

const FILES: usize = 20;

fn main() -> ExitCode {
    // What supervises our git is this executable.
    let argv: Vec<OsString> = std::env::args_os().collect();
    if let [_, verb, rest @ ..] = argv.as_slice()
        && verb == supervisor::VERB
    {
        return ExitCode::from(u8::try_from(supervisor::main(rest)).unwrap_or(1));
    }
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let (rounds, trees) = if quick { (1, 2) } else { (5, 64) };
    let (mut plain, mut ours, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain.push(each(trees, &|root| by_git(root, trees)));
        ours.push(each(trees, &|root| by_ralph(root, trees, &CommitIdentity::default())));
        known.push(each(trees, &|root| by_ralph(root, trees, &identity(root))));
    }
    let plain = median(plain);
    let judge = |what: &str, took: Duration, most: f64| {
        let times = took.as_secs_f64() / plain.as_secs_f64();
        let word = if quick {
            "-"
        } else if times <= most {
            "ok"
        } else {
            "MISSED"
        };
        println!(
            "{word:7} {what:34} {times:.2} times 'git worktree add': {took:.1?}, git alone {plain:.1?} (at most {most} times)"
        );
        times <= most
    };
    let without = judge("a work tree", median(ours), 1.2);
    let with = judge("  with an identity", median(known), 3.0);
    if quick || (without && with) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A new repository with a few files: the fewer there are, the more everything else weighs. Answers the time that `make`
/// took for each of so many trees.
fn each(trees: u32, make: &dyn Fn(&Path)) -> Duration {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let root = folder.path();
    git(root, &["init", "--quiet", "--initial-branch=master"]);
    for file in 0..FILES {
        fs::write(root.join(format!("file{file}")), "content\n".repeat(100)).expect("room on the disk");
    }
    git(root, &["add", "."]);
    let person = ["-c", "user.name=Bench", "-c", "user.email=bench@example.com"];
    git(root, &[&person[..], &["commit", "--quiet", "--message", "Begin"]].concat());
    let begun = Instant::now();
    make(root);
    begun.elapsed() / trees
}

fn by_git(root: &Path, trees: u32) {
    for tree in 0..trees {
        let (branch, path) = (format!("branch{tree}"), format!(".worktrees/branch{tree}"));
        git(root, &["worktree", "add", "--quiet", "-b", &branch, &path, "master"]);
    }
}

/// As `ralph loop build` does it, one after the other.
fn by_ralph(root: &Path, trees: u32, identity: &CommitIdentity) {
    let known = list(root).expect("git lists its work trees");
    if *identity != CommitIdentity::default() {
        prepare(root).expect("the repository can have an identity for each work tree");
    }
    assert!(!is_tracked(root, "master", "IMPLEMENTATION_PLAN.md"));
    for tree in 0..trees {
        let branch = format!("branch{tree}");
        let path = root.join(".worktrees").join(&branch);
        add(root, &path, &branch, "master", Some(&known)).expect("a new work tree");
        configure(&path, identity).expect("a new work tree takes an identity");
    }
}

/// Everything that an identity can have.
fn identity(root: &Path) -> CommitIdentity {
    CommitIdentity {
        name: Some("Agent".into()),
        email: Some("agent@example.com".into()),
        signing_key: Some("0123456789ABCDEF".into()),
        ssh_key: Some(root.join("key")),
    }
}

fn git(root: &Path, arguments: &[&str]) {
    let status = Command::new("git").arg("-C").arg(root).args(arguments).status().expect("git is installed");
    assert!(status.success(), "git {arguments:?}");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
