//! What a person or a program sees of a running loop: a pure render of its events, and the one thread that
//! writes to the terminal.

pub mod console;
pub mod json;
pub mod plain;
