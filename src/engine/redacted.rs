//! Takes secrets out of what leaves a loop. Everything that is kept or shown of a loop passes here once, on its way from the
//! context to the listeners; prompts and the requests of agents do not.

use std::borrow::Cow;

use super::event::Stream;
use super::fact::Fact;
use super::outcome::End;
use super::report::Report;
use super::tally::Settled;
use crate::reply::show::Show;
use crate::text::redact::{Redaction, Redactor};
use crate::text::texts::Texts;

/// Takes the secrets out of facts. Text that comes in pieces is one stream, however it is cut.
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

    /// Whether there is no secret to take out.
    pub(super) fn is_idle(&self) -> bool {
        self.redactor.is_idle()
    }

    /// Takes the secrets out of whole texts.
    pub(super) fn clean(&self, texts: &mut impl Texts) {
        self.redactor.clean(texts);
    }

    /// Bytes of an agent. What may be the beginning of a secret is held back until more is known.
    pub(super) fn output<'a>(&mut self, stream: Stream, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match stream {
            Stream::Stdout => self.stdout.push(bytes),
            Stream::Stderr => self.stderr.push(bytes),
        }
    }

    /// The bytes that were held back, of an agent that writes no more.
    pub(super) fn rest_of_output(&mut self) -> impl Iterator<Item = (Stream, Vec<u8>)> + use<> {
        [(Stream::Stdout, self.stdout.finish()), (Stream::Stderr, self.stderr.finish())].into_iter()
    }

    /// What an agent has said and done, after what was held back before.
    pub(super) fn shown<'a>(&mut self, shows: &'a [Show]) -> Vec<Fact<'a>> {
        let mut facts = Vec::with_capacity(shows.len());
        for show in shows {
            match show {
                Show::Delta(text) => {
                    facts.extend(piece(self.says.push(text.as_bytes())).map(|text| Fact::TextDelta { text }));
                }
                Show::Thought(text) => {
                    facts.extend(piece(self.thinks.push(text.as_bytes())).map(|text| Fact::Thought { text }));
                }
                show => {
                    for held_back in self.rest() {
                        facts.push(held_back);
                    }
                    let mut fact = Fact::from(show);
                    self.clean(&mut fact);
                    facts.push(fact);
                }
            }
        }
        facts
    }

    /// The text that was held back of what the agent says and thinks.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = Fact<'static>> + use<> {
        let (thought, said) = (piece(self.thinks.finish().into()), piece(self.says.finish().into()));
        let thought = thought.map(|text| Fact::Thought { text });
        thought.into_iter().chain(said.map(|text| Fact::TextDelta { text }))
    }

    /// The report of an attempt, as it is kept.
    pub(super) fn report<'a>(&self, report: &'a Report) -> Cow<'a, Report> {
        if self.is_idle() {
            return Cow::Borrowed(report);
        }
        let mut kept = report.clone();
        self.clean(&mut kept);
        Cow::Owned(kept)
    }

    /// The result of an attempt, as it is kept.
    pub(super) fn settled<'a>(&self, settled: &'a Settled) -> Cow<'a, Settled> {
        if self.is_idle() || settled.proof.is_none() {
            return Cow::Borrowed(settled);
        }
        let mut kept = settled.clone();
        self.clean(&mut kept.proof.as_mut().map(|proof| &mut proof.output));
        Cow::Owned(kept)
    }

    /// The end of the loop, as it is kept and shown.
    pub(super) fn end(&self, mut end: End) -> End {
        self.clean(&mut end.detail);
        end
    }
}

