//! What leaves a loop, less the secrets in it. Everything that is kept or shown of a loop passes here once, on its way from the
//! context to those who listen; what an agent is told, or asks for, does not.

use std::borrow::Cow;

use super::event::{Event, Stream, TaskAtWork};
use super::outcome::End;
use super::report::Report;
use super::stop::{Ask, Request};
use super::tally::{Given, Settled, Tally};
use super::validator::Validation;
use crate::reply::show::Show;
use crate::text::redact::{Redaction, Redactor};

/// Who is told of an event.
type Tell<'a> = dyn FnMut(Event<'_>) -> Result<(), End> + 'a;

/// Takes the secrets out of events. What comes in pieces is one stream, however it is cut.
#[derive(Debug, Default)]
pub(super) struct Redactions {
    redactor: Redactor,
    stdout: Redaction,
    stderr: Redaction,
    says: Redaction,
    thinks: Redaction,
}

impl Redactions {
    pub(super) fn new(redactor: &Redactor) -> Self {
        let stream = || redactor.stream();
        Self {
            redactor: redactor.clone(),
            stdout: stream(),
            stderr: stream(),
            says: stream(),
            thinks: stream(),
        }
    }

    /// Tells an event without its secrets. What may be the beginning of one is told when more is known.
    pub(super) fn pass(&mut self, event: Event<'_>, tell: &mut Tell<'_>) -> Result<(), End> {
        if self.redactor.is_idle() {
            return tell(event);
        }
        match event {
            Event::Output { stream, bytes } => {
                let its = match stream {
                    Stream::Stdout => &mut self.stdout,
                    Stream::Stderr => &mut self.stderr,
                };
                let bytes = its.push(bytes);
                if bytes.is_empty() { Ok(()) } else { tell(Event::Output { stream, bytes: &bytes }) }
            }
            Event::Shown(shows) => {
                let shows: Vec<Show> = shows.iter().flat_map(|show| self.show(show)).collect();
                if shows.is_empty() { Ok(()) } else { tell(Event::Shown(&shows)) }
            }
            Event::AgentStarted { .. } | Event::AttemptEnded { .. } | Event::LoopEnded { .. } => {
                self.flush(tell)?;
                self.whole(event, tell)
            }
            event => self.whole(event, tell),
        }
    }

    /// The agent writes no more: tells what was held back.
    fn flush(&mut self, tell: &mut Tell<'_>) -> Result<(), End> {
        for (stream, its) in [(Stream::Stdout, &mut self.stdout), (Stream::Stderr, &mut self.stderr)] {
            let bytes = its.finish();
            if !bytes.is_empty() {
                tell(Event::Output { stream, bytes: &bytes })?;
            }
        }
        let rest: Vec<Show> = self.rest().collect();
        if rest.is_empty() { Ok(()) } else { tell(Event::Shown(&rest)) }
    }

    /// What was held back of what the agent says and thinks.
    fn rest(&mut self) -> impl Iterator<Item = Show> {
        let text = |its: &mut Redaction| Some(lossy(its.finish())).filter(|text| !text.is_empty());
        let (thought, delta) = (text(&mut self.thinks), text(&mut self.says));
        thought.map(Show::Thought).into_iter().chain(delta.map(Show::Delta))
    }

    /// One thing that is shown, behind what was held back before.
    fn show(&mut self, show: &Show) -> Vec<Show> {
        let pushed = |its: &mut Redaction, text: &str| {
            Some(lossy(its.push(text.as_bytes()).into_owned())).filter(|text| !text.is_empty())
        };
        match show {
            Show::Delta(text) => return pushed(&mut self.says, text).map(Show::Delta).into_iter().collect(),
            Show::Thought(text) => {
                return pushed(&mut self.thinks, text).map(Show::Thought).into_iter().collect();
            }
            _ => {}
        }
        let mut all: Vec<Show> = self.rest().collect();
        let text = |text: &String| self.redactor.text(text).into_owned();
        all.push(match show {
            Show::Delta(all) | Show::Text(all) => Show::Text(text(all)),
            Show::Thought(all) => Show::Thought(text(all)),
            Show::Tool { name, input } => Show::Tool { name: text(name), input: text(input) },
            Show::Error(error) => Show::Error(text(error)),
            Show::Notice(notice) => Show::Notice(text(notice)),
            Show::Permission { leave, kind, what } => {
                Show::Permission { leave: *leave, kind: text(kind), what: text(what) }
            }
        });
        all
    }

