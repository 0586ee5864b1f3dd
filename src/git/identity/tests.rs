use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::super::head;
use super::super::tests::{git, repository};
use super::super::worktrees;
use super::*;

fn committed() -> (tempfile::TempDir, PathBuf) {
    let (guard, root) = repository();
    git(&root, &["commit", "--quiet", "--allow-empty", "-m", "one"]);
    (guard, root)
}

fn tree(root: &Path, name: &str) -> PathBuf {
    let path = root.join(".worktrees").join(name);
    worktrees::add(root, &path, name, &head(root).unwrap(), None).unwrap();
    path
}

fn full() -> CommitIdentity {
    CommitIdentity {
        name: Some("-a \"bot\" \u{e9}".into()),
        email: Some("bot@example.org".into()),
        signing_key: Some("ABCD1234!".into()),
        ssh_key: Some("/keys/a bot's key".into()),
    }
}

fn value(root: &Path, key: &str) -> String {
    git(root, &["config", "--worktree", "--default", "", "--get", key]).trim_end().to_owned()
}

#[test]
fn an_identity_holds_in_its_work_tree_alone() {
    let (_guard, root) = committed();
    prepare(&root).unwrap();
    let (one, two) = (tree(&root, "one"), tree(&root, "two"));
    configure(&one, &full()).unwrap();
    for (key, expected) in [
        ("user.name", "-a \"bot\" \u{e9}"),
        ("user.email", "bot@example.org"),
        ("user.signingkey", "ABCD1234!"),
        ("commit.gpgsign", "true"),
        ("core.sshCommand", "ssh -i \"/keys/a bot's key\" -o IdentitiesOnly=yes"),
    ] {
        assert_eq!(value(&one, key), expected, "{key}");
    }
    configure(&two, &CommitIdentity::default()).unwrap();
    for other in [&root, &two] {
        let values = git(other, &["config", "--show-scope", "--list"]);
        assert!(!values.contains("worktree\t") && !values.contains("ABCD1234"), "{values}");
    }
}

#[test]
fn only_what_differs_is_written_and_nothing_is_removed() {
    let (_guard, root) = committed();
    prepare(&root).unwrap();
    let tree = tree(&root, "one");
    configure(&tree, &full()).unwrap();
    let file = root.join(".git/worktrees/one/config.worktree");
    let before = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().ino());
    configure(&tree, &full()).unwrap();
    assert_eq!(
        (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().ino()),
        before,
        "it is not even touched"
    );

    git(&tree, &["config", "--worktree", "--add", "user.name", "another"]);
    let other = CommitIdentity { name: Some("third".into()), ..CommitIdentity::default() };
    configure(&tree, &other).unwrap();
    assert_eq!(git(&tree, &["config", "--worktree", "--get-all", "user.name"]), "third\n");
    assert_eq!(value(&tree, "user.signingkey"), "ABCD1234!", "it may be the user's");
}

#[test]
fn preparing_twice_changes_nothing() {
    let (_guard, root) = committed();
    prepare(&root).unwrap();
    assert_eq!(git(&root, &["config", "--local", "extensions.worktreeConfig"]), "true\n");
    let file = root.join(".git/config");
    let before = fs::metadata(&file).unwrap().ino();
    prepare(&root).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().ino(), before);
    assert!(!root.join(".git/config.worktree").exists());
    assert!(prepare(Path::new("/nowhere")).is_err());
}

#[test]
fn a_bare_repository_stays_bare_and_its_trees_work() {
    let (guard, root) = committed();
    let bare = guard.path().join("bare");
    git(guard.path(), &["clone", "--quiet", "--bare", root.to_str().unwrap(), bare.to_str().unwrap()]);
    let first = guard.path().join("first");
    git(&bare, &["worktree", "add", "--quiet", "-b", "first", first.to_str().unwrap()]);
    for _ in 0..2 {
        prepare(&first).unwrap();
    }
    let of_common = |key: &str| {
        git(&bare, &["config", "--file", "config", "--default", "none", "--get", key]).trim().to_owned()
    };
    assert_eq!(
        (of_common("core.bare"), of_common("extensions.worktreeConfig")),
        ("none".into(), "true".into())
    );
    assert_eq!(git(&bare, &["rev-parse", "--is-bare-repository"]), "true\n");
    let second = tree(&first, "second");
    configure(&second, &full()).unwrap();
    for tree in [&first, &second] {
        assert_eq!(
            git(tree, &["rev-parse", "--is-inside-work-tree", "--is-bare-repository"]),
            "true\nfalse\n"
        );
        assert_eq!(git(tree, &["status", "--porcelain", "--untracked-files=no"]), "");
    }
}