/// Text in, text out: nothing is lost where the pieces were text. `None`: all of it is held back.
fn piece(bytes: Cow<'_, [u8]>) -> Option<Cow<'_, str>> {
    let text = match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(lossy(bytes)),
    };
    Some(text).filter(|text| !text.is_empty())
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::engine::context::{Context, Listener};
    use crate::engine::event::Stamped;
    use crate::engine::inbox::Inbox;
    use crate::engine::outcome::Outcome;
    use crate::engine::tally::{Given, Tally};
    use crate::engine::testing;
    use crate::engine::validation::Validation;

    const CANARY: &str = "sk-canary-0123456789";

    fn redactor() -> Redactor {
        Redactor::new([("TOKEN", CANARY)])
    }

    /// Writes down all that it hears.
    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<String>>>);

    impl Listener for Heard {
        fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), End> {
            let more = if stamped.goes_on { " …" } else { "" };
            let said = match stamped.fact {
                Fact::TextDelta { text } => format!("says {text}{more}"),
                fact => format!("{fact:?}{more}"),
            };
            self.0.lock().unwrap().push(said);
            Ok(())
        }

        fn output(&mut self, _: Stream, bytes: &[u8]) -> Result<(), End> {
            self.0.lock().unwrap().push(String::from_utf8_lossy(bytes).into_owned());
            Ok(())
        }
    }

    /// What listeners get of these facts, without the secret.
    fn heard(tell: impl FnOnce(&mut Context<'_>) -> Result<(), End>) -> Vec<String> {
        let heard = Heard::default();
        let context = testing::context(&Arc::new(Inbox::default()), vec![Box::new(heard.clone())]);
        assert!(tell(&mut context.without(&redactor())).is_ok());
        std::mem::take(&mut heard.0.lock().unwrap())
    }

    #[test]
    fn output_and_deltas_are_streams_and_what_is_held_back_comes_before_the_end() {
        let delta = |text: &str| Show::Delta(text.into());
        let told = heard(|context| {
            context.output(Stream::Stdout, b"a sk-can")?;
            context.output(Stream::Stderr, b"sk-")?;
            context.output(Stream::Stdout, b"ary-0123456789 b")?;
            context.output(Stream::Stderr, b"x")
        });
        assert_eq!(told, ["a ", "[redacted:TOKEN] b", "sk-x"]);
        let told = heard(|context| {
            context.show(&[delta("say sk-canary")])?;
            context.show(&[delta("-0123456789")])?;
            context.show(&[delta(".")])
        });
        assert_eq!(told, ["says say ", "says [redacted:TOKEN]", "says ."]);
        let told = heard(|context| {
            context.show(&[delta("a sk-")])?;
            context
                .show(&[Show::Tool { name: "sh".into(), input: format!("echo {CANARY}") }, delta("sk-")])?;
            context.output(Stream::Stdout, b"sk-")?;
            context.tell(Fact::AgentStarted { command: CANARY.into() })
        });
        assert_eq!(
            told,
            [
                "says a ",
                "says sk- …",
                r#"Tool { input: "echo [redacted:TOKEN]", name: "sh" }"#,
                "sk-",
                "says sk-",
                r#"AgentStarted { command: "[redacted:TOKEN]" }"#,
            ]
        );
    }

    fn marks(told: &str) -> usize {
        assert!(!told.contains("canary"), "{told}");
        told.matches("[redacted:TOKEN]").count()
    }

    #[test]
    fn no_fact_tells_a_secret() {
        for line in include_str!("../../tests/every_fact.jsonl").lines() {
            let line = line.replace("TEXT", CANARY);
            let mut fact: Fact<'_> = serde_json::from_str(&line).unwrap();
            redactor().clean(&mut fact);
            assert_eq!(marks(&format!("{fact:?}")), line.matches(CANARY).count(), "{line}");
        }
    }

    #[test]
    fn the_count_beside_a_fact_holds_none_and_that_of_the_loop_stays() {
        let texts = || vec![CANARY.to_owned(), "b".to_owned()];
        let given = Given {
            validation_error: Some(CANARY.to_owned()),
            undecided: true,
            notes: texts(),
            refused: texts(),
        };
        let tally = Tally {
            last_error: Some(CANARY.to_owned()),
            notes: texts(),
            refused: texts(),
            given,
            ..Tally::default()
        };
        let beside = Arc::new(Mutex::new(Tally::default()));
        let kept = Arc::clone(&beside);
        let listen = move |stamped: &Stamped<'_>| {
            stamped.tally.clone_into(&mut kept.lock().unwrap());
            Ok(())
        };
        let context = testing::context(&Arc::new(Inbox::default()), vec![Box::new(listen)]);
        assert!(context.without(&redactor()).count(&tally).tell(Fact::Paused).is_ok());
        assert_eq!(marks(&format!("{:?}", beside.lock().unwrap())), 6);
    }

    #[test]
    fn what_is_kept_of_an_attempt_holds_none_and_its_claims_stay() {
        let redactions = Redactions::new(&redactor());
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
        let mut report = testing::success();
        (report.text, report.usage.model) = (CANARY.to_owned(), Some(CANARY.to_owned()));
        assert_eq!(marks(&format!("{:?}", redactions.report(&report))), 2);
        let end = redactions.end(End::because(Outcome::GitFailed, CANARY.to_owned()));
        assert_eq!(end.detail.as_deref(), Some("[redacted:TOKEN]"));
        assert!(matches!(Redactions::default().settled(&settled), Cow::Borrowed(_)));
    }
}
