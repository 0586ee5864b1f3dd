//! An agent's reply: filters, sigils, usage, and the verdict about them.
//!
//! Bytes of an agent's stdout go into a [`decode::Decoder`]; assistant text, lines for the display and
//! [`usage::UsageNote`]s come out. [`speech::Speech`] and [`usage::Usage`] fold them, and [`verdict::judge`] decides
//! whether the attempt succeeded.

pub mod child;
pub mod decode;
pub mod filter;
pub(crate) mod line;
pub mod lines;
mod reset;
pub mod show;
pub mod sigil;
pub mod speech;
pub mod usage;
pub mod verdict;

use decode::Item;
use speech::Speech;
use usage::Usage;

/// The reply of one attempt: a fold over its [`Item`]s.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// Sigils in the assistant's own text, message by message.
    pub speech: Speech,
    /// The agent's reports about its run.
    pub usage: Usage,
    /// Whether the assistant said something that is not blank.
    pub said: bool,
}

impl Reply {
    /// Adds the next item.
    pub fn fold(&mut self, item: &Item) {
        match item {
            Item::Text(text) => {
                self.said |= !text.trim().is_empty();
                self.speech.say(text);
            }
            Item::Note(note) => {
                self.speech.note(note);
                self.usage.fold(note);
            }
            Item::Show(_) => {}
        }
    }
}
