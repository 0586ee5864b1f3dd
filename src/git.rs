//! Every call of git, in one place.
//!
//! Which repository is meant is decided by [`crate::project`]: the variables with which git itself, in a hook or in
//! `git rebase --exec`, points its children at another repository or index are cleared. Configuration (`GIT_CONFIG_*`)
//! is the user's and stays. git never asks a question here, never waits for input and never outlives its time limit.

pub mod change;
mod checkout;
pub mod commits;
pub mod contents;
pub mod guard;
mod half_made;
mod head_file;
pub mod identity;
pub mod keep;
pub mod left_locks;
mod progress;
pub mod range;
pub mod refs;
pub mod remote;
pub mod remove;
pub mod revert;
pub mod save;
mod uncommitted;
pub mod worktrees;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use crate::files::atomic;
use crate::files::temporary;
use crate::files::{self, FileError, theirs};
use crate::process::REPOSITORY_VARIABLES;
use crate::process::capture::{Ended, Kept, capture};
use crate::process::launch::Launch;
use crate::process::short::output_within;
use crate::process::supervised::StartError;
use crate::project::Project;
use crate::text::line;
use change::CutOff;
use head_file::Head;

/// The longest any of these short commands may take.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest the search for a changed file may take; it is repeated while an agent is silent.
const SEARCH_LIMIT: Duration = Duration::from_secs(3);
/// A clock may be slightly ahead on a network file system; a file from further in the future proves nothing.
const CLOCK_SKEW: Duration = Duration::from_secs(2);
/// Tells the reader of `info/exclude` whose lines follow.
const EXCLUDE_HEADER: &str = "# Written by ralph: files of a running loop, never to be committed.";

/// A git operation failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program could not be started, or a file of its own could not be read.
    #[error("git, {path}: {reason}: {way_out}", path = .path.display(), way_out = way_out(.reason))]
    Run {
        /// The folder it was to work in.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// git ran and refused.
    #[error("git {command}, {path}: {message}: run it there by hand to see more", path = .path.display())]
    Refused {
        /// The subcommand.
        command: String,
        /// The folder it worked in.
        path: PathBuf,
        /// The last line it said.
        message: String,
    },
    /// git was ended before it was through.
    #[error("git {command}, {path}: {end}: {way_out}", path = .path.display(), way_out = .end.way_out())]
    CutOff {
        /// The subcommand.
        command: String,
        /// The folder it worked in.
        path: PathBuf,
        /// By whom or why.
        end: CutOff,
    },
    /// Something is in the way that only a person can judge.
    #[error("{what}, {place}: {way_out}")]
    InTheWay {
        /// What it is.
        what: String,
        /// The folder, file, branch or key in question.
        place: String,
        /// What can be done.
        way_out: String,
    },
    /// The repository's `info/exclude` could not be read or created.
    #[error("ignore rules, {path}: {reason}: fix that file, or ignore ralph's files in .gitignore", path = .path.display())]
    Exclude {
        /// The file or folder in question.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The repository's `info/exclude` could not be written.
    #[error(transparent)]
    Write(#[from] FileError),
}

impl GitError {
    fn in_the_way(
        what: impl Into<String>,
        place: impl std::fmt::Display,
        way_out: impl Into<String>,
    ) -> Self {
        Self::InTheWay { what: what.into(), place: place.to_string(), way_out: way_out.into() }
    }

    /// A file or folder of git's that cannot be read.
    fn unreadable(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |reason| Self::Run { path: path.to_path_buf(), reason }
    }

    fn refused(command: &str, path: &Path, message: String) -> Self {
        Self::Refused { command: command.to_owned(), path: path.to_path_buf(), message }
    }
}

/// The version of the installed git, such as `2.47.3`.
pub fn git_version() -> Result<String, GitError> {
    let output = run(Path::new("/"), &["--version"], LIMIT)?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.trim().trim_start_matches("git version ").to_owned())
}

/// The commit that HEAD names in the work tree `root`; `None` before the first commit or when git fails.
#[must_use]
pub fn head(root: &Path) -> Option<String> {
    match head_file::head(root) {
        Some(Head::Commit(commit)) => return Some(commit),
        Some(Head::Unborn) => return None,
        None => {}
    }
    let output = run(root, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], LIMIT).ok()?;
    let commit = String::from_utf8(output).ok()?;
    Some(commit.trim().to_owned())
}

