//! What an import has read, until all of it is there: who reads from a pipe may have to wait for it, and nobody else should.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::path::Path;

use crate::graph::error::GraphError;
use crate::graph::import::Entry;

/// Entries in a file without a name.
pub(super) struct Spool(File);

impl Spool {
    /// Reads all entries there are. The file is in `folder`: it is as large as what is read.
    pub(super) fn fill(
        folder: &Path,
        entries: &mut dyn Iterator<Item = Result<Entry, GraphError>>,
    ) -> Result<Self, GraphError> {
        let broken = |error: io::Error| broken(folder, &error);
        let mut file = BufWriter::new(tempfile::tempfile_in(folder).map_err(broken)?);
        for entry in entries {
            serde_json::to_writer(&mut file, &entry?).map_err(|error| broken(error.into()))?;
            file.write_all(b"\n").map_err(broken)?;
        }
        let mut file = file.into_inner().map_err(|error| broken(error.into_error()))?;
        file.rewind().map_err(broken)?;
        Ok(Self(file))
    }

    /// The same entries again.
    pub(super) fn entries(&self, folder: &Path) -> impl Iterator<Item = Result<Entry, GraphError>> {
        let mut file = BufReader::new(&self.0);
        let mut line = String::new();
        std::iter::from_fn(move || {
            line.clear();
            match file.read_line(&mut line) {
                Ok(0) => None,
                Ok(_) => Some(serde_json::from_str(&line).map_err(|error| broken(folder, &error.into()))),
                Err(error) => Some(Err(broken(folder, &error))),
            }
        })
    }
}

fn broken(folder: &Path, error: &io::Error) -> GraphError {
    let advice = "free some space on that disk, or fix the permissions of the folder";
    GraphError::Storage { path: folder.to_owned(), reason: error.to_string(), advice }
}
