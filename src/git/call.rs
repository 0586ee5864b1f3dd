//! Calls of git that only read.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::error::{CutOff, GitError};
use crate::process::REPOSITORY_VARIABLES;
use crate::process::capture::{Ended, Kept, capture};
use crate::process::launch::Launch;
use crate::process::short::output_within;
use crate::process::supervised::StartError;
use crate::text::line;

/// The time limit of these short commands.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// Commands that only read, but may run the repository's filters to find changes.
const RUN_FILTERS: [&str; 3] = ["status", "diff", "diff-files"];
/// Has them not look into repositories that are parts of a work tree, whatever any configuration says.
pub(super) const LEFT_ALONE: &str = "--ignore-submodules=dirty";

/// A missing object of a partial clone is not fetched: the configuration chooses the program for that, and it would run without a
/// supervisor here. Git before 2.45 knows only the list of allowed protocols, which no configuration overrides.
const FETCHES_NOTHING: [(&str, &str); 2] = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "")];

/// The stdout of a git command in `root` that only reads.
pub(super) fn run(root: &Path, arguments: &[&str], limit: Duration) -> Result<Vec<u8>, GitError> {
    run_with(root, arguments, &[], limit)
}

/// [`run`] with variables on top of our own environment.
pub(super) fn run_with(
    root: &Path,
    arguments: &[&str],
    more: &[(OsString, OsString)],
    limit: Duration,
) -> Result<Vec<u8>, GitError> {
    run_heard(root, arguments, more, limit).map(|(stdout, _)| stdout)
}

/// [`run_with`] for a command that succeeds with errors on its stderr, which is returned as well.
pub(super) fn run_heard(
    root: &Path,
    arguments: &[&str],
    more: &[(OsString, OsString)],
    limit: Duration,
) -> Result<(Vec<u8>, Vec<u8>), GitError> {
    let ours = [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")];
    let ours = ours.map(|(name, value)| (name.into(), value.into()));
    let command = subcommand(arguments);
    let may_filter = RUN_FILTERS.contains(&command);
    let mut arguments = arguments.to_vec();
    if let Some(at) = arguments.iter().position(|word| *word == command).filter(|_| may_filter) {
        arguments.insert(at + 1, LEFT_ALONE);
    }
    let launch = launch(root, &arguments, more.iter().cloned().chain(ours).collect());
    let (end, stdout, stderr) =
        if may_filter { supervised(&launch, limit) } else { unsupervised(launch, limit) }
            .map_err(|reason| GitError::Run { path: root.to_path_buf(), reason })?;
    let cut_off = |end| GitError::CutOff { command: command.to_owned(), path: root.to_path_buf(), end };
    if CutOff::or_code(end, limit).map_err(cut_off)? == 0 {
        return Ok((stdout, stderr));
    }
    Err(refused(command, root, &String::from_utf8_lossy(&stderr)))
}

/// The beginning and the end of what a git command prints that only reads, `most` bytes of it.
pub(super) fn run_within(
    root: &Path,
    arguments: &[&str],
    env: Vec<(OsString, OsString)>,
    limit: Duration,
    most: usize,
) -> Result<String, GitError> {
    let unreadable = |reason| GitError::Run { path: root.to_path_buf(), reason };
    let launch = launch(root, arguments, env);
    let captured = capture(&launch, Vec::new(), limit, most, &AtomicBool::new(false))
        .map_err(|error| unreadable(error.into_source()))?;
    let command = subcommand(arguments);
    let cut_off = |end| GitError::CutOff { command: command.to_owned(), path: root.to_path_buf(), end };
    match CutOff::or_code(captured.end, limit).map_err(cut_off)? {
        0 => Ok(captured.stdout.text()),
        _ => Err(refused(command, root, &captured.stderr.text())),
    }
}

fn refused(command: &str, root: &Path, said: &str) -> GitError {
    let message = line::first(said).unwrap_or("failed without a word");
    GitError::refused(command, root, message.trim_start_matches("fatal: ").to_owned())
}

/// The command behind the options of git itself.
fn subcommand<'a>(arguments: &[&'a str]) -> &'a str {
    let mut words = arguments.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-c" => drop(words.next()),
            word if word.starts_with('-') => {}
            command => return command,
        }
    }
    ""
}

/// The command line of git with these arguments in `root`, with variables on top of our own environment.
pub(super) fn launch<S: AsRef<OsStr>>(
    root: &Path,
    arguments: &[S],
    env: Vec<(OsString, OsString)>,
) -> Launch {
    // A configured file monitor would start a daemon that keeps our pipes open, or a hook of the repository. A program that
    // the repository configures would check signatures.
    let before = ["-c", "core.fsmonitor=false", "-c", "log.showSignature=false"].map(OsStr::new);
    let args = before.into_iter().chain(arguments.iter().map(AsRef::as_ref)).map(OsStr::to_owned).collect();
    Launch { program: "git".into(), args, cwd: root.to_path_buf(), env, ..Launch::default() }
}

/// Runs git and its filters under a supervisor, so that the filters end with git and with ralph. Returns how it
/// ended, and its output.
fn supervised(launch: &Launch, limit: Duration) -> io::Result<(Ended, Vec<u8>, Vec<u8>)> {
    let captured = capture(launch, Vec::new(), limit, usize::MAX, &AtomicBool::new(false));
    let captured = captured.map_err(StartError::into_source)?;
    let text = |kept: &Kept| kept.whole().unwrap_or_default();
    Ok((captured.end, text(&captured.stdout), text(&captured.stderr)))
}

/// Runs git without a supervisor, for commands that run no program of the repository.
fn unsupervised(launch: Launch, limit: Duration) -> io::Result<(Ended, Vec<u8>, Vec<u8>)> {
    let mut git = Command::new(&launch.program);
    git.arg("-C").arg(&launch.cwd).args(&launch.args).envs(launch.env).envs(FETCHES_NOTHING);
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
