//! The secret key of this user's ralph: a file in the user's state folder, created at first use.
//!
//! What is signed with it was written by a ralph of this user. Other programs and careless agents cannot imitate
//! that; a program of the same user that looks for the key can.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use super::{FileError, own};
use crate::text::digest;

/// The length of the key, in bytes.
pub const LENGTH: usize = 32;

/// The key in the file at `path`, which is created at first use.
///
/// # Errors
/// If it can be neither read nor created.
pub fn at(path: &Path) -> Result<[u8; LENGTH], FileError> {
    let key = || match own::read(path, LENGTH as u64) {
        Err(error) if error.kind() == ErrorKind::NotFound => make(path),
        read => whole(&read?),
    };
    key().map_err(FileError::at(path))
}

/// Writes a key back to the file at `path` if that is missing; returns whether it did.
///
/// # Errors
/// If it cannot be written.
pub fn keep(path: &Path, key: &[u8; LENGTH]) -> Result<bool, FileError> {
    let is_missing = path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if is_missing { write(path, key).map_err(FileError::at(path)) } else { Ok(false) }
}

fn make(path: &Path) -> io::Result<[u8; LENGTH]> {
    write(path, &digest::random()?)?;
    whole(&own::read(path, LENGTH as u64)?)
}

/// Writes a key to a new file; `false` if another process was faster, whose key counts.
fn write(path: &Path, key: &[u8; LENGTH]) -> io::Result<bool> {
    if let Some(folder) = path.parent() {
        own::make_folders(folder)?;
    }
    let fill = |into: &Path| own::open(into, OpenOptions::new().write(true))?.write_all(key);
    match own::create_filled(path, fill) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        made => made.map(|()| true),
    }
}

fn whole(bytes: &[u8]) -> io::Result<[u8; LENGTH]> {
    bytes.try_into().map_err(|_| {
        io::Error::new(ErrorKind::InvalidData, "it is not the key that ralph has made: move it away")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_another_file_in_its_place_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/key");
        let made = at(&path).unwrap();
        assert_eq!((at(&path).unwrap(), fs::read(&path).unwrap()), (made, made.to_vec()));
        assert_ne!(at(&folder.path().join("other")).unwrap(), made);
        for wrong in [&b""[..], b"short", &[0; LENGTH + 1]] {
            fs::write(&path, wrong).unwrap();
            let said = at(&path).unwrap_err().to_string();
            assert!(said.contains("state/key"), "{said}");
            assert_eq!(fs::read(&path).unwrap(), wrong, "it is not overwritten");
            assert!(!keep(&path, &made).unwrap());
        }
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        assert!(keep(&path, &made).unwrap() && !keep(&path, &[0; LENGTH]).unwrap());
        assert_eq!(at(&path).unwrap(), made);
    }
}
