//! The workers of a graph on a server, from any machine: what they are at, and requests to them.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::graph_file::{SCHEME, address, there};
use super::landings::Queue;
use super::output::{say, warn};
use super::target;
use crate::cli::{FleetArgs, PlaceArgs, TargetArgs};
use crate::engine::stop::Request;
use crate::graph::postgres::{PostgresStore, Worker};
use crate::job::workspace::{open, secrets_in};
use crate::text::count;
use crate::text::duration;
use crate::text::list::some_of;

/// How long a worker is not heard of before that is told.
const SILENT: Duration = Duration::from_mins(2);
/// How long it may take until workers have heard what they are asked.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often that is checked.
const LOOK: Duration = Duration::from_millis(500);
/// At most this many are named.
const SOME: usize = 5;

/// The graph on a server that is meant; `None`: there is none.
fn store(flag: Option<&str>, place: &PlaceArgs) -> anyhow::Result<Option<PostgresStore>> {
    // Records are shown in spite of settings that cannot be read.
    let settings = match open(place) {
        Ok(workspace) => workspace.settings,
        Err(error) if flag.is_some() => return Err(error),
        Err(_) => return Ok(None),
    };
    // In the place of the server's, an agent has the address of its loop.
    if flag.is_none() && settings.store.as_deref().is_some_and(|store| store.starts_with(SCHEME)) {
        return Ok(None);
    }
    let Some(address) = address(flag, &settings)? else { return Ok(None) };
    there(address)
}

/// Sends a request to workers on any machine, if those are meant: all of them, or the one of this name that is no loop here.
/// Returns whether that was so.
pub(super) fn steer(fleet: &FleetArgs, target: &TargetArgs, request: Request) -> anyhow::Result<bool> {
    let name = elsewhere(target);
    if !fleet.fleet && name.is_none() {
        return Ok(false);
    }
    let place = PlaceArgs { ralph_dir: target.ralph_dir.clone(), ..PlaceArgs::default() };
    let Some(store) = store(fleet.store.as_deref(), &place)? else {
        if fleet.fleet {
            bail!("--fleet is for workers on a graph on a server: name it with --store");
        }
        return Ok(false);
    };
    let request = match request {
        Request::Note(text) => Request::Note(secrets_in(&place)?.word(&text)),
        request => request,
    };
    let mut workers = store.workers(milliseconds(SILENT))?;
    // Those that were killed are still in the list.
    workers.retain(|worker| name.map_or(worker.is_heard, |name| worker.name() == name));
    if workers.is_empty() {
        match name {
            Some(name) => bail!("no loop here and no worker is called '{name}': 'ralph status' lists them"),
            None => bail!("no worker is at work on that graph"),
        }
    }
    let text = serde_json::to_string(&request).context("the request")?;
    let asked = workers.iter().map(|worker| store.ask(worker, &text)).collect::<Result<Vec<_>, _>>()?;
    let mut left: Vec<_> = asked.into_iter().flatten().collect();
    let (all, began) = (left.len(), Instant::now());
    if left.is_empty() {
        bail!("the worker has ended meanwhile");
    }
    while !left.is_empty() && began.elapsed() < PATIENCE {
        thread::sleep(LOOK);
        left = store.unheard(left)?;
    }
    if all > left.len() {
        let heard = (all - left.len()) as u64;
        say(&format!("{} {} it", count::of(heard, "worker"), if heard == 1 { "has" } else { "have" }));
    }
    if !left.is_empty() {
        let names = some_of(left.iter().map(|one| one.worker.clone()), SOME);
        warn(&format!("not heard yet by {names}: each does so when it reaches the server again"));
    }
    Ok(true)
}

/// The workers of a graph, and what lands there.
pub(super) struct Fleet {
    workers: Vec<Worker>,
    queue: Option<Queue>,
}

impl Fleet {
    /// Those of the graph on a server that is meant; `None`: there is none.
    pub(super) fn of(flag: Option<&str>, target: &TargetArgs) -> anyhow::Result<Option<Self>> {
        let place = PlaceArgs { ralph_dir: target.ralph_dir.clone(), ..PlaceArgs::default() };
        let Some(store) = store(flag, &place)? else { return Ok(None) };
        let workers = store.workers(milliseconds(SILENT))?;
        Ok(Some(Self { workers, queue: Queue::in_store(&store) }))
    }

    /// A table.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        use std::io::Write as _;
        if self.workers.is_empty() {
            writeln!(out, "no worker is at work on the graph")?;
        } else {
            let mut rows = vec![["WORKER", "SINCE", "SEEN", "TASKS"].map(str::to_owned)];
            for worker in &self.workers {
                let seen = if worker.is_heard { String::new() } else { ", lost".to_owned() };
                let tasks = if worker.tasks.is_empty() { "–".to_owned() } else { worker.tasks.join(", ") };
                let [ago, since] = <[_; 2]>::from(worker.ago).map(duration::rough);
                rows.push([worker.name(), since, format!("{ago}{seen}"), tasks]);
            }
            let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
            let widths = [width(0), width(1), width(2)];
            for [name, since, seen, tasks] in &rows {
                writeln!(out, "{name:0$}  {since:1$}  {seen:2$}  {tasks}", widths[0], widths[1], widths[2])?;
            }
        }
        self.queue.as_ref().map_or(Ok(()), |queue| writeln!(out, "{}", queue.line()))
    }

    /// As JSON.
    pub(super) fn json(&self) -> Value {
        let worker = |worker: &Worker| {
            json!({
                "heard": worker.is_heard,
                "logs": worker.logs,
                "machine": worker.machine,
                "name": worker.name(),
                "run": worker.run,
                "seen": worker.seen,
                "since": worker.since,
                "tasks": worker.tasks,
            })
        };
        json!({
            "fleet": self.workers.iter().map(worker).collect::<Vec<_>>(),
            "landing": self.queue.as_ref().map(Queue::json),
        })
    }
}

/// Where the logs of a worker are, of which its report is made; `None`: that is no worker's name, or there is a loop of this name
/// here.
pub(super) fn logs(flag: Option<&str>, target: &TargetArgs) -> anyhow::Result<Option<String>> {
    let Some(name) = elsewhere(target) else { return Ok(None) };
    let fleet = Fleet::of(flag, target)?;
    let worker = fleet.as_ref().and_then(|fleet| fleet.workers.iter().find(|worker| worker.name() == name));
    Ok(worker.map(|worker| format!("the logs of {name} are on {}: {}", worker.machine, worker.logs)))
}

/// The name that may be a worker's: there is no loop of this name here.
fn elsewhere(target: &TargetArgs) -> Option<&str> {
    let is_here = || target::loops(target).is_ok_and(|(_, loops)| !loops.is_empty());
    target.name.as_deref().filter(|name| name.contains('/') && !is_here())
}

fn milliseconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
