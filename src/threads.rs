//! Threads are started here, so that a machine without room for one more is told as an error and not as a panic.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Starts a thread of its own for `work`.
///
/// # Errors
/// When the system has no room for it: the limit of processes, or memory.
pub(crate) fn start<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().spawn(work).map_err(|error| told(&error))
}

/// The same within a scope.
///
/// # Errors
/// The same.
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
