//! Pushes a branch to its remote.

use std::path::Path;
use std::time::Duration;

use crate::engine::context::Context;
use crate::engine::fact::Fact;
use crate::engine::outcome::End;
use crate::engine::stop::Urgency;
use crate::git;
use crate::git::identity::CommitIdentity;
use crate::git::publish::{PUSH_LIMIT, ROOM, Unpublished, pushed};
use crate::git::remote::Remote;
use crate::side_command::{self, Bounds};

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
    let from = format!("refs/heads/{branch}");
    let launch = git::remote::push(tree, remote, (&from, branch), identity);
    let captured = side_command::run(&launch, bounds(PUSH_LIMIT), context)?;
    let pushed = pushed(captured);
    if pushed.is_ok() {
        let message = format!("pushed to {}/{branch}", remote.name);
        context.tell(Fact::Published { message: message.into() })?;
    }
    Ok(pushed)
}

/// Only the second Ctrl+C ends it.
pub(super) fn bounds(limit: Duration) -> Bounds {
    Bounds { limit, room: ROOM, cut_at: Urgency::Now }
}
