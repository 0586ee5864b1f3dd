//! The command that proves an agent's work.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::runnable::{Obstacle, is_missing, not_started, unknown_programs};
use super::{Bounds, refused, run};
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::refused::Refused;
use crate::engine::stop::Urgency;
use crate::engine::validation::{CANNOT_RUN, NO_OUTPUT, Validation};
use crate::engine::validator::{FilesValidator, Proof, Validator, Verdict};
use crate::process::OUT_OF_SIGHT;
use crate::process::capture::{Captured, Ended, capture};
use crate::process::launch::Launch;
use crate::process::supervised::StartError;
use crate::text::duration;

/// Folders of what was installed for a project.
const INSTALLED: [&str; 4] = ["node_modules", ".venv", "venv", "vendor"];
/// How many bytes of each output are kept; the prompt gets less.
const ROOM: usize = 64 * 1024;

/// A command for `sh -c`, run after an iteration. Exit code 0 means success.
#[derive(Debug, Clone)]
pub(crate) struct ValidationCommand {
    launch: Launch,
    /// The command as the user wrote it, without secrets.
    shown: String,
    /// Where the user wrote it.
    place: String,
    /// Its words that are no programs of the machine when the loop begins.
    unknown: Vec<String>,
    /// The project's own folder, where the command runs in another work tree of it.
    home: Option<PathBuf>,
    /// It runs in a clean checkout, where no agent can install anything.
    is_in_checkout: bool,
    limit: Duration,
}

impl ValidationCommand {
    /// `command` is for `sh`, `shown` is its text for agents, and `place` says where the user wrote it; the agent's own `launch`
    /// says where and with which environment it runs.
    #[must_use]
    pub(crate) fn new(command: &str, shown: String, place: String, limit: Duration, launch: &Launch) -> Self {
        let unknown = unknown_programs(command, launch);
        Self {
            launch: launch.shell(command),
            shown,
            place,
            unknown,
            home: None,
            is_in_checkout: false,
            limit,
        }
    }

    /// The command in a work tree of the project whose own folder is `home`.
    #[must_use]
    pub(crate) fn in_tree_of(self, home: &Path) -> Self {
        let home = (home != self.launch.cwd).then(|| home.to_owned());
        Self { home, ..self }
    }

    /// The command as the user wrote it, without secrets.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The path on which it finds programs; `None` in a sandbox, which has others.
    pub(crate) fn search_path(&self) -> Option<OsString> {
        self.launch.wrapper.is_empty().then(|| self.launch.variable("PATH").unwrap_or_default())
    }

    /// The command in a clean checkout, as this change of its launch says.
    #[must_use]
    pub(crate) fn in_checkout(mut self, change: impl FnOnce(&mut Launch)) -> Self {
        change(&mut self.launch);
        self.is_in_checkout = true;
        self
    }

    /// Runs it without a loop that listens; `None` if it was cancelled, or cut off at `deadline`.
    pub(crate) fn run_alone(&self, deadline: Option<Instant>, cancelled: &AtomicBool) -> Option<Validation> {
        let limit = self.limit_until(deadline);
        let captured = capture(&self.launch, Vec::new(), limit, ROOM, cancelled);
        if self.is_cut_off(limit, &captured) { None } else { self.validation(captured) }
    }

    /// Runs it while the loop listens, at most until `deadline`.
    ///
    /// # Errors
    /// If the loop cannot continue.
    pub(crate) fn run(&self, deadline: Option<Instant>, context: &mut Context<'_>) -> Result<Verdict, End> {
        self.run_until(Urgency::Now, deadline, context)
    }

