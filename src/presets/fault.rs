//! Classifies an error that does not come in a line of a stream, but over a protocol or on a screen.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::reply::filter::{Input, JqProgram, Output};
use crate::reply::usage::Class;

/// An error outside a stream: `{status, name, message}` becomes `{class, message}`. Words about money and context count most, then
/// the name and the status.
const FAULT: &str = concat!(
    by_code!(),
    with_class!(
        r#"
(.message | class) as $said
| {message: (.message | plain),
   class: (if $said == "billing" or $said == "context" then $said
           else (.name | by_name) // (.status | by_status) // $said end)}
"#
    )
);

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
                Class::Other,
            ),
            ("Incomplete response returned, reason: max_output_tokens", Class::Other),
            ("Output blocked by content filtering policy", Class::Other),
            ("status: 400 content management policy", Class::Other),
            // The status says more.
            ("unexpected status 429 Too Many Requests: the content filter is busy", Class::Limit),
            ("unexpected status 503 Service Unavailable: content filter unavailable", Class::Overload),
            (
                "{\"error\":{\"code\": 500, \"message\": \"PROHIBITED_CONTENT service failed\"}}",
                Class::Overload,
            ),
            ("stream disconnected before completion: incomplete response", Class::Overload),
            ("Incomplete response: connection reset", Class::Overload),
            ("stream disconnected before completion: Transport error: network error", Class::Overload),
            ("[API Error: terminated]", Class::Overload),
            ("terminated", Class::Overload),
            ("The command was terminated", Class::Other),
        ] {
            assert_eq!(class(None, "", message), expected, "{message}");
        }
    }

    #[test]
    fn the_json_of_a_provider_becomes_its_words() {
        let message = r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}"#;
        let understood = Reported { message, ..Reported::default() }.understood();
        assert_eq!(understood, Understood { class: Class::Auth, message: "API key not valid.".into() });
    }
}
