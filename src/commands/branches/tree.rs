//! A branch's work tree, ready for its agents.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, anyhow};

use super::planned::Planned;
use crate::engine::outcome::Outcome;
use crate::git;
use crate::git::identity::CommitIdentity;
use crate::git::worktrees::Added;
use crate::project::{BRANCH_PLAN, Project};
use crate::record::state::State;
use crate::record::state_read::{self, Extent, Found};
use crate::settings::Settings;

/// A branch's work tree.
pub(super) struct Tree {
    /// Its project.
    pub(super) project: Project,
    /// The commit that the branch starts from.
    pub(super) start: String,
    /// Whether its last loop was killed, or could not write the main plan.
    pub(super) was_killed: bool,
}

impl Tree {
    /// Makes the work tree of a branch, or reuses the existing one; for this `run`.
    pub(super) fn prepare(
        (main, run): (&Project, &str),
        branch: &Planned,
        trees: &[git::trees::Tree],
        identity: &CommitIdentity,
        tracked: &Tracked,
    ) -> anyhow::Result<Self> {
        let (root, name) = (main.root(), &branch.section.name);
        // The commit of another branch is known only now.
        let start = branch.commit.clone().or_else(|| git::refs::branch_commit(root, &branch.base));
        let start = start.ok_or_else(|| anyhow!("its base '{}' is gone", branch.base))?;
        let path = main.worktree(name);
        let commit = match git::worktrees::add(root, &path, name, &start, Some(trees))? {
            Added::New => start.clone(),
            Added::Branch | Added::Reused => git::refs::branch_commit(root, name).unwrap_or_default(),
        };
        if tracked.has_plan(root, commit) {
            git::keep_plan_out(&path, BRANCH_PLAN, true)?;
        }
        git::identity::configure(&path, identity)?;

        let project = main.of_branch(name, Some(run));
        project.require_no_link()?;
        let state = state_read::read(&project.state(), Extent::Whole)
            .with_context(|| format!("cannot read {}", project.state().display()))?;
        // A main plan that could not be written lacks its ticks as well.
        let lacks_ticks = |state: &State| {
            state.active || state.exit_reason.as_deref() == Some(Outcome::RecordFailed.word())
        };
        let was_killed = match &state {
            Found::State(state) => lacks_ticks(state),
            // A power cut has left it so.
            Found::Damaged(_) => true,
            Found::Nothing | Found::Unknown(_) | Found::Newer(_) => false,
        };
        Ok(Self { project, start, was_killed })
    }
}

/// Commits that contain a plan; many branches share a base.
#[derive(Default)]
pub(super) struct Tracked(Mutex<HashMap<String, bool>>);

impl Tracked {
    fn has_plan(&self, root: &Path, commit: String) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.entry(commit) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let is_tracked = git::is_tracked(root, place.key(), BRANCH_PLAN);
                *place.insert(is_tracked)
            }
        }
    }
}

/// The author of commits in the work trees, by the settings.
pub(in crate::commands) fn worktree_identity(project: &Project, settings: &Settings) -> CommitIdentity {
    let git = &settings.git;
    CommitIdentity {
        name: git.name.clone(),
        email: git.email.clone(),
        signing_key: git.signing_key.clone(),
        ssh_key: git.ssh_key.as_ref().map(Into::into),
    }
    .located(project.root())
}
