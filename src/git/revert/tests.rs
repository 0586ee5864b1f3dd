use std::fs;
use std::path::PathBuf;

use super::super::tests::{git, repository};
use super::*;

/// A repository with one commit per name, which writes the file of that name.
fn with_commits(names: &[&str]) -> (tempfile::TempDir, PathBuf, Vec<String>) {
    let (guard, root) = repository();
    for (key, value) in [("user.name", "t"), ("user.email", "t@example.org")] {
        git(&root, &["config", key, value]);
    }
    let ids = names.iter().map(|name| write_and_commit(&root, name, name)).collect();
    (guard, root, ids)
}

fn write_and_commit(root: &Path, name: &str, content: &str) -> String {
    fs::write(root.join(name), content).unwrap();
    git(root, &["add", name]);
    git(root, &["commit", "--quiet", "-m", &format!("write {name}")]);
    git(root, &["rev-parse", "HEAD"]).trim().to_owned()
}

fn all(root: &Path, ids: &[String], from: usize, to: usize) -> Vec<Commit> {
    commits_between(root, Some(&ids[from]), &ids[to]).unwrap()
}

#[test]
fn commits_are_undone_newest_first_and_known_as_undone() {
    let (_guard, root, ids) = with_commits(&["a", "b", "c"]);
    let commits = all(&root, &ids, 0, 2);
    assert_eq!(
        commits.iter().map(|commit| commit.subject.as_str()).collect::<Vec<_>>(),
        ["write c", "write b"]
    );
    fs::write(root.join("mine"), "uncommitted").unwrap();
    revert(&root, &commits).unwrap();
    assert!(root.join("a").exists() && !root.join("b").exists() && !root.join("c").exists());
    assert_eq!(fs::read_to_string(root.join("mine")).unwrap(), "uncommitted");
    assert_eq!(undone(&root).unwrap(), HashSet::from([ids[1].clone(), ids[2].clone()]));

    git(&root, &["revert", "--no-edit", "HEAD"]);
    assert!(root.join("b").exists());
    assert!(!undone(&root).unwrap().contains(&ids[1]), "the revert was reverted");
}

#[test]
fn the_first_commit_of_all_can_be_undone() {
    let (_guard, root, ids) = with_commits(&["a"]);
    let commits = commits_between(&root, None, &ids[0]).unwrap();
    revert(&root, &commits).unwrap();
    assert!(!root.join("a").exists());
}

#[test]
fn a_merge_is_undone_as_a_whole() {
    let (_guard, root, ids) = with_commits(&["a"]);
    git(&root, &["checkout", "--quiet", "-b", "side"]);
    write_and_commit(&root, "s1", "1");
    write_and_commit(&root, "s2", "2");
    git(&root, &["checkout", "--quiet", "-"]);
    write_and_commit(&root, "m", "m");
    git(&root, &["merge", "--quiet", "--no-edit", "side"]);
    let head = git(&root, &["rev-parse", "HEAD"]).trim().to_owned();
    let commits = commits_between(&root, Some(&ids[0]), &head).unwrap();
    assert_eq!(commits.iter().map(|commit| commit.is_merge).collect::<Vec<_>>(), [true, false]);
    revert(&root, &commits).unwrap();
    assert!(["s1", "s2", "m"].iter().all(|name| !root.join(name).exists()));
}

#[test]
fn what_is_not_committed_is_never_touched() {
    let (_guard, root, ids) = with_commits(&["a", "b"]);
    let commits = all(&root, &ids, 0, 1);
    let refused = |expected: &str| {
        let before = git(&root, &["rev-parse", "HEAD"]);
        let message = revert(&root, &commits).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert_eq!(git(&root, &["rev-parse", "HEAD"]), before);
    };
    fs::write(root.join("b"), "edited").unwrap();
    refused("uncommitted changes would be touched (b)");
    git(&root, &["checkout", "--quiet", "b"]);

    fs::write(root.join("a"), "staged").unwrap();
    git(&root, &["add", "a"]);
    refused("changes are staged (a)");
    git(&root, &["reset", "--quiet", "--hard"]);

    fs::write(root.join(".git/MERGE_HEAD"), &ids[0]).unwrap();
    refused("a merge is in progress");
    fs::remove_file(root.join(".git/MERGE_HEAD")).unwrap();
    revert(&root, &commits).unwrap();
}

