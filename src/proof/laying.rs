//! Lays out in the proof tree what the command looks at for a claim.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use super::baseline::Look;
use super::judgement::Unproven;
use super::measure::{Changes, Measures};
use super::protected::AllProtected;
use super::step::{Step, unproven};
use super::tree::{Laid, Over, ProofTree, TreeError, Unprepared};
use crate::git::{self, clean_tree};
use crate::parallel;

/// A claimed commit, its tree in git, and that it is laid out, or why that was not prepared.
pub(super) type Claim = (String, Option<String>, Result<Laid, Unprepared>);

/// Makes a claim ready: everything but ralph's `own` files has to be committed, on top of the base.
pub(super) fn claim(
    look: &Look,
    named: Option<String>,
    own: &[PathBuf],
    cancelled: &AtomicBool,
) -> Result<Step<Claim>, TreeError> {
    let tree = &look.tree;
    let own = named.is_none().then_some(own);
    let Some(commit) = named.or_else(|| git::head(tree.root())) else {
        return Ok(unproven(&Unproven::NoCommit));
    };
    let admitted = || admit(look, &commit, own);
    let (admitted, laid) = if tree.has_preparation() {
        // A preparation may take minutes: a claim that is refused has none.
        match admitted()? {
            Err(why) => return Ok(unproven(&why)),
            admitted => (Ok(admitted), tree.lay(&commit, cancelled)),
        }
    } else {
        // Neither needs the other, and in a large repository both take their time.
        parallel::both(&admitted, || tree.lay(&commit, cancelled))
    };
    match (admitted?, laid) {
        (Err(why), laid) => {
            // The next claim finds the tree as warm as after a command. What cannot be sealed is made anew.
            let _ = laid.and_then(|laid| tree.leave(&laid));
            Ok(unproven(&why))
        }
        (Ok(name), Ok(laid)) => Ok(Step::Goes((commit, name, Ok(laid)))),
        (Ok(name), Err(TreeError::Unprepared(why))) => Ok(Step::Goes((commit, name, Err(why)))),
        (Ok(_), Err(error)) => Err(error),
    }
}

/// Finds why a commit is no claim, whatever a command says of it; otherwise its tree in git. `own` are the files of ralph's that the
/// agent need not have committed, if the commit is what it works on.
fn admit(
    Look { tree, base, began, .. }: &Look,
    commit: &str,
    own: Option<&[PathBuf]>,
) -> Result<Result<Option<String>, Unproven>, TreeError> {
    let files = own.map_or_else(|| Ok(Vec::new()), |own| uncommitted(tree, own, *began))?;
    if !files.is_empty() {
        return Ok(Err(Unproven::Uncommitted(files)));
    }
    if !clean_tree::descends(tree.root(), commit, base) {
        return Ok(Err(Unproven::OtherHistory { commit: commit.to_owned(), base: base.clone() }));
    }
    clean_tree::verify_since(tree.root(), base, commit, *began)?;
    Ok(Ok(clean_tree::tree_of(tree.root(), commit)))
}

/// Lays out the commit with the base's version of what its work is measured by; `None` if nothing of that was changed. Also returns
/// what has changed at all.
pub(super) fn lay_with_base(
    look: &Look,
    commit: &str,
    measures: &Measures,
    plans: &[PathBuf],
    cancelled: &AtomicBool,
) -> Result<(Changes, Option<(Laid, AllProtected)>), TreeError> {
    let Look { tree, base, .. } = look;
    let changes = Changes::between(tree.root(), base, commit, measures)?;
    let mut protected = changes.protected(tree.root())?;
    protected.retain(|path, _| !plans.iter().any(|plan| plan == Path::new(path)));
    if protected.is_empty() {
        return Ok((changes, None));
    }
    let laid = tree.lay_with(commit, Over::Protected(base, &protected), cancelled)?;
    Ok((changes, Some((laid, protected))))
}

/// Lays out the base with the tests that a commit brings; `None` if that would show nothing.
pub(super) fn lay_red(
    look: &Look,
    commit: &str,
    changes: &Changes,
    cancelled: &AtomicBool,
) -> Result<Option<(Laid, AllProtected)>, TreeError> {
    let Look { tree, base, .. } = look;
    let Some(tests) = changes.tests(tree.root())? else { return Ok(None) };
    let laid = tree.lay_red(base, (commit, &tests), cancelled)?;
    Ok(Some((laid, tests)))
}

/// The files that an agent has left uncommitted, but for ralph's `own`. What was so before the loop began is the user's.
fn uncommitted(tree: &ProofTree, own: &[PathBuf], began: SystemTime) -> Result<Vec<String>, TreeError> {
    let changed = git::uncommitted(tree.root())?.into_iter();
    let left = changed
        .filter(|file| !own.contains(&file.path) && file.touched.is_none_or(|touched| touched >= began));
    Ok(left.map(|file| file.path.to_string_lossy().into_owned()).collect())
}