/// A file that git calls changed or untracked.
#[derive(Debug, Clone)]
pub struct Changed {
    /// Where it is, from the root of the work tree.
    pub path: PathBuf,
    /// What git calls it, as `git status --porcelain` puts it.
    pub state: [u8; 2],
    /// Its size in bytes; 0 where it is gone.
    pub size: u64,
    /// When it was written; `None` where it is gone.
    pub written: Option<SystemTime>,
    /// When anything about it was changed, whatever its writer says; `None` where it is gone.
    pub touched: Option<SystemTime>,
}

impl Changed {
    /// What tells one from another: that something was only touched is no change.
    fn content(&self) -> (&Path, [u8; 2], u64, Option<SystemTime>) {
        (&self.path, self.state, self.size, self.written)
    }
}

impl PartialEq for Changed {
    fn eq(&self, other: &Self) -> bool {
        self.content() == other.content()
    }
}

impl Eq for Changed {}

impl Hash for Changed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.content().hash(state);
    }
}

/// When anything about a file was changed; `None` where there is none.
#[must_use]
pub fn touched(path: &Path) -> Option<SystemTime> {
    change_time(&path.symlink_metadata().ok()?)
}

fn change_time(found: &std::fs::Metadata) -> Option<SystemTime> {
    let (seconds, nanos) = (u64::try_from(found.ctime()).ok()?, u64::try_from(found.ctime_nsec()).ok()?);
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanos))
}

/// Everything in the work tree that is not as HEAD has it. Two equal answers with the same HEAD mean that nothing was
/// written in between. `None` when git fails.
#[must_use]
pub fn changes(root: &Path) -> Option<Vec<Changed>> {
    let status = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];
    let answer = run(root, &status, SEARCH_LIMIT).ok()?;
    let changed = |entry: &[u8]| {
        let state = [*entry.first()?, *entry.get(1)?];
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(entry.get(3..)?));
        let found = root.join(&path).symlink_metadata().ok();
        let size = found.as_ref().map_or(0, std::fs::Metadata::len);
        let written = found.as_ref().and_then(|found| found.modified().ok());
        let touched = found.as_ref().and_then(change_time);
        Some(Changed { path, state, size, written, touched })
    };
    Some(answer.split(|&byte| byte == 0).filter_map(changed).collect())
}

/// The repository folder that all work trees of `root` share: `.git` of the main one.
pub fn common_dir(root: &Path) -> Result<PathBuf, GitError> {
    let mut output = run(root, &["rev-parse", "--git-common-dir"], LIMIT)?;
    if output.last() == Some(&b'\n') {
        output.pop();
    }
    // Relative to the folder that git was started in, except in linked work trees.
    Ok(root.join(std::ffi::OsString::from_vec(output)))
}

/// The newest tracked or unignored file below `root` that was written after `since`: a sign of life of an agent that
/// says nothing. `None` also when the look-up fails or takes too long.
#[must_use]
pub fn changed_since(root: &Path, since: SystemTime) -> Option<PathBuf> {
    let deadline = Instant::now() + SEARCH_LIMIT;
    let latest = SystemTime::now() + CLOCK_SKEW;
    let files =
        run(root, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"], SEARCH_LIMIT).ok()?;
    files
        .split(|&byte| byte == 0)
        .take_while(|_| Instant::now() < deadline)
        .filter_map(|name| {
            let path = root.join(std::ffi::OsStr::from_bytes(name));
            let metadata = path.symlink_metadata().ok().filter(|metadata| !metadata.is_dir())?;
            Some((metadata.modified().ok()?, path))
        })
        .filter(|(modified, _)| (since..latest).contains(modified) && *modified != since)
        .max()
        .map(|(_, path)| path)
}

/// Ignore patterns, relative to the project root, for the files that a loop writes while it runs and for the work trees
/// of branches. What people write (config, prompts, the plan) is not among them.
#[must_use]
pub fn runtime_patterns(project: &Project) -> Vec<String> {
    let folder = project.relative(project.run_dir());
    let mut patterns = Vec::new();
    if folder.is_relative() {
        let folder = escape_pattern(&folder);
        patterns.extend(project.run_files().into_iter().map(|file| format!("/{folder}/{file}")));
    }
    patterns.extend(["/.worktrees/".to_owned(), temporary::PATTERN.to_owned()]);
    patterns
}

/// A path as an ignore pattern that matches it alone. Bytes that cannot stand in a pattern line become `?`.
fn escape_pattern(path: &Path) -> String {
    let mut pattern = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' | '\r' => pattern.push('?'),
                '\\' | '*' | '?' | '[' => pattern.extend(['\\', character]),
                _ => pattern.push(character),
            }
        }
        pattern.extend(chunk.invalid().iter().map(|_| '?'));
    }
    pattern
}

