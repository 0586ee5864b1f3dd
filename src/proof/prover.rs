//! The validator: without a claim it runs the user's command in place, with one in a clean checkout of the claimed commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use super::baseline::{Baseline, Look};
use super::judgement::{
    Fitness, Unproven, fewer, in_clean_tree, in_place_only, tests_in, told_of_base, with_base,
};
use super::protected::{Change, protected};
use super::tree::{Laid, ProofTree, TreeError};
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::stop::Urgency;
use crate::engine::validation::{Base, Validation};
use crate::engine::validator::{FilesValidator, Proof, Validator, Verdict};
use crate::files::clock;
use crate::git::{self, clean_tree};
use crate::project::Project;
use crate::side_command::{ValidationCommand, beside};

/// What a claim is measured by besides the command.
#[derive(Debug, Clone)]
pub(crate) struct Measures {
    /// It has to pass with the base's version of tests and scripts, too.
    pub(crate) with_base: bool,
    /// Patterns of more such files.
    pub(crate) protected: Vec<String>,
    /// A claim that passes only without these is refused, and not only reported.
    pub(crate) refuses: bool,
}

/// A commit that is laid out with the base's version of what was changed.
type WithBase = (Laid, BTreeMap<String, Change>);

/// Proves claims in a clean tree.
pub(crate) struct Prover {
    project: Project,
    measures: Measures,
    /// The command where the agents work.
    in_place: ValidationCommand,
    /// What claims are measured against; `None` until the loop begins, and where they are not proven in a clean tree.
    look: Option<Look>,
    /// The first look at the base, until a claim needs the tree.
    baseline: Option<Baseline>,
    /// What the clean tree is worth; `None` while that is not known.
    fitness: Option<Fitness>,
    /// What the user should know, once.
    notice: Option<String>,
}

/// A claim that is ready to be proven.
enum Claim {
    /// Its commit is laid out.
    Laid(String, Laid),
    Unproven(Unproven),
    Cancelled,
}

impl Prover {
    /// Proves claims by `command`, which runs in the root of `project` otherwise.
    pub(crate) fn new(project: &Project, command: ValidationCommand, measures: Measures) -> Self {
        let project = project.clone();
        Self { project, measures, in_place: command, look: None, baseline: None, fitness: None, notice: None }
    }

    /// Takes what the first look has found by now, and reports what the user should know.
    fn catch_up(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        if let Some(fitness) = self.baseline.as_ref().and_then(Baseline::found) {
            self.know(fitness);
        }
        self.notice.take().map_or(Ok(()), |notice| context.notice(&notice))
    }

    fn know(&mut self, fitness: Fitness) {
        self.notice = self.look.as_ref().and_then(|look| fitness.notice(&look.base));
        self.fitness = Some(fitness);
    }

    /// Proves the claim that HEAD is good.
    fn prove(&mut self, deadline: Option<Instant>, context: &mut Context<'_>) -> Result<Verdict, End> {
        self.catch_up(context)?;
        let Some(look) = self.look.clone().filter(|_| !self.lacks_something()) else {
            return self.prove_in_place(deadline, context);
        };
        let (tree, in_tree) = (look.tree.clone(), look.command.clone());
        let plans = self.plans();
        let baseline = self.baseline.take();
        let prepared = beside(Urgency::Now, context, move |cancelled| {
            // Ended where it is still at work: the claim needs the tree.
            drop(baseline);
            claim(&look, &plans, cancelled)
        })?;
        let (commit, laid) = match prepared {
            Ok(Claim::Laid(commit, laid)) => (commit, laid),
            Ok(Claim::Unproven(why)) => return Ok(Verdict::Found(why.validation())),
            Ok(Claim::Cancelled) => return Ok(Verdict::CutOff(Box::default())),
            Err(error) => return Ok(Verdict::Found(Unproven::NoTree(error.to_string()).validation())),
        };
        let began = Instant::now();
        let verdict = in_tree.run(deadline, context)?;
        let elapsed = began.elapsed();
        // Without a seal the next proof makes the tree anew.
        let _ = beside(Urgency::Now, context, move |_| tree.leave(&laid))?;
        let Verdict::Found(found) = verdict else { return Ok(verdict) };
        let found = in_clean_tree(found, &commit, elapsed);
        if !found.ok {
            self.failed(found, deadline, context)
        } else if self.measures.with_base {
            self.against_base(found, &commit, deadline, context)
        } else {
            Ok(Verdict::Found(found))
        }
    }

