//! The one place where the deciding thread waits: for what small threads bring, for signals, and for deadlines.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::stop::Ask;

/// How many bytes of an attempt may lie here unread before its threads have to wait. It bounds our memory when a
/// program writes faster than the disk takes it, and keeps what waits here in the processor's cache.
const ROOM: usize = 1024 * 1024;
/// No single wait is longer, so that a stopped and continued process (Ctrl+Z, `fg`) is noticed.
const TICK: Duration = Duration::from_secs(1);
/// A tick that took this much longer than asked means that we were stopped meanwhile.
const STOPPED: Duration = Duration::from_secs(2);

/// What ended a wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Wake<M> {
    /// Something was asked of the loop.
    Asked(Ask),
    /// A message of the current attempt.
    Message(M),
    /// Somebody outside thinks that what is waited for may be there.
    Poked,
    /// We were not running for this long; deadlines have to move by it.
    Slept(Duration),
    /// The deadline has passed.
    Deadline,
}

/// The inbox of one loop. Messages carry the number of their attempt: what a thread of an earlier attempt still
/// sends is dropped, and a thread that waits for room is released when its attempt is over.
#[derive(Debug)]
pub struct Inbox<M> {
    state: Mutex<State<M>>,
    news: Condvar,
    room: Condvar,
}

#[derive(Debug)]
struct State<M> {
    asks: VecDeque<Ask>,
    messages: VecDeque<(usize, M)>,
    held: usize,
    attempt: u64,
    poked: bool,
}

/// Where the small threads of one attempt put what they have.
#[derive(Debug)]
pub struct Port<M> {
    inbox: Arc<Inbox<M>>,
    attempt: u64,
}

impl<M> Clone for Port<M> {
    fn clone(&self) -> Self {
        Self { inbox: Arc::clone(&self.inbox), attempt: self.attempt }
    }
}

impl<M> Default for Inbox<M> {
    fn default() -> Self {
        let state =
            State { asks: VecDeque::new(), messages: VecDeque::new(), held: 0, attempt: 0, poked: false };
        Self { state: Mutex::new(state), news: Condvar::new(), room: Condvar::new() }
    }
}

impl<M> Inbox<M> {
    /// A panic of another thread while it held the lock cannot leave the queue half-changed.
    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an attempt: whatever is left of the last one is forgotten.
    pub fn open(self: &Arc<Self>) -> Port<M> {
        Port { inbox: Arc::clone(self), attempt: self.close() }
    }

    /// Ends the current attempt and answers the number of the next one.
    pub fn close(&self) -> u64 {
        let mut state = self.lock();
        state.attempt += 1;
        state.messages.clear();
        state.held = 0;
        self.room.notify_all();
        state.attempt
    }

    /// Puts something asked in front of everything else. Never waits.
    pub fn ask(&self, ask: Ask) {
        self.lock().asks.push_back(ask);
        self.news.notify_all();
    }

    /// Ends a wait of the loop, so that it looks again at what it waits for. Never waits.
    pub fn poke(&self) {
        self.lock().poked = true;
        self.news.notify_all();
    }

    /// Waits for the next thing to happen, at most until `deadline`.
    pub fn wait(&self, deadline: Option<Instant>) -> Wake<M> {
        let mut state = self.lock();
        loop {
            if let Some(ask) = state.asks.pop_front() {
                return Wake::Asked(ask);
            }
            if let Some((weight, message)) = state.messages.pop_front() {
                state.held -= weight;
                self.room.notify_all();
                return Wake::Message(message);
            }
            if std::mem::take(&mut state.poked) {
                return Wake::Poked;
            }
            let before = Instant::now();
            let span = match deadline {
                Some(deadline) if deadline <= before => return Wake::Deadline,
                Some(deadline) => TICK.min(deadline.duration_since(before)),
                None => TICK,
            };
            state = self.news.wait_timeout(state, span).unwrap_or_else(PoisonError::into_inner).0;
            let gap = before.elapsed().saturating_sub(span);
            if gap > STOPPED {
                return Wake::Slept(gap);
            }
        }
    }
}

impl<M> Port<M> {
    /// Hands over `message`, which holds `weight` bytes; waits for room where it must. `false`: the attempt is
    /// over, and nobody wants more.
    pub fn post(&self, weight: usize, message: M) -> bool {
        let mut state = self.inbox.lock();
        while state.attempt == self.attempt && state.held > 0 && state.held + weight > ROOM {
            state = self.inbox.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.attempt != self.attempt {
            return false;
        }
        state.held += weight;
        state.messages.push_back((weight, message));
        self.inbox.news.notify_all();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_signal_overtakes_messages() {
        let inbox = Arc::new(Inbox::default());
        let port = inbox.open();
        assert!(port.post(1, "first"));
        inbox.ask(Ask::Interrupt);
        assert_eq!(inbox.wait(None), Wake::Asked(Ask::Interrupt));
        assert_eq!(inbox.wait(None), Wake::Message("first"));
        assert_eq!(inbox.wait(Some(Instant::now())), Wake::Deadline);
    }

    #[test]
    fn a_poke_ends_one_wait_and_comes_last() {
        let inbox = Arc::new(Inbox::default());
        let port = inbox.open();
        inbox.poke();
        assert!(port.post(1, "message"));
        assert_eq!(inbox.wait(None), Wake::Message("message"));
        assert_eq!(inbox.wait(None), Wake::Poked);
        assert_eq!(inbox.wait(Some(Instant::now())), Wake::Deadline);
    }

    #[test]
    fn a_writer_without_room_waits_and_is_released_when_the_attempt_ends() {
        let inbox = Arc::new(Inbox::default());
        let port = inbox.open();
        assert!(port.post(ROOM, 1));
        let writer = thread::spawn({
            let port = port.clone();
            move || (port.post(1, 2), port.post(ROOM, 3))
        });
        assert_eq!(inbox.wait(None), Wake::Message(1));
        assert_eq!(inbox.wait(None), Wake::Message(2));
        assert_eq!(inbox.wait(None), Wake::Message(3));
        assert_eq!(writer.join().unwrap(), (true, true));

        assert!(port.post(ROOM, 4));
        let stuck = thread::spawn(move || port.post(1, 5));
        inbox.close();
        assert!(!stuck.join().unwrap());
        assert_eq!(inbox.wait(Some(Instant::now())), Wake::Deadline, "an old message came through");
    }
}
