//! Watches an agent while it runs: its program, its clocks, and when to end it.

use std::path::Path;
use std::time::{Duration, Instant};

use super::Timeouts;
use super::ended::{Ending, Traces};
use super::handshake::Handshake;
use super::message::Message;
use super::threads::Served;
use super::tools::Tools;
use super::vital_signs::VitalSigns;
use crate::engine::context::Context;
use crate::engine::event::Stream;
use crate::engine::fact::Fact;
use crate::engine::inbox::{Mailbox, Wake};
use crate::engine::outcome::End;
use crate::engine::stop::Urgency;
use crate::presets::ToolCalls;
use crate::process::note::SupervisorNote;
use crate::process::supervised::Supervised;
use crate::process::walls::{Overheard, TurnedAway};
use crate::reply::decode::Item;
use crate::reply::show::Show;
use crate::reply::usage::UsageNote;
use crate::side_command::refused;

mod clock;

/// How long an agent may take to end its turn on request.
const FAREWELL: Duration = Duration::from_secs(3);

/// The limits of an attempt, and what shows that a silent agent works.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    pub(super) tool_calls: ToolCalls,
    pub(super) timeouts: Timeouts,
    /// The end of the loop's time.
    pub(super) loop_over: Option<Instant>,
}

/// The state of the agent's program and of everything that it has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Alive,
    /// Nothing of it is left, except this many processes that cannot be killed.
    Gone {
        left: u32,
    },
    /// Its supervisor was killed before it could report the end.
    OutOfSight,
}

/// The latest event of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// The agent works.
    AmongOthers,
    /// It was the final event for now: announced work goes on, and is awaited until then.
    LastForNow { until: Instant },
    /// It was the final event: the agent has to exit until then.
    Last { until: Instant },
}

/// One attempt while it runs.
pub(super) struct Watch {
    supervised: Supervised,
    /// How long the supervisor may take to end everything, before it is given up.
    ladder_limit: Duration,
    mailbox: Mailbox<Message>,
    vital_signs: VitalSigns,
    /// The end of the attempt's time.
    too_long: Instant,
    /// The end of the loop's time.
    loop_over: Option<Instant>,
    word: Word,
    handshake: Handshake,
    tools: Tools,
    /// When the servers that the agent has left are checked again.
    next_server_look: Instant,
    /// The model and the session that were reported.
    known: (Option<String>, Option<String>),
    /// Facts for the next step.
    notice: Option<String>,
    /// Since when the agent is being ended, or its program has ended by itself.
    closing: Option<Instant>,
    /// When the ladder starts, if the agent was asked to end its turn and does not.
    asked_until: Option<Instant>,
    program: Program,
    /// The threads that serve its pipes.
    served: Served,
    /// When the last message came, or the readers had to stop.
    last_message: Instant,
    /// Whether the failure of the user's display was reported.
    display_lost: bool,
    /// What listens to what walls have refused, on stdout and on stderr.
    overheard: Option<[Overheard; 2]>,
    traces: Traces,
}

/// Passes facts on to the listeners; none once a record could not be written.
struct Listeners<'c, 'l>(Option<&'c mut Context<'l>>);

impl Listeners<'_, '_> {
    fn tell(&mut self, fact: Fact<'_>) -> Result<(), End> {
        self.0.as_mut().map_or(Ok(()), |context| context.tell(fact))
    }

    fn show(&mut self, shows: &[Show]) -> Result<(), End> {
        self.0.as_mut().map_or(Ok(()), |context| context.show(shows))
    }

    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), End> {
        self.0.as_mut().map_or(Ok(()), |context| context.output(stream, bytes))
    }
}

impl Watch {
    /// Watches a program that was just started in `cwd`, and whose threads post into `mailbox`.
    pub(super) fn new(
        supervised: Supervised,
        mailbox: Mailbox<Message>,
        served: Served,
        cwd: &Path,
        clocks: Clocks,
    ) -> Self {
        let Clocks { tool_calls, timeouts, loop_over } = clocks;
        let now = Instant::now();
        let (supervisor, program) = (supervised.supervisor_pid(), supervised.program_pid());
        Self {
            ladder_limit: supervised.ladder().limit(),
            overheard: supervised.inside().map(|inside| [inside.overhear(), inside.overhear()]),
            supervised,
            mailbox,
            vital_signs: VitalSigns::new(supervisor, program, cwd, timeouts.inactivity, tool_calls),
            too_long: now + timeouts.attempt,
            loop_over,
            word: Word::AmongOthers,
            handshake: Handshake::default(),
            tools: Tools::new(supervisor, program),
            next_server_look: now,
            known: (None, None),
            notice: None,
            closing: None,
            asked_until: None,
            program: Program::Alive,
            served,
            last_message: now,
            display_lost: false,
            traces: Traces::new(timeouts),
        }
    }

