//! Starts threads, and returns an error instead of a panic if the system has no resources for another one.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Starts a thread for `work`.
///
/// # Errors
/// If the system lacks resources for it: the limit of processes, or memory.
pub(crate) fn start<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().spawn(work).map_err(|error| told(&error))
}

/// Starts a thread for `work` within a scope.
///
/// # Errors
/// As for [`start`].
pub(crate) fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(|error| told(&error))
}

fn told(error: &io::Error) -> io::Error {
    let text =
        format!("cannot start a thread: {error}: raise the limit of processes ('ulimit -u') or free memory");
    io::Error::new(error.kind(), text)
}
