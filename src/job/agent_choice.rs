//! From settings to an agent that can run: the preset or command line, and what overrides it.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use rustix::fs::{Access, access};

use super::workspace::search_path;
use crate::agent::spec::{ACP, AgentSpec, program as program_of};
use crate::agent::{DisplayRoute, ReaderPlan, Reading, Timeouts};
use crate::engine::agent::CommandLine;
use crate::presets::{self, Preset, Protocol, Unable, Wishes};
use crate::process::ladder::Ladder;
use crate::process::launch::Launch;
use crate::process::programs::find_program;
use crate::project::Project;
use crate::reply::filter::JqProgram;
use crate::settings::{Origin, Settings};

/// The settings of [`Wishes`].
const MODEL: &str = "agent.model";
const EFFORT: &str = "agent.effort";

/// The agent that the settings choose, with their changes of its command line.
pub(crate) fn of_settings(settings: &Settings, project: &Project) -> anyhow::Result<AgentSpec> {
    let mut spec = match presets::preset(&settings.agent_type) {
        Some(preset) => of_type(preset, settings, project)?,
        None => AgentSpec::of_command(&command_line(settings)?),
    };
    if let Some(args) = &settings.agent_extra_args {
        spec = spec.with(&split("AGENT_EXTRA_ARGS", args)?);
    }
    let wishes = Wishes { model: settings.agent_model.clone(), effort: settings.agent_effort.clone() };
    with_wishes(spec, &wishes, settings)
}

/// The agent that a RALPH.md names, with the options for what the call wants.
///
/// # Errors
/// When it has no option for that.
pub(crate) fn of_call(command: &CommandLine, settings: &Settings) -> anyhow::Result<AgentSpec> {
    with_wishes(AgentSpec::of_command(command), &wishes_of_call(settings), settings)
}

/// A type of agent, and what overrides it.
fn of_type(preset: &'static Preset, settings: &Settings, project: &Project) -> anyhow::Result<AgentSpec> {
    let cli = match &settings.agent_cli {
        // A path with blanks in it is one program. Agents are started in the project root.
        Some(cli) if cli.contains('/') && project.root().join(cli).is_file() => Some(vec![cli.clone()]),
        Some(cli) => Some(split("AGENT_CLI", cli)?),
        None => None,
    };
    let args = settings.agent_args.as_deref().map(|args| split("AGENT_ARGS", args)).transpose()?;
    AgentSpec::of_preset(preset, cli, args).ok_or_else(|| {
        let name = preset.name;
        anyhow!("agent type '{name}' has no program of its own: set AGENT_CLI to the command to run")
    })
}

/// The command line that the setting at `place` names; `None`: it names nothing.
///
/// # Errors
/// When it cannot be one.
pub(crate) fn command_of(line: &str, place: &str) -> anyhow::Result<Option<CommandLine>> {
    let words = split(place, line)?;
    match line.trim().strip_prefix(ACP) {
        Some(words) if words.trim().is_empty() => bail!(
            "agent '{ACP}' lacks its command: write one behind it that speaks the Agent Client Protocol, such as \
             '{ACP}goose acp'"
        ),
        Some(words) if words.starts_with(char::is_whitespace) => {
            bail!("agent '{line}' has a blank behind '{ACP}': write the command directly there")
        }
        _ => Ok(CommandLine::new(words)),
    }
}

/// Whether the program of a command line can be started: it is a path, or on `PATH`.
pub(crate) fn is_there(command: &CommandLine, settings: &Settings) -> bool {
    let program = program_of(command);
    program.contains('/') || find_program(program, &search_path(settings)).is_some()
}

/// A name that is no type is a command line, as in a RALPH.md.
fn command_line(settings: &Settings) -> anyhow::Result<CommandLine> {
    let line = &settings.agent_type;
    let elsewhere = settings.agent_named_elsewhere();
    let command = command_of(line, elsewhere.as_deref().unwrap_or("AGENT_TYPE"))?;
    let Some(command) = command.filter(|command| is_there(command, settings)) else {
        if let Some(words) = line.trim().strip_prefix(ACP) {
            let program = words.split_whitespace().next().unwrap_or(words);
            bail!("agent '{line}' cannot be started: {program} is not on PATH");
        }
        bail!(
            "unknown agent type '{line}', and no command line whose program is on PATH: {}set {} to one of {}, or to a \
             command line",
            presets::meant(line),
            elsewhere.as_deref().unwrap_or("AGENT_TYPE or --agent"),
            presets::names().join(", ")
        );
    };
    Ok(command)
}

/// The setting that chose the program of [`of_settings`].
pub(crate) fn chosen_by(settings: &Settings) -> String {
    let general = if presets::preset(&settings.agent_type).is_some() { "AGENT_CLI" } else { "AGENT_TYPE" };
    settings.agent_named_elsewhere().unwrap_or_else(|| general.to_owned())
}

