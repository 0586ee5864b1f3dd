//! What `ralph run` prints in place of the blocks: a line before and after each iteration, and a count at the end.

use crate::engine::report::{AttemptStatus, Report};
use crate::text::duration;

/// The lines of one run, and the count for the last of them.
#[derive(Debug, Default)]
pub(crate) struct RunLines {
    ended: Count,
    /// Without the latest iteration: another attempt at it counts in its place.
    ended_before: Count,
    iteration: u64,
}

/// Iterations by how their last attempt ended.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    iterations: u64,
    succeeded: u64,
    failed: u64,
    timed_out: u64,
}

impl RunLines {
    /// The line before an attempt.
    pub(crate) fn begin(&mut self, iteration: u64) -> String {
        if iteration == self.iteration {
            self.ended = self.ended_before;
        }
        self.iteration = iteration;
        self.ended_before = self.ended;
        self.ended.iterations += 1;
        format!("── Iteration {iteration} ──\n")
    }

    /// The line after an attempt.
    pub(crate) fn end(&mut self, report: &Report) -> String {
        let iteration = self.iteration;
        let took = duration::elapsed_tenths(report.duration);
        match report.status {
            AttemptStatus::Success | AttemptStatus::CompleteUnproven | AttemptStatus::Still => {
                self.ended.succeeded += 1;
                format!("✓ Iteration {iteration} completed ({took})\n")
            }
            AttemptStatus::Timeout => {
                self.ended.timed_out += 1;
                let limit = report.exceeded.unwrap_or(report.duration);
                format!("⏱ Iteration {iteration} timed out after {}\n", duration::format(limit))
            }
            AttemptStatus::Interrupted => format!("✗ Iteration {iteration} interrupted ({took})\n"),
            AttemptStatus::AgentFailure | AttemptStatus::UsageLimit => {
                self.ended.failed += 1;
                let how = match (report.exit_code, report.signal) {
                    (Some(code), _) if code != 0 => format!(" with exit code {code}"),
                    (None, Some(signal)) => format!(" by signal {signal}"),
                    _ => String::new(),
                };
                format!("✗ Iteration {iteration} failed{how} ({took})\n")
            }
        }
    }

    /// The last line.
    #[must_use]
    pub(crate) fn summary(&self) -> String {
        let Count { iterations, succeeded, failed, timed_out } = self.ended;
        format!(
            "Done: {iterations} iterations — {succeeded} succeeded, {failed} failed, {timed_out} timed out\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn report(status: AttemptStatus, exit_code: Option<i32>) -> Report {
        let exceeded = (status == AttemptStatus::Timeout).then_some(Duration::from_secs(30));
        Report { exit_code, exceeded, ..Report::given_up(status, Duration::from_millis(1234)) }
    }

    #[test]
    fn one_line_before_and_after_each_iteration() {
        let mut lines = RunLines::default();
        assert_eq!(lines.begin(1), "── Iteration 1 ──\n");
        assert_eq!(lines.end(&report(AttemptStatus::Success, Some(0))), "✓ Iteration 1 completed (1.2s)\n");
        lines.begin(2);
        assert_eq!(
            lines.end(&report(AttemptStatus::AgentFailure, Some(3))),
            "✗ Iteration 2 failed with exit code 3 (1.2s)\n"
        );
        lines.begin(3);
        assert_eq!(lines.end(&report(AttemptStatus::Timeout, None)), "⏱ Iteration 3 timed out after 30s\n");
        assert_eq!(lines.summary(), "Done: 3 iterations — 1 succeeded, 1 failed, 1 timed out\n");
    }

    #[test]
    fn further_attempts_count_in_place_of_the_earlier_ones() {
        let mut lines = RunLines::default();
        for status in [AttemptStatus::UsageLimit, AttemptStatus::AgentFailure, AttemptStatus::Success] {
            lines.begin(7);
            lines.end(&report(status, Some(1)));
        }
        lines.begin(8);
        lines.end(&report(AttemptStatus::Interrupted, None));
        assert_eq!(lines.summary(), "Done: 2 iterations — 1 succeeded, 0 failed, 0 timed out\n");
    }
}
