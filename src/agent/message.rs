//! What the small threads of an attempt bring to the one that decides.

use std::sync::Arc;

use super::codec::Decoded;
use crate::engine::event::Stream;
use crate::process::note::SupervisorNote;
use crate::reply::decode::Item;
use crate::reply::show::Show;

/// One thing that a thread of an attempt has.
#[derive(Debug)]
pub(super) enum Message {
    /// Bytes of the agent, cut anywhere.
    Bytes(Stream, Arc<[u8]>),
    /// This was asked of the agent before its prompt, and its answer is waited for; `None`: that of none any more.
    Asked(Option<&'static str>),
    /// What the bytes so far mean.
    Items(Vec<Item>),
    /// One of the agent's pipes is at its end.
    Closed,
    /// The supervisor said something.
    Note(SupervisorNote),
    /// The supervisor says nothing any more.
    NotesEnded,
    /// The user's own display filter printed something.
    Display(Show),
    /// The user's own display filter is dropped, for this reason.
    DisplayLost(String),
    /// The user's own display filter is through.
    DisplayEnded,
    /// The stream has been decoded to its end; a filter that decides may have died on the way.
    Decoded(Decoded),
}
