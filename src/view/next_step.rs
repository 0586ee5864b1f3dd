//! What to type next when a loop has ended: one table for the closing of a loop, for reports and for notices.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::engine::budget::{Budget, Limit, Unit};
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::tally::named_reset;
use crate::engine::tally::{Last, Tally};
use crate::text::duration;

const BUILD: &str = "loop build";

/// What is known of a loop that has ended, or whose turn never came.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ending<'a> {
    /// The words of the command line that start such a loop.
    pub(crate) verb: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// How it ended; `None`: it has not begun, or nobody knows the word.
    pub(crate) end: Option<Ended>,
    /// The same in finer words, where they are known.
    pub(crate) outcome: Option<Outcome>,
    /// It is done, with words about what is not.
    pub(crate) has_rest: bool,
    /// It has committed something.
    pub(crate) has_work: bool,
    /// What it has used up and what it might; `None`: nobody knows, or it was started again since.
    pub(crate) spent: Option<(&'a Tally, Budget)>,
    /// The id of its run, where its name means a later one by now.
    pub(crate) run: Option<&'a str>,
    /// Where the work of a branch goes; `None` where nobody knows.
    pub(crate) goes_to: Option<GoesTo>,
}

/// Where the work of a branch that is done goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoesTo {
    /// Its pull request is made.
    PullRequest,
    /// A remote, for a pull request of the user's.
    Remote,
    /// Nowhere: the user merges it.
    Here,
}

/// The next command, as one would type it; `None` where there is nothing to go on with.
pub(crate) fn next_step(ending: &Ending<'_>) -> Option<String> {
    let Ending { verb, outcome, end, spent, .. } = *ending;
    let name = shell_word(ending.name);
    let end = match (end, outcome) {
        (Some(end), _) => end,
        (None, Some(outcome)) => outcome.ended(),
        // Its turn comes then.
        (None, None) => return (verb == BUILD).then(|| build(None)),
    };
    let resume = |flags: &str| format!("ralph resume {name}{flags}");
    Some(match (outcome, end, verb) {
        (_, Ended::Done, "plan") if ending.run.is_none() => "ralph build".to_owned(),
        (_, Ended::Done, "loop plan") if ending.run.is_none() => build(None),
        (_, Ended::Done, "build") if ending.has_rest && ending.run.is_none() => "ralph build".to_owned(),
        (_, Ended::Done, BUILD) => match ending.goes_to {
            Some(GoesTo::PullRequest) => return None,
            Some(GoesTo::Remote) => format!("gh pr create --head {name}"),
            Some(GoesTo::Here) => format!("git merge {name}"),
            None => format!("ralph diff {name}"),
        },
        (_, Ended::Done, _) if !ending.has_work => return None,
        // By its name another run could be meant by now.
        (_, Ended::Done, _) => format!("ralph diff {}", ending.run.map_or(name, shell_word)),
        (_, Ended::Replan | Ended::Empty, "loop plan" | BUILD) => "ralph loop plan".to_owned(),
        // It knows nothing of what runs in panes.
        (Some(Outcome::NotLoggedIn | Outcome::AgentMissing), _, verb) if verb != "spawn" => {
            "ralph doctor".to_owned()
        }
        // It would fail again at once.
        (_, Ended::Failed, _) | (_, Ended::Unproven, BUILD) => logs(&name, ending.run),
        // All that are open, in one go.
        (_, _, BUILD) => build(spent.and_then(|(tally, budget)| raised_budget(outcome?, tally, budget))),
        (_, Ended::Unproven | Ended::Error, _) if ending.run.is_some() => logs(&name, ending.run),
        _ if ending.run.is_some() => return None,
        // The first has not ended by itself.
        (None, Ended::Killed, _)
        | (Some(Outcome::OutOfCredit | Outcome::Overloaded | Outcome::RecordFailed), ..)
        | (_, Ended::Interrupted, _) => resume(""),
        // Without a longer wait it would end again at once.
        (Some(Outcome::LimitTooFar), ..) => {
            let flags = spent.and_then(|(tally, budget)| raised_budget(outcome?, tally, budget));
            resume(&flags.map(|flags| format!(" {flags}")).unwrap_or_default())
        }
        (_, Ended::Budget, _)
        | (Some(Outcome::BudgetUnproven | Outcome::DurationUnproven), Ended::Unproven, _) => {
            let (tally, budget) = spent?;
            resume(&format!(" {}", raised_budget(outcome?, tally, budget)?))
        }
        // As many again.
        (_, Ended::Limit | Ended::Unproven, _) => {
            let (tally, _) = spent?;
            let begun = tally.ran().max(1);
            resume(&format!(" --max-iterations {}", tally.iteration.saturating_add(begun)))
        }
        (Some(Outcome::NoTasks), ..) => "ralph task add TITLE".to_owned(),
        (_, Ended::Replan | Ended::Empty, _) => "ralph plan".to_owned(),
        (_, Ended::Blocked, _) => "ralph task list".to_owned(),
        // What else went wrong says what to do.
        (_, Ended::Idle | Ended::Cancelled | Ended::Killed | Ended::Error, _) => return None,
    })
}

