//! What an attempt has changed, from git.

use std::collections::BTreeSet;
use std::path::Path;

use crate::git::{self, Changed};
use crate::inspection::Ground;
use crate::memory::journal::MOST_FILES;

/// The state of the work tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    head: Option<String>,
    files: Option<Vec<Changed>>,
}

impl Snapshot {
    pub(super) fn take(ground: &Ground) -> Self {
        if !ground.in_git {
            return Self::default();
        }
        Self { head: git::head(&ground.root), files: git::changes(&ground.root) }
    }

    /// The commit of HEAD.
    pub(super) fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    /// Whether nothing is uncommitted.
    pub(super) fn is_clean(&self) -> bool {
        self.head.is_some() && self.files.as_ref().is_some_and(Vec::is_empty)
    }

    /// The files that changed since before, and whether anything has changed at all.
    pub(super) fn since(&self, before: &Self, root: &Path) -> (Vec<String>, bool) {
        let committed = match (&before.head, &self.head) {
            (Some(from), Some(to)) if from != to => git::guard::changed_between(root, from, to),
            _ => Vec::new(),
        };
        let known = before.files.as_deref().unwrap_or_default();
        let now = self.files.as_deref().unwrap_or_default();
        let names = git::guard::not_as_before(now, known).map(|path| path.to_string_lossy().into_owned());
        let mut files: BTreeSet<String> = names.collect();
        files.extend(committed);
        let changed = !files.is_empty() || before.head != self.head;
        (files.into_iter().take(MOST_FILES).collect(), changed)
    }
}
