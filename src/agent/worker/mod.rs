//! A worker: an interactive agent in a pane of tmux. It gets its prompt as from a person, and its turn ends when it exits or its
//! screen stands still.
//!
//! What ralph must know after it was killed is in a file ([`held`]): the agent goes on then, and the next ralph continues with
//! it.

pub mod held;
pub mod interrupted;
mod judge;
mod watch;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use chrono::Utc;
use held::{Given, Held};
use judge::Left;
use watch::{Message, Watch};

use super::pane::arrival::Standing;
use super::pane::done::DonePattern;
use super::pane::ready::Screens;
use super::{Timeouts, add_variables, cannot_start, tell_total};
use crate::engine::agent::{Agent, Attempt};
use crate::engine::context::Context;
use crate::engine::event::Stream;
use crate::engine::fact::Fact;
use crate::engine::inbox::{Mailbox, Port};
use crate::engine::outcome::{End, Outcome};
use crate::engine::report::Report;
use crate::engine::stop::Change;
use crate::files::FileError;
use crate::platform::calls::own_executable_for_others;
use crate::platform::stat;
use crate::presets::{self, Preset};
use crate::process::ladder::Ladder;
use crate::process::launch::Launch;
use crate::process::note::SupervisorNote;
use crate::process::pane::{self, Pane, PaneNotes};
use crate::process::walls::TurnedAway;
use crate::side_command::refused;
use crate::text::line::shell_words;
use crate::threads;
use crate::tmux::TmuxError;
use crate::tmux::control::{Control, Event as Painting};
use crate::tmux::server::Server;
use crate::tmux::window::{self, Opening, Window};

/// How often in an iteration a closed connection to its pane is opened again.
const ATTACHED_AGAIN: u32 = 100;
/// How long the wrapper may take to listen.
const COMES: Duration = Duration::from_secs(30);

/// A worker, with everything about it resolved.
#[derive(Debug)]
pub struct WorkerAgent {
    /// Its name.
    pub name: String,
    /// The tmux server.
    pub server: Server,
    /// The name of its session.
    pub session: String,
    /// The worker's folder, which is ours alone.
    pub folder: PathBuf,
    /// How its program is started, with its whole environment.
    pub launch: Launch,
    /// The rules for its screens.
    pub screens: Screens,
    /// How long it may take to be ready.
    pub ready_timeout: Duration,
    /// Whether ralph may answer that the folder can be trusted.
    pub trust: bool,
    /// The pattern that ends the loop when it is on the screen.
    pub done: Option<DonePattern>,
    /// Whether that pattern is also searched while it works.
    pub continuous: bool,
    /// How often it is nudged, and with what.
    pub heartbeat: Option<(Duration, String)>,
    /// How long an attempt may take, and how long the screen may stand still; zero: without a limit.
    pub timeouts: Timeouts,
    /// Whether it is left alone once it has its prompt.
    pub detaches: bool,
    /// Whether it has never worked: if its program ends before it is ready, there is no second try, and this is set to true.
    pub untried: Option<Rc<Cell<bool>>>,
    /// The pane that it had last, also if the worker's folder was removed.
    pub pane: Rc<RefCell<Option<Held>>>,
}

/// A pane with a program, new or from an earlier ralph.
struct Taken {
    window: Window,
    /// `None`: its wrapper has ended.
    pane: Option<Pane>,
    control: Option<Control>,
    mailbox: Mailbox<Message>,
    port: Port<Message>,
    /// How often the connection may still be opened again.
    again: u32,
}

