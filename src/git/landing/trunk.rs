//! A trunk, the landed tip that it follows, and the refs that keep both.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Merged, TASKS, files_of, merge, replayed_ref};
use crate::git::call::{LIMIT, run};
use crate::git::change::{ChangeError, ChangeOptions, change, change_with, patiently};
use crate::git::error::GitError;
use crate::git::left_locks;
use crate::git::progress::rebase_says;
use crate::git::range::is_ancestor;
use crate::git::refs::{branch_commit, commit_of};
use crate::git::save;
use crate::git::trees::{Tree, list, locks as tree_locks};

/// The refs of landed tips.
const LANDED: &str = "refs/ralph/landed";
/// The refs that keep up to which commit a trunk is known, to see that it was rewritten.
const KNOWN: &str = "refs/ralph/trunk";
/// The refs of landed tips that are still to be pushed.
const UNPUSHED: &str = "refs/ralph/unpushed";

/// The refs of landed tips as the remote had them last.
const SEEN: &str = "refs/ralph/remote";

/// The refs of trunks as the remote had them last, beside which the landed tip is.
const THEIRS: &str = "refs/ralph/theirs";

/// Times of files are up to so much earlier than the clock.
const COARSE: Duration = Duration::from_millis(20);

/// The refs of one trunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trunk {
    /// Any work tree of the repository.
    root: PathBuf,
    /// The name of the branch.
    name: String,
    /// Where agents work, below each checkout.
    agents: Option<PathBuf>,
}

/// Makes the landed tip of a trunk, or takes up an earlier one. `anew`: the user has named the branch once more, which accepts
/// what is there.
///
/// # Errors
/// If the branch is not what it was, or git fails.
pub fn begin(trunk: &Trunk, anew: bool) -> Result<(), GitError> {
    let stand = trunk.begin(anew)?;
    trunk.problem(&stand).map_or(Ok(()), Err)
}

/// What the trunk is, seen from the landed tip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stand {
    /// It is the tip.
    Level,
    /// The tip has all that it has, and more.
    Behind,
    /// It has commits of others, which the tip has not; this is its commit.
    Ahead(String),
    /// It does not have any more what it had.
    Rewritten,
    /// There is no such branch.
    Gone,
}

/// What became of an attempt to bring the trunk to the tip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// It is there, and was before.
    Level,
    /// It is there now.
    Moved,
    /// It is gone, rewritten or ahead: others decide what to do then.
    Astray,
    /// It cannot now, for this reason.
    InTheWay(String),
}

impl Trunk {
    /// The branch of this name in the repository of `root`.
    #[must_use]
    pub fn new(root: &Path, name: &str) -> Self {
        Self { root: root.to_owned(), name: name.to_owned(), agents: None }
    }

    /// The branch, which never moves while it is checked out in a work tree below this folder of a checkout: an agent is at work
    /// there.
    #[must_use]
    pub fn sparing(self, agents: &Path) -> Self {
        Self { agents: Some(agents.to_owned()), ..self }
    }

