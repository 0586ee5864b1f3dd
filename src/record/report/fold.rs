//! Folds the lines of a loop's events logs into its report.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use chrono::{DateTime, FixedOffset, Local};
use serde::Deserialize;

use super::{
    AgentChange, AgentReport, AttemptReport, Before, IterationReport, LoopReport, TaskReport,
    ValidationReport, Wait, Work,
};
use crate::engine::budget::Spent;
use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::fact::{AttemptEnded, Fact, LoopEnded, TaskAtWork, TaskCounts, Word};
use crate::engine::outcome::{Ended, Outcome, Phase, Stand};
use crate::engine::refused::Refused;
use crate::engine::report::AttemptStatus;
use crate::engine::tally::Tally;
use crate::engine::validation::{Evidence, Standing, VERIFYING_AGENT, failure};
use crate::record::event_line::EventLine;
use crate::record::event_lines::{Follower, each_line};
use crate::record::run_folder::event_logs;
use crate::tell::words::{KILLED, entry};
use crate::text::line::{last_lines, one_line};

/// How much of the last text of an attempt is kept, in characters.
const SAID: usize = 2_000;
/// How many lines of a validation's output are kept.
const VALIDATION: usize = 40;
/// So much of the end of a log is read for the time of its last line, in bytes.
const TAIL: u64 = 64 << 10;
/// How much of a text in pieces is kept until it ends, in bytes.
const PIECES: usize = 1 << 20;

/// The loop whose logs are in a folder.
pub(super) fn of_folder(folder: &Path, is_running: bool) -> io::Result<LoopReport> {
    let logs = event_logs(folder);
    let mut fold = Fold::default();
    for log in &logs {
        each_line(log, |event, line| fold.take(event, line))?;
    }
    if !fold.ended && !is_running {
        // It ran at least until its agent's last output, which the fold does not read.
        fold.last_at = fold.last_at.max(logs.last().and_then(|log| last_time(log)));
    }
    Ok(fold.finish(folder, is_running))
}

/// The time of the last line of an events log.
fn last_time(log: &Path) -> Option<DateTime<FixedOffset>> {
    let mut last = None;
    let mut lines = Follower::near_end(log, TAIL).ok()?;
    let read = lines.rest(|_, line| {
        let line = std::str::from_utf8(line).ok().and_then(|line| EventLine::read(line).ok());
        last = line.map(|line| line.at).or(last);
        true
    });
    read.ok().and(last)
}

/// The report so far.
#[derive(Default)]
struct Fold {
    report: Option<LoopReport>,
    /// The agent of the last attempt.
    agent: String,
    ended: bool,
    last_at: Option<DateTime<FixedOffset>>,
    /// The id of the current task.
    task: Option<String>,
    /// What the last validation of that task found.
    found: Option<Evidence>,
    /// The line of the last text, or its pieces.
    said: Said,
    has_begun: bool,
    /// HEAD when the first attempt began; `None` if it named no commit.
    first_head: Option<String>,
    /// The last known HEAD.
    last_head: Option<String>,
    unreadable: u64,
    /// What the loop has spent, including its earlier runs.
    spent: Spent,
    /// What it has spent, including an attempt that is being validated and has not ended.
    with_unbooked: Option<Spent>,
}

/// The lines of the assistant's last text; read when the attempt ends.
#[derive(Default)]
struct Said {
    lines: Vec<u8>,
    is_in_pieces: bool,
}

/// What shows that a task is done which ended so, after what its last validation found.
fn proof_of_task(outcome: &str, found: Option<Evidence>) -> Option<Evidence> {
    let is_done = matches!(outcome, "done" | "landing");
    match found {
        Some(found) if is_done || found.standing != Standing::Proven => Some(found),
        _ => is_done.then(Evidence::unchecked),
    }
}

impl Said {
    fn text(&mut self, line: &[u8]) {
        self.clear();
        self.lines.extend_from_slice(line);
    }

