//! `ralph pause`, `ralph cancel`, `ralph note`: requests to running loops, and their results.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};

use super::comment;
use super::fleet;
use super::output::{Said, remark, say, warn};
use super::target;
use crate::cli::{CancelArgs, NoteArgs, PauseArgs, PlaceArgs, TargetArgs};
use crate::engine::outcome::{Outcome, Status};
use crate::engine::stop::Request;
use crate::job::workspace::secrets_in;
use crate::project::Project;
use crate::record::lookup::Loop;
use crate::record::requests::{self, Signer};
use crate::record::state::{Pending, State};
use crate::record::{ending, newer, recorder};
use crate::text::bytes;
use crate::text::line::shell_word;

/// How long a loop may take to accept a request and to act on it.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How often that is checked.
const LOOK: Duration = Duration::from_millis(10);

/// The result of a request.
pub(super) enum Answer {
    /// The loop has accepted it; this is its state since.
    Taken(Box<State>),
    /// The loop has not read it yet: it is stopped, or very busy.
    Pending,
    /// The loop ended before it read it.
    Over,
}

/// `ralph pause`.
pub(super) fn pause(args: &PauseArgs) -> anyhow::Result<u8> {
    if fleet::steer(&args.fleet, &args.target, Request::Pause)? {
        return Ok(0);
    }
    for found in running(&args.target)? {
        hold(&found)?.iter().for_each(Said::print);
    }
    Ok(0)
}

/// Requests a running loop to hold.
pub(super) fn hold(found: &Loop) -> anyhow::Result<Vec<Said>> {
    let Some(state) = found.alive() else { return Ok(Vec::new()) };
    let name = &found.name;
    if state.holds() {
        return Ok(vec![Said::Warning(format!("{} '{name}' is already paused", noun(state)))]);
    }
    // Outside of an attempt it holds at once.
    let is_done = |state: &State| match state.pending {
        Some(Pending::Pause) => state.tally.in_attempt,
        Some(Pending::Stop) => true,
        None => state.status == Status::Paused,
    };
    let paused = || Said::Answer(format!("paused ralph loop for {name}"));
    Ok(match ask(found, Request::Pause, &is_done)? {
        Answer::Taken(state) if state.status == Status::Paused => vec![paused()],
        Answer::Taken(state) if state.pending == Some(Pending::Stop) => {
            vec![Said::Warning(format!("loop '{name}' has been asked to end"))]
        }
        Answer::Taken(_) => {
            vec![paused(), Said::Remark(format!("{name} holds after the current attempt"))]
        }
        Answer::Pending => vec![not_yet(found)],
        Answer::Over => bail!("loop '{name}' ended before it could be paused: {}", see_status(name)),
    })
}

/// Where a message sends the user who wants to know more of a loop.
pub(super) fn see_status(name: &str) -> String {
    format!("see 'ralph status {}'", shell_word(name))
}

/// The verb in messages.
pub(super) fn noun(state: &State) -> &'static str {
    if state.setup.worker.is_some() { "worker" } else { "loop" }
}

/// `ralph cancel`.
pub(super) fn cancel(args: &CancelArgs) -> anyhow::Result<u8> {
    let request = if args.now { Request::CancelNow } else { Request::Cancel };
    if fleet::steer(&args.fleet, &args.target, request)? {
        return Ok(0);
    }
    let (_, loops) = target::loops(&args.target)?;
    let active: Vec<&Loop> = loops.iter().filter(|found| found.alive().is_some()).collect();
    if active.is_empty() {
        return cancel_cut_off(&loops);
    }
    for found in &active {
        let prefix = if active.len() > 1 { format!("{}: ", found.name) } else { String::new() };
        end(found, args.now, &prefix)?.iter().for_each(Said::print);
    }
    Ok(0)
}

/// Requests a running loop to end, now or after its attempt; `prefix` comes before the answer.
pub(super) fn end(found: &Loop, now: bool, prefix: &str) -> anyhow::Result<Vec<Said>> {
    let Some(state) = found.alive() else { return Ok(Vec::new()) };
    let iteration = state.tally.iteration;
    let request = if now { Request::CancelNow } else { Request::Cancel };
    let is_done = |state: &State| !state.active || (!now && state.pending == Some(Pending::Stop));
    let cancelled = |iteration| Said::Answer(format!("{prefix}cancelled (was at iteration {iteration})"));
    Ok(match ask(found, request, &is_done)? {
        Answer::Taken(state) if state.active && state.tally.in_attempt && !now => {
            let more = "the current attempt may end by itself; 'ralph cancel --now' ends it";
            vec![cancelled(state.tally.iteration), Said::Answer(more.to_owned())]
        }
        Answer::Taken(state) => vec![cancelled(state.tally.iteration)],
        Answer::Pending => vec![not_yet(found)],
        // It has ended by itself.
        Answer::Over => vec![cancelled(iteration)],
    })
}

