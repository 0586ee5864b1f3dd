//! `ralph replay`: a run once more, from its events alone: as it was shown, or with other settings.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use chrono::{DateTime, FixedOffset};
use unicode_width::UnicodeWidthStr as _;

use super::output::{nobody_reads, not_written, print, print_for_people, warn};
use super::report::pick;
use crate::cli::ReplayArgs;
use crate::engine::budget::Spent;
use crate::engine::event::Stamped;
use crate::engine::fact::Fact;
use crate::engine::hindsight::{self, Hindsight, Next};
use crate::engine::inbox::{Inbox, Wake};
use crate::job::preflight::limits_with;
use crate::job::signals::Signals;
use crate::job::workspace::locate_records;
use crate::record::event_line::EventLine;
use crate::record::event_lines::Lines;
use crate::record::replayed::{Replayed, Taken, read};
use crate::record::run_folder::{RunStart, event_logs, loop_folders};
use crate::settings::{Settings, Sources, Verb};
use crate::text::count;
use crate::view::View;
use crate::view::person_lines::TaskCounter;
use crate::view::plain::Frame;
use crate::view::run_lines::RunLines;
use crate::view::screen::Screen;
use crate::view::worker_lines::WorkerLines;

/// The exit code if other settings would have led to another step.
const DIFFERS: u8 = 3;
/// The exit code after Ctrl+C.
const INTERRUPTED: u8 = 130;
/// How often stdout is checked while the next event is awaited.
const LOOK: Duration = Duration::from_millis(100);

/// `ralph replay`.
pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<u8> {
    let speed = args.speed.as_deref().map(speed).transpose()?;
    let here = locate_records(args.ralph_dir.as_ref())?;
    let picked = pick::run(&here, args.target.as_deref())?;
    let verb = RunStart::read(&picked.folder)
        .and_then(|start| Verb::ALL.into_iter().find(|verb| verb.words() == start.verb));
    let is_meant =
        |track: &Track| picked.name.as_ref().is_none_or(|name| track.replayed.identity().name == *name);
    let mut tracks = tracks(&picked.folder)?;
    if !tracks.iter().any(is_meant) {
        bail!("no events are left in {}: there is nothing to replay", picked.folder.display());
    }
    if let Some(file) = &args.config {
        // What the other loops have spent counts for the selected one.
        let marked = |track: Track| {
            let is_meant = is_meant(&track);
            (track, is_meant)
        };
        return compare(tracks.into_iter().map(marked).collect(), verb, file);
    }
    tracks.retain(is_meant);
    show(tracks, verb, speed)
}

fn speed(word: &str) -> anyhow::Result<f64> {
    let speed = word.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| anyhow!("--speed: '{word}' is no number above 0, such as 1 or 60"))
}

/// The loops of a run with events.
fn tracks(folder: &Path) -> anyhow::Result<Vec<Track>> {
    let unreadable = || format!("cannot read {}", folder.display());
    let folders = loop_folders(folder).with_context(unreadable)?;
    folders.into_iter().filter_map(|folder| Track::of(folder).transpose()).collect()
}

/// A loop, and the position in its events.
struct Track {
    replayed: Replayed,
    folder: PathBuf,
    lines: Lines,
    /// The next line, and when it was written.
    line: Vec<u8>,
    at: DateTime<FixedOffset>,
}

impl Track {
    /// The loop whose logs are in this folder; `None` if these have no event.
    fn of(folder: PathBuf) -> anyhow::Result<Option<Self>> {
        let mut lines = Lines::of(event_logs(&folder));
        let Some((line, at)) = next(&mut lines, &folder)? else { return Ok(None) };
        let Some(first) = read(&line) else { return Ok(None) };
        let replayed = Replayed::of(&first)?;
        Ok(Some(Self { replayed, folder, lines, line, at }))
    }

    /// The step of its next line, in words, and the one that the settings lead to; `None` if that line is no step.
    fn judged(&self, verb: Verb, settings: &Settings) -> anyhow::Result<Option<(String, Hindsight)>> {
        let line = read(&self.line);
        let Some(taken) = line.as_ref().and_then(|line| self.replayed.taken(line)) else { return Ok(None) };
        let Some(own) = self.replayed.limits() else {
            bail!(
                "loop '{}' was run by an older ralph, which did not keep its limits: leave out --config",
                self.replayed.identity().name
            );
        };
        let Taken { next, tally, now } = taken;
        let hindsight = hindsight::compare(next, own, &limits_with(settings, verb, own), tally, now);
        Ok(Some((format!("iteration {}: {next}", tally.iteration), hindsight)))
    }

