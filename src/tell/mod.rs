//! The wording of facts about loops, once for each fact, and the blocks of the session log. Views, records and
//! notices add their frames. `seen` folds the facts of a running loop.

pub(crate) mod blocks;
pub(crate) mod group;
pub(crate) mod seen;
pub(crate) mod words;
