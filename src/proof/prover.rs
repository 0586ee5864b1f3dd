//! The validator: without a claim it runs the user's command in place, with one in a clean checkout of the claimed commit.

mod checks;

use std::collections::HashMap;
use std::mem::take;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use super::baseline::{Baseline, Found, Look};
use super::counts::Counts;
use super::fitness::Fitness;
use super::judgement::{Proven, Unproven, in_clean_tree, in_place_only, tests_in};
use super::laying::claim;
use super::measure::Measures;
use super::programs::Programs;
use super::record;
use super::removal::{Sweep, remove_all};
use super::step::{Step, ends, goes, unproven, with_tree};
use super::tree::{Home, Laid, ProofTree, Unprepared};
use super::voice::Voice;
use crate::engine::context::Context;
use crate::engine::fact::{Fact, ProofRecord, ProofRun};
use crate::engine::outcome::End;
use crate::engine::source::Work;
use crate::engine::stop::Urgency;
use crate::engine::validation::{Base, Validation, reason};
use crate::engine::validator::{FilesValidator, Proof, Validator, Verdict};
use crate::files::clock;
use crate::git;
use crate::project::Project;
use crate::side_command::{ValidationCommand, beside};
use crate::threads;

/// The name of the tree in which a proof is repeated.
const AGAIN: &str = "proof --again";

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
    /// An agent may have had a part in that.
    is_doubtful: bool,
    /// The commit that has passed twice.
    repeated: Option<String>,
    voice: Voice,
    /// The commit that is proven instead of HEAD, wherever agents stand.
    named: Option<String>,
    /// What the command found at the base, if that is known.
    base_run: Option<ProofRun>,
    /// Where work on each of several tasks began in this process.
    bases: HashMap<String, String>,
    /// The last commit that was proven in the clean tree, with what the command found there.
    proven: Option<(String, ProofRun, Option<Counts>)>,
    /// What is known of the current claim.
    record: ProofRecord,
    /// When the current claim has to be proven; `None`: the clock does not go that far.
    until: Option<Instant>,
    /// When the loop has to end; `None` without a limit of time.
    loop_ends: Option<Instant>,
    /// What the user should know, once.
    notice: Option<String>,
    sweep: Sweep,
}

impl Prover {
    /// Proves claims by `command`, which runs in the root of `project` otherwise.
    pub(crate) fn new(project: &Project, command: ValidationCommand, measures: Measures) -> Self {
        let project = project.clone();
        Self {
            project,
            measures,
            in_place: command,
            look: None,
            baseline: None,
            fitness: None,
            is_doubtful: false,
            repeated: None,
            voice: Voice::default(),
            named: None,
            base_run: None,
            bases: HashMap::new(),
            proven: None,
            record: ProofRecord::default(),
            until: None,
            loop_ends: None,
            notice: None,
            sweep: Sweep::default(),
        }
    }

    /// Proves the commit of a record again, from nothing. The second agent is not asked again.
    ///
    /// # Errors
    /// When the context cannot go on.
    pub(crate) fn again(&mut self, record: &ProofRecord, context: &mut Context<'_>) -> Result<Verdict, End> {
        let commit = record.commit.clone().unwrap_or_default();
        let base = record.base.clone().unwrap_or_else(|| commit.clone());
        let tree = ProofTree::of(&self.project, AGAIN);
        // What lies there is of an earlier call.
        let _ = remove_all(self.project.root(), tree.path());
        self.voice = Voice::recalled(&commit, record.voice.as_ref());
        self.named = Some(commit);
        // Any object may have been written since.
        let look = self.look_at(tree.clone(), base, SystemTime::UNIX_EPOCH);
        look.programs.recall(tree.root(), &look.base, &record.programs);
        self.look = Some(look);
        let verdict = self.prove(None, context);
        let _ = remove_all(self.project.root(), tree.path());
        verdict
    }

    /// What the command is looked at with in this tree.
    fn look_at(&self, tree: ProofTree, base: String, began: SystemTime) -> Look {
        let tree = tree.prepared_by(self.measures.prepare.clone()).carrying(self.measures.carry.clone());
        let in_tree = |home| self.in_place.clone().in_checkout(|launch| tree.bring(launch, home));
        let [command, command_again, command_at_home] = [Home::Own, Home::Again, Home::Users].map(in_tree);
        Look {
            tree,
            command,
            command_again,
            command_at_home,
            junit: self.measures.junit.clone(),
            programs: Programs::of(&self.measures.command, &self.in_place),
            base,
            is_alone: self.measures.with_base(),
            began,
        }
    }