    fn piece(&mut self, line: &[u8]) {
        if !std::mem::replace(&mut self.is_in_pieces, true) || self.lines.len() > PIECES {
            self.lines.clear();
        }
        self.lines.extend_from_slice(line);
    }

    fn clear(&mut self) {
        self.lines.clear();
        self.is_in_pieces = false;
    }

    /// The end of the text.
    fn words(&mut self) -> Option<String> {
        #[derive(Deserialize)]
        struct Text<'a> {
            #[serde(borrow)]
            text: Cow<'a, str>,
        }
        let lines = self.lines.split(|byte| *byte == b'\n');
        let texts = lines.filter_map(|line| serde_json::from_slice::<Text<'_>>(line).ok());
        let text: String = texts.map(|read| read.text.into_owned()).collect();
        self.clear();
        let text = text.trim();
        let begin = text.char_indices().rev().nth(SAID.saturating_sub(1)).map_or(0, |(at, _)| at);
        (!text.is_empty()).then(|| if begin > 0 { format!("…{}", &text[begin..]) } else { text.to_owned() })
    }
}

impl Fold {
    fn take(&mut self, event: &str, line: &[u8]) {
        match event {
            "text" => self.said.text(line),
            "text_delta" => self.said.piece(line),
            "tool" => self.tool(line),
            "thought" | "agent_notice" | "permission" | "background" | "verifying" | "question"
            | "answered" | "published" | "notice" | "asked" | "retrying" => {}
            _ => match std::str::from_utf8(line).ok().and_then(|line| EventLine::read(line).ok()) {
                Some(line) => {
                    let EventLine { run, name, mode, agent, .. } = &line;
                    self.fact(line.at, [run, name, mode, agent], &line.fact);
                }
                None => self.unreadable += 1,
            },
        }
    }

