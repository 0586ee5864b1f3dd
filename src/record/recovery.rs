//! Reads what the events log of a loop has beyond its state. The log is written first, so a killed process may have
//! left an older state; a lost state is rebuilt from the log.

use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use chrono::Local;

use super::event_line::EventLine;
use super::event_lines::event_of;
use super::iterations_log::Steps;
use super::run_folder::{RunStart, event_logs};
use super::state::State;
use super::state_read::{self, Extent, Found};
use super::{lock, log_of_state, registry};
use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::fact::Fact;
use crate::files::own;
use crate::project::Project;
use crate::tell::words;

/// The size of one read in bytes.
const CHUNK: usize = 256 << 10;
/// Longer lines are not ours, in bytes.
const LONGEST: u64 = 64 << 20;
/// Frequent events that do not change the state.
const OF_NO_STATE: [&str; 8] =
    ["text", "text_delta", "thought", "tool", "agent_error", "agent_notice", "permission", "notice"];

/// What an earlier process of a loop did before it was killed, and its state does not have.
#[derive(Debug, Default)]
pub struct ReadOn {
    /// The run that was killed.
    from: String,
    /// According to the state, an attempt was running, whatever the log says: an agent can add lines to the log.
    pub was_in_attempt: bool,
    /// How many attempts had ended.
    pub attempts: u64,
    /// Their cost in US dollars, as far as agents reported it.
    cost_usd: Option<f64>,
    /// The line of the last step for the iterations log, which may lack it as well.
    pub step: Option<String>,
}

impl ReadOn {
    fn of(state: &State) -> Self {
        Self { from: state.run.clone(), was_in_attempt: state.tally.in_attempt, ..Self::default() }
    }

    fn has_more(&self) -> bool {
        self.attempts > 0 || self.cost_usd.is_some()
    }

    /// A notice about the attempts and the cost that were not booked.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        self.has_more().then(|| words::recovered(self.attempts, self.cost_usd))
    }

    /// The fact that some were not booked.
    #[must_use]
    pub fn into_fact(self) -> Option<Fact<'static>> {
        self.has_more().then(|| {
            let Self { from, attempts, cost_usd, .. } = self;
            Fact::Recovered { attempts, cost_usd, from: from.into() }
        })
    }

    /// Applies a line to the state.
    fn take(&mut self, line: &EventLine<'_>, state: &mut State) {
        let (was_in_attempt, before) = (state.tally.in_attempt, state.tally.spent.dollars());
        state.apply(line.at.to_utc(), &line.fact);
        self.attempts += u64::from(was_in_attempt && matches!(line.fact, Fact::AttemptEnded(_)));
        // An attempt that had not ended may have been paid for as well.
        let spent = state.tally.spent.dollars() - before;
        if was_in_attempt && spent > 0.0 {
            *self.cost_usd.get_or_insert_default() += spent;
        }
        self.step = step(line, state).or(self.step.take());
    }
}

/// The line of the iterations log for an end; `None` for any other fact.
fn step(line: &EventLine<'_>, state: &State) -> Option<String> {
    if !matches!(line.fact, Fact::AttemptEnded(_) | Fact::LoopEnded(_)) {
        return None;
    }
    let (run, name) = (state.run.clone(), state.name.clone());
    let identity = LoopIdentity { run, name, mode: state.mode.clone(), agent: state.agent.clone() };
    let at = line.at.with_timezone(&Local);
    Steps::default().line(&Stamped::new(at, &identity, &state.tally, &line.fact))
}

/// The state of the loop `name` at these paths, completed from its events log, and what the log added. Nothing is
/// written. The state of a running loop is what its file says.
///
/// # Errors
/// If the state exists and cannot be read.
pub fn read(project: &Project, name: &str, extent: Extent) -> io::Result<(Found, Option<ReadOn>)> {
    let anew = |lost, otherwise| match remade(project, name, lost) {
        Some((state, recovered)) => (Found::State(Box::new(state)), Some(recovered)),
        None => (otherwise, None),
    };
    Ok(match state_read::read(&project.state(), extent)? {
        Found::State(mut state) if state.active && !is_held(project, &state) => {
            let recovered = read_on(project, &mut state);
            (Found::State(state), recovered)
        }
        Found::Damaged(why) => anew(Lost::Content, Found::Damaged(why)),
        Found::Nothing => anew(Lost::File, Found::Nothing),
        found => (found, None),
    })
}

/// Whether the run of this state holds its lock. Its process alone does not show that: in a copy of a project, it
/// belongs to the original.
pub(super) fn is_held(project: &Project, state: &State) -> bool {
    let holder = || lock::holder(&project.lock()).ok().flatten();
    state.active && holder().is_some_and(|holder| holder.run_id == state.run)
}

/// What is lost of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// The file's content. The newest loop had begun, even if a power cut emptied its log: logs are not synced.
    Content,
    /// The file itself. The newest loop may not have begun; if `ralph clean` forgot it, its registry entry was
    /// removed, too.
    File,
}

