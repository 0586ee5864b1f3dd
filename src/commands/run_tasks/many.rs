//! What a run needs where many machines work on its graph: a remote through which their clones give each other what they make.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use anyhow::bail;

use super::Run;
use super::run_graph::{Server, interrupted};
use crate::commands::output::remark;
use crate::engine::outcome::{End, Outcome};
use crate::git;
use crate::git::identity::CommitIdentity;
use crate::git::landing::{Trunk, forget_finished, fork, has_commit, left_over};
use crate::git::publish::Unpublished;
use crate::git::range::is_ancestor;
use crate::git::repository::{first_commit, is_shallow, no_identity};
use crate::graph::{Claim, GraphError, HowDone, Landing, Made, Patience, Standing, Store as _};
use crate::job::Refused;
use crate::landing::{Exchange, Failed, LandedRequest};

/// The remote of a run whose graph is on a server; `None`: it is in a file. Brings the landed tip here.
pub(super) fn exchange(
    run: &Run<'_>,
    (trunk, is_named): (&Trunk, bool),
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
    if let Some(why) = no_identity(root).filter(|_| *identity == CommitIdentity::default()) {
        bail!("git cannot make commits here: {why}: set user.name and user.email with 'git config --global'");
    }
    let Some(remote) = git::remote::remote(root, settings.git.forge) else {
        bail!(
            "{}: the graph is on a server, and there is no remote for what is done: 'git remote add origin URL'",
            root.display()
        );
    };
    server.require_repository(&first_commit(root, trunk.name())?)?;
    let name = remote.name.clone();
    let exchange = Exchange {
        root: root.to_owned(),
        remote,
        identity: identity.clone(),
        trunk: trunk.clone(),
        is_protected: settings.git.protected_branches.iter().any(|name| name == trunk.name()),
        patience: Arc::new(Patience::of(server.longest)),
        request: settings.git.auto_pr.then(|| Mutex::new(LandedRequest::new(id))),
        known: Mutex::default(),
        turn: Mutex::default(),
    };
    let has_come = server.signals.has_come();
    match exchange.check(has_come) {
        Ok(()) => {}
        Err(Unpublished::Wrong(why)) if refuses_login(&why) => {
            bail!("{name} does not let this user in: {why}: see to the key or the token that git uses");
        }
        Err(Unpublished::Wrong(why)) => {
            let why = format!("{name} cannot be used: {why}: see whether it is there, and lets this user in");
            let end = End::because(Outcome::StoreAway, why);
            return Err(Refused::from(end).into());
        }
        Err(Unpublished::Cut) => return Err(interrupted()),
        Err(failure) => {
            let why = failure.why().unwrap_or_default();
            bail!("{name} does not take what is done here: {why}: let this user push to it");
        }
    }
    match exchange.bring_tip(is_named, has_come).and_then(|()| take_up(&exchange, server, trunk, has_come)) {
        Ok(()) => {
            if let Some((task, commit)) = server.known().landed_last(trunk.name())?
                && !trunk
                    .tip()
                    .is_some_and(|tip| has_commit(root, &commit) && is_ancestor(root, &commit, &tip))
            {
                remark(&format!(
                    "what landed last is not on {} of {name}: {commit:.10}, of {task}: where that was squashed, all is well; where it \
                     is lost, 'ralph task reset {task}' has it done again",
                    trunk.name()
                ));
            }
            Ok(Some(Arc::new(exchange)))
        }
        Err(Failed::Refused(why)) => bail!(why),
        Err(Failed::Ends(end)) => Err(Refused::from(end).into()),
        Err(Failed::Cut) => Err(interrupted()),
    }
}

/// Whether a remote has answered, and does not know this user, or shows it no such repository.
fn refuses_login(why: &str) -> bool {
    let words = [
        "Authentication failed",
        "Permission denied (",
        "could not read Username",
        "could not read Password",
        "Host key verification failed",
        "Repository not found",
    ];
    words.iter().any(|words| why.contains(words))
}

/// Brings to the remote, and books, what an earlier run in this clone could not (rule 7).
fn take_up(
    exchange: &Exchange,
    server: &Server,
    trunk: &Trunk,
    cancelled: &AtomicBool,
) -> Result<(), Failed> {
    let Some(tip) = trunk.tip() else { return Ok(()) };
    let left = left_over(&exchange.root, &tip)?;
    if left.is_empty() {
        return Ok(());
    }
    let there = exchange.claims(cancelled)?;
    let mut store = server.known();
    for (reference, head, is_finished) in left {
        let Some(claim) = Claim::of_reference(&reference) else { continue };
        let is_there = there.iter().any(|(commit, _)| *commit == head);
        let is_known = |known: &Landing| known.reference() == reference && known.made.head == head;
        let known = store.landing(&claim.task).ok().flatten().filter(is_known);
        if is_there && !is_finished && known.is_some() {
            continue;
        }
        exchange.push_claim(&reference, &head, cancelled)?;
        // The answer was lost: it is handed in.
        if known.is_some_and(|known| matches!(known.standing, Standing::Waiting | Standing::Landed)) {
            forget_finished(&exchange.root, &reference)?;
            continue;
        }
        let base = fork(&exchange.root, &tip, &head).unwrap_or_else(|| tip.clone());
        let made = Made { trunk: trunk.name().to_owned(), base, head };
        let booked = if is_finished {
            store.queue(&claim, &made, HowDone::default()).map(|_| "handed in to land")
        } else {
            store
                .keep(&claim, &made)
                .and_then(|()| store.release(&claim, ""))
                .map(|()| "kept for its next agent")
        };
        let what = format!("{}: what an earlier run has left here, {:.10}, is", claim.task, made.head);
        match booked {
            Ok(done) => remark(&format!("{what} {done}")),
            // An older one that was told before.
            Err(GraphError::ClaimLost { .. } | GraphError::UnknownTask { .. })
                if is_there && !is_finished => {}
            Err(GraphError::ClaimLost { .. } | GraphError::UnknownTask { .. }) => remark(&format!(
                "{what} not taken up, as its claim does not hold any more: it stays as {reference}"
            )),
            Err(error) => return Err(Failed::Ends(error.into())),
        }
        if is_finished {
            forget_finished(&exchange.root, &reference)?;
        }
    }
    Ok(())
}
