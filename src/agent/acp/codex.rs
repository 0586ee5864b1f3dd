//! What codex reports of a turn beside its answer, which is a good one however the turn has ended.

use serde_json::Value;

use super::error::Fault;
use crate::reply::usage::Class;

/// What codex has reported of its turn so far.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// The error after which it has tried again last, as long as it has not gone on since.
    retried: Option<Fault>,
    /// Why the turn has failed.
    failed: Option<Fault>,
    /// The text that comes next is the error's.
    words_follow: bool,
}

impl Beside {
    /// Reads the part of an update's `_meta` that is codex's.
    pub(super) fn take(&mut self, told: &Value) {
        if let Some(error) = told.get("error").filter(|error| !error.is_null()) {
            let will_retry = error.get("willRetry").and_then(Value::as_bool).unwrap_or_default();
            let slot = if will_retry { &mut self.retried } else { &mut self.failed };
            *slot = Some(fault(error));
        }
        match told.pointer("/threadStatus/type").and_then(Value::as_str) {
            Some("systemError") => {
                let retried = self.retried.take();
                self.failed.get_or_insert_with(|| {
                    retried.unwrap_or_else(|| {
                        Fault::told(None, "its turn has failed, for a reason it does not name")
                    })
                });
                self.words_follow = true;
            }
            // A turn begins.
            Some("active") => *self = Self::default(),
            _ => {}
        }
    }

    /// Takes a text that belongs to no message: after a failure it is that of the error. `false`: it is something else.
    pub(super) fn take_text(&mut self, text: &str) -> bool {
        if !std::mem::take(&mut self.words_follow) {
            return false;
        }
        let told = Fault::told(None, text.trim());
        // Words that say nothing of their kind do not take back what is known of it.
        let before = self.failed.take().map(|before| before.class).unwrap_or_default();
        let class = if told.class == Class::Other { before } else { told.class };
        self.failed = Some(Fault { class, ..told });
        true
    }

    /// It has gone on after an error that it has tried again after.
    pub(super) fn goes_on(&mut self) {
        self.retried = None;
    }

    /// Why the turn has failed; `None`: it has not.
    pub(super) fn failure(&self) -> Option<&Fault> {
        self.failed.as_ref()
    }
}

fn fault(error: &Value) -> Fault {
    let status = ["httpStatusCode", "http_status_code"].iter().find_map(|key| find(error, key)?.as_i64());
    // While it tries again the message only counts the tries.
    let words = ["additionalDetails", "message"].iter().find_map(|key| find(error, key)?.as_str());
    Fault::told(status, words.unwrap_or("the provider refused"))
}

/// The first value of this key, however deep.
fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(key).or_else(|| map.values().find_map(|value| find(value, key))),
        Value::Array(list) => list.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}
