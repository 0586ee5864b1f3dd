//! The message about a fact: its moment, the fact as a line for programs, and a short text for users.

use chrono::{DateTime, Local, Utc};
use serde::{Deserialize, Serialize};

use crate::engine::budget::Budget;
use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::fact::{Fact, LoopEnded};
use crate::engine::outcome::{Ended, Outcome, Status};
use crate::engine::validation::Standing;
use crate::record::event_line::{line_of, to_line};
use crate::settings::notify::Moment;
use crate::tell::words;
use crate::text::count;
use crate::text::hidden::revealed;
use crate::text::line::{one_line_within, shell_word};
use crate::text::timestamp;
use crate::view::next_step::{Ending, next_step};

/// Foreign texts are cut to this, in characters.
const LONGEST: usize = 300;

/// A message for the targets and for the outbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Message {
    /// Unique, so that a receiver can detect duplicates.
    pub(super) id: String,
    /// When it happened.
    pub(super) at: DateTime<Utc>,
    /// Its moment.
    pub(super) moment: Moment,
    /// The loop and its project.
    pub(super) title: String,
    /// A text for users of a few lines.
    pub(super) text: String,
    /// The event line for programs, with its newline.
    pub(super) line: String,
    /// The run.
    pub(super) run: String,
}

/// The results of many loops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    /// Done loops.
    pub(crate) done: usize,
    /// Failed loops.
    pub(crate) failed: usize,
    /// All loops.
    pub(crate) total: usize,
    /// The exit code of the whole run.
    pub(crate) exit_code: u8,
}

/// The moment of a fact; `None` for most facts.
pub(super) fn moment(stamped: &Stamped<'_>) -> Option<Moment> {
    match stamped.fact {
        Fact::LoopEnded(_) => match stamped.outcome()? {
            // Its agent continues by itself.
            Outcome::Detached => None,
            outcome if outcome.status() == Status::Failed => Some(Moment::Failure),
            _ => Some(Moment::End),
        },
        Fact::Waiting { .. } => Some(Moment::Waiting),
        Fact::NeedsAttention { .. } | Fact::Question { .. } => Some(Moment::Attention),
        _ => None,
    }
}

impl Message {
    /// The message about a fact of a loop that a verb has started with a budget.
    pub(super) fn of(project: &str, started: (&str, Budget), moment: Moment, stamped: &Stamped<'_>) -> Self {
        let LoopIdentity { name, run, .. } = stamped.identity;
        Self {
            id: id(stamped.at, run),
            at: stamped.at.to_utc(),
            moment,
            title: title(project),
            text: revealed(&text(started, name, stamped)).into_owned(),
            line: line_of(stamped),
            run: run.clone(),
        }
    }

    /// The message about the end of many loops.
    pub(super) fn of_many(project: &str, identity: &LoopIdentity, line: &str, counts: Counts) -> Self {
        let Counts { done, failed, total, exit_code } = counts;
        let now = Local::now();
        let (sign, moment) = if exit_code == 0 { ("✓", Moment::End) } else { ("✗", Moment::Failure) };
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        Self {
            id: id(now, &identity.run),
            at: now.to_utc(),
            moment,
            title: title(project),
            text: format!(
                "{sign} {}: {done} of {total} done{failed}\nnext: ralph report",
                revealed(&identity.name)
            ),
            line: line.to_owned(),
            run: identity.run.clone(),
        }
    }

    /// A test message.
    pub(super) fn test(project: &str) -> Self {
        let now = Local::now();
        let word = |text: &str| text.to_owned();
        let identity =
            LoopIdentity { run: word("test"), name: word("test"), mode: word("test"), agent: word("none") };
        let said = "this is a test of ralph notify; all is well";
        Self {
            id: id(now, "test"),
            at: now.to_utc(),
            moment: Moment::End,
            title: title(project),
            text: said.to_owned(),
            line: to_line(now, &identity, &Fact::notice(said)),
            run: identity.run,
        }
    }
}

fn title(project: &str) -> String {
    format!("ralph in {}", revealed(project))
}

fn id(at: DateTime<Local>, run: &str) -> String {
    format!("{}-{run}", timestamp::exact(at.to_utc()))
}

