//! Clones of one repository, and what they find at its remote.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::git::forge::ForgeChoice;
use crate::git::landing::{begin, landed_as};
use crate::git::remote::remote;

const CLAIM: &str = "refs/ralph/tasks/t-1/1-0123456789abcdef";

fn git(root: &Path, words: &[&str]) -> String {
    crate::git::tests::git(root, words).trim().to_owned()
}

/// Commits a file on top of a commit; returns the new one.
fn commit_on(root: &Path, on: &str, file: &str) -> String {
    git(root, &["checkout", "--quiet", "--detach", on]);
    std::fs::write(root.join(file), file).unwrap();
    git(root, &["add", file]);
    git(root, &["commit", "--quiet", "-m", file]);
    git(root, &["rev-parse", "HEAD"])
}

/// Two clones of a remote, and the commit that it has.
struct Clones {
    _dir: tempfile::TempDir,
    one: Exchange,
    other: Exchange,
    first: String,
}

impl Clones {
    fn new() -> Self {
        let (dir, root) = crate::git::tests::repository();
        git(&root, &["symbolic-ref", "HEAD", "refs/heads/main"]);
        git(&root, &["commit", "--quiet", "--allow-empty", "-m", "begin"]);
        let [bare, second] = ["remote.git", "second"].map(|name| root.with_file_name(name));
        let [bare, place] = [&bare, &second].map(|path| path.to_str().unwrap());
        git(&root, &["init", "--quiet", "--bare", "--initial-branch=main", bare]);
        git(&root, &["remote", "add", "origin", bare]);
        git(&root, &["push", "--quiet", "origin", "main"]);
        git(&root, &["clone", "--quiet", bare, place]);
        let first = git(&root, &["rev-parse", "main"]);
        Self { _dir: dir, one: exchange(&root), other: exchange(&second), first }
    }
}

fn exchange(root: &Path) -> Exchange {
    let trunk = Trunk::new(root, "main");
    begin(&trunk, false).unwrap();
    Exchange {
        root: root.to_owned(),
        remote: remote(root, ForgeChoice::Auto).unwrap(),
        identity: CommitIdentity::default(),
        trunk,
        is_protected: false,
        patience: Arc::new(Patience::of(Duration::ZERO)),
        request: None,
        known: Mutex::default(),
        turn: Mutex::default(),
    }
}

fn done<T>(tried: Tried<T>) -> T {
    tried.unwrap_or_else(|failed| panic!("{:?}", failed.end()))
}

#[test]
fn commits_are_found_where_more_was_brought_after_them() {
    let Clones { _dir, one, other, first } = Clones::new();
    let never = AtomicBool::new(false);
    let booked = commit_on(&one.root, &first, "booked");
    let last = commit_on(&one.root, &booked, "last");
    done(one.push_claim(CLAIM, &last, &never));
    assert!(!has_commit(&other.root, &booked));
    assert!(done(other.bring(CLAIM, &booked, &never)));
    assert!(has_commit(&other.root, &booked));
    assert!(!done(other.bring(CLAIM, &"0".repeat(40), &never)), "that is nowhere");
}

#[test]
fn of_several_attempts_to_land_the_one_on_the_tip_is_found() {
    let Clones { _dir, one, other, first } = Clones::new();
    let never = AtomicBool::new(false);
    let head = commit_on(&one.root, &first, "work");
    done(one.push_claim(CLAIM, &head, &never));
    let again = |exchange: &Exchange, file: &str| {
        let made = commit_on(&exchange.root, &first, file);
        let moved = done(exchange.push_tip((&first, &made), &[(CLAIM.to_owned(), made.clone())], &never));
        (made, moved)
    };
    let (landed, moved) = again(&one, "again");
    assert_eq!(moved, Moved::There);
    let (_, moved) = again(&other, "again-elsewhere");
    assert_eq!(moved, Moved::NotNow);
    // The commits themselves are forgotten by now, and the one that has booked that has failed.
    one.forget(&[CLAIM.to_owned()], &landed, &never);
    done(other.bring_tip(false, &never));
    assert!(!done(other.bring(CLAIM, &head, &never)));
    assert_eq!(landed_as(&other.root, CLAIM, &head, &landed), Some(landed.clone()));
}
