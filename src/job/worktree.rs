//! What the engine needs to know about the project's files, from git.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::engine::policy::Rooms;
use crate::engine::worktree::{WorkDone, Worktree};
use crate::files::room::Room;
use crate::files::{clock, theirs};
use crate::git::clearing::Clearing;
use crate::git::range::Amount;
use crate::git::{self, Changed};
use crate::project::Project;

/// The project's work tree; without git, changes are unknown.
///
/// Git walks the tree once after each attempt. Writes between two attempts, as by a validation command or a person, are told from
/// those of an agent by the time at which a file was touched.
pub(super) struct GitWorktree {
    root: Option<PathBuf>,
    /// The folder of its repository.
    repository: Option<PathBuf>,
    /// It is a work tree that ralph has made.
    is_ours: bool,
    /// The project and the ralph dir, which are on file systems.
    places: [PathBuf; 2],
    /// The plan, which counts as part of the tree wherever it lies, also if git ignores it.
    plan: PathBuf,
    /// The latest check.
    last: Option<Look>,
    /// What was changed when the iteration began.
    baseline: Option<Vec<Changed>>,
    /// What is known without git, from when the latest agent began.
    at_start: Option<Quick>,
    /// Whether an agent of this iteration has changed something that is seen without git.
    moved: bool,
    /// The times since the first check when no agent worked.
    between: Vec<(SystemTime, SystemTime)>,
    /// What clears up the repository; `None`: git does so by itself.
    clearing: Option<Clearing>,
}

/// What git sees, and when.
struct Look {
    at: SystemTime,
    head: Option<String>,
    files: Vec<Changed>,
}

/// What is known without git: HEAD, and the content of the plan.
type Quick = (Option<String>, u64);

impl GitWorktree {
    /// That of a project, cleared up after agents behind walls.
    pub(super) fn new(project: &Project, plan: PathBuf, is_walled: bool) -> Self {
        let places = [project.root().to_owned(), project.records()];
        let is_ours = project.is_of_branch();
        let clearing = is_walled.then(Clearing::default);
        Self {
            is_ours,
            places,
            clearing,
            ..Self::at(project.in_git().then(|| project.root().to_owned()), plan)
        }
    }

    fn at(root: Option<PathBuf>, plan: PathBuf) -> Self {
        let (last, baseline, at_start, moved, between) = (None, None, None, false, Vec::new());
        let (places, repository) = (Default::default(), root.as_deref().and_then(git::trees::repository));
        let (is_ours, clearing) = (false, None);
        Self { root, repository, is_ours, places, plan, last, baseline, at_start, moved, between, clearing }
    }

    fn quick(&self) -> Quick {
        let mut hasher = DefaultHasher::new();
        theirs::read(&self.plan, theirs::MAX_TEXT).ok().hash(&mut hasher);
        (self.head(), hasher.finish())
    }

    fn look(&mut self) {
        let at = SystemTime::now();
        let head = self.head();
        let files = self.root.as_deref().and_then(git::changes);
        self.last = files.map(|files| Look { at, head, files });
        clock::let_files_be_later_than(at);
    }

    /// Whether something was touched by an agent, by the time of the touch.
    fn is_by_agent(&self, touched: Option<SystemTime>) -> bool {
        let Some(touched) = touched else { return true };
        !self.between.iter().any(|(from, until)| *from < touched && touched < *until)
    }

    /// Whether agents have made the difference between `before` and `now`.
    fn differs(&self, root: &Path, before: &[Changed], now: &[Changed]) -> bool {
        let known: HashMap<&Path, &Changed> = before.iter().map(|file| (file.path.as_path(), file)).collect();
        let is_same = |file: &Changed| known.get(file.path.as_path()).is_some_and(|known| **known == *file);
        let there: HashMap<&Path, &Changed> = now.iter().map(|file| (file.path.as_path(), file)).collect();
        let gone = before.iter().filter(|file| !there.contains_key(file.path.as_path()));
        now.iter().any(|file| !is_same(file) && self.is_by_agent(file.touched))
            || gone.map(|file| git::touched(&root.join(&file.path))).any(|touched| self.is_by_agent(touched))
    }
}

impl Worktree for GitWorktree {
    fn rooms(&self) -> Rooms {
        self.places.each_ref().map(|place| Room::of(place))
    }

    fn head(&self) -> Option<String> {
        self.root.as_deref().and_then(git::head)
    }

    fn lost(&self, head: &str) -> Option<String> {
        let (root, repository) = (self.root.as_deref()?, self.repository.as_deref()?);
        // As long as HEAD names it, no git has to be asked.
        if self.head().as_deref() == Some(head) {
            return None;
        }
        if self.is_ours {
            // If the link cannot be restored, the commit is not found below.
            let _ = git::landing::relink_in(repository, root);
        }
        git::trees::lost(root, repository, head)
    }

    fn work_since(&self, from: Option<&str>) -> Option<WorkDone> {
        let root = self.root.as_deref()?;
        if self.head().as_deref() == from {
            return None;
        }
        let Amount { commits, files, insertions, deletions } = git::range::since(root, from)?;
        Some(WorkDone { from: from.map(str::to_owned), commits, files, insertions, deletions })
    }

    fn iteration_begins(&mut self) {
        // A commit by others changes what git calls changed.
        if self.last.as_ref().is_none_or(|last| last.head != self.head()) {
            self.look();
        }
        self.baseline = self.last.as_ref().map(|last| last.files.clone());
        self.moved = false;
    }

