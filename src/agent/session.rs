//! One attempt while it runs: what came so far, and when to end it.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Context;
use super::display::DisplayRoute;
use super::message::Message;
use super::readers::ReaderPlan;
use super::threads::Hold;
use super::vital_signs::VitalSigns;
use crate::engine::event::{Event, Stream};
use crate::engine::inbox::Wake;
use crate::engine::report::{AttemptStatus, Report};
use crate::engine::stop::Urgency;
use crate::files::FileError;
use crate::process::supervised::Supervised;
use crate::process::supervisor::Note;
use crate::reply::Reply;
use crate::reply::decode::{Counters, Item};
use crate::reply::show::Show;
use crate::reply::sigil::Sigils;
use crate::reply::usage::Class;
use crate::reply::verdict::{End, Evidence, Failure, Kind, judge};
use crate::text::duration;

/// How long the pipes of an agent that is gone may stay silent before we stop listening.
const DRAIN: Duration = Duration::from_secs(1);
/// How long our readers may still work on what came before they stopped listening; a user's filter has 10 s for
/// every line.
const DECODING: Duration = Duration::from_secs(15);
/// How much of stderr is kept for the failure message, in bytes.
const STDERR_TAIL: usize = 4096;

/// How much of what the assistant said is kept, in bytes.
const TEXT_TAIL: usize = 256 * 1024;

/// How long an attempt may go on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    /// As a whole.
    pub(super) attempt: Duration,
    /// Without a sign of life.
    pub(super) inactivity: Duration,
    /// After its own final event.
    pub(super) after_final: Duration,
    /// At most until then.
    pub(super) loop_over: Option<Instant>,
}

/// Why we end an agent that has not ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    AfterFinal,
    TimedOut,
    Inactive,
    Interrupted,
    /// The loop's own time is over.
    LoopOver,
    /// A record of ours cannot be written.
    Fault,
}

/// What is known about the agent's program and everything it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Alive,
    /// Nothing is left of it.
    Gone,
    /// Its supervisor was killed before it could tell.
    OutOfSight,
}

/// One attempt while it runs.
pub(super) struct Session {
    supervised: Supervised,
    /// After this much time the supervisor must have ended everything; then it is given up itself.
    ladder_limit: Duration,
    vital_signs: VitalSigns,
    /// When the attempt has taken too long.
    too_long: Instant,
    /// When the loop's own time is over.
    loop_over: Option<Instant>,
    /// When the agent has lived too long after its final event.
    after_final: Option<Instant>,
    /// Since when the end is under way: the ladder has been ordered, or the program has ended by itself.
    closing: Option<Instant>,
    program: Program,
    /// Keeps our readers listening.
    hold: Option<Hold>,
    /// Pipes of the agent that are still open.
    open: usize,
    /// The assistant's text is the display.
    show_text: bool,
    /// The user's own display is still at work.
    displaying: bool,
    /// When the last message came, or the readers were told to stop listening.
    last_message: Instant,
    left: Left,
}

/// What an attempt leaves.
#[derive(Default)]
pub(super) struct Left {
    exit_code: Option<i32>,
    signal: Option<i32>,
    ending: Option<Ending>,
    limits: Limits,
    evidence_of_death: String,
    reply: Reply,
    counters: Counters,
    dead_filter: Option<String>,
    text: String,
    stderr: VecDeque<u8>,
    display_lost: bool,
}

impl Session {
    pub(super) fn new(
        supervised: Supervised,
        hold: Hold,
        cwd: &Path,
        limits: Limits,
        display: &DisplayRoute,
    ) -> Self {
        let now = Instant::now();
        let ladder_limit = supervised.ladder().limit();
        let vital_signs =
            VitalSigns::new(supervised.supervisor_pid(), supervised.program_pid(), cwd, limits.inactivity);
        Self {
            vital_signs,
            supervised,
            ladder_limit,
            too_long: now + limits.attempt,
            loop_over: limits.loop_over,
            after_final: None,
            closing: None,
            program: Program::Alive,
            hold: Some(hold),
            open: 2,
            displaying: display.has_thread(),
            show_text: matches!(display, DisplayRoute::Text),
            last_message: now,
            left: Left { limits, ..Left::default() },
        }
    }

    /// Listens until nothing of the agent is left and its pipes are read to their end.
    ///
    /// # Errors
    /// When a record cannot be written; the agent has been ended all the same.
    pub(super) fn watch(&mut self, context: &mut Context<'_>) -> Result<(), FileError> {
        let mut fault = None;
        while !self.is_over(Instant::now()) {
            if let Err(error) = self.step(context, fault.is_some()) {
                fault.get_or_insert(error);
                self.end(Ending::Fault);
            }
        }
        fault.map_or(Ok(()), Err)
    }

