use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use super::super::tests::git;
use super::super::trees::list;
use super::super::worktrees::Added;
use super::super::worktrees::tests::{add_at, place, said, with_files};
use super::*;

fn entry_of(root: &Path, branch: &str) -> PathBuf {
    root.join(".git/worktrees").join(branch)
}

/// A work tree of branch `x` with files `a`, `b` and `c`, after a script that undoes a part of it. The script runs in
/// git's entry, with the tree's folder as `$1`.
fn undone(script: &str) -> (tempfile::TempDir, PathBuf, String) {
    let (guard, root, id) = with_files(&["a", "b", "c"]);
    add_at(&root, "x", &id).unwrap();
    let mut sh = Command::new("sh");
    sh.args(["-ec", script, "sh"]).arg(place(&root, "x")).current_dir(entry_of(&root, "x"));
    assert!(sh.status().unwrap().success(), "{script}");
    (guard, root, id)
}

/// States of git's entry after a kill or a power cut.
const ENTRIES: [&str; 12] = [
    "rm index",
    ": > index",
    "rm index; echo initializing > locked",
    "echo initializing > locked",
    "rm -r gitdir index logs refs ORIG_HEAD; echo > COMMIT_EDITMSG",
    "rm -r HEAD index logs refs ORIG_HEAD; echo initializing > locked",
    "rm -r *; echo initializing > locked",
    "rm -r *",
    "rm -r ../x",
    ": > commondir; : > HEAD; rm index; echo initializing > locked",
    "for file in HEAD commondir gitdir index; do : > $file; done; : > \"$1/.git\"",
    "rm -r ../x \"$1/.git\"",
];

#[test]
fn what_was_never_finished_is_made_anew() {
    for entry in ENTRIES {
        for files in [
            "",
            "rm \"$1/a\"",
            "rm \"$1\"/*",
            ": > \"$1/b\"; rm \"$1/c\"",
            "printf cont > \"$1/b\"; rm \"$1/c\"",
            "printf cont > \"$1/c\"",
        ] {
            let script = format!("{files}\n{entry}");
            let (_guard, root, id) = undone(&script);
            assert_eq!(add_at(&root, "x", &id).unwrap(), Added::Branch, "{script}");
            let tree = place(&root, "x");
            assert_eq!(git(&tree, &["status", "--porcelain", "--ignored"]), "", "{script}");
            assert_eq!(fs::read(tree.join("b")).unwrap(), b"content\n", "{script}");
            assert_eq!(list(&root).unwrap().len(), 2, "{script}");
            assert!(head_file::git_dir(&tree).unwrap().is_some_and(|entry| is_whole(&entry)), "{script}");
        }
    }
}

#[test]
fn a_users_changes_stay_and_no_loop_works_there() {
    let work = [
        "echo mine > \"$1/b\"",
        "echo mine >> \"$1/b\"",
        "echo > \"$1/new\"",
        "echo > \"$1/ignored\"",
        "rm \"$1/b\"; mkdir \"$1/b\"; echo > \"$1/b/inner\"",
        "rm \"$1/b\"; ln -s a \"$1/b\"",
        "chmod +x \"$1/c\"",
        // git finishes one file before it begins the next.
        ": > \"$1/b\"",
        "printf cont > \"$1/b\"; printf cont > \"$1/c\"",
    ];
    for entry in ENTRIES {
        for work in work {
            let script = format!("{work}\n{entry}");
            let (_guard, root, id) = undone(&script);
            fs::write(root.join(".git/info/exclude"), "ignored\n").unwrap();
            let tree = place(&root, "x");
            let before = snapshot(&tree);
            let said = said(add_at(&root, "x", &id));
            assert!(said.contains("no checkout wrote") || said.contains("is taken"), "{script}: {said}");
            assert_eq!(snapshot(&tree), before, "{script}");
        }
    }
}

