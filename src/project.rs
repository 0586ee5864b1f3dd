//! Where things are: project root, ralph dir, every path.
//!
//! This module only looks and names; the one thing it creates is the ralph dir itself, on demand.

pub(crate) mod file_name;
mod records;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use records::BranchRecords;
use rustix::fs::Access;

/// The file name of the plan of branches.
pub(crate) const BRANCH_PLAN: &str = "IMPLEMENTATION_PLAN.md";

/// Why the project could not be located or used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The current directory was removed or cannot be entered.
    #[error("current directory, {path}: {reason}: change into a folder that exists", path = .path.display())]
    NoCurrentDir {
        /// The directory as it was given.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// `--ralph-dir` was given as an empty string.
    #[error("--ralph-dir is empty: name a folder, or leave the option out")]
    EmptyRalphDir,
    /// No repository around the current directory, and the verb needs one.
    #[error(
        "not a git repository, {path}: run 'git init' in the project's top folder first, or change into a repository",
        path = .path.display()
    )]
    NotARepository {
        /// The directory the search began in.
        path: PathBuf,
    },
    /// A `.git` file names a repository that is gone: a moved or pruned work tree.
    #[error(
        "not a usable git work tree, {path}: its .git file points to a repository that is not there: run 'git worktree repair', or clone again",
        path = .path.display()
    )]
    DanglingWorkTree {
        /// The top of the work tree.
        path: PathBuf,
    },
    /// The place of the ralph dir is taken by a file.
    #[error("ralph dir, {path}: is a file: move it away, or name another folder with --ralph-dir", path = .path.display())]
    RalphDirIsFile {
        /// The ralph dir.
        path: PathBuf,
    },
    /// The ralph dir could not be created, or cannot be written in.
    #[error(
        "ralph dir, {path}: cannot be written ({reason}): mend its permissions, or name another folder with --ralph-dir",
        path = .path.display()
    )]
    RalphDirUnwritable {
        /// The ralph dir.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
}

/// The places of one project. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    cwd: PathBuf,
    root: PathBuf,
    ralph_dir: PathBuf,
    /// Where a branch's loop has its records; `None` for a loop that has them in its ralph dir.
    branch: Option<BranchRecords>,
    config_home: Option<PathBuf>,
    state_home: Option<PathBuf>,
}

impl Project {
    /// Locates the project around `cwd`. `env` looks up an environment variable, `flag` is `--ralph-dir`, `exe` the
    /// running executable. Outside a repository the project root is `cwd` itself; see [`Project::require_git`].
    pub fn locate(
        cwd: &Path,
        env: &dyn Fn(&str) -> Option<OsString>,
        flag: Option<&Path>,
        exe: Option<&Path>,
    ) -> Result<Self, ProjectError> {
        // The physical path, as git takes it: a symlink into a project leads to that project.
        let cwd = fs::canonicalize(cwd)
            .map_err(|reason| ProjectError::NoCurrentDir { path: cwd.to_path_buf(), reason })?;
        let root = find_work_tree(&cwd).map_or_else(|| cwd.clone(), |(root, _)| root);
        let ralph_dir = match flag {
            Some(flag) if flag.as_os_str().is_empty() => return Err(ProjectError::EmptyRalphDir),
            Some(flag) => resolve(&cwd.join(flag)),
            None => match env("RALPH_DIR").filter(|dir| !dir.is_empty()) {
                Some(dir) => resolve(&cwd.join(dir)),
                None => default_ralph_dir(&root, exe),
            },
        };
        let home = |xdg: &str, fallback: &str| {
            // The XDG rules: a relative path in these variables is to be ignored.
            let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
            absolute(xdg).or_else(|| absolute("HOME").map(|home| home.join(fallback)))
        };
        Ok(Self {
            config_home: home("XDG_CONFIG_HOME", ".config"),
            state_home: home("XDG_STATE_HOME", ".local/state"),
            cwd,
            root,
            ralph_dir,
            branch: None,
        })
    }

    /// The places of another loop of the same user, told by its project root and its ralph dir (both absolute).
    #[must_use]
    pub fn elsewhere(&self, root: &Path, ralph_dir: &Path) -> Self {
        Self {
            cwd: root.to_path_buf(),
            root: root.to_path_buf(),
            ralph_dir: ralph_dir.to_path_buf(),
            branch: None,
            config_home: self.config_home.clone(),
            state_home: self.state_home.clone(),
        }
    }

    /// Fails unless the project is a git work tree: for the verbs whose agents work through git.
    pub fn require_git(&self) -> Result<(), ProjectError> {
        if self.in_git() {
            Ok(())
        } else if self.root.join(".git").is_file() {
            Err(ProjectError::DanglingWorkTree { path: self.root.clone() })
        } else {
            Err(ProjectError::NotARepository { path: self.cwd.clone() })
        }
    }

    /// Creates the ralph dir where it is missing and makes sure that it can be written in.
    pub fn create_ralph_dir(&self) -> Result<(), ProjectError> {
        self.require_room()?;
        let path = self.ralph_dir.clone();
        let written = fs::create_dir_all(&path)
            .and_then(|()| Ok(rustix::fs::access(&path, Access::WRITE_OK | Access::EXEC_OK)?));
        written.map_err(|reason| ProjectError::RalphDirUnwritable { path, reason })
    }

