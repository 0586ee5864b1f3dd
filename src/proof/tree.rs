//! The proof tree of a loop: a work tree of ralph's own in the user's state folder, with a home directory and a folder for
//! temporary files beside it. It is kept between two proofs, with what ralph's own runs have built in it.
//!
//! An agent can write there. So after each proof a seal is left: a signature, with the user's key, over the state of
//! all its files. While it is in use there is no seal. Without the right one, also after a crash, the next proof
//! removes everything and begins with a new tree.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::carry::Carried;
use super::environment::{Folders, environment, without};
use super::held_out;
use super::listing::Listing;
use super::protected::{AllProtected, Change, Protected, is_test};
use crate::engine::validation::{Validation, reason};
use crate::files::atomic::{self, Durability};
use crate::files::room::Room;
use crate::files::{FileError, key, own};
use crate::git::{GitError, clean_tree};
use crate::process::launch::Launch;
use crate::project::Project;
use crate::side_command::ValidationCommand;
use crate::text::digest::{hmac_sha256, sha256};

/// How often a lock of another process is tried.
const LOOK: Duration = Duration::from_millis(50);
/// The longest seal, in bytes.
const SEAL: u64 = 1024;
/// What lies beside a tree, as ends of file names; no encoded name ends so.
pub(super) const BESIDE: [&str; 6] = [TMP_AGAIN, GONE, "~home", "~lock", "~seal", TMP];
/// A tree of which nothing is used again, while it is removed.
pub(super) const GONE: &str = "~gone";
/// How many times the room of a tree has to be free, so that it stays for a while beside a new one and what is built there.
const AMPLE: u64 = 4;
/// The folders for temporary files, the second one for a run that is repeated.
const TMP: &str = "~tmp";
const TMP_AGAIN: &str = "~tmp2";
/// Says whose trees lie in a folder: the path of the project's runs.
pub(super) const PROJECT: &str = "~project";

/// The home directory of a command in the tree, and its folder for temporary files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// Its own.
    Own,
    /// Its own, with another folder for temporary files.
    Again,
    /// The user's.
    Users,
}

/// What git writes into its folder for a tree without changing the tree.
const REFLOGS: &str = "logs";

/// Why a commit could not be laid out.
#[derive(Debug, thiserror::Error)]
pub(super) enum TreeError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file or folder of ours cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The user's preparation of a new tree has failed.
    #[error("proof.prepare fails: {0}")]
    Unprepared(Unprepared),
    /// The system has no thread for it.
    #[error("{0}")]
    Thread(String),
    /// The loop does not want it any more.
    #[error("it was cancelled")]
    Cancelled,
}

/// What a failed preparation has found.
#[derive(Debug)]
pub(super) struct Unprepared(pub(super) Box<Validation>);

impl fmt::Display for Unprepared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Validation { by, undecided, output, .. } = &*self.0;
        out.write_str(&reason(by.as_deref(), *undecided, output))
    }
}

/// The proof tree of a loop, which may not exist yet.
#[derive(Debug, Clone)]
pub(super) struct ProofTree {
    /// Where the loop's agents work.
    root: PathBuf,
    tree: PathBuf,
    /// The runs of the project.
    runs: PathBuf,
    /// The name of its base in git.
    name: String,
    /// Ralph's folders, of which nothing belongs to the work.
    own: Vec<PathBuf>,
    /// Makes what a new tree lacks.
    preparation: Option<ValidationCommand>,
    /// What the agents' files have, and the tree gets links to.
    carry: Vec<PathBuf>,
    /// When that has to have ended.
    until: Option<Instant>,
    /// What signs the seals; without it no tree is used twice.
    key: Option<String>,
}

/// What is laid over a commit.
#[derive(Debug, Clone, Copy)]
pub(super) enum Over<'a> {
    /// Nothing.
    Nothing,
    /// This commit's version of the files that are protected.
    Protected(&'a str, &'a AllProtected),
    /// The tests that agents do not get.
    HeldOut(&'a str),
    /// This text in the file at this path.
    Text(&'a str, &'a str),
}

/// A commit that is laid out, for one run of a command. Dropped without [`ProofTree::leave`], the tree is not used again.
#[derive(Debug)]
pub(super) struct Laid {
    before: Listing,
    /// What git has in its folder for the tree.
    entry: Listing,
    /// The tree is new, with what its preparation has made.
    pub(super) is_new: bool,
    /// What there are links to among the agents' files.
    pub(super) carried: Vec<PathBuf>,
    /// What is laid over it has tests that the commit does not have.
    pub(super) has_more_tests: bool,
    _lock: File,
}

