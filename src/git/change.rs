//! Calls of git that change a repository.
//!
//! Other processes may work in it: a lock that another git holds is awaited for some seconds. A lock that stays is
//! named in the error and not deleted, even if it looks stale; locks left by our own agents are recognised by
//! [`super::left_locks`]. It cannot be proven that no process holds a lock: git closes the file while it holds the
//! lock (`git commit` with an editor), the holder need not be called git (IDEs have git libraries of their own) and
//! may run in a container or on another machine that shares the folder; and a lock that looks older than the boot may
//! be younger if the clock was set since. Deleting a lock too early loses the work of two processes; a lock that
//! stays costs the user one command, which the message has.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use chrono::Local;

use super::call::launch;
use super::error::CutOff;
use super::error::GitError;
use crate::process::capture::{Captured, capture};
use crate::process::launch::Launch;
use crate::process::supervised::StartError;
use crate::text::line::shell_word;
use crate::text::list::some_of;
use crate::text::{jitter, timestamp};

/// The time limit of a change: hooks run, and files are written.
pub(super) const CHANGE_LIMIT: Duration = Duration::from_mins(5);
/// How long a lock of another git is awaited.
const LOCK_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 5 });
/// The first and the longest pause between two tries; each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// At most this many files are named that are in the way.
const SHOWN: usize = 10;

/// Whether the user has asked ralph to exit now.
static LEAVING: AtomicBool = AtomicBool::new(false);

/// Ends all running changes of repositories, with their hooks, and every later one: the user has asked ralph to exit
/// now.
pub fn leave() {
    LEAVING.store(true, Ordering::Relaxed);
}

/// The options of a change.
pub(super) struct ChangeOptions {
    /// Variables on top of our own environment, such as `GIT_INDEX_FILE`.
    pub(super) env: Vec<(OsString, OsString)>,
    /// The stdin of git.
    pub(super) input: Vec<u8>,
    /// After this time, git and its hooks are killed.
    pub(super) limit: Duration,
}

impl Default for ChangeOptions {
    fn default() -> Self {
        Self { env: Vec::new(), input: Vec::new(), limit: CHANGE_LIMIT }
    }
}

/// Why a repository was not changed, or only in part.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChangeError {
    /// git refused, with its message in one line, or another git keeps the repository locked.
    #[error("{0}")]
    Refused(String),
    /// This lock was not released.
    #[error("{}", locked(.0))]
    Locked(PathBuf),
    /// git was ended before it finished.
    #[error("{0}: {way_out}", way_out = .0.way_out())]
    CutOff(CutOff),
    /// git could not be started.
    #[error(transparent)]
    NotStarted(#[from] StartError),
}

impl ChangeError {
    /// The error with the command and the path.
    pub(super) fn of(self, command: &str, path: &Path) -> GitError {
        match self {
            Self::Refused(message) => GitError::refused(command, path, message),
            Self::Locked(lock) => locked(&lock),
            Self::CutOff(end) => GitError::CutOff { command: command.to_owned(), path: path.to_owned(), end },
            Self::NotStarted(error) => GitError::Run { path: path.to_owned(), reason: error.into_source() },
        }
    }
}

/// Held around every change of work trees or configuration: git locks those files one by one and gives up at once if
/// another process was faster.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // It guards no data that a panic could leave torn.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a git command that changes the repository, without an editor and without questions.
///
/// # Errors
/// If git refuses, is ended, or cannot be started.
pub(super) fn change<S: AsRef<OsStr>>(root: &Path, arguments: &[S]) -> Result<(), ChangeError> {
    change_with(root, arguments, &ChangeOptions::default()).map(drop)
}

/// [`change`] with options; returns git's output.
pub(super) fn change_with<S: AsRef<OsStr>>(
    root: &Path,
    arguments: &[S],
    how: &ChangeOptions,
) -> Result<Vec<u8>, ChangeError> {
    let mut said = String::new();
    let done = patiently(|| {
        let output = match attempt(root, arguments, how) {
            Err(error) => return Some(Err(error.into())),
            Ok(output) => output,
        };
        match CutOff::or_code(output.end, how.limit) {
            Err(end) => Some(Err(ChangeError::CutOff(end))),
            Ok(0) => Some(Ok(output.stdout.whole().unwrap_or_default())),
            Ok(_) => {
                said = output.stderr.text() + &output.stdout.text();
                (!is_locked(&said)).then(|| Err(ChangeError::Refused(reason(&said))))
            }
        }
    });
    done.unwrap_or_else(|| Err(held(root, &said)))
}

