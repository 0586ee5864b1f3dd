//! What the validation command sees in the proof tree: ralph's own environment, but for what an agent or the user's
//! account could add to the result. Pure.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// A variable and its value.
pub(super) type Variable = (OsString, OsString);

/// Where toolchains and their downloads lie in the user's home directory, by the variable that says so. Without them,
/// a command in another home directory could not start at all, or would download everything again.
const TOOLS: [(&str, &str); 16] = [
    ("ASDF_DATA_DIR", ".asdf"),
    ("CARGO_HOME", ".cargo"),
    ("GOPATH", "go"),
    ("GRADLE_USER_HOME", ".gradle"),
    ("NUGET_PACKAGES", ".nuget/packages"),
    ("NVM_DIR", ".nvm"),
    ("PIP_CACHE_DIR", ".cache/pip"),
    ("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright"),
    ("PUB_CACHE", ".pub-cache"),
    ("PYENV_ROOT", ".pyenv"),
    ("RBENV_ROOT", ".rbenv"),
    ("RUSTUP_HOME", ".rustup"),
    ("SDKMAN_DIR", ".sdkman"),
    ("UV_CACHE_DIR", ".cache/uv"),
    ("VOLTA_HOME", ".volta"),
    ("npm_config_cache", ".npm"),
];
/// Folders of the user's that follow the home directory when these are not set.
const OF_HOME: [&str; 4] = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];

/// Keeps Python from writing bytecode.
const NO_BYTECODE: &str = "PYTHONDONTWRITEBYTECODE";

/// The folders of a proof.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folders<'a> {
    /// Where agents work.
    pub(super) root: &'a Path,
    /// Where the claimed commit lies.
    pub(super) tree: &'a Path,
    /// The home directory and the folder for temporary files there; `None`: the user's.
    pub(super) own: Option<[&'a Path; 2]>,
}

/// The environment of a command in the proof tree, relative to ralph's own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Environment {
    /// What is set.
    pub(super) set: Vec<Variable>,
    /// What is removed.
    pub(super) unset: Vec<String>,
}

/// The environment in these folders. `own` is ralph's, `more` what is set on top of it where agents work, and
/// `is_there` says whether a folder exists.
pub(super) fn environment(
    own: &[Variable],
    more: &[Variable],
    folders: Folders<'_>,
    is_there: impl Fn(&Path) -> bool,
) -> Environment {
    let is_left_out = |name: &OsStr| is_gits(name) || folders.own.is_some() && is_of_home(name);
    let mut set: Vec<Variable> = more.iter().filter(|(name, _)| !is_left_out(name)).cloned().collect();
    let moved = own.iter().chain(more).filter(|(name, _)| !is_left_out(name) && !is_ralphs(name));
    set.extend(moved.filter_map(|(name, value)| Some((name.clone(), in_tree(value, folders)?))));
    // Python takes bytecode for that of another source if both have one length and were written in one second.
    set.push((NO_BYTECODE.into(), "1".into()));
    if let Some([home, tmp]) = folders.own {
        set.extend(tools(own, more, is_there));
        set.push(("HOME".into(), home.into()));
        set.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.into(), tmp.into())));
    }
    let unset = own.iter().filter_map(|(name, _)| name.to_str().filter(|_| is_left_out(name)));
    Environment { set, unset: unset.filter(|name| is_word(name)).map(str::to_owned).collect() }
}

/// The variables that lead to the user's toolchains from another home directory.
fn tools(own: &[Variable], more: &[Variable], is_there: impl Fn(&Path) -> bool) -> Vec<Variable> {
    let value =
        |name: &str| more.iter().rev().chain(own).find(|(known, _)| known == name).map(|(_, value)| value);
    let Some(home) = value("HOME").map(Path::new).filter(|home| home.is_absolute()) else {
        return Vec::new();
    };
    let missing = TOOLS.iter().filter(|(name, _)| value(name).is_none_or(|value| value.is_empty()));
    let paths = missing.map(|(name, folder)| (name, home.join(folder)));
    paths.filter(|(_, path)| is_there(path)).map(|(name, path)| (name.into(), path.into())).collect()
}