impl Agent for WorkerAgent {
    fn run(&mut self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, End> {
        let began = Instant::now();
        let (port, mailbox) = context.open();
        let held = Held::read(&self.folder).map_err(cannot_start)?.or_else(|| self.pane.take());
        let (mut held, taken) = match held {
            Some(held) if held.iteration == attempt.iteration && held.given != Given::No => {
                context.notice(&format!("{} is resumed in the middle of its iteration", self.name))?;
                let taken = self.take_up(&held, mailbox, &port)?;
                (held, taken)
            }
            held => self.start(held.as_ref(), attempt, context, mailbox, &port)?,
        };
        drop(port);
        self.pane.replace(Some(held.clone()));
        let mut watch = Watch::new(self, taken, attempt, began);
        let was_ready = self.give(&mut held, &mut watch, context)?;
        if was_ready && held.given == Given::Yes && self.detaches {
            return Err(Outcome::Detached.into());
        }
        watch.listen(context)?;
        let mut left = watch.finish(&held.mark);
        if let Some(untried) = self.untried.take().filter(|_| !was_ready && left.has_ended_by_itself()) {
            untried.set(true);
            return Err(End::because(
                Outcome::WorkerFailed,
                left.why_it_never_began(&self.name, &self.launch),
            ));
        }
        let took = (Utc::now() - held.started).to_std().unwrap_or_else(|_| began.elapsed());
        let report = self.report(&mut left, attempt, context, took)?;
        if report.is_waited_for() {
            // The next attempt at this iteration starts it again.
            held.given = Given::No;
            held.write(&self.folder)?;
            self.pane.replace(Some(held));
        }
        Ok(report)
    }

    fn change(&mut self, change: &Change) -> bool {
        tell_total(&mut self.launch, change);
        let Some(watching) = &change.watching else { return false };
        // The caller has checked that it is one.
        let done = watching.done_pattern.as_deref().and_then(|done| DonePattern::new(done).ok());
        let words = |done: &Option<DonePattern>| done.as_ref().map(|done| done.words().to_owned());
        let before = (self.timeouts.inactivity, self.continuous, words(&self.done));
        let after = (watching.inactivity, watching.check_done_continuous, words(&done));
        self.done = done;
        (self.timeouts.inactivity, self.continuous) = (after.0, after.1);
        before != after
    }
}

impl WorkerAgent {
    /// Gives the agent its prompt, exactly once; returns whether the agent was ready. The state is written before and after it is
    /// typed, so that a later ralph knows what to look for on the screen.
    fn give(&self, held: &mut Held, watch: &mut Watch<'_>, context: &mut Context<'_>) -> Result<bool, End> {
        let standing = match held.given {
            Given::Yes => return Ok(true),
            Given::Typing => watch.find_prompt(context)?,
            Given::No => Some(Standing::Absent),
        };
        let has_it = match standing {
            Some(Standing::Absent) => {
                let Some(ready) = watch.wait_until_ready(context)? else { return Ok(false) };
                (held.given, held.given_at) = (Given::Typing, Some(stat::ticks_now()));
                held.write(&self.folder)?;
                watch.give_prompt(context, &ready)?
            }
            Some(Standing::Typed) => watch.submit_prompt(context)?,
            Some(Standing::Submitted) => true,
            Some(Standing::Unclear) => {
                watch.give_up();
                false
            }
            None => false,
        };
        if has_it {
            held.given = Given::Yes;
            held.write(&self.folder)?;
        }
        Ok(true)
    }

    /// The preset of its agent.
    fn preset(&self) -> &'static Preset {
        presets::preset(self.screens.program().name).unwrap_or(presets::unknown())
    }

    /// Starts the program in a pane of its own, or in the one that it had before.
    fn start(
        &self,
        before: Option<&Held>,
        attempt: &Attempt<'_>,
        context: &mut Context<'_>,
        mailbox: Mailbox<Message>,
        port: &Port<Message>,
    ) -> Result<(Held, Taken), End> {
        let command = shell_words(self.launch.command_line());
        context.tell(Fact::AgentStarted { command: (&command).into() })?;
        match before {
            Some(before) => end_pane(&self.folder, &before.mark),
            None => end_unknown(&self.folder),
        }
        // An earlier ralph may have been killed before it recorded its pane.
        let known = before.map(|before| &before.window);
        self.server.close_strays(&pane::wrapper_mark(&self.folder), known).map_err(cannot_start)?;
        let mark = format!("{}-{}", self.launch.mark, attempt.iteration);
        let mut launch = Launch { mark: mark.clone(), ..self.launch.clone() };
        add_variables(self.preset(), &mut launch);
        launch.env.push(("RALPH_ITERATION".into(), attempt.iteration.to_string().into()));
        pane::prepare(&self.folder, &launch).map_err(cannot_start)?;
        let window = self.show(before).map_err(|error| {
            // It may contain secrets.
            let _ = pane::discard(&self.folder);
            cannot_start(error)
        })?;
        let (window_of, iteration, started) = (window.clone(), attempt.iteration, Utc::now());
        let held = Held { window: window_of, iteration, mark, given: Given::No, given_at: None, started };
        held.write(&self.folder)?;
        let place = format!("{}:{}", window.name, window.name);
        context.tell(Fact::AgentKnown { model: None, session_id: Some((&place).into()) })?;
        let (pane, notes) = match window.process() {
            Ok(wrapper) => {
                let (pane, notes) =
                    Pane::await_start(&self.folder, Some(wrapper), COMES).map_err(cannot_start)?;
                (pane, Some(notes))
            }
            // It ended the wrapper before that could begin.
            Err(error) if error.is_gone() => {
                port.post(0, Message::NotesEnded);
                (None, None)
            }
            Err(error) => return Err(cannot_start(error)),
        };
        let taken = self.serve(window, pane, notes, mailbox, port)?;
        Ok((held, taken))
    }

