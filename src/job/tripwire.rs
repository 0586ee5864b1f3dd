//! The tripwire of a loop: what is looked at before and after each attempt, and kept as it was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::engine::tripwire::Tripwire;
use crate::files::atomic::{self, Durability};
use crate::files::{own, theirs};
use crate::git;
use crate::git::trees;
use crate::project::{Project, WORKTREES};
use crate::settings::sandbox::Tripping;

/// What shells, ssh, cron and git run or believe, below the home directory.
const OF_HOME: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/fish/config.fish",
    ".config/git/config",
    ".gitconfig",
    ".profile",
    ".ssh/authorized_keys",
    ".ssh/authorized_keys2",
    ".ssh/config",
    ".ssh/rc",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];
/// A folder of such files.
const FOLDER_OF_HOME: &str = ".config/fish/conf.d";
/// The tables of cron, each named after its user; only some systems let that user read it.
const CRONTABS: &str = "/var/spool/cron/crontabs";
/// The largest file that is looked at, in bytes.
const MOST: u64 = 1 << 20;
/// Hooks that git brings along and does not run.
const SAMPLE: &str = "sample";

/// Watches the surroundings of one loop.
pub(super) struct Surroundings {
    /// The work tree, the common folder of git and its own; `None`: there is no git.
    git: Option<[PathBuf; 3]>,
    /// What ralph itself makes and moves work trees in, below the checkout whose branch may follow what lands.
    ours: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Where what has changed is kept as it was.
    folder: PathBuf,
    run: String,
    stops: bool,
    seen: BTreeMap<PathBuf, Seen>,
    /// How many were kept.
    kept: usize,
}

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// What tells that it was changed since: when, how long it is, and which one it is. The first cannot be set.
    stamp: (i64, i64, u64, u64),
    /// Who may do what with it.
    mode: u32,
    /// What counts of it; of an index, its entries. `None`: it is too large, or cannot be read.
    text: Option<Vec<u8>>,
}

impl Seen {
    /// Whether it is as it was, as far as that counts.
    fn is_as(&self, before: &Self) -> bool {
        let is_same = match (&self.text, &before.text) {
            (None, None) => self.stamp == before.stamp,
            (now, before) => now == before,
        };
        is_same && self.mode == before.mode
    }
}

impl Surroundings {
    /// `None`: the settings want none.
    pub(super) fn of(project: &Project, how: Tripping, run: &str) -> Option<Self> {
        if how == Tripping::Off {
            return None;
        }
        Some(Self {
            git: folders(project),
            ours: [WORKTREES.into(), project.runs(), project.proofs()]
                .into_iter()
                .chain(project.proofs_of_all())
                .collect(),
            home: std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
            folder: project.tripwire(),
            run: run.to_owned(),
            stops: how == Tripping::Stop,
            seen: BTreeMap::new(),
            kept: 0,
        })
    }

    /// All that is looked at, as it is now. What has not been written since is not read again.
    fn look(&self) -> BTreeMap<PathBuf, Seen> {
        let mut found = BTreeMap::new();
        let mut add = |path: PathBuf, read: &dyn Fn(&Path) -> Option<Vec<u8>>| {
            let Some(metadata) = path.metadata().ok().filter(|metadata| !metadata.is_dir()) else { return };
            let stamp = (metadata.ctime(), metadata.ctime_nsec(), metadata.len(), metadata.ino());
            let known =
                self.seen.get(&path).filter(|known| known.stamp == stamp).map(|known| known.text.clone());
            let text = known.unwrap_or_else(|| read(&path));
            found.insert(path, Seen { stamp, mode: metadata.mode(), text });
        };
        let whole = |path: &Path| theirs::read(path, MOST).ok();
        if let Some(home) = &self.home {
            let others = files_in(&home.join(FOLDER_OF_HOME));
            OF_HOME.iter().map(|name| home.join(name)).chain(others).for_each(|file| add(file, &whole));
        }
        for user in ["USER", "LOGNAME"].iter().filter_map(std::env::var_os) {
            add(Path::new(CRONTABS).join(user), &whole);
        }
        let Some([root, common, own]) = &self.git else { return found };
        let settings = |path: &Path| whole(path).map(|text| without_branches(&text));
        let worktree = [common, own].map(|folder| folder.join("config.worktree"));
        let settings_of_parts = repositories_in(&common.join("modules")).into_iter();
        let repositories: Vec<PathBuf> = settings_of_parts.chain([common.clone()]).collect();
        for file in repositories.iter().map(|folder| folder.join("config")).chain(worktree) {
            add(file, &settings);
        }
        add(common.join("info/attributes"), &whole);
        for hook in repositories.iter().flat_map(|folder| files_in(&folder.join("hooks"))) {
            if hook.extension().is_none_or(|end| end != SAMPLE) {
                add(hook, &whole);
            }
        }
        for (tree, folder) in self.other_trees(root, common) {
            add(folder.join("HEAD"), &whole);
            add(folder.join("index"), &|_| trees::entries(&tree));
        }
        found
    }

