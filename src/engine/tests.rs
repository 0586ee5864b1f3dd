//! The engine with nothing but doubles around it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use proptest::prelude::*;

use super::agent::{Attempt, Inspects};
use super::board::Board;
use super::context::{Context, Renewed};
use super::event::Stamped;
use super::fact::Fact;
use super::inbox::Inbox;
use super::outcome::{End, Outcome};
use super::policy::{Limits, OnFailure};
use super::report::{AttemptStatus, Report};
use super::run::run;
use super::stop::{Ask, Request, Urgency};
use super::tally::Last;
use super::testing::{Call, TestAgent, TestSource, TestValidator, TestWorktree, context, job, success};
use super::validation::Validation;
use super::validator::{FilesValidator, Proof, Validator, Verdict};
use crate::files::FileError;
use crate::reply::sigil::{PROMISE, Sigil};
use crate::reply::usage::{Class, Usage};
use crate::reply::verdict::{Failure, Kind};

const FOREVER: Limits = Limits { max_iterations: None, max_retries: 0, ..Limits::EXAMPLE };

fn complete() -> Report {
    let promise = Sigil::new(PROMISE, "COMPLETE");
    Report { sigils: [promise].into_iter().collect(), ..success() }
}

fn failed(class: Class) -> Report {
    let failure = Failure { kind: Kind::Reported, class, message: "it failed".into(), reset_at: None };
    let status = if class == Class::Limit { AttemptStatus::UsageLimit } else { AttemptStatus::AgentFailure };
    Report { status, failure: Some(failure), ..success() }
}

#[expect(clippy::unnecessary_wraps, reason = "an agent's answer")]
fn succeed(_: &Attempt<'_>, _: &mut Context<'_>) -> Result<Report, End> {
    Ok(success())
}

#[expect(clippy::unnecessary_wraps, reason = "a source's answer")]
fn ignore_calls(_: Call<'_>, _: &mut Context<'_>) -> Result<(), End> {
    Ok(())
}

#[test]
fn a_claim_that_its_validation_refutes_is_not_believed_and_the_next_prompt_is_given_why() {
    let inbox = Arc::new(Inbox::default());
    let given = RefCell::new(Vec::new());
    let source = TestSource(|call: Call<'_>, _: &mut Context<'_>| {
        match call {
            Call::Next(_, with) => given.borrow_mut().push(with.validation_error.clone()),
            Call::Book(booked) => assert_eq!(booked.proof.unwrap().ok, booked.iteration == 2),
            Call::Release | Call::Close => {}
        }
        Ok(())
    });
    let spent = Rc::new(Cell::new(0.0));
    let seen = Rc::clone(&spent);
    let listen = Box::new(move |stamped: &Stamped<'_>| {
        if let Fact::LoopEnded(_) = stamped.fact {
            seen.set(stamped.tally.spent.dollars());
        }
        Ok(())
    });
    let mut validated = 0;
    let mut job = job(
        context(&inbox, vec![listen]),
        FOREVER,
        source,
        TestAgent(|_: &Attempt<'_>, _: &mut Context<'_>| Ok(complete())),
    );
    job.validator = Some(Box::new(TestValidator(move |proof: Proof<'_>, _: &mut Context<'_>| {
        assert_eq!(proof.work.prompt, format!("prompt {}", proof.iteration));
        validated += 1;
        let mut usage = Usage::default();
        usage.cost_usd = Some(0.25);
        Ok(Verdict::Found(Validation {
            ok: validated == 2,
            output: "no".into(),
            usage,
            ..Validation::default()
        }))
    })));
    assert_eq!(run(job).outcome, Outcome::Complete);
    assert_eq!(*given.borrow(), [None, Some("no".to_owned())]);
    assert!((spent.get() - 0.5).abs() < f64::EPSILON, "what proves the work is paid for, too");
}

