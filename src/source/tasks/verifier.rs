//! What proves that a task is done: the user's own command, then a fresh agent that may look and not touch.

use std::cell::RefCell;
use std::rc::Rc;

use super::Current;
use super::booking::NO_VERDICT;
use crate::engine::context::Context;
use crate::engine::event::Event;
use crate::engine::outcome::End;
use crate::engine::report::Report;
use crate::engine::validator::{Proof, Validation, Validator, Verdict};
use crate::prompt::task::verification_prompt;
use crate::reply::sigil::{Sigils, TASK_DONE};
use crate::source::inspection::{Ground, Inspected, Inspection, Question};

/// What its agent does.
pub(super) const VERIFYING: &str = "verifying";

/// The validation of tasks.
pub(crate) struct Verifier {
    current: Rc<RefCell<Option<Current>>>,
    ground: Ground,
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
    inspection: Inspection,
}

impl Verifier {
    pub(super) fn new(
        current: Rc<RefCell<Option<Current>>>,
        ground: Ground,
        command: Option<Box<dyn Validator>>,
        asks: bool,
    ) -> Self {
        Self { current, ground, command, asks, state: State::default() }
    }

    /// Asks an agent whether the task is done.
    fn ask(&mut self, proof: &mut Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        let current = Rc::clone(&self.current);
        let current = current.borrow();
        let Some(current) = current.as_ref() else { return Ok(Verdict::CutOff(Box::default())) };
        let (task, State { passed, inspection, .. }) = (current.at_work(), &mut self.state);
        let question = Question {
            what: VERIFYING,
            no_verdict: NO_VERDICT,
            prompt: &verification_prompt(&current.facts, passed.as_deref()),
            model: current.model.clone(),
            verdict: Sigils::verification,
        };
        context.tell(Event::Verifying { task })?;
        let found = match inspection.ask(&question, &self.ground, proof, context)? {
            Inspected::Found(found) => found,
            Inspected::Undecided(why) => Err(why),
            Inspected::CutOff => return Ok(Verdict::CutOff(Box::new(std::mem::take(&mut inspection.usage)))),
            Inspected::Unable(report) => return Ok(Verdict::Unable(*report)),
        };
        let reason = found.as_ref().err().map_or("", String::as_str);
        context.tell(Event::Verified { task, ok: found.is_ok(), reason })?;
        Ok(self.found(found))
    }

    fn found(&mut self, found: Result<(), String>) -> Verdict {
        let usage = std::mem::take(&mut self.state.inspection.usage);
        Verdict::Found(Validation { ok: found.is_ok(), output: found.err().unwrap_or_default(), usage })
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
