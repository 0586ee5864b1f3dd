//! Spec and plan of a feature: files of users, in a folder of its name beside the graph.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::files::atomic;
use crate::files::{FileError, if_there, theirs};

/// A spec or a plan.
pub(super) struct FeatureFile {
    /// Its path below the folder of the graph.
    pub(super) name: String,
    path: PathBuf,
    /// The existing contents.
    old: Option<Vec<u8>>,
    /// The new contents.
    new: Option<String>,
}

impl FeatureFile {
    /// The `kind` of a feature: what was `given`, else the existing file. `None` if there is neither. A text that differs from the
    /// existing file is refused, unless it may `replace` it.
    pub(super) fn choose(
        folder: &Path,
        feature: &str,
        kind: &str,
        given: Option<&Path>,
        replace: bool,
    ) -> anyhow::Result<Option<Self>> {
        let name = format!("features/{feature}/{kind}.md");
        let path = folder.join(&name);
        let old = if_there(theirs::read(&path, theirs::MAX_TEXT))
            .with_context(|| format!("cannot read the {kind} {}", path.display()))?;
        let Some(given) = given else {
            if old.is_some() {
                text(&path, kind)?;
            }
            return Ok(old.map(|old| Self { name, path, old: Some(old), new: None }));
        };
        // These folders come with a repository: a link in it must not choose where we write.
        theirs::refuse_links(&path).map_err(anyhow::Error::msg)?;
        let new = Some(text(given, kind)?).filter(|new| old.as_deref() != Some(new.as_bytes()));
        if new.is_some() && old.is_some() && !replace {
            let (given, path) = (given.display(), path.display());
            bail!("{path} is there already, and is not what {given} is: --force replaces it");
        }
        Ok(Some(Self { name, path, old, new }))
    }
}

fn text(path: &Path, kind: &str) -> anyhow::Result<String> {
    let text = theirs::text(path).with_context(|| format!("cannot read the {kind} {}", path.display()))?;
    if text.trim().is_empty() {
        bail!("the {kind} {} is empty: write it first", path.display());
    }
    Ok(text)
}

/// Writes the changed texts, and returns which these were.
pub(super) fn write<'a>(
    files: &[&'a FeatureFile],
    written: &mut Vec<&'a FeatureFile>,
) -> Result<(), FileError> {
    for file in files {
        let FeatureFile { path, new: Some(new), .. } = file else { continue };
        let folder = path.parent().unwrap_or(path);
        fs::create_dir_all(folder).map_err(FileError::at(folder))?;
        atomic::write_theirs(path, new.as_bytes())?;
        written.push(file);
    }
    Ok(())
}

/// Restores the earlier contents, as far as possible.
pub(super) fn take_back(written: &[&FeatureFile]) {
    for FeatureFile { path, old, .. } in written {
        if let Some(old) = old {
            let _ = atomic::write_theirs(path, old);
            continue;
        }
        let _ = fs::remove_file(path);
        // Folders that are not empty stay.
        for folder in path.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(folder);
        }
    }
}
