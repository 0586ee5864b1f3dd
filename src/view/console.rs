//! The one writer to stdout and stderr.
//!
//! A terminal that is held (Ctrl+S), a pager that is not scrolled or a pipe that is not read must not hold the loop, so
//! a thread of its own does the writing. Text of the agent is dropped when too much of it is waiting; lines of the loop
//! itself are always kept. A stream whose reader is gone is given up; the loop goes on.
//!
//! That thread also keeps the status lines, one for each loop, below everything else: it erases them before it writes, and
//! draws them again when there is nothing more to write. With many branches the lines would flicker, so their text waits for
//! the next regular drawing.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::status_board::StatusBoard;
use super::status_line::StatusLine;
use super::terminal::{Target, Terminal};
use crate::threads;

/// How many bytes of droppable text may wait to be written.
const ROOM: usize = 8 * 1024 * 1024;
/// Waiting pieces are written together up to about this many bytes.
const BLOCK: usize = 64 * 1024;
/// The status lines are drawn no more often than this.
const REDRAW: Duration = Duration::from_millis(200);
/// The status lines are drawn at least this often, for their clocks and for the terminal's width.
const CLOCK: Duration = Duration::from_secs(1);
/// That limit at the end of the process, when every piece must be written.
const LAST_BLOCK: usize = 4 * 1024;
/// How long a reader may be idle at the end: a pager that is not scrolled must not keep a loop that has ended.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a reader may take for the rest when the user wants to leave.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// The handle to the writing thread.
#[derive(Debug)]
pub(crate) struct Console {
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
    /// The number of written pieces.
    written: u64,
    /// How often the bell was requested; it rings once for all.
    rings: usize,
    /// The end: no more pieces will come.
    is_ending: bool,
    dropped: usize,
    /// Why standard output failed, except for a reader that is gone.
    unwritten: Option<io::Error>,
    board: StatusBoard,
    /// Whether the status lines have changes that are not drawn yet.
    board_is_new: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, at most this long.
    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>, span: Option<Duration>) -> MutexGuard<'a, Queue> {
        match span {
            Some(span) => self.changed.wait_timeout(queue, span).unwrap_or_else(PoisonError::into_inner).0,
            None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl Console {
    /// Starts the writing thread.
    ///
    /// # Errors
    /// When the system cannot start it.
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        // Never joined: a blocked write must not keep the process from ending.
        threads::start(move || write_all(&writer))?;
        Ok(Self { shared })
    }

    /// Text that must appear.
    pub(crate) fn say(&self, target: Target, text: String) {
        self.push(target, text);
    }

    /// Rings the bell of the terminal that messages go to, if there is one.
    pub(crate) fn ring(&self) {
        self.shared.lock().rings += 1;
        self.shared.changed.notify_all();
    }

    /// Text that may be dropped when the reader is too slow.
    pub(crate) fn show(&self, target: Target, text: String) {
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
            // On stdout it could stand between JSON lines.
            let note = format!("\n[ralph] {dropped} bytes not shown: this terminal is too slow\n");
            self.push(Target::Stderr, note);
        }
        self.push(target, text);
    }

    fn push(&self, target: Target, text: String) {
        let mut queue = self.shared.lock();
        queue.waiting += text.len();
        queue.pieces.push_back((target, text));
        self.shared.changed.notify_all();
    }

    /// Sets the number of loops of the run, including those whose turn has not come.
    pub(super) fn expect(&self, loops: usize) {
        self.shared.lock().board.loops = loops;
    }

    /// Sets the status line at this place.
    pub(crate) fn status(&self, place: usize, status: StatusLine) {
        let mut queue = self.shared.lock();
        if queue.board.set(place, status) {
            queue.board_is_new = true;
            self.shared.changed.notify_all();
        }
    }

    /// Waits until half of the queue is free, so that nothing is dropped; `false` if `hurry` becomes true first.
    pub(crate) fn catch_up(&self, mut hurry: impl FnMut() -> bool) -> bool {
        let mut queue = self.shared.lock();
        while queue.waiting > ROOM / 2 {
            if hurry() {
                return false;
            }
            queue = self.shared.wait(queue, Some(Duration::from_millis(50)));
        }
        true
    }

    /// Why standard output failed, except for a reader that is gone; returned once.
    pub(super) fn unwritten(&self) -> Option<io::Error> {
        self.shared.lock().unwritten.take()
    }

    /// Waits until all is written and the status lines are erased; when `hurry` becomes true, only a moment longer. A reader
    /// that reads misses nothing; an idle one is given up.
    pub(crate) fn finish(&self, mut hurry: impl FnMut() -> bool) {
        let mut deadline = None;
        let mut queue = self.shared.lock();
        queue.is_ending = true;
        let mut progress = (queue.written, Instant::now() + PATIENCE);
        queue.board_is_new |= !std::mem::take(&mut queue.board).is_empty();
        self.shared.changed.notify_all();
        while queue.writing || queue.rings > 0 || !queue.pieces.is_empty() || queue.board_is_new {
            if hurry() {
                deadline.get_or_insert_with(|| Instant::now() + LAST_MOMENT);
            }
            if queue.written > progress.0 {
                progress = (queue.written, Instant::now() + PATIENCE);
            }
            if Instant::now() >= deadline.map_or(progress.1, |deadline: Instant| deadline.min(progress.1)) {
                return;
            }
            queue = self.shared.wait(queue, Some(Duration::from_millis(50)));
        }
    }
}

/// The next step of the writing thread.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Ring,
    Write,
    Draw,
    /// Wait until then, or until something changes.
    Wait(Option<Instant>),
}