    /// Takes its next line, and shows the event.
    fn take(&mut self, see: &mut dyn FnMut(&Stamped<'_>)) {
        if let Some(line) = read(&self.line) {
            self.replayed.take(&line, see);
        }
    }

    /// Goes on to the next line; `false` if there is none.
    fn advance(&mut self) -> anyhow::Result<bool> {
        let Some((line, at)) = next(&mut self.lines, &self.folder)? else { return Ok(false) };
        (self.line, self.at) = (line, at);
        Ok(true)
    }
}

/// The loops of a run, each with a value, whose lines are read in the order in which they were written.
struct Loops<T> {
    /// The loops with a line left.
    left: Vec<(Track, T)>,
    /// The values of loops without one.
    spent: Spent,
}

impl<T> Loops<T> {
    /// The place of the loop whose next line is the oldest. It then knows what the others had spent by that time.
    fn oldest(&mut self) -> Option<usize> {
        let place = (0..self.left.len()).min_by_key(|place| self.left[*place].0.at)?;
        let others = self.left.iter().enumerate().filter(|(other, _)| *other != place);
        let spent = others.fold(self.spent, |sum, (_, (track, _))| sum.and(track.replayed.spent()));
        self.left[place].0.replayed.others_have_spent(spent);
        Some(place)
    }

