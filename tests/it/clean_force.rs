//! `clean --worktrees --force` saves first, byte for byte, what only a work tree has.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use crate::clean_worktrees::{PLAN, commit, fails_in_x, gone, in_x, refs, with_trees};
use crate::scratch::executable;

#[test]
fn force_saves_what_is_not_committed() {
    let scratch = with_trees(&["x"]);
    let tree = |name: &str| format!(".worktrees/x/{name}");
    commit(&scratch, "hidden");
    scratch.git(&["config", "user.signingKey", "none"]);
    scratch.git(&["config", "commit.gpgSign", "true"]);
    let hook = scratch.path(".git/hooks/reference-transaction");
    executable(&hook, "#!/bin/sh\nexit 1\n");
    for (name, content) in
        [("file", "staged\n"), ("new", "staged too\n"), ("forced.log", "ignored, and added nevertheless\n")]
    {
        scratch.write(&tree(name), content);
    }
    in_x(&scratch, &["add", "--force", "file", "new", "forced.log"]);
    in_x(&scratch, &["update-index", "--assume-unchanged", "hidden"]);
    for (name, content) in [
        ("file", "changed\n"),
        ("forced.log", "changed since\n"),
        ("hidden", "changed in secret\n"),
        ("deep/er/untracked \u{fc}\n", "untracked\n"),
        ("other.log", "ignored\n"),
        (PLAN, "the copy\n"),
    ] {
        scratch.write(&tree(name), content);
    }
    let head = in_x(&scratch, &["rev-parse", "HEAD"]);
    let run = scratch.run("clean --worktrees x --force");
    gone(&scratch, &run);
    fs::remove_file(hook).unwrap();
    let [keep] = &refs(&scratch)[..] else { panic!("one ref: {run:?}") };
    let show = |what: &str| scratch.git(&["show", &format!("{keep}{what}")]);
    assert_eq!(scratch.git(&["rev-parse", &format!("{keep}^1")]), head);
    assert_eq!((show(":file"), show(":hidden")), ("changed\n".into(), "changed in secret\n".into()));
    assert_eq!((show(":forced.log"), show(":new")), ("changed since\n".into(), "staged too\n".into()));
    assert_eq!(show(":deep/er/untracked \u{fc}\n"), "untracked\n");
    assert_eq!((show("^2:file"), show("^2:forced.log")).0, "staged\n");
    assert_eq!(show(&format!(":{PLAN}")), "the plan\n", "the copy is not work");
    assert!(!scratch.git(&["ls-tree", "-r", "--name-only", keep]).contains("other.log"));
    for words in ["ignored files went with it: other.log", &format!("git checkout {keep} -- :/"), "^2"] {
        assert!(run.stdout.contains(words), "'{words}' is missing: {run:?}");
    }

    // The printed way back.
    scratch.git(&["switch", "--quiet", "x"]);
    scratch.git(&["checkout", "--quiet", keep, "--", ":/"]);
    assert_eq!((scratch.read("file"), scratch.read("deep/er/untracked \u{fc}\n")).0, "changed\n");
    // A branch can be built and cleaned again.
    scratch.git(&["switch", "--quiet", "--force", "main"]);
    scratch.git(&["worktree", "add", "--quiet", ".worktrees/x", "x"]);
    scratch.write(&tree("again"), "again");
    assert_eq!(scratch.run("clean --worktrees --force").code, Some(0));
    assert_eq!(refs(&scratch).len(), 2);
}

#[test]
fn force_saves_every_byte_whatever_git_makes_of_a_file() {
    let scratch = with_trees(&["x"]);
    // Both ways of a filter lose something, as line ends do.
    scratch.git(&["config", "filter.lossy.clean", "tr a-z A-Z"]);
    scratch.git(&["config", "filter.lossy.smudge", "tr A-Z a-z"]);
    scratch.git(&["config", "core.autocrlf", "true"]);
    scratch.write(
        ".git/info/attributes",
        "cr* -text\n*.lossy filter=lossy\n*.wide text working-tree-encoding=UTF-16LE\n",
    );
    for name in ["tracked.lossy", "staged.lossy", "same.lossy", "mode.lossy"] {
        scratch.write(&format!(".worktrees/x/{name}"), "Old\n");
    }
    in_x(&scratch, &["add", "--all"]);
    in_x(&scratch, &["commit", "--quiet", "-m", "filtered"]);
    let odd = "\"odd\"\nname.lossy";
    let files: [(&str, &[u8]); 9] = [
        ("cr", b"without\n"),
        ("cr\r", b"with\n"),
        ("tracked.lossy", b"MiXed\r\nand\n"),
        ("staged.lossy", b"Staged Here\r\n"),
        ("new.lossy", b"Also New\n\r"),
        ("file", b"one\r\nand two\n\xff\x00"),
        ("new", b"a\r\nb\n"),
        (odd, b"Odd\r\n"),
        ("a.wide", b"h\0i\0\r\0\n\0"),
    ];
    for (name, content) in files {
        scratch.write(&format!(".worktrees/x/{name}"), content);
    }
    in_x(&scratch, &["add", "staged.lossy", "new.lossy"]);
    std::os::unix::fs::symlink("no where", scratch.path(".worktrees/x/link")).unwrap();
    executable(&scratch.path(".worktrees/x/mode.lossy"), "Old\n");

    let run = scratch.run("clean --worktrees --force");
    gone(&scratch, &run);
    let [keep] = &refs(&scratch)[..] else { panic!("one ref: {run:?}") };
    assert!(run.stdout.contains(&format!("byte for byte:     git cat-file blob {keep}:PATH\n")), "{run:?}");
    for (name, content) in files {
        let blob =
            scratch.command("git").args(["cat-file", "blob", &format!("{keep}:{name}")]).output().unwrap();
        assert_eq!(blob.stdout, content, "{name}");
    }
    let saved = scratch.git(&["diff", "--name-only", "-z", "x", keep]);
    let mut saved: Vec<&str> = saved.split_terminator('\0').collect();
    saved.sort_unstable();
    // git sees no change in `same.lossy`, and would check out other content.
    let others = ["link", "mode.lossy", "same.lossy"];
    let mut expected: Vec<&str> = files.iter().map(|(name, _)| *name).chain(others).collect();
    expected.sort_unstable();
    assert_eq!(saved, expected, "what a checkout writes as it was is not saved");
    assert!(scratch.git(&["ls-tree", keep, "link", "mode.lossy"]).starts_with("120000 "));
    assert!(scratch.git(&["ls-tree", keep, "mode.lossy"]).starts_with("100755 "));
}

