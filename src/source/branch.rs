//! One branch of the plan: prompts for its work tree, its ticks in the main plan, and its commits on the remote.

pub(crate) mod main_plan;
mod publisher;
mod request;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use regex::Regex;

use super::prompt_file::PromptFile;
use super::{idle_with, tasks_refute, with_given};
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::source::{Booked, Source, Work};
use crate::engine::stop::Change;
use crate::engine::tally::{Given, Tally};
use crate::git;
use crate::git::publish::Unpublished;
use crate::git::trees::CheckedOut;
use crate::plan::Ticks;
use main_plan::{MainPlan, open};
pub(crate) use publisher::{Made, Publisher};
pub(crate) use request::about;

static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    // A constant that every test of this file compiles: it cannot fail at run time.
    Regex::new(r"\{\{\s*(BRANCH_NAME|BRANCH_GOAL|BASE_BRANCH)\s*\}\}").expect("constant pattern")
});

/// What prompts say about a branch.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// Its goal.
    pub goal: String,
    /// Its base, as git knows it.
    pub base: String,
    /// A section about the pull request that it starts from.
    pub request: Option<String>,
}

/// The source of one branch.
#[derive(Debug)]
pub struct Branch {
    facts: Facts,
    prompt: PromptFile,
    plan: Arc<MainPlan>,
    /// The copy of the plan in the branch's work tree.
    copy: PathBuf,
    /// The texts of its tasks when both plans were last synchronised; `None` before that.
    known: Option<Vec<String>>,
    /// Whether the process of its last loop was killed.
    was_killed: bool,
    publisher: Publisher,
    is_done: bool,
}

impl Branch {
    /// A branch whose agents find the plan at `copy`. `was_killed`: the process of its last loop was killed.
    #[must_use]
    pub fn new(
        facts: Facts,
        prompt: PromptFile,
        (plan, copy): (Arc<MainPlan>, PathBuf),
        publisher: Publisher,
        was_killed: bool,
    ) -> Self {
        Self { facts, prompt, plan, copy, known: None, was_killed, publisher, is_done: false }
    }

    /// Whether nothing is left to do: it is finished, and published as far as possible.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The result of publishing its commits.
    #[must_use]
    pub fn into_publisher(self) -> Publisher {
        self.publisher
    }

    /// Replaces the branch's variables in a template, in one pass.
    fn fill(&self, template: &str) -> String {
        let mut filled = String::with_capacity(template.len());
        let mut rest = 0;
        for found in PLACEHOLDER.captures_iter(template) {
            let (whole, name) = (found.get_match(), &found[1]);
            filled += &self.prompt.substitute(&template[rest..whole.start()]);
            filled += match name {
                "BRANCH_NAME" => &self.facts.name,
                "BRANCH_GOAL" => &self.facts.goal,
                _ => &self.facts.base,
            };
            rest = whole.end();
        }
        filled += &self.prompt.substitute(&template[rest..]);
        let names_it = |found: regex::Captures<'_>| &found[1] == "BRANCH_NAME";
        if PLACEHOLDER.captures_iter(template).any(names_it) { filled } else { self.with_branch(&filled) }
    }

    /// Adds a section for a prompt that does not say which branch of the plan is meant.
    fn with_branch(&self, prompt: &str) -> String {
        let Facts { name, goal, base, .. } = &self.facts;
        let gap = if prompt.ends_with('\n') { "" } else { "\n" };
        format!(
            "{prompt}{gap}\n## Your branch\n\nThis is the work tree of branch `{name}`, which starts from `{base}`. Its \
             goal: {goal}\n\nOf the plan, only the section `## Branch: {name}` is yours. Tick its tasks off there when \
             they are done and committed.\n"
        )
    }

    /// Copies the plan into the work tree. If ralph was killed, the existing copy may have ticks that the main plan
    /// lacks.
    fn begin(&mut self) -> Result<(), String> {
        if self.was_killed && self.copy.exists() {
            self.has_plan()?;
            // Ticks that cannot be carried back do not stop the loop.
            let _ = self.plan.carry_from(&self.copy, &self.facts.name, Ticks::Either, &[]);
        }
        self.known = Some(self.plan.bring_to(&self.copy, &self.facts.name)?);
        Ok(())
    }

    /// Reopens what agents of other branches marked as done before the first agent of this branch.
    fn take_claims_back(&self, context: &mut Context<'_>) -> Result<(), End> {
        let told = self.plan.take_claims_back(&|name| name == self.facts.name);
        let notice = told.map_err(|why| End::because(Outcome::RecordFailed, why))?;
        notice.map_or(Ok(()), |notice| context.notice(&notice))
    }

