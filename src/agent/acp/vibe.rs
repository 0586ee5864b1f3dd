//! Reads vibe's reports beside the protocol: that its provider refuses it for now, and is asked again.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::read;
use super::error::Fault;

/// The notification.
pub(super) const RETRYING: &str = "_session/retrying";

/// Why it asks its provider again, as in `HTTP 429`.
pub(super) fn retries(params: &RawValue) -> Option<Fault> {
    #[derive(Deserialize)]
    struct Retrying {
        detail: String,
    }
    let Retrying { detail } = read(Some(params))?;
    let status = detail.strip_prefix("HTTP ").and_then(|status| status.parse().ok());
    Some(Fault::told(status, &detail))
}
