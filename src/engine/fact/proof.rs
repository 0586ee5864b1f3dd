//! The record of one proof: what was run for a claim, and what it was measured by.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::texts::{New, Texts};

/// A claim was looked at in a clean checkout of its commit, or was not, and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ProofRecord {
    /// The work that it is about, if there are several; left out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The commit where work on it began, against which it is measured; left out without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What has proven it, or why it is not proven, in one line.
    pub by: String,
    /// What is not committed, and was linked into the checkout; left out if nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<String>,
    /// The claimed commit; left out if it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// clean, base (with the base's version of what work is measured by), or strict (all checks).
    pub level: String,
    /// Changes of lines of the work, which its tests should notice; left out if none were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutants: Option<ProofMutants>,
    /// It is proven.
    pub ok: bool,
    /// The programs outside of the project that the command runs; left out where they were not looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProofProgram>,
    /// What the work is measured by, as far as it differs from the base; left out if nothing does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<ProofChange>,
    /// The runs of the validation command, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ProofRun>,
    /// What was not looked at, and why; left out if there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// The tree of the claimed commit in git; left out if it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// What a second agent has said; left out if none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<ProofVoice>,
}

/// A file that work is measured by, and which differs from the base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ProofChange {
    /// The name of its content in git; of zeros if it is gone.
    pub after: String,
    /// That of its content at the base; of zeros if it is new.
    pub before: String,
    /// added, grown, changed or removed.
    pub change: String,
    /// Its path.
    pub path: String,
}

/// Changes of lines of proven work, one at a time, with each of which the validation command ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ProofMutants {
    /// How many were made.
    pub made: u64,
    /// Those with which the command has passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnoticed: Vec<ProofMutant>,
}

/// A change of one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ProofMutant {
    /// The line as it was tried.
    pub after: String,
    /// The line of the work.
    pub before: String,
    /// Its number.
    pub line: u64,
    /// Its file.
    pub path: String,
}

/// A program outside of the project that the validation command runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ProofProgram {
    /// What it was when the loop began; left out if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ProofFile>,
    /// The SHA-256 of its content; empty if it cannot be read.
    pub digest: String,
    /// The name by which it is found.
    pub name: String,
    /// Its path.
    pub path: String,
}

/// A file with its content; both empty if there was none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ProofFile {
    /// The SHA-256 of its content.
    pub digest: String,
    /// Its path.
    pub path: String,
}

/// One run of the validation command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ProofRun {
    /// The command.
    pub command: String,
    /// The SHA-256 of its output, as far as that was kept, with how it ended.
    pub digest: String,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// base (at the base), claim (in the claimed commit), again (there once more), `claim_with_base` (there, with the base's version of what is protected),
    /// red (at the base, with the tests of the claimed commit), place (where the agent works), or prepare (in a new checkout, before them).
    pub of: String,
    /// It succeeded.
    pub ok: bool,
    /// The end of its output.
    pub output: String,
    /// The tests that it counted; left out if its runner is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<ProofTests>,
}

impl ProofProgram {
    /// In words, how it differs from what it was when the loop began; empty if it does not.
    #[must_use]
    pub fn what_differs(&self) -> String {
        let Self { before, name, path, .. } = self;
        match before {
            None => String::new(),
            Some(before) if before.path.is_empty() => {
                format!("{name} is {path} now, which was not there when the loop began, or was written since")
            }
            Some(before) if before.path == *path => {
                format!("{path} has another content than when the loop began")
            }
            Some(before) => format!("{name} is {path} now, and was {}", before.path),
        }
    }
}

impl ProofRun {
    /// In words, where a run of this kind takes place.
    #[must_use]
    pub fn place(of: &str) -> &str {
        match of {
            "base" => "at the base",
            "claim" => "at the claimed commit",
            "again" => "at the claimed commit once more",
            "claim_with_base" => "at the claimed commit, with the base's version of what it is measured by",
            "red" => "at the base, with the tests of the claimed commit",
            "held_out" => "at the claimed commit, with the tests that agents do not get",
            "prepare" => "in a new checkout",
            "place" => "where the agent works",
            other => other,
        }
    }
}

/// Tests, as their runner has counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ProofTests {
    /// Those that ran, failed ones included.
    pub ran: u64,
    /// Those that were left out.
    pub skipped: u64,
}

/// What a second agent has said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ProofVoice {
    /// It finds the work honest; left out if it gave no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// Its reason, or why it gave no verdict; empty if it agrees.
    pub words: String,
}

/// Commits, names in git and paths have no secrets.
impl Texts for ProofRecord {
    fn replace_texts(&mut self, new: New<'_>) {
        self.about.replace_texts(new);
        self.by.replace_texts(new);
        self.skipped.replace_texts(new);
        for run in &mut self.runs {
            run.command.replace_texts(new);
            run.output.replace_texts(new);
        }
        for mutant in self.mutants.iter_mut().flat_map(|mutants| &mut mutants.unnoticed) {
            mutant.before.replace_texts(new);
            mutant.after.replace_texts(new);
        }
        if let Some(voice) = &mut self.voice {
            voice.words.replace_texts(new);
        }
    }
}
