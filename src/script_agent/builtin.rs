//! The small honest agent: plans from the bullets of the specs, builds one task per run, commits what it did.
//!
//! It builds requirements of the form `shell_program` knows. Of any other it leaves a note, and says in the reply, in
//! the plan and in the commit that it wrote no code for it.

use super::branches;
use super::commit::commit;
use super::plan_file::{Plan, Task};
use super::requirement::{Requirement, bullets, spec_files};
use super::shell_program::{CHECKS, MARK, Program};
use super::{End, Place, Stage};
use anyhow::bail;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(super) const COMPLETE: &str = "<promise>COMPLETE</promise>";
const REPLAN: &str = "<promise>REPLAN</promise>";
const CHECK_FILE: &str = "check.sh";
const NOTES_FILE: &str = "script-agent-notes.md";

/// One run in the mode of `place`.
pub(super) fn act(place: &Place, prompt: &[u8], stage: &mut Stage<impl Write>) -> anyhow::Result<End> {
    if prompt.trim_ascii().is_empty() {
        bail!("the prompt on stdin is empty");
    }
    match (place.mode.as_str(), &place.branch) {
        ("plan", _) if place.plans_branches => branches::plan(place, stage)?,
        ("plan", _) => plan(place, stage)?,
        ("build", Some(branch)) => branches::build(place, branch, stage)?,
        ("build", None) => build(place, stage)?,
        _ => answer(prompt, stage)?,
    }
    Ok(End::Done)
}

fn plan(place: &Place, stage: &mut Stage<impl Write>) -> anyhow::Result<()> {
    stage.text("I read the specs and compare them with the plan.")?;
    let requirements = read_specs(place, stage)?;
    let file = plan_path(place);
    let before = place.read(&file)?;
    let mut plan = Plan::new(before.as_deref());
    let known = plan.tasks()?;
    let missing: Vec<&Requirement> = requirements
        .iter()
        .filter(|wanted| known.iter().all(|task| task.description != wanted.text))
        .collect();
    for (number, requirement) in (known.len() + 1..).zip(&missing) {
        plan.add(number, requirement);
    }
    if before.as_deref() != Some(&plan.text()) {
        stage.tool("write", &file.to_string_lossy())?;
        place.write(&file, &plan.text())?;
        let message = format!(
            "Plan: {} new task(s)\n\nThe specs state {} requirement(s); those without a task got one, so that the\nbuild can take them one by one.",
            missing.len(),
            requirements.len()
        );
        stage.tool("bash", "git commit")?;
        commit(place, &[&file], &message)?;
    }
    let summary = format!(
        "{} requirement(s) in the specs, {} of them new in the plan; every one has a task now.",
        requirements.len(),
        missing.len()
    );
    stage.text(&format!("{summary}\n\n{COMPLETE}"))
}

/// Every requirement once, in the order of the files.
pub(super) fn read_specs(place: &Place, stage: &mut Stage<impl Write>) -> anyhow::Result<Vec<Requirement>> {
    let mut requirements: Vec<Requirement> = Vec::new();
    for file in spec_files(place)? {
        let spec = file.to_string_lossy().into_owned();
        stage.tool("read", &spec)?;
        for text in bullets(&place.read(&file)?.unwrap_or_default()) {
            if requirements.iter().all(|known| known.text != text) {
                requirements.push(Requirement { text, spec: spec.clone() });
            }
        }
    }
    if requirements.is_empty() {
        bail!("no requirement in {0}/*.md: write a spec with a `- ` bullet for each", place.specs.display());
    }
    Ok(requirements)
}

fn build(place: &Place, stage: &mut Stage<impl Write>) -> anyhow::Result<()> {
    let file = plan_path(place);
    stage.tool("read", &file.to_string_lossy())?;
    let Some(text) = place.read(&file)? else { bail!("there is no plan at {}: plan first", file.display()) };
    let tasks = Plan::new(Some(&text)).tasks()?;
    if tasks.is_empty() {
        bail!("{} has no task: each needs a heading and a line `- Status: planned` below it", file.display());
    }
    let Some(task) = tasks.iter().find(|task| !matches!(task.status.as_str(), "complete" | "blocked")) else {
        return finish(place, &tasks, stage);
    };
    let done = work(place, task, stage)?;
    // The plan is read again at the last moment: a user may have edited it meanwhile.
    let mut plan = Plan::new(place.read(&file)?.as_deref());
    if let Some(task) = plan.tasks()?.into_iter().find(|found| found.title == task.title) {
        plan.settle(&task, done.status, done.note.as_deref());
    }
    stage.tool("write", &file.to_string_lossy())?;
    place.write(&file, &plan.text())?;
    stage.tool("bash", "git commit")?;
    let changed: Vec<&Path> = done.files.iter().map(PathBuf::as_path).chain([file.as_path()]).collect();
    let committed = commit(place, &changed, &done.message)?;
    stage.text(&done.summary)?;
    if !committed {
        stage.text("Git ignores what I changed, so there is no commit.")?;
    }
    finish(place, &plan.tasks()?, stage)
}

/// What one task led to.
pub(super) struct Done {
    pub(super) status: &'static str,
    pub(super) note: Option<String>,
    pub(super) files: Vec<PathBuf>,
    pub(super) message: String,
    pub(super) summary: String,
}

/// Does one task, without a commit.
pub(super) fn work(place: &Place, task: &Task, stage: &mut Stage<impl Write>) -> anyhow::Result<Done> {
    stage.text(&format!("Next task: {}", task.title))?;
    match program(place, task)? {
        Some(program) => build_program(place, task, &program, stage),
        None => leave_note(place, task, stage),
    }
}

