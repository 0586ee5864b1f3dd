//! Opens the user's editor.

use std::env;
use std::ffi::OsString;
use std::io::{IsTerminal as _, stdin};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use signal_hook::consts::{SIGINT, SIGQUIT};
use signal_hook::flag::register_conditional_default;

use crate::files::draft::Draft;
use crate::process::launch::SHELL;
use crate::process::programs::find_program;

/// The editor for users who have chosen none.
const USUAL: &str = "vi";

/// The user's editor, a program with or without arguments.
pub(super) struct Editor {
    words: OsString,
}

impl Editor {
    /// The one that `VISUAL` or `EDITOR` names, else `vi`.
    pub(super) fn of_user() -> anyhow::Result<Self> {
        let chosen = ["VISUAL", "EDITOR"].into_iter().filter_map(env::var_os);
        if let Some(words) = chosen.into_iter().find(|words| !words.to_string_lossy().trim().is_empty()) {
            return Ok(Self { words });
        }
        if !stdin().is_terminal() {
            bail!(
                "no editor can be opened, since this is no terminal: set EDITOR to one with a window of its own, as in EDITOR='code --wait'"
            );
        }
        if find_program(USUAL, &env::var_os("PATH").unwrap_or_default()).is_none() {
            bail!("no editor is known, and there is no '{USUAL}': set EDITOR, as in EDITOR=nano");
        }
        Ok(Self { words: USUAL.into() })
    }

    /// Opens a draft and waits for the end of the editor. Until then Ctrl+C is the editor's.
    ///
    /// # Errors
    /// If it cannot be started, or fails.
    pub(super) fn edit(&self, draft: &Draft) -> anyhow::Result<()> {
        let is_ours = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGQUIT] {
            register_conditional_default(signal, Arc::clone(&is_ours)).context("cannot listen to signals")?;
        }
        let mut script = self.words.clone();
        script.push(" \"$@\"");
        let status = Command::new(SHELL).arg("-c").arg(script).arg(&self.words).arg(draft.path()).status();
        is_ours.store(true, Ordering::Relaxed);
        let name = self.words.to_string_lossy();
        let status = status.with_context(|| format!("the editor '{name}' cannot be started"))?;
        if !status.success() {
            bail!("the editor '{name}' failed ({status}); EDITOR names another one");
        }
        Ok(())
    }
}
