//! The branches of the plan with their bases; all mistakes in them are found here.

use std::io::ErrorKind;

use anyhow::{Context as _, anyhow, bail};

use crate::engine::outcome::Outcome;
use crate::files::{own, theirs};
use crate::git;
use crate::git::pull_request;
use crate::job::Refused;
use crate::plan::{self, Plan, PlanError, Section, Task};
use crate::project::{BRANCH_PLAN, Project};
use crate::record::lookup::{Loop, is_known};
use crate::record::state::State;
use crate::settings::Settings;
use crate::text::line::shell_word;
use crate::text::list::some_of;
use crate::text::nearest::meant;

/// The message without a plan.
const PLAN_MISSING: &str = "Implementation plan not found. Run 'ralph loop plan' first.";
const PLAN_MISSING_CODE: u8 = 2;
/// How many names are in a message.
const NAMED: usize = 8;

/// A branch of the plan.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) section: Section,
    /// Its base, by the user's name for it; empty for a finished branch.
    pub(super) base: String,
    /// The commit of the base; `None` for a finished branch, one that starts from an unfinished one, or from a pull request that
    /// was not fetched yet.
    pub(super) commit: Option<String>,
    /// The pull request that it starts from.
    pub(super) request: Option<u64>,
    /// The unfinished branch that it starts from, by its place in the plan.
    pub(super) after: Option<usize>,
    /// Why it is not done, although the plan marks it so.
    pub(super) doubt: Option<String>,
    /// Whether it was selected for this build.
    pub(super) is_meant: bool,
}

impl Planned {
    /// Whether it will be built.
    pub(super) fn is_open(&self) -> bool {
        self.is_meant && !self.section.is_done
    }
}

/// The branches of the plan, with those of these names and their bases selected; all of them without names.
///
/// # Errors
/// When the plan is missing, has a fault, or lacks a name.
pub(super) fn chosen(
    project: &Project,
    settings: &Settings,
    names: &[String],
) -> anyhow::Result<Vec<Planned>> {
    let mut branches = read(project, settings)?;
    for branch in &mut branches {
        branch.is_meant = names.is_empty();
    }
    for name in names {
        let Some(mut at) = branches.iter().position(|branch| branch.section.name == *name) else {
            let known: Vec<String> = branches.iter().map(|branch| branch.section.name.clone()).collect();
            let plan = project.branch_plan();
            let meant = meant(name, known.iter().map(String::as_str));
            bail!("{} has no branch '{name}': {meant}it has {}", plan.display(), some_of(known, NAMED));
        };
        loop {
            branches[at].is_meant = true;
            match branches[at].after {
                Some(base) => at = base,
                None => break,
            }
        }
    }
    Ok(branches)
}

/// Reads the plan.
///
/// # Errors
/// When it is missing or has a fault: the first one, with its line.
pub(super) fn read(project: &Project, settings: &Settings) -> anyhow::Result<Vec<Planned>> {
    let path = project.branch_plan();
    let text = match theirs::read(&path, theirs::MAX_TEXT) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::IsADirectory) => {
            bail!("{} is no regular file: move it away, and run 'ralph loop plan'", path.display())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let missing = Refused { code: PLAN_MISSING_CODE, message: PLAN_MISSING.to_owned() };
            return Err(missing.into());
        }
        bytes => bytes.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let text = String::from_utf8(text)
        .map_err(|_| anyhow!("{} is not UTF-8 text: save it as UTF-8", path.display()))?;
    let fault = |error: PlanError| anyhow!("{} {error}", path.display());
    let mut plan = Plan::parse(&text, &git::refs::is_valid_branch).map_err(fault)?;
    let doubts: Vec<Option<String>> = plan.sections.iter().map(|section| doubt(project, section)).collect();
    for (section, doubt) in plan.sections.iter_mut().zip(&doubts) {
        section.is_done &= doubt.is_none();
    }
    let order = plan.order().map_err(fault)?;
    if plan.sections.is_empty() {
        bail!("{} has no section '## Branch: NAME': run 'ralph loop plan', or write one", path.display());
    }
    let names = plan.sections.iter().map(|section| section.name.clone()).collect();
    let bases = Bases { project, settings, names };
    plan.sections
        .into_iter()
        .zip(order)
        .zip(doubts)
        .map(|((section, after), doubt)| {
            if section.is_done {
                return Ok(Planned {
                    section,
                    base: String::new(),
                    commit: None,
                    request: None,
                    after,
                    doubt,
                    is_meant: true,
                });
            }
            let line = section.base.as_ref().map_or(section.line, |(_, line)| *line);
            let (base, commit) = bases
                .of(&section, after)
                .map_err(|error| anyhow!("{} line {line}: {error}", path.display()))?;
            // What is neither waited for nor a commit.
            let request = pull_request::number(&base).filter(|_| commit.is_none() && after.is_none());
            Ok(Planned { section, base, commit, request, after, doubt, is_meant: true })
        })
        .collect()
}

