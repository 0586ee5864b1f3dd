//! `ralph logs --agent`: what agents said and did, as the live display shows it, also while they are at work.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};

use super::{LOOK, is_same_run, nothing_in, session_log, show_all, whose};
use crate::cli::{LogsArgs, TargetArgs};
use crate::commands::output::{Stream, nobody_reads};
use crate::commands::report::pick;
use crate::commands::target::{self, count};
use crate::commands::worker;
use crate::job::workspace::locate;
use crate::project::Project;
use crate::record::event_line::EventLine;
use crate::record::event_lines::Follower;
use crate::record::lookup::{self, Loop};
use crate::record::run_folder;
use crate::text;
use crate::view::transcript::{Flow, Transcript};

/// Whose transcript is meant.
pub(super) struct Meant {
    pub(super) name: String,
    /// The folder with the logs of the loop's run.
    pub(super) folder: PathBuf,
    /// The loop, where this is its newest run.
    pub(super) found: Option<Loop>,
}

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
    let Some(first) = run_folder::event_logs(&meant.folder).into_iter().next() else {
        // What the agents wrote is left.
        if let Some(log) = meant.found.as_ref().map(session_log).transpose()?.flatten() {
            show_all(&log, lines)?;
            return Ok(0);
        }
        bail!("no session log found for '{}' in {}", meant.name, meant.folder.display());
    };
    whose(&meant.name, &first);
    let mut shown = Shown { wanted: attempt.map(|number| number as u64), ..Shown::new(lines) };
    let mut stream = Stream::new();
    let mut logs = Logs::new(&meant.folder);
    loop {
        // Looked at before the logs are read, so that the last lines of a loop that ends are seen.
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

/// The loops that are meant: of a name of which this project has runs, none of another project.
pub(super) fn recorded(target: &TargetArgs) -> anyhow::Result<(Project, Vec<Loop>)> {
    let (here, loops) = target::recorded(target)?;
    let is_elsewhere = loops.first().is_some_and(|found| !lookup::belongs_to(&found.project, &here));
    if let Some(name) = target.name.as_ref().filter(|_| is_elsewhere && target.ralph_dir.is_none())
        && pick::run(&here, Some(name)).is_ok_and(|picked| picked.project.root() == here.root())
    {
        bail!("no loop is called '{name}' here any more");
    }
    Ok((here, loops))
}

/// No attempt of a worker can be told from the others.
pub(super) fn has_one_pane(name: &str) -> anyhow::Error {
    anyhow!(
        "--attempt: a worker has a pane for all its iterations: leave it out, or see 'ralph report {name}'"
    )
}

/// What to say of a loop of which only the runs are left; else `error`.
pub(super) fn forgotten(args: &LogsArgs, error: anyhow::Error) -> anyhow::Error {
    match (&args.target.name, meant(args)) {
        (Some(name), Ok(_)) => anyhow!(
            "'{name}' is forgotten but for its runs: see 'ralph report {name}' or 'ralph logs {name} --agent'"
        ),
        _ => error,
    }
}

/// The run has made fewer attempts.
pub(super) fn too_few(number: u64, name: &str, made: u64) -> anyhow::Error {
    anyhow!("--attempt {number}: '{name}' has made {} in this run", text::count::of(made, "attempt"))
}

/// The loop of that name and the folder of its newest run; or those of a run that has been forgotten but for its logs.
pub(super) fn meant(args: &LogsArgs) -> anyhow::Result<Meant> {
    let target = &args.target;
    let here = locate(target.ralph_dir.as_ref())?;
    if let Some(run) = &args.run {
        let picked = pick::run(&here, Some(run))?;
        let loops = pick::loops(&picked)?;
        let is_meant =
            |(name, _): &&(String, PathBuf)| target.name.as_ref().is_none_or(|wanted| wanted == name);
        let mut found = loops.iter().filter(is_meant);
        if let (Some((name, folder)), None) = (found.next(), found.next()) {
            return Ok(Meant { name: name.clone(), folder: folder.clone(), found: None });
        }
        let names: Vec<&str> = loops.iter().map(|(name, _)| &**name).collect();
        bail!("run {run} has the loops {}: say which", text::list::some_of(&names, names.len()));
    }
    match recorded(target) {
        Ok((here, loops)) if loops.is_empty() => {
            let kept = pick::run(&here, None).ok().and_then(|picked| pick::loops(&picked).ok());
            match kept.as_deref() {
                Some([(name, folder)]) => {
                    Ok(Meant { name: name.clone(), folder: folder.clone(), found: None })
                }
                Some([_, _, ..]) => {
                    bail!("the newest run has several loops: name one, as 'ralph report' does")
                }
                _ => Err(nothing_in(&here)),
            }
        }
        Ok((_, mut loops)) => {
            let found = loops.swap_remove(0);
            let folder = folder_of(&found)?;
            Ok(Meant { name: found.name.clone(), folder, found: Some(found) })
        }
        Err(error) => {
            let Some(name) = &target.name else { return Err(error) };
            let Ok(picked) = pick::run(&here, Some(name)) else { return Err(error) };
            let loops = pick::loops(&picked)?;
            let (name, folder) = match (loops.as_slice(), picked.name) {
                ([one], None) => one.clone(),
                (_, Some(name)) => match loops.iter().find(|(known, _)| *known == name) {
                    Some(one) => one.clone(),
                    None => return Err(error),
                },
                _ => bail!("run {name} has several loops: name one of them, as 'ralph report {name}' does"),
            };
            Ok(Meant { name, folder, found: None })
        }
    }
}

/// Where the logs of a loop's newest run are.
fn folder_of(found: &Loop) -> anyhow::Result<PathBuf> {
    let state = found.state.as_ref().ok();
    let of_run = state.map(|state| found.project.in_run(&state.run).logs());
    if let Some(folder) = of_run.filter(|folder| !run_folder::event_logs(folder).is_empty()) {
        return Ok(folder);
    }
    let log = session_log(found)?;
    Ok(log.as_deref().and_then(Path::parent).map_or_else(|| found.project.logs(), Path::to_path_buf))
}

/// The events logs of one loop's run, one after the other: one that was removed goes on in another.
struct Logs<'a> {
    folder: &'a Path,
    /// The one that is read, and which it is.
    open: Option<(usize, Follower)>,
}

impl<'a> Logs<'a> {
    fn new(folder: &'a Path) -> Self {
        Self { folder, open: None }
    }

    /// Shows what was added. Answers whether anybody wants to read on.
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

/// What is shown, and what of it is kept until it is known whether it is among the last lines.
struct Shown {
    transcript: Transcript,
    flow: Flow,
    /// Only this attempt.
    wanted: Option<u64>,
    /// Only so many of the lines that are there.
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
        Self { transcript: Transcript::default(), flow: Flow::default(), wanted: None, last }
    }

    /// Takes a line of the log. Answers whether anybody wants more.
    fn line(&mut self, line: &[u8], stream: &mut Stream) -> bool {
        // One of a later version, or a torn one, has nothing to show.
        let line = std::str::from_utf8(line).ok().and_then(|line| EventLine::read(line).ok());
        let Some(entry) = line.and_then(|line| self.transcript.entry(&line)) else { return true };
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

    /// Everything that was there has been read: what comes from now on is new. Answers whether anybody wants more.
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