    /// Whether agents of the branch can use the copy of the plan; an error if that cannot be read.
    fn has_plan(&self) -> Result<bool, String> {
        MainPlan::is_usable(&self.copy, &self.facts.name)
    }

    /// Restores a plan that agents have lost or torn; `git clean -fdx` removes it.
    fn bring_again(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let said = match self.plan.bring_to(&self.copy, &self.facts.name) {
            Ok(known) => {
                self.known = Some(known);
                format!("{} was lost or torn; it is restored", self.copy.display())
            }
            Err(why) => format!("{} was lost or torn: {why}", self.copy.display()),
        };
        context.notice(&said)
    }

    /// Carries the agents' ticks in the branch's section into the main plan, and the user's changes of tasks there
    /// into the work tree.
    fn carry(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let has_plan = self.has_plan();
        if self.known.is_some() && has_plan == Ok(false) {
            return self.bring_again(context);
        }
        let name = &self.facts.name;
        let carried = match &self.known {
            _ if has_plan.is_err() => has_plan.map(drop),
            Some(known) => self
                .plan
                .carry_from(&self.copy, name, Ticks::From, known)
                .and_then(|()| self.plan.bring_to(&self.copy, name))
                .map(|known| self.known = Some(known)),
            // No agent has begun since; the last one's ticks may not have been carried before the kill.
            None if self.was_killed => self.begin(),
            None => Ok(()),
        };
        match carried {
            Ok(()) => Ok(()),
            Err(why) => context.notice(&format!("its ticks stay in its work tree: {why}")),
        }
    }

    /// What is wrong if an agent has left the branch: its commits would not be on it.
    fn astray(&self) -> Option<String> {
        let (name, tree) = (&self.facts.name, self.publisher.tree.display());
        let is_on = match git::trees::checked_out(&self.publisher.tree) {
            // This error says nothing about the tree.
            Err(error) => return Some(error.to_string()),
            Ok(CheckedOut::Branch(branch)) if branch == *name => return None,
            Ok(CheckedOut::Branch(branch)) => format!("the branch '{branch}'"),
            Ok(CheckedOut::Detached) => "no branch".to_owned(),
            Ok(CheckedOut::NoTree) => {
                let way_out = "move away what is left of it, and build again";
                return Some(format!("{tree} is no work tree any more: {way_out}"));
            }
        };
        let way_out = "see what was committed there, switch back, and build again";
        Some(format!("{tree} is on {is_on}, not on '{name}': {way_out}"))
    }

    /// Whether the work is finished, by the end of its loop.
    fn is_finished(&self, end: &End, tally: &Tally) -> bool {
        match end.outcome {
            Outcome::Complete | Outcome::DonePattern => true,
            // No agent has claimed completion, but no task is open and no validation has failed.
            Outcome::Idle => tally.validation_error.is_none() && self.plan.is_all_ticked(&self.facts.name),
            _ => false,
        }
    }
}

impl Source for &mut Branch {
    fn change(&mut self, change: &Change) -> bool {
        self.prompt.change(change)
    }

    fn next(&mut self, iteration: u64, given: &Given, context: &mut Context<'_>) -> Result<Work, End> {
        // Without its own work tree, an agent would work on the repository around it.
        if matches!(git::trees::checked_out(&self.publisher.tree), Ok(CheckedOut::NoTree) | Err(_)) {
            return Err(End::because(Outcome::GitFailed, self.astray().unwrap_or_default()));
        }
        let lost = |why| End::because(Outcome::PromptLost, why);
        if self.known.is_none() {
            self.take_claims_back(context)?;
            self.begin().map_err(lost)?;
        } else if !self.has_plan().map_err(lost)? {
            self.bring_again(context)?;
            if !self.has_plan().map_err(lost)? {
                let why = format!("the plan cannot be brought to {}", self.copy.display());
                return Err(End::because(Outcome::PromptLost, why));
            }
        }
        let template = self.prompt.read()?;
        self.prompt.set_iteration(iteration);
        let mut prompt = self.fill(&template);
        // No agent runs between iterations, so these are from a git that was killed, and would keep the next agent
        // from committing.
        let locks = git::trees::locks(&self.publisher.tree, &self.facts.name);
        for lock in &locks {
            let lock = lock.display();
            context.notice(&format!(
                "{lock} was left behind by a git that was killed; the next prompt says so"
            ))?;
        }
        if let Some(request) = &self.facts.request {
            prompt = format!("{}\n\n{request}", prompt.trim_end());
        }
        prompt += &left_behind(&locks);
        let prompt = with_given(prompt, given);
        Ok(Work { prompt, ..Work::default() })
    }

