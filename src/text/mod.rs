//! Text for people: each form in which the program writes a duration, a time, a list or a long text, once. Knows nothing
//! of ralph.

pub mod duration;
pub mod head_and_tail;
pub mod jitter;
pub mod line;
pub mod list;
pub mod nearest;
pub mod timestamp;
