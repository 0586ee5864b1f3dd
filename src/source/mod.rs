//! The kinds of [`Source`](crate::engine::source::Source): one file each.

pub(crate) mod authoring;
pub(crate) mod branch;
pub(crate) mod inspection;
pub(crate) mod plan_there;
pub(crate) mod planning;
pub(crate) mod prompt_file;
mod pushing;
pub(crate) mod ralph_md;
pub(crate) mod tasks;
pub(crate) mod worker;

use crate::engine::outcome::{End, Outcome};
use crate::graph::GraphError;

impl From<GraphError> for End {
    /// A failed graph ends the loop.
    fn from(error: GraphError) -> Self {
        let outcome = if error.is_loss() { Outcome::GraphLost } else { Outcome::RecordFailed };
        Self::because(outcome, error.to_string())
    }
}
