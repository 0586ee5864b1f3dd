//! The paths of a loop's records: in the ralph dir, except for the loops of branches.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::{DOT_RALPH, Project, file_name, resolve};
use crate::files::own;
use crate::text::digest::sha256;

/// The folder of the branches' records, below the runs.
const BRANCHES: &str = "branches";
/// The folder of proof trees.
const PROOFS: &str = "proof";
/// The length of a project's key there: long enough to tell a user's projects apart, and short, because the paths of sockets
/// are limited.
const PROOF_KEY: usize = 12;
/// The folder of the records of proofs, in a run.
const PROOF_RECORDS: &str = "proofs";
/// What stood in work trees of branches before their records were kept here.
const EARLIER: &str = "earlier";

/// The paths of the records of a branch's loop: among those of the project, so that they outlive its work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BranchRecords {
    /// The folder of the project's runs.
    runs: PathBuf,
    /// The encoded name of the branch.
    file_name: OsString,
}

impl Project {
    /// The paths of the loop of a branch of this project, in `run` if one is in progress.
    #[must_use]
    pub fn of_branch(&self, name: &str, run: Option<&str>) -> Self {
        let tree = self.worktree(name);
        self.of_branch_in(name, run, &tree, &resolve(&tree))
    }

    /// [`of_branch`](Self::of_branch) with the known real path of its work tree: lists do this for thousands of
    /// branches.
    fn of_branch_in(&self, name: &str, run: Option<&str>, tree: &Path, real: &Path) -> Self {
        let branch = BranchRecords { runs: self.runs(), file_name: file_name::encoded(name).into() };
        let run = run.map(str::to_owned);
        let places = self.elsewhere_with(tree, &tree.join(DOT_RALPH), real.join(DOT_RALPH));
        Self { branch: Some(branch), run, ..places }
    }

    /// These paths during a run, which has its own folder for logs.
    #[must_use]
    pub fn in_run(&self, run: &str) -> Self {
        Self { run: Some(run.to_owned()), ..self.clone() }
    }

    /// These paths with the work tree in this folder. Its lock is in the tree, whatever is committed there: a
    /// `.ralph` that is a link is not followed, but [refused](Self::require_no_link).
    #[must_use]
    pub fn in_tree(self, tree: &Path) -> Self {
        let run_dir = resolve(tree).join(DOT_RALPH);
        let places = self.elsewhere_with(tree, &tree.join(DOT_RALPH), run_dir);
        Self { branch: self.branch, run: self.run, ..places }
    }

    /// These paths with the records in this folder, from an earlier [`Project::records`].
    #[must_use]
    pub fn recorded_in(self, records: &Path) -> Self {
        let runs = records.parent().and_then(Path::parent);
        let branch = runs
            .zip(records.file_name())
            .map(|(runs, name)| BranchRecords { runs: runs.to_owned(), file_name: name.to_owned() });
        Self { branch, ..self }
    }

    /// The paths of all branches of this project whose loops have left records, with their names.
    #[must_use]
    pub fn branches(&self) -> Vec<(String, Self)> {
        // Folders behind links are not records of this project.
        let folders =
            if self.runs().is_symlink() { Ok(Vec::new()) } else { own::entries(&self.runs_of_branches()) };
        let trees = resolve(&self.worktrees());
        let name = |folder: PathBuf| file_name::decoded(folder.file_name()?.to_str()?);
        folders
            .unwrap_or_default()
            .into_iter()
            .filter_map(name)
            .filter(|name| can_be_branch(name))
            .map(|name| {
                let tree = self.worktree(&name);
                let places = self.of_branch_in(&name, None, &tree, &resolve_below(&trees, &name));
                (name, places)
            })
            .collect()
    }

