//! Chooses the model for the next attempt at a task. Pure: a function of the run's journal and of the last agent's
//! hint.

use std::fmt;
use std::str::FromStr;

use super::journal::{Became, JournalEntry};

/// How many of the latest entries count.
const RECENT: usize = 3;

/// Words for a problem.
const MODERATE: [&str; 4] = ["error", "failure", "failed", "bug"];
/// Words for an agent that cannot continue.
const SEVERE: [&str; 7] = ["stuck", "cannot", "unable", "panic", "crash", "broken", "regression"];

/// How models are chosen from a ladder of them, the smallest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Always the model that the user named.
    Fixed,
    /// The middle one; the largest after problems, the smallest while there are none.
    #[default]
    CostOptimized,
    /// The smallest, then larger ones with the problems; smaller again only by a hint.
    Escalate,
    /// The largest for the first iteration, the middle one for all others.
    PlanThenExecute,
}

impl Strategy {
    /// All values.
    pub const ALL: [Self; 4] = [Self::Fixed, Self::CostOptimized, Self::Escalate, Self::PlanThenExecute];

    /// The strategy as one word, on command lines and in settings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::CostOptimized => "cost-optimized",
            Self::Escalate => "escalate",
            Self::PlanThenExecute => "plan-then-execute",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Strategy {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|strategy| strategy.word() == word).ok_or(())
    }
}

/// What an attempt of this run contributes to the choice of the next model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Whether it finished the task.
    done: bool,
    /// How many problems its words mention.
    trouble: usize,
    /// The model that its agent asked for, by its index on the ladder.
    hint: Option<usize>,
}

impl Trace {
    /// The trace of a journal entry. Its notes and its reason count, the word for its outcome does not. `hint`: the
    /// model that its agent asked for, if that is on the ladder.
    #[must_use]
    pub fn of(entry: &JournalEntry, ladder: &[String], hint: Option<&str>) -> Self {
        let text = [&entry.notes, "\n", &entry.reason].concat().to_lowercase();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        // `errors`, `crashed` and `failures` also match; `debug` does not.
        let is_sign = |word: &str, sign: &str| {
            word.strip_prefix(sign).is_some_and(|end| ["", "s", "ed", "es"].contains(&end))
        };
        let has = |signs: &[&str]| words.iter().any(|word| signs.iter().any(|sign| is_sign(word, sign)));
        let trouble = if has(&SEVERE) { 2 } else { usize::from(has(&MODERATE)) };
        let hint = hint.and_then(|name| ladder.iter().position(|model| model == name));
        Self { done: entry.outcome == Became::Done, trouble, hint }
    }
}

/// A chosen model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice<'a> {
    /// Its name.
    pub model: &'a str,
    /// Set if the last agent asked for it: the strategy's own choice.
    pub instead_of: Option<&'a str>,
}