    /// An event that holds whole texts. Each one is named here, so that no new one is forgotten.
    fn whole(&self, event: Event<'_>, tell: &mut Tell<'_>) -> Result<(), End> {
        let text = |text| self.redactor.text(text);
        let maybe = |text: Option<&'_ str>| text.map(|text| self.redactor.text(text).into_owned());
        match event {
            Event::Asked { ask: Ask::Request(Request::Note(note)), urgency } => {
                let ask = Ask::Request(Request::Note(text(note).into_owned()));
                tell(Event::Asked { ask: &ask, urgency })
            }
            Event::Output { .. }
            | Event::Shown(_)
            | Event::Recovered(_)
            | Event::Queued
            | Event::Validating
            | Event::Retrying { .. }
            | Event::Asked { .. } => tell(event),
            Event::LoopStarted { project, limits, tally } => {
                tell(Event::LoopStarted { project, limits, tally: &self.tally(tally) })
            }
            Event::LimitsChanged { limits, tally } => {
                tell(Event::LimitsChanged { limits, tally: &self.tally(tally) })
            }
            Event::AttemptStarted { tally, head } => {
                tell(Event::AttemptStarted { tally: &self.tally(tally), head })
            }
            Event::AgentStarted { command } => tell(Event::AgentStarted { command: &text(command) }),
            Event::AgentKnown { model, session } => {
                let (model, session) = (maybe(model), maybe(session));
                tell(Event::AgentKnown { model: model.as_deref(), session: session.as_deref() })
            }
            Event::Background { tasks, at_most } => tell(Event::Background { tasks: &text(tasks), at_most }),
            Event::TaskStarted { task, verifies, counts } => {
                let title = text(task.title);
                tell(Event::TaskStarted { task: TaskAtWork { title: &title, ..task }, verifies, counts })
            }
            Event::TaskEnded { task, became, reason, counts } => {
                let (title, reason) = (text(task.title), text(reason));
                let task = TaskAtWork { title: &title, ..task };
                tell(Event::TaskEnded { task, became, reason: &reason, counts })
            }
            Event::Verifying { task } => {
                let title = text(task.title);
                tell(Event::Verifying { task: TaskAtWork { title: &title, ..task } })
            }
            Event::Verified { task, ok, reason } => {
                let (title, reason) = (text(task.title), text(reason));
                tell(Event::Verified { task: TaskAtWork { title: &title, ..task }, ok, reason: &reason })
            }
            Event::Validated { ok, undecided, output } => {
                tell(Event::Validated { ok, undecided, output: &text(output) })
            }
            Event::AttemptEnded { tally, report, head, changed } => {
                let (tally, report) = (self.tally(tally), self.report(report));
                tell(Event::AttemptEnded { tally: &tally, report: &report, head, changed })
            }
            Event::BackingOff { tally, breaker, pause } => {
                tell(Event::BackingOff { tally: &self.tally(tally), breaker, pause })
            }
            Event::Attention(screen) => tell(Event::Attention(maybe(screen).as_deref())),
            Event::Waiting { until, shortage, tally } => {
                tell(Event::Waiting { until, shortage, tally: &self.tally(tally) })
            }
            Event::Paused { tally } => tell(Event::Paused { tally: &self.tally(tally) }),
            Event::Resumed { tally } => tell(Event::Resumed { tally: &self.tally(tally) }),
            Event::Question(question) => tell(Event::Question(&text(question))),
            Event::Answered(answer) => tell(Event::Answered(maybe(answer).as_deref())),
            Event::Published(message) => tell(Event::Published(&text(message))),
            Event::HookEnded { hook, ok, output } => {
                tell(Event::HookEnded { hook, ok, output: &text(output) })
            }
            Event::Notice(message) => tell(Event::Notice(&text(message))),
            Event::LoopEnded { outcome, detail, tally, duration, work } => {
                let (detail, tally) = (maybe(detail), self.tally(tally));
                let detail = detail.as_deref();
                tell(Event::LoopEnded { outcome, detail, tally: &tally, duration, work })
            }
        }
    }

