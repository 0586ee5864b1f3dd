use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::super::tests::{git, repository};
use super::*;

/// A bare repository `there.git`, and a clone of it with one commit on the branch `feature/x`.
fn cloned() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let (guard, root) = repository();
    let there = guard.path().join("there.git");
    git(guard.path(), &["init", "--quiet", "--bare", there.to_str().unwrap()]);
    git(&root, &["remote", "add", "origin", there.to_str().unwrap()]);
    git(&root, &["checkout", "--quiet", "-b", "feature/x"]);
    git(&root, &["commit", "--quiet", "--allow-empty", "-m", "one"]);
    (guard, root, there)
}

fn run_launch(launch: &Launch) -> Output {
    let mut words = launch.command_line();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).current_dir(&launch.cwd).env_remove("GIT_DIR");
    command.envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.output().unwrap()
}

fn pushed(root: &Path) -> Result<(), String> {
    let output = run_launch(&push(
        root,
        &named("origin"),
        ("refs/heads/feature/x", "feature/x"),
        &CommitIdentity::default(),
    ));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let why = why_refused(&text(&output.stdout), &text(&output.stderr));
    assert!(!why.contains('\n') && !why.is_empty());
    if output.status.success() { Ok(()) } else { Err(why) }
}

fn named(name: &str) -> Remote {
    Remote { name: name.to_owned(), relative: Vec::new(), home: Home::unnamed(Forge::GitHub) }
}

#[test]
fn the_remote_is_the_configured_one_or_origin_or_the_only_one() {
    let (_guard, root) = repository();
    assert_eq!(name(&root), None);
    let add = |name: &str| git(&root, &["remote", "add", name, "/nowhere"]);
    add("up.stream");
    assert_eq!(name(&root).as_deref(), Some("up.stream"));
    add("another");
    assert_eq!(name(&root), None, "nobody said which");
    add("origin");
    assert_eq!(name(&root).as_deref(), Some("origin"));
    git(&root, &["config", "remote.pushDefault", "another"]);
    assert_eq!(name(&root).as_deref(), Some("another"));
    assert_eq!(name(Path::new("/nowhere")), None);
}

#[test]
fn a_branch_is_pushed_and_nothing_else_changes() {
    let (_guard, root, there) = cloned();
    git(&root, &["config", "push.followTags", "true"]);
    git(&root, &["config", "push.autoSetupRemote", "true"]);
    git(&root, &["tag", "-a", "v1", "-m", "v1"]);
    let before = fs::read(root.join(".git/config")).unwrap();
    pushed(&root).unwrap();
    let id = git(&root, &["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(
        git(&there, &["for-each-ref", "--format=%(refname) %(objectname)"]),
        format!("refs/heads/feature/x {id}\n")
    );
    assert_eq!(fs::read(root.join(".git/config")).unwrap(), before);
    pushed(&root).unwrap();
}

#[test]
fn history_there_is_never_overwritten() {
    let (_guard, root, there) = cloned();
    git(&root, &["config", "remote.origin.push", "+refs/heads/*:refs/heads/*"]);
    git(&root, &["commit", "--quiet", "--allow-empty", "-m", "two"]);
    pushed(&root).unwrap();
    let before = git(&there, &["for-each-ref"]);
    git(&root, &["commit", "--quiet", "--amend", "--allow-empty", "-m", "other"]);
    let why = "the branch has commits there that are not here: [rejected] (non-fast-forward)";
    assert_eq!(pushed(&root).unwrap_err(), why);
    assert_eq!(git(&there, &["for-each-ref"]), before);
}

#[test]
fn what_the_other_side_said_is_told() {
    let (guard, root, there) = cloned();
    let hook = |folder: &Path, name: &str, script: &str| {
        let path = folder.join("hooks").join(name);
        let write = "mkdir -p \"${0%/*}\" && printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\"";
        assert!(Command::new("sh").args(["-c", write]).arg(path).arg(script).status().unwrap().success());
    };
    hook(&there, "pre-receive", "printf '\\n  Not on \\033[31mFridays.\\n'; exit 1");
    assert_eq!(
        pushed(&root).unwrap_err(),
        "[remote rejected] (pre-receive hook declined): Not on [31mFridays."
    );
    hook(&root.join(".git"), "pre-push", "echo testing; echo '2 tests failed' >&2; exit 1");
    assert_eq!(pushed(&root).unwrap_err(), "2 tests failed");
    fs::remove_dir_all(root.join(".git/hooks")).unwrap();
    fs::rename(&there, guard.path().join("moved")).unwrap();
    assert_eq!(
        pushed(&root).unwrap_err(),
        format!("'{}' does not appear to be a git repository", there.display())
    );
    git(&root, &["config", "core.sshCommand", "ssh -F /dev/null"]);
    git(&root, &["remote", "set-url", "origin", "ssh://127.0.0.1:1/x"]);
    let why = pushed(&root).unwrap_err();
    assert!(why.starts_with("ssh: connect to host 127.0.0.1 port 1: "), "{why}");
}

#[test]
fn reasons_of_known_servers_are_found() {
    let protected = "remote: error: GH006: Protected branch update failed for refs/heads/x.\nremote: error: Changes must \
                     be made through a pull request.\nTo github.com:a/b.git\nerror: failed to push some refs to 'x'\n";
    let stdout =
        "To x\n!\trefs/heads/x:refs/heads/x\t[remote rejected] (protected branch hook declined)\nDone\n";
    assert_eq!(
        why_refused(stdout, protected),
        "[remote rejected] (protected branch hook declined): GH006: Protected branch update failed for refs/heads/x."
    );
    let access = "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n\
                  and the repository exists.\n";
    for (said, why) in [
        (
            "git@github.com: Permission denied (publickey).\n",
            "git@github.com: Permission denied (publickey).",
        ),
        (
            "No ED25519 host key is known for h.\nHost key verification failed.\n",
            "Host key verification failed.",
        ),
        ("", "Could not read from remote repository."),
    ] {
        assert_eq!(why_refused("", &format!("{said}{access}")), why);
    }
    let https = "remote: Invalid username or password.\nfatal: Authentication failed for 'https://h/'\n";
    assert_eq!(why_refused("", https), "Authentication failed for 'https://h/'");
    let asked = "fatal: could not read Username for 'https://h': terminal prompts disabled\n";
    assert!(why_refused("", asked).ends_with("terminal prompts disabled"));
    assert_eq!(why_refused("", ""), "no reason given");
    assert_eq!(why_refused("", &"x".repeat(10_000)).chars().count(), LONGEST_REASON);
}

#[test]
fn ssh_asks_nothing_whichever_command_is_in_force() {
    let (_guard, root) = repository();
    let env = |names: &'static [(&'static str, &'static str)]| {
        move |name: &str| {
            names.iter().find(|(other, _)| *other == name).map(|(_, value)| OsString::from(value))
        }
    };
    let none = CommitIdentity::default();
    let in_force = |identity: &CommitIdentity, set: &dyn Fn(&str) -> Option<OsString>| {
        let command = ssh_in_force(&root, identity, set).as_deref().and_then(silent)?;
        Some(command.into_string().unwrap().replace(SSH_OPTIONS, " OPTIONS"))
    };
    assert_eq!(in_force(&none, &env(&[])).as_deref(), Some("ssh OPTIONS"));
    assert_eq!(in_force(&none, &env(&[("GIT_SSH", "/o s/ssh")])).as_deref(), Some("'/o s/ssh' OPTIONS"));
    git(&root, &["config", "core.sshCommand", "/usr/bin/ssh -i 'a b'"]);
    assert_eq!(in_force(&none, &env(&[])).as_deref(), Some("/usr/bin/ssh -i 'a b' OPTIONS"));
    assert_eq!(in_force(&none, &env(&[("GIT_SSH_COMMAND", "ssh -4")])).as_deref(), Some("ssh -4 OPTIONS"));
    let key = CommitIdentity { ssh_key: Some("/k".into()), ..CommitIdentity::default() };
    let expected = "ssh -i /k -o IdentitiesOnly=yes OPTIONS";
    assert_eq!(in_force(&key, &env(&[("GIT_SSH_COMMAND", "plink")])).as_deref(), Some(expected));
    for other in ["plink -batch", "my-wrapper", "ssh host; true", "ssh 'open", "", "ssh # x"] {
        assert_eq!(silent(other.as_ref()), None, "{other}");
    }
    assert_eq!(in_force(&none, &env(&[("GIT_SSH_VARIANT", "simple")])), None);
    git(&root, &["config", "ssh.variant", "plink"]);
    assert_eq!(in_force(&none, &env(&[])), None);
}