/// The model for the next attempt after those that have left `traces`, the oldest first. `None` without a ladder, or
/// for the fixed strategy.
#[must_use]
pub fn choose<'a>(strategy: Strategy, ladder: &'a [String], traces: &[Trace]) -> Option<Choice<'a>> {
    let (largest, middle) = (ladder.len().checked_sub(1)?, ladder.len() / 2);
    let by_strategy = match strategy {
        Strategy::Fixed => return None,
        Strategy::CostOptimized => {
            let recent = &traces[traces.len().saturating_sub(RECENT)..];
            if recent.iter().any(|trace| trace.trouble > 0) {
                largest
            } else if recent.len() == RECENT && recent.iter().all(|trace| trace.done) {
                0
            } else {
                middle
            }
        }
        // A hint may also choose a smaller model; later problems choose larger ones again.
        Strategy::Escalate => traces.iter().fold(0, |level, trace| {
            let asked = level.max(trace.trouble.min(largest));
            trace.hint.unwrap_or(asked)
        }),
        Strategy::PlanThenExecute if traces.is_empty() => largest,
        Strategy::PlanThenExecute => middle,
    };
    let hint = traces.last().and_then(|trace| trace.hint);
    let name = |at: usize| ladder[at.min(largest)].as_str();
    let instead_of = hint.filter(|&hint| hint != by_strategy).map(|_| name(by_strategy));
    Some(Choice { model: name(hint.unwrap_or(by_strategy)), instead_of })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Vec<String> {
        ["haiku", "sonnet", "opus"].map(str::to_owned).to_vec()
    }

    /// Notes of attempts: `+` before them means done, `=model` after them is a hint.
    fn chosen(strategy: Strategy, attempts: &[&str]) -> (String, Option<String>) {
        let ladder = ladder();
        let trace = |attempt: &&str| {
            let (notes, hint) =
                attempt.split_once('=').map_or((*attempt, None), |(notes, hint)| (notes, Some(hint)));
            let outcome = if notes.starts_with('+') { Became::Done } else { Became::Failed };
            let entry = JournalEntry { outcome, notes: notes.to_owned(), ..JournalEntry::example() };
            Trace::of(&entry, &ladder, hint)
        };
        let traces: Vec<Trace> = attempts.iter().map(trace).collect();
        let Choice { model, instead_of } = choose(strategy, &ladder, &traces).unwrap();
        (model.to_owned(), instead_of.map(str::to_owned))
    }

    #[test]
    fn cost_optimized_goes_by_the_latest_attempts() {
        for (attempts, model) in [
            (&[][..], "sonnet"),
            (&["+", "+"], "sonnet"),
            (&["+", "+", "+"], "haiku"),
            (&["", "+", "+", "+"], "haiku"),
            (&["+", "", "+"], "sonnet"),
            (&["+", "+", "+ a Bug is left"], "opus"),
            (&["+ stuck", "+", "+", "+"], "haiku"),
            (&["+ no ERRORS", "+", "+"], "opus"),
        ] {
            assert_eq!(chosen(Strategy::CostOptimized, attempts), (model.to_owned(), None), "{attempts:?}");
        }
    }

    #[test]
    fn escalate_never_comes_down_by_itself() {
        for (attempts, model) in [
            (&[][..], "haiku"),
            (&["+", "+"], "haiku"),
            (&["an error", "+", "+", "+", "+"], "sonnet"),
            (&["I am stuck", "+"], "opus"),
            (&["stuck", "+=haiku", "+"], "haiku"),
            (&["stuck", "+=haiku", "a bug"], "sonnet"),
        ] {
            assert_eq!(chosen(Strategy::Escalate, attempts), (model.to_owned(), None), "{attempts:?}");
        }
    }

    #[test]
    fn plan_then_execute_plans_once() {
        assert_eq!(chosen(Strategy::PlanThenExecute, &[]).0, "opus");
        assert_eq!(chosen(Strategy::PlanThenExecute, &["stuck"]).0, "sonnet");
    }

    #[test]
    fn a_hint_holds_for_the_next_attempt_and_overrides() {
        let (opus, sonnet) = ("opus".to_owned(), "sonnet".to_owned());
        assert_eq!(chosen(Strategy::CostOptimized, &["+=opus"]), (opus.clone(), Some(sonnet.clone())));
        assert_eq!(chosen(Strategy::CostOptimized, &["+=opus", "+"]), (sonnet.clone(), None));
        assert_eq!(chosen(Strategy::CostOptimized, &["+=sonnet"]), (sonnet.clone(), None));
        assert_eq!(chosen(Strategy::CostOptimized, &["+=gpt"]), (sonnet, None), "it is not on the ladder");
        assert_eq!(chosen(Strategy::Escalate, &["+=opus"]), (opus, None));
    }

    #[test]
    fn ladders_of_any_length() {
        let one = ["only".to_owned()];
        let stuck = Trace { trouble: 2, ..Trace::default() };
        for strategy in [Strategy::CostOptimized, Strategy::Escalate, Strategy::PlanThenExecute] {
            assert_eq!(choose(strategy, &[], &[]), None);
            assert_eq!(choose(strategy, &one, std::slice::from_ref(&stuck)).unwrap().model, "only");
        }
        assert_eq!(choose(Strategy::Fixed, &one, &[]), None);
        let two = ["small".to_owned(), "large".to_owned()];
        assert_eq!(choose(Strategy::CostOptimized, &two, &[]).unwrap().model, "large");
        assert_eq!(choose(Strategy::Escalate, &two, &[stuck]).unwrap().model, "large");
    }

    #[test]
    fn words_come_back() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        assert!("cheap".parse::<Strategy>().is_err());
    }
}
