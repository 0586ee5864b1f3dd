//! The lane to one target: a bounded queue, and a thread that sends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use super::message::Message;
use super::outbox::Outbox;
use super::sender::Sender;
use super::shared::{Load, Order, Shared};
use super::webhook::Poster;
use super::{desktop, program};
use crate::process::launch::Launch;
use crate::settings::notify::{Target, Webhook};
use crate::text::count;
use crate::threads;

/// The most messages that may wait for one target.
const ROOM: usize = 256;

/// The lane to one target.
pub(super) struct Lane {
    target: Target,
    queue: SyncSender<Order>,
    pub(super) load: Arc<Load>,
    shared: Arc<Shared>,
}

impl Lane {
    /// A lane to a command, which gets each message as a line on stdin.
    pub(super) fn of_command(
        shared: &Arc<Shared>,
        command: String,
        launch: Launch,
        limit: Duration,
    ) -> io::Result<Self> {
        let flag = Arc::clone(shared);
        let tell = move |message: &Message| {
            let launch = Launch { mark: message.run.clone(), ..launch.clone() };
            let told = program::run(&launch.shell(&command), &message.line, limit, &flag.cancelled);
            told.map(drop).map_err(|failed| format!("the notice command has failed: {}", failed.why))
        };
        Self::start(Target::Command, shared, tell)
    }

    /// A lane to the desktop.
    pub(super) fn of_desktop(shared: &Arc<Shared>, launch: Launch) -> io::Result<Self> {
        let flag = Arc::clone(shared);
        let tell = move |message: &Message| {
            let launch = Launch { mark: message.run.clone(), ..launch.clone() };
            desktop::show(&launch, message, &flag.cancelled).map_err(|why| {
                format!(
                    "the desktop shows no notices: {why}: run 'ralph doctor', or set notify.desktop = false \
                     where there is no desktop"
                )
            })
        };
        Self::start(Target::Desktop, shared, tell)
    }

    /// A lane to a webhook, starting with the messages that earlier processes have left for it.
    pub(super) fn of_webhook(shared: &Arc<Shared>, webhook: Webhook, outbox: Outbox) -> io::Result<Self> {
        let (lane, orders) = Self::new(Target::Webhook, shared);
        let sender = Sender::new(Poster::new(webhook), outbox, Arc::clone(shared), Arc::clone(&lane.load));
        threads::start(move || sender.run(&orders))?;
        Ok(lane)
    }

    /// A lane whose thread sends one message after the other, and reports the first failure in a row.
    fn start(
        target: Target,
        shared: &Arc<Shared>,
        mut tell: impl FnMut(&Message) -> Result<(), String> + Send + 'static,
    ) -> io::Result<Self> {
        let (lane, orders) = Self::new(target, shared);
        let (load, shared) = (Arc::clone(&lane.load), Arc::clone(shared));
        threads::start(move || {
            let mut has_failed = false;
            for order in orders {
                let Order::Tell(message) = order else { continue };
                if shared.cancelled.load(Ordering::Acquire) {
                    break;
                }
                let told = tell(&message);
                if let Err(why) = &told
                    && !has_failed
                {
                    shared.word(why.clone());
                }
                has_failed = told.is_err();
                load.remove();
                shared.changed();
            }
            load.end();
            shared.changed();
        })?;
        Ok(lane)
    }

    fn new(target: Target, shared: &Arc<Shared>) -> (Self, Receiver<Order>) {
        let (queue, orders) = sync_channel(ROOM);
        (Self { target, queue, load: Arc::default(), shared: Arc::clone(shared) }, orders)
    }

    pub(super) fn target(&self) -> Target {
        self.target
    }

    /// Never blocks: a message that does not fit is dropped, which is reported once.
    pub(super) fn tell(&self, message: &Message) {
        self.load.add();
        if self.queue.try_send(Order::Tell(Box::new(message.clone()))).is_err() {
            self.load.remove();
            if !self.load.is_full.swap(true, Ordering::AcqRel) {
                let target = self.target.word();
                self.shared.word(format!("{target} cannot deliver notices fast enough: some are left out"));
            }
        }
    }

    /// Wakes the thread to check the shared state.
    pub(super) fn wake(&self) {
        let _ = self.queue.try_send(Order::Wake);
    }

    /// Whether no message waits that could still be sent.
    pub(super) fn is_through(&self) -> bool {
        self.load.is_through.load(Ordering::Acquire) || self.load.waiting.load(Ordering::Acquire) == 0
    }

    /// Reports unsent messages.
    pub(super) fn tell_what_is_left(&self) {
        let left = self.load.waiting.load(Ordering::Acquire);
        if left == 0 || self.load.is_known.load(Ordering::Acquire) {
            return;
        }
        let (left, target) = (count::of(left as u64, "notice"), self.target.word());
        let then = match self.target {
            Target::Webhook => ": what is kept is sent when a loop starts here next",
            _ => "",
        };
        self.shared.word(format!("{left} could not be delivered by {target} in time{then}"));
    }
}
