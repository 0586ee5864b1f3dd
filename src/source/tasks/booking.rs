//! Books the result of an attempt for its task.

use std::sync::LazyLock;

use chrono::Utc;
use regex::Regex;

use super::lane::Keep;
use super::trace::Snapshot;
use super::{Current, Tasks, Undecided};
use crate::engine::context::Context;
use crate::engine::fact::{Fact, TaskAtWork};
use crate::engine::outcome::End;
use crate::engine::report::{AttemptStatus, Report, Signal};
use crate::engine::source::Booked;
use crate::engine::validation::{NOT_VERIFIED, VERIFYING_AGENT, Validation, reason, with_reason};
use crate::graph::{Claim, Ended, GraphError, HowDone, JournalQuery, Retries, Status, Store, Task};
use crate::memory::journal::{Became, JournalEntry};
use crate::memory::knowledge::{self, Knowledge};
use crate::memory::model::Trace;
use crate::prompt::quote::{cut, quoted_line};
use crate::reply::sigil::{JOURNAL, KNOWLEDGE, NEXT_MODEL, TASK_DONE, TASK_FAILED};

/// This many agents in a row without a report and without changes, or without a report at all, fail a task.
const SILENT_AND_IDLE: u32 = 3;
const SILENT: u32 = 5;
/// After this many verifications without a verdict, this run leaves a task to the next one.
const UNDECIDED: u32 = 2;
/// The longest reason that is kept, in characters.
const REASON: usize = 8000;
/// The reason for an agent without a report, in the journal and in the log.
const SAID_NOTHING: &str = "its agent ended without reporting an outcome";
/// The reason for a task that an earlier run has verified and not booked.
const VERIFIED_BEFORE: &str = "it was verified at this commit by a run that ended before it could book that";
/// The reason for a claim whose verification was interrupted.
const CUT_OFF: &str = "it was cut off before it was verified";
/// The reason for a verification without a verdict.
pub(super) const NO_VERDICT: &str = "the verifying agent did not emit a verification sigil";

/// The decision about a task.
enum Decision {
    Done,
    /// It has failed, for this reason.
    Failed(String),
    /// It is retried, for this reason; the next agent gets `output`, which has more of it.
    Retry {
        reason: String,
        output: String,
    },
    /// It is released, for this reason: open, or claimed to be done and not verified.
    Release(String),
}

impl Decision {
    /// The decision about a task that this validation has not found done.
    fn refuted(proof: &Validation) -> Self {
        // The line with it says that an agent has verified the task.
        let by = proof.by.as_deref().filter(|by| *by != VERIFYING_AGENT);
        let reason = reason(by, proof.undecided, &proof.output);
        Self::Retry { reason, output: with_reason(proof) }
    }
}

impl Decision {
    /// Books it; also returns the reason.
    fn book(
        self,
        graph: &mut dyn Store,
        claim: &Claim,
        done: HowDone<'_>,
        retries: Retries,
    ) -> (Result<Ended, GraphError>, String) {
        match self {
            Self::Done => (graph.complete(claim, done), String::new()),
            Self::Failed(reason) => (graph.fail(claim, &cut(&reason, REASON)), reason),
            Self::Retry { reason, output } => (graph.retry(claim, &cut(&output, REASON), retries), reason),
            Self::Release(reason) => (graph.release(claim, &reason).map(|()| Ended::Released), reason),
        }
    }
}

/// Whether this run has tried to verify a task often enough.
pub(super) fn is_left_to_others(undecided: &Undecided, id: &str) -> bool {
    undecided.get(id).is_some_and(|(count, _)| *count >= UNDECIDED)
}

/// The results of an attempt besides its report.
struct Left {
    files: Vec<String>,
    changed: bool,
    head: Option<String>,
}