    /// The count as it is kept. What the next prompt gets is that of the loop.
    fn tally<'a>(&self, tally: &'a Tally) -> Cow<'a, Tally> {
        let Tally { last_error, validation_error, notes, said_alone, given, .. } = tally;
        let texts = [last_error, validation_error, &given.validation_error];
        let texts = texts.into_iter().flatten();
        let mut all = texts.chain(notes).chain(said_alone).chain(&given.notes);
        if all.all(|text| matches!(self.redactor.text(text), Cow::Borrowed(_))) {
            return Cow::Borrowed(tally);
        }
        Cow::Owned(Tally {
            last_error: self.maybe(last_error.as_ref()),
            validation_error: self.maybe(validation_error.as_ref()),
            notes: self.all(notes),
            said_alone: self.all(said_alone),
            given: Given {
                validation_error: self.maybe(given.validation_error.as_ref()),
                notes: self.all(&given.notes),
            },
            ..tally.clone()
        })
    }

    /// What an attempt left, as it is kept.
    pub(super) fn report<'a>(&self, report: &'a Report) -> Cow<'a, Report> {
        if self.redactor.is_idle() {
            return Cow::Borrowed(report);
        }
        let mut kept = report.clone();
        let text = |text: &str| self.redactor.text(text).into_owned();
        kept.text = text(&kept.text);
        kept.sigils = kept.sigils.with_texts(text);
        kept.usage.model = self.maybe(kept.usage.model.as_ref());
        kept.usage.session_id = self.maybe(kept.usage.session_id.as_ref());
        kept.usage.background = self.all(&kept.usage.background);
        if let Some(fault) = &mut kept.usage.fault {
            fault.message = text(&fault.message);
        }
        if let Some(failure) = &mut kept.failure {
            failure.message = text(&failure.message);
        }
        Cow::Owned(kept)
    }

    /// What that came to, as it is kept.
    pub(super) fn settled<'a>(&self, settled: &'a Settled) -> Cow<'a, Settled> {
        let Some(proof) = settled.proof.as_ref().filter(|_| !self.redactor.is_idle()) else {
            return Cow::Borrowed(settled);
        };
        let proof = Validation { output: self.redactor.text(&proof.output).into_owned(), ..proof.clone() };
        Cow::Owned(Settled { proof: Some(proof), ..settled.clone() })
    }

    /// The end of the loop, as others are told of it.
    pub(super) fn end(&self, end: &End) -> End {
        End { outcome: end.outcome, detail: self.maybe(end.detail.as_ref()) }
    }

    fn maybe(&self, text: Option<&String>) -> Option<String> {
        text.map(|text| self.redactor.text(text).into_owned())
    }

    fn all(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.redactor.text(text).into_owned()).collect()
    }
}

