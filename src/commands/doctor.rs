//! `ralph doctor`: checks everything that a loop needs and says what to do about each finding.

mod agent;
mod commits;
mod installed;
mod place;
mod platform;
mod probe;
mod session;
mod store;
mod supervision;
mod validation;
mod walls;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::graph_file;
use crate::agent::spec::AgentSpec;
use crate::cli::DoctorArgs;
use crate::job::agent_choice;
use crate::job::workspace::{Workspace, open, search_path};
use crate::notify::DESKTOP_PROGRAM;
use crate::presets::{self, Preset};
use crate::process::programs::find_program;
use crate::project::Project;
use crate::settings::notify::Target;
use crate::settings::{GitSettings, Origin, Settings};
use crate::text::duration;
use crate::text::palette;
use crate::text::terminal::message;

/// The version of the JSON layout.
const SCHEMA: u32 = 1;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// All is well.
    Ok,
    /// A loop runs, but perhaps not as expected.
    Warn,
    /// A loop cannot run.
    Fail,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked: one short lower-case word or two, stable.
    pub check: &'static str,
    /// The result.
    pub status: Health,
    /// What was found, one line.
    pub detail: String,
    /// What to do about it; absent when all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    /// All is well.
    #[must_use]
    pub fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, status: Health::Ok, detail: detail.into(), fix: None }
    }

    /// A loop runs, but perhaps not as expected; `fix` says what to do.
    #[must_use]
    pub fn warn(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, status: Health::Warn, detail: detail.into(), fix: Some(fix.into()) }
    }

    /// A loop cannot run; `fix` says what to do.
    #[must_use]
    pub fn fail(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, status: Health::Fail, detail: detail.into(), fix: Some(fix.into()) }
    }
}

/// What `ralph doctor` needs to know besides the project.
#[derive(Debug, Clone)]
pub struct DoctorOptions {
    /// The agent type in use.
    pub agent: String,
    /// Where it is named, if that is no general setting: a list, or the setting of a phase.
    pub named_by: Option<String>,
    /// Its program, a name or a path; `None` for the built-in scripted agent.
    pub program: Option<String>,
    /// Why the agent does not exist, or cannot have these settings.
    pub refused: Option<String>,
    /// The preset of its kind.
    pub preset: &'static Preset,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where the project says how it is started, in a way that could run any program; `None`: the project says nothing about it.
    pub started_by: Option<String>,
    /// Variables that it gets besides our environment, from the project's config. A program that is only asked gets none of them:
    /// some variables make it run other programs.
    pub env: Vec<(OsString, OsString)>,
    /// Whether we are root.
    pub as_root: bool,
    /// The settings of branches.
    pub git: GitSettings,
    /// The specs folder, relative to the project root.
    pub specs_dir: PathBuf,
    /// The value of `PATH`.
    pub search_path: OsString,
    /// How long each program may take to answer; `None`: the default of its kind.
    pub timeout: Option<Duration>,
    /// Print JSON instead of lines for people.
    pub json: bool,
}

/// Examines the project, adds `extra` findings (filters, settings) and prints everything. True when nothing failed.
pub fn run(
    project: &Project,
    options: &DoctorOptions,
    extra: Vec<Finding>,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let mut findings = examine(project, options);
    findings.extend(extra);
    let healthy = findings.iter().all(|finding| finding.status != Health::Fail);
    if options.json {
        let report = serde_json::json!({ "schema": SCHEMA, "ok": healthy, "findings": findings });
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        print(&findings, out)?;
    }
    Ok(healthy)
}

fn examine(project: &Project, options: &DoctorOptions) -> Vec<Finding> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut findings = vec![platform::check()];
    findings.extend(platform::check_drive(project.root()));
    findings.extend(installed::check(std::env::current_exe().ok(), &path));
    findings.extend([place::check_git(), place::check_repository(project), place::check_ralph_dir(project)]);
    findings.push(place::check_state_folder(project));
    findings.extend(agent::check(project, options));
    findings.extend([
        place::check_prompt(project, "plan"),
        place::check_prompt(project, "build"),
        place::check_specs(project, options),
        place::check_disk(project),
        place::check_lock(project),
        place::check_records(project),
        place::check_panes(),
    ]);
    findings.extend(commits::check(project, options));
    findings
}

/// Lines with a mark in colour; the caller's stream removes colours if it is no terminal.
fn print(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    for finding in findings {
        let (mark, style) = match finding.status {
            Health::Ok => ('✓', palette::GOOD),
            Health::Warn => ('!', palette::NOTE),
            Health::Fail => ('✗', palette::ERROR),
        };
        writeln!(out, "{style}{mark}{style:#} {:<12}  {}", finding.check, message(&finding.detail))?;
        if let Some(fix) = &finding.fix {
            writeln!(out, "                → {}", message(fix))?;
        }
    }
    Ok(())
}

