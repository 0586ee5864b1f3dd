//! Keys that the user's configuration of ssh names, wherever they are.

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
            for path in value.split_whitespace().map(|path| resolved(path.trim_matches('"'), home)) {
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
    match path.strip_prefix("~/").or_else(|| path.strip_prefix("%d/")) {
        Some(rest) => home.join(rest),
        None => home.join(".ssh").join(path),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
