//! The identity for commits and pushes in the work trees of branches: values for one work tree only.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::call::{LIMIT, run, run_with};
use super::change::{ChangeError, ChangeOptions, alone, change, change_with, patiently};
use super::error::GitError;
use super::head_file;
use super::repository::common_dir;
use crate::files::atomic::{self, Durability};
use crate::files::{own, theirs};

/// The time limit of a trial signature.
const SIGNATURE_LIMIT: Duration = Duration::from_secs(30);

/// The identity for commits and pushes. `None` leaves the user's own configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitIdentity {
    /// Author and committer.
    pub name: Option<String>,
    /// Their address.
    pub email: Option<String>,
    /// The key that signs commits, as `user.signingKey` takes it.
    pub signing_key: Option<String>,
    /// The file of the ssh key for pushing; `~` is the home folder.
    pub ssh_key: Option<PathBuf>,
}

impl CommitIdentity {
    /// Makes the ssh key's path absolute: `~` is expanded, a relative path starts at `root`.
    #[must_use]
    pub fn located(mut self, root: &Path) -> Self {
        self.ssh_key = self.ssh_key.map(|path| root.join(expanded(path)));
        self
    }

    /// The shell command for pushing with the ssh key; `None` without a key.
    #[must_use]
    pub fn ssh_command(&self) -> Option<OsString> {
        let path = std::path::absolute(expanded(self.ssh_key.clone()?)).ok()?;
        // Only a NUL cannot be quoted, and no path has one.
        let quoted = shlex::bytes::try_quote(path.as_os_str().as_bytes()).ok()?;
        Some(OsString::from_vec([b"ssh -i ", &*quoted, b" -o IdentitiesOnly=yes"].concat()))
    }
}

/// Expands a leading `~`.
fn expanded(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path,
    }
}

/// Checks whether ssh can use the key.
pub fn check(identity: &CommitIdentity) -> Result<(), GitError> {
    let Some(path) = identity.ssh_key.clone().map(expanded) else { return Ok(()) };
    let fail = |what: &str, way_out: &str| Err(GitError::in_the_way(what, path.display(), way_out));
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&b'%') || bytes.windows(2).any(|pair| pair == b"${") {
        return fail("ssh replaces '%' and '${' in the path of a key", "give the key file another name");
    }
    let key = theirs::read(&path, theirs::MAX_TEXT).and_then(|key| match key.len() {
        0..10 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok((key, path.metadata()?)),
    });
    let (key, metadata) = match key {
        Ok(key) => key,
        Err(error) => {
            return fail(
                &format!("the ssh key cannot be read ({error})"),
                "fix ssh_key under [git.worktree]",
            );
        }
    };
    // For a public key, an ssh agent has the private half.
    let is_private = key.starts_with(b"-----BEGIN");
    if is_private && metadata.uid() == rustix::process::getuid().as_raw() && metadata.mode() & 0o077 != 0 {
        return fail("others may read the ssh key, so ssh does not use it", "protect it with 'chmod 600'");
    }
    Ok(())
}

/// Enables configuration per work tree. Values that git then allows only in the main work tree's configuration are
/// moved there; a crash in between leaves a working repository.
pub fn prepare(root: &Path) -> Result<(), GitError> {
    let _alone = alone();
    let common = common_dir(root)?;
    let file = common.join("config");
    let refused = |error: ChangeError| error.of("config", &file);
    let pattern = r"^(core\.bare|core\.worktree|extensions\.worktreeconfig)$";
    let read = ["config", "-z", "--get-regexp", pattern].map(OsStr::new);
    let read = [&read[..1], &["--file".as_ref(), file.as_os_str()], &read[1..]].concat();
    let output = match change_with(root, &read, &ChangeOptions::default()) {
        // git fails if there is none.
        Err(ChangeError::Refused(_)) => Vec::new(),
        result => result.map_err(refused)?,
    };
    let (mut is_prepared, mut is_bare, mut worktree) = (false, false, None);
    for entry in output.split(|&byte| byte == 0).filter(|entry| !entry.is_empty()) {
        let at = entry.iter().position(|&byte| byte == b'\n').unwrap_or(entry.len());
        // A key without a value is true.
        let value = entry.get(at + 1..);
        match &entry[..at] {
            b"core.bare" => is_bare = is_true(value),
            b"core.worktree" => worktree = value.map(OsStr::from_bytes),
            _ => is_prepared = is_true(value),
        }
    }
    if !is_bare && worktree.is_none() {
        if is_prepared {
            return Ok(());
        }
        return change(root, &["config", "extensions.worktreeConfig", "true"]).map_err(refused);
    }
    // Without the extension git ignores this file, so it can be written first.
    let of_main = common.join("config.worktree");
    let set = |key: &str, value: &OsStr| {
        let arguments = ["config", "--file"].map(OsStr::new);
        let arguments =
            [&arguments[..], &[of_main.as_os_str(), "--replace-all".as_ref(), key.as_ref(), value]];
        change(root, &arguments.concat()).map_err(refused)
    };
    if is_bare {
        set("core.bare", "true".as_ref())?;
    }
    if let Some(path) = worktree {
        set("core.worktree", path)?;
    }
    replace_config(root, &file).map_err(refused)
}

