//! What is told of loops: each fact in words, once, and the blocks of the session log. Views, records and notices put frames
//! around these words.

pub(crate) mod blocks;
pub(crate) mod words;