    /// Goes on to the next line of the loop at this place.
    fn advance(&mut self, place: usize) -> anyhow::Result<()> {
        if !self.left[place].0.advance()? {
            let (track, _) = self.left.remove(place);
            self.spent = self.spent.and(track.replayed.spent());
        }
        Ok(())
    }
}

/// The next line that can be read, and when it was written.
fn next(lines: &mut Lines, folder: &Path) -> anyhow::Result<Option<(Vec<u8>, DateTime<FixedOffset>)>> {
    let unreadable = || format!("cannot read the events in {}", folder.display());
    while let Some(line) = lines.read_next().with_context(unreadable)? {
        if let Some(at) = read(line).map(|read| read.at) {
            return Ok(Some((line.to_vec(), at)));
        }
    }
    Ok(None)
}

/// Shows all events in the order in which they came.
fn show(tracks: Vec<Track>, verb: Option<Verb>, speed: Option<f64>) -> anyhow::Result<u8> {
    let inbox = Arc::new(Inbox::default());
    Signals::listen()?.join(&inbox);
    let screen = Screen::start(false, false)?.verbose(true);
    let mut shown = Loops { left: views(tracks, verb, &screen), spent: Spent::default() };
    let mut pace = speed.map(|speed| Pace { speed, began: None });
    let mut code = 0;
    while let Some(place) = shown.oldest() {
        let (track, view) = &mut shown.left[place];
        match pace.as_mut().map_or(Ok(Wanted::Yes), |pace| pace.wait_for(track.at, &inbox))? {
            Wanted::Yes if screen.catch_up(|| is_asked(&inbox, Instant::now())) => {}
            Wanted::ByNobody => break,
            _ => {
                code = INTERRUPTED;
                break;
            }
        }
        track.take(&mut |stamped| view.take(stamped));
        // A branch keeps its status line until all have ended.
        shown.advance(place)?;
    }
    screen.finish(|| is_asked(&inbox, Instant::now()));
    screen.unwritten().map_or(Ok(code), |error| Err(not_written(error)))
}

/// Each loop with the view that has shown it.
fn views(tracks: Vec<Track>, verb: Option<Verb>, screen: &Screen) -> Vec<(Track, View)> {
    if verb != Some(Verb::LoopBuild) {
        let view = |track: Track| {
            let frame = frame(&track, verb);
            (track, screen.view(frame))
        };
        return tracks.into_iter().map(view).collect();
    }
    screen.expect(tracks.len());
    let width = tracks.iter().map(|track| track.replayed.identity().name.width()).max().unwrap_or_default();
    let view = |(place, track): (usize, Track)| {
        let uncounted = TaskCounter(Box::new(|| None));
        let view = screen.branch(
            (Verb::LoopBuild.words(), place),
            &track.replayed.identity().name,
            width,
            uncounted,
        );
        (track, view)
    };
    tracks.into_iter().enumerate().map(view).collect()
}

/// The lines around the iterations of the only loop.
fn frame(track: &Track, verb: Option<Verb>) -> Frame {
    let frame = match verb {
        Some(Verb::Run | Verb::Tasks | Verb::Feature) => Frame::Lines(RunLines::default()),
        Some(Verb::Spawn) => {
            let lines = WorkerLines::new(&track.replayed.identity().name, !goes_on(&track.line));
            Frame::Worker(Box::new(lines))
        }
        _ => Frame::Blocks,
    };
    frame.for_reader(verb.unwrap_or(Verb::Build).words())
}

/// Whether the loop that begins with this line has an earlier count.
fn goes_on(line: &[u8]) -> bool {
    matches!(read(line), Some(EventLine { fact: Fact::LoopStarted { tally: Some(tally), .. }, .. }) if tally.iteration > 0)
}

/// How fast events follow each other.
struct Pace {
    speed: f64,
    /// The time of the first event, by its own clock and by ours.
    began: Option<(DateTime<FixedOffset>, Instant)>,
}

/// The result of waiting for the next event.
enum Wanted {
    Yes,
    /// Standard output was closed.
    ByNobody,
    /// Ctrl+C was pressed.
    NoMore,
}

impl Pace {
    /// Waits until an event with this time is due.
    fn wait_for(&mut self, at: DateTime<FixedOffset>, inbox: &Inbox) -> anyhow::Result<Wanted> {
        let (first, began) = *self.began.get_or_insert_with(|| (at, Instant::now()));
        let after = (at - first).to_std().unwrap_or_default().as_secs_f64() / self.speed;
        // A time that is too far ahead for the clock never comes.
        let due = Duration::try_from_secs_f64(after).ok().and_then(|after| began.checked_add(after));
        loop {
            let now = Instant::now();
            if due.is_some_and(|due| due <= now) {
                return Ok(Wanted::Yes);
            }
            let look = now + LOOK;
            if is_asked(inbox, due.map_or(look, |due| due.min(look))) {
                return Ok(Wanted::NoMore);
            }
            if nobody_reads(Duration::ZERO)? {
                return Ok(Wanted::ByNobody);
            }
        }
    }
}

/// Waits until then, or until the user ends the replay.
fn is_asked(inbox: &Inbox, until: Instant) -> bool {
    matches!(inbox.wait(Some(until)), Wake::Asked(_))
}

/// Prints where the settings of a file would have led to other steps, for the marked loops. If a loop would have ended, its later
/// steps are not compared.
fn compare(tracks: Vec<(Track, bool)>, verb: Option<Verb>, file: &Path) -> anyhow::Result<u8> {
    let settings = settings(verb, file)?;
    let (verb, has_several) =
        (verb.unwrap_or(Verb::Build), tracks.iter().filter(|(_, is_meant)| *is_meant).count() > 1);
    let mut loops = Loops { left: tracks, spent: Spent::default() };
    let (mut steps, mut differs, mut told) = (0, false, Vec::new());
    while let Some(place) = loops.oldest() {
        let (track, is_compared) = &mut loops.left[place];
        if *is_compared && let Some((taken, hindsight)) = track.judged(verb, &settings)? {
            let line = match hindsight {
                Hindsight::Same => None,
                Hindsight::Other(other) => {
                    differs = true;
                    *is_compared = !matches!(other, Next::End(_));
                    Some(format!("{taken} → {other}"))
                }
                Hindsight::Unexplained => Some(format!(
                    "{taken}, which the limits of the run do not explain: not compared (an older ralph, or a request)"
                )),
            };
            steps += u64::from(hindsight != Hindsight::Unexplained);
            let name =
                if has_several { format!("{}: ", track.replayed.identity().name) } else { String::new() };
            told.extend(line.map(|line| name + &line));
        }
        track.take(&mut |_| {});
        loops.advance(place)?;
    }
    if differs {
        print(|out| told.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        return Ok(DIFFERS);
    }
    let (steps, file) = (count::of(steps, "step"), file.display());
    print_for_people(|out| {
        told.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out, "the same: {steps} by the limits of the run and by {file}")
    })
}

/// The settings of the file, and no others.
fn settings(verb: Option<Verb>, file: &Path) -> anyhow::Result<Settings> {
    let is_toml = file.extension().is_some_and(|extension| extension == "toml");
    if let Err(error) = std::fs::metadata(file) {
        bail!("--config: cannot read {}: {error}", file.display());
    }
    let path = Some(file.to_owned());
    let sources = Sources {
        verb,
        flags: Vec::new(),
        env: &|_| None,
        shell_config: path.clone().filter(|_| !is_toml),
        shell_config_explicit: true,
        project_toml: path.filter(|_| is_toml),
        older_toml: None,
        user_toml: None,
        // None of these warnings is about a limit.
        trusts: &|_| false,
    };
    let settings = Settings::load(&sources)?;
    settings.warnings.iter().for_each(|warning| warn(warning));
    settings.near_misses.iter().for_each(|near_miss| warn(&near_miss.to_string()));
    Ok(settings)
}
