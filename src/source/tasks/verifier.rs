//! The validator of tasks: the user's command, then a fresh agent that must not change anything.

use std::cell::RefCell;
use std::rc::Rc;

use super::booking::NO_VERDICT;
use super::lane::Keep;
use super::trace::Snapshot;
use super::{Current, Graph, Lane};
use crate::engine::agent::Inspects;
use crate::engine::context::Context;
use crate::engine::fact::Fact;
use crate::engine::outcome::End;
use crate::engine::report::{Report, Signal};
use crate::engine::source::Work;
use crate::engine::stop::Urgency;
use crate::engine::validation::{Base, NOT_VERIFIED, VERIFYING_AGENT, Validation};
use crate::engine::validator::{FilesValidator, Proof, Validator, Verdict};
use crate::git;
use crate::graph::{Claim, GraphError};
use crate::inspection::{Ground, Inspected, Inspection, Question};
use crate::prompt::task::verification_prompt;
use crate::reply::sigil::Sigils;

/// The activity of its agent.
pub(super) const VERIFYING: &str = "verifying";

/// The validation of tasks.
pub(crate) struct Verifier<'a> {
    graph: Graph,
    current: Rc<RefCell<Option<Current>>>,
    /// Its work tree, if it is one of several jobs.
    lane: Option<Rc<Lane>>,
    ground: Ground,
    command: Option<Box<dyn Validator + 'a>>,
    /// Whether an agent is asked, too.
    asks: bool,
    /// Whether what it is about is where it can be verified later on.
    is_kept: bool,
    /// Why what the agent has left cannot be committed.
    uncommitted: Option<String>,
    /// The state of the current validation.
    state: State,
}

#[derive(Default)]
struct State {
    /// The number of the iteration.
    iteration: u64,
    /// The output of the command, if it passed.
    passed: Option<String>,
    /// The name of the command, if it passed.
    passed_by: Option<String>,
    /// Whether an agent has been asked since.
    has_asked: bool,
    inspection: Inspection,
}

impl<'a> Verifier<'a> {
    pub(super) fn new(
        graph: Graph,
        current: Rc<RefCell<Option<Current>>>,
        lane: Option<Rc<Lane>>,
        ground: Ground,
        command: Option<Box<dyn Validator + 'a>>,
        asks: bool,
    ) -> Self {
        Self {
            graph,
            current,
            lane,
            ground,
            command,
            asks,
            is_kept: true,
            uncommitted: None,
            state: State::default(),
        }
    }

