//! The assistant's text, message by message: claims count only in its last message.
//!
//! The *last message* is the text after the last tool call; if there is none, the text before that call. A message
//! ends when one with another id begins (even if it repeats interrupted text), when a tool call gets its result, and
//! at the end of a turn. A stream without these is one message.

use super::sigil::{SigilScanner, Sigils};
use super::usage::UsageNote;

/// The sigils of the assistant's text: a fold over its text and the notes in between.
#[derive(Clone, Debug, Default)]
pub struct Speech {
    /// The current message, if it has text or calls a tool.
    last: SigilScanner,
    /// The sigils of earlier messages.
    before: Sigils,
    /// The id of the last message.
    id: String,
    /// Whether the message has ended: later text belongs to another one.
    ended: bool,
    /// Whether it has called a tool: later text comes after its last words.
    called: bool,
    /// Its own calls without a result.
    calls: Vec<String>,
}

impl Speech {
    /// Adds text of the assistant, without a separator.
    pub fn say(&mut self, text: &str) {
        if self.ended || self.called {
            if text.trim().is_empty() {
                return;
            }
            self.begin();
        }
        self.last.push(text);
    }

    /// Adds a note.
    pub fn note(&mut self, note: &UsageNote) {
        if let Some(id) = &note.message {
            self.block(id);
        }
        if let Some(call) = note.begun().filter(|_| !note.sub_agent) {
            self.call(call);
        }
        if let Some(call) = &note.tool_finished {
            self.result(call);
        }
        self.ended |= note.is_final;
    }

    /// The sigils: claims of the last message, and everything else as mentions.
    #[must_use]
    pub fn sigils(&self) -> Sigils {
        let mut sigils = self.before.clone();
        self.last.sigils().into_iter().for_each(|said| sigils.add(said));
        sigils
    }

    /// Begins a block of text in the message with this id.
    fn block(&mut self, id: &str) {
        if id.is_empty() || id != self.id {
            self.ended = true;
            id.clone_into(&mut self.id);
        } else {
            // A block is on lines of its own.
            self.last.push("\n");
        }
    }

    fn call(&mut self, id: &str) {
        if self.calls.iter().any(|call| call == id) {
            return;
        }
        if self.ended {
            self.begin();
        }
        self.called = true;
        self.calls.push(id.to_owned());
    }

    fn result(&mut self, id: &str) {
        let calls = self.calls.len();
        self.calls.retain(|call| call != id);
        // When the assistant continues, it has read the result. Results of sub-agents' calls are not for it.
        self.ended |= self.calls.len() < calls;
    }

    fn begin(&mut self) {
        let last = self.last.begin();
        last.mentioned().for_each(|said| self.before.add(said));
        (self.ended, self.called) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reply::sigil::COMPLETE;

    /// A stream in short notation: `m1` begins a block of message 1, `+a` calls tool a, `-a` is its result, `s+a` a
    /// sub-agent's call, `.` the end of a turn, `!` the marker, `?` other text, `_` a blank.
    fn take(speech: &mut Speech, word: &str) {
        let mut note = UsageNote::default();
        let (sign, id) = word.split_at(1);
        match sign {
            "m" => note.message = Some(id.to_owned()),
            "+" => note.tool_started = Some(id.to_owned()),
            "s" => (note.tool_started, note.sub_agent) = (Some(id[1..].to_owned()), true),
            "-" => note.tool_finished = Some(id.to_owned()),
            "." => note.is_final = true,
            _ => {}
        }
        if let Some(text) = text(word) {
            speech.say(text);
        }
        speech.note(&note);
    }

    fn text(word: &str) -> Option<&'static str> {
        match word {
            "!" => Some(COMPLETE),
            "?" => Some("What next?"),
            "_" => Some(" \n"),
            _ => None,
        }
    }

    fn speech(stream: &str) -> Speech {
        let mut speech = Speech::default();
        stream.split_whitespace().for_each(|word| take(&mut speech, word));
        speech
    }

    #[test]
    fn claims_count_in_the_last_message() {
        for (stream, claimed) in [
            ("!", true),
            ("! .", true),
            ("? !", true),
            ("m1 ? m1 !", true),
            ("m1 ! m1 ?", true),
            ("! +a -a", true),
            ("! +a -a .", true),
            ("! +a -a _ .", true),
            ("! +a +b -a -b .", true),
            ("! +a -a ?", false),
            ("? +a -a !", true),
            ("! +a ?", false),
            ("! +a -a +b -b", false),
            ("m1 ! m1 +a -a m2 +b -b", false),
            ("! +a -a +b -b !", true),
            ("! . ? .", false),
            ("? . ! .", true),
            ("! . .", true),
            ("! . +a -a .", false),
            ("m1 ! m2 ?", false),
            ("m1 ? m2 !", true),
            ("m1 ! m2", true),
            ("m ! m ?", false),
            ("? s+a ! -a", true),
            ("! s+a -a s+b -b .", true),
            ("! -x ?", false),
            ("", false),
        ] {
            let sigils = speech(stream).sigils();
            assert_eq!(sigils.complete(), claimed, "{stream}");
            let mentioned = !claimed && stream.contains('!');
            assert_eq!(sigils.mentions().count(), usize::from(mentioned), "{stream}");
        }
    }

    proptest! {
        #[test]
        fn any_split_of_the_words_says_the_same(
            words in prop::collection::vec(prop_oneof![
                Just("!"), Just("?"), Just(" "), Just("m1"), Just("m2"), Just("+a"), Just("-a"), Just("+b"), Just("-b"),
                Just("s+c"), Just("-c"), Just("."),
            ], 1..20),
            size in 1_usize..7,
        ) {
            let whole = speech(&words.join(" "));
            let mut pieces = Speech::default();
            for word in words {
                let Some(text) = text(word) else {
                    take(&mut pieces, word);
                    continue;
                };
                text.as_bytes().chunks(size).for_each(|piece| pieces.say(str::from_utf8(piece).unwrap()));
            }
            prop_assert_eq!(whole.sigils(), pieces.sigils());
        }
    }
}
