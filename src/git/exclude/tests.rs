use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::thread;

use super::super::tests::{commit, git, repository};
use super::*;

fn project(root: &Path, ralph_dir: &str) -> Project {
    Project::locate(root, &|_| None, Some(Path::new(ralph_dir)), None).unwrap()
}

fn strings(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|&pattern| pattern.to_owned()).collect()
}

/// Adds the patterns for files of the same names in the ralph dir and in its run dir. Returns what git lists, and the
/// two folders.
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
    let path = PathBuf::from(OsString::from_vec(b"a\xff\xfe*".to_vec()));
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
