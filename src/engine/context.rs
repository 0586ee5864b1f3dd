//! What a source, an agent or a validator can use of the loop around it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{Local, SubsecRound as _};

use super::event::{LoopIdentity, Stamped, Stream, Unwritten};
use super::fact::Fact;
use super::inbox::{Inbox, Mailbox, Port, Wake};
use super::outcome::{End, Outcome};
use super::person::{Answer, Person};
use super::redacted::Redactions;
use super::refused::Refused;
use super::stop::{Ask, Request, Stop, Urgency};
use super::tally::Tally;
use crate::reply::show::Show;
use crate::text::redact::Redactor;
use crate::text::texts::Texts;

/// Listens to a loop. A view never fails; a record that cannot be written ends the loop.
pub trait Listener {
    /// Takes a fact.
    ///
    /// # Errors
    /// When the loop has to end.
    fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), End>;

    /// Takes bytes that an agent wrote, as they came, cut anywhere. For records only; far too many to be shown.
    ///
    /// # Errors
    /// When the loop has to end.
    fn output(&mut self, _stream: Stream, _bytes: &[u8]) -> Result<(), End> {
        Ok(())
    }
}

impl<F: FnMut(&Stamped<'_>) -> Result<(), End>> Listener for F {
    fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), End> {
        self(stamped)
    }
}

/// A listener of a loop.
pub type Sink<'a> = Box<dyn Listener + 'a>;

/// Checks the records, and returns what the user should know about them.
pub type Keep<'a> = Box<dyn FnMut() -> Result<Option<String>, End> + 'a>;

/// A result of something that runs beside the loop.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// Something that the user should know, in one line.
    Notice(String),
    /// What another part of the run has done.
    Fact(Box<Fact<'static>>),
    /// A hook has ended.
    Hook {
        /// Its name.
        hook: &'static str,
        /// It succeeded.
        ok: bool,
        /// What it printed.
        output: String,
    },
}

impl News {
    /// The news without secrets.
    #[must_use]
    pub fn without(mut self, secrets: &Redactor) -> Self {
        match &mut self {
            Self::Notice(text) | Self::Hook { output: text, .. } => secrets.clean(text),
            Self::Fact(fact) => secrets.clean(&mut **fact),
        }
        self
    }

    /// The news as a fact.
    #[must_use]
    pub fn fact(&self) -> Fact<'_> {
        match self {
            Self::Notice(text) => Fact::notice(text),
            Self::Fact(fact) => (**fact).clone(),
            Self::Hook { hook, ok, output } => {
                Fact::HookEnded { hook: (*hook).into(), ok: *ok, output: output.into() }
            }
        }
    }
}

/// Returns the next result of what runs beside the loop.
pub type Beside<'a> = Box<dyn FnMut() -> Option<News> + 'a>;

/// How long a loop may take that has to stop now, with all that it leaves behind; and what each thing has of that at least.
const LEAVING: Duration = Duration::from_secs(9);
const MOMENT: Duration = Duration::from_millis(700);
/// How often the records are checked.
const UPKEEP: Duration = Duration::from_secs(1);

/// The loop as seen by what plugs into it: where to wait, requests to the loop, and its listeners.
pub struct Context<'a> {
    identity: LoopIdentity,
    inbox: Arc<Inbox>,
    pub(super) stop: Stop,
    sinks: Vec<Sink<'a>>,
    /// The count of the last fact, without secrets.
    counted: Tally,
    /// Takes secrets out of what listeners get.
    pub(super) redactions: Redactions,
    keep: Keep<'a>,
    beside: Beside<'a>,
    next_upkeep: Instant,
    renewal: Option<Renewal>,
    /// Why the work at hand is this loop's no more.
    forfeit: Option<String>,
    /// When all has to be over that a loop leaves behind; `None`: nothing presses.
    leaves_by: Option<Instant>,
    person: Option<Box<dyn Person>>,
    /// How long the person has taken to answer.
    thought: Duration,
    /// What walls have refused to those that look at the work, which is still to be told.
    pub refused: Vec<Refused>,
}

/// Something that must be renewed while the loop works.
struct Renewal {
    next: Instant,
    renew: Box<dyn FnMut() -> Result<Renewed, End>>,
}

/// What has come of an attempt to renew something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewed {
    /// It holds; this is when to look again.
    After(Duration),
    /// It is lost, for this reason: the attempt ends, and the loop goes on.
    Lost(String),
}

