//! A connection to a tmux server that reports events of a pane and runs commands without a new process each time: a
//! tmux client in control mode, one for each worker.
//!
//! The client is our child and only a go-between: tmux itself writes to our socket, and ends the client when that is
//! closed, also by our death. But it first waits until all its output is read. If panes' output were on the
//! connection, the death of a monitor while its agent is printing would leave a client that never ends, a server that
//! never ends, and an agent that is blocked for ever: tmux (3.3a) does not read a pane whose only client does not
//! listen, with or without `pause-after`. So the client gets no output. Instead tmux reports once per second whether
//! there was some, at the same cost for any amount of output. An answer at the very moment of our death can still
//! block the client: it carries the mark of the run, so it is ended when the lock is taken the next time.

mod link;
pub mod parser;
mod reader;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use link::Link;
use reader::Reader;

use super::error::TmuxError;
use super::server::Server;
use super::window::Window;
use super::{Asks, Words};
use crate::platform::mark::RUN_MARK;
use crate::threads;

/// An event of a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something was written to its window until then. Reported about once a second while there is output, and once
    /// more afterwards: a reader that reads then sees all of it.
    Painted(Instant),
    /// Its window is or was closed, or a user has moved the pane to another one. Check whether the pane still exists.
    WindowClosed,
    /// The connection was closed, with the reason if there is one: the client or the server was killed, or the
    /// session has ended. No event follows.
    Closed(String),
}

/// The flags of the client: it does not affect the size of the window, which follows the user's terminal, and gets no
/// output.
const FLAGS: &str = "ignore-size,no-output";
/// The name of our subscription.
const PAINTED: &str = "painted";

/// The connection. Dropping it closes it, and waits until the client has exited.
#[derive(Debug)]
pub struct Control {
    server: Server,
    link: Arc<Link>,
    /// `None` after it was joined.
    reader: Option<JoinHandle<()>>,
}

impl Control {
    /// Connects, and starts a thread that passes events to `hear`, which must return quickly. The client gets the
    /// mark of this `run`, if there is one.
    ///
    /// # Errors
    /// If the window is gone, or tmux does not answer.
    pub fn attach(
        window: &Window,
        run: Option<&str>,
        hear: impl FnMut(Event) + Send + 'static,
    ) -> Result<Self, TmuxError> {
        window.require_server()?;
        let (ours, theirs) = UnixStream::pair()?;
        let server = window.server();
        let turn = server.turn_alone();
        let child = start_client(window, run, theirs)?;
        let (link, made) = Link::new(ours, server.options())?;
        let link = Arc::new(link);
        let reader = Reader::new(Arc::clone(&link), child, window, Box::new(hear))?;
        let reader = threads::start(move || reader.run())?;
        let control = Self { server, link, reader: Some(reader) };
        let is_made = control.link.await_made(&made);
        drop(turn);
        is_made.map_err(never_made)?;
        let subscription = format!("{PAINTED}:{}:#{{window_activity}}", window.pane);
        let answer = control.ask(&[
            Words::new(["refresh-client", "-B", &subscription]),
            // Another server may have the same path by now.
            Words::new(["display-message", "-p", "#{pid}"]),
        ]);
        let answer = answer.map_err(never_made)?;
        if answer != [window.server.pid.to_string()] {
            return Err(TmuxError::Gone("this is another server".to_owned()));
        }
        Ok(control)
    }
}

/// If the connection is closed before it is usable, the window counts as gone.
fn never_made(error: TmuxError) -> TmuxError {
    match error {
        TmuxError::Closed(why) => TmuxError::Gone(why),
        error => error,
    }
}

/// Its stdin and stdout are the socket, which no other process has open when this returns.
fn start_client(window: &Window, run: Option<&str>, socket: UnixStream) -> io::Result<Child> {
    let mut command = window.server().command();
    command.envs(run.map(|run| (RUN_MARK, run)));
    // The session, or a server that it starts, would inherit our variables.
    command.args(["-N", "-C", "attach-session", "-E", "-f", FLAGS, "-t", &window.session]);
    command.stdout(OwnedFd::from(socket.try_clone()?)).stdin(OwnedFd::from(socket)).stderr(Stdio::null());
    // Out of reach of a Ctrl+C at the terminal.
    command.process_group(0).spawn()
}

impl Asks for Control {
    fn ask(&self, commands: &[Words]) -> Result<Vec<String>, TmuxError> {
        self.link.ask(commands)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // tmux tells other clients when this one leaves.
        let _turn = self.server.turn();
        self.link.close();
        if let Some(reader) = self.reader.take() {
            // A panic of the thread has been reported by then.
            let _ = reader.join();
        }
    }
}
