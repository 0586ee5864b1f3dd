//! `iterations.log`: one short line per step, appended over all runs of a ralph dir.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::registry::WORKER;
use crate::engine::event::Stamped;
use crate::engine::fact::Fact;
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::policy::Limits;
use crate::engine::report::AttemptStatus;
use crate::engine::tally::Tally;
use crate::files::{FileError, RecordFile, own};
use crate::tell::seen::Seen;
use crate::tell::words;
use crate::text::line::one_line;
use crate::text::{duration, timestamp};

/// The size of the log's end that is searched, in bytes.
const TAIL: u64 = 64 << 10;

/// The log of iterations.
#[derive(Debug)]
pub struct IterationsLog {
    file: RecordFile,
    steps: Steps,
}

impl IterationsLog {
    /// Opens the log for appending.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Ok(Self { file: RecordFile::append(path)?, steps: Steps::default() })
    }

    /// Continues in a new file if this one was removed or replaced; returns whether it was.
    pub fn keep(&mut self) -> Result<bool, FileError> {
        self.file.keep()
    }

    /// Writes the line of a fact, if it has one.
    pub fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), FileError> {
        self.steps.line(stamped).map_or(Ok(()), |line| self.add(&line))
    }

    /// Adds the line of a step that an earlier process could not write, unless it is there.
    pub fn add_missing(&mut self, line: &str) -> Result<(), FileError> {
        let tail = tail(self.file.path()).map_err(FileError::at(self.file.path()))?;
        // The words after the number may differ between versions.
        let step = |line: &str| line.split(' ').take(4).map(str::to_owned).collect::<Vec<_>>();
        if tail.lines().any(|other| step(other) == step(line)) { Ok(()) } else { self.add(line) }
    }

    fn add(&mut self, line: &str) -> Result<(), FileError> {
        self.file.write(format!("{line}\n").as_bytes())?;
        self.file.flush()
    }
}

/// The last bytes of a log.
fn tail(path: &Path) -> io::Result<String> {
    let mut file = own::open_to_read(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    Ok(String::from_utf8_lossy(&tail).into_owned())
}

/// Turns the facts of one loop into lines.
#[derive(Debug, Default)]
pub(super) struct Steps {
    seen: Seen,
    /// Workers have lines that existing scripts read.
    is_worker: bool,
    /// The line of an attempt that begins. An agent that is resumed already has its line.
    begins: Option<String>,
    /// Why the work of the attempt at hand is not proven.
    refuted: Option<String>,
}

impl Steps {
    /// The failure, at the end of a line; workers' lines have none, as scripts expect.
    fn reason(&self, why: Option<&str>) -> String {
        let why = why.filter(|_| !self.is_worker);
        why.map(|why| format!(": {}", one_line(why))).unwrap_or_default()
    }

    /// The line of a fact, without its newline; `None` if it has none.
    pub(super) fn line(&mut self, stamped: &Stamped<'_>) -> Option<String> {
        self.is_worker = stamped.identity.mode == WORKER;
        let tally = stamped.tally;
        let line = match stamped.fact {
            Fact::LoopStarted { .. } | Fact::LimitsChanged { .. } => {
                self.seen.take(stamped);
                return None;
            }
            Fact::AgentChanged { .. } => {
                format!("[AGENT] {}", words::entry(stamped.fact, &stamped.at)?.text)
            }
            Fact::AttemptStarted { iteration, .. } => {
                self.begins = Some(format!("[START] iteration {iteration}{}", self.seen.of()));
                self.refuted = None;
                return None;
            }
            Fact::Validated { ok, .. } | Fact::Verified { ok, .. } => {
                let entry = words::entry(stamped.fact, &stamped.at).filter(|_| !ok);
                self.refuted = entry.map(|entry| entry.text);
                return None;
            }
            Fact::AgentStarted { .. } => self.begins.take()?,
            Fact::AttemptEnded(ended) if ended.status() == AttemptStatus::Still => {
                let limit = duration::in_seconds(stamped.exceeded());
                format!("[TIMEOUT] iteration {} inactivity_timeout={limit}", ended.iteration)
            }
            Fact::AttemptEnded(ended) => {
                let tag = match ended.status() {
                    AttemptStatus::Success | AttemptStatus::CompleteUnproven => "END",
                    AttemptStatus::Timeout => "TIMEOUT",
                    // It was interrupted; it did not fail.
                    AttemptStatus::Interrupted if self.is_worker => "END",
                    _ => "FAIL",
                };
                let exit = ended.exit("signal-");
                // An interrupted attempt is no failure, and no retry follows.
                let has_failed = tag == "FAIL" && ended.status() != AttemptStatus::Interrupted;
                let then =
                    self.seen.limits.as_ref().filter(|_| has_failed).and_then(|it| back_off(it, tally));
                let then =
                    then.unwrap_or_else(|| format!("duration={}", duration::elapsed(ended.duration())));
                let failure = ended.failure.as_ref().map(|failure| &*failure.message);
                let why = failure.or(self.refuted.as_deref());
                format!("[{tag}] iteration {} exit={exit} {then}{}", ended.iteration, self.reason(why))
            }
            Fact::Paused => format!("[PAUSE] loop paused at iteration {}", tally.iteration),
            Fact::LoopEnded(ended) => match stamped.outcome()? {
                Outcome::Detached => "[DISCONNECT] monitor disconnected (worker still running)".to_owned(),
                outcome if self.is_worker && outcome.worker_word().is_none() => {
                    format!("[PAUSE] loop paused at iteration {}", tally.iteration)
                }
                outcome => {
                    let word = outcome.worker_word().filter(|_| self.is_worker).unwrap_or(outcome.word());
                    let refuted = self.refuted.as_deref().filter(|_| outcome.ended() == Ended::Unproven);
                    let why = self.reason(ended.detail.as_deref().or(refuted));
                    format!("[DONE] loop complete after {} iterations reason={word}{why}", tally.iteration)
                }
            },
            _ => return None,
        };
        let time = timestamp::iso(stamped.at);
        Some(format!("{time} {line}"))
    }
}

/// The retry after a failure in a loop that backs off: `attempt=3/5 backoff=4s`.
fn back_off(limits: &Limits, tally: &Tally) -> Option<String> {
    let (breaker, failures) = (limits.breaker?, tally.consecutive_errors);
    let pause = duration::in_seconds(limits.pause_after(failures)?);
    let then = if failures < breaker { format!(" backoff={pause}") } else { String::new() };
    Some(format!("attempt={failures}/{breaker}{then}"))
}
