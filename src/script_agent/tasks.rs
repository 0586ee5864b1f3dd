//! What the scripted agent does for tasks and features: it does what a task asks for, looks whether it is done, and writes spec,
//! plan and tasks of the requirements in the brief. All it goes by is the prompt.

use super::Agent;
use super::program::Program;
use super::work::{CHECK_FILE, FORM, title};
use crate::text::count;
use anyhow::{Context as _, ensure};
use std::fmt::Write as _;

/// How a task says how it is proven.
const CRITERIA: &str = "Acceptance criteria:";

impl Agent<'_> {
    /// One attempt in a loop over tasks.
    pub(super) fn task(&mut self) -> anyhow::Result<()> {
        if self.prompt.starts_with("# Verify the task ") {
            return self.verify();
        }
        let (id, text) = self.assigned()?;
        let wanted: Vec<String> = requirements(&text).into_iter().map(str::to_owned).collect();
        let Some(first) = wanted.first() else {
            return self.text(&format!(
                "I can only build {FORM}, and this is none.\n\n<task-failed>{id}</task-failed>"
            ));
        };
        if self.prompt.contains("\n## It could not land\n") {
            return self.merge(&id, &wanted);
        }
        let title = title(first).to_owned();
        self.text(&format!("I take {id}: {title}"))?;
        let mut changed = vec![CHECK_FILE.to_owned()];
        for requirement in &wanted {
            changed.push(self.build_program(super::work::title(requirement), requirement)?);
        }
        changed.dedup();
        let files: Vec<&str> = changed.iter().map(String::as_str).collect();
        self.commit(&files, &format!("{title}\n\nTask {id} asks for it: {}", wanted.join("; ")))?;
        self.text(&format!(
            "Built, all checks pass.\n\n<journal>{CHECK_FILE} proves {title:?} and what was there before.</journal>\n\
             <task-done>{id}</task-done>"
        ))
    }

    /// Concludes the merge of a task that could not land: the files become those of the branch, with what the task asks for below.
    fn merge(&mut self, id: &str, wanted: &[String]) -> anyhow::Result<()> {
        let conflicts = self.run("git", &["diff", "--name-only", "--diff-filter=U"])?;
        for file in conflicts.lines() {
            self.run("git", &["checkout", "--quiet", "--theirs", "--", file])?;
        }
        for requirement in wanted {
            self.build_program(title(requirement), requirement)?;
        }
        if !conflicts.is_empty() {
            self.tool("bash", "git commit")?;
            self.run("git", &["add", "--update"])?;
            self.run("git", &["commit", "--quiet", "--no-edit"])?;
        }
        self.text(&format!("Both are there, all checks pass.\n\n<task-done>{id}</task-done>"))
    }

    /// Looks whether a task is done.
    fn verify(&mut self) -> anyhow::Result<()> {
        let (id, text) = self.assigned()?;
        self.tool("bash", &format!("sh {CHECK_FILE}"))?;
        let checks = self.read(CHECK_FILE)?.unwrap_or_default();
        let programs = requirements(&text).into_iter().filter_map(Program::find);
        let missing = programs.filter(|program| !checks.contains(&program.check())).count();
        let verdict = match self.run("sh", &[CHECK_FILE]) {
            Ok(_) if missing == 0 => "<verify-pass/>".to_owned(),
            Ok(_) => format!("<verify-fail>{CHECK_FILE} does not prove {id}</verify-fail>"),
            Err(error) => format!("<verify-fail>{error:#}</verify-fail>"),
        };
        self.text(&format!("I have run the checks.\n\n{verdict}"))
    }

    /// One attempt in a loop whose agents write.
    pub(super) fn author(&mut self) -> anyhow::Result<()> {
        let heading = self.prompt.lines().next().unwrap_or_default().to_owned();
        match heading.split(' ').nth(1).unwrap_or_default() {
            "Review" => self.text("It says what is wanted, and how that is shown.\n\n<review-pass/>"),
            "Write" => self.document(&heading),
            _ => self.add_tasks_of_prompt(),
        }
    }

    /// Writes the spec or the plan.
    fn document(&mut self, heading: &str) -> anyhow::Result<()> {
        let text = self.prompt.clone();
        let (_, rest) = text.split_once("one file, `").context("the prompt names no file")?;
        let file = rest.split('`').next().unwrap_or_default();
        let found = requirements(&text);
        ensure!(!found.is_empty(), "no requirement that I can build in the brief: write a line `- {FORM}`");
        let feature = heading.rsplit(' ').next().unwrap_or_default();
        let mut document = String::new();
        if heading.starts_with("# Write the spec") {
            write!(document, "# {feature}\n\nWhat the brief asks for.\n\n## Behaviour\n\n")?;
            found.iter().try_for_each(|text| writeln!(document, "- {text}"))?;
            write!(
                document,
                "\n## Acceptance criteria\n\n- `sh {CHECK_FILE}` ends with 0 and names each of them\n"
            )?;
        } else {
            write!(
                document,
                "# Plan of {feature}\n\nA shell script, and {CHECK_FILE} that proves it; one requirement a step.\n\n"
            )?;
            found.iter().try_for_each(|text| writeln!(document, "- {text}"))?;
        }
        self.tool("write", file)?;
        self.write(file, &document)?;
        self.text(&format!("{file} has {}.", count::of(found.len() as u64, "requirement")))
    }

    /// Adds a task for each requirement, one after the other.
    fn add_tasks_of_prompt(&mut self) -> anyhow::Result<()> {
        let text = self.prompt.clone();
        let mut found: Vec<&str> = Vec::new();
        // The plan says them once more.
        for requirement in requirements(&text) {
            if !found.contains(&requirement) {
                found.push(requirement);
            }
        }
        ensure!(!found.is_empty(), "no requirement that I can build: write a line `- {FORM}`");
        let ralph = std::env::current_exe().context("cannot find my own executable")?;
        let ralph = ralph.to_string_lossy();
        let mut before: Option<String> = None;
        for requirement in &found {
            let title = title(requirement);
            self.tool("bash", &format!("ralph task add '{title}'"))?;
            let description = format!("{requirement}\n\n{CRITERIA}\n- `sh {CHECK_FILE}` proves it");
            let mut words = vec!["task", "add", title, "--description", &description];
            if let Some(before) = &before {
                words.extend(["--after", before]);
            }
            before = Some(self.run(&ralph, &words)?.trim().to_owned());
        }
        self.text(&format!("{}, one after the other.", count::of(found.len() as u64, "task")))
    }

    /// The id of the task at hand, and what there is to say about it.
    pub(super) fn assigned(&self) -> anyhow::Result<(String, String)> {
        let (_, rest) = self.prompt.split_once("\n## Your task: ").context("the prompt names no task")?;
        let (id, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        let end = rest.find("\n## ").unwrap_or(rest.len());
        let end = rest.find("\n### ").map_or(end, |other| other.min(end));
        Ok((id.trim().to_owned(), rest[..end].to_owned()))
    }
}

/// The lines of a text that ask for a program: items of a list, titles, quotations of them.
fn requirements(text: &str) -> Vec<&str> {
    let bare = |line: &str| {
        let start = line.find(|c: char| !" >-*".contains(c)).unwrap_or(line.len());
        start..line.trim_end_matches([' ', '*']).len().max(start)
    };
    let lines = text.lines().map(|line| &line[bare(line)]);
    lines.filter(|line| Program::find(line).is_some()).collect()
}
