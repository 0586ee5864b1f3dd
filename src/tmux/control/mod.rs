//! A connection to a tmux server that hears what happens to a pane and asks without starting a process each time: a client
//! of tmux in control mode, one for each worker.
//!
//! The client is our child and nothing but a go-between: tmux itself writes to our socket, and ends the client when that is
//! closed, also by our death. But it waits until all that it had to say is read. With the output of panes on the connection,
//! the death of a monitor while its agent is loud would leave a client that never ends, a server that never does, and an agent
//! that is held for ever, as tmux (3.3a) does not read a pane whose only client does not listen, `pause-after` or not. So the
//! client gets no output. It is told each second whether there was some, which costs the same however loud an agent is. What was
//! answered at the very moment of our death can still keep it: it carries the mark of the run, by which it is ended then, when the
//! lock is taken the next time.

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
use crate::process::sweep::RUN_MARK;
use crate::threads;

/// What happens to a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something was written to its window by then. Told about once a second as long as it is, and once more when no more
    /// comes: who looks then sees all of it.
    Painted(Instant),
    /// Its window is closed, or was: a user may have moved the pane to another one. Look whether it is there.
    WindowClosed,
    /// The connection is, with the reason where there is one: the client or the whole server was killed, or the session is
    /// over. Nothing follows.
    Closed(String),
}

/// How the client is attached: it has no say about the size of the window, which is that of the user's terminal, and hears no
/// output.
const FLAGS: &str = "ignore-size,no-output";
/// What our subscription is called.
const PAINTED: &str = "painted";

/// The connection. Dropping it closes it, and waits until the client has left.
#[derive(Debug)]
pub struct Control {
    server: Server,
    link: Arc<Link>,
    /// `None` when it was waited for.
    reader: Option<JoinHandle<()>>,
}

impl Control {
    /// Connects, and has a thread tell `hear` what happens from here on. What takes long is not for `hear` to do. The client is
    /// marked as one of this `run`, where there is one.
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
            // Another server may have the path of that one.
            Words::new(["display-message", "-p", "#{pid}"]),
        ]);
        let answer = answer.map_err(never_made)?;
        if answer != [window.server.pid.to_string()] {
            return Err(TmuxError::Gone("this is another server".to_owned()));
        }
        Ok(control)
    }
}

/// A connection that is closed before it is of use leads to nothing that is still there.
fn never_made(error: TmuxError) -> TmuxError {
    match error {
        TmuxError::Closed(why) => TmuxError::Gone(why),
        error => error,
    }
}

/// With the socket as its stdin and stdout, which nobody else has open when this returns.
fn start_client(window: &Window, run: Option<&str>, socket: UnixStream) -> io::Result<Child> {
    let mut command = window.server().command();
    command.envs(run.map(|run| (RUN_MARK, run)));
    // Variables of ours would become the session's, or those of a server that it starts.
    command.args(["-N", "-C", "attach-session", "-E", "-f", FLAGS, "-t", &window.session]);
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
        // Others are told that it leaves.
        let _turn = self.server.turn();
        self.link.close();
        if let Some(reader) = self.reader.take() {
            // A panic of its own is told by then.
            let _ = reader.join();
        }
    }
}