    /// Measures claims against this commit from now on.
    fn measure_against(&mut self, commit: String) {
        let Some(look) = self.look.as_mut().filter(|look| look.base != commit) else { return };
        look.base = commit;
        // A look that is still on its way is cancelled, which may take a moment.
        let outdated = self.baseline.take();
        let _ = threads::start(move || drop(outdated));
        if self.lacks_something() {
            return;
        }
        (self.fitness, self.is_doubtful, self.base_run) = (None, false, None);
        if let Some((commit, run, tests)) = &self.proven
            && self.look.as_ref().is_some_and(|look| look.base == *commit)
        {
            self.fitness = Some(Fitness::Fit { failure: None, tests: *tests });
            self.base_run = Some(ProofRun { of: "base".to_owned(), ..run.clone() });
        }
    }

    /// What is looked at for the current claim, in its time.
    fn look_now(&self) -> Option<Look> {
        let look = self.look.clone()?;
        Some(Look { tree: look.tree.until(self.ends_at()), ..look })
    }

    /// When what is done for the current claim has to have ended.
    fn ends_at(&self) -> Option<Instant> {
        self.loop_ends.into_iter().chain(self.until).min()
    }

    /// Removes what was put away, beside what comes next.
    fn sweep(&mut self) {
        self.look.iter().for_each(|look| self.sweep.begin(&look.tree));
    }

    /// Takes what the first look has found by now, and reports what the user should know.
    fn catch_up(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        if let Some(found) = self.baseline.as_ref().and_then(Baseline::found) {
            self.know(found);
        }
        self.notice.take().map_or(Ok(()), |notice| context.notice(&notice))
    }

    fn know(&mut self, found: Found) {
        let notice = |look: &Look| found.fitness.notice(&look.base, self.fitness.as_ref());
        self.notice = self.look.as_ref().and_then(notice);
        (self.fitness, self.is_doubtful) = (Some(found.fitness), found.is_doubtful);
        self.base_run = Some(found.run);
    }

    /// Proves the claim that HEAD is good; `asker` is the attempt that makes it, if one does.
    fn prove(&mut self, asker: Option<&mut Proof<'_>>, context: &mut Context<'_>) -> Result<Verdict, End> {
        self.until = Instant::now().checked_add(self.measures.limit);
        self.loop_ends = asker.as_ref().and_then(|proof| proof.deadline);
        let about = asker.as_ref().and_then(|proof| proof.work.about.clone());
        let base = self.look.as_ref().map(|look| look.base.clone());
        let level = self.measures.level.word().to_owned();
        self.record = ProofRecord { about, base, level, ..ProofRecord::default() };
        let verdict = match self.try_prove(asker, context)? {
            Step::Goes(proven) => {
                let run = self.record.runs.iter().find(|run| run.of == "claim").cloned();
                self.proven = run.map(|run| (proven.commit.clone(), run, proven.tests));
                if let Some(look) = &self.look {
                    look.programs.accept();
                }
                Verdict::Found(proven.validation())
            }
            Step::Ends(verdict) => *verdict,
        };
        if let Verdict::Found(Validation { ok, by, undecided, output, .. }) = &verdict {
            let by = match by {
                Some(by) if *ok => by.clone(),
                by => reason(by.as_deref(), *undecided, output),
            };
            let record = ProofRecord { ok: *ok, by, ..take(&mut self.record) };
            let runs = self.base_run.iter().cloned().chain(record.runs).collect();
            context.tell(Fact::Proof(Box::new(ProofRecord { runs, ..record })))?;
        }
        Ok(verdict)
    }

    /// Notes what the checkout has links to.
    fn note_carried(&mut self, laid: &Laid) {
        let shown = |path: &PathBuf| path.display().to_string();
        self.record.carried = laid.carried.iter().map(shown).collect();
        let carry = &self.measures.carry;
        let missing: Vec<_> = carry.iter().filter(|path| !laid.carried.contains(path)).map(shown).collect();
        for path in missing {
            self.skip(&format!("{path} of proof.carry: it is not there, or the checkout has it already"));
        }
    }

    /// Notes what is not looked at.
    fn skip(&mut self, what: &str) {
        self.record.skipped.push(what.to_owned());
    }

