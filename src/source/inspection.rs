//! A fresh agent that looks at what another one has made, and changes nothing.

use std::path::{Path, PathBuf};

use crate::engine::agent::{Attempt, How};
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::report::{AttemptStatus, Report};
use crate::engine::validator::Proof;
use crate::git::GitError;
use crate::git::contents::Contents;
use crate::git::guard::{self, Difference, Guarded};
use crate::reply::sigil::Sigils;
use crate::reply::usage::Usage;
use crate::text::list::some_of;

/// So many files a notice names.
const SOME: usize = 5;
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
    /// What it judges, where that is one file: it must stay as it is, also where git does not track it.
    pub(super) document: Option<&'a Path>,
    /// Something else looks at the work tree as it was before, so that files that it only left there do no harm.
    pub(super) is_proven_again: bool,
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
    /// It left files behind that were taken back, and its verdict counts all the same: why it would not.
    pub(super) left_output: Option<String>,
}

/// What an agent changed that only looked.
pub(super) struct TakenBack {
    /// Why its verdict does not count.
    pub(super) why: String,
    /// It changed nothing that git tracks: tests leave such files behind.
    pub(super) is_output: bool,
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

/// A work tree before an agent that only looks is at work in it.
pub(super) struct Watched {
    document: Option<PathBuf>,
    guarded: Guarded,
    /// What it holds, in git.
    contents: Option<Result<Contents, GitError>>,
}

impl Ground {
    /// Saves the work tree as it is, before an agent only looks at it, or at one `document` in it.
    pub(super) fn watched(&self, document: Option<&Path>) -> Watched {
        let guarded = Guarded::take(&self.root, self.in_git, document);
        let contents = self.in_git.then(|| guarded.contents(&self.root));
        Watched { document: document.map(Path::to_owned), guarded, contents }
    }

    /// Takes back what was changed while an agent only looked, once it is kept under refs, and returns why its verdict does not
    /// count. `None`: all is as it was, but for files that cannot be taken back, which are reported.
    ///
    /// # Errors
    /// If HEAD is on another branch, or a change cannot be taken back: nothing can be verified or built there.
    pub(super) fn take_back(
        &self,
        agent: &str,
        before: &Watched,
        context: &mut Context<'_>,
    ) -> Result<Option<TakenBack>, End> {
        let now = Guarded::take(&self.root, self.in_git, before.document.as_deref());
        let Some(what) = now.differs_from(&before.guarded) else { return Ok(None) };
        let failed = |said: &str, error: &GitError| {
            let advice = "bring the work tree back to what it was before you run again";
            End::because(Outcome::GitFailed, format!("{said}; it could not be taken back: {error}: {advice}"))
        };
        let said = |what: &Difference| format!("the {agent} agent changed {what}, so that it does not count");
        let held = now.contents(&self.root).map_err(|error| failed(&said(&what), &error))?;
        let saved = before.contents.as_ref().and_then(|contents| contents.as_ref().ok());
        let (what, lost) =
            what.without(|path| held.lacks(path) || saved.is_some_and(|before| before.lacks(path)));
        if !lost.is_empty() {
            context.notice(&format!(
                "{} changed while the {agent} agent was at work, which git does not track: too large, or too much, to be taken \
                 back",
                some_of(lost, SOME)
            ))?;
        }
        let Some(what) = what else { return Ok(None) };
        if what.is_untracked_only() && saved.is_some_and(|before| before.is_same(&held)) {
            return Ok(None);
        }
        let said = said(&what);
        let failed = |error: &GitError| failed(&said, error);
        let kept = what.keep(&self.root, agent, &held).map_err(|error| failed(&error))?;
        let told = if kept.is_empty() {
            said.clone()
        } else {
            format!("{said}; what was there before, and what it has changed, is in {}", kept.join(", "))
        };
        if what.left.is_some() {
            let advice = "bring HEAD back before you run again ('git reflog' has where it was)";
            return Err(End::because(Outcome::GitFailed, format!("{told}: {advice}")));
        }
        match &before.contents {
            Some(Ok(before)) if !before.is_same(&held) => {
                guard::take_back(&self.root, before, &held).map_err(|error| failed(&error))?;
                // The work tree as it was found is kept last.
                if let Some(undo) = kept.last().and_then(|kept| what.undo(kept)) {
                    let ignore = if what.is_untracked_only() {
                        "; what tests leave behind belongs in .gitignore"
                    } else {
                        ""
                    };
                    context.notice(&format!(
                        "if it was you who changed {what} while the {agent} agent was at work, '{undo}' brings it back{ignore}"
                    ))?;
                }
                let why = format!("{told}; the work tree is as it was before");
                Ok(Some(TakenBack { why, is_output: what.is_untracked_only() }))
            }
            Some(Err(error)) => Err(failed(error)),
            _ => Ok(Some(TakenBack { why: told, is_output: false })),
        }
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
        let Question { what, no_verdict, prompt, document, is_proven_again, model, verdict } = question;
        let how = How { model: model.clone(), read_only: ground.looks_only, ..proof.work.how.clone() };
        let attempt = Attempt { iteration: proof.iteration, prompt, how: &how, deadline: proof.deadline };
        loop {
            let before = ground.watched(*document);
            let report = proof.agent.run(&attempt, context)?;
            // Whatever came of it: the next one must not look at what this one has changed.
            let changed = ground.take_back(what, &before, context)?;
            if let Some(changed) = &changed {
                context.notice(&changed.why)?;
            }
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
            let fault = match (changed, report.status, verdict) {
                (Some(changed), status, found)
                    if status != AttemptStatus::Success
                        || !changed.is_output
                        || found.is_none_or(|found| found.is_ok() && !is_proven_again) =>
                {
                    changed.why
                }
                (changed, AttemptStatus::Success, Some(found)) => {
                    self.left_output = changed.map(|changed| changed.why);
                    return Ok(Inspected::Found(found.map_err(|reason| in_words(what, reason))));
                }
                (_, status, _) => {
                    let failure = report.failure.filter(|_| status != AttemptStatus::Success);
                    let fault = failure.map_or_else(|| (*no_verdict).to_owned(), |failure| failure.message);
                    context.notice(&fault)?;
                    fault
                }
            };
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