impl Queue {
    /// The next step at `now`, when the status lines, visible or not, were drawn at `drawn_at`.
    fn step(&self, now: Instant, drawn_at: Instant, drawn: bool) -> Step {
        if self.rings > 0 {
            return Step::Ring;
        }
        let stands_still = drawn && self.board.is_many() && self.waiting < BLOCK;
        let write = (!self.pieces.is_empty()).then(|| if stands_still { drawn_at + REDRAW } else { now });
        let draw = match (self.board.is_empty(), self.board_is_new) {
            (true, is_new) => is_new.then_some(now),
            (false, is_new) => Some(drawn_at + if is_new || !drawn { REDRAW } else { CLOCK }),
        };
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        match (write, draw) {
            (write, _) if is_due(write) => Step::Write,
            // The lines come back when all is written.
            (_, draw) if is_due(draw) => Step::Draw,
            (write, draw) => Step::Wait(write.into_iter().chain(draw).min()),
        }
    }

    /// The next pieces for the same target.
    fn pop(&mut self) -> Option<(Target, String)> {
        let (target, mut text) = self.pieces.pop_front()?;
        // Between lines, because a colour must not be cut.
        if self.is_ending
            && let Some(end) = text[text.floor_char_boundary(LAST_BLOCK)..].find('\n')
        {
            let rest = text.split_off(text.floor_char_boundary(LAST_BLOCK) + end + 1);
            self.pieces.push_front((target, rest));
        }
        let block = if self.is_ending { LAST_BLOCK } else { BLOCK };
        while text.len() < block
            && self.pieces.front().is_some_and(|(next, _)| *next == target)
            && let Some((_, more)) = self.pieces.pop_front()
        {
            text += &more;
        }
        self.waiting -= text.len();
        Some((target, text))
    }
}

fn write_all(shared: &Shared) {
    let mut terminal = Terminal::new();
    // A loop that is over at once shows no status line.
    let mut drawn_at = Instant::now();
    let mut queue = shared.lock();
    loop {
        let now = Instant::now();
        // Written without the lock: no loop may wait for a terminal that is held.
        match queue.step(now, drawn_at, terminal.has_status()) {
            Step::Ring => {
                queue.rings = 0;
                queue.writing = true;
                drop(queue);
                terminal.ring();
            }
            Step::Write => {
                let Some((target, text)) = queue.pop() else { continue };
                queue.writing = true;
                drop(queue);
                let written = terminal.write(target, &text);
                queue = shared.lock();
                queue.written += 1;
                if let (Target::Stdout, Err(error)) = (target, written)
                    && error.kind() != io::ErrorKind::BrokenPipe
                {
                    queue.unwritten = Some(error);
                }
                continue;
            }
            Step::Draw => {
                let board = queue.board.clone();
                queue.board_is_new = false;
                queue.writing = true;
                drop(queue);
                terminal.show_status(&board);
                drawn_at = now;
            }
            Step::Wait(due) => {
                queue.writing = false;
                shared.changed.notify_all();
                queue = shared.wait(queue, due.map(|due| due - now));
                continue;
            }
        }
        queue = shared.lock();
    }
}

#[cfg(test)]
impl Console {
    /// Writes nothing.
    pub(super) fn held() -> Self {
        Self { shared: Arc::default() }
    }

    /// The text that would have been written since the last call.
    pub(super) fn taken(&self) -> Vec<(Target, String)> {
        let mut queue = self.shared.lock();
        std::iter::from_fn(|| queue.pop()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(status: Option<StatusLine>, text: &str) -> Queue {
        let console = Console::held();
        if let Some(status) = status {
            console.status(0, status);
        }
        if !text.is_empty() {
            console.say(Target::Stdout, text.to_owned());
        }
        Arc::into_inner(console.shared).unwrap().queue.into_inner().unwrap()
    }

    #[test]
    fn the_text_of_many_waits_for_their_lines() {
        let now = Instant::now();
        let (one, branch) = (StatusLine::new(now), StatusLine::branch("b", 1, now));
        let soon = now + Duration::from_millis(1);
        let due = now + REDRAW;
        for (status, drawn, text, step) in [
            (None, false, "", Step::Wait(None)),
            (None, true, "text", Step::Write),
            (Some(&one), false, "", Step::Wait(Some(due))),
            (Some(&one), true, "text", Step::Write),
            (Some(&branch), false, "text", Step::Write),
            (Some(&branch), true, "text", Step::Wait(Some(due))),
            (Some(&branch), true, &"x".repeat(BLOCK), Step::Write),
        ] {
            let queue = queue(status.cloned(), text);
            assert_eq!(queue.step(soon, now, drawn), step, "{status:?} {drawn} {}", text.len());
            let written_first = if text.is_empty() { Step::Draw } else { Step::Write };
            if status.is_some() {
                assert_eq!(queue.step(due, now, drawn), written_first);
            }
        }
    }

    #[test]
    fn the_clock_goes_on_without_news() {
        let now = Instant::now();
        let mut queue = queue(Some(StatusLine::new(now)), "");
        queue.board_is_new = false;
        assert_eq!(queue.step(now, now, true), Step::Wait(Some(now + CLOCK)));
        assert_eq!(queue.step(now + CLOCK, now, true), Step::Draw);
        queue.board = StatusBoard::default();
        assert_eq!(queue.step(now, now, true), Step::Wait(None));
        queue.board_is_new = true;
        assert_eq!(queue.step(now, now, true), Step::Draw, "they are taken away at once");
    }
}