    fn tool(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct Tool<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
        }
        self.said.clear();
        let (Ok(tool), Some(report)) = (serde_json::from_slice::<Tool<'_>>(line), &mut self.report) else {
            return;
        };
        match report.tools.get_mut(&*tool.name) {
            Some(count) => *count += 1,
            None => drop(report.tools.insert(tool.name.into_owned(), 1)),
        }
        if let Some(attempt) = report.attempt() {
            attempt.tool_calls += 1;
        }
    }

    fn attempt_ended(&mut self, ended: &AttemptEnded<'_>) {
        let Some(report) = &mut self.report else { return };
        if let Some(head) = &ended.head {
            self.last_head = Some(head.to_string());
        }
        let own = ended.own_spent();
        let spent = ended.spent.map_or(own, |now| with_others(own, self.spent, now));
        self.spent = ended.spent.unwrap_or_default();
        self.with_unbooked = None;
        let Spent { cost_usd, input_tokens, output_tokens } = spent;
        let attempt = AgentReport { attempts: 1, cost_usd, input_tokens, output_tokens };
        report.agents.entry(self.agent.clone()).or_default().and(&attempt);
        report.attempt_ended(ended, spent, self.said.words());
        let last = report.iteration_list.last().and_then(|last| last.attempts.last());
        let before = last.and_then(|attempt| attempt.head_before.clone());
        if let Some(task) = report.task(self.task.as_deref()) {
            task.spend(ended, spent, before);
        }
    }

    /// Applies a fact of the loop with this run, name, mode and agent.
    fn fact(&mut self, at: DateTime<FixedOffset>, [run, name, mode, agent]: [&str; 4], fact: &Fact<'_>) {
        self.last_at = Some(at);
        let report = self.report.get_or_insert_with(|| LoopReport {
            run: run.to_owned(),
            mode: mode.to_owned(),
            agent: agent.to_owned(),
            started_at: Some(at),
            ..LoopReport::named(name)
        });
        report.end_wait(fact, at);
        match fact {
            Fact::AttemptStarted { head, iteration, retry, .. } => {
                let head = head.as_ref().map(ToString::to_string);
                if !std::mem::replace(&mut self.has_begun, true) {
                    self.first_head.clone_from(&head);
                }
                // An agent that has verified its work may have been replaced by its end.
                agent.clone_into(&mut self.agent);
                self.said.clear();
                report.begin(
                    *iteration,
                    self.task.as_ref(),
                    AttemptReport { head_before: head, ..begun(*retry, at) },
                );
            }
            Fact::AgentKnown { model: Some(model), .. } => report.model = Some(model.to_string()),
            Fact::AttemptEnded(ended) => self.attempt_ended(ended),
            Fact::AgentChanged { from, to, .. } => {
                let why = entry(fact, &at).map(|entry| entry.text).unwrap_or_default();
                let [from, to] = [from, to].map(ToString::to_string);
                report.agent_changes.push(AgentChange { at, from, to, why });
            }
            Fact::LoopStarted { spent, tally, .. } => {
                self.spent = spent.unwrap_or_default();
                report.before = Before::of(self.spent, tally.as_deref());
            }
            Fact::Validating { spent } => self.with_unbooked = *spent,
            Fact::Validated { by, ok, output, undecided } => {
                self.found = Some(if *ok {
                    Evidence::proven(by.as_deref())
                } else {
                    Evidence::against(by.as_deref(), *undecided, output)
                });
                report.validated(by.as_deref(), *ok, *undecided, output);
            }
            Fact::TaskStarted { task, tasks, verifies } => {
                self.task = Some(task.id.to_string());
                self.found = verifies.then(|| Evidence::proven(Some(VERIFYING_AGENT)));
                report.count(at, *tasks);
                report.meet(task).iterations += 1;
            }
            Fact::TaskEnded { outcome, reason, task, tasks } => {
                report.count(at, *tasks);
                let found = self.found.take();
                let met = report.meet(task);
                met.proof = proof_of_task(outcome, found);
                met.outcome = Some(outcome.to_string());
                met.reason = (!reason.is_empty()).then(|| one_line(reason));
                self.task = None;
            }
            Fact::GateEnded { .. } | Fact::Landed { .. } | Fact::Returned { .. } => {
                if let Fact::Landed { tasks, .. } | Fact::Returned { tasks, .. } = fact {
                    report.count(at, *tasks);
                }
                report.landings.get_or_insert_default().take(at, fact);
            }
            Fact::Waiting { reason, until, .. } => {
                let what = match reason {
                    Word::Known(reason) => reason.word(),
                    Word::Other(word) => word,
                };
                // How long a disk stays full, or a server away, is unknown.
                let is_known = reason.has_end();
                report.wait(what, at, is_known.then_some(*until));
            }
            Fact::Refused(refused) => report.refuse(refused),
            Fact::Paused => report.wait(Phase::Paused.word(), at, None),
            Fact::Queued => report.wait(Phase::Queued.word(), at, None),
            Fact::NeedsAttention { .. } => report.wait(Phase::NeedsAttention.word(), at, None),
            Fact::LoopEnded(ended) => {
                self.ended = true;
                report.ended(ended, self.last_head.as_deref());
                report.lasted_until(Some(at));
            }
            _ => {}
        }
    }

    fn finish(self, folder: &Path, is_running: bool) -> LoopReport {
        let mut report = self.report.unwrap_or_else(|| LoopReport::named(&super::partial::name_of(folder)));
        if let Some(now) = self.with_unbooked {
            report.spend(with_others(Spent::default(), self.spent, now));
        }
        report.ended_at = self.last_at;
        report.unreadable_lines = self.unreadable;
        if !self.ended {
            let (end, reason) = if is_running {
                (report.standing(), report.failure())
            } else {
                (Ended::Killed.word(), Some(KILLED.to_owned()))
            };
            end.clone_into(&mut report.end);
            report.reason = reason;
        }
        let is_at_work = is_running && !self.ended;
        report.lasted_until(if is_at_work { Some(Local::now().fixed_offset()) } else { report.ended_at });
        if report.work.is_none()
            && let Some(to) = self.last_head
            && self.first_head.as_ref() != Some(&to)
        {
            report.work = Some(Work { from: self.first_head, to, ..Work::default() });
        }
        report
    }
}

