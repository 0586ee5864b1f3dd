//! The monitors of a pane: they connect, hear what has happened so far and what happens next, and may go at any time.

use std::io::{self, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::event::{PollFd, PollFlags};

use super::order::{Heard, Order, heard};
use crate::process::note::SupervisorNote;
use crate::process::pane_folder::PaneFolder;

/// So many may listen at a time; one more takes the place of the first.
const MOST: usize = 32;

/// Who listens to the wrapper of a pane.
pub(super) struct Audience {
    folder: PaneFolder,
    door: UnixListener,
    listeners: Vec<UnixStream>,
    /// All that was said so far, as lines.
    said: String,
}

impl Audience {
    /// Opens the door.
    pub(super) fn new(folder: PaneFolder) -> io::Result<Self> {
        let door = folder.listen()?;
        Ok(Self { folder, door, listeners: Vec::new(), said: String::new() })
    }

    /// Tells all of them, after it is in the folder: who comes too late for the one finds the other.
    pub(super) fn report(&mut self, note: &SupervisorNote) {
        let line = note.to_line();
        self.said += &line;
        if !matches!(note, SupervisorNote::Started(_)) {
            // Without room on the disk only those hear of it that listen.
            let _ = self.folder.keep(&self.said);
        }
        self.listeners.retain(|mut listener| listener.write_all(line.as_bytes()).is_ok());
        if note.is_last() {
            self.let_in();
            self.folder.close();
        }
    }

    /// The most urgent order of all of them. That one leaves is no order.
    pub(super) fn order(&mut self) -> Option<Order> {
        self.let_in();
        let mut most = None;
        self.listeners.retain(|listener| match heard(listener) {
            Heard::Order(order) => {
                most = most.max(order);
                true
            }
            Heard::Closed => false,
        });
        most
    }

    fn let_in(&mut self) {
        while let Ok((mut listener, _)) = self.door.accept() {
            // One that does not read what it is told must not hold us.
            let greeted =
                listener.set_nonblocking(true).and_then(|()| listener.write_all(self.said.as_bytes()));
            if greeted.is_ok() {
                self.listeners.push(listener);
            }
            if self.listeners.len() > MOST {
                self.listeners.remove(0);
            }
        }
    }

    pub(super) fn descriptors(&self) -> Vec<PollFd<'_>> {
        let door = PollFd::new(&self.door, PollFlags::IN);
        let listeners = self.listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN));
        std::iter::once(door).chain(listeners).collect()
    }
}
