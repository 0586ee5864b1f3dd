//! The user's trust in projects: for each one a small file in the user's state folder, with a hash of the settings
//! that the user has reviewed. Cloning a repository must not be enough to run programs or to send data away.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Local};
use serde::{Deserialize, Serialize};

use crate::files::atomic::{self, Durability};
use crate::files::{FileError, if_there, own};
use crate::project::Project;
use crate::text::digest::{sha256, sha256_of_words};

/// The version of the file's layout.
const VERSION: u32 = 1;
/// Larger files are not ours, in bytes.
const LARGEST: u64 = 1 << 20;

/// A setting of the project: its key and its value.
pub type ProjectSetting<'a> = (&'a str, &'a str);

/// The trust in one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trusted {
    version: u32,
    /// The project root.
    pub root: PathBuf,
    /// The keys of the reviewed settings.
    pub settings: Vec<String>,
    /// The hash of keys and values.
    hash: String,
    /// When the user trusted it.
    pub at: DateTime<Local>,
}

/// Whether exactly these settings of the project are trusted; a linked work tree may share those of its repository.
#[must_use]
pub fn is_trusted(project: &Project, settings: &[ProjectSetting<'_>]) -> bool {
    let Some(folder) = project.trust() else { return false };
    let hash = hash(settings);
    let roots = [Some(project.root().to_owned()), project.main_root()];
    roots.into_iter().flatten().any(|root| {
        let root = resolved(&root);
        read(&file(&folder, &root)).is_some_and(|trusted| trusted.root == root && trusted.hash == hash)
    })
}

/// Trusts these settings of the project from now on.
///
/// # Errors
/// If that cannot be written.
pub fn trust(project: &Project, folder: &Path, settings: &[ProjectSetting<'_>]) -> Result<(), FileError> {
    let root = resolved(project.root());
    let keys = settings.iter().map(|(key, _)| (*key).to_owned()).collect();
    let path = file(folder, &root);
    let trusted = Trusted { version: VERSION, root, settings: keys, hash: hash(settings), at: Local::now() };
    own::make_folders(folder).map_err(FileError::at(folder))?;
    // Text, lists and times can always be written as TOML.
    let text = toml::to_string(&trusted).unwrap_or_default();
    atomic::write_own(&path, text.as_bytes(), Durability::Synced).map(drop)
}

/// Removes the trust in the project at `root`; returns whether there was any.
///
/// # Errors
/// If that cannot be written.
pub fn forget(folder: &Path, root: &Path) -> Result<bool, FileError> {
    let path = file(folder, &resolved(root));
    Ok(if_there(std::fs::remove_file(&path)).map_err(FileError::at(&path))?.is_some())
}

/// All trusted projects, by root.
///
/// # Errors
/// If the folder cannot be read.
pub fn list(folder: &Path) -> Result<Vec<Trusted>, FileError> {
    let files = own::entries(folder).map_err(FileError::at(folder))?;
    let mut all: Vec<Trusted> = files.iter().filter_map(|path| read(path)).collect();
    all.sort_by(|one, other| one.root.cmp(&other.root));
    Ok(all)
}

/// An unreadable file trusts nothing.
fn read(path: &Path) -> Option<Trusted> {
    let text = String::from_utf8(own::read(path, LARGEST).ok()?).ok()?;
    toml::from_str(&text).ok().filter(|trusted: &Trusted| trusted.version == VERSION)
}

fn file(folder: &Path, root: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    folder.join(format!("{}.toml", &sha256(root.as_os_str().as_bytes())[..16]))
}

fn resolved(root: &Path) -> PathBuf {
    root.canonicalize().unwrap_or_else(|_| root.to_owned())
}

/// A hash of keys and values.
fn hash(settings: &[ProjectSetting<'_>]) -> String {
    sha256_of_words(settings.iter().flat_map(|(key, value)| [*key, *value]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_settings_have_another_hash() {
        let hashes = [
            hash(&[("a", "b"), ("c", "d")]),
            hash(&[("a", "b")]),
            hash(&[("a", "bc"), ("", "d")]),
            hash(&[("a", "b"), ("c", "e")]),
        ];
        let unique: std::collections::HashSet<_> = hashes.iter().collect();
        assert_eq!(unique.len(), hashes.len());
    }
}
