//! The walls around what a loop starts, by the settings.

use std::ffi::OsString;
use std::sync::Arc;

use crate::presets::Preset;
use crate::process::walls::Enclosure;
use crate::project::Project;
use crate::sandbox::Grounds;
use crate::settings::Settings;
use crate::settings::sandbox::Mode;

/// The walls around an agent in `project` and what proves its work, which get the variables `given`; and why there are none, where
/// that may be.
///
/// # Errors
/// If they are wanted and cannot be built.
pub(crate) fn walls(
    settings: &Settings,
    project: &Project,
    preset: &'static Preset,
    given: &[(OsString, OsString)],
) -> anyhow::Result<(Option<Arc<Enclosure>>, Option<String>)> {
    let Settings { sandbox, redact, .. } = settings;
    match (Grounds { settings: sandbox, redact, project, preset, given }.enclosure()) {
        Ok(None) => Ok((None, None)),
        Ok(Some((enclosure, partly))) => {
            let partly = partly.map(|partly| format!("the walls around agents do not hold whole: {partly}"));
            Ok((Some(Arc::new(enclosure)), partly))
        }
        Err(why) if sandbox.mode == Mode::Try => {
            Ok((None, Some(format!("agents work without walls: {why}"))))
        }
        Err(why) => Err(why.into()),
    }
}