/// The report of a loop of this process, without its agents' texts and tools: the logs have those later.
#[derive(Default)]
pub(crate) struct Live(Fold);

impl Live {
    /// Applies one fact.
    pub(crate) fn take(&mut self, stamped: &Stamped<'_>) {
        if stamped.fact.is_shown() {
            return;
        }
        let LoopIdentity { run, name, mode, agent } = stamped.identity;
        self.0.fact(stamped.at.fixed_offset(), [run, name, mode, agent], stamped.fact);
        // Only the last ones are needed, and a loop may run for weeks.
        if let Some(report) = &mut self.0.report {
            let (iterations, waits) = (report.iteration_list.len(), report.waits.len());
            report.iteration_list.drain(..iterations.saturating_sub(2));
            report.waits.drain(..waits.saturating_sub(1));
        }
    }

    /// The report so far; `None` before the first event.
    pub(crate) fn report(&self) -> Option<&LoopReport> {
        self.0.report.as_ref()
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Live").field(&self.report().map(|report| &report.name)).finish()
    }
}

/// An attempt that has begun.
fn begun(retry: u32, started_at: DateTime<FixedOffset>) -> AttemptReport {
    AttemptReport {
        retry,
        started_at,
        status: None,
        failure: None,
        duration_s: None,
        cost_usd: None,
        input_tokens: None,
        output_tokens: None,
        tool_calls: 0,
        head_before: None,
        head_after: None,
        said: None,
    }
}

/// What an attempt spent together with the agents that verified its work. Those have no attempts of their own; only
/// the difference of the loop's totals shows what they spent.
fn with_others(own: Spent, before: Spent, now: Spent) -> Spent {
    let grown = now.without(before);
    // Sums of floats are not exact; the attempt's own value is.
    let is_more = grown.dollars() - own.dollars() > 1e-9;
    Spent {
        cost_usd: if is_more { grown.cost_usd } else { own.cost_usd },
        input_tokens: grown.input_tokens.max(own.input_tokens),
        output_tokens: grown.output_tokens.max(own.output_tokens),
    }
}

fn add(sum: &mut Option<f64>, cost: Option<f64>) {
    if let Some(cost) = cost {
        *sum = Some(sum.unwrap_or_default() + cost);
    }
}

impl TaskReport {
    /// Adds an attempt that has ended, with what it spent; HEAD named `before` when it began.
    fn spend(&mut self, ended: &AttemptEnded<'_>, spent: Spent, before: Option<String>) {
        add(&mut self.cost_usd, spent.cost_usd);
        self.duration_s += ended.duration_s;
        let Some(to) = ended.head.as_ref().filter(|after| Some(&***after) != before.as_deref()) else {
            return;
        };
        match &mut self.work {
            Some(work) => work.to = to.to_string(),
            None => self.work = Some(Work { from: before, to: to.to_string(), ..Work::default() }),
        }
    }
}

impl Before {
    fn of(spent: Spent, tally: Option<&Tally>) -> Self {
        let Some(tally) = tally else { return Self { spent, ..Self::default() } };
        let (iterations, attempts) = (tally.ran(), tally.durations.count);
        Self { spent, iterations, attempts, failed: tally.error_count }
    }
}

impl AgentReport {
    /// Adds what was done in another loop.
    pub(crate) fn and(&mut self, other: &Self) {
        self.attempts += other.attempts;
        add(&mut self.cost_usd, other.cost_usd);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}

impl LoopReport {
    fn begin(&mut self, number: u64, task: Option<&String>, attempt: AttemptReport) {
        self.attempts += 1;
        match self.iteration_list.last_mut() {
            Some(last) if last.number == number => last.attempts.push(attempt),
            _ => {
                self.iterations += 1;
                let attempts = vec![attempt];
                self.iteration_list.push(IterationReport {
                    number,
                    task: task.cloned(),
                    attempts,
                    validation: None,
                });
            }
        }
    }

