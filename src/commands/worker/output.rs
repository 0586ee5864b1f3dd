//! `ralph logs --agent` for a worker: the earlier and the current output of its pane.

use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::agent::worker::held::Held;
use crate::commands::logs::copy;
use crate::commands::output::{nobody_reads, print};
use crate::process::pane::Pane;
use crate::record::lookup::Loop;
use crate::tmux::control::Event;
use crate::tmux::screen::{self, Extent, Mark};
use crate::tmux::{Control, TmuxError, Window};

/// How long a screen may take to be painted before it is read.
const SOON: Duration = Duration::from_millis(300);
/// How often stdout and the pane are checked.
const LOOK: Duration = Duration::from_secs(1);

/// Prints the output of earlier iterations, and that of the pane; with `follows` also new output, until neither monitor nor
/// program runs.
pub(in crate::commands) fn show(
    found: &Loop,
    log: Option<&Path>,
    lines: Option<usize>,
    follows: bool,
) -> anyhow::Result<u8> {
    let mut pane = Shown::default();
    let now = living(found).and_then(|window| pane.look(&window).ok()).unwrap_or_default();
    let log = log.filter(|path| path.symlink_metadata().is_ok());
    if log.is_none() && now.is_empty() && !follows {
        return Err(copy::no_log(&found.name, &found.project.records()));
    }
    let before = lines.map(|lines| lines.saturating_sub(now.len()));
    if let Some(log) = log.filter(|_| before != Some(0)) {
        copy::show_all(log, before)?;
    }
    put(&now[now.len().saturating_sub(lines.unwrap_or(usize::MAX))..])?;
    if follows {
        follow(found, &mut pane)?;
    }
    Ok(0)
}

/// The pane of a worker whose program runs.
fn living(found: &Loop) -> Option<Window> {
    let folder = found.project.records();
    Pane::connect(&folder).ok()??;
    Some(Held::read(&folder).ok()??.window)
}

fn put(lines: &[String]) -> anyhow::Result<u8> {
    print(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))
}

/// Prints new output, as long as the worker runs and stdout is open.
fn follow(found: &Loop, pane: &mut Shown) -> anyhow::Result<()> {
    let is_over = || found.again().is_none_or(|now| now.alive().is_none()) && living(found).is_none();
    while !is_over() {
        if let Some(window) = living(found) {
            let (send, painted) = mpsc::channel();
            let listening = Control::attach(&window, None, move |event| {
                let _ = send.send(matches!(event, Event::Painted(_)));
            });
            if listening.is_ok() && !follow_pane(found, &window, pane, &painted)? {
                return Ok(());
            }
        }
        // Between two iterations.
        if nobody_reads(LOOK)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Prints new output of one pane, until it or its program has ended. Returns whether stdout is still open.
fn follow_pane(
    found: &Loop,
    window: &Window,
    pane: &mut Shown,
    painted: &mpsc::Receiver<bool>,
) -> anyhow::Result<bool> {
    loop {
        let is_there = match painted.recv_timeout(LOOK) {
            Ok(true) => {
                let until = Instant::now() + SOON;
                while painted.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
                true
            }
            Ok(false) | Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => living(found).is_some(),
        };
        if let Ok(lines) = pane.look(window) {
            put(&lines)?;
        }
        if nobody_reads(Duration::ZERO)? {
            return Ok(false);
        }
        if !is_there {
            return Ok(true);
        }
    }
}

/// The part of a pane that was printed.
#[derive(Debug, Default)]
struct Shown {
    mark: Option<Mark>,
    /// The lines from the mark on.
    lines: Vec<String>,
}

impl Shown {
    /// The new or changed lines.
    fn look(&mut self, window: &Window) -> Result<Vec<String>, TmuxError> {
        let server = window.server();
        // Read before the lines, so that lines that scroll in between are not missed.
        let mark = screen::mark(&server, window)?;
        let (top, screen) = match &self.mark {
            Some(last) if last.scrolled() <= mark.scrolled() => {
                (last.scrolled(), screen::since(&server, window, last, false)?)
            }
            // Another iteration has cleared it.
            _ => {
                self.lines.clear();
                (0, screen::look(&server, window, Extent::Whole, false)?)
            }
        };
        let is_new = |(at, line): &(usize, &String)| match self.lines.get(*at) {
            Some(before) => before != *line && !line.is_empty(),
            None => true,
        };
        let new = screen.lines.iter().enumerate().filter(is_new).map(|(_, line)| line.clone()).collect();
        let first = (mark.scrolled() - top).min(screen.lines.len());
        self.lines = screen.lines[first..].to_vec();
        self.mark = Some(mark);
        Ok(new)
    }
}
