//! How a loop starts programs.

use std::ffi::OsString;

use super::agent_choice::ladder;
use crate::presets::Preset;
use crate::process::launch::Launch;
use crate::project::Project;
use crate::sandbox::Grounds;
use crate::settings::Settings;
use crate::settings::sandbox::Mode;

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

/// Such a launch for an agent, or for what proves its work, behind the walls of the settings; and why these are not whole, or not there,
/// where that may be.
///
/// # Errors
/// If they are wanted and cannot be built.
pub(crate) fn launch_behind_walls(
    (project, settings): (&Project, &Settings),
    preset: &'static Preset,
    env: Vec<(OsString, OsString)>,
    mark: &str,
) -> anyhow::Result<(Launch, Option<String>)> {
    let Settings { sandbox, redact, .. } = settings;
    let logins = settings.folders_of_accounts();
    let grounds = Grounds { settings: sandbox, redact, project, preset, given: &env, logins: &logins };
    let (walls, warning) = match grounds.wanted() {
        Ok(None) => (None, None),
        Ok(Some((walls, partly))) => {
            let partly = partly.map(|partly| format!("the walls around agents do not hold whole: {partly}"));
            (Some(walls), partly)
        }
        Err(why) if sandbox.mode == Mode::Try => (None, Some(format!("agents work without walls: {why}"))),
        Err(why) => return Err(why.into()),
    };
    let launch = launch(project, settings, env, mark);
    Ok((walls.map_or(launch.clone(), |walls| walls.around(launch)), warning))
}
