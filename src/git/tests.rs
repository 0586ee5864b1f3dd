use std::thread;

use super::guard::{self, Guarded};
use super::*;

/// A scratch repository, made by a git that knows no configuration but what is given here.
pub(super) fn repository() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap().join("project");
    fs::create_dir(&root).unwrap();
    git(&root, &["init", "--quiet"]);
    (dir, root)
}

pub(super) fn git(root: &Path, arguments: &[&str]) -> String {
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

fn commit(root: &Path) {
    git(root, &["commit", "--quiet", "--allow-empty", "-m", "c"]);
}

fn project(root: &Path, ralph_dir: &str) -> Project {
    Project::locate(root, &|_| None, Some(Path::new(ralph_dir)), None).unwrap()
}

fn strings(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|&pattern| pattern.to_owned()).collect()
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
    // Their names are more than a command line takes.
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

/// Files in the ralph dir and in its run dir, each with the same names; git's rules are entered. Answers what git lists, and
/// the two folders.
fn with_rules(root: &Path, home: &str) -> (HashSet<PathBuf>, Project) {
    let project = project(root, home);
    for folder in [project.ralph_dir(), project.run_dir()] {
        for name in RUN_FILES.iter().chain(&WRITTEN) {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
    }
    assert!(exclude(root, &runtime_patterns(&project)).unwrap());
    assert!(!exclude(root, &runtime_patterns(&project)).unwrap(), "the second time nothing is missing");
    let output = git(root, &["ls-files", "-z", "-o", "--exclude-standard"]);
    (output.split_terminator('\0').map(PathBuf::from).collect(), project)
}

const RUN_FILES: [&str; 7] = [
    "state.toml",
    "state.toml.x1.tmp",
    "iterations.log",
    "logs/session-1.log",
    "lock",
    "last_agent_output",
    "requests/20260101T1-1.json",
];
const WRITTEN: [&str; 6] =
    ["config", "implementation_plan.md", "prompts/plan.md", "locks", "logsheet", "state.toml_of_mine"];

#[test]
fn only_run_time_files_in_folders_of_ours_are_ignored() {
    for home in [".ralph", "sub/.ralph", ".", "docs", "odd [x]*?\\ dir", "new\nline"] {
        let (_guard, root) = repository();
        let (listed, project) = with_rules(&root, home);
        let (ours, theirs) = (project.relative(project.run_dir()), project.ralph_home());
        assert_eq!(ours.file_name().unwrap(), ".ralph");
        let mut expected: HashSet<PathBuf> = WRITTEN.iter().map(|name| ours.join(name)).collect();
        if ours != theirs {
            let names = WRITTEN.iter().chain(&RUN_FILES);
            expected.extend(names.map(|name| project.relative(&project.ralph_dir().join(name))));
        }
        assert_eq!(listed, expected, "{home}");
    }
}

#[test]
fn a_ralph_dir_elsewhere_needs_no_rules_of_its_own() {
    let (guard, root) = repository();
    let outside = guard.path().join("elsewhere");
    assert_eq!(
        runtime_patterns(&project(&root, outside.to_str().unwrap())),
        ["/.worktrees/", ".ralph-*-*-*.tmp*"]
    );
}

#[test]
fn bytes_that_are_not_text_still_make_a_pattern() {
    let path = PathBuf::from(std::ffi::OsString::from_vec(b"a\xff\xfe*".to_vec()));
    assert_eq!(escape_pattern(&path), "a??\\*");
}

#[test]
fn a_linked_work_tree_enters_its_rules_in_the_common_file() {
    let (_guard, root) = repository();
    commit(&root);
    git(&root, &["worktree", "add", "--quiet", ".worktrees/w"]);
    fs::remove_dir_all(root.join(".git/info")).unwrap();
    exclude(&root.join(".worktrees/w"), &strings(&["/x"])).unwrap();
    let content = fs::read_to_string(root.join(".git/info/exclude")).unwrap();
    assert_eq!(content, format!("{EXCLUDE_HEADER}\n/x\n"));
}

#[test]
fn the_users_lines_and_line_ends_stay() {
    let header = EXCLUDE_HEADER;
    let new = |old: &str| {
        with_patterns(old.as_bytes(), &strings(&["/a", "/b"])).map(|new| String::from_utf8(new).unwrap())
    };
    assert_eq!(new("").unwrap(), format!("{header}\n/a\n/b\n"));
    assert_eq!(new("# mine\n*.o").unwrap(), format!("# mine\n*.o\n{header}\n/a\n/b\n"));
    assert_eq!(new("*.o\r\n").unwrap(), format!("*.o\r\n{header}\r\n/a\r\n/b\r\n"));
    assert_eq!(new(&format!("{header}\n/a\n*.o\n")).unwrap(), format!("{header}\n/b\n/a\n*.o\n"));
    assert_eq!(new(&format!("x\n{header}")).unwrap(), format!("x\n{header}\n/a\n/b\n"));
    assert_eq!(new("/b\r\n/a\r\n"), None);
    let below = |old: &str| with_patterns(old.as_bytes(), &strings(&["/a/b/*.c"])).is_none();
    assert!(below("/a/\n") && below("/a/b/\n") && !below("/a\n/\n"), "a folder that is left out whole");
    let bytes = with_patterns(b"\xff\n", &strings(&["/a"])).unwrap();
    assert!(bytes.starts_with(b"\xff\n#"));
}

#[test]
fn many_at_once_lose_nothing() {
    let (_guard, root) = repository();
    let patterns: Vec<String> = (0..8).map(|number| format!("/p{number}")).collect();
    thread::scope(|scope| {
        for pattern in &patterns {
            let root = &root;
            scope.spawn(move || exclude(root, std::slice::from_ref(pattern)).unwrap());
        }
    });
    let content = fs::read_to_string(root.join(".git/info/exclude")).unwrap();
    assert!(patterns.iter().all(|pattern| content.lines().any(|line| line == pattern)), "{content}");
    assert_eq!(content.matches(EXCLUDE_HEADER).count(), 1);
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
