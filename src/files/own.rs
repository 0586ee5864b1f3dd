//! Our own run-time files: no other user can read them, and nothing but a file of ours is read or written in their
//! place. A link could lead to a user's file, a FIFO or a device could block us for ever.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{AT_ONCE, content, in_place_of_file, opened_regular, require_file, require_regular, temporary};

/// The mode of our files.
const FILE_MODE: u32 = 0o600;
/// The mode of our folders.
const FOLDER_MODE: u32 = 0o700;

/// Opens one of our files with `options`; a wider mode is narrowed to ours.
///
/// # Errors
/// Also if something else is in its place.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Checked first: some devices react to being opened, and errors of opening do not say what is there.
    if let Ok(found) = path.symlink_metadata() {
        require_file(&found)?;
    }
    let flags = AT_ONCE.union(OFlags::NOFOLLOW);
    let file = options.custom_flags(flags.bits().cast_signed()).mode(FILE_MODE).open(path)?;
    let found = file.metadata()?;
    require_file(&found)?;
    if found.permissions().mode() & 0o077 != 0 {
        // A file of another user keeps its mode; it only has to be usable.
        let _ = file.set_permissions(Permissions::from_mode(FILE_MODE));
    }
    Ok(file)
}

/// Opens one of our files for reading; its mode stays.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    opened_regular(path).map(|(file, _)| file)
}

/// The content of one of our files, at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, found) = opened_regular(path)?;
    content(&file, found.len(), limit)
}

/// [`create_filled`] if the file is missing, for a library that opens the file by name; returns its metadata. The
/// file is never opened at its final path: closing it would release [locks](super::Locked) that this process may
/// already hold on it.
pub fn ensure<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<Metadata, E> {
    let is_missing = || path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if is_missing()
        && let Err(error) = create_filled(path, fill)
        // Otherwise another process was faster.
        && is_missing()
    {
        return Err(error);
    }
    let found = path.symlink_metadata()?;
    require_regular(&found)?;
    if found.permissions().mode() & 0o077 != 0 {
        // As in `open`, it only has to be usable.
        let _ = fs::set_permissions(path, Permissions::from_mode(FILE_MODE));
    }
    Ok(found)
}

/// Creates a file at a free path with what `fill` writes into a file of the given name: all of it or nothing.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if something is there by then.
pub fn create_filled<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let folder = path.parent().ok_or(io::Error::from(ErrorKind::NotFound))?;
    let temporary = temporary::make(folder, None)?.into_temp_path();
    fill(&temporary)?;
    File::open(&temporary)?.sync_all()?;
    temporary.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}

/// Creates one of our folders if it is missing, but not its parents, which may have been removed on purpose. Anything
/// else in its place is refused.
pub fn make_folder(path: &Path) -> io::Result<()> {
    make(path, DirBuilder::new().mode(FOLDER_MODE))
}

/// [`make_folder`] including its parents.
pub fn make_folders(path: &Path) -> io::Result<()> {
    make(path, DirBuilder::new().mode(FOLDER_MODE).recursive(true))
}

fn make(path: &Path, builder: &DirBuilder) -> io::Result<()> {
    match require_folder(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        result => return result,
    }
    match builder.create(path) {
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => require_folder(path),
        result => result,
    }
}

/// The entries of one of our folders; none if it does not exist.
pub fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match require_folder(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
        Ok(()) => Ok(folder.read_dir()?.flatten().map(|entry| entry.path()).collect()),
    }
}

fn require_folder(path: &Path) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    if found.is_dir() {
        return Ok(());
    }
    let what = in_place_of_file(found.file_type()).unwrap_or("a file");
    Err(io::Error::new(ErrorKind::NotADirectory, format!("it is {what}, not a folder")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_made_is_ours_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        assert_eq!(make_folder(&folder).unwrap_err().kind(), ErrorKind::NotFound);
        make_folders(&folder).unwrap();
        make_folder(&folder).unwrap();
        assert_eq!((mode(&folder), mode(&dir.path().join("a"))), (0o700, 0o700));
        let path = folder.join("file");
        open(&path, OpenOptions::new().append(true).create(true)).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        open_to_read(&path).unwrap();
        assert_eq!(mode(&path), 0o644, "reading changes nothing");
        open(&path, OpenOptions::new().append(true)).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        ensure(&path, |_| io::Result::Ok(())).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(entries(&folder).unwrap(), [path]);
        assert_eq!(entries(&folder.join("none")).unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_no_file_is_refused_by_name_and_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("target"), "the user's").unwrap();
        symlink("target", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for (path, what) in [
            (at("link"), "a symbolic link"),
            (at("dangling"), "a symbolic link"),
            (at("folder"), "a folder"),
            (at("fifo"), "a FIFO"),
            (at("socket"), "a socket"),
            ("/dev/null".into(), "a device"),
        ] {
            let ways: [fn(&mut OpenOptions) -> &mut OpenOptions; 3] = [
                |o| o.read(true),
                |o| o.append(true).create(true),
                |o| o.read(true).write(true).create(true),
            ];
            for way in ways {
                let said = open(&path, way(&mut OpenOptions::new())).unwrap_err().to_string();
                assert_eq!(said, format!("it is {what}, not a file"), "{}", path.display());
            }
            assert!(read(&path, 10).unwrap_err().to_string().contains(what));
        }
        assert_eq!(fs::read(at("target")).unwrap(), b"the user's");
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn what_is_no_folder_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "").unwrap();
        symlink(".", at("link")).unwrap();
        for (name, what) in [("file", "a file"), ("link", "a symbolic link")] {
            let refused = [make_folder(&at(name)), entries(&at(name)).map(drop)];
            for said in refused.map(|refused| refused.unwrap_err().to_string()) {
                assert_eq!(said, format!("it is {what}, not a folder"));
            }
        }
    }

    #[test]
    fn what_is_too_large_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().to_string(), "it is larger than 4 bytes");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
