//! Candidates: the tip with one or several landings on it, as commits without a work tree.

use std::ffi::OsString;
use std::path::Path;

use crate::git::GitError;
use crate::git::landing::{
    Merged, commit, commit_again, commits, files_of, fork, has_merges, merge, merge_since,
};
use crate::git::range::is_ancestor;
use crate::graph::Landing;

/// What lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A merge commit for each task, unless a fast-forward does.
    Merge,
    /// The task's commits once more, one after the other.
    Rebase,
}

/// A tip with landings on it.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// What they were put on.
    pub(super) base: String,
    /// The last commit.
    pub(super) commit: String,
    /// Its landings in their order, each with the commit that brings it.
    pub(super) brings: Vec<(Landing, String)>,
}

impl Candidate {
    /// One with nothing on it.
    pub(super) fn on(base: &str) -> Self {
        Self { base: base.to_owned(), commit: base.to_owned(), brings: Vec::new() }
    }
}

/// What became of an attempt to put a landing on a candidate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It is on it.
    On,
    /// It conflicts in these files with what the candidate was put on.
    Conflicts(Vec<String>),
    /// It only conflicts with a landing before it.
    Later,
}

/// How candidates are made.
pub(super) struct Maker<'a> {
    pub(super) root: &'a Path,
    pub(super) style: Style,
    /// The author of merge commits.
    pub(super) env: &'a [(OsString, OsString)],
}

impl Maker<'_> {
    /// Merges `theirs` into `ours`; `Err`: the files that conflict.
    pub(super) fn merged(
        &self,
        ours: &str,
        theirs: &str,
        message: &str,
    ) -> Result<Result<String, Vec<String>>, GitError> {
        if is_ancestor(self.root, ours, theirs) {
            return Ok(Ok(theirs.to_owned()));
        }
        Ok(match merge(self.root, ours, theirs)? {
            Merged::Tree(tree) => Ok(commit(self.root, &tree, &[ours, theirs], message, self.env)?),
            Merged::Conflict(files) => Err(files),
        })
    }

    /// Makes a commit that nothing leads to: fails where git cannot make any.
    pub(super) fn try_it(&self, tip: &str) -> Result<(), GitError> {
        let files = files_of(self.root, tip).unwrap_or_default();
        commit(self.root, &files, &[tip], "try", self.env).map(drop)
    }

    /// Puts a landing on a candidate, if it fits.
    pub(super) fn put(&self, landing: &Landing, on: &mut Candidate) -> Result<Put, GitError> {
        let made = match self.style {
            Style::Merge => {
                let message = format!("Merge {}", landing.named());
                self.merged(&on.commit, &landing.made.head, &message)?
            }
            Style::Rebase => self.replayed(landing, &on.commit)?,
        };
        match made {
            Ok(made) => {
                on.commit.clone_from(&made);
                on.brings.push((landing.clone(), made));
                Ok(Put::On)
            }
            Err(files) if on.brings.is_empty() => Ok(Put::Conflicts(files)),
            Err(_) => Ok(match merge(self.root, &on.base, &landing.made.head)? {
                Merged::Conflict(files) => Put::Conflicts(files),
                Merged::Tree(_) => Put::Later,
            }),
        }
    }

    /// A landing's commits once more on `onto`, as one where it has merges of its own.
    fn replayed(&self, landing: &Landing, onto: &str) -> Result<Result<String, Vec<String>>, GitError> {
        let (root, head) = (self.root, &landing.made.head);
        if is_ancestor(root, onto, head) && !has_merges(root, onto, head)? {
            return Ok(Ok(head.clone()));
        }
        let from = fork(root, onto, head).unwrap_or_else(|| landing.made.base.clone());
        if has_merges(root, &from, head)? {
            return Ok(match merge(root, onto, head)? {
                Merged::Tree(tree) => Ok(commit(root, &tree, &[onto], &landing.named(), self.env)?),
                Merged::Conflict(files) => Err(files),
            });
        }
        let mut last = onto.to_owned();
        for one in commits(root, &from, head)? {
            let tree = match merge_since(root, &last, &one, &format!("{one}^"))? {
                Merged::Tree(tree) => tree,
                Merged::Conflict(files) => return Ok(Err(files)),
            };
            if files_of(root, &last).as_ref() != Some(&tree) {
                last = commit_again(root, &one, &tree, &last, self.env)?;
            }
        }
        Ok(Ok(last))
    }
}