fn is_true(value: Option<&[u8]>) -> bool {
    let Some(value) = value else { return true };
    [&b"true"[..], b"yes", b"on", b"1"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Enables the extension and removes `core.bare` and `core.worktree` from the file, in one step: with the extension,
/// linked work trees would use these two.
fn replace_config(root: &Path, file: &Path) -> Result<(), ChangeError> {
    let said = |error: std::io::Error| ChangeError::Refused(error.to_string());
    let lock = file.with_extension("lock");
    // The lock file that git itself uses for its configuration.
    let new = patiently(|| match own::open(&lock, OpenOptions::new().write(true).create_new(true)) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
        file => Some(file),
    });
    let held = || ChangeError::Locked(lock.clone());
    let mut new = new.ok_or_else(held)?.map_err(said)?;
    let content = without_main_only(root, file).and_then(|content| new.write_all(&content).map_err(said));
    let replaced = content.and_then(|()| {
        let permissions = fs::metadata(file).map_err(said)?.permissions();
        new.set_permissions(permissions).map_err(said)?;
        new.sync_all().map_err(said)?;
        fs::rename(&lock, file).map_err(said)
    });
    if replaced.is_err() {
        // Our own lock file is not needed any more.
        let _ = fs::remove_file(&lock);
    }
    replaced
}

/// The new content of the configuration file.
fn without_main_only(root: &Path, file: &Path) -> Result<Vec<u8>, ChangeError> {
    let said = |error: std::io::Error| ChangeError::Refused(error.to_string());
    let folder = tempfile::tempdir().map_err(said)?;
    let copy = folder.path().join("config");
    let old = theirs::read(file, theirs::MAX_TEXT).map_err(said)?;
    atomic::write_own(&copy, &old, Durability::Atomic)
        .map_err(|error| ChangeError::Refused(error.to_string()))?;
    let edit = |arguments: &[&str]| {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        change(root, &[&["config".as_ref(), "--file".as_ref(), copy.as_os_str()], &arguments[..]].concat())
    };
    for key in ["core.bare", "core.worktree"] {
        // git fails if there is none; the check below decides.
        let _ = edit(&["--unset-all", key]);
        match edit(&["--get", key]) {
            Err(ChangeError::Refused(_)) => {}
            Err(error) => return Err(error),
            Ok(()) => return Err(ChangeError::Refused(format!("{key} cannot be taken out of it"))),
        }
    }
    edit(&["extensions.worktreeConfig", "true"])?;
    own::read(&copy, theirs::MAX_TEXT).map_err(said)
}

/// Gives the work tree `tree` this identity, after [`prepare`]. Only differences are written. Other existing values
/// stay: they may be the user's.
pub fn configure(tree: &Path, identity: &CommitIdentity) -> Result<(), GitError> {
    let text = |value: &Option<String>| value.as_ref().map(OsString::from);
    let wanted = [
        ("user.name", text(&identity.name)),
        ("user.email", text(&identity.email)),
        ("user.signingkey", text(&identity.signing_key)),
        ("commit.gpgsign", identity.signing_key.as_ref().map(|_| "true".into())),
        ("core.sshcommand", identity.ssh_command()),
    ];
    let present = present(tree)?;
    let _alone = alone();
    for (key, value) in wanted.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
        if present.get(key.as_bytes()).is_some_and(|old| old == value.as_bytes()) {
            continue;
        }
        let arguments = ["config", "--worktree", "--replace-all", *key].map(OsStr::new);
        change(tree, &[&arguments[..], &[value]].concat()).map_err(|error| error.of("config", tree))?;
    }
    Ok(())
}

/// The configuration of this work tree alone; the last value of a name wins, as in git.
fn present(tree: &Path) -> Result<HashMap<Vec<u8>, Vec<u8>>, GitError> {
    // A new tree has no such file, and needs no git process.
    let folder = head_file::git_dir(tree).ok().flatten();
    if folder.is_some_and(|folder| !folder.join("config.worktree").exists()) {
        return Ok(HashMap::new());
    }
    let output = run(tree, &["config", "--worktree", "-z", "--list"], LIMIT)?;
    let entries = output.split(|&byte| byte == 0).filter_map(|entry| {
        let at = entry.iter().position(|&byte| byte == b'\n')?;
        Some((entry[..at].to_vec(), entry[at + 1..].to_vec()))
    });
    Ok(entries.collect())
}

/// Makes a trial signature with the identity's key. The repository does not change.
pub fn try_signature(root: &Path, identity: &CommitIdentity) -> Result<(), GitError> {
    let Some(key) = &identity.signing_key else { return Ok(()) };
    let way_out = "look for it with 'gpg --list-secret-keys', unlock it by signing something yourself, or fix \
                   signing_key under [git.worktree]";
    sign(root, &["-c", &format!("user.signingKey={key}")], agent_env(identity)).map_err(|error| {
        GitError::in_the_way(format!("commits cannot be signed ({error})"), format!("key {key}"), way_out)
    })
}