/// Words for `sh -c` that remove these variables and then run a command line of the user's.
pub(super) fn without(unset: &[String], command: &OsStr) -> [OsString; 4] {
    let unset = if unset.is_empty() { String::new() } else { format!("unset {}; ", unset.join(" ")) };
    ["-c".into(), format!("{unset}exec /bin/sh -c \"$1\"").into(), "sh".into(), command.to_owned()]
}

/// Whether it may lead git somewhere else.
fn is_gits(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"GIT_")
}

fn is_of_home(name: &OsStr) -> bool {
    OF_HOME.iter().any(|other| name == *other)
}

fn is_ralphs(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"RALPH_") || ["HOME", "PWD", "OLDPWD"].iter().any(|other| name == *other)
}

/// Whether a shell can unset it.
fn is_word(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A list of paths in which those into the agents' files lead into the tree; `None` if there is none. An agent could
/// put programs there.
fn in_tree(value: &OsStr, Folders { root, tree, .. }: Folders<'_>) -> Option<OsString> {
    let parts: Vec<OsString> = value
        .as_bytes()
        .split(|byte| *byte == b':')
        .map(|part| match Path::new(OsStr::from_bytes(part)).strip_prefix(root) {
            Ok(rest) if rest.as_os_str().is_empty() => tree.into(),
            Ok(rest) => tree.join(rest).into(),
            Err(_) => OsString::from_vec(part.to_owned()),
        })
        .collect();
    let moved = parts.join(OsStr::new(":"));
    (moved != value).then_some(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<Variable> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn folders() -> Folders<'static> {
        let path = Path::new;
        Folders { root: path("/p"), tree: path("/p/.ralph/t"), own: Some([path("/h"), path("/t")]) }
    }

    #[test]
    fn it_has_a_home_of_its_own_and_tools_of_the_users() {
        let own = variables(&[("HOME", "/home/u"), ("RUSTUP_HOME", "/opt/rustup"), ("XDG_CACHE_HOME", "/c")]);
        let found =
            environment(&own, &[], folders(), |path| path.ends_with(".cargo") || path.ends_with(".rustup"));
        let tmp = ["TMPDIR", "TMP", "TEMP"].map(|name| (name, "/t"));
        let bytecode = (NO_BYTECODE, "1");
        let expected = [&[bytecode, ("CARGO_HOME", "/home/u/.cargo"), ("HOME", "/h")][..], &tmp].concat();
        assert_eq!(found.set, variables(&expected));
        assert_eq!(found.unset, ["XDG_CACHE_HOME"]);
        let found = environment(&own, &[], Folders { own: None, ..folders() }, |_| true);
        assert_eq!(found, Environment { set: variables(&[bytecode]), unset: Vec::new() });
    }

    #[test]
    fn nothing_leads_git_elsewhere_or_into_the_files_of_agents() {
        let own = variables(&[
            ("PATH", "/p/bin:/usr/bin:/pp"),
            ("GIT_DIR", "/x"),
            ("GIT_$", "1"),
            ("RALPH_DIR", "/p/.ralph"),
        ]);
        let more = variables(&[("GIT_AUTHOR_NAME", "a"), ("A", "1"), ("RALPH_BRANCH", "b")]);
        let found = environment(&own, &more, folders(), |_| false);
        assert_eq!(found.unset, ["GIT_DIR"]);
        let rest: Vec<_> =
            found.set.into_iter().filter(|(_, value)| value != "/h" && value != "/t").collect();
        assert_eq!(
            rest,
            variables(&[
                ("A", "1"),
                ("RALPH_BRANCH", "b"),
                ("PATH", "/p/.ralph/t/bin:/usr/bin:/pp"),
                (NO_BYTECODE, "1")
            ])
        );
        assert_eq!(in_tree("/p".as_ref(), folders()), Some("/p/.ralph/t".into()));
    }

    #[test]
    fn the_users_command_line_stays_one_word() {
        let words = without(&["A".to_owned(), "B".to_owned()], "echo \"$HOME\"".as_ref());
        assert_eq!(words[1], "unset A B; exec /bin/sh -c \"$1\"");
        assert_eq!(words[3], "echo \"$HOME\"");
        assert_eq!(without(&[], "a".as_ref())[1], "exec /bin/sh -c \"$1\"");
    }
}