/// Why a section that is marked as done is not: any agent can write that line, but our records have the branch's result. Without
/// records the line counts.
fn doubt(project: &Project, section: &Section) -> Option<String> {
    if !section.is_done {
        return None;
    }
    let name = &section.name;
    let why = match Loop::at(project.of_branch(name, None), name)?.state {
        Ok(state) => format!("its loop has ended otherwise ({})", undone(&state, &section.tasks)?),
        Err(why) => format!("its records cannot be read ({why})"),
    };
    let (plan, line) = (project.relative(&project.branch_plan()), section.line);
    Some(format!(
        "{} line {line}: '{name}' is marked as done, but {why}: it is built on; \
         'ralph clean {}' forgets that loop, if you have finished it yourself",
        plan.display(),
        shell_word(name)
    ))
}

/// Messages about unfinished branches whose section is missing, by their names: an agent may have removed it.
pub(super) fn lost(project: &Project, branches: &[Planned]) -> Vec<(String, String)> {
    let has_section = |name: &String| branches.iter().any(|branch| branch.section.name == *name);
    let begun = project.branches().into_iter().filter(|(name, _)| !has_section(name));
    begun.filter_map(|(name, places)| lost_one(project, &name, places).map(|why| (name, why))).collect()
}

fn lost_one(project: &Project, name: &str, places: Project) -> Option<String> {
    if !is_known(&places, name) {
        return None;
    }
    let why = match Loop::at(places, name)?.state {
        Ok(state) => {
            let copy = own::read(&project.worktree(name).join(BRANCH_PLAN), theirs::MAX_TEXT).ok();
            let copy = copy.and_then(|copy| String::from_utf8(copy).ok()).unwrap_or_default();
            let tasks = plan::tasks(&copy, name).unwrap_or_default();
            format!("its loop has not finished it ({})", undone(&state, &tasks)?)
        }
        Err(why) => format!("its records cannot be read ({why})"),
    };
    Some(format!(
        "{} has no section '## Branch: {name}' any more, and {why}: put the section back; \
         'ralph clean {}' forgets that loop, if it is not to be built",
        project.relative(&project.branch_plan()).display(),
        shell_word(name)
    ))
}

/// How the loop of an unfinished section with these tasks ended; `None` if it is finished.
fn undone(state: &State, tasks: &[Task]) -> Option<&'static str> {
    let ended_by = |outcome: Outcome| state.exit_reason.as_deref() == Some(outcome.word());
    let is_ticked = || tasks.iter().all(|task| task.ticked);
    let is_done = ended_by(Outcome::Complete)
        || ended_by(Outcome::DonePattern)
        || ended_by(Outcome::Idle) && state.tally.validation_error.is_none() && is_ticked();
    (!is_done).then(|| state.word())
}

/// The bases of branches.
struct Bases<'a> {
    project: &'a Project,
    settings: &'a Settings,
    /// The branches of the plan.
    names: Vec<String>,
}

impl Bases<'_> {
    /// The base of a section by name, and its commit unless that has to be built first.
    fn of(&self, section: &Section, after: Option<usize>) -> anyhow::Result<(String, Option<String>)> {
        let root = self.project.root();
        let advice = match (&section.base, &self.settings.git.pr_base) {
            (Some(_), _) => {
                "name a branch, tag or commit that exists, a pull request (pr/12), or another branch of the plan"
            }
            (None, Some(_)) => "fix git.pr_base, or give the branch a 'Base:'",
            (None, None) => "give the branch a 'Base:'",
        };
        let base = match (&section.base, &self.settings.git.pr_base) {
            (Some((base, _)), _) | (None, Some(base)) => base.clone(),
            (None, None) => git::refs::default_base(root)?,
        };
        let is_request = pull_request::number(&base).is_some() && !self.names.contains(&base);
        if after.is_some() || is_request {
            return Ok((base, None));
        }
        let commit = git::refs::base_commit(root, &base);
        let name = &section.name;
        let commit =
            commit.ok_or_else(|| anyhow!("'{base}', the base of '{name}', names no commit: {advice}"))?;
        Ok((base, Some(commit)))
    }
}
