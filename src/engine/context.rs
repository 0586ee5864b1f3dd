//! What a source, an agent or a validator may use of the loop around it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{Local, SubsecRound as _};

use super::event::{LoopIdentity, Stamped, Stream, Unwritten};
use super::fact::Fact;
use super::inbox::{Inbox, Mailbox, Port, Wake};
use super::outcome::{End, Outcome};
use super::person::{Answer, Person};
use super::redacted::Redactions;
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

/// One of those who listen to a loop.
pub type Sink<'a> = Box<dyn Listener + 'a>;

/// Looks after the records, and answers what the user should know about them.
pub type Keep<'a> = Box<dyn FnMut() -> Result<Option<String>, End> + 'a>;

/// What came of something that runs beside the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Something that the user should know, in one line.
    Notice(String),
    /// A hook is through.
    Hook {
        /// Which.
        hook: &'static str,
        /// It succeeded.
        ok: bool,
        /// What it printed.
        output: String,
    },
}

impl News {
    /// The same less its secrets.
    #[must_use]
    pub fn without(mut self, secrets: &Redactor) -> Self {
        let (Self::Notice(text) | Self::Hook { output: text, .. }) = &mut self;
        secrets.clean(text);
        self
    }

    /// The fact that it is.
    #[must_use]
    pub fn fact(&self) -> Fact<'_> {
        match self {
            Self::Notice(text) => Fact::notice(text),
            Self::Hook { hook, ok, output } => {
                Fact::HookEnded { hook: (*hook).into(), ok: *ok, output: output.into() }
            }
        }
    }
}

/// Asks for the next thing that came of what runs beside the loop.
pub type Beside<'a> = Box<dyn FnMut() -> Option<News> + 'a>;

/// How often the records are looked after.
const UPKEEP: Duration = Duration::from_secs(1);

/// The loop as seen by what plugs into it: where to wait, what has been asked of the loop, and who wants to know.
pub struct Context<'a> {
    identity: LoopIdentity,
    inbox: Arc<Inbox>,
    pub(super) stop: Stop,
    sinks: Vec<Sink<'a>>,
    /// The count when it was last told, without secrets.
    counted: Tally,
    /// Takes out what they are not to know.
    pub(super) redactions: Redactions,
    keep: Keep<'a>,
    beside: Beside<'a>,
    next_upkeep: Instant,
    renewal: Option<Renewal>,
    person: Option<Box<dyn Person>>,
    /// How long they have thought.
    thought: Duration,
}

/// Something that has to be renewed while the loop is at work.
struct Renewal {
    every: Duration,
    next: Instant,
    renew: Box<dyn FnMut() -> Result<(), End>>,
}

