//! The remote to which branches are pushed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::call::{LIMIT, run};
use super::forge::{Forge, ForgeChoice, Home};
use super::identity::CommitIdentity;
use crate::process::launch::Launch;
use crate::text::line::one_line_within;
use crate::text::secret::without_logins;

/// Options for ssh, which the user's own override: ask nothing, and detect a dead connection.
const SSH_OPTIONS: &str =
    " -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ServerAliveCountMax=4";
/// In a shell command with one of these characters, options cannot be appended to ssh's arguments.
const SHELL_SYNTAX: &[u8] = b";|&#<>()`\n";
/// The longest reason that is shown.
const LONGEST_REASON: usize = 300;

/// The remote to which branches are pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The remote's name.
    pub name: String,
    /// Its URLs that are relative paths, with their absolute paths: relative to another work tree they would be
    /// wrong.
    relative: Vec<(OsString, PathBuf)>,
    /// Where its pull requests are.
    pub home: Home,
}

/// The remote for pushes: `remote.pushDefault`, else `origin`, else the only one. `forge`: what serves it, as the settings say.
#[must_use]
pub fn remote(root: &Path, forge: ForgeChoice) -> Option<Remote> {
    Some(named(root, name(root)?, forge))
}

/// The remote that git pushes this branch to; `None` also if it is named and there is none of that name, so that nothing goes to
/// another one.
#[must_use]
pub fn remote_of(root: &Path, branch: &str, forge: ForgeChoice) -> Option<Remote> {
    let value = |key: &str| {
        let value = String::from_utf8(run(root, &["config", "--get", key], LIMIT).ok()?).ok()?;
        Some(value.trim_end().to_owned()).filter(|value| !value.is_empty() && value != ".")
    };
    let [own, usual] = ["pushRemote", "remote"].map(|word| format!("branch.{branch}.{word}"));
    let Some(chosen) = [&*own, "remote.pushDefault", &*usual].into_iter().find_map(value) else {
        return remote(root, forge);
    };
    let all = String::from_utf8(run(root, &["remote"], LIMIT).ok()?).ok()?;
    all.lines().any(|known| known == chosen).then(|| named(root, chosen, forge))
}

fn named(root: &Path, name: String, choice: ForgeChoice) -> Remote {
    let mut urls =
        run(root, &["remote", "get-url", "--push", "--all", "--", &name], LIMIT).unwrap_or_default();
    urls.extend(run(root, &["remote", "get-url", "--all", "--", &name], LIMIT).unwrap_or_default());
    let relative = urls.split(|&byte| byte == b'\n').filter(|url| is_relative(url)).map(OsStr::from_bytes);
    let mut relative: Vec<_> = relative.map(|url| (url.to_owned(), root.join(url))).collect();
    relative.dedup();
    let url = urls.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let url = String::from_utf8_lossy(url);
    let resolved = resolved(root);
    let resolved = resolved.as_ref().map(|(resolved, at)| (resolved.as_str(), at.as_str()));
    let home = Home::of(Forge::of_url(&url, choice), &url, resolved);
    Remote { name, relative, home }
}

/// What `gh repo set-default` has noted, and the URL of the remote at which it is.
fn resolved(root: &Path) -> Option<(String, String)> {
    let text = |words: &[&str]| String::from_utf8(run(root, words, LIMIT).ok()?).ok();
    let found = text(&["config", "-z", "--get-regexp", r"^remote\..*\.gh-resolved$"])?;
    let (key, value) = found.split('\0').next()?.split_once('\n')?;
    let name = key.strip_prefix("remote.")?.strip_suffix(".gh-resolved")?;
    let url = text(&["remote", "get-url", "--", name])?;
    Some((value.to_owned(), url.trim_end().to_owned()))
}

/// Whether git treats it as a path that depends on the working directory.
fn is_relative(url: &[u8]) -> bool {
    let before_slash = url.split(|&byte| byte == b'/').next().unwrap_or_default();
    !url.is_empty() && !url.starts_with(b"/") && !before_slash.contains(&b':')
}

