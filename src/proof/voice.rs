//! The second voice: a fresh agent that judges whether changes of what work is measured by are honest.

use std::mem::take;

use super::baseline::Look;
use super::judgement::Doubt;
use super::step::{Step, ends, with_tree};
use crate::engine::agent::Inspects;
use crate::engine::context::Context;
use crate::engine::fact::ProofVoice;
use crate::engine::outcome::End;
use crate::engine::validator::{Proof, Verdict};
use crate::git::clean_tree;
use crate::inspection::{Ground, Inspected, Inspection, Question};
use crate::prompt::proof::{Facts, judging_prompt};
use crate::reply::sigil::Sigils;
use crate::reply::usage::Usage;
use crate::text::line::one_line_within;

/// The longest reason in a line, in characters.
const REASON: usize = 400;

/// The second voice of a loop.
#[derive(Debug, Default)]
pub(super) struct Voice {
    /// The commit that was judged last.
    commit: String,
    /// The verdict about it.
    heard: Option<Result<(), String>>,
    inspection: Inspection,
}

/// What it says.
#[derive(Debug)]
pub(super) enum Said {
    Agrees,
    /// It does not, for this reason.
    Objects(String),
    /// It has given no verdict, for this reason.
    Nothing(String),
    /// No agent can be asked here.
    Silent,
}

impl Said {
    /// What a record keeps of it.
    pub(super) fn kept(&self) -> Option<ProofVoice> {
        let (ok, words) = match self {
            Self::Agrees => (Some(true), ""),
            Self::Objects(why) => (Some(false), &**why),
            Self::Nothing(why) => (None, &**why),
            Self::Silent => return None,
        };
        Some(ProofVoice { ok, words: words.to_owned() })
    }
}

impl Voice {
    /// One that has judged a commit before, as a record says.
    pub(super) fn recalled(commit: &str, said: Option<&ProofVoice>) -> Self {
        let verdict = |said: &ProofVoice| Some(if said.ok? { Ok(()) } else { Err(said.words.clone()) });
        Self { commit: commit.to_owned(), heard: said.and_then(verdict), ..Self::default() }
    }

    /// Asks about a doubtful commit. It is asked once about each, so that the end of a loop, where there is no agent, keeps
    /// to what it has said.
    pub(super) fn ask(
        &mut self,
        ground: Option<&Ground>,
        (look, commit, doubt): (&Look, &str, &Doubt),
        asker: Option<&mut Proof<'_>>,
        context: &mut Context<'_>,
    ) -> Result<Step<(Said, Usage)>, End> {
        if self.commit != commit {
            *self = Self { commit: commit.to_owned(), ..Self::default() };
        }
        if let Some(heard) = &self.heard {
            return Ok(Step::Goes((said(heard.clone()), Usage::default())));
        }
        let (Some(ground), Some(proof)) = (ground, asker) else {
            return Ok(Step::Goes((Said::Silent, Usage::default())));
        };
        context.notice(&format!("a second agent is asked: {}", doubt.told(&look.base)))?;
        let work = proof.work.prompt.clone();
        // It stays laid out while the agent looks, and is made anew afterwards.
        let (_laid, prompt) = match with_tree(context, {
            let (look, commit, doubt) = (look.clone(), commit.to_owned(), doubt.clone());
            move |cancelled| {
                let laid = look.tree.lay(&commit, cancelled)?;
                let facts = facts(&look, commit, &doubt, work)?;
                Ok(Step::Goes((laid, judging_prompt(&facts))))
            }
        })? {
            Step::Goes(ready) => ready,
            Step::Ends(verdict) => return Ok(Step::Ends(verdict)),
        };
        let question = Question {
            what: "judging",
            no_verdict: "the judging agent did not emit a verification sigil",
            prompt: &prompt,
            document: None,
            folder: Some(look.tree.path().to_owned()),
            // Untracked files in the user's work tree are no part of the proof.
            is_proven_again: true,
            model: proof.work.how.model.clone(),
            inspects: Inspects::Verifies,
            verdict: Sigils::verification,
        };
        let inspected = self.inspection.ask(&question, ground, proof, context)?;
        let used = |inspection: &mut Inspection| take(&mut inspection.usage);
        let said = match inspected {
            Inspected::Found(verdict) => said(self.heard.insert(verdict).clone()),
            Inspected::Undecided(why) => Said::Nothing(why),
            Inspected::CutOff => return Ok(ends(Verdict::CutOff(Box::new(used(&mut self.inspection))))),
            Inspected::Unable(report) => return Ok(ends(Verdict::Unable(*report, Inspects::Verifies))),
        };
        Ok(Step::Goes((said, take(&mut self.inspection).usage)))
    }
}

fn said(verdict: Result<(), String>) -> Said {
    match verdict {
        Ok(()) => Said::Agrees,
        Err(reason) => Said::Objects(one_line_within(&reason, REASON)),
    }
}

fn facts(look: &Look, commit: String, doubt: &Doubt, work: String) -> Result<Facts, super::tree::TreeError> {
    let (paths, output) = doubt.base.as_ref().map_or_else(Default::default, |(protected, found)| {
        (protected.keys().cloned().collect(), found.output.clone())
    });
    let paths: Vec<String> = paths;
    let difference = clean_tree::shown_difference(look.tree.root(), &look.base, &commit, &paths)?;
    let doubt = doubt.told(&look.base);
    Ok(Facts { base: look.base.clone(), commit, doubt, difference, output, work })
}
