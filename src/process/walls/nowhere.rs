//! The hidden verb on systems whose kernels have none of what walls are built of.

use std::ffi::OsString;
use std::io::{self, Write as _};

use super::parts::NOT_BUILT;

/// Says why there are no walls, and returns the exit code.
#[must_use]
pub fn main(_: &[OsString]) -> i32 {
    let _ =
        writeln!(io::stderr(), "error: ralph cannot start this program behind walls: only Linux has them");
    NOT_BUILT
}
