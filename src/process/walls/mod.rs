//! Walls around a program and all that it starts: what it can write, read and connect to. A hidden verb of ours builds them out of
//! namespaces of the kernel, Landlock and seccomp, and becomes the program: nothing stays between, so that its process, exit code and
//! signals are what they are without walls.

mod calls;
mod enclosure;
mod inside;
mod loopback;
mod mounts;
mod parts;
mod plan;

pub use enclosure::{Enclosure, Inside};
pub use inside::main;
pub use parts::VERB;
pub use plan::{Layer, Plan};
