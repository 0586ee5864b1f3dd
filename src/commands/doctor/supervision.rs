//! `ralph doctor --supervision`: plays, on this machine, what must not outlive a loop, and says what did.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::Signal;
use serde::Serialize;

use crate::commands::output::{print, print_for_people};
use crate::parallel::{self, Fate};
use crate::platform::backend::{in_force, tier};
use crate::platform::family::send;
use crate::platform::handle::ProcessHandle;
use crate::platform::identity::ProcessIdentity;
use crate::platform::stat::Stat;
use crate::process::actor;
use crate::process::note::SupervisorNote;
use crate::process::supervised::Supervised;

/// The version of the JSON layout.
const SCHEMA: u32 = 1;
/// The processes of a play: a program and its tool.
const ACTORS: usize = 2;
/// How long the actors may take to appear, and to be gone.
const LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// What ends a play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The program ends by itself.
    ByItself,
    /// The program is to be stopped.
    Stopped,
    /// The supervisor is killed.
    SupervisorKilled,
    /// Ralph is killed.
    RalphKilled,
    /// Ralph is killed while its supervisor is stopped.
    RalphKilledBeforeStopped,
}

/// What is played: what is said of it, the tricks of the tool, the end.
const PLAYS: [(&str, &str, End); 8] = [
    ("a tool in a new session", "s", End::ByItself),
    ("a double fork", "st", End::ByItself),
    ("env -i, after a double fork", "stb", End::ByItself),
    ("a stopped tool", "sz", End::ByItself),
    ("a program that is ended", "st", End::Stopped),
    ("a killed supervisor", "stb", End::SupervisorKilled),
    ("a killed ralph", "stb", End::RalphKilled),
    ("a killed ralph, its supervisor stopped", "st", End::RalphKilledBeforeStopped),
];

/// How a play went.
#[derive(Debug, Serialize)]
struct Played {
    /// What was played.
    play: &'static str,
    /// Nothing was left.
    ok: bool,
    /// How long it took until nothing was left, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// Plays all of it and prints the result; the exit code is 0 if nothing survived.
pub(super) fn play(json: bool) -> anyhow::Result<u8> {
    // All at once: each one mostly waits.
    let alone = [None; PLAYS.len()];
    let fates = parallel::run(&alone, &|at| played(PLAYS[at]), &|_| true);
    let all: Vec<Played> = fates
        .into_iter()
        .zip(PLAYS)
        .map(|(fate, (play, ..))| match fate {
            Fate::Ran(played) => played,
            Fate::Lost(why) => Played { play, ok: false, seconds: None, detail: Some(why) },
            Fate::NotStarted => Played { play, ok: false, seconds: None, detail: None },
        })
        .collect();
    let ok = all.iter().all(|played| played.ok);
    let (found, tier) = (in_force(), tier());
    let machine = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let uname = rustix::system::uname();
    let kernel = format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
    let version = env!("CARGO_PKG_VERSION");
    if json {
        let report = serde_json::json!({
            "schema": SCHEMA, "ok": ok, "version": version, "machine": machine, "kernel": kernel,
            "backend": found.backend.word(), "why": found.why, "tier": tier.number, "plays": all,
        });
        print(|out| writeln!(out, "{report:#}"))?;
    } else {
        let why = found.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        print_for_people(|out| {
            writeln!(out, "```")?;
            writeln!(out, "ralph {version}, {machine}, {kernel}")?;
            writeln!(out, "backend {}{why}, tier {}: {}", found.backend.word(), tier.number, tier.tested)?;
            for played in &all {
                let said = match (&played.detail, played.seconds) {
                    (Some(detail), _) => detail.clone(),
                    (None, Some(seconds)) => format!("nothing left after {seconds:.1} s"),
                    (None, None) => "not played".to_owned(),
                };
                writeln!(out, "{} {:<38}  {said}", if played.ok { "ok  " } else { "FAIL" }, played.play)?;
            }
            writeln!(out, "```")
        })?;
    }
    Ok(u8::from(!ok))
}

fn played((play, tricks, end): (&'static str, &str, End)) -> Played {
    match survivors(tricks, end) {
        Ok(Ok(took)) => Played { play, ok: true, seconds: Some(took.as_secs_f64()), detail: None },
        Ok(Err(count)) => {
            let detail = format!("{count} processes survived; they are ended now");
            Played { play, ok: false, seconds: None, detail: Some(detail) }
        }
        Err(error) => Played { play, ok: false, seconds: None, detail: Some(format!("{error:#}")) },
    }
}

/// Plays once: how long it took until nothing was left, or how many processes survived.
fn survivors(tricks: &str, end: End) -> anyhow::Result<Result<Duration, usize>> {
    let guard = tempfile::Builder::new().prefix("ralph-").tempdir().context("no folder for the play")?;
    let folder = guard.path();
    let actors = match end {
        End::RalphKilled | End::RalphKilledBeforeStopped => kill_ralph(folder, tricks, end)?,
        _ => end_program(folder, tricks, end)?,
    };
    let began = Instant::now();
    let living = || actors.iter().filter(|actor| actor.is_alive());
    while living().next().is_some() && began.elapsed() < LIMIT {
        std::thread::sleep(LOOK);
    }
    let took = began.elapsed();
    let left: Vec<_> = living().filter_map(|actor| ProcessHandle::of(actor).ok().flatten()).collect();
    for actor in &left {
        actor.send(Signal::KILL);
    }
    Ok(if left.is_empty() { Ok(took) } else { Err(left.len()) })
}

/// Ends a program that we supervise, and returns the processes that have to be gone soon.
fn end_program(folder: &Path, tricks: &str, end: End) -> anyhow::Result<Vec<ProcessIdentity>> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let launch = actor::launch(folder, tricks, format!("doctor-{name}"));
    let (mut program, pipes) = Supervised::start(&launch)?;
    let actors = actors(folder)?;
    match end {
        End::ByItself => drop(pipes.stdin),
        End::SupervisorKilled => send(program.supervisor_pid(), Signal::KILL),
        _ => program.stop(),
    }
    let mut notes = pipes.notes;
    let left = notes.find_map(|note| match note {
        SupervisorNote::Gone(left) => Some(left),
        _ => None,
    });
    program.finish(left);
    Ok(actors)
}

/// Kills a ralph whose supervisor has such a program, and returns the processes that have to be gone soon.
fn kill_ralph(folder: &Path, tricks: &str, end: End) -> anyhow::Result<Vec<ProcessIdentity>> {
    let mut ralph = actor::ralph(folder, tricks).stdin(Stdio::null()).spawn()?;
    let mut actors = actors(folder);
    if let Ok(actors) = &mut actors {
        for supervisor in Stat::all().filter(|stat| stat.ppid == ralph.id()) {
            if end == End::RalphKilledBeforeStopped {
                send(supervisor.pid, Signal::STOP);
            }
            actors.extend(ProcessIdentity::of(supervisor.pid));
        }
    }
    ralph.kill()?;
    ralph.wait()?;
    actors
}

/// The processes of a play, when all have appeared.
fn actors(folder: &Path) -> anyhow::Result<Vec<ProcessIdentity>> {
    let until = Instant::now() + LIMIT;
    loop {
        let entries = std::fs::read_dir(folder)?.flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let found: Vec<ProcessIdentity> = pids.filter_map(|pid| ProcessIdentity::of(pid).ok()).collect();
        if found.len() == ACTORS {
            return Ok(found);
        }
        if Instant::now() >= until {
            bail!("{} of {ACTORS} processes have appeared within {} s", found.len(), LIMIT.as_secs());
        }
        std::thread::sleep(LOOK);
    }
}
