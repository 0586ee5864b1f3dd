//! What is checked of a claim that has passed in the clean tree.

use super::Prover;
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::validation::Validation;
use crate::engine::validator::{Proof, Verdict};
use crate::proof::baseline::Look;
use crate::proof::counts::Counts;
use crate::proof::fitness::Fitness;
use crate::proof::judgement::{
    BaseSays, Doubt, Proven, Unproven, fewer, flaky, has_no_tests, have_not_run, other_programs, tests_in,
};
use crate::proof::laying::{lay_red, lay_with_base};
use crate::proof::measure::Changes;
use crate::proof::mutating::mutate;
use crate::proof::record;
use crate::proof::step::{Step, ends, goes, unproven, with_tree};
use crate::proof::tree::Over;
use crate::proof::voice::Said;
use crate::settings::proof_level::OnProtected;

impl Prover {
    /// A claim is proven: tells which changes of its lines no test notices. Nothing of that makes it unproven.
    pub(super) fn mutate(
        &mut self,
        look: &Look,
        mut proven: Proven,
        context: &mut Context<'_>,
    ) -> Result<Proven, End> {
        if self.measures.mutants == 0 {
            return Ok(proven);
        }
        let until = self.ends_at();
        let step = with_tree(context, {
            let (look, measures) = (look.clone(), self.measures.clone());
            let (commit, took) = (proven.commit.clone(), proven.elapsed);
            move |cancelled| mutate(&look, (&commit, took), &measures, until, cancelled).map(Step::Goes)
        })?;
        let (found, missing) = match step {
            Step::Goes((found, missing)) => (Some(found).filter(|found| found.made > 0), missing),
            Step::Ends(_) => (None, Some("they were cut off, or could not be laid out".to_owned())),
        };
        if let Some(missing) = missing {
            self.skip(&format!("mutants: {missing}"));
        }
        proven.mutants = found.as_ref().map(|found| (found.made, found.unnoticed.len()));
        self.record.mutants = found;
        Ok(proven)
    }

    /// A claim has passed: runs the command once more, with the tests that agents do not get. Of what it finds, the next agent
    /// learns how many have failed.
    pub(super) fn hold_out(
        &mut self,
        look: &Look,
        mut proven: Proven,
        context: &mut Context<'_>,
    ) -> Result<Step<Proven>, End> {
        let Some(tests) = self.measures.held_out.clone() else { return Ok(Step::Goes(proven)) };
        let (tree, commit) = (look.tree.clone(), proven.commit.clone());
        let laid = goes!(with_tree(context, move |cancelled| {
            tree.lay_with(&commit, Over::HeldOut(&tests), cancelled).map(Step::Goes)
        })?);
        let has_more_tests = laid.has_more_tests;
        let told = context.refused.len();
        let ran = self.run("held_out", look, laid, context);
        // Agents are told of it, as the record lies where they can read it, and so does the tree.
        context.refused.truncate(told);
        let (found, _) = goes!(ran?);
        if let Some(run) = self.record.runs.last_mut() {
            run.output.clear();
        }
        let (tree, commit) = (look.tree.clone(), proven.commit.clone());
        goes!(with_tree(context, move |cancelled| {
            let laid = tree.lay(&commit, cancelled)?;
            tree.leave(&laid).map(Step::Goes)
        })?);
        if !found.ok {
            return Ok(unproven(&Unproven::HeldOut(tests_in(&found.output).and_then(Counts::failed))));
        }
        // What prints the summary of a runner does not know how many there are.
        let has_run = |before: Counts| tests_in(&found.output).is_some_and(|now| now.ran > before.ran);
        if has_more_tests && !proven.tests.is_none_or(has_run) {
            return Ok(unproven(&Unproven::HeldOutNotRun));
        }
        proven.is_held_out = true;
        Ok(Step::Goes(proven))
    }

    /// A claim has passed: runs the command once more, unless its commit has passed so before.
    pub(super) fn repeat(
        &mut self,
        look: &Look,
        commit: &str,
        context: &mut Context<'_>,
    ) -> Result<Step<()>, End> {
        if self.repeated.as_deref() == Some(commit) {
            return Ok(Step::Goes(()));
        }
        let laid = goes!(with_tree(context, {
            let (tree, commit) = (look.tree.clone(), commit.to_owned());
            move |cancelled| tree.lay(&commit, cancelled).map(Step::Goes)
        })?);
        let (found, _) = goes!(self.run("again", &look.again(), laid, context)?);
        if !found.ok {
            return Ok(ends(Verdict::Found(flaky(found, commit))));
        }
        self.repeated = Some(commit.to_owned());
        Ok(Step::Goes(()))
    }

