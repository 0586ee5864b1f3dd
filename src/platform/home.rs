//! Folders of the user.

use std::ffi::OsString;
use std::path::PathBuf;

/// The user's state folder: its variable, and its place below the home directory.
pub const STATE: (&str, &str) = ("XDG_STATE_HOME", ".local/state");

/// A folder of the user, from its variable or below the home directory.
#[must_use]
pub fn of(env: &dyn Fn(&str) -> Option<OsString>, (xdg, fallback): (&str, &str)) -> Option<PathBuf> {
    // The XDG rules: a relative path in these variables is ignored.
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(xdg).or_else(|| absolute("HOME").map(|home| home.join(fallback)))
}
