//! The monitors of a pane: they connect, receive all notes so far and those that follow, and may leave at any time.

use std::io::{self, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::event::{PollFd, PollFlags};

use super::order::{Heard, Order, heard};
use crate::process::note::SupervisorNote;
use crate::process::pane_folder::PaneFolder;

/// The most monitors at a time; another one replaces the first.
const MOST: usize = 32;

/// The monitors of the wrapper of a pane.
pub(super) struct Audience {
    folder: PaneFolder,
    door: UnixListener,
    listeners: Vec<UnixStream>,
    /// All notes so far, as lines.
    said: String,
}

impl Audience {
    /// Listens for monitors.
    pub(super) fn new(folder: PaneFolder) -> io::Result<Self> {
        let door = folder.listen()?;
        Ok(Self { folder, door, listeners: Vec::new(), said: String::new() })
    }

    /// Sends a note to all of them, after it is in the folder: a monitor that connects too late finds it there.
    pub(super) fn report(&mut self, note: &SupervisorNote) {
        let line = note.to_line();
        self.said += &line;
        if !matches!(note, SupervisorNote::Started(_)) {
            // If the disk is full, only connected monitors get it.
            let _ = self.folder.keep(&self.said);
        }
        self.listeners.retain(|mut listener| listener.write_all(line.as_bytes()).is_ok());
        if note.is_last() {
            self.let_in();
            self.folder.close();
        }
    }

    /// The most urgent order of all of them. A monitor that leaves gives no order.
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
            // A monitor that does not read must not block us.
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