/// The state of the newest loop at these paths, rebuilt from its logs, and all attempts in them.
fn remade(project: &Project, name: &str, lost: Lost) -> Option<(State, ReadOn)> {
    let entry = || registry::find(&project.registry()?, name, project.ralph_dir());
    if project.is_of_worker() {
        // A worker's runs are among those of other loops; only the registry has its folder.
        let entry = entry()?;
        let places = entry.places(project);
        return of_folder(&places, &places.run(&entry.run_id), lost);
    }
    let entry = if lost == Lost::File { Some(entry()?) } else { None };
    let mut newest = project.all_logs().into_iter().filter_map(|folder| of_folder(project, &folder, lost));
    newest.next().filter(|(state, _)| entry.is_none_or(|entry| entry.run_id == state.run))
}

/// The state of the loop whose logs are in this folder; `None` if no loop is known to have begun there, or if it is a
/// worker's at other paths.
fn of_folder(project: &Project, folder: &Path, lost: Lost) -> Option<(State, ReadOn)> {
    let start = RunStart::read(folder)?;
    let setup = *start.setup.filter(|setup| setup.worker.is_some() == project.is_of_worker())?;
    let logs = event_logs(folder);
    let started = start.identity.filter(|_| lost == Lost::Content);
    let identity = logs.iter().find_map(|log| begun(log)).or(started)?;
    let (argv, records) = (start.argv, Some(project.records()));
    let state = State::new(&identity, start.process, start.started_at, start.cwd);
    let mut state = State { records, setup, argv, max_iterations: start.max_iterations, ..state };
    let mut read_on = ReadOn::of(&state);
    for log in logs {
        (state.session_log, state.log_read) = (Some(session_log_of(&log)), 0);
        // An unreadable log adds nothing.
        let _ = read_log(&log, &mut state, &mut read_on);
    }
    Some((state, read_on))
}

/// The identity of the loop that begins in this log.
fn begun(log: &Path) -> Option<LoopIdentity> {
    let mut identity = None;
    let mut lines = BufReader::with_capacity(CHUNK, own::open_to_read(log).ok()?);
    let mut line = Vec::new();
    while identity.is_none() && next_line(&mut lines, &mut line).ok()? {
        let text = std::str::from_utf8(&line).ok().filter(|_| event_of(&line) == "loop_started");
        identity = text.and_then(|text| EventLine::read(text).ok()).map(|read| LoopIdentity {
            run: read.run.into(),
            name: read.name.into(),
            mode: read.mode.into(),
            agent: read.agent.into(),
        });
    }
    identity
}

/// Completes the state of a killed loop from its events log.
fn read_on(project: &Project, state: &mut State) -> Option<ReadOn> {
    let log = log_of_state::events_log(&log_of_state::with_runs(project, state), state)?;
    let mut read_on = ReadOn::of(state);
    // An unreadable log adds nothing.
    let _ = read_log(&log, state, &mut read_on);
    Some(read_on)
}

/// Reads a log from where the state ends, line by line. Skips a torn last line, and lines that are not ours.
fn read_log(log: &Path, state: &mut State, read_on: &mut ReadOn) -> io::Result<()> {
    let mut file = own::open_to_read(log)?;
    // A log that was truncated has nothing new.
    if file.metadata()?.len() <= state.log_read {
        return Ok(());
    }
    // One byte earlier: a newline there shows that a line begins here.
    file.seek(SeekFrom::Start(state.log_read.saturating_sub(1)))?;
    let mut lines = BufReader::with_capacity(CHUNK, file);
    if state.log_read > 0 {
        let passed = lines.skip_until(b'\n')? as u64;
        state.log_read += passed.saturating_sub(1);
    }
    take_lines(&mut lines, state, read_on)
}

/// Applies these lines to the state, up to the last whole one.
pub(super) fn take_lines(
    lines: &mut impl BufRead,
    state: &mut State,
    read_on: &mut ReadOn,
) -> io::Result<()> {
    let mut line = Vec::new();
    while next_line(lines, &mut line)? {
        state.log_read += line.len() as u64;
        if OF_NO_STATE.contains(&event_of(&line)) {
            continue;
        }
        let read = std::str::from_utf8(&line).ok().and_then(|text| EventLine::read(text).ok());
        if let Some(read) = read.filter(|read| read.run == state.run) {
            read_on.take(&read, state);
        }
    }
    Ok(())
}

/// Reads a whole line including its newline; `false` at the end.
fn next_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    lines.take(LONGEST).read_until(b'\n', line)?;
    Ok(line.ends_with(b"\n") || line.len() as u64 == LONGEST)
}

fn session_log_of(events_log: &Path) -> PathBuf {
    // `.events.jsonl`
    events_log.with_extension("").with_extension("log")
}
