//! `ralph watch`: loops on the whole screen. It only reads records and writes requests: it can be started and left at any time,
//! and several times at once.

mod deeds;
mod events;
mod looks;
mod marker;
mod plan;
mod screen;
mod sights;
mod typing;

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::target;
use crate::cli::WatchArgs;
use crate::process::group;
use crate::record::lookup;
use crate::view::watch::keys::{Key, Wish};
use crate::view::watch::model::Model;
use deeds::Deeds;
use events::Events;
use looks::Looks;
use screen::Screen;

pub use marker::hint;

/// After a signal, or Ctrl+C.
const INTERRUPTED: u8 = 130;
/// How often the selected loop is read, ...
const GLANCE: Duration = Duration::from_millis(250);
/// ... and the others.
const LOOK: Duration = Duration::from_millis(500);
/// How often clocks are updated.
const TICK: Duration = Duration::from_secs(1);

/// `ralph watch`.
pub(super) fn run(args: &WatchArgs) -> anyhow::Result<u8> {
    require_terminal()?;
    let here = target::place(args.target.ralph_dir.as_ref())?;
    let first = args.target.name.as_ref().map(|name| lookup::named(&here, name)).transpose()?;
    // A loop of another project is shown there.
    let is_far = first.as_ref().is_some_and(|found| !lookup::belongs_to(&found.project, &here));
    let whole_machine = args.all || is_far;
    let root = here.root().file_name().map(|name| name.to_string_lossy().into_owned());
    let of = if whole_machine { "this machine".to_owned() } else { root.unwrap_or_else(|| "/".to_owned()) };
    let mut model = Model::new(&of, whole_machine);
    if let Some(found) = first {
        model.select(found.project.records());
    }
    let mut events = Events::listen().context("signals cannot be heard")?;
    let mut looks = Looks::new(here.clone(), whole_machine);
    looks.look(&mut model);
    looks.follow(&mut model);
    let screen = Screen::open(marker::folder_of(&here), &events).context("the terminal cannot be used")?;
    Watch { deeds: Deeds::new(events.waker()), screen, looks, model, is_stale: true }.until_left(&mut events)
}

/// Fails without a terminal.
fn require_terminal() -> anyhow::Result<()> {
    let instead = "'ralph status' shows where loops stand, 'ralph ls' those of the whole machine";
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        bail!("watch needs a terminal for its input and output: {instead}");
    }
    match std::env::var("TERM").unwrap_or_default().as_str() {
        term @ ("" | "dumb") => {
            let term = if term.is_empty() { "is not set" } else { "is 'dumb'" };
            bail!("watch needs a terminal that can move its cursor, and TERM {term}: {instead}")
        }
        _ => Ok(()),
    }
}

/// The state of `ralph watch`.
struct Watch {
    screen: Screen,
    looks: Looks,
    deeds: Deeds,
    model: Model,
    /// Whether the screen must be drawn.
    is_stale: bool,
}

impl Watch {
    fn until_left(mut self, events: &mut Events) -> anyhow::Result<u8> {
        let (mut looked, mut ticked) = (Instant::now(), Instant::now());
        loop {
            if std::mem::take(&mut self.is_stale) {
                self.screen.draw(&mut self.model)?;
            }
            let heard = events.wait(GLANCE)?;
            if let Some(signal) = heard.end {
                return Ok(if signal == events::GONE { 1 } else { INTERRUPTED });
            }
            self.is_stale |= heard.is_resized;
            if heard.is_suspended {
                self.suspend()?;
            }
            if heard.is_continued {
                self.screen.enter()?;
                self.is_stale = true;
            }
            for key in heard.keys {
                if let Some(code) = self.press(key, events)? {
                    return Ok(code);
                }
            }
            self.is_stale |= self.deeds.tell(&mut self.model);
            if looked.elapsed() >= LOOK || heard.is_woken {
                looked = Instant::now();
                self.is_stale |= self.looks.look(&mut self.model);
            }
            self.is_stale |= self.looks.follow(&mut self.model);
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                self.is_stale |= self.looks.tick(&mut self.model);
            }
        }
    }

    /// Carries out a key's command; returns an exit code to leave.
    fn press(&mut self, key: Key, events: &mut Events) -> anyhow::Result<Option<u8>> {
        self.is_stale = true;
        match self.model.press(key) {
            None => {}
            Some(Wish::Leave { interrupted }) => return Ok(Some(if interrupted { INTERRUPTED } else { 0 })),
            Some(Wish::Redraw) => self.screen.clear()?,
            Some(Wish::Suspend) if !group::can_be_continued() => {
                self.model.tell("there is no shell that could bring it back from a stop", true);
            }
            Some(Wish::Suspend) => screen::stop_group(),
            Some(Wish::Ask(key, deed)) => match self.looks.find(&key) {
                Some(found) => self.deeds.start(found, deed, &mut self.model),
                None => self.model.tell("that loop is not there any more", true),
            },
            Some(Wish::Show(key, sight)) => {
                let Some(found) = self.looks.find(&key) else { return Ok(None) };
                self.screen.leave();
                let shown = sights::show(&found, sight, events);
                self.screen.enter()?;
                match shown {
                    Ok(()) => {}
                    Err(error) => self.model.tell(format!("{error:#}"), true),
                }
            }
        }
        Ok(None)
    }

    /// Restores the terminal, stops, and takes it again.
    fn suspend(&mut self) -> anyhow::Result<()> {
        self.screen.leave();
        screen::stop();
        self.screen.enter()?;
        self.is_stale = true;
        Ok(())
    }
}
