//! The secret key of this user's ralph: a file in the user's state folder, made at its first use.
//!
//! What is signed with it was written by a ralph of this user. Other programs and careless agents cannot pass their own writing off
//! as ralph's; a program of the same user that looks for the key can.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use super::{FileError, own};
use crate::text::digest;

/// The length of the key, in bytes.
pub const LENGTH: usize = 32;

/// The key in the file at `path`, which is made at the first use.
///
/// # Errors
/// When it can neither be read nor made.
pub fn at(path: &Path) -> Result<[u8; LENGTH], FileError> {
    let key = || match own::read(path, LENGTH as u64) {
        Err(error) if error.kind() == ErrorKind::NotFound => make(path),
        read => whole(&read?),
    };
    key().map_err(FileError::at(path))
}

fn make(path: &Path) -> io::Result<[u8; LENGTH]> {
    if let Some(folder) = path.parent() {
        own::make_folders(folder)?;
    }
    let bytes: [u8; LENGTH] = digest::random()?;
    let fill = |into: &Path| own::open(into, OpenOptions::new().write(true))?.write_all(&bytes);
    match own::create_filled(path, fill) {
        // Another process was faster: its key is the one.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made?,
    }
    whole(&own::read(path, LENGTH as u64)?)
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
        }
    }
}