#[test]
fn files_that_a_failed_attempt_has_changed_are_validated_before_an_end_that_says_they_are_good() {
    struct OfFiles<'a>(&'a Cell<u32>, bool);
    impl Validator for OfFiles<'_> {
        fn validate(&mut self, _: Proof<'_>, _: &mut Context<'_>) -> Result<Verdict, End> {
            Ok(Verdict::Found(Validation { ok: true, ..Validation::default() }))
        }
        fn of_files(&mut self) -> Option<&mut dyn FilesValidator> {
            Some(self)
        }
    }
    impl FilesValidator for OfFiles<'_> {
        fn validate_files(&mut self, _: &mut Context<'_>) -> Result<Verdict, End> {
            self.0.set(self.0.get() + 1);
            Ok(Verdict::Found(Validation { ok: self.1, ..Validation::default() }))
        }
    }
    let limits = Limits { max_iterations: Some(2), on_failure: OnFailure::Count, idle: Some(9), ..FOREVER };
    for (changed, is_good, looks, outcome) in [
        (true, true, 1, Outcome::MaxIterations),
        (true, false, 1, Outcome::Unproven),
        // Git does not see everything.
        (false, false, 1, Outcome::Unproven),
    ] {
        let inbox = Arc::new(Inbox::default());
        let (attempts, looked) = (Cell::new(0), Cell::new(0));
        let agent = TestAgent(|_: &Attempt<'_>, _: &mut Context<'_>| {
            attempts.set(attempts.get() + 1);
            Ok(if attempts.get() == 1 { success() } else { failed(Class::Other) })
        });
        let mut job = job(context(&inbox, Vec::new()), limits.clone(), TestSource(ignore_calls), agent);
        job.validator = Some(Box::new(OfFiles(&looked, is_good)));
        job.worktree = Box::new(TestWorktree(|| Some(attempts.get() == 1 || changed)));
        assert_eq!((run(job).outcome, looked.get()), (outcome, looks), "{changed} {is_good}");
    }
}

#[test]
fn a_validator_can_book_that_it_begins_before_that_is_told() {
    struct Begins<'a>(&'a RefCell<Vec<&'static str>>);
    impl Validator for Begins<'_> {
        fn begin(&mut self, _: &mut Context<'_>) -> Result<(), End> {
            self.0.borrow_mut().push("begins");
            Ok(())
        }
        fn validate(&mut self, _: Proof<'_>, _: &mut Context<'_>) -> Result<Verdict, End> {
            self.0.borrow_mut().push("validates");
            Ok(Verdict::Found(Validation { ok: true, ..Validation::default() }))
        }
    }
    let order = RefCell::new(Vec::new());
    let inbox = Arc::new(Inbox::default());
    let listen = Box::new(|stamped: &Stamped<'_>| {
        if let Fact::Validating { .. } = stamped.fact {
            order.borrow_mut().push("told");
        }
        Ok(())
    });
    let agent = TestAgent(|_: &Attempt<'_>, _: &mut Context<'_>| Ok(complete()));
    let mut job = job(context(&inbox, vec![listen]), FOREVER, TestSource(ignore_calls), agent);
    job.validator = Some(Box::new(Begins(&order)));
    assert_eq!(run(job).outcome, Outcome::Complete);
    assert_eq!(*order.borrow(), ["begins", "told", "validates"]);
}

#[test]
fn an_agent_that_the_validator_asks_is_waited_for_as_any_other() {
    for (class, expected) in [
        (Class::Limit, Outcome::Complete),
        (Class::Overload, Outcome::Complete),
        (Class::Auth, Outcome::NotLoggedIn),
        (Class::Billing, Outcome::OutOfCredit),
    ] {
        let waits = Cell::new(0);
        let inbox = Arc::new(Inbox::default());
        let listen = Box::new(|stamped: &Stamped<'_>| {
            if let Fact::Waiting { .. } = stamped.fact {
                waits.set(waits.get() + 1);
                // No test has that much time.
                inbox.ask(Ask::Request(Request::Resume));
            }
            Ok(())
        });
        let source = TestSource(|_: Call<'_>, _: &mut Context<'_>| Ok(()));
        let agent = TestAgent(|_: &Attempt<'_>, _: &mut Context<'_>| Ok(complete()));
        let mut job = job(context(&inbox, vec![listen]), FOREVER, source, agent);
        let mut asked = 0;
        job.validator = Some(Box::new(TestValidator(move |_: Proof<'_>, _: &mut Context<'_>| {
            asked += 1;
            Ok(match asked {
                1 | 2 => Verdict::Unable(failed(class), Inspects::Verifies),
                _ => Verdict::Found(Validation { ok: true, ..Validation::default() }),
            })
        })));
        assert_eq!(run(job).outcome, expected, "{class:?}");
        assert_eq!(waits.get(), if expected == Outcome::Complete { 2 } else { 0 }, "{class:?}");
    }
}

