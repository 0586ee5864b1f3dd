//! The gate: the command that has to pass on a candidate, in a work tree of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::engine::outcome::{End, Outcome};
use crate::engine::validation::Validation;
use crate::git::landing;
use crate::graph::landing::Verdict;
use crate::side_command::ValidationCommand;
use crate::text::redact::Redactor;

/// The gate of one trunk.
pub(crate) struct Gate {
    /// Any work tree of the repository.
    root: PathBuf,
    /// Where it runs.
    tree: PathBuf,
    command: ValidationCommand,
    /// Makes what a new tree lacks.
    prepare: Option<ValidationCommand>,
    /// What it has found, by the tree of files, with what earlier runs have found good.
    known: HashMap<String, Verdict>,
    /// Taken out of what it prints.
    secrets: Redactor,
}

/// What the gate has found.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// What the command printed.
    pub(super) output: String,
    /// How long it ran; `None`: it was known.
    pub(super) took: Option<Duration>,
}

impl Gate {
    /// A gate with this command in the work tree `tree`, which is made when it is needed.
    pub(crate) fn new(
        root: &Path,
        tree: PathBuf,
        command: ValidationCommand,
        prepare: Option<ValidationCommand>,
        secrets: Redactor,
    ) -> Self {
        let good = landing::known_good(&tree, command.shown());
        let known = good.into_iter().map(|files| (files, Verdict::Green)).collect();
        Self { root: root.to_owned(), tree, command, prepare, known, secrets }
    }

    /// The command as the user wrote it.
    pub(super) fn shown(&self) -> &str {
        self.command.shown()
    }

    /// These trees of files were found good by the same command elsewhere.
    pub(super) fn trust(&mut self, trees: Vec<String>) {
        for files in trees {
            landing::set_good(&self.tree, self.command.shown(), &files);
            self.known.insert(files, Verdict::Green);
        }
    }

    /// What is known of a commit without a run. That something was red counts only where `reds` do.
    pub(super) fn knows(&self, commit: &str, reds: bool) -> Option<Judged> {
        let verdict = *self.known.get(&landing::files_of(&self.root, commit)?)?;
        let counts = verdict == Verdict::Green || reds;
        counts.then(|| Judged { verdict, output: String::new(), took: None })
    }

    /// Runs it on a commit; `None`: it was cut off.
    pub(super) fn judge(&mut self, commit: &str, cancelled: &AtomicBool) -> Result<Option<Judged>, End> {
        landing::add(&self.root, &self.tree, commit)?;
        landing::put(&self.root, &self.tree, None, commit)?;
        let began = Instant::now();
        if let Some(prepare) = &self.prepare
            && !landing::is_prepared(&self.tree, prepare.shown())
        {
            match prepare.run_alone(None, cancelled) {
                None => return Ok(None),
                Some(found) if !found.ok => return Err(unprepared(&self.tree, &found)),
                Some(_) => landing::set_prepared(&self.tree, prepare.shown()),
            }
        }
        let found = self.command.run_alone(None, cancelled);
        // The command may have checked the trunk out, which could not follow then.
        landing::detach(&self.root, &self.tree);
        let Some(found) = found else { return Ok(None) };
        let verdict = if found.ok { Verdict::Green } else { Verdict::Red };
        if let Some(files) = landing::files_of(&self.root, commit) {
            // One that fails now and then is trusted once it has passed.
            let known = self.known.entry(files.clone()).or_insert(verdict);
            if verdict == Verdict::Green {
                *known = verdict;
                landing::set_good(&self.tree, self.command.shown(), &files);
            }
        }
        let output = self.secrets.text(&with_refused(&found)).into_owned();
        Ok(Some(Judged { verdict, output, took: Some(began.elapsed()) }))
    }
}

/// The end of a run whose work tree cannot be prepared.
pub(crate) fn unprepared(tree: &Path, found: &Validation) -> End {
    let why = format!("execution.prepare fails in {}:\n{}", tree.display(), with_refused(found).trim_end());
    End::because(Outcome::CannotValidate, why)
}

/// What a command has printed that has failed, with what walls have refused it.
fn with_refused(found: &Validation) -> String {
    let refused = found.refused.iter().filter(|_| !found.ok).map(|refused| refused.clone() + "\n");
    refused.chain([found.output.clone()]).collect()
}