#[test]
fn a_work_tree_elsewhere_stays_where_it_is() {
    let (guard, root) = committed();
    let files = guard.path().join("the files");
    fs::create_dir(&files).unwrap();
    git(&root, &["config", "core.worktree", files.to_str().unwrap()]);
    let top = |folder: &Path| git(folder, &["rev-parse", "--show-toplevel"]);
    let before = top(&root);
    prepare(&root).unwrap();
    assert_eq!(top(&root.join(".git")), before);
    let linked = guard.path().join("linked");
    git(&root.join(".git"), &["worktree", "add", "--quiet", "-b", "linked", linked.to_str().unwrap()]);
    assert_eq!(Path::new(top(&linked).trim()), fs::canonicalize(&linked).unwrap());
    assert!(!fs::read_to_string(root.join(".git/config")).unwrap().contains("worktree = "));
}

#[test]
fn a_submodule_can_be_the_project() {
    let (guard, inner) = committed();
    let outer = guard.path().join("outer");
    fs::create_dir(&outer).unwrap();
    git(&outer, &["init", "--quiet"]);
    let add =
        ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.to_str().unwrap(), "sub"];
    git(&outer, &add);
    let sub = outer.join("sub");
    prepare(&sub).unwrap();
    let tree = tree(&sub, "x");
    configure(&tree, &full()).unwrap();
    for folder in [&sub, &tree] {
        assert_eq!(
            Path::new(git(folder, &["rev-parse", "--show-toplevel"]).trim()),
            fs::canonicalize(folder).unwrap()
        );
    }
    assert_eq!(value(&tree, "user.email"), "bot@example.org");
    assert_eq!(git(&outer, &["status", "--porcelain", "--ignore-submodules=none"]).matches(" M").count(), 0);
}

#[test]
fn a_crash_while_preparing_leaves_a_working_repository() {
    let (_guard, root) = committed();
    git(&root, &["config", "core.bare", "true"]);
    let linked = root.join("linked");
    git(&root, &["worktree", "add", "--quiet", "-b", "linked", "linked"]);
    // The file that is written before the decisive step.
    git(&root, &["config", "--file", ".git/config.worktree", "core.bare", "true"]);
    for _ in 0..2 {
        assert_eq!(git(&root.join(".git"), &["rev-parse", "--is-bare-repository"]), "true\n");
        assert_eq!(git(&linked, &["rev-parse", "--is-inside-work-tree"]), "true\n");
        prepare(&linked).unwrap();
    }
    assert!(!root.join(".git/config.lock").exists());

    git(&root, &["config", "--file", ".git/config", "core.bare", "true"]);
    fs::write(root.join(".git/config.lock"), "").unwrap();
    let said = prepare(&root).unwrap_err().to_string();
    assert!(said.contains("a lock of git's is in the way, since "), "{said}");
    assert!(root.join(".git/config.lock").exists());
}

#[test]
fn keys_that_ssh_would_not_take_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("a key");
    let said = |path: &Path| {
        let identity = CommitIdentity { ssh_key: Some(path.to_path_buf()), ..CommitIdentity::default() };
        check(&identity).map_err(|error| error.to_string())
    };
    assert!(said(&key).unwrap_err().starts_with("the ssh key cannot be read (No such file"));
    fs::write(&key, "").unwrap();
    assert!(said(&key).is_err());
    fs::write(&key, "-----BEGIN OPENSSH PRIVATE KEY-----\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(said(&key).unwrap_err().contains("'chmod 600'"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    said(&key).unwrap();
    assert!(said(folder.path()).is_err());
    assert!(said(Path::new("/a%d/key")).unwrap_err().contains("'%'"));
    check(&CommitIdentity::default()).unwrap();
}