/// The folders of the repository in which processes that were killed may have left temporary files: that of the work tree `root`, and
/// that of the exclude file.
#[must_use]
pub fn litter(root: &Path) -> Vec<PathBuf> {
    let git_dir = head_file::git_dir(root).ok().flatten();
    git_dir.into_iter().chain(head_file::common_dir(root).map(|common| common.join("info"))).collect()
}

/// Enters `patterns` in the `info/exclude` that all work trees of `root` share; says whether anything was missing.
/// The user's own lines and line ends stay as they are.
pub fn exclude(root: &Path, patterns: &[String]) -> Result<bool, GitError> {
    let info = common_dir(root)?.join("info");
    let path = info.join("exclude");
    fs::create_dir_all(&info).map_err(|reason| GitError::Exclude { path: info.clone(), reason })?;
    // Two loops in two work trees may get here at once; on a file system without locks the chance is taken.
    let folder = File::open(&info).map_err(|reason| GitError::Exclude { path: info, reason })?;
    let _ = folder.lock();
    for folder in litter(root) {
        temporary::sweep(&folder);
    }
    let old = match theirs::read(&path, theirs::MAX_TEXT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        result => result.map_err(|reason| GitError::Exclude { path: path.clone(), reason })?,
    };
    match with_patterns(&old, patterns) {
        Some(new) => atomic::write_theirs(&path, &new).map(|()| true).map_err(GitError::from),
        None => Ok(false),
    }
}

/// The content of an exclude file with the missing patterns in ralph's block; `None` when none is missing.
fn with_patterns(old: &[u8], patterns: &[String]) -> Option<Vec<u8>> {
    let lines: HashSet<&[u8]> = old.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end).collect();
    // What lies in a folder that is left out whole needs no line of its own.
    let is_left_out = |pattern: &&str| {
        let folders = pattern.match_indices('/').map(|(at, _)| &pattern.as_bytes()[..=at]);
        folders.chain([pattern.as_bytes()]).any(|line| line != b"/" && lines.contains(line))
    };
    let missing: Vec<&str> =
        patterns.iter().map(String::as_str).filter(|pattern| !is_left_out(pattern)).collect();
    if missing.is_empty() {
        return None;
    }
    let line_end = if old.windows(2).any(|pair| pair == b"\r\n") { "\r\n" } else { "\n" };
    let mut new = Vec::with_capacity(old.len() + 512);
    let start_line = |new: &mut Vec<u8>| {
        if new.last().is_some_and(|&byte| byte != b'\n') {
            new.extend_from_slice(line_end.as_bytes());
        }
    };
    let add = |new: &mut Vec<u8>, lines: &[&str]| {
        start_line(new);
        for line in lines {
            new.extend_from_slice(line.as_bytes());
            new.extend_from_slice(line_end.as_bytes());
        }
    };
    let mut added = false;
    for line in old.split_inclusive(|&byte| byte == b'\n') {
        new.extend_from_slice(line);
        if !added && line.trim_ascii_end() == EXCLUDE_HEADER.as_bytes() {
            add(&mut new, &missing);
            added = true;
        }
    }
    if !added {
        add(&mut new, &[EXCLUDE_HEADER]);
        add(&mut new, &missing);
    }
    Some(new)
}

