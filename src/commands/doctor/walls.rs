//! Whether walls can be built around agents here.

use super::Finding;
use crate::presets::Preset;
use crate::project::Project;
use crate::sandbox::Grounds;
use crate::settings::Settings;
use crate::settings::sandbox::Mode;

const CHECK: &str = "sandbox";

/// Builds them once.
pub(super) fn check(project: &Project, settings: &Settings, preset: &'static Preset) -> Finding {
    let Settings { sandbox, redact, .. } = settings;
    let grounds = Grounds { settings: sandbox, redact, project, preset, given: &[], logins: &[] };
    match (grounds.tried().map(|(_, partly)| partly), sandbox.mode) {
        (Ok(Some(partly)), Mode::Off) => {
            Finding::ok(CHECK, format!("off; walls of this machine would not hold whole: {partly}"))
        }
        (Ok(Some(partly)), _) => Finding::warn(CHECK, partly, "use a newer kernel, or a container besides"),
        (Ok(None), Mode::Off) => Finding::ok(CHECK, "off; this machine can build walls (--sandbox on)"),
        (Ok(None), mode) => Finding::ok(CHECK, format!("{}: 'ralph sandbox' shows what holds", mode.word())),
        (Err(why), Mode::On) => {
            Finding::fail(CHECK, why.0, "no loop starts before that; or set sandbox.mode to try")
        }
        (Err(why), Mode::Try) => Finding::warn(CHECK, why.0, "until then agents work without walls"),
        (Err(why), Mode::Off) => {
            Finding::ok(CHECK, format!("off; this machine cannot build walls: {}", why.0))
        }
    }
}
