//! Whole-file writes that a reader, a crash or a full disk never sees half done.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::FileError;

/// How much of a power cut a write is to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The reader sees the old content or the new one; a power cut may bring the old one back.
    Atomic,
    /// The same, and the new content is on the disk when the call returns (fsync of file and folder).
    Synced,
}

/// Replaces the content of `path`: a temporary file in the same folder, then a rename.
///
/// The folder is made where it is missing, but not what is above it. A new file gets the usual mode (0666 less the umask), an existing one keeps its mode, and a symlink stays one: its
/// target is replaced. The temporary name begins with the file's own, so that ignore rules for `NAME*` cover it.
pub fn write(path: &Path, content: &[u8], durability: Durability) -> Result<(), FileError> {
    replace(path, content, durability).map_err(|reason| FileError { path: path.to_path_buf(), reason })
}

fn replace(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let target = if path.is_symlink() { fs::canonicalize(path)? } else { path.to_path_buf() };
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut prefix = name.to_os_string();
    prefix.push(".");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp").permissions(Permissions::from_mode(0o666));
    let mut file = match builder.tempfile_in(folder) {
        // Agents tidy up (`git clean -fdx`), and take what is ignored with them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir(folder)?;
            builder.tempfile_in(folder)
        }
        file => file,
    }?;
    if let Ok(old) = fs::metadata(&target) {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.write_all(content)?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    file.persist(&target).map_err(|failed| failed.error)?;
    if durability == Durability::Synced {
        sync_folder(folder)?;
    }
    Ok(())
}

/// Some file systems cannot sync a folder and say so; nothing is lost that could have been kept.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn one_missing_folder_is_made_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("a/file"), b"x", Durability::Atomic).unwrap();
        assert_eq!(fs::read(dir.path().join("a/file")).unwrap(), b"x");
        assert!(write(&dir.path().join("b/c/file"), b"x", Durability::Atomic).is_err());
        assert!(!dir.path().join("b").exists());
    }

    #[test]
    fn creates_and_replaces_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.toml");
        write(&path, b"one", Durability::Atomic).unwrap();
        write(&path, b"two", Durability::Synced).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(dir.path()), ["state.toml"]);
    }

    #[test]
    fn modes_are_those_of_an_ordinary_write() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, plain) = (dir.path().join("ours"), dir.path().join("plain"));
        write(&ours, b"", Durability::Atomic).unwrap();
        fs::write(&plain, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));

        fs::set_permissions(&ours, Permissions::from_mode(0o640)).unwrap();
        write(&ours, b"again", Durability::Atomic).unwrap();
        assert_eq!(mode(&ours) & 0o777, 0o640);
    }

    #[test]
    fn a_symlink_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        let (file, link) = (dir.path().join("real/file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("real/file", &link).unwrap();
        write(&link, b"new", Durability::Atomic).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn errors_name_the_path_and_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("no/such/file");
        let message = write(&path, b"", Durability::Atomic).unwrap_err().to_string();
        assert!(message.contains(path.to_str().unwrap()), "{message}");
        assert!(message.ends_with("create its folder"), "{message}");
        assert!(write(dir.path(), b"", Durability::Atomic).is_err(), "a folder is not replaced");
        assert!(write(Path::new("/"), b"", Durability::Atomic).is_err());
        assert_eq!(names(dir.path()), Vec::<String>::new(), "no temporary file is left");
    }
}
