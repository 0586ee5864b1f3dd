//! Reads a configuration file into memory.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use super::SettingsError;

/// Larger files are not configuration, whatever they are.
const MAX_BYTES: u64 = 1 << 20;

/// The file's text; `None` when it does not exist. A folder, an unreadable file, one over 1 MiB and one that is not
/// UTF-8 are errors.
pub(super) fn text(path: &Path) -> Result<Option<String>, SettingsError> {
    let unreadable = |problem: String| SettingsError::Unreadable { path: path.to_owned(), problem };
    let file = match File::open(path) {
        Ok(file) => file,
        // Below a file there is nothing either: accounts of services have HOME=/dev/null.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(format!("{error}; check its permissions"))),
    };
    let mut bytes = Vec::new();
    match file.take(MAX_BYTES + 1).read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::IsADirectory => {
            return Err(unreadable("it is a folder; name a file".to_owned()));
        }
        Err(error) => return Err(unreadable(error.to_string())),
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(unreadable("it is larger than 1 MiB; is this the right file?".to_owned()));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.split(|byte| *byte == b'\n').count();
        unreadable(format!("line {line} is not valid UTF-8; save the file as UTF-8"))
    })
}
