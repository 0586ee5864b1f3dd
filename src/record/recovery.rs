//! What the events log of a loop tells beyond its state: the log is written first, so a process that was cut off may have kept
//! less in the state, and a state that is lost is made anew of it.

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

/// So much is read at once, in bytes.
const CHUNK: usize = 256 << 10;
/// A longer line is none of ours, in bytes.
const LONGEST: u64 = 64 << 20;
/// The bulk of a log, of which the state knows nothing.
const OF_NO_STATE: [&str; 8] =
    ["text", "text_delta", "thought", "tool", "agent_error", "agent_notice", "permission", "notice"];

/// What an earlier process of a loop did and was cut off before its state had it: what an events log has that a state does not have.
#[derive(Debug, Default)]
pub struct ReadOn {
    /// The run that was cut off.
    from: String,
    /// An attempt was under way as the state has it, whatever the log says: an agent can add to that.
    pub was_in_attempt: bool,
    /// Attempts that had ended.
    pub attempts: u64,
    /// What they have cost, in US dollars, as far as agents reported it.
    cost_usd: Option<f64>,
    /// The line of the last step in the iterations log, which may lack it as well.
    pub step: Option<String>,
}

impl ReadOn {
    fn of(state: &State) -> Self {
        Self { from: state.run.clone(), was_in_attempt: state.tally.in_attempt, ..Self::default() }
    }

    /// What the user should know of attempts that were not booked.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        (self.attempts > 0).then(|| words::recovered(self.attempts, self.cost_usd))
    }

    /// The fact that there were some.
    #[must_use]
    pub fn into_fact(self) -> Option<Fact<'static>> {
        let Self { from, attempts, cost_usd, .. } = self;
        (attempts > 0).then(|| Fact::Recovered { attempts, cost_usd, from: from.into() })
    }

    /// Has the state take what a line tells.
    fn take(&mut self, line: &EventLine<'_>, state: &mut State) {
        let (was_in_attempt, before) = (state.tally.in_attempt, state.tally.cost_usd.unwrap_or_default());
        state.apply(line.at.to_utc(), &line.fact);
        if was_in_attempt && matches!(line.fact, Fact::AttemptEnded(_)) {
            self.attempts += 1;
            let spent = state.tally.cost_usd.unwrap_or_default() - before;
            if spent > 0.0 {
                *self.cost_usd.get_or_insert_default() += spent;
            }
        }
        self.step = step(line, state).or(self.step.take());
    }
}

/// The line of the iterations log that tells of an end; `None` for any other fact.
fn step(line: &EventLine<'_>, state: &State) -> Option<String> {
    if !matches!(line.fact, Fact::AttemptEnded(_) | Fact::LoopEnded(_)) {
        return None;
    }
    let (run, name) = (state.run.clone(), state.name.clone());
    let identity = LoopIdentity { run, name, mode: state.mode.clone(), agent: state.agent.clone() };
    let at = line.at.with_timezone(&Local);
    Steps::default().line(&Stamped::new(at, &identity, &state.tally, &line.fact))
}

/// The state of the loop `name` in these places, as its events log has it where that has more, and what it has more. Nothing is
/// written. That of a loop whose process is at work is what its file says.
///
/// # Errors
/// When the state is there but cannot be read.
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

/// Whether the run of this state is at work. Not by its process: that of a project's copy is at work in the original.
pub(super) fn is_held(project: &Project, state: &State) -> bool {
    let holder = || lock::holder(&project.lock()).ok().flatten();
    state.active && holder().is_some_and(|holder| holder.run_id == state.run)
}

/// What is lost of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// What its file said. So the newest loop here had begun, also where its log lost all of that in a power cut: nothing of a log is
    /// synchronised.
    Content,
    /// The file itself. The newest loop may not have begun; and `ralph clean` has removed the entry in the user's list of one that it
    /// forgot.
    File,
}

/// The state of the newest loop in these places, and all attempts that its logs tell of.
fn remade(project: &Project, name: &str, lost: Lost) -> Option<(State, ReadOn)> {
    let entry = || registry::find(&project.registry()?, name, project.ralph_dir());
    if project.is_of_worker() {
        // Its runs are among those of other loops, in a folder that only the list has besides.
        let entry = entry()?;
        let places = entry.places(project);
        return of_folder(&places, &places.run(&entry.run_id), lost);
    }
    let entry = if lost == Lost::File { Some(entry()?) } else { None };
    let mut newest = project.all_logs().into_iter().filter_map(|folder| of_folder(project, &folder, lost));
    newest.next().filter(|(state, _)| entry.is_none_or(|entry| entry.run_id == state.run))
}

/// The state of the loop whose logs are in this folder; `None` where none is known to have begun there, or it is a worker's and these
/// are not its places.
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
        // What cannot be read tells nothing.
        let _ = read_log(&log, &mut state, &mut read_on);
    }
    Some((state, read_on))
}

/// Whose loop begins in this log.
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

/// Has the state of a loop that was cut off know what its events log has besides.
fn read_on(project: &Project, state: &mut State) -> Option<ReadOn> {
    let log = log_of_state::events_log(&log_of_state::with_runs(project, state), state)?;
    let mut read_on = ReadOn::of(state);
    // What cannot be read tells nothing.
    let _ = read_log(&log, state, &mut read_on);
    Some(read_on)
}

/// Reads a log from where the state ends, line by line. A last line that was cut off, and what is no line of ours, is passed over.
fn read_log(log: &Path, state: &mut State, read_on: &mut ReadOn) -> io::Result<()> {
    let mut file = own::open_to_read(log)?;
    // Of a log that has lost its end nothing is news.
    if file.metadata()?.len() <= state.log_read {
        return Ok(());
    }
    // The end of the line before shows that this is where one begins.
    file.seek(SeekFrom::Start(state.log_read.saturating_sub(1)))?;
    let mut lines = BufReader::with_capacity(CHUNK, file);
    if state.log_read > 0 {
        let passed = lines.skip_until(b'\n')? as u64;
        state.log_read += passed.saturating_sub(1);
    }
    take_lines(&mut lines, state, read_on)
}

/// Has the state take what these lines tell, up to the last one that is whole.
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

/// Reads a whole line, with its end; `false` where there is none any more.
fn next_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    lines.take(LONGEST).read_until(b'\n', line)?;
    Ok(line.ends_with(b"\n") || line.len() as u64 == LONGEST)
}

fn session_log_of(events_log: &Path) -> PathBuf {
    // `.events.jsonl`
    events_log.with_extension("").with_extension("log")
}
