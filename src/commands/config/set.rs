//! `ralph config set KEY VALUE`: puts a setting into the file where it belongs.

use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::agent::spec;
use crate::cli::ConfigArgs;
use crate::commands::output::{say, warn};
use crate::files::{atomic, theirs};
use crate::job::agent_choice;
use crate::job::workspace::{Workspace, open};
use crate::presets;
use crate::project::Project;
use crate::settings::edit;
use crate::settings::setting::{Setting, ValueKind};
use crate::settings::{Origin, Settings, SettingsError, Sources, names_agents};
use crate::text::nearest;

/// A file of settings.
enum Place {
    Toml(PathBuf),
    Shell(PathBuf),
}

/// Writes the setting, and reports where; and what counts more, if anything does.
pub(super) fn run(args: &ConfigArgs, name: &str, value: &str) -> anyhow::Result<u8> {
    let setting = edit::named(name).map_err(anyhow::Error::msg)?;
    require_good(setting, name, value)?;
    let Workspace { project, settings } = open(&args.place)?;
    if names_agents(setting.key) {
        let is_list = matches!(setting.kind, ValueKind::Names);
        let words = if is_list { value.split(',').collect() } else { vec![value] };
        for word in words.into_iter().map(str::trim).filter(|word| !word.is_empty()) {
            require_agent(name, word, &settings)?;
        }
    }
    let place = place(args, &project, &settings, setting)?;
    let (Place::Toml(path) | Place::Shell(path)) = &place;
    let shown = project.relative(path).display().to_string();
    let text = text(path)?;
    let new = match &place {
        Place::Toml(_) => {
            edit::in_toml(&text, setting, value).map_err(|why| anyhow::anyhow!("{shown}, {why}"))?
        }
        Place::Shell(_) => edit::in_shell(&text, setting, value).map_err(|line| {
            anyhow::anyhow!(
                "{shown}, line {line}, sets {} in a way of its own: change it there",
                setting.shell
            )
        })?,
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    atomic::write_theirs(path, new.as_bytes())?;
    let name = match &place {
        Place::Toml(_) => setting.key,
        Place::Shell(_) => setting.shell,
    };
    say(&format!("{name} is set in {shown}"));
    let holds = open(&args.place)?.settings;
    if let Some(row) = holds.row(setting.key)
        && row.origin != Origin::Default
        && !is_from(&row.origin, path)
    {
        warn(&format!("{} counts more, and sets it as well", row.origin));
    }
    Ok(0)
}

/// Refuses a value that no loop could use. `name` is what the user calls the setting.
fn require_good(setting: &'static Setting, name: &str, value: &str) -> anyhow::Result<()> {
    let alone = Sources { flags: vec![(setting.key, value.to_owned())], ..Sources::none() };
    match Settings::load(&alone) {
        Err(SettingsError::Invalid { problem, .. }) => bail!("{name}: {problem}"),
        Err(error) => return Err(error.into()),
        Ok(_) => {}
    }
    Ok(())
}

/// Refuses an agent that there cannot be, and warns of a command line that cannot be started here.
fn require_agent(name: &str, agent: &str, settings: &Settings) -> anyhow::Result<()> {
    let wanted = agent.split(':').next().unwrap_or(agent).trim();
    let is_known = presets::preset(agent).is_some()
        || settings.account_named(wanted).is_some()
        || presets::preset(wanted).is_some_and(|preset| !preset.cli.is_empty());
    if is_known {
        return Ok(());
    }
    let Some(command) = agent_choice::command_of(agent, name)? else { return Ok(()) };
    if agent_choice::is_there(&command, settings) {
        return Ok(());
    }
    let known = presets::names().into_iter().chain(settings.accounts());
    let meant = if agent.starts_with(spec::ACP) { String::new() } else { nearest::meant(wanted, known) };
    if !meant.is_empty() {
        let known = presets::names().join(", ");
        bail!(
            "{name}: there is no agent '{agent}': {meant}they are {known}, your accounts, or a command line"
        );
    }
    warn(&format!("{} is not on PATH: the agent '{agent}' cannot be started here", spec::program(&command)));
    Ok(())
}

/// Where the setting belongs: where the project has it, else in the file that the project has.
fn place(
    args: &ConfigArgs,
    project: &Project,
    settings: &Settings,
    setting: &Setting,
) -> anyhow::Result<Place> {
    if args.user {
        let path = project.user_settings().context("there is no home folder: set HOME or XDG_CONFIG_HOME")?;
        return Ok(Place::Toml(path));
    }
    let shell = args.place.config.clone().unwrap_or_else(|| project.config());
    let toml = project.project_settings();
    let is_in_shell = settings.variables.contains_key(setting.shell);
    let is_only_shell = shell.is_file() && !toml.exists();
    if is_in_shell || is_only_shell || args.place.config.is_some() {
        return Ok(Place::Shell(shell));
    }
    if project.older_settings().exists() && !toml.exists() {
        bail!(
            "{} is read in place of a ralph.toml: rename it to ralph.toml first",
            project.older_settings().display()
        );
    }
    Ok(Place::Toml(toml))
}

/// The text of a file; of one that is not there, none.
fn text(path: &std::path::Path) -> anyhow::Result<String> {
    match theirs::read(path, theirs::MAX_TEXT) {
        Ok(bytes) => String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn is_from(origin: &Origin, path: &std::path::Path) -> bool {
    match origin {
        Origin::UserToml { path: file, .. }
        | Origin::ProjectToml { path: file, .. }
        | Origin::ShellConfig { path: file, .. } => file == path,
        Origin::Default | Origin::Env(_) | Origin::Flag(_) => false,
    }
}
