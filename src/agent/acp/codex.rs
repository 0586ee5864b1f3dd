//! Reads codex's reports about a turn, because its answer is a success however the turn has ended.

use serde_json::Value;

use super::error::Fault;
use crate::reply::usage::Class;

/// The reports of codex about its turn so far.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// The error after which it last tried again, until it goes on.
    retried: Option<Fault>,
    /// Why the turn has failed.
    failed: Option<Fault>,
    /// Whether the next text is that of the error.
    words_follow: bool,
    /// The last message so far, as long as it may be one by which codex gives up.
    message: String,
    /// Why it has given up, where it reports that in a message alone.
    given_up: Option<Fault>,
}

/// How the message of a codex begins that has tried again in vain. Versions that report nothing beside their answers end the turn
/// with it as if it were one.
const GIVES_UP: &str = "exceeded retry limit, last status:";

impl Beside {
    /// Reads codex's part of the `_meta` of an update. Returns the error after which it waits for a network, if it says so.
    pub(super) fn take(&mut self, told: &Value) -> Option<&Fault> {
        let mut waits = false;
        if let Some(error) = told.get("error").filter(|error| !error.is_null()) {
            let will_retry = error.get("willRetry").and_then(Value::as_bool).unwrap_or_default();
            let slot = if will_retry { &mut self.retried } else { &mut self.failed };
            *slot = Some(fault(error));
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
            waits = will_retry && message.contains("waiting for network");
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
        self.retried.as_ref().filter(|_| waits)
    }

    /// Takes a text without a message: after a failure it is that of the error. `false`: it is another text.
    pub(super) fn take_text(&mut self, text: &str) -> bool {
        if !std::mem::take(&mut self.words_follow) {
            return false;
        }
        let told = Fault::told(None, text.trim());
        // A text without a known kind does not replace a known kind.
        let before = self.failed.take().map(|before| before.class).unwrap_or_default();
        let class = if told.class == Class::Other { before } else { told.class };
        self.failed = Some(Fault { class, ..told });
        true
    }

    /// It has gone on after an error that it has tried again after.
    pub(super) fn tries_again_no_more(&mut self) {
        self.retried = None;
    }

    /// What follows is another message.
    pub(super) fn begins_message(&mut self) {
        self.message.clear();
        self.given_up = None;
    }

    /// Takes a piece of a message.
    pub(super) fn take_piece(&mut self, text: &str) {
        let before = self.message.len();
        if before <= GIVES_UP.len() * 2 {
            self.message.push_str(if before == 0 { text.trim_start() } else { text });
        }
        let gives_up = self.message.starts_with(GIVES_UP);
        self.given_up = gives_up.then(|| Fault::told(None, self.message.trim()));
    }

    /// Why the turn has failed; `None`: it has not.
    pub(super) fn failure(&self) -> Option<&Fault> {
        self.failed.as_ref().or(self.given_up.as_ref())
    }
}

fn fault(error: &Value) -> Fault {
    let status = ["httpStatusCode", "http_status_code"].iter().find_map(|key| find(error, key)?.as_i64());
    // During retries the message only counts them.
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
