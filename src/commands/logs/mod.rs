//! `ralph logs`: a loop's iterations log, or what its agents did.

mod bytes;
mod meant;
mod transcript;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};

use super::output::{Copy, nobody_reads, remark, width};
use super::target::count;
use super::worker;
use crate::cli::LogsArgs;
use crate::files::own;
use crate::project::Project;
use crate::record::lookup::Loop;
use crate::record::retention;

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// `ralph logs`.
pub(super) fn run(args: &LogsArgs) -> anyhow::Result<u8> {
    let lines = args.lines.as_deref().map(|word| count(word, "--lines")).transpose()?;
    if args.agent && !args.raw {
        return transcript::run(args, lines);
    }
    if args.run.is_some() || args.attempt.is_some() {
        return bytes::run(args, lines);
    }
    let (here, loops) = match meant::recorded(&args.target) {
        // It may be forgotten but for its runs.
        Ok((_, loops)) if args.raw && loops.is_empty() => return bytes::run(args, lines),
        Err(_) if args.raw => return bytes::run(args, lines),
        Ok(found) => found,
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
    show(&path, lines, args.follow.then_some(found))?
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(0)
}

/// There is no loop.
fn nothing_in(here: &Project) -> anyhow::Error {
    anyhow!("no loop in {}: 'ralph ls' lists those of this machine", here.root().display())
}

/// Tells a person at a terminal whose log follows.
fn whose(name: &str, path: &Path) {
    if width().is_some() {
        remark(&format!("loop '{name}': {}", path.display()));
    }
}

/// The session log of the loop's latest run, else the newest one there.
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
    // A link leads to one that is found where it is.
    let is_log = |path: &PathBuf| retention::is_log(path) && !path.is_symlink();
    Ok(newest_of(entries.into_iter().filter(is_log)))
}

/// Names of session logs sort by time.
fn newest_of(paths: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    paths.into_iter().max_by_key(|path| path.file_name().map(std::ffi::OsStr::to_owned))
}

/// Copies the last lines of a log, or all of it, to stdout.
pub(super) fn show_all(path: &Path, lines: Option<usize>) -> anyhow::Result<()> {
    show(path, lines, None)?.with_context(|| format!("cannot read {}", path.display()))
}

/// Copies the log, or its last lines, to stdout, and what is added while the loop runs, until nobody reads any more.
///
/// # Errors
/// The outer one when stdout cannot be written, the inner one when the log cannot be read.
fn show(path: &Path, lines: Option<usize>, follow: Option<&Loop>) -> anyhow::Result<io::Result<()>> {
    match retention::open_log(path) {
        Ok(file) => show_file(file, lines, follow),
        Err(error) => Ok(Err(error)),
    }
}

/// The same of an open log.
fn show_file(mut file: File, lines: Option<usize>, follow: Option<&Loop>) -> anyhow::Result<io::Result<()>> {
    if let Some(lines) = lines {
        let begun = tail(&mut file, lines).and_then(|start| file.seek(SeekFrom::Start(start)));
        if let Err(error) = begun {
            return Ok(Err(error));
        }
    }
    let mut out = Copy::new();
    loop {
        // Looked at before the log is read, so that the last lines of a loop that ends are seen.
        let is_over = follow.is_none_or(|found| found.again().is_none_or(|now| !is_same_run(found, &now)));
        let is_read = match out.rest_of(&mut file)? {
            Ok(is_read) => is_read,
            Err(error) => return Ok(Err(error)),
        };
        if is_over || !is_read || nobody_reads(LOOK)? {
            return Ok(Ok(()));
        }
    }
}

fn is_same_run(before: &Loop, now: &Loop) -> bool {
    let run = |found: &Loop| found.alive().map(|state| state.run.clone());
    run(now).is_some_and(|run_now| before.state.as_ref().is_ok_and(|state| state.run == run_now))
}

/// Where the last `lines` lines of a file begin.
fn tail(file: &mut File, lines: usize) -> io::Result<u64> {
    const CHUNK: u64 = 64 * 1024;
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut newlines = 0;
    let mut is_last_byte = true;
    let mut chunk = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(start))?;
        chunk.clear();
        (&*file).take(end - start).read_to_end(&mut chunk)?;
        for (at, byte) in chunk.iter().enumerate().rev() {
            // The newline that ends the file begins no line.
            if !std::mem::take(&mut is_last_byte) && *byte == b'\n' {
                newlines += 1;
                if newlines == lines {
                    return Ok(start + at as u64 + 1);
                }
            }
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn last(content: &str, lines: usize) -> String {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let start = tail(&mut file, lines).unwrap();
        content[usize::try_from(start).unwrap()..].to_owned()
    }

    #[test]
    fn the_last_lines_are_found() {
        assert_eq!(last("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last("a\nb\nc", 2), "b\nc");
        assert_eq!(last("a\n\n", 1), "\n");
        assert_eq!(last("a\nb\n", 5), "a\nb\n");
        assert_eq!(last("", 3), "");
        let long = format!("{}\nend\n", "x".repeat(200_000));
        assert_eq!((last(&long, 1), last(&long, 2)), ("end\n".to_owned(), long));
    }
}