#[test]
fn notes_are_given_once_and_those_that_come_meanwhile_are_for_the_next_prompt() {
    let inbox = Arc::new(Inbox::default());
    let note = |text: &str| inbox.ask(Ask::Request(Request::Note(text.to_owned())));
    let given = RefCell::new(Vec::new());
    let source = TestSource(|call: Call<'_>, context: &mut Context<'_>| {
        if let Call::Next(iteration, with) = call {
            given.borrow_mut().push(with.notes.join(" "));
            if iteration == 2 {
                note("late");
                context.wait(None)?;
            }
        }
        Ok(())
    });
    note("early");
    let limits = Limits { max_iterations: Some(4), ..FOREVER };
    let agent = TestAgent(succeed);
    assert_eq!(run(job(context(&inbox, Vec::new()), limits, source, agent)).outcome, Outcome::MaxIterations);
    assert_eq!(*given.borrow(), ["early", "", "late", ""]);
}

#[test]
fn a_note_that_comes_at_the_very_end_is_in_the_last_tally() {
    let inbox = Arc::new(Inbox::default());
    let source = TestSource(|call: Call<'_>, context: &mut Context<'_>| {
        if let Call::Close = call {
            inbox.ask(Ask::Request(Request::Note("late".to_owned())));
            context.wait(None)?;
        }
        Ok(())
    });
    let last = RefCell::new(Vec::new());
    let listen = Box::new(|stamped: &Stamped<'_>| {
        if let Fact::LoopEnded(_) = stamped.fact {
            last.borrow_mut().clone_from(&stamped.tally.notes);
        }
        Ok(())
    });
    let limits = Limits { max_iterations: Some(1), ..FOREVER };
    let agent = TestAgent(succeed);
    assert_eq!(
        run(job(context(&inbox, vec![listen]), limits, source, agent)).outcome,
        Outcome::MaxIterations
    );
    assert_eq!(*last.borrow(), ["late"]);
}

#[test]
fn the_files_are_looked_at_once_for_each_attempt() {
    let inbox = Arc::new(Inbox::default());
    let looks = Cell::new(0);
    let limits = Limits { idle: Some(2), ..FOREVER };
    let agent = TestAgent(succeed);
    let mut job = job(context(&inbox, Vec::new()), limits, TestSource(ignore_calls), agent);
    // Two attempts change something, the next two do not.
    job.worktree = Box::new(TestWorktree(|| {
        looks.set(looks.get() + 1);
        Some(looks.get() <= 2)
    }));
    assert_eq!(run(job).outcome, Outcome::Idle);
    assert_eq!(looks.get(), 4);
}

#[test]
fn what_has_to_be_renewed_is_renewed_while_an_agent_is_at_work_and_ends_the_loop_when_it_cannot_be() {
    let inbox = Arc::new(Inbox::default());
    let renewed = Rc::new(Cell::new(0));
    let counter = Rc::clone(&renewed);
    let booked = Cell::new(None);
    let source = TestSource(|call: Call<'_>, context: &mut Context<'_>| {
        let counter = Rc::clone(&counter);
        match call {
            Call::Next(..) => context.renew(Duration::from_millis(1), move || {
                counter.set(counter.get() + 1);
                if counter.get() < 3 {
                    Ok(Renewed::After(Duration::from_millis(1)))
                } else {
                    Err(Outcome::GitFailed.into())
                }
            }),
            Call::Book(attempt) => booked.set(Some(attempt.report.status)),
            Call::Release | Call::Close => {}
        }
        Ok(())
    });
    let agent = TestAgent(|_: &Attempt<'_>, context: &mut Context<'_>| {
        loop {
            context.wait(None)?;
        }
    });
    assert_eq!(run(job(context(&inbox, Vec::new()), FOREVER, source, agent)).outcome, Outcome::GitFailed);
    assert_eq!((renewed.get(), booked.get()), (3, Some(AttemptStatus::Interrupted)));
}

