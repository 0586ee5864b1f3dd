//! Opens a page in the user's browser.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::bail;

/// Programs that open the user's browser, the desktop's own first.
const OPENERS: [&[&str]; 3] = [&["xdg-open"], &["gio", "open"], &["wslview"]];
/// How long a program may take to report a failure; one that runs longer is the browser.
const PATIENCE: Duration = Duration::from_secs(3);
/// The time between two checks.
const LOOK: Duration = Duration::from_millis(20);

/// Opens the page with the first working command of `BROWSER` and of the openers of desktops.
///
/// # Errors
/// When none can.
pub(super) fn open(page: &Path) -> anyhow::Result<()> {
    let named = std::env::var("BROWSER").unwrap_or_default();
    let of_user = named.split(':').filter_map(|line| shlex::split(line).filter(|words| !words.is_empty()));
    let of_desktop = OPENERS.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect());
    for words in of_user.chain(of_desktop) {
        if has_opened(&words, page) {
            return Ok(());
        }
    }
    bail!("no browser could be started: set BROWSER, or open the file yourself")
}

/// Whether this command line has opened the page; `%s` in it is replaced by the page.
fn has_opened(words: &[String], page: &Path) -> bool {
    let is_placed = words.iter().any(|word| word == "%s");
    let words =
        words.iter().map(|word| if word == "%s" { page.as_os_str().into() } else { OsString::from(word) });
    let mut words = words.chain((!is_placed).then(|| page.as_os_str().into()));
    let Some(program) = words.next() else { return false };
    let mut command = Command::new(program);
    // The browser is the user's and outlives us, also a Ctrl+C in this terminal.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok_and(lives_or_ended_well)
}

fn lives_or_ended_well(mut child: Child) -> bool {
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(LOOK),
            Err(_) => return false,
        }
        waited += LOOK;
    }
    true
}
