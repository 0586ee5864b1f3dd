//! What one attempt left, and what that means for the work.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::reply::sigil::Sigils;
use crate::reply::usage::{Class, Usage};
use crate::reply::verdict::{Failure, Kind};
use crate::text::texts::{New, Texts};

/// How an attempt is booked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AttemptStatus {
    /// The agent did its turn.
    Success,
    /// It did, and said that all is done, but the validation command disagrees.
    CompleteUnproven,
    /// Its screen stood still, which is how an interactive agent ends its turn.
    Still,
    /// It failed; the report says why.
    AgentFailure,
    /// It ran or kept silent for too long.
    Timeout,
    /// Its account is out of allowance for now.
    UsageLimit,
    /// We ended it on request.
    Interrupted,
}

impl AttemptStatus {
    /// Of an attempt that failed.
    #[must_use]
    pub fn of(failure: &Failure) -> Self {
        match failure.kind {
            Kind::Interrupted => Self::Interrupted,
            Kind::TimedOut | Kind::Inactive => Self::Timeout,
            _ if failure.class == Class::Limit => Self::UsageLimit,
            _ => Self::AgentFailure,
        }
    }

    /// Whether the agent did its turn, which may have ended by standing still.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Success | Self::Still)
    }

    /// The word after `Status:` in the footer.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::CompleteUnproven => "complete-unproven",
            Self::Still => "still",
            Self::AgentFailure => "agent-failure",
            Self::Timeout => "timeout",
            Self::UsageLimit => "usage-limit",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What a successful attempt means for the work as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// There is more to do.
    #[default]
    Continue,
    /// All is done, the agent says.
    Complete,
    /// What the assistant said matches the user's pattern.
    Done,
    /// The plan is wrong.
    Replan,
    /// Nothing can be done, the agent says.
    Failure,
}

/// What one attempt left.
#[derive(Debug, Clone)]
pub struct Report {
    /// How it is booked.
    pub status: AttemptStatus,
    /// How long it took.
    pub duration: Duration,
    /// The program's exit code, where it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// The limit that it ran or kept silent beyond, when it timed out.
    pub exceeded: Option<Duration>,
    /// Why it failed; `None` when it succeeded.
    pub failure: Option<Failure>,
    /// What the assistant said in sigils; nothing where it failed.
    pub sigils: Sigils,
    /// The end of what the assistant said, as far as it is needed to look for a pattern.
    pub text: String,
    /// What it has shown matches the user's pattern: for agents whose own text nobody can tell from the rest.
    pub matches_done: bool,
    /// Cost, tokens, model and session as the agent reported them.
    pub usage: Usage,
    /// The account's balance before and after, in US dollars, where a usage command told it.
    pub balance: Option<Balance>,
    /// Lines that were no JSON object, or too long to be parsed.
    pub skipped_lines: u64,
}

/// The account's balance, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "LineBalance"))]
pub struct Balance {
    /// What is left.
    pub left: f64,
    /// What the attempt used up; null when one of the two balances is not known.
    pub spent: Option<f64>,
}

impl Texts for Report {
    fn replace_texts(&mut self, new: New<'_>) {
        let Usage { model, session_id, background, fault, .. } = &mut self.usage;
        self.text.replace_texts(new);
        let sigils = std::mem::take(&mut self.sigils);
        self.sigils = sigils.with_texts(|text| new(text).unwrap_or_else(|| text.to_owned()));
        [model, session_id].replace_texts(new);
        background.replace_texts(new);
        fault.as_mut().map(|fault| &mut fault.message).replace_texts(new);
        self.failure.as_mut().map(|failure| &mut failure.message).replace_texts(new);
    }
}

impl Report {
    /// Of an attempt that the loop had to give up, so that nobody knows what it led to.
    #[must_use]
    pub fn given_up(status: AttemptStatus, duration: Duration) -> Self {
        Self {
            status,
            duration,
            exit_code: None,
            signal: None,
            exceeded: None,
            failure: None,
            sigils: Sigils::default(),
            text: String::new(),
            matches_done: false,
            usage: Usage::default(),
            balance: None,
            skipped_lines: 0,
        }
    }

    /// Whether the agent did its turn, and nothing speaks against what it says.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// Whether it is one that is waited for and uses up nothing: the same work is done once more then, and none is asked for.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        let is_overload = self.failure.as_ref().is_some_and(|failure| failure.class == Class::Overload);
        self.status == AttemptStatus::UsageLimit
            || self.status == AttemptStatus::AgentFailure && is_overload && !self.usage.called_tools
    }

    /// Whether the agent was not let in, for a reason that passes with time or ends the loop: that says nothing about its work.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let class = self.failure.as_ref().map(|failure| failure.class);
        matches!(
            class,
            Some(Class::Limit | Class::Overload | Class::Auth | Class::Billing | Class::Permission)
        )
    }

    /// What the attempt cost in US dollars: as the agent said, else as its account shows.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        self.usage.cost_usd.or_else(|| self.balance.and_then(|balance| balance.spent))
    }
}
