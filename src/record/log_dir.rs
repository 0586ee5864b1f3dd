//! `--log-dir`: one file per iteration with what its agent wrote.

use std::path::{Path, PathBuf};

use super::whole_lines::WholeLines;
use crate::engine::context::Sink;
use crate::engine::event::{Event, Stamped};
use crate::files::{FileError, RecordFile, own};
use crate::text::timestamp;

/// The folder of these files, `NNN_YYYYMMDD-HHMMSS.log`. Further attempts at an iteration go on in its file.
#[derive(Debug)]
pub struct LogDir {
    folder: PathBuf,
    current: Option<(u64, WholeLines)>,
}

impl LogDir {
    /// Creates the folder where it is missing.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        // The user has named it: it may be a link.
        if !folder.is_dir() {
            own::make_folders(folder).map_err(FileError::at(folder))?;
        }
        Ok(Self { folder: folder.to_owned(), current: None })
    }

    /// Listens to a loop.
    #[must_use]
    pub fn into_sink<'a>(mut self) -> Sink<'a> {
        Box::new(move |stamped| Ok(self.take(stamped)?))
    }

    /// Takes one event.
    fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), FileError> {
        match (stamped.event, &mut self.current) {
            (Event::AttemptStarted { tally, .. }, current) => {
                let iteration = tally.iteration;
                if current.as_ref().is_none_or(|(number, lines)| *number != iteration || lines.is_lost()) {
                    let name = format!("{iteration:03}_{}.log", timestamp::for_names(stamped.at));
                    let file = RecordFile::append(&self.folder.join(name))?;
                    *current = Some((iteration, WholeLines::new(file)));
                }
                Ok(())
            }
            (Event::Output { stream, bytes }, Some((_, lines))) => {
                lines.output(stream, bytes)?;
                lines.flush()
            }
            (Event::AttemptEnded { .. } | Event::LoopEnded { .. }, Some((_, lines))) => {
                lines.end_lines()?;
                lines.flush()
            }
            _ => Ok(()),
        }
    }
}
