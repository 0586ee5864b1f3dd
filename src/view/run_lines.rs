//! The lines of `ralph run` instead of blocks: one before and after each iteration, and a count at the end.

use std::time::Duration;

use crate::engine::fact::{AttemptEnded, Fact, TaskCounts};
use crate::engine::report::AttemptStatus;
use crate::tell::words;
use crate::text::{count, duration};

/// The lines of one run, and the count for the last of them.
#[derive(Debug, Default)]
pub(crate) struct RunLines {
    ended: Count,
    /// Without the latest iteration, because another attempt at it replaces its result.
    ended_before: Count,
    iteration: u64,
    /// Of a run over tasks, how many there are.
    tasks: Option<TaskCounts>,
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

    /// Notes how many tasks there are.
    pub(crate) fn count(&mut self, fact: &Fact<'_>) {
        if let Fact::TaskStarted { tasks, .. }
        | Fact::TaskEnded { tasks, .. }
        | Fact::Landed { tasks, .. }
        | Fact::Returned { tasks, .. } = fact
        {
            self.tasks = Some(*tasks);
        }
    }

    /// The line after an attempt; `limit` is the one that it exceeded, if it timed out.
    pub(crate) fn end(&mut self, ended: &AttemptEnded<'_>, limit: Duration) -> String {
        let iteration = self.iteration;
        let took = duration::elapsed_tenths(ended.duration());
        let (_, mark, how, _) = words::how(ended.status(), self.tasks.is_some());
        match ended.status() {
            AttemptStatus::Success | AttemptStatus::Still | AttemptStatus::CompleteUnproven => {
                self.ended.succeeded += 1;
            }
            AttemptStatus::Timeout => {
                self.ended.timed_out += 1;
                return format!("{mark} Iteration {iteration} {how} after {}\n", duration::format(limit));
            }
            // An overloaded provider is no failure of the iteration.
            AttemptStatus::AgentFailure => self.ended.failed += u64::from(!ended.waited_for),
            AttemptStatus::UsageLimit | AttemptStatus::Interrupted => {}
        }
        let exit = match (ended.status(), ended.exit_code, ended.signal) {
            (AttemptStatus::AgentFailure, Some(code), _) if code != 0 => format!(" with exit code {code}"),
            (AttemptStatus::AgentFailure, None, Some(signal)) => format!(" by signal {signal}"),
            _ => String::new(),
        };
        format!("{mark} Iteration {iteration} {how}{exit} ({took})\n")
    }

    /// The last line.
    #[must_use]
    pub(crate) fn summary(&self) -> String {
        let Count { iterations, succeeded, failed, timed_out } = self.ended;
        if let Some(TaskCounts { done, failed, total }) = self.tasks {
            let (tasks, open) = (count::of(total, "task"), total.saturating_sub(done + failed));
            let ran = count::of(iterations, "iteration");
            return format!("Done: {tasks} — {done} done, {failed} failed, {open} open, after {ran}\n");
        }
        format!(
            "Done: {iterations} iterations — {succeeded} succeeded, {failed} failed, {timed_out} timed out\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::report::Report;
    use crate::engine::tally::Tally;

    fn ended(lines: &mut RunLines, status: AttemptStatus, exit_code: Option<i32>) -> String {
        let report = Report { exit_code, ..Report::given_up(status, Duration::from_millis(1234)) };
        let tally = Tally::default();
        let Fact::AttemptEnded(ended) = Fact::attempt_ended(&tally, &report, None, None) else { panic!() };
        lines.end(&ended, Duration::from_secs(30))
    }

    #[test]
    fn one_line_before_and_after_each_iteration() {
        let mut lines = RunLines::default();
        assert_eq!(lines.begin(1), "── Iteration 1 ──\n");
        assert_eq!(ended(&mut lines, AttemptStatus::Success, Some(0)), "✓ Iteration 1 completed (1.2s)\n");
        lines.begin(2);
        assert_eq!(
            ended(&mut lines, AttemptStatus::AgentFailure, Some(3)),
            "✗ Iteration 2 failed with exit code 3 (1.2s)\n"
        );
        lines.begin(3);
        assert_eq!(ended(&mut lines, AttemptStatus::Timeout, None), "⏱ Iteration 3 timed out after 30s\n");
        assert_eq!(lines.summary(), "Done: 3 iterations — 1 succeeded, 1 failed, 1 timed out\n");
    }

    #[test]
    fn what_is_not_proven_is_not_ticked_and_a_limit_is_no_failure() {
        let mut lines = RunLines::default();
        lines.begin(1);
        let unproven = ended(&mut lines, AttemptStatus::CompleteUnproven, Some(0));
        assert_eq!(unproven, "? Iteration 1 says that all is done, which is not proven (1.2s)\n");
        lines.begin(2);
        let limited = ended(&mut lines, AttemptStatus::UsageLimit, Some(1));
        assert_eq!(limited, "⏸ Iteration 2 met a usage limit (1.2s)\n");
        assert_eq!(lines.summary(), "Done: 2 iterations — 1 succeeded, 0 failed, 0 timed out\n");
    }

    #[test]
    fn a_run_over_tasks_is_counted_in_tasks() {
        let mut lines = RunLines::default();
        lines.begin(1);
        let counts = TaskCounts { done: 0, failed: 0, total: 3 };
        lines.tasks = Some(counts);
        // The line of the task has its result.
        assert_eq!(ended(&mut lines, AttemptStatus::Success, Some(0)), "· Iteration 1 ended (1.2s)\n");
        lines.tasks = Some(TaskCounts { done: 1, failed: 1, ..counts });
        assert_eq!(lines.summary(), "Done: 3 tasks — 1 done, 1 failed, 1 open, after 1 iteration\n");
    }

    #[test]
    fn further_attempts_count_in_place_of_the_earlier_ones() {
        let mut lines = RunLines::default();
        for status in [AttemptStatus::UsageLimit, AttemptStatus::AgentFailure, AttemptStatus::Success] {
            lines.begin(7);
            ended(&mut lines, status, Some(1));
        }
        lines.begin(8);
        ended(&mut lines, AttemptStatus::Interrupted, None);
        assert_eq!(lines.summary(), "Done: 2 iterations — 1 succeeded, 0 failed, 0 timed out\n");
    }
}