/// Text in, text out: nothing is lost where the pieces were text.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::show::Leave;

    const CANARY: &str = "sk-canary-0123456789";

    fn redactions() -> Redactions {
        Redactions::new(&Redactor::new([("TOKEN", CANARY)]))
    }

    /// What is told of these events, as text.
    fn told(events: &[Event<'_>]) -> Vec<String> {
        let (mut redactions, mut told) = (redactions(), Vec::new());
        for event in events {
            let pass = redactions.pass(*event, &mut |event| {
                told.push(match event {
                    Event::Output { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
                    event => format!("{event:?}"),
                });
                Ok(())
            });
            assert!(pass.is_ok());
        }
        told
    }

    #[test]
    fn output_and_deltas_are_streams_and_what_is_held_back_comes_before_the_end() {
        let delta = |text: &str| [Show::Delta(text.into())];
        let output = |bytes| Event::Output { stream: Stream::Stdout, bytes };
        let complaint = |bytes| Event::Output { stream: Stream::Stderr, bytes };
        assert_eq!(
            told(&[
                output(b"a sk-can"),
                complaint(b"sk-"),
                output(b"ary-0123456789 b"),
                Event::Notice("n"),
                complaint(b"x")
            ]),
            ["a ", "[redacted:TOKEN] b", "Notice(\"n\")", "sk-x"]
        );
        assert_eq!(
            told(&[
                Event::Shown(&delta("say sk-canary")),
                Event::Shown(&delta("-0123456789")),
                Event::Shown(&delta("."))
            ]),
            [r#"Shown([Delta("say ")])"#, r#"Shown([Delta("[redacted:TOKEN]")])"#, r#"Shown([Delta(".")])"#]
        );
        let tool = [Show::Tool { name: "sh".into(), input: format!("echo {CANARY}") }];
        assert_eq!(
            told(&[
                Event::Shown(&delta("a sk-")),
                Event::Shown(&tool),
                output(b"sk-"),
                Event::AgentStarted { command: CANARY }
            ]),
            [
                r#"Shown([Delta("a ")])"#,
                r#"Shown([Delta("sk-"), Tool { name: "sh", input: "echo [redacted:TOKEN]" }])"#,
                "sk-",
                r#"AgentStarted { command: "[redacted:TOKEN]" }"#,
            ]
        );
    }

    #[test]
    fn no_event_tells_a_secret() {
        let texts = || vec![CANARY.to_owned(), "b".to_owned()];
        let tally = Tally {
            last_error: Some(CANARY.to_owned()),
            validation_error: Some(CANARY.to_owned()),
            notes: texts(),
            said_alone: texts(),
            given: Given { validation_error: Some(CANARY.to_owned()), notes: texts() },
            ..Tally::default()
        };
        let shows = [
            Show::Text(CANARY.into()),
            Show::Error(CANARY.into()),
            Show::Notice(CANARY.into()),
            Show::Permission { leave: Leave::Allowed, kind: "execute".into(), what: CANARY.into() },
        ];
        let task = TaskAtWork { id: "t-1", title: CANARY, feature: None, model: None };
        let counts = super::super::event::TaskCounts::default();
        let note = Ask::Request(Request::Note(CANARY.into()));
        let urgency = super::super::stop::Urgency::None;
        let mut report = super::super::testing::success();
        report.text = CANARY.to_owned();
        report.usage.model = Some(CANARY.to_owned());
        report.failure = Some(crate::reply::verdict::Failure {
            kind: crate::reply::verdict::Kind::PromptTooLong,
            class: crate::reply::usage::Class::Other,
            message: format!("why: {CANARY}"),
            reset_at: None,
        });
        let (outcome, duration) = (super::super::outcome::Outcome::Complete, std::time::Duration::ZERO);
        let limits = &super::super::policy::Limits::EXAMPLE;
        let told = told(&[
            Event::LoopStarted { project: "/p".as_ref(), limits, tally: &tally },
            Event::Shown(&shows),
            Event::AgentKnown { model: Some(CANARY), session: Some(CANARY) },
            Event::Background { tasks: CANARY, at_most: duration },
            Event::TaskStarted { task, verifies: false, counts },
            Event::TaskEnded { task, became: "done", reason: CANARY, counts },
            Event::Verified { task, ok: false, reason: CANARY },
            Event::Validated { ok: false, undecided: false, output: CANARY },
            Event::AttemptEnded { tally: &tally, report: &report, head: None, changed: None },
            Event::Attention(Some(CANARY)),
            Event::Asked { ask: &note, urgency },
            Event::Question(CANARY),
            Event::Answered(Some(CANARY)),
            Event::Published(CANARY),
            Event::Notice("could not push to https://x:sk-canary-0123456789@host"),
            Event::LoopEnded { outcome, detail: Some(CANARY), tally: &tally, duration, work: None },
        ]);
        assert_eq!(told.len(), 16);
        for event in told {
            assert!(!event.contains("canary"), "{event}");
            assert!(event.contains("[redacted:TOKEN]"), "{event}");
        }
    }

    #[test]
    fn what_is_kept_of_an_attempt_holds_none_and_its_claims_stay() {
        let redactions = redactions();
        let settled = Settled {
            proof: Some(Validation {
                ok: false,
                output: format!("assert {CANARY}"),
                ..Validation::default()
            }),
            ..Settled::default()
        };
        let proof = redactions.settled(&settled).into_owned().proof.unwrap();
        assert_eq!(proof.output, "assert [redacted:TOKEN]");
        let end = redactions.end(&End::because(super::super::outcome::Outcome::GitFailed, CANARY.to_owned()));
        assert_eq!(end.detail.as_deref(), Some("[redacted:TOKEN]"));
        assert!(matches!(Redactions::default().settled(&settled), Cow::Borrowed(_)));
    }
}
