//! Paths: project root, ralph dir, and every file of ralph.
//!
//! This module reads and names; it creates only the ralph dir and the run dir, on demand.
//!
//! The **ralph dir** holds the user's files: config, prompts, the plan. It may be any folder, including the project
//! root. The **run dir** holds ralph's run-time files: it is the ralph dir if that is ours alone, else a `.ralph` in
//! it, so that the project's own `logs/`, `lock` or `requests/` are never touched.

pub(crate) mod file_name;
mod graph;
mod records;
mod repository;

use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use records::BranchRecords;
use repository::Repository;
use rustix::fs::Access;

use crate::files::{self, own};
use crate::platform::home;
pub(crate) use graph::GRAPH;

/// The file name of the plan of branches.
pub(crate) const BRANCH_PLAN: &str = "IMPLEMENTATION_PLAN.md";

/// The file name of the plan that the agents maintain.
const PLAN: &str = "implementation_plan.md";
/// The default name of the ralph dir, and of a run dir in another folder.
const DOT_RALPH: &str = ".ralph";
/// The folder of the work trees that are ours, below the project root.
pub(crate) const WORKTREES: &str = ".worktrees";
/// The folder for terminals used by `ralph watch`, in the user's state folder.
const WATCHED_TERMINALS: &str = "ralph/watch";
/// Marks a `.ralph` as the run dir of its parent folder, and not a ralph dir.
const RUN_DIR_MARK: &str = "run-files-only";
const RUN_DIR_TEXT: &[u8] =
    b"What ralph writes while it runs lies here; config, prompts and plan are in the folder above.\n";

/// Why the project could not be located or used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The current directory was removed or cannot be entered.
    #[error("current directory, {path}: {reason}: change into a folder that exists", path = .path.display())]
    NoCurrentDir {
        /// The directory as it was given.
        path: PathBuf,
        /// The system error.
        reason: io::Error,
    },
    /// `--ralph-dir` was given as an empty string.
    #[error("--ralph-dir is empty: name a folder, or leave the option out")]
    EmptyRalphDir,
    /// The current directory is not in a repository, and the verb needs one.
    #[error(
        "not a git repository, {path}: run 'git init' in the project's top folder first, or change into a repository",
        path = .path.display()
    )]
    NotARepository {
        /// The directory in which the search began.
        path: PathBuf,
    },
    /// The current directory is a repository without files.
    #[error(
        "a bare git repository, {path}: agents need its files: make a work tree with 'git worktree add ../work', and change into it",
        path = .path.display()
    )]
    BareRepository {
        /// The repository.
        path: PathBuf,
    },
    /// A `.git` file names a missing repository, as in a moved or pruned work tree.
    #[error(
        "not a usable git work tree, {path}: its .git file points to a repository that is not there: run 'git worktree repair {path}' in the repository that it belongs to, or clone again",
        path = .path.display()
    )]
    DanglingWorkTree {
        /// The top of the work tree.
        path: PathBuf,
    },
    /// A file of git cannot be read, or would block git: a FIFO, a device; or the system lacks resources to open it.
    #[error("git's file {path}: {reason}: {way_out}", path = .path.display(), way_out = files::way_to_read(.reason))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system error, or the kind of file.
        reason: io::Error,
    },
    /// There is a file at the ralph dir's path.
    #[error("ralph dir, {path}: is a file: move it away, or name another folder with --ralph-dir", path = .path.display())]
    RalphDirIsFile {
        /// The ralph dir.
        path: PathBuf,
    },
    /// The folder that `--ralph-dir` names does not exist, and the verb reads it.
    #[error("--ralph-dir {path}: there is no such folder: check the name, or leave the option out", path = .path.display())]
    NoRalphDir {
        /// The ralph dir.
        path: PathBuf,
    },
    /// The ralph dir, or the run dir in it, cannot be read.
    #[error("ralph dir, {path}: cannot be read ({reason}): {advice}, or name another folder with --ralph-dir",
        path = .path.display(), advice = files::way_to_read(.reason)
    )]
    RalphDirUnreadable {
        /// The folder.
        path: PathBuf,
        /// The system error.
        reason: io::Error,
    },
    /// One of ralph's folders is a link.
    #[error(
        "ralph's folder, {path}: it is a symbolic link, and ralph's files would lie where it leads: remove it; where it is \
         committed, from the branch",
        path = .path.display()
    )]
    FolderIsLink {
        /// The folder.
        path: PathBuf,
    },
    /// The default ralph dir is a link that leads out of the project, and no setting names its target.
    #[error(
        "ralph dir, {path}: it is a symbolic link out of the project, to {target}: remove it, or say with --ralph-dir \
         {target} that this is the folder that you mean",
        path = .path.display(), target = .target.display()
    )]
    RalphDirLeadsAway {
        /// The link.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// The ralph dir cannot be created, or is not writable.
    #[error(
        "ralph dir, {path}: cannot be written ({reason}): {advice}, or name another folder with --ralph-dir",
        path = .path.display(),
        advice = files::way_to_write(.reason)
    )]
    RalphDirUnwritable {
        /// The ralph dir.
        path: PathBuf,
        /// The system error.
        reason: io::Error,
    },
}

