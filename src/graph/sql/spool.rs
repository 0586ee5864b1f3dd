//! Reads all input of an import before its transaction begins: a reader may have to wait for a pipe, and no other
//! process should have to wait with it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::path::Path;

use crate::graph::error::GraphError;
use crate::graph::import::ImportEntry;

/// Entries of an import, in an unnamed file.
pub(in crate::graph) struct Spool(File);

impl Spool {
    /// Reads all entries into a file in `folder`, which needs as much space as the input.
    pub(in crate::graph) fn fill(
        folder: &Path,
        entries: &mut dyn Iterator<Item = Result<ImportEntry, GraphError>>,
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

    /// Reads the entries back.
    pub(in crate::graph) fn entries(
        &self,
        folder: &Path,
    ) -> impl Iterator<Item = Result<ImportEntry, GraphError>> {
        // A transaction may run again.
        let mut start = (&self.0).rewind().err();
        let mut file = BufReader::new(&self.0);
        let mut line = String::new();
        std::iter::from_fn(move || {
            if let Some(error) = start.take() {
                return Some(Err(broken(folder, &error)));
            }
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
