//! `ralph doctor`: looks at everything a loop needs and says what to do about each finding.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::cli::DoctorArgs;
use crate::files::theirs;
use crate::git;
use crate::job::agent_choice::Choice;
use crate::job::workspace::{Workspace, find_program, open, search_path};
use crate::process::short::output_within;
use crate::project::Project;
use crate::record::lock;
use crate::text::terminal::message;
use crate::text::{duration, line};

/// The version of the JSON layout.
const SCHEMA: u32 = 1;
/// How long an agent may think about its version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// The longest version that is shown, in characters.
const LONGEST_VERSION: usize = 80;
/// Less free space than this is worth a warning, in bytes: logs of a long loop take hundreds of megabytes.
const ENOUGH_SPACE: u64 = 1 << 30;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be.
    Ok,
    /// A loop runs, but perhaps not as expected.
    Warn,
    /// A loop cannot run.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at: one short lower-case word or two, stable.
    pub check: &'static str,
    /// How it came out.
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

/// What `ralph doctor` needs to know from the settings.
#[derive(Debug, Clone)]
pub struct DoctorOptions {
    /// The agent type that is in force.
    pub agent: String,
    /// Its program, a name or a path; `None` for the built-in scripted agent.
    pub program: Option<String>,
    /// The specs folder, relative to the project root.
    pub specs_dir: PathBuf,
    /// Where programs are looked for: the value of `PATH`.
    pub search_path: OsString,
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
    vec![
        check_git(),
        check_repository(project),
        check_ralph_dir(project),
        check_agent(project, options),
        check_prompt(project, "plan"),
        check_prompt(project, "build"),
        check_specs(project, options),
        check_disk(project),
        check_lock(project),
    ]
}

/// Our errors say "what, where: what to do"; here the last part has a line of its own.
fn from_error(check: &'static str, error: &dyn std::error::Error) -> Finding {
    let message = error.to_string();
    let (detail, fix) = message.rsplit_once(": ").unwrap_or((&message, "mend it"));
    Finding::fail(check, detail, fix)
}

fn check_git() -> Finding {
    match git::git_version() {
        Ok(version) => Finding::ok("git", version),
        Err(error) => from_error("git", &error),
    }
}

fn check_repository(project: &Project) -> Finding {
    match project.require_git() {
        Ok(()) => Finding::ok("repository", project.root().display().to_string()),
        Err(error) => {
            Finding::fail("repository", error.to_string(), "run 'git init' in the project's top folder")
        }
    }
}