    /// Opens the window in which the wrapper starts.
    fn show(&self, before: Option<&Held>) -> Result<Window, TmuxError> {
        let mut argv: Vec<OsString> = vec![own_executable_for_others().into()];
        argv.extend(pane::wrapper_args(&self.folder));
        if let Some(before) = before
            && self.server.renew(&before.window, &argv, &self.launch.cwd).is_ok()
        {
            // A user may have moved it.
            return before.window.where_it_is();
        }
        let opening =
            Opening { name: &self.session, argv: &argv, cwd: &self.launch.cwd, size: Opening::SIZE };
        self.server.open(&opening)
    }

    /// Continues with a program to which an earlier ralph has given its prompt.
    fn take_up(&self, held: &Held, mailbox: Mailbox<Message>, port: &Port<Message>) -> Result<Taken, End> {
        let connected = Pane::connect(&self.folder).map_err(cannot_start)?;
        let (pane, notes) = match connected {
            Some((pane, notes)) => (Some(pane), Some(notes)),
            None => (None, None),
        };
        if notes.is_none() {
            for note in pane::ended(&self.folder).map_err(cannot_start)? {
                port.post(0, Message::Note(note));
            }
            port.post(0, Message::NotesEnded);
        }
        self.serve(held.window.clone(), pane, notes, mailbox, port)
    }

    /// Starts the threads that bring messages of the wrapper and of tmux.
    fn serve(
        &self,
        window: Window,
        pane: Option<Pane>,
        notes: Option<PaneNotes>,
        mailbox: Mailbox<Message>,
        port: &Port<Message>,
    ) -> Result<Taken, End> {
        if let Some(notes) = notes {
            let port = port.clone();
            threads::start(move || {
                notes.map(Message::Note).all(|note| port.post(0, note));
                port.post(0, Message::NotesEnded);
            })
            .map_err(cannot_start)?;
        }
        let control = match self.attach(&window, port) {
            Ok(control) => Some(control),
            Err(error) if pane.is_none() || error.is_gone() => {
                // Nothing is left to watch, or tmux was lost just now, which is a failure as in mid-iteration.
                port.post(0, Message::Closed(error.to_string()));
                None
            }
            Err(error) => return Err(cannot_start(error)),
        };
        Ok(Taken { window, pane, control, mailbox, port: port.clone(), again: ATTACHED_AGAIN })
    }

    fn attach(&self, window: &Window, port: &Port<Message>) -> Result<Control, TmuxError> {
        let painted = port.clone();
        Control::attach(window, Some(&self.launch.mark), move |event| {
            painted.post(
                0,
                match event {
                    Painting::Painted(_) => Message::Painted,
                    Painting::WindowClosed => Message::WindowClosed,
                    Painting::Closed(why) => Message::Closed(why),
                },
            );
        })
    }

    /// Connects to the pane, wherever it is by now; returns whether it still exists.
    fn attach_again(&self, taken: &mut Taken) -> bool {
        let Some(left) = taken.again.checked_sub(1) else { return false };
        let attached = taken.window.where_it_is().and_then(|window| {
            let control = self.attach(&window, &taken.port)?;
            Ok((window, control))
        });
        match attached {
            Ok((window, control)) => {
                (taken.window, taken.control, taken.again) = (window, Some(control), left);
                true
            }
            Err(_) => false,
        }
    }