    /// The folder `runs` of all runs and of the loops of branches.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        match (&self.branch, &self.worker_runs) {
            (Some(BranchRecords { runs, .. }), _) | (None, Some(runs)) => runs.clone(),
            (None, None) => self.run_dir().join("runs"),
        }
    }

    /// The folder of the records of branches.
    pub(super) fn runs_of_branches(&self) -> PathBuf {
        self.runs().join(BRANCHES)
    }

    /// The folder of one run: one start of a command with all its loops. An id from a planted record cannot lead
    /// elsewhere.
    #[must_use]
    pub fn run(&self, run: &str) -> PathBuf {
        self.runs().join(file_name::encoded(run))
    }

    /// The folder of the records of proofs in a run.
    #[must_use]
    pub fn proof_records(&self) -> PathBuf {
        self.logs().join(PROOF_RECORDS)
    }

    /// The records of proofs in the folder of a run, of all its loops.
    #[must_use]
    pub fn proof_records_in(run: &Path) -> Vec<PathBuf> {
        let own = own::entries(run).unwrap_or_default();
        let folders = own.into_iter().chain([run.to_owned()]).map(|folder| folder.join(PROOF_RECORDS));
        folders.filter_map(|folder| own::entries(&folder).ok()).flatten().collect()
    }

    /// The folder of the work trees in which claims are proven, `~/.local/state/ralph/proof/KEY` with a key for this
    /// project: outside of it, or tools would find its uncommitted files in the folders above. Without a home directory it is
    /// below the runs.
    #[must_use]
    pub fn proofs(&self) -> PathBuf {
        let runs = self.runs();
        match self.proofs_of_all() {
            Some(all) => all.join(&sha256(runs.as_os_str().as_bytes())[..PROOF_KEY]),
            None => runs.join(PROOFS),
        }
    }

    /// The folder of the proof trees of all projects of the user; `None` without a home directory.
    #[must_use]
    pub fn proofs_of_all(&self) -> Option<PathBuf> {
        Some(self.state_home.as_ref()?.join("ralph").join(PROOFS))
    }

    /// The folder of what attempts have changed beside the work, as it was before.
    #[must_use]
    pub fn tripwire(&self) -> PathBuf {
        self.run_dir().join("tripwire")
    }

    /// The work tree in which the claims of the loop with this name are proven.
    #[must_use]
    pub fn proof(&self, name: &str) -> PathBuf {
        self.proofs().join(file_name::encoded(name))
    }

    /// Whether a path is below the run dir without symbolic links: a path in a state or a run record may have come
    /// with a clone.
    #[must_use]
    pub fn has_record(&self, path: &Path) -> bool {
        let runs = self.runs();
        let Some(run_dir) = runs.parent() else { return false };
        let is_below = path.strip_prefix(run_dir).is_ok_and(is_plain);
        is_below && !path.ancestors().take_while(|part| *part != run_dir).any(Path::is_symlink)
    }

    /// The folders of all runs of this project, newest first: their names begin with the time.
    ///
    /// # Errors
    /// If the folder of the runs cannot be read.
    pub fn all_runs(&self) -> io::Result<Vec<PathBuf>> {
        let is_run = |folder: &PathBuf| {
            let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(|first: char| first.is_ascii_digit())
                && folder.symlink_metadata().is_ok_and(|found| found.is_dir())
        };
        let mut runs: Vec<PathBuf> = own::entries(&self.runs())?.into_iter().filter(is_run).collect();
        runs.sort_by(|one, other| other.cmp(one));
        Ok(runs)
    }

    /// Whether these are the paths of a branch's loop, whose records are not in its ralph dir.
    #[must_use]
    pub fn is_of_branch(&self) -> bool {
        self.branch.is_some()
    }

    /// The folder of the loop's records: its state and requests to it.
    #[must_use]
    pub fn records(&self) -> PathBuf {
        match &self.branch {
            Some(BranchRecords { file_name, .. }) => self.runs_of_branches().join(file_name),
            None => self.run_dir().to_path_buf(),
        }
    }

    /// The raw output of the newest attempt, `last_agent_output`.
    #[must_use]
    pub fn last_agent_output(&self) -> PathBuf {
        self.records().join("last_agent_output")
    }

    /// The state of the loop, `state.toml`; of a worker `state.json`.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.records().join(if self.is_of_worker() { "state.json" } else { "state.toml" })
    }

    /// The paths of a worker of the user, whose agents work in the folder `root` and whose runs are among those of
    /// this project; `None` without a home directory.
    #[must_use]
    pub fn of_worker(&self, name: &str, root: &Path) -> Option<Self> {
        let folder = resolve(&self.registry()?.join(file_name::encoded(name)));
        let places = self.elsewhere_with(root, &folder, folder.clone());
        Some(Self { worker_runs: Some(self.runs()), ..places })
    }

    /// These paths for a worker, with its runs in its own folder until [another one](Self::with_runs_in) is known.
    #[must_use]
    pub fn for_worker(self) -> Self {
        Self { worker_runs: Some(self.run_dir.join("runs")), ..self }
    }

    /// These paths for a worker in the folder `root`, with its runs in the folder `runs`.
    #[must_use]
    pub fn with_runs_in(&self, runs: &Path, root: &Path) -> Self {
        let worker_runs = self.worker_runs.as_ref().map(|_| runs.to_owned());
        Self { root: root.to_owned(), cwd: root.to_owned(), worker_runs, ..self.clone() }
    }

    /// Whether these are the paths of a worker, whose folder is in the user's list of loops.
    #[must_use]
    pub fn is_of_worker(&self) -> bool {
        self.worker_runs.is_some()
    }

    /// One line per iteration, `iterations.log`.
    #[must_use]
    pub fn iterations_log(&self) -> PathBuf {
        self.records().join("iterations.log")
    }

    /// The folder of the session logs being written: that of the current run, for a branch a subfolder of it.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        match (&self.run, &self.branch) {
            (Some(run), Some(branch)) => self.run(run).join(&branch.file_name),
            (Some(run), None) => self.run(run),
            (None, _) => self.links_to_logs(),
        }
    }

    /// The folder in which users look for session logs, `logs`: links to those of the runs, and logs of an earlier
    /// program.
    #[must_use]
    pub fn links_to_logs(&self) -> PathBuf {
        let of_worker = self.worker_runs.as_deref().and_then(Path::parent);
        of_worker.map_or_else(|| self.records().join("logs"), |run_dir| run_dir.join("logs"))
    }

    /// The folders of all session logs of the loop, newest run first. The runs of a worker are among those of other loops:
    /// only its own folder is searched.
    #[must_use]
    pub fn all_logs(&self) -> Vec<PathBuf> {
        if self.is_of_worker() {
            return vec![self.records().join("logs")];
        }
        let Some(BranchRecords { runs, file_name, .. }) = &self.branch else {
            return self.all_runs().unwrap_or_default().into_iter().chain([self.links_to_logs()]).collect();
        };
        let runs = self.all_runs().unwrap_or_default().into_iter().chain([runs.join(EARLIER)]);
        runs.map(|run| run.join(file_name)).filter(|logs| logs.is_dir()).collect()
    }

    /// The folder for records of other loops that ran in the branch's work tree.
    #[must_use]
    pub fn records_of_others(&self) -> Option<PathBuf> {
        let branch = self.branch.as_ref()?;
        Some(branch.runs.join(EARLIER).join(&branch.file_name).join("others"))
    }

    /// The folder in which other processes leave requests to the running loop, `requests/`.
    #[must_use]
    pub fn requests(&self) -> PathBuf {
        self.records().join("requests")
    }

    /// The lock of the running loop, `lock`. A branch's is in its work tree, so that no two loops build there; if the
    /// tree is missing, it is the project's.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        let project = self.branch.as_ref().filter(|_| !self.root.is_dir());
        let folder = project.and_then(|BranchRecords { runs, .. }| runs.parent()).unwrap_or(self.run_dir());
        folder.join("lock")
    }
}

/// The real path of `name` below a folder, whose real path is given.
fn resolve_below(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let mut parts = path.ancestors().take_while(|part| *part != folder);
    if parts.any(Path::is_symlink) { resolve(&path) } else { path }
}

/// Whether a branch's work tree can have this name. A cloned repository may contain anything.
fn can_be_branch(name: &str) -> bool {
    !name.contains('\0') && is_plain(Path::new(name))
}

/// Whether a path is relative and has no `..`.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}
