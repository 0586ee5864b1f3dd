//! What is told of loops: each fact in words, once, and the blocks of the session log. Views, records and notices put frames
//! around these words. What is known of a loop while it runs is one fold.

pub(crate) mod blocks;
pub(crate) mod seen;
pub(crate) mod words;
