//! A branch's work tree, ready for its agents.

use anyhow::{Context as _, anyhow};

use super::planned::Planned;
use crate::git;
use crate::git::identity::Identity;
use crate::project::{BRANCH_PLAN, Project};
use crate::record::state::{self, Found};
use crate::settings::Settings;
use crate::source::branch::main_plan::MainPlan;

/// A branch's work tree.
pub(super) struct Tree {
    /// Its places.
    pub(super) project: Project,
    /// The commit that the branch starts from.
    pub(super) start: String,
}

impl Tree {
    /// Makes the work tree of a branch, or takes up the one that is there.
    pub(super) fn prepare(
        main: &Project,
        branch: &Planned,
        trees: &[git::worktrees::Tree],
        identity: &Identity,
        plan: &MainPlan,
    ) -> anyhow::Result<Self> {
        let (root, name) = (main.root(), &branch.section.name);
        // That of another branch is known only now.
        let start = branch.commit.clone().or_else(|| git::refs::branch_commit(root, &branch.base));
        let start = start.ok_or_else(|| anyhow!("its base '{}' is gone", branch.base))?;
        let path = main.worktree(name);
        git::worktrees::add(root, &path, name, &start, trees)?;
        git::worktrees::keep_plan_out(&path, BRANCH_PLAN)?;
        git::identity::configure(&path, identity)?;

        let project = main.elsewhere(&path, &path.join(".ralph"));
        let state = state::read(&project.state())
            .with_context(|| format!("cannot read {}", project.state().display()))?;
        let was_interrupted = matches!(&state, Found::State(state) if state.was_interrupted());
        plan.bring_to(&project.branch_plan(), name, was_interrupted).map_err(|why| anyhow!(why))?;
        Ok(Self { project, start })
    }
}

/// Who commits in the work trees, as the settings say.
pub(super) fn worktree_identity(project: &Project, settings: &Settings) -> Identity {
    let git = &settings.git;
    Identity {
        name: git.name.clone(),
        email: git.email.clone(),
        signing_key: git.signing_key.clone(),
        // `~` is for the git room to resolve.
        ssh_key: git
            .ssh_key
            .as_ref()
            .map(|key| if key.starts_with('~') { key.into() } else { project.root().join(key) }),
    }
}
