//! Writes starter files for users.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::files::atomic;
use crate::files::{FileError, theirs};

/// The result for a file.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) enum Placed {
    /// It was written; there was none.
    Written,
    /// It was replaced; there is a copy of the old one, unless that was a dangling link.
    Replaced(Option<PathBuf>),
    /// It exists with exactly this content.
    Same,
    /// It exists with other content, and was not to be replaced.
    Kept,
}

impl Placed {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Replaced(_) => "replaced",
            Self::Same => "unchanged",
            Self::Kept => "kept",
        }
    }

    /// The path of the copy.
    pub(in crate::commands) fn copy(&self) -> Option<&Path> {
        if let Self::Replaced(copy) = self { copy.as_deref() } else { None }
    }
}

/// Writes a file that does not exist, or that may be replaced. Whole files only: a half-written one would be kept by the next
/// `init`. A dangling symlink counts as existing: the user made it. No link leads out of the `project` of the path.
pub(in crate::commands) fn place(
    project: &Path,
    path: &Path,
    content: &str,
    replace: bool,
) -> Result<Placed, FileError> {
    let exists = path.symlink_metadata().is_ok();
    if exists && !replace {
        return Ok(Placed::Kept);
    }
    theirs::require_within(project, path).map_err(FileError::at(path))?;
    let copy = match theirs::read(path, theirs::MAX_TEXT) {
        Ok(found) if found == content.as_bytes() => return Ok(Placed::Same),
        Ok(_) => Some(atomic::copy_theirs(path)?),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        // A path below a file does not exist; making the folder reports that.
        Err(error) if error.kind() == ErrorKind::NotADirectory => None,
        Err(reason) => return Err(FileError::at(path)(reason)),
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(FileError::at(folder))?;
    }
    atomic::write_theirs(path, content.as_bytes())?;
    Ok(if exists { Placed::Replaced(copy) } else { Placed::Written })
}