/// The command that builds all branches that are open, with flags.
pub(crate) fn build(flags: Option<String>) -> String {
    flags.map_or_else(|| format!("ralph {BUILD}"), |flags| format!("ralph {BUILD} {flags}"))
}

/// What the agent did last.
fn logs(name: &str, run: Option<&str>) -> String {
    let run = run.map(|run| format!(" --run {}", shell_word(run))).unwrap_or_default();
    format!("ralph logs {name} --agent{run}")
}

/// The flags with which a loop that has used up its budget, or has no patience for a usage limit, can go on: twice of what is
/// used up, or of all of that kind where other loops have used it up as well; `None` where it needs none.
pub(crate) fn raised_budget(outcome: Outcome, tally: &Tally, budget: Budget) -> Option<String> {
    if outcome == Outcome::LimitTooFar {
        return patient(tally, Utc::now());
    }
    let used = tally.used();
    let is_meant = |limit: &Limit| [false, true].map(|unproven| limit.outcome(unproven)).contains(&outcome);
    let meant = Limit::ALL.into_iter().filter(is_meant).filter_map(|limit| Some((limit, budget.get(limit)?)));
    let (reached, others): (Vec<_>, Vec<_>) =
        meant.partition(|(limit, amount)| (limit.row().used)(&used) >= *amount);
    let raised = if reached.is_empty() { others } else { reached };
    let flag = |(limit, amount): (Limit, f64)| {
        Some(format!(
            "{} {}",
            limit.row().flag,
            twice(limit.row().unit, amount.max((limit.row().used)(&used)))?
        ))
    };
    let flags: Vec<String> = raised.into_iter().filter_map(flag).collect();
    (!flags.is_empty()).then(|| flags.join(" "))
}

/// Twice an amount, as a flag has it; `None` for a time that no clock can tell.
fn twice(unit: Unit, amount: f64) -> Option<String> {
    Some(match unit {
        Unit::Dollars => dollars(amount * 2.0),
        Unit::Count(_) => format!("{:.0}", (amount * 2.0).max(1.0)),
        Unit::Seconds => {
            let whole = Duration::try_from_secs_f64(amount.mul_add(2.0, 0.5)).ok()?.as_secs().max(1);
            duration::format(Duration::from_secs(whole))
        }
    })
}

/// A wait until the usage limit ends, in whole minutes with one to spare; `None` where it has ended, or it is not known when it will.
fn patient(tally: &Tally, now: DateTime<Utc>) -> Option<String> {
    let Last::Limited { reset } = tally.last else { return None };
    let left = (named_reset(reset, now)? - now).to_std().ok()?;
    let minutes = left.as_secs() / 60 + 2;
    Some(format!("--max-limit-wait {}", duration::format(Duration::from_secs(minutes * 60))))
}

/// So much money in cents, or in dollars where that is what it is.
fn dollars(amount: f64) -> String {
    let cents = (amount * 100.0).ceil().max(1.0) / 100.0;
    format!("{cents:.2}").trim_end_matches(".00").to_owned()
}