/// Makes a trial signature with the user's own configuration. The repository does not change.
pub fn try_own_signature(root: &Path) -> Result<(), GitError> {
    sign(root, &[], Vec::new()).map_err(|error| {
        GitError::in_the_way(
            format!("commits cannot be signed ({error})"),
            root.display(),
            "unlock the key by signing something yourself, or fix user.signingKey",
        )
    })
}

/// Whether the user's own commits are signed.
#[must_use]
pub fn signs(root: &Path) -> bool {
    let signs = run(root, &["config", "--type=bool", "--get", "commit.gpgSign"], LIMIT);
    signs.is_ok_and(|answer| answer.trim_ascii() == b"true")
}

/// The configured commands with which git signs commits and finds the key: programs and arguments.
#[must_use]
pub fn signing_programs(root: &Path) -> Vec<String> {
    const KEYS: &str = r"^gpg\.(.+\.)?(program|defaultkeycommand)$";
    let said = run(root, &["config", "-z", "--get-regexp", KEYS], LIMIT).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let values = said.split('\0').filter_map(|entry| entry.split_once('\n')).map(|(_, value)| value);
    let words = values.flat_map(|value| shlex::split(value).into_iter().flatten().chain([value.to_owned()]));
    words.map(|word| expanded(word.into()).to_string_lossy().into_owned()).collect()
}

/// Signs an empty commit that is not kept.
fn sign(root: &Path, options: &[&str], mut env: Vec<(OsString, OsString)>) -> Result<(), ChangeError> {
    let objects = tempfile::tempdir().map_err(|error| ChangeError::Refused(error.to_string()))?;
    env.push(("GIT_OBJECT_DIRECTORY".into(), objects.path().into()));
    // No program may ask for a passphrase on our terminal: neither gpg's agent nor ssh-keygen.
    let silent = [("GPG_TTY", "/dev/null"), ("SSH_ASKPASS", "false"), ("SSH_ASKPASS_REQUIRE", "force")];
    env.extend(silent.map(|(name, value)| (name.into(), value.into())));
    let how = ChangeOptions { env, limit: SIGNATURE_LIMIT, ..ChangeOptions::default() };
    let tree = change_with(root, &["mktree"], &how)?;
    let tree = String::from_utf8_lossy(&tree).trim().to_owned();
    let commit = ["commit-tree", "-S", "-m", "A trial signature.", &tree];
    change_with(root, &[options, &commit[..]].concat(), &how).map(drop)
}

/// Variables for programs that commit and push in a work tree of this identity: variables of our own environment
/// would override the work tree's configuration.
#[must_use]
pub fn agent_env(identity: &CommitIdentity) -> Vec<(OsString, OsString)> {
    let mut env = Vec::new();
    for (what, value) in [("NAME", &identity.name), ("EMAIL", &identity.email)] {
        for who in ["AUTHOR", "COMMITTER"] {
            env.extend(value.as_ref().map(|value| (format!("GIT_{who}_{what}").into(), value.into())));
        }
    }
    env.extend(identity.ssh_command().map(|command| ("GIT_SSH_COMMAND".into(), command)));
    env
}

/// Author and committer that git uses in `tree` for a program with these variables on top of our environment, as
/// variables: for programs that do not see the user's configuration. Variables that are already set, and values that
/// git does not know, are left out.
#[must_use]
pub fn in_force(tree: &Path, env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let is_set = |name: &OsString| env.iter().any(|(set, _)| set == name) || std::env::var_os(name).is_some();
    let variables = ["AUTHOR", "COMMITTER"].into_iter().flat_map(|who| {
        let told = run_with(tree, &["var", &format!("GIT_{who}_IDENT")], env, LIMIT).ok();
        let (name, email) = told.as_deref().and_then(name_and_email).unzip();
        let named = |what: &str, value: Option<&[u8]>| {
            value.map(|value| (format!("GIT_{who}_{what}").into(), OsStr::from_bytes(value).to_owned()))
        };
        [named("NAME", name), named("EMAIL", email)]
    });
    variables.flatten().filter(|(name, _)| !is_set(name)).collect()
}

/// The committer in `tree` for a program with these variables on top of our environment, as `NAME <EMAIL>`.
///
/// # Errors
/// If git does not know.
pub fn author(tree: &Path, env: &[(OsString, OsString)]) -> Result<String, GitError> {
    let ident = run_with(tree, &["var", "GIT_COMMITTER_IDENT"], env, LIMIT)?;
    let (name, email) = name_and_email(&ident).unwrap_or_default();
    Ok(format!("{} <{}>", String::from_utf8_lossy(name), String::from_utf8_lossy(email)))
}

/// The name and the email of `NAME <EMAIL> TIME ZONE`.
fn name_and_email(ident: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = ident.iter().rposition(|&byte| byte == b'>')?;
    let start = ident[..end].iter().rposition(|&byte| byte == b'<')?;
    Some((ident[..start].trim_ascii_end(), &ident[start + 1..end]))
}

#[cfg(test)]
mod tests;
