//! `ralph init`: sets a project up, without changing existing files.

pub(super) mod place;
mod tools;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::cli::{InitArgs, PlaceArgs};
use crate::git;
use crate::job::workspace;
use crate::presets::{self, Preset, Protocol};
use crate::process::programs::find_program;
use crate::project::Project;
use crate::text::line::shell_words;
use crate::text::terminal::message;
use crate::text::wrap::wrapped;
use place::{Placed, place};
use tools::Tools;

const PLAN_PROMPT: &str = include_str!("../../prompts/plan.md");
const BUILD_PROMPT: &str = include_str!("../../prompts/build.md");
const SPECS_README: &str = include_str!("init/specs.md");
const AGENTS_MD: &str = include_str!("init/agents.md");
const CONFIG: &str = include_str!("init/config");
const NO_AGENT: &str = include_str!("init/config.no-agent");

/// The options of `ralph init`.
#[derive(Debug, Clone)]
pub struct InitOptions {
    /// The agent type to enter in the config (`--agent`); otherwise the first installed one.
    pub agent: Option<String>,
    /// Rewrite ralph's own files, config and prompts, where they exist; a copy is kept. `AGENTS.md` and the specs never are.
    pub force: bool,
    /// Whether a setting already says how work is validated.
    pub validates: bool,
    /// The specs folder, relative to the project root.
    pub specs_dir: PathBuf,
    /// The value of `PATH`.
    pub search_path: OsString,
}

/// Sets the project up and writes to `out` what was done, what was kept and what to do next.
pub fn run(project: &Project, options: &InitOptions, out: &mut dyn Write) -> anyhow::Result<()> {
    let installed = installed(&options.search_path);
    let agent = choose_agent(options.agent.as_deref(), &installed)?;
    project.require_git()?;
    project.create_ralph_dir()?;

    let specs = project.root().join(&options.specs_dir);
    let tools = Tools::of(project.root());
    let config = config_text(agent, &tools)?;
    let agents = tools.agents_md(AGENTS_MD);
    let files: [(PathBuf, &str, bool); 5] = [
        (project.config(), &config, options.force),
        (project.prompt("plan"), PLAN_PROMPT, options.force),
        (project.prompt("build"), BUILD_PROMPT, options.force),
        (specs.join("README.md"), SPECS_README, false),
        (project.root().join("AGENTS.md"), &agents, false),
    ];
    writeln!(out, "Setting up ralph in {}", shown(project.root()))?;
    let mut placed = Vec::new();
    for (path, content, replace) in &files {
        let done = place(project.root(), path, content, *replace)?;
        let copy = done.copy().map_or_else(String::new, |copy| {
            format!(" (what it was is in {})", shown(&project.relative(copy)))
        });
        writeln!(out, "  {:<9} {}{copy}", done.word(), shown(&project.relative(path)))?;
        placed.push(done);
    }
    enter_ignore_rules(project, out)?;
    writeln!(out)?;
    let is_kept = matches!(placed[0], Placed::Kept);
    tell_agent(project, options, &installed, agent, is_kept, out)?;
    tell_tools(project, options, &tools, is_kept, out)?;
    tell_next_steps(project, &specs, out)?;
    Ok(())
}

/// The agents whose programs are on this `PATH`, in the order of preference.
pub(super) fn installed(search_path: &OsStr) -> Vec<&'static str> {
    let is_there = |preset: &&Preset| find_program(preset.cli, search_path).is_some();
    presets::named().filter(is_there).map(|preset| preset.name).collect()
}

pub(super) fn choose_agent<'a>(
    wanted: Option<&'a str>,
    installed: &[&'a str],
) -> anyhow::Result<Option<&'a str>> {
    let Some(wanted) = wanted else { return Ok(installed.first().copied()) };
    // A command line names its protocol itself.
    let command = wanted.strip_prefix("acp:").map(|_| shlex::split(wanted));
    if command.as_ref().is_some_and(Option::is_none) {
        anyhow::bail!("agent '{wanted}' is no command line: a quote is not closed");
    }
    let speaks_acp = command.flatten().is_some_and(|words| words.first().is_some_and(|word| word != "acp:"));
    if speaks_acp || presets::preset(wanted).is_some() {
        return Ok(Some(wanted));
    }
    anyhow::bail!(
        "unknown agent type, '{wanted}': {}use one of {}, or acp:COMMAND",
        presets::meant(wanted),
        presets::names().join(", ")
    )
}

