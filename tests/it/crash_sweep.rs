//! ralph is cut off at its system calls, one after the other, and started again: `scripts/crash-sweep` says what has to hold.

use std::path::Path;

use crate::scratch::Scratch;

#[test]
fn what_is_cut_off_anywhere_is_done_once_by_the_next_start() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/crash-sweep");
    let scratch = Scratch::new();
    let output = scratch.command(script).args(["--ralph", env!("CARGO_BIN_EXE_ralph")]).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
