//! What is told of an event: which moment it is, the event as a line for programs, and a short text for people.

use chrono::{DateTime, Local, Utc};
use serde::{Deserialize, Serialize};

use crate::engine::event::{Event, LoopIdentity, Stamped};
use crate::engine::outcome::{Ended, Outcome, Status};
use crate::engine::policy::Budget;
use crate::engine::tally::Tally;
use crate::engine::worktree::WorkDone;
use crate::record::event_json::{to_line, to_lines};
use crate::record::event_line::Fact;
use crate::settings::notify::Moment;
use crate::text::count;
use crate::text::hidden::revealed;
use crate::text::line::one_line_within;
use crate::text::timestamp;
use crate::view::next_step::{Ending, next_step, shell_word};
use crate::view::report::sign;

/// A text of others is cut to this, in characters.
const LONGEST: usize = 300;

/// A message as it goes to the targets, and as it waits in the outbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Message {
    /// Unique, so that who gets it twice can tell.
    pub(super) id: String,
    /// When it happened.
    pub(super) at: DateTime<Utc>,
    /// What it is about.
    pub(super) moment: Moment,
    /// Which loop of which project.
    pub(super) title: String,
    /// For people; a few lines.
    pub(super) text: String,
    /// For programs: the event line, with its newline.
    pub(super) line: String,
    /// The run that it is about.
    pub(super) run: String,
}

/// What many loops came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    /// Those that are done.
    pub(crate) done: usize,
    /// Those that have failed.
    pub(crate) failed: usize,
    /// All.
    pub(crate) total: usize,
    /// Of the run as a whole.
    pub(crate) exit_code: u8,
}

/// Which moment an event is; `None` for most.
pub(super) fn moment(event: &Event<'_>) -> Option<Moment> {
    match event {
        // It works on by itself.
        Event::LoopEnded { outcome: Outcome::Detached, .. } => None,
        Event::LoopEnded { outcome, .. } if outcome.status() == Status::Failed => Some(Moment::Failure),
        Event::LoopEnded { .. } => Some(Moment::End),
        Event::Waiting { .. } => Some(Moment::Waiting),
        Event::Attention(Some(_)) | Event::Question(_) => Some(Moment::Attention),
        _ => None,
    }
}

impl Message {
    /// What is told of an event of a loop that a verb has started with a budget.
    pub(super) fn of(project: &str, started: (&str, Budget), moment: Moment, stamped: &Stamped<'_>) -> Self {
        let LoopIdentity { name, run, .. } = stamped.identity;
        Self {
            id: id(stamped.at, run),
            at: stamped.at.to_utc(),
            moment,
            title: title(project),
            text: revealed(&text(started, name, &stamped.event)).into_owned(),
            line: to_lines(stamped),
            run: run.clone(),
        }
    }

    /// What is told of the end of many loops.
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

    /// A message that says nothing.
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
            line: to_line(now, &identity, Fact::Notice { message: said.into() }),
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

fn text((verb, budget): (&str, Budget), name: &str, event: &Event<'_>) -> String {
    let name = one_line_within(name, LONGEST);
    match event {
        Event::LoopEnded { outcome, detail, tally, work, .. } => {
            let next = next_step(&Ending {
                verb,
                name: &name,
                outcome: Some(*outcome),
                has_rest: detail.is_some(),
                has_work: work.is_some(),
                spent: Some((tally, budget)),
                ..Ending::default()
            });
            let why = detail.map(str::to_owned).or_else(|| of_outcome(*outcome));
            let why = why.map(|why| format!("\n{}", one_line_within(&why, LONGEST)));
            let next = next.map(|next| format!("\nnext: {next}"));
            let word = outcome.ended().word();
            let (_, sign) = sign(word);
            let facts = facts(tally, *work);
            format!("{sign} {name} {word}: {facts}{}{}", why.unwrap_or_default(), next.unwrap_or_default())
        }
        Event::Waiting { shortage: Some(shortage), .. } => {
            format!("⏸ {name} waits for room: {shortage}\nnext: ralph resume {}", shell_word(&name))
        }
        Event::Waiting { until, tally, shortage: None } => {
            let what = if tally.waits_for_provider() { "its overloaded provider" } else { "its usage limit" };
            let until = timestamp::nearby(&until.with_timezone(&Local), Local::now());
            format!("⏸ {name} waits for {what} until {until}\nnext: ralph resume {}", shell_word(&name))
        }
        Event::Attention(screen) => {
            let screen = one_line_within(screen.unwrap_or_default().trim(), LONGEST);
            format!("! {name} wants a person: {screen}\nnext: ralph attach {}", shell_word(&name))
        }
        Event::Question(question) => {
            format!("? {name} asks at its terminal: {}", one_line_within(question.trim(), LONGEST))
        }
        _ => name,
    }
}

/// Why a loop has ended, where that is not what everybody hopes for.
fn of_outcome(outcome: Outcome) -> Option<String> {
    (outcome.ended() != Ended::Done).then(|| outcome.reason().to_owned())
}

fn facts(tally: &Tally, work: Option<&WorkDone>) -> String {
    let mut facts = vec![count::of(tally.ran(), "iteration")];
    if let Some(cost) = tally.cost_usd.filter(|cost| *cost > 0.0) {
        facts.push(format!("${cost:.2}"));
    }
    if let Some(work) = work.filter(|work| work.commits > 0) {
        facts.push(count::of(work.commits, "commit"));
    }
    facts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn told(outcome: Outcome, detail: Option<&str>) -> String {
        let tally = Tally { iteration: 3, cost_usd: Some(1.2), ..Tally::default() };
        let work = WorkDone {
            from: Some("0123456789abcdef".into()),
            commits: 5,
            files: 1,
            insertions: 1,
            deletions: 0,
        };
        let event = Event::LoopEnded {
            outcome,
            detail,
            tally: &tally,
            duration: Duration::from_secs(1),
            work: Some(&work),
        };
        text(("build", Budget::default()), "fix-a", &event)
    }

    #[test]
    fn an_end_is_told_in_a_few_lines() {
        let done = "✓ fix-a done: 3 iterations, $1.20, 5 commits\nnext: ralph diff fix-a";
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
    fn most_events_are_no_moment() {
        assert_eq!(moment(&Event::Paused { tally: &Tally::default() }), None);
        assert_eq!(moment(&Event::Attention(None)), None);
        assert_eq!(moment(&Event::Question("?")), Some(Moment::Attention));
    }
}