/// The name of that remote.
pub(super) fn name(root: &Path) -> Option<String> {
    let pattern = r"^remote\.(pushdefault|.*\.(push)?url)$";
    let output = run(root, &["config", "-z", "--get-regexp", pattern], LIMIT).ok()?;
    let text = String::from_utf8(output).ok()?;
    let (mut default, mut names) = (None, Vec::new());
    for (key, value) in text.split('\0').filter_map(|entry| entry.split_once('\n')) {
        let Some(key) = key.strip_prefix("remote.") else { continue };
        match key.rsplit_once('.') {
            Some((name, _)) => names.push(name),
            // The last value wins, as everywhere in git's configuration.
            None => default = Some(value).filter(|value| !value.is_empty()),
        }
    }
    names.sort_unstable();
    names.dedup();
    let only = || if let [name] = names[..] { Some(name) } else { None };
    default.or_else(|| names.contains(&"origin").then_some("origin")).or_else(only).map(str::to_owned)
}

/// The command line that pushes, from the work tree `tree`, a ref or commit to a branch: never forced, and without setting an
/// upstream, which would be written into the configuration that all work trees share.
#[must_use]
pub fn push(tree: &Path, remote: &Remote, (from, branch): (&str, &str), identity: &CommitIdentity) -> Launch {
    push_refs(tree, remote, &[format!("{from}:refs/heads/{branch}")], identity)
}

/// The command line that pushes these, each as `FROM:TO`, or `:TO` to remove it there.
#[must_use]
pub fn push_refs(tree: &Path, remote: &Remote, refs: &[String], identity: &CommitIdentity) -> Launch {
    talk(
        tree,
        remote,
        (&["push", "--porcelain", "--no-follow-tags", "--no-recurse-submodules"], refs),
        identity,
    )
}

/// The command line that gets these from the remote, each as `FROM:TO`, and nothing else.
#[must_use]
pub fn fetch(tree: &Path, remote: &Remote, refs: &[String], identity: &CommitIdentity) -> Launch {
    let words = [
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        "--no-recurse-submodules",
    ];
    talk(tree, remote, (&words, refs), identity)
}

/// The command line that lists the refs of the remote that match these, in lines `COMMIT REF`.
#[must_use]
pub fn list(tree: &Path, remote: &Remote, refs: &[String], identity: &CommitIdentity) -> Launch {
    talk(tree, remote, (&["ls-remote", "--quiet"], refs), identity)
}

/// A command line of git that asks the remote, and no person here.
fn talk(
    tree: &Path,
    remote: &Remote,
    (words, refs): (&[&str], &[String]),
    identity: &CommitIdentity,
) -> Launch {
    let mut args: Vec<OsString> = Vec::new();
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    for (at, (url, folder)) in remote.relative.iter().enumerate() {
        // In the environment: with `-c` a setting ends at the first `=`, which a folder's name may contain.
        let variable = format!("RALPH_PUSH_URL_{at}");
        let mut setting = OsString::from("--config-env=url.");
        setting.push(folder);
        setting.push(format!(".insteadOf={variable}"));
        args.push(setting);
        env.push((variable.into(), url.clone()));
    }
    args.extend(words.iter().copied().chain(["--", &remote.name]).map(OsString::from));
    args.extend(refs.iter().map(OsString::from));
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let mut give = |name: &str, value: &OsStr| env.push((name.into(), value.to_owned()));
    give("LC_ALL", "C".as_ref());
    give("GIT_TERMINAL_PROMPT", "0".as_ref());
    give("GCM_INTERACTIVE", "never".as_ref());
    give("SSH_ASKPASS_REQUIRE", "never".as_ref());
    if set("GIT_ASKPASS").is_none() {
        // An empty value also disables core.askPass and SSH_ASKPASS, which open windows. A value set by the user for
        // git usually answers by itself.
        give("GIT_ASKPASS", "".as_ref());
    }
    if let Some(command) = ssh_in_force(tree, identity, &set).as_deref().and_then(silent) {
        give("GIT_SSH_COMMAND", &command);
    }
    Launch {
        program: "git".into(),
        args,
        cwd: tree.to_path_buf(),
        env,
        spares_daemons: true,
        ..Launch::default()
    }
}

