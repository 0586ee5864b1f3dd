//! A feature that agents write: its spec, its plan and its tasks, in this order. One agent writes each piece,
//! possibly after questions to the user, and the piece is reviewed before it counts.

mod draft;
mod reviewer;
mod stage;
mod talk;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use crate::engine::context::Context;
use crate::engine::fact::Fact;
use crate::engine::outcome::{End, Outcome};
use crate::engine::person::Answer;
use crate::engine::report::{AttemptStatus, Report, Signal};
use crate::engine::source::{Booked, Source, Work};
use crate::engine::tally::{Given, Tally};
use crate::graph::Store;
use crate::inspection::Ground;
use crate::prompt::authoring::{Piece, Turn, authoring_prompt};
use crate::text::count;
pub(crate) use reviewer::Reviewer;
use stage::Stage;

/// This many attempts in a row that wrote nothing, or nothing sound, end the loop.
const MISSES: u32 = 3;
/// This many reviews that want changes end the loop.
const ROUNDS: u32 = 5;
/// What to write, where, and from what.
pub(crate) struct Commission {
    /// The name of the feature; `None` for a task without one.
    pub(crate) feature: Option<String>,
    /// The pieces to write, in this order.
    pub(crate) pieces: Vec<Piece>,
    /// The user's request.
    pub(crate) brief: Option<String>,
    /// The work tree.
    pub(crate) ground: Ground,
    /// The folder with `features/`.
    pub(crate) documents: PathBuf,
    /// The folder of the draft graph.
    pub(crate) draft: PathBuf,
    /// The folder that keeps talks until their piece is written.
    pub(crate) talks: PathBuf,
    /// Documents that exist and are not in the graph were written by an interrupted agent: they are reviewed first.
    pub(crate) goes_on: bool,
    /// The command line of our own executable for that graph.
    pub(crate) ralph: String,
}

/// A source for the pieces to be written.
pub(crate) struct Authoring {
    graph: Rc<RefCell<dyn Store>>,
    commission: Rc<Commission>,
    left: VecDeque<Piece>,
    /// The current piece; shared with the [`Reviewer`].
    stage: Rc<RefCell<Option<Stage>>>,
    /// Why it ends before everything is written.
    end: Option<End>,
}

impl Authoring {
    /// A source for a commission; sound pieces go into the graph.
    pub(crate) fn new(graph: Rc<RefCell<dyn Store>>, commission: Commission) -> Self {
        let left = commission.pieces.iter().copied().collect();
        Self { graph, commission: Rc::new(commission), left, stage: Rc::default(), end: None }
    }

    /// The validator of what was written.
    pub(crate) fn reviewer(&self) -> Reviewer {
        Reviewer::new(Rc::clone(&self.graph), Rc::clone(&self.commission), Rc::clone(&self.stage))
    }

    /// The documents that the graph already has.
    fn known_documents(&self) -> Vec<String> {
        let graph = self.graph.borrow();
        let feature = self.commission.feature.as_deref().and_then(|name| graph.feature(name).ok());
        feature.into_iter().flat_map(|feature| [feature.spec_path, feature.plan_path]).flatten().collect()
    }

    /// Begins the next piece if there is no current one. `false` if everything is written.
    fn advance(&mut self, context: &Context<'_>) -> bool {
        if self.stage.borrow().is_some() {
            return true;
        }
        let Some(piece) = self.left.pop_front() else { return false };
        let known = self.known_documents();
        let mut stage = Stage::new(piece, &self.commission, &known);
        // The tasks follow from the plan; no questions are needed.
        stage.closed = piece == Piece::Tasks || !context.has_person();
        *self.stage.borrow_mut() = Some(stage);
        true
    }

    /// Asks the user the agent's question. `false` if the loop was asked to stop meanwhile.
    fn hear_the_user(&self, context: &mut Context<'_>) -> Result<bool, End> {
        let Some(question) = self.stage.borrow().as_ref().and_then(Stage::open_question) else {
            return Ok(true);
        };
        let answer = context.ask(&question)?;
        let mut stage = self.stage.borrow_mut();
        let Some(stage) = stage.as_mut() else { return Ok(true) };
        match answer {
            // Even if the loop is paused now, so that the question is not asked twice.
            Answer::Line(text) if !text.is_empty() => stage.talk.push(Turn::User(text))?,
            Answer::Line(_) => stage.closed = true,
            // An interrupt is not consent to write.
            Answer::Gone => return Ok(false),
        }
        Ok(!context.is_held_up())
    }

