//! A fresh agent that reviews claimed work, behind whatever else proves it.

use std::path::PathBuf;

use chrono::Utc;
use regex::Regex;

use crate::engine::agent::Inspects;
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::report::Report;
use crate::engine::source::Work;
use crate::engine::validation::{Base, NOT_VERIFIED, REVIEWING_AGENT, Validation};
use crate::engine::validator::{FilesValidator, Proof, Validator, Verdict};
use crate::git::{self, clean_tree};
use crate::inspection::{Ground, Inspected, Inspection, Question};
use crate::prompt::review::{Facts, review_prompt};
use crate::reply::sigil::Sigils;

/// What a review needs to know of its loop.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// Where the reviewing agent stands.
    pub(crate) ground: Ground,
    /// How often it may want changes before the loop ends.
    pub(crate) rounds: u32,
    /// The folder of the specs, and the plan, as agents see them; none where the work is about neither.
    pub(crate) papers: Vec<PathBuf>,
    /// The assistant's text that ends the loop, which is a claim, too.
    pub(crate) done_pattern: Option<Regex>,
}

/// The validation of a loop whose claims are reviewed.
pub(crate) struct Reviewed<'a> {
    terms: Terms,
    /// What proves the work besides.
    inner: Option<Box<dyn Validator + 'a>>,
    /// The commit where the work began, if it is in git.
    base: Option<String>,
    /// How often changes were wanted.
    rounds: u32,
    /// The iteration whose claim is looked at, with what has passed of it.
    passed: Option<(u64, Validation)>,
    inspection: Inspection,
    /// Whether the last review wants no changes.
    is_content: bool,
}

impl<'a> Reviewed<'a> {
    /// Reviews what `inner` lets pass.
    pub(crate) fn new(inner: Option<Box<dyn Validator + 'a>>, terms: Terms) -> Self {
        Self {
            terms,
            inner,
            base: None,
            rounds: 0,
            passed: None,
            inspection: Inspection::default(),
            is_content: false,
        }
    }

    /// Whether the report says that all is done.
    fn claims(&self, report: &Report) -> bool {
        let says_done = |pattern: &Regex| pattern.is_match(&report.text);
        report.sigils.complete()
            || report.matches_done
            || self.terms.done_pattern.as_ref().is_some_and(says_done)
    }

    /// What else proves the claim: once, even if the agent that reviews it has to be waited for.
    fn proven(&mut self, proof: &mut Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        if let Some((_, passed)) = self.passed.take().filter(|(iteration, _)| *iteration == proof.iteration) {
            return Ok(Verdict::Found(passed));
        }
        self.inspection = Inspection::default();
        let Some(inner) = &mut self.inner else {
            return Ok(Verdict::Found(Validation { ok: true, ..Validation::default() }));
        };
        inner.validate(proof.again(), context)
    }

    fn facts(&self, proof: &Proof<'_>, passed: &Validation) -> Facts {
        let Terms { ground, papers, .. } = &self.terms;
        let base = self.base.clone().unwrap_or_default();
        // Where that cannot be shown, the agent can look at it by itself.
        let difference = self
            .base
            .as_ref()
            .and_then(|base| clean_tree::shown_difference(&ground.root, base, "HEAD", &[]).ok());
        Facts {
            base,
            papers: papers.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            proven_by: passed.by.clone(),
            output: passed.output.clone(),
            difference: difference.unwrap_or_default(),
            work: proof.work.prompt.clone(),
        }
    }

