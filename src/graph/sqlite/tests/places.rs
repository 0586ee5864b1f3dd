//! Databases whose files another program removes, replaces or opens while they are in use.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use super::*;

/// The locks of this process on the files of a database, as the kernel lists them. A list that changes while it is
/// read may name one twice.
fn locks(path: &Path) -> BTreeSet<String> {
    let files = ["", "-shm"].map(|end| {
        let file = fs::metadata(beside(path, end)).unwrap();
        let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
        format!("{major:02x}:{minor:02x}:{}", file.ino())
    });
    let own = std::process::id().to_string();
    let all = fs::read_to_string("/proc/locks").unwrap();
    let ours = all.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let is_ours = words[0] == "POSIX" && words[3] == own && files.iter().any(|file| file == words[4]);
        is_ours.then(|| words.join(" "))
    });
    ours.collect()
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_open_database_keeps_its_locks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let mut first = open(&path).unwrap();
    let held = locks(&path);
    assert!(!held.is_empty());
    let task = first.add(&new_task("a")).unwrap();
    // A second connection of this process to the same file, which is closed again.
    let mut second = open(&path).unwrap();
    second.force_done(&task, false).unwrap();
    second.look_after().unwrap();
    assert_eq!(second.list(&Selection::default(), &mut |_| true).ok(), Some(()));
    drop(second);
    assert!(own::open_to_read(&path).is_err() && own::read(&beside(&path, "-shm"), 1 << 20).is_err());
    own::ensure(&path, |_| std::io::Result::Ok(())).unwrap();
    assert_eq!(locks(&path), held);
    drop(first);
    assert_eq!(names(dir.path()), ["progress.db"], "who closes it last tidies up");
}

#[test]
fn what_is_removed_or_replaced_ends_every_operation_and_all_of_it_is_kept() {
    for (end, replaced, kept) in [
        ("", false, "progress.db"),
        ("", true, "progress.db.kept"),
        ("-wal", false, "progress.db.kept"),
        ("-wal", true, "progress.db.kept"),
        ("-shm", false, "progress.db.kept"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress.db");
        let mut store = open(&path).unwrap();
        let id = store.add(&new_task("a")).unwrap();
        if replaced {
            fs::write(dir.path().join("other"), "").unwrap();
            fs::rename(dir.path().join("other"), beside(&path, end)).unwrap();
        } else {
            fs::remove_file(beside(&path, end)).unwrap();
        }
        let said = store.add(&new_task("b")).unwrap_err().to_string();
        assert!(said.contains(&format!("progress.db{end}: it was removed or replaced")), "{said}");
        for said in [
            store.task(&id).unwrap_err(),
            store.claim(&Scope::All, &us("run-1"), LEASE).unwrap_err(),
            store.force_done(&id, false).unwrap_err(),
        ] {
            assert!(matches!(said, GraphError::Lost { .. }), "{said}");
        }
        let before = names(dir.path());
        drop(store);
        assert_eq!(names(dir.path()), before, "nothing of another one is removed");
        let copy = open(&dir.path().join(kept)).unwrap();
        assert_eq!(copy.task(&id).unwrap().title, "a", "{end} {replaced}");
        assert_eq!(copy.counts(&Scope::All).unwrap().total, 1);
        oracle(&copy.connection);
    }
}