    /// A claim has passed in the clean tree: measures it by what was there before its agent.
    pub(super) fn measure(
        &mut self,
        look: &Look,
        mut proven: Proven,
        asker: Option<&mut Proof<'_>>,
        context: &mut Context<'_>,
    ) -> Result<Step<Proven>, End> {
        let mut doubt = Doubt::default();
        if self.fitness.is_none() || self.is_doubtful {
            goes!(self.look_again(context)?);
        }
        proven.before = self.fitness.as_ref().and_then(Fitness::tests);
        match (proven.tests, proven.before) {
            // A program that ends before its tests have run counts none.
            (Some(Counts { ran: 0, .. }), _) | (None, Some(_)) => return Ok(unproven(&Unproven::NoTests)),
            (Some(now), before) => doubt.fewer = before.and_then(|before| fewer(before, now, &look.base)),
            (None, None) => self.skip("how many tests ran: the output is of no runner that is known"),
        }
        let ((changes, laid), programs) = goes!(with_tree(context, {
            let (look, plans) = (look.clone(), self.plans());
            let (commit, measures) = (proven.commit.clone(), self.measures.clone());
            move |cancelled| {
                let laid = lay_with_base(&look, &commit, &measures, &plans, cancelled)?;
                Ok(Step::Goes((laid, look.programs.now(look.tree.root()))))
            }
        })?);
        match programs {
            Some(programs) => {
                doubt.programs = other_programs(&programs);
                self.record.programs = programs;
            }
            None => self.skip("which programs the command runs: they are not known from the loop's start"),
        }
        if let Some((laid, protected)) = laid {
            self.record.protected = record::changes(&protected);
            let (again, _) = goes!(self.run("claim_with_base", look, laid, context)?);
            if again.ok {
                proven.base = Some(BaseSays::Passes);
            } else if !has_no_tests(&protected, &again) {
                doubt.base = Some((protected, again));
            }
        }
        if self.measures.is_strict() {
            goes!(self.see_red(look, &proven, changes, context)?);
        }
        if doubt.is_none() {
            Ok(Step::Goes(proven))
        } else {
            self.decide(look, proven, doubt, asker, context)
        }
    }

    /// Runs the tests that the work brings over the base's sources, where they have to fail.
    fn see_red(
        &mut self,
        look: &Look,
        proven: &Proven,
        changes: Changes,
        context: &mut Context<'_>,
    ) -> Result<Step<()>, End> {
        const WHAT: &str = "whether the new tests fail without the work";
        if self.base_run.as_ref().is_some_and(|run| !run.ok) {
            self.skip(&format!("{WHAT}: the command fails at the base without them"));
            return Ok(Step::Goes(()));
        }
        let laid = goes!(with_tree(context, {
            let (look, commit) = (look.clone(), proven.commit.clone());
            move |cancelled| lay_red(&look, &commit, &changes, cancelled).map(Step::Goes)
        })?);
        let Some((laid, tests)) = laid else {
            self.skip(&format!("{WHAT}: there are none, or only tests have changed"));
            return Ok(Step::Goes(()));
        };
        let (found, _) = goes!(self.run("red", look, laid, context)?);
        if !found.ok {
            return Ok(Step::Goes(()));
        }
        if have_not_run(&tests, proven.before, tests_in(&found.output)) {
            self.skip(&format!("{WHAT}: the base's sources do not know them, and they have not run"));
            return Ok(Step::Goes(()));
        }
        let (base, tests) = (look.base.clone(), Box::new(tests));
        Ok(unproven(&Unproven::Green { base, tests }))
    }

    /// What follows for a claim that is doubtful.
    fn decide(
        &mut self,
        look: &Look,
        mut proven: Proven,
        doubt: Doubt,
        asker: Option<&mut Proof<'_>>,
        context: &mut Context<'_>,
    ) -> Result<Step<Proven>, End> {
        let refused = |refusal| Ok(ends(Verdict::Found(refusal)));
        match self.measures.on_protected {
            OnProtected::Refuse => return refused(doubt.refusal(&look.base)),
            OnProtected::Tell => {
                context.notice(&doubt.told(&look.base))?;
                proven.base = doubt.base.map_or(proven.base, |_| Some(BaseSays::Told));
            }
            OnProtected::Voice => {
                let about = (look, proven.commit.as_str(), &doubt);
                let (said, usage) =
                    goes!(self.voice.ask(self.measures.judge.as_ref(), about, asker, context)?);
                self.record.voice = said.kept();
                let refusal = match said {
                    Said::Agrees => {
                        proven.base = Some(BaseSays::Overruled);
                        proven.usage = usage;
                        return Ok(Step::Goes(proven));
                    }
                    Said::Objects(reason) => doubt.objection(&reason, &look.base),
                    Said::Nothing(why) => Unproven::NoTree(why).validation(),
                    Said::Silent => {
                        self.skip("what a second agent says: none can be asked here");
                        doubt.refusal(&look.base)
                    }
                };
                return refused(Validation { usage, ..refusal });
            }
        }
        Ok(Step::Goes(proven))
    }
}
