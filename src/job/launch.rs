//! How a loop starts programs.

use std::ffi::OsString;

use super::agent_choice::ladder;
use crate::process::launch::Launch;
use crate::project::Project;
use crate::settings::Settings;

/// A launch in `project` by these settings; the caller adds the program.
#[must_use]
pub(crate) fn launch(
    project: &Project,
    settings: &Settings,
    env: Vec<(OsString, OsString)>,
    mark: &str,
) -> Launch {
    let (cwd, mark) = (project.root().to_owned(), mark.to_owned());
    Launch { cwd, env, mark, ladder: ladder(settings), ..Launch::default() }
}