#[test]
fn the_command_line_never_forces() {
    let (_guard, root) = repository();
    let launch = push(&root, &named("-remote"), ("refs/heads/b", "b"), &CommitIdentity::default());
    let args: Vec<&str> = launch.args.iter().map(|argument| argument.to_str().unwrap()).collect();
    assert_eq!(
        args,
        [
            "push",
            "--porcelain",
            "--no-follow-tags",
            "--no-recurse-submodules",
            "--",
            "-remote",
            "refs/heads/b:refs/heads/b"
        ]
    );
    assert_eq!((launch.cwd, launch.mark.as_str(), launch.spares_daemons), (root, "", true));
    for (name, value) in [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0")] {
        assert!(launch.env.contains(&(name.into(), value.into())));
    }
}

#[test]
fn a_relative_path_means_the_same_in_every_work_tree() {
    let (_folder, root) = repository();
    for absolute in ["/there.git", "https://host/there.git", "git@host:there.git", "file:///there.git"] {
        git(&root, &["config", "remote.origin.url", absolute]);
        assert_eq!(remote(&root, ForgeChoice::Auto).unwrap().relative, [], "{absolute}");
    }
    for folder in ["plain", "odd=one", "a = b.c/d.insteadOf=e", "umlaut \u{fc}"] {
        let (guard, root, there) = cloned();
        let folder = guard.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::rename(&root, folder.join("project")).unwrap();
        fs::rename(&there, folder.join("there.git")).unwrap();
        let root = folder.join("project");
        git(&root, &["remote", "set-url", "origin", "../there.git"]);
        git(&root, &["worktree", "add", "--quiet", "--force", "deep/er/tree", "feature/x"]);
        let there = remote(&root, ForgeChoice::Auto).unwrap();
        let launch = push(
            &root.join("deep/er/tree"),
            &there,
            ("refs/heads/feature/x", "feature/x"),
            &CommitIdentity::default(),
        );
        let output = run_launch(&launch);
        assert!(output.status.success(), "{}: {output:?}", folder.display());
        let pushed = git(&folder.join("there.git"), &["rev-parse", "feature/x"]);
        assert_eq!(pushed, git(&root, &["rev-parse", "feature/x"]));
    }
}
