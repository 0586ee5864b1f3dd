//! The state of a loop as a fold over its events: of a running loop, and of a killed one.

use chrono::{DateTime, Utc};

use super::config_watch::WatchedConfig;
use super::state::{AtTask, Pending, State};
use crate::engine::budget::Spent;
use crate::engine::event::{Stamped, Unwritten};
use crate::engine::fact::{Asked, AttemptEnded, ChangeReason, Fact, LoopEnded, Word};
use crate::engine::outcome::{Ended, Outcome, Status};
use crate::engine::report::{AttemptStatus, Report, Signal};
use crate::engine::stop::Change;
use crate::engine::tally::{Given, Last, Settled};
use crate::files::atomic::Durability;
use crate::reply::usage::Usage;
use crate::tell::words;

/// What became of the task of a landing that has landed, or could not.
pub(super) fn became(fact: &Fact<'_>) -> &'static str {
    match fact {
        Fact::Landed { .. } => "done",
        Fact::Returned { failed: true, .. } => "failed",
        _ => "returned",
    }
}

impl State {
    /// Applies one fact. Returns how durably the file must be written: what must survive a power cut is synced,
    /// frequent steps are not; `None` if nothing has changed.
    pub(super) fn take(&mut self, stamped: &Stamped<'_>) -> Option<Durability> {
        // Facts that no line has.
        match (stamped.fact, stamped.unwritten) {
            (Fact::AttemptStarted { .. }, _) => {
                self.setup.config.iter_mut().for_each(WatchedConfig::attempt_begins);
            }
            (_, Unwritten::Change(change)) => self.change(change),
            _ => {}
        }
        let durability = self.apply(stamped.at.to_utc(), stamped.fact)?;
        // The engine's own count has more than a line, such as an error of a side agent.
        if tells_count(stamped.fact) {
            self.tally.clone_from(stamped.tally);
        }
        Some(durability)
    }

    /// Applies one line of the events log; returns what [`take`](Self::take) returns.
    pub(super) fn apply(&mut self, at: DateTime<Utc>, fact: &Fact<'_>) -> Option<Durability> {
        Some(match fact {
            Fact::LoopStarted { limits, max_iterations, max_retries, tally, .. } => {
                if let Some(limits) = limits {
                    self.budget = limits.budget.into();
                }
                (self.max_iterations, self.max_retries) = (*max_iterations, *max_retries);
                self.tally = tally.as_deref().cloned().unwrap_or_default();
                Durability::Synced
            }
            Fact::LimitsChanged { max_iterations } => {
                self.max_iterations = *max_iterations;
                return None;
            }
            Fact::AgentChanged { to, reason, .. } => {
                self.agent = to.to_string();
                (self.agent_command, self.agent_model, self.agent_session) = (None, None, None);
                let is_instead = *reason != Word::Known(ChangeReason::Back);
                self.agent_instead = words::entry(fact, &at).map(|entry| entry.text).filter(|_| is_instead);
                self.tally.agent_changed();
                Durability::Atomic
            }
            Fact::AttemptStarted { about, iteration, notes, retry, .. } => {
                self.attempt_begins(*iteration, *retry, about.as_deref(), notes);
                self.stands(Status::Running, None);
                Durability::Atomic
            }
            Fact::Validating { spent } => {
                self.spend(*spent);
                return None;
            }
            Fact::Validated { by, ok, output, undecided } => {
                self.tally.validated(by.as_deref(), *ok, *undecided, output);
                // During an attempt, it is booked with the attempt.
                if !self.tally.in_attempt {
                    (self.tally.changed_since_validation, self.tally.unproven) = (false, !ok);
                }
                return None;
            }
            Fact::Refused(refused) => {
                self.tally.refused(refused);
                return None;
            }
            Fact::AttemptEnded(ended) => {
                self.attempt_ends(ended);
                self.last_iteration_ended_at = Some(at);
                Durability::Atomic
            }
            Fact::Asked { note, what, .. } => self.asked(what, note.as_deref()),
            Fact::LoopEnded(ended) => {
                self.loop_ends(at, ended);
                Durability::Synced
            }
            fact if self.meets(at, fact) => Durability::Atomic,
            fact => return self.waits(fact),
        })
    }

    /// Books the agent and the task of the attempt; returns whether the fact is about them.
    fn meets(&mut self, at: DateTime<Utc>, fact: &Fact<'_>) -> bool {
        match fact {
            Fact::AgentStarted { command } => {
                // A resumed agent has begun before.
                self.last_iteration_at = Some(at);
                self.agent_command = Some(command.to_string());
                (self.agent_model, self.agent_session, self.agent_context) = (None, None, None);
            }
            Fact::AgentKnown { model, session_id } => {
                self.agent_model = model.as_ref().map(ToString::to_string);
                self.agent_session = session_id.as_ref().map(ToString::to_string);
            }
            Fact::TaskStarted { task, tasks, verifies } => {
                self.at_task = Some(AtTask { task_verifies: *verifies, ..AtTask::new(task, *tasks) });
            }
            Fact::TaskEnded { outcome, task, tasks, .. } => {
                self.at_task =
                    Some(AtTask { task_became: Some(outcome.to_string()), ..AtTask::new(task, *tasks) });
            }
            Fact::Landed { task, tasks, .. } | Fact::Returned { task, tasks, .. } => {
                if let Some(at_task) = &mut self.at_task {
                    at_task.take_counts(*tasks);
                    if at_task.task == task.id && at_task.task_became.as_deref() == Some("landing") {
                        at_task.task_became = Some(became(fact).to_owned());
                    }
                }
            }
            Fact::Verifying { .. } | Fact::Verified { .. } => {
                if let Some(at_task) = &mut self.at_task {
                    at_task.task_verifies = matches!(fact, Fact::Verifying { .. });
                }
            }
            _ => return false,
        }
        true
    }

    /// Books the begin or the end of a wait.
    fn waits(&mut self, fact: &Fact<'_>) -> Option<Durability> {
        Some(match fact {
            Fact::Resumed { blind_waits, waited_s } => {
                if let Some((blind_waits, waited)) = blind_waits.zip(*waited_s) {
                    (self.tally.blind_waits, self.tally.waited_seconds) = (blind_waits, waited);
                    self.tally.last = Last::Waited;
                }
                self.stands(Status::Running, None);
                Durability::Atomic
            }
            Fact::Paused => {
                self.stands(Status::Paused, None);
                self.pending = None;
                Durability::Synced
            }
            Fact::Waiting { reason, until, .. } => {
                self.stands(Status::Waiting, reason.has_end().then(|| until.to_utc()));
                let shortage = fact.shortage().map(|shortage| shortage.to_string());
                self.waiting_for = shortage.or_else(|| words::endless(reason).map(str::to_owned));
                Durability::Synced
            }
            Fact::Answered { text } => {
                self.status = Status::Running;
                if text.is_some() {
                    self.pending = self.pending.filter(|pending| *pending == Pending::Pause);
                }
                Durability::Atomic
            }
            Fact::NeedsAttention { .. } | Fact::Question { .. } | Fact::AttentionOver | Fact::Queued => {
                self.status = match fact {
                    Fact::AttentionOver => Status::Running,
                    Fact::Queued => Status::Waiting,
                    _ => Status::NeedsAttention,
                };
                Durability::Atomic
            }
            _ => return None,
        })
    }

    /// Books changes that apply from the next iteration on.
    pub(super) fn change(&mut self, change: &Change) {
        self.max_iterations = change.max_iterations.or(self.max_iterations);
        let Some(watching) = &change.watching else { return };
        self.setup.prompt_file = Some(watching.prompt_file.clone());
        self.setup.done_pattern.clone_from(&watching.done_pattern);
        self.setup.inactivity_timeout = Some(watching.inactivity.as_secs_f64());
        if let Some(worker) = &mut self.setup.worker {
            worker.check_done_continuous = watching.check_done_continuous;
        }
    }

    fn stands(&mut self, status: Status, waiting_until: Option<DateTime<Utc>>) {
        self.status = status;
        self.waiting_until = waiting_until;
        self.waiting_for = None;
    }

    /// Counts an attempt that begins: of a new iteration, a retry, or a repeated one after a crash.
    fn attempt_begins(&mut self, iteration: u64, retry: u32, about: Option<&str>, notes: &[String]) {
        let tally = &mut self.tally;
        if iteration > tally.iteration {
            let given = Given { notes: notes.to_vec(), ..tally.upcoming() };
            tally.begin(given, about);
        } else if retry > tally.retries {
            tally.retry();
        }
        notes.clone_into(&mut tally.given.notes);
        tally.refused.clear();
        tally.in_attempt = true;
    }

    /// Counts an attempt that has ended, once: a second line for it is ignored.
    fn attempt_ends(&mut self, ended: &AttemptEnded<'_>) {
        self.setup.config.iter_mut().for_each(WatchedConfig::attempt_ends);
        if !self.tally.in_attempt {
            return;
        }
        let report = report(ended);
        self.agent_context = ended.usage.context();
        let settled = Settled {
            signal: means(ended, report.status),
            changed: ended.changed,
            proof: None,
            said_alone: ended.said_alone.to_vec(),
        };
        let tally = &mut self.tally;
        tally.book(self.max_retries, &report, &settled);
        (tally.unproven, tally.changed_since_validation) = (ended.unproven, ended.unvalidated);
        tally.elapsed_seconds = ended.elapsed_s.unwrap_or(tally.elapsed_seconds);
        if let Some(head) = &ended.head {
            tally.last_commit = Some(head.to_string());
        }
        self.spend(ended.spent);
    }

    /// Counts what the loop has spent by then, where a line tells it.
    fn spend(&mut self, spent: Option<Spent>) {
        self.tally.spent = spent.unwrap_or(self.tally.spent);
    }

    fn asked(&mut self, what: &Word<Asked>, note: Option<&str>) -> Durability {
        match (what, note) {
            // Kept here until the engine has booked it, so that no crash loses a note.
            (Word::Known(Asked::Note), note) => {
                self.tally.notes.extend(note.map(str::to_owned));
                return Durability::Synced;
            }
            (Word::Known(Asked::Change), _) => return Durability::Synced,
            (Word::Known(Asked::Pause), _) => self.pending = self.pending.or(Some(Pending::Pause)),
            (Word::Known(Asked::Resume), _) => {
                self.pending = self.pending.filter(|pending| *pending == Pending::Stop);
            }
            _ => self.pending = Some(Pending::Stop),
        }
        Durability::Atomic
    }

    fn loop_ends(&mut self, at: DateTime<Utc>, ended: &LoopEnded<'_>) {
        let outcome = ended.outcome();
        // Its agent keeps running: the loop counts as killed.
        if outcome == Some(Outcome::Detached) {
            return;
        }
        let status = ended.status.known().copied();
        self.stands(status.unwrap_or(Status::Stopped), None);
        let tally = &mut self.tally;
        tally.spent = ended.spent();
        tally.ended(outcome.map_or(Ended::Failed, Outcome::ended), ended.detail.as_deref());
        self.active = false;
        self.pending = None;
        self.ended_at = Some(at);
        self.exit_reason = Some(ended.exit_reason.to_string());
        self.exit_detail = ended.detail.as_ref().map(ToString::to_string);
        self.proof.clone_from(&ended.proof);
        self.has_work = ended.work.is_some();
        self.exit_code = Some(ended.exit_code);
    }
}

/// What an attempt means for the work. Older lines only have the assistant's text.
fn means(ended: &AttemptEnded<'_>, status: AttemptStatus) -> Signal {
    match &ended.means {
        Some(means) => means.known().copied().unwrap_or_default(),
        None if status == AttemptStatus::Success && ended.complete => Signal::Complete,
        None if status == AttemptStatus::Success && ended.replan => Signal::Replan,
        None => Signal::default(),
    }
}

/// The report of an attempt, as far as counts depend on it.
fn report(ended: &AttemptEnded<'_>) -> Report {
    let (status, duration, balance) = (ended.status(), ended.duration(), ended.balance);
    let failure = ended.failure.clone();
    let mut usage = Usage::default();
    (usage.cost_usd, usage.input_tokens) = (ended.usage.cost_usd, ended.usage.input_tokens);
    usage.output_tokens = ended.usage.output_tokens;
    usage.called_tools = !ended.waited_for;
    let mut report = Report { failure, usage, balance, ..Report::given_up(status, duration) };
    report.is_taken_over = ended.waited_for && !report.is_waited_for();
    report
}

/// Whether the engine's count is up to date at this fact. At other facts the state may have more, such as a note.
fn tells_count(fact: &Fact<'_>) -> bool {
    matches!(
        fact,
        Fact::LoopStarted { .. }
            | Fact::AgentChanged { .. }
            | Fact::AttemptStarted { .. }
            | Fact::AttemptEnded(_)
            | Fact::Waiting { .. }
            | Fact::Paused
            | Fact::Resumed { .. }
            | Fact::LoopEnded(_)
    )
}

#[cfg(test)]
mod tests;