    /// Checkouts of the repository that are neither this one nor ralph's own, each with its folder of git.
    fn other_trees(&self, root: &Path, common: &Path) -> Vec<(PathBuf, PathBuf)> {
        // Without a linked one there is no other.
        if fs::read_dir(common.join("worktrees")).map_or(true, |mut all| all.next().is_none()) {
            return Vec::new();
        }
        let listed = trees::list(root).unwrap_or_default().into_iter().filter(|tree| !tree.is_gone);
        let paths: Vec<PathBuf> = listed.map(|tree| tree.path).collect();
        let main = paths.first().cloned().unwrap_or_default();
        // Another run may work from another checkout.
        let ours: Vec<PathBuf> =
            paths.iter().flat_map(|path| self.ours.iter().map(|folder| path.join(folder))).collect();
        let is_ours = |path: &Path| ours.iter().any(|folder| path.starts_with(folder));
        // From one of ours, the branch of the main one may follow what lands.
        let is_other = |path: &PathBuf| path != root && !is_ours(path) && !(*path == main && is_ours(root));
        let paths = paths.iter().filter(|path| is_other(path)).cloned();
        paths.filter_map(|path| Some((path.clone(), git::repository::git_dir(&path).ok()?))).collect()
    }

    /// Keeps what was there; returns where.
    fn keep(&mut self, path: &Path, old: &[u8]) -> Option<PathBuf> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        own::make_folders(&self.folder).ok()?;
        let copy = self.folder.join(format!("{}-{}-{name}", self.run, self.kept));
        self.kept += 1;
        atomic::write_own(&copy, old, Durability::Atomic).ok()?;
        Some(copy)
    }
}

impl Tripwire for Surroundings {
    fn set(&mut self) {
        self.seen = self.look();
    }

    fn sprung(&mut self) -> Vec<String> {
        let now = self.look();
        let before = std::mem::replace(&mut self.seen, now);
        let mut told = Vec::new();
        for (path, old) in &before {
            let what = match self.seen.get(path) {
                Some(new) if new.is_as(old) => continue,
                Some(_) => "was changed",
                None => "was removed",
            };
            let shown = path.display();
            let kept = old.text.as_ref().and_then(|old| self.keep(path, old));
            let kept =
                kept.map(|kept| format!("; what it was is kept as {}", kept.display())).unwrap_or_default();
            told.push(format!("{shown} {what} during this attempt, and not by ralph{kept}"));
        }
        let new = self.seen.keys().filter(|path| !before.contains_key(*path));
        told.extend(
            new.map(|path| format!("{} was made during this attempt, and not by ralph", path.display())),
        );
        told
    }

    fn stops(&self) -> bool {
        self.stops
    }
}

/// The work tree of a project, with git's folders of it.
fn folders(project: &Project) -> Option<[PathBuf; 3]> {
    let root = project.in_git().then(|| project.root().to_owned())?;
    let (common, own) = (git::common_dir(&root).ok()?, git::git_dir(&root).ok()?);
    Some([root, common, own])
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The repositories of submodules, at any depth.
fn repositories_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let folders = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for entry in folders.map(|entry| entry.path()) {
        if entry.join("HEAD").is_file() {
            found.extend(repositories_in(&entry.join("modules")));
            found.push(entry);
        } else {
            found.extend(repositories_in(&entry));
        }
    }
    found
}

/// Settings of git without those of branches, which every push and pull may write.
fn without_branches(text: &[u8]) -> Vec<u8> {
    let (mut is_branch, mut goes_on) = (false, false);
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| {
        let line = line.trim_ascii();
        // A value may go on in the next line, a comment does not, and settings may follow in the line of their header.
        if line.starts_with(b"[") {
            let is_alone = line.ends_with(b"\"]") && !line[1..].contains(&b'[');
            // Too much may count, and not too little.
            is_branch = line.starts_with(b"[branch ") && is_alone && !goes_on;
        }
        goes_on = line.ends_with(b"\\");
        !is_branch
    });
    lines.flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_branches_are_no_matter() {
        let text = b"[core]\n\ta = b\n[branch \"x\"]\n\tremote = origin\n[alias]\n\tc = d\n";
        assert_eq!(without_branches(text), b"[core]\n\ta = b\n[alias]\n\tc = d\n");
        for tricky in [
            "[branch \"x\"] a = b\n",
            "[branch \"x\"] [core \"y\"]\na = b\n",
            "[core]\na = b\\\n[branch \"x\"]\nc = d\n",
        ] {
            assert_eq!(without_branches(tricky.as_bytes()), tricky.as_bytes(), "{tricky}");
        }
    }
}
