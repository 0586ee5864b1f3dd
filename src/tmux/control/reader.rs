//! The thread that listens to a connection.

use std::collections::HashSet;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::Event;
use super::link::Link;
use super::painting::{Painting, Step};
use super::parser::{Parser, Said};
use crate::process::handle::ProcessHandle;
use crate::process::ready::is_ready_by;
use crate::tmux::Words;
use crate::tmux::window::Window;

/// How many bytes are read at a time.
const CHUNK: usize = 32 << 10;
/// How long the client may take to leave when its connection is closed.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// When nothing is to be done.
const LONG: Duration = Duration::from_hours(1);

/// What the thread has.
pub(super) struct Reader {
    link: Arc<Link>,
    client: Child,
    socket: UnixStream,
    pane: String,
    window: String,
    painting: Painting,
    /// Panes of the user's in our session, which tmux was told to say nothing of.
    silenced: HashSet<String>,
    hear: Box<dyn FnMut(Event) + Send>,
    /// Why the connection ends, as tmux says.
    exit: Option<String>,
}

impl Reader {
    pub(super) fn new(
        link: Arc<Link>,
        client: Child,
        window: &Window,
        hear: Box<dyn FnMut(Event) + Send>,
    ) -> io::Result<Self> {
        Ok(Self {
            socket: link.socket.try_clone()?,
            link,
            client,
            pane: window.pane.clone(),
            window: window.window.clone(),
            painting: Painting::new(Instant::now()),
            silenced: HashSet::new(),
            hear,
            exit: None,
        })
    }

    /// Listens until the connection is closed.
    pub(super) fn run(mut self) {
        let why = match self.listen() {
            Ok(()) => self.exit.take().filter(|said| !said.is_empty()),
            Err(error) => Some(error.to_string()),
        };
        let why = why.unwrap_or_else(|| "it has ended".to_owned());
        self.link.end(&why);
        self.reap();
        (self.hear)(Event::Closed(why));
    }

    fn listen(&mut self) -> io::Result<()> {
        let mut parser = Parser::default();
        let mut buffer = vec![0; CHUNK];
        loop {
            let deadline = self.painting.next().unwrap_or_else(|| Instant::now() + LONG);
            if is_ready_by(&self.socket, PollFlags::IN, deadline)? {
                let count = match self.socket.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                parser.push(&buffer[..count], |said| self.heard(said));
            }
            let step = self.painting.due(Instant::now());
            self.take(step);
        }
    }

    fn heard(&mut self, said: Said) {
        match said {
            Said::Output { pane, bytes } if pane == self.pane => {
                let step = self.painting.wrote(bytes.len(), Instant::now());
                self.take(step);
            }
            Said::Output { pane, .. } => {
                if self.silenced.insert(pane.clone()) {
                    self.set_pane(&pane, "pause");
                }
            }
            Said::Paused(pane) if pane == self.pane => self.painting.was_paused(Instant::now()),
            Said::Answer { is_ours: true, lines } => self.link.answered(lines),
            Said::WindowClosed(window) if window == self.window => (self.hear)(Event::WindowClosed),
            Said::Exit(why) => self.exit = Some(why),
            _ => {}
        }
    }

    fn take(&mut self, step: Step) {
        let pane = self.pane.clone();
        if step.pause {
            self.set_pane(&pane, "pause");
        }
        if step.go_on {
            self.set_pane(&pane, "continue");
        }
        if step.tell {
            (self.hear)(Event::Painted(Instant::now()));
        }
    }

    /// A pane that is paused runs on, but we do not hear of it. (One that is `off` would be held when nobody else looks.)
    fn set_pane(&self, pane: &str, state: &str) {
        self.link.tell(&Words::new(["refresh-client", "-A", &format!("{pane}:{state}")]));
    }

    /// The client leaves by itself; one that was stopped does not.
    fn reap(&mut self) {
        let leaves = ProcessHandle::of_child(&self.client)
            .and_then(|client| client.ends_by(Instant::now() + LEAVE_LIMIT));
        if !leaves.unwrap_or(false) {
            let _ = self.client.kill();
        }
        let _ = self.client.wait();
    }
}
