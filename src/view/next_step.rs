//! The next command when a loop has ended: one table for the closing of a loop, for reports and for notices.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::engine::budget::{Budget, Limit, Unit};
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::tally::named_reset;
use crate::engine::tally::{Last, Tally};
use crate::engine::validation::Standing;
use crate::presets::{login_command, preset_of};
use crate::record::run_folder::is_job;
use crate::record::state::State;
use crate::tell::group::Group;
use crate::text::duration;
use crate::text::line::shell_word;

const BUILD: &str = "loop build";

/// A loop that has ended, or whose turn never came.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Ending<'a> {
    /// The words of the command line that start such a loop.
    pub(crate) verb: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// How it ended; `None`: it has not begun, or the word is unknown.
    pub(crate) end: Option<Ended>,
    /// Its outcome, if it is known.
    pub(crate) outcome: Option<Outcome>,
    /// Whether it is done with a note about what is not.
    pub(crate) has_rest: bool,
    /// Whether it has committed something.
    pub(crate) has_work: bool,
    /// What it has used, and its limits; `None`: unknown, or it was started again since.
    pub(crate) spent: Option<(&'a Tally, Budget)>,
    /// Nothing has proven its work.
    pub(crate) is_unchecked: bool,
    /// The name of its agent; empty if unknown.
    pub(crate) agent: &'a str,
    /// The id of its run, if its name means a later one by now.
    pub(crate) run: Option<&'a str>,
    /// Where the work of a branch goes; `None` if that is unknown.
    pub(crate) goes_to: Option<GoesTo>,
    /// It could not begin, and has no log.
    pub(crate) never_began: bool,
}

impl<'a> Ending<'a> {
    /// Of a loop that has ended, or was killed, by its state.
    pub(crate) fn of_state(name: &'a str, state: &'a State) -> Self {
        let outcome = state.outcome().filter(|_| !state.active);
        Self {
            verb: &state.setup.verb,
            name,
            end: outcome.map(Outcome::ended).or(Some(Ended::Killed)),
            outcome,
            has_work: state.has_work,
            is_unchecked: state.proof.as_ref().is_some_and(|proof| proof.standing != Standing::Proven),
            agent: &state.agent,
            spent: Some((&state.tally, state.budget)),
            ..Self::default()
        }
    }
}

/// Where the work of a finished branch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoesTo {
    /// It is merged, or the branch was deleted.
    Nowhere,
    /// It has a pull request.
    PullRequest,
    /// There is a remote, for a pull request by the user, by this command before the name of the branch.
    Remote(&'static str),
    /// There is no remote: the user merges it.
    Here,
}

/// What git and the plan know of the branches of a project.
#[derive(Debug, Clone, Default)]
pub(crate) struct Merges {
    /// The folder of the project's runs, by which its branches are known.
    pub(crate) runs: PathBuf,
    /// If there is a remote for branches, the command that opens a pull request there, before the name of the branch.
    pub(crate) opened_by: Option<&'static str>,
    /// The branches with commits that are not merged; `None` if unknown.
    pub(crate) unmerged: Option<BTreeSet<String>>,
    /// The branches with a pull request.
    pub(crate) published: BTreeSet<String>,
}

impl Merges {
    /// The ending of a branch, with what is known of it.
    pub(crate) fn of_branch<'a>(&self, ending: Ending<'a>) -> Ending<'a> {
        let name = ending.name;
        let goes_to = match ending.goes_to {
            _ if self.unmerged.as_ref().is_some_and(|names| !names.contains(name)) => GoesTo::Nowhere,
            Some(known) => known,
            None if self.published.contains(name) => GoesTo::PullRequest,
            None => self.opened_by.map_or(GoesTo::Here, GoesTo::Remote),
        };
        Ending { goes_to: Some(goes_to), ..ending }
    }
}

/// What to do about a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Advice {
    pub(crate) group: Group,
    /// The next command, as one would type it. It never pays again for what was refuted, idle or not logged in.
    pub(crate) command: Option<String>,
    /// What follows that command, in words.
    pub(crate) then: Option<String>,
}

impl Advice {
    fn new(group: Group, command: impl Into<Option<String>>) -> Self {
        Self { group, command: command.into(), then: None }
    }

