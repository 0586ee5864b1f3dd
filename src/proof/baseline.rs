//! What the validation command finds at the base, in the proof tree. It runs beside the first agent, so that nothing
//! waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use super::fitness::{Fitness, fitness};
use super::judgement::tests_in;
use super::junit;
use super::programs::Programs;
use super::record;
use super::tree::{ProofTree, TreeError, Unprepared};
use crate::engine::fact::ProofRun;
use crate::engine::validation::Validation;
use crate::files::clock;
use crate::side_command::ValidationCommand;
use crate::threads;

/// How long the end of a cancelled command is awaited: it is killed at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a claim that waits checks whether it is still wanted.
const TICK: Duration = Duration::from_millis(50);

/// What is looked at, and with what.
#[derive(Debug, Clone)]
pub(super) struct Look {
    /// The clean tree.
    pub(super) tree: ProofTree,
    /// The command, as it runs there.
    pub(super) command: ValidationCommand,
    /// The command there, with another folder for temporary files.
    pub(super) command_again: ValidationCommand,
    /// The command there, in the user's home directory.
    pub(super) command_at_home: ValidationCommand,
    /// The programs that the command runs.
    pub(super) programs: Programs,
    /// Where the command writes reports about tests.
    pub(super) junit: Option<String>,
    /// The commit.
    pub(super) base: String,
    /// Nothing that was built beside an agent may have a part in a proof.
    pub(super) is_alone: bool,
    /// When the loop began: what was written since is an agent's.
    pub(super) began: SystemTime,
}

/// What a look has found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) fitness: Fitness,
    /// The run of the command.
    pub(super) run: ProofRun,
    /// Something beside the command may have written in the tree, or its result is one that an agent could want.
    pub(super) is_doubtful: bool,
}

/// A look that is on its way.
pub(super) struct Baseline {
    /// Gets nothing if it could not be brought to its end.
    result: Receiver<Option<Found>>,
    cancelled: Arc<AtomicBool>,
}

impl Look {
    /// This look with another folder for temporary files.
    pub(super) fn again(&self) -> Self {
        Self { command: self.command_again.clone(), ..self.clone() }
    }

    /// Begins it.
    pub(super) fn start(self) -> Baseline {
        let (send, result) = mpsc::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancelled);
        // Without a thread, the first claim that needs it does it.
        let _ = threads::start(move || {
            self.programs.take(self.tree.root(), &self.base);
            let found = self.take(true, None, &flag).ok().flatten();
            let _ = send.send(found);
        });
        Baseline { result, cancelled }
    }

    /// What a clean tree is worth, with an agent at work beside it or not; `None` if it was cancelled, or did not end `until` then.
    pub(super) fn take(
        &self,
        has_agent: bool,
        until: Option<Instant>,
        cancelled: &AtomicBool,
    ) -> Result<Option<Found>, TreeError> {
        // Only a convenience: without the ref, git may remove a commit that nothing else leads to after some weeks.
        let _ = self.tree.keep_base(&self.base);
        let began = Instant::now();
        let laid = match self.tree.lay(&self.base, cancelled) {
            Err(TreeError::Unprepared(Unprepared(found))) => {
                let run =
                    record::ran("prepare", found.by.as_deref().unwrap_or_default(), &found, began.elapsed());
                return Ok(Some(Found { fitness: Fitness::unprepared(&found), run, is_doubtful: has_agent }));
            }
            laid => laid?,
        };
        self.tree.verify(&self.base)?;
        let began = Instant::now();
        let Some(at_base) = self.run(&self.command, until, cancelled) else { return Ok(None) };
        let run = record::ran("base", self.command.shown(), &at_base, began.elapsed());
        let is_disturbed = self.tree.is_disturbed(&laid)?;
        let fitness = if at_base.ok {
            fitness(&at_base, None)
        } else if self.tree.lacks_filters(self.began)? {
            Fitness::unfiltered(&at_base)
        } else {
            let Some(fitness) = self.with_others(&at_base, until, cancelled)? else { return Ok(None) };
            fitness
        };
        let is_lacking = matches!(fitness, Fitness::Lacking { .. });
        // Without a seal the next proof begins with a new tree.
        let is_kept = !(is_lacking || is_disturbed || has_agent && self.is_alone);
        if is_kept {
            self.tree.leave(&laid)?;
        } else {
            self.tree.put_away();
        }
        Ok(Some(Found { fitness, run, is_doubtful: is_lacking || is_disturbed }))
    }

    /// Runs a command in the tree, with what its reports count.
    fn run(
        &self,
        command: &ValidationCommand,
        until: Option<Instant>,
        cancelled: &AtomicBool,
    ) -> Option<Validation> {
        let since = clock::after_all_files();
        let found = command.run_alone(until, cancelled)?;
        Some(self.with_reports(found, since))
    }

    /// What a command has found that ran in the tree since then, with what its reports count if it prints no count itself.
    pub(super) fn with_reports(&self, found: Validation, since: SystemTime) -> Validation {
        match &self.junit {
            Some(pattern) if tests_in(&found.output).is_none() => {
                let lines = junit::lines(self.tree.path(), pattern, since);
                junit::with_lines(found, &lines)
            }
            _ => found,
        }
    }

    /// What a tree is worth in which the command has failed. After an error it has files of others, and no seal.
    fn with_others(
        &self,
        at_base: &Validation,
        until: Option<Instant>,
        cancelled: &AtomicBool,
    ) -> Result<Option<Fitness>, TreeError> {
        let carried = self.tree.carry(self.began)?;
        let with_others = self.run(&self.command_at_home, until, cancelled);
        self.tree.take_out(carried)?;
        Ok(with_others.map(|with_others| fitness(at_base, Some(&with_others))))
    }
}

impl Baseline {
    /// What it has found, if it is through.
    pub(super) fn found(&self) -> Option<Found> {
        self.result.try_recv().ok().flatten()
    }

    /// What it finds, unless that is cancelled first or takes longer than `until` then.
    pub(super) fn wait(&self, until: Option<Instant>, cancelled: &AtomicBool) -> Option<Found> {
        while !cancelled.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
            match self.result.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => {}
                found => return found.ok().flatten(),
            }
        }
        None
    }
}

/// Ends it, also if a claim needs the tree.
impl Drop for Baseline {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        // The command must not outlive the loop.
        let _ = self.result.recv_timeout(PATIENCE);
    }
}
