//! The pull requests that branches of the plan start from (`Base: pr/12`): their commits, and what was written about them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{anyhow, bail};

use super::planned::Planned;
use crate::git;
use crate::git::identity::CommitIdentity;
use crate::git::publish::{
    ANSWER_ROOM, PULL_REQUEST_LIMIT, PUSH_LIMIT, ROOM, Unpublished, answered, answered_by,
};
use crate::git::pull_request::{self, PullRequest};
use crate::git::remote::Remote;
use crate::process::launch::Launch;
use crate::side_command::run_alone;

/// Fetches those of the branches that are to be built, and enters their commits; returns them by their numbers.
///
/// # Errors
/// If one of them cannot be had: no agent starts without what it is to work on.
pub(super) fn fetch(
    root: &Path,
    remote: Option<&Remote>,
    identity: &CommitIdentity,
    branches: &mut [Planned],
) -> anyhow::Result<HashMap<u64, PullRequest>> {
    let mut requests = HashMap::new();
    for branch in branches.iter_mut().filter(|branch| branch.is_open()) {
        let Some(number) = branch.request else { continue };
        let (name, base) = (&branch.section.name, &branch.base);
        let failed = |why: anyhow::Error| anyhow!("'{base}', the base of '{name}': {why}");
        let Some(remote) = remote else {
            return Err(failed(anyhow!(
                "the repository has no remote with pull requests: 'git remote add origin URL'"
            )));
        };
        if let Entry::Vacant(place) = requests.entry(number) {
            place.insert(one(root, remote, identity, number).map_err(failed)?);
        }
        let request = &requests[&number];
        if !request.is_fork && request.head == *name {
            return Err(failed(anyhow!(
                "that is the branch of {base} itself: give this section another name"
            )));
        }
        branch.commit = git::refs::base_commit(root, &pull_request::reference(number));
    }
    Ok(requests)
}

/// One pull request.
fn one(root: &Path, remote: &Remote, identity: &CommitIdentity, number: u64) -> anyhow::Result<PullRequest> {
    let (home, forge) = (&remote.home, remote.home.forge());
    let row = forge.row();
    let cancelled = AtomicBool::new(false);
    let launch = git::remote::fetch(root, remote, &[pull_request::refspec(remote, number)], identity);
    answered(run_alone(&launch, (PUSH_LIMIT, ROOM), &cancelled)).map_err(|failure| {
        let why = reason(failure);
        if why.contains("couldn't find remote ref") {
            let (remote, noun, at) = (&remote.name, row.noun, forge.head(number));
            return anyhow!("{remote} has no {noun} {number} ({at}): name one that exists, or another base");
        }
        anyhow!("it cannot be fetched from {}: {why}", remote.name)
    })?;
    let ask = |launch: Launch| {
        answered_by(home, run_alone(&launch, (PULL_REQUEST_LIMIT, ANSWER_ROOM), &cancelled)).map_err(|failure| {
            anyhow!(
                "what was written about it cannot be read: {}; to begin without that, name its branch, or a commit, as the base",
                reason(failure)
            )
        })
    };
    let view = ask(home.ask(root, (row.view)(number), ""))?;
    let comments = ask(home.ask_comments(root, number))?;
    match pull_request::read(forge, number, &view, &comments) {
        Ok(mut request) => {
            let branch = format!("refs/heads/{}", request.head);
            let listed = git::remote::list(root, remote, &[branch], identity);
            let listed = answered(run_alone(&listed, (PUSH_LIMIT, ROOM), &cancelled));
            request.is_gone = listed.is_ok_and(|listed| listed.trim().is_empty());
            Ok(request)
        }
        Err(why) => bail!("{why}: see '{} --version', and whether it is the newest one", row.program),
    }
}

fn reason(failure: Unpublished) -> String {
    failure.why().unwrap_or_else(|| "it was cut off".to_owned())
}