    /// Waits once. `mute`: nothing may be told any more.
    fn step(&mut self, context: &mut Context<'_>, mute: bool) -> Result<(), FileError> {
        let wake = context.wait(Some(self.next_deadline()))?;
        match wake {
            Wake::Message(message) => {
                self.last_message = Instant::now();
                self.take(message, &mut |event| if mute { Ok(()) } else { (context.emit)(event) })?;
            }
            Wake::Slept(gap) => self.shift(gap),
            Wake::Asked(_) | Wake::Poked | Wake::Deadline => {}
        }
        match context.stop.urgency() {
            Urgency::None | Urgency::AfterAttempt => {}
            Urgency::Now => self.end(Ending::Interrupted),
            Urgency::AtOnce => {
                self.end(Ending::Interrupted);
                self.supervised.kill();
            }
        }
        self.look_at_the_clock(Instant::now());
        Ok(())
    }

    fn take(
        &mut self,
        message: Message,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        match message {
            Message::Bytes(stream, bytes) => {
                self.vital_signs.output();
                if stream == Stream::Stderr {
                    self.left.keep_stderr(&bytes);
                }
                tell(Event::Output { stream, bytes: &bytes })?;
            }
            Message::Items(items) => {
                let shows: Vec<Show> = items.into_iter().filter_map(|item| self.item(item)).collect();
                if !shows.is_empty() {
                    tell(Event::Shown(&shows))?;
                }
            }
            Message::Decoded { counters, dead_filter } => {
                self.left.counters = counters;
                self.left.dead_filter = dead_filter;
            }
            Message::Closed(_) => self.open -= 1,
            Message::DisplayEnded => self.displaying = false,
            Message::Display(show) if !self.left.display_lost => tell(Event::Shown(&[show]))?,
            Message::DisplayLost(reason) if !self.left.display_lost => {
                self.left.display_lost = true;
                self.displaying = false;
                tell(Event::Notice(&format!(
                    "the display filter is dropped: {reason}; see AGENT_DISPLAY_FILTER"
                )))?;
            }
            Message::Note(Note::Exited(code)) => {
                self.left.exit_code = Some(code);
                self.closing.get_or_insert_with(Instant::now);
            }
            Message::Note(Note::Signaled(signal)) => {
                self.left.signal = Some(signal);
                self.closing.get_or_insert_with(Instant::now);
            }
            Message::Note(Note::Gone(left)) => {
                self.program = Program::Gone;
                if left > 0 {
                    let text = format!("{left} processes of the agent cannot be killed and are left behind");
                    tell(Event::Notice(&text))?;
                }
            }
            Message::NotesEnded if self.program == Program::Alive => self.program = Program::OutOfSight,
            Message::Note(_)
            | Message::NotesEnded
            | Message::Display(_)
            | Message::DisplayLost(_)
            | Message::Captured(_) => {}
        }
        Ok(())
    }

    /// Books one item, and returns what there is to show of it.
    fn item(&mut self, item: Item) -> Option<Show> {
        self.left.reply.fold(&item);
        match item {
            Item::Text(text) => {
                self.left.keep_text(&text);
                // It goes on after what looked like its last word.
                self.after_final = None;
                self.show_text.then_some(Show::Delta(text))
            }
            Item::Note(note) => {
                if note.tool_started.is_some() {
                    // A new tool call says so too.
                    self.after_final = None;
                } else if note.is_final {
                    self.after_final = Some(Instant::now() + self.left.limits.after_final);
                }
                None
            }
            Item::Show(show) => Some(show),
        }
    }

    /// Whether there is nothing more to wait for. What our readers still hold is waited for; that the pipes end is
    /// not, because a stranger may hold them open.
    fn is_over(&mut self, now: Instant) -> bool {
        match self.program {
            Program::Alive => self.closing.is_some_and(|since| now > since + self.ladder_limit),
            Program::OutOfSight => true,
            Program::Gone if self.open == 0 && !self.displaying => true,
            Program::Gone => {
                if self.hold.is_some() && now >= self.last_message + DRAIN {
                    self.hold = None;
                    self.last_message = now;
                }
                self.hold.is_none() && now >= self.last_message + self.patience()
            }
        }
    }

    /// How long the readers of an agent that is gone may bring nothing. Its display is cosmetic.
    fn patience(&self) -> Duration {
        if self.hold.is_none() && self.open > 0 { DECODING } else { DRAIN }
    }

    fn next_deadline(&self) -> Instant {
        if self.program == Program::Gone {
            return self.last_message + self.patience();
        }
        if let Some(since) = self.closing {
            return since + self.ladder_limit;
        }
        let next = self.after_final.unwrap_or_else(|| self.vital_signs.next_look()).min(self.too_long);
        self.loop_over.map_or(next, |deadline| next.min(deadline))
    }

    fn look_at_the_clock(&mut self, now: Instant) {
        if self.closing.is_some() || self.program != Program::Alive {
            return;
        }
        if let Some(deadline) = self.after_final {
            // It has said its last word, well or not; nothing else is expected of it but to leave.
            if now >= deadline.min(self.too_long) {
                self.end(Ending::AfterFinal);
            }
        } else if self.loop_over.is_some_and(|deadline| now >= deadline) {
            self.end(Ending::LoopOver);
        } else if now >= self.too_long {
            self.end(Ending::TimedOut);
        } else if let Some(evidence) =
            self.vital_signs.look(now, !self.left.reply.usage.tools_in_flight.is_empty())
        {
            self.left.evidence_of_death = evidence;
            self.end(Ending::Inactive);
        }
    }

