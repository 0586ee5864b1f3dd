//! The identity for commits and pushes of branches, with real keys: commits are signed by a gpg key made here, and
//! pushed to a real ssh server, started here on the loopback device as the current user.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Run, Scratch};

/// A program of the system; servers lie in `sbin`, which need not be on a user's PATH.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let mut found = folders.map(|folder| folder.join(name)).filter(|path| path.is_file());
    found.next().unwrap_or_else(|| panic!("{name} is missing: scripts/test installs it"))
}

fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn good(run: &Run) {
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// A key ring of its own. gpg's agent puts its socket there, whose path must be short.
struct KeyRing(tempfile::TempDir);

impl KeyRing {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("gpg").tempdir_in("/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self(folder)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(program(name));
        command.env("GNUPGHOME", self.0.path());
        command
    }

    /// Makes a signing key and answers its fingerprint.
    fn key(&self, user: &str, passphrase: &str) -> String {
        let make = ["--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", passphrase];
        let key = ["--quick-generate-key", user, "ed25519", "sign", "never"];
        output(self.command("gpg").args(make).args(key));
        let keys = output(self.command("gpg").args(["--batch", "--with-colons", "--list-secret-keys", user]));
        let line = keys.lines().find(|line| line.starts_with("fpr:")).unwrap();
        line.split(':').nth(9).unwrap().to_owned()
    }

    /// Ends gpg's agent, with what it remembers.
    fn forget(&self) {
        let _ = self.command("gpgconf").args(["--kill", "all"]).status();
    }

    fn build(&self, project: &BranchProject) -> Run {
        Scratch::finish(project.scratch.ralph("loop build").env("GNUPGHOME", self.0.path()))
    }
}

impl Drop for KeyRing {
    fn drop(&mut self) {
        self.forget();
    }
}

#[test]
fn commits_of_a_branch_are_the_bots_and_signed() {
    let ring = KeyRing::new();
    let key = ring.key("Bot <bot@example.org>", "");
    // It starts again when the trial needs it, and must not keep its parent's files open.
    ring.forget();
    let project = BranchProject::without_remote(&plan(&[("one", 2), ("feature/two", 1)]));
    let worktree = format!("name = 'The \"bot\" itself'\nemail = 'bot@example.org'\nsigning_key = '{key}'\n");
    project.scratch.write("ralph.toml", format!("[git]\nauto_push = false\n[git.worktree]\n{worktree}"));
    good(&ring.build(&project));

    for branch in ["one", "feature/two"] {
        let mut verify = project.scratch.command("git");
        output(verify.args(["verify-commit", branch]).env("GNUPGHOME", ring.0.path()));
        let mut log = project.scratch.command("git");
        log.args(["log", "-1", "--format=%an <%ae>|%cn <%ce>|%GF", branch]).env("GNUPGHOME", ring.0.path());
        let bot = "The \"bot\" itself <bot@example.org>";
        assert_eq!(output(&mut log), format!("{bot}|{bot}|{key}"));
    }
    // No other work tree got this identity.
    assert!(!project.scratch.read(".git/config").contains("bot"));
    project.scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    assert_eq!(project.scratch.git(&["log", "-1", "--format=%an %G?"]), "Test N\n");
}

#[test]
fn a_key_that_cannot_sign_is_refused_before_anything_starts() {
    let ring = KeyRing::new();
    let locked = ring.key("Locked <locked@example.org>", "a passphrase");
    ring.forget();
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    for key in ["0123456789ABCDEF", locked.as_str()] {
        project.scratch.write("ralph.toml", format!("git.worktree.signing_key = '{key}'\n"));
        let run = ring.build(&project);
        assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 1), "{run:?}");
        let start = "error: commits cannot be signed (gpg: ";
        assert!(run.stderr.starts_with(start) && run.stderr.contains(&format!("key {key}: ")), "{run:?}");
        assert!(project.calls("one") == 0 && !project.scratch.path(".worktrees").exists());
        assert_eq!(project.scratch.git(&["branch", "--list", "one"]), "");
    }
}

