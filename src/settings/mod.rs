//! The merged configuration, every value with its origin.
//!
//! Flags win over `RALPH_*` variables of the environment, then come the shell-style `config`, `ralph.toml` of the
//! project, the user's own `ralph.toml`, and the defaults of the [`table`].

mod account;
mod agents;
pub(crate) mod edit;
mod error;
mod example;
pub mod forge;
mod loading;
mod near_miss;
pub mod notify;
mod origin;
mod phase;
pub mod proof_level;
mod read;
mod resolved;
pub mod sandbox;
pub mod setting;
pub mod shell;
pub mod table;
pub(crate) mod toml;
mod types;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use account::Account;
pub use error::SettingsError;
pub use example::example;
pub use loading::{OfProject, Sources, user_toml};
pub use near_miss::NearMiss;
pub use origin::Origin;
pub use phase::{Phase, names_agents};
pub use resolved::Resolved;
pub use setting::Verb;
pub use table::{GitSettings, LandingSettings, RedactSettings, SandboxSettings, TrackerSettings};

use crate::text::redact::Redactor;
use loading::Loaded;
use setting::ValueKind;
use table::{HookSettings, NotifySettings, Values};
use types::SettingType as _;

/// The values of all settings. It also has the fields of [`Values`].
#[derive(Debug, Clone)]
pub struct Settings {
    values: Values,
    /// Settings of branches and their work trees.
    pub git: GitSettings,
    /// Settings of landing.
    pub landing: LandingSettings,
    /// Settings of redaction.
    pub redact: RedactSettings,
    /// Settings of the sandbox.
    pub sandbox: SandboxSettings,
    /// The redactor; set when the project is opened for a loop.
    pub secrets: Redactor,
    /// Settings of notices.
    pub notify: NotifySettings,
    /// Settings of issue trackers.
    pub tracker: TrackerSettings,
    /// The user's commands beside a loop.
    pub hooks: HookSettings,
    /// The files of the settings, existing or not.
    pub files: Vec<PathBuf>,
    /// Every variable that the shell config assigns, with its value.
    pub variables: BTreeMap<String, String>,
    /// The variables for the agent's environment.
    pub exports: BTreeMap<String, String>,
    /// Warnings, one line each.
    pub warnings: Vec<String>,
    /// Names in the shell config that are probably meant to be settings; prompts may use them all the same.
    pub near_misses: Vec<NearMiss>,
    /// The project's own values of settings that need trust, trusted or not.
    pub of_project: Vec<OfProject>,
    /// The login of the agent, if that is not its usual one.
    pub account: Option<Account>,
    accounts: Vec<Account>,
    /// The key of the setting that has named the agent.
    named_by: &'static str,
    rows: Vec<Resolved>,
}

impl Deref for Settings {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.values
    }
}

impl Settings {
    /// The variables that the shell config exports, for a program.
    #[must_use]
    pub fn exported(&self) -> Vec<(OsString, OsString)> {
        self.exports.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// Reads all sources and merges them. The first problem ends it.
    pub fn load(sources: &Sources<'_>) -> Result<Self, SettingsError> {
        let Loaded { mut rows, accounts, assignments, older, without_effect, of_project, ignored } =
            loading::load(sources)?;
        phase::check_names(&rows)?;
        let (account, named_by) = agents::settle(&mut rows, &accounts);
        let values = values(&rows)?;
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
            landing: LandingSettings::read(&rows)?,
            redact: RedactSettings::read(&rows)?,
            sandbox: SandboxSettings::read(&rows)?,
            tracker: TrackerSettings::read(&rows)?,
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
            account,
            accounts,
            named_by,
            rows,
        })
    }

    /// The amount of a setting that is a limit: in US dollars, in seconds, or a number; `None` for no limit.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "no loop counts to 2^52")]
    pub fn amount(&self, key: &str) -> Option<f64> {
        let row = self.row(key).filter(|row| !row.value.is_empty())?;
        let amount = match row.setting.kind {
            ValueKind::Money => f64::read(row),
            ValueKind::Duration(_) => Duration::read(row).map(|time| time.as_secs_f64()),
            _ => u64::read(row).map(|count| count as f64),
        };
        // Loading has refused values that cannot be parsed.
        amount.ok()
    }

    /// The setting of this key, with its value and origin.
    #[must_use]
    pub fn row(&self, key: &str) -> Option<&Resolved> {
        self.rows.iter().find(|row| row.setting.key == key)
    }

    /// The account of this name, which may have a model and an effort behind it: `work:opus`.
    #[must_use]
    pub fn account_named(&self, word: &str) -> Option<&Account> {
        let name = word.split(':').next().unwrap_or(word).trim();
        self.accounts.iter().find(|account| account.name == name)
    }

    /// The names of all accounts.
    pub fn accounts(&self) -> impl Iterator<Item = &str> {
        self.accounts.iter().map(|account| account.name.as_str())
    }

    /// Whether an account takes the value of this variable.
    #[must_use]
    pub fn is_of_account(&self, name: &str) -> bool {
        self.accounts.iter().flat_map(Account::taken).any(|taken| taken == name)
    }

    /// The folders that accounts name for the state of their agents.
    #[must_use]
    pub fn folders_of_accounts(&self) -> Vec<PathBuf> {
        let env = |name: &str| std::env::var(name).ok();
        self.accounts.iter().filter_map(|account| account.folder(env)).collect()
    }

    /// Every setting with its value and origin, in the table's order.
    pub fn rows(&self) -> impl Iterator<Item = &Resolved> {
        self.rows.iter()
    }
}

/// The general settings of these rows.
fn values(rows: &[Resolved]) -> Result<Values, SettingsError> {
    let mut values = Values::read(rows)?;
    values.stop_on_error = stops_on_error(&values, rows);
    Ok(values)
}

/// Whether an iteration that failed for good ends the loop. A loop with a limit of failed iterations would never see a
/// second one otherwise, so there only the user's own setting does.
fn stops_on_error(values: &Values, rows: &[Resolved]) -> bool {
    let is_default = resolved::row(rows, "loop.stop_on_error").origin == Origin::Default;
    values.stop_on_error && !(values.max_consecutive_errors > 0 && is_default)
}

/// A warning about the file of an older program.
fn of_older(path: &Path) -> String {
    format!("{}: settings of an older program, read as they are: move them into ralph.toml", path.display())
}

/// A warning about keys without effect yet.
fn warning(without_effect: &[(PathBuf, &'static str)]) -> Option<String> {
    let name = |(path, key): &(PathBuf, &str)| format!("{key} ({})", path.display());
    let names: Vec<String> = without_effect.iter().map(name).collect();
    (!names.is_empty()).then(|| format!("these settings have no effect yet: {}", names.join(", ")))
}

/// A warning about settings that are ignored because the user has not trusted the project.
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
