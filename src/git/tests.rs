use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::guard::{self, Guarded};
use super::head_file::{self, Head};
use super::*;
use crate::process::REPOSITORY_VARIABLES;

/// A scratch repository with a fixed git configuration.
pub(crate) fn repository() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap().join("project");
    fs::create_dir(&root).unwrap();
    git(&root, &["init", "--quiet"]);
    (dir, root)
}

pub(crate) fn git(root: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(root).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    for name in REPOSITORY_VARIABLES {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(super) fn commit(root: &Path) {
    git(root, &["commit", "--quiet", "--allow-empty", "-m", "c"]);
}

#[test]
fn version_is_a_number() {
    assert!(git_version().unwrap().starts_with(|first: char| first.is_ascii_digit()));
}

#[test]
fn head_is_none_before_the_first_commit_and_outside_a_repository() {
    let (guard, root) = repository();
    assert_eq!(head(&root), None);
    commit(&root);
    assert_eq!(head(&root), Some(git(&root, &["rev-parse", "HEAD"]).trim().to_owned()));
    assert_eq!(head(guard.path()), None);
    assert_eq!(head(Path::new("/nowhere/at/all")), None);
}

#[test]
fn head_is_found_without_git_wherever_its_files_are() {
    let (_guard, root) = repository();
    assert!(matches!(head_file::head(&root), Some(Head::Unborn)));
    commit(&root);
    git(&root, &["pack-refs", "--all"]);
    let id = git(&root, &["rev-parse", "HEAD"]).trim().to_owned();
    assert!(matches!(head_file::head(&root), Some(Head::Commit(found)) if found == id));
    let branch = git(&root, &["symbolic-ref", "HEAD"]);
    git(&root, &["switch", "--quiet", "--orphan", "new"]);
    assert!(matches!(head_file::head(&root), Some(Head::Unborn)));
    git(&root, &["symbolic-ref", "refs/heads/new", branch.trim()]);
    assert!(head_file::head(&root).is_none(), "files alone do not tell");
    assert_eq!(head(&root), Some(id));
}

#[test]
fn refusals_are_one_line_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let message = common_dir(dir.path()).unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("git rev-parse, {}: not a git repository", dir.path().display())),
        "{message}"
    );
    assert!(!message.contains('\n'));
}

#[test]
fn common_dir_is_shared_by_linked_work_trees() {
    let (_guard, root) = repository();
    commit(&root);
    git(&root, &["worktree", "add", "--quiet", ".worktrees/w"]);
    let of = |root: &Path| fs::canonicalize(common_dir(root).unwrap()).unwrap();
    assert_eq!(of(&root), root.join(".git"));
    assert_eq!(of(&root.join(".worktrees/w")), root.join(".git"));
}

#[test]
fn branches_that_others_build_are_not_guarded() {
    let (_guard, root) = repository();
    commit(&root);
    assert!(exclude(&root, &["/.worktrees/".to_owned()]).unwrap());
    git(&root, &["branch", "free"]);
    git(&root, &["worktree", "add", "--quiet", ".worktrees/w", "-b", "other"]);
    let before = Guarded::take(&root, true, None);
    git(&root, &["worktree", "remove", ".worktrees/w"]);
    let now = Guarded::take(&root, true, None);
    assert!(now.differs_from(&before).is_none());
    git(&root, &["branch", "--delete", "--force", "free"]);
    git(&root, &["branch", "new"]);
    let changed = Guarded::take(&root, true, None).differs_from(&before).unwrap().to_string();
    assert!(changed.contains("free") && changed.contains("new") && !changed.contains("other"), "{changed}");
}

#[test]
fn what_there_is_no_room_for_is_left_out_however_much_it_is() {
    let (_guard, root) = repository();
    commit(&root);
    // Together, their names are longer than a command line can be.
    let folder = root.join("x".repeat(240));
    fs::create_dir(&folder).unwrap();
    let files: Vec<PathBuf> = (0..9000).map(|count| folder.join(count.to_string())).collect();
    for file in &files {
        File::create(file).unwrap().set_len(1 << 20).unwrap();
    }
    let contents = Guarded::take(&root, true, None).contents(&root).unwrap();
    let is_lacking = |file: &&PathBuf| contents.lacks(file.strip_prefix(&root).unwrap());
    assert_eq!(files.iter().filter(is_lacking).count(), files.len() - 64);
}

#[test]
fn what_is_kept_does_not_lead_to_a_commit() {
    let (_guard, root) = repository();
    commit(&root);
    let old = head(&root).unwrap();
    git(&root, &["update-ref", "refs/ralph/keep/x", &old]);
    git(&root, &["commit", "--quiet", "--allow-empty", "--amend", "-m", "other"]);
    assert!(guard::contains(&root, &old), "its work is in the amended one");
    git(&root, &["branch", "old", &old]);
    assert!(!guard::contains(&root, &old));
}

#[test]
fn the_newest_written_file_is_a_sign_of_life() {
    let (_guard, root) = repository();
    let since = SystemTime::now() - Duration::from_mins(1);
    let write = |name: &str, modified: SystemTime| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(&path).unwrap();
        file.set_modified(modified).unwrap();
        path
    };
    let second = Duration::from_secs(1);
    write("old", since - second);
    assert_eq!(changed_since(&root, since), None);

    write(".gitignore", since - second);
    fs::write(root.join(".git/info/exclude"), "ignored\n").unwrap();
    write("ignored", since + second);
    write("from the future", SystemTime::now() + Duration::from_hours(1));
    assert_eq!(changed_since(&root, since), None, "neither an ignored file nor a wrong clock counts");

    let first = write("a/b c\n\u{fc}", since + second);
    assert_eq!(changed_since(&root, since), Some(first));
    let tracked = write("tracked", since + 2 * second);
    git(&root, &["add", "tracked"]);
    assert_eq!(changed_since(&root, since), Some(tracked.clone()));
    fs::remove_file(tracked).unwrap();
    assert!(changed_since(&root, since).is_some(), "a deleted file is passed over");
    assert_eq!(changed_since(Path::new("/nowhere/at/all"), since), None);
}
