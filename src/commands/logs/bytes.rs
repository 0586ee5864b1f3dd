//! `ralph logs --raw`: the agents' output, byte by byte, of a run with a folder.

use std::io::{self, Read as _, Seek as _, SeekFrom};

use anyhow::{Context as _, bail};

use super::copy::{no_log, show_file};
use super::meant::{has_one_pane, meant, too_few};
use super::{newest_log, whose};
use crate::cli::LogsArgs;
use crate::commands::target::count;
use crate::record::attempt_bytes::{AttemptBytes, place};
use crate::record::retention;

/// `ralph logs --raw` of one run, or of one attempt of it; also if the log was compressed, or its loop was removed.
pub(super) fn run(args: &LogsArgs, lines: Option<usize>) -> anyhow::Result<u8> {
    let attempt = args.attempt.as_deref().map(|word| count(word, "--attempt")).transpose()?;
    if args.follow && attempt.is_some() {
        bail!("--follow: the bytes of one attempt are not followed: leave out --raw, or --attempt");
    }
    let meant = meant(args)?;
    let Some(log) = newest_log(&meant.folder)? else {
        return Err(no_log(&meant.name, &meant.folder));
    };
    let unreadable = || format!("cannot read {}", log.display());
    let mut file = retention::open_log(&log).with_context(unreadable)?;
    if let Some(number) = attempt.map(|number| number as u64) {
        if meant.found.as_ref().is_some_and(|found| found.project.is_of_worker()) {
            return Err(has_one_pane(&meant.name));
        }
        match place(&meant.folder, &mut file, number).with_context(unreadable)? {
            AttemptBytes::At(range) => {
                let mut part = tempfile::tempfile()?;
                file.seek(SeekFrom::Start(range.start))?;
                io::copy(&mut file.take(range.end - range.start), &mut part)?;
                part.rewind()?;
                file = part;
            }
            AttemptBytes::Beyond(made) => return Err(too_few(number, &meant.name, made)),
            AttemptBytes::Elsewhere => bail!(
                "--attempt {number}: {} does not tell where it begins: leave it out to see all",
                log.display()
            ),
        }
    }
    whose(&meant.name, &log);
    show_file(file, lines, None)?.with_context(unreadable)?;
    Ok(0)
}