    /// The name of the branch.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The ref of the landed tip.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{LANDED}/{}", self.name)
    }

    fn known(&self) -> String {
        format!("{KNOWN}/{}", self.name)
    }

    /// The landed tip; `None` before anything was to land.
    #[must_use]
    pub fn tip(&self) -> Option<String> {
        commit_of(&self.root, &self.reference())
    }

    /// The commit of the branch.
    #[must_use]
    pub fn commit(&self) -> Option<String> {
        branch_commit(&self.root, &self.name)
    }

    /// Makes the landed tip where there is none, and brings one that the branch has overtaken there: agents are to start from what
    /// the user has.
    /// `anew`: what is there is accepted, although the branch was rewritten; the last tip is kept.
    ///
    /// # Errors
    /// If git fails.
    fn begin(&self, anew: bool) -> Result<Stand, GitError> {
        let Some(commit) = self.commit() else { return Ok(Stand::Gone) };
        let Some(tip) = self.tip() else {
            self.make_room()?;
            if let Err(error) = self.set(&self.reference(), &commit, Some("")) {
                // Another run may have made it meanwhile.
                return if self.tip().is_some() { Ok(Stand::Level) } else { Err(error) };
            }
            self.set(&self.known(), &commit, None)?;
            return Ok(Stand::Level);
        };
        match self.stand(&tip) {
            Stand::Rewritten if anew => {
                if !is_ancestor(&self.root, &tip, &commit) {
                    save::keep_commit(&self.root, &self.name, &tip)?;
                }
                self.set(&self.reference(), &commit, Some(&tip))?;
                self.set(&self.known(), &commit, None)?;
                Ok(Stand::Level)
            }
            Stand::Ahead(commit) if is_ancestor(&self.root, &tip, &commit) => {
                if let Err(error) = self.set(&self.reference(), &commit, Some(&tip))
                    && self.tip().as_ref() == Some(&tip)
                {
                    return Err(error);
                }
                self.set(&self.known(), &commit, None)?;
                Ok(Stand::Level)
            }
            stand => Ok(stand),
        }
    }

    /// Gives up the tips of branches that are gone where git could not have ours beside them, as `a` beside `a/b`. What they lead to
    /// is kept.
    fn make_room(&self) -> Result<(), GitError> {
        let words = ["for-each-ref", "--format=%(objectname) %(refname:lstrip=3)", LANDED];
        let listed = run(&self.root, &words, LIMIT)?;
        let is_below =
            |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        for line in String::from_utf8_lossy(&listed).lines() {
            let Some((tip, name)) = line.split_once(' ') else { continue };
            if is_below(name, &self.name) || is_below(&self.name, name) {
                save::keep_commit(&self.root, name, tip)?;
                let other = Self::new(&self.root, name);
                for reference in [other.known(), other.unpushed_ref(), other.reference()] {
                    change(&self.root, &["update-ref", "-d", &reference])
                        .map_err(|error| error.of("update-ref", &self.root))?;
                }
            }
        }
        Ok(())
    }

    /// How the branch stands to this tip.
    #[must_use]
    pub fn stand(&self, tip: &str) -> Stand {
        let Some(commit) = self.commit() else { return Stand::Gone };
        if commit == tip {
            return Stand::Level;
        }
        let known = commit_of(&self.root, &self.known());
        let is_there = |known: &String| {
            is_ancestor(&self.root, known, &commit)
                // A user of a remote may follow what was squashed there.
                || self.last_seen().is_some() && self.has_work(&commit, known)
        };
        if known.is_some_and(|known| !is_there(&known)) {
            return Stand::Rewritten;
        }
        if is_ancestor(&self.root, &commit, tip) { Stand::Behind } else { Stand::Ahead(commit) }
    }

    /// What to do about a trunk that nothing can land on; `None`: it is as it should be.
    #[must_use]
    pub fn problem(&self, stand: &Stand) -> Option<GitError> {
        let name = &self.name;
        let what = match stand {
            Stand::Gone => format!("the branch {name} is gone"),
            Stand::Rewritten => format!("the branch {name} was rewritten, and lacks commits that it had"),
            Stand::Level | Stand::Behind | Stand::Ahead(_) => return None,
        };
        let reference = self.reference();
        let way_out = match stand {
            Stand::Gone => format!("bring back what has landed with 'git branch {name} {reference}'"),
            _ => format!(
                "put it on what has landed with 'git branch -f {name} {reference}', or run again with --onto {name} to take it as it \
                 is"
            ),
        };
        Some(GitError::in_the_way(what, reference, way_out))
    }

    /// The error about a landed tip that is gone while something is to land.
    #[must_use]
    pub fn tip_is_gone(&self) -> GitError {
        let way_out = format!("run again to land on {} as it is", self.name);
        GitError::in_the_way("the ref of what has landed was removed", self.reference(), way_out)
    }

    /// The ref of the tip as the remote had it last.
    #[must_use]
    pub fn seen(&self) -> String {
        format!("{SEEN}/{}", self.name)
    }

    /// The ref of the trunk itself as the remote had it last.
    #[must_use]
    pub fn theirs(&self) -> String {
        format!("{THEIRS}/{}", self.name)
    }

    /// The commit of the trunk itself as the remote had it last; `None`: none was seen.
    #[must_use]
    pub fn their_commit(&self) -> Option<String> {
        commit_of(&self.root, &self.theirs())
    }

    /// Takes over the tip that the remote has, and that is here. What was the tip and is nowhere else is kept. `anew`: what is there
    /// is accepted, although it was rewritten.
    ///
    /// # Errors
    /// If the remote does not have any more what it had, or git fails.
    pub fn take_over(&self, tip: &str, anew: bool) -> Result<(), GitError> {
        let name = &self.name;
        let dropped = self.last_seen().filter(|seen| !is_ancestor(&self.root, seen, tip));
        if dropped.as_ref().is_some_and(|seen| !self.has_work(tip, seen)) && !anew {
            let what =
                format!("the branch {name} was rewritten on the remote, and lacks commits that it had");
            let way_out =
                format!("bring them back there, or run again with --onto {name} to take it as it is");
            return Err(GitError::in_the_way(what, self.seen(), way_out));
        }
        let old = self.tip();
        if let Some(old) = old.as_ref().filter(|old| !is_ancestor(&self.root, old, tip))
            && !self.commit().is_some_and(|commit| is_ancestor(&self.root, old, &commit))
        {
            save::keep_commit(&self.root, name, old)?;
        }
        if let Some(dropped) = dropped {
            self.go_back(&dropped, tip)?;
        }
        if old.as_deref() != Some(tip) {
            self.set(&self.reference(), tip, Some(old.as_deref().unwrap_or_default()))?;
        }
        self.is_there(tip)
    }

    /// The tip that the remote had last; `None`: none was seen.
    #[must_use]
    pub fn last_seen(&self) -> Option<String> {
        commit_of(&self.root, &self.seen())
    }

    /// Whether a commit has what another one has made, if not that itself: it was squashed, or rebased.
    fn has_work(&self, commit: &str, made: &str) -> bool {
        let merged = merge(&self.root, commit, made);
        matches!((merged, files_of(&self.root, commit)), (Ok(Merged::Tree(files)), Some(own)) if files == own)
    }

    /// The remote has this tip.
    ///
    /// # Errors
    /// If git fails.
    pub fn is_there(&self, tip: &str) -> Result<(), GitError> {
        self.set(&self.seen(), tip, None)
    }

    /// Brings the branch to a tip that lacks commits which the remote had, up to `dropped`: as commits of the user they would be
    /// pushed again. They are kept.
    fn go_back(&self, dropped: &str, tip: &str) -> Result<(), GitError> {
        let (name, has) = (&self.name, |old: &str, new: &str| is_ancestor(&self.root, old, new));
        let Some(commit) = self.commit().filter(|commit| !has(commit, tip)) else { return Ok(()) };
        if has(tip, &commit) && !has(dropped, &commit) {
            // The user has done it.
            return Ok(());
        }
        let by_hand =
            format!("'git rebase --onto {tip:.10} {dropped:.10} {name}', or put the branch there yourself");
        if !has(&commit, dropped) {
            let what = format!("the branch {name} here has commits on top of what the remote has dropped");
            return Err(GitError::in_the_way(what, self.seen(), by_hand));
        }
        save::keep_commit(&self.root, name, &commit)?;
        let trees = list(&self.root)?;
        let mut out = trees.iter().filter(|tree| tree.branch.as_deref() == Some(name) && !tree.is_gone);
        match (out.next(), out.next()) {
            (None, _) => self.set(&format!("refs/heads/{name}"), tip, Some(&commit))?,
            // What is changed there stays, or is in the way.
            (Some(tree), None) => change(&tree.path, &["reset", "--keep", "--quiet", tip])
                .map(drop)
                .map_err(|error| error.of("reset", &tree.path))?,
            (Some(_), Some(_)) => {
                let what = format!(
                    "the branch {name} is checked out twice, and the remote has dropped commits of it"
                );
                return Err(GitError::in_the_way(what, self.seen(), by_hand));
            }
        }
        self.set(&self.known(), tip, None)
    }

    /// The landed tip that is still to be pushed.
    #[must_use]
    pub fn unpushed(&self) -> Option<String> {
        commit_of(&self.root, &self.unpushed_ref())
    }

    fn unpushed_ref(&self) -> String {
        format!("{UNPUSHED}/{}", self.name)
    }

    /// This tip is pushed. If the note of it cannot be removed, or is of another one by now, that is pushed once more.
    pub fn is_pushed(&self, tip: &str) {
        let _ = change(&self.root, &["update-ref", "-d", &self.unpushed_ref(), tip]);
    }

    /// Moves the landed tip from `old` to `new`, and nowhere else: fails if it is not there any more. `again`: refs of tasks whose
    /// commits were made again, with the last one of the new ones, which are noted in the same step; as is that it `pushes` then.
    ///
    /// # Errors
    /// If git refuses.
    pub fn advance(
        &self,
        (old, new): (&str, &str),
        again: &[(String, String)],
        pushes: bool,
    ) -> Result<(), GitError> {
        let mut input = format!("start\nupdate {} {new} {old}\n", self.reference());
        if pushes {
            let _ = writeln!(input, "update {} {new}", self.unpushed_ref());
        }
        for (reference, commit) in again {
            let _ = writeln!(input, "update {} {commit}", replayed_ref(reference));
        }
        input.push_str("prepare\ncommit\n");
        let how = ChangeOptions { input: input.into(), ..ChangeOptions::default() };
        change_with(&self.root, &["update-ref", "-m", "ralph: landed", "--stdin"], &how)
            .map(drop)
            .map_err(|error| error.of("update-ref", &self.root))
    }

    fn set(&self, reference: &str, commit: &str, old: Option<&str>) -> Result<(), GitError> {
        let words = ["update-ref", "-m", "ralph: landed", reference, commit].into_iter().chain(old);
        change(&self.root, &words.collect::<Vec<_>>()).map_err(|error| error.of("update-ref", &self.root))
    }

    /// Brings the branch to the tip by a fast-forward: where it is checked out, with its files. Afterwards removes the refs of
    /// tasks whose commits it has.
    ///
    /// # Errors
    /// If git fails for another reason than files in the way.
    pub fn follow(&self, tip: &str) -> Result<Followed, GitError> {
        let commit = match self.stand(tip) {
            Stand::Level => {
                self.set(&self.known(), tip, None)?;
                self.forget_landed()?;
                return Ok(Followed::Level);
            }
            Stand::Behind => {
                let commit = self.commit().unwrap_or_default();
                // Also if it cannot follow now, so that it is seen if this is rewritten.
                self.set(&self.known(), &commit, None)?;
                commit
            }
            Stand::Ahead(_) | Stand::Rewritten | Stand::Gone => return Ok(Followed::Astray),
        };
        let trees = list(&self.root)?;
        if let Some(tree) = trees.iter().find(|tree| self.is_being_changed_in(tree)) {
            let place = tree.path.display();
            return Ok(Followed::InTheWay(format!("{place} is at work on {}: finish that", self.name)));
        }
        let out: Vec<&Tree> =
            trees.iter().filter(|tree| tree.branch.as_deref() == Some(&self.name) && !tree.is_gone).collect();
        match out.as_slice() {
            [] => {
                let reference = format!("refs/heads/{}", self.name);
                if let Err(error) = self.set(&reference, tip, Some(&commit)) {
                    // It has moved meanwhile, by a push or a commit.
                    return if self.commit() == Some(commit) { Err(error) } else { Ok(Followed::Astray) };
                }
            }
            [tree] if self.is_agents(tree, &trees) => {
                let place = tree.path.display();
                return Ok(Followed::InTheWay(format!("an agent has checked it out in {place}")));
            }
            [tree] => {
                if let Err(why) = self.forward(&tree.path, &commit, tip) {
                    return Ok(Followed::InTheWay(why));
                }
            }
            [one, other, ..] => {
                return Ok(Followed::InTheWay(format!(
                    "{} is checked out twice, in {} and {}: leave it in one of them",
                    self.name,
                    one.path.display(),
                    other.path.display()
                )));
            }
        }
        self.set(&self.known(), tip, None)?;
        self.forget_landed()?;
        Ok(Followed::Moved)
    }

    /// Brings the branch with its files from `old` to the tip, in the work tree that has it checked out; else returns what is in the
    /// way.
    fn forward(&self, tree: &Path, old: &str, tip: &str) -> Result<(), String> {
        let merge = || change(tree, &["merge", "--ff-only", "--quiet", "--no-autostash", tip]);
        let began = SystemTime::now() - COARSE;
        let Err(error) = merge() else { return Ok(()) };
        if let ChangeError::CutOff(_) = error {
            let ran = began..=SystemTime::now();
            // As long as another git works there, nothing is removed.
            patiently(|| {
                let _ = left_locks::remove(tree, &ran);
                tree_locks(tree, &self.name).is_empty().then_some(())
            });
        }
        let is_finished = self.finish_cut_off(tree, old, tip).map_err(|error| error.to_string())?;
        let again = if is_finished { merge() } else { Err(error) };
        again.map_err(|error| format!("{}: {error}", tree.display()))
    }

    /// Whether an agent works in a work tree of these.
    fn is_agents(&self, tree: &Tree, trees: &[Tree]) -> bool {
        let Some(agents) = &self.agents else { return false };
        trees.iter().any(|checkout| tree.path.starts_with(checkout.path.join(agents)))
    }

    /// Moves the branch where an earlier merge was killed after it had written the files and before it had done that: the index is
    /// what a commit between the branch and the tip has. Returns whether that was so.
    fn finish_cut_off(&self, tree: &Path, old: &str, tip: &str) -> Result<bool, GitError> {
        // One with conflicts has no files.
        let Ok(index) = run(tree, &["write-tree"], LIMIT) else { return Ok(false) };
        let index = String::from_utf8_lossy(&index).trim().to_owned();
        let words = ["log", "--format=%H %T", "--end-of-options", &format!("{old}..{tip}"), "--"];
        let commits = run(tree, &words, LIMIT).unwrap_or_default();
        let commits = String::from_utf8_lossy(&commits);
        let has_these = |line: &&str| line.split_once(' ').is_some_and(|(_, files)| files == index);
        let Some((commit, _)) = commits.lines().find(has_these).and_then(|line| line.split_once(' ')) else {
            return Ok(false);
        };
        self.set(&format!("refs/heads/{}", self.name), commit, Some(old)).map(|()| true)
    }

    /// Whether a rebase of this branch is in progress there.
    fn is_being_changed_in(&self, tree: &Tree) -> bool {
        rebase_says(&tree.path, "head-name").is_some_and(|head| head == format!("refs/heads/{}", self.name))
    }

    /// Removes the refs of tasks whose commits the branch has.
    fn forget_landed(&self) -> Result<(), GitError> {
        let merged = format!("--merged=refs/heads/{}", self.name);
        let output = run(
            &self.root,
            &["for-each-ref", "--format=delete %(refname) %(objectname)", &merged, TASKS],
            LIMIT,
        )?;
        if output.is_empty() {
            return Ok(());
        }
        let how = ChangeOptions { input: output, ..ChangeOptions::default() };
        change_with(&self.root, &["update-ref", "--stdin"], &how)
            .map(drop)
            .map_err(|error| error.of("update-ref", &self.root))
    }
}