    /// A claim has passed in the clean tree: measures it by what was there before its agent.
    fn against_base(
        &mut self,
        found: Validation,
        commit: &str,
        deadline: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Result<Verdict, End> {
        let Some(look) = self.look.clone() else { return Ok(Verdict::Found(found)) };
        let (base, command, tree) = (look.base.clone(), look.command.clone(), look.tree.clone());
        let now = tests_in(&found.output);
        if now.is_some_and(|now| now.ran == 0) {
            return Ok(Verdict::Found(Unproven::NoTests.validation()));
        }
        if let (Some(Fitness::Fit { tests: Some(before), .. }), Some(now)) = (&self.fitness, now)
            && let Some(why) = fewer(*before, now, &base)
        {
            if self.measures.refuses {
                return Ok(Verdict::Found(Validation {
                    undecided: true,
                    output: why,
                    ..Validation::default()
                }));
            }
            context.notice(&why)?;
        }
        let (commit, more, plans) = (commit.to_owned(), self.measures.protected.clone(), self.plans());
        let laid = beside(Urgency::Now, context, move |cancelled| {
            lay_with_base(&look, &commit, &more, &plans, cancelled)
        })?;
        let (laid, protected) = match laid.map_err(|error| TreeError::Thread(error.to_string())).flatten() {
            Ok(Some(laid)) => laid,
            Ok(None) => return Ok(Verdict::Found(found)),
            Err(TreeError::Cancelled) => return Ok(Verdict::CutOff(Box::default())),
            Err(error) => return Ok(Verdict::Found(Unproven::NoTree(error.to_string()).validation())),
        };
        let verdict = command.run(deadline, context)?;
        let _ = beside(Urgency::Now, context, move |_| tree.leave(&laid))?;
        let Verdict::Found(again) = verdict else { return Ok(verdict) };
        if again.ok {
            let by = found.by.map(|by| format!("{by}, also with the tests of {base:.7}"));
            return Ok(Verdict::Found(Validation { by, ..found }));
        }
        if self.measures.refuses {
            return Ok(Verdict::Found(with_base(again, &base, &protected)));
        }
        context.notice(&told_of_base(&base, &protected))?;
        Ok(Verdict::Found(found))
    }

    /// Ralph's plans, which may differ from the commit.
    fn plans(&self) -> [PathBuf; 2] {
        let plans = [self.project.implementation_plan(), self.project.branch_plan()];
        plans.map(|plan| self.project.relative(&plan))
    }

    fn lacks_something(&self) -> bool {
        matches!(self.fitness, Some(Fitness::Lacking { .. }))
    }

    fn prove_in_place(&self, deadline: Option<Instant>, context: &mut Context<'_>) -> Result<Verdict, End> {
        Ok(match self.in_place.run(deadline, context)? {
            Verdict::Found(found) => Verdict::Found(in_place_only(found)),
            verdict => verdict,
        })
    }

    /// A claim has failed in the clean tree, which may be for want of something that is not committed.
    fn failed(
        &mut self,
        found: Validation,
        deadline: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Result<Verdict, End> {
        if let (None, Some(look)) = (&self.fitness, self.look.clone()) {
            let fitness = beside(Urgency::Now, context, move |cancelled| look.take(cancelled))?;
            match fitness.ok().flatten() {
                Some(fitness) => self.know(fitness),
                None if context.urgency() >= Urgency::Now => return Ok(Verdict::CutOff(Box::default())),
                None => {}
            }
            self.catch_up(context)?;
        }
        if self.lacks_something() {
            self.prove_in_place(deadline, context)
        } else {
            Ok(Verdict::Found(found))
        }
    }
}

impl Validator for Prover {
    fn loop_begins(&mut self, name: &str, base: &mut Option<Base>) {
        let root = self.project.root();
        if base.is_none() && self.project.in_git() {
            *base = git::head(root).map(|commit| Base { commit, began: clock::of_files().into() });
        }
        let Some(base) = base else {
            self.notice = Some(format!(
                "{} has no commit of git, and so no clean checkout: claims are validated in place only; make a commit there \
                 first",
                root.display()
            ));
            return;
        };
        let tree = ProofTree::of(&self.project, name);
        let in_tree = |own_home| self.in_place.clone().with_launch(|launch| tree.bring(launch, own_home));
        let (command, command_at_home) = (in_tree(true), in_tree(false));
        let (base, began) = (base.commit.clone(), base.began.into());
        let look = Look { tree, command, command_at_home, base, began };
        self.baseline = Some(look.clone().start());
        self.look = Some(look);
    }

    fn validate(&mut self, proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        if proof.claims() {
            return self.prove(proof.deadline, context);
        }
        self.catch_up(context)?;
        self.in_place.run(proof.deadline, context)
    }

    fn of_files(&mut self) -> Option<&mut dyn FilesValidator> {
        Some(self)
    }
}

impl FilesValidator for Prover {
    fn validate_files(&mut self, context: &mut Context<'_>) -> Result<Verdict, End> {
        self.prove(None, context)
    }
}

/// Makes a claim ready: everything has to be committed, on top of the base.
fn claim(look: &Look, plans: &[PathBuf], cancelled: &AtomicBool) -> Claim {
    match try_claim(look, plans, cancelled) {
        Ok(claim) => claim,
        Err(TreeError::Cancelled) => Claim::Cancelled,
        Err(error) => Claim::Unproven(Unproven::NoTree(error.to_string())),
    }
}

fn try_claim(look: &Look, plans: &[PathBuf], cancelled: &AtomicBool) -> Result<Claim, TreeError> {
    let Look { tree, base, began, .. } = look;
    let Some(commit) = git::head(tree.root()) else { return Ok(Claim::Unproven(Unproven::NoCommit)) };
    let files = uncommitted(tree, plans, *began)?;
    if !files.is_empty() {
        return Ok(Claim::Unproven(Unproven::Uncommitted(files)));
    }
    if !clean_tree::descends(tree.root(), &commit, base) {
        let base = base.clone();
        return Ok(Claim::Unproven(Unproven::OtherHistory { commit, base }));
    }
    let laid = tree.lay(&commit, cancelled)?;
    Ok(Claim::Laid(commit, laid))
}

/// Lays out the commit with the base's version of what its work is measured by; `None` if nothing of that was changed, and
/// at most more came.
fn lay_with_base(
    look: &Look,
    commit: &str,
    more: &[String],
    plans: &[PathBuf],
    cancelled: &AtomicBool,
) -> Result<Option<WithBase>, TreeError> {
    let Look { tree, base, .. } = look;
    let mut changed = protected(&clean_tree::differences(tree.root(), base, commit)?, more);
    changed.retain(|path, _| !plans.iter().any(|plan| plan == Path::new(path)));
    if changed.values().all(|change| *change == Change::Added) {
        return Ok(None);
    }
    let laid = tree.lay_with(commit, Some((base, &changed)), cancelled)?;
    Ok(Some((laid, changed)))
}

/// The files that an agent has left uncommitted. What was so before the loop began is the user's.
fn uncommitted(tree: &ProofTree, plans: &[PathBuf], began: SystemTime) -> Result<Vec<String>, TreeError> {
    let changed = git::uncommitted(tree.root())?.into_iter();
    let left = changed
        .filter(|file| !plans.contains(&file.path) && file.touched.is_none_or(|touched| touched >= began));
    Ok(left.map(|file| file.path.to_string_lossy().into_owned()).collect())
}