impl ProofTree {
    /// The tree of the loop with this name, whose agents work in the root of `project`.
    pub(super) fn of(project: &Project, name: &str) -> Self {
        // A derived key, so that no other signature can serve as such a seal.
        let user = project.user_key().and_then(|path| key::at(&path).ok());
        let tree = project.proof(name);
        Self {
            root: project.root().to_owned(),
            name: tree.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            tree,
            preparation: None,
            carry: Vec::new(),
            until: None,
            own: vec![project.run_dir().to_owned(), project.worktrees(), project.proofs()],
            runs: project.runs(),
            key: user.map(|user| hmac_sha256(&user, b"proof trees")),
        }
    }

    /// The tree with a command that makes what a new one lacks.
    pub(super) fn prepared_by(mut self, command: Option<ValidationCommand>) -> Self {
        self.preparation = command.map(|command| command.in_checkout(|launch| self.bring(launch, Home::Own)));
        self
    }

    /// The tree with links to these files and folders among those of the agents.
    pub(super) fn carrying(mut self, paths: Vec<PathBuf>) -> Self {
        self.carry = paths;
        self
    }

    /// The tree, where preparations have to end until then.
    pub(super) fn until(mut self, until: Option<Instant>) -> Self {
        self.until = until;
        self
    }

    /// Whether something else than the commits makes a part of it.
    pub(super) const fn has_preparation(&self) -> bool {
        self.preparation.is_some()
    }

    /// Where the agents work.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the commits are laid out.
    pub(super) fn path(&self) -> &Path {
        &self.tree
    }

    /// Keeps the commit alive against which the work is measured.
    pub(super) fn keep_base(&self, commit: &str) -> Result<(), GitError> {
        clean_tree::keep_base(&self.root, &self.name, commit)
    }

    /// Lays out a commit, which takes the tree until the result is dropped.
    pub(super) fn lay(&self, commit: &str, cancelled: &AtomicBool) -> Result<Laid, TreeError> {
        self.lay_with(commit, Over::Nothing, cancelled)
    }

    /// Lays out a commit, with something over it.
    pub(super) fn lay_with(
        &self,
        commit: &str,
        over: Over<'_>,
        cancelled: &AtomicBool,
    ) -> Result<Laid, TreeError> {
        let folder = self.tree.parent().unwrap_or(&self.root);
        own::make_folders(folder).map_err(FileError::at(folder))?;
        let lock = self.lock(cancelled)?;
        let is_ours = self.is_sealed();
        let (seal, home) = (self.beside("~seal"), self.beside("~home"));
        remove_file(&seal).map_err(FileError::at(&seal))?;
        if !is_ours {
            let project = folder.join(PROJECT);
            atomic::write_own(&project, self.runs.as_os_str().as_bytes(), Durability::Atomic)?;
            clean_tree::remove(&self.root, &self.tree)?;
            clean_tree::remove_folder(&home).map_err(FileError::at(&home))?;
            clean_tree::add(&self.root, &self.tree, commit)?;
        }
        own::make_folder(&home).map_err(FileError::at(&home))?;
        for tmp in [TMP, TMP_AGAIN].map(|end| self.beside(end)) {
            clean_tree::remove_folder(&tmp).map_err(FileError::at(&tmp))?;
            own::make_folder(&tmp).map_err(FileError::at(&tmp))?;
        }
        for path in &self.carry {
            // The commit may have something else there.
            self.unlink(path)?;
        }
        clean_tree::lay(&self.root, &self.tree, commit)?;
        if !is_ours {
            self.prepare(commit, cancelled)?;
        }
        let mut carried = Vec::new();
        for path in &self.carry {
            if self.link(path)? {
                carried.push(path.clone());
            }
        }
        let mut has_more_tests = false;
        match over {
            Over::Nothing => {}
            Over::Protected(base, protected) => self.take_back(base, protected)?,
            Over::HeldOut(tests) => has_more_tests = self.lay_held_out(commit, tests)?,
            Over::Text(path, text) => atomic::write_theirs(&self.tree.join(path), text.as_bytes())?,
        }
        let [before, entry] = [self.listing()?, self.entry()?];
        Ok(Laid { before, entry, is_new: !is_ours, carried, has_more_tests, _lock: lock })
    }

    fn lay_held_out(&self, commit: &str, tests: &str) -> Result<bool, TreeError> {
        let new = match held_out::folder(&self.root, tests) {
            Some(folder) => held_out::copy(&folder, &self.tree).map_err(FileError::at(&folder))?,
            None => clean_tree::lay_over(&self.root, &self.tree, commit, tests)?,
        };
        Ok(new.iter().any(|path| is_test(&path.to_string_lossy())))
    }

