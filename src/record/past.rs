//! Reads `iterations.log` back: one step for each iteration that has begun or ended.

use chrono::NaiveDateTime;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When it was written, local time.
    pub at: NaiveDateTime,
    /// Its tag in small letters, `start`, `end`, `fail`, `timeout`, `pause`, `done` …
    pub word: String,
    /// The number of its iteration.
    pub iteration: Option<u64>,
    /// The rest of the line.
    pub rest: String,
}

impl Step {
    /// Reads a line such as `TIME [TAG] iteration 3/20 exit=0 duration=5m42s`. Other lines are `None`.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let (time, line) = line.split_once(' ')?;
        let (tag, line) = line.strip_prefix('[')?.split_once(']')?;
        let at = NaiveDateTime::parse_from_str(time, "%Y-%m-%dT%H:%M:%S").ok()?;
        let line = line.trim();
        let told = line.strip_prefix("iteration ").map(|line| line.split_once(' ').unwrap_or((line, "")));
        let number = told.and_then(|(number, rest)| Some((number.split('/').next()?.parse().ok()?, rest)));
        let (iteration, rest) = number.map_or((None, line), |(number, rest)| (Some(number), rest));
        Some(Self { at, word: tag.to_lowercase(), iteration, rest: rest.trim().to_owned() })
    }

    /// Adds this step. The end of an iteration replaces its begin.
    pub fn add_to(self, steps: &mut Vec<Self>) {
        let has_begun = |last: &Self| last.word == "start" && last.iteration.is_some();
        if steps.last().is_some_and(|last| has_begun(last) && last.iteration == self.iteration) {
            steps.pop();
        }
        steps.push(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_is_one_step() {
        let log = "\
2026-11-22T18:00:00 [START] iteration 1/20
2026-11-22T18:05:42 [END] iteration 1 exit=0 duration=5m42s
2026-11-22T18:05:43 [START] iteration 2/20
2026-11-22T18:06:00 [FAIL] iteration 2 exit=1 duration=17s
2026-11-22T18:06:01 [START] iteration 2/20
torn
2026-11-22T18:06:02 [PAUSE] loop paused at iteration 2
2026-11-22T18:06:09 [DONE] loop complete after 2 iterations reason=cancelled
2026-11-22T18:06:10 [START] iteration 3/20";
        let mut steps = Vec::new();
        log.lines().filter_map(Step::read).for_each(|step| step.add_to(&mut steps));
        let told: Vec<String> =
            steps.iter().map(|step| format!("{:?} {} {}", step.iteration, step.word, step.rest)).collect();
        assert_eq!(
            told,
            [
                "Some(1) end exit=0 duration=5m42s",
                "Some(2) fail exit=1 duration=17s",
                "Some(2) start ",
                "None pause loop paused at iteration 2",
                "None done loop complete after 2 iterations reason=cancelled",
                "Some(3) start ",
            ]
        );
    }
}