    fn file(&self) -> Option<&Path> {
        self.prompt.path()
    }

    fn refutes(&self) -> Option<String> {
        let (open, gone) = self.plan.open_in(&self.copy, &self.facts.name);
        tasks_refute(&open, &gone)
    }

    fn book(&mut self, _: &Booked<'_>, context: &mut Context<'_>) -> Result<(), End> {
        self.carry(context)?;
        if let Some(why) = self.astray() {
            return context.notice(&why);
        }
        if let Err(Some(why)) = self.publisher.push(context)?.map_err(Unpublished::why) {
            context.notice(&format!("the push failed: {why}; it is tried again after the next iteration"))?;
        }
        Ok(())
    }

    fn advice(&self, outcome: Outcome) -> Option<String> {
        if outcome == Outcome::Idle {
            let (open, gone) = self.plan.open_in(&self.copy, &self.facts.name);
            return idle_with(&[open, gone].concat());
        }
        self.prompt.advice(outcome)
    }

    fn close(&mut self, end: End, tally: &Tally, context: &mut Context<'_>) -> End {
        if self.known.is_none()
            && let Err(end) = self.take_claims_back(context)
        {
            return end;
        }
        if end.outcome.code() == Outcome::Interrupted.code() {
            return end;
        }
        self.publish(end, tally, context).unwrap_or_else(|end| end)
    }
}

impl Branch {
    /// Publishes the branch when its loop has ended this way; a failure may change the end.
    fn publish(&mut self, end: End, tally: &Tally, context: &mut Context<'_>) -> Result<End, End> {
        self.carry(context)?;
        if let Some(why) = self.astray() {
            return Ok(instead_of(&end, "not published", Unpublished::Wrong(why), context));
        }
        if let Err(failure) = self.publisher.push(context)? {
            return Ok(instead_of(&end, "the push failed", failure, context));
        }
        if !self.is_finished(&end, tally) {
            return Ok(end);
        }
        let tasks = self.plan.tasks(&self.facts.name);
        // One may have come into the main plan since.
        if let Some(why) = tasks_refute(&open(&tasks), &[]) {
            return Ok(End::because(Outcome::Unproven, why.lines().next().unwrap_or_default()));
        }
        let proof = tally.evidence(end.outcome.ended(), None);
        if let Err(failure) =
            self.publisher.open_pull_request(&self.facts, &tasks, proof.as_ref(), context)?
        {
            return Ok(instead_of(&end, &format!("the {} failed", self.publisher.noun()), failure, context));
        }
        self.publisher.note_uncommitted();
        if let Err(why) = self.plan.mark_done(&self.facts.name, self.publisher.pull_request()) {
            return Ok(End::because(
                Outcome::RecordFailed,
                format!("it is done but could not be marked so: {why}"),
            ));
        }
        self.is_done = true;
        Ok(end)
    }
}

/// The end of a loop whose work could not be published.
fn instead_of(end: &End, what: &str, failure: Unpublished, context: &Context<'_>) -> End {
    let why = match (failure.why(), context.stopped_by()) {
        (Some(why), _) => why,
        (None, Some(outcome)) => return outcome.into(),
        (None, None) => "it was cut off".to_owned(),
    };
    let before = end.detail.as_ref().map(|detail| format!(" (before that: {detail})")).unwrap_or_default();
    End::because(Outcome::GitFailed, format!("{what}: {why}{before}"))
}

/// The section of a prompt about left locks; empty if there are none.
fn left_behind(locks: &[PathBuf]) -> String {
    let names: Vec<String> = locks.iter().map(|lock| format!("`{}`", lock.display())).collect();
    let text = match &names[..] {
        [] => return String::new(),
        [name] => format!(
            "## A lock that was left behind\n\nThe file {name} is left of a git that was killed, and keeps git from changing \
             anything here. When you begin, no other git is at work in this work tree: remove the file, and look at `git \
             status` before you go on."
        ),
        names => format!(
            "## Locks that were left behind\n\nThe files {} are left of a git that was killed, and keep git from changing \
             anything here. When you begin, no other git is at work in this work tree: remove them, and look at `git \
             status` before you go on.",
            names.join(" and ")
        ),
    };
    format!("\n\n{text}\n")
}

#[cfg(test)]
mod tests;
