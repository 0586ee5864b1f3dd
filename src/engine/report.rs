//! The report of one attempt, and its meaning for the work.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::budget::Spent;
use super::refused::Refused;
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
    /// The agent did its turn and said that all is done, and the validation disagrees.
    CompleteUnproven,
    /// Its screen stood still, which is how an interactive agent ends its turn.
    Still,
    /// It failed; the report says why.
    AgentFailure,
    /// It ran or was silent for too long.
    Timeout,
    /// Its account has met its usage limit.
    UsageLimit,
    /// It was ended by request.
    Interrupted,
}

impl AttemptStatus {
    /// The status of an attempt that failed in this way.
    #[must_use]
    pub fn of(failure: &Failure) -> Self {
        match failure.kind {
            Kind::Interrupted => Self::Interrupted,
            Kind::TimedOut | Kind::Inactive => Self::Timeout,
            _ if failure.class == Class::Limit => Self::UsageLimit,
            _ => Self::AgentFailure,
        }
    }

    /// Whether the agent did its turn, which may have ended with a still screen.
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
    /// The agent says that all is done.
    Complete,
    /// The assistant's text matches the user's pattern.
    Done,
    /// The plan is wrong.
    Replan,
    /// The agent says that nothing can be done.
    Failure,
}

/// The report of one attempt.
#[derive(Debug, Clone)]
pub struct Report {
    /// How it is booked.
    pub status: AttemptStatus,
    /// How long it took.
    pub duration: Duration,
    /// The program's exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// The limit that it exceeded, by its time or its silence, if it timed out.
    pub exceeded: Option<Duration>,
    /// Why it failed; `None` when it succeeded.
    pub failure: Option<Failure>,
    /// The assistant's sigils; none if the attempt failed.
    pub sigils: Sigils,
    /// The end of the assistant's text, as far as it is needed to find a pattern.
    pub text: String,
    /// Whether its output matches the user's pattern: for agents whose own text cannot be told from the rest.
    pub matches_done: bool,
    /// Cost, tokens, model and session as the agent reported them.
    pub usage: Usage,
    /// The account's balance, in US dollars, if there is a usage command.
    pub balance: Option<Balance>,
    /// Lines that were no JSON object, or too long to be parsed.
    pub skipped_lines: u64,
    /// What the walls around it have refused.
    pub refused: Vec<Refused>,
    /// Whether another agent takes the iteration over, because this one could not work.
    pub is_taken_over: bool,
}

/// The account's balance, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "LineBalance"))]
pub struct Balance {
    /// The balance after the attempt.
    pub left: f64,
    /// What the attempt used; null when one of the two balances is unknown.
    pub spent: Option<f64>,
}

impl Texts for Report {
    fn replace_texts(&mut self, new: New<'_>) {
        let Usage { model, session_id, background, fault, .. } = &mut self.usage;
        self.text.replace_texts(new);
        let sigils = std::mem::take(&mut self.sigils);
        self.sigils = sigils.with_texts(|text| new(text).unwrap_or_else(|| text.to_owned()));
        [model, session_id].replace_texts(new);
        for refused in &mut self.refused {
            refused.place.replace_texts(new);
        }
        background.replace_texts(new);
        fault.as_mut().map(|fault| &mut fault.message).replace_texts(new);
        self.failure.as_mut().map(|failure| &mut failure.message).replace_texts(new);
    }
}

impl Report {
    /// The report of an attempt that the loop had to give up, so that its result is unknown.
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
            refused: Vec::new(),
            is_taken_over: false,
        }
    }

    /// Whether the agent did its turn, and what it says is not refuted.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// Whether it uses up nothing: the loop waits, and the same work is done once more.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.is_taken_over
            || self.status == AttemptStatus::UsageLimit
            || self.has_met_outage() && !self.usage.called_tools
    }

    /// Whether it has failed because its provider could not be reached or did not work. Some agents wait for a connection by
    /// themselves until a timeout ends them.
    #[must_use]
    pub fn has_met_outage(&self) -> bool {
        let class = self.failure.as_ref().map(|failure| failure.class);
        match self.status {
            AttemptStatus::AgentFailure => class.is_some_and(Class::is_outage),
            AttemptStatus::Timeout => class == Some(Class::Network),
            _ => false,
        }
    }

    /// Whether the agent could not work, for a reason that passes with time or ends the loop; that says nothing about its work.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let class = self.failure.as_ref().map(|failure| failure.class);
        matches!(
            class,
            Some(
                Class::Limit
                    | Class::Overload
                    | Class::Network
                    | Class::Auth
                    | Class::Billing
                    | Class::Permission
                    | Class::Model
            )
        )
    }

    /// The cost of the attempt in US dollars: as the agent reported it, else by its account's balance.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        self.usage.cost_usd.or_else(|| self.balance.and_then(|balance| balance.spent))
    }

    /// What the attempt has spent.
    #[must_use]
    pub fn spent(&self) -> Spent {
        Spent::reported(self.cost_usd(), self.usage.input_tokens, self.usage.output_tokens)
    }
}
