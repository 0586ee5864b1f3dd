//! Makes facts from the engine's data.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Asked, AttemptEnded, ChangeReason, Fact, LineLimits, LineUsage, LoopEnded, WaitReason, Word};
use crate::engine::budget::{Budget, Spent};
use crate::engine::outcome::Outcome;
use crate::engine::policy::{Limits, OUTAGE_PAUSE, OnFailure};
use crate::engine::report::Report;
use crate::engine::stop::{Ask, Request, Urgency};
use crate::engine::tally::{Last, Tally};
use crate::engine::worktree::WorkDone;
use crate::files::room::{Floor, Shortage};
use crate::reply::show::Show;
use crate::reply::usage::{Class, Usage};
use crate::text::duration::of_seconds;
use crate::text::pauses::Pauses;

impl<'a> Fact<'a> {
    /// A loop begins in this folder, with this tally.
    #[must_use]
    pub fn loop_started(project: &'a Path, limits: &Limits, tally: &Tally) -> Self {
        let begins = *tally == Tally::default();
        Self::LoopStarted {
            limits: Some(Box::new(limits.into())),
            max_iterations: limits.max_iterations,
            max_retries: limits.max_retries,
            project: project.to_string_lossy(),
            spent: Some(tally.spent).filter(|spent| *spent != Spent::default()),
            tally: (!begins).then(|| Box::new(tally.clone())),
        }
    }

    /// The work of an attempt that is not booked yet is validated, or the files as they are.
    #[must_use]
    pub fn validating(tally: &Tally, report: Option<&Report>) -> Self {
        Self::Validating { spent: report.map(|report| tally.spent.and(report.spent())) }
    }

    /// Another agent goes on; the one before may be tried again at `until`, and it cannot work itself before `waits_until`.
    #[must_use]
    pub fn agent_changed(
        from: &'a str,
        to: &'a str,
        reason: ChangeReason,
        until: Option<DateTime<Utc>>,
        waits_until: Option<DateTime<Utc>>,
    ) -> Self {
        let [until, waits_until] = [until, waits_until].map(|time| time.map(|time| time.fixed_offset()));
        Self::AgentChanged { from: from.into(), reason: reason.into(), to: to.into(), until, waits_until }
    }

    /// An attempt begins; the tally has it.
    #[must_use]
    pub fn attempt_started(tally: &'a Tally, head: Option<&'a str>) -> Self {
        Self::AttemptStarted {
            about: tally.about.as_deref().map(Into::into),
            head: head.map(Into::into),
            iteration: tally.iteration,
            notes: (&tally.given.notes).into(),
            retry: tally.retries,
        }
    }

    /// An attempt is over; the tally has it.
    #[must_use]
    pub fn attempt_ended(
        tally: &'a Tally,
        report: &'a Report,
        head: Option<&'a str>,
        changed: Option<bool>,
    ) -> Self {
        Self::AttemptEnded(Box::new(AttemptEnded {
            balance: report.balance,
            changed,
            complete: report.sigils.complete(),
            duration_s: report.duration.as_secs_f64(),
            elapsed_s: Some(tally.elapsed_seconds),
            exit_code: report.exit_code,
            failure: report.failure.clone(),
            head: head.map(Into::into),
            iteration: tally.iteration,
            means: match tally.last {
                Last::Settled(signal) => Some(signal.into()),
                _ => None,
            },
            replan: report.sigils.replan(),
            retry: tally.retries,
            said_alone: (&tally.said_alone).into(),
            signal: report.signal,
            skipped_lines: report.skipped_lines,
            spent: Some(tally.spent),
            status: report.status.into(),
            unproven: tally.unproven,
            unvalidated: tally.changed_since_validation,
            usage: (&report.usage).into(),
            waited_for: report.is_waited_for(),
        }))
    }

    /// The next iteration begins after a pause; the tally has the failed one.
    #[must_use]
    pub fn backing_off(tally: &Tally, max_failures: Option<u64>, pause: Duration) -> Self {
        Self::BackingOff {
            failures: tally.consecutive_errors,
            iteration: tally.iteration,
            max_failures,
            pause_s: pause.as_secs_f64(),
        }
    }