    /// Links a path among the agents' files into the tree; `false` if there is none, or the tree has something there.
    fn link(&self, path: &Path) -> Result<bool, FileError> {
        let (from, to) = (self.root.join(path), self.tree.join(path));
        if !from.exists() || to.symlink_metadata().is_ok() {
            return Ok(false);
        }
        let made = to.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| symlink(&from, &to));
        made.map(|()| true).map_err(FileError::at(&to))
    }

    fn unlink(&self, path: &Path) -> Result<(), FileError> {
        let to = self.tree.join(path);
        let is_link = to.symlink_metadata().is_ok_and(|found| found.is_symlink());
        if is_link { remove_file(&to).map_err(FileError::at(&to)) } else { Ok(()) }
    }

    /// Has the user's command make what a new tree lacks. Files of the commit stay as they are there.
    fn prepare(&self, commit: &str, cancelled: &AtomicBool) -> Result<(), TreeError> {
        let Some(command) = &self.preparation else { return Ok(()) };
        let found = command.run_alone(self.until, cancelled).ok_or(TreeError::Cancelled)?;
        if !found.ok {
            return Err(TreeError::Unprepared(Unprepared(Box::new(found))));
        }
        Ok(clean_tree::lay(&self.root, &self.tree, commit)?)
    }

    /// Has the next proof begin with a new tree.
    pub(super) fn forget(&self) -> Result<(), TreeError> {
        let seal = self.beside("~seal");
        Ok(remove_file(&seal).map_err(FileError::at(&seal))?)
    }

    /// Lays out the base with the tests that a commit brings.
    pub(super) fn lay_red(
        &self,
        base: &str,
        (commit, tests): (&str, &AllProtected),
        cancelled: &AtomicBool,
    ) -> Result<Laid, TreeError> {
        // All of them are there in the commit.
        let tests = tests.clone().into_iter();
        let tests = tests.map(|(path, test)| (path, Protected { change: Change::Changed, ..test })).collect();
        self.lay_with(base, Over::Protected(commit, &tests), cancelled)
    }

    /// Lays the base's version of what is protected over a commit.
    fn take_back(&self, base: &str, protected: &AllProtected) -> Result<(), TreeError> {
        let (parts, whole): (Vec<_>, Vec<_>) =
            protected.iter().partition(|(_, protected)| protected.mixed.is_some());
        let (new, old): (Vec<_>, Vec<_>) =
            whole.into_iter().partition(|(_, protected)| protected.change == Change::Added);
        let paths =
            |files: Vec<(&String, &_)>| files.into_iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        clean_tree::take_back(&self.root, &self.tree, base, &paths(old), &paths(new))?;
        for (path, protected) in parts {
            let mixed = protected.mixed.as_deref().unwrap_or_default();
            atomic::write_theirs(&self.tree.join(path), mixed.as_bytes())?;
        }
        Ok(())
    }

    /// Verifies that a commit is what its name says.
    pub(super) fn verify(&self, commit: &str) -> Result<(), GitError> {
        clean_tree::verify_commit(&self.root, commit)
    }

    /// Whether something has written what the commit has, or what git knows of it, since it was laid out, or has left files that
    /// git does not ignore. That need not have been the command.
    pub(super) fn is_disturbed(&self, laid: &Laid) -> Result<bool, TreeError> {
        let is_written = self.is_written(laid, &self.listing()?, &self.entry()?)?;
        Ok(is_written || clean_tree::has_strays(&self.root, &self.tree, &self.carry)?)
    }

    fn is_written(&self, laid: &Laid, now: &Listing, entry: &Listing) -> Result<bool, TreeError> {
        if !laid.entry.agrees_on(Path::new("index"), entry) {
            return Ok(true);
        }
        let mut changed = laid.before.missing_in(now).peekable();
        if changed.peek().is_none() {
            return Ok(false);
        }
        let files = clean_tree::files(&self.root, &self.tree)?;
        Ok(changed.any(|path| files.contains(path)))
    }

    /// Seals the tree after the command has ended. If the command has changed files of the commit, or what git knows of
    /// them, the next proof compares all contents.
    pub(super) fn leave(&self, laid: &Laid) -> Result<(), TreeError> {
        // Something has removed the tree, or cut it off from git: it is made anew.
        if !clean_tree::is_whole(&self.root, &self.tree) {
            return Ok(());
        }
        let after = self.listing()?;
        if self.is_written(laid, &after, &self.entry()?)? {
            clean_tree::distrust_index(&self.root, &self.tree)?;
        }
        // The index may be gone by now.
        let Some(seal) = self.signature(&after, &self.entry()?)? else { return Ok(()) };
        let path = self.beside("~seal");
        atomic::write_own(&path, seal.as_bytes(), Durability::Atomic)?;
        Ok(())
    }

    /// Puts the tree away, of which nothing is used again. A file system may make new files far more slowly for some minutes after
    /// many were removed: a claim begins with a new tree before [`Sweep`](super::removal::Sweep) removes this one. Where there is not
    /// much room for both, it is removed at once.
    pub(super) fn put_away(&self) {
        let has_room = || Some(Room::of(&self.tree)?.free / AMPLE >= self.listing().ok()?.bytes());
        if has_room().unwrap_or_default() {
            let _ = std::fs::rename(&self.tree, self.beside(GONE));
        }
        // What stays is removed by the next proof.
        let _ = clean_tree::remove(&self.root, &self.tree);
    }

    /// Removes what was put away, also by a process that was killed.
    pub(super) fn sweep(&self) {
        // What stays is removed by the next call.
        let _ = clean_tree::remove_folder(&self.beside(GONE));
    }

    pub(super) fn has_put_away(&self) -> bool {
        self.beside(GONE).exists()
    }

    /// Brings the files into the tree that were not committed when the loop `began`.
    pub(super) fn carry(&self, began: SystemTime) -> Result<Carried, FileError> {
        Carried::bring(&self.root, &self.tree, began, &self.own).map_err(FileError::at(&self.tree))
    }

    /// Takes them out again.
    pub(super) fn take_out(&self, carried: Carried) -> Result<(), FileError> {
        carried.take_out().map_err(FileError::at(&self.tree))
    }

    /// Whether files lack a filter that the repository has defined since before the loop `began`.
    pub(super) fn lacks_filters(&self, began: SystemTime) -> Result<bool, GitError> {
        clean_tree::lacks_filters(&self.root, &self.tree, began)
    }

    /// Has a command run in the tree instead of the folder where agents work.
    pub(super) fn bring(&self, launch: &mut Launch, home: Home) {
        let tmp = self.beside(if home == Home::Again { TMP_AGAIN } else { TMP });
        let own_home = self.beside("~home");
        let own = (home != Home::Users).then_some([own_home.as_path(), tmp.as_path()]);
        let folders = Folders { root: &self.root, tree: &self.tree, own };
        let own: Vec<_> = std::env::vars_os().collect();
        let found = environment(&own, &launch.env, folders, Path::is_dir);
        if let Some(command) = launch.args.last() {
            launch.args = without(&found.unset, command).into();
        }
        launch.env = found.set;
        // The command's own git must not find a repository around the tree: a home directory may be one.
        let above = self.tree.parent().unwrap_or(&self.tree);
        launch.env.push(("GIT_CEILING_DIRECTORIES".into(), above.into()));
        launch.cwd.clone_from(&self.tree);
    }

    fn beside(&self, end: &str) -> PathBuf {
        beside(&self.tree, end)
    }

    fn lock(&self, cancelled: &AtomicBool) -> Result<File, TreeError> {
        let path = self.beside("~lock");
        let options = &mut OpenOptions::new();
        let file = own::open(&path, options.create(true).truncate(false).write(true))
            .map_err(FileError::at(&path))?;
        loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if cancelled.load(Ordering::Relaxed) => {
                    return Err(TreeError::Cancelled);
                }
                Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
                // Some file systems have no locks.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
            }
        }
    }

    fn listing(&self) -> Result<Listing, FileError> {
        listing(&self.tree)
    }

    /// What git has in its folder for the tree.
    fn entry(&self) -> Result<Listing, TreeError> {
        let entry = clean_tree::entry(&self.root, &self.tree)?;
        Ok(entry.map(|entry| listing(&entry)).transpose()?.unwrap_or_default().without(REFLOGS))
    }

    /// The signature over the state of everything; `None` without a key.
    fn signature(&self, tree: &Listing, entry: &Listing) -> Result<Option<String>, TreeError> {
        let Some(key) = &self.key else { return Ok(None) };
        let mut bytes = Vec::new();
        for listing in [tree, &listing(&self.beside("~home"))?, entry] {
            listing.write(&mut bytes);
        }
        Ok(Some(hmac_sha256(key.as_bytes(), sha256(&bytes).as_bytes())))
    }

    /// Whether everything is as the last proof has left it.
    fn is_sealed(&self) -> bool {
        let Ok(seal) = own::read(&self.beside("~seal"), SEAL) else { return false };
        if !clean_tree::is_whole(&self.root, &self.tree) {
            return false;
        }
        let signature = || self.signature(&self.listing()?, &self.entry()?);
        signature().is_ok_and(|signature| signature.is_some_and(|signature| signature.as_bytes() == seal))
    }
}

pub(super) fn beside(tree: &Path, end: &str) -> PathBuf {
    let mut name = tree.file_name().unwrap_or_default().to_owned();
    name.push(end);
    tree.with_file_name(name)
}

fn listing(folder: &Path) -> Result<Listing, FileError> {
    Listing::of(folder).map_err(FileError::at(folder))
}

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
