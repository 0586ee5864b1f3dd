//! `ralph report --html FILE`: writes the page.

use std::path::Path;

use anyhow::{Context as _, bail};

use super::browser;
use crate::commands::output::{print_as_it_is, say, warn};
use crate::files::atomic;
use crate::files::{FileError, theirs};
use crate::parallel;
use crate::record::event_lines::each_line;
use crate::record::report::{LoopReport, RunReport};
use crate::record::run_folder::event_logs;
use crate::view::report::html::{ROOM, Transcripts, page};

/// Writes the page, or prints it if the file is `-`, and opens it. No link leads it elsewhere: the `project`, given by its
/// root, may come from another user.
pub(super) fn write(report: &RunReport, project: &Path, file: &Path, is_to_open: bool) -> anyhow::Result<u8> {
    let room = ROOM / report.loops.len().max(1);
    let transcripts = parallel::each(&report.loops, &|one| transcripts(one, room));
    let name = project.file_name().map(std::ffi::OsStr::to_string_lossy).unwrap_or_default();
    let page = page(report, &name, &transcripts);
    if file == Path::new("-") {
        if is_to_open {
            bail!("--open needs a file: write --html FILE instead of --html -");
        }
        return print_as_it_is(&page);
    }
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    if let Ok(target) = file.read_link() {
        bail!(
            "cannot write the page {}: it is a symbolic link to {}: remove it, or name another file",
            file.display(),
            target.display()
        );
    }
    theirs::require_within(project, &whole).map_err(FileError::at(file)).context("cannot write the page")?;
    atomic::write_theirs(file, page.as_bytes()).context("cannot write the page")?;
    say(&whole.display().to_string());
    if is_to_open && let Err(error) = browser::open(&whole) {
        warn(&format!("{error:#}"));
    }
    Ok(0)
}

/// The transcripts of a loop. A log that cannot be read has none: the page names the command for it.
fn transcripts(one: &LoopReport, room: usize) -> Transcripts {
    let mut transcripts = Transcripts::new(one.attempts, room);
    if one.attempts > 0 {
        for log in event_logs(&one.folder) {
            let _ = each_line(&log, |event, line| transcripts.line(event, line));
        }
    }
    transcripts
}