    /// The loop waits: for space on the disk if there is a shortage, else for a usage limit or a provider.
    #[must_use]
    pub fn waiting(until: DateTime<Utc>, shortage: Option<Shortage>, tally: &Tally) -> Self {
        let reason = match (shortage, tally.outage()) {
            (Some(_), _) => WaitReason::DiskSpace,
            (None, Some(Class::Network)) => WaitReason::Network,
            (None, Some(_)) => WaitReason::Overload,
            (None, None) => WaitReason::UsageLimit,
        };
        Self::Waiting {
            free_bytes: shortage.map(|shortage| shortage.free),
            reason: reason.into(),
            until: until.fixed_offset(),
            wanted_bytes: shortage.map(|shortage| shortage.wanted),
            why: None,
        }
    }

    /// The loop waits for the store of tasks, or the remote, at most until then, because of this.
    #[must_use]
    pub fn waiting_for(reason: WaitReason, until: DateTime<Utc>, why: String) -> Self {
        let (reason, until) = (reason.into(), until.fixed_offset());
        Self::Waiting { free_bytes: None, reason, until, wanted_bytes: None, why: Some(why.into()) }
    }

    /// A loop goes on after a wait for a usage limit or a provider, or after another pause.
    #[must_use]
    pub fn resumed(tally: &Tally) -> Self {
        let waited = (tally.last == Last::Waited).then_some(tally);
        Self::Resumed {
            blind_waits: waited.map(|tally| tally.blind_waits),
            waited_s: waited.map(|tally| tally.waited_seconds),
        }
    }

    /// A request to the loop, and how urgent the stop is now.
    #[must_use]
    pub fn asked(ask: &'a Ask, urgency: Urgency) -> Self {
        let note = match ask {
            Ask::Request(Request::Note(text)) => Some(text.into()),
            _ => None,
        };
        Self::Asked { note, stopping: urgency.into(), what: Asked::from(ask).into() }
    }

    /// A loop is over.
    #[must_use]
    pub fn loop_ended(
        outcome: Outcome,
        detail: Option<&'a str>,
        tally: &Tally,
        duration: Duration,
        work: Option<WorkDone>,
    ) -> Self {
        Self::LoopEnded(LoopEnded {
            attempts: Some(tally.durations.count),
            cost_usd: tally.spent.cost_usd,
            detail: detail.map(Into::into),
            duration_s: duration.as_secs_f64(),
            end: Some(outcome.ended().into()),
            exit_code: outcome.code(),
            exit_reason: outcome.word().into(),
            failed: tally.error_count,
            failed_iterations: Some(tally.failed),
            input_tokens: tally.spent.input_tokens,
            iterations: tally.ran(),
            output_tokens: tally.spent.output_tokens,
            proof: tally.evidence(outcome.ended(), detail),
            status: outcome.status().into(),
            succeeded: tally.succeeded,
            work,
        })
    }

    /// Something that the user should know, in one line.
    #[must_use]
    pub fn notice(message: &'a str) -> Self {
        Self::Notice { message: message.into() }
    }
}

impl<'a> From<&'a Show> for Fact<'a> {
    fn from(show: &'a Show) -> Self {
        match show {
            Show::Text(text) => Self::Text { text: text.into() },
            Show::Delta(text) => Self::TextDelta { text: text.into() },
            Show::Thought(text) => Self::Thought { text: text.into() },
            Show::Tool { name, input } => Self::Tool { input: input.into(), name: name.into() },
            Show::Error(message) => Self::AgentError { message: message.into() },
            Show::Notice(message) => Self::AgentNotice { message: message.into() },
            Show::Permission { leave, kind, what } => {
                Self::Permission { answer: (*leave).into(), kind: kind.into(), what: what.into() }
            }
        }
    }
}

