//! What a run of several loops side by side has in common, whatever they work on: its lock, its screen, its signals and its end.

use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

use anyhow::anyhow;

use crate::cli::LoopFlags;
use crate::engine::board::Board;
use crate::engine::event::LoopIdentity;
use crate::engine::outcome::{End, Outcome};
use crate::git::GitError;
use crate::git::remove::RemoveError;
use crate::graph::GraphError;
use crate::job::detached;
use crate::job::ready::{board, notifier};
use crate::job::signals::Signals;
use crate::job::workspace::Workspace;
use crate::notify::{Counts, Notifier};
use crate::project::Project;
use crate::record::lock::Lock;
use crate::record::recorder;
use crate::view::View;
use crate::view::branch_table::{BranchRow, Built};
use crate::view::screen::Screen;

/// What all loops of one run share.
pub(super) struct SideBySide<'a> {
    workspace: &'a Workspace,
    /// The id of the run; each loop has one of its own besides.
    pub(super) id: String,
    /// Keeps other runs out of the project.
    lock: Mutex<Lock>,
    pub(super) board: Board,
    pub(super) signals: Signals,
    pub(super) screen: Screen,
    pub(super) notifier: Notifier,
}

impl<'a> SideBySide<'a> {
    /// Takes the screen, and listens for signals if that was not begun before.
    pub(super) fn begin(
        workspace: &'a Workspace,
        flags: &LoopFlags,
        id: String,
        lock: Lock,
        signals: Option<Signals>,
    ) -> anyhow::Result<Self> {
        let Workspace { project, settings } = workspace;
        let signals = signals.map_or_else(Signals::listen, Ok)?;
        signals.allow(Some(settings.stop_within.unwrap_or(settings.term_grace)));
        Ok(Self {
            workspace,
            id,
            lock: Mutex::new(lock),
            board: board(project, settings),
            signals,
            screen: Screen::start(flags.json, flags.quiet)?.verbose(flags.verbose),
            notifier: notifier(project, settings),
        })
    }

    /// Leaves the terminal, whose user finds the output in the folder of the run.
    pub(super) fn leave_terminal(&self, flags: &LoopFlags) -> anyhow::Result<()> {
        let folder = self.workspace.project.run(&self.id);
        detached::leave_terminal(&folder, None, flags.json)
            .map_err(|end| anyhow!("{}", end.detail.as_deref().unwrap_or(end.outcome.reason())))
    }

    /// Keeps other runs out of the project, also if the lock file was removed.
    pub(super) fn keep_lock(&self) -> Result<(), End> {
        let project = &self.workspace.project;
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        match recorder::keep_lock(&mut lock, project) {
            Ok(false) => {}
            Ok(true) => {
                self.screen.warn(&format!("{} was removed, and is taken again", project.lock().display()));
            }
            Err(why) => return Err(End::because(Outcome::RecordFailed, why.to_string())),
        }
        Ok(())
    }

    /// Shows why a loop could not run, and notes it in its row; returns its end.
    pub(super) fn refused(&self, error: &anyhow::Error, view: &mut View, row: &mut BranchRow) -> End {
        let why = self.workspace.settings.secrets.text(&format!("{error:#}")).into_owned();
        let outcome = if self.signals.count() > 0 {
            Outcome::Interrupted
        } else if error.is::<GitError>() || error.is::<RemoveError>() {
            Outcome::GitFailed
        } else {
            error.downcast_ref::<GraphError>().map_or(Outcome::RecordFailed, Outcome::from)
        };
        view.refused(&row.name, &why);
        row.notes.push(why.clone());
        row.built = Built::Failed;
        End::because(outcome, why)
    }

    /// Sends the notice about the end, if there is one, and waits for what is still to be sent and shown.
    pub(super) fn close(&self, ended: Option<(&LoopIdentity, &str, Counts)>) {
        let heard = self.signals.count();
        if let Some((identity, end, counts)) = ended
            && self.notifier.take_end(identity, end, counts)
        {
            self.screen.ring();
        }
        self.notifier.finish(|| self.is_in_hurry(heard));
        while let Some(word) = self.notifier.word() {
            self.screen.warn(&word);
        }
        let heard = self.signals.count();
        self.screen.finish(|| self.is_in_hurry(heard));
    }

    /// Whether another signal has come; the third one means to leave at any time.
    fn is_in_hurry(&self, heard: usize) -> bool {
        self.signals.count() > heard.min(2)
    }
}

/// The row and the exit code of a loop whose thread is lost.
pub(super) fn lost(name: &str, why: String) -> (BranchRow, u8) {
    (BranchRow { built: Built::Failed, notes: vec![why], ..BranchRow::new(name) }, 1)
}

/// The results of all loops in numbers.
pub(super) fn counts(exit_code: u8, rows: &[BranchRow]) -> Counts {
    let are = |built: &Built| rows.iter().filter(|row| row.built == *built).count();
    Counts { done: are(&Built::Done), failed: are(&Built::Failed), total: rows.len(), exit_code }
}

/// The variable by which an agent that loses its work tree does not find the user's checkout above it.
pub(super) fn ceiling(project: &Project) -> (OsString, OsString) {
    let name = "GIT_CEILING_DIRECTORIES";
    let mut ceiling = project.worktrees().into_os_string();
    if let Some(more) = std::env::var_os(name).filter(|more| !more.is_empty()) {
        ceiling.push(":");
        ceiling.push(more);
    }
    (name.into(), ceiling)
}