impl Tasks {
    pub(super) fn book_attempt(&mut self, booked: &Booked<'_>, context: &mut Context<'_>) -> Result<(), End> {
        let Some(mut current) = self.current.borrow_mut().take() else { return Ok(()) };
        self.last = Some(current.task.id.clone());
        self.unverified = None;
        let report = booked.report;
        let forfeit = context.take_forfeit();
        let ground = &self.target.places.ground;
        if let Err(end) = current.look_at_what_was_left(ground, false, context) {
            // It is released at the end.
            *self.current.borrow_mut() = Some(current);
            return Err(end);
        }
        if let Some(fault) = &current.fault {
            context.notice(fault)?;
        }
        if report.is_waited_for() {
            // After the wait, the same work is repeated.
            if current.only_verifies {
                (current.watched, current.fault) = (Some(ground.watched(None)), None);
            }
            *self.current.borrow_mut() = Some(current);
            return Ok(());
        }
        let now = Snapshot::take(ground);
        let (files, changed) = now.since(&current.before, &ground.root);
        let left = Left { files, changed, head: now.head().map(str::to_owned) };
        self.save_rest(&current, report.status, context)?;
        // Where the agent has ended by itself, it is decided first what is to become of it.
        let is_decided = matches!(
            report.status,
            AttemptStatus::Success | AttemptStatus::CompleteUnproven | AttemptStatus::Still
        );
        self.keep_made(&current, if is_decided { Keep::Here } else { Keep::There }, context)?;
        self.count_failure(matches!(report.status, AttemptStatus::AgentFailure | AttemptStatus::Timeout));
        match report.status {
            AttemptStatus::Success | AttemptStatus::CompleteUnproven | AttemptStatus::Still => {
                context.renew_no_more();
                let decision = self.decide(&current, booked, left.changed, context)?;
                self.settle_task(&current, booked, decision, left, context)
            }
            AttemptStatus::Interrupted => {
                let reason = forfeit.as_deref().unwrap_or("the loop was asked to stop");
                self.give_up_noted(&current, booked, (Became::Interrupted, reason), left, context)
            }
            AttemptStatus::AgentFailure | AttemptStatus::Timeout
                if current.only_verifies && !report.is_refused() =>
            {
                context.renew_no_more();
                let failure = report.failure.as_ref().map_or(NO_VERDICT, |failure| &failure.message);
                let why = current.fault.as_deref().unwrap_or(failure);
                let decision = self.decide_undecided(&current.task.id, 1, why);
                self.settle_task(&current, booked, decision, left, context)
            }
            AttemptStatus::AgentFailure | AttemptStatus::Timeout | AttemptStatus::UsageLimit => {
                let said = report.failure.as_ref().map(|failure| failure.message.as_str());
                let reason = said.unwrap_or("its agent failed");
                self.give_up_noted(&current, booked, (Became::Blocked, reason), left, context)
            }
        }
    }

    /// Books a task that was verified at the current commit, if the run that verified it ended before it could book
    /// that.
    pub(super) fn book_verified(
        &mut self,
        iteration: u64,
        claim: &Claim,
        task: &Task,
        context: &mut Context<'_>,
    ) -> Result<bool, End> {
        // What it has made is still to be laid out, and to land.
        if self.lane.is_some() {
            return Ok(false);
        }
        let id = task.id.clone();
        let seen = self.graph.look(context, move |graph| {
            let Some(commit) = graph.verified_at(&id)? else { return Ok(None) };
            Ok::<_, GraphError>(Some((commit, graph.details(&id)?.feature)))
        });
        let Some((commit, feature)) = seen??.filter(|_| self.is_verified) else { return Ok(false) };
        let now = Snapshot::take(&self.target.places.ground);
        if !now.is_clean() || now.head() != Some(&commit) {
            return Ok(false);
        }
        let entry = JournalEntry {
            run_id: self.target.holder.run.clone(),
            iteration,
            task_id: task.id.clone(),
            title: task.title.clone(),
            feature: feature.clone(),
            outcome: Became::Done,
            model: None,
            duration_secs: 0.0,
            cost_usd: None,
            input_tokens: 0,
            output_tokens: 0,
            files_modified: Vec::new(),
            notes: String::new(),
            reason: VERIFIED_BEFORE.to_owned(),
            created_at: Utc::now(),
        };
        let (claim, at) = (claim.clone(), commit.clone());
        context.renew_no_more();
        let ended = self.graph.book(context, move |graph| {
            graph.complete(&claim, HowDone { commit: Some(&at), is_verified: true, attempt: Some(&entry) })
        });
        if ended?? != Ended::Done {
            // It has got parts meanwhile, and is ready again after them.
            return Ok(true);
        }
        self.landed.is_done(&task.id, Some(&commit));
        let (feature, tasks) = (feature.as_deref().map(Into::into), self.task_counts(context)?);
        context.tell(Fact::TaskEnded {
            outcome: Became::Done.word().into(),
            reason: VERIFIED_BEFORE.into(),
            task: TaskAtWork { feature, id: (&*task.id).into(), model: None, title: (&task.title).into() },
            tasks,
        })?;
        Ok(true)
    }