    /// Accepts what was written.
    fn take_over(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let Some(stage) = self.stage.borrow_mut().take() else { return Ok(()) };
        stage.talk.forget();
        let feature = self.commission.feature.as_deref();
        let mut graph = self.graph.borrow_mut();
        graph.look_after()?;
        let told = if let (Some(document), Some(feature)) = (&stage.document, feature) {
            document.enter(&mut *graph, feature)?;
            format!("{} of {feature}: {}", stage.piece.word(), document.shown)
        } else {
            if let (Piece::Tasks, Some(name)) = (stage.piece, feature)
                && graph.feature(name)?.tasks.total > 0
            {
                let why = format!("feature '{name}' has got tasks meanwhile: these are not added to them");
                return Err(End::because(Outcome::Unproven, why));
            }
            let ids = stage.draft.take_over(&mut *graph, feature)?;
            format!("{}: {}", count::of(ids.len() as u64, "task"), ids.join(" "))
        };
        drop(graph);
        context.tell(Fact::Published { message: told.into() })
    }

    /// Rejects what was written; an error ends the loop.
    fn turn_down(&mut self, findings: &str) -> Result<(), End> {
        let mut stage = self.stage.borrow_mut();
        let Some(stage) = stage.as_mut() else { return Ok(()) };
        // From now on the agent writes without questions, and what exists has to be changed.
        stage.closed = true;
        stage.is_judged();
        let (word, feature) = (stage.piece.word(), self.commission.feature.as_deref());
        if stage.rounds >= ROUNDS {
            let Some((document, feature)) = stage.document.as_ref().zip(feature) else { return Ok(()) };
            // From now on it is the user's document.
            document.enter(&mut *self.graph.borrow_mut(), feature)?;
            let why = format!(
                "the reviewing agent wants changes for the {ROUNDS}th time: {findings}: read {}, and run 'ralph feature {word} \
                 {feature}' once more, or go on with it as it is",
                document.shown
            );
            self.end = Some(End::because(Outcome::Unproven, why));
        } else if stage.misses >= MISSES {
            let left = if stage.document.is_none() {
                ": nothing is left of them"
            } else if stage.bring_back()? {
                ": what was there before is back"
            } else {
                ""
            };
            let why = format!("{MISSES} attempts in a row were not good: {findings}{left}");
            self.end = Some(End::because(Outcome::Unproven, why));
        }
        Ok(())
    }
}

impl Source for Authoring {
    fn next(&mut self, _: u64, given: &Given, context: &mut Context<'_>) -> Result<Work, End> {
        if let Some(end) = self.end.take() {
            return Err(end);
        }
        if !self.advance(context) {
            return Err(Outcome::Written.into());
        }
        if !self.hear_the_user(context)? {
            return Err(Outcome::Interrupted.into());
        }
        let mut stage = self.stage.borrow_mut();
        let Some(stage) = stage.as_mut() else { return Err(Outcome::Written.into()) };
        stage.begin(&self.commission, &*self.graph.borrow())?;
        let sources = stage.sources(&self.commission)?;
        let findings = given.validation_error.as_deref();
        let facts = stage.facts(&self.commission, &sources, findings, &given.notes);
        Ok(Work { prompt: authoring_prompt(&facts), ..Work::default() })
    }

    fn settle(&self, report: &Report) -> Signal {
        if report.sigils.failure() { Signal::Failure } else { Signal::Continue }
    }

    fn book(&mut self, booked: &Booked<'_>, context: &mut Context<'_>) -> Result<(), End> {
        let report = booked.report;
        let is_over = matches!(report.status, AttemptStatus::Success | AttemptStatus::CompleteUnproven);
        match booked.proof {
            Some(proof) if proof.ok => return self.take_over(context),
            Some(proof) => self.turn_down(&proof.output)?,
            None if is_over && booked.signal == Signal::Continue => {
                if let Some(stage) = self.stage.borrow_mut().as_mut().filter(|stage| !stage.has_written()) {
                    stage.heard(&report.text)?;
                }
            }
            None => {}
        }
        // The review may be repeated without a request, whatever its result was.
        match self.stage.borrow_mut().as_mut() {
            Some(stage) => stage.begin(&self.commission, &*self.graph.borrow()),
            None => Ok(()),
        }
    }

    fn close(&mut self, end: End, _: &Tally, _: &mut Context<'_>) -> End {
        if let Some(stage) = self.stage.borrow().as_ref().filter(|stage| stage.document.is_none()) {
            stage.draft.throw_away();
        }
        end
    }
}
