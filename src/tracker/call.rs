//! Asks a tracker: by HTTP with a token, or through its own command, whose answers are the API's as well.

use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

use chrono::Utc;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::HeaderValue;

use super::fault::{self, Fault};
use crate::process::capture::capture;
use crate::process::ladder::Ladder;
use crate::process::launch::Launch;
use crate::text::halves::without_halves;
use crate::text::redact::MARK;
use crate::text::{count, foreign, line};
use crate::web;

/// The time limit of a request.
const LIMIT: Duration = Duration::from_mins(1);
/// The most bytes of one answer, and of all.
const PAGE_ROOM: usize = 32 << 20;
const ROOM: usize = 128 << 20;
/// The most requests of one import.
const MOST_CALLS: u32 = 2000;
/// The longest wait for a tracker that was asked too often.
const LONGEST_WAIT: u64 = 60;
/// How often it is waited for one answer.
const MOST_WAITS: u32 = 3;

/// How a tracker is reached.
pub(super) enum Way {
    /// By HTTP, at this place, with this header for the login.
    Http { base: String, login: Option<(&'static str, HeaderValue)> },
    /// Through this command, at this host.
    Program { name: &'static str, host: &'static str },
}

/// An answer.
pub(super) struct Reply {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Reply {
    /// A header, by its name in small letters.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// How many seconds to wait, if it was asked too often.
    fn wait(&self) -> Option<u64> {
        let number = |name: &str| self.header(name).and_then(|value| value.trim().parse::<u64>().ok());
        let used_up = number("x-ratelimit-remaining") == Some(0);
        let is_limit = match self.status {
            429 => true,
            403 => number("retry-after").is_some() || used_up || self.body.contains("secondary rate limit"),
            400 => self.body.contains("\"RATELIMITED\""),
            _ => false,
        };
        let now = u64::try_from(Utc::now().timestamp()).unwrap_or_default();
        let resets = number("x-ratelimit-reset")
            .or_else(|| number("ratelimit-reset"))
            .or_else(|| number("x-ratelimit-requests-reset").map(|millis| millis / 1000));
        let until_reset = resets.map(|at| at.saturating_sub(now) + 1);
        is_limit.then(|| number("retry-after").or(until_reset).unwrap_or(LONGEST_WAIT))
    }
}

/// The requests of one import.
pub(crate) struct Session<'a> {
    /// The name of the tracker.
    pub(super) who: &'static str,
    /// With which right it is asked, in words.
    pub(super) login: String,
    pub(super) way: Way,
    /// Headers of every request.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Tells the user what is waited for.
    tell: &'a dyn Fn(&str),
    /// The token is of a user who is named.
    pub(super) has_user: bool,
    /// Who that is, once it was asked.
    pub(super) myself: Option<String>,
    calls: u32,
    bytes: usize,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        who: &'static str,
        headers: &'static [(&'static str, &'static str)],
        has_user: bool,
        tell: &'a dyn Fn(&str),
    ) -> Self {
        let way = Way::Http { base: String::new(), login: None };
        Self { who, login: String::new(), way, headers, tell, has_user, myself: None, calls: 0, bytes: 0 }
    }
    /// Gets what is at a path below the API.
    pub(super) fn get(&mut self, path: &str, what: &str) -> Result<Reply, Fault> {
        self.call(path, None, what)
    }

    /// Posts to a path below the API.
    pub(super) fn post(&mut self, path: &str, body: &Value, what: &str) -> Result<Reply, Fault> {
        self.call(path, Some(body), what)
    }

    /// Gets one value.
    pub(super) fn value<T: DeserializeOwned>(&mut self, path: &str, what: &str) -> Result<T, Fault> {
        let reply = self.get(path, what)?;
        self.read(&reply, what)
    }

    /// What an answer means.
    pub(super) fn read<T: DeserializeOwned>(&self, reply: &Reply, what: &str) -> Result<T, Fault> {
        serde_json::from_str(&without_halves(&reply.body)).map_err(|error| {
            Fault::other(format!(
                "{} answers for {what} with what is not understood ({}): is it the address of its API?",
                self.who,
                foreign::line(&error.to_string())
            ))
        })
    }

    fn call(&mut self, path: &str, body: Option<&Value>, what: &str) -> Result<Reply, Fault> {
        for waits in 0..=MOST_WAITS {
            self.calls += 1;
            if self.calls > MOST_CALLS || self.bytes > ROOM {
                return Err(self.too_much());
            }
            let reply = match &self.way {
                Way::Http { base, login } => self.by_http(base, login.as_ref(), path, body),
                Way::Program { name, host } => self.by_program(name, host, path, body),
            }?;
            self.bytes += reply.body.len();
            // A server may repeat what it was sent.
            let reply = Reply { body: self.without_login(reply.body), ..reply };
            match reply.wait() {
                Some(wait) if wait > LONGEST_WAIT || waits == MOST_WAITS => {
                    return Err(fault::of_limit(self.who, wait));
                }
                Some(wait) => {
                    let seconds = count::of(wait, "second");
                    (self.tell)(&format!("{} was asked too often: asked again in {seconds}", self.who));
                    sleep(Duration::from_secs(wait));
                }
                None if (200..300).contains(&reply.status) => return Ok(reply),
                None => {
                    return Err(fault::of_status(self.who, what, reply.status, &self.login, &reply.body));
                }
            }
        }
        Err(fault::of_limit(self.who, LONGEST_WAIT))
    }

    /// A text without the login.
    fn without_login(&self, text: String) -> String {
        let Way::Http { login: Some((_, value)), .. } = &self.way else { return text };
        let value = value.to_str().unwrap_or_default();
        let token = value.rsplit(' ').next().unwrap_or_default();
        if token.is_empty() { text } else { text.replace(token, &format!("{MARK}login]")) }
    }

    /// More than an import takes.
    pub(super) fn too_much(&self) -> Fault {
        Fault::other(format!(
            "{} has more issues than one import takes ({MOST_CALLS} requests, {} MB): name a label, as in ADDRESS#LABEL",
            self.who,
            ROOM >> 20
        ))
    }

    fn by_http(
        &self,
        base: &str,
        login: Option<&(&'static str, HeaderValue)>,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Reply, Fault> {
        let (client, url) = (web::client(LIMIT), format!("{base}/{path}"));
        let headers = self.headers.iter().map(|(name, value)| (*name, HeaderValue::from_static(value)));
        let headers = headers.chain(login.cloned());
        let answer = if let Some(body) = body {
            let request =
                headers.fold(client.post(&url), |request, (name, value)| request.header(name, value));
            request.header("Content-Type", "application/json").send(body.to_string())
        } else {
            headers.fold(client.get(&url), |request, (name, value)| request.header(name, value)).call()
        };
        let mut answer = answer.map_err(|error| self.unanswered(base, error))?;
        let headers = answer.headers().iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let (status, headers) = (answer.status().as_u16(), headers.collect());
        let limit = PAGE_ROOM as u64;
        let body = answer.body_mut().with_config().limit(limit).lossy_utf8(true).read_to_string();
        Ok(Reply { status, headers, body: body.map_err(|error| self.unanswered(base, error))? })
    }

    /// Why there was no answer. The login is in no URL, and in no message.
    fn unanswered(&self, base: &str, error: ureq::Error) -> Fault {
        let why = match error {
            ureq::Error::Timeout(_) => format!("no answer within {} s", LIMIT.as_secs()),
            ureq::Error::BodyExceedsLimit(_) => format!("an answer is larger than {} MB", PAGE_ROOM >> 20),
            ureq::Error::Io(error) => error.to_string(),
            error => error.to_string(),
        };
        Fault::other(format!("{} cannot be asked at {base}: {why}", self.who))
    }

    fn by_program(&self, name: &str, host: &str, path: &str, body: Option<&Value>) -> Result<Reply, Fault> {
        let mut args = vec!["api", "--include", "--hostname", host, "--method"];
        args.push(if body.is_some() { "POST" } else { "GET" });
        if body.is_some() {
            args.extend(["--header", "Content-Type: application/json", "--input", "-"]);
        }
        args.push(path);
        let env = [
            ("GH_PROMPT_DISABLED", "1"),
            ("GH_NO_UPDATE_NOTIFIER", "1"),
            ("NO_COLOR", "1"),
            ("NO_PROMPT", "1"),
        ];
        let launch = Launch {
            program: name.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            // It must not outlive us, whatever it does about a request to end.
            ladder: Ladder::AT_ONCE,
            ..Launch::default()
        };
        let input = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let captured = capture(&launch, input, LIMIT, PAGE_ROOM, &AtomicBool::new(false))
            .map_err(|error| Fault::other(error.to_string()))?;
        let (said, errors) = (captured.stdout.text(), captured.stderr.text());
        parsed(&said).ok_or_else(|| {
            let why = line::first(&errors).map_or_else(|| "no answer".to_owned(), foreign::line);
            let login = if errors.contains("auth login") || errors.contains("authenticat") {
                format!(": run '{name} auth login', or set a token")
            } else {
                String::new()
            };
            Fault::other(format!("{} cannot be asked through {name}: {why}{login}", self.who))
        })
    }
}

/// An answer as commands print it with `--include`: status line, headers, a blank line, the body.
fn parsed(said: &str) -> Option<Reply> {
    let (head, body) = said.split_once("\r\n\r\n").or_else(|| said.split_once("\n\n"))?;
    let mut lines = head.lines();
    let status = lines.next().filter(|line| line.starts_with("HTTP/"))?.split(' ').nth(1)?.parse().ok()?;
    let header = |line: &str| {
        line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    Some(Reply { status, headers: lines.filter_map(header).collect(), body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_prints_is_an_answer() {
        let reply =
            parsed("HTTP/2.0 403 Forbidden\r\nRetry-After: 7\r\nX-Y: a: b\r\n\r\n{\"a\":\n\n1}").unwrap();
        assert_eq!((reply.status, reply.header("x-y"), reply.wait()), (403, Some("a: b"), Some(7)));
        assert_eq!(reply.body, "{\"a\":\n\n1}");
        assert!(parsed("To get started, run:\n\ngh auth login").is_none());
    }

    #[test]
    fn what_was_asked_too_often_says_when_it_answers() {
        let reply = |status, headers: &[(&str, String)], body: &str| Reply {
            status,
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            body: body.to_owned(),
        };
        let soon = (Utc::now().timestamp() + 20).to_string();
        let used_up = [("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", soon)];
        assert!(reply(403, &used_up, "").wait().is_some_and(|wait| (15..=21).contains(&wait)));
        assert_eq!(reply(403, &[], "").wait(), None, "not allowed at all");
        assert_eq!(reply(429, &[], "").wait(), Some(LONGEST_WAIT));
        assert!(
            reply(400, &[], "{\"errors\":[{\"extensions\":{\"code\":\"RATELIMITED\"}}]}").wait().is_some()
        );
        assert_eq!(reply(200, &used_up, "").wait(), None);
    }
}
