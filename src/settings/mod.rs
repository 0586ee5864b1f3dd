//! The merged configuration, every value with its origin.
//!
//! Flags win over `RALPH_*` variables of the environment, then come the shell-style `config`, `ralph.toml` of the
//! project, the user's own `ralph.toml`, and the defaults of the [`table`].

mod read;
pub mod shell;
pub mod table;
mod toml;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::text::duration;
use table::{Kind, Setting, TABLE};

/// Everything the user decided, or did not.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of the agent's preset, not yet checked against the known ones.
    pub agent_type: String,
    /// The agent's program, when not the preset's.
    pub agent_cli: Option<String>,
    /// The agent's arguments as one line of shell words, when not the preset's.
    pub agent_args: Option<String>,
    /// jq program for the assistant's text, when not the preset's.
    pub agent_response_filter: Option<String>,
    /// jq program or pipeline for the live display, when not the preset's.
    pub agent_display_filter: Option<String>,
    /// jq program for error class, cost and tokens, when not the preset's.
    pub agent_result_filter: Option<String>,
    /// Command that prints the balance, when not the preset's.
    pub agent_usage_cmd: Option<String>,
    /// Pipeline that finds the dollars in the balance, when not the preset's.
    pub agent_usage_parser: Option<String>,
    /// How long an agent may live on after its final event.
    pub agent_grace: Duration,
    /// How long an agent that is ended has after SIGINT.
    pub interrupt_wait: Duration,
    /// How long it has after SIGTERM.
    pub terminate_wait: Duration,
    /// Most iterations when the command line names no number, at least 1; `None` where nobody decided.
    pub max_iterations: Option<u32>,
    /// Retries after the first try of an iteration; `None` where nobody decided.
    pub max_retries: Option<u32>,
    /// Pause before a first retry.
    pub backoff: Option<Duration>,
    /// Whether an iteration that failed for good ends the loop; `None` where nobody decided.
    pub stop_on_error: Option<bool>,
    /// Failed iterations in a row that end the loop, 0 for never; `None` where nobody decided.
    pub max_consecutive_errors: Option<u32>,
    /// Iterations in a row without a change that end the loop, 0 for never; `None` where nobody decided.
    pub idle_threshold: Option<u32>,
    /// Longest time for the loop as a whole.
    pub max_duration: Option<Duration>,
    /// Money that may be spent, in US dollars.
    pub max_cost: Option<f64>,
    /// Tokens that may be used.
    pub max_tokens: Option<u64>,
    /// Regular expression over the assistant's text that ends the loop.
    pub done_pattern: Option<String>,
    /// Pause between two iterations.
    pub delay: Duration,
    /// Whether the validation command is run.
    pub validation_enabled: bool,
    /// Command for `sh` that proves the work.
    pub validation_command: Option<String>,
    /// Longest time for it.
    pub validation_timeout: Duration,
    /// Longest time for one attempt.
    pub timeout: Duration,
    /// Longest time without a sign of life.
    pub inactivity_timeout: Duration,
    /// Longest wait for a usage limit.
    pub max_limit_wait: Duration,
    /// Folder of the specifications, from the project root.
    pub specs_dir: String,
    /// What happens to branches and their work trees.
    pub git: GitSettings,
    /// Every variable the shell config assigns, with the value it has there.
    pub variables: BTreeMap<String, String>,
    /// Those of the variables that the agent's environment gets.
    pub exports: BTreeMap<String, String>,
    /// What the user should know, one line each.
    pub warnings: Vec<String>,
    rows: Vec<Row>,
}

/// What happens to branches and their work trees.
#[derive(Debug, Clone, Default)]
pub struct GitSettings {
    /// Whether a branch is pushed after each iteration with new commits.
    pub auto_push: bool,
    /// Whether a branch that is done gets a pull request.
    pub auto_pr: bool,
    /// Branch that branches without a base of their own start from; `None` where nobody decided.
    pub pr_base: Option<String>,
    /// Branches that are never pushed to.
    pub protected_branches: Vec<String>,
    /// Author of commits in the work trees.
    pub name: Option<String>,
    /// That author's address.
    pub email: Option<String>,
    /// Key that signs those commits.
    pub signing_key: Option<String>,
    /// File of the ssh key that the work trees push with, as it was written.
    pub ssh_key: Option<String>,
}

/// One setting as it was decided.
#[derive(Debug, Clone)]
pub struct Row {
    /// The row of the table.
    pub setting: &'static Setting,
    /// The value as it was written; empty for an override that leaves things to the preset.
    pub value: String,
    /// Who wrote it.
    pub origin: Origin,
}