#[test]
fn force_saves_what_git_cleans_away_before_it_compares() {
    let scratch = with_trees(&["x"]);
    scratch.git(&["config", "filter.sec.clean", "sed /SECRET/d"]);
    // Its other half fails, so what it would write is unknown.
    scratch.git(&["config", "filter.broken.clean", "cat"]);
    scratch.git(&["config", "filter.broken.smudge", "false"]);
    scratch.git(&["config", "filter.broken.required", "true"]);
    let attributes = "*.sec filter=sec\n*.broken filter=broken\n*.auto text=auto\n*.crlf text eol=crlf\n";
    let name = std::ffi::OsStr::from_bytes(b"\xff.sec");
    let committed: [(&str, &[u8]); 7] = [
        (".gitattributes", attributes.as_bytes()),
        ("a.sec", b"line\n"),
        ("staged.sec", b"line\n"),
        ("clean.sec", b"line\n"),
        ("same.broken", b"line\n"),
        ("b.auto", b"line\n"),
        ("as written.crlf", b"line\r\n"),
    ];
    for (name, content) in committed {
        scratch.write(&format!(".worktrees/x/{name}"), content);
    }
    fs::write(scratch.path(".worktrees/x").join(name), "line\n").unwrap();
    in_x(&scratch, &["add", "--all"]);
    in_x(&scratch, &["commit", "--quiet", "-m", "filtered"]);
    let changed: [(&str, &[u8]); 4] = [
        // Uncommitted attributes do not affect a checkout.
        (".gitattributes", b""),
        ("a.sec", b"line\nSECRET=abc\n"),
        ("staged.sec", b"SECRET=def\nline\n"),
        ("b.auto", b"line\r\n"),
    ];
    for (name, content) in changed {
        scratch.write(&format!(".worktrees/x/{name}"), content);
    }
    fs::write(scratch.path(".worktrees/x").join(name), "line\nSECRET").unwrap();
    scratch.write(".git/info/attributes", attributes);
    // git calls it clean from here on.
    in_x(&scratch, &["add", "staged.sec"]);

    let run = scratch.run("clean --worktrees --force");
    gone(&scratch, &run);
    let [keep] = &refs(&scratch)[..] else { panic!("one ref: {run:?}") };
    for (name, content) in changed {
        let blob = scratch.git(&["cat-file", "blob", &format!("{keep}:{name}")]);
        assert_eq!(blob.as_bytes(), content, "{name}");
    }
    let saved = scratch.command("git").args(["diff", "--name-only", "-z", "x", keep]).output().unwrap();
    let mut saved: Vec<&[u8]> = saved.stdout.split(|&byte| byte == 0).filter(|it| !it.is_empty()).collect();
    saved.sort_unstable();
    assert_eq!(saved, [&b".gitattributes"[..], b"a.sec", b"b.auto", b"staged.sec", b"\xff.sec"]);
}

#[test]
fn force_saves_a_conflict_and_what_led_to_it() {
    let scratch = with_trees(&["x"]);
    scratch.write(".worktrees/x/file", "x's\n");
    in_x(&scratch, &["commit", "--quiet", "-am", "ours"]);
    scratch.write("file", "main's\n");
    scratch.git(&["commit", "--quiet", "-am", "theirs"]);
    // A commit that only MERGE_HEAD knows.
    let lone = scratch.git(&["commit-tree", "-p", "main", "-m", "lone", "main^{tree}"]).trim().to_owned();
    fails_in_x(&scratch, &["merge", &lone]);
    gone(&scratch, &scratch.run("clean --worktrees --force"));
    let keeps = refs(&scratch);
    assert_eq!(keeps.len(), 2);
    let show = |what: &str| scratch.git(&["show", &format!("{}{what}", keeps[0])]);
    assert!(show(":file").contains("<<<<<<<"), "the file as it was");
    assert_eq!((show("^2:file~ours"), show("^2:file~theirs")), ("x's\n".into(), "main's\n".into()));
    assert_eq!(scratch.git(&["rev-parse", &keeps[1]]).trim(), lone);
}
