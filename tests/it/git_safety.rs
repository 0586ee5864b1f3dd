//! Any sequence of git and ralph commands on worktrees: no commit becomes unreachable, and no uncommitted byte is
//! lost.
//!
//! `PROPTEST_CASES=200 cargo test --test it git_safety` looks longer.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use ralph::git::revert;

use crate::scratch::{Scratch, side_by_side};

const BRANCHES: [&str; 3] = ["a", "b", "feature/c"];
/// Every branch changes it, so that merges conflict.
const SHARED: &str = "shared";

/// How something is written into a tree that is not committed then.
#[derive(Debug, Clone, Copy)]
enum Written {
    Tracked,
    Untracked,
    Staged,
    /// Staged, and other words written over it.
    StagedAndChanged,
    /// Into a tracked file that git does not look at.
    Hidden,
}

/// One step; the number says in which tree.
#[derive(Debug, Clone, Copy)]
enum Step {
    Commit(usize),
    Amend(usize),
    /// A commit on no branch.
    Detach(usize),
    /// Back to the branch, as far as git allows it.
    Attach(usize),
    Write(usize, Written),
    Merge(usize, usize),
    Rebase(usize, usize),
    Stash(usize),
    Bisect(usize),
    Revert(usize),
    /// `ralph clean --worktrees [NAME] [--force]`.
    Clean(Option<usize>, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let tree = || 0..BRANCHES.len();
    let written = prop_oneof![
        Just(Written::Tracked),
        Just(Written::Untracked),
        Just(Written::Staged),
        Just(Written::StagedAndChanged),
        Just(Written::Hidden),
    ];
    prop_oneof![
        3 => tree().prop_map(Step::Commit),
        1 => tree().prop_map(Step::Amend),
        2 => tree().prop_map(Step::Detach),
        1 => tree().prop_map(Step::Attach),
        4 => (tree(), written).prop_map(|(tree, how)| Step::Write(tree, how)),
        2 => (tree(), tree()).prop_map(|(tree, other)| Step::Merge(tree, other)),
        1 => (tree(), tree()).prop_map(|(tree, other)| Step::Rebase(tree, other)),
        1 => tree().prop_map(Step::Stash),
        1 => tree().prop_map(Step::Bisect),
        1 => tree().prop_map(Step::Revert),
        4 => (prop::option::of(tree()), any::<bool>()).prop_map(|(tree, force)| Step::Clean(tree, force)),
    ]
}

/// A repository, and everything that was put into it.
struct World {
    scratch: Scratch,
    words: Vec<String>,
    /// Every commit that was seen so far.
    commits: BTreeSet<String>,
}

impl World {
    fn new() -> Self {
        let scratch = Scratch::new();
        scratch.git(&["config", "gc.auto", "0"]);
        scratch.write(SHARED, "first line\n");
        scratch.write("hidden", "first line\n");
        scratch.git(&["add", SHARED, "hidden"]);
        scratch.git(&["commit", "--quiet", "-m", "start"]);
        Self { scratch, words: Vec::new(), commits: BTreeSet::new() }
    }

    /// The tree of a branch, made where it is missing.
    fn tree(&self, tree: usize) -> PathBuf {
        let branch = BRANCHES[tree];
        let path = self.scratch.path(".worktrees").join(branch);
        if !path.exists() {
            let exists = self.git(&self.scratch.root(), &["rev-parse", "--verify", "--quiet", branch]);
            let start = if exists { vec![branch] } else { vec!["-b", branch, "main"] };
            let made = [&["worktree", "add", "--quiet", path.to_str().unwrap()], &start[..]].concat();
            assert!(self.git(&self.scratch.root(), &made), "{branch}");
        }
        path
    }

    /// Runs git; in the middle of something it may well refuse.
    fn git(&self, at: &Path, args: &[&str]) -> bool {
        let mut command = self.scratch.command("git");
        command.env("GIT_EDITOR", "true").arg("-C").arg(at).args(args);
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }

    fn word(&mut self) -> String {
        let word = format!("word{:04}.", self.words.len());
        self.words.push(word.clone());
        word
    }

    fn append(&mut self, path: &Path) {
        let word = self.word();
        let mut file = fs::File::options().append(true).create(true).open(path).unwrap();
        writeln!(file, "{word}").unwrap();
    }

    fn write(&mut self, tree: &Path, how: Written) {
        let name = format!("new{}", self.words.len());
        let new = tree.join(&name);
        match how {
            Written::Tracked => self.append(&tree.join(SHARED)),
            Written::Untracked => self.append(&new),
            Written::Staged | Written::StagedAndChanged => {
                self.append(&new);
                let is_staged = self.git(tree, &["add", &name]);
                if is_staged && matches!(how, Written::StagedAndChanged) {
                    fs::write(new, self.word()).unwrap();
                }
            }
            Written::Hidden => {
                self.git(tree, &["update-index", "--assume-unchanged", "hidden"]);
                self.append(&tree.join("hidden"));
            }
        }
    }

    /// Not with `--all`: that would replace what is staged in other files.
    fn commit(&mut self, tree: &Path, how: &[&str]) {
        self.append(&tree.join(SHARED));
        self.git(tree, &["add", SHARED]);
        self.git(tree, &[&["commit", "--quiet", "-m", "commit"], how].concat());
    }

