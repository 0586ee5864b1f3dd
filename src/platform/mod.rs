//! What the kernel says of processes, and what it does for us besides what POSIX has.
//!
//! Nothing outside of this module names `/proc`, a subreaper, inotify or `O_PATH`: a test holds that. What differs
//! between kernels is in [`calls`], one file each. Above them are two ways to keep hold of processes, and [`backend`]
//! says which one is in force.

pub mod backend;
pub mod calls;
pub mod family;
pub mod handle;
pub mod home;
pub mod identity;
pub mod mark;
pub mod passing;
pub mod ready;
pub mod socket;
pub mod sockets;
pub mod stat;
pub mod tree;
