//! Users' files: config, prompts, plans, git's own files. Links are followed. A FIFO or a device would block us for
//! ever, and is refused, unless the user named it on the command line.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use super::locked::require_unlocked;
use super::{AT_ONCE, content, require_file};
use crate::platform::calls::OPEN_FILES;
use crate::text::nearest;

/// Larger files are not text written by a user or an agent.
pub const MAX_TEXT: u64 = 16 << 20;

/// The content of a file, at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, length) = opened(path)?;
    content(&file, length, limit)
}

/// Opens a file for reading in pieces.
pub fn open(path: &Path) -> io::Result<File> {
    opened(path).map(|(file, _)| file)
}

/// Copies a file to a free path, with its mode.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = open(from)?;
    let mut copy = OpenOptions::new().write(true).create_new(true).open(to)?;
    copy.set_permissions(source.metadata()?.permissions())?;
    io::copy(&mut source, &mut copy).map(drop)
}

/// The file and its apparent length in bytes.
fn opened(path: &Path) -> io::Result<(File, u64)> {
    if is_stream(path) {
        require_unlocked(&path.metadata()?)?;
        return Ok((File::open(path)?, 0));
    }
    // Checked first: some devices react to being opened.
    require_file(&path.metadata()?)?;
    let file = OpenOptions::new().read(true).custom_flags(AT_ONCE.bits().cast_signed()).open(path)?;
    let found = file.metadata()?;
    require_file(&found)?;
    Ok((file, found.len()))
}

/// Fails if the path exists and is not a file: a program that opens it could block for ever.
pub fn require_file_if_there(path: &Path) -> io::Result<()> {
    path.metadata().map_or(Ok(()), |found| require_file(&found))
}

/// Refuses to write to a document whose path, or one of its two parents, is a symbolic link: the repository's authors would
/// choose where that leads.
///
/// # Errors
/// The words for the user.
pub fn refuse_links(path: &Path) -> Result<(), String> {
    let is_link = |path: &&Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    path.ancestors().take(3).find(is_link).map_or(Ok(()), |link| {
        Err(format!(
            "{} is a symbolic link: nothing is written where it leads; remove it first",
            link.display()
        ))
    })
}

/// Fails if a path below `folder` leads out of it by a symbolic link, including a dangling one: the author of the
/// link, not of the path, would choose which file is written. A path whose own `..` lead out of it is the user's choice.
pub fn require_within(folder: &Path, path: &Path) -> io::Result<()> {
    if !without_dots(path).starts_with(folder) {
        return Ok(());
    }
    let there = path.ancestors().find(|path| path.symlink_metadata().is_ok());
    let Some(there) = there.filter(|there| there.starts_with(folder)) else { return Ok(()) };
    let real = there.canonicalize();
    if real.as_ref().is_ok_and(|real| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder))) {
        return Ok(());
    }
    let to = real.map_or("nowhere".to_owned(), |real| format!("to {}", real.display()));
    let why = format!("a symbolic link leads out of {}, {to}", folder.display());
    Err(io::Error::new(ErrorKind::InvalidInput, why))
}

/// The path by its letters, with each `..` taken together with what stands before it.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// For a message about a file that does not exist: the one beside it that was probably meant, as the beginning of a sentence.
pub fn meant(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    meant_in(folder, &path.file_name().unwrap_or_default().to_string_lossy(), Path::is_file)
}

/// For a message about something that does not exist in a folder: the one of these entries that was probably meant, as the
/// beginning of a sentence.
pub fn meant_in(folder: &Path, wanted: &str, is_one: impl Fn(&Path) -> bool) -> String {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let ones = entries.filter(|entry| is_one(&entry.path()));
    let names: Vec<String> = ones.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    nearest::meant(wanted, names.iter().map(String::as_str))
}

/// The text of a file, at most [`MAX_TEXT`] bytes; what is not UTF-8 is [`ErrorKind::InvalidData`].
pub fn text(path: &Path) -> io::Result<String> {
    as_text(read(path, MAX_TEXT)?)
}

fn as_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// A text that becomes a part of prompts. An agent that cannot read a file could put a link to that in its place.
#[derive(Debug, Clone)]
pub struct PromptText {
    path: PathBuf,
    /// Which file it was at first; `None`: there was none.
    real: Option<PathBuf>,
}

impl PromptText {
    /// The one at this path, and no other file from now on.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { real: path.canonicalize().ok(), path }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is now.
    ///
    /// # Errors
    /// Also if a link has come that leads to another file.
    pub fn read(&self, limit: u64) -> io::Result<Vec<u8>> {
        let real = self.path.canonicalize();
        if let (Some(first), Ok(real)) = (&self.real, real)
            && *first != real
        {
            let why = format!("it has become a link to {}", real.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        read(&self.path, limit)
    }

    /// Its text now, at most [`MAX_TEXT`] bytes.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if it is not UTF-8.
    pub fn text(&self) -> io::Result<String> {
        as_text(self.read(MAX_TEXT)?)
    }
}

/// Whether the path names one of our own open files, as in `--config /dev/stdin` and `--config <(…)`. A user who
/// writes that means it; a link to it may come from anyone.
fn is_stream(path: &Path) -> bool {
    path == Path::new("/dev/null")
        || path == Path::new("/dev/stdin")
        || path.starts_with("/dev/fd")
        || path.starts_with(OPEN_FILES)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn links_are_followed_and_what_could_block_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "text").unwrap();
        symlink("file", at("link")).unwrap();
        assert_eq!(text(&at("link")).unwrap(), "text");
        assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        symlink("fifo", at("to fifo")).unwrap();
        symlink("/dev/zero", at("to device")).unwrap();
        for name in ["fifo", "to fifo", "to device"] {
            let error = text(&at(name)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
        }
        assert_eq!(text(dir.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(text(&at("none")).unwrap_err().kind(), ErrorKind::NotFound);
        fs::write(at("file"), b"\xff").unwrap();
        assert_eq!(text(&at("link")).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(read(&at("link"), 0).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn links_lead_nothing_out_and_names_do() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir_all(folder.join("sub")).unwrap();
        symlink(dir.path(), folder.join("out")).unwrap();
        for (path, is_within) in [
            ("page", true),
            ("sub/../page", true),
            ("../page", true),
            ("sub/../../page", true),
            ("out/page", false),
            ("out/../page", false),
            ("sub/../out/page", false),
        ] {
            assert_eq!(require_within(&folder, &folder.join(path)).is_ok(), is_within, "{path}");
        }
    }

    #[test]
    fn streams_that_the_user_names_are_read() {
        assert_eq!(text(Path::new("/dev/null")).unwrap(), "");
        let (reader, writer) = io::pipe().unwrap();
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let writing = std::thread::spawn(move || {
            let mut writer = writer;
            io::Write::write_all(&mut writer, b"late")
        });
        assert_eq!(text(Path::new(&path)).unwrap(), "late");
        writing.join().unwrap().unwrap();
    }
}
