//! What both sides of the walls know: the hidden verb, and the parts of the folder of a program.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// The hidden verb that builds the walls.
pub const VERB: &str = "__inside";
/// Its exit code where the program was not started.
pub(super) const NOT_BUILT: i32 = 125;

/// The plan as JSON.
pub(super) const PLAN: &str = "plan.json";
/// The tops of layers, by their numbers.
pub(super) const LAYERS: &str = "layers";
/// The fresh folders, by their numbers.
pub(super) const FRESH: &str = "fresh";
/// What stands in the place of what is hidden.
pub(super) const MASKS: &str = "masks";

/// The socket through which the program hands over what it connects to.
pub(super) const WAY_OUT: &str = "way-out";

/// One of several, by its number.
pub(super) fn numbered(folder: &Path, part: &str, at: usize) -> PathBuf {
    folder.join(part).join(at.to_string())
}

/// An error that says what it is about.
pub(super) fn named(what: impl Display, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
