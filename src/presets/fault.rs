//! Classifies an error that does not come in a line of a stream, but over a protocol or on a screen.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::reply::filter::{Input, JqProgram, Output};
use crate::reply::usage::Class;

/// An error that comes in no line of a stream: `{status, name, message}` becomes `{class, message}`.
const FAULT: &str =
    with_class!(r#". as $error | .message | {message: plain, class: class_of($error.name; $error.status)}"#);

/// An error as an agent reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Reported<'a> {
    /// The HTTP status of its provider, if the agent reports one.
    pub status: Option<i64>,
    /// The name that the agent or its provider gives the error; may be empty.
    pub name: &'a str,
    /// Its message, which may be the provider's JSON.
    pub message: &'a str,
}

/// A classified error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Understood {
    /// Its class.
    pub class: Class,
    /// Its message, for people.
    pub message: String,
}

impl Reported<'_> {
    /// The class of the error and its message for people, by the definitions of the presets' filters.
    #[must_use]
    pub fn understood(self) -> Understood {
        // If our program does not compile, a test fails; here only the class would be lost.
        static PROGRAM: LazyLock<Option<JqProgram>> = LazyLock::new(|| JqProgram::compile(FAULT).ok());
        let mut understood = None;
        let input = serde_json::to_vec(&self).ok().and_then(|json| Input::parse(&json));
        if let (Some(program), Some(input)) = (&*PROGRAM, input) {
            let _failed = program.run(&input, &mut |output| {
                if let Output::Json(json) = output {
                    understood = serde_json::from_str(&json).ok();
                }
            });
        }
        understood.unwrap_or_else(|| Understood { message: self.message.to_owned(), ..Understood::default() })
    }
}

/// The class of an error by its words alone.
#[must_use]
pub fn class_of_words(message: &str) -> Class {
    if message.is_empty() {
        Class::Other
    } else {
        Reported { message, ..Reported::default() }.understood().class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(status: Option<i64>, name: &str, message: &str) -> Class {
        Reported { status, name, message }.understood().class
    }

    #[test]
    fn words_about_money_and_context_count_more_than_a_status() {
        let quota = "You exceeded your current quota, please check your plan and billing details.";
        assert_eq!(class(Some(429), "", quota), Class::Billing);
        assert_eq!(class(Some(500), "server_error", "prompt is too long: 210000 tokens"), Class::Context);
        assert_eq!(class(Some(429), "", "API key not valid"), Class::Limit);
        assert_eq!(class(None, "overloaded_error", "API key not valid"), Class::Overload);
        assert_eq!(class(None, "brand_new", "API key not valid"), Class::Auth);
        assert_eq!(class(Some(404), "", ""), Class::Other);
    }

    #[test]
    fn what_was_refused_or_cut_short_is_no_overload() {
        for (message, expected) in [
            (
                "stream disconnected before completion: Incomplete response returned, reason: content_filter",
                Class::Refused,
            ),
            ("Incomplete response returned, reason: max_output_tokens", Class::Other),
            ("Output blocked by content filtering policy", Class::Refused),
            ("status: 400 content management policy", Class::Refused),
            // A status says more.
            ("unexpected status 429 Too Many Requests: the content filter is busy", Class::Limit),
            ("unexpected status 503 Service Unavailable: content filter unavailable", Class::Overload),
            (
                "{\"error\":{\"code\": 500, \"message\": \"PROHIBITED_CONTENT service failed\"}}",
                Class::Overload,
            ),
            ("stream disconnected before completion: incomplete response", Class::Network),
            ("Incomplete response: connection reset", Class::Network),
            ("stream disconnected before completion: Transport error: network error", Class::Network),
            ("[API Error: terminated]", Class::Network),
            ("terminated", Class::Network),
            ("The command was terminated", Class::Other),
        ] {
            assert_eq!(class(None, "", message), expected, "{message}");
        }
    }

    /// The words of real agents and of what they are made with.
    #[test]
    fn a_missing_connection_is_none_of_the_others() {
        for message in [
            "API Error: Connection error.",
            "API Error: Unable to connect to API (ECONNREFUSED)",
            "Cannot connect to API: getaddrinfo EAI_AGAIN api.example.org",
            "[API Error: exception TypeError: fetch failed sending request]",
            "request to https://example.org failed, reason: getaddrinfo ENOTFOUND example.org",
            "stream disconnected before completion: error sending request for url (https://example.org/v1)",
            "error sending request: dns error: failed to lookup address information: Name or service not known",
            "curl: (6) Could not resolve host: example.org",
            "API Error: Request timed out.",
            "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)",
            "API Error: Connection dropped (UND_ERR_SOCKET)",
            "API Error: Can't reach the API server — check your internet or DNS (FailedToOpenSocket)",
            "API Error: No internet route — check your connection or VPN (EHOSTDOWN)",
            "API Error: Couldn't connect through your proxy (ERR_PROXY_TUNNEL) — the proxy refused the tunnel",
        ] {
            assert_eq!(class(None, "", message), Class::Network, "{message}");
            assert_eq!(class(None, "server_error", message), Class::Network, "{message}");
            assert_eq!(class(Some(503), "", message), Class::Overload, "{message}");
        }
        assert_eq!(class(None, "authentication_failed", "Connection error."), Class::Auth);
    }

    #[test]
    fn an_unknown_model_is_named_by_words_of_many_kinds() {
        for message in [
            "There's an issue with the selected model (x). It may not exist or you may not have access to it.",
            "The model `gpt-x` does not exist or you do not have access to it.",
            "unexpected status 400 Bad Request: The 'gpt-x' model is not supported when using Codex",
            "[API Error: model: no-such-model]",
            r#"API Error: 404 {"type":"error","error":{"type":"not_found_error","message":"model: x"},"request_id":"r"}"#,
            r#"API Error: 404 {"error":{"message":"The model `gpt-x` does not exist","code":"model_not_found"}}"#,
            "models/gemini-x is not found for API version v1beta",
            "Model not found: fake/none",
        ] {
            assert_eq!(class(Some(404), "", message), Class::Model, "{message}");
        }
        assert_eq!(class(None, "", "The model said that the file was not found"), Class::Other);
        assert_eq!(class(Some(403), "", "Your account is not allowed to use this model"), Class::Auth);
    }

    #[test]
    fn the_json_of_a_provider_becomes_its_words() {
        let message = r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}"#;
        let understood = Reported { message, ..Reported::default() }.understood();
        assert_eq!(understood, Understood { class: Class::Auth, message: "API key not valid.".into() });
    }
}