/// The config with the agent entered. Without an agent, none is chosen: a scripted one would let the user believe that work
/// is being done.
fn config_text(agent: Option<&str>, tools: &Tools) -> anyhow::Result<String> {
    let choice = match agent {
        None => NO_AGENT.trim_end().to_owned(),
        Some("custom") => {
            "AGENT_TYPE=custom\n# Your program; it reads the prompt on stdin.\n# AGENT_CLI=my-agent"
                .to_owned()
        }
        Some("acp") => "AGENT_TYPE=acp\n# Your program; it speaks the Agent Client Protocol over stdin and \
                        stdout.\n# AGENT_CLI='my-agent acp'"
            .to_owned(),
        Some(agent) => format!("AGENT_TYPE={}", shlex::try_quote(agent)?),
    };
    let validation = match tools.validation() {
        Some(command) => format!("VALIDATION_COMMAND={}", shlex::try_quote(&command)?),
        None => "# VALIDATION_COMMAND='make test'".to_owned(),
    };
    Ok(CONFIG.replace("@AGENTS@", &agents()).replace("@AGENT@", &choice).replace("@VALIDATION@", &validation))
}

/// The possible agents, as comments.
fn agents() -> String {
    let over_acp = |preset: &&Preset| {
        preset.protocol == Protocol::Acp && !preset.cli.is_empty() && preset.title.is_empty()
    };
    let text = format!(
        "The coding agent: {}, script (built in, for trying things out) or custom; {} or acp:COMMAND for one that speaks the \
         Agent Client Protocol.",
        presets::sorted(presets::named()).join(", "),
        presets::sorted(presets::all().filter(over_acp)).join(", ")
    );
    let lines = wrapped(&text, 126, usize::MAX);
    lines.iter().map(|line| format!("# {line}")).collect::<Vec<_>>().join("\n")
}

/// The rules keep run-time files out of commits; a repository that cannot be written is no reason to stop here.
fn enter_ignore_rules(project: &Project, out: &mut dyn Write) -> io::Result<()> {
    match git::exclude(project.root(), &git::runtime_patterns(project)) {
        Ok(true) => {
            writeln!(out, "  {:<9} ignore rules for run-time files, in git's info/exclude", "written")
        }
        Ok(false) => writeln!(out, "  {:<9} ignore rules for run-time files, in git's info/exclude", "kept"),
        Err(error) => writeln!(out, "  warning: {}", message(&error.to_string())),
    }
}

fn tell_agent(
    project: &Project,
    options: &InitOptions,
    installed: &[&str],
    agent: Option<&str>,
    is_kept: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let path = project.relative(&project.config());
    let path = shown(&path);
    if is_kept {
        writeln!(out, "Agent: as {path} says, which was kept.")?;
        if let Some(wanted) = &options.agent {
            let wanted = shell_words([&OsString::from(wanted)]);
            writeln!(
                out,
                "  To use {wanted}, set AGENT_TYPE={wanted} there, or run 'ralph init --force --agent {wanted}'."
            )?;
        }
        return Ok(());
    }
    let Some(agent) = agent else {
        writeln!(
            out,
            "Agent: none found on PATH ({}).",
            presets::named().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
        )?;
        return writeln!(
            out,
            "  Install one and set AGENT_TYPE in {path}; 'ralph demo' shows ralph without one."
        );
    };
    let others: Vec<&str> = installed.iter().copied().filter(|other| *other != agent).collect();
    match others.as_slice() {
        [] => writeln!(out, "Agent: {agent}.")?,
        _ => writeln!(
            out,
            "Agent: {agent}; also installed: {}. AGENT_TYPE in {path} decides.",
            others.join(", ")
        )?,
    }
    if let Some(preset) = presets::preset(agent).filter(|preset| !preset.cli.is_empty())
        && find_program(preset.cli, &options.search_path).is_none()
    {
        let program = preset.cli;
        writeln!(
            out,
            "  {program} is not on PATH yet: install it before the first loop ({}).",
            preset.install
        )?;
    }
    Ok(())
}

