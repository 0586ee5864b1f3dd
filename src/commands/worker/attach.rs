//! `ralph attach`: the pane of a worker in this terminal.

use std::io::{IsTerminal as _, stdin, stdout};
use std::os::unix::process::CommandExt as _;

use anyhow::{Context as _, bail};

use super::find;
use crate::cli::PaneArgs;
use crate::tmux::screen::{self, Extent};
use crate::tmux::window;

/// `ralph attach`. Becomes tmux.
pub(in crate::commands) fn attach(args: &PaneArgs) -> anyhow::Result<u8> {
    let worker = find::named(&args.name)?;
    let shown = worker.window()?;
    if !stdin().is_terminal() || !stdout().is_terminal() {
        bail!("attach needs a terminal: 'ralph peek {}' prints what the pane shows", worker.name);
    }
    screen::look(&shown.server(), shown, Extent::Visible, false).map_err(|error| worker.told(error))?;
    Err(window::attach(shown).exec()).context("cannot run tmux")
}