/// Commands that only read, but may run filters of the repository's to tell what has changed.
const RUN_FILTERS: [&str; 3] = ["status", "diff", "diff-files"];

/// The stdout of one git command in `root` that only reads.
fn run(root: &Path, arguments: &[&str], limit: Duration) -> Result<Vec<u8>, GitError> {
    run_with(root, arguments, &[], limit)
}

/// The same with variables on top of our own environment.
fn run_with(
    root: &Path,
    arguments: &[&str],
    more: &[(OsString, OsString)],
    limit: Duration,
) -> Result<Vec<u8>, GitError> {
    let ours = [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")];
    let ours = ours.map(|(name, value)| (name.into(), value.into()));
    let launch = launch(root, arguments, more.iter().cloned().chain(ours).collect());
    let command = arguments.first().copied().unwrap_or_default();
    let (end, stdout, stderr) =
        if RUN_FILTERS.contains(&command) { supervised(&launch, limit) } else { unsupervised(launch, limit) }
            .map_err(|reason| GitError::Run { path: root.to_path_buf(), reason })?;
    let cut_off = |end| GitError::CutOff { command: command.to_owned(), path: root.to_path_buf(), end };
    if CutOff::or_code(end, limit).map_err(cut_off)? == 0 {
        return Ok(stdout);
    }
    let said = String::from_utf8_lossy(&stderr);
    let message = line::first(&said).unwrap_or("failed without a word");
    Err(GitError::refused(command, root, message.trim_start_matches("fatal: ").to_owned()))
}

/// The command line of git with these arguments in `root`, with variables on top of our own environment.
fn launch<S: AsRef<OsStr>>(root: &Path, arguments: &[S], env: Vec<(OsString, OsString)>) -> Launch {
    // A configured file monitor would start a daemon that keeps our pipes, or a hook of the repository's choosing.
    let before: [&OsStr; 2] = ["-c".as_ref(), "core.fsmonitor=false".as_ref()];
    let args = before.into_iter().chain(arguments.iter().map(AsRef::as_ref)).map(OsStr::to_owned).collect();
    Launch { program: "git".into(), args, cwd: root.to_path_buf(), env, ..Launch::default() }
}

/// Runs git with its filters under a supervisor, so that these end with it, and with us. How it ended, and what it said.
fn supervised(launch: &Launch, limit: Duration) -> io::Result<(Ended, Vec<u8>, Vec<u8>)> {
    let captured = capture(launch, Vec::new(), limit, usize::MAX, &AtomicBool::new(false));
    let captured = captured.map_err(StartError::into_source)?;
    let text = |kept: &Kept| kept.whole().unwrap_or_default();
    Ok((captured.end, text(&captured.stdout), text(&captured.stderr)))
}

/// The same for one in which nothing of the repository's runs.
fn unsupervised(launch: Launch, limit: Duration) -> io::Result<(Ended, Vec<u8>, Vec<u8>)> {
    let mut git = Command::new(&launch.program);
    git.arg("-C").arg(&launch.cwd).args(&launch.args).envs(launch.env);
    for name in REPOSITORY_VARIABLES {
        git.env_remove(name);
    }
    match output_within(&mut git, limit) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            Ok((Ended::TimedOut, Vec::new(), Vec::new()))
        }
        Err(error) => Err(error),
        Ok(Output { status, stdout, stderr }) => {
            let end =
                status.code().map_or(Ended::Signaled(status.signal().unwrap_or_default()), Ended::Exited);
            Ok((end, stdout, stderr))
        }
    }
}

/// What can be done where git could not be started.
fn way_out(reason: &io::Error) -> &'static str {
    // Without the system's number it is something else that was not found.
    if reason.kind() == io::ErrorKind::NotFound && reason.raw_os_error().is_some() {
        return "make sure that git is installed and on PATH";
    }
    files::way_to_read(reason)
}

#[cfg(test)]
mod tests;
