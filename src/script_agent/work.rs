//! What the scripted agent does: plans from the bullets of the specs, builds one task per run, commits what it did.

use super::Agent;
use super::program::{CHECKS, MARK, Program};
use crate::files::atomic;
use crate::files::theirs;
use crate::plan::Plan;
use crate::reply::sigil::COMPLETE;
use crate::text::count;
use anyhow::{Context as _, bail, ensure};
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) const CHECK_FILE: &str = "check.sh";
/// The plan of branches: at the project root; in the work tree of a branch, its copy.
const BRANCH_PLAN: &str = "IMPLEMENTATION_PLAN.md";
pub(super) const FORM: &str = "`NAME.sh WORDS` prints `TEXT`";

const STATUS: &str = "- Status: ";
const DESCRIPTION: &str = "- Description: ";

impl Agent<'_> {
    /// One run in the mode of its place.
    pub(super) fn act(&mut self) -> anyhow::Result<()> {
        match self.place.mode.as_str() {
            "plan" => self.plan(),
            "build" => self.build(),
            "tasks" => self.task(),
            "feature" => self.author(),
            _ => self
                .text(&format!("I am the scripted agent, I change nothing for this prompt.\n\n{COMPLETE}")),
        }
    }

    /// Adds what the specs ask for and the plan does not have.
    fn plan(&mut self) -> anyhow::Result<()> {
        self.text("I read the specs and compare them with the plan.")?;
        let file = self.plan_file();
        let before = self.read(&file)?.unwrap_or_else(|| "# Implementation plan\n".to_owned());
        let mut plan = before.clone();
        let mut count = 0;
        for spec in self.spec_files()? {
            self.tool("read", &spec)?;
            let markdown = self.read(&spec)?.unwrap_or_default();
            let requirements = requirements(&markdown);
            count += requirements.len();
            let add = if self.place.plans_branches { add_branch } else { add_tasks };
            add(&mut plan, &spec, &requirements)?;
        }
        let specs = self.place.specs.display();
        ensure!(count > 0, "no requirement that I can build in {specs}/*.md: write a line `- {FORM}`");
        if plan != before {
            self.tool("write", &file)?;
            self.write(&file, &plan)?;
        }
        if !self.place.plans_branches {
            let why = "So that the build can take them one by one.";
            self.commit(&[&file], &format!("Plan: a task for each requirement of the specs\n\n{why}"))?;
        }
        self.text(&format!(
            "{} that I can build; each one is in the plan.\n\n{COMPLETE}",
            count::of(count as u64, "requirement")
        ))
    }

    /// Does the first open task.
    fn build(&mut self) -> anyhow::Result<()> {
        let file = self.plan_file();
        self.tool("read", &file)?;
        let plan = self.read(&file)?.with_context(|| format!("there is no plan at {file}: plan first"))?;
        let open = match &self.place.branch {
            Some(branch) => open_in_branch(&plan, branch)?,
            None => open_tasks(&plan)?,
        };
        let Some((line, text)) = open.first() else {
            return self.text(&format!("The plan has no open task.\n\n{COMPLETE}"));
        };
        let title = title(text);
        self.text(&format!("Next task: {title}"))?;
        let program = self.build_program(title, text)?;
        self.tool("write", &file)?;
        self.write(&file, &settled(&plan, *line))?;
        let mut changed = vec![program.as_str(), CHECK_FILE];
        if self.place.branch.is_none() {
            changed.push(&file);
        }
        self.commit(&changed, &format!("{title}\n\nThe plan asks for it: {text}\nProven by {CHECK_FILE}."))?;
        self.text(&match open.len() - 1 {
            0 => format!("{title}: built, all checks pass. Nothing else is open.\n\n{COMPLETE}"),
            left => {
                let left = count::of(left as u64, "task");
                format!("{title}: built, all checks pass. {left} to be done in later iterations.")
            }
        })
    }

    /// Builds what a requirement asks for: its check first, then the code, then all checks. Answers the script's name.
    pub(super) fn build_program(&mut self, title: &str, text: &str) -> anyhow::Result<String> {
        let program = Program::find(text).with_context(|| format!("I can only build {FORM}, not: {text}"))?;
        self.grow(CHECK_FILE, &format!("{MARK}{CHECKS}"), &program.check())?;
        self.grow(&program.file, MARK, &program.lines(title))?;
        self.tool("bash", &format!("sh {CHECK_FILE}"))?;
        self.run("sh", &[CHECK_FILE])?;
        Ok(program.file)
    }

    /// Adds lines to a script of ours, unless they are in it; a new one begins with `head`.
    fn grow(&mut self, file: &str, head: &str, lines: &str) -> anyhow::Result<()> {
        let text = self.read(file)?.unwrap_or_else(|| head.to_owned());
        ensure!(text.starts_with(MARK), "{file} was not written by ralph: rename it");
        if !text.contains(lines) {
            self.tool("write", file)?;
            self.write(file, &(text + lines))?;
        }
        Ok(())
    }

    /// Commits these files and nothing else; those that did not change or that git ignores are left out.
    pub(super) fn commit(&mut self, files: &[&str], message: &str) -> anyhow::Result<()> {
        let git = |agent: &Self, arguments: &[&str], files: &[&str]| {
            agent.run("git", &[&["--literal-pathspecs"], arguments, &["--"], files].concat())
        };
        let mut changed = Vec::new();
        for file in files {
            if !git(self, &["status", "--porcelain"], &[file])?.is_empty() {
                changed.push(*file);
            }
        }
        if changed.is_empty() {
            return self.text("Git has what I changed already, or ignores it: there is no commit.");
        }
        self.tool("bash", "git commit")?;
        git(self, &["add"], &changed)?;
        git(self, &["commit", "--quiet", "--message", message], &changed)?;
        Ok(())
    }

    /// The plan, relative to the root; a home of `.` would make it look odd.
    fn plan_file(&self) -> String {
        if self.place.plans_branches || self.place.branch.is_some() {
            return BRANCH_PLAN.to_owned();
        }
        let home = self.place.home.strip_prefix(".").unwrap_or(&self.place.home);
        home.join("implementation_plan.md").display().to_string()
    }

    /// The spec files in order of name.
    fn spec_files(&self) -> anyhow::Result<Vec<String>> {
        let folder = &self.place.specs;
        let entries = fs::read_dir(self.place.root.join(folder));
        let entries = entries.with_context(|| format!("cannot read {}", folder.display()))?;
        let files = entries.flatten().map(|entry| folder.join(entry.file_name()));
        let specs = files.filter(|file| file.extension().is_some_and(|extension| extension == "md"));
        let mut specs: Vec<String> = specs.map(|file| file.display().to_string()).collect();
        specs.sort();
        Ok(specs)
    }

    /// The text of a file below the root; `None` when there is no such file.
    pub(super) fn read(&self, file: &str) -> anyhow::Result<Option<String>> {
        match theirs::text(&self.place.root.join(file)) {
            Err(error) if error.kind() == NotFound => Ok(None),
            result => result.map(Some).with_context(|| format!("cannot read {file}")),
        }
    }

    pub(super) fn write(&self, file: &str, text: &str) -> anyhow::Result<()> {
        Ok(atomic::write_theirs(&self.place.root.join(file), text.as_bytes())?)
    }

    /// What a command prints in the root; an error with its first words when it fails.
    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(program);
        let ended = command.args(arguments).current_dir(&self.place.root).stdin(Stdio::null()).output();
        let ended = ended.with_context(|| format!("cannot start {program}"))?;
        let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
        if !ended.status.success() {
            let stderr = String::from_utf8_lossy(&ended.stderr);
            // What the checks say about the one that failed comes last.
            let reason = stderr.lines().find(|line| !line.trim().is_empty()).or(stdout.lines().last());
            let name = arguments.iter().find(|argument| !argument.starts_with('-')).unwrap_or(&"");
            bail!("{program} {name} failed: {}", reason.unwrap_or("no reason given").trim());
        }
        Ok(stdout)
    }
}

