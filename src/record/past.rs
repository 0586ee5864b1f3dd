//! Reads `iterations.log` back: one step for each iteration that has begun or ended, in the words of the transcript.

use chrono::NaiveDateTime;

use crate::engine::outcome::Outcome;
use crate::engine::report::AttemptStatus;
use crate::tell::words::{self, Entry, Kind};

/// What one or more lines of the log say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When the last of them was written, local time.
    pub at: NaiveDateTime,
    what: What,
    /// The reason; empty if there is none.
    why: String,
    /// How often in a row an iteration has ended so, for this reason.
    times: u64,
    /// The step before has the same reason.
    is_told: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Begun {
        iteration: u64,
        last: Option<u64>,
    },
    Ended {
        iteration: u64,
        status: AttemptStatus,
        took: String,
    },
    LoopEnded {
        word: String,
    },
    Paused,
    /// Another line, such as a newer version may write.
    Other(String),
}

impl Step {
    /// Reads a line such as `TIME [END] iteration 3 exit=0 duration=5m42s`. Other lines are `None`.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let (time, line) = line.split_once(' ')?;
        let (tag, rest) = line.strip_prefix('[')?.split_once(']')?;
        let at = NaiveDateTime::parse_from_str(time, "%Y-%m-%dT%H:%M:%S").ok()?;
        let (said, why) = rest.trim().split_once(": ").unwrap_or((rest.trim(), ""));
        let what = match tag {
            "START" => begun(said),
            "END" | "FAIL" | "TIMEOUT" => ended(tag, said, why),
            "DONE" => value(said, "reason=").map(|word| What::LoopEnded { word: word.to_owned() }),
            "PAUSE" => Some(What::Paused),
            _ => None,
        };
        let other = || What::Other(if said.is_empty() { tag.to_lowercase() } else { said.to_owned() });
        Some(Self {
            at,
            what: what.unwrap_or_else(other),
            why: why.trim().to_owned(),
            times: 1,
            is_told: false,
        })
    }

    /// Adds this step. The end of an iteration replaces its begin; the same end for the same reason is counted, and what
    /// ends the loop does not repeat the reason before it.
    pub fn add_to(mut self, steps: &mut Vec<Self>) {
        if let (What::Ended { iteration, .. }, Some(What::Begun { iteration: begun, .. })) =
            (&self.what, steps.last().map(|last| &last.what))
            && begun == iteration
        {
            steps.pop();
        }
        if let Some(last) = steps.last().filter(|last| !self.why.is_empty() && last.why == self.why) {
            match (&self.what, &last.what) {
                (What::Ended { status, .. }, What::Ended { status: before, .. }) if status == before => {
                    self.times += last.times;
                    steps.pop();
                }
                (What::LoopEnded { .. }, What::Ended { .. }) => self.is_told = true,
                _ => {}
            }
        }
        steps.push(self);
    }

    /// The step in words.
    pub(crate) fn entry(&self) -> Entry {
        let mut entry = match &self.what {
            What::Begun { iteration, last } => words::attempt_begins(*iteration, *last, 0),
            What::Ended { iteration, status, took } => {
                // An attempt that succeeded has a reason only where its work was refuted.
                words::iteration_ended(*iteration, words::how(*status, false), !self.why.is_empty(), took)
            }
            What::LoopEnded { word } => return loop_ended(word, &self.why, self.is_told),
            What::Paused => Entry::new(Kind::Note, "⏸", "paused"),
            What::Other(text) => Entry::new(Kind::Note, "■", text.as_str()),
        };
        if !self.why.is_empty() {
            entry.text = format!("{}: {}", entry.text, self.why);
        }
        if self.times > 1 {
            entry.text = format!("{} ({} times in a row)", entry.text, self.times);
        }
        entry
    }
}

/// `iteration 3/20`.
fn begun(said: &str) -> Option<What> {
    let said = said.strip_prefix("iteration ")?;
    let (iteration, last) = said.split_once('/').map_or((said, None), |(number, last)| (number, Some(last)));
    Some(What::Begun { iteration: iteration.parse().ok()?, last: last.and_then(|last| last.parse().ok()) })
}