    /// Books a decision in the graph and in the journal.
    fn settle_task(
        &mut self,
        current: &Current,
        booked: &Booked<'_>,
        decision: Decision,
        left: Left,
        context: &mut Context<'_>,
    ) -> Result<(), End> {
        let _renewed = self.graph.keep_while_booked(&current.claim);
        let head = left.head.clone();
        // What a done task rests on; other reasons come with the decision.
        let rests_on = booked.proof.filter(|proof| proof.ok).and_then(|proof| proof.by.as_deref());
        let mut entry =
            self.entry(current, booked, Became::Done, rests_on.unwrap_or_default(), left, context);
        let (became, reason) = self.carry_out(current, decision, head.as_deref(), &entry, context)?;
        if current.only_verifies && became != Became::Done {
            self.unverified = Some(format!("{} is not verified: {reason}", current.task.id));
        }
        (entry.outcome, entry.reason) = (became, cut(&reason, REASON));
        self.remember(current, booked, entry, context)
    }

    /// Releases the task of an unfinished attempt, and notes that in the journal.
    fn give_up_noted(
        &mut self,
        current: &Current,
        booked: &Booked<'_>,
        (became, reason): (Became, &str),
        left: Left,
        context: &mut Context<'_>,
    ) -> Result<(), End> {
        let entry = self.entry(current, booked, became, reason, left, context);
        self.give_up(current, became, reason, context)?;
        if became != Became::Interrupted {
            self.traces.push(Trace::of(&entry, self.target.models.ladder(), None));
        }
        self.note(entry, context)
    }

    /// Adds an attempt to the journal.
    fn note(&self, entry: JournalEntry, context: &mut Context<'_>) -> Result<(), End> {
        self.graph.book(context, move |graph| graph.note(&entry))?.map_err(End::from)
    }

    /// The decision for a successful attempt.
    fn decide(
        &mut self,
        current: &Current,
        booked: &Booked<'_>,
        changed: bool,
        context: &mut Context<'_>,
    ) -> Result<Decision, End> {
        let (id, sigils) = (&current.task.id, &booked.report.sigils);
        self.is_proven_by_command = booked.proof.is_some_and(|proof| proof.ok);
        if booked.signal == Signal::Failure {
            let why = format!("its agent has given everything up: {}", last_words(booked.report));
            return Ok(Decision::Release(why));
        }
        if sigils.complete() {
            context.notice("the agent says that all is done: the graph of tasks decides that")?;
        }
        if current.only_verifies {
            return Ok(self.decide_verification(current, booked));
        }
        if sigils.claims_done(id) {
            return Ok(match (booked.proof, &current.undecided) {
                _ if !self.is_verified => Decision::Done,
                (_, Some(why)) => self.decide_undecided(id, UNDECIDED, why),
                (Some(proof), _) if proof.ok => Decision::Done,
                (Some(proof), _) => Decision::refuted(proof),
                (None, _) => Decision::Release(CUT_OFF.to_owned()),
            });
        }
        if sigils.names(TASK_FAILED, id) {
            return Ok(Decision::Failed(last_words(booked.report)));
        }
        let mut others = sigils.claimed(TASK_DONE).chain(sigils.claimed(TASK_FAILED));
        if let Some(other) = others.next() {
            let said = format!("the agent named {} and not {id}", quoted_line(&other.body, 40));
            context.notice(&format!("{said}: that says nothing about {id}"))?;
            self.remarks.entry(id.clone()).or_default().push(format!(
                "an agent before you ended with the id {}; the id of this task is {id}",
                quoted_line(&other.body, 40)
            ));
        }
        self.decide_silence(id, changed, context)
    }

    /// The decision for an agent without a report. The journal has the earlier ones, of any run.
    fn decide_silence(&self, id: &str, changed: bool, context: &mut Context<'_>) -> Result<Decision, End> {
        let query = JournalQuery {
            task: Some(id.to_owned()),
            limit: Some(SILENT as usize),
            ..JournalQuery::default()
        };
        let counted = self.graph.book(context, move |graph| {
            let (mut silent, mut idle, mut is_idle) = (1, u32::from(!changed), !changed);
            graph.journal(&query, &mut |entry| {
                if entry.reason != SAID_NOTHING {
                    return false;
                }
                silent += 1;
                is_idle &= entry.files_modified.is_empty();
                idle += u32::from(is_idle);
                true
            })?;
            Ok::<_, GraphError>((silent, idle))
        });
        let (silent, idle) = counted??;
        Ok(if idle >= SILENT_AND_IDLE {
            Decision::Failed(format!("{idle} agents in a row said nothing about it and changed nothing"))
        } else if silent >= SILENT {
            Decision::Failed(format!("{silent} agents in a row said nothing about it"))
        } else {
            Decision::Release(SAID_NOTHING.to_owned())
        })
    }

