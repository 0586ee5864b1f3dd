//! The body of a webhook request: the event itself, or a short text in the receiver's format.

use serde_json::json;

use super::message::Message;
use crate::settings::notify::{Format, Moment};
use crate::text::line::one_line_within;

/// Discord refuses longer texts, in characters.
const LONGEST: usize = 1900;

/// The body of a request, with its headers.
pub(super) struct Body {
    pub(super) text: String,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
}

/// A message in this format.
pub(super) fn body(format: Format, message: &Message) -> Body {
    let of_json = |text: String| Body { text, content_type: "application/json", headers: Vec::new() };
    match format {
        Format::Json => of_json(message.line.trim_end().to_owned()),
        Format::Slack => of_json(json!({ "text": for_slack(&chat(message)) }).to_string()),
        // An agent's text must not mention anyone.
        Format::Discord => {
            of_json(json!({ "content": chat(message), "allowed_mentions": { "parse": [] } }).to_string())
        }
        Format::Ntfy => {
            let (priority, tag) = match message.moment {
                Moment::End => ("default", "white_check_mark"),
                Moment::Failure => ("high", "x"),
                Moment::Waiting => ("low", "hourglass"),
                Moment::Attention => ("high", "bell"),
            };
            let headers = vec![
                ("Title", one_line_within(&message.title, 200)),
                ("Priority", priority.to_owned()),
                ("Tags", tag.to_owned()),
            ];
            Body { text: message.text.clone(), content_type: "text/plain; charset=utf-8", headers }
        }
    }
}

/// Title and text together.
fn chat(message: &Message) -> String {
    let text = format!("{} · {}", message.title, message.text);
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Slack would read these characters as links and mentions.
fn for_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_mentions_no_user() {
        let message = Message { text: "<!channel> & @everyone".into(), ..Message::test("p") };
        assert!(body(Format::Slack, &message).text.contains("&lt;!channel&gt; &amp; @everyone"));
        let discord: serde_json::Value = serde_json::from_str(&body(Format::Discord, &message).text).unwrap();
        assert_eq!(discord["allowed_mentions"]["parse"], json!([]));
        let long = Message { text: "é".repeat(5000), ..message };
        let discord: serde_json::Value = serde_json::from_str(&body(Format::Discord, &long).text).unwrap();
        assert!(discord["content"].as_str().unwrap().chars().count() < 2000);
    }
}