#[test]
fn an_ignored_file_in_the_way_is_not_overwritten() {
    let (_guard, root, ids) = with_commits(&["a", "kept.log"]);
    git(&root, &["rm", "--quiet", "kept.log"]);
    git(&root, &["commit", "--quiet", "-m", "remove"]);
    let head = git(&root, &["rev-parse", "HEAD"]).trim().to_owned();
    fs::write(root.join(".git/info/exclude"), "*.log\n").unwrap();
    fs::write(root.join("kept.log"), "mine").unwrap();
    let commits = commits_between(&root, Some(&ids[1]), &head).unwrap();
    let message = revert(&root, &commits).unwrap_err().to_string();
    assert!(message.contains("(kept.log)"), "{message}");
    assert_eq!(fs::read_to_string(root.join("kept.log")).unwrap(), "mine");
}

#[test]
fn a_conflict_leaves_everything_as_it_was() {
    let (_guard, root, ids) = with_commits(&["a", "b"]);
    let later = write_and_commit(&root, "b", "changed since");
    fs::write(root.join("a"), "uncommitted").unwrap();
    let commits = all(&root, &ids, 0, 1);
    let message = revert(&root, &commits).unwrap_err().to_string();
    assert!(message.contains("write b") && message.contains("nothing was changed"), "{message}");
    assert_eq!(git(&root, &["rev-parse", "HEAD"]).trim(), later);
    assert_eq!(git(&root, &["status", "--porcelain"]), " M a\n");
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "uncommitted");
    check_idle(&root).unwrap();
}

#[test]
fn what_is_gone_already_is_no_half_done_revert() {
    let (_guard, root, ids) = with_commits(&["a", "b"]);
    git(&root, &["rm", "--quiet", "b"]);
    git(&root, &["commit", "--quiet", "-m", "by hand"]);
    let message = revert(&root, &all(&root, &ids, 0, 1)).unwrap_err().to_string();
    assert!(message.contains("nothing was changed"), "{message}");
    check_idle(&root).unwrap();
}

#[test]
fn other_histories_are_refused() {
    let (_guard, root, ids) = with_commits(&["a", "b"]);
    git(&root, &["reset", "--quiet", "--hard", &ids[0]]);
    let not_here = commits_between(&root, Some(&ids[0]), &ids[1]).unwrap_err();
    assert!(matches!(not_here, RevertError::NotHere { .. }), "{not_here}");
    let other = write_and_commit(&root, "c", "c");
    let rewritten = commits_between(&root, Some(&ids[1]), &other).unwrap_err();
    assert!(matches!(rewritten, RevertError::Rewritten { .. }), "{rewritten}");
    assert!(commits_between(&root, Some(&other), &other).unwrap().is_empty());
}

#[test]
fn folders_and_files_of_one_name_overlap() {
    let overlaps = |one: &str, other: &str| super::overlaps(Path::new(one), Path::new(other));
    assert!(overlaps("a", "a") && overlaps("a", "a/b") && overlaps("a/b", "a"));
    assert!(!overlaps("a", "ab") && !overlaps("a/b", "a/c"));
}

#[test]
fn ignored_files_in_the_way_stay_whatever_they_are_called() {
    let odd = OsStr::from_bytes(b"odd\xff");
    for (path, precious) in [
        (Path::new(odd), Path::new(odd)),
        (Path::new("folder"), Path::new("folder/precious")),
        (Path::new("folder"), &Path::new("folder").join(odd)),
        (Path::new("file/inner"), Path::new("file")),
    ] {
        let (_guard, root, _) = with_commits(&["a"]);
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), "theirs").unwrap();
        git(&root, &["add", "."]);
        git(&root, &["commit", "--quiet", "-m", "with it"]);
        git(&root, &["rm", "-r", "--quiet", "--ignore-unmatch", "folder", "file", "odd*"]);
        git(&root, &["commit", "--quiet", "-m", "without it"]);
        fs::write(root.join(".git/info/exclude"), "*\n").unwrap();
        fs::create_dir_all(root.join(precious).parent().unwrap()).unwrap();
        fs::write(root.join(precious), "mine").unwrap();
        let head = super::super::head(&root).unwrap();
        let commits = commits_between(&root, None, &head).unwrap();
        let error = revert(&root, &commits[..1]).unwrap_err();
        assert!(matches!(error, RevertError::Overlap { .. }), "{}: {error}", path.display());
        assert_eq!(fs::read(root.join(precious)).unwrap(), b"mine", "{}", path.display());
    }
}