/// The program a task asks for, unless a script of somebody else stands where ours would be written.
fn program(place: &Place, task: &Task) -> anyhow::Result<Option<Program>> {
    let Some(program) = Program::find(&task.description) else { return Ok(None) };
    for file in [program.file.as_str(), CHECK_FILE] {
        if place.read(Path::new(file))?.is_some_and(|text| !text.starts_with(MARK)) {
            return Ok(None);
        }
    }
    Ok(Some(program))
}

/// Check first, then the code, then all checks; a check that does not pass takes both back.
fn build_program(
    place: &Place,
    task: &Task,
    program: &Program,
    stage: &mut Stage<impl Write>,
) -> anyhow::Result<Done> {
    let (script, checks) = (Path::new(&program.file), Path::new(CHECK_FILE));
    let before = [place.read(script)?, place.read(checks)?];
    let [old_script, old_checks] = &before;
    let old_checks = old_checks.clone().unwrap_or_else(|| format!("{MARK}{CHECKS}"));
    let check = program.check();
    let is_new = !old_checks.contains(&check);
    if is_new {
        grow(place, checks, &(old_checks + &check), stage)?;
        stage.text("The check stands, now the code that makes it pass.")?;
        let script_text = old_script.as_deref().unwrap_or(MARK).to_owned();
        grow(place, script, &(script_text + &program.lines(&task.title)), stage)?;
    }
    let files = vec![script.to_owned(), checks.to_owned()];
    if stage.shell(&place.root, &format!("sh {CHECK_FILE}"))? {
        let message = format!(
            "{}\n\n{} asks for it: {}\nA line in {CHECK_FILE} proves it; all checks pass.",
            task.title, task.spec, task.description
        );
        let what = if is_new { "built and checked" } else { "was there already, checked again" };
        let summary = format!("{}: {what}, all checks pass.", task.title);
        return Ok(Done { status: "complete", note: None, files, message, summary });
    }
    for (path, text) in [script, checks].into_iter().zip(&before) {
        match text {
            Some(text) => place.write(path, text)?,
            None => std::fs::remove_file(place.root.join(path))?,
        }
    }
    Ok(Done {
        status: "blocked",
        note: Some(
            "its check and the others cannot pass together; do the specs contradict each other?".into(),
        ),
        files: Vec::new(),
        message: format!("Plan: {} is blocked\n\nIts check and the others cannot pass together.", task.title),
        summary: format!("{}: the checks fail with it, so I took it back and blocked the task.", task.title),
    })
}

/// Writes a script and makes it executable.
fn grow(place: &Place, path: &Path, text: &str, stage: &mut Stage<impl Write>) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    stage.tool("write", &path.to_string_lossy())?;
    place.write(path, text)?;
    std::fs::set_permissions(place.root.join(path), std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// What is left to do for a requirement that needs a real agent.
fn leave_note(place: &Place, task: &Task, stage: &mut Stage<impl Write>) -> anyhow::Result<Done> {
    let file = Path::new(NOTES_FILE);
    let before = place.read(file)?.unwrap_or_else(|| {
        "# Notes of ralph's scripted agent\n\nTasks that it only noted: no code was written for them.\n\n"
            .into()
    });
    stage.tool("write", NOTES_FILE)?;
    place.write(file, &format!("{before}- {}: {}\n", task.title, task.description))?;
    let why = "the scripted agent builds only `NAME.sh ARGS` prints `TEXT`";
    Ok(Done {
        status: "complete",
        note: Some(format!("only noted in {NOTES_FILE}, no code: {why}")),
        files: vec![file.to_owned()],
        message: format!("Note: {}\n\nNo code was written: {why}.", task.title),
        summary: format!("{}: noted in {NOTES_FILE}, no code written ({why}).", task.title),
    })
}

/// Says the marker that the tasks allow, if any.
fn finish(place: &Place, tasks: &[Task], stage: &mut Stage<impl Write>) -> anyhow::Result<()> {
    let with = |status: &str| tasks.iter().filter(|task| task.status == status).count();
    let (complete, blocked) = (with("complete"), with("blocked"));
    if complete == tasks.len() {
        return say_complete(place, "Every task of the plan is complete.", stage);
    }
    if complete + blocked == tasks.len() {
        return stage.text(&format!("{blocked} task(s) are blocked, nothing else is open.\n\n{REPLAN}"));
    }
    stage.text(&format!("{} task(s) are left for the next iterations.", tasks.len() - complete - blocked))
}

/// Says the marker after `words`, if the checks agree.
pub(super) fn say_complete(place: &Place, words: &str, stage: &mut Stage<impl Write>) -> anyhow::Result<()> {
    let has_checks = place.read(Path::new(CHECK_FILE))?.is_some_and(|text| text.starts_with(MARK));
    if has_checks && !stage.shell(&place.root, &format!("sh {CHECK_FILE}"))? {
        bail!("every task is complete but {CHECK_FILE} fails");
    }
    stage.text(&format!("{words}\n\n{COMPLETE}"))
}

fn answer(prompt: &[u8], stage: &mut Stage<impl Write>) -> anyhow::Result<()> {
    let lines = prompt.split(|byte| *byte == b'\n').count();
    stage.text(&format!(
        "I am the scripted agent. The prompt has {} bytes in {lines} line(s); a real agent would do now what it \
         asks for. I change nothing.\n\n{COMPLETE}",
        prompt.len()
    ))
}

fn plan_path(place: &Place) -> PathBuf {
    // A home of `.` would make the path look odd.
    let home = place.home.strip_prefix(".").unwrap_or(&place.home);
    home.join("implementation_plan.md")
}

#[cfg(test)]
#[path = "builtin_tests.rs"]
mod tests;
