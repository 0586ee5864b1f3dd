//! The one place where the deciding thread waits: for messages of small threads, for signals, and for deadlines.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::stop::Ask;

/// How many bytes may be unread in a mailbox before its threads have to wait. It bounds our memory when a program writes
/// faster than the disk takes it, and keeps unread messages in the processor's cache.
const ROOM: usize = 1024 * 1024;
/// No single wait is longer, so that a stopped and continued process (Ctrl+Z, `fg`) is noticed.
const TICK: Duration = Duration::from_secs(1);
/// A tick that took this much longer than requested means that we were stopped meanwhile.
const STOPPED: Duration = Duration::from_secs(2);

/// What ended a wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Wake<M = Infallible> {
    /// A request to the loop.
    Asked(Ask),
    /// A message in the mailbox.
    Message(M),
    /// Another thread has poked the loop: what it waits for may be there.
    Poked,
    /// This process was stopped for this long; deadlines have to move by it.
    Slept(Duration),
    /// The deadline has passed.
    Deadline,
}

/// The inbox of one loop: requests from outside, and the bell that ends a wait.
#[derive(Debug, Default)]
pub struct Inbox {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    asks: VecDeque<Ask>,
    poked: bool,
}

/// Where the messages of one attempt, or of one command beside it, arrive. Dropping it closes it: later messages are thrown
/// away, and threads that wait for room are released.
#[derive(Debug)]
pub struct Mailbox<M> {
    post: Arc<Post<M>>,
}

/// Where small threads post their messages.
#[derive(Debug)]
pub struct Port<M> {
    inbox: Arc<Inbox>,
    post: Arc<Post<M>>,
}

impl<M> Clone for Port<M> {
    fn clone(&self) -> Self {
        Self { inbox: Arc::clone(&self.inbox), post: Arc::clone(&self.post) }
    }
}

/// Messages between a port and its mailbox.
#[derive(Debug)]
struct Post<M> {
    queue: Mutex<Queue<M>>,
    room: Condvar,
}

#[derive(Debug)]
struct Queue<M> {
    /// The messages, each with its size in bytes.
    messages: VecDeque<(usize, M)>,
    held: usize,
    closed: bool,
}

impl Inbox {
    /// A mailbox that this inbox waits for, and the port to it.
    #[must_use]
    pub fn open<M>(self: &Arc<Self>) -> (Port<M>, Mailbox<M>) {
        let queue = Queue { messages: VecDeque::new(), held: 0, closed: false };
        let post = Arc::new(Post { queue: Mutex::new(queue), room: Condvar::new() });
        (Port { inbox: Arc::clone(self), post: Arc::clone(&post) }, Mailbox { post })
    }

    /// Puts a request in front of all messages. Never waits.
    pub fn ask(&self, ask: Ask) {
        self.lock().asks.push_back(ask);
        self.news.notify_all();
    }

    /// Ends a wait of the loop, so that it checks again what it waits for. Never waits.
    pub fn poke(&self) {
        self.lock().poked = true;
        self.news.notify_all();
    }

    /// Waits for a request or a poke, at most until `deadline`.
    pub fn wait(&self, deadline: Option<Instant>) -> Wake {
        self.wait_for(deadline, || None)
    }

    /// Waits for a request, a poke or a message in `mailbox`, at most until `deadline`.
    pub fn listen<M>(&self, mailbox: &Mailbox<M>, deadline: Option<Instant>) -> Wake<M> {
        self.wait_for(deadline, || mailbox.post.take())
    }

    fn wait_for<M>(&self, deadline: Option<Instant>, mut take: impl FnMut() -> Option<M>) -> Wake<M> {
        let mut state = self.lock();
        loop {
            if let Some(ask) = state.asks.pop_front() {
                return Wake::Asked(ask);
            }
            // Checked under our lock, which a port has to take before it rings: no message is missed.
            if let Some(message) = take() {
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

    /// A panic of another thread while it held the lock cannot leave the queue half-changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Post<M> {
    fn take(&self) -> Option<M> {
        let mut queue = self.lock();
        let (weight, message) = queue.messages.pop_front()?;
        queue.held -= weight;
        self.room.notify_all();
        Some(message)
    }

    /// As with the inbox, a panic elsewhere cannot leave it half-changed.
    fn lock(&self) -> MutexGuard<'_, Queue<M>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Drop for Mailbox<M> {
    fn drop(&mut self) {
        let mut queue = self.post.lock();
        queue.closed = true;
        queue.messages.clear();
        self.post.room.notify_all();
    }
}

impl<M> Port<M> {
    /// Posts `message`, which has `weight` bytes; waits for room if necessary. `false`: the mailbox is closed, and the thread can
    /// stop.
    pub fn post(&self, weight: usize, message: M) -> bool {
        let mut queue = self.post.lock();
        while !queue.closed && queue.held > 0 && queue.held + weight > ROOM {
            queue = self.post.room.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.closed {
            return false;
        }
        queue.held += weight;
        queue.messages.push_back((weight, message));
        drop(queue);
        drop(self.inbox.lock());
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
        let (port, mailbox) = inbox.open();
        assert!(port.post(1, "first"));
        inbox.ask(Ask::Interrupt);
        assert_eq!(inbox.listen(&mailbox, None), Wake::Asked(Ask::Interrupt));
        assert_eq!(inbox.listen(&mailbox, None), Wake::Message("first"));
        assert_eq!(inbox.listen(&mailbox, Some(Instant::now())), Wake::Deadline);
    }

    #[test]
    fn a_poke_ends_one_wait_and_comes_last() {
        let inbox = Arc::new(Inbox::default());
        let (port, mailbox) = inbox.open();
        inbox.poke();
        assert!(port.post(1, "message"));
        assert_eq!(inbox.listen(&mailbox, None), Wake::Message("message"));
        assert_eq!(inbox.listen(&mailbox, None), Wake::Poked);
        assert_eq!(inbox.wait(Some(Instant::now())), Wake::Deadline);
    }

    #[test]
    fn a_writer_without_room_waits_and_is_released_when_the_mailbox_is_closed() {
        let inbox = Arc::new(Inbox::default());
        let (port, mailbox) = inbox.open();
        assert!(port.post(ROOM, 1));
        let writer = thread::spawn({
            let port = port.clone();
            move || (port.post(1, 2), port.post(ROOM, 3))
        });
        for number in 1..=3 {
            assert_eq!(inbox.listen(&mailbox, None), Wake::Message(number));
        }
        assert_eq!(writer.join().unwrap(), (true, true));

        assert!(port.post(ROOM, 4));
        let stuck = thread::spawn({
            let port = port.clone();
            move || port.post(1, 5)
        });
        drop(mailbox);
        assert!(!stuck.join().unwrap());
        assert!(!port.post(1, 6), "nobody reads it any more");
    }

    #[test]
    fn mailboxes_of_different_kinds_do_not_see_each_other() {
        let inbox = Arc::new(Inbox::default());
        let (words, to_words) = inbox.open();
        let (numbers, to_numbers) = inbox.open();
        assert!(words.post(1, "a word") && numbers.post(1, 7));
        assert_eq!(inbox.listen(&to_numbers, None), Wake::Message(7));
        assert_eq!(inbox.listen(&to_words, None), Wake::Message("a word"));
    }
}
