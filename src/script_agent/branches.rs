//! The scripted agent and the plan of branches: one branch for each spec file, one task for each requirement.

use super::builtin::{COMPLETE, read_specs, say_complete, work};
use super::commit::commit;
use super::plan_file::Task;
use super::requirement::Requirement;
use super::{Place, Stage};
use crate::plan::{Plan, Section, Ticks, merge_tasks};
use anyhow::{Context as _, bail};
use std::io::Write;
use std::path::{Path, PathBuf};

/// At the project root; in the work tree of a branch, its copy.
const PLAN_FILE: &str = "IMPLEMENTATION_PLAN.md";

/// Adds what the specs state and the plan does not have.
pub(super) fn plan(place: &Place, stage: &mut Stage<impl Write>) -> anyhow::Result<()> {
    stage.text("I read the specs and compare them with the plan.")?;
    let requirements = read_specs(place, stage)?;
    let file = Path::new(PLAN_FILE);
    let before = place.read(file)?;
    let mut text = before.clone().unwrap_or_else(|| "# Implementation plan\n".to_owned());
    for of_one_spec in requirements.chunk_by(|one, next| one.spec == next.spec) {
        text = with_branch(text, of_one_spec)?;
    }
    let branches = parse(&text)?.sections.len();
    if before.as_ref() != Some(&text) {
        stage.tool("write", PLAN_FILE)?;
        place.write(file, &text)?;
    }
    let count = requirements.len();
    stage.text(&format!(
        "{count} requirement(s) in the specs; the plan has {branches} branch(es).\n\n{COMPLETE}"
    ))
}

/// `text` with every requirement of one spec in a branch: one that is done stays as it is, the next one begins where
/// it ends.
fn with_branch(text: String, requirements: &[Requirement]) -> anyhow::Result<String> {
    let Some(spec) = requirements.first().map(|first| &first.spec) else { return Ok(text) };
    let plan = parse(&text)?;
    let slug = slug(spec);
    let mut missing: Vec<&str> = requirements.iter().map(|requirement| requirement.text.as_str()).collect();
    let mut name = slug.clone();
    let mut number = 1;
    let open = loop {
        match plan.sections.iter().find(|section| section.name == name) {
            Some(done) if done.is_done => {
                missing.retain(|text| done.tasks.iter().all(|task| task.text != *text));
            }
            found => break found.is_some(),
        }
        number += 1;
        name = format!("{slug}-{number}");
    };
    let tasks: Vec<String> = missing.iter().map(|text| format!("- [ ] {text}\n")).collect();
    if tasks.is_empty() {
        return Ok(text);
    }
    let section = format!("## Branch: {name}\nGoal: Do what {spec} asks for\n\n{}", tasks.concat());
    if open {
        return Ok(merge_tasks(&section, &text, &name, Ticks::Either, &[])?);
    }
    Ok(format!("{}\n\n{section}", text.trim_end()))
}

/// The name of a spec file in the letters of a branch name.
fn slug(spec: &str) -> String {
    let stem = Path::new(spec).file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let words = stem.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-");
    if slug.is_empty() { "branch".to_owned() } else { slug }
}

/// Does the first open task of `branch`.
pub(super) fn build(place: &Place, branch: &str, stage: &mut Stage<impl Write>) -> anyhow::Result<()> {
    stage.tool("read", PLAN_FILE)?;
    let (_, section) = read_section(place, branch)?;
    let Some(open) = section.tasks.into_iter().find(|task| !task.ticked) else {
        return finish(place, branch, stage);
    };
    let task =
        Task::of(Requirement { text: open.text.clone(), spec: format!("The plan of branch {branch}") });
    let done = work(place, &task, stage)?;
    if done.status == "complete" {
        // The plan is read again at the last moment: somebody may have edited it meanwhile.
        let (text, section) = read_section(place, branch)?;
        let same = section.tasks.iter().find(|task| !task.ticked && task.text == open.text);
        if let Some(same) = same {
            stage.tool("write", PLAN_FILE)?;
            place.write(Path::new(PLAN_FILE), &ticked(&text, same.line))?;
        }
    }
    let files: Vec<&Path> = done.files.iter().map(PathBuf::as_path).collect();
    if !files.is_empty() {
        stage.tool("bash", "git commit")?;
        if !commit(place, &files, &done.message)? {
            stage.text("Git ignores what I changed or has it already, so there is no commit.")?;
        }
    }
    stage.text(&done.summary)?;
    finish(place, branch, stage)
}

fn finish(place: &Place, branch: &str, stage: &mut Stage<impl Write>) -> anyhow::Result<()> {
    let (_, section) = read_section(place, branch)?;
    match section.tasks.iter().filter(|task| !task.ticked).count() {
        0 => say_complete(place, &format!("Every task of branch {branch} is ticked."), stage),
        open => stage.text(&format!("{open} task(s) of branch {branch} are left for the next iterations.")),
    }
}

/// The plan's text, and the section of `branch` in it.
fn read_section(place: &Place, branch: &str) -> anyhow::Result<(String, Section)> {
    let Some(text) = place.read(Path::new(PLAN_FILE))? else {
        bail!("there is no plan at {PLAN_FILE}: plan first")
    };
    let section = parse(&text)?.sections.into_iter().find(|section| section.name == branch);
    let section =
        section.with_context(|| format!("{PLAN_FILE} has no section '## Branch: {branch}': put it back"))?;
    Ok((text, section))
}