impl<'a> Context<'a> {
    /// The context of a loop that gets requests through `inbox`; `sinks` listen to it, in this order.
    #[must_use]
    pub fn new(identity: LoopIdentity, inbox: Arc<Inbox>, sinks: Vec<Sink<'a>>) -> Self {
        let keep: Keep<'_> = Box::new(|| Ok(None));
        Self {
            identity,
            inbox,
            stop: Stop::default(),
            sinks,
            counted: Tally::default(),
            redactions: Redactions::default(),
            keep,
            beside: Box::new(|| None),
            next_upkeep: Instant::now(),
            renewal: None,
            leaves_by: None,
            forfeit: None,
            person: None,
            thought: Duration::ZERO,
            refused: Vec::new(),
        }
    }

    /// With a person who can be asked.
    #[must_use]
    pub fn with_person(self, person: Option<Box<dyn Person>>) -> Self {
        Self { person, ..self }
    }

    /// With `keep`, which is called before each fact, and every second while the loop waits.
    #[must_use]
    pub fn kept_by(self, keep: Keep<'a>) -> Self {
        Self { keep, ..self }
    }

    /// With secrets that no listener gets.
    #[must_use]
    pub fn without(self, secrets: &Redactor) -> Self {
        Self { redactions: Redactions::new(secrets), ..self }
    }

    /// With `beside`, whose news become facts when the records are checked.
    #[must_use]
    pub fn beside(self, beside: Beside<'a>) -> Self {
        Self { beside, ..self }
    }

    /// The loop's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// Another agent works from here on.
    pub(super) fn works_with(&mut self, agent: &str) {
        agent.clone_into(&mut self.identity.agent);
    }

    /// A mailbox for messages of small threads, and the port to it.
    #[must_use]
    pub fn open<M>(&self) -> (Port<M>, Mailbox<M>) {
        self.inbox.open()
    }

