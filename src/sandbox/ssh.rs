//! Keys that the user's configuration of ssh names, wherever they are.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::theirs;

/// The most files that are read of it.
const MOST: usize = 50;

/// The keys, certificates and further files that `~/.ssh/config` names.
pub(super) fn named_in_config(home: &Path) -> Vec<PathBuf> {
    let mut open = vec![home.join(".ssh/config")];
    let mut found = Vec::new();
    let mut read = 0;
    while let Some(config) = open.pop().filter(|_| read < MOST) {
        read += 1;
        for (word, value) in theirs::text(&config).unwrap_or_default().lines().filter_map(setting) {
            let words = shlex::split(value).unwrap_or_default();
            for path in words.iter().flat_map(|path| matching(resolved(path, home))) {
                match word.as_str() {
                    "include" => open.push(path.clone()),
                    "identityfile" | "certificatefile" => {}
                    _ => continue,
                }
                found.push(path);
            }
        }
    }
    found
}

/// A word of the configuration in small letters, and its value.
fn setting(line: &str) -> Option<(String, &str)> {
    let (word, value) = line.trim().split_once(|c: char| c.is_whitespace() || c == '=')?;
    Some((word.to_ascii_lowercase(), value.trim_start_matches(|c: char| c.is_whitespace() || c == '=')))
}

fn resolved(path: &str, home: &Path) -> PathBuf {
    match ["~/", "%d/", "${HOME}/"].iter().find_map(|of_home| path.strip_prefix(of_home)) {
        Some(rest) => home.join(rest),
        None => home.join(".ssh").join(path),
    }
}

/// The files that are meant where the last part of a path has a `*`.
fn matching(path: PathBuf) -> Vec<PathBuf> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (Some((begin, end)), Some(folder)) = (name.split_once('*'), path.parent()) else { return vec![path] };
    // More stars are more files, and too many are no harm.
    let end = end.rsplit('*').next().unwrap_or_default();
    let is_meant = |name: &str| name.starts_with(begin) && name.ends_with(end);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| is_meant(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_the_config_and_in_what_it_includes() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".ssh")).unwrap();
        let write = |name: &str, text: &str| fs::write(home.path().join(".ssh").join(name), text).unwrap();
        write("config", "Host a\n  IdentityFile ~/keys/a\n  User x\nInclude more\nIdentityFile=\"/k/b\"\n");
        write("more", "  identityfile %d/c\nInclude more\n# IdentityFile /no\n");
        let mut found = named_in_config(home.path());
        found.sort();
        found.dedup();
        let mut expected = vec![
            home.path().join("keys/a"),
            home.path().join(".ssh/more"),
            home.path().join("c"),
            "/k/b".into(),
        ];
        expected.sort();
        assert_eq!(found, expected);
    }
}