    /// Adds what was refused to what is known of it.
    fn refuse(&mut self, refused: &Refused) {
        let is_it = |known: &&mut Refused| (known.what, &known.place) == (refused.what, &refused.place);
        match self.refused.iter_mut().find(is_it) {
            Some(known) => known.times = known.times.saturating_add(refused.times),
            None => self.refused.push(refused.clone()),
        }
    }

    fn validated(&mut self, by: Option<&str>, ok: bool, undecided: bool, output: &str) {
        let Some(iteration) = self.iteration_list.last_mut() else { return };
        let output =
            if undecided { failure(by, true, output) } else { last_lines(output, VALIDATION).join("\n") };
        iteration.validation = Some(ValidationReport { by: by.map(str::to_owned), ok, undecided, output });
    }

    /// What shows that the work is good, where the end does not say so.
    fn proof(&self, end: Option<Ended>, detail: Option<&str>) -> Option<Evidence> {
        let validation = self.iteration_list.last().and_then(|last| last.validation.as_ref());
        match (end?, validation) {
            (Ended::Done, Some(ValidationReport { by, ok: true, .. })) => {
                Some(Evidence::proven(by.as_deref()))
            }
            (Ended::Done, _) => Some(Evidence::unchecked()),
            (Ended::Unproven, Some(ValidationReport { by, ok: false, undecided, output })) => {
                Some(Evidence::against(by.as_deref(), *undecided, output))
            }
            (Ended::Unproven, _) => Some(Evidence::against(None, true, detail.unwrap_or("not proven"))),
            _ => None,
        }
    }

    /// The current attempt.
    fn attempt(&mut self) -> Option<&mut AttemptReport> {
        self.iteration_list.last_mut()?.attempts.last_mut().filter(|attempt| attempt.status.is_none())
    }

    fn spend(&mut self, spent: Spent) {
        add(&mut self.cost_usd, spent.cost_usd);
        self.input_tokens = self.input_tokens.saturating_add(spent.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(spent.output_tokens);
    }

    fn attempt_ended(&mut self, ended: &AttemptEnded<'_>, spent: Spent, said: Option<String>) {
        self.spend(spent);
        let has_failed =
            matches!(ended.status, Word::Known(AttemptStatus::AgentFailure | AttemptStatus::Timeout));
        self.failed_attempts += u64::from(has_failed && !ended.waited_for);
        let Some(attempt) = self.attempt() else { return };
        attempt.status = Some(match &ended.status {
            Word::Known(status) => status.word().to_owned(),
            Word::Other(word) => word.clone(),
        });
        attempt.failure = ended.failure.as_ref().map(|failure| failure.message.clone());
        attempt.duration_s = Some(ended.duration_s);
        attempt.cost_usd = ended.cost_usd();
        attempt.input_tokens = ended.usage.input_tokens;
        attempt.output_tokens = ended.usage.output_tokens;
        attempt.head_after = ended.head.as_ref().map(ToString::to_string);
        attempt.said = said;
    }

    fn task(&mut self, id: Option<&str>) -> Option<&mut TaskReport> {
        self.task_list.iter_mut().rev().find(|task| Some(&*task.id) == id)
    }

    fn count(&mut self, at: DateTime<FixedOffset>, tasks: TaskCounts) {
        (self.tasks, self.counted_at) = (Some(tasks), Some(at));
    }

    fn meet(&mut self, task: &TaskAtWork<'_>) -> &mut TaskReport {
        let place = self.task_list.iter().rposition(|known| known.id == task.id).unwrap_or_else(|| {
            self.task_list.push(TaskReport {
                id: task.id.to_string(),
                title: task.title.to_string(),
                outcome: None,
                reason: None,
                proof: None,
                iterations: 0,
                duration_s: 0.0,
                cost_usd: None,
                work: None,
                next: None,
            });
            self.task_list.len() - 1
        });
        &mut self.task_list[place]
    }

    fn wait(&mut self, what: &str, from: DateTime<FixedOffset>, until: Option<DateTime<FixedOffset>>) {
        self.waits.push(Wait { what: what.to_owned(), from, to: None, until });
    }

    /// Ends a wait at the next other fact.
    fn end_wait(&mut self, fact: &Fact<'_>, at: DateTime<FixedOffset>) {
        let goes_on = matches!(
            fact,
            Fact::Resumed { .. }
                | Fact::AttemptStarted { .. }
                | Fact::AttentionOver
                | Fact::LoopEnded(_)
                | Fact::AttemptEnded(_)
        );
        if let Some(wait) = self.waits.last_mut().filter(|wait| goes_on && wait.to.is_none()) {
            wait.to = Some(at);
        }
    }

    /// The last failure of an attempt, if no later one succeeded.
    fn failure(&self) -> Option<String> {
        let last = self.iteration_list.iter().rev().flat_map(|one| one.attempts.iter().rev());
        last.take_while(|attempt| attempt.status.is_none() || attempt.failure.is_some())
            .find_map(|attempt| attempt.failure.clone())
    }

    /// The state of a loop that runs, in one word.
    fn standing(&self) -> &'static str {
        let Some(wait) = self.waits.last().filter(|wait| wait.to.is_none()) else {
            return Phase::Running.word();
        };
        match Stand::of(&wait.what) {
            Some(Stand::Live(Phase::Queued)) => Phase::Running.word(),
            Some(Stand::Live(live)) => live.word(),
            _ => Phase::Waiting.word(),
        }
    }