/// Books the end of loops whose process was killed. One that has ended keeps its end: to cancel it changes nothing.
fn cancel_cut_off(loops: &[Loop]) -> anyhow::Result<u8> {
    if let Some(why) = loops.iter().find_map(|found| found.state.as_ref().err()) {
        bail!("it is unknown whether a loop is active: {why}");
    }
    // Unless it is a copy of a loop that runs elsewhere.
    let is_over = |state: &State| state.active && !state.process.is_alive();
    let is_cut_off = |found: &&Loop| found.state.as_deref().is_ok_and(is_over);
    let cut_off: Vec<&Loop> = loops.iter().filter(is_cut_off).collect();
    if cut_off.is_empty() {
        say("no active loop");
        for Loop { name, state, .. } in loops {
            if let Ok(state) = state
                && !state.active
                && state.was_interrupted()
            {
                remark(&format!("{name} has ended already: {}", state.word()));
            }
        }
    }
    for Loop { name, state, .. } in &cut_off {
        let is_worker = state.as_deref().is_ok_and(|state| state.setup.worker.is_some());
        if is_worker && super::worker::is_running(name)? {
            bail!("worker '{name}' has no monitor, and its agent works on: end it with 'ralph kill {name}'");
        }
    }
    for found in cut_off {
        let (name, project) = (&found.name, &found.project);
        let _alone = recorder::hold(project, "cancel")?;
        // It may have been resumed meanwhile.
        let Some(Loop { state: Ok(state), read_on, .. }) = found.again() else { continue };
        if !is_over(&state) {
            continue;
        }
        ending::book(project, &state, read_on.as_ref(), Outcome::Cancelled)
            .with_context(|| format!("loop '{name}' cannot be ended"))?;
        if let Some(recovered) = read_on.and_then(|read_on| read_on.line()) {
            warn(&format!("{name}: {recovered}"));
        }
        say(&format!("{name}: cancelled (was at iteration {})", state.tally.iteration));
    }
    Ok(0)
}

/// `ralph note`.
pub(super) fn note(args: NoteArgs) -> anyhow::Result<u8> {
    let mut words = args.name_and_text;
    let (Some(text), name, 0) = (words.pop(), words.pop(), words.len()) else {
        bail!("too many words for a note: put its text in quotes, as in 'ralph note \"skip that\"'");
    };
    if text.trim().is_empty() {
        bail!("the note is empty: say what the agent should know");
    }
    let (fleet, file) = (args.fleet, args.file);
    let args = TargetArgs { name, ralph_dir: args.ralph_dir };
    // The work trees of other machines are not here.
    if file.is_none() && fleet::steer(&fleet, &args, Request::Note(text.clone()))? {
        return Ok(0);
    }
    let said = send_note(&args, |found| match &file {
        Some(file) => Ok(comment::place(found.project.root(), file)?.note(&text)),
        None => Ok(text.clone()),
    })?;
    said.iter().for_each(Said::print);
    Ok(0)
}

/// The largest note, in bytes: what can be said in one word of a command line, however it is given.
const LARGEST_NOTE: u64 = 128 << 10;

/// Whether a note may have this text.
///
/// # Errors
/// If it is too large.
pub(super) fn fits_a_note(text: &str) -> anyhow::Result<()> {
    let size = text.len() as u64;
    if size > LARGEST_NOTE {
        let [size, most] = [size, LARGEST_NOTE].map(bytes::short);
        bail!(
            "a note of {size} is too large, it has at most {most}: put the text into a file, and name that in the note"
        );
    }
    Ok(())
}

/// Sends the note that `text` makes to each loop that is meant.
pub(super) fn send_note(
    args: &TargetArgs,
    text: impl Fn(&Loop) -> anyhow::Result<String>,
) -> anyhow::Result<Vec<Said>> {
    let mut notes = Vec::new();
    for found in receivers(args)? {
        let text = text(&found)?;
        fits_a_note(&text)?;
        notes.push((found, text));
    }
    let mut said = Vec::new();
    for (found, text) in notes {
        match found.alive() {
            Some(_) => said.extend(give(&found, &text)?),
            None => said.push(keep(&found, &text)?),
        }
    }
    Ok(said)
}

/// The loops that a note is for: those that run, or the named one, which may have ended.
///
/// # Errors
/// If there is none that can take one.
pub(super) fn receivers(args: &TargetArgs) -> anyhow::Result<Vec<Loop>> {
    let (here, loops) = target::loops(args)?;
    if let (Some(_), [found]) = (&args.name, loops.as_slice())
        && found.alive().is_none()
        && found.is_own()
        && !found.project.is_of_worker()
    {
        return Ok(loops);
    }
    running_of(args, &here, loops)
}

