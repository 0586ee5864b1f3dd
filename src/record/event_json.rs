//! Events as the lines that `--json` prints and the events log keeps.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Local};

use super::event_line::{
    Asked, AttemptEnded, EventLine, Fact, LineBalance, LineFailure, LineFault, LineLimits, LineSpent,
    LineTask, LineUsage, LineWork, LoopEnded, Stopping, WaitReason,
};
use crate::engine::event::{Event, LoopIdentity, Stamped, TaskAtWork};
use crate::engine::outcome::Outcome;
use crate::engine::policy::{Limits, OnFailure};
use crate::engine::report::Report;
use crate::engine::stop::{Ask, Request, Urgency};
use crate::engine::tally::{Last, Tally};
use crate::engine::worktree::WorkDone;
use crate::reply::show::Show;

/// An event as lines: one for each thing that was shown, one for any other event, and none for raw bytes, which have a
/// log of their own.
#[must_use]
pub fn to_lines(stamped: &Stamped<'_>) -> String {
    let line = |fact| to_line(stamped.at, stamped.identity, fact);
    match &stamped.event {
        Event::Shown(shows) => shows.iter().map(shown).map(line).collect(),
        event => fact(event).map(line).unwrap_or_default(),
    }
}

/// A fact about a loop as a line; nothing for one that was read and not understood, which no loop has.
#[must_use]
pub fn to_line(at: DateTime<Local>, identity: &LoopIdentity, fact: Fact<'_>) -> String {
    EventLine::new(at, identity, fact).write().unwrap_or_default()
}

/// The fact that an event is; `None` for what was shown, which are many, and for raw bytes.
pub(super) fn fact<'a>(event: &Event<'a>) -> Option<Fact<'a>> {
    Some(match *event {
        Event::LoopStarted { project, limits, tally } => loop_started(project, limits, tally),
        Event::Recovered(recovered) => Fact::Recovered {
            attempts: recovered.attempts,
            cost_usd: recovered.cost_usd,
            from: (&recovered.from).into(),
        },
        Event::LimitsChanged { limits, .. } => Fact::LimitsChanged { max_iterations: limits.max_iterations },
        Event::AttemptStarted { tally, head } => Fact::AttemptStarted {
            about: tally.about.as_deref().map(Into::into),
            head: head.map(Into::into),
            iteration: tally.iteration,
            notes: (&tally.given.notes).into(),
            retry: tally.retries,
        },
        Event::AgentStarted { command } => Fact::AgentStarted { command: command.into() },
        Event::AgentKnown { model, session } => {
            Fact::AgentKnown { model: model.map(Into::into), session_id: session.map(Into::into) }
        }
        Event::Output { .. } | Event::Shown(_) => return None,
        Event::AttemptEnded { tally, report, head, changed } => Fact::AttemptEnded(Box::new(AttemptEnded {
            changed,
            elapsed_s: Some(tally.elapsed_seconds),
            head: head.map(Into::into),
            iteration: tally.iteration,
            means: match tally.last {
                Last::Settled(signal) => Some(signal.into()),
                _ => None,
            },
            retry: tally.retries,
            said_alone: (&tally.said_alone).into(),
            spent: Some(spent(tally)),
            unproven: tally.unproven,
            unvalidated: tally.changed_since_validation,
            ..attempt_ended(report)
        })),
        Event::Background { tasks, at_most } => {
            Fact::Background { at_most_s: at_most.as_secs_f64(), tasks: tasks.into() }
        }
        Event::TaskStarted { task, verifies, counts } => {
            Fact::TaskStarted { task: line_task(task), tasks: counts, verifies }
        }
        Event::TaskEnded { task, became, reason, counts } => Fact::TaskEnded {
            outcome: became.into(),
            reason: reason.into(),
            task: line_task(task),
            tasks: counts,
        },
        Event::Verifying { task } => Fact::Verifying { task: line_task(task) },
        Event::Verified { task, ok, reason } => {
            Fact::Verified { ok, reason: reason.into(), task: line_task(task) }
        }
        Event::Validating => Fact::Validating,
        Event::Validated { ok, undecided, output } => {
            Fact::Validated { ok, output: output.into(), undecided }
        }
        Event::Retrying { iteration, retry, max_retries, pause } => {
            Fact::Retrying { iteration, max_retries, pause_s: pause.as_secs_f64(), retry }
        }
        Event::BackingOff { tally, breaker, pause } => Fact::BackingOff {
            failures: tally.consecutive_errors,
            iteration: tally.iteration,
            max_failures: breaker,
            pause_s: pause.as_secs_f64(),
        },
        Event::Attention(Some(screen)) => Fact::NeedsAttention { screen: screen.into() },
        Event::Attention(None) => Fact::AttentionOver,
        Event::Waiting { until, shortage, tally } => {
            let reason = match shortage {
                Some(_) => WaitReason::DiskSpace,
                None if tally.waits_for_provider() => WaitReason::Overload,
                None => WaitReason::UsageLimit,
            };
            Fact::Waiting {
                free_bytes: shortage.map(|shortage| shortage.free),
                reason: reason.into(),
                until: until.fixed_offset(),
                wanted_bytes: shortage.map(|shortage| shortage.wanted),
            }
        }
        Event::Queued => Fact::Queued,
        Event::Paused { .. } => Fact::Paused,
        Event::Resumed { tally } => resumed(tally),
        Event::Asked { ask, urgency } => asked(ask, urgency),
        Event::Question(text) => Fact::Question { text: text.into() },
        Event::Answered(text) => Fact::Answered { text: text.map(Into::into) },
        Event::Published(message) => Fact::Published { message: message.into() },
        Event::HookEnded { hook, ok, output } => {
            Fact::HookEnded { hook: hook.into(), ok, output: output.into() }
        }
        Event::Notice(message) => Fact::Notice { message: message.into() },
        Event::LoopEnded { outcome, detail, tally, duration, work } => {
            let work = work.map(line_work);
            Fact::LoopEnded(LoopEnded { work, ..loop_ended(outcome, detail, tally, duration) })
        }
    })
}

