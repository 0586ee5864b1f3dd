//! Reads the lines of an events log at the speed of the disk: most lines are agents' output and are not parsed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::event_line::VERSION;
use crate::files::own;

/// The size of one read in bytes.
const CHUNK: usize = 256 << 10;
/// Longer lines are not ours, in bytes.
const LONGEST: u64 = 64 << 20;
/// The event's name is within this many bytes of a line's beginning.
const HEAD: usize = 4 << 10;
/// The key before the name. No text can contain it, because its quotes would be written as `\"`.
const BEFORE_NAME: &[u8] = b"\"event\":\"";
/// The version, which precedes that key in lines of this ralph.
const KNOWN_VERSION: &[u8] = b"\"v\":1,";

/// Passes each line of an events log to `take`, with the name of its event; the name is empty if it is not found, or
/// if the line has another version of the format.
///
/// # Errors
/// If the log cannot be read.
pub fn each_line(path: &Path, mut take: impl FnMut(&str, &[u8])) -> io::Result<()> {
    let mut lines = Lines::of(vec![path.to_owned()]);
    while let Some(line) = lines.read_next()? {
        take(event_of(line), line);
    }
    Ok(())
}

/// Reads the lines of several events logs, one log after the other.
#[derive(Debug)]
pub struct Lines {
    logs: std::vec::IntoIter<PathBuf>,
    open: Option<BufReader<File>>,
    line: Vec<u8>,
}

impl Lines {
    /// The lines of these logs.
    #[must_use]
    pub fn of(logs: Vec<PathBuf>) -> Self {
        Self { logs: logs.into_iter(), open: None, line: Vec::new() }
    }

    /// Reads the next line, including its newline if it has one; `None` after the last line.
    ///
    /// # Errors
    /// If a log cannot be read.
    pub fn read_next(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            if let Some(lines) = &mut self.open {
                self.line.clear();
                if lines.take(LONGEST).read_until(b'\n', &mut self.line)? > 0 {
                    return Ok(Some(&self.line));
                }
            }
            let Some(log) = self.logs.next() else { return Ok(None) };
            self.open = Some(BufReader::with_capacity(CHUNK, own::open_to_read(&log)?));
        }
    }
}

/// Reads an events log that is still being written.
#[derive(Debug)]
pub struct Follower {
    file: File,
    /// The beginning of an unfinished line.
    held: Vec<u8>,
}

impl Follower {
    /// Follows the log from its beginning.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: own::open_to_read(path)?, held: Vec::new() })
    }

    /// Follows the log from the first line that begins at most `room` bytes before its end.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn near_end(path: &Path, room: u64) -> io::Result<Self> {
        let mut follower = Self::open(path)?;
        let length = follower.file.metadata()?.len();
        if length > room {
            follower.file.seek(SeekFrom::Start(length - room - 1))?;
            // Skips the rest of a line that begins before.
            let mut lines = BufReader::with_capacity(CHUNK, &mut follower.file);
            lines.skip_until(b'\n')?;
            let at = lines.stream_position()?;
            follower.file.seek(SeekFrom::Start(at))?;
        }
        Ok(follower)
    }

    /// Passes each new line to `take`, with the name of its event. It stops when `take` returns `false`; the next
    /// call continues after that line.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn rest(&mut self, mut take: impl FnMut(&str, &[u8]) -> bool) -> io::Result<()> {
        let mut lines = BufReader::with_capacity(CHUNK, &mut self.file);
        loop {
            let room = LONGEST.saturating_sub(self.held.len() as u64);
            let read = (&mut lines).take(room).read_until(b'\n', &mut self.held)?;
            let is_whole = self.held.ends_with(b"\n") || self.held.len() as u64 >= LONGEST;
            if read == 0 && !is_whole {
                return Ok(());
            }
            if is_whole {
                let goes_on = take(event_of(&self.held), &self.held);
                self.held.clear();
                if !goes_on {
                    let at = lines.stream_position()?;
                    self.file.seek(SeekFrom::Start(at))?;
                    return Ok(());
                }
            }
        }
    }
}

/// The name of a line's event; empty if it is not found, or if the line has another version, in which the name may
/// mean something else.
#[must_use]
pub fn event_of(line: &[u8]) -> &str {
    let head = &line[..line.len().min(HEAD)];
    let begin = head.windows(BEFORE_NAME.len()).position(|window| window == BEFORE_NAME);
    let begin = begin.filter(|begin| head[..*begin].ends_with(KNOWN_VERSION) || is_of_our_version(line));
    let name = begin.map(|begin| &head[begin + BEFORE_NAME.len()..]).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == b'"').unwrap_or_default();
    std::str::from_utf8(&name[..end]).unwrap_or_default()
}

/// Whether a line has our version, with its fields in any order.
fn is_of_our_version(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }
    serde_json::from_slice::<Versioned>(line).is_ok_and(|line| line.v == VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_followed_as_they_are_written() {
        use std::io::Write as _;

        let mut log = tempfile::NamedTempFile::new().unwrap();
        let mut follower = Follower::open(log.path()).unwrap();
        let rest = |follower: &mut Follower| {
            let mut lines = Vec::new();
            let take = |event: &str, line: &[u8]| {
                lines.push((event.to_owned(), line.len()));
                true
            };
            follower.rest(take).map(|()| lines).unwrap()
        };
        assert_eq!(rest(&mut follower), []);
        log.write_all(b"{\"v\":1,\"event\":\"a\"}\n{\"v\":1,\"event").unwrap();
        assert_eq!(rest(&mut follower), [("a".to_owned(), 20)]);
        log.write_all(b"\":\"b\"}").unwrap();
        assert_eq!(rest(&mut follower), []);
        log.write_all(b"\nend\n").unwrap();
        assert_eq!(rest(&mut follower), [("b".to_owned(), 20), (String::new(), 4)]);

        let near = |room| rest(&mut Follower::near_end(log.path(), room).unwrap()).len();
        assert_eq!([4, 5, 23, 24, 44, 100].map(near), [1, 1, 1, 2, 3, 3]);

        // A stopped reader continues after the line at which it stopped.
        let mut follower = Follower::open(log.path()).unwrap();
        follower.rest(|_, _| false).unwrap();
        assert_eq!(rest(&mut follower).len(), 2);
    }

    #[test]
    fn the_name_of_an_event_is_found_without_reading_the_line() {
        let event = |line: &str| event_of(line.as_bytes()).to_owned();
        assert_eq!(KNOWN_VERSION, format!("\"v\":{VERSION},").as_bytes());
        assert_eq!(event(r#"{"agent":"a","v":1,"event":"text","text":"x"}"#), "text");
        assert_eq!(event(r#"{"event":"text","text":"x","v":1}"#), "text");
        assert_eq!(event(r#"{"agent":"\"event\":\"tool\"","v":1,"event":"text"}"#), "text");
        assert_eq!(event(r#"{"agent":"a","v":1,"event":"te"#), "");
        for other in [r#"{"v":2,"event":"text"}"#, r#"{"event":"text","v":2}"#, r#"{"event":"text"}"#] {
            assert_eq!(event(other), "", "it may mean something else: {other}");
        }
        assert_eq!(event("[]"), "");
        assert_eq!(event(""), "");
    }
}