/// The preset whose filters read what an agent of this one prints.
fn read_as(preset: &'static Preset, settings: &Settings) -> anyhow::Result<&'static Preset> {
    let Some(name) = &settings.agent_format else { return Ok(preset) };
    if preset.protocol == Protocol::Acp {
        bail!("AGENT_FORMAT is about lines, and this agent is talked to by a protocol: leave it out");
    }
    if preset.is_read() && preset.name != name {
        bail!("AGENT_FORMAT is '{name}', and ralph knows what '{}' prints: leave it out", preset.name);
    }
    presets::with_filters().find(|known| known.name == name).ok_or_else(|| {
        let known = presets::sorted(presets::with_filters()).join(", ");
        anyhow!("AGENT_FORMAT is '{name}', and ralph knows the output of these: {known}")
    })
}

/// Whether the cost of an iteration can be known.
pub(crate) fn reports_cost(preset: &'static Preset, settings: &Settings) -> bool {
    read_as(preset, settings).is_ok_and(|read_as| read_as.reports_cost)
        || settings.agent_result_filter.is_some()
        || balance(preset, settings).is_some()
}

/// The usage command and its parser.
fn balance(preset: &Preset, settings: &Settings) -> Option<(String, String)> {
    let or_preset =
        |setting: &Option<String>, preset: &str| setting.clone().unwrap_or_else(|| preset.to_owned());
    let command = or_preset(&settings.agent_usage_cmd, preset.usage_cmd);
    let parser = or_preset(&settings.agent_usage_parser, preset.usage_parser);
    (!command.is_empty() && !parser.is_empty()).then_some((command, parser))
}

/// Compiles every filter in use.
pub(crate) fn reading(spec: &AgentSpec, settings: &Settings, project: &Project) -> anyhow::Result<Reading> {
    let preset = spec.preset;
    let own = ReaderPlan::of(read_as(preset, settings)?).context("a built-in filter does not compile")?;
    let response = users_program("AGENT_RESPONSE_FILTER", settings.agent_response_filter.as_deref())?;
    let result = users_program("AGENT_RESULT_FILTER", settings.agent_result_filter.as_deref())?;
    if preset.protocol == Protocol::Acp && (response.is_some() || result.is_some()) {
        bail!(
            "AGENT_RESPONSE_FILTER and AGENT_RESULT_FILTER read lines, and agent '{}' is talked to by a protocol: leave them \
             out, or choose another agent",
            spec.name
        );
    }
    let display = match &settings.agent_display_filter {
        Some(filter) => users_display(filter, settings, project)?,
        None if own.preset_displays => DisplayRoute::Preset,
        None if response.is_some() => DisplayRoute::Text,
        None => DisplayRoute::Raw,
    };
    let preset_displays = matches!(display, DisplayRoute::Preset);
    Ok(Reading {
        readers: ReaderPlan { response, result, preset_displays, ..own },
        display,
        balance: balance(preset, settings),
        reports_cost: reports_cost(preset, settings),
        heeds_settings: true,
    })
}

/// The files and folders that agents must not touch; one that ends with `*` is a prefix.
pub(crate) fn ours(project: &Project) -> Vec<OsString> {
    let path = |file: &str| project.run_dir().join(file.trim_end_matches('/')).into_os_string();
    project.run_files().into_iter().map(path).collect()
}

/// The options for the agent that a RALPH.md names. Config files are about the agent that they choose themselves.
pub(crate) fn wishes_of_call(settings: &Settings) -> Wishes {
    let of_call = |key: &str| {
        let row = settings.row(key)?;
        let is_of_call = matches!(row.origin, Origin::Flag(_) | Origin::Env(_));
        (is_of_call && !row.value.is_empty()).then(|| row.value.clone())
    };
    Wishes { model: of_call(MODEL), effort: of_call(EFFORT) }
}

/// The agent with the options for these wishes.
///
/// # Errors
/// When it has no option for one; the error names the setting.
fn with_wishes(spec: AgentSpec, wishes: &Wishes, settings: &Settings) -> anyhow::Result<AgentSpec> {
    let name = spec.name.clone();
    spec.with_wishes(wishes).map_err(|unable| {
        let row = settings.row(if unable == Unable::MODEL { MODEL } else { EFFORT });
        let place = row.map_or_else(String::new, |row| row.origin.to_string());
        anyhow!("agent '{name}' cannot be {unable} ({place}): leave it out, or choose another agent")
    })
}

/// How agents and commands beside them are ended.
pub(crate) fn ladder(settings: &Settings) -> Ladder {
    Ladder { interrupt: settings.interrupt_wait, terminate: settings.terminate_wait }
}

/// A hundred years: no limit.
const FOR_EVER: Duration = Duration::from_hours(100 * 365 * 24);

/// How long an attempt may take.
pub(crate) fn timeouts(settings: &Settings) -> Timeouts {
    Timeouts {
        attempt: settings.timeout,
        inactivity: if settings.inactivity_timeout.is_zero() {
            FOR_EVER
        } else {
            settings.inactivity_timeout
        },
        grace: settings.agent_grace,
        background: settings.background_wait,
    }
}

/// Refuses an agent that is not installed; `fix` names what chose its program.
pub(crate) fn check_installed(
    spec: &AgentSpec,
    fix: &str,
    settings: &Settings,
    project: &Project,
) -> anyhow::Result<()> {
    let Some(program) = &spec.program else { return Ok(()) };
    if program.contains('/') {
        let path = project.root().join(program);
        if !path.is_file() {
            bail!("agent {} not found: install it, or fix {fix}", path.display());
        }
        if access(&path, Access::EXEC_OK).is_err() {
            bail!("agent {} is not executable: run 'chmod +x' on it, or fix {fix}", path.display());
        }
    } else if find_program(program, &search_path(settings)).is_none() {
        let install = spec.preset.install;
        let install = if install.is_empty() { "install it" } else { install };
        bail!(
            "agent '{program}' not found on PATH: {install}, or fix {fix}; 'ralph doctor' checks everything"
        );
    }
    Ok(())
}

/// Splits as a shell would, without expanding anything.
fn split(setting: &str, text: &str) -> anyhow::Result<Vec<String>> {
    shlex::split(text).ok_or_else(|| anyhow!("{setting} has a quote that is not closed: {text}"))
}

/// A user's filter that must be jq, compiled here so that a mistake is reported before anything starts.
fn users_program(setting: &str, filter: Option<&str>) -> anyhow::Result<Option<String>> {
    let Some(filter) = filter else { return Ok(None) };
    let program = jq_call(filter).map_or_else(|| filter.to_owned(), |call| call.program);
    JqProgram::compile(&program).with_context(|| format!("{setting} does not compile"))?;
    Ok(Some(program))
}

/// A user's display filter: a plain call of jq, a jq program, or a command for `sh`.
fn users_display(filter: &str, settings: &Settings, project: &Project) -> anyhow::Result<DisplayRoute> {
    if let Some(JqCall { program, join }) = jq_call(filter) {
        JqProgram::compile(&program).context("AGENT_DISPLAY_FILTER does not compile")?;
        return Ok(DisplayRoute::Program { program, join });
    }
    let Err(error) = JqProgram::compile(filter) else {
        return Ok(DisplayRoute::Program { program: filter.to_owned(), join: false });
    };
    let ends_a_word = |char: char| char.is_whitespace() || ";|&<>".contains(char);
    let first = filter.trim_start().split(ends_a_word).next().unwrap_or_default();
    let is_command = project.root().join(first).is_file() && first.contains('/')
        || find_program(first, &search_path(settings)).is_some();
    if !is_command {
        return Err(error).context("AGENT_DISPLAY_FILTER is neither a jq program nor a command on PATH");
    }
    let surroundings = Launch { cwd: project.root().to_owned(), ..Launch::default() };
    Ok(DisplayRoute::Shell(surroundings.shell(filter)))
}

/// A plain call of jq: no pipes, files or options that change what the program means.
#[derive(Debug, PartialEq, Eq)]
struct JqCall {
    program: String,
    /// `-j`: outputs follow each other without newlines.
    join: bool,
}

/// Recognises `jq -r 'PROGRAM'` and similar calls; `None` for anything else.
fn jq_call(text: &str) -> Option<JqCall> {
    let words = shlex::split(text)?;
    let (first, rest) = words.split_first()?;
    if first != "jq" {
        return None;
    }
    let (mut program, mut join) = (None, false);
    for word in rest {
        match word.as_str() {
            "--raw-output" | "--unbuffered" | "--compact-output" | "--monochrome-output" => {}
            "--join-output" => join = true,
            flags if flags.len() > 1 && flags.starts_with('-') => {
                if !flags[1..].chars().all(|flag| "rcjM".contains(flag)) {
                    return None;
                }
                join |= flags.contains('j');
            }
            _ if program.is_none() => program = Some(word.clone()),
            _ => return None,
        }
    }
    // Unquoted, these belong to the shell: `jq -r .text>file`.
    let program = program?;
    let shell_syntax = !text.contains(['\'', '"']) && program.contains(['>', '<', '&', ';', '`', '$']);
    (!shell_syntax).then_some(JqCall { program, join })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_calls_of_jq_are_recognised() {
        let call = |program: &str, join| Some(JqCall { program: program.into(), join });
        assert_eq!(jq_call("jq -r '.text'"), call(".text", false));
        assert_eq!(jq_call("jq -rj --unbuffered \".a | .b\""), call(".a | .b", true));
        assert_eq!(jq_call("jq --raw-output --join-output .text"), call(".text", true));
        for other in [
            "jq -r .a | head",
            "jq -r .a file",
            "jq --arg x 1 .a",
            "jq -n 1",
            "jq -r .a>file",
            "jq",
            "cat",
            ".text",
            "jq 'open",
        ] {
            assert_eq!(jq_call(other), None, "{other}");
        }
    }
}
