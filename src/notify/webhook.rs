//! One request to a webhook.

use std::time::Duration;

use chrono::Utc;
use ureq::Agent;
use ureq::http::{HeaderValue, StatusCode};

use super::format::body;
use super::message::Message;
use crate::settings::notify::Webhook;
use crate::text::digest::hmac_sha256;
use crate::web;

/// The time limit of a request, from its start to the head of the response.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest pause that a receiver can ask for.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// The result of a request. The texts name at most the host: the URL may hold a secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The receiver has taken it.
    Taken,
    /// The receiver will never take it.
    Refused(String),
    /// The receiver may take it later, after the pause that it may have asked for.
    Later(String, Option<Duration>),
}

impl Answer {
    /// The error, if there is one.
    pub(super) fn into_result(self) -> Result<(), String> {
        match self {
            Self::Taken => Ok(()),
            Self::Refused(why) | Self::Later(why, _) => Err(why),
        }
    }
}

/// Posts messages to one webhook.
pub(super) struct Poster {
    webhook: Webhook,
    agent: Agent,
}

impl Poster {
    pub(super) fn new(webhook: Webhook) -> Self {
        Self { webhook, agent: web::client(LIMIT) }
    }

    /// The host of the receiver.
    pub(super) fn host(&self) -> &str {
        self.webhook.host()
    }

    /// Posts one message.
    pub(super) fn post(&self, message: &Message) -> Answer {
        let body = body(self.webhook.format, message);
        let mut request = self
            .agent
            .post(self.webhook.url.reveal())
            .header("Content-Type", body.content_type)
            .header("X-Ralph-Event", message.moment.word())
            .header("X-Ralph-Delivery", &message.id);
        for (name, value) in body.headers {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                request = request.header(name, value);
            }
        }
        if let Some(secret) = &self.webhook.secret {
            let time = Utc::now().timestamp();
            let signature =
                hmac_sha256(secret.reveal().as_bytes(), format!("{time}.{}", body.text).as_bytes());
            request = request
                .header("X-Ralph-Timestamp", time.to_string())
                .header("X-Ralph-Signature", format!("sha256={signature}"));
        }
        match request.send(body.text.as_bytes()) {
            Ok(response) => {
                let pause = response.headers().get("Retry-After").and_then(|value| value.to_str().ok());
                judge(response.status(), pause)
            }
            Err(ureq::Error::BadUri(_) | ureq::Error::Http(_)) => {
                Answer::Refused("its URL is not understood".to_owned())
            }
            // The library's message may contain the URL.
            Err(error) => {
                Answer::Later(in_words(error).replace(self.webhook.url.reveal(), self.webhook.host()), None)
            }
        }
    }
}

/// Why there was no response.
fn in_words(error: ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} s", LIMIT.as_secs()),
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// The meaning of a status.
fn judge(status: StatusCode, pause: Option<&str>) -> Answer {
    let why = format!("it answers with status {}", status.as_u16());
    let pause = pause.and_then(|pause| pause.trim().parse().ok());
    let pause = pause.map(|seconds| Duration::from_secs(seconds).min(LONGEST_PAUSE));
    match status.as_u16() {
        200..300 => Answer::Taken,
        408 | 425 | 429 | 500.. => Answer::Later(why, pause),
        300..400 => Answer::Refused(format!("{why}, a redirect, which is not followed: name its real URL")),
        _ => Answer::Refused(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_whether_to_try_again() {
        let judged = |code: u16| judge(StatusCode::from_u16(code).unwrap(), Some("7"));
        assert_eq!(judged(204), Answer::Taken);
        for code in [302, 400, 401, 404] {
            assert!(matches!(judged(code), Answer::Refused(_)), "{code}");
        }
        for code in [408, 429, 500, 503] {
            assert!(matches!(judged(code), Answer::Later(_, Some(pause)) if pause.as_secs() == 7), "{code}");
        }
        let later = judge(StatusCode::from_u16(429).unwrap(), Some("99999999"));
        assert!(matches!(later, Answer::Later(_, Some(LONGEST_PAUSE))));
    }
}
