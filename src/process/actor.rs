//! The hidden verb `ralph __actor FOLDER TRICKS`: plays a program that tries to outlive its loop, for `ralph doctor
//! --supervision`. The program notes itself in FOLDER, starts a tool in the way that TRICKS say, and waits until its
//! stdin ends. The tool notes itself as well, ignores all signals that it can, and ends after a minute at the latest.
//!
//! With `ralph:` before TRICKS it is a ralph that has such a program supervised, until it is killed.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::ladder::Ladder;
use super::launch::Launch;
use super::supervised::Supervised;
use crate::files::atomic::{Durability, write_own};
use crate::platform::calls::own_executable;
use crate::platform::family::send;

/// The hidden verb.
pub const VERB: &str = "__actor";

/// In a session of its own.
const SESSION: char = 's';
/// Started by a process that ends at once.
const TWICE: char = 't';
/// Without any variable.
const BARE: char = 'b';
/// It stops itself.
const STOPPED: char = 'z';
/// The word before the tricks of a tool.
const TOOL: &str = "tool:";
/// The word before the tricks of a program that a ralph has supervised.
const RALPH: &str = "ralph:";

/// How long a tool lives if nothing ends it.
const LIFE: Duration = Duration::from_mins(1);
/// How programs of the play are ended.
const LADDER: Ladder =
    Ladder { interrupt: Duration::from_millis(200), terminate: Duration::from_millis(200) };

/// A program of the play.
#[must_use]
pub fn launch(folder: &Path, tricks: &str, mark: String) -> Launch {
    let args = vec![VERB.into(), folder.into(), tricks.into()];
    let program = own_executable().into();
    Launch { program, args, cwd: folder.to_owned(), mark, ladder: LADDER, ..Launch::default() }
}

/// The command that is a ralph which has such a program supervised.
#[must_use]
pub fn ralph(folder: &Path, tricks: &str) -> Command {
    let mut command = Command::new(own_executable());
    command.arg(VERB).arg(folder).arg(format!("{RALPH}{tricks}"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Entry point of the hidden verb; returns the exit code.
#[must_use]
pub fn main(argv: &[OsString]) -> i32 {
    let [folder, tricks] = argv else { return 1 };
    let (folder, Some(tricks)) = (Path::new(folder), tricks.to_str()) else { return 1 };
    let played = match (tricks.strip_prefix(TOOL), tricks.strip_prefix(RALPH)) {
        (Some(tricks), _) => tool(folder, tricks),
        (_, Some(tricks)) => supervise(folder, tricks),
        _ => program(folder, tricks),
    };
    i32::from(played.is_err())
}

fn supervise(folder: &Path, tricks: &str) -> io::Result<()> {
    let mark = format!("doctor-{}", std::process::id());
    // Kept, or it would be ended.
    let _kept = Supervised::start(&launch(folder, tricks, mark)).map_err(io::Error::other)?;
    std::thread::sleep(LIFE);
    Ok(())
}

fn program(folder: &Path, tricks: &str) -> io::Result<()> {
    note(folder)?;
    let mut tool = start_tool(folder, tricks)?;
    if tricks.contains(TWICE) {
        tool.wait()?;
    }
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

fn start_tool(folder: &Path, tricks: &str) -> io::Result<std::process::Child> {
    let mut command = Command::new(own_executable());
    command.arg(VERB).arg(folder).arg(format!("{TOOL}{tricks}"));
    if tricks.contains(BARE) {
        command.env_clear();
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

fn tool(folder: &Path, tricks: &str) -> io::Result<()> {
    if tricks.contains(TWICE) {
        // The next one is an orphan.
        return start_tool(folder, &tricks.replace(TWICE, "")).map(drop);
    }
    if tricks.contains(SESSION) {
        rustix::process::setsid()?;
    }
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    note(folder)?;
    if tricks.contains(STOPPED) {
        send(std::process::id(), Signal::STOP);
    }
    std::thread::sleep(LIFE);
    Ok(())
}

/// Notes that this process runs.
fn note(folder: &Path) -> io::Result<()> {
    let path = folder.join(std::process::id().to_string());
    write_own(&path, b"", Durability::Atomic).map(drop).map_err(io::Error::other)
}