    fn then(self, then: impl Into<Option<String>>) -> Self {
        Self { then: then.into(), ..self }
    }
}

/// The next command, as one would type it; `None` if there is nothing left to do.
pub(crate) fn next_step(ending: &Ending<'_>) -> Option<String> {
    advice(ending).command
}

/// What to do next.
pub(crate) fn advice(ending: &Ending<'_>) -> Advice {
    use Group::{CanGoOn, NeedsYou, Over};
    let Ending { verb, outcome, spent, .. } = *ending;
    let name = shell_word(ending.name);
    let end = match (ending.end, outcome) {
        (Some(end), _) => end,
        (None, Some(outcome)) => outcome.ended(),
        // Then its turn comes.
        (None, None) => return Advice::new(CanGoOn, (verb == BUILD).then(|| build_one(&name, None))),
    };
    let is_past = ending.run.is_some();
    match (outcome, end, verb) {
        (_, Ended::Done, _) => done(ending, &name),
        (Some(_), Ended::Cancelled | Ended::Killed, BUILD) => Advice::new(CanGoOn, again(ending, &name)),
        (_, Ended::Cancelled, _) | (Some(_), Ended::Killed, _) => Advice::new(Over, None),
        (_, Ended::Replan | Ended::Empty, "loop plan" | BUILD) => {
            Advice::new(NeedsYou, "ralph loop plan".to_owned())
        }
        // That command does not know workers.
        (Some(Outcome::NotLoggedIn | Outcome::AgentMissing), _, verb) if verb != "spawn" => {
            let login =
                if outcome == Some(Outcome::NotLoggedIn) { login_command(ending.agent) } else { None };
            let command = login.map_or_else(|| "ralph doctor".to_owned(), str::to_owned);
            Advice::new(NeedsYou, command).then(again(ending, &name))
        }
        (Some(Outcome::NoModel), ..) => other_model(ending, &name),
        (Some(Outcome::CannotValidate), ..) => {
            Advice::new(NeedsYou, "ralph doctor --validate".to_owned()).then(again(ending, &name))
        }
        (_, Ended::Unproven, _) => {
            let run = ending.run.map_or_else(|| name.clone(), shell_word);
            let command = if ending.has_work { format!("ralph diff {run}") } else { logs(&name, ending.run) };
            let note = again(ending, &name)
                .map(|again| format!("{again}, and 'ralph note {name} TEXT' for the next agent"));
            Advice::new(NeedsYou, command).then(note)
        }
        // It would fail again at once.
        (_, Ended::Failed, _) => Advice::new(NeedsYou, logs(&name, ending.run)).then(again(ending, &name)),
        (_, Ended::Idle, BUILD) => {
            let edit = "edit its tasks in IMPLEMENTATION_PLAN.md";
            Advice::new(NeedsYou, logs(&name, ending.run))
                .then(format!("{edit}, then {}", build_one(&name, None)))
        }
        (_, Ended::Idle, verb) => {
            let then = (verb == "build" && !is_past)
                .then(|| "edit the tasks of the plan, then ralph build".to_owned());
            Advice::new(NeedsYou, logs(&name, ending.run)).then(then)
        }
        (_, Ended::Error, verb) if is_past && verb != BUILD => Advice::new(NeedsYou, logs(&name, ending.run)),
        (Some(Outcome::OutOfCredit | Outcome::RecordFailed), ..) => {
            Advice::new(NeedsYou, again(ending, &name).filter(|_| !is_past))
        }
        (Some(Outcome::NoTasks), ..) => Advice::new(NeedsYou, "ralph task add TITLE".to_owned()),
        (_, Ended::Replan | Ended::Empty, _) if !is_past => Advice::new(NeedsYou, "ralph plan".to_owned()),
        (_, Ended::Blocked, _) if !is_past => Advice::new(NeedsYou, "ralph task list".to_owned()),
        (_, Ended::Killed | Ended::Interrupted | Ended::Limit | Ended::Budget, _)
        | (Some(Outcome::Overloaded | Outcome::NoConnection), ..) => {
            let again = again(ending, &name).filter(|_| !is_past || verb == BUILD);
            Advice::new(if spent.is_some() || again.is_some() { CanGoOn } else { Over }, again)
        }
        // The messages of other failures say what to do.
        (_, Ended::Error, BUILD) if ending.never_began => Advice::new(NeedsYou, again(ending, &name)),
        (_, Ended::Error, BUILD) => Advice::new(NeedsYou, logs(&name, ending.run)).then(again(ending, &name)),
        (_, Ended::Replan | Ended::Empty | Ended::Blocked | Ended::Error, _) => Advice::new(NeedsYou, None),
    }
}

