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

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::SettingsError;
pub use example::example;
pub use loading::{OfProject, Sources, user_toml};
pub use near_miss::NearMiss;
pub use origin::Origin;
pub use resolved::Resolved;
pub use setting::Verb;

use crate::files::room::Floor;
use crate::text::redact::Redactor;
use loading::{Loaded, Values};
use notify::{HookSettings, NotifySettings};

/// Everything the user decided, or did not.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of the agent's preset or a command line, not yet checked.
    pub agent_type: String,
    /// The model it is told to use.
    pub agent_model: Option<String>,
    /// How hard that is told to think.
    pub agent_effort: Option<String>,
    /// The agent's program, when not the preset's.
    pub agent_cli: Option<String>,
    /// The agent's arguments as one line of shell words, when not the preset's.
    pub agent_args: Option<String>,
    /// More arguments, as one line of shell words.
    pub agent_extra_args: Option<String>,
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
    /// How long an agent's work in the background is waited for after its final event.
    pub background_wait: Duration,
    /// How long an agent that is ended has after SIGINT.
    pub interrupt_wait: Duration,
    /// How long it has after SIGTERM.
    pub terminate_wait: Duration,
    /// Most iterations when the command line names no number, at least 1; `None` for as many as it takes.
    pub max_iterations: Option<u32>,
    /// Retries after the first try of an iteration.
    pub max_retries: u32,
    /// Pause before a first retry.
    pub backoff: Option<Duration>,
    /// Whether an iteration that failed for good ends the loop. Where failed ones are counted, it does not by itself.
    pub stop_on_error: bool,
    /// Failed iterations in a row that end the loop, 0 for never.
    pub max_consecutive_errors: u32,
    /// Iterations in a row without a change that end the loop, 0 for never.
    pub idle_threshold: u32,
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
    /// Whether a fresh agent looks whether a task is done before it counts.
    pub verify: bool,
    /// How often a task is given out again that does not say so itself.
    pub task_retries: u32,
    /// The word for how models are chosen for tasks.
    pub model_strategy: Option<String>,
    /// Models to choose from for tasks, the smallest first; empty: those of the agent's preset.
    pub model_ladder: Vec<String>,
    /// Longest time for one attempt.
    pub timeout: Duration,
    /// Longest time without a sign of life.
    pub inactivity_timeout: Duration,
    /// Longest wait for a usage limit.
    pub max_limit_wait: Duration,
    /// How much of a file system has to be free before an attempt.
    pub free_space_floor: Floor,
    /// How many runs are kept; `None`: all.
    pub keep_runs: Option<u64>,
    /// How many bytes of runs are kept; `None`: all.
    pub keep_size: Option<u64>,
    /// Folder of the specifications, from the project root.
    pub specs_dir: String,
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
    /// By the keys of settings.
    amounts: BTreeMap<&'static str, f64>,
    rows: Vec<Resolved>,
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

/// Which secrets are taken out of what is kept and shown.
#[derive(Debug, Clone, Default)]
pub struct RedactSettings {
    /// Whether any are.
    pub enabled: bool,
    /// Variables that hold one, besides those that are known by themselves.
    pub names: Vec<String>,
    /// Files of variables to be looked at, from the project root.
    pub env_files: Vec<String>,
}

