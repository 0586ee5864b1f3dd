//! All calls of git.
//!
//! [`crate::project`] decides which repository is used: the variables with which git, in a hook or in `git rebase
//! --exec`, points its children at another repository or index are cleared. The user's configuration (`GIT_CONFIG_*`)
//! stays. git never asks a question here, never waits for input and never outlives its time limit.

mod call;
pub mod change;
mod changes;
mod checkout;
pub mod clean_tree;
pub mod clearing;
pub mod comments;
pub mod commits;
pub mod contents;
mod error;
mod exclude;
pub mod forge;
pub mod guard;
mod half_made;
mod head_file;
pub mod identity;
pub mod keep;
pub mod landing;
pub mod left_locks;
pub mod nested;
mod progress;
pub(crate) mod publish;
pub mod pull_request;
pub mod range;
pub mod refs;
pub mod remote;
pub mod remove;
pub mod repository;
pub mod revert;
pub mod save;
pub mod trees;
mod uncommitted;
pub mod worktrees;

pub use changes::{Changed, changed_since, changes, touched, uncommitted};
pub use error::GitError;
pub use exclude::{exclude, keep_plan_out, litter, runtime_patterns};
pub use repository::{
    OLDEST, OLDEST_TO_LAND, common_dir, git_dir, git_version, head, is_tracked, require_version, unless_older,
};

#[cfg(test)]
pub(crate) mod tests;
