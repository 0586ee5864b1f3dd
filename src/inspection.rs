//! A fresh agent that inspects another agent's work and must not change anything.

use std::path::{Path, PathBuf};

use crate::engine::agent::{Attempt, How, Inspects};
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

/// At most this many files are named in a notice.
const SOME: usize = 5;
/// A failed inspection, one without a verdict, or one that changed something is repeated once.
const TRIES: u32 = 2;

/// The work tree to inspect.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    /// The top of the work tree.
    pub(crate) root: PathBuf,
    /// Whether it is in git.
    pub(crate) in_git: bool,
    /// Whether the agent can be started read-only.
    pub(crate) looks_only: bool,
}

/// The question to the agent.
pub(crate) struct Question<'a> {
    /// Its activity, as in `verifying`.
    pub(crate) what: &'static str,
    /// The error if it gives no verdict.
    pub(crate) no_verdict: &'static str,
    pub(crate) prompt: &'a str,
    /// The one file that it judges, if any: it must not change, even if git does not track it.
    pub(crate) document: Option<&'a Path>,
    /// The folder where it looks; `None`: the top of the work tree.
    pub(crate) folder: Option<PathBuf>,
    /// Whether the restored work tree is validated again, so that a verdict counts although the agent left untracked
    /// files.
    pub(crate) is_proven_again: bool,
    pub(crate) model: Option<String>,
    /// How it looks.
    pub(crate) inspects: Inspects,
    /// The verdict in its last message.
    pub(crate) verdict: for<'s> fn(&'s Sigils) -> Option<Result<(), &'s str>>,
}

/// The state of an inspection; a wait may interrupt it.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    tries: u32,
    /// Its cost so far.
    pub(crate) usage: Usage,
    /// If it left untracked files that were removed, and its verdict counts all the same: the reason why it might
    /// not.
    pub(crate) left_output: Option<String>,
}

/// Changes of an inspecting agent that were undone.
pub(crate) struct TakenBack {
    /// Why its verdict does not count.
    pub(crate) why: String,
    /// Whether it changed no tracked file: tests leave untracked files.
    pub(crate) is_output: bool,
}

/// The result of an inspection.
pub(crate) enum Inspected {
    /// The verdict: nothing is wrong, or this.
    Found(Result<(), String>),
    /// No verdict in all tries, for this reason.
    Undecided(String),
    /// The loop ends or pauses.
    CutOff,
    /// The agent could not work, for a reason that passes with time or ends the loop.
    Unable(Box<Report>),
}

/// The state of a work tree before an inspecting agent runs in it.
pub(crate) struct Watched {
    document: Option<PathBuf>,
    guarded: Guarded,
    /// The saved contents, in git.
    contents: Option<Result<Contents, GitError>>,
}

impl Ground {
    /// Saves the state of the work tree, or of one `document` in it, before an inspection.
    pub(crate) fn watched(&self, document: Option<&Path>) -> Watched {
        let guarded = Guarded::take(&self.root, self.in_git, document);
        let contents = self.in_git.then(|| guarded.contents(&self.root));
        Watched { document: document.map(Path::to_owned), guarded, contents }
    }

    /// Undoes an inspecting agent's changes, after keeping them under refs, and returns why its verdict does not
    /// count. `None` if nothing has changed, except files that cannot be restored, which are reported.
    ///
    /// # Errors
    /// If HEAD is on another branch, or a change cannot be undone: nothing can be verified or built there.
    pub(crate) fn take_back(
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
                // The found state of the work tree is the last ref.
                if let Some(undo) = kept.last().and_then(|kept| what.undo(kept)) {
                    let ignore = if what.is_untracked_only() {
                        "; what tests leave behind belongs in .gitignore"
                    } else {
                        ""
                    };
                    context.notice(&format!(
                        "if it was you who changed {what} while the {agent} agent was at work, '{undo}' restores it{ignore}"
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
    pub(crate) fn ask(
        &mut self,
        question: &Question<'_>,
        ground: &Ground,
        proof: &mut Proof<'_>,
        context: &mut Context<'_>,
    ) -> Result<Inspected, End> {
        let Question {
            what,
            no_verdict,
            prompt,
            document,
            folder,
            is_proven_again,
            model,
            inspects,
            verdict,
        } = question;
        let how = How {
            model: model.clone(),
            folder: folder.clone(),
            inspects: Some(*inspects),
            ..proof.work.how.clone()
        };
        let attempt = Attempt { iteration: proof.iteration, prompt, how: &how, deadline: proof.deadline };
        loop {
            let before = ground.watched(*document);
            let report = proof.agent.run(&attempt, context)?;
            // In every case: the next agent must not inspect these changes.
            let changed = ground.take_back(what, &before, context)?;
            context.refused.extend(report.refused.iter().cloned());
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
            // A given verdict counts, even if a request for the loop arrived meanwhile.
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
