//! The thread that reads a connection.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::link::Link;
use super::parser::{Parser, Said};
use super::{Event, PAINTED};
use crate::platform::handle::ProcessHandle;
use crate::platform::ready::is_ready_by;
use crate::tmux::window::Window;

/// How many bytes are read at a time.
const CHUNK: usize = 32 << 10;
/// How long the client may take to exit after its connection is closed.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// tmux reports the second in which something was painted, but not later output in the same second, so one more event
/// follows when that second is over.
const SECOND: Duration = Duration::from_millis(1100);
/// The timeout when nothing is due.
const LONG: Duration = Duration::from_hours(1);

/// The state of the thread.
pub(super) struct Reader {
    link: Arc<Link>,
    client: Child,
    socket: UnixStream,
    window: String,
    /// Whether the command that makes the connection was answered.
    is_made: bool,
    /// When the extra event about output is due.
    again: Option<Instant>,
    hear: Box<dyn FnMut(Event) + Send>,
    /// Why the connection ends, according to tmux.
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
            window: window.window.clone(),
            is_made: false,
            again: None,
            hear,
            exit: None,
        })
    }

    /// Reads until the connection is closed.
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
            let deadline = self.again.unwrap_or_else(|| Instant::now() + LONG);
            if is_ready_by(&self.socket, PollFlags::IN, deadline)? {
                let count = match self.socket.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                parser.push(&buffer[..count], |said| self.heard(said));
            }
            if self.again.is_some_and(|again| Instant::now() >= again) {
                self.again = None;
                (self.hear)(Event::Painted(Instant::now()));
            }
        }
    }

    fn heard(&mut self, said: Said) {
        match said {
            Said::Changed(name) if name == PAINTED => {
                let now = Instant::now();
                self.again = Some(now + SECOND);
                (self.hear)(Event::Painted(now));
            }
            Said::Answer { is_ours, lines } if is_ours || !self.is_made => {
                self.is_made = true;
                self.link.answered(lines);
            }
            Said::WindowClosed(window) if window == self.window => (self.hear)(Event::WindowClosed),
            Said::Exit(why) => self.exit = Some(why),
            _ => {}
        }
    }

    /// The client exits by itself; a stopped one does not.
    fn reap(&mut self) {
        let leaves = ProcessHandle::of_child(&self.client)
            .and_then(|client| client.ends_by(Instant::now() + LEAVE_LIMIT));
        if !leaves.unwrap_or(false) {
            let _ = self.client.kill();
        }
        let _ = self.client.wait();
    }
}