/// The bullets of a spec that ask for a program, one line each.
fn requirements(spec: &str) -> Vec<&str> {
    let bullets = spec.lines().filter_map(|line| line.trim().strip_prefix("- "));
    bullets.filter(|text| Program::find(text).is_some()).collect()
}

/// What stands before the first `: `, else the whole text.
pub(super) fn title(requirement: &str) -> &str {
    requirement.split_once(": ").map_or(requirement, |(title, _)| title)
}

/// Adds a task for each requirement that has none, in the form that the planning prompt asks for.
fn add_tasks(plan: &mut String, spec: &str, requirements: &[&str]) -> anyhow::Result<()> {
    for text in requirements {
        let description = format!("{DESCRIPTION}{text}\n");
        if !plan.contains(&description) {
            let number = plan.matches(STATUS).count() + 1;
            write!(plan, "\n## {number}. {}\n{STATUS}planned\n- Spec: {spec}\n{description}", title(text))?;
        }
    }
    Ok(())
}

/// Adds a branch with a task for each requirement that is in none.
fn add_branch(plan: &mut String, spec: &str, requirements: &[&str]) -> anyhow::Result<()> {
    let sections = parse(plan)?.sections;
    let known = |text: &str| sections.iter().flat_map(|section| &section.tasks).any(|task| task.text == text);
    let missing: Vec<&str> = requirements.iter().copied().filter(|text| !known(text)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let stem = Path::new(spec).file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let mut name = stem.replace(|char: char| !char.is_ascii_alphanumeric(), "-");
    if sections.iter().any(|section| section.name == name) {
        write!(name, "-{}", sections.len() + 1)?;
    }
    write!(plan, "\n## Branch: {name}\nGoal: Do what {spec} asks for\n\n")?;
    missing.iter().try_for_each(|text| writeln!(plan, "- [ ] {text}"))?;
    Ok(())
}

/// The open tasks of a plan as the planning prompt asks for it: the line of each one's status, and its description.
fn open_tasks(plan: &str) -> anyhow::Result<Vec<(usize, String)>> {
    ensure!(plan.contains(STATUS), "the plan has no task with a line `{STATUS}planned`: plan first");
    let mut tasks = Vec::new();
    let mut open = None;
    for (number, line) in plan.lines().enumerate() {
        if let Some(status) = line.strip_prefix(STATUS) {
            open = (status != "complete").then_some(number);
        } else if let Some(text) = line.strip_prefix(DESCRIPTION) {
            tasks.extend(open.take().map(|number| (number, text.to_owned())));
        }
    }
    Ok(tasks)
}

/// The open tasks of one branch: the line of each one's box, and its text.
fn open_in_branch(plan: &str, branch: &str) -> anyhow::Result<Vec<(usize, String)>> {
    let section = parse(plan)?.sections.into_iter().find(|section| section.name == branch);
    let section = section.with_context(|| format!("{BRANCH_PLAN} has no section '## Branch: {branch}'"))?;
    let open = section.tasks.into_iter().filter(|task| !task.ticked);
    Ok(open.map(|task| (task.line - 1, task.text)).collect())
}

/// Names are for ralph to judge: it has read the plan before.
fn parse(plan: &str) -> anyhow::Result<Plan> {
    Plan::parse(plan, &|_| true).with_context(|| format!("cannot use {BRANCH_PLAN}"))
}

/// `plan` with the status or the box in this line (from 0) settled.
fn settled(plan: &str, task: usize) -> String {
    let settle = |(number, line): (usize, &str)| {
        if number != task {
            line.to_owned()
        } else if line.starts_with(STATUS) {
            format!("{STATUS}complete\n")
        } else {
            line.replacen("[ ]", "[x]", 1)
        }
    };
    plan.split_inclusive('\n').enumerate().map(settle).collect()
}
