//! `ralph logs`: a loop's iterations log, or its transcript.

mod bytes;
pub(super) mod copy;
mod meant;
mod transcript;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};

use self::copy::show;
use super::fleet;
use super::output::{remark, say};
use super::target::count;
use super::worker;
use crate::cli::LogsArgs;
use crate::files::own;
use crate::project::Project;
use crate::record::lookup::Loop;
use crate::record::retention;
use crate::text::line::shell_word;

/// `ralph logs`.
pub(super) fn run(args: &LogsArgs) -> anyhow::Result<u8> {
    if let Some(place) = fleet::logs(args.store.as_deref(), &args.target)? {
        say(&place);
        return Ok(0);
    }
    let lines = args.lines.as_deref().map(|word| count(word, "--lines")).transpose()?;
    if args.agent && !args.raw {
        return transcript::run(args, lines);
    }
    if args.run.is_some() || args.attempt.is_some() {
        return bytes::run(args, lines);
    }
    let (here, loops) = match meant::recorded(&args.target) {
        // Perhaps only its runs are left.
        Ok((_, loops)) if args.raw && loops.is_empty() => return bytes::run(args, lines),
        Err(_) if args.raw => return bytes::run(args, lines),
        Ok(found) => found,
        Err(_) if meant::is_task(args) => return transcript::run(args, lines),
        Err(error) => return Err(meant::forgotten(args, error)),
    };
    let found = loops.first().ok_or_else(|| nothing_in(&here))?;
    if args.agent && found.project.is_of_worker() {
        return worker::show(found, session_log(found)?.as_deref(), lines, args.follow);
    }
    let path = if args.raw { session_log(found)? } else { Some(found.project.iterations_log()) };
    let Some(path) = path.filter(|path| path.symlink_metadata().is_ok()) else {
        let kind = if args.raw { "session" } else { "iteration" };
        let what = if found.project.is_of_worker() { "worker " } else { "" };
        bail!("no {kind} log found for {what}'{}' in {}", found.name, found.project.records().display());
    };
    whose(&found.name, &path);
    if !args.raw {
        remark(&format!("what its agents said and did: 'ralph logs {} --agent'", shell_word(&found.name)));
    }
    show(&path, lines, args.follow.then_some(found))?
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(0)
}

/// There is no loop.
fn nothing_in(here: &Project) -> anyhow::Error {
    anyhow!("no loop in {}: 'ralph ls' lists those of this machine", here.root().display())
}

/// Says whose log follows, on stderr: stdout has the log alone.
fn whose(name: &str, path: &Path) {
    remark(&format!("loop '{name}': {}", path.display()));
}

/// The session log of the loop's latest run, else the newest one in its folder.
fn session_log(found: &Loop) -> anyhow::Result<Option<PathBuf>> {
    if let Some(known) = found.session_log()? {
        return Ok(Some(known));
    }
    let mut paths = Vec::new();
    for folder in found.project.all_logs() {
        paths.extend(newest_log(&folder)?);
    }
    Ok(newest_of(paths))
}

/// The newest session log in a folder.
fn newest_log(folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    let entries = own::entries(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    // The target of a link is found by itself.
    let is_log = |path: &PathBuf| retention::is_log(path) && !path.is_symlink();
    Ok(newest_of(entries.into_iter().filter(is_log)))
}

/// Names of session logs sort by time.
fn newest_of(paths: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    paths.into_iter().max_by_key(|path| path.file_name().map(std::ffi::OsStr::to_owned))
}
