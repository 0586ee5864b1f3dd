//! Reads what copilot says of itself, because it says that as if it were the assistant, and ends its turn with a success.

use super::error::{Aside, Fault};

/// Reads a piece of text, which is whole if it is one of these.
pub(super) fn aside(piece: &str) -> Option<Aside> {
    if let Some(words) = piece.strip_prefix("Error: ") {
        // It may have lines, and is shown as one.
        let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
        return Some(Aside::Error(Fault::told(status(words), &line)));
    }
    (piece.starts_with("Info: ") && piece.ends_with("Retrying...")).then_some(Aside::Notice)
}

/// The HTTP status of its provider, as in `(HTTP 401)` or `Last error: 503 The server is overloaded`.
fn status(words: &str) -> Option<i64> {
    let behind = |mark: &str| words.split_once(mark)?.1.get(..3)?.parse().ok();
    behind("(HTTP ").or_else(|| behind("Last error: "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::usage::Class;

    #[test]
    fn an_error_has_the_class_of_its_status_and_of_its_words() {
        for (piece, class) in [
            (
                "Error: Authentication failed with provider at http://host/v1 (HTTP 401).\n  Check it.",
                Class::Auth,
            ),
            ("Error: Model 'm' not found on provider at http://host/v1 (HTTP 404).", Class::Model),
            ("Error: Failed; retried 5 times Last error: 503 It is overloaded", Class::Overload),
            ("Error: Failed; retried 5 times Last error: 429 Wait", Class::Limit),
            ("Error: \u{1f980}", Class::Other),
        ] {
            let Some(Aside::Error(fault)) = aside(piece) else { panic!("{piece}") };
            assert_eq!(fault.class, class, "{piece}");
        }
        assert_eq!(aside("Info: Request failed. Retrying..."), Some(Aside::Notice));
        for text in ["", "Info: I go on", "an Error: x", "Errors: x"] {
            assert_eq!(aside(text), None, "{text}");
        }
    }
}