    /// Asks the agent about work that has passed all else.
    fn review(
        &mut self,
        passed: Validation,
        proof: &mut Proof<'_>,
        context: &mut Context<'_>,
    ) -> Result<Verdict, End> {
        context.notice("a fresh agent reviews the work")?;
        let question = Question {
            what: "reviewing",
            no_verdict: "the reviewing agent did not emit a review sigil",
            prompt: &review_prompt(&self.facts(proof, &passed)),
            document: None,
            folder: None,
            is_proven_again: false,
            model: proof.work.how.model.clone(),
            inspects: Inspects::Reviews,
            verdict: Sigils::review,
        };
        let found = match self.inspection.ask(&question, &self.terms.ground, proof, context)? {
            Inspected::Found(found) => found,
            Inspected::Undecided(why) => {
                self.rounds += 1;
                return Ok(Verdict::Found(self.validation(
                    passed,
                    Err(format!("{NOT_VERIFIED}{why}")),
                    true,
                )));
            }
            Inspected::CutOff => {
                let mut usage = passed.usage;
                usage.add(&std::mem::take(&mut self.inspection.usage));
                return Ok(Verdict::CutOff(Box::new(usage)));
            }
            Inspected::Unable(report) => {
                self.passed = Some((proof.iteration, passed));
                return Ok(Verdict::Unable(*report, Inspects::Reviews));
            }
        };
        self.is_content = found.is_ok();
        self.rounds += u32::from(found.is_err());
        Ok(Verdict::Found(self.validation(passed, found, false)))
    }

    fn validation(&mut self, passed: Validation, found: Result<(), String>, undecided: bool) -> Validation {
        let mut usage = passed.usage;
        usage.add(&std::mem::take(&mut self.inspection.usage));
        let before = passed.by.filter(|_| found.is_ok());
        Validation {
            ok: found.is_ok(),
            undecided,
            output: found.err().unwrap_or(passed.output),
            by: Some(with_review(before)),
            usage,
            is_last: self.rounds >= self.terms.rounds,
            // What it could not have changed needs no second look.
            ended_with_agent: passed.ended_with_agent || !self.terms.ground.looks_only,
            refused: passed.refused,
        }
    }
}

impl Validator for Reviewed<'_> {
    fn loop_begins(&mut self, name: &str, base: &mut Option<Base>) {
        if let Some(inner) = &mut self.inner {
            inner.loop_begins(name, base);
        }
        let root = &self.terms.ground.root;
        if base.is_none() && self.terms.ground.in_git {
            *base = git::head(root).map(|commit| Base { commit, began: Utc::now() });
        }
        self.base = base.as_ref().map(|base| base.commit.clone());
    }

    fn work_begins(&mut self, work: &Work, is_other: bool, base: &mut Option<Base>) {
        if let Some(inner) = &mut self.inner {
            inner.work_begins(work, is_other, base);
        }
    }

    fn applies(&self, report: &Report) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.applies(report)) || self.claims(report)
    }

    fn begin(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        self.inner.as_mut().map_or(Ok(()), |inner| inner.begin(context))
    }

    fn validate(&mut self, mut proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        self.is_content = false;
        let claims = proof.claims() && !proof.is_refuted;
        match self.proven(&mut proof, context)? {
            Verdict::Found(passed) if passed.ok && claims => self.review(passed, &mut proof, context),
            verdict => Ok(verdict),
        }
    }

    fn of_files(&mut self) -> Option<&mut dyn FilesValidator> {
        self.inner.as_mut()?.of_files()?;
        Some(self)
    }
}

impl FilesValidator for Reviewed<'_> {
    fn validate_files(&mut self, context: &mut Context<'_>) -> Result<Verdict, End> {
        let Some(inner) = self.inner.as_mut().and_then(|inner| inner.of_files()) else {
            return Ok(Verdict::CutOff(Box::default()));
        };
        Ok(match inner.validate_files(context)? {
            Verdict::Found(found) if found.ok && self.is_content => {
                Verdict::Found(Validation { by: Some(with_review(found.by)), ..found })
            }
            verdict => verdict,
        })
    }
}

/// What has looked at work, with the reviewing agent.
fn with_review(before: Option<String>) -> String {
    let by: Vec<String> = before.into_iter().chain([REVIEWING_AGENT.to_owned()]).collect();
    by.join(" and ")
}
