//! Pushes a branch to its remote.

use std::path::Path;
use std::time::Duration;

use crate::engine::context::Context;
use crate::engine::fact::Fact;
use crate::engine::outcome::End;
use crate::engine::stop::Urgency;
use crate::git;
use crate::git::identity::CommitIdentity;
use crate::git::remote::Remote;
use crate::process::OUT_OF_SIGHT;
use crate::process::capture::{Captured, Ended};
use crate::process::supervised::StartError;
use crate::side_command::{self, Bounds};
use crate::text::duration;

/// The time limit of a push.
const PUSH_LIMIT: Duration = Duration::from_mins(5);
/// How many bytes of each output of a program are kept.
pub(super) const ROOM: usize = 64 * 1024;

/// Why something was not published.
#[derive(Debug)]
pub(super) enum Unpublished {
    /// It is not possible here; the branch counts as built all the same.
    Impossible(String),
    /// It failed.
    Wrong(String),
    /// It was interrupted, because the loop has to end now.
    Cut,
}

/// Pushes the branch of the work tree `tree` to the one of the same name, and reports it.
///
/// # Errors
/// If the loop cannot continue. A failed push is no such error.
pub(super) fn push_branch(
    tree: &Path,
    remote: &Remote,
    branch: &str,
    identity: &CommitIdentity,
    context: &mut Context<'_>,
) -> Result<Result<(), Unpublished>, End> {
    let launch = git::remote::push(tree, remote, branch, identity);
    let captured = side_command::run(&launch, bounds(PUSH_LIMIT), context)?;
    Ok(match outcome(captured, PUSH_LIMIT) {
        Ok((0, _, _)) => {
            let message = format!("pushed to {}/{branch}", remote.name);
            context.tell(Fact::Published { message: message.into() })?;
            Ok(())
        }
        Ok((_, stdout, stderr)) => Err(Unpublished::Wrong(git::remote::why_refused(&stdout, &stderr))),
        Err(failure) => Err(failure),
    })
}

/// Only the second Ctrl+C ends it.
pub(super) fn bounds(limit: Duration) -> Bounds {
    Bounds { limit, room: ROOM, cut_at: Urgency::Now }
}

/// Exit code, stdout and stderr of a program that ended by itself; otherwise what happened.
pub(super) fn outcome(
    captured: Result<Captured, StartError>,
    limit: Duration,
) -> Result<(i32, String, String), Unpublished> {
    let captured = captured.map_err(|error| Unpublished::Wrong(error.to_string()))?;
    match captured.end {
        Ended::Exited(code) => Ok((code, captured.stdout.text(), captured.stderr.text())),
        Ended::Signaled(signal) => Err(Unpublished::Wrong(format!("it was ended by signal {signal}"))),
        Ended::OutOfSight => Err(Unpublished::Wrong(format!("it was ended, because {OUT_OF_SIGHT}"))),
        Ended::TimedOut => {
            Err(Unpublished::Wrong(format!("it did not end within {}", duration::format(limit))))
        }
        Ended::Cancelled => Err(Unpublished::Cut),
    }
}
