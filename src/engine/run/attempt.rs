//! One attempt at an iteration: the agent runs, its work is checked, and the result is booked.

use std::time::{Duration, Instant, SystemTime};

use super::{Job, Loop, Validated};
use crate::engine::agent::{Attempt, How, Inspects};
use crate::engine::budget::Spent;
use crate::engine::event::Unwritten;
use crate::engine::fact::Fact;
use crate::engine::outcome::{End, Outcome};
use crate::engine::policy::{Step, step};
use crate::engine::refused::Refused;
use crate::engine::report::{AttemptStatus, Report, Signal};
use crate::engine::source::{Booked, Work};
use crate::engine::tally::{Last, Settled};
use crate::engine::validation::Validation;
use crate::engine::validator::{Proof, Verdict};
use crate::reply::sigil::{COMPLETE, FAILURE, Objection, REPLAN, Said, Sigils};
use crate::reply::usage::Class;
use crate::reply::verdict::{Failure, Kind};

/// Where an attempt began.
#[derive(Debug, Clone)]
pub(super) struct Start {
    /// The commit that HEAD named.
    pub(super) head: Option<String>,
    time: SystemTime,
}

/// The result of an attempt.
struct Judged {
    report: Report,
    settled: Settled,
    /// The end of the loop, if its validation could not be finished.
    end: Option<End>,
}

