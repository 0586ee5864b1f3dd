//! The other repository: where branches are pushed to.

use std::path::Path;

use super::{LIMIT, run};

/// The remote that branches are pushed to: `remote.pushDefault`, else `origin`, else the only one.
#[must_use]
pub fn remote(root: &Path) -> Option<String> {
    let pattern = r"^remote\.(pushdefault|.*\.(push)?url)$";
    let output = run(root, &["config", "-z", "--get-regexp", pattern], LIMIT).ok()?;
    let text = String::from_utf8(output).ok()?;
    let (mut default, mut names) = (None, Vec::new());
    for (key, value) in text.split('\0').filter_map(|entry| entry.split_once('\n')) {
        let Some(key) = key.strip_prefix("remote.") else { continue };
        match key.rsplit_once('.') {
            Some((name, _)) => names.push(name),
            // The last one counts, as everywhere in git's configuration.
            None => default = Some(value).filter(|value| !value.is_empty()),
        }
    }
    names.sort_unstable();
    names.dedup();
    let only = || if let [name] = names[..] { Some(name) } else { None };
    default.or_else(|| names.contains(&"origin").then_some("origin")).or_else(only).map(str::to_owned)
}