fn text((verb, budget): (&str, Budget), name: &str, stamped: &Stamped<'_>) -> String {
    let name = one_line_within(name, LONGEST);
    match stamped.fact {
        Fact::LoopEnded(ended) => {
            let Some(outcome) = stamped.outcome() else { return name };
            let next = next_step(&Ending {
                verb,
                name: &name,
                outcome: Some(outcome),
                has_rest: ended.detail.is_some(),
                has_work: ended.work.is_some(),
                spent: Some((stamped.tally, budget)),
                agent: &stamped.identity.agent,
                is_unchecked: ended.proof.as_ref().is_some_and(|proof| proof.standing != Standing::Proven),
                ..Ending::default()
            });
            // What refutes it is why it has ended.
            let proof = ended.proof.as_ref().filter(|proof| proof.standing != Standing::Refuted);
            let proof = proof.map(|proof| one_line_within(&words::proof(proof).text, LONGEST));
            let proof = proof.map(|proof| format!("\n{proof}")).unwrap_or_default();
            let why = ended.detail.as_deref().or_else(|| of_outcome(outcome));
            let why = why.map(|why| format!("\n{}", one_line_within(why, LONGEST)));
            let next = next.map(|next| format!("\nnext: {next}"));
            let word = outcome.ended().word();
            let (_, sign) = words::sign(word, ended.proof.as_ref());
            let facts = facts(ended);
            format!(
                "{sign} {name} {word}: {facts}{proof}{}{}",
                why.unwrap_or_default(),
                next.unwrap_or_default()
            )
        }
        Fact::Waiting { .. } => {
            let waiting = words::waiting(stamped.fact, stamped.at).unwrap_or_default();
            if words::is_for_store(&waiting) {
                return format!("⏸ {name}: {waiting}");
            }
            format!("⏸ {name}: {waiting}\nnext: ralph resume {}", shell_word(&name))
        }
        Fact::NeedsAttention { screen } => {
            let screen = one_line_within(screen.trim(), LONGEST);
            format!("! {name} wants a person: {screen}\nnext: ralph attach {}", shell_word(&name))
        }
        Fact::Question { text } => {
            format!("? {name} asks at its terminal: {}", one_line_within(text.trim(), LONGEST))
        }
        _ => name,
    }
}

/// Why a loop has ended, unless it succeeded.
fn of_outcome(outcome: Outcome) -> Option<&'static str> {
    (outcome.ended() != Ended::Done).then(|| outcome.reason())
}

fn facts(ended: &LoopEnded<'_>) -> String {
    let mut facts = vec![count::of(ended.iterations, "iteration")];
    facts.extend(count::money(ended.cost_usd));
    if let Some(work) = ended.work.as_ref().filter(|work| work.commits > 0) {
        facts.push(count::of(work.commits, "commit"));
    }
    facts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::budget::Spent;
    use crate::engine::tally::Tally;
    use crate::engine::worktree::WorkDone;

    fn stamped<T>(tally: &Tally, fact: &Fact<'_>, take: impl FnOnce(&Stamped<'_>) -> T) -> T {
        let [run, name, mode, agent] = ["r", "fix-a", "build", "claude"].map(str::to_owned);
        let identity = LoopIdentity { run, name, mode, agent };
        take(&Stamped::new(Local::now(), &identity, tally, fact))
    }

    fn told(outcome: Outcome, detail: Option<&str>) -> String {
        let tally = Tally {
            iteration: 3,
            spent: Spent { cost_usd: Some(1.2), ..Spent::default() },
            ..Tally::default()
        };
        let from = Some("0123456789abcdef".into());
        let work = WorkDone { commits: 5, deletions: 0, files: 1, from, insertions: 1 };
        let fact = Fact::loop_ended(outcome, detail, &tally, Duration::from_secs(1), Some(work));
        stamped(&tally, &fact, |stamped| text(("build", Budget::default()), "fix-a", stamped))
    }

    #[test]
    fn an_end_is_told_in_a_few_lines() {
        let done = "✓ fix-a done: 3 iterations, $1.20, 5 commits\nunchecked: the agent's word\nnext: ralph diff fix-a";
        assert_eq!(told(Outcome::Complete, None), done);
        let failed =
            "✗ fix-a failed: 3 iterations, $1.20, 5 commits\nboom bang\nnext: ralph logs fix-a --agent";
        assert_eq!(told(Outcome::AgentFailed, Some("boom\nbang")), failed);
        let limit = told(Outcome::MaxIterations, None);
        assert!(
            limit.starts_with("■ fix-a limit: ") && limit.contains("\nmax iterations reached\n"),
            "{limit}"
        );
    }

    #[test]
    fn most_facts_are_no_moment() {
        let moment = |fact| stamped(&Tally::default(), &fact, moment);
        assert_eq!(moment(Fact::Paused), None);
        assert_eq!(moment(Fact::AttentionOver), None);
        assert_eq!(moment(Fact::Question { text: "?".into() }), Some(Moment::Attention));
    }
}
