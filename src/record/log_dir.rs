//! `--log-dir`: one file per iteration with its agent's output.

use std::path::{Path, PathBuf};

use super::whole_lines::WholeLines;
use crate::engine::context::Listener;
use crate::engine::event::{Stamped, Stream};
use crate::engine::fact::Fact;
use crate::engine::outcome::End;
use crate::files::{FileError, RecordFile, own};
use crate::text::timestamp;

/// The folder of these files, `NNN_YYYYMMDD-HHMMSS.log`. Further attempts at an iteration are appended to its file.
#[derive(Debug)]
pub struct LogDir {
    folder: PathBuf,
    current: Option<(u64, WholeLines)>,
}

impl LogDir {
    /// Creates the folder if it is missing.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        // The user has named it, so it may be a link.
        if !folder.is_dir() {
            own::make_folders(folder).map_err(FileError::at(folder))?;
        }
        Ok(Self { folder: folder.to_owned(), current: None })
    }
}

impl Listener for LogDir {
    fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), End> {
        match (stamped.fact, &mut self.current) {
            (&Fact::AttemptStarted { iteration, .. }, current) => {
                if current.as_ref().is_none_or(|(number, lines)| *number != iteration || lines.is_lost()) {
                    let name = format!("{iteration:03}_{}.log", timestamp::for_names(stamped.at));
                    let file = RecordFile::append(&self.folder.join(name))?;
                    *current = Some((iteration, WholeLines::new(file)));
                }
                Ok(())
            }
            (Fact::AttemptEnded(_) | Fact::LoopEnded(_), Some((_, lines))) => {
                lines.end_lines()?;
                Ok(lines.flush()?)
            }
            _ => Ok(()),
        }
    }

    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), End> {
        let Some((_, lines)) = &mut self.current else { return Ok(()) };
        lines.output(stream, bytes)?;
        Ok(lines.flush()?)
    }
}
