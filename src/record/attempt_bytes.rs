//! Finds the bytes of a session log that belong to one attempt.

use std::fs::File;
use std::io::{self, Seek as _};
use std::ops::Range;
use std::path::Path;

use aho_corasick::AhoCorasick;

use super::event_line::EventLine;
use super::event_lines::each_line;
use super::run_folder;
use crate::engine::fact::Fact;
use crate::tell::blocks;

/// The position of an attempt in a session log.
#[derive(Debug, PartialEq, Eq)]
pub enum AttemptBytes {
    /// From the block before the attempt up to the block before the next one, in bytes.
    At(Range<u64>),
    /// The attempt does not exist: the run has made only this many.
    Beyond(u64),
    /// The attempt exists, but its block is not in this log.
    Elsewhere,
}

/// Finds attempt `number` (from 1) in the session log of the run whose logs are in `folder`. The log is read from its
/// beginning. The events log says how each block reads, so that a block that an agent prints is not taken for one of
/// ours: an agent can only copy an earlier one.
///
/// # Errors
/// If a log cannot be read.
pub fn place(folder: &Path, log: &mut File, number: u64) -> io::Result<AttemptBytes> {
    let blocks = blocks_of(folder)?;
    let Some(at) = usize::try_from(number).ok().and_then(|number| number.checked_sub(1)) else {
        return Ok(AttemptBytes::Beyond(blocks.len() as u64));
    };
    let Some(own) = blocks.get(at) else { return Ok(AttemptBytes::Beyond(blocks.len() as u64)) };
    // An attempt and its retry may have begun within the same second.
    let mut same_before = blocks[..at].iter().filter(|block| *block == own).count();
    let ends = blocks.get(at + 1).filter(|next| *next != own);
    let patterns: Vec<&String> = [own].into_iter().chain(ends).collect();
    let search = AhoCorasick::new(&patterns).map_err(io::Error::other)?;
    let has_next = at + 1 < blocks.len();
    let length = log.metadata()?.len();
    log.rewind()?;
    let mut begin = None;
    for found in search.stream_find_iter(&*log) {
        let found = found?;
        let is_last = found.pattern().as_usize() + 1 == patterns.len();
        match begin {
            None if found.pattern().as_usize() > 0 => {}
            None if same_before > 0 => same_before -= 1,
            None => begin = Some(found.start() as u64),
            Some(begin) if has_next && is_last => return Ok(AttemptBytes::At(begin..found.start() as u64)),
            Some(_) => {}
        }
    }
    Ok(begin.map_or(AttemptBytes::Elsewhere, |begin| AttemptBytes::At(begin..length)))
}

/// The blocks before the attempts of a run, in order.
fn blocks_of(folder: &Path) -> io::Result<Vec<String>> {
    let mut blocks = Vec::new();
    for log in run_folder::event_logs(folder) {
        each_line(&log, |event, line| {
            let line = (event == "attempt_started").then(|| std::str::from_utf8(line).ok()).flatten();
            let Some(line) = line.and_then(|line| EventLine::read(line).ok()) else { return };
            if let Fact::AttemptStarted { iteration, .. } = line.fact {
                blocks.push(blocks::header(iteration, &line.mode, &line.at));
            }
        })?;
    }
    Ok(blocks)
}
