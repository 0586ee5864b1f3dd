//! What claims are measured by besides the command, and which of it an agent has changed.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::mutants::{Source, is_source};
use super::protected::{
    AllProtected, Change, Difference, Patterns, Protected, Role, differences, is_prose, is_rust,
};
use super::{named, sections};
use crate::git::{GitError, clean_tree};
use crate::inspection::Ground;
use crate::settings::proof_level::{OnProtected, ProofLevel};
use crate::side_command::ValidationCommand;

/// What a claim is measured by besides the command.
#[derive(Debug, Clone)]
pub(crate) struct Measures {
    /// From [`ProofLevel::Base`] on the command has to pass with the base's version of tests and scripts, too.
    pub(crate) level: ProofLevel,
    /// The text of the command, which names scripts.
    pub(crate) command: String,
    /// Patterns of more files that are protected.
    pub(crate) protected: Vec<String>,
    /// What follows if it passes only without that.
    pub(crate) on_protected: OnProtected,
    /// Makes what a new checkout lacks.
    pub(crate) prepare: Option<ValidationCommand>,
    /// What the agents' files have and a checkout gets links to, from the project's top.
    pub(crate) carry: Vec<PathBuf>,
    /// Where the tests are that agents do not get.
    pub(crate) held_out: Option<String>,
    /// Where the command writes reports about tests in the XML of `JUnit`, as a pattern of paths.
    pub(crate) junit: Option<String>,
    /// How many changed lines of the work are tried that a test should notice.
    pub(crate) mutants: u32,
    /// The longest time for one claim, without what a second agent needs.
    pub(crate) limit: Duration,
    /// Where the agent stands that judges such a claim; `None` if none can be asked.
    pub(crate) judge: Option<Ground>,
}

impl Measures {
    /// Whether a claim is measured by the base's version of tests and scripts, too.
    pub(super) fn with_base(&self) -> bool {
        matches!(self.level, ProofLevel::Base | ProofLevel::Strict)
    }

    /// Whether a claim has to pass all checks that there are.
    pub(super) fn is_strict(&self) -> bool {
        self.level == ProofLevel::Strict
    }
}

/// What differs between the base and a claimed commit.
#[derive(Debug)]
pub(super) struct Changes {
    differences: Vec<Difference>,
    patterns: Patterns,
}

impl Changes {
    /// What differs between these two.
    pub(super) fn between(
        root: &Path,
        base: &str,
        commit: &str,
        measures: &Measures,
    ) -> Result<Self, GitError> {
        let differences = differences(&clean_tree::differences(root, base, commit)?);
        let is_same = differences.is_empty();
        let patterns = if is_same { Patterns::default() } else { patterns(root, base, measures) };
        Ok(Self { differences, patterns })
    }

    /// What of it is protected.
    pub(super) fn protected(&self, root: &Path) -> Result<AllProtected, GitError> {
        let mut found = self.patterns.among(&self.differences);
        let parts = changed_parts(root, &self.differences, &found, sections::with_those_of_base)?;
        found.extend(parts);
        Ok(found)
    }

    /// The sources that the work has changed.
    pub(super) fn sources(&self, root: &Path) -> Result<Vec<Source>, GitError> {
        let is_meant = |difference: &&Difference| {
            let Difference { path, change, is_file, .. } = difference;
            *is_file && *change != Change::Removed && is_source(path) && self.patterns.role(path).is_none()
        };
        let texts = texts(root, self.differences.iter().filter(is_meant).collect())?;
        let source = |(file, base, now): (&Difference, _, _)| Source { path: file.path.clone(), base, now };
        Ok(texts.into_iter().map(source).collect())
    }

    /// What tests are made of in the commit, to be laid over the base's sources: then they must fail. `None` if no test came or
    /// changed, or no source did.
    pub(super) fn tests(&self, root: &Path) -> Result<Option<AllProtected>, GitError> {
        let mut found = AllProtected::new();
        for Difference { path, change, contents, .. } in &self.differences {
            if let Some(role) = self.patterns.role(path).filter(|_| *change != Change::Removed) {
                let contents = contents.clone();
                found.insert(path.clone(), Protected { change: *change, role, contents, mixed: None });
            }
        }
        let is_source =
            |Difference { path, .. }: &Difference| !is_prose(path) && self.patterns.role(path).is_none();
        let has_sources = self.differences.iter().any(is_source);
        // The base's text with the parts of the commit. A new source file is unknown to the base's sources.
        let with_those_of_work = |path: &str, base: &str, now: &str| {
            (!base.is_empty()).then(|| sections::with_those_of_base(path, now, base)).flatten()
        };
        let parts = changed_parts(root, &self.differences, &found, with_those_of_work)?;
        let parts = parts.into_iter().map(|(path, part)| {
            let role = if is_rust(&path) { Role::Test } else { part.role };
            (path, Protected { role, ..part })
        });
        found.extend(parts);
        let has_tests = found.values().any(|protected| protected.role == Role::Test);
        Ok(Some(found).filter(|_| has_tests && has_sources))
    }
}

/// The text of a file in a commit.
pub(super) fn text_at(root: &Path, commit: &str, path: &str) -> Option<String> {
    clean_tree::file_of(root, commit, path).map(|text| String::from_utf8_lossy(&text).into_owned())
}

fn patterns(root: &Path, base: &str, measures: &Measures) -> Patterns {
    let at_base = |path: &str| text_at(root, base, path);
    let run = named::run_by(&measures.command, at_base);
    Patterns { more: measures.protected.iter().cloned().chain(on_path(root)).collect(), run }
}

/// The folders of the project in which programs are searched, as patterns: in the clean checkout they are searched as well.
fn on_path(root: &Path) -> Vec<String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let inside =
        env::split_paths(&path).filter_map(|folder| Some(folder.strip_prefix(root).ok()?.to_owned()));
    inside
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| format!("/{}/", folder.display()))
        .collect()
}

/// The texts of files at the base and in the commit; those that are no text are left out. A missing file is empty.
fn texts<'a>(
    root: &Path,
    files: Vec<&'a Difference>,
) -> Result<Vec<(&'a Difference, String, String)>, GitError> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = files.iter().flat_map(|file| file.contents.clone()).collect();
    let contents = clean_tree::contents(root, &names)?;
    let text = |content: &Option<Vec<u8>>| String::from_utf8(content.clone().unwrap_or_default()).ok();
    let texts = files.into_iter().zip(contents.chunks(2)).filter_map(|(file, both)| {
        let [base, now] = both else { return None };
        Some((file, text(base)?, text(now)?))
    });
    Ok(texts.collect())
}

/// The files of which only a part is protected, and differs. `mix` makes the text from the base's and the commit's, by path.
fn changed_parts(
    root: &Path,
    differences: &[Difference],
    whole: &AllProtected,
    mix: impl Fn(&str, &str, &str) -> Option<String>,
) -> Result<AllProtected, GitError> {
    let may_have = |difference: &&Difference| {
        let Difference { path, change, is_file, .. } = difference;
        *is_file && *change != Change::Removed && !whole.contains_key(path) && sections::has_some(path)
    };
    let texts = texts(root, differences.iter().filter(may_have).collect())?;
    let mixed = texts.into_iter().filter_map(|(file, base, now)| {
        let mixed = mix(&file.path, &base, &now)?;
        let protected = Protected {
            change: Change::Changed,
            role: Role::Runner,
            contents: file.contents.clone(),
            mixed: Some(mixed),
        };
        Some((file.path.clone(), protected))
    });
    Ok(mixed.collect())
}