impl Loop<'_> {
    /// Runs the agent once, has its work checked, and books the result.
    pub(super) fn attempt(&mut self, work: Work) -> Result<(), End> {
        let head = self.job.worktree.head();
        self.job.tally.in_attempt = true;
        self.take_notes();
        let Job { context, tally, .. } = &mut self.job;
        context.count(tally).tell(Fact::attempt_started(tally, head.as_deref()))?;
        self.goes_without_room = false;
        // From here on an attempt is booked in any case.
        self.handed_out = false;
        let (began, start) = (Instant::now(), Start { head, time: SystemTime::now() });
        self.first.get_or_insert_with(|| start.clone());
        let was_stopped = self.job.context.stopped_by().is_some();
        let worked = self.run_and_judge(&work, &start);
        let how = work.how.clone();
        // What is another one's now is not handed out again.
        self.work = Some(work).filter(|_| !self.job.context.is_forfeit());
        self.is_interrupted = !was_stopped && self.job.context.stopped_by() == Some(Outcome::Interrupted);
        match worked {
            Ok(Judged { mut report, settled, end: None }) => {
                let takeover = self.meet(&report, &how);
                report.is_taken_over = takeover.is_some();
                self.book(&report, &settled)?;
                takeover.map_or(Ok(()), |takeover| self.turn_to(takeover))
            }
            // The agent's work counts although it cannot be checked any more. The first reason is the one that counts.
            Ok(Judged { report, settled, end: Some(end) }) => {
                let _ = self.book(&report, &settled);
                Err(end)
            }
            // The agent goes on, and a later process continues this attempt.
            Err(end) if end.outcome == Outcome::Detached => Err(end),
            Err(end) => Err(self.give_up(end, began.elapsed())),
        }
    }

    /// Runs the agent and has its work checked, with a look around after each: what proves the work runs what the agent has written.
    fn run_and_judge(&mut self, work: &Work, start: &Start) -> Result<Judged, End> {
        if let Some(tripwire) = &mut self.job.tripwire {
            tripwire.set();
        }
        self.job.tally.refused.clear();
        self.job.context.refused.clear();
        let ran = self.run_agent(work);
        let tripped = self.look_around();
        let report = ran?;
        self.met_no_outage(&report);
        self.tell_refused(&report.refused)?;
        if let Err(end) = tripped {
            // What would judge it may have been changed.
            return Ok(Judged { report, settled: Settled::default(), end: Some(end) });
        }
        let judged = self.judge(report, work, start)?;
        self.job.worktree.clear_up();
        Ok(match self.look_around() {
            Err(end) => Judged { end: Some(end), ..judged },
            Ok(()) => judged,
        })
    }

    /// Runs the agent.
    fn run_agent(&mut self, work: &Work) -> Result<Report, End> {
        if self.job.limits.idle.is_some() {
            self.job.worktree.agent_begins();
        }
        let deadline = self.deadline();
        let Job { agent, context, tally, .. } = &mut self.job;
        let attempt = Attempt { iteration: tally.iteration, prompt: &work.prompt, how: &work.how, deadline };
        agent.run(&attempt, context)
    }

    /// Tells what the attempt has changed around the work; returns the end of the loop, if that is one.
    fn look_around(&mut self) -> Result<(), End> {
        let Job { context, tripwire: Some(tripwire), .. } = &mut self.job else { return Ok(()) };
        let sprung = tripwire.sprung();
        for what in &sprung {
            context.notice(&format!("tripwire: {what}"))?;
        }
        match sprung.into_iter().next() {
            Some(what) if tripwire.stops() => Err(End::because(Outcome::Tripped, what)),
            _ => Ok(()),
        }
    }

    /// Reports what walls have refused to an agent, or to what checks its work, once each, also to the next agent.
    fn tell_refused(&mut self, refused: &[Refused]) -> Result<(), End> {
        let Job { context, tally, .. } = &mut self.job;
        for refused in refused {
            if tally.refused(refused) {
                context.tell(Fact::Refused(refused.clone()))?;
            }
        }
        Ok(())
    }

    /// What the report means for the work. If the loop ends before that is known, the agent's cost is booked all the same.
    fn judge(&mut self, mut report: Report, work: &Work, start: &Start) -> Result<Judged, End> {
        match self.settle(&mut report, work, start) {
            Ok((settled, end)) => Ok(Judged { report, settled, end }),
            Err(end) => {
                self.job.tally.spend(report.spent());
                Err(end)
            }
        }
    }

    /// What a report means for the work; an unproven COMPLETE does not count. With the loop's end, if the validation leads to one.
    fn settle(
        &mut self,
        report: &mut Report,
        work: &Work,
        start: &Start,
    ) -> Result<(Settled, Option<End>), End> {
        // Checked before the validation, whose own traces are no progress.
        let changed = match self.job.limits.idle {
            Some(_) => self.job.worktree.has_changed(),
            // A commit is seen at once; for more git would have to walk the tree.
            None => (self.job.worktree.head() != start.head).then_some(true),
        };
        let mut settled = Settled { changed, ..Settled::default() };
        if let Some(why) = start.head.as_deref().and_then(|head| self.job.worktree.lost(head)) {
            return Ok((settled, Some(lost(report, why))));
        }
        if !matches!(report.status, AttemptStatus::Success | AttemptStatus::Still) {
            return Ok((settled, None));
        }
        settled.said_alone = self.heed_mentions(report, changed, start)?;
        settled.signal = self.job.source.settle(report);
        let says_done = |pattern: &regex::Regex| pattern.is_match(&report.text);
        let is_done = report.matches_done || self.job.done_pattern.as_ref().is_some_and(says_done);
        if settled.signal == Signal::Continue && is_done {
            settled.signal = Signal::Done;
        }
        let claims = matches!(settled.signal, Signal::Complete | Signal::Done);
        let mut is_valid = true;
        let mut end = None;
        if self.job.validator.as_ref().is_some_and(|validator| validator.applies(report)) {
            match self.validate(report, settled.signal, work) {
                Ok(proof) => {
                    let is_over = proof.as_ref().is_some_and(|proof| proof.is_last && !proof.ok);
                    end = is_over.then(|| self.ended_by_policy(Outcome::Unproven));
                    settled.proof = proof;
                }
                Err(ended) => end = Some(ended),
            }
            is_valid = settled.proof.as_ref().is_some_and(|validation| validation.ok);
        }
        if claims
            && is_valid
            && let Some(output) = self.job.source.refutes()
        {
            let proof = settled.proof.take().unwrap_or_default();
            let refuted = Validation { ok: false, undecided: true, output, by: None, ..proof };
            self.validated(&refuted)?;
            settled.proof = Some(refuted);
            is_valid = false;
        }
        if claims
            && is_valid
            && settled.proof.is_none()
            && let Some(by) = self.job.source.proves()
        {
            let proven = Validation { ok: true, by: Some(by), ..Validation::default() };
            self.validated(&proven)?;
            settled.proof = Some(proven);
        }
        if claims && !is_valid {
            report.status = AttemptStatus::CompleteUnproven;
            settled.signal = Signal::Continue;
        }
        Ok((settled, end))
    }

    /// Reports markers that were mentioned and not claimed. An agent that changed nothing and gave a marker a line for itself has
    /// claimed it if the one before it did the same. Returns the markers that had a line for themselves, if nothing was changed.
    fn heed_mentions(
        &mut self,
        report: &mut Report,
        changed: Option<bool>,
        start: &Start,
    ) -> Result<Vec<String>, End> {
        let Job { worktree, context, tally, .. } = &mut self.job;
        let is_known = |text: &String| [COMPLETE, REPLAN, FAILURE].contains(&text.as_str());
        let has_changed = || {
            let moved = worktree.head() != start.head;
            // If it is unknown, it is no claim.
            changed.unwrap_or_else(|| moved || worktree.is_written_since(start.time).unwrap_or(true))
        };
        let mut alone: Vec<_> = report.sigils.alone().cloned().collect();
        if !alone.is_empty() && has_changed() {
            alone.clear();
        }
        for sigil in alone.iter().filter(|sigil| tally.said_alone.contains(&sigil.to_string())) {
            report.sigils.claim(sigil);
        }
        for said in report.sigils.mentions() {
            let marker = said.sigil.to_string();
            if is_known(&marker) || marker.starts_with("<task-") {
                context.notice(&format!("the agent mentions {marker}{}", why_it_does_not_count(said)))?;
            }
        }
        Ok(alone.iter().map(ToString::to_string).filter(is_known).collect())
    }

    /// Runs the validation; its failure goes into the next prompt. `None`: it was cut off.
    fn validate(&mut self, report: &Report, signal: Signal, work: &Work) -> Result<Option<Validation>, End> {
        let Job { validator, context, tally, .. } = &mut self.job;
        validator.as_mut().map_or(Ok(()), |validator| validator.begin(context))?;
        context.tell(Fact::validating(tally, Some(report)))?;
        let is_refuted = self.job.source.refutes().is_some();
        let validation = loop {
            let deadline = self.deadline();
            let Job { validator: Some(validator), agent, context, tally, .. } = &mut self.job else {
                return Ok(None);
            };
            let iteration = tally.iteration;
            let agent = agent.as_mut();
            let proof = Proof { iteration, work, report, signal, is_refuted, agent, deadline };
            match validator.validate(proof, context)? {
                Verdict::Found(validation) => break validation,
                Verdict::Unable(report, inspects) if self.wait_to_ask_again(&report, inspects, work)? => {}
                Verdict::CutOff(usage) => {
                    self.job.tally.spend(Spent::reported(
                        usage.cost_usd,
                        usage.input_tokens,
                        usage.output_tokens,
                    ));
                    return Ok(None);
                }
                Verdict::Unable(..) => return Ok(None),
            }
        };
        self.validated(&validation)?;
        Ok(Some(validation))
    }

    fn validated(&mut self, validation: &Validation) -> Result<(), End> {
        self.validated = Validated::Work;
        let refused = std::mem::take(&mut self.job.context.refused);
        self.tell_refused(&refused)?;
        let Job { context, tally, .. } = &mut self.job;
        let Validation { ok, undecided, output, by, .. } = validation;
        let by = by.as_deref();
        context.tell(Fact::Validated {
            by: by.map(Into::into),
            ok: *ok,
            output: output.into(),
            undecided: *undecided,
        })?;
        tally.validated(by, *ok, *undecided, output);
        Ok(())
    }

    /// Validates once more before an end that says that the work is good, unless a validation of this process has passed and no
    /// agent has worked since: one whose attempt failed, or one that has verified a task.
    pub(super) fn validate_end(&mut self, end: End) -> End {
        let Some(unproven) = end.outcome.if_unproven() else { return end };
        let tally = &self.job.tally;
        match self.validated {
            Validated::Work if !tally.changed_since_validation && !tally.unproven => return end,
            // The source has found that all is done, which changes no file.
            Validated::RefutedEnd => return self.ended_by_policy(unproven),
            Validated::Nothing | Validated::Work => {}
        }
        match self.validate_files() {
            Ok(None | Some(true)) => end,
            Ok(Some(false)) => {
                self.validated = Validated::RefutedEnd;
                self.ended_by_policy(unproven)
            }
            Err(end) => end,
        }
    }

    /// Whether the files as they are pass the validation; `None` where nothing validates them.
    fn validate_files(&mut self) -> Result<Option<bool>, End> {
        let Job { validator, context, tally, .. } = &mut self.job;
        let Some(validator) = validator.as_mut().and_then(|validator| validator.of_files()) else {
            return Ok(None);
        };
        context.tell(Fact::validating(tally, None))?;
        let Verdict::Found(validation) = validator.validate_files(context)? else {
            // It was cut off: by the user, or it is unknown whether the work is good.
            return context.stopped_by().map_or(Ok(Some(false)), |outcome| Err(outcome.into()));
        };
        self.validated(&validation)?;
        let tally = &mut self.job.tally;
        (tally.changed_since_validation, tally.unproven) = (false, !validation.ok);
        Ok(Some(validation.ok))
    }

    /// Waits, as before any attempt, until an agent for the validation can work. `false`: something else came first.
    fn wait_to_ask_again(&mut self, report: &Report, inspects: Inspects, work: &Work) -> Result<bool, End> {
        let how = How { inspects: Some(inspects), ..work.how.clone() };
        let takeover = self.meet(report, &how);
        self.job.tally.met(report);
        if let Some(takeover) = takeover {
            self.job.tally.last = Last::Waited;
            self.turn_to(takeover)?;
        }
        if self.job.context.is_held_up() {
            return Ok(false);
        }
        match step(&self.job.limits, &self.job.tally, self.now()) {
            Step::Wait(until) => self.wait_for_provider(until),
            Step::End(outcome) => Err(self.ended_by_policy(outcome)),
            Step::Begin { .. }
            | Step::BackOff { .. }
            | Step::Retry { .. }
            | Step::AwaitRoom(_)
            | Step::Again => Ok(true),
        }
    }

    /// Books an attempt that has ended.
    fn book(&mut self, report: &Report, settled: &Settled) -> Result<(), End> {
        // Sources may keep any part of it.
        let redactions = &self.job.context.redactions;
        let (report, settled) = (redactions.report(report), redactions.settled(settled));
        let (report, settled) = (report.as_ref(), settled.as_ref());
        self.job.tally.book(self.job.limits.max_retries, report, settled);
        self.book_time();
        self.take_notes();
        let head = self.job.worktree.head();
        self.job.tally.last_commit.clone_from(&head);
        self.job.tally.gone = self.job.source.gone();
        let Job { context, tally, source, .. } = &mut self.job;
        let fact = Fact::attempt_ended(tally, report, head.as_deref(), settled.changed);
        let unwritten = report.exceeded.map_or(Unwritten::Nothing, Unwritten::Exceeded);
        let told = context.count(tally).tell_with(fact, unwritten);
        // The source must know of it, even if no record could be written.
        let booked = source.book(&booked(tally.iteration, report, settled), context);
        self.take_notes();
        told.and(booked)
    }

    /// Books an attempt that the end of the loop has cut off, so that its result is unknown.
    fn give_up(&mut self, end: End, duration: Duration) -> End {
        let status = match end.outcome {
            Outcome::AgentMissing => AttemptStatus::AgentFailure,
            _ => AttemptStatus::Interrupted,
        };
        let report = Report::given_up(status, duration);
        let settled = Settled::default();
        self.job.tally.book(self.job.limits.max_retries, &report, &settled);
        self.job.tally.gone = self.job.source.gone();
        self.take_notes();
        let Job { context, tally, source, .. } = &mut self.job;
        let fact = Fact::attempt_ended(tally, &report, None, None);
        context.count(tally).tell_whoever_listens(fact, Unwritten::Nothing);
        // The first reason is the one that counts.
        let _ = source.book(&booked(tally.iteration, &report, &settled), context);
        end
    }
}

/// The end after an attempt with which commits were lost: nothing that its agent says can be proven.
fn lost(report: &mut Report, why: String) -> End {
    let (class, kind) = (Class::Other, Kind::Reported);
    report.status = AttemptStatus::AgentFailure;
    report.failure = Some(Failure { class, kind, message: why.clone(), reset_at: None });
    report.sigils = Sigils::default();
    End::because(Outcome::GitFailed, why)
}

fn booked<'a>(iteration: u64, report: &'a Report, settled: &'a Settled) -> Booked<'a> {
    let Settled { signal, changed, proof, .. } = settled;
    Booked { iteration, report, signal: *signal, proof: proof.as_ref(), changed: *changed }
}

fn why_it_does_not_count(said: &Said) -> &'static str {
    match said.objection {
        Some(Objection::Code) => " in a block of code, where it does not count",
        Some(Objection::Quoted) => " in a quotation or a code span, where it does not count",
        Some(Objection::Denied) => " behind words that deny it, so that it does not count",
        Some(Objection::Place) | None => ": that counts only at the end of a line of its last message",
    }
}