    fn take(&mut self, step: Step) {
        if let Step::Attach(tree)
        | Step::Merge(tree, _)
        | Step::Rebase(tree, _)
        | Step::Stash(tree)
        | Step::Bisect(tree) = step
            && has_hidden(&self.tree(tree))
        {
            return;
        }
        match step {
            Step::Commit(tree) => {
                let tree = self.tree(tree);
                self.commit(&tree, &[]);
            }
            Step::Amend(tree) => {
                let tree = self.tree(tree);
                self.commit(&tree, &["--amend"]);
            }
            Step::Detach(tree) => {
                let tree = self.tree(tree);
                self.git(&tree, &["checkout", "--quiet", "--detach"]);
                self.commit(&tree, &[]);
            }
            Step::Attach(tree) => drop(self.git(&self.tree(tree), &["checkout", "--quiet", BRANCHES[tree]])),
            Step::Write(tree, how) => {
                let tree = self.tree(tree);
                self.write(&tree, how);
            }
            Step::Merge(tree, other) => {
                self.tree(other);
                self.git(&self.tree(tree), &["merge", "--quiet", "--no-edit", BRANCHES[other]]);
            }
            Step::Rebase(tree, other) => {
                self.tree(other);
                let tree = self.tree(tree);
                // git gives back only the files of an autostash, not what was staged.
                let nothing_is_staged = self.git(&tree, &["diff", "--cached", "--quiet"]);
                let autostash = if nothing_is_staged { "--autostash" } else { "--no-autostash" };
                self.git(&tree, &["rebase", "--quiet", autostash, BRANCHES[other]]);
            }
            Step::Stash(tree) => drop(self.git(&self.tree(tree), &["stash", "-u", "--quiet"])),
            Step::Bisect(tree) => drop(self.git(&self.tree(tree), &["bisect", "start", "HEAD", "main"])),
            Step::Revert(tree) => {
                let tree = self.tree(tree);
                if let Some(head) = ralph::git::head(&tree)
                    && let Ok(mut commits) = revert::commits_between(&tree, None, &head)
                {
                    commits.truncate(1);
                    let _ = revert::revert(&tree, &commits);
                }
            }
            Step::Clean(tree, force) => {
                let name = tree.map_or("", |tree| BRANCHES[tree]);
                let force = if force { "--force" } else { "" };
                let run = self.scratch.run(&format!("clean --worktrees {name} {force}"));
                assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
            }
        }
    }

    fn check(&mut self) {
        // Every HEAD, ref, reflog and index of every tree that is there, and what a rebase has put aside.
        let autostashes = self.autostashes();
        let all = ["rev-list", "--objects", "--all", "--reflog", "--indexed-objects"].into_iter();
        let found = self.scratch.git(&all.chain(autostashes.iter().map(String::as_str)).collect::<Vec<_>>());
        // Trees and files have a path, an empty one at the top; commits have none.
        let commits: BTreeSet<String> =
            found.lines().filter(|line| !line.contains(' ')).map(str::to_owned).collect();
        let lost: Vec<String> = self.commits.difference(&commits).cloned().collect();
        assert!(lost.is_empty(), "lost commits: {lost:?}");
        self.commits = commits;

        assert!(!self.commits.is_empty());
        let objects: BTreeSet<&str> = found.lines().filter_map(|line| line.split(' ').next()).collect();
        let mut texts = self.contents(&objects);
        texts.extend(self.scratch.snapshot().into_iter().flat_map(|(_, content)| content));
        let texts = String::from_utf8_lossy(&texts);
        for word in &self.words {
            assert!(texts.contains(word), "lost: {word}");
        }
    }

    fn autostashes(&self) -> Vec<String> {
        let trees = fs::read_dir(self.scratch.path(".git/worktrees")).into_iter().flatten().flatten();
        let read = |tree: fs::DirEntry| fs::read_to_string(tree.path().join("rebase-merge/autostash")).ok();
        trees.filter_map(read).map(|id| id.trim().to_owned()).collect()
    }

    /// The contents of these objects, concatenated.
    fn contents(&self, objects: &BTreeSet<&str>) -> Vec<u8> {
        let list = self.scratch.outside().join("objects");
        fs::write(&list, objects.iter().copied().collect::<Vec<_>>().join("\n")).unwrap();
        let mut command = self.scratch.command("git");
        command.args(["cat-file", "--batch"]).stdin(fs::File::open(list).unwrap());
        command.output().unwrap().stdout
    }
}

/// Whether git itself would lose text: it overwrites files whose changes it ignores.
fn has_hidden(tree: &Path) -> bool {
    fs::read_to_string(tree.join("hidden")).is_ok_and(|content| content.contains("word"))
}

#[test]
fn nothing_is_ever_lost() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(30_u32);
    let config = ProptestConfig {
        cases: cases.div_ceil(3),
        max_shrink_iters: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    side_by_side(&[(); 3], |()| {
        let found = TestRunner::new(config.clone()).run(&vec(step(), 4..16), |steps| {
            let mut world = World::new();
            for step in steps {
                world.take(step);
                world.check();
            }
            Ok(())
        });
        found.unwrap_or_else(|error| panic!("{error}"));
    });
}