    /// The decision for a verifying agent.
    fn decide_verification(&mut self, current: &Current, booked: &Booked<'_>) -> Decision {
        let fault = current.fault.as_deref();
        let verdict = booked.report.sigils.verification().filter(|_| fault.is_none());
        match (verdict, booked.proof) {
            (Some(Ok(())), Some(proof)) if !proof.ok => Decision::refuted(proof),
            (Some(Ok(())), None) if current.has_to_be_proven => Decision::Release(CUT_OFF.to_owned()),
            (Some(Ok(())), _) => Decision::Done,
            (Some(Err(reason)), _) => {
                Decision::Retry { reason: reason.to_owned(), output: reason.to_owned() }
            }
            (None, _) => self.decide_undecided(&current.task.id, 1, fault.unwrap_or(NO_VERDICT)),
        }
    }

    /// Counts verifications without a verdict. They say nothing about the task, which stays unverified.
    fn decide_undecided(&mut self, id: &str, more: u32, why: &str) -> Decision {
        let (count, reason) = self.undecided.entry(id.to_owned()).or_default();
        *count += more;
        why.clone_into(reason);
        Decision::Release(format!("{NOT_VERIFIED}{why}"))
    }

    /// Books a decision in the graph; returns its word for the journal and the reason. A done task's attempt is in
    /// the journal by then, as `entry`.
    fn carry_out(
        &mut self,
        current: &Current,
        mut decision: Decision,
        head: Option<&str>,
        entry: &JournalEntry,
        context: &mut Context<'_>,
    ) -> Result<(Became, String), End> {
        // They may name files of the agent's.
        match &mut decision {
            Decision::Done => {}
            Decision::Failed(reason) | Decision::Release(reason) => context.clean(reason),
            Decision::Retry { reason, output } => {
                context.clean(reason);
                context.clean(output);
            }
        }
        let made = if let (Some(lane), Decision::Done) = (&self.lane, &decision) {
            let uncommitted = lane.commit_rest(current, context)?;
            let how = if uncommitted.is_none() { Keep::Finished } else { Keep::There };
            let made = lane.keep(&self.graph, current, how, context)?;
            match uncommitted {
                None => made,
                Some(reason) => {
                    decision = Decision::Retry { reason, output: String::new() };
                    None
                }
            }
        } else {
            self.keep_made(current, Keep::There, context)?;
            None
        };
        if let (Some(lane), Some(_)) = (&self.lane, &made) {
            // Before a lander can see it.
            lane.team.hands_in(current.claim.reference());
        }
        let (claim, entry, head_then) = (current.claim.clone(), entry.clone(), head.map(str::to_owned));
        let (is_verified, retries, queued) = (self.is_verified, self.target.retries, made.clone());
        let booked = self.graph.book(context, move |graph| {
            graph.look_after()?;
            let done = HowDone { commit: head_then.as_deref(), is_verified, attempt: Some(&entry) };
            Ok::<_, GraphError>(match queued {
                Some(made) => (graph.queue(&claim, &made, done), String::new()),
                None => decision.book(graph, &claim, done, retries),
            })
        });
        let booked = booked.map_err(|end| self.unbooked(current, end))?;
        let (ended, reason) = booked.map_err(|error| self.unbooked(current, error.into()))?;
        if let (Some(lane), Some(_), Ok(_) | Err(GraphError::ClaimLost { .. })) = (&self.lane, &made, &ended)
        {
            lane.is_booked(current)?;
        }
        if let Some(lane) = self.lane.as_ref().filter(|_| !matches!(ended, Ok(Ended::Queued))) {
            lane.team.waits_no_more(&current.claim.reference());
        }
        let (became, reason) = match ended {
            Ok(Ended::Done) => {
                if self.lane.is_none() {
                    self.landed.is_done(&current.task.id, head);
                }
                (Became::Done, reason)
            }
            Ok(Ended::Queued) => {
                self.tell_ended(current, Status::Landing.word(), &reason, context)?;
                if let Some(made) = &made {
                    self.handed_in(current, made, context)?;
                }
                return Ok((Became::Done, reason));
            }
            Ok(Ended::Failed) => (Became::Failed, reason),
            Ok(Ended::Retried) => (Became::Retried, reason),
            Ok(Ended::Released) if reason.is_empty() => {
                (Became::Blocked, "it has got parts meanwhile and comes again after them".to_owned())
            }
            Ok(Ended::Released | Ended::Returned) => (Became::Blocked, reason),
            Err(GraphError::ClaimLost { .. }) => {
                self.take_back_changed_claim(current, context)?;
                let why = "it was taken from this run meanwhile: what its agent says is not booked";
                let (became, told) =
                    self.ended_by_another(current, context)?.unwrap_or((Became::Blocked, why));
                self.tell_ended(current, became.word(), told, context)?;
                // The journal is about this attempt, which has not ended the task.
                return Ok((Became::Blocked, why.to_owned()));
            }
            Err(error) => return Err(self.unbooked(current, error.into())),
        };
        self.tell_ended(current, became.word(), &reason, context)?;
        Ok((became, reason))
    }

