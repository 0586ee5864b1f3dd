//! What a loop may use up besides iterations: a row for each limit. The policy, the settings and `resume`, `status`, the next step and
//! `replay --config` walk the rows.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;

/// What an amount is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// US dollars.
    Dollars,
    /// A count of these.
    Count(&'static str),
    /// Seconds.
    Seconds,
}

/// The properties of a limit.
#[derive(Debug)]
pub struct Row {
    /// The setting that holds it.
    pub key: &'static str,
    /// The flag of that setting, with which `resume` raises it.
    pub flag: &'static str,
    /// Its key in the JSON of `status`.
    json: &'static str,
    /// The unit of its amounts.
    pub unit: Unit,
    /// The outcome of a loop that has reached it.
    outcome: Outcome,
    /// That it is reached, in words before what is wrong with the work.
    pub over: &'static str,
    /// How much of it is used.
    pub used: fn(&Used) -> f64,
}

/// Declares a row for each limit, with its field in the state file and in the events.
macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident($state:ident, $line:ident: $amount:ty) = $row:expr;)*) => {
        /// What a loop may use up besides iterations; of two that are reached, the first one counts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Limit { $($(#[$doc])* $name,)* }

        impl Limit {
            /// All limits, in the order of the declaration.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            /// The row of this limit.
            #[must_use]
            #[expect(clippy::cast_precision_loss, reason = "no loop counts to 2^52")]
            pub const fn row(self) -> Row {
                match self { $(Self::$name => $row,)* }
            }
        }

        /// How much of each a loop may use. The names are those of the state file.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
        pub struct Budget {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $state: Option<$amount>,)*
        }

        /// The budget by the names of the events.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub struct LineBudget {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] $line: Option<$amount>,)*
        }

        impl Budget {
            /// Nothing is limited.
            pub const NONE: Self = Self { $($state: None,)* };

            /// With the amount that `of` returns for each limit.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
            pub fn of(amount: impl Fn(Limit) -> Option<f64>) -> Self {
                Self { $($state: amount(Limit::$name).map(|real| real as $amount),)* }
            }

            /// How much of this may be used; `None` for no limit.
            #[must_use]
            #[expect(clippy::cast_precision_loss, reason = "no loop counts to 2^52")]
            pub fn get(&self, limit: Limit) -> Option<f64> {
                match limit { $(Limit::$name => self.$state.map(|amount| amount as f64),)* }
            }

            /// The budget in the JSON of `status`: names with values, null for no limit.
            pub fn json(&self) -> impl Iterator<Item = (&'static str, serde_json::Value)> {
                [$((Limit::$name.row().json, self.$state.into())),*].into_iter()
            }
        }

        impl From<Budget> for LineBudget {
            fn from(budget: Budget) -> Self {
                Self { $($line: budget.$state,)* }
            }
        }

        impl From<LineBudget> for Budget {
            fn from(line: LineBudget) -> Self {
                Self { $($state: line.$line,)* }
            }
        }
    };
}

limits! {
    /// In US dollars.
    Cost(max_cost_usd, max_cost_usd: f64) = Row {
        key: "loop.max_cost",
        flag: "--max-cost",
        json: "max_cost_usd",
        unit: Unit::Dollars,
        outcome: Outcome::BudgetReached,
        over: "the budget is used up",
        used: |used| used.spent.dollars(),
    };
    /// Read and written ones together.
    Tokens(max_tokens, max_tokens: u64) = Row {
        key: "loop.max_tokens",
        flag: "--max-tokens",
        json: "max_tokens",
        unit: Unit::Count("tokens"),
        outcome: Outcome::BudgetReached,
        over: "the budget is used up",
        used: |used| used.spent.tokens() as f64,
    };
    /// The time of the whole loop, in seconds.
    Duration(max_duration_seconds, max_duration_s: f64) = Row {
        key: "loop.max_duration",
        flag: "--max-duration",
        json: "max_duration",
        unit: Unit::Seconds,
        outcome: Outcome::DurationReached,
        over: "its time is over",
        used: |used| used.seconds,
    };
}

impl Limit {
    /// The outcome of a loop that has reached it.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        self.row().outcome
    }

    /// The first of those that lead to this outcome, however the last work was; `None` if none does.
    #[must_use]
    pub fn that_ended(outcome: Outcome) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.ended(outcome))
    }

    /// Whether a loop with this outcome has ended because of it, however its last work was.
    #[must_use]
    pub fn ended(self, outcome: Outcome) -> bool {
        let reached = self.row().outcome;
        [Some(reached), reached.if_unproven(), reached.if_failed()].contains(&Some(outcome))
    }
}

impl Budget {
    /// The first limit that is reached.
    #[must_use]
    pub fn reached(&self, used: &Used) -> Option<Limit> {
        let is_reached =
            |limit: &Limit| self.get(*limit).is_some_and(|amount| (limit.row().used)(used) >= amount);
        Limit::ALL.into_iter().find(is_reached)
    }
}

/// What is used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Used by all loops that share the budget.
    pub spent: Spent,
    /// How long the loop has run, over all its processes.
    pub seconds: f64,
}

/// What a loop has spent, or several together: whatever agents report the amount of. The names are those of the state file and of the
/// events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Spent {
    /// In US dollars, as far as agents reported it; left out if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens read by the models, cached ones included.
    pub input_tokens: u64,
    /// Tokens written by the models, reasoning included.
    pub output_tokens: u64,
}

impl Spent {
    /// What an agent has spent, as far as it reported that: money, tokens read and tokens written.
    #[must_use]
    pub fn reported(cost_usd: Option<f64>, input: Option<u64>, output: Option<u64>) -> Self {
        let [input_tokens, output_tokens] = [input, output].map(Option::unwrap_or_default);
        Self { cost_usd, input_tokens, output_tokens }
    }

    /// In US dollars.
    #[must_use]
    pub fn dollars(self) -> f64 {
        self.cost_usd.unwrap_or_default()
    }

    /// Read and written tokens together.
    #[must_use]
    pub fn tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// What is left of it without another one's part.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self {
            cost_usd: self.cost_usd.map(|cost| (cost - other.dollars()).max(0.0)),
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let sum = |cost: f64| (cost + other.dollars()).min(f64::MAX);
        Self {
            cost_usd: self.cost_usd.map_or(other.cost_usd, |cost| Some(sum(cost))),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}
