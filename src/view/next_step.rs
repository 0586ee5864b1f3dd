//! What to type next when a loop has ended.

use crate::engine::outcome::{Ended, Outcome};
use crate::engine::tally::Tally;

/// The next command after a loop of that name which a verb has started, as one would type it; `None` where there is nothing
/// to go on with. `from` is the commit that it began at.
pub(crate) fn next_step(
    verb: &str,
    name: &str,
    outcome: Outcome,
    tally: &Tally,
    from: Option<&str>,
) -> Option<String> {
    let name = shell_word(name);
    let begun = tally.iteration.saturating_sub(tally.allowance_from);
    Some(match (outcome, outcome.ended(), verb) {
        (_, Ended::Done, "plan") => "ralph build".to_owned(),
        (_, Ended::Done, "loop plan") => "ralph loop build".to_owned(),
        (_, Ended::Done, _) => {
            let from = from?;
            format!("git diff {}", from.get(..12).unwrap_or(from))
        }
        (Outcome::LimitTooFar, ..) | (_, Ended::Interrupted, _) => format!("ralph resume {name}"),
        (_, Ended::Limit, _) => format!("ralph resume {name} --max-iterations {}", begun.saturating_mul(2)),
        (Outcome::DurationReached, ..) => {
            "the same command with --resume and a higher --max-duration".to_owned()
        }
        (_, Ended::Budget, _) => {
            "the same command with --resume and a higher limit of money or tokens".to_owned()
        }
        (_, Ended::Replan, "loop plan" | "loop build") => "ralph loop plan".to_owned(),
        (Outcome::NoTasks, ..) => "ralph task add TITLE".to_owned(),
        (_, Ended::Replan | Ended::Empty, _) => "ralph plan".to_owned(),
        (_, Ended::Blocked, _) => "ralph task list".to_owned(),
        (_, Ended::Unproven, _) => {
            format!("ralph resume {name} --max-iterations {}", begun.saturating_mul(2))
        }
        (Outcome::NotLoggedIn | Outcome::AgentMissing, ..) => "ralph doctor".to_owned(),
        (_, Ended::Failed, _) | (Outcome::OutOfCredit | Outcome::Overloaded, ..) => {
            format!("ralph logs {name} --agent")
        }
        // What else went wrong says what to do.
        (_, Ended::Idle | Ended::Cancelled | Ended::Killed | Ended::Error, _) => return None,
    })
}

/// A name as one would write it for a shell.
pub(crate) fn shell_word(name: &str) -> String {
    shlex::try_quote(name).map_or_else(|_| name.to_owned(), std::borrow::Cow::into_owned)
}
