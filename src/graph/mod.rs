//! The graph of tasks: what there is to do, what waits for what, who is at work on it.
//!
//! [`transitions`] decides, purely, which states a task may have; a [`Store`] keeps tasks and makes every operation one
//! transaction; [`sqlite`] is the store of one machine.

mod error;
mod feature;
mod holder;
pub mod import;
mod limits;
mod seal;
pub mod sound;
pub mod sqlite;
mod store;
#[cfg(test)]
mod suite;
mod task;
pub mod transitions;

pub use error::GraphError;
pub use feature::{Counts, Feature, FeatureStatus};
pub use holder::Holder;
pub use limits::feature as check_feature_name;
pub use seal::Key;
pub use store::{
    Changes, Claim, Ended, HowDone, Imported, JournalQuery, NewTask, Part, Place, Retries, Scope, Selection,
    Store, Stuck, Unbooked, Words,
};
pub use task::{Details, LogLine, Status, Task, Verification};