/// Keeps a note for the next start of a loop that does not run.
pub(super) fn keep(found: &Loop, text: &str) -> anyhow::Result<Said> {
    let (name, project) = (&found.name, &found.project);
    let started_from = found.state.as_ref().ok().and_then(|state| state.setup.started_from.clone());
    let ralph_dir = Some(started_from.unwrap_or_else(|| project.ralph_dir().to_owned()));
    let secrets = secrets_in(&PlaceArgs { ralph_dir, ..PlaceArgs::default() })?;
    // The lock of a branch lies in its work tree.
    let _alone = project.root().is_dir().then(|| recorder::hold(project, "note")).transpose()?;
    if !ending::keep_note(project, secrets.word(text))? {
        bail!("loop '{name}' has no records that can keep a note: {}", see_status(name));
    }
    Ok(Said::Answer(format!("noted for the next prompt of {name}, when it goes on")))
}

/// Gives a running loop a note.
pub(super) fn give(found: &Loop, text: &str) -> anyhow::Result<Vec<Said>> {
    let name = &found.name;
    Ok(match ask(found, Request::Note(text.to_owned()), &|_| true)? {
        Answer::Taken(_) => vec![Said::Answer(format!("noted for the next prompt of {name}"))],
        Answer::Pending => vec![not_yet(found)],
        Answer::Over => bail!("loop '{name}' ended before it could take the note"),
    })
}

/// The running loops that are meant.
///
/// # Errors
/// When there is none.
fn running(args: &TargetArgs) -> anyhow::Result<Vec<Loop>> {
    let (here, loops) = target::loops(args)?;
    running_of(args, &here, loops)
}

/// Those of the loops that run.
///
/// # Errors
/// When there is none.
fn running_of(args: &TargetArgs, here: &Project, loops: Vec<Loop>) -> anyhow::Result<Vec<Loop>> {
    if let (Some(_), [found]) = (&args.name, loops.as_slice())
        && found.alive().is_none()
    {
        let name = &found.name;
        if super::worker::exists(name).is_ok_and(|exists| exists) && super::worker::is_running(name)? {
            bail!("worker '{name}' has no monitor, and its agent works on: 'ralph run {name}' takes it up");
        }
        newer::refuse(&found.project)?;
        bail!("loop '{name}' is not running: {}", see_status(name));
    }
    let unknown = loops.iter().find_map(|found| found.state.as_ref().err().cloned());
    let running: Vec<Loop> = loops.into_iter().filter(|found| found.alive().is_some()).collect();
    if running.is_empty() {
        if let Some(why) = unknown {
            bail!("it is unknown whether a loop is running: {why}");
        }
        bail!("no loop is running in {}: 'ralph ls' lists those of this machine", here.root().display());
    }
    Ok(running)
}

/// Sends a request to a running loop, and waits a moment until it has accepted that and `is_done`.
///
/// # Errors
/// When the request cannot be sent, or is refused.
pub(super) fn ask(
    found: &Loop,
    request: Request,
    is_done: &dyn Fn(&State) -> bool,
) -> anyhow::Result<Answer> {
    let Ok(before) = &found.state else { return Ok(Answer::Over) };
    if let Some(there) = found.listens_elsewhere() {
        let (name, pid) = (&found.name, before.process.pid);
        bail!(
            "loop '{name}' (process {pid}) looks for requests in {}, from where this project was moved: move it back first, \
             or end the loop with 'kill {pid}'",
            there.display()
        );
    }
    let folder = found.project.requests();
    let signer = Signer::of_running(&found.project);
    let path = requests::send(&folder, signer.as_ref(), &before.run, request)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let is_late = Instant::now() > deadline;
        if requests::is_refused(&path) {
            let _ = requests::withdraw(&path);
            return Err(refused(found, before.process.pid));
        }
        // If the folder is gone as well, the loop was cleaned up.
        let is_taken = !path.exists() && folder.is_dir();
        let now = found.again().and_then(|found| found.state.ok()).filter(|now| now.run == before.run);
        match now {
            Some(now) if is_taken && (is_late || is_done(&now)) => return Ok(Answer::Taken(now)),
            Some(now) if now.is_alive() => {}
            // The loop has ended, and will not read the request any more.
            _ if requests::withdraw(&path) => return Ok(Answer::Over),
            Some(now) => return Ok(Answer::Taken(now)),
            None => return Ok(Answer::Over),
        }
        if is_late {
            return Ok(Answer::Pending);
        }
        std::thread::sleep(LOOK);
    }
}

/// Why a loop accepts no request of this user, and what to do.
fn refused(found: &Loop, pid: u32) -> anyhow::Error {
    let key =
        found.project.user_key().map_or_else(|| "~/.local/state".to_owned(), |key| key.display().to_string());
    anyhow!(
        "loop '{}' (process {pid}) has refused this: it is not signed with the key that the loop began with, and {key} is another \
         one or cannot be used: ask with the ralph and the home directory that started the loop, or end it with 'kill {pid}'",
        found.name
    )
}

/// The message that a loop has not reacted.
pub(super) fn not_yet(found: &Loop) -> Said {
    let pid = found.alive().map_or(0, |state| state.process.pid);
    Said::Warning(format!(
        "loop '{}' (process {pid}) has not reacted yet; it will as soon as it can",
        found.name
    ))
}
