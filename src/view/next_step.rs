//! What to type next when a loop has ended.

use std::time::Duration;

use crate::engine::outcome::{Ended, Outcome};
use crate::engine::policy::{Budget, Spent};
use crate::engine::tally::Tally;
use crate::text::duration;

/// The next command after a loop of that name which a verb has started, as one would type it; `None` where there is nothing
/// to go on with. `from` is the commit that it began at, `budget` what it might use up.
pub(crate) fn next_step(
    verb: &str,
    name: &str,
    outcome: Outcome,
    (tally, budget): (&Tally, Budget),
    from: Option<&str>,
) -> Option<String> {
    let name = shell_word(name);
    let begun = tally.iteration.saturating_sub(tally.allowance_from).max(1);
    // As many again.
    let more = || format!("ralph resume {name} --max-iterations {}", tally.iteration.saturating_add(begun));
    Some(match (outcome, outcome.ended(), verb) {
        (_, Ended::Done, "plan") => "ralph build".to_owned(),
        (_, Ended::Done, "loop plan") => "ralph loop build".to_owned(),
        (_, Ended::Done, _) => {
            let from = from?;
            format!("git diff {}", from.get(..12).unwrap_or(from))
        }
        (Outcome::LimitTooFar, ..) | (_, Ended::Interrupted, _) => format!("ralph resume {name}"),
        (_, Ended::Limit, _) => more(),
        (
            Outcome::DurationReached
            | Outcome::DurationUnproven
            | Outcome::BudgetReached
            | Outcome::BudgetUnproven,
            ..,
        ) => format!("ralph resume {name} {}", raised_budget(outcome, tally, budget)?),
        (_, Ended::Replan | Ended::Empty, "loop plan" | "loop build") => "ralph loop plan".to_owned(),
        (Outcome::NoTasks, ..) => "ralph task add TITLE".to_owned(),
        (_, Ended::Replan | Ended::Empty, _) => "ralph plan".to_owned(),
        (_, Ended::Blocked, _) => "ralph task list".to_owned(),
        (_, Ended::Unproven, _) => more(),
        // It knows nothing of what runs in panes.
        (Outcome::NotLoggedIn | Outcome::AgentMissing, _, verb) if verb != "spawn" => {
            "ralph doctor".to_owned()
        }
        (_, Ended::Failed, _) | (Outcome::OutOfCredit | Outcome::Overloaded, ..) => {
            format!("ralph logs {name} --agent")
        }
        // What else went wrong says what to do.
        (_, Ended::Budget | Ended::Idle | Ended::Cancelled | Ended::Killed | Ended::Error, _) => return None,
    })
}

/// The flags with which a loop that has used up its budget can go on; `None` where it has none.
pub(crate) fn raised_budget(outcome: Outcome, tally: &Tally, budget: Budget) -> Option<String> {
    match outcome {
        Outcome::DurationReached | Outcome::DurationUnproven => longer(tally, budget),
        Outcome::BudgetReached | Outcome::BudgetUnproven => raised(tally, budget),
        _ => None,
    }
}

/// Twice the time.
fn longer(tally: &Tally, budget: Budget) -> Option<String> {
    let seconds = budget.max_duration_seconds?.max(tally.elapsed_seconds).mul_add(2.0, 0.5);
    let whole = Duration::try_from_secs_f64(seconds).ok()?.as_secs().max(1);
    Some(format!("--max-duration {}", duration::format(Duration::from_secs(whole))))
}

/// Twice of what is used up, money or tokens; of both, where other loops have used it up as well.
fn raised(tally: &Tally, Budget { max_cost_usd, max_tokens, .. }: Budget) -> Option<String> {
    let spent = Spent::of(tally);
    let (no_money, no_tokens) = (
        max_cost_usd.is_some_and(|limit| spent.cost_usd >= limit),
        max_tokens.is_some_and(|limit| spent.tokens >= limit),
    );
    let by_others = !no_money && !no_tokens;
    let money = max_cost_usd.filter(|_| no_money || by_others);
    let money = money.map(|limit| format!("--max-cost {}", dollars(limit.max(spent.cost_usd) * 2.0)));
    let tokens = max_tokens.filter(|_| no_tokens || by_others);
    let tokens =
        tokens.map(|limit| format!("--max-tokens {}", limit.max(spent.tokens).saturating_mul(2).max(1)));
    let all: Vec<String> = money.into_iter().chain(tokens).collect();
    (!all.is_empty()).then(|| all.join(" "))
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
        let next = |outcome, tally: &Tally, budget| next_step("build", "b", outcome, (tally, budget), None);
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
        // The state of an older version does not say what the limit was.
        assert_eq!(next(Outcome::DurationReached, &spent, Budget::default()), None);
        assert_eq!((dollars(20.0), dollars(0.0)), ("20".to_owned(), "0.01".to_owned()));
    }
}