    /// Marks the task as verified, so that a crash before the booking loses nothing: if everything is committed, the
    /// next run books it at that commit.
    fn keep_verified(&self, context: &mut Context<'_>) -> Result<(), End> {
        let Some(claim) = self.claim().filter(|_| self.is_kept) else { return Ok(()) };
        let now = Snapshot::take(&self.ground);
        let Some(head) = now.head().filter(|_| now.is_clean()).map(str::to_owned) else { return Ok(()) };
        match self.graph.book(context, move |graph| graph.mark_verified(&claim, &head))? {
            Err(GraphError::ClaimLost { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The claim on the current task.
    fn claim(&self) -> Option<Claim> {
        self.current.borrow().as_ref().map(|current| current.claim.clone())
    }

    /// Asks an agent whether the task is done.
    fn ask(&mut self, proof: &mut Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        let current = Rc::clone(&self.current);
        let guard = current.borrow();
        let Some(current) = guard.as_ref() else { return Ok(Verdict::CutOff(Box::default())) };
        let (task, State { passed, inspection, has_asked, .. }) = (current.at_work(), &mut self.state);
        let question = Question {
            what: VERIFYING,
            no_verdict: NO_VERDICT,
            prompt: &verification_prompt(&current.facts, passed.as_deref()),
            document: None,
            folder: None,
            is_proven_again: self.command.is_some(),
            model: current.model.clone(),
            inspects: Inspects::Verifies,
            verdict: Sigils::verification,
        };
        context.tell(Fact::Verifying { task: task.clone() })?;
        *has_asked = true;
        let found = match inspection.ask(&question, &self.ground, proof, context)? {
            Inspected::Found(Err(reason)) => Err(reason),
            Inspected::Found(Ok(())) => match inspection.left_output.take() {
                None => Ok(()),
                // The agent may have created what was missing.
                Some(why) => match self.prove_by_command(proof, context)? {
                    None => Ok(()),
                    Some(Verdict::Found(_)) => {
                        drop(guard);
                        return Ok(self.undecided(why));
                    }
                    Some(verdict) => return Ok(verdict),
                },
            },
            Inspected::Undecided(why) => {
                drop(guard);
                return Ok(self.undecided(why));
            }
            Inspected::CutOff => return Ok(Verdict::CutOff(Box::new(std::mem::take(&mut inspection.usage)))),
            Inspected::Unable(report) => return Ok(Verdict::Unable(*report, Inspects::Verifies)),
        };
        if found.is_ok() {
            self.keep_verified(context)?;
        }
        let reason = found.as_ref().err().map_or("", String::as_str);
        context.tell(Fact::Verified { ok: found.is_ok(), reason: reason.into(), task })?;
        Ok(self.found(found))
    }

    /// Runs the command, if there is one. `None` if it passed.
    fn prove_by_command(
        &mut self,
        proof: &mut Proof<'_>,
        context: &mut Context<'_>,
    ) -> Result<Option<Verdict>, End> {
        let Some(command) = &mut self.command else { return Ok(None) };
        // It is asked only about a task whose agent says that it is done.
        let again = Proof { signal: Signal::Done, ..proof.again() };
        match command.validate(again, context)? {
            Verdict::Found(validation) if validation.ok => {
                self.state.has_asked = false;
                self.state.passed = Some(validation.output);
                self.state.passed_by = validation.by;
                Ok(None)
            }
            verdict => Ok(Some(verdict)),
        }
    }

    /// A validation without a verdict, which is not the task's fault.
    fn undecided(&mut self, why: String) -> Verdict {
        let output = format!("{NOT_VERIFIED}{why}");
        if let Some(current) = self.current.borrow_mut().as_mut() {
            current.undecided = Some(why);
        }
        Verdict::Found(Validation { undecided: true, ..self.validation(Err(output)) })
    }

    fn found(&mut self, found: Result<(), String>) -> Verdict {
        Verdict::Found(self.validation(found))
    }

    fn validation(&mut self, found: Result<(), String>) -> Validation {
        let usage = std::mem::take(&mut self.state.inspection.usage);
        let (ok, output) = (found.is_ok(), found.err().unwrap_or_default());
        let agent = self.asks.then(|| VERIFYING_AGENT.to_owned());
        let command = self.state.passed_by.clone().filter(|_| ok);
        let by: Vec<String> = command.into_iter().chain(agent).collect();
        let by = (!by.is_empty()).then(|| by.join(" and "));
        let ended_with_agent = self.state.has_asked;
        Validation { ok, output, by, usage, ended_with_agent, ..Validation::default() }
    }
}

impl Validator for Verifier<'_> {
    fn loop_begins(&mut self, name: &str, base: &mut Option<Base>) {
        if let Some(command) = &mut self.command {
            command.loop_begins(name, base);
        }
    }

    fn work_begins(&mut self, work: &Work, is_other: bool, base: &mut Option<Base>) {
        if let Some(command) = &mut self.command {
            command.work_begins(work, is_other, base);
        }
    }

    fn of_files(&mut self) -> Option<&mut dyn FilesValidator> {
        self.command.as_mut()?.of_files()
    }

    fn applies(&self, report: &Report) -> bool {
        let current = self.current.borrow();
        let Some(current) = current.as_ref() else { return false };
        if current.only_verifies {
            return self.command.is_some() && report.sigils.verification() == Some(Ok(()));
        }
        let is_done = report.sigils.claims_done(&current.task.id);
        is_done && !report.sigils.failure() && (self.asks || self.command.is_some())
    }

    /// Books and repairs what has to come before a proof. It marks the agent's claim as unverified, so that after a
    /// crash the task is verified next, and not worked on again.
    fn begin(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let mut current = self.current.borrow_mut();
        let Some(current) = current.as_mut() else { return Ok(()) };
        if current.only_verifies {
            current.has_to_be_proven = true;
            return current.look_at_what_was_left(&self.ground, self.command.is_some(), context);
        }
        if let Some(lane) = &self.lane {
            self.uncommitted = lane.commit_rest(current, context)?;
            let made = lane.keep(&self.graph, current, Keep::There, context)?;
            // Where it is not there, nothing would be there that another machine could verify.
            self.is_kept = made.is_some() || lane.exchange.is_none() || context.urgency() < Urgency::Now;
            if !self.is_kept {
                return Ok(());
            }
        }
        let head = self.ground.in_git.then(|| git::head(&self.ground.root)).flatten();
        let claim = current.claim.clone();
        match self.graph.book(context, move |graph| graph.mark_unverified(&claim, head.as_deref()))? {
            // Booking the attempt reports a lost claim.
            Err(GraphError::ClaimLost { .. }) | Ok(()) => Ok(()),
            Err(error) => {
                let end = End::from(error);
                Err(self.lane.as_ref().map_or(end.clone(), |lane| lane.kept_here(current, end)))
            }
        }
    }

    fn validate(&mut self, mut proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        if self.state.iteration != proof.iteration {
            self.state = State { iteration: proof.iteration, ..State::default() };
        }
        if self.current.borrow().as_ref().is_some_and(|current| current.fault.is_some()) {
            // Its verdict does not count.
            return Ok(Verdict::CutOff(Box::default()));
        }
        if let Some(why) = self.uncommitted.take() {
            return Ok(self.found(Err(why)));
        }
        if self.state.passed.is_none()
            && let Some(verdict) = self.prove_by_command(&mut proof, context)?
        {
            return Ok(verdict);
        }
        let only_verifies = self.current.borrow().as_ref().is_some_and(|current| current.only_verifies);
        if !self.asks || only_verifies {
            self.keep_verified(context)?;
            return Ok(self.found(Ok(())));
        }
        self.ask(&mut proof, context)
    }
}
