//! Signals and requests as messages: small threads post them into the inboxes of the loops that they are for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals as Caught;

use crate::engine::inbox::Inbox;
use crate::engine::stop::{Ask, Request};
use crate::git;
use crate::platform::calls::ignored_signals;
use crate::record::requests::Requests;
use crate::threads;

/// How often requests from other terminals are checked.
const LOOK: Duration = Duration::from_millis(200);

/// The signals that came, and the loops of this process that get them.
#[derive(Clone, Default)]
pub(crate) struct Signals {
    heard: Arc<Mutex<Heard>>,
    /// One has come.
    has_come: Arc<AtomicBool>,
}

#[derive(Default)]
struct Heard {
    /// What a loop that joins hears first.
    asks: Vec<Ask>,
    /// What is done when the user wants to leave.
    leaving: Vec<Box<dyn Fn() + Send>>,
    /// How many signals have come, with the end of the time after one.
    signals: usize,
    /// How long an attempt may go on after SIGTERM or SIGHUP; `None`: as long as it takes.
    grace: Option<Duration>,
    inboxes: Vec<Weak<Inbox>>,
}

impl Signals {
    /// From here on Ctrl+C, SIGTERM and SIGHUP are requests to loops. A signal that was ignored when we were started
    /// (`nohup`, `&` in a script) stays ignored.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let ignored = ignored_signals();
        let is_wanted = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
        let wanted: Vec<i32> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(is_wanted).collect();
        let mut caught = Caught::new(&wanted)?;
        let signals = Self::default();
        let heard = signals.clone();
        threads::start(move || {
            for signal in caught.forever() {
                heard.tell(&match signal {
                    SIGINT => Ask::Interrupt,
                    SIGHUP => Ask::HangUp,
                    _ => Ask::Terminate,
                });
            }
        })?;
        Ok(signals)
    }

    /// From here on attempts may go on for so long after SIGTERM or SIGHUP.
    pub(crate) fn allow(&self, grace: Option<Duration>) {
        self.lock().grace = grace;
    }

    /// From here on this loop gets them, too, and at once those that came before.
    pub(crate) fn join(&self, inbox: &Arc<Inbox>) {
        let mut heard = self.lock();
        heard.asks.iter().for_each(|ask| inbox.ask(ask.clone()));
        heard.inboxes.push(Arc::downgrade(inbox));
    }

    /// Set when one has come: what begins before there are loops ends at that.
    pub(crate) fn has_come(&self) -> &Arc<AtomicBool> {
        &self.has_come
    }

    /// How many signals have come.
    pub(crate) fn count(&self) -> usize {
        self.lock().signals
    }

    /// Does this when the user wants to leave now: at the second signal, and when no time is left after the first.
    pub(crate) fn when_leaving(&self, act: impl Fn() + Send + 'static) {
        let mut heard = self.lock();
        if heard.signals > 1 {
            act();
        }
        heard.leaving.push(Box::new(act));
    }

    /// Passes a request from elsewhere on to all loops, also to those that join later.
    pub(crate) fn pass(&self, ask: &Ask) {
        let mut heard = self.lock();
        match ask {
            Ask::Request(Request::Cancel | Request::CancelNow) => heard.asks.push(ask.clone()),
            Ask::Request(Request::Pause | Request::Resume) => {
                heard.asks.retain(|one| *one != Ask::Request(Request::Pause));
                // One that joins later waits for nothing yet.
                heard.asks.extend(Some(ask.clone()).filter(|ask| *ask == Ask::Request(Request::Pause)));
            }
            // The others hold for what is at work now.
            _ => {}
        }
        heard.inboxes.iter().filter_map(Weak::upgrade).for_each(|inbox| inbox.ask(ask.clone()));
    }

    fn tell(&self, ask: &Ask) {
        let mut heard = self.lock();
        heard.asks.push(ask.clone());
        heard.signals += 1;
        self.has_come.store(true, Ordering::Relaxed);
        if matches!(ask, Ask::Terminate | Ask::HangUp)
            && let Some(grace) = heard.grace.take()
        {
            let others = self.clone();
            // Without a thread for it, the one who has sent the signal ends the process.
            let _ = threads::start(move || {
                std::thread::sleep(grace);
                others.tell(&Ask::GraceOver);
            });
        }
        if heard.signals > 1 {
            // Work trees that are being made end with the agents.
            git::change::leave();
            heard.leaving.iter().for_each(|act| act());
        }
        heard.inboxes.retain(|inbox| {
            inbox.upgrade().is_some_and(|inbox| {
                inbox.ask(ask.clone());
                true
            })
        });
    }

    /// A panic of another thread cannot leave the lists half-changed.
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread that brings the loop its requests from other terminals, as long as the loop exists. It begins when it gets
/// the folder: it can be started before there are records, which a loop that cannot start must not leave.
pub(crate) fn watch_requests(inbox: &Arc<Inbox>) -> std::io::Result<Sender<Arc<Requests>>> {
    let inbox = Arc::downgrade(inbox);
    let (give, given) = channel::<Arc<Requests>>();
    threads::start(move || {
        let Ok(requests) = given.recv() else { return };
        while let Some(inbox) = inbox.upgrade() {
            for request in requests.look() {
                inbox.ask(Ask::Request(request));
            }
            drop(inbox);
            std::thread::sleep(LOOK);
        }
    })?;
    Ok(give)
}
