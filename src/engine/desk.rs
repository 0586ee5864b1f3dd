//! Where the loop gives orders that may take long, to something on a thread of its own; it hears requests meanwhile.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::context::Context;
use super::fact::{Fact, WaitReason};
use super::inbox::Wake;
use super::outcome::{End, Outcome};
use super::stop::Urgency;
use super::uptime::Uptime;
use crate::text::duration;
use crate::threads;

/// How long an order may take.
const LONGEST: Duration = Duration::from_mins(3);
/// How often a duty, and what is away, are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long an order that is under way has from the moment on when the loop has to stop.
const GRACE: Duration = Duration::from_millis(800);
/// How long an order has that comes after that moment: it books what the loop leaves behind.
const LAST: Duration = Duration::from_secs(3);

type Order<S> = Box<dyn FnOnce(&mut S) + Send>;

/// Until when what stands behind the desk is waited for that cannot be reached now, and why it cannot; `None`: it is there.
pub type Away = Box<dyn Fn() -> Option<(DateTime<Utc>, String)> + Send>;

/// What a desk is sent.
enum Sent<S> {
    Order(Order<S>),
    /// From now on its duty is this, or none.
    Duty(Option<Duty<S>>),
}

/// What is done again and again between orders.
struct Duty<S> {
    every: Duration,
    /// When it was begun last.
    last: Uptime,
    act: Box<dyn FnMut(&mut S) + Send>,
}

impl<S> Duty<S> {
    /// How long until it is due.
    fn left(&self) -> Duration {
        self.every.saturating_sub(self.last.elapsed())
    }
}

/// Takes orders, which are carried out one after the other with an `S`.
pub struct Desk<S> {
    /// What messages call it.
    name: &'static str,
    /// `None`: it is being closed.
    orders: Option<Sender<Sent<S>>>,
    /// Closed when the thread has dropped its `S`.
    closed: Receiver<()>,
    /// Whether an order was given up. Others would have to wait behind it.
    is_stuck: Cell<bool>,
    /// How long an order may take.
    longest: Duration,
    away: Away,
}

