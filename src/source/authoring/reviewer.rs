//! The validation of a piece: it exists and is sound, and a fresh agent wants no changes of a document.

use std::cell::RefCell;
use std::rc::Rc;

use super::Commission;
use super::stage::{Document, Stage};
use crate::engine::agent::Inspects;
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::report::Report;
use crate::engine::validation::{REVIEWING_AGENT, Validation};
use crate::engine::validator::{Proof, Validator, Verdict};
use crate::graph::Store;
use crate::inspection::{Inspected, Inspection, Question};
use crate::prompt::authoring::review_prompt;
use crate::reply::sigil::Sigils;
use crate::text::line::one_line_within;

/// The longest finding in a message, in characters.
const SHOWN: usize = 300;

/// The validation of what agents write.
pub(crate) struct Reviewer {
    graph: Rc<RefCell<dyn Store>>,
    commission: Rc<Commission>,
    stage: Rc<RefCell<Option<Stage>>>,
    /// The inspection, with the number of its iteration.
    inspection: (u64, Inspection),
}

impl Reviewer {
    pub(super) fn new(
        graph: Rc<RefCell<dyn Store>>,
        commission: Rc<Commission>,
        stage: Rc<RefCell<Option<Stage>>>,
    ) -> Self {
        Self { graph, commission, stage, inspection: (0, Inspection::default()) }
    }

    /// Has a fresh agent review a document. If there is no verdict, the author is not to blame.
    fn review(
        &mut self,
        stage: &mut Stage,
        proof: &mut Proof<'_>,
        context: &mut Context<'_>,
    ) -> Result<Verdict, End> {
        let Some(document) = &stage.document else { return Ok(found(Ok(()))) };
        let text = document.text().unwrap_or_default();
        let sources = stage.sources(&self.commission)?;
        let facts = stage.facts(&self.commission, &sources, None, &[]);
        let question = Question {
            what: "reviewing",
            no_verdict: "the reviewing agent did not emit a review sigil",
            prompt: &review_prompt(&facts, &text),
            document: Some(&document.path),
            folder: None,
            is_proven_again: false,
            model: None,
            inspects: Inspects::Reviews,
            verdict: Sigils::review,
        };
        context.notice(&format!("a fresh agent reviews {}", document.shown))?;
        let inspection = &mut self.inspection.1;
        let opinion = match inspection.ask(&question, &self.commission.ground, proof, context)? {
            Inspected::Found(_) if document.text().as_ref() != Some(&text) => {
                let fault =
                    format!("the reviewing agent changed {}, so that it does not count", document.shown);
                return Err(without_verdict(document, &fault));
            }
            Inspected::Found(opinion) => opinion,
            Inspected::Undecided(fault) => return Err(without_verdict(document, &fault)),
            Inspected::CutOff => return Ok(Verdict::CutOff(Box::new(std::mem::take(&mut inspection.usage)))),
            Inspected::Unable(report) => return Ok(Verdict::Unable(*report, Inspects::Reviews)),
        };
        let usage = std::mem::take(&mut inspection.usage);
        if let Err(changes) = &opinion {
            context
                .notice(&format!("the reviewing agent wants changes: {}", one_line_within(changes, SHOWN)))?;
            stage.rounds += 1;
        }
        let ok = opinion.is_ok();
        Ok(Verdict::Found(Validation {
            ok,
            undecided: false,
            output: opinion.err().unwrap_or_default(),
            by: Some(REVIEWING_AGENT.to_owned()),
            usage,
            ended_with_agent: true,
            ..Validation::default()
        }))
    }

    /// The faults that need no agent to find.
    fn faults(&self, stage: &Stage) -> Result<Option<String>, End> {
        if let Some(document) = &stage.document {
            return Ok((!stage.has_written()).then(|| match document.text() {
                Some(text) if !text.trim().is_empty() => format!("{} was not changed", document.shown),
                _ => format!("{} was not written", document.shown),
            }));
        }
        let faults = stage.draft.faults(&*self.graph.borrow())?;
        Ok((!faults.is_empty()).then(|| faults.join("\n")))
    }
}

/// Ends the loop without a verdict about a document.
fn without_verdict(document: &Document, fault: &str) -> End {
    let why =
        format!("{fault}: {} is kept, and has not been reviewed; run the same command again", document.shown);
    End::because(Outcome::Unproven, why)
}

fn found(opinion: Result<(), String>) -> Verdict {
    let ok = opinion.is_ok();
    let by = ok.then(|| "tasks that can be imported".to_owned());
    Verdict::Found(Validation { ok, output: opinion.err().unwrap_or_default(), by, ..Validation::default() })
}

impl Validator for Reviewer {
    fn applies(&self, report: &Report) -> bool {
        let stage = self.stage.borrow();
        let is_due = |stage: &Stage| stage.closed || stage.has_written();
        !report.sigils.failure() && stage.as_ref().is_some_and(is_due)
    }

    fn validate(&mut self, mut proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        if self.inspection.0 != proof.iteration {
            self.inspection = (proof.iteration, Inspection::default());
        }
        let stage = Rc::clone(&self.stage);
        let mut stage = stage.borrow_mut();
        let Some(stage) = stage.as_mut() else { return Ok(Verdict::CutOff(Box::default())) };
        if let Some(faults) = self.faults(stage)? {
            context.notice(&one_line_within(&faults, SHOWN))?;
            stage.misses += 1;
            return Ok(found(Err(faults)));
        }
        stage.misses = 0;
        self.review(stage, &mut proof, context)
    }
}
