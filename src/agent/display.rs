//! The user's own rendering of an agent's stream for the live display.
//!
//! It is cosmetic: a thread of its own feeds it, and one that fails, hangs or floods is dropped with one notice
//! while the agent's stream goes on.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::message::Message;
use crate::engine::inbox::Port;
use crate::process::supervised::{Launch, Supervised, pump};
use crate::reply::child::FilterChild;
use crate::reply::decode::{Show, split_lines};

/// How many chunks of the agent's output may wait for a display that is slow.
const QUEUE: usize = 64;

/// Who renders the agent's stream.
#[derive(Debug, Clone)]
pub enum DisplayRoute {
    /// The preset's display filter, as part of decoding.
    Preset,
    /// Nobody: the stream is shown as it comes.
    Raw,
    /// A jq program of the user's, in a child of ours.
    Program(String),
    /// A command of the user's for `sh -c`; what it prints is shown.
    Shell(Launch),
}

/// Where an attempt's stdout goes for display.
#[derive(Debug)]
pub(super) enum Feed {
    /// Nowhere: decoding takes care of it.
    Nothing,
    /// To the display as it is.
    Raw,
    /// To a thread that serves the user's filter.
    Thread(SyncSender<Arc<[u8]>>),
    /// The user's filter is given up.
    Dropped,
}

impl DisplayRoute {
    /// Starts what one attempt needs.
    pub(super) fn start(&self, port: &Port<Message>) -> Feed {
        match self {
            Self::Preset => Feed::Nothing,
            Self::Raw => Feed::Raw,
            Self::Program(program) => {
                let child = FilterChild::new(program);
                serve(port, move |chunks, port| feed_program(child, &chunks, &port))
            }
            Self::Shell(launch) => {
                let launch = launch.clone();
                serve(port, move |chunks, port| feed_shell(&launch, &chunks, &port))
            }
        }
    }
}