/// Looks without creating: a doctor leaves no traces.
fn check_ralph_dir(project: &Project) -> Finding {
    let path = project.ralph_dir();
    let shown = path.display().to_string();
    let existing = path.ancestors().find(|folder| folder.exists()).unwrap_or(path);
    if !existing.is_dir() {
        return Finding::fail(
            "ralph dir",
            format!("{shown}: {} is a file", existing.display()),
            "move that file away",
        );
    }
    let usable = rustix::fs::access(existing, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    match usable {
        Err(error) => {
            Finding::fail("ralph dir", format!("{shown}: {}", io::Error::from(error)), "mend its permissions")
        }
        Ok(()) if existing == path => Finding::ok("ralph dir", shown),
        Ok(()) => Finding::warn("ralph dir", format!("{shown} does not exist yet"), "run 'ralph init'"),
    }
}

fn check_agent(project: &Project, options: &DoctorOptions) -> Finding {
    let agent = &options.agent;
    let Some(program) = &options.program else { return Finding::ok("agent", format!("{agent}, built in")) };
    // With a slash it is a path, as in a shell; an agent is started in the project root.
    let found = if program.contains('/') {
        Some(project.root().join(program)).filter(|path| path.is_file())
    } else {
        find_program(program, &options.search_path)
    };
    let Some(path) = found else {
        let fix = format!("install {program}, or choose another agent with --agent or AGENT_TYPE");
        return Finding::fail("agent", format!("{agent}: {program} is not on PATH"), fix);
    };
    match version_of(&path) {
        Ok(version) => Finding::ok("agent", format!("{agent}, {version}, {}", path.display())),
        Err(reason) => {
            let fix = format!("run '{program} --version' by hand to see whether it works");
            Finding::warn("agent", format!("{agent}, {}: no version ({reason})", path.display()), fix)
        }
    }
}

/// The first line that a program answers to `--version`.
fn version_of(program: &Path) -> Result<String, String> {
    let output = output_within(Command::new(program).arg("--version"), VERSION_LIMIT).map_err(|error| {
        if error.kind() == io::ErrorKind::TimedOut {
            format!("no answer within {}", duration::format(VERSION_LIMIT))
        } else {
            error.to_string()
        }
    })?;
    if !output.status.success() {
        return Err(output.status.to_string());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let line = line::first(&said).ok_or("it said nothing")?;
    Ok(line::one_line_within(line, LONGEST_VERSION))
}

fn check_prompt(project: &Project, mode: &'static str) -> Finding {
    let check = if mode == "plan" { "plan prompt" } else { "build prompt" };
    let path = project.prompt(mode);
    let shown = project.relative(&path).display().to_string();
    match theirs::read(&path, theirs::MAX_TEXT) {
        Ok(content) if content.trim_ascii().is_empty() => Finding::fail(
            check,
            format!("{shown} is empty"),
            "write it, or remove it to use the built-in one",
        ),
        Ok(_) => Finding::ok(check, shown),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Finding::ok(check, "built in"),
        Err(error) => Finding::fail(check, format!("{shown}: {error}"), "make it a readable file"),
    }
}

fn check_specs(project: &Project, options: &DoctorOptions) -> Finding {
    let shown = options.specs_dir.display();
    let path = project.root().join(&options.specs_dir);
    let fix = "run 'ralph init' and write down there what you want, or set SPECS_DIR";
    match std::fs::read_dir(&path) {
        Err(error) => Finding::fail("specs", format!("{shown}: {error}"), fix),
        Ok(files) => {
            match files.filter_map(Result::ok).filter(|file| file.file_name() != "README.md").count() {
                0 => Finding::warn(
                    "specs",
                    format!("{shown}: nothing but the README"),
                    "write down there what you want",
                ),
                1 => Finding::ok("specs", format!("{shown}, 1 entry")),
                count => Finding::ok("specs", format!("{shown}, {count} entries")),
            }
        }
    }
}

fn check_disk(project: &Project) -> Finding {
    let existing = project.ralph_dir().ancestors().find(|folder| folder.exists()).unwrap_or(project.root());
    match rustix::fs::statvfs(existing) {
        Err(error) => {
            Finding::warn("disk", io::Error::from(error).to_string(), "check the file system by hand")
        }
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let detail = format!("{} MiB free", free >> 20);
            if free < ENOUGH_SPACE {
                Finding::warn("disk", detail, "free some space: logs and work trees grow")
            } else {
                Finding::ok("disk", detail)
            }
        }
    }
}

fn check_lock(project: &Project) -> Finding {
    match lock::holder(&project.lock()) {
        Err(error) => from_error("lock", &error),
        Ok(None) => Finding::ok("lock", "free"),
        Ok(Some(holder)) => Finding::warn(
            "lock",
            format!("a loop is running: ralph {}, pid {}", holder.mode, holder.identity.pid),
            "a second one in this ralph dir is refused until it ends",
        ),
    }
}

/// Lines with a mark in colour; a stream that is no terminal is to strip the colour.
fn print(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    for finding in findings {
        let (mark, colour) = match finding.status {
            Health::Ok => ('✓', AnsiColor::Green),
            Health::Warn => ('!', AnsiColor::Yellow),
            Health::Fail => ('✗', AnsiColor::Red),
        };
        let style = Style::new().fg_color(Some(colour.into()));
        writeln!(out, "{style}{mark}{style:#} {:<12}  {}", finding.check, message(&finding.detail))?;
        if let Some(fix) = &finding.fix {
            writeln!(out, "                → {}", message(fix))?;
        }
    }
    Ok(())
}

/// `ralph doctor`.
pub(super) fn doctor(args: &DoctorArgs) -> anyhow::Result<u8> {
    let Workspace { project, settings } = open(&args.place)?;
    let choice = Choice::of(&settings, &project);
    let options = DoctorOptions {
        agent: choice.as_ref().map_or(settings.agent_type.as_str(), Choice::name).to_owned(),
        program: choice.as_ref().ok().and_then(Choice::program_name),
        specs_dir: settings.specs_dir.clone().into(),
        search_path: search_path(&settings),
        json: args.json,
    };
    let filters = choice.and_then(|choice| choice.compile(&settings, &project).map(drop));
    let finding = match filters {
        Ok(()) => Finding::ok("filters", "compile"),
        Err(error) => Finding::fail("filters", format!("{error:#}"), "mend the setting it names"),
    };
    let mut healthy = true;
    super::print(|out| {
        healthy = run(&project, &options, vec![finding], out).map_err(std::io::Error::other)?;
        Ok(())
    })?;
    Ok(u8::from(!healthy))
}

#[cfg(test)]
mod tests;