/// `iteration 3 exit=0 duration=5m42s`.
fn ended(tag: &str, said: &str, why: &str) -> Option<What> {
    let iteration = said.strip_prefix("iteration ")?.split(' ').next()?.parse().ok()?;
    let status = match tag {
        "END" => AttemptStatus::Success,
        "TIMEOUT" if value(said, "inactivity_timeout=").is_some() => AttemptStatus::Still,
        "TIMEOUT" => AttemptStatus::Timeout,
        // A failure has its reason, or the place that it takes among the failures of a worker.
        _ if why.is_empty() && value(said, "attempt=").is_none() => AttemptStatus::Interrupted,
        _ => AttemptStatus::AgentFailure,
    };
    let took = value(said, "duration=").or_else(|| value(said, "inactivity_timeout="));
    Some(What::Ended { iteration, status, took: took.unwrap_or_default().to_owned() })
}

/// The word behind this name.
fn value<'a>(said: &'a str, name: &str) -> Option<&'a str> {
    said.split(' ').find_map(|word| word.strip_prefix(name))
}

/// The end of a loop by its word in the log, which several outcomes may share; those with an exit code other than 0 have a
/// reason.
fn loop_ended(word: &str, why: &str, is_told: bool) -> Entry {
    let is_meant =
        |outcome: &Outcome| outcome.word() == word && (outcome.code() == 0) == why.trim().is_empty();
    let meant: Vec<Outcome> = Outcome::ALL.into_iter().filter(is_meant).collect();
    let by_word = || {
        let is_named = |outcome: &Outcome| outcome.word() == word || outcome.worker_word() == Some(word);
        Outcome::ALL.into_iter().find(is_named).map_or(word, |outcome| outcome.ended().word())
    };
    let (end, reason) = match meant[..] {
        [one] => (one.ended().word(), Some(one.reason())),
        [one, ..] => (one.ended().word(), None),
        [] => (by_word(), None),
    };
    words::ended_by(end, reason, Some(why).filter(|_| !is_told))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(log: &str) -> Vec<String> {
        let mut steps = Vec::new();
        log.lines().filter_map(Step::read).for_each(|step| step.add_to(&mut steps));
        steps.iter().map(Step::entry).map(|entry| format!("{} {}", entry.mark, entry.text)).collect()
    }

    #[test]
    fn an_iteration_is_one_step_in_words() {
        let log = "\
2026-11-22T18:00:00 [START] iteration 1/20
2026-11-22T18:05:42 [END] iteration 1 exit=0 duration=5m42s
2026-11-22T18:05:43 [START] iteration 2/20
2026-11-22T18:06:00 [FAIL] iteration 2 exit=1 duration=17s: claude exited with code 1: no: really
2026-11-22T18:06:01 [START] iteration 2/20
2026-11-22T18:06:01 [END] iteration 2 exit=0 duration=4s: the validation failed
torn
2026-11-22T18:06:02 [PAUSE] loop paused at iteration 2
2026-11-22T18:06:09 [DONE] loop complete after 2 iterations reason=max_iterations
2026-11-22T18:06:10 [START] iteration 3/20";
        assert_eq!(
            told(log),
            [
                "✓ Iteration 1 completed in 5m42s",
                "✗ Iteration 2 failed after 17s: claude exited with code 1: no: really",
                "? Iteration 2 is not valid, after 4s: the validation failed",
                "⏸ paused",
                "■ limit: max iterations reached",
                "▶ Iteration 3 of 20",
            ]
        );
    }

    #[test]
    fn a_reason_that_repeats_is_told_once_with_a_count() {
        let fails = |number: u64| {
            format!(
                "2026-11-22T18:06:00 [START] iteration {number}/20\n\
                 2026-11-22T18:06:09 [FAIL] iteration {number} exit=1 duration=9s: not logged in\n"
            )
        };
        let log = (1..=3).map(fails).collect::<String>()
            + "2026-11-22T18:06:10 [DONE] loop complete after 3 iterations reason=failed: not logged in";
        let told = told(&log);
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0], "✗ Iteration 3 failed after 9s: not logged in (3 times in a row)");
        assert_eq!(told[1], "■ failed");
    }

    #[test]
    fn lines_of_workers_have_words_too() {
        let log = "\
2026-11-22T18:00:00 [START] iteration 1/20
2026-11-22T18:05:42 [TIMEOUT] iteration 1 inactivity_timeout=180s
2026-11-22T18:05:43 [START] iteration 2/20
2026-11-22T18:06:00 [FAIL] iteration 2 exit=1 attempt=1/5 backoff=1s
2026-11-22T18:06:02 [DISCONNECT] monitor disconnected (worker still running)
2026-11-22T18:06:09 [DONE] loop complete after 2 iterations reason=something-new";
        assert_eq!(
            told(log),
            [
                "✓ Iteration 1 completed in 180s",
                "✗ Iteration 2 failed",
                "■ monitor disconnected (worker still running)",
                "■ something-new",
            ]
        );
    }
}
