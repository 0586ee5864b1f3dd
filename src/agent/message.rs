//! The messages of an attempt's small threads to the deciding one.

use std::sync::Arc;

use super::codec::Decoded;
use crate::engine::event::Stream;
use crate::process::note::SupervisorNote;
use crate::reply::decode::Item;
use crate::reply::show::Show;

/// A message of a thread of an attempt.
#[derive(Debug)]
pub(super) enum Message {
    /// Bytes of the agent, cut anywhere.
    Bytes(Stream, Arc<[u8]>),
    /// The request before the prompt whose answer is awaited; `None`: none any more.
    Asked(Option<&'static str>),
    /// The items of the bytes so far.
    Items(Vec<Item>),
    /// One of the agent's pipes has ended.
    Closed,
    /// A note of the supervisor.
    Note(SupervisorNote),
    /// The supervisor has ended.
    NotesEnded,
    /// Output of the user's display filter.
    Display(Show),
    /// The user's display filter is dropped, for this reason.
    DisplayLost(String),
    /// The user's display filter has ended.
    DisplayEnded,
    /// The stream is decoded to its end; a deciding filter may have died.
    Decoded(Decoded),
}
