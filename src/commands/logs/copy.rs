//! Copies a log, or its last lines, to stdout.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use crate::commands::output::{Copy, nobody_reads};
use crate::record::lookup::Loop;
use crate::record::retention;

/// How often a followed log is read.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// A loop has no log in this folder.
pub(in crate::commands) fn no_log(name: &str, folder: &Path) -> anyhow::Error {
    anyhow!("no session log found for '{name}' in {}", folder.display())
}

/// Copies the last lines of a log, or all of it, to stdout.
pub(in crate::commands) fn show_all(path: &Path, lines: Option<usize>) -> anyhow::Result<()> {
    show(path, lines, None)?.with_context(|| format!("cannot read {}", path.display()))
}

/// Copies the log, or its last lines, to stdout, and follows it while the loop runs and stdout is open.
///
/// # Errors
/// The outer one when stdout cannot be written, the inner one when the log cannot be read.
pub(super) fn show(
    path: &Path,
    lines: Option<usize>,
    follow: Option<&Loop>,
) -> anyhow::Result<io::Result<()>> {
    match retention::open_log(path) {
        Ok(file) => show_file(file, lines, follow),
        Err(error) => Ok(Err(error)),
    }
}

/// Copies an open log.
pub(super) fn show_file(
    mut file: File,
    lines: Option<usize>,
    follow: Option<&Loop>,
) -> anyhow::Result<io::Result<()>> {
    if let Some(lines) = lines {
        let begun = tail(&mut file, lines).and_then(|start| file.seek(SeekFrom::Start(start)));
        if let Err(error) = begun {
            return Ok(Err(error));
        }
    }
    let mut out = Copy::new();
    loop {
        // Checked before the log is read, so that the last lines of a loop that ends are not missed.
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

pub(super) fn is_same_run(before: &Loop, now: &Loop) -> bool {
    let run = |found: &Loop| found.alive().map(|state| state.run.clone());
    run(now).is_some_and(|run_now| before.state.as_ref().is_ok_and(|state| state.run == run_now))
}

/// The offset of the last `lines` lines of a file.
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
            // The newline at the end of the file begins no line.
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
