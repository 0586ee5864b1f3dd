//! The tones in which the page paints ends. Each has a colour, a sign and a pattern, so that the colour alone is never needed.

use crate::engine::outcome::{Ended, Phase, Stand};
use crate::engine::validation::{Evidence, Standing};
use crate::record::report::{AttemptReport, IterationReport, LoopReport};

/// How good something ended; the better ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    /// It ended well.
    Good,
    /// It has not ended.
    Running,
    /// It was stopped, was cut off, or never began.
    Stopped,
    /// A usage limit was met, or it waits.
    Limit,
    /// It has used up what it was given.
    Reached,
    /// Its plan is to be made anew, or something blocks it.
    Replan,
    /// It claims to be done without a proof.
    Unproven,
    /// It failed.
    Failed,
}

impl Tone {
    /// All tones, in the order of a legend.
    pub(super) const ALL: [Self; 8] = [
        Self::Good,
        Self::Unproven,
        Self::Failed,
        Self::Limit,
        Self::Reached,
        Self::Replan,
        Self::Stopped,
        Self::Running,
    ];

    /// Of how a loop ended, or where it stands.
    pub(super) fn of_loop(one: &LoopReport) -> Self {
        Self::of_end(&one.end, one.proof.as_ref())
    }

    /// Of what shows that work is good.
    pub(super) const fn of_proof(proof: &Evidence) -> Self {
        match proof.standing {
            Standing::Proven => Self::Good,
            Standing::Passed => Self::Stopped,
            Standing::Unchecked => Self::Unproven,
            Standing::Refuted => Self::Failed,
        }
    }

    /// Of how a loop or a task ended, in one word: what is done is as good as its proof.
    pub(super) fn of_end(end: &str, proof: Option<&Evidence>) -> Self {
        let Some(stand) = Stand::of(end) else { return Self::Stopped };
        match stand {
            Stand::Live(Phase::Running) => Self::Running,
            Stand::Live(Phase::Waiting | Phase::NeedsAttention) => Self::Limit,
            Stand::Ended(Ended::Done) => match proof.map(Self::of_proof) {
                Some(Self::Unproven | Self::Failed) => Self::Unproven,
                _ => Self::Good,
            },
            Stand::Ended(Ended::Unproven) => Self::Unproven,
            Stand::Ended(Ended::Failed | Ended::Error | Ended::Empty | Ended::Killed) => Self::Failed,
            Stand::Ended(Ended::Limit | Ended::Budget) => Self::Reached,
            Stand::Ended(Ended::Replan | Ended::Blocked) => Self::Replan,
            Stand::Live(Phase::Paused | Phase::Queued)
            | Stand::Ended(Ended::Idle | Ended::Interrupted | Ended::Cancelled) => Self::Stopped,
        }
    }

    /// The tone of an attempt. `is_running`: whether its loop is.
    pub(super) fn of_attempt(attempt: &AttemptReport, is_running: bool) -> Self {
        match attempt.status.as_deref() {
            None if is_running => Self::Running,
            None | Some("interrupted") => Self::Stopped,
            Some("success" | "still") => Self::Good,
            Some("complete-unproven") => Self::Unproven,
            Some("usage-limit") => Self::Limit,
            Some(_) => Self::Failed,
        }
    }

    /// The tone of an iteration: that of its last attempt, but not good if its validation failed.
    pub(super) fn of_iteration(iteration: &IterationReport, is_running: bool) -> Self {
        let last = iteration.attempts.last();
        let tone = last.map_or(Self::Stopped, |attempt| Self::of_attempt(attempt, is_running));
        let is_refuted = iteration.validation.as_ref().is_some_and(|validation| !validation.ok);
        if is_refuted { tone.max(Self::Unproven) } else { tone }
    }

    /// The class of its colour.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Limit | Self::Reached => "limit",
            Self::Replan => "replan",
            Self::Unproven => "unproven",
            Self::Failed => "failed",
        }
    }

    /// Its words in a legend.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Good => "succeeded",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Limit => "usage limit",
            Self::Reached => "limit reached",
            Self::Replan => "to be planned again",
            Self::Unproven => "not proven",
            Self::Failed => "failed",
        }
    }

    /// The name of the pattern over its colour.
    pub(super) const fn pattern(self) -> Option<&'static str> {
        match self {
            Self::Good | Self::Running => None,
            Self::Stopped => Some("url(#lines)"),
            Self::Limit | Self::Reached | Self::Replan => Some("url(#dots)"),
            Self::Unproven => Some("url(#bars)"),
            Self::Failed => Some("url(#hatch)"),
        }
    }

    /// The sign before a name.
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Running => "▶",
            Self::Stopped => "■",
            Self::Limit => "◷",
            Self::Reached => "⊤",
            Self::Replan => "↻",
            Self::Unproven => "?",
            Self::Failed => "✗",
        }
    }
}
