//! Walls around a program and all that it starts: what it can write, read and connect to. A hidden verb of ours builds them out of
//! namespaces of the kernel, Landlock and seccomp, and becomes the program: nothing stays between, so that its process, exit code and
//! signals are what they are without walls.

#[cfg(target_os = "linux")]
mod calls;
mod enclosure;
mod free_folders;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod loopback;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(not(target_os = "linux"))]
mod nowhere;
mod overheard;
mod parts;
mod plan;
mod proxy;
mod reach;
mod request;
mod way_out;

pub use enclosure::{Enclosure, Inside};
#[cfg(target_os = "linux")]
pub use inside::main;
#[cfg(not(target_os = "linux"))]
pub use nowhere::main;
pub use overheard::{Overheard, TurnedAway};
pub use parts::VERB;
pub use plan::{Held, Layer, Plan, depth};
pub use reach::{Host, Reach};
pub use way_out::{MOST as MOST_WAYS, PROXIES};
