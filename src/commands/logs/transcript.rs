//! `ralph logs --agent`: what agents said and did, as in the live display, also while they work.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use anyhow::Context as _;

use super::copy::{LOOK, is_same_run, no_log, show_all};
use super::meant::{has_one_pane, meant, too_few};
use super::{newest_log, session_log, whose};
use crate::cli::LogsArgs;
use crate::commands::output::{Stream, nobody_reads};
use crate::commands::target::count;
use crate::commands::worker;
use crate::engine::fact::Fact;
use crate::record::event_line::EventLine;
use crate::record::event_lines::Follower;
use crate::record::run_folder::{self, RunStart};
use crate::settings::Verb;
use crate::view::transcript::{Flow, Transcript};

/// `ralph logs --agent`.
pub(super) fn run(args: &LogsArgs, lines: Option<usize>) -> anyhow::Result<u8> {
    let attempt = args.attempt.as_deref().map(|word| count(word, "--attempt")).transpose()?;
    let meant = meant(args)?;
    if let Some(found) = meant.found.as_ref().filter(|found| found.project.is_of_worker()) {
        if attempt.is_some() {
            return Err(has_one_pane(&found.name));
        }
        return worker::show(found, session_log(found)?.as_deref(), lines, args.follow);
    }
    let of_worker = RunStart::read(&meant.folder).is_some_and(|start| start.verb == Verb::Spawn.words());
    if let Some(log) = newest_log(&meant.folder)?.filter(|_| of_worker && attempt.is_none()) {
        // The output of its pane is in no event.
        show_all(&log, lines)?;
        return Ok(0);
    }
    let Some(first) = run_folder::event_logs(&meant.folder).into_iter().next() else {
        // Only the raw output is left.
        if let Some(log) = meant.found.as_ref().map(session_log).transpose()?.flatten() {
            show_all(&log, lines)?;
            return Ok(0);
        }
        return Err(no_log(&meant.name, &meant.folder));
    };
    whose(&meant.name, &first);
    let wanted = attempt.map(|number| number as u64);
    let mut shown = Shown { wanted, task: meant.task.clone(), ..Shown::new(lines) };
    let mut stream = Stream::new();
    let mut logs = Logs::new(&meant.folder);
    loop {
        // Checked before the logs are read, so that the last lines of a loop that ends are not missed.
        let living = meant.found.as_ref().filter(|_| args.follow);
        let is_over = living.is_none_or(|found| found.again().is_none_or(|now| !is_same_run(found, &now)));
        let is_read = logs
            .rest(&mut shown, &mut stream)
            .with_context(|| format!("cannot read the logs in {}", meant.folder.display()))?;
        let is_read = is_read && shown.catch_up(&mut stream) && stream.show();
        let is_enough = attempt.is_some_and(|number| shown.transcript.attempt() > number as u64);
        if is_over || !is_read || is_enough || nobody_reads(LOOK)? {
            break;
        }
    }
    stream.piece(shown.flow.end());
    if let Some(number) = attempt.filter(|number| *number as u64 > shown.transcript.attempt()) {
        return Err(too_few(number as u64, &meant.name, shown.transcript.attempt()));
    }
    stream.end()
}

/// The events logs of one loop's run, one after the other: after a removal the loop goes on in another one.
struct Logs<'a> {
    folder: &'a Path,
    /// The log that is read, with its number.
    open: Option<(usize, Follower)>,
}

impl<'a> Logs<'a> {
    fn new(folder: &'a Path) -> Self {
        Self { folder, open: None }
    }

    /// Shows what was added. Returns whether stdout is still open.
    fn rest(&mut self, shown: &mut Shown, stream: &mut Stream) -> io::Result<bool> {
        let logs = run_folder::event_logs(self.folder);
        loop {
            let (at, follower) = match &mut self.open {
                Some((at, follower)) => (*at, follower),
                None => match logs.first() {
                    Some(first) => {
                        let (at, follower) = self.open.insert((0, Follower::open(first)?));
                        (*at, follower)
                    }
                    None => return Ok(true),
                },
            };
            let mut goes_on = true;
            follower.rest(|_, line| {
                goes_on = shown.line(line, stream);
                goes_on
            })?;
            match logs.get(at + 1).filter(|_| goes_on) {
                Some(next) => self.open = Some((at + 1, Follower::open(next)?)),
                None => return Ok(goes_on),
            }
        }
    }
}

/// The output, of which the last lines are kept until the end of the log.
struct Shown {
    transcript: Transcript,
    flow: Flow,
    /// Only this attempt.
    wanted: Option<u64>,
    /// Only what is about this task, and whether that is what comes.
    task: Option<String>,
    is_at_task: bool,
    /// Only this many of the existing lines.
    last: Option<Last>,
}

/// The last lines of a text that comes in pieces.
struct Last {
    most: usize,
    lines: VecDeque<String>,
    open: String,
}

impl Shown {
    fn new(lines: Option<usize>) -> Self {
        let last = lines.map(|most| Last { most, lines: VecDeque::new(), open: String::new() });
        Self {
            transcript: Transcript::default(),
            flow: Flow::default(),
            wanted: None,
            task: None,
            is_at_task: false,
            last,
        }
    }

    /// Takes a line of the log. Returns whether stdout is still open.
    fn line(&mut self, line: &[u8], stream: &mut Stream) -> bool {
        // A line of a later version, or a torn one, shows nothing.
        let line = std::str::from_utf8(line).ok().and_then(|line| EventLine::read(line).ok());
        let Some(line) = line else { return true };
        if let Fact::TaskStarted { task, .. } = &line.fact {
            self.is_at_task = self.task.as_deref() == Some(&*task.id);
        }
        let entry = self.transcript.entry(&line);
        let Some(entry) = entry.filter(|_| self.task.is_none() || self.is_at_task) else { return true };
        match self.wanted {
            Some(wanted) if self.transcript.attempt() < wanted => return true,
            Some(wanted) if self.transcript.attempt() > wanted => return false,
            _ => {}
        }
        let text = self.flow.take(&entry);
        match &mut self.last {
            Some(last) => {
                last.take(&text);
                true
            }
            None => stream.piece(&text),
        }
    }

    /// The existing lines have been read, and later ones are new. Returns whether stdout is still open.
    fn catch_up(&mut self, stream: &mut Stream) -> bool {
        self.last
            .take()
            .is_none_or(|last| stream.piece(&(last.lines.into_iter().collect::<String>() + &last.open)))
    }
}

impl Last {
    fn take(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            self.open += piece;
            if piece.ends_with('\n') {
                self.lines.push_back(std::mem::take(&mut self.open));
            }
            if self.lines.len() + usize::from(!self.open.is_empty()) > self.most {
                self.lines.pop_front();
            }
        }
    }
}
