//! Requests to loops, in threads of their own, because a loop may take a moment to answer.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::events::Waker;
use crate::commands::output::Said;
use crate::commands::{attempt, control, resume};
use crate::record::lookup::Loop;
use crate::threads;
use crate::view::watch::keys::Deed;
use crate::view::watch::model::Model;

/// The pending requests and their answers.
pub(super) struct Deeds {
    send: Sender<(String, bool)>,
    told: Receiver<(String, bool)>,
    waker: Waker,
}

impl Deeds {
    pub(super) fn new(waker: Waker) -> Self {
        let (send, told) = channel();
        Self { send, told, waker }
    }

    /// Sends a request to a loop, as the verb of that name does.
    pub(super) fn start(&self, found: Loop, deed: Deed, model: &mut Model) {
        let (send, waker) = (self.send.clone(), self.waker.another());
        let asked = threads::start(move || {
            // The screen may be gone.
            let _ = send.send(told(ask(&found, &deed)));
            waker.wake();
        });
        match asked {
            Ok(_) => model.tell("asked, waiting for its answer …", false),
            Err(error) => model.tell(error.to_string(), true),
        }
    }

    /// Shows the answers; returns whether there were any.
    pub(super) fn tell(&self, model: &mut Model) -> bool {
        let mut has_come = false;
        for (text, is_trouble) in self.told.try_iter() {
            model.tell(text, is_trouble);
            has_come = true;
        }
        has_come
    }
}

fn ask(found: &Loop, deed: &Deed) -> anyhow::Result<Vec<Said>> {
    attempt::check_steering(match deed {
        Deed::Pause => "pause",
        Deed::Resume => "resume",
        Deed::Cancel => "cancel",
        Deed::CancelNow => "cancel --now",
        Deed::Note(_) => "note",
    })?;
    match deed {
        Deed::Pause => control::hold(found),
        Deed::Resume => resume::go_on(found, None),
        Deed::Cancel => control::end(found, false, &format!("{}: ", found.name)),
        Deed::CancelNow => control::end(found, true, &format!("{}: ", found.name)),
        Deed::Note(text) => control::give(found, text),
    }
}

/// The answer in one line, and whether it is a problem.
fn told(said: anyhow::Result<Vec<Said>>) -> (String, bool) {
    match said {
        Err(error) => (format!("{error:#}"), true),
        Ok(said) if said.is_empty() => ("it has ended meanwhile".to_owned(), true),
        Ok(said) => {
            let is_trouble = said.iter().any(|said| matches!(said, Said::Warning(_)));
            let texts = said.into_iter().map(|said| match said {
                Said::Answer(text) | Said::Remark(text) | Said::Warning(text) => text,
            });
            (texts.collect::<Vec<_>>().join("; "), is_trouble)
        }
    }
}
