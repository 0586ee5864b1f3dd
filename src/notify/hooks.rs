//! The user's hooks of one loop: one at a time, in order, with the event on stdin.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::GONE_WITHIN;
use super::program::{self, Failed};
use crate::engine::context::News;
use crate::engine::event::Stamped;
use crate::engine::fact::Fact;
use crate::process::launch::Launch;
use crate::record::event_line::line_of;
use crate::settings::notify::HookSettings;
use crate::threads;

/// The most hooks that may wait.
const ROOM: usize = 64;
/// How often the end of the last one is checked.
const LOOK: Duration = Duration::from_millis(20);

/// The hooks of one loop.
pub(crate) struct Hooks {
    settings: HookSettings,
    /// `None` without hooks.
    queue: Option<SyncSender<Job>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    news: Mutex<VecDeque<News>>,
    waiting: AtomicUsize,
    cancelled: AtomicBool,
    is_full: AtomicBool,
}

impl Shared {
    fn tell(&self, news: News) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push_back(news);
    }
}

/// A hook to run.
struct Job {
    hook: &'static str,
    command: String,
    line: String,
}

impl Hooks {
    /// Starts their thread, if there are any. `launch` says where and how they run.
    pub(crate) fn start(settings: &HookSettings, launch: Launch) -> Self {
        let shared = Arc::<Shared>::default();
        let HookSettings { on_loop_start, on_iteration, on_end, timeout } = settings;
        let is_there = [on_loop_start, on_iteration, on_end].into_iter().any(Option::is_some);
        let queue = is_there.then(|| {
            let (queue, jobs) = sync_channel(ROOM);
            let (its, limit) = (Arc::clone(&shared), *timeout);
            if let Err(error) = threads::start(move || work(&jobs, &launch, limit, &its)) {
                shared.tell(News::Notice(format!("no hook can run: {error}")));
            }
            queue
        });
        Self { settings: settings.clone(), queue, shared }
    }

    /// Takes one fact.
    pub(crate) fn take(&self, stamped: &Stamped<'_>) {
        let Some(queue) = &self.queue else { return };
        let (hook, command) = match stamped.fact {
            Fact::LoopStarted { .. } => ("on_loop_start", &self.settings.on_loop_start),
            Fact::AttemptEnded(_) => ("on_iteration", &self.settings.on_iteration),
            Fact::LoopEnded(_) => ("on_end", &self.settings.on_end),
            _ => return,
        };
        let Some(command) = command.clone() else { return };
        self.shared.waiting.fetch_add(1, Ordering::AcqRel);
        match queue.try_send(Job { hook, command, line: line_of(stamped) }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) if !self.shared.is_full.swap(true, Ordering::AcqRel) => {
                self.shared.waiting.fetch_sub(1, Ordering::AcqRel);
                let text =
                    format!("hooks take longer than what they follow: some runs of {hook} are left out");
                self.shared.tell(News::Notice(text));
            }
            Err(_) => drop(self.shared.waiting.fetch_sub(1, Ordering::AcqRel)),
        }
    }

    /// The next result of a hook.
    pub(crate) fn news(&self) -> Option<News> {
        self.shared.news.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Waits until the last one has ended, at most for its time limit, and less once `hurry` says so; none is left
    /// running.
    pub(crate) fn finish(&self, mut hurry: impl FnMut() -> bool) {
        let is_busy = || self.shared.waiting.load(Ordering::Acquire) > 0;
        // The running one and the last one, each within its limit.
        let deadline = Instant::now() + self.settings.timeout.saturating_mul(2);
        while is_busy() && Instant::now() < deadline && !hurry() {
            std::thread::sleep(LOOK);
        }
        self.shared.cancelled.store(true, Ordering::Release);
        let gone_by = Instant::now() + GONE_WITHIN;
        while is_busy() && Instant::now() < gone_by {
            std::thread::sleep(LOOK);
        }
    }
}

fn work(jobs: &Receiver<Job>, launch: &Launch, limit: Duration, shared: &Shared) {
    // A hook that fails each time is reported once.
    let mut failing: Vec<&str> = Vec::new();
    for Job { hook, command, line } in jobs {
        if shared.cancelled.load(Ordering::Acquire) {
            shared.tell(News::Notice(format!("hook {hook} was not run: there was no time left")));
        } else {
            let result = program::run(&launch.shell(command), &line, limit, &shared.cancelled);
            let (ok, output, why) = match result {
                Ok(output) => (true, output, None),
                Err(Failed { why, output }) => (false, output, Some(why)),
            };
            shared.tell(News::Hook { hook, ok, output });
            if ok {
                failing.retain(|known| *known != hook);
            }
            if let Some(why) = why.filter(|_| !failing.contains(&hook)) {
                failing.push(hook);
                shared.tell(News::Notice(format!("hook {hook} has failed: {why}")));
            }
        }
        shared.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