#[test]
fn work_that_is_lost_ends_its_attempt_and_the_loop_goes_on_with_other_work() {
    let inbox = Arc::new(Inbox::default());
    let (handed_out, booked) = (Cell::new(0), RefCell::new(Vec::new()));
    let source = TestSource(|call: Call<'_>, context: &mut Context<'_>| {
        match call {
            Call::Next(..) => {
                handed_out.set(handed_out.get() + 1);
                if handed_out.get() == 1 {
                    context.renew(Duration::ZERO, || Ok(Renewed::Lost("another one has it".into())));
                } else {
                    context.renew_no_more();
                }
            }
            Call::Book(attempt) => booked.borrow_mut().push((attempt.report.status, context.take_forfeit())),
            Call::Release | Call::Close => {}
        }
        Ok(())
    });
    let agent = TestAgent(|_: &Attempt<'_>, context: &mut Context<'_>| {
        if handed_out.get() == 1 {
            while context.urgency() < Urgency::Now {
                context.wait(None)?;
            }
            return Ok(Report { status: AttemptStatus::Interrupted, ..success() });
        }
        assert_eq!(context.urgency(), Urgency::None);
        Ok(success())
    });
    let limits = Limits { max_iterations: Some(1), ..FOREVER };
    assert_eq!(run(job(context(&inbox, Vec::new()), limits, source, agent)).outcome, Outcome::MaxIterations);
    let (lost, done) = (AttemptStatus::Interrupted, AttemptStatus::Success);
    assert_eq!(handed_out.get(), 2);
    assert_eq!(booked.take(), [(lost, Some("another one has it".to_owned())), (done, None)]);
}

/// What happens when the loop comes to a certain point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Twist {
    Nothing,
    Fault,
    Interrupt,
    CancelNow,
    Pause,
    /// Another loop meets the usage limit.
    Limit,
    /// The agent fails, is missing, meets its limit, or says that all is done.
    Fail,
    Missing,
    Limited,
    Complete,
    /// The validation finds fault, or is cut off.
    Refute,
    Cut,
}

/// Where the work that a source has handed out is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
    AtHome,
    HandedOut,
    AtWork,
    Booked,
    Closed,
}

/// A loop that meets one twist after the other, and the rules that hold all the same.
struct Night {
    inbox: Arc<Inbox>,
    twists: RefCell<VecDeque<Twist>>,
    work: Cell<Whereabouts>,
    broken: RefCell<Vec<String>>,
    board: Board,
}

impl Night {
    /// The next twist; what it asks of the loop is booked before this returns.
    fn twist(&self, context: &mut Context<'_>) -> Result<Twist, End> {
        let twist = self.twists.borrow_mut().pop_front().unwrap_or(Twist::Complete);
        let ask = match twist {
            Twist::Fault => return Err(Outcome::RecordFailed.into()),
            Twist::Interrupt => Ask::Interrupt,
            Twist::CancelNow => Ask::Request(Request::CancelNow),
            Twist::Pause => Ask::Request(Request::Pause),
            Twist::Limit => {
                self.board.close("", Utc::now() + Duration::from_mins(10), Utc::now(), Instant::now());
                return Ok(twist);
            }
            _ => return Ok(twist),
        };
        self.inbox.ask(ask);
        context.wait(Some(Instant::now()))?;
        Ok(twist)
    }

    /// The work goes from one of `from` to `to`.
    fn goes(&self, from: &[Whereabouts], to: Whereabouts) {
        let was = self.work.replace(to);
        if !from.contains(&was) {
            self.broken.borrow_mut().push(format!("{was:?} -> {to:?}"));
        }
    }

