//! The words of event lines that no other part of the program writes.

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// A word out of a list that may grow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Word<T> {
    /// One of the list.
    Known(T),
    /// One of a later release. Only read, never written.
    Other(String),
}

impl<T> Word<T> {
    /// The word, if this release knows it.
    #[must_use]
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(word) => Some(word),
            Self::Other(_) => None,
        }
    }
}

impl<T> From<T> for Word<T> {
    fn from(word: T) -> Self {
        Self::Known(word)
    }
}

/// The schema has what is written: the words of the list.
#[cfg(test)]
impl<T: JsonSchema> JsonSchema for Word<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// What a loop waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// The end of the agent's usage limit.
    UsageLimit,
    /// A provider that is overloaded or out of order.
    Overload,
    /// A connection to the provider.
    Network,
    /// Room on the disk.
    DiskSpace,
    /// The store of tasks.
    Store,
    /// The remote of the repository; in lines of earlier releases this is a wait for the store, too.
    Remote,
}

impl WaitReason {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::UsageLimit, Self::Overload, Self::Network, Self::DiskSpace, Self::Store, Self::Remote];

    /// Whether the policy decides on it: it is for an agent's provider.
    #[must_use]
    pub const fn is_for_provider(self) -> bool {
        matches!(self, Self::UsageLimit | Self::Overload | Self::Network)
    }

    /// The word in event lines and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::UsageLimit => "usage_limit",
            Self::Overload => "overload",
            Self::Network => "network",
            Self::DiskSpace => "disk_space",
            Self::Store => "store",
            Self::Remote => "remote",
        }
    }
}

impl Word<WaitReason> {
    /// Whether it is known how long the wait lasts. One that a later version waits for may end at any time.
    #[must_use]
    pub fn has_end(&self) -> bool {
        !matches!(self, Self::Known(reason) if !reason.is_for_provider())
    }
}

/// Why another agent goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeReason {
    /// The one before is at its usage limit.
    UsageLimit,
    /// It is out of credit.
    Credit,
    /// It is not logged in.
    Login,
    /// Its provider has been overloaded or out of order for too long.
    Overload,
    /// Its provider has been out of reach for too long.
    Network,
    /// This one is wanted more, and can work again.
    Back,
}

/// A request to a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Ctrl+C.
    Interrupt,
    /// SIGTERM; in lines of earlier releases SIGHUP, too.
    Terminate,
    /// SIGHUP: the terminal was closed.
    HangUp,
    /// The time is over that an attempt has after one of these two.
    GraceOver,
    /// To hold after the current attempt.
    Pause,
    /// To go on.
    Resume,
    /// To end after the current attempt.
    Cancel,
    /// To end, and the agent too.
    CancelNow,
    /// To end, and to leave the agent alone.
    Detach,
    /// To put a note into the next prompt.
    Note,
    /// To use other limits, or another set-up.
    Change,
}

/// The outcome of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BranchResult {
    /// All its tasks are done.
    Done,
    /// There is more to do; a later run goes on.
    Unfinished,
    /// It ended by a failure.
    Failed,
    /// Its base is not done yet.
    Waiting,
    /// Its turn never came.
    NotStarted,
}