/// The paths of one project, all absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    cwd: PathBuf,
    root: PathBuf,
    ralph_dir: PathBuf,
    run_dir: PathBuf,
    /// Whether a flag or the environment named the ralph dir: then the graph of tasks is there, and not where all
    /// work trees share it.
    is_named: bool,
    exe: Option<PathBuf>,
    /// The records of a branch's loop; `None` for a loop with its records in its ralph dir.
    branch: Option<BranchRecords>,
    /// The current run.
    run: Option<String>,
    /// The runs' folder of a worker.
    worker_runs: Option<PathBuf>,
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
        // The physical path, as git uses it: a symlink into a project leads to that project.
        let cwd = fs::canonicalize(cwd)
            .map_err(|reason| ProjectError::NoCurrentDir { path: cwd.to_path_buf(), reason })?;
        let root = Repository::around(&cwd).map_or_else(|| cwd.clone(), |found| found.root);
        let named = match flag {
            Some(flag) if flag.as_os_str().is_empty() => return Err(ProjectError::EmptyRalphDir),
            Some(flag) => Some(resolve(&cwd.join(flag))),
            None => env("RALPH_DIR").filter(|dir| !dir.is_empty()).map(|dir| resolve(&cwd.join(dir))),
        };
        // In a work tree of ours, the named one is that of the project that has the tree.
        let above =
            named.as_deref().and_then(Path::parent).filter(|above| root.starts_with(above.join(WORKTREES)));
        let root = above.map(Path::to_path_buf).unwrap_or(root);
        let is_named = named.is_some();
        let ralph_dir = named.unwrap_or_else(|| default_ralph_dir(&root, exe));
        if !is_named && ralph_dir.starts_with(&root) && !resolve(&ralph_dir).starts_with(&root) {
            let target = resolve(&ralph_dir);
            return Err(ProjectError::RalphDirLeadsAway { path: ralph_dir, target });
        }
        let run_dir = run_dir(&root, &ralph_dir);
        Ok(Self {
            config_home: home::of(env, ("XDG_CONFIG_HOME", ".config")),
            state_home: home::of(env, home::STATE),
            cwd,
            is_named,
            exe: exe.map(Path::to_path_buf),
            run_dir,
            root,
            ralph_dir,
            branch: None,
            run: None,
            worker_runs: None,
        })
    }

    /// The paths of another loop of the same user, by its project root and its ralph dir (both absolute).
    #[must_use]
    pub fn elsewhere(&self, root: &Path, ralph_dir: &Path) -> Self {
        self.elsewhere_with(root, ralph_dir, run_dir(root, ralph_dir))
    }

    /// [`elsewhere`](Self::elsewhere) with a known run dir: finding it resolves every link on the way.
    #[must_use]
    pub fn elsewhere_with(&self, root: &Path, ralph_dir: &Path, run_dir: PathBuf) -> Self {
        Self {
            is_named: false,
            exe: None,
            cwd: root.to_path_buf(),
            root: root.to_path_buf(),
            ralph_dir: ralph_dir.to_path_buf(),
            run_dir,
            branch: None,
            run: None,
            worker_runs: None,
            config_home: self.config_home.clone(),
            state_home: self.state_home.clone(),
        }
    }

    /// Fails unless the project is a git work tree: for verbs whose agents use git.
    pub fn require_git(&self) -> Result<(), ProjectError> {
        match self.repository() {
            Some(found) => found.usable,
            None if ["HEAD", "objects", "refs"].iter().all(|name| self.cwd.join(name).exists()) => {
                Err(ProjectError::BareRepository { path: self.cwd.clone() })
            }
            None => Err(ProjectError::NotARepository { path: self.cwd.clone() }),
        }
    }

    /// Fails if there is a repository that git could not read: also for verbs that need none.
    pub fn require_readable_git(&self) -> Result<(), ProjectError> {
        match self.repository().map(|found| found.usable) {
            Some(Err(error @ ProjectError::Unreadable { .. })) => Err(error),
            _ => Ok(()),
        }
    }

    fn repository(&self) -> Option<Repository> {
        Repository::around(&self.root).filter(|found| found.root == self.root)
    }

    /// Creates the ralph dir if it is missing, and checks that it is writable.
    pub fn create_ralph_dir(&self) -> Result<(), ProjectError> {
        self.require_room()?;
        let path = &self.ralph_dir;
        let made = if path.is_dir() {
            Ok(())
        } else if self.has_run_dir_of_its_own() {
            fs::create_dir_all(path)
        } else {
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| own::make_folder(path))
        };
        made.and_then(|()| require_writable(path)).map_err(Self::unwritable(path))
    }

    /// Fails if the run dir of a work tree, or one of the parent folders of run dirs, is a symbolic link, which may
    /// be committed: its target may belong to another user, or to the project.
    pub fn require_no_link(&self) -> Result<(), ProjectError> {
        let folders = [self.run_dir.clone(), self.runs(), self.runs_of_branches()];
        match folders.into_iter().find(|folder| folder.is_symlink()) {
            Some(path) => Err(ProjectError::FolderIsLink { path }),
            None => Ok(()),
        }
    }

    /// Creates the run dir if it is missing, and checks that it is writable.
    pub fn create_run_dir(&self) -> Result<(), ProjectError> {
        self.create_ralph_dir()?;
        self.require_no_link()?;
        self.restore_run_dir()?;
        require_writable(&self.run_dir).map_err(Self::unwritable(&self.run_dir))
    }

    /// Creates the run dir again after it was removed, but not its parents: a removed project is not restored.
    pub fn restore_run_dir(&self) -> Result<(), ProjectError> {
        let path = &self.run_dir;
        let is_missing = path.symlink_metadata().is_err();
        let made = if is_missing && self.has_run_dir_of_its_own() { self.place_run_dir() } else { Ok(()) };
        made.and_then(|()| own::make_folder(path)).map_err(Self::unwritable(path))
    }

    /// Moves a marked run dir into place; without the mark it would be taken for a ralph dir, and hide the real one.
    fn place_run_dir(&self) -> io::Result<()> {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix(".ralph.").permissions(Permissions::from_mode(0o700));
        let folder = folder.tempdir_in(&self.ralph_dir)?;
        let mark = folder.path().join(RUN_DIR_MARK);
        own::open(&mark, OpenOptions::new().write(true).create_new(true))?.write_all(RUN_DIR_TEXT)?;
        match fs::rename(folder.path(), &self.run_dir) {
            // Another loop was faster.
            Err(_) if self.run_dir.is_dir() => Ok(()),
            result => result,
        }
    }

    fn unwritable(path: &Path) -> impl Fn(io::Error) -> ProjectError + '_ {
        |reason| ProjectError::RalphDirUnwritable { path: path.to_path_buf(), reason }
    }

    fn has_run_dir_of_its_own(&self) -> bool {
        self.run_dir != resolve(&self.ralph_dir)
    }

    /// Fails if there is a file at the path of the ralph dir, the run dir, or one of their parents.
    pub fn require_room(&self) -> Result<(), ProjectError> {
        match self.run_dir.ancestors().find(|path| path.exists()) {
            Some(path) if !path.is_dir() => Err(ProjectError::RalphDirIsFile { path: path.to_path_buf() }),
            _ => Ok(()),
        }
    }

    /// Fails if the ralph dir cannot be read: it is not a folder, or this user has no permission. A missing one has
    /// no records.
    pub fn require_readable(&self) -> Result<(), ProjectError> {
        self.require_room()?;
        for path in [&self.ralph_dir, &self.run_dir] {
            match path.read_dir() {
                Err(reason) if reason.kind() != io::ErrorKind::NotFound => {
                    return Err(ProjectError::RalphDirUnreadable { path: path.clone(), reason });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The physical directory in which ralph was started.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The agents' working directory: the top of the git work tree, else the current directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the project root is the top of a usable git work tree.
    #[must_use]
    pub fn in_git(&self) -> bool {
        self.repository().is_some_and(|found| found.usable.is_ok())
    }

    /// The folder of the user's files for ralph; may not exist yet.
    #[must_use]
    pub fn ralph_dir(&self) -> &Path {
        &self.ralph_dir
    }

    /// The folder of run-time files: the ralph dir or a `.ralph` in it; may not exist yet.
    #[must_use]
    pub fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    /// Ignore patterns for the run-time files, relative to the run dir; they match no other files there.
    #[must_use]
    pub fn run_files(&self) -> Vec<&'static str> {
        let mut files = vec![
            "state.toml",
            "state.toml.*",
            "iterations.log",
            "logs/",
            "lock",
            "last_agent_output",
            "requests/",
            "runs/",
            "sandbox/",
            "tripwire/",
            "progress.db*",
            "task-draft/",
            "feature-talks/",
        ];
        if self.has_run_dir_of_its_own() {
            files.push(RUN_DIR_MARK);
        }
        files
    }

    /// The ralph dir for a prompt: relative to the project root (`.ralph`, `.`), or absolute outside of it.
    #[must_use]
    pub fn ralph_home(&self) -> PathBuf {
        self.relative(&self.ralph_dir)
    }

    /// `path` relative to the project root (`.` for the root itself), unchanged outside of it.
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

    /// The prompt of a mode, `prompts/MODE.md`; without it, the built-in one is used.
    #[must_use]
    pub fn prompt(&self, mode: &str) -> PathBuf {
        self.ralph_dir.join("prompts").join(format!("{mode}.md"))
    }

    /// The user's prompts: all in `prompts/`, and `PROMPT….md` at the project root.
    #[must_use]
    pub fn prompts(&self) -> Vec<PathBuf> {
        let files = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>()
        };
        let mut prompts = files(&self.ralph_dir.join("prompts"));
        prompts.extend(files(&self.root).into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name.starts_with(b"PROMPT") && name.ends_with(b".md")
        }));
        prompts
    }

    /// The plan that the agents maintain, `implementation_plan.md`.
    #[must_use]
    pub fn implementation_plan(&self) -> PathBuf {
        self.ralph_dir.join(PLAN)
    }

    /// The plan of branches, `IMPLEMENTATION_PLAN.md` at the project root.
    #[must_use]
    pub fn branch_plan(&self) -> PathBuf {
        self.root.join(BRANCH_PLAN)
    }

    /// The folder of the work trees of branches, `.worktrees` at the project root.
    #[must_use]
    pub fn worktrees(&self) -> PathBuf {
        self.root.join(WORKTREES)
    }

    /// The work tree of a branch, `.worktrees/BRANCH` at the project root.
    #[must_use]
    pub fn worktree(&self, branch: &str) -> PathBuf {
        self.worktrees().join(branch)
    }

    /// The project's settings, `ralph.toml` at the project root.
    #[must_use]
    pub fn project_settings(&self) -> PathBuf {
        self.root.join("ralph.toml")
    }

    /// The settings file of an earlier program, `.ralph.toml`.
    #[must_use]
    pub fn older_settings(&self) -> PathBuf {
        self.root.join(".ralph.toml")
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

    /// The top of the main repository, if the project root is a linked work tree.
    #[must_use]
    pub fn main_root(&self) -> Option<PathBuf> {
        repository::main_of(&self.root)
    }

    /// The folder of trusted projects, `~/.local/state/ralph/trust`; `None` without a home directory.
    #[must_use]
    pub fn trust(&self) -> Option<PathBuf> {
        Some(self.state_home.as_ref()?.join("ralph/trust"))
    }

    /// The user's key, which seals graphs of tasks and signs requests to loops, `~/.local/state/ralph/user.key`;
    /// `None` without a home directory.
    #[must_use]
    pub fn user_key(&self) -> Option<PathBuf> {
        Some(self.state_home.as_ref()?.join("ralph/user.key"))
    }

    /// The folder of unsent messages, `~/.local/state/ralph/outbox`; `None` without a home directory.
    #[must_use]
    pub fn outboxes(&self) -> Option<PathBuf> {
        Some(self.state_home.as_ref()?.join("ralph/outbox"))
    }

    /// The folder of program files of ralph that other programs may start, `~/.local/state/ralph/programs`; `None` without a home
    /// directory.
    #[must_use]
    pub fn programs(&self) -> Option<PathBuf> {
        Some(self.state_home.as_ref()?.join("ralph/programs"))
    }

    /// The folder of usage limits that are known, `~/.local/state/ralph/limits`; `None` without a home directory.
    #[must_use]
    pub fn known_limits(&self) -> Option<PathBuf> {
        Some(self.state_home.as_ref()?.join("ralph/limits"))
    }

    /// The folder of terminals used by `ralph watch`, `~/.local/state/ralph/watch`; `None` without a home directory.
    #[must_use]
    pub fn watched_terminals(&self) -> Option<PathBuf> {
        Some(self.state_home.as_ref()?.join(WATCHED_TERMINALS))
    }

    /// [`watched_terminals`](Self::watched_terminals) for this environment, without a project.
    #[must_use]
    pub fn watched_terminals_of(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        Some(home::of(env, home::STATE)?.join(WATCHED_TERMINALS))
    }
}

