//! Reads a configuration file into memory.

use std::io::ErrorKind;
use std::path::Path;

use super::SettingsError;
use crate::files::theirs;

/// A larger file is no configuration.
const MAX_BYTES: u64 = 1 << 20;

/// The file's text; `None` when it does not exist. A link to nothing, a folder, a FIFO, an unreadable file, one over 1 MiB and one that is not
/// UTF-8 are errors.
pub(super) fn text(path: &Path) -> Result<Option<String>, SettingsError> {
    let unreadable = |problem: String| SettingsError::Unreadable { path: path.to_owned(), problem };
    let bytes = match theirs::read(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        // An error, not an empty file: the loop would run without its limits.
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
            return Err(unreadable(
                "it is a link to a file that is not there; fix the link, or remove it".to_owned(),
            ));
        }
        // A path below a file does not exist either: accounts of services have HOME=/dev/null.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => {
            return Err(unreadable(match error.kind() {
                ErrorKind::IsADirectory => "it is a folder; name a file".to_owned(),
                ErrorKind::FileTooLarge => "it is larger than 1 MiB; is this the right file?".to_owned(),
                ErrorKind::InvalidInput => format!("{error}; name a file"),
                _ => format!("{error}; check its permissions"),
            }));
        }
    };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.split(|byte| *byte == b'\n').count();
        unreadable(format!("line {line} is not valid UTF-8; save the file as UTF-8"))
    })
}