#[test]
fn what_is_only_staged_stays() {
    let entries = [
        "echo initializing > locked",
        "rm HEAD; echo initializing > locked",
        ": > HEAD",
        ": > commondir; echo initializing > locked",
        "rm commondir gitdir",
        "rm -r HEAD gitdir commondir logs refs ORIG_HEAD",
        "rm -r \"$1\"",
    ];
    let work = [
        // `git status` prints AD, MD, AD for content, and A for a name alone.
        "echo mine > \"$1/new\"; git -C \"$1\" add new; rm \"$1/new\"",
        "echo mine > \"$1/b\"; git -C \"$1\" add b; rm \"$1/b\"",
        "echo mine > \"$1/new\"; git -C \"$1\" add new; rm \"$1\"/*",
        "git -C \"$1\" update-index --chmod=+x a; rm \"$1/a\"",
    ];
    for entry in entries {
        for work in work {
            let script = format!("{work}\n{entry}");
            let (_guard, root, id) = undone(&script);
            let index = entry_of(&root, "x").join("index");
            let before = fs::read(&index).unwrap();
            let said = said(add_at(&root, "x", &id));
            assert!(
                said.starts_with("files are staged in a work tree that is not whole"),
                "{script}: {said}"
            );
            assert_eq!(fs::read(&index).unwrap(), before, "{script}");
            // Follows its advice.
            let (_, look) = said.split_once("with '").unwrap();
            let look = format!("{} --exit-code", look.split_once('\'').unwrap().0);
            let looked = Command::new("sh").args(["-c", &look]).current_dir(&root).output().unwrap();
            assert_eq!(looked.status.code(), Some(1), "{script}: {looked:?}");
            fs::remove_file(&index).unwrap();
            assert_eq!(add_at(&root, "x", &id).unwrap(), Added::Branch, "{script}");
        }
    }
}

#[test]
fn an_index_that_was_never_written_holds_nothing() {
    for index in ["head -c 200 /dev/zero > index", ": > index", "rm index"] {
        let (_guard, root, id) = undone(&format!("{index}; echo initializing > locked; rm \"$1/b\""));
        assert_eq!(add_at(&root, "x", &id).unwrap(), Added::Branch, "{index}");
    }
    // The content of a torn index is unknown.
    let (_guard, root, id) = undone("head -c 100 index > torn; mv torn index; echo initializing > locked");
    let index = entry_of(&root, "x").join("index");
    assert!(said(add_at(&root, "x", &id)).contains(index.to_str().unwrap()));
    assert!(index.exists());
}

#[test]
fn a_fifo_in_gits_entry_does_not_block() {
    for name in ["HEAD", "locked", "gitdir", "commondir"] {
        let (_guard, root, _) = undone(&format!("rm -f index {name}; mkfifo {name}"));
        let start = Instant::now();
        let _ = head_file::git_dir(&place(&root, "x")).unwrap().map(|entry| is_whole(&entry));
        let _ = HalfMade::find(&root, &place(&root, "x"), "x", None);
        assert!(start.elapsed() < Duration::from_secs(20), "{name}");
    }
}