    fn try_prove(
        &mut self,
        asker: Option<&mut Proof<'_>>,
        context: &mut Context<'_>,
    ) -> Result<Step<Proven>, End> {
        goes!(self.know_base(context)?);
        let Some(look) = self.look_now().filter(|_| !self.lacks_something()) else {
            return self.prove_in_place(context).map(ends);
        };
        let (mut commit, is_new, mut ran) = goes!(self.run_claim(&look, context)?);
        if !ran.0.ok && !is_new && look.tree.has_preparation() {
            // The work may need what its preparation makes only now.
            let tree = look.tree.clone();
            goes!(with_tree(context, move |_| tree.forget().map(Step::Goes))?);
            self.record.runs.clear();
            (commit, _, ran) = goes!(self.run_claim(&look, context)?);
        }
        let (found, elapsed) = ran;
        if !found.ok {
            return self.failed(in_clean_tree(found, &commit), context).map(ends);
        }
        if self.measures.is_strict() {
            goes!(self.repeat(&look, &commit, context)?);
        }
        let tests = tests_in(&found.output);
        let mut proven = Proven { commit, tests, elapsed, output: found.output, ..Proven::default() };
        if self.measures.with_base() {
            proven = goes!(self.measure(&look, proven, asker, context)?);
        }
        let proven = goes!(self.hold_out(&look, proven, context)?);
        self.mutate(&look, proven, context).map(Step::Goes)
    }

    /// Runs the command in the claimed commit; also returns whether the tree was new.
    fn run_claim(&mut self, look: &Look, context: &mut Context<'_>) -> Result<Step<RanClaim>, End> {
        let (own, named) = (self.may_be_left(), self.named.clone());
        let step = with_tree(context, {
            let look = look.clone();
            move |cancelled| claim(&look, named, &own, cancelled)
        })?;
        let (commit, tree, laid) = match step {
            Step::Ends(verdict) if matches!(*verdict, Verdict::CutOff(_)) => {
                return Ok(self.cut_off("prepare", *verdict));
            }
            step => goes!(step),
        };
        (self.record.commit, self.record.tree) = (Some(commit.clone()), tree);
        Ok(Step::Goes(match laid {
            Ok(laid) => {
                self.note_carried(&laid);
                (commit, laid.is_new, goes!(self.run("claim", look, laid, context)?))
            }
            Err(Unprepared(found)) => {
                let command = found.by.clone().unwrap_or_default();
                self.record.runs.push(record::ran("prepare", &command, &found, Duration::ZERO));
                (commit, true, (*found, Duration::ZERO))
            }
        }))
    }

    /// Ralph's plans, which may differ from the commit.
    fn plans(&self) -> [PathBuf; 2] {
        let plans = [self.project.implementation_plan(), self.project.branch_plan()];
        plans.map(|plan| self.project.relative(&plan))
    }

    /// What need not be committed: the plans, and the user's settings, which are compared with those of the loop's start.
    fn may_be_left(&self) -> Vec<PathBuf> {
        let settings = [self.project.config(), self.project.project_settings()];
        let settings = settings.map(|file| self.project.relative(&file));
        self.plans().into_iter().chain(settings).collect()
    }

    fn lacks_something(&self) -> bool {
        matches!(self.fitness, Some(Fitness::Lacking { .. }))
    }

    fn prove_in_place(&mut self, context: &mut Context<'_>) -> Result<Verdict, End> {
        self.skip(match self.look {
            Some(_) => "a clean checkout: it lacks what the command needs",
            None => "a clean checkout: there was no commit",
        });
        let began = Instant::now();
        Ok(match self.in_place.run(self.loop_ends, context)? {
            Verdict::Found(found) => {
                self.record.runs.push(record::ran("place", self.in_place.shown(), &found, began.elapsed()));
                Verdict::Found(in_place_only(found))
            }
            verdict => verdict,
        })
    }

    /// Runs the command in what is laid out, and notes what it has found and how long it took.
    fn run(
        &mut self,
        of: &str,
        look: &Look,
        laid: Laid,
        context: &mut Context<'_>,
    ) -> Result<Step<(Validation, Duration)>, End> {
        let since = clock::after_all_files();
        let began = Instant::now();
        let verdict = look.command.run(self.ends_at(), context)?;
        let took = began.elapsed();
        let verdict = match verdict {
            Verdict::Found(found) => Ok(found),
            verdict => Err(verdict),
        };
        let after = beside(Urgency::Now, context, {
            let (look, verdict) = (look.clone(), verdict.as_ref().ok().cloned());
            move |_| {
                let found = verdict.map(|found| look.with_reports(found, since));
                // Without a seal the next proof makes the tree anew.
                let _ = look.tree.leave(&laid);
                found
            }
        })?;
        let found = match verdict {
            Ok(found) => after.ok().flatten().unwrap_or(found),
            Err(verdict) => return Ok(self.cut_off(of, verdict)),
        };
        self.record.runs.push(record::ran(of, look.command.shown(), &found, took));
        Ok(Step::Goes((found, took)))
    }

