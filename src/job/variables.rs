//! The variables of a loop, for prompts and agents.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::workspace::Call;
use crate::agent::TOTAL;
use crate::engine::policy::Limits;
use crate::project::Project;
use crate::source::prompt_file::MAX_ITERATIONS;

/// The variables of prompts: everything that the config assigns, and those of the loop.
#[must_use]
pub(crate) fn prompt_names(call: Call<'_>, limits: &Limits, project: &Project) -> BTreeMap<String, String> {
    let settings = &call.workspace.settings;
    let mut names = settings.variables.clone();
    let limit = limits.max_iterations.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    names.extend([
        ("MODE".to_owned(), call.mode().to_owned()),
        ("SPECS_DIR".to_owned(), settings.specs_dir.clone()),
        ("RALPH_HOME".to_owned(), project.ralph_home().to_string_lossy().into_owned()),
        (MAX_ITERATIONS.to_owned(), limit),
    ]);
    names
}

/// The variables that agents get besides our own environment.
#[must_use]
pub(crate) fn agent_env(call: Call<'_>, limits: &Limits, project: &Project) -> Vec<(OsString, OsString)> {
    let settings = &call.workspace.settings;
    let ours = [
        ("RALPH_MODE".into(), call.mode().into()),
        ("RALPH_HOME".into(), project.ralph_home().into_os_string()),
        ("RALPH_SPECS_DIR".into(), settings.specs_dir.clone().into()),
        (TOTAL.into(), limits.max_iterations.unwrap_or_default().to_string().into()),
    ];
    settings.exported().into_iter().chain(ours).collect()
}
