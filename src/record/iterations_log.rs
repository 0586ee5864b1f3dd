//! `iterations.log`: one short line per step, append-only over all runs of a ralph dir.

use std::path::Path;
use std::time::Duration;

use crate::engine::event::{Event, Stamped};
use crate::engine::report::AttemptStatus;
use crate::files::{FileError, RecordFile};

/// The log of iterations.
#[derive(Debug)]
pub struct IterationsLog {
    file: RecordFile,
    of: String,
}

impl IterationsLog {
    /// Opens the log for appending.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Ok(Self { file: RecordFile::append(path)?, of: String::new() })
    }

    /// Takes one event.
    pub fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), FileError> {
        let line = match stamped.event {
            Event::LoopStarted { limits, tally, .. } => {
                let last = limits.max_iterations.map(|limit| limit.saturating_add(tally.allowance_from));
                self.of = last.map(|last| format!("/{last}")).unwrap_or_default();
                return Ok(());
            }
            Event::AttemptStarted { tally, .. } => {
                format!("[START] iteration {}{}", tally.iteration, self.of)
            }
            Event::AttemptEnded { tally, report, .. } => {
                let tag = match report.status {
                    AttemptStatus::Success | AttemptStatus::CompleteUnproven => "END",
                    AttemptStatus::Timeout => "TIMEOUT",
                    _ => "FAIL",
                };
                let exit = match (report.exit_code, report.signal) {
                    (Some(code), _) => code.to_string(),
                    (None, Some(signal)) => format!("signal-{signal}"),
                    (None, None) => "unknown".to_owned(),
                };
                let duration = duration(report.duration);
                format!("[{tag}] iteration {} exit={exit} duration={duration}", tally.iteration)
            }
            Event::LoopEnded { outcome, tally, .. } => {
                format!("[DONE] loop complete after {} iterations reason={}", tally.iteration, outcome.word())
            }
            _ => return Ok(()),
        };
        let time = stamped.at.format("%Y-%m-%dT%H:%M:%S");
        self.file.write(format!("{time} {line}\n").as_bytes())?;
        self.file.flush()
    }
}

/// `5m42s`, `1h02m03s`, `7s`.
#[must_use]
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes:02}m{seconds:02}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let text = |seconds| duration(Duration::from_secs(seconds));
        assert_eq!((text(7), text(342), text(3723)), ("7s".into(), "5m42s".into(), "1h02m03s".into()));
    }
}