impl<S: Send + 'static> Desk<S> {
    /// A desk with `served` behind it, which messages call `name`.
    ///
    /// # Errors
    /// If the system has no room for another thread.
    pub fn open(name: &'static str, served: S) -> std::io::Result<Self> {
        let (orders, taken) = channel::<Sent<S>>();
        let (is_open, closed) = channel::<()>();
        threads::start(move || {
            let _dropped_last = is_open;
            serve(served, &taken);
        })?;
        let (is_stuck, away): (_, Away) = (Cell::new(false), Box::new(|| None));
        Ok(Self { name, orders: Some(orders), closed, is_stuck, longest: LONGEST, away })
    }

    /// The desk, where what is behind it waits itself, at most this long, while something cannot be reached.
    #[must_use]
    pub fn waiting(mut self, longest: Duration, away: Away) -> Self {
        self.longest += longest;
        self.away = away;
        self
    }

    /// From here on does this each time after `every`, beside the orders. There is one such duty; a new one replaces the last.
    pub fn begin_duty(&self, every: Duration, act: impl FnMut(&mut S) + Send + 'static) {
        self.send(Sent::Duty(Some(Duty { every, last: Uptime::now(), act: Box::new(act) })));
    }

    /// Ends the duty.
    pub fn end_duty(&self) {
        self.send(Sent::Duty(None));
    }

    fn send(&self, sent: Sent<S>) {
        // Its thread lives as long as there are orders.
        let _ = self.orders.as_ref().map(|orders| orders.send(sent));
    }

    /// Gives an order and waits for its result. It is given up when it takes too long, and soon after the loop has to stop this
    /// urgently, or more; it may still be carried out then.
    ///
    /// # Errors
    /// The loop's end, if the order was given up, or if the loop cannot go on.
    pub fn ask<T: Send + 'static>(
        &self,
        context: &mut Context<'_>,
        unless: Urgency,
        order: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> Result<T, End> {
        let (port, mailbox) = context.open();
        let span = if context.urgency() < unless { self.longest } else { context.last(LAST) };
        let mut deadline = Instant::now() + self.unless_stuck(span);
        let mut told = false;
        self.give(order, move |answer| {
            port.post(0, answer);
        });
        loop {
            if let Some((until, why)) = (self.away)().filter(|_| !told) {
                told = true;
                context.tell(Fact::waiting_for(WaitReason::Store, until, why))?;
                if context.is_to_leave() {
                    deadline = deadline.min(Instant::now() + GRACE);
                }
            }
            match context.listen(&mailbox, Some(deadline.min(Instant::now() + LOOK)))? {
                Wake::Message(answer) => {
                    if told {
                        context.tell(Fact::Resumed { blind_waits: None, waited_s: None })?;
                    }
                    return Ok(answer.unwrap_or_else(|panic| resume_unwind(panic)));
                }
                // Ctrl+C and 'ralph cancel' end a wait at once.
                Wake::Asked(_) if context.urgency() >= unless || told && context.is_to_leave() => {
                    deadline = deadline.min(Instant::now() + GRACE);
                }
                Wake::Asked(_) | Wake::Poked => {}
                Wake::Slept(gap) => deadline += gap,
                Wake::Deadline if Instant::now() < deadline => {}
                Wake::Deadline => return Err(self.given_up(context.stopped_by())),
            }
        }
    }

    /// Gives an order and waits for its result where no loop runs.
    ///
    /// # Errors
    /// If it takes too long.
    pub fn ask_before<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> Result<T, End> {
        let answer = self.begin(order).recv_timeout(self.unless_stuck(self.longest));
        let answer = answer.map_err(|_| self.given_up(None))?;
        Ok(answer.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Gives an order, whose result arrives later.
    fn begin<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> Receiver<thread::Result<T>> {
        let (port, answer) = channel();
        self.give(order, move |result| {
            // The asker may be gone.
            let _ = port.send(result);
        });
        answer
    }

    /// The loop's end because of an order without an answer.
    fn given_up(&self, stopped_by: Option<Outcome>) -> End {
        self.is_stuck.set(true);
        let name = self.name;
        match stopped_by {
            Some(outcome) => {
                let why =
                    format!("{name} did not answer: what was to be booked in it is left to the next run");
                End::because(outcome, why)
            }
            None => End::because(
                Outcome::RecordFailed,
                format!(
                    "{name} has not answered for {}: see whether its disk hangs or another program holds it, then run again",
                    duration::format(self.longest)
                ),
            ),
        }
    }

    fn unless_stuck(&self, span: Duration) -> Duration {
        if self.is_stuck.get() { Duration::ZERO } else { span }
    }

    /// A panic of the order is the asker's.
    fn give<T>(
        &self,
        order: impl FnOnce(&mut S) -> T + Send + 'static,
        answer: impl FnOnce(thread::Result<T>) + Send + 'static,
    ) {
        let order: Order<S> =
            Box::new(move |served| answer(catch_unwind(AssertUnwindSafe(|| order(served)))));
        self.send(Sent::Order(order));
    }
}

/// Carries out orders, and the duty between them, until no more can come.
fn serve<S>(mut served: S, taken: &Receiver<Sent<S>>) {
    let mut duty: Option<Duty<S>> = None;
    loop {
        if let Some(due) = duty.as_mut().filter(|duty| duty.left().is_zero()) {
            due.last = Uptime::now();
            (due.act)(&mut served);
        }
        // The clock of waits stands still while the machine sleeps: that of the duty is looked at often.
        let sent = match &duty {
            Some(duty) => taken.recv_timeout(duty.left().min(LOOK)),
            None => taken.recv().map_err(RecvTimeoutError::from),
        };
        match sent {
            Ok(Sent::Order(order)) => order(&mut served),
            Ok(Sent::Duty(new)) => duty = new,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl<S> Drop for Desk<S> {
    /// Waits until what was behind it is closed, unless that would be in vain.
    fn drop(&mut self) {
        self.orders = None;
        if !self.is_stuck.get() {
            let _ = self.closed.recv_timeout(LAST);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::inbox::Inbox;
    use crate::engine::stop::Ask;
    use crate::engine::testing::context;

    /// Holds the thread of a desk up until the answer is dropped.
    fn hold(desk: &Desk<u32>) -> Sender<()> {
        let (sender, dropped) = channel::<()>();
        desk.begin(move |_| dropped.recv());
        sender
    }

    /// A desk with a number, and what holds its thread up until it is dropped.
    fn held() -> (Desk<u32>, Sender<()>) {
        let desk = Desk::open("the number", 7).unwrap();
        let hold = hold(&desk);
        (desk, hold)
    }

    #[test]
    fn orders_are_carried_out_in_their_order() {
        let inbox = Arc::new(Inbox::default());
        let mut context = context(&inbox, Vec::new());
        let (desk, hold) = held();
        let doubled = desk.begin(|number| *number *= 2);
        assert!(doubled.try_recv().is_err(), "it is not its turn yet");
        drop(hold);
        assert_eq!(desk.ask(&mut context, Urgency::AfterAttempt, |number| *number + 1), Ok(15));
        assert!(doubled.try_recv().is_ok());
        assert_eq!(desk.ask_before(|number| *number), Ok(14));
    }

    #[test]
    fn a_request_ends_the_wait_for_an_order_and_the_next_ones_do_not_wait() {
        let inbox = Arc::new(Inbox::default());
        let mut context = context(&inbox, Vec::new());
        let (desk, _hold) = held();
        inbox.ask(Ask::Interrupt);
        let began = Instant::now();
        let end = desk.ask(&mut context, Urgency::AfterAttempt, |number| *number).unwrap_err();
        assert_eq!(end.outcome, Outcome::Interrupted);
        let waited = began.elapsed();
        assert!(waited >= GRACE, "{waited:?}");
        let end = desk.ask(&mut context, Urgency::Now, |number| *number).unwrap_err();
        assert_eq!(end.outcome, Outcome::Interrupted);
        assert!(began.elapsed() < waited + LAST, "{:?}", began.elapsed());
    }

    #[test]
    fn what_is_booked_is_waited_for_after_one_request_and_not_after_two() {
        let inbox = Arc::new(Inbox::default());
        let mut context = context(&inbox, Vec::new());
        let (desk, hold) = held();
        inbox.ask(Ask::Interrupt);
        let releases = thread::spawn(move || {
            thread::sleep(GRACE * 2);
            drop(hold);
        });
        assert_eq!(desk.ask(&mut context, Urgency::Now, |number| *number), Ok(7));
        releases.join().unwrap();

        let _hold = self::hold(&desk);
        inbox.ask(Ask::Interrupt);
        assert!(desk.ask(&mut context, Urgency::Now, |number| *number).is_err());
    }

    #[test]
    fn a_duty_is_done_between_orders_until_it_ends() {
        let desk = Desk::open("the number", 0).unwrap();
        let (port, acts) = channel();
        desk.begin_duty(Duration::from_millis(1), move |number: &mut u32| {
            *number += 1;
            port.send(*number).unwrap();
        });
        assert_eq!((acts.recv(), acts.recv()), (Ok(1), Ok(2)));
        assert!(desk.ask_before(|number| *number).unwrap() >= 2);
        desk.end_duty();
        let acted = desk.ask_before(|number| *number).unwrap();
        // What the duty was done with is gone: no more of it can come.
        assert_eq!(acts.into_iter().last().unwrap_or(2), acted);
    }

    #[test]
    fn a_panic_of_an_order_is_its_askers() {
        let inbox = Arc::new(Inbox::default());
        let mut context = context(&inbox, Vec::new());
        let desk = Desk::open("the number", 7).unwrap();
        let asked = catch_unwind(AssertUnwindSafe(|| {
            desk.ask(&mut context, Urgency::Now, |number| assert_eq!(*number, 8))
        }));
        assert!(asked.is_err());
        assert_eq!(desk.ask_before(|number| *number), Ok(7), "the desk goes on");
    }
}
