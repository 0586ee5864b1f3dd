//! The graph of tasks: the tasks, their dependencies and their claims.
//!
//! [`transitions`] decides which states a task can have, without I/O; a [`Store`] keeps tasks and makes every
//! operation one transaction; [`sqlite`] is the store of one machine, [`postgres`] that of many.

mod error;
mod feature;
mod holder;
pub mod import;
pub mod landing;
mod limits;
mod patience;
pub mod postgres;
mod seal;
pub mod sound;
mod sql;
pub mod sqlite;
mod store;
#[cfg(test)]
mod suite;
mod task;
pub mod transitions;

pub use error::GraphError;
pub use feature::{Counts, Feature, FeatureStatus};
pub use holder::Holder;
pub use landing::{AtGate, Landing, Lead, Made, Standing};
pub use limits::feature as check_feature_name;
pub use patience::Patience;
pub use seal::Key;
pub use store::{
    Changes, Claim, Ended, HowDone, Imported, IssueTask, JournalQuery, NewTask, Part, Retries, Scope,
    Selection, Store, Stuck, TreePosition, Unbooked, Words,
};
pub use task::{Details, LogLine, Status, Task, Verification};