/// Retries until there is a result; `None` if the lock of another git stays for too long.
pub(super) fn patiently<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    let mut pause = PAUSES.0;
    loop {
        let answer = attempt();
        if answer.is_some() || Instant::now() >= deadline {
            return answer;
        }
        thread::sleep(jitter::around(pause));
        pause = PAUSES.1.min(2 * pause);
    }
}

/// Runs git under a supervisor, because hooks and filters of the repository run in it: what they leave behind ends
/// with git, and everything ends with ralph. It has no run mark: the user's daemons that git starts (a gpg agent, an
/// ssh master) would inherit it, and the sweep after a killed ralph would end them. So a background process of a hook
/// survives only if both ralph and this supervisor are killed with -9 at the same time.
pub(super) fn attempt<S: AsRef<OsStr>>(
    root: &Path,
    arguments: &[S],
    how: &ChangeOptions,
) -> Result<Captured, StartError> {
    let ours = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "true"), ("LC_ALL", "C")];
    let ours = ours.map(|(name, value)| (name.into(), value.into()));
    let env = ours.into_iter().chain(how.env.iter().cloned()).collect();
    let launch = Launch { spares_daemons: true, ..launch(root, arguments, env) };
    capture(&launch, how.input.clone(), how.limit, usize::MAX, &LEAVING)
}

/// Whether git complains about a lock of another git. A reference that "cannot be locked" because of its name or
/// value is not meant: waiting would not help.
fn is_locked(said: &str) -> bool {
    let words = ["Another git process seems to be running", "data is locked"];
    lock_in(said).is_some() || words.iter().any(|word| said.contains(word))
}

/// The lock file that git's message names.
fn lock_in(said: &str) -> Option<PathBuf> {
    let between = |start: &str, added: &str| {
        let (_, rest) = said.split_once(start)?;
        let path = rest.lines().next()?.split_once(": File exists")?.0.trim_end_matches('\'');
        Some(PathBuf::from(format!("{path}{added}")))
    };
    let is_lock = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "lock");
    between("Unable to create '", "")
        .filter(is_lock)
        .or_else(|| between("could not lock config file ", ".lock"))
}

fn held(root: &Path, said: &str) -> ChangeError {
    match lock_in(said).map(|lock| root.join(lock)) {
        Some(lock) if lock.symlink_metadata().is_ok() => ChangeError::Locked(lock),
        // The lock changes hands repeatedly.
        _ => ChangeError::Refused(format!("another git keeps the repository locked ({})", reason(said))),
    }
}

/// The error about a lock that stays: its file, when it may be deleted, and how.
fn locked(lock: &Path) -> GitError {
    let made = lock.symlink_metadata().and_then(|found| found.modified());
    let made = made
        .map_or_else(|_| String::new(), |at| format!(", since {}", timestamp::local::<Local>(&at.into())));
    let way_out = format!(
        "another git holds it, or was killed; when none works in this repository any more ('pgrep -a git', and look at \
         containers and machines that share the folder), delete it with 'rm {}' and start again",
        shell_word(lock)
    );
    GitError::in_the_way(format!("a lock of git's is in the way{made}"), lock.display(), way_out)
}