    /// [`run`](Self::run), which a stop request of this urgency ends.
    ///
    /// # Errors
    /// If the loop cannot continue.
    pub(crate) fn run_until(
        &self,
        cut_at: Urgency,
        deadline: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Result<Verdict, End> {
        let limit = self.limit_until(deadline);
        let bounds = Bounds { limit, room: ROOM, cut_at };
        let captured = run(&self.launch, bounds, context)?;
        context.refused.extend(captured.iter().flat_map(|captured| refused(&captured.turned_away)));
        if self.is_cut_off(limit, &captured) {
            return Ok(Verdict::CutOff(Box::default()));
        }
        if let Some(missing) = captured.as_ref().ok().and_then(|captured| self.missing(captured)) {
            let why = cannot_run(&self.shown, &is_missing(missing).into(), &self.place);
            return Err(End::because(Outcome::CannotValidate, why));
        }
        Ok(self.validation(captured).map_or_else(|| Verdict::CutOff(Box::default()), Verdict::Found))
    }

    fn limit_until(&self, deadline: Option<Instant>) -> Duration {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.map_or(self.limit, |left| left.min(self.limit))
    }

    /// Whether it has ended because of a deadline, and not at its own limit.
    fn is_cut_off(&self, limit: Duration, captured: &Result<Captured, StartError>) -> bool {
        limit < self.limit && captured.as_ref().is_ok_and(|captured| captured.end == Ended::TimedOut)
    }
}

impl Validator for ValidationCommand {
    fn validate(&mut self, proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        self.run(proof.deadline, context)
    }

    fn of_files(&mut self) -> Option<&mut dyn FilesValidator> {
        Some(self)
    }
}

impl FilesValidator for ValidationCommand {
    fn validate_files(&mut self, context: &mut Context<'_>) -> Result<Verdict, End> {
        self.run(None, context)
    }
}

/// Why a validation cannot run, and what the user can do.
pub(crate) fn cannot_run(shown: &str, obstacle: &Obstacle, place: &str) -> String {
    let Obstacle { what, remedy } = obstacle;
    format!("the validation '{shown}' cannot run: {what}; fix {place}, or {remedy}")
}

impl ValidationCommand {
    /// The program that it names and that never could be started: no agent can do anything about that.
    fn missing(&self, captured: &Captured) -> Option<&str> {
        let could_not = matches!(captured.end, Ended::Exited(code) if CANNOT_RUN.contains(&code));
        could_not.then(|| not_started(&self.unknown, &captured.stderr.text(), &self.launch))?
    }

    /// What a work tree has not because git ignores it, in a line for the agent; empty where that is nothing.
    fn not_installed(&self) -> String {
        let Some(home) = &self.home else { return String::new() };
        let is_lacking = |name: &&str| home.join(name).is_dir() && !self.launch.cwd.join(name).exists();
        let lacking: Vec<&str> = INSTALLED.into_iter().filter(is_lacking).collect();
        if lacking.is_empty() {
            return String::new();
        }
        let (names, home) = (lacking.join(" and "), home.display());
        let remedy = if self.is_in_checkout {
            "have the validation or proof.prepare install it, or name it in proof.carry"
        } else {
            "install it here, or have the validation do that"
        };
        format!("(this work tree has no {names}, as {home} has: git ignores it, so {remedy})\n")
    }

    fn validation(&self, captured: Result<Captured, StartError>) -> Option<Validation> {
        let captured = match captured {
            Ok(captured) => captured,
            Err(error) => {
                let by = Some(self.shown.clone());
                return Some(Validation { output: error.to_string(), by, ..Validation::default() });
            }
        };
        let ending = match captured.end {
            Ended::Cancelled => return None,
            Ended::Exited(0) => String::new(),
            Ended::Exited(code) => format!("(exit code {code})"),
            Ended::Signaled(signal) => format!("(ended by signal {signal})"),
            Ended::OutOfSight => format!("(ended, because {OUT_OF_SIGHT})"),
            Ended::TimedOut => format!("(did not end within {} and was ended)", duration::format(self.limit)),
        };
        let mut output = captured.stdout.text() + &captured.stderr.text();
        if output.is_empty() && !ending.is_empty() {
            output = format!("{NO_OUTPUT}{})\n", self.shown);
        }
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        if !ending.is_empty() {
            output += &self.not_installed();
        }
        let (ok, by) = (ending.is_empty(), Some(self.shown.clone()));
        let refused = refused(&captured.turned_away).iter().map(Refused::told).collect();
        Some(Validation { ok, output: output + &ending, by, refused, ..Validation::default() })
    }
}