/// The validation command, and where it comes from.
fn tell_tools(
    project: &Project,
    options: &InitOptions,
    tools: &Tools,
    is_kept: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let path = project.relative(&project.config());
    let path = shown(&path);
    let Some(command) = tools.validation() else {
        if options.validates {
            return Ok(());
        }
        writeln!(out, "Tests: none found: {}.", tools::without_tests(project.root()))?;
        return writeln!(
            out,
            "  Without them nothing proves the work: COMPLETE is the agent's word, and nothing tells the next agent \
             what it broke. Set VALIDATION_COMMAND in {path}."
        );
    };
    if is_kept && options.validates {
        return Ok(());
    }
    writeln!(out, "Tests: {command}, as {}.", tools.say_so())?;
    if is_kept {
        let command = shell_words([&OsString::from(&command)]);
        writeln!(
            out,
            "  To prove each iteration by it, set VALIDATION_COMMAND={command} in {path}, which was kept."
        )?;
    } else {
        writeln!(
            out,
            "  It proves each iteration: VALIDATION_COMMAND in {path} decides. It was not run yet."
        )?;
    }
    for program in tools.programs() {
        if find_program(program, &options.search_path).is_none() {
            writeln!(out, "  {program} is not on PATH yet.")?;
        }
    }
    Ok(())
}

fn tell_next_steps(project: &Project, specs: &Path, out: &mut dyn Write) -> io::Result<()> {
    let specs = project.relative(specs);
    let to_commit = [project.config(), project.ralph_dir().join("prompts"), project.root().join("AGENTS.md")]
        .iter()
        .map(|path| project.relative(path))
        .chain([specs.clone()])
        .filter(|path| path.is_relative())
        .map(|path| quoted(&path))
        .collect::<Vec<_>>()
        .join(" ");
    let plan = project.relative(&project.implementation_plan());
    writeln!(out, "\nNext:")?;
    writeln!(
        out,
        "  1.  Write down what you want in {0}/ ({0}/README.md says how), and in AGENTS.md how this project is built and \
         tested.",
        shown(&specs)
    )?;
    writeln!(out, "  2.  git add {to_commit} && git commit -m 'Set up ralph'")?;
    writeln!(out, "  3.  ralph plan     (an agent compares specs and code and writes {})", shown(&plan))?;
    writeln!(out, "  4.  ralph build    (agents work through that plan, one task each)")
}

/// A path in a line for the user.
fn shown(path: &Path) -> String {
    message(&path.display().to_string())
}

/// A path as a word for the user's shell.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    shlex::try_quote(&text).map_or_else(|_| text.to_string(), |quoted| quoted.to_string())
}

/// `ralph init`.
pub(super) fn init(args: InitArgs) -> anyhow::Result<u8> {
    let project = workspace::locate(args.ralph_dir.as_ref())?;
    let settings =
        workspace::open(&PlaceArgs { ralph_dir: args.ralph_dir, ..PlaceArgs::default() })?.settings;
    let options = InitOptions {
        agent: args.agent,
        force: args.force,
        validates: settings.validation_command.is_some(),
        specs_dir: settings.specs_dir.clone().into(),
        search_path: std::env::var_os("PATH").unwrap_or_default(),
    };
    // Everything is done before anything is printed: a reader that closes the pipe does not stop the work half-way.
    let mut told = Vec::new();
    let done = run(&project, &options, &mut told);
    super::output::print_for_people(|out| out.write_all(&told))?;
    done.map(|()| 0)
}

#[cfg(test)]
mod tests;
