//! A monitor's end of a program in a pane: like [`supervised`](super::supervised), but the program outlives its
//! monitor.
//!
//! The pane's first process is our *wrapper*, a [`supervisor`](super::supervisor) that tmux has started. The wrapper
//! and its monitors meet in a folder. To start one: [`prepare`] the folder, make tmux start our executable with
//! [`wrapper_args`], and [await](Pane::await_start) it. Later monitors [connect](Pane::connect), or read how it
//! [ended](ended). Monitors may come and go, and several may listen; only an order ends the program.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::ops::Not;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::launch::Launch;
use super::note::SupervisorNote;
use super::pane_folder::PaneFolder;
use super::supervised::Notes;
use super::supervisor::{ORDER_KILL, ORDER_STOP, PANE, VERB};
use super::sweep::sweep_pane;
use crate::files::FileError;
use crate::platform::handle::ProcessHandle;
use crate::text::digest::sha256;

/// How long a wrapper may take to exit after its last note, or after being told that no monitor waits.
const LEAVE_LIMIT: Duration = Duration::from_secs(6);

/// A program cannot be started in a pane, or its state is unknown.
#[derive(Debug, thiserror::Error)]
pub enum PaneError {
    /// The folder of the pane already has a running program.
    #[error("a program still runs in the pane of {folder}: end it first", folder = .0.display())]
    Runs(PathBuf),
    /// The launch cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Words or variables that cannot be passed to a program.
    #[error("cannot start '{program}': {source}")]
    Program {
        /// The program as configured.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The wrapper did not start.
    #[error("nothing was started in the pane of {folder} within {seconds} s: see what the pane shows", folder = .folder.display())]
    NeverCame {
        /// The folder of the pane.
        folder: PathBuf,
        /// How long it was awaited.
        seconds: u64,
    },
    /// Another system error.
    #[error("cannot reach the program in the pane of {folder}: {source}", folder = .folder.display())]
    System {
        /// The folder of the pane.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl PaneError {
    fn at(folder: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::System { folder: folder.to_owned(), source }
    }
}

/// Writes the launch for the wrapper in `folder`, an absolute path to an existing folder that only we use. `env` of
/// the launch is the program's whole environment, and `mark` must be unique to the pane and the program for ever: it
/// identifies the processes that a lost wrapper leaves. The wrapper removes the file when it has read it.
///
/// # Errors
/// Also if a program runs there.
pub fn prepare(folder: &Path, launch: &Launch) -> Result<(), PaneError> {
    let failed = PaneError::at(folder);
    let message = launch.to_message().map_err(|source| {
        let program = launch.program.to_string_lossy().into_owned();
        PaneError::Program { program, source }
    })?;
    let opened = PaneFolder::open(folder).map_err(&failed)?;
    if opened.connect().map_err(&failed)?.is_some() {
        return Err(PaneError::Runs(folder.to_owned()));
    }
    Ok(opened.prepare(&message)?)
}

/// Removes the launch of a wrapper that could not be started. It may hold secrets.
///
/// # Errors
/// If it cannot be removed.
pub fn discard(folder: &Path) -> Result<(), PaneError> {
    PaneFolder::open(folder).and_then(|folder| folder.take_back()).map_err(PaneError::at(folder))
}

/// The arguments that make our executable the wrapper of this folder. The last one is [`wrapper_mark`].
#[must_use]
pub fn wrapper_args(folder: &Path) -> [OsString; 4] {
    [VERB.into(), PANE.into(), folder.into(), wrapper_mark(folder).into()]
}

/// A word that only the wrappers of this folder have in their command line: tmux knows it of a pane from its creation
/// on. It has only letters, digits and `-`.
#[must_use]
pub fn wrapper_mark(folder: &Path) -> String {
    format!("pane-{}", &sha256(folder.as_os_str().as_bytes())[..32])
}

/// The known end of a program without its wrapper. If the wrapper has died without a last note, it was killed.
///
/// # Errors
/// If the folder cannot be read.
pub fn ended(folder: &Path) -> Result<Vec<SupervisorNote>, PaneError> {
    PaneFolder::open(folder).and_then(|folder| folder.kept()).map_err(PaneError::at(folder))
}

/// Ends the processes that a killed wrapper has left, identified by the pane's mark. Returns how many there were.
#[must_use]
pub fn sweep(mark: &str) -> usize {
    sweep_pane(mark)
}

/// A program in a pane whose wrapper lives. Dropping this leaves the program running.
#[derive(Debug)]
pub struct Pane {
    wrapper: ProcessHandle,
    control: UnixStream,
    /// KILL has been ordered.
    killed: bool,
}

impl Pane {
    /// Connects to the wrapper of this folder; `None` if there is none. The notes begin with the first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn connect(folder: &Path) -> Result<Option<(Self, PaneNotes)>, PaneError> {
        let opened = PaneFolder::open(folder).map_err(PaneError::at(folder))?;
        Self::try_connect(&opened, folder).map_err(PaneError::at(folder))
    }

    fn try_connect(opened: &PaneFolder, folder: &Path) -> io::Result<Option<(Self, PaneNotes)>> {
        let Some(control) = opened.connect()? else { return Ok(None) };
        let Ok(wrapper) = ProcessHandle::of_peer(&control) else { return Ok(None) };
        let heard = Some(control.try_clone()?.into());
        let notes = PaneNotes { heard, ..PaneNotes::none(folder) };
        Ok(Some((Self { wrapper, control, killed: false }, notes)))
    }

    /// Waits until the newly started wrapper listens, which is this process if that is known. A wrapper that has
    /// already ended is known by its notes alone; it has none if it was killed before it listened.
    ///
    /// # Errors
    /// If it does not come within `limit`; its launch is withdrawn then.
    pub fn await_start(
        folder: &Path,
        wrapper: Option<u32>,
        limit: Duration,
    ) -> Result<(Option<Self>, PaneNotes), PaneError> {
        let failed = PaneError::at(folder);
        let opened = PaneFolder::open(folder).map_err(&failed)?;
        let look = || {
            if let Some((pane, notes)) = Self::try_connect(&opened, folder)? {
                return Ok(Some((Some(pane), notes)));
            }
            let notes = PaneNotes { kept: opened.kept()?.into(), ..PaneNotes::none(folder) };
            Ok((!notes.kept.is_empty()).then_some((None, notes)))
        };
        let handle = wrapper.map_or(Ok(None), ProcessHandle::of_pid).map_err(&failed)?;
        // It may have ended before it could be opened.
        let limit = if wrapper.is_some() && handle.is_none() { Duration::ZERO } else { limit };
        let found = opened.wait_for(handle.as_ref(), Instant::now() + limit, look).map_err(&failed)?;
        if let Some(found) = found {
            return Ok(found);
        }
        let _ = opened.take_back();
        let lives =
            handle.map_or(Ok(wrapper.is_none()), |wrapper| wrapper.ends_by(Instant::now()).map(Not::not));
        if lives.map_err(&failed)? {
            return Err(PaneError::NeverCame { folder: folder.to_owned(), seconds: limit.as_secs() });
        }
        Ok((None, PaneNotes::none(folder)))
    }

    /// Process id of the wrapper; everything the program starts is below it.
    #[must_use]
    pub fn wrapper_pid(&self) -> u32 {
        self.wrapper.pid()
    }

    /// Asks for the ladder: INT, TERM, KILL, then the same for leftovers. The notes report the end.
    pub fn stop(&mut self) {
        self.order(ORDER_STOP);
    }

    /// Asks for KILL at once, for the program and everything below it.
    pub fn kill(&mut self) {
        // Once is enough; a wrapper that does not read must not block us.
        if !std::mem::replace(&mut self.killed, true) {
            self.order(ORDER_KILL);
        }
    }

    /// Continues a stopped wrapper.
    pub fn go_on(&self) {
        self.wrapper.send(Signal::CONT);
    }

    fn order(&mut self, order: u8) {
        // A dead wrapper needs no order.
        let _ = self.control.write_all(&[order]);
        self.go_on();
    }

    /// Call this when the program should have ended: its notes have ended, or do not end. A wrapper that does not
    /// exit by itself is killed. `is_gone`: there was a last note; otherwise processes with `mark` are swept.
    pub fn finish(mut self, is_gone: bool, mark: &str) {
        if !is_gone {
            self.kill();
        }
        if !self.wrapper.ends_by(Instant::now() + LEAVE_LIMIT).unwrap_or(false) {
            self.wrapper.send(Signal::KILL);
        }
        if !is_gone {
            let _ = sweep_pane(mark);
        }
    }
}

/// The notes of a wrapper, including those that it has kept in the folder if it ended before they were received. Read
/// them in their own thread.
#[derive(Debug)]
pub struct PaneNotes {
    /// `None` after its end.
    heard: Option<Notes>,
    /// How many were received.
    count: usize,
    /// The kept ones.
    kept: VecDeque<SupervisorNote>,
    folder: PathBuf,
}

impl PaneNotes {
    fn none(folder: &Path) -> Self {
        Self { heard: None, count: 0, kept: VecDeque::new(), folder: folder.to_owned() }
    }
}

impl Iterator for PaneNotes {
    type Item = SupervisorNote;

    /// Blocks for the next note; `None` after the last one, or if the wrapper was killed.
    fn next(&mut self) -> Option<SupervisorNote> {
        if let Some(notes) = &mut self.heard {
            if let Some(note) = notes.next() {
                self.count += 1;
                return Some(note);
            }
            if !notes.are_over() {
                self.kept = ended(&self.folder).unwrap_or_default().into_iter().skip(self.count).collect();
            }
            self.heard = None;
        }
        self.kept.pop_front()
    }
}