/// The ralph dir if neither flag nor environment names one.
fn default_ralph_dir(root: &Path, exe: Option<&Path>) -> PathBuf {
    let vendored = exe.and_then(|exe| resolve(exe).parent().map(Path::to_path_buf));
    if let Some(dir) = vendored.filter(|dir| has_config(dir) || has_prompt(dir)) {
        return dir;
    }
    let usual = root.join(DOT_RALPH);
    let is_used = has_config(&usual) || has_prompt(&usual) || usual.join(PLAN).is_file();
    let is_run_dir = usual.join(RUN_DIR_MARK).is_file() && !is_used;
    if (is_run_dir || !usual.is_dir()) && has_config(root) && has_prompt(root) {
        return root.to_path_buf();
    }
    usual
}

fn has_config(dir: &Path) -> bool {
    dir.join("config").is_file()
}

fn has_prompt(dir: &Path) -> bool {
    ["plan.md", "build.md"].iter().any(|name| dir.join("prompts").join(name).is_file())
}

/// The run dir of a ralph dir. It depends only on that folder and not on how it was named, so that all processes use
/// the same lock.
fn run_dir(root: &Path, ralph_dir: &Path) -> PathBuf {
    let dir = resolve(ralph_dir);
    if is_ours_alone(root, &dir) { dir } else { dir.join(DOT_RALPH) }
}

/// Whether a folder can only hold ralph's files: it has our name. That the user named it, that ralph has used it, or
/// that it is empty now, proves nothing about later.
fn is_ours_alone(root: &Path, dir: &Path) -> bool {
    !root.starts_with(dir) && dir.file_name().is_some_and(|name| name == DOT_RALPH)
}

fn require_writable(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// The real path of a path that may not exist yet: resolves symlinks and `..` as far as it exists.
fn resolve(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => resolve(parent).join(name),
        _ => path.to_path_buf(),
    })
}

#[cfg(test)]
mod tests;
