//! What a run needs where many machines work on its graph: a remote through which their clones give each other what they make.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use anyhow::bail;

use super::Run;
use super::jobs::Plan;
use crate::engine::outcome::{End, Outcome};
use crate::git;
use crate::git::identity::CommitIdentity;
use crate::git::repository::{first_commit, is_shallow};
use crate::graph::Patience;
use crate::job::Refused;
use crate::landing::{Exchange, Failed};

/// The remote of a run whose graph is on a server; `None`: it is in a file. Brings the landed tip here.
pub(super) fn exchange(
    run: &Run<'_>,
    plan: &Plan,
    identity: &CommitIdentity,
    id: &str,
) -> anyhow::Result<Option<Arc<Exchange>>> {
    let Some(server) = run.graph.server() else { return Ok(None) };
    let (root, settings) = (run.workspace.project.root(), &run.workspace.settings);
    if is_shallow(root) {
        bail!(
            "{}: it has not all commits, and work could not be merged: 'git fetch --unshallow'",
            root.display()
        );
    }
    let Some(remote) = git::remote::remote(root) else {
        bail!(
            "{}: the graph is on a server, and there is no remote for what is done: 'git remote add origin URL'",
            root.display()
        );
    };
    server.require_repository(&first_commit(root, plan.trunk.name())?)?;
    let name = remote.name.clone();
    let exchange = Exchange {
        root: root.to_owned(),
        remote,
        identity: identity.clone(),
        trunk: plan.trunk.clone(),
        is_protected: settings.git.protected_branches.iter().any(|name| name == plan.trunk.name()),
        patience: Arc::new(Patience::of(server.longest)),
        requests: settings.git.auto_pr.then(|| id.to_owned()),
        known: Mutex::default(),
        turn: Mutex::default(),
    };
    let never = AtomicBool::new(false);
    let refused = |why: String| Refused::from(End::because(Outcome::GitFailed, why));
    exchange.check(&never).map_err(|why| {
        refused(format!("{name} does not take what is done here: {why}: let this user push to it"))
    })?;
    match exchange.bring_tip(plan.is_named, &never) {
        Ok(()) => Ok(Some(Arc::new(exchange))),
        Err(Failed::Ends(end)) => Err(Refused::from(end).into()),
        Err(Failed::Cut) => Err(Refused::from(End::from(Outcome::Interrupted)).into()),
    }
}
