//! The path of the graph of tasks.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::repository::{MAX_POINTER, is_git_dir, pointer};
use super::{Project, ProjectError, default_ralph_dir, require_writable, run_dir};
use crate::files::{own, theirs};

/// The largest git configuration that is read.
const MAX_CONFIG: u64 = 1 << 20;

/// The file name of the graph of tasks.
pub(crate) const GRAPH: &str = "progress.db";

impl Project {
    /// The graph of tasks, `progress.db`: in the main checkout for all work trees; in the git folder of a bare
    /// repository.
    #[must_use]
    pub fn graph(&self) -> PathBuf {
        self.graph_dir().join(GRAPH)
    }

    /// Creates the folder of the graph if it is missing, and checks that it is writable.
    pub fn create_graph_dir(&self) -> Result<(), ProjectError> {
        let path = &self.graph_dir();
        if *path == self.run_dir {
            return self.create_run_dir();
        }
        own::make_folder(path).and_then(|()| require_writable(path)).map_err(Self::unwritable(path))
    }

    /// The folder of the graph, with the files of its features. Computed on demand, because it reads several files of
    /// git.
    #[must_use]
    pub fn graph_dir(&self) -> PathBuf {
        let shared = if self.is_named { None } else { graph_dir(&self.cwd, &self.root, self.exe.as_deref()) };
        shared.unwrap_or_else(|| self.run_dir.clone())
    }
}

/// The folder of a repository's graph, if that is not this work tree's own: one graph serves all trees, and outlives
/// them. It is in the main checkout; if a linked work tree cannot find that, as in a bare repository and with
/// `--separate-git-dir`, it is in the git folder.
fn graph_dir(cwd: &Path, root: &Path, exe: Option<&Path>) -> Option<PathBuf> {
    let outside = |dir: &&Path| dir.iter().all(|name| name != ".git");
    let around = cwd.ancestors().take_while(|dir| *dir != root || !root.join(".git").exists());
    if let Some(bare) = around.filter(outside).find(|dir| is_bare(dir)) {
        return Some(bare.join("ralph"));
    }
    let git_dir = fs::canonicalize(root.join(pointer(&root.join(".git")).ok()??)).ok()?;
    let common = common_dir(&git_dir).unwrap_or(git_dir);
    let is_inside = common.file_name().is_some_and(|name| name == ".git");
    let main = if is_inside { common.parent().map(Path::to_path_buf) } else { named_work_tree(&common) };
    let Some(main) = main else { return Some(common.join("ralph")) };
    let ralph_dir = default_ralph_dir(&main, exe);
    // A vendored program's folder is in the main checkout, too.
    let ralph_dir = ralph_dir.strip_prefix(root).map_or(ralph_dir.clone(), |inside| main.join(inside));
    Some(run_dir(&main, &ralph_dir))
}

/// The main checkout that the configuration of a git folder names, as a submodule's does.
fn named_work_tree(git_dir: &Path) -> Option<PathBuf> {
    ["config.worktree", "config"].iter().find_map(|name| {
        let config = theirs::read(&git_dir.join(name), MAX_CONFIG).ok()?;
        let mut is_core = false;
        config.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find_map(|line| {
            if line.starts_with(b"[") {
                is_core = line.eq_ignore_ascii_case(b"[core]");
            }
            let equals = line.iter().position(|&byte| byte == b'=').filter(|_| is_core)?;
            let (key, value) = line.split_at(equals);
            let is_work_tree = key.trim_ascii().eq_ignore_ascii_case(b"worktree");
            let value = value[1..].trim_ascii();
            let value =
                value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
            let path = git_dir.join(OsString::from_vec(value.to_vec()));
            is_work_tree.then(|| fs::canonicalize(path).ok())?
        })
    })
}

/// The shared git folder of a linked work tree's git folder; `None` if it is not a linked one.
fn common_dir(git_dir: &Path) -> Option<PathBuf> {
    let content = theirs::read(&git_dir.join("commondir"), MAX_POINTER).ok()?;
    let common = PathBuf::from(OsString::from_vec(content.trim_ascii().to_vec()));
    fs::canonicalize(git_dir.join(common)).ok()
}

/// Whether a folder is a git folder without a work tree.
fn is_bare(dir: &Path) -> bool {
    is_git_dir(dir) && dir.join("objects").is_dir() && dir.join("refs").is_dir()
}