/// Names are for ralph to judge: it has read the plan before.
fn parse(text: &str) -> anyhow::Result<Plan> {
    Plan::parse(text, &|_| true).with_context(|| format!("cannot use {PLAN_FILE}"))
}

/// `text` with the box in this line (from 1) ticked.
fn ticked(text: &str, line: usize) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(line) = lines.get_mut(line - 1) {
        *line = line.replacen("[ ]", "[x]", 1);
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scratch, git};
    use super::*;

    const GREETING: &str =
        "# Greeting\n- Hello: `greet.sh` prints `Hello`\n- Ada: `greet.sh NAME` prints `Hi, NAME`\n";

    fn planned() -> Scratch {
        let mut scratch = Scratch::new();
        scratch.place.plans_branches = true;
        scratch.write("specs/01 Greeting!.md", GREETING);
        scratch.write("specs/tea.md", "- Be quick\n");
        assert!(scratch.act("plan").completes());
        scratch
    }

    fn build(scratch: &mut Scratch, branch: &str) -> (i32, bool) {
        scratch.place.branch = Some(branch.to_owned());
        let run = scratch.act("build");
        (run.code, run.completes())
    }

    #[test]
    fn a_branch_for_each_spec() {
        let mut scratch = planned();
        let plan = scratch.read(PLAN_FILE);
        assert_eq!(
            plan,
            "# Implementation plan\n\n## Branch: 01-greeting\nGoal: Do what specs/01 Greeting!.md asks for\n\n\
             - [ ] Hello: `greet.sh` prints `Hello`\n- [ ] Ada: `greet.sh NAME` prints `Hi, NAME`\n\n\
             ## Branch: tea\nGoal: Do what specs/tea.md asks for\n\n- [ ] Be quick\n"
        );
        scratch.act("plan");
        assert_eq!(scratch.read(PLAN_FILE), plan, "planned once");
        scratch.write("specs/tea.md", "- Be quick\n- Be hot\n");
        scratch.act("plan");
        assert_eq!(scratch.read(PLAN_FILE), plan.clone() + "- [ ] Be hot\n");
        let done = plan.replace("asks for\n\n- [ ] Be", "asks for\nStatus: done\n\n- [x] Be");
        scratch.write(PLAN_FILE, &done);
        scratch.act("plan");
        let next = "\n## Branch: tea-2\nGoal: Do what specs/tea.md asks for\n\n- [ ] Be hot\n";
        assert_eq!(scratch.read(PLAN_FILE), done + next);
    }

    #[test]
    fn builds_its_own_branch_and_leaves_the_plan_uncommitted() {
        let mut scratch = planned();
        let plan = scratch.read(PLAN_FILE);
        assert_eq!(build(&mut scratch, "01-greeting"), (0, false));
        assert_eq!(scratch.read(PLAN_FILE), plan.replacen("[ ]", "[x]", 1));
        assert_eq!(build(&mut scratch, "01-greeting"), (0, true));
        assert_eq!(build(&mut scratch, "01-greeting"), (0, true));
        assert_eq!(build(&mut scratch, "tea"), (0, true));
        assert_eq!(scratch.read(PLAN_FILE), plan.replace("[ ]", "[x]"));
        let root = &scratch.place.root;
        assert_eq!(git(root, &["log", "--reverse", "--format=%s"]), "Hello\nAda\nNote: Be quick\n");
        let message = git(root, &["log", "-1", "--skip=1", "--format=%b"]);
        assert!(
            message.starts_with("The plan of branch 01-greeting asks for it: Ada: `greet.sh"),
            "{message}"
        );
        assert_eq!(git(root, &["status", "--porcelain"]), "?? IMPLEMENTATION_PLAN.md\n?? specs/\n");
    }

    #[test]
    fn a_task_that_contradicts_another_stays_open() {
        let mut scratch = Scratch::new();
        scratch.write(
            PLAN_FILE,
            "## Branch: a\nGoal: g\n- [ ] A: `x.sh` prints `1`\n- [ ] B: `x.sh` prints `2`\n",
        );
        for _ in 0..2 {
            assert_eq!(build(&mut scratch, "a"), (0, false));
        }
        assert_eq!(scratch.read(PLAN_FILE).matches("[x]").count(), 1);
        assert_eq!(git(&scratch.place.root, &["log", "--format=%s"]), "A\n");
    }

    #[test]
    fn failures_are_results() {
        let mut scratch = Scratch::new();
        for (plan, message) in [
            (None, "there is no plan at IMPLEMENTATION_PLAN.md"),
            (
                Some("## Branch: a-b\nGoal: g\n- [ ] t\n"),
                "IMPLEMENTATION_PLAN.md has no section '## Branch: a'",
            ),
            (Some("## Branch: a\n"), "cannot use IMPLEMENTATION_PLAN.md: line 1: branch 'a' has no goal"),
        ] {
            if let Some(plan) = plan {
                scratch.write(PLAN_FILE, plan);
            }
            scratch.place.branch = Some("a".to_owned());
            let failed = scratch.act("build");
            assert_eq!(failed.code, 1);
            assert!(failed.result()["message"].as_str().unwrap().starts_with(message), "{:?}", failed.events);
        }
    }
}
