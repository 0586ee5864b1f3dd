//! What an agent reports about itself before it gets any work.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::read;

/// What an agent reports about itself before it gets any work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Introduction {
    /// Its name and version, if it reports them.
    pub agent: Option<String>,
    /// The login method that used a key of the environment; `None`: the agent did not ask for a login.
    pub key: Option<String>,
    /// Its login, if it reports that.
    pub login: Login,
    /// The mode in which it works; `None`: it offers no known one.
    pub mode: Option<String>,
    /// Its read-only mode, likewise.
    pub quiet_mode: Option<String>,
    /// The models that can be chosen.
    pub models: Vec<String>,
}

/// An agent's report about its login, beside the protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Login {
    /// There was no report.
    #[default]
    Unknown,
    /// It is not logged in.
    Missing,
    /// It is logged in, by this method.
    Known(String),
}

impl Login {
    /// The notification with which some agents report it.
    pub(super) const METHOD: &str = "_auth/status_update";

    /// Reads that notification, without the user's name.
    pub(super) fn read(params: &RawValue) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            auth_status: Status,
        }
        #[derive(Deserialize)]
        struct Status {
            kind: String,
            #[serde(default)]
            label: String,
        }
        match read::<Params>(Some(params)).map(|params| params.auth_status) {
            None => Self::Unknown,
            Some(status) if status.kind == "none" => Self::Missing,
            Some(status) => {
                Self::Known(if status.label.trim().is_empty() { status.kind } else { status.label })
            }
        }
    }
}
