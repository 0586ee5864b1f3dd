//! Reads what kimi says of itself: notices come as if they were the assistant's, and a turn that its provider has refused ends with a
//! success and without a word.

use super::error::{Aside, Fault};
use crate::reply::usage::Class;

/// Reads a piece of text, which is whole if it is one of these.
pub(super) fn aside(piece: &str) -> Option<Aside> {
    match piece {
        "Compaction cancelled." => Some(Aside::Error(Fault {
            message: "its context is full, and it could not make it smaller".to_owned(),
            class: Class::Context,
            code: 0,
        })),
        "Compacting conversation context…"
        | "Compaction is blocked by the current turn; retry when the turn is idle." => Some(Aside::Notice),
        _ if piece.starts_with("Compaction completed") => Some(Aside::Notice),
        _ => None,
    }
}

/// Why a turn has failed in which nothing follows the prompt, or what a tool has answered. Its errors but those of a login are in no
/// message.
pub(super) fn silence() -> Fault {
    let message = "it ended its turn without a word, as it does where its provider refuses a request: 'kimi -p hello' shows why";
    Fault { message: message.to_owned(), ..Fault::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_it_says_of_its_context_is_no_text() {
        assert!(
            matches!(aside("Compaction cancelled."), Some(Aside::Error(fault)) if fault.class == Class::Context)
        );
        assert_eq!(aside("Compaction completed (12 messages)."), Some(Aside::Notice));
        for text in ["", "Compaction", "I say: Compaction cancelled."] {
            assert_eq!(aside(text), None, "{text}");
        }
    }
}