    /// We were stopped for a while; no deadline may fire for that.
    fn shift(&mut self, gap: Duration) {
        self.too_long += gap;
        self.last_message += gap;
        self.vital_signs.shift(gap);
        self.after_final = self.after_final.map(|deadline| deadline + gap);
        self.closing = self.closing.map(|since| since + gap);
    }

    /// Starts the ladder, unless the agent has ended by itself or is being ended already.
    fn end(&mut self, ending: Ending) {
        if self.closing.is_none() && self.program == Program::Alive {
            self.left.ending = Some(ending);
            self.closing = Some(Instant::now());
            self.supervised.stop();
        }
    }

    /// Reaps what there is to reap; blocks only if the supervisor had to be given up.
    pub(super) fn finish(self) -> Left {
        self.supervised.finish(self.program == Program::Gone);
        self.left
    }
}

impl Left {
    fn keep_text(&mut self, piece: &str) {
        self.text.push_str(piece);
        // Cut rarely, so that cutting costs little per piece.
        if self.text.len() > 2 * TEXT_TAIL {
            let surplus = self.text.floor_char_boundary(self.text.len() - TEXT_TAIL);
            self.text.drain(..surplus);
        }
    }

    fn keep_stderr(&mut self, bytes: &[u8]) {
        let news = &bytes[bytes.len().saturating_sub(STDERR_TAIL)..];
        self.stderr.extend(news);
        let surplus = self.stderr.len().saturating_sub(STDERR_TAIL);
        self.stderr.drain(..surplus);
    }

    /// Judges the attempt.
    pub(super) fn report(mut self, agent: &str, readers: &ReaderPlan, duration: Duration) -> Report {
        let stderr = String::from_utf8_lossy(self.stderr.make_contiguous()).into_owned();
        let usage = &self.reply.usage;
        let evidence = Evidence {
            agent,
            end: self.end(),
            readers: readers.in_force(),
            has_final: readers.has_final,
            final_seen: usage.final_seen,
            said: self.reply.said,
            counters: self.counters,
            fault: usage.fault.as_ref(),
            dead_filter: self.dead_filter.as_deref(),
            stderr_tail: &stderr,
        };
        let failure = judge(&evidence).err().map(|failure| self.with_limit(failure, agent));
        let status = match &failure {
            None => AttemptStatus::Success,
            Some(failure) => match failure.kind {
                Kind::Interrupted => AttemptStatus::Interrupted,
                Kind::TimedOut | Kind::Inactive => AttemptStatus::Timeout,
                _ if failure.class == Class::Limit => AttemptStatus::UsageLimit,
                _ => AttemptStatus::AgentFailure,
            },
        };
        let Sigils { complete, replan } = match status {
            AttemptStatus::Success => self.reply.scanner.sigils(),
            _ => Sigils::default(),
        };
        Report {
            status,
            duration,
            exit_code: self.exit_code,
            signal: self.signal,
            exceeded: match failure.as_ref().map(|failure| failure.kind) {
                Some(Kind::TimedOut) => Some(self.limits.attempt),
                Some(Kind::Inactive) => Some(self.limits.inactivity),
                _ => None,
            },
            failure: failure.filter(|failure| failure.kind != Kind::Interrupted),
            complete,
            replan,
            text: self.text,
            usage: self.reply.usage,
            balance: None,
            skipped_lines: self.counters.malformed + self.counters.oversized,
        }
    }

    /// A timeout's message names the limit, what was looked at, and how to change it.
    fn with_limit(&self, mut failure: Failure, agent: &str) -> Failure {
        if failure.kind == Kind::TimedOut {
            let limit = duration::format(self.limits.attempt);
            failure.message = format!("{agent} ran longer than {limit} and was ended (--timeout)");
        } else if failure.kind == Kind::Inactive {
            let limit = duration::format(self.limits.inactivity);
            let evidence = &self.evidence_of_death;
            failure.message = format!(
                "{agent} showed no sign of life for {limit} and was ended: {evidence} (--inactivity-timeout)"
            );
        }
        failure
    }

    fn end(&self) -> End {
        match (self.ending, self.exit_code, self.signal) {
            (Some(Ending::AfterFinal), ..) => End::EndedAfterFinal,
            (Some(Ending::TimedOut), ..) => End::TimedOut,
            (Some(Ending::Inactive), ..) => End::Inactive,
            (Some(Ending::Interrupted | Ending::LoopOver | Ending::Fault), ..) => End::Interrupted,
            (None, Some(code), _) => End::Exited(code),
            (None, None, Some(signal)) => End::Signaled(signal),
            // Its supervisor was killed before it could tell.
            (None, None, None) => End::Signaled(9),
        }
    }
}
