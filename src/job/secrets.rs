//! Finds the secrets once, when a loop is started: in our environment, in the assignments of the shell config, and in the `.env`
//! files that the settings name.

mod env_file;

use std::collections::BTreeMap;

use crate::files::theirs;
use crate::project::Project;
use crate::settings::Settings;
use crate::text::count;
use crate::text::redact::Redactor;
use crate::text::secret::{is_listed, secrets};

/// The redactor for all that is kept and shown, which also knows the secrets among the variables that an agent is `given`.
/// With warnings for the user.
#[must_use]
pub(crate) fn redactor(
    settings: &Settings,
    given: &BTreeMap<String, String>,
    project: &Project,
) -> (Redactor, Vec<String>) {
    if !settings.redact.enabled {
        return (Redactor::default(), Vec::new());
    }
    let mut warnings = Vec::new();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let others = settings.variables.iter().chain(given);
    for (name, value) in environment.chain(others.map(|(name, value)| (name.clone(), value.clone()))) {
        all.entry(name).or_default().push(value);
    }
    for file in &settings.redact.env_files {
        if let Err(why) = read_env_file(project, file, &mut all) {
            warnings.push(format!("redact.env_files: {file} {why}; what cannot be read is not redacted"));
        }
    }
    let known = all.iter().flat_map(|(name, values)| {
        let is_wanted = is_listed(name, &settings.redact.names) || settings.is_of_account(name);
        let parts = values.iter().flat_map(move |value| secrets(name, value, is_wanted));
        parts.map(move |value| (name.as_str(), value))
    });
    let known: Vec<_> = known.collect();
    (Redactor::new(known.iter().map(|(name, value)| (*name, &**value))), warnings)
}

fn read_env_file(
    project: &Project,
    file: &str,
    all: &mut BTreeMap<String, Vec<String>>,
) -> Result<(), String> {
    let path = project.root().join(file);
    let text = theirs::read(&path, theirs::MAX_TEXT).map_err(|error| format!("cannot be read: {error}"))?;
    let (found, unread) = env_file::read(&String::from_utf8_lossy(&text));
    for (name, value) in found {
        all.entry(name).or_default().push(value);
    }
    if unread == 0 { Ok(()) } else { Err(format!("has {} that cannot be read", count::of(unread, "line"))) }
}