/// The line of git's output with the reason.
fn reason(said: &str) -> String {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("hint:"));
    if said.contains("gpg failed to sign")
        && let Some(line) = lines.clone().find(|line| line.starts_with("gpg: "))
    {
        return line.to_owned();
    }
    let is_error = |line: &&str| line.contains("error:") || line.contains("fatal:");
    let Some(line) = lines.clone().find(is_error).or(lines.next()) else {
        return "no reason given".to_owned();
    };
    let line = line.trim_start_matches("error: ");
    // The files that it is about are below it, one in a line.
    let below = said.lines().skip_while(|one| !one.contains(line)).skip(1);
    let files: Vec<&str> = below.take_while(|one| one.starts_with('\t')).map(str::trim).collect();
    match line.strip_suffix(':').filter(|_| !files.is_empty()) {
        Some(line) => format!("{line}: {}", some_of(files, SHOWN)),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::repository;
    use super::*;

    #[test]
    fn a_lock_that_goes_is_waited_for() {
        let (_guard, root) = repository();
        let locks = [root.join(".git/index.lock"), root.join(".git/config.lock")];
        for lock in &locks {
            fs::write(lock, "").unwrap();
        }
        fs::write(root.join("a"), "a").unwrap();
        thread::scope(|scope| {
            let add = scope.spawn(|| change(&root, &["add", "a"]));
            let config = scope.spawn(|| change(&root, &["config", "a.b", "c"]));
            thread::sleep(Duration::from_millis(200));
            for lock in &locks {
                assert!(lock.exists());
                fs::remove_file(lock).unwrap();
            }
            add.join().unwrap().unwrap();
            config.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_lock_that_stays_is_named_and_left_alone() {
        let (_guard, root) = repository();
        let lock = root.join(".git/config.lock");
        fs::write(&lock, "").unwrap();
        let start = Instant::now();
        let said = change(&root, &["config", "a.b", "c"]).unwrap_err().to_string();
        let (what, way_out) = said.split_once(&format!(", {}: ", lock.display())).unwrap();
        assert!(what.starts_with("a lock of git's is in the way, since 20"), "{said}");
        assert!(way_out.contains(&format!("delete it with 'rm {}'", lock.display())), "{said}");
        assert!(start.elapsed() >= LOCK_PATIENCE && lock.exists());
    }

    #[test]
    fn only_locks_of_others_are_worth_waiting_for() {
        let of = |said: &str| is_locked(said).then(|| lock_in(said).unwrap_or_default());
        let index =
            "fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git process seems to be";
        assert_eq!(of(index), Some("/r/.git/index.lock".into()));
        let reference =
            "fatal: cannot lock ref 'refs/heads/q': Unable to create '/r/refs/heads/q.lock': File exists.";
        assert_eq!(of(reference), Some("/r/refs/heads/q.lock".into()));
        let config = "error: could not lock config file .git/config: File exists";
        assert_eq!(of(config), Some(".git/config.lock".into()));
        assert_eq!(of("Another git process seems to be running"), Some(PathBuf::new()));
        for other in [
            "fatal: cannot lock ref 'refs/heads/a/b': 'refs/heads/a' exists; cannot create 'refs/heads/a/b'",
            "fatal: cannot lock ref 'HEAD': is at 1 but expected 2",
            "error: could not lock config file .git/config: Permission denied",
            "fatal: could not create work tree dir 'x': File exists",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn the_environment_and_the_limit_are_the_callers() {
        let (_guard, root) = repository();
        let index = root.join("other index");
        let how = ChangeOptions {
            env: vec![("GIT_INDEX_FILE".into(), index.clone().into())],
            ..ChangeOptions::default()
        };
        fs::write(root.join("a"), "a").unwrap();
        change_with(&root, &["add", "a"], &how).unwrap();
        assert!(index.exists());
        assert_eq!(change_with(&root, &["ls-files"], &how).unwrap(), b"a\n");
        assert_eq!(change_with(&root, &["ls-files"], &ChangeOptions::default()).unwrap(), b"");
        let how = ChangeOptions { limit: Duration::from_millis(200), ..ChangeOptions::default() };
        let end = cut_off(change_with(&root, &["-c", "alias.hang=!sleep 60", "hang"], &how));
        assert_eq!(end, CutOff::TimedOut(Duration::from_millis(200)));
    }

    #[track_caller]
    fn cut_off<T: std::fmt::Debug>(result: Result<T, ChangeError>) -> CutOff {
        match result.unwrap_err() {
            ChangeError::CutOff(end) => end,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn what_ended_git_from_outside_is_said_as_that() {
        let (_guard, root) = repository();
        // An alias is a child of git.
        let ends = |who: &str| cut_off(change(&root, &["-c", &format!("alias.end=!kill -9 {who}"), "end"]));
        assert_eq!(ends("$PPID"), CutOff::Killed(9));
        // git leads its own process group; its parent is the supervisor.
        assert_eq!(ends("$(ps -o ppid= -p $PPID)"), CutOff::OutOfSight);
        let told = CutOff::OutOfSight.to_string() + &CutOff::Killed(9).to_string();
        assert!(!told.contains("hook") && told.contains("signal 9"), "{told}");
    }
}
