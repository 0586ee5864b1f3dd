//! Text for users: the one form in which the program writes durations, times, lists or long texts. Knows nothing of
//! ralph.

pub(crate) mod bytes;
pub(crate) mod count;
pub(crate) mod digest;
pub(crate) mod duration;
pub mod foreign;
pub mod halves;
pub(crate) mod head_and_tail;
pub(crate) mod hidden;
pub(crate) mod issue_words;
pub(crate) mod jitter;
pub(crate) mod line;
pub(crate) mod list;
pub(crate) mod nearest;
pub(crate) mod palette;
pub mod pauses;
pub mod place;
pub mod redact;
pub(crate) mod references;
pub(crate) mod secret;
pub(crate) mod telling;
pub(crate) mod terminal;
pub mod texts;
pub(crate) mod timestamp;
pub(crate) mod wrap;
