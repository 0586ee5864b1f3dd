//! The lines of an events log, read as fast as a disk gives them: most are what agents said, and are only looked at.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::files::own;

/// So much is read at once, in bytes.
const CHUNK: usize = 256 << 10;
/// A longer line is none of ours, in bytes.
const LONGEST: u64 = 64 << 20;
/// The event's name stands in the beginning of a line, behind what every line has.
const HEAD: usize = 4 << 10;
/// What stands before the name. No text can hold it: its quotes would be written as `\"`.
const BEFORE_NAME: &[u8] = b"\"event\":\"";

/// Gives each line of an events log to `take`, with the name of its event; an empty name where that is not to be seen.
///
/// # Errors
/// When the log cannot be read.
pub(super) fn each_line(path: &Path, mut take: impl FnMut(&str, &[u8])) -> io::Result<()> {
    let mut lines = BufReader::with_capacity(CHUNK, own::open_to_read(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut lines).take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        take(event_of(&line), &line);
    }
}

/// The name of a line's event.
fn event_of(line: &[u8]) -> &str {
    let head = &line[..line.len().min(HEAD)];
    let begin = head.windows(BEFORE_NAME.len()).position(|window| window == BEFORE_NAME);
    let name = begin.map(|begin| &head[begin + BEFORE_NAME.len()..]).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == b'"').unwrap_or_default();
    std::str::from_utf8(&name[..end]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_event_is_found_without_reading_the_line() {
        let event = |line: &str| event_of(line.as_bytes()).to_owned();
        assert_eq!(event(r#"{"agent":"a","event":"text","text":"x"}"#), "text");
        assert_eq!(event(r#"{"agent":"\"event\":\"tool\"","event":"text"}"#), "text");
        assert_eq!(event(r#"{"agent":"a","event":"te"#), "");
        assert_eq!(event("[]"), "");
        assert_eq!(event(""), "");
    }
}