    /// Fails when a file stands where the ralph dir, or a folder above it, would have to be.
    pub fn require_room(&self) -> Result<(), ProjectError> {
        match self.ralph_dir.ancestors().find(|path| path.exists()) {
            Some(path) if !path.is_dir() => Err(ProjectError::RalphDirIsFile { path: path.to_path_buf() }),
            _ => Ok(()),
        }
    }

    /// The directory ralph was started in, physical.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The top of the git work tree, else the current directory: the agents' working directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the project root is the top of a usable git work tree.
    #[must_use]
    pub fn in_git(&self) -> bool {
        find_work_tree(&self.root).is_some_and(|(top, usable)| usable && top == self.root)
    }

    /// The folder of ralph's own files; may not exist yet.
    #[must_use]
    pub fn ralph_dir(&self) -> &Path {
        &self.ralph_dir
    }

    /// The ralph dir as a prompt names it: relative to the project root (`.ralph`, `.`), absolute when it lies outside.
    #[must_use]
    pub fn ralph_home(&self) -> PathBuf {
        self.relative(&self.ralph_dir)
    }

    /// `path` relative to the project root (`.` for the root itself), unchanged when it lies outside.
    #[must_use]
    pub fn relative(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.root) {
            Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
            Ok(rest) => rest.to_path_buf(),
            Err(_) => path.to_path_buf(),
        }
    }

    /// The shell-style configuration, `config`.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.ralph_dir.join("config")
    }

    /// The prompt of a mode, `prompts/MODE.md`; where it is missing a built-in prompt serves.
    #[must_use]
    pub fn prompt(&self, mode: &str) -> PathBuf {
        self.ralph_dir.join("prompts").join(format!("{mode}.md"))
    }

    /// The plan that the agents keep, `implementation_plan.md`.
    #[must_use]
    pub fn implementation_plan(&self) -> PathBuf {
        self.ralph_dir.join("implementation_plan.md")
    }

    /// The plan of branches, `IMPLEMENTATION_PLAN.md` at the project root.
    #[must_use]
    pub fn branch_plan(&self) -> PathBuf {
        self.root.join(BRANCH_PLAN)
    }

    /// The work tree of a branch, `.worktrees/BRANCH` at the project root.
    #[must_use]
    pub fn worktree(&self, branch: &str) -> PathBuf {
        self.root.join(".worktrees").join(branch)
    }

    /// The project's settings, `ralph.toml` at the project root.
    #[must_use]
    pub fn project_settings(&self) -> PathBuf {
        self.root.join("ralph.toml")
    }

    /// The user's settings, `~/.config/ralph/ralph.toml`; `None` without a home directory.
    #[must_use]
    pub fn user_settings(&self) -> Option<PathBuf> {
        Some(self.config_home.as_ref()?.join("ralph/ralph.toml"))
    }

    /// The user's registry of loops, `~/.local/state/ralph/loops`; `None` without a home directory.
    #[must_use]
    pub fn registry(&self) -> Option<PathBuf> {
        Some(self.state_home.as_ref()?.join("ralph/loops"))
    }
}

/// The top of the work tree around `start`, and whether its repository is there. A `.git` file ends the search even
/// when what it points to is gone: working on in an outer repository would change the wrong project.
fn find_work_tree(start: &Path) -> Option<(PathBuf, bool)> {
    start.ancestors().find_map(|dir| {
        let git = dir.join(".git");
        if git.is_dir() {
            return is_git_dir(&git).then(|| (dir.to_path_buf(), true));
        }
        let target = git_file_target(&git)?;
        Some((dir.to_path_buf(), is_git_dir(&dir.join(target))))
    })
}

/// An empty `.git` folder is no repository; HEAD may be a (dangling) symlink in old ones.
fn is_git_dir(dir: &Path) -> bool {
    dir.join("HEAD").symlink_metadata().is_ok()
}

/// What a `.git` file of a work tree or submodule points to.
fn git_file_target(file: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    if !file.is_file() {
        return None;
    }
    let content = fs::read(file).ok()?;
    let target = content.strip_prefix(b"gitdir:")?.trim_ascii();
    Some(PathBuf::from(OsString::from_vec(target.to_vec())))
}

/// The ralph dir where neither flag nor environment names one.
fn default_ralph_dir(root: &Path, exe: Option<&Path>) -> PathBuf {
    let has_prompt =
        |dir: &Path| ["plan.md", "build.md"].iter().any(|name| dir.join("prompts").join(name).is_file());
    let has_config = |dir: &Path| dir.join("config").is_file();

    let vendored = exe.and_then(|exe| resolve(exe).parent().map(Path::to_path_buf));
    if let Some(dir) = vendored.filter(|dir| has_config(dir) || has_prompt(dir)) {
        return dir;
    }
    let usual = root.join(".ralph");
    if !usual.is_dir() && has_config(root) && has_prompt(root) {
        return root.to_path_buf();
    }
    usual
}

/// The real path of something that may not exist yet: symlinks and `..` resolved as far as it does exist.
fn resolve(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => resolve(parent).join(name),
        _ => path.to_path_buf(),
    })
}

#[cfg(test)]
mod tests;