fn loop_started<'a>(project: &'a Path, limits: &Limits, tally: &Tally) -> Fact<'a> {
    let begins = *tally == Tally::default();
    Fact::LoopStarted {
        limits: Some(Box::new(line_limits(limits))),
        max_iterations: limits.max_iterations,
        max_retries: limits.max_retries,
        project: project.to_string_lossy(),
        spent: Some(spent(tally)).filter(|spent| *spent != LineSpent::default()),
        tally: (!begins).then(|| Box::new(tally.clone())),
    }
}

fn line_limits(limits: &Limits) -> LineLimits {
    let seconds = |span: Option<Duration>| span.map(|span| span.as_secs_f64());
    LineLimits {
        breaker: limits.breaker,
        breaker_end: limits.breaker_end.into(),
        failed_end: limits.failed_end.into(),
        failure_pause_s: seconds(limits.failure_pause),
        idle: limits.idle,
        last_counts: limits.last_counts,
        max_cost_usd: limits.max_cost_usd,
        max_duration_s: seconds(limits.max_duration),
        max_limit_wait_s: limits.max_limit_wait.as_secs_f64(),
        max_tokens: limits.max_tokens,
        retry_pause_s: seconds(limits.retry_pause),
        stop_on_error: limits.on_failure == OnFailure::End,
    }
}

/// A loop that goes on after it has waited for a usage limit or a provider, or after anything else.
fn resumed(tally: &Tally) -> Fact<'static> {
    let waited = (tally.last == Last::Waited).then_some(tally);
    Fact::Resumed {
        blind_waits: waited.map(|tally| tally.blind_waits),
        waited_s: waited.map(|tally| tally.waited_seconds),
    }
}

fn loop_ended<'a>(
    outcome: Outcome,
    detail: Option<&'a str>,
    tally: &Tally,
    duration: Duration,
) -> LoopEnded<'a> {
    LoopEnded {
        cost_usd: tally.cost_usd,
        detail: detail.map(Into::into),
        duration_s: duration.as_secs_f64(),
        exit_code: outcome.code(),
        exit_reason: outcome.word().into(),
        failed: tally.error_count,
        failed_iterations: Some(tally.failed),
        attempts: Some(tally.durations.count),
        end: Some(outcome.ended().into()),
        input_tokens: tally.input_tokens,
        iterations: tally.ran(),
        output_tokens: tally.output_tokens,
        status: outcome.status().into(),
        succeeded: tally.succeeded,
        work: None,
    }
}

