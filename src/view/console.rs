//! The one writer to stdout and stderr.
//!
//! A terminal that is held (Ctrl+S), a pager nobody scrolls or a pipe nobody reads must not hold the loop, so a
//! thread of its own does the writing. What the agent says is dropped when too much of it waits to be shown; what
//! the loop itself says is always kept. A stream whose reader is gone is given up; the loop goes on.
//!
//! The same thread keeps the status lines, one for each loop, below everything else: they are taken away before anything
//! is written and come back when there is nothing more to write.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::status_board::Board;
use super::status_line::StatusLine;
use super::terminal::Terminal;

/// How many bytes of droppable text may wait to be written.
const ROOM: usize = 8 * 1024 * 1024;
/// Pieces that wait are written together up to about this many bytes.
const BLOCK: usize = 64 * 1024;
/// The status lines are drawn no more often than this.
const REDRAW: Duration = Duration::from_millis(200);
/// They are drawn at least this often, for their clocks and for the terminal's width.
const CLOCK: Duration = Duration::from_secs(1);
/// How long a reader may take for the rest when the user wants to leave.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Where text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The handle to the writing thread.
#[derive(Debug)]
pub struct Console {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    pieces: VecDeque<(Target, String)>,
    waiting: usize,
    writing: bool,
    dropped: usize,
    board: Board,
    /// The status lines have news that are not drawn yet.
    board_is_new: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Console {
    /// Starts the writing thread.
    #[must_use]
    pub fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        // Never joined: a blocked write must not keep the process from ending.
        std::thread::spawn(move || write_all(&writer));
        Self { shared }
    }

    /// Text that must appear.
    pub fn say(&self, target: Target, text: String) {
        self.push(target, text);
    }

    /// Text that may be left out when the reader is too slow.
    pub fn show(&self, target: Target, text: String) {
        if text.is_empty() {
            return;
        }
        let mut queue = self.shared.lock();
        if queue.waiting + text.len() > ROOM {
            queue.dropped += text.len();
            return;
        }
        let dropped = std::mem::take(&mut queue.dropped);
        drop(queue);
        if dropped > 0 {
            self.push(target, format!("\n[ralph] {dropped} bytes not shown: this terminal is too slow\n"));
        }
        self.push(target, text);
    }

    fn push(&self, target: Target, text: String) {
        let mut queue = self.shared.lock();
        queue.waiting += text.len();
        queue.pieces.push_back((target, text));
        self.shared.changed.notify_all();
    }

    /// From now on the status line at this place says this; `None` takes it away.
    pub fn status(&self, place: usize, status: Option<StatusLine>) {
        let mut queue = self.shared.lock();
        if queue.board.set(place, status) {
            queue.board_is_new = true;
            self.shared.changed.notify_all();
        }
    }

    /// Waits until all is written and the status lines are gone; once `hurry` says so, only a moment longer. A reader
    /// that reads misses nothing.
    pub fn finish(&self, mut hurry: impl FnMut() -> bool) {
        let mut deadline = None;
        let mut queue = self.shared.lock();
        queue.board_is_new |= !std::mem::take(&mut queue.board).is_empty();
        self.shared.changed.notify_all();
        while queue.writing || !queue.pieces.is_empty() || queue.board_is_new {
            if hurry() {
                deadline.get_or_insert_with(|| Instant::now() + LAST_MOMENT);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return;
            }
            let wait = self.shared.changed.wait_timeout(queue, Duration::from_millis(50));
            queue = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn write_all(shared: &Shared) {
    let mut terminal = Terminal::new();
    // A loop that is over at once shows none.
    let mut drawn_at = Instant::now();
    let mut queue = shared.lock();
    loop {
        if let Some((target, mut text)) = queue.pieces.pop_front() {
            while text.len() < BLOCK
                && queue.pieces.front().is_some_and(|(next, _)| *next == target)
                && let Some((_, more)) = queue.pieces.pop_front()
            {
                text += &more;
            }
            queue.waiting -= text.len();
            queue.writing = true;
            drop(queue);
            terminal.write(target, &text);
            queue = shared.lock();
            continue;
        }
        queue.writing = false;
        shared.changed.notify_all();
        let now = Instant::now();
        let due = match (queue.board.is_empty(), queue.board_is_new) {
            (true, true) => now,
            (true, false) => {
                queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            (false, is_new) if is_new || !terminal.has_status() => drawn_at + REDRAW,
            (false, _) => drawn_at + CLOCK,
        };
        if now < due {
            let wait = shared.changed.wait_timeout(queue, due - now);
            queue = wait.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        // Written without the lock: nobody may wait for a terminal that is held.
        let board = queue.board.clone();
        queue.board_is_new = false;
        queue.writing = true;
        drop(queue);
        terminal.show_status(&board);
        drawn_at = now;
        queue = shared.lock();
    }
}