    /// Watches until nothing of the agent is left and its pipes are read to their end.
    ///
    /// # Errors
    /// When a record cannot be written; the agent has ended all the same.
    pub(super) fn listen(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let mut fault = None;
        while !self.is_over(Instant::now()) {
            if let Err(error) = self.step(context, fault.is_some()) {
                fault.get_or_insert(error);
                self.end(Ending::Fault);
            }
        }
        fault.map_or_else(|| self.tell_what_is_lost(context), Err)
    }

    /// An agent that has ended by itself does not go on with its announced work.
    fn tell_what_is_lost(&self, context: &mut Context<'_>) -> Result<(), End> {
        match self.announced().filter(|_| self.traces.ending.is_none()) {
            Some(tasks) => {
                context.notice(&format!("the agent has ended while this went on in the background: {tasks}"))
            }
            None => Ok(()),
        }
    }

    /// Waits once. `mute`: no fact may be passed on any more.
    fn step(&mut self, context: &mut Context<'_>, mute: bool) -> Result<(), End> {
        match context.listen(&self.mailbox, Some(self.next_deadline()))? {
            Wake::Message(message) => {
                self.last_message = Instant::now();
                self.take(message, &mut Listeners(if mute { None } else { Some(&mut *context) }))?;
            }
            Wake::Slept(gap) => self.shift(gap),
            Wake::Asked(_) | Wake::Poked | Wake::Deadline => {}
        }
        match context.urgency() {
            Urgency::None | Urgency::AfterAttempt => {}
            Urgency::Now => self.end(Ending::Interrupted),
            Urgency::AtOnce => {
                self.end(Ending::Interrupted);
                self.supervised.kill();
                // A user's filter may take long.
                self.served.patience = None;
            }
        }
        let now = Instant::now();
        self.look_at_the_clock(now);
        debug_assert!(self.is_over(now) || self.next_deadline() > now, "a wait that does not wait");
        match self.notice.take().filter(|_| !mute) {
            Some(notice) => context.notice(&notice),
            None => Ok(()),
        }
    }

    fn take(&mut self, message: Message, listeners: &mut Listeners<'_, '_>) -> Result<(), End> {
        match message {
            Message::Bytes(stream, bytes) => {
                self.vital_signs.output();
                if let Some([stdout, stderr]) = &mut self.overheard {
                    let overheard = if stream == Stream::Stdout { stdout } else { stderr };
                    overheard.take(&bytes);
                }
                match stream {
                    Stream::Stdout => {
                        self.tools.agent_speaks();
                        if self.served.is_unread {
                            self.traces.keep_raw(&bytes);
                        }
                    }
                    Stream::Stderr => self.traces.keep_stderr(&bytes),
                }
                listeners.output(stream, &bytes)?;
            }
            Message::Items(items) => {
                self.vital_signs.output();
                let before = self.announced();
                let shows: Vec<Show> = items.into_iter().filter_map(|item| self.item(item)).collect();
                self.introduce(listeners)?;
                if !shows.is_empty() {
                    listeners.show(&shows)?;
                }
                if let Some(tasks) = self.announced().filter(|tasks| before.as_ref() != Some(tasks)) {
                    let at_most_s = self.traces.timeouts.background.as_secs_f64();
                    listeners.tell(Fact::Background { at_most_s, tasks: tasks.into() })?;
                }
            }
            Message::Asked(step) => {
                self.traces.unanswered = step;
                self.handshake.asked(step, Instant::now());
            }
            Message::Decoded(decoded) => {
                if let Some(step) = decoded.owed {
                    self.handshake.closed(step, Instant::now());
                }
                self.traces.decoded = decoded;
            }
            Message::Closed => self.served.open -= 1,
            Message::DisplayEnded => self.served.displaying = false,
            Message::Display(show) if !self.display_lost => listeners.show(&[show])?,
            Message::DisplayLost(reason) if !self.display_lost => {
                self.display_lost = true;
                self.served.displaying = false;
                let text = format!("the display filter is dropped: {reason}; see AGENT_DISPLAY_FILTER");
                listeners.tell(Fact::notice(&text))?;
            }
            Message::Note(SupervisorNote::Exited(code)) => {
                self.traces.exit_code = Some(code);
                self.closing.get_or_insert_with(Instant::now);
            }
            Message::Note(SupervisorNote::Signaled(signal)) => {
                self.traces.signal = Some(signal);
                self.closing.get_or_insert_with(Instant::now);
            }
            Message::Note(SupervisorNote::Gone(left)) => {
                self.program = Program::Gone { left };
                if left > 0 {
                    let text = format!("{left} processes of the agent cannot be killed and are left behind");
                    listeners.tell(Fact::notice(&text))?;
                }
            }
            Message::NotesEnded if self.program == Program::Alive => self.program = Program::OutOfSight,
            Message::Note(_) | Message::NotesEnded | Message::Display(_) | Message::DisplayLost(_) => {}
        }
        Ok(())
    }