/// `ralph doctor`.
pub(super) fn doctor(args: &DoctorArgs) -> anyhow::Result<u8> {
    if args.supervision {
        return supervision::play(args.json);
    }
    let Workspace { project, settings } = open(&args.place)?;
    let agent = agent_choice::of_settings(&settings, &project);
    let options = options(&settings, &agent, args)?;
    let mut extra = Vec::from_iter(check_filters(&settings, &agent, &project));
    extra.extend(check_other_agents(&project, &settings, &options, args)?);
    extra.push(walls::check(&project, &settings, options.preset));
    extra.push(validation::check(&project, &settings, options.env.clone(), args.validate));
    if !settings.warnings.is_empty() {
        extra.push(Finding::warn("settings", settings.warnings.join("; "), "fix the file it names"));
    }
    if let Some(address) = graph_file::address(args.store.as_deref(), &settings)? {
        extra.extend(store::check(address, &project));
    } else {
        extra.extend(store::check_file(&project));
    }
    if settings.notify.has(Target::Desktop) {
        extra.push(desktop());
    }
    let mut healthy = true;
    let render = |out: &mut Vec<u8>| {
        healthy = run(&project, &options, extra, out).map_err(std::io::Error::other)?;
        Ok(())
    };
    if args.json {
        super::print(render)?
    } else {
        super::output::print_for_people(render)?
    };
    Ok(u8::from(!healthy))
}

/// Whether what reads the agent of these settings compiles; `None`: there is no such agent.
fn check_filters(
    settings: &Settings,
    agent: &anyhow::Result<AgentSpec>,
    project: &Project,
) -> Option<Finding> {
    Some(match agent_choice::reading(agent.as_ref().ok()?, settings, project) {
        Ok(_) => Finding::ok("filters", "compile"),
        Err(error) => Finding::fail("filters", format!("{error:#}"), "fix the setting it names"),
    })
}

/// Checks the agents that go on in the place of the one of `settings`, and those of phases. Each is checked once, whatever models it
/// is to use; `general` is what was checked of that one.
fn check_other_agents(
    project: &Project,
    settings: &Settings,
    general: &DoctorOptions,
    args: &DoctorArgs,
) -> anyhow::Result<Vec<Finding>> {
    let (mut checked, mut findings) = (vec![general.clone()], Vec::new());
    for settings in settings.other_agents()? {
        let agent = agent_choice::of_settings(&settings, project);
        let options = options(&settings, &agent, args)?;
        let is_same = |other: &DoctorOptions| {
            let told = |options: &DoctorOptions| {
                (options.agent.clone(), options.program.clone(), options.refused.clone(), options.env.clone())
            };
            told(other) == told(&options)
        };
        if checked.iter().any(is_same) {
            continue;
        }
        let account = settings.account.as_ref().map(|account| format!("@{}", account.name));
        let name = format!("{}{}", options.agent, account.unwrap_or_default());
        let filters = check_filters(&settings, &agent, project).filter(|found| found.status != Health::Ok);
        let found = agent::check(project, &options).into_iter().chain(filters);
        findings.extend(found.map(|one| Finding { detail: format!("{name}: {}", one.detail), ..one }));
        checked.push(options);
    }
    Ok(findings)
}

/// What is checked of the agent of these settings; `agent` is what they make of it.
fn options(
    settings: &Settings,
    agent: &anyhow::Result<AgentSpec>,
    args: &DoctorArgs,
) -> anyhow::Result<DoctorOptions> {
    let known = agent.as_ref();
    let of_account =
        settings.account.as_ref().map(|account| account.variables(|name| std::env::var(name).ok()));
    let mut env = settings.exported();
    let refused = match of_account.transpose() {
        Ok(variables) => {
            env.extend(variables.into_iter().flatten().map(|(name, value)| (name.into(), value.into())));
            known.err().map(|error| format!("{error:#}"))
        }
        Err(why) => Some(why),
    };
    Ok(DoctorOptions {
        agent: known.map_or(&settings.agent_type, |agent| &agent.name).clone(),
        named_by: settings.agent_named_elsewhere(),
        program: known.ok().and_then(|agent| agent.program.clone()),
        refused,
        preset: known.map_or(presets::unknown(), |agent| agent.preset),
        args: known.map_or_else(|_| Vec::new(), |agent| agent.args.clone()),
        started_by: started_by(settings),
        env,
        as_root: rustix::process::geteuid().is_root(),
        git: settings.git.clone(),
        specs_dir: settings.specs_dir.clone().into(),
        search_path: search_path(settings),
        timeout: args.timeout.as_deref().map(duration::parse).transpose()?,
        json: args.json,
    })
}

/// The program that shows notices on the desktop. ralph starts it, with its own `PATH`.
fn desktop() -> Finding {
    match find_program(DESKTOP_PROGRAM, &std::env::var_os("PATH").unwrap_or_default()) {
        Some(path) => Finding::ok("desktop", format!("{}; 'ralph notify test' tries it", path.display())),
        None => Finding::warn(
            "desktop",
            format!("{DESKTOP_PROGRAM} is not on PATH: the desktop shows no notices"),
            "install it (Debian, Ubuntu: libnotify-bin; Fedora, Arch: libnotify), or set notify.desktop = false",
        ),
    }
}

/// The place in the project's own settings that changes the agent's command line or variables.
fn started_by(settings: &Settings) -> Option<String> {
    let is_of_project =
        |origin: &Origin| matches!(origin, Origin::ProjectToml { .. } | Origin::ShellConfig { .. });
    let is_command = presets::preset(&settings.agent_type).is_none();
    let keys = ["agent.cli", "agent.args", "agent.extra_args"].into_iter();
    let rows = keys.chain(is_command.then_some("agent.provider")).filter_map(|key| settings.row(key));
    let row = rows.into_iter().find(|row| is_of_project(&row.origin) && !row.value.is_empty());
    let exported = settings.exports.keys().next().map(|name| format!("the config, which exports {name}"));
    row.map(|row| format!("{} ({})", row.origin, row.setting.key)).or(exported)
}

#[cfg(test)]
mod tests;
