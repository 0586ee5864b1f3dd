//! Follows a log from its end, each whole line once. The log may be truncated, replaced or removed meanwhile.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::files::{FileId, own};

/// How much of the existing log is read, in bytes.
const KEPT: u64 = 256 << 10;
/// The size of one read in bytes.
const MOST: usize = 1 << 20;
/// Longer lines are skipped, in bytes.
const LONGEST: usize = 1 << 20;

/// A log, and how far it was read.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    log: Option<(File, FileId)>,
    offset: u64,
    /// An unfinished line.
    rest: Vec<u8>,
    /// The bytes up to the next newline belong to a line whose beginning was not read.
    is_torn: bool,
}

/// New lines of the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The log was replaced or truncated: what was read before is void.
    pub is_anew: bool,
    /// Whole lines, without newlines. Invalid UTF-8 is replaced.
    pub lines: Vec<String>,
    /// Whether more can be read at once.
    pub has_more: bool,
}

impl Tail {
    /// Follows this log, which need not exist yet.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), log: None, offset: 0, rest: Vec::new(), is_torn: false }
    }

    /// The path of the log.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lines since the last call. A removed log has nothing new: what was read stays valid.
    ///
    /// # Errors
    /// If another kind of file is in its place, or it cannot be read.
    pub fn read(&mut self) -> io::Result<News> {
        let mut news = News::default();
        let is_there = self.log.as_ref().is_some_and(|(_, id)| id.is_at(&self.path));
        if !is_there {
            match own::open_to_read(&self.path) {
                Ok(file) => {
                    news.is_anew = self.log.is_some();
                    self.begin(file)?;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(news),
                Err(error) => return Err(error),
            }
        }
        let Some((file, _)) = &self.log else { return Ok(news) };
        let size = file.metadata()?.len();
        if size < self.offset {
            news.is_anew = true;
            let (file, id) = (file.try_clone()?, FileId::of(file)?);
            self.begin_at(file, id, size);
        }
        self.take(&mut news)?;
        Ok(news)
    }

    fn begin(&mut self, file: File) -> io::Result<()> {
        let (size, id) = (file.metadata()?.len(), FileId::of(&file)?);
        self.begin_at(file, id, size);
        Ok(())
    }

    fn begin_at(&mut self, file: File, id: FileId, size: u64) {
        self.offset = size.saturating_sub(KEPT);
        self.is_torn = self.offset > 0;
        // The newline before the first whole line may be exactly there.
        self.offset = self.offset.saturating_sub(1);
        self.rest.clear();
        self.log = Some((file, id));
    }

    fn take(&mut self, news: &mut News) -> io::Result<()> {
        let Some((file, _)) = &self.log else { return Ok(()) };
        let mut chunk = vec![0; 64 << 10];
        let mut read = 0;
        while read < MOST {
            let length = match file.read_at(&mut chunk, self.offset) {
                Ok(0) => return Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            read += length;
            self.offset += length as u64;
            let mut bytes = &chunk[..length];
            while let Some(at) = bytes.iter().position(|&byte| byte == b'\n') {
                self.rest.extend_from_slice(&bytes[..at]);
                bytes = &bytes[at + 1..];
                if !std::mem::take(&mut self.is_torn) {
                    news.lines.push(String::from_utf8_lossy(&self.rest).into_owned());
                }
                self.rest.clear();
            }
            if !self.is_torn {
                self.rest.extend_from_slice(bytes);
            }
            if self.rest.len() > LONGEST {
                self.rest = Vec::new();
                self.is_torn = true;
            }
        }
        news.has_more = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    fn append(path: &Path, text: &str) {
        fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    fn lines(tail: &mut Tail) -> (bool, Vec<String>) {
        let news = tail.read().unwrap();
        (news.is_anew, news.lines)
    }

    fn of(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn each_whole_line_comes_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut tail = Tail::new(&path);
        assert_eq!(lines(&mut tail), (false, of(&[])), "it need not be there");
        append(&path, "one\ntw");
        assert_eq!(lines(&mut tail), (false, of(&["one"])));
        assert_eq!(lines(&mut tail), (false, of(&[])));
        append(&path, "o\n\nthree\n");
        assert_eq!(lines(&mut tail), (false, of(&["two", "", "three"])));
    }

    #[test]
    fn of_a_long_log_the_end_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let lines_there: Vec<String> = (0..100_000).map(|number| format!("line {number}")).collect();
        let text = lines_there.join("\n") + "\n";
        append(&path, &text);
        let mut tail = Tail::new(&path);
        let (_, all) = lines(&mut tail);
        assert_eq!(all.last().unwrap(), "line 99999");
        let first: u64 = all[0].strip_prefix("line ").unwrap().parse().unwrap();
        assert_eq!(all.len() as u64, 100_000 - first, "no line is cut");
        assert!((10_000..30_000).contains(&all.len()), "{}", all.len());
    }

    #[test]
    fn a_log_that_is_cut_or_replaced_begins_anew_and_a_removed_one_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        append(&path, "one\ntwo\n");
        let mut tail = Tail::new(&path);
        assert_eq!(lines(&mut tail), (false, of(&["one", "two"])));
        fs::write(&path, "cut\n").unwrap();
        assert_eq!(lines(&mut tail), (true, of(&["cut"])));
        fs::remove_file(&path).unwrap();
        assert_eq!(lines(&mut tail), (false, of(&[])));
        append(&path, "another, longer than what was there before\n");
        assert_eq!(lines(&mut tail), (true, of(&["another, longer than what was there before"])));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(tail.read().unwrap_err().to_string().contains("folder"), "no log");
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        append(&path, "one\n");
        let mut tail = Tail::new(&path);
        assert_eq!(lines(&mut tail), (false, of(&["one"])));
        append(&path, &"x".repeat(3 * LONGEST));
        while tail.read().unwrap().has_more {}
        assert!(tail.rest.len() <= LONGEST + (64 << 10));
        append(&path, "\ntwo\n");
        assert_eq!(lines(&mut tail), (false, of(&["two"])));
    }
}