    /// Reports the agent's model and session, if they are new.
    fn introduce(&mut self, listeners: &mut Listeners<'_, '_>) -> Result<(), End> {
        let (model, session) = self.traces.known();
        if (model, session) == (self.known.0.as_deref(), self.known.1.as_deref()) {
            return Ok(());
        }
        self.known = (model.map(str::to_owned), session.map(str::to_owned));
        listeners.tell(Fact::AgentKnown { model: model.map(Into::into), session_id: session.map(Into::into) })
    }

    /// Adds one item, and returns the fact of it.
    fn item(&mut self, item: Item) -> Option<Show> {
        self.traces.item(&item);
        match item {
            Item::Text(text) => {
                // It goes on after an event that looked final.
                self.word = Word::AmongOthers;
                self.served.show_text.then_some(Show::Delta(text))
            }
            Item::Note(note) => {
                if note.hopeless {
                    self.end(Ending::Hopeless);
                }
                self.weigh(&note, Instant::now());
                None
            }
            // An agent that we end reports this as an error.
            Item::Show(Show::Error(_)) if self.traces.ending.is_some() => None,
            Item::Show(show) => Some(show),
        }
    }

    /// Whether the agent goes on, by a note.
    fn weigh(&mut self, note: &UsageNote, now: Instant) {
        let announced = self.traces.announced().is_some();
        if note.turn_started || note.begun().is_some() {
            self.word = Word::AmongOthers;
        } else if note.is_final && announced {
            self.word = Word::LastForNow { until: now + self.traces.timeouts.background };
        } else if note.is_final || !announced && matches!(self.word, Word::LastForNow { .. }) {
            // It may report more about its announced work at once.
            self.word = Word::Last { until: now + self.traces.timeouts.grace };
        }
    }

    /// The wait after an event that may not be final.
    fn announced(&self) -> Option<String> {
        if matches!(self.word, Word::LastForNow { .. }) { self.traces.announced() } else { None }
    }

    /// Starts the ladder, unless the agent has ended or is being ended.
    fn end(&mut self, ending: Ending) {
        if self.closing.is_none() && self.program == Program::Alive {
            self.traces.ending = Some(ending);
            let now = Instant::now();
            self.closing = Some(now);
            if ending != Ending::AfterFinal && self.served.farewell.ask() {
                self.asked_until = Some(now + FAREWELL);
                self.ladder_limit += FAREWELL;
            } else {
                self.supervised.stop();
            }
        }
    }

    /// Reaps the supervisor; blocks only if it had to be given up.
    pub(super) fn finish(mut self) -> Traces {
        if let (Some(overheard), Some(inside)) = (self.overheard.take(), self.supervised.inside()) {
            let turned_away = overheard.into_iter().fold(inside.turned_away(), TurnedAway::and);
            self.traces.refused = refused(&turned_away);
        }
        // Closed first, so that no thread waits for room in it.
        drop(self.mailbox);
        self.supervised.finish(match self.program {
            Program::Gone { left } => Some(left),
            Program::Alive | Program::OutOfSight => None,
        });
        self.traces
    }
}
