//! The merged configuration, every value with its origin.
//!
//! Flags win over `RALPH_*` variables of the environment, then come the shell-style `config`, `ralph.toml` of the
//! project, the user's own `ralph.toml`, and the defaults of the [`table`].

mod error;
mod example;
mod loading;
mod near_miss;
pub mod notify;
mod origin;
mod read;
mod resolved;
pub mod setting;
pub mod shell;
pub mod table;
pub(crate) mod toml;
mod types;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::SettingsError;
pub use example::example;
pub use loading::{OfProject, Sources, user_toml};
pub use near_miss::NearMiss;
pub use origin::Origin;
pub use resolved::Resolved;
pub use setting::Verb;
pub use table::GitSettings;

use crate::text::redact::Redactor;
use loading::Loaded;
use setting::ValueKind;
use table::{HookSettings, NotifySettings, RedactSettings, Values};
use types::SettingType as _;

/// Everything the user decided, or did not. It has the fields of [`Values`], too.
#[derive(Debug, Clone)]
pub struct Settings {
    values: Values,
    /// What happens to branches and their work trees.
    pub git: GitSettings,
    /// Which secrets are taken out of what is kept and shown.
    pub redact: RedactSettings,
    /// What takes them out; whoever opens the project for a loop knows.
    pub secrets: Redactor,
    /// Who is told of what.
    pub notify: NotifySettings,
    /// Commands of the user's beside a loop.
    pub hooks: HookSettings,
    /// The files that they come from, whether these are there or not.
    pub files: Vec<PathBuf>,
    /// Every variable the shell config assigns, with the value it has there.
    pub variables: BTreeMap<String, String>,
    /// Those of the variables that the agent's environment gets.
    pub exports: BTreeMap<String, String>,
    /// What the user should know, one line each.
    pub warnings: Vec<String>,
    /// Names in the shell config that settings were probably meant by. Whoever knows the prompts knows whether they are.
    pub near_misses: Vec<NearMiss>,
    /// What the project itself says about settings that need trust, whether it is trusted or not.
    pub of_project: Vec<OfProject>,
    rows: Vec<Resolved>,
}

impl Deref for Settings {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.values
    }
}

impl Settings {
    /// Reads all sources and merges them. The first problem found ends it.
    pub fn load(sources: &Sources<'_>) -> Result<Self, SettingsError> {
        let Loaded { rows, assignments, older, without_effect, of_project, ignored } =
            loading::load(sources)?;
        let mut values = Values::read(&rows)?;
        values.stop_on_error = stops_on_error(&values, &rows);
        let mut notify = NotifySettings::read(&rows)?;
        let missing = notify.take_secret(sources.env);
        let near_misses = match &sources.shell_config {
            Some(path) => near_miss::near_misses(path, &assignments),
            None => Vec::new(),
        };
        let exported = assignments.iter().filter(|assignment| assignment.exported);
        let pair = |assignment: &shell::Assignment| (assignment.name.clone(), assignment.value.clone());
        Ok(Self {
            values,
            git: GitSettings::read(&rows)?,
            redact: RedactSettings::read(&rows)?,
            hooks: HookSettings::read(&rows)?,
            secrets: Redactor::default(),
            notify,
            exports: exported.map(pair).collect(),
            variables: assignments.iter().map(pair).collect(),
            warnings: older
                .as_deref()
                .map(of_older)
                .into_iter()
                .chain(warning(&without_effect))
                .chain(warning_of_trust(&ignored))
                .chain(missing)
                .collect(),
            near_misses,
            files: sources.files(),
            of_project,
            rows,
        })
    }

    /// How much a setting allows that is a limit: in US dollars, in seconds, or a number; `None` for no limit.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "no loop counts to 2^52")]
    pub fn amount(&self, key: &str) -> Option<f64> {
        let row = self.row(key).filter(|row| !row.value.is_empty())?;
        let amount = match row.setting.kind {
            ValueKind::Money => f64::read(row),
            ValueKind::Duration(_) => Duration::read(row).map(|time| time.as_secs_f64()),
            _ => u64::read(row).map(|count| count as f64),
        };
        // What cannot be read has ended the load.
        amount.ok()
    }

    /// The setting of this key, with its value and origin.
    #[must_use]
    pub fn row(&self, key: &str) -> Option<&Resolved> {
        self.rows.iter().find(|row| row.setting.key == key)
    }

    /// Every setting with its value and origin, in the table's order.
    pub fn rows(&self) -> impl Iterator<Item = &Resolved> {
        self.rows.iter()
    }
}

/// Whether an iteration that failed for good ends the loop. One that counts failed iterations would never see a second
/// one otherwise, so there only the user's own word does.
fn stops_on_error(values: &Values, rows: &[Resolved]) -> bool {
    let is_default = resolved::row(rows, "loop.stop_on_error").origin == Origin::Default;
    values.stop_on_error && !(values.max_consecutive_errors > 0 && is_default)
}

/// One line about a file that an older program has left.
fn of_older(path: &Path) -> String {
    format!("{}: settings of an older program, read as they are: move them into ralph.toml", path.display())
}

/// One line about the keys that change nothing yet.
fn warning(without_effect: &[(PathBuf, &'static str)]) -> Option<String> {
    let name = |(path, key): &(PathBuf, &str)| format!("{key} ({})", path.display());
    let names: Vec<String> = without_effect.iter().map(name).collect();
    (!names.is_empty()).then(|| format!("these settings have no effect yet: {}", names.join(", ")))
}

/// One line about what is ignored because nobody trusts the project.
fn warning_of_trust(ignored: &[OfProject]) -> Option<String> {
    let names: Vec<&str> = ignored.iter().map(|one| one.setting.key).collect();
    (!names.is_empty()).then(|| {
        format!(
            "this project wants to run programs or to send data away ({}); that is ignored until you trust it: \
             'ralph trust' shows what it is",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