    fn source(&self, call: &Call<'_>, context: &mut Context<'_>) -> Result<(), End> {
        use Whereabouts::{AtHome, AtWork, Booked, Closed, HandedOut};
        match call {
            Call::Next(..) => {
                self.twist(context)?;
                self.goes(&[AtHome, Booked], HandedOut);
            }
            Call::Book(_) => {
                self.goes(&[AtWork], Booked);
                self.twist(context)?;
            }
            Call::Release => self.goes(&[HandedOut], AtHome),
            Call::Close => self.goes(&[AtHome, Booked], Closed),
        }
        Ok(())
    }

    fn agent(&self, context: &mut Context<'_>) -> Result<Report, End> {
        self.goes(&[Whereabouts::HandedOut, Whereabouts::Booked], Whereabouts::AtWork);
        Ok(match self.twist(context)? {
            Twist::Missing => return Err(Outcome::AgentMissing.into()),
            Twist::Fail => failed(Class::Other),
            Twist::Limited => failed(Class::Limit),
            Twist::Complete => complete(),
            _ => success(),
        })
    }

    /// Ends every wait, and fails to write once in a while.
    fn listen(&self, fact: &Fact<'_>, writes: &mut u32) -> Result<(), FileError> {
        *writes = writes.saturating_sub(1);
        if matches!(fact, Fact::Waiting { .. } | Fact::Paused) {
            self.inbox.ask(Ask::Request(Request::Resume));
        }
        let full = std::io::ErrorKind::StorageFull.into();
        if *writes == 0 { Err(FileError { path: "log".into(), reason: full }) } else { Ok(()) }
    }
}

fn any_twist() -> impl Strategy<Value = Twist> {
    use Twist::{
        CancelNow, Complete, Cut, Fail, Fault, Interrupt, Limit, Limited, Missing, Nothing, Pause, Refute,
    };
    let often = [Nothing, Nothing, Nothing, Fail, Fail, Pause, Limit, Limited, Refute];
    let rarely = [Fault, Interrupt, CancelNow, Missing, Complete, Cut];
    prop_oneof![9 => prop::sample::select(often.to_vec()), 1 => prop::sample::select(rarely.to_vec())]
}

proptest! {
    /// Whatever happens, work that a source has handed out comes back: every attempt at it is booked, or it is released.
    #[test]
    fn what_was_handed_out_is_booked_or_released(
        twists in prop::collection::vec(any_twist(), 1..60),
        writes in 1_u32..120,
        retries in 0_u32..3,
        validated in any::<bool>(),
        was_cut_off in any::<bool>(),
    ) {
        let night = Night {
            inbox: Arc::default(),
            twists: RefCell::new(twists.into()),
            work: Cell::new(Whereabouts::AtHome),
            broken: RefCell::default(),
            board: Board::default(),
        };
        let mut left = writes;
        let listen = Box::new(|stamped: &Stamped<'_>| Ok(night.listen(stamped.fact, &mut left)?));
        let source =
            TestSource(|call: Call<'_>, context: &mut Context<'_>| night.source(&call, context));
        let agent = TestAgent(|_: &Attempt<'_>, context: &mut Context<'_>| night.agent(context));
        let limits = Limits { max_retries: retries, on_failure: OnFailure::Count, ..FOREVER };
        let mut job = job(context(&night.inbox, vec![listen]), limits, source, agent);
        job.board = night.board.join();
        if was_cut_off {
            job.tally.iteration = 3;
            job.tally.last = Last::Cut;
        }
        if validated {
            let validate = |_: Proof<'_>, context: &mut Context<'_>| {
                let twist = night.twist(context)?;
                let found = Validation { ok: twist != Twist::Refute, ..Validation::default() };
                Ok(if twist == Twist::Cut { Verdict::CutOff(Box::default()) } else { Verdict::Found(found) })
            };
            job.validator = Some(Box::new(TestValidator(validate)));
        }
        let _ = run(job);
        prop_assert_eq!(night.broken.take(), Vec::<String>::new());
        prop_assert_eq!(night.work.get(), Whereabouts::Closed);
    }
}