/// Where a value came from. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The table.
    Default,
    /// The user's `ralph.toml`.
    UserToml {
        /// The file.
        path: PathBuf,
        /// The line of its key.
        line: usize,
    },
    /// The project's `ralph.toml`.
    ProjectToml {
        /// The file.
        path: PathBuf,
        /// The line of its key.
        line: usize,
    },
    /// The shell-style config.
    ShellConfig {
        /// The file.
        path: PathBuf,
        /// The line of the last assignment.
        line: usize,
    },
    /// A variable of the environment.
    Env(&'static str),
    /// A flag, with its dashes.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::UserToml { path, line }
            | Self::ProjectToml { path, line }
            | Self::ShellConfig { path, line } => {
                write!(f, "{} line {line}", path.display())
            }
            Self::Env(name) => write!(f, "{name} in the environment"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Where to look for settings. A path that does not exist is no error, except `shell_config` when it was named.
pub struct Sources<'a> {
    /// Values of flags by the setting's key, such as `loop.timeout`; the last of a key wins.
    pub flags: Vec<(&'static str, String)>,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The shell-style config.
    pub shell_config: Option<PathBuf>,
    /// The user named the shell config, so it has to exist.
    pub shell_config_explicit: bool,
    /// `ralph.toml` at the project root.
    pub project_toml: Option<PathBuf>,
    /// The user's `ralph.toml`, see [`user_toml`].
    pub user_toml: Option<PathBuf>,
}

/// Why there are no settings.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// The config the user named does not exist.
    #[error("config file not found: {}; check the path given with --config", .0.display())]
    NotFound(PathBuf),
    /// A file is there but cannot be read.
    #[error("cannot read {}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The shell-style config holds something that is not supported.
    #[error("{} {error}", path.display())]
    Shell {
        /// The file.
        path: PathBuf,
        /// What, and where in the file.
        error: shell::ShellError,
    },
    /// A `ralph.toml` is malformed or has unknown keys or wrong types.
    #[error("{} line {line}: {problem}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A value that the setting cannot have.
    #[error("{place}: {problem}")]
    Invalid {
        /// The name the user wrote and where.
        place: String,
        /// What is wrong and what to do.
        problem: String,
    },
}

/// Path of the user's `ralph.toml`: `${XDG_CONFIG_HOME:-~/.config}/ralph/ralph.toml`. A relative `XDG_CONFIG_HOME`
/// is ignored, as its specification asks. None without a home.
pub fn user_toml(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(config.join("ralph/ralph.toml"))
}

impl Settings {
    /// Reads all sources and merges them. The first problem found ends it.
    pub fn load(sources: &Sources<'_>) -> Result<Self, SettingsError> {
        let mut rows = Rows::defaults();
        let mut without_effect = Vec::new();
        if let Some(path) = &sources.user_toml {
            without_effect.extend(rows.toml(path, |path, line| Origin::UserToml { path, line })?);
        }
        if let Some(path) = &sources.project_toml {
            without_effect.extend(rows.toml(path, |path, line| Origin::ProjectToml { path, line })?);
        }
        let assignments = shell_config(sources)?;
        if let Some(path) = &sources.shell_config {
            rows.shell(path, &assignments);
        }
        rows.environment(sources.env);
        rows.flags(&sources.flags)?;

        let exports = assignments.iter().filter(|assignment| assignment.exported);
        let pair = |assignment: &shell::Assignment| (assignment.name.clone(), assignment.value.clone());
        Ok(Self {
            agent_type: rows.text("agent.provider")?,
            agent_cli: rows.overridden("agent.cli"),
            agent_args: rows.overridden("agent.args"),
            agent_response_filter: rows.overridden("agent.response_filter"),
            agent_display_filter: rows.overridden("agent.display_filter"),
            agent_result_filter: rows.overridden("agent.result_filter"),
            agent_usage_cmd: rows.overridden("agent.usage_cmd"),
            agent_usage_parser: rows.overridden("agent.usage_parser"),
            agent_grace: rows.row("agent.grace").duration()?,
            interrupt_wait: rows.row("agent.interrupt_wait").duration()?,
            terminate_wait: rows.row("agent.terminate_wait").duration()?,
            max_iterations: rows.given("loop.max_iterations", Row::count)?,
            max_retries: rows.given("loop.max_retries", Row::count)?,
            backoff: rows.given("loop.backoff", Row::duration)?,
            stop_on_error: rows.given("loop.stop_on_error", Row::switch)?,
            max_consecutive_errors: rows.given("monitoring.max_consecutive_errors", Row::count)?,
            idle_threshold: rows.given("completion.idle_threshold", Row::count)?,
            max_duration: rows.given("loop.max_duration", Row::duration)?,
            max_cost: rows.given("loop.max_cost", Row::money)?,
            max_tokens: rows.given("loop.max_tokens", Row::count)?,
            done_pattern: rows.overridden("loop.done_pattern"),
            delay: rows.given("loop.delay", Row::duration_or_zero)?.unwrap_or_default(),
            validation_enabled: rows.row("validation.enabled").switch()?,
            validation_command: rows.overridden("validation.command"),
            validation_timeout: rows.row("validation.timeout").duration()?,
            timeout: rows.row("loop.timeout").duration()?,
            inactivity_timeout: rows.row("loop.inactivity_timeout").duration()?,
            max_limit_wait: rows.row("loop.max_limit_wait").duration()?,
            specs_dir: rows.text("paths.specs")?,
            git: rows.git()?,
            exports: exports.map(pair).collect(),
            variables: assignments.iter().map(pair).collect(),
            warnings: warning(&without_effect).into_iter().collect(),
            rows: rows.0,
        })
    }

    /// Every setting with its value and origin, in the table's order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }
}

/// Reads the shell config, which may be missing unless it was named.
fn shell_config(sources: &Sources<'_>) -> Result<Vec<shell::Assignment>, SettingsError> {
    let Some(path) = &sources.shell_config else { return Ok(Vec::new()) };
    match read::text(path)? {
        Some(text) => shell::parse(&text, sources.env)
            .map_err(|error| SettingsError::Shell { path: path.clone(), error }),
        None if sources.shell_config_explicit => Err(SettingsError::NotFound(path.clone())),
        None => Ok(Vec::new()),
    }
}

/// One line about the keys that change nothing yet.
fn warning(without_effect: &[(PathBuf, &'static str)]) -> Option<String> {
    let name = |(path, key): &(PathBuf, &str)| format!("{key} ({})", path.display());
    let names: Vec<String> = without_effect.iter().map(name).collect();
    (!names.is_empty()).then(|| format!("these settings have no effect yet: {}", names.join(", ")))
}

/// The rows while the sources are laid over each other, the weakest first.
struct Rows(Vec<Row>);

impl Rows {
    fn defaults() -> Self {
        let row = |setting: &'static Setting| Row {
            setting,
            value: setting.default.to_owned(),
            origin: Origin::Default,
        };
        Self(TABLE.iter().map(row).collect())
    }

    /// Lays a `ralph.toml` over the rows and returns its keys without effect.
    fn toml(
        &mut self,
        path: &Path,
        origin: impl Fn(PathBuf, usize) -> Origin,
    ) -> Result<Vec<(PathBuf, &'static str)>, SettingsError> {
        let Some(text) = read::text(path)? else { return Ok(Vec::new()) };
        let document = toml::parse(&text).map_err(|toml::Problem { line, message }| SettingsError::Toml {
            path: path.to_owned(),
            line,
            problem: message,
        })?;
        for toml::Value { setting, text, line } in document.values {
            let row = self.row_mut(setting.key);
            row.value = text;
            row.origin = origin(path.to_owned(), line);
        }
        Ok(document.without_effect.into_iter().map(|key| (path.to_owned(), key)).collect())
    }

    fn shell(&mut self, path: &Path, assignments: &[shell::Assignment]) {
        for row in &mut self.0 {
            let assigned = assignments.iter().find(|assignment| assignment.name == row.setting.shell);
            if let Some(assignment) = assigned.filter(|assignment| counts(row.setting, &assignment.value)) {
                row.value.clone_from(&assignment.value);
                row.origin = Origin::ShellConfig { path: path.to_owned(), line: assignment.line };
            }
        }
    }

    fn environment(&mut self, env: &dyn Fn(&str) -> Option<String>) {
        for row in &mut self.0 {
            let names = row.setting.env.iter();
            let found = names
                .filter_map(|name| Some((*name, env(name)?)))
                .find(|(_, value)| counts(row.setting, value));
            if let Some((name, value)) = found {
                row.value = value;
                row.origin = Origin::Env(name);
            }
        }
    }

    fn flags(&mut self, flags: &[(&'static str, String)]) -> Result<(), SettingsError> {
        for (key, value) in flags {
            let Some(row) = self.0.iter_mut().find(|row| row.setting.key == *key) else {
                let problem = "there is no such setting; `ralph config` lists them".to_owned();
                return Err(SettingsError::Invalid { place: (*key).to_owned(), problem });
            };
            row.value.clone_from(value);
            row.origin = Origin::Flag(row.setting.flag.unwrap_or(key));
        }
        Ok(())
    }

    fn row(&self, key: &str) -> &Row {
        // Keys are literals of this file, and every load looks up each of them: the first test would fail.
        self.0.iter().find(|row| row.setting.key == key).expect("the key of a row of the table")
    }

    fn row_mut(&mut self, key: &str) -> &mut Row {
        // The key comes from a row of the table.
        self.0.iter_mut().find(|row| row.setting.key == key).expect("the key of a row of the table")
    }

    fn overridden(&self, key: &str) -> Option<String> {
        Some(self.row(key).value.clone()).filter(|value| !value.is_empty())
    }

    fn text(&self, key: &str) -> Result<String, SettingsError> {
        let row = self.row(key);
        if row.value.trim().is_empty() {
            return Err(row.invalid("this is empty; write a value or leave it out".to_owned()));
        }
        Ok(row.value.clone())
    }

    fn git(&self) -> Result<GitSettings, SettingsError> {
        let words = self.row("git.protected_branches").value.split_whitespace();
        Ok(GitSettings {
            auto_push: self.row("git.auto_push").switch()?,
            auto_pr: self.row("git.auto_pr").switch()?,
            pr_base: self.overridden("git.pr_base"),
            protected_branches: words.map(str::to_owned).collect(),
            name: self.overridden("git.worktree.name"),
            email: self.overridden("git.worktree.email"),
            signing_key: self.overridden("git.worktree.signing_key"),
            ssh_key: self.overridden("git.worktree.ssh_key"),
        })
    }

    /// The value where somebody decided, read by `read`.
    fn given<T>(
        &self,
        key: &str,
        read: impl Fn(&Row) -> Result<T, SettingsError>,
    ) -> Result<Option<T>, SettingsError> {
        let row = self.row(key);
        (row.origin != Origin::Default && !row.value.is_empty()).then(|| read(row)).transpose()
    }
}

impl Row {
    fn count<T: TryFrom<u64>>(&self) -> Result<T, SettingsError> {
        let least = if let Kind::Count { least } = self.setting.kind { least } else { 0 };
        let value = self.value.trim().parse().ok().filter(|value| *value >= u64::from(least));
        value
            .and_then(|value| T::try_from(value).ok())
            .ok_or_else(|| self.invalid(format!("`{}` is not a whole number of {least} or more", self.value)))
    }

    fn duration(&self) -> Result<Duration, SettingsError> {
        duration::parse(&self.value).map_err(|error| self.invalid(error.to_string()))
    }

    fn duration_or_zero(&self) -> Result<Duration, SettingsError> {
        duration::parse_or_zero(&self.value).map_err(|error| self.invalid(error.to_string()))
    }

    fn money(&self) -> Result<f64, SettingsError> {
        let number = self.value.trim().trim_start_matches('$').parse().ok();
        number.filter(|amount: &f64| amount.is_finite() && *amount > 0.0).ok_or_else(|| {
            self.invalid(format!(
                "`{}` is not an amount of US dollars above zero, such as 5 or 2.50",
                self.value
            ))
        })
    }

    fn switch(&self) -> Result<bool, SettingsError> {
        match self.value.trim() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            other => Err(self.invalid(format!("`{other}` is neither true nor false"))),
        }
    }

    fn invalid(&self, problem: String) -> SettingsError {
        let Setting { key, shell, .. } = self.setting;
        let place = match &self.origin {
            Origin::Default => (*key).to_owned(),
            origin @ (Origin::UserToml { .. } | Origin::ProjectToml { .. }) => format!("{key} in {origin}"),
            origin @ Origin::ShellConfig { .. } => format!("{shell} in {origin}"),
            origin @ (Origin::Env(_) | Origin::Flag(_)) => origin.to_string(),
        };
        SettingsError::Invalid { place, problem }
    }
}

/// Whether a value from the shell config or the environment is a decision. An empty one is none, except that an
/// empty override asks for the preset's own, and an empty list of words is one.
fn counts(setting: &Setting, value: &str) -> bool {
    matches!(setting.kind, Kind::Override | Kind::Words) || !value.is_empty()
}

#[cfg(test)]
mod tests;