/// What to do about a loop whose agent does not have the model: another one that it has.
fn other_model(ending: &Ending<'_>, name: &str) -> Advice {
    let again = |model: &str| {
        let flag = format!("--model {model}");
        match ending.verb {
            BUILD => Some(build_one(name, Some(flag))),
            _ if ending.run.is_some() => None,
            _ => Some(format!("ralph resume {name} {flag}")),
        }
    };
    let known = preset_of(ending.agent);
    match known.map(|known| (known.ladder, known.list_models)) {
        Some(([others @ .., largest], _)) => {
            let others = format!("or with one of {}", others.join(", "));
            let command = again(largest).unwrap_or_else(|| logs(name, ending.run));
            Advice::new(Group::NeedsYou, command).then(others)
        }
        Some(([], list)) if !list.is_empty() => {
            Advice::new(Group::NeedsYou, list.to_owned()).then(again("MODEL"))
        }
        _ => Advice::new(Group::NeedsYou, logs(name, ending.run)).then(again("MODEL")),
    }
}

/// What to do about a loop that is done.
fn done(ending: &Ending<'_>, name: &str) -> Advice {
    use Group::{CanGoOn, NeedsYou, Over, ToMerge};
    let diff = || format!("ralph diff {}", ending.run.map_or_else(|| name.to_owned(), shell_word));
    let is_latest = ending.run.is_none();
    let is_proven = !ending.is_unchecked;
    match ending.verb {
        "plan" if is_latest => Advice::new(CanGoOn, "ralph build".to_owned()),
        "loop plan" if is_latest => Advice::new(CanGoOn, build(None)),
        "build" if ending.has_rest && is_latest => Advice::new(CanGoOn, "ralph build".to_owned()),
        BUILD => {
            let merge = match ending.goes_to {
                Some(GoesTo::Nowhere) => return Advice::new(Over, None),
                Some(GoesTo::PullRequest) => {
                    return Advice::new(if is_proven { ToMerge } else { NeedsYou }, None);
                }
                Some(GoesTo::Remote(command)) => Some(format!("{command} {name}")),
                Some(GoesTo::Here) => Some(format!("git merge {name}")),
                None => None,
            };
            match merge {
                Some(merge) if is_proven => Advice::new(ToMerge, merge),
                merge => Advice::new(if is_proven { ToMerge } else { NeedsYou }, diff()).then(merge),
            }
        }
        _ if !ending.has_work || is_job(ending.name) => Advice::new(Over, None),
        // Its name could mean another run by now.
        _ => Advice::new(if is_proven { ToMerge } else { NeedsYou }, diff()),
    }
}

/// The command with which a loop goes on; `None` if it has come to its end by itself.
pub(crate) fn goes_on(ending: &Ending<'_>) -> Option<String> {
    again(ending, &shell_word(ending.name))
}

/// The command with which a loop goes on that has not come to its end by itself, or has used up what it might.
fn again(ending: &Ending<'_>, name: &str) -> Option<String> {
    let Ending { verb, spent, .. } = *ending;
    let outcome = ending.outcome;
    let raised = || spent.and_then(|(tally, budget)| raised_budget(outcome?, tally, budget));
    if verb == BUILD {
        return Some(build_one(name, raised()));
    }
    if ending.run.is_some() {
        return None;
    }
    let resume = |flags: &str| format!("ralph resume {name}{flags}");
    match (outcome, ending.end.or(outcome.map(Outcome::ended))?) {
        // Without a longer wait the loop would end again at once.
        (Some(Outcome::LimitTooFar), _) => {
            Some(resume(&raised().map(|flags| format!(" {flags}")).unwrap_or_default()))
        }
        (Some(outcome), _) if Limit::that_ended(outcome).is_some() => {
            Some(resume(&format!(" {}", raised()?)))
        }
        (Some(outcome), _) if outcome.goes_on() || outcome == Outcome::Terminated => Some(resume("")),
        (Some(outcome), _) if !outcome.wants_more_iterations() => None,
        // As many iterations again.
        (Some(_), _) => {
            let (tally, _) = spent?;
            let begun = tally.ran().max(1);
            Some(resume(&format!(" --max-iterations {}", tally.iteration.saturating_add(begun))))
        }
        (None, Ended::Killed | Ended::Interrupted) => Some(resume("")),
        (None, _) => None,
    }
}

