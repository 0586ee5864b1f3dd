//! Other verbs of ralph in place of the screen, as programs in the foreground.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::Signal;

use super::events::Events;
use crate::platform::calls::own_executable;
use crate::platform::family::Family;
use crate::platform::handle::ProcessHandle;
use crate::platform::identity::ProcessIdentity;
use crate::process::launch::SHELL;
use crate::process::programs::find_program;
use crate::record::lookup::Loop;
use crate::view::watch::keys::Sight;

/// How often the end of the other program is checked.
const LOOK: Duration = Duration::from_millis(20);
/// How long a program may take to end on request.
const PATIENCE: Duration = Duration::from_secs(1);
/// A program that ends this soon needs a pause to be read.
const SOON: Duration = Duration::from_millis(400);

/// Shows something of a loop until the user leaves it.
pub(super) fn show(found: &Loop, sight: Sight, events: &mut Events) -> anyhow::Result<()> {
    let began = Instant::now();
    let status = match sight {
        Sight::Attach | Sight::Diff => foreground(&mut verb(found, sight), events),
        Sight::Log | Sight::Report => paged(verb(found, sight), events),
    }?;
    let is_unread = sight != Sight::Attach && (began.elapsed() < SOON || !has_pager());
    if is_unread || status.is_none_or(|status| !status.success()) {
        await_enter(events);
    }
    events.forget_interrupts();
    Ok(())
}

/// The verb's command line, in the project of the loop.
fn verb(found: &Loop, sight: Sight) -> Command {
    let mut command = Command::new(own_executable());
    let words: &[&str] = match sight {
        Sight::Diff => &["diff"],
        Sight::Log => &["logs", "--agent"],
        Sight::Attach => &["attach"],
        Sight::Report => &["report"],
    };
    command.args(words).arg(&found.name);
    let project = &found.project;
    // The loop of a branch belongs to the project that builds it.
    let place = match project.runs().parent() {
        Some(run_dir) if project.is_of_branch() => run_dir.to_owned(),
        _ => project.root().to_owned(),
    };
    if place.is_dir() {
        command.current_dir(place);
    }
    if !project.is_of_branch() && !project.is_of_worker() {
        command.env("RALPH_DIR", project.ralph_dir());
    }
    // Otherwise a pager exits at once with a single page.
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "R");
    }
    command
}

fn pager() -> Option<OsString> {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let wanted = std::env::var_os("PAGER").filter(|pager| !pager.is_empty());
    wanted.or_else(|| find_program("less", &search_path).map(|_| "less".into()))
}

fn has_pager() -> bool {
    pager().is_some()
}

/// Runs a program on this terminal; `None` if a signal has ended the wait.
fn foreground(command: &mut Command, events: &mut Events) -> anyhow::Result<Option<ExitStatus>> {
    let mut child = command.spawn().with_context(|| format!("cannot run {}", own_executable().display()))?;
    wait(&mut child, events)
}

/// Runs a verb with its output in a pager, in colour if wanted.
fn paged(mut verb: Command, events: &mut Events) -> anyhow::Result<Option<ExitStatus>> {
    let Some(pager) = pager() else { return foreground(&mut verb, events) };
    if std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
        verb.env("CLICOLOR_FORCE", "1");
    }
    verb.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut writer = verb.spawn().with_context(|| format!("cannot run {}", own_executable().display()))?;
    let text = writer.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let mut reader = Command::new(SHELL);
    reader.arg("-c").arg(&pager).stdin(text);
    if std::env::var_os("LESS").is_none() {
        reader.env("LESS", "R");
    }
    let shown = foreground(&mut reader, events).context("the pager cannot be shown");
    drop(reader);
    // Its reader is gone.
    if !matches!(writer.try_wait(), Ok(Some(_))) {
        let _ = writer.kill();
        writer.wait().ok();
        return shown;
    }
    let written = writer.wait().ok();
    shown.map(|shown| if written.is_some_and(|status| !status.success()) { written } else { shown })
}

/// Waits for a program's end. A signal that ends us ends it as well.
fn wait(child: &mut Child, events: &mut Events) -> anyhow::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if events.wait_outside(LOOK)? {
            end(child)?;
            return Ok(None);
        }
    }
}

/// Ends a program with all its children: git waits for its pager, and that for keys.
fn end(child: &mut Child) -> io::Result<()> {
    // It has no mark of its own.
    let below = Family::below(child.id(), None)
        .look()
        .into_iter()
        .filter_map(|stat| ProcessIdentity::of(stat.pid).ok());
    let below = below.filter_map(|process| ProcessHandle::of(&process).ok().flatten());
    let all: Vec<ProcessHandle> = [ProcessHandle::of_child(child)?].into_iter().chain(below).collect();
    for signal in [Signal::TERM, Signal::KILL] {
        for process in &all {
            process.send(signal);
        }
        let deadline = Instant::now() + PATIENCE;
        let mut have_ended = true;
        for process in &all {
            have_ended &= process.ends_by(deadline)?;
        }
        if have_ended {
            break;
        }
    }
    child.wait().map(drop)
}

/// Waits for Enter before the screen is drawn over the output.
fn await_enter(events: &mut Events) {
    events.forget_interrupts();
    if events.wait_outside(Duration::ZERO).unwrap_or(true) {
        return;
    }
    let mut stdout = io::stdout();
    let _ = write!(stdout, "\nEnter: back to ralph watch ").and_then(|()| stdout.flush());
    // Without a terminal there is no Enter to wait for.
    let _ = events.await_line();
}