impl Settings {
    /// Reads all sources and merges them. The first problem found ends it.
    pub fn load(sources: &Sources<'_>) -> Result<Self, SettingsError> {
        let Loaded { values, assignments, older, without_effect, of_project, ignored } =
            loading::load(sources)?;
        let (notify, missing) = NotifySettings::of(&values, sources.env)?;
        let near_misses = match &sources.shell_config {
            Some(path) => near_miss::near_misses(path, &assignments),
            None => Vec::new(),
        };
        let exported = assignments.iter().filter(|assignment| assignment.exported);
        let pair = |assignment: &shell::Assignment| (assignment.name.clone(), assignment.value.clone());
        Ok(Self {
            agent_type: values.get("agent.provider", Resolved::name)?,
            agent_model: values.text("agent.model"),
            agent_effort: values.text("agent.effort"),
            agent_cli: values.text("agent.cli"),
            agent_args: values.text("agent.args"),
            agent_extra_args: values.text("agent.extra_args"),
            agent_response_filter: values.text("agent.response_filter"),
            agent_display_filter: values.text("agent.display_filter"),
            agent_result_filter: values.text("agent.result_filter"),
            agent_usage_cmd: values.text("agent.usage_cmd"),
            agent_usage_parser: values.text("agent.usage_parser"),
            agent_grace: values.get("agent.grace", Resolved::duration)?,
            background_wait: values.get("agent.background_wait", Resolved::duration)?,
            interrupt_wait: values.get("agent.interrupt_wait", Resolved::wait)?,
            terminate_wait: values.get("agent.terminate_wait", Resolved::wait)?,
            max_iterations: values.maybe("loop.max_iterations", Resolved::count)?,
            max_retries: values.get("loop.max_retries", Resolved::count)?,
            backoff: values.maybe("loop.backoff", Resolved::duration)?,
            stop_on_error: stop_on_error(&values)?,
            max_consecutive_errors: values.get("monitoring.max_consecutive_errors", Resolved::count)?,
            idle_threshold: values.get("completion.idle_threshold", Resolved::count)?,
            amounts: values.amounts()?,
            done_pattern: values.text("loop.done_pattern"),
            delay: values.maybe("loop.delay", Resolved::duration_or_zero)?.unwrap_or_default(),
            validation_enabled: values.get("validation.enabled", Resolved::switch)?,
            validation_command: values.text("validation.command"),
            validation_timeout: values.get("validation.timeout", Resolved::duration)?,
            verify: values.get("execution.verify", Resolved::switch)?,
            task_retries: values.get("execution.max_retries", Resolved::count)?,
            model_strategy: values.text("model.strategy"),
            model_ladder: values.row("model.ladder").words(),
            timeout: values.get("loop.timeout", Resolved::duration)?,
            inactivity_timeout: values.get("loop.inactivity_timeout", Resolved::duration_or_zero)?,
            max_limit_wait: values.get("loop.max_limit_wait", Resolved::duration)?,
            keep_runs: Some(values.get("records.keep_runs", Resolved::count)?).filter(|runs| *runs > 0),
            keep_size: values.get("records.keep_size", Resolved::size)?,
            free_space_floor: values.maybe("loop.free_space_floor", Resolved::room)?.unwrap_or_default(),
            specs_dir: values.get("paths.specs", Resolved::name)?,
            git: GitSettings::of(&values)?,
            redact: RedactSettings {
                enabled: values.get("redact.enabled", Resolved::switch)?,
                names: values.row("redact.names").words(),
                env_files: values.row("redact.env_files").words(),
            },
            secrets: Redactor::default(),
            notify,
            hooks: HookSettings::of(&values)?,
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
            rows: values.into_rows(),
        })
    }

    /// How much a setting that `resume` can raise allows: in US dollars, in seconds, or a number; `None` for no limit.
    #[must_use]
    pub fn amount(&self, key: &str) -> Option<f64> {
        self.amounts.get(key).copied()
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

impl GitSettings {
    fn of(values: &Values) -> Result<Self, SettingsError> {
        Ok(Self {
            auto_push: values.get("git.auto_push", Resolved::switch)?,
            auto_pr: values.get("git.auto_pr", Resolved::switch)?,
            pr_base: values.text("git.pr_base"),
            protected_branches: values.row("git.protected_branches").words(),
            name: values.text("git.worktree.name"),
            email: values.text("git.worktree.email"),
            signing_key: values.text("git.worktree.signing_key"),
            ssh_key: values.text("git.worktree.ssh_key"),
        })
    }
}

/// Whether an iteration that failed for good ends the loop. One that counts failed iterations would never see a second
/// one otherwise, so there only the user's own word does.
fn stop_on_error(values: &Values) -> Result<bool, SettingsError> {
    let row = values.row("loop.stop_on_error");
    let counts = values.get("monitoring.max_consecutive_errors", Resolved::count::<u32>)? > 0;
    Ok(row.switch()? && !(counts && row.origin == Origin::Default))
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
