//! What decides how a loop works: how it was when the loop began, and whether a file of it was changed inside an attempt.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::files::theirs;
use crate::prompt::front_matter;
use crate::text::digest::sha256;

/// A file of settings, as far as the state file knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedConfig {
    /// Where it is; absolute.
    pub path: PathBuf,
    /// Only its front matter counts: what stands below is a prompt, which may change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub front_matter: bool,
    began: String,
    /// Its SHA-256 at the latest begin or end of an attempt, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest: Option<String>,
    /// It was changed inside an attempt.
    changed_inside: bool,
}

/// How a file of settings differs from what a loop began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// It was changed between attempts, or after the last one.
    Outside,
    /// It was changed while an agent was at work.
    Inside,
}

impl WatchedConfig {
    /// This file as it is now.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, ..Self::default() }.begun()
    }

    /// The front matter of this file as it is now.
    #[must_use]
    pub fn of_front_matter(path: PathBuf) -> Self {
        Self { path, front_matter: true, ..Self::default() }.begun()
    }

    /// The SHA-256 of its content when the loop began; empty where it was not there.
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

    /// How the file differs from when the loop began; `in_attempt` when the latest attempt has not come to its end.
    #[must_use]
    pub fn difference(&self, in_attempt: bool) -> Option<Difference> {
        let now = self.digest();
        let is_latest = self.latest.as_ref().unwrap_or(&self.began) == &now;
        let is_inside = self.changed_inside || in_attempt && !is_latest;
        let difference = if is_inside { Difference::Inside } else { Difference::Outside };
        (now != self.began).then_some(difference)
    }

    /// The same where nobody knows what attempts have changed.
    #[must_use]
    pub fn difference_in_doubt(&self) -> Option<Difference> {
        (self.digest() != self.began).then_some(Difference::Inside)
    }

    /// Empty for what is no file that can be read: a stream is read once, by those whom it is for.
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
            // Others, in between.
            write("b");
            assert_eq!(config.difference(false), Some(Difference::Outside));
            assert_eq!(config.difference(true), Some(Difference::Inside), "the attempt was cut off");
            config.attempt_begins();
            config.attempt_ends();
            assert_eq!(config.difference(false), Some(Difference::Outside));
            // The agent, and another process after it.
            config.attempt_begins();
            write("c");
            config.attempt_ends();
            assert_eq!(config.difference(false), Some(Difference::Inside));
            write("d");
            assert_eq!(config.difference(false), Some(Difference::Inside));
            // All is as it was.
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