#[test]
fn paths_of_keys_are_absolute() {
    let command = |path: &str| {
        let identity = CommitIdentity { ssh_key: Some(path.into()), ..CommitIdentity::default() };
        identity.ssh_command().unwrap().into_string().unwrap()
    };
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    assert_eq!(command("~/.ssh/bot"), format!("ssh -i {}/.ssh/bot -o IdentitiesOnly=yes", home.display()));
    assert_eq!(command("/k ~"), "ssh -i '/k ~' -o IdentitiesOnly=yes");
    let located = |path: &str| {
        let identity = CommitIdentity { ssh_key: Some(path.into()), ..CommitIdentity::default() };
        identity.located(Path::new("/project")).ssh_key.unwrap()
    };
    assert_eq!((located("~/k"), located("k~")), (home.join("k"), "/project/k~".into()));
    assert_eq!(CommitIdentity::default().ssh_command(), None);
}

#[test]
fn a_trial_signature_names_the_key_and_the_reason() {
    let (guard, root) = committed();
    let identity = CommitIdentity { signing_key: Some("NOBODY".into()), ..full() };
    try_signature(&root, &CommitIdentity { signing_key: None, ..full() }).unwrap();
    let gpg = guard.path().join("gpg");
    git(&root, &["config", "gpg.program", gpg.to_str().unwrap()]);
    let says = |script: &str| {
        // Another process writes the program: a child forked by a parallel test would keep our file open for writing,
        // and the program could not be started.
        let write = ["-c", "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\""];
        assert!(Command::new("sh").args(write).arg(&gpg).arg(script).status().unwrap().success());
        try_signature(&root, &identity).map_err(|error| error.to_string())
    };
    let said =
        says("cat > /dev/null; echo 'gpg: skipped \"NOBODY\": No secret key' >&2; exit 2").unwrap_err();
    let expected = "commits cannot be signed (gpg: skipped \"NOBODY\": No secret key), key NOBODY: ";
    assert!(said.starts_with(expected), "{said}");
    let before = git(&root, &["for-each-ref"]) + &git(&root, &["status", "--porcelain"]);
    says("cat > \"$0.signed\"; [ \"$GPG_TTY\" = /dev/null ] || exit 2; echo '[GNUPG:] SIG_CREATED ' >&2; echo SIGNED")
        .unwrap();
    assert_eq!(git(&root, &["for-each-ref"]) + &git(&root, &["status", "--porcelain"]), before);
    let signed = fs::read_to_string(guard.path().join("gpg.signed")).unwrap();
    assert!(signed.contains("committer -a \"bot\" \u{e9} <bot@example.org>"), "{signed}");

    git(&root, &["update-ref", "-d", "HEAD"]);
    says("cat > /dev/null; echo '[GNUPG:] SIG_CREATED ' >&2; echo SIGNED").unwrap();
}

#[test]
fn an_ident_is_read_from_behind() {
    let read = |ident: &[u8]| name_and_email(ident).map(|(name, email)| (name.to_vec(), email.to_vec()));
    let found = |name: &[u8], email: &[u8]| Some((name.to_vec(), email.to_vec()));
    assert_eq!(read(b"A B <a@b> 17 +0100\n"), found(b"A B", b"a@b"));
    assert_eq!(read(b"Jos\xe9 <> 17 +0100\n"), found(b"Jos\xe9", b""));
    assert_eq!((read(b""), read(b"no address\n"), read(b"> <\n")), (None, None, None));
}

#[test]
fn programs_are_told_who_they_are() {
    let env = |identity: &CommitIdentity| -> Vec<String> {
        agent_env(identity).iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    };
    assert!(env(&CommitIdentity::default()).is_empty());
    let names = [
        "GIT_AUTHOR_NAME",
        "GIT_COMMITTER_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_EMAIL",
        "GIT_SSH_COMMAND",
    ];
    assert_eq!(env(&full()), names);
}
