//! Walls around a program and all that it starts: what it can write, read and connect to. A hidden verb of ours builds them out of
//! namespaces of the kernel, Landlock and seccomp, and becomes the program: nothing stays between, so that its process, exit code and
//! signals are what they are without walls.

mod calls;
mod enclosure;
mod free_folders;
mod inside;
mod loopback;
mod mounts;
mod overheard;
mod parts;
mod plan;
mod proxy;
mod reach;
mod request;
mod way_out;

pub use enclosure::{Enclosure, Inside};
pub use inside::main;
pub use overheard::{Overheard, TurnedAway};
pub use parts::VERB;
pub use plan::{Held, Layer, Plan, depth};
pub use reach::{Host, Reach};
pub use way_out::{MOST as MOST_WAYS, PROXIES};