/// The files below a folder with their content or link target.
fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            if metadata.is_dir() {
                folders.push(path);
            } else {
                let target = || fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes();
                let content = if metadata.is_symlink() { target() } else { fs::read(&path).unwrap() };
                found.push((path, content));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_only_the_entry_knows_stays() {
    let (_guard, root, id) = undone("rm index; echo > BISECT_LOG");
    let entry = entry_of(&root, "x");
    assert!(said(add_at(&root, "x", &id)).contains(entry.join("BISECT_LOG").to_str().unwrap()));

    let (_guard, root, id) = with_files(&["a"]);
    add_at(&root, "x", &id).unwrap();
    let tree = place(&root, "x");
    git(&tree, &["switch", "--quiet", "--detach"]);
    git(&tree, &["commit", "--quiet", "--allow-empty", "-m", "on no branch"]);
    git(&tree, &["switch", "--quiet", "x"]);
    let entry = entry_of(&root, "x");
    fs::remove_file(entry.join("index")).unwrap();
    let said = said(add_at(&root, "x", &id));
    assert!(said.contains(entry.join("logs/HEAD").to_str().unwrap()), "{said}");
    assert!(entry.join("logs/HEAD").exists());
}

#[test]
fn what_a_checkout_writes_may_differ_from_what_is_committed() {
    for files in ["rm \"$1/c\"", "printf 'cont' > \"$1/c\"", "rm \"$1/c\"; printf 'content\\r' > \"$1/b\""] {
        let (_guard, root, id) = with_files(&["a", "b", "c"]);
        git(&root, &["config", "core.autocrlf", "true"]);
        add_at(&root, "x", &id).unwrap();
        let tree = place(&root, "x");
        assert_eq!(fs::read(tree.join("a")).unwrap(), b"content\r\n");
        let mut sh = Command::new("sh");
        sh.args(["-ec", files, "sh"]).arg(&tree);
        assert!(sh.status().unwrap().success());
        fs::remove_file(entry_of(&root, "x").join("index")).unwrap();
        assert_eq!(add_at(&root, "x", &id).unwrap(), Added::Branch, "{files}");
        assert_eq!(fs::read(tree.join("b")).unwrap(), b"content\r\n");
    }
}

#[test]
fn files_that_git_would_clean_away_are_the_users() {
    let (_guard, root, id) = undone("echo 'b filter=secret' > ../../info/attributes; rm index");
    git(&root, &["config", "filter.secret.clean", "sed /SECRET/d"]);
    let file = place(&root, "x").join("b");
    fs::write(&file, "content\nSECRET\n").unwrap();
    let said = said(add_at(&root, "x", &id));
    assert!(said.contains(&format!("no checkout wrote, {}", file.display())), "{said}");
    assert_eq!(fs::read(&file).unwrap(), b"content\nSECRET\n");
}

/// git writes files in place: here a file size limit of the kernel ends it.
#[test]
fn a_file_that_a_killed_git_left_cut_in_the_middle_is_made_anew() {
    let (_guard, root, _) = with_files(&["a", "b", "c"]);
    let whole = "all of it\n".repeat(10_000);
    fs::write(root.join("b"), &whole).unwrap();
    git(&root, &["commit", "--quiet", "-am", "large"]);
    let id = git(&root, &["rev-parse", "HEAD"]).trim().to_owned();
    add_at(&root, "x", &id).unwrap();
    let (tree, entry) = (place(&root, "x"), entry_of(&root, "x"));
    fs::remove_file(entry.join("index")).unwrap();
    fs::write(entry.join("locked"), INITIALIZING).unwrap();
    let script = "rm a b c; ulimit -c 0; ulimit -f 8; git reset --hard --no-recurse-submodules";
    let ended = Command::new("sh").args(["-c", script]).current_dir(&tree).output().unwrap();
    assert!(!ended.status.success(), "{ended:?}");
    let left = fs::read(tree.join("b")).unwrap();
    assert!(!left.is_empty() && left.len() < whole.len() && !tree.join("c").exists(), "{ended:?}");

    assert_eq!(add_at(&root, "x", &id).unwrap(), Added::Branch);
    assert_eq!(fs::read_to_string(tree.join("b")).unwrap(), whole);
    assert_eq!(git(&tree, &["status", "--porcelain"]), "");
}

#[test]
fn a_folder_that_belongs_elsewhere_is_not_touched() {
    let (guard, root, id) = with_files(&["a"]);
    let other = guard.path().join("other");
    git(&root, &["worktree", "add", "--quiet", "-b", "other", other.to_str().unwrap()]);
    let copied = Command::new("cp").arg("-r").arg(&other).arg(guard.path().join("copy")).status();
    assert!(copied.unwrap().success());
    fs::create_dir_all(root.join(".worktrees")).unwrap();
    fs::rename(guard.path().join("copy"), place(&root, "x")).unwrap();
    // Another repository, and a folder that leads to none of ours.
    git(&root, &["init", "--quiet", ".worktrees/y"]);
    fs::create_dir(place(&root, "z")).unwrap();
    fs::write(place(&root, "z").join(".git"), "gitdir: /nowhere/.git/worktrees/z\n").unwrap();
    for branch in ["x", "y", "z"] {
        let before = snapshot(&place(&root, branch));
        assert!(said(add_at(&root, branch, &id)).contains("is taken"), "{branch}");
        assert_eq!(snapshot(&place(&root, branch)), before);
    }
    assert!(is_whole(&entry_of(&root, "other")));
}

/// Kills a `git worktree add` while it writes the file `b`, whose filter hangs.
fn kill_half_way(root: &Path, branch: &str) {
    git(root, &["config", "filter.hang.smudge", "cat > /dev/null; echo > ../../hangs; exec sleep 60"]);
    fs::create_dir_all(root.join(".git/info")).unwrap();
    fs::write(root.join(".git/info/attributes"), "b filter=hang\n").unwrap();
    fs::create_dir_all(root.join(".worktrees")).unwrap();
    let mut command = Command::new("git");
    command.args(["worktree", "add", "-b", branch]).arg(place(root, branch)).current_dir(root);
    command.env_remove("GIT_DIR").stderr(Stdio::null()).stdout(Stdio::null());
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !root.join("hangs").exists() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(is_being_made(&place(root, branch)));
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    child.wait().unwrap();
    fs::remove_file(root.join(".git/info/attributes")).unwrap();
    assert!(!is_whole(&entry_of(root, branch)));
}

#[test]
fn what_a_killed_git_left_is_made_anew() {
    let (_guard, root, id) = with_files(&["a", "b", "c"]);
    kill_half_way(&root, "x");
    assert_eq!(add_at(&root, "x", &id).unwrap(), Added::Branch);
    assert_eq!(git(&place(&root, "x"), &["status", "--porcelain"]), "");
    assert!(place(&root, "x").join("c").exists());
    assert!(is_whole(&entry_of(&root, "x")));
}

#[test]
fn a_half_made_tree_stays_if_it_has_a_users_file() {
    let (_guard, root, id) = with_files(&["a", "b", "c"]);
    kill_half_way(&root, "x");
    let mine = place(&root, "x").join("mine");
    fs::write(&mine, "x").unwrap();
    assert!(said(add_at(&root, "x", &id)).contains(&format!("no checkout wrote, {}", mine.display())));
    assert!(mine.exists());
}

#[test]
fn another_git_that_has_made_only_the_branch_is_waited_for() {
    let (_guard, root, id) = with_files(&["a"]);
    let hook = root.join(".git/hooks/reference-transaction");
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    let script =
        "#!/bin/sh\n[ $1 = committed ] && mkdir first 2>/dev/null && echo > begun && read _ < go\nexit 0\n";
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let [begun, go] = ["begun", "go"].map(|name| root.join(name));
    for fifo in [&begun, &go] {
        assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    }
    let mut other = Command::new("git");
    other.args(["worktree", "add", "--quiet", "-b", "x"]).arg(place(&root, "x")).current_dir(&root);
    let mut other = other.env_remove("GIT_DIR").stderr(Stdio::null()).spawn().unwrap();
    fs::read(&begun).unwrap();
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel();
        let (root, id) = (&root, &id);
        scope.spawn(move || done.send(add_at(root, "x", id)).unwrap());
        // It would be refused at once.
        assert!(is_done.recv_timeout(Duration::from_millis(300)).is_err());
        fs::write(&go, "\n").unwrap();
        assert_eq!(is_done.recv().unwrap().unwrap(), Added::Reused);
    });
    assert!(other.wait().unwrap().success());
}
