//! What proves that a task is done: the user's own command, then a fresh agent that may look and not touch.

use std::cell::RefCell;
use std::rc::Rc;

use super::booking::NO_VERDICT;
use super::{Current, Places};
use crate::engine::agent::{Attempt, How};
use crate::engine::context::Context;
use crate::engine::event::{Event, TaskAtWork};
use crate::engine::outcome::{End, Outcome};
use crate::engine::report::{AttemptStatus, Report};
use crate::engine::validator::{Proof, Validation, Validator, Verdict};
use crate::git::guard::{self, Difference};
use crate::prompt::task::verification_prompt;
use crate::reply::sigil::TASK_DONE;
use crate::reply::usage::{Class, Usage};

/// A verifying agent that fails, says nothing or changes something is asked once more.
const TRIES: u32 = 2;

/// The validation of tasks.
pub(crate) struct Verifier {
    current: Rc<RefCell<Option<Current>>>,
    places: Places,
    command: Option<Box<dyn Validator>>,
    /// An agent is asked, too.
    asks: bool,
    /// How far the validation of the current attempt has come.
    state: State,
}

#[derive(Default)]
struct State {
    /// Which iteration it is about.
    iteration: u64,
    /// What the command printed when it had passed.
    passed: Option<String>,
    tries: u32,
    usage: Usage,
}

impl Verifier {
    pub(super) fn new(
        current: Rc<RefCell<Option<Current>>>,
        places: Places,
        command: Option<Box<dyn Validator>>,
        asks: bool,
    ) -> Self {
        Self { current, places, command, asks, state: State::default() }
    }

    /// Asks an agent whether the task is done.
    fn ask(&mut self, proof: &mut Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        let current = Rc::clone(&self.current);
        let current = current.borrow();
        let Some(current) = current.as_ref() else { return Ok(Verdict::CutOff) };
        let (task, model) = (current.at_work(), current.model.clone());
        let prompt = verification_prompt(&current.facts, self.state.passed.as_deref());
        let how = How { model, read_only: self.places.looks_only, ..proof.work.how.clone() };
        let attempt =
            Attempt { iteration: proof.iteration, prompt: &prompt, how: &how, deadline: proof.deadline };
        context.tell(Event::Verifying { task })?;
        loop {
            let before = self.places.guarded();
            let report = proof.agent.run(&attempt, context)?;
            if is_unable(&report) {
                return Ok(Verdict::Unable(report));
            }
            self.state.usage.add(&report.usage);
            let verdict = report.sigils.verification();
            // A verdict that has come counts, whatever was asked of the loop meanwhile.
            if report.status == AttemptStatus::Interrupted || verdict.is_none() && context.is_held_up() {
                return Ok(Verdict::CutOff);
            }
            self.state.tries += 1;
            let fault = match self.places.guarded().differs_from(&before) {
                Some(what) => kept(&self.places, &what)?,
                None => match (report.status, verdict) {
                    (AttemptStatus::Success, Some(found)) => {
                        return self.found_by_agent(task, found, context);
                    }
                    (AttemptStatus::Success, None) => NO_VERDICT.to_owned(),
                    _ => report.failure.map_or_else(|| NO_VERDICT.to_owned(), |failure| failure.message),
                },
            };
            context.notice(&fault)?;
            if self.state.tries >= TRIES {
                return self.found_by_agent(task, Err(&fault), context);
            }
        }
    }

    fn found_by_agent(
        &mut self,
        task: TaskAtWork<'_>,
        found: Result<(), &str>,
        context: &mut Context<'_>,
    ) -> Result<Verdict, End> {
        let reason = found.err().unwrap_or_default();
        context.tell(Event::Verified { task, ok: found.is_ok(), reason })?;
        Ok(self.found(found))
    }

    fn found(&mut self, found: Result<(), &str>) -> Verdict {
        let usage = std::mem::take(&mut self.state.usage);
        let output = found.as_ref().err().map(|reason| match reason.trim() {
            "" => "the verifying agent gave no reason".to_owned(),
            reason => reason.to_owned(),
        });
        Verdict::Found(Validation { ok: found.is_ok(), output: output.unwrap_or_default(), usage })
    }
}

impl Validator for Verifier {
    fn applies(&self, report: &Report) -> bool {
        let current = self.current.borrow();
        let Some(current) = current.as_ref() else { return false };
        if current.only_verifies {
            return self.command.is_some() && report.sigils.verification() == Some(Ok(()));
        }
        let is_done = report.sigils.names(TASK_DONE, &current.task.id);
        is_done && !report.sigils.failure() && (self.asks || self.command.is_some())
    }

    fn validate(&mut self, mut proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        if self.state.iteration != proof.iteration {
            self.state = State { iteration: proof.iteration, ..State::default() };
        }
        if let (Some(command), None) = (&mut self.command, &self.state.passed) {
            let Proof { iteration, work, report, signal, deadline, .. } = proof;
            let verdict = command.validate(
                Proof { iteration, work, report, signal, deadline, agent: &mut *proof.agent },
                context,
            )?;
            match verdict {
                Verdict::Found(validation) if validation.ok => self.state.passed = Some(validation.output),
                verdict => return Ok(verdict),
            }
        }
        let only_verifies = self.current.borrow().as_ref().is_some_and(|current| current.only_verifies);
        if !self.asks || only_verifies {
            return Ok(self.found(Ok(())));
        }
        self.ask(&mut proof, context)
    }
}

/// Keeps what a verifying agent has changed, and says so. Nothing is taken back in a checkout that ralph did not make.
///
/// # Errors
/// When HEAD is not where the work is any more: nothing can be verified or built there.
pub(super) fn kept(places: &Places, what: &Difference) -> Result<String, End> {
    let said = format!("the verifying agent changed {what}, so that it does not count");
    if let Difference::Head(_) = what {
        let advice =
            "look at what it did, and bring HEAD back before you run again ('git reflog' has where it was)";
        return Err(End::because(Outcome::GitFailed, format!("{said}: {advice}")));
    }
    Ok(match guard::keep_changes(&places.root, "verification") {
        Ok(Some(reference)) => format!("{said}; {reference} has what is not committed"),
        Ok(None) => said,
        Err(error) => format!("{said}; it could not be saved: {error}"),
    })
}

/// Whether an agent could not work for a reason that passes with time or ends the loop.
fn is_unable(report: &Report) -> bool {
    let class = report.failure.as_ref().map(|failure| failure.class);
    report.status == AttemptStatus::UsageLimit
        || report.status == AttemptStatus::AgentFailure
            && matches!(
                class,
                Some(Class::Limit | Class::Overload | Class::Auth | Class::Billing | Class::Permission)
            )
}