/// An ssh server for the current user, who gets in with one key alone.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// With its files in `folder`.
    fn start(folder: &Path, authorized: &Path) -> Self {
        let host_key = ssh_key(folder, "host key");
        let config = folder.join("sshd_config");
        fs::write(
            &config,
            format!(
                "HostKey \"{}\"\nAuthorizedKeysFile \"{}\"\nListenAddress 127.0.0.1\nPidFile none\nUsePAM no\n\
                 PasswordAuthentication no\nKbdInteractiveAuthentication no\nStrictModes no\n",
                host_key.display(),
                authorized.display()
            ),
        )
        .unwrap();
        if rustix::process::getuid().is_root() {
            // A server of root needs it, and the package creates it only at the system's start.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        // Another process may take the port before the server does.
        (0..5).find_map(|_| Self::try_start(&config)).expect("sshd does not start")
    }

    fn try_start(config: &Path) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program("sshd"));
        command.args(["-D", "-e", "-p", &port.to_string(), "-f"]).arg(config);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut server = Self { child, port };
        let is_up = lines.by_ref().any(|line| {
            eprintln!("sshd: {line}");
            line.starts_with("Server listening on ")
        });
        if !is_up {
            let _ = server.child.wait();
            return None;
        }
        // Output for debugging a failed test.
        std::thread::spawn(move || lines.for_each(|line| eprintln!("sshd: {line}")));
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new key pair `name` in `folder`.
fn ssh_key(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    output(Command::new(program("ssh-keygen")).args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path));
    path
}

/// A project whose remote is behind an ssh server, and the right key in `~/keys of the bot/id`.
fn behind_ssh() -> (BranchProject, Server) {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    let scratch = &project.scratch;
    let keys = scratch.outside().join("home/keys of the bot");
    fs::create_dir(&keys).unwrap();
    ssh_key(&keys, "id");
    ssh_key(&keys, "stranger");
    let folder = scratch.outside().join("server");
    fs::create_dir(&folder).unwrap();
    let server = Server::start(&folder, &keys.join("id.pub"));

    let user = output(Command::new("id").arg("-un"));
    let url = format!("ssh://{user}@127.0.0.1:{}{}", server.port, project.remote().display());
    scratch.git(&["remote", "set-url", "origin", &url]);
    // ssh finds its files by the user's entry in the system, not by HOME, so it gets a config file.
    let config = folder.join("ssh_config");
    let key = fs::read_to_string(folder.join("host key.pub")).unwrap();
    fs::write(folder.join("known"), format!("[127.0.0.1]:{} {key}", server.port)).unwrap();
    fs::write(
        &config,
        format!("UserKnownHostsFile {}\nIdentityAgent none\n", folder.join("known").display()),
    )
    .unwrap();
    scratch.agent("ssh", &format!("exec {} -F {} \"$@\"", program("ssh").display(), config.display()));
    (project, server)
}

#[test]
fn a_branch_is_pushed_with_the_key_of_its_worktree() {
    let (project, _server) = behind_ssh();
    project.scratch.write(
        "ralph.toml",
        "[git]\nauto_pr = false\n[git.worktree]\nname = 'Bot'\nssh_key = '~/keys of the bot/id'\n",
    );
    // Variables of the environment do not apply to the bot.
    let run = Scratch::finish(project.scratch.ralph("loop build").env("GIT_SSH_COMMAND", "false"));
    good(&run);
    assert_eq!(project.pushed("one"), Some(project.head("one")), "{run:?}");

    // It applies to every process in the worktree, and nowhere else.
    let tree = project.scratch.path(".worktrees/one");
    project.scratch.git(&["-C", tree.to_str().unwrap(), "push", "--quiet", "origin", "one:by-hand"]);
    assert_eq!(project.pushed("by-hand"), Some(project.head("one")));
    let elsewhere = project.scratch.command("git").args(["push", "origin", "one:not-me"]).output().unwrap();
    assert!(!elsewhere.status.success() && project.pushed("not-me").is_none());
}

#[test]
fn a_key_that_the_server_does_not_know_is_told_and_the_right_one_pushes_later() {
    let (project, _server) = behind_ssh();
    let with = |key: &str| {
        let key = format!("ssh_key = '~/keys of the bot/{key}'\n");
        project.scratch.write("ralph.toml", format!("[git]\nauto_pr = false\n[git.worktree]\n{key}"));
        project.scratch.run("loop build")
    };
    let run = with("missing");
    assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 1), "{run:?}");
    assert!(run.stderr.contains("the ssh key cannot be read") && project.calls("one") == 0, "{run:?}");
    let run = with("stranger");
    assert_eq!((run.code, project.pushed("one")), (Some(5), None), "{run:?}");
    assert!(
        run.stdout.contains("Permission denied (publickey") && project.commits("one").len() == 1,
        "{run:?}"
    );
    good(&with("id"));
    assert_eq!(project.pushed("one"), Some(project.head("one")));
}