/// The command that builds this branch and no other.
fn build_one(name: &str, flags: Option<String>) -> String {
    build(Some(flags.map_or_else(|| name.to_owned(), |flags| format!("{name} {flags}"))))
}

/// The command that builds all branches that are open, with flags.
pub(crate) fn build(flags: Option<String>) -> String {
    flags.map_or_else(|| format!("ralph {BUILD}"), |flags| format!("ralph {BUILD} {flags}"))
}

/// The command that shows what the agent did last.
fn logs(name: &str, run: Option<&str>) -> String {
    let run = run.map(|run| format!(" --run {}", shell_word(run))).unwrap_or_default();
    format!("ralph logs {name} --agent{run}")
}

/// The flags with which a loop that has used its budget, or met a usage limit that lasts too long, can go on: twice the used
/// amount, of all loops that share it; `None` if it needs none.
pub(crate) fn raised_budget(outcome: Outcome, tally: &Tally, budget: Budget) -> Option<String> {
    if outcome == Outcome::LimitTooFar {
        return patient(tally, Utc::now());
    }
    let used = tally.used();
    let meant = Limit::ALL
        .into_iter()
        .filter(|limit| limit.ended(outcome))
        .filter_map(|limit| Some((limit, budget.get(limit)?)));
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

/// Twice an amount, in the form of a flag; `None` for a time that cannot be represented.
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

/// A wait until the usage limit ends, in whole minutes and one more; `None` if it has ended, or its end is unknown.
fn patient(tally: &Tally, now: DateTime<Utc>) -> Option<String> {
    let Last::Limited { reset } = tally.last else { return None };
    let left = (named_reset(reset, now)? - now).to_std().ok()?;
    let minutes = left.as_secs() / 60 + 2;
    Some(format!("--max-limit-wait {}", duration::format(Duration::from_secs(minutes * 60))))
}

/// An amount of money with cents, or without if it is whole dollars.
fn dollars(amount: f64) -> String {
    let cents = (amount * 100.0).ceil().max(1.0) / 100.0;
    format!("{cents:.2}").trim_end_matches(".00").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::budget::Spent;

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
        let spent = Tally {
            spent: Spent { cost_usd: Some(0.02), input_tokens: 10, ..Spent::default() },
            ..Tally::default()
        };
        let by_money = Some("ralph resume b --max-cost 0.04".to_owned());
        assert_eq!(next(Outcome::BudgetReached, &spent, money), by_money);
        // What is refuted is looked at before it is paid for again.
        let refuted = advice(&Ending {
            verb: "build",
            name: "b",
            outcome: Some(Outcome::BudgetUnproven),
            spent: Some((&spent, money)),
            ..Ending::default()
        });
        assert_eq!(refuted.command.as_deref(), Some("ralph logs b --agent"));
        assert!(refuted.then.unwrap().starts_with("ralph resume b --max-cost 0.04"));
        let spent = Tally {
            spent: Spent { cost_usd: Some(0.01), input_tokens: 60, ..Spent::default() },
            ..Tally::default()
        };
        let by_tokens = Some("ralph resume b --max-tokens 120".to_owned());
        assert_eq!(next(Outcome::BudgetReached, &spent, money), by_tokens);
        let by_others = Some("ralph resume b --max-cost 0.03 --max-tokens 100".to_owned());
        assert_eq!(next(Outcome::BudgetReached, &Tally::default(), money), by_others);
        let time = Budget { max_duration_seconds: Some(5400.0), ..Budget::default() };
        let spent = Tally { elapsed_seconds: 5400.2, ..Tally::default() };
        let longer = Some("ralph resume b --max-duration 3h".to_owned());
        assert_eq!(next(Outcome::DurationReached, &spent, time), longer);
        // Without a limit there is nothing to double.
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
            let is_quiet = matches!(outcome.ended(), Ended::Done | Ended::Cancelled | Ended::Killed)
                || matches!(
                    outcome,
                    Outcome::PromptLost
                        | Outcome::GraphLost
                        | Outcome::GitFailed
                        | Outcome::StoreAway
                        | Outcome::StoreRefused
                );
            let (spent, outcome) = (Some((&tally, budget)), Some(outcome));
            let ending = Ending { verb: "build", name: "build", outcome, spent, ..Ending::default() };
            assert_eq!(next_step(&ending).is_none(), is_quiet, "{outcome:?}");
            let ending = Ending { verb: BUILD, ..ending };
            let next = next_step(&ending).unwrap();
            let is_paid_again = next.starts_with("ralph loop build") || next.starts_with("ralph resume");
            let ends = [Ended::Unproven, Ended::Idle, Ended::Failed];
            let must_not =
                outcome.is_some_and(|one| ends.contains(&one.ended()) || one == Outcome::NotLoggedIn);
            assert!(!(is_paid_again && must_not), "{outcome:?}: {next}");
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
        assert_eq!(branch(Some(GoesTo::Remote("gh pr create --head"))), "gh pr create --head 'my loop'");
        assert_eq!(branch(Some(GoesTo::Here)), "git merge 'my loop'");
        assert_eq!(branch(None), "ralph diff 'my loop'");
        let unchecked = Ending { is_unchecked: true, goes_to: Some(GoesTo::Here), ..done(BUILD) };
        let unchecked = advice(&unchecked);
        assert_eq!(
            (unchecked.group, unchecked.then.as_deref()),
            (Group::NeedsYou, Some("git merge 'my loop'"))
        );
        assert_eq!(unchecked.command.as_deref(), Some("ralph diff 'my loop'"), "nobody has looked at it");
    }

    #[test]
    fn a_login_that_is_missing_is_made_by_the_agents_own_command() {
        let outcome = Some(Outcome::NotLoggedIn);
        let logged_out = Ending { verb: "build", name: "b", outcome, agent: "codex", ..Ending::default() };
        let advice = advice(&logged_out);
        assert_eq!(advice.command.as_deref(), Some("codex login"));
        assert_eq!((advice.group, advice.then.as_deref()), (Group::NeedsYou, Some("ralph resume b")));
    }

    #[test]
    fn another_model_is_named_as_far_as_they_are_known() {
        let advice = |agent, verb| {
            let outcome = Some(Outcome::NoModel);
            let Advice { command, then, .. } =
                advice(&Ending { verb, name: "b", outcome, agent, ..Ending::default() });
            (command.unwrap_or_default(), then.unwrap_or_default())
        };
        let own = ("ralph resume b --model opus".to_owned(), "or with one of haiku, sonnet".to_owned());
        assert_eq!(advice("claude", "build"), own);
        let of_branch = ("opencode models".to_owned(), "ralph loop build b --model MODEL".to_owned());
        assert_eq!(advice("opencode", BUILD), of_branch);
        let unknown = ("ralph logs b --agent".to_owned(), "ralph resume b --model MODEL".to_owned());
        assert_eq!(advice("codex", "build"), unknown);
    }

    #[test]
    fn who_was_killed_goes_on_unless_it_has_begun_again() {
        let killed = Ending { verb: "build", name: "b", end: Some(Ended::Killed), ..Ending::default() };
        assert_eq!(next_step(&killed).as_deref(), Some("ralph resume b"));
        assert_eq!(next_step(&Ending { run: Some("r"), ..killed }), None);
        let queued = Ending { verb: BUILD, name: "b", ..Ending::default() };
        assert_eq!(next_step(&queued).as_deref(), Some("ralph loop build b"));
        let broken = Ending { end: Some(Ended::Error), ..queued };
        assert_eq!(next_step(&broken).as_deref(), Some("ralph logs b --agent"));
        let never_began = Ending { never_began: true, ..broken };
        assert_eq!(next_step(&never_began).as_deref(), Some("ralph loop build b"), "it has no log");
    }
}