/// The shell command by which git would reach an ssh server; `None` if it is configured as another program than
/// OpenSSH's. The identity's key comes first, then git's own order.
fn ssh_in_force(
    tree: &Path,
    identity: &CommitIdentity,
    set: &dyn Fn(&str) -> Option<OsString>,
) -> Option<OsString> {
    let configured = |key: &str| {
        let mut value = run(tree, &["config", "--get", key], LIMIT).ok()?;
        value.pop(); // the newline
        (!value.is_empty()).then(|| OsString::from_vec(value))
    };
    if let Some(command) = identity.ssh_command() {
        return Some(command);
    }
    let variant = set("GIT_SSH_VARIANT").or_else(|| configured("ssh.variant"));
    if variant.is_some_and(|variant| variant != "ssh" && variant != "auto") {
        return None;
    }
    let program =
        || shlex::bytes::try_quote(set("GIT_SSH")?.as_bytes()).ok().map(|it| OsString::from_vec(it.into()));
    set("GIT_SSH_COMMAND")
        .or_else(|| configured("core.sshCommand"))
        .or_else(program)
        .or_else(|| Some("ssh".into()))
}

/// The command with [`SSH_OPTIONS`]; `None` if it may not be a call of OpenSSH's ssh.
fn silent(command: &OsStr) -> Option<OsString> {
    let bytes = command.as_bytes();
    let words = shlex::bytes::split(bytes)?;
    let program = words.first()?.rsplit(|&byte| byte == b'/').next()?;
    let is_plain = !bytes.iter().any(|byte| SHELL_SYNTAX.contains(byte));
    (program == b"ssh" && is_plain).then(|| OsString::from_vec([bytes, SSH_OPTIONS.as_bytes()].concat()))
}

/// Why a push failed, in one line, from its output.
#[must_use]
pub fn why_refused(stdout: &str, stderr: &str) -> String {
    let said = |start: &'static str| {
        stderr
            .lines()
            .filter_map(move |line| Some(line.trim().strip_prefix(start)?.trim()))
            .filter(|line| !line.is_empty())
    };
    // `!`, the refs, the reason.
    let refusal = stdout.lines().find(|line| line.starts_with('!')).and_then(|line| line.rsplit('\t').next());
    let reason = match refusal {
        Some(reason) if reason.starts_with("[rejected]") => {
            format!("the branch has commits there that are not here: {reason}")
        }
        Some(reason) => {
            let remote = said("remote: error:").next().or_else(|| said("remote:").next());
            remote.map_or_else(|| reason.to_owned(), |remote| format!("{reason}: {remote}"))
        }
        None => complaint(stderr).to_owned(),
    };
    one_line_within(&without_logins(&reason), LONGEST_REASON)
}

/// The most informative line.
fn complaint(stderr: &str) -> &str {
    let general = [
        "hint:",
        "To ",
        "Warning: Permanently added",
        "error: failed to push some refs",
        "fatal: Could not read from remote repository",
        "fatal: the remote end hung up unexpectedly",
        "Please make sure you have the correct access rights",
        "and the repository exists.",
    ];
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut telling = lines().filter(|line| !general.iter().any(|start| line.starts_with(start)));
    let is_error = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
    let line = telling.clone().find(is_error).or_else(|| telling.next_back()).or_else(|| lines().next());
    line.map_or("no reason given", |line| line.trim_start_matches("fatal: ").trim_start_matches("error: "))
}

#[cfg(test)]
mod tests;