    fn agent_begins(&mut self) {
        if let Some(last) = &self.last {
            let now = SystemTime::now();
            clock::let_files_be_later_than(now);
            self.between.push((last.at, now));
        }
        self.at_start = Some(self.quick());
    }

    fn has_changed(&mut self) -> Option<bool> {
        self.moved |= self.at_start.take().is_some_and(|before| before != self.quick());
        self.look();
        let (root, before, last) = (self.root.as_deref()?, self.baseline.as_ref()?, self.last.as_ref()?);
        Some(self.moved || self.differs(root, before, &last.files))
    }

    fn clear_up(&mut self) {
        if let (Some(clearing), Some(root), Some(repository)) =
            (&mut self.clearing, &self.root, &self.repository)
        {
            clearing.clear_up(root, repository);
        }
    }

    fn is_written_since(&self, time: SystemTime) -> Option<bool> {
        let root = self.root.as_deref()?;
        let plan = std::fs::metadata(&self.plan).and_then(|plan| plan.modified());
        Some(plan.is_ok_and(|written| written > time) || git::changed_since(root, time).is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    struct Scene {
        folder: tempfile::TempDir,
        worktree: GitWorktree,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().to_owned();
            let scene = Self { worktree: GitWorktree::at(Some(root.clone()), root.join("plan")), folder };
            scene.sh(
                "git init -q; echo plan >.git/info/exclude; echo a >tracked; git add .; git commit -qm begin",
            );
            scene
        }

        fn sh(&self, script: &str) {
            let mut sh = Command::new("sh");
            sh.args(["-ec", script]).current_dir(self.folder.path()).env("GIT_CONFIG_GLOBAL", "/dev/null");
            for role in ["AUTHOR", "COMMITTER"] {
                sh.env(format!("GIT_{role}_NAME"), "n").env(format!("GIT_{role}_EMAIL"), "e");
            }
            assert!(sh.status().unwrap().success(), "{script}");
        }

        /// An iteration of one attempt, with what happened before it; whether anything changed.
        fn iteration(&mut self, before: &str, agent: &str) -> bool {
            self.sh(before);
            self.worktree.iteration_begins();
            self.worktree.agent_begins();
            self.sh(agent);
            self.worktree.has_changed().unwrap()
        }
    }

    #[test]
    fn what_others_do_between_attempts_is_no_change() {
        for before in [
            ":",
            "echo >>trace",
            "echo >>tracked",
            "echo >>plan",
            "git commit -q --allow-empty -m by-others",
            "git add -A; git commit -q --allow-empty -m by-others",
            "touch -d yesterday tracked; echo >>tracked",
        ] {
            let mut scene = Scene::new();
            scene.sh("echo >trace");
            assert!(scene.iteration(":", "echo x >>tracked"), "{before}");
            for round in 0..3 {
                assert!(!scene.iteration(before, ":"), "{before}, {round}");
            }
            assert!(scene.iteration(before, "echo x >>trace"), "{before}");
        }
    }

    #[test]
    fn what_agents_do_is_a_change() {
        for agent in [
            "echo >new",
            "rm trace",
            "git checkout -q tracked",
            "git commit -q --allow-empty -m mine",
            "echo >>plan",
            "touch -d yesterday old",
            "rm tracked",
        ] {
            let mut scene = Scene::new();
            assert!(!scene.iteration("echo >trace", ":"), "{agent}");
            // Written in between, so that it is not by an agent.
            assert!(!scene.iteration("echo >>tracked; echo >>trace; echo >old", ":"), "{agent}");
            assert!(scene.iteration("echo >>trace", agent), "{agent}");
            assert!(!scene.iteration(":", ":"), "{agent}");
        }
    }

    #[test]
    fn a_commit_is_lost_with_its_repository() {
        let afterwards = |agent: &str| {
            let mut scene = Scene::new();
            scene.worktree = GitWorktree::at(Some(scene.folder.path().to_owned()), PathBuf::new());
            let before = scene.worktree.head().unwrap();
            scene.sh(agent);
            scene.worktree.lost(&before)
        };
        for kept in [
            ":",
            "git commit -q --allow-empty -m more",
            "git commit -q --amend -m other",
            "git checkout -q --orphan new",
            "git checkout -q --detach; git branch -q -D main master || :",
        ] {
            assert_eq!(afterwards(kept), None, "{kept}");
        }
        for (gone, told) in [
            ("rm -rf .git", "is gone, with all commits"),
            ("rm .git/HEAD", "is gone, with all commits"),
            ("rm -rf .git; git init -q; git add .; git commit -qm anew", "does not have commit"),
        ] {
            let said = afterwards(gone).unwrap();
            assert!(said.contains(told) && said.contains("from a backup or a remote"), "{said}");
        }
    }

    #[test]
    fn a_retry_counts_what_earlier_attempts_did_and_nothing_can_be_told_without_git() {
        let mut scene = Scene::new();
        assert!(scene.iteration(":", "echo >new"));
        scene.worktree.agent_begins();
        assert_eq!(scene.worktree.has_changed(), Some(true));
        let mut nowhere = GitWorktree::at(None, PathBuf::new());
        nowhere.iteration_begins();
        nowhere.agent_begins();
        assert_eq!((nowhere.has_changed(), nowhere.head()), (None, None));
    }
}