impl<'a> Context<'a> {
    /// The context of a loop that hears of requests by `inbox`; `sinks` listen to it, in this order.
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
            person: None,
            thought: Duration::ZERO,
        }
    }

    /// The same; this person can be asked.
    #[must_use]
    pub fn with_person(self, person: Option<Box<dyn Person>>) -> Self {
        Self { person, ..self }
    }

    /// The same; `keep` is called before each step is told and, whatever the loop waits for, every second.
    #[must_use]
    pub fn kept_by(self, keep: Keep<'a>) -> Self {
        Self { keep, ..self }
    }

    /// The same; nobody who listens is told of these secrets.
    #[must_use]
    pub fn without(self, secrets: &Redactor) -> Self {
        Self { redactions: Redactions::new(secrets), ..self }
    }

    /// The same; what `beside` has to say is told when the records are looked after.
    #[must_use]
    pub fn beside(self, beside: Beside<'a>) -> Self {
        Self { beside, ..self }
    }

    /// A mailbox for what small threads bring, and the port to it.
    #[must_use]
    pub fn open<M>(&self) -> (Port<M>, Mailbox<M>) {
        self.inbox.open()
    }

    /// What has to be poked when it is the loop's turn.
    pub(super) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// How urgently the loop has been asked to stop.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        self.stop.urgency()
    }

    /// How the loop ends because it was asked to; `None` while nobody has.
    #[must_use]
    pub fn stopped_by(&self) -> Option<Outcome> {
        self.stop.outcome()
    }

    /// Whether the loop has been asked to end now and to leave its agent alone.
    #[must_use]
    pub fn detaches(&self) -> bool {
        self.stop.detaches()
    }

    /// Whether no further attempt may begin for now: the loop has been asked to stop, or to hold.
    #[must_use]
    pub fn is_held_up(&self) -> bool {
        self.stop.urgency() != Urgency::None || self.stop.holds()
    }

    /// Waits for what is asked of the loop, at most until `deadline`; it is booked on the way.
    ///
    /// # Errors
    /// When the loop cannot go on: a record cannot be written, or what has to be renewed cannot be.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<Wake, End> {
        self.wait_for(deadline, Inbox::wait)
    }

    /// The same for what comes into `mailbox`, too.
    ///
    /// # Errors
    /// As with [`Context::wait`].
    pub fn listen<M>(&mut self, mailbox: &Mailbox<M>, deadline: Option<Instant>) -> Result<Wake<M>, End> {
        self.wait_for(deadline, |inbox, until| inbox.listen(mailbox, until))
    }

    /// Whether somebody can be asked.
    #[must_use]
    pub fn has_person(&self) -> bool {
        self.person.is_some()
    }

    /// Asks the person at the terminal and waits for an answer, which may be empty. [`Answer::Gone`]: there is nobody, they have
    /// left, or the loop has been asked to stop meanwhile.
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

    /// How long people have thought since this was last called: that is no time of the loop's own.
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
            self.renew_what_is_due()?;
            let renewal = self.renewal.as_ref().map(|renewal| renewal.next);
            let until = deadline.into_iter().chain(renewal).chain([self.next_upkeep]).min();
            match wait(&self.inbox, until) {
                Wake::Asked(ask) => {
                    self.stop.book(ask.clone());
                    let unwritten = match &ask {
                        Ask::Request(Request::Change(change)) => Unwritten::Change(change),
                        _ => Unwritten::Nothing,
                    };
                    self.tell_with(Fact::asked(&ask, self.stop.urgency()), unwritten)?;
                    return Ok(Wake::Asked(ask));
                }
                // Only something to renew or to look after.
                Wake::Deadline if until != deadline => {}
                wake => return Ok(wake),
            }
        }
    }

    /// From here on `renew` is called `every` so often, whatever the loop waits for, until [`Context::renew_no_more`] or until it
    /// fails: that ends the attempt and the loop. There is one such thing at a time; a new one takes the place of the last.
    pub fn renew(&mut self, every: Duration, renew: impl FnMut() -> Result<(), End> + 'static) {
        self.renewal = Some(Renewal { every, next: Instant::now() + every, renew: Box::new(renew) });
    }

    /// Nothing has to be renewed any more.
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

    fn look_after(&mut self) -> Result<(), End> {
        if let Some(notice) = (self.keep)()? {
            self.pass(Fact::notice(&notice), Unwritten::Nothing, false)?;
        }
        while let Some(news) = (self.beside)() {
            self.pass(news.fact(), Unwritten::Nothing, false)?;
        }
        Ok(())
    }

    fn renew_what_is_due(&mut self) -> Result<(), End> {
        let Some(renewal) = &mut self.renewal else { return Ok(()) };
        if Instant::now() < renewal.next {
            return Ok(());
        }
        let renewed = (renewal.renew)();
        renewal.next = Instant::now() + renewal.every;
        if renewed.is_err() {
            self.renewal = None;
        }
        renewed
    }

    /// Books the count, which each listener gets with the facts from here on.
    pub(super) fn count(&mut self, tally: &Tally) -> &mut Self {
        self.counted.clone_from(tally);
        self.redactions.clean(&mut self.counted);
        self
    }

    /// Takes the secrets out of texts that are kept elsewhere than where facts are told.
    pub fn clean(&self, texts: &mut impl Texts) {
        self.redactions.clean(texts);
    }

    /// Tells all listeners a fact.
    ///
    /// # Errors
    /// When a record cannot be written, or not where it belongs.
    pub fn tell(&mut self, fact: Fact<'_>) -> Result<(), End> {
        self.tell_with(fact, Unwritten::Nothing)
    }

    /// Tells all listeners a fact, and what the engine knows of it besides.
    pub(super) fn tell_with(&mut self, fact: Fact<'_>, unwritten: Unwritten<'_>) -> Result<(), End> {
        self.look_after()?;
        self.pass(fact, unwritten, false)
    }

    /// Tells all listeners what an agent has said and done, which came together. Of these many come, and the records are looked
    /// after every second.
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

    /// Hands out bytes that an agent wrote.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn output(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), End> {
        let bytes = self.redactions.output(stream, bytes);
        self.hand_out_bytes(stream, &bytes, false)
    }

    /// Tells all listeners something that the user should know, in one line.
    ///
    /// # Errors
    /// When a record cannot be written.
    pub fn notice(&mut self, text: &str) -> Result<(), End> {
        self.tell(Fact::notice(text))
    }

    /// Tells it at the end of a loop: a record that cannot be written any more must not keep the others from being true.
    pub(super) fn tell_whoever_listens(&mut self, fact: Fact<'_>, unwritten: Unwritten<'_>) {
        // The truth about the end is written wherever it can be.
        let _ = self.look_after();
        let _ = self.pass(fact, unwritten, true);
    }

    /// Hands out a fact without its secrets, behind what was held back of an agent that writes no more. `to_all`: also to those behind
    /// a listener that fails.
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

    /// Hands out facts that came together.
    fn hand_out<'f>(
        &mut self,
        facts: impl IntoIterator<Item = Fact<'f>>,
        unwritten: Unwritten<'_>,
        to_all: bool,
    ) -> Result<(), End> {
        let Self { identity, sinks, counted, .. } = self;
        // As precise as a line of the log: a replay shows the same.
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