    fn report(
        &self,
        left: &mut Left,
        attempt: &Attempt<'_>,
        context: &mut Context<'_>,
        took: Duration,
    ) -> Result<Report, End> {
        let mut text = left.transcript.join("\n");
        if !text.is_empty() {
            text.push('\n');
            context.output(Stream::Stdout, text.as_bytes())?;
        }
        let is_done = left.is_done
            || self.done.as_ref().is_some_and(|done| done.find(&left.transcript, attempt.prompt).is_some());
        let refused = refused(&self.turned_away(left, attempt.prompt));
        let report = judge::report(&self.name, left, text, is_done, took, self.timeouts, self.preset());
        Ok(Report { refused, ..report })
    }

    /// What its walls have turned away: hosts, and what its screen tells besides the prompt, which may tell of an attempt before.
    fn turned_away(&self, left: &mut Left, prompt: &str) -> TurnedAway {
        let hosts = std::mem::take(&mut left.turned_away);
        let Some(enclosure) = &self.launch.enclosure else { return hosts };
        let mut overheard = enclosure.overhear(&self.launch.cwd, &|name| self.launch.variable(name));
        let letters = |text: &str| text.chars().filter(|char| char.is_alphanumeric()).collect::<String>();
        let asked = letters(prompt);
        for line in left.transcript.iter().filter(|line| !asked.contains(&letters(line))) {
            overheard.take(line.as_bytes());
            overheard.take(b"\n");
        }
        hosts.and(overheard)
    }
}

/// Ends the program of a worker whose pane is unknown. The pane stays, with its last output.
fn end_unknown(folder: &Path) {
    if let Ok(Some((mut pane, notes))) = Pane::connect(folder) {
        pane.stop();
        if last_note(notes, Ladder::default().limit()).is_none() {
            pane.kill();
        }
        // Processes with an unknown mark cannot be swept.
        pane.finish(true, "");
    }
    // It may contain secrets.
    let _ = pane::discard(folder);
}

/// The last note of a wrapper that was ordered to end its program; `None` if the notes do not end within `limit`.
fn last_note(
    notes: impl Iterator<Item = SupervisorNote> + Send + 'static,
    limit: Duration,
) -> Option<SupervisorNote> {
    let (tell, told) = mpsc::channel();
    // The thread ends with the wrapper, which is killed if it does not exit.
    threads::start(move || tell.send(notes.last())).ok()?;
    told.recv_timeout(limit).ok()?
}

/// Why a pane cannot be closed.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// It is unknown which one it is.
    #[error(transparent)]
    File(#[from] FileError),
    /// tmux refuses.
    #[error(transparent)]
    Tmux(#[from] TmuxError),
}

/// Ends what an iteration has left in the pane of this folder, and all processes with its mark.
pub fn end_pane(folder: &Path, mark: &str) {
    match Pane::connect(folder) {
        Ok(Some((mut pane, notes))) => {
            pane.stop();
            let is_gone = last_note(notes, Ladder::default().limit())
                .is_some_and(|note| matches!(note, SupervisorNote::Gone(_)));
            pane.finish(is_gone, mark);
        }
        Ok(None) | Err(_) => {
            let _ = pane::sweep(mark);
        }
    }
}

/// Ends the program of a worker and closes its panes on this server; a user's own windows beside it stay. `last` is the pane that it
/// is known to have had, for a folder that was removed.
///
/// # Errors
/// When tmux refuses, or the file that says which pane it is cannot be read.
pub fn close(server: Option<&Server>, folder: &Path, last: Option<Held>) -> Result<(), CloseError> {
    match Held::read(folder)?.or(last) {
        Some(held) => {
            end_pane(folder, &held.mark);
            window::close(&held.window)?;
        }
        // The program may run although the file is lost.
        None => end_unknown(folder),
    }
    if let Some(server) = server {
        server.close_strays(&pane::wrapper_mark(folder), None)?;
    }
    Ok(Held::forget(folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_do_not_end_are_not_waited_for() {
        let (note, notes) = mpsc::channel();
        note.send(SupervisorNote::Gone(0)).unwrap();
        assert!(last_note(notes.into_iter(), Duration::from_millis(50)).is_none());
        let ended = [SupervisorNote::Exited(1), SupervisorNote::Gone(0)].into_iter();
        assert!(matches!(last_note(ended, Duration::from_mins(1)), Some(SupervisorNote::Gone(0))));
        drop(note);
    }
}