    /// The inbox to poke when it is the loop's turn.
    pub(super) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// How urgently the work at hand must stop.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        let stop = self.stop.urgency();
        if self.forfeit.is_some() { stop.max(Urgency::Now) } else { stop }
    }

    /// Whether the work at hand is this loop's no more.
    pub(super) fn is_forfeit(&self) -> bool {
        self.forfeit.is_some()
    }

    /// Why the work at hand is this loop's no more, once.
    pub fn take_forfeit(&mut self) -> Option<String> {
        self.forfeit.take()
    }

    /// The outcome of a loop that ends by request; `None` without a request.
    #[must_use]
    pub fn stopped_by(&self) -> Option<Outcome> {
        self.stop.outcome()
    }

    /// The stop is taken back.
    pub(super) fn forgive(&mut self) {
        self.stop.forgive();
        self.leaves_by = None;
    }

    /// How much of this time there is for something that the loop leaves behind.
    #[must_use]
    pub fn last(&self, span: Duration) -> Duration {
        let left = self.leaves_by.map_or(span, |by| by.saturating_duration_since(Instant::now()));
        span.min(left.max(MOMENT))
    }

    /// Whether a person has asked for its end, so that nothing that is away is waited for any more.
    #[must_use]
    pub fn is_to_leave(&self) -> bool {
        matches!(self.stop.outcome(), Some(Outcome::Interrupted | Outcome::Cancelled))
    }

    /// Whether the loop must end now and leave its agent alone.
    #[must_use]
    pub fn detaches(&self) -> bool {
        self.stop.detaches()
    }

    /// Whether no further attempt may begin for now: there is a request to stop or to hold.
    #[must_use]
    pub fn is_held_up(&self) -> bool {
        self.stop.urgency() != Urgency::None || self.stop.holds()
    }

    /// Waits for a request to the loop, at most until `deadline`, and books it.
    ///
    /// # Errors
    /// When the loop cannot go on: a record cannot be written, or something cannot be renewed.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<Wake, End> {
        self.wait_for(deadline, Inbox::wait)
    }

    /// Waits as [`Context::wait`] does, or for a message in `mailbox`.
    ///
    /// # Errors
    /// As with [`Context::wait`].
    pub fn listen<M>(&mut self, mailbox: &Mailbox<M>, deadline: Option<Instant>) -> Result<Wake<M>, End> {
        self.wait_for(deadline, |inbox, until| inbox.listen(mailbox, until))
    }

    /// Whether there is a person to ask.
    #[must_use]
    pub fn has_person(&self) -> bool {
        self.person.is_some()
    }

    /// Asks the person at the terminal and waits for an answer, which may be empty. [`Answer::Gone`]: there is no person, they
    /// have left, or a request to stop came first.
    ///
    /// # Errors
    /// As with [`Context::wait`].
    pub fn ask(&mut self, question: &str) -> Result<Answer, End> {
        let (port, mailbox) = self.open();
        let Some(Ok(_listening)) = self.person.as_mut().map(|person| person.listen(port)) else {
            return Ok(Answer::Gone);
        };
        let began = Instant::now();
        self.tell(Fact::Question { text: question.into() })?;
        let answer = loop {
            match self.listen(&mailbox, None)? {
                Wake::Message(answer) => break answer,
                Wake::Asked(ask) if ask.stops() => break Answer::Gone,
                _ => {}
            }
        };
        self.thought += began.elapsed();
        let said = match &answer {
            Answer::Line(text) if !text.is_empty() => Some(text.as_str()),
            Answer::Line(_) | Answer::Gone => None,
        };
        self.tell(Fact::Answered { text: said.map(Into::into) })?;
        Ok(answer)
    }

    /// How long the person has taken to answer since this was last called; that is not the loop's own time.
    pub(super) fn take_thought(&mut self) -> Duration {
        std::mem::take(&mut self.thought)
    }

    fn wait_for<M>(
        &mut self,
        deadline: Option<Instant>,
        wait: impl Fn(&Inbox, Option<Instant>) -> Wake<M>,
    ) -> Result<Wake<M>, End> {
        loop {
            self.keep_up()?;
            if !self.renew_what_is_due()? {
                // How urgently the work must stop has changed.
                return Ok(Wake::Poked);
            }
            let renewal = self.renewal.as_ref().map(|renewal| renewal.next);
            let until = deadline.into_iter().chain(renewal).chain([self.next_upkeep]).min();
            match wait(&self.inbox, until) {
                Wake::Asked(ask) => {
                    self.stop.book(ask.clone());
                    let leaves_by = self.leaves_by.unwrap_or_else(|| Instant::now() + LEAVING);
                    self.leaves_by = (self.stop.urgency() >= Urgency::Now).then_some(leaves_by);
                    let unwritten = match &ask {
                        Ask::Request(Request::Change(change)) => Unwritten::Change(change),
                        _ => Unwritten::Nothing,
                    };
                    self.tell_with(Fact::asked(&ask, self.stop.urgency()), unwritten)?;
                    return Ok(Wake::Asked(ask));
                }
                // Only something to renew or to check.
                Wake::Deadline if until != deadline => {}
                wake => return Ok(wake),
            }
        }
    }

    /// From here on calls `renew`, whatever the loop waits for: `after` this time, and each next time after the one that it
    /// answers with, until [`Context::renew_no_more`], until what is renewed is lost, which ends the attempt, or until it fails,
    /// which ends the loop as well. It must not wait. There is one such call at a time; a new one replaces the last.
    pub fn renew(&mut self, after: Duration, renew: impl FnMut() -> Result<Renewed, End> + 'static) {
        self.forfeit = None;
        self.renewal = Some(Renewal { next: Instant::now() + after, renew: Box::new(renew) });
    }

    /// Stops the renewing.
    pub fn renew_no_more(&mut self) {
        self.renewal = None;
    }

    fn keep_up(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if now < self.next_upkeep {
            return Ok(());
        }
        self.next_upkeep = now + UPKEEP;
        self.look_after()
    }

    /// Checks the records, and tells all news there are, in their order.
    ///
    /// # Errors
    /// If the records cannot be kept.
    pub fn look_after(&mut self) -> Result<(), End> {
        if let Some(notice) = (self.keep)()? {
            self.pass(Fact::notice(&notice), Unwritten::Nothing, false)?;
        }
        while let Some(news) = (self.beside)() {
            self.pass(news.fact(), Unwritten::Nothing, false)?;
        }
        Ok(())
    }

    /// Renews what is to be renewed now; `false`: it is lost.
    fn renew_what_is_due(&mut self) -> Result<bool, End> {
        let Some(renewal) = &mut self.renewal else { return Ok(true) };
        if Instant::now() < renewal.next {
            return Ok(true);
        }
        match (renewal.renew)() {
            Ok(Renewed::After(span)) => renewal.next = Instant::now() + span,
            Ok(Renewed::Lost(why)) => {
                self.renewal = None;
                let notice = format!("the attempt ends: {why}");
                self.forfeit = Some(why);
                self.pass(Fact::notice(&notice), Unwritten::Nothing, false)?;
                return Ok(false);
            }
            Err(end) => {
                self.renewal = None;
                return Err(end);
            }
        }
        Ok(true)
    }

    /// Sets the count that listeners get with each fact from here on.
    pub(super) fn count(&mut self, tally: &Tally) -> &mut Self {
        self.counted.clone_from(tally);
        self.redactions.clean(&mut self.counted);
        self
    }

    /// Takes the secrets out of texts that are kept elsewhere than in facts.
    pub fn clean(&self, texts: &mut impl Texts) {
        self.redactions.clean(texts);
    }

    /// Passes a fact to all listeners.
    ///
    /// # Errors
    /// When a record cannot be written, or its file is not ours any more.
    pub fn tell(&mut self, fact: Fact<'_>) -> Result<(), End> {
        self.tell_with(fact, Unwritten::Nothing)
    }

    /// Passes a fact to all listeners, with what its line does not have.
    pub(super) fn tell_with(&mut self, fact: Fact<'_>, unwritten: Unwritten<'_>) -> Result<(), End> {
        self.look_after()?;
        self.pass(fact, unwritten, false)
    }

    /// Passes to all listeners what an agent has said and done, as it came together. There are many of these facts, so the records
    /// are only checked every second.
    ///
    /// # Errors
    /// When a record cannot be written.
    pub fn show(&mut self, shows: &[Show]) -> Result<(), End> {
        if self.redactions.is_idle() {
            return self.hand_out(shows.iter().map(Fact::from), Unwritten::Nothing, false);
        }
        let facts = self.redactions.shown(shows);
        self.hand_out(facts, Unwritten::Nothing, false)
    }

    /// Passes on bytes that an agent wrote.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn output(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), End> {
        let bytes = self.redactions.output(stream, bytes);
        self.hand_out_bytes(stream, &bytes, false)
    }

    /// Passes a notice to all listeners: something that the user should know, in one line.
    ///
    /// # Errors
    /// When a record cannot be written.
    pub fn notice(&mut self, text: &str) -> Result<(), End> {
        self.tell(Fact::notice(text))
    }

    /// Passes on a fact at the end of a loop. A record that cannot be written must not keep the others from being true.
    pub(super) fn tell_whoever_listens(&mut self, fact: Fact<'_>, unwritten: Unwritten<'_>) {
        // The end is written wherever that is possible.
        let _ = self.look_after();
        let _ = self.pass(fact, unwritten, true);
    }

    /// Passes on a fact without its secrets, after what was held back of an agent that writes no more. `to_all`: also to listeners
    /// behind one that fails.
    fn pass(&mut self, mut fact: Fact<'_>, unwritten: Unwritten<'_>, to_all: bool) -> Result<(), End> {
        if matches!(fact, Fact::AgentStarted { .. } | Fact::AttemptEnded(_) | Fact::LoopEnded(_)) {
            for (stream, bytes) in self.redactions.rest_of_output() {
                self.hand_out_bytes(stream, &bytes, to_all)?;
            }
            let rest: Vec<_> = self.redactions.rest().collect();
            self.hand_out(rest, Unwritten::Nothing, to_all)?;
        }
        self.redactions.clean(&mut fact);
        self.hand_out([fact], unwritten, to_all)
    }

    /// Passes on facts that came together.
    fn hand_out<'f>(
        &mut self,
        facts: impl IntoIterator<Item = Fact<'f>>,
        unwritten: Unwritten<'_>,
        to_all: bool,
    ) -> Result<(), End> {
        let Self { identity, sinks, counted, .. } = self;
        // As precise as a line of the log, so that a replay shows the same time.
        let at = Local::now().trunc_subsecs(3);
        let mut facts = facts.into_iter().peekable();
        while let Some(fact) = &facts.next() {
            let stamped = Stamped {
                unwritten,
                goes_on: facts.peek().is_some(),
                ..Stamped::new(at, identity, counted, fact)
            };
            for sink in &mut *sinks {
                let taken = sink.take(&stamped);
                if !to_all {
                    taken?;
                }
            }
        }
        Ok(())
    }

    fn hand_out_bytes(&mut self, stream: Stream, bytes: &[u8], to_all: bool) -> Result<(), End> {
        for sink in self.sinks.iter_mut().filter(|_| !bytes.is_empty()) {
            let taken = sink.output(stream, bytes);
            if !to_all {
                taken?;
            }
        }
        Ok(())
    }
}