    /// How long it took by the clock: the duration in its end includes earlier runs.
    fn lasted_until(&mut self, until: Option<DateTime<FixedOffset>>) {
        let span = self.started_at.zip(until).map(|(from, to)| to - from);
        self.duration_s = span.and_then(|span| span.to_std().ok()).unwrap_or_default().as_secs_f64();
    }

    pub(super) fn ended(&mut self, ended: &LoopEnded<'_>, head: Option<&str>) {
        let outcome = ended.outcome();
        let known = match &ended.end {
            Some(Word::Known(end)) => Some(*end),
            Some(Word::Other(_)) | None => outcome.map(Outcome::ended),
        };
        let by_code = if ended.exit_code == 0 { Ended::Done } else { Ended::Failed };
        self.end = match &ended.end {
            Some(Word::Other(word)) => word.clone(),
            _ => known.unwrap_or(by_code).word().to_owned(),
        };
        self.exit_reason = Some(ended.exit_reason.to_string());
        self.exit_code = Some(ended.exit_code);
        let work = ended.work.as_ref().map(|work| Work {
            commits: Some(work.commits),
            files: Some(work.files),
            insertions: Some(work.insertions),
            deletions: Some(work.deletions),
            from: work.from.clone(),
            to: head.unwrap_or_default().to_owned(),
        });
        // The process that books the end of a killed loop does not count its work.
        self.work = work.or_else(|| self.work.take());
        let detail = ended.detail.as_ref().map(|detail| one_line(detail));
        self.proof = ended.proof.clone().or_else(|| self.proof(known, detail.as_deref()));
        // Older lines have the reason only in the output of the validation.
        let refutation = self.proof.as_ref().filter(|_| ended.proof.is_none()).map(|proof| proof.by.clone());
        self.reason = match known {
            Some(Ended::Unproven) => refutation.or(detail),
            Some(Ended::Failed | Ended::Error) => detail.or_else(|| self.failure().map(|why| one_line(&why))),
            _ => detail,
        };
        let fallback = || outcome.map(|outcome| outcome.reason().to_owned());
        if self.reason.is_none() && known != Some(Ended::Done) {
            self.reason = fallback();
        }
    }
}
