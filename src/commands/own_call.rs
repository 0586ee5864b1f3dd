//! How an agent's shell calls our executable: by a path, because some agents give their shells another `PATH`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context as _;

use super::output::warn;
use crate::files::own_copy;
use crate::platform::calls::own_executable;
use crate::project::Project;
use crate::text::line::shell_words;

/// The call with the `folder` of the graph, if that is not the default, because some agents strip the environment.
pub(super) fn own_call(project: &Project, folder: Option<&Path>) -> anyhow::Result<String> {
    match folder {
        Some(folder) => with_words(project, &["--ralph-dir".into(), folder.into()]),
        None => with_words(project, &[]),
    }
}

/// The call with these words.
pub(super) fn with_words<const N: usize>(project: &Project, words: &[OsString; N]) -> anyhow::Result<String> {
    /// All agents of a process call it by the path that was found first.
    static CALLED: OnceLock<PathBuf> = OnceLock::new();
    let exe = std::env::current_exe().context("cannot tell where our own executable is")?;
    let called = CALLED.get_or_init(|| kept(project, exe));
    Ok(shell_words(&[[called.into()].as_slice(), words].concat()))
}

/// A path that leads to this ralph as long as it runs, or its own where there can be none.
fn kept(project: &Project, exe: PathBuf) -> PathBuf {
    let Some(folder) = project.programs() else { return exe };
    own_copy::keep(&folder, own_executable(), &exe).unwrap_or_else(|error| {
        warn(&format!(
            "agents call {} itself, because it cannot be kept in {}: {error}; do not replace or remove it while this runs",
            exe.display(),
            folder.display()
        ));
        exe
    })
}