impl From<&Ask> for Asked {
    fn from(ask: &Ask) -> Self {
        match ask {
            Ask::Interrupt => Self::Interrupt,
            Ask::Terminate => Self::Terminate,
            Ask::HangUp => Self::HangUp,
            Ask::GraceOver => Self::GraceOver,
            Ask::Request(Request::Pause) => Self::Pause,
            Ask::Request(Request::Resume) => Self::Resume,
            Ask::Request(Request::Cancel) => Self::Cancel,
            Ask::Request(Request::CancelNow) => Self::CancelNow,
            Ask::Request(Request::Detach) => Self::Detach,
            Ask::Request(Request::Change(_)) => Self::Change,
            Ask::Request(Request::Note(_)) => Self::Note,
        }
    }
}

impl From<&Limits> for LineLimits {
    fn from(limits: &Limits) -> Self {
        let seconds = |span: Option<Duration>| span.map(|span| span.as_secs_f64());
        Self {
            breaker: limits.breaker,
            breaker_end: limits.breaker_end.into(),
            failed_end: limits.failed_end.into(),
            failure_pause_s: seconds(limits.failure_pause),
            idle: limits.idle,
            last_counts: limits.last_counts,
            budget: limits.budget.into(),
            max_limit_wait_s: limits.max_limit_wait.as_secs_f64(),
            outage_pause_s: Some(limits.outage_pause.as_secs_f64()),
            retry_pauses_s: Some(limits.retry_pauses.named().iter().map(Duration::as_secs_f64).collect()),
            stop_on_error: limits.on_failure == OnFailure::End,
        }
    }
}

impl Limits {
    /// The limits of a loop as its line has them.
    pub const UNKNOWN: Self = Self {
        max_iterations: None,
        max_retries: 0,
        retry_pauses: Pauses::NONE,
        outage_pause: OUTAGE_PAUSE,
        failure_pause: None,
        on_failure: OnFailure::Count,
        failed_end: Outcome::AgentFailed,
        last_counts: false,
        breaker: None,
        breaker_end: Outcome::Breaker,
        idle: None,
        budget: Budget::NONE,
        max_limit_wait: Duration::MAX,
        free_space_floor: Floor::NONE,
    };
}

/// Without the numbers of iterations and of retries.
impl From<&LineLimits> for Limits {
    fn from(line: &LineLimits) -> Self {
        let outcome = |word: &Word<Outcome>, unknown| word.known().copied().unwrap_or(unknown);
        Self {
            retry_pauses: Pauses::of(line.retry_pauses_s.iter().flatten().copied().map(of_seconds).collect()),
            outage_pause: line.outage_pause_s.map_or(OUTAGE_PAUSE, of_seconds),
            failure_pause: line.failure_pause_s.map(of_seconds),
            on_failure: if line.stop_on_error { OnFailure::End } else { OnFailure::Count },
            failed_end: outcome(&line.failed_end, Self::UNKNOWN.failed_end),
            last_counts: line.last_counts,
            breaker: line.breaker,
            breaker_end: outcome(&line.breaker_end, Self::UNKNOWN.breaker_end),
            idle: line.idle,
            budget: line.budget.into(),
            max_limit_wait: of_seconds(line.max_limit_wait_s),
            ..Self::UNKNOWN
        }
    }
}

impl LoopEnded<'_> {
    /// What the loop has spent.
    #[must_use]
    pub fn spent(&self) -> Spent {
        Spent::reported(self.cost_usd, Some(self.input_tokens), Some(self.output_tokens))
    }
}

impl<'a> From<&'a Usage> for LineUsage<'a> {
    fn from(usage: &'a Usage) -> Self {
        let word = |word: &'a Option<String>| word.as_deref().map(Cow::from);
        Self {
            context_tokens: usage.context_tokens,
            context_window: usage.context_window,
            cost_usd: usage.cost_usd,
            fault: usage.fault.clone(),
            input_tokens: usage.input_tokens,
            model: word(&usage.model),
            output_tokens: usage.output_tokens,
            session_id: word(&usage.session_id),
        }
    }
}
