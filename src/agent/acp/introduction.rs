//! What an agent says of itself before it is given any work.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::read;

/// What an agent says of itself before it is given any work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Introduction {
    /// Its name and version, where it tells them.
    pub agent: Option<String>,
    /// The way by which it was logged in with a key of the environment; `None`: it did not ask for that.
    pub key: Option<String>,
    /// How it is logged in, where it says so by itself.
    pub login: Login,
    /// The mode in which it works; `None`: it offers none that we know.
    pub mode: Option<String>,
    /// The mode in which it only looks, likewise.
    pub quiet_mode: Option<String>,
    /// The models that can be chosen.
    pub models: Vec<String>,
}

/// What an agent says of its login beside the protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Login {
    /// Nothing.
    #[default]
    Unknown,
    /// There is none.
    Missing,
    /// There is one, of this kind.
    Known(String),
}

impl Login {
    /// The notification by which some tell it.
    pub(super) const METHOD: &str = "_auth/status_update";

    /// Reads that notification. Whose login it is, is not for us.
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
