//! A connection to a tmux server that hears what happens to a pane and asks without starting a process each time: a client
//! of tmux in control mode, one for each worker, as it hears every pane of its session.
//!
//! The client is our child and nothing but a go-between: tmux itself writes to our socket, and ends the client when that is
//! closed, also by our death. It has no say about the size of the window, which is that of the user's terminal.

mod link;
mod painting;
pub mod parser;
mod reader;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Instant;

use link::Link;
use reader::Reader;

use super::error::TmuxError;
use super::window::Window;
use super::{Asks, Words};
use crate::threads;

/// What happens to a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something was written to it, or may have been, by then. Told five times a second at most, and after the last time for
    /// sure.
    Painted(Instant),
    /// Its window is closed.
    WindowClosed,
    /// The connection is, with the reason where there is one: the client or the whole server was killed, or the session is
    /// over. Nothing follows.
    Closed(String),
}

/// How the client is attached: the user's terminal alone has a size, and when we are slow for a second, tmux drops what we
/// have not heard instead of keeping it for us, or the program waiting. We look at the screen then.
const FLAGS: &str = "ignore-size,pause-after=1";

/// The connection. Dropping it closes it.
#[derive(Debug)]
pub struct Control {
    link: Arc<Link>,
}

impl Control {
    /// Connects, and has a thread tell `hear` what happens from here on. What takes long is not for `hear` to do.
    ///
    /// # Errors
    /// When the window is gone, or tmux does not answer.
    pub fn attach(window: &Window, hear: impl FnMut(Event) + Send + 'static) -> Result<Self, TmuxError> {
        window.require_server()?;
        let (ours, theirs) = UnixStream::pair()?;
        let child = start_client(window, theirs)?;
        let link = Arc::new(Link::new(ours, window.server().options())?);
        let reader = Reader::new(Arc::clone(&link), child, window, Box::new(hear))?;
        threads::start(move || reader.run())?;
        let control = Self { link };
        // Another server may have the path of that one.
        let answer = control.ask(&[Words::new(["display-message", "-p", "#{pid}"])]);
        match answer {
            Ok(lines) if lines == [window.server.pid.to_string()] => Ok(control),
            Ok(_) => Err(TmuxError::Gone("this is another server".to_owned())),
            // There is no such session.
            Err(TmuxError::Closed(why)) => Err(TmuxError::Gone(why)),
            Err(error) => Err(error),
        }
    }
}

/// With the socket as its stdin and stdout, which nobody else has open when this returns.
fn start_client(window: &Window, socket: UnixStream) -> io::Result<Child> {
    let mut command = window.server().command();
    // Variables of ours would become the session's.
    command.args(["-C", "attach-session", "-E", "-f", FLAGS, "-t", &window.session]);
    command.stdout(OwnedFd::from(socket.try_clone()?)).stdin(OwnedFd::from(socket)).stderr(Stdio::null());
    // Not in reach of a Ctrl+C at the terminal.
    command.process_group(0).spawn()
}

impl Asks for Control {
    fn ask(&self, commands: &[Words]) -> Result<Vec<String>, TmuxError> {
        self.link.ask(commands)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.link.close();
    }
}
