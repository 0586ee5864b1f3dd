//! A feature as agents write it: its spec, its plan, its tasks, one after the other. Each is written by one agent, which may talk
//! with the user first, and looked at before it counts.

mod draft;
mod reviewer;
mod stage;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use crate::engine::agent::How;
use crate::engine::context::Context;
use crate::engine::event::Event;
use crate::engine::outcome::{End, Outcome};
use crate::engine::report::{AttemptStatus, Report, Signal};
use crate::engine::source::{Booked, Source, Work};
use crate::engine::tally::{Given, Tally};
use crate::graph::{GraphError, Store};
use crate::prompt::authoring::{Piece, Turn, authoring_prompt};
use crate::source::inspection::Ground;
use draft::Draft;
pub(crate) use reviewer::Reviewer;
use stage::Stage;

/// So many attempts in a row that wrote nothing, or nothing sound, end it.
const MISSES: u32 = 3;
/// So many reviews that want changes end it.
const ROUNDS: u32 = 5;
/// What the user is asked, besides what the agent asks.
const QUESTION: &str = "Your answer (empty: that is all, write it now):";

/// What is to be written, where and from what.
pub(crate) struct Commission {
    /// The name of the feature; `None` for a task that belongs to none.
    pub(crate) feature: Option<String>,
    /// What is written, in this order.
    pub(crate) pieces: Vec<Piece>,
    /// What the user wants, in their words.
    pub(crate) brief: Option<String>,
    /// The work tree.
    pub(crate) ground: Ground,
    /// The folder with `features/`.
    pub(crate) documents: PathBuf,
    /// The folder of the graph in which agents make tasks.
    pub(crate) draft: PathBuf,
    /// How agents call our own executable about that graph.
    pub(crate) ralph: String,
}

/// A source of what has to be written.
pub(crate) struct Authoring {
    graph: Rc<RefCell<dyn Store>>,
    commission: Rc<Commission>,
    left: VecDeque<Piece>,
    /// What is written now; shared with the [`Reviewer`].
    stage: Rc<RefCell<Option<Stage>>>,
    /// Why it ends before all is written.
    end: Option<End>,
}

impl Authoring {
    /// A source for a commission; what is sound goes into the graph.
    pub(crate) fn new(graph: Rc<RefCell<dyn Store>>, commission: Commission) -> Self {
        let left = commission.pieces.iter().copied().collect();
        Self { graph, commission: Rc::new(commission), left, stage: Rc::default(), end: None }
    }

    /// Who looks at what was written.
    pub(crate) fn reviewer(&self) -> Reviewer {
        Reviewer::new(Rc::clone(&self.graph), Rc::clone(&self.commission), Rc::clone(&self.stage))
    }

    /// Goes on to the next piece where there is none at hand. `false`: all is written.
    fn advance(&mut self, context: &Context<'_>) -> bool {
        if self.stage.borrow().is_some() {
            return true;
        }
        let Some(piece) = self.left.pop_front() else { return false };
        let mut stage = Stage::new(piece, &self.commission);
        // The tasks follow from the plan.
        stage.closed = piece == Piece::Tasks || !context.has_person();
        *self.stage.borrow_mut() = Some(stage);
        true
    }

    /// Asks the user what the agent has asked. `false`: the loop has been asked to stop meanwhile.
    fn hear_the_user(&self, context: &mut Context<'_>) -> Result<bool, End> {
        let is_asked = self.stage.borrow().as_ref().is_some_and(Stage::waits_for_the_user);
        if !is_asked {
            return Ok(true);
        }
        let answer = context.ask(QUESTION)?;
        if context.is_held_up() {
            return Ok(false);
        }
        if let Some(stage) = self.stage.borrow_mut().as_mut() {
            match answer {
                Some(text) => stage.talk.push(Turn::User(text)),
                None => stage.closed = true,
            }
        }
        Ok(true)
    }

    /// What was written counts.
    fn take_over(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let Some(stage) = self.stage.borrow_mut().take() else { return Ok(()) };
        let feature = self.commission.feature.as_deref();
        let mut graph = self.graph.borrow_mut();
        let told = if let (Some(document), Some(feature)) = (&stage.document, feature) {
            document.enter(&mut *graph, feature).map_err(failed)?;
            format!("{} of {feature}: {}", stage.piece.word(), document.shown)
        } else {
            let ids = stage.draft.take_over(&mut *graph, feature).map_err(failed)?;
            format!("{} task(s): {}", ids.len(), ids.join(" "))
        };
        drop(graph);
        context.tell(Event::Published(&told))
    }

    /// What was written does not count: why it ends here, if it does.
    fn turn_down(&mut self, findings: &str) -> Result<(), End> {
        let mut stage = self.stage.borrow_mut();
        let Some(stage) = stage.as_mut() else { return Ok(()) };
        // From now on it is written, not talked.
        stage.closed = true;
        let (word, feature) = (stage.piece.word(), self.commission.feature.as_deref());
        if stage.rounds >= ROUNDS {
            let Some((document, feature)) = stage.document.as_ref().zip(feature) else { return Ok(()) };
            // It is theirs now.
            document.enter(&mut *self.graph.borrow_mut(), feature).map_err(failed)?;
            let why = format!(
                "the reviewing agent wants changes for the {ROUNDS}th time: {findings}: read {}, and run 'ralph feature {word} \
                 {feature}' once more, or go on with it as it is",
                document.shown
            );
            self.end = Some(End::because(Outcome::Unproven, why));
        } else if stage.misses >= MISSES {
            let why =
                format!("{MISSES} attempts in a row were not good: {findings}: nothing is left of them");
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
        Ok(Work { prompt: authoring_prompt(&facts), how: How::default() })
    }

    fn settle(&self, report: &Report) -> Signal {
        if report.sigils.failure() { Signal::Failure } else { Signal::Continue }
    }

    fn book(&mut self, booked: &Booked<'_>, context: &mut Context<'_>) -> Result<(), End> {
        let report = booked.report;
        if report.is_waited_for() {
            return Ok(());
        }
        let is_over = matches!(report.status, AttemptStatus::Success | AttemptStatus::CompleteUnproven);
        match booked.proof {
            Some(proof) if proof.ok => return self.take_over(context),
            Some(proof) => self.turn_down(&proof.output)?,
            None if is_over && booked.signal == Signal::Continue => {
                if let Some(stage) = self.stage.borrow_mut().as_mut() {
                    stage.heard(&report.text);
                }
            }
            None => {}
        }
        // It may be tried again without being asked for.
        match self.stage.borrow_mut().as_mut() {
            Some(stage) => stage.begin(&self.commission, &*self.graph.borrow()),
            None => Ok(()),
        }
    }

    fn close(&mut self, end: End, _: &Tally, _: &mut Context<'_>) -> End {
        Draft::new(self.commission.draft.clone()).throw_away();
        end
    }
}

/// The graph, or a file beside it, cannot go on, and neither can the loop.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: GraphError) -> End {
    End::because(Outcome::RecordFailed, error.to_string())
}