/// A name as one would write it for a shell.
pub(crate) fn shell_word(name: &str) -> String {
    shlex::try_quote(name).map_or_else(|_| name.to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_used_up_is_raised_by_its_own_flag() {
        let next = |outcome, tally: &Tally, budget| {
            let spent = Some((tally, budget));
            next_step(&Ending {
                verb: "build",
                name: "b",
                outcome: Some(outcome),
                spent,
                ..Ending::default()
            })
        };
        let money = Budget { max_cost_usd: Some(0.015), max_tokens: Some(50), ..Budget::default() };
        let spent = Tally { cost_usd: Some(0.02), input_tokens: 10, ..Tally::default() };
        let by_money = Some("ralph resume b --max-cost 0.04".to_owned());
        assert_eq!(next(Outcome::BudgetReached, &spent, money), by_money);
        assert_eq!(next(Outcome::BudgetUnproven, &spent, money), by_money);
        let spent = Tally { cost_usd: Some(0.01), input_tokens: 60, ..Tally::default() };
        let by_tokens = Some("ralph resume b --max-tokens 120".to_owned());
        assert_eq!(next(Outcome::BudgetReached, &spent, money), by_tokens);
        let by_others = Some("ralph resume b --max-cost 0.03 --max-tokens 100".to_owned());
        assert_eq!(next(Outcome::BudgetReached, &Tally::default(), money), by_others);
        let time = Budget { max_duration_seconds: Some(5400.0), ..Budget::default() };
        let spent = Tally { elapsed_seconds: 5400.2, ..Tally::default() };
        let longer = Some("ralph resume b --max-duration 3h".to_owned());
        assert_eq!(next(Outcome::DurationReached, &spent, time), longer);
        // Without the limit there is nothing to double.
        assert_eq!(next(Outcome::DurationReached, &spent, Budget::default()), None);
        assert_eq!((dollars(20.0), dollars(0.0)), ("20".to_owned(), "0.01".to_owned()));
    }

    #[test]
    fn a_limit_that_is_too_far_away_is_waited_for_long_enough() {
        let now = Utc::now();
        let wait = |seconds: i64| {
            let reset = Some(now.timestamp() + seconds);
            patient(&Tally { last: Last::Limited { reset }, ..Tally::default() }, now)
        };
        assert_eq!(wait(7 * 3600 - 60 + 1).as_deref(), Some("--max-limit-wait 7h1m"));
        assert_eq!((wait(1).as_deref(), wait(-1)), (Some("--max-limit-wait 2m"), None));
        let blind = Tally { last: Last::Limited { reset: None }, ..Tally::default() };
        assert_eq!(patient(&blind, now), None);
    }

    #[test]
    fn every_end_that_is_not_the_users_own_names_a_next_step() {
        let tally = Tally { iteration: 2, ..Tally::default() };
        let budget =
            Budget { max_cost_usd: Some(1.0), max_duration_seconds: Some(60.0), ..Budget::default() };
        for outcome in Outcome::ALL {
            let is_quiet =
                matches!(outcome.ended(), Ended::Done | Ended::Idle | Ended::Cancelled | Ended::Killed)
                    || matches!(outcome, Outcome::PromptLost | Outcome::GraphLost | Outcome::GitFailed);
            let (spent, outcome) = (Some((&tally, budget)), Some(outcome));
            let ending = Ending { verb: "build", name: "build", outcome, spent, ..Ending::default() };
            assert_eq!(next_step(&ending).is_none(), is_quiet, "{outcome:?}");
            let ending = Ending { verb: BUILD, ..ending };
            assert!(next_step(&ending).is_some(), "{outcome:?}");
        }
    }

    #[test]
    fn what_is_done_is_looked_at_and_goes_where_it_belongs() {
        let done = |verb| Ending { verb, name: "my loop", end: Some(Ended::Done), ..Ending::default() };
        let next = |ending: Ending<'_>| next_step(&ending).unwrap_or_default();
        assert_eq!(next(done("build")), "");
        assert_eq!(next(Ending { has_work: true, ..done("build") }), "ralph diff 'my loop'");
        assert_eq!(next(Ending { has_work: true, run: Some("r"), ..done("build") }), "ralph diff r");
        assert_eq!(next(Ending { has_work: true, has_rest: true, ..done("build") }), "ralph build");
        assert_eq!(next(Ending { has_work: true, ..done("plan") }), "ralph build");
        assert_eq!(next(done("loop plan")), "ralph loop build");
        let branch = |goes_to| next(Ending { goes_to, has_work: true, ..done(BUILD) });
        assert_eq!(branch(Some(GoesTo::PullRequest)), "");
        assert_eq!(branch(Some(GoesTo::Remote)), "gh pr create --head 'my loop'");
        assert_eq!(branch(Some(GoesTo::Here)), "git merge 'my loop'");
        assert_eq!(branch(None), "ralph diff 'my loop'");
    }

    #[test]
    fn who_was_killed_goes_on_unless_it_has_begun_again() {
        let killed = Ending { verb: "build", name: "b", end: Some(Ended::Killed), ..Ending::default() };
        assert_eq!(next_step(&killed).as_deref(), Some("ralph resume b"));
        assert_eq!(next_step(&Ending { run: Some("r"), ..killed }), None);
        let queued = Ending { verb: BUILD, name: "b", ..Ending::default() };
        assert_eq!(next_step(&queued).as_deref(), Some("ralph loop build"));
    }
}
