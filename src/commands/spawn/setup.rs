//! The set-up of a worker from its command line: mistakes are refused here.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use regex::Regex;

use crate::agent::pane::done::DonePattern;
use crate::agent::pane::ready::Screens;
use crate::cli::{LoopFlags, SpawnArgs};
use crate::commands::output::warn;
use crate::files::theirs;
use crate::record::worker::Worker;
use crate::source::worker::{TOO_LONG, is_too_long};
use crate::text::duration;

/// The socket of our own tmux server.
const SOCKET: &str = "ralph";

/// The absolute path of the prompt, which must be readable.
pub(super) fn prompt_file(file: &Path) -> anyhow::Result<PathBuf> {
    let path = std::env::current_dir().context("the current directory is gone")?.join(file);
    if path.metadata().is_ok_and(|found| found.file_type().is_char_device()) {
        bail!("cannot read prompt file: {}: it is a device", file.display());
    }
    match theirs::text(&path) {
        Ok(text) if is_too_long(&text) => bail!("cannot read prompt file: {}: {TOO_LONG}", file.display()),
        Ok(_) => Ok(path.canonicalize().unwrap_or(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("prompt file not found: {}", file.display())
        }
        Err(error) => bail!("cannot read prompt file: {}: {error}", file.display()),
    }
}

/// The value of a setting's flag.
pub(super) fn given<'a>(flags: &'a LoopFlags, key: &str) -> Option<&'a str> {
    flags.settings.given.iter().rev().find(|(known, _)| *known == key).map(|(_, value)| value.as_str())
}

/// The worker, without its work tree.
pub(super) fn worker(args: &SpawnArgs, name: &str) -> anyhow::Result<Worker> {
    let command: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if args.worktree && command.iter().any(|word| word == "docker" || word == "podman") {
        warn("a container brings a file system of its own: --worktree is of little use to it");
    }
    let here = std::env::current_dir().context("the current directory is gone")?;
    let cwd = args.cwd.as_ref().map_or_else(|| here.clone(), |cwd| here.join(cwd));
    let cwd = cwd.canonicalize().with_context(|| format!("--cwd {}", cwd.display()))?;
    let (named, valued): (Vec<&String>, Vec<&String>) = args.env.iter().partition(|word| !word.contains('='));
    if let Some(bad) = args.env.iter().find(|word| word.is_empty() || word.starts_with('=')) {
        bail!("--env {bad}: write NAME=VALUE, or NAME for what the environment has");
    }
    let pair = |word: &String| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let length = |flag: &str, word: &str| {
        duration::parse(word).map_err(|error| anyhow::anyhow!("{flag} {word}: {error}"))
    };
    let heartbeat = args.heartbeat.as_deref().map(|word| length("--heartbeat", word)).transpose()?;
    let socket = args.tmux_socket.clone().or_else(|| std::env::var("RALPH_TMUX_SOCKET").ok());
    Ok(Worker {
        command,
        cwd,
        env: valued.into_iter().filter_map(pair).collect(),
        env_names: named.into_iter().cloned().collect(),
        tags: args.tags.clone(),
        worktree: None,
        socket: socket.filter(|socket| !socket.is_empty()).unwrap_or_else(|| SOCKET.to_owned()),
        session: args.session.clone().unwrap_or_else(|| name.to_owned()),
        ready_pattern: args.ready_pattern.clone(),
        ready_timeout: length("--ready-timeout", &args.ready_timeout)?.as_secs_f64(),
        trust: args.trust,
        check_done_continuous: args.check_done_continuous,
        heartbeat: heartbeat.map(|every: Duration| every.as_secs_f64()),
        heartbeat_message: args.heartbeat_message.clone(),
    })
}

/// Warns about a set-up that is likely not intended.
pub(super) fn warn_of(worker: &Worker, inactivity: Duration) {
    for name in worker.env_names.iter().filter(|name| std::env::var_os(name).is_none()) {
        warn(&format!("--env {name}: there is no such variable here"));
    }
    let is_shorter = |every: f64| every < inactivity.as_secs_f64();
    if worker.heartbeat.is_some_and(is_shorter) {
        warn(
            "--heartbeat is shorter than --inactivity-timeout: no iteration will end because its screen stands still",
        );
    }
}

/// The rules for its screens, and the pattern that ends its loop.
pub(super) fn patterns(
    worker: &Worker,
    done: Option<&str>,
) -> anyhow::Result<(Screens, Option<DonePattern>)> {
    let ready = worker.ready_pattern.as_deref().map(Regex::new).transpose().map_err(|error| {
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        anyhow::anyhow!("--ready-pattern: no regular expression: {reason}")
    })?;
    let screens = Screens::of(&worker.command, ready.as_ref()).map_err(|why| anyhow::anyhow!("{why}"))?;
    let done = done.filter(|done| !done.is_empty()).map(DonePattern::new).transpose()?;
    Ok((screens, done))
}