    /// Keeps the agent's findings, and the attempt itself.
    fn remember(
        &mut self,
        current: &Current,
        booked: &Booked<'_>,
        entry: JournalEntry,
        context: &mut Context<'_>,
    ) -> Result<(), End> {
        let sigils = &booked.report.sigils;
        if entry.outcome != Became::Blocked {
            self.remarks.remove(&current.task.id);
        }
        let folder = self.target.places.documents.join("knowledge");
        for sigil in sigils.said(KNOWLEDGE) {
            let [title, tags] = ["title", "tags"].map(|name| sigil.attribute(name).unwrap_or_default());
            let feature = current.facts.feature.as_deref();
            let told = match Knowledge::new(title, tags, feature, &sigil.body, Utc::now()) {
                Some(new) => {
                    if let Some(lane) = self.lane.as_ref().filter(|lane| lane.exchange.is_some()) {
                        lane.team.has_found(new.clone());
                    }
                    knowledge::keep(&folder, new).err().map(|error| error.to_string())
                }
                None => Some("the agent has found something out without a title or without words".to_owned()),
            };
            if let Some(told) = told {
                context.notice(&told)?;
            }
        }
        let ladder = self.target.models.ladder();
        let hint = sigils.said(NEXT_MODEL).last().map(|sigil| sigil.body.trim().to_owned());
        if let Some(hint) = hint.as_ref().filter(|hint| !ladder.contains(hint)) {
            let choice =
                if ladder.is_empty() { "the model is not chosen here" } else { "it is not on the ladder" };
            context.notice(&format!("the agent asks for the model {}: {choice}", quoted_line(hint, 40)))?;
        }
        self.traces.push(Trace::of(&entry, ladder, hint.as_deref()));
        if entry.outcome == Became::Done {
            return Ok(());
        }
        self.note(entry, context)
    }

    fn entry(
        &self,
        current: &Current,
        booked: &Booked<'_>,
        became: Became,
        reason: &str,
        mut left: Left,
        context: &Context<'_>,
    ) -> JournalEntry {
        // The agent has chosen the names; its texts are clean by now.
        left.files.iter_mut().for_each(|file| context.clean(file));
        let Booked { report, proof, iteration, .. } = booked;
        let notes: Vec<&str> = report.sigils.said(JOURNAL).map(|sigil| sigil.body.trim()).collect();
        let mut usage = report.usage.clone();
        usage.cost_usd = report.cost_usd();
        if let Some(proof) = proof {
            usage.add(&proof.usage);
        }
        JournalEntry {
            run_id: self.target.holder.run.clone(),
            iteration: *iteration,
            task_id: current.task.id.clone(),
            title: current.task.title.clone(),
            feature: current.facts.feature.clone(),
            outcome: became,
            model: usage.model.or_else(|| current.model.clone()),
            duration_secs: report.duration.as_secs_f64(),
            cost_usd: usage.cost_usd,
            input_tokens: usage.input_tokens.unwrap_or_default(),
            output_tokens: usage.output_tokens.unwrap_or_default(),
            files_modified: left.files,
            notes: notes.join("\n\n"),
            reason: cut(reason, REASON),
            created_at: Utc::now(),
        }
    }
}

/// The markers of ralph in an agent's text: those that only name an outcome with what they enclose, of others the tags.
static MARKERS: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::unwrap_used, reason = "a constant pattern")]
    Regex::new(r"(?s)<(?:promise|task-done|task-failed)\b[^<>]*>[^<]{0,200}</[a-z-]+>|</?(?:promise|journal|knowledge|[a-z]+-[a-z]+)\b[^<>]*>").unwrap()
});

/// The end of what an agent said before it gave up a task, without markers, from the begin of a word on.
fn last_words(report: &Report) -> String {
    let text = MARKERS.replace_all(&report.text, " ");
    let text = text.trim();
    let start = text.ceil_char_boundary(text.len().saturating_sub(1000));
    let skipped = if start > 0 { text[start..].find(char::is_whitespace).unwrap_or_default() } else { 0 };
    match quoted_line(text[start + skipped..].trim(), 1000) {
        said if said.is_empty() => "its agent gave no reason".to_owned(),
        said => said,
    }
}