    /// What follows if a run of the command was cut off: the claim is unproven if its time is over.
    fn cut_off<T>(&self, of: &str, verdict: Verdict) -> Step<T> {
        if self.until.is_none_or(|until| Instant::now() < until) {
            return ends(verdict);
        }
        let missing = format!("{} {}", self.in_place.shown(), ProofRun::place(of));
        unproven(&Unproven::NoTime { limit: self.measures.limit, missing })
    }

    /// Ends the first look, or waits for it where a claim is measured by it. What the clean tree seems to lack is looked for
    /// once more: the first time an agent was at work beside it.
    fn know_base(&mut self, context: &mut Context<'_>) -> Result<Step<()>, End> {
        self.catch_up(context)?;
        if let Some(baseline) = self.baseline.take() {
            let until = self.ends_at();
            let waits = self.measures.with_base() && self.fitness.is_none();
            let found = beside(Urgency::Now, context, move |cancelled| {
                // Dropped, it ends: the claim needs the tree.
                waits.then(|| baseline.wait(until, cancelled)).flatten()
            })?;
            found.ok().flatten().into_iter().for_each(|found| self.know(found));
            self.catch_up(context)?;
        }
        if self.lacks_something() && self.is_doubtful { self.look_again(context) } else { Ok(Step::Goes(())) }
    }

    /// Looks at the base while no agent is at work.
    fn look_again(&mut self, context: &mut Context<'_>) -> Result<Step<()>, End> {
        let Some(look) = self.look_now() else { return Ok(Step::Goes(())) };
        let until = self.ends_at();
        let step = with_tree(context, move |cancelled| look.take(false, until, cancelled).map(Step::Goes))?;
        let Some(found) = goes!(step) else {
            return Ok(self.cut_off("base", Verdict::CutOff(Box::default())));
        };
        self.know(Found { is_doubtful: false, ..found });
        self.catch_up(context)?;
        Ok(Step::Goes(()))
    }

    /// A claim has failed in the clean tree, which may be for want of something that is not committed.
    fn failed(&mut self, found: Validation, context: &mut Context<'_>) -> Result<Verdict, End> {
        if self.fitness.is_none()
            && let Step::Ends(verdict) = self.look_again(context)?
            && matches!(*verdict, Verdict::CutOff(_))
        {
            return Ok(*verdict);
        }
        if self.lacks_something() { self.prove_in_place(context) } else { Ok(Verdict::Found(found)) }
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
        self.look = Some(self.look_at(tree, base.commit.clone(), base.began.into()));
    }

    fn work_begins(&mut self, work: &Work, is_other: bool, base: &mut Option<Base>) {
        let (Some(base), Some(look)) = (base, &self.look) else { return };
        if let Some(about) = &work.about {
            let now = || git::head(self.project.root()).filter(|_| is_other);
            let known = self.bases.entry(about.clone());
            let commit = match &work.base {
                Some(commit) => commit.clone(),
                None => known.or_insert_with(|| now().unwrap_or_else(|| look.base.clone())).clone(),
            };
            base.commit.clone_from(&commit);
            self.measure_against(commit);
        }
        if self.baseline.is_none() && self.fitness.is_none() {
            self.baseline = self.look.clone().map(Look::start);
        }
    }

    fn validate(&mut self, mut proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        let verdict = if proof.claims() {
            self.prove(Some(&mut proof), context)
        } else {
            self.catch_up(context).and_then(|()| self.in_place.run(proof.deadline, context))
        };
        self.sweep();
        verdict
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

/// The loop is over, perhaps in its first attempt.
impl Drop for Prover {
    fn drop(&mut self) {
        // Its tree may be put away yet.
        self.baseline = None;
        self.sweep();
    }
}

/// A claimed commit, whether its tree was new, what the command has found there, and how long it took.
type RanClaim = (String, bool, (Validation, Duration));
