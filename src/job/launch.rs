//! How what a loop starts is started.

use std::ffi::OsString;

use super::agent_choice::ladder;
use crate::process::launch::Launch;
use crate::project::Project;
use crate::settings::Settings;

/// How something runs in `project`, as the settings have it; what, its user adds.
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