fn line_work(work: &WorkDone) -> LineWork<'_> {
    let WorkDone { from, commits, files, insertions, deletions } = work;
    LineWork {
        commits: *commits,
        deletions: *deletions,
        files: *files,
        from: from.as_deref().map(Into::into),
        insertions: *insertions,
    }
}

fn line_task(task: TaskAtWork<'_>) -> LineTask<'_> {
    let TaskAtWork { id, title, feature, model } = task;
    LineTask {
        feature: feature.map(Into::into),
        id: id.into(),
        model: model.map(Into::into),
        title: title.into(),
    }
}

fn shown(show: &Show) -> Fact<'_> {
    match show {
        Show::Text(text) => Fact::Text { text: text.into() },
        Show::Delta(text) => Fact::TextDelta { text: text.into() },
        Show::Thought(text) => Fact::Thought { text: text.into() },
        Show::Tool { name, input } => Fact::Tool { input: input.into(), name: name.into() },
        Show::Error(message) => Fact::AgentError { message: message.into() },
        Show::Notice(message) => Fact::AgentNotice { message: message.into() },
        Show::Permission { leave, kind, what } => {
            Fact::Permission { answer: (*leave).into(), kind: kind.into(), what: what.into() }
        }
    }
}

/// What the report alone says; the rest is empty.
fn spent(tally: &Tally) -> LineSpent {
    let Tally { cost_usd, input_tokens, output_tokens, .. } = *tally;
    LineSpent { cost_usd, input_tokens, output_tokens }
}

fn attempt_ended(report: &Report) -> AttemptEnded<'_> {
    let usage = &report.usage;
    AttemptEnded {
        balance: report.balance.map(|balance| LineBalance { left: balance.left, spent: balance.spent }),
        changed: None,
        complete: report.sigils.complete(),
        duration_s: report.duration.as_secs_f64(),
        elapsed_s: None,
        exit_code: report.exit_code,
        failure: report.failure.as_ref().map(|failure| LineFailure {
            class: failure.class.into(),
            kind: failure.kind.into(),
            message: (&failure.message).into(),
            reset_at: failure.reset_at,
        }),
        head: None,
        iteration: 0,
        means: None,
        replan: report.sigils.replan(),
        retry: 0,
        said_alone: Cow::default(),
        signal: report.signal,
        skipped_lines: report.skipped_lines,
        spent: None,
        status: report.status.into(),
        unproven: false,
        unvalidated: false,
        usage: LineUsage {
            context_tokens: usage.context_tokens,
            context_window: usage.context_window,
            cost_usd: usage.cost_usd,
            fault: usage.fault.as_ref().map(|fault| LineFault {
                class: fault.class.into(),
                message: (&fault.message).into(),
                reset_at: fault.reset_at,
            }),
            input_tokens: usage.input_tokens,
            model: usage.model.as_deref().map(Into::into),
            output_tokens: usage.output_tokens,
            session_id: usage.session_id.as_deref().map(Into::into),
        },
        waited_for: report.is_waited_for(),
    }
}

fn asked(ask: &Ask, urgency: Urgency) -> Fact<'_> {
    let (what, note) = match ask {
        Ask::Interrupt => (Asked::Interrupt, None),
        Ask::Terminate => (Asked::Terminate, None),
        Ask::Request(Request::Pause) => (Asked::Pause, None),
        Ask::Request(Request::Resume) => (Asked::Resume, None),
        Ask::Request(Request::Cancel) => (Asked::Cancel, None),
        Ask::Request(Request::CancelNow) => (Asked::CancelNow, None),
        Ask::Request(Request::Detach) => (Asked::Detach, None),
        Ask::Request(Request::Change(_)) => (Asked::Change, None),
        Ask::Request(Request::Note(text)) => (Asked::Note, Some(text.into())),
    };
    let stopping = match urgency {
        Urgency::None => Stopping::Not,
        Urgency::AfterAttempt => Stopping::AfterAttempt,
        Urgency::Now => Stopping::Now,
        Urgency::AtOnce => Stopping::AtOnce,
    };
    Fact::Asked { note, stopping: stopping.into(), what: what.into() }
}

#[cfg(test)]
mod tests;
