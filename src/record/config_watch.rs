//! Watches the files of settings: their content when the loop began, and whether an attempt has changed one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::files::theirs;
use crate::prompt::front_matter;
use crate::text::digest::sha256;

/// A watched file of settings, as the state file keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedConfig {
    /// Its absolute path.
    pub path: PathBuf,
    /// Only the front matter counts; the text below it is a prompt, which may change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub front_matter: bool,
    began: String,
    /// Its SHA-256 at the latest begin or end of an attempt, if it differs from the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest: Option<String>,
    /// Whether it was changed during an attempt.
    changed_inside: bool,
}

/// How a file of settings differs from what the loop began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// It was changed between attempts, or after the last one.
    Outside,
    /// It was changed while an agent was running.
    Inside,
}

impl WatchedConfig {
    /// Watches this file from its current content.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, ..Self::default() }.begun()
    }

    /// Watches the front matter of this file from its current content.
    #[must_use]
    pub fn of_front_matter(path: PathBuf) -> Self {
        Self { path, front_matter: true, ..Self::default() }.begun()
    }

    /// The SHA-256 of its content when the loop began; empty if it did not exist.
    pub(super) fn began(&self) -> &String {
        &self.began
    }

    fn begun(self) -> Self {
        Self { began: self.digest(), ..self }
    }

    /// An attempt begins.
    pub(super) fn attempt_begins(&mut self) {
        let now = self.digest();
        self.latest = (now != self.began).then_some(now);
    }

    /// An attempt has ended.
    pub(super) fn attempt_ends(&mut self) {
        let before = self.latest.take();
        self.attempt_begins();
        self.changed_inside |= self.latest != before;
    }

    /// How the file differs from when the loop began; `in_attempt` if the latest attempt has not ended.
    #[must_use]
    pub fn difference(&self, in_attempt: bool) -> Option<Difference> {
        let now = self.digest();
        let is_latest = self.latest.as_ref().unwrap_or(&self.began) == &now;
        let is_inside = self.changed_inside || in_attempt && !is_latest;
        let difference = if is_inside { Difference::Inside } else { Difference::Outside };
        (now != self.began).then_some(difference)
    }

    /// How the file differs, if it is unknown what attempts have changed.
    #[must_use]
    pub fn difference_in_doubt(&self) -> Option<Difference> {
        (self.digest() != self.began).then_some(Difference::Inside)
    }

    /// Empty for anything but a readable regular file: a stream can be read only once, by its consumer.
    fn digest(&self) -> String {
        let is_file = self.path.metadata().is_ok_and(|found| found.is_file());
        let content = is_file.then(|| theirs::read(&self.path, theirs::MAX_TEXT).ok()).flatten();
        let Some(content) = content else { return String::new() };
        let text = std::str::from_utf8(&content).ok().filter(|_| self.front_matter);
        let front_matter = text.and_then(|text| front_matter::split(text).ok());
        sha256(front_matter.map_or(content.as_slice(), |(yaml, _)| yaml.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_an_attempt_changes_is_told_from_what_others_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let write = |text: &str| fs::write(&path, text).unwrap();
        for is_there in [false, true] {
            let _ = fs::remove_file(&path);
            if is_there {
                write("a");
            }
            let mut config = WatchedConfig::new(path.clone());
            config.attempt_begins();
            config.attempt_ends();
            assert_eq!(config.difference(true), None);
            // Another process, between attempts.
            write("b");
            assert_eq!(config.difference(false), Some(Difference::Outside));
            assert_eq!(config.difference(true), Some(Difference::Inside), "the attempt was cut off");
            config.attempt_begins();
            config.attempt_ends();
            assert_eq!(config.difference(false), Some(Difference::Outside));
            // The agent changes the file, then another process does.
            config.attempt_begins();
            write("c");
            config.attempt_ends();
            assert_eq!(config.difference(false), Some(Difference::Inside));
            write("d");
            assert_eq!(config.difference(false), Some(Difference::Inside));
            // The original content is back.
            if is_there {
                write("a");
            } else {
                fs::remove_file(&path).unwrap();
            }
            assert_eq!(config.difference(true), None);
        }
    }

    #[test]
    fn of_a_file_with_front_matter_only_that_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("RALPH.md");
        let write = |agent: &str, prompt: &str| {
            fs::write(&path, format!("---\nagent: {agent}\n---\n{prompt}\n")).unwrap();
        };
        write("a", "one");
        let mut config = WatchedConfig::of_front_matter(path.clone());
        config.attempt_begins();
        write("a", "two");
        config.attempt_ends();
        assert_eq!(config.difference(true), None);
        config.attempt_begins();
        write("b", "two");
        config.attempt_ends();
        assert_eq!(config.difference(false), Some(Difference::Inside));
    }
}
