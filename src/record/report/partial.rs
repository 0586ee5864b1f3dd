//! What is known of loops without events: the start and the end of their run, and the names of folders.

use std::io;
use std::path::Path;

use super::{BRANCHES, LoopReport};
use crate::engine::fact::Fact;
use crate::engine::outcome::{Ended, Phase};
use crate::project::file_name;
use crate::record::event_line::EventLine;
use crate::record::run_folder::{self, RunStart};
use crate::tell::words::KILLED;

/// The name of the one loop of a run, as far as it is known without events.
pub(super) fn loop_of_run(start: Option<&RunStart>, end: Option<&EventLine<'_>>) -> Option<String> {
    end.map(|end| end.name.to_string())
        .or_else(|| start.map(|start| start.verb.clone()))
        .filter(|name| name != BRANCHES)
}

/// The name of the loop whose logs are in this folder.
pub(super) fn name_of(logs: &Path) -> String {
    let name = logs.file_name().unwrap_or_default().to_string_lossy();
    file_name::decoded(&name).unwrap_or_else(|| name.into_owned())
}

impl LoopReport {
    /// A loop whose events log cannot be read.
    pub(super) fn unreadable(logs: &Path, is_running: bool, error: &io::Error) -> Self {
        let end = if is_running { Phase::Running.word() } else { Ended::Killed.word() };
        Self {
            end: end.to_owned(),
            reason: Some(format!("its events log cannot be read: {error}")),
            ..Self::named(&name_of(logs))
        }
    }

    /// The loop of a run that has left no events log, by the run's end if there is one. `None` if its name is
    /// unknown, and for branches, which have a line each.
    pub(super) fn without_log(start: Option<&RunStart>, end: Option<&EventLine<'_>>) -> Option<Self> {
        if let Some(end) = end.filter(|end| matches!(end.fact, Fact::LoopEnded(_))) {
            let mut report = Self { ended_at: Some(end.at), ..Self::named(&end.name) };
            report.ended_by(end);
            return Some(report);
        }
        let name = loop_of_run(start.filter(|_| end.is_none()), None)?;
        let (end, reason) = (Ended::Killed.word().to_owned(), Some(KILLED.to_owned()));
        Some(Self { end, reason, ..Self::named(&name) })
    }

    /// Applies an end that was written after the build of a branch had been killed.
    pub(super) fn ended_later(&mut self) {
        let end = run_folder::read_end(&self.folder);
        if let Some(end) = end.as_deref().and_then(|line| EventLine::read(line).ok()) {
            self.ended_by(&end);
        }
    }

    /// Applies an end that only this line has. Its log may lack attempts as well, as logs are not synced.
    pub(super) fn ended_by(&mut self, end: &EventLine<'_>) {
        let Fact::LoopEnded(ended) = &end.fact else { return };
        self.ended(ended, None);
        if self.mode.is_empty() {
            (self.run, self.mode, self.agent) =
                (end.run.to_string(), end.mode.to_string(), end.agent.to_string());
            self.duration_s = ended.duration_s;
        }
        let before = &self.before;
        let raise = |own: &mut u64, all: u64, before: u64| *own = all.saturating_sub(before).max(*own);
        raise(&mut self.iterations, ended.iterations, before.iterations);
        raise(&mut self.attempts, ended.attempts.unwrap_or_default(), before.attempts);
        raise(&mut self.failed_attempts, ended.failed, before.failed);
        raise(&mut self.input_tokens, ended.input_tokens, before.spent.input_tokens);
        raise(&mut self.output_tokens, ended.output_tokens, before.spent.output_tokens);
        let cost = ended.cost_usd.map(|all| all - before.spent.cost_usd.unwrap_or_default());
        // Sums of floats are not exact.
        self.cost_usd = cost.filter(|cost| cost - self.cost_usd.unwrap_or_default() > 1e-9).or(self.cost_usd);
    }
}
