//! A fresh agent that looks at what another one has made, and changes nothing.

use std::path::PathBuf;

use crate::engine::agent::{Attempt, How};
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::report::{AttemptStatus, Report};
use crate::engine::validator::Proof;
use crate::git::guard::{Difference, Guarded};
use crate::reply::sigil::Sigils;
use crate::reply::usage::Usage;

/// One that fails, says nothing or changes something is asked once more.
const TRIES: u32 = 2;

/// Where it looks.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    /// The top of the work tree.
    pub(crate) root: PathBuf,
    /// Whether that is in git.
    pub(crate) in_git: bool,
    /// The agent can be kept from changing anything.
    pub(crate) looks_only: bool,
}

/// What it is asked.
pub(super) struct Question<'a> {
    /// What it does, as in `verifying`.
    pub(super) what: &'static str,
    /// Why a claim of what it found does not count, where it made none.
    pub(super) no_verdict: &'static str,
    pub(super) prompt: &'a str,
    pub(super) model: Option<String>,
    /// What its last message claims.
    pub(super) verdict: for<'s> fn(&'s Sigils) -> Option<Result<(), &'s str>>,
}

/// How far an inspection has come; it may be interrupted by a wait.
#[derive(Debug, Default)]
pub(super) struct Inspection {
    tries: u32,
    /// What it has cost so far.
    pub(super) usage: Usage,
}

/// What came of it.
pub(super) enum Inspected {
    /// Nothing is wrong, or this.
    Found(Result<(), String>),
    /// It came to no verdict, however often it was asked, for this reason.
    Undecided(String),
    /// The loop ends or holds.
    CutOff,
    /// The agent could not work, for a reason that passes with time or ends the loop.
    Unable(Box<Report>),
}

impl Ground {
    /// What must stay as it is where an agent only looks.
    pub(super) fn guarded(&self) -> Guarded {
        Guarded::take(&self.root, self.in_git)
    }

    /// Keeps what an agent that only looks has changed, and says so. Nothing is taken back in a checkout that ralph did not make.
    ///
    /// # Errors
    /// When HEAD is on another branch: nothing can be verified or built there.
    pub(super) fn kept(&self, agent: &str, what: &Difference) -> Result<String, End> {
        let said = format!("the {agent} agent changed {what}, so that it does not count");
        let said = match what.keep(&self.root, agent) {
            Ok(kept) if kept.is_empty() => said,
            Ok(kept) => {
                format!("{said}; what was there before, and what is not committed, is in {}", kept.join(", "))
            }
            Err(error) => format!("{said}; it could not be saved: {error}"),
        };
        if what.left.is_some() {
            let advice = "bring HEAD back before you run again ('git reflog' has where it was)";
            return Err(End::because(Outcome::GitFailed, format!("{said}: {advice}")));
        }
        Ok(said)
    }
}

impl Inspection {
    /// Asks an agent.
    pub(super) fn ask(
        &mut self,
        question: &Question<'_>,
        ground: &Ground,
        proof: &mut Proof<'_>,
        context: &mut Context<'_>,
    ) -> Result<Inspected, End> {
        let Question { what, no_verdict, prompt, model, verdict } = question;
        let how = How { model: model.clone(), read_only: ground.looks_only, ..proof.work.how.clone() };
        let attempt = Attempt { iteration: proof.iteration, prompt, how: &how, deadline: proof.deadline };
        loop {
            let before = ground.guarded();
            let report = proof.agent.run(&attempt, context)?;
            if is_unable(&report) {
                return Ok(Inspected::Unable(Box::new(report)));
            }
            let mut used = report.usage.clone();
            used.cost_usd = report.cost_usd();
            self.usage.add(&used);
            let verdict = verdict(&report.sigils);
            // A verdict that has come counts, whatever was asked of the loop meanwhile.
            if report.status == AttemptStatus::Interrupted || verdict.is_none() && context.is_held_up() {
                return Ok(Inspected::CutOff);
            }
            self.tries += 1;
            let now = ground.guarded();
            if let Some(files) = now.new_files(&before) {
                context.notice(&format!("the {what} agent left {files}, which git does not track"))?;
            }
            let fault = match now.differs_from(&before) {
                Some(difference) => ground.kept(what, &difference)?,
                None => match (report.status, verdict) {
                    (AttemptStatus::Success, Some(found)) => {
                        return Ok(Inspected::Found(found.map_err(|reason| in_words(what, reason))));
                    }
                    (AttemptStatus::Success, None) => (*no_verdict).to_owned(),
                    _ => report.failure.map_or_else(|| (*no_verdict).to_owned(), |failure| failure.message),
                },
            };
            context.notice(&fault)?;
            if self.tries >= TRIES {
                return Ok(Inspected::Undecided(fault));
            }
        }
    }
}

fn in_words(what: &str, reason: &str) -> String {
    match reason.trim() {
        "" => format!("the {what} agent gave no reason"),
        reason => reason.to_owned(),
    }
}

/// Whether an agent could not work for a reason that passes with time or ends the loop.
fn is_unable(report: &Report) -> bool {
    report.status == AttemptStatus::UsageLimit
        || report.status == AttemptStatus::AgentFailure && report.is_refused()
}
