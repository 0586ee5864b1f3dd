//! `ralph peek`: prints the pane of a worker.

use std::io::Write as _;

use super::find;
use crate::cli::PeekArgs;
use crate::commands::output::print;
use crate::commands::target::count;
use crate::tmux::screen::{self, Extent};

/// `ralph peek`.
pub(in crate::commands) fn peek(args: &PeekArgs) -> anyhow::Result<u8> {
    let lines = args.lines.as_deref().map(|word| count(word, "--lines")).transpose()?;
    let worker = find::named(&args.name)?;
    let window = worker.window()?;
    let extent = if lines.is_some() { Extent::Whole } else { Extent::Visible };
    let screen = screen::look(&window.server(), window, extent, false).map_err(|error| worker.told(error))?;
    let first = screen.lines.len().saturating_sub(lines.unwrap_or(usize::MAX));
    print(|out| screen.lines[first..].iter().try_for_each(|line| writeln!(out, "{line}")))
}
