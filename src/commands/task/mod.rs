//! `ralph task`: the graph of tasks, changed by people and, with limits, by agents.

mod graph;
mod import;
mod look;
mod show;
mod tracked;
mod tree;

use std::io::{Read as _, Write as _};

use anyhow::{Context as _, bail};
use serde_json::json;

use super::attempt;
use super::author;
use super::graph_file::{FEATURE_VARIABLE, Opened, create, is_draft, is_on_server, open, place};
use super::output::{print, print_for_people, remark};
use crate::cli::{DependencyArgs, DepsVerb, GraphArgs, PlaceArgs, TaskAddArgs, TaskUpdateArgs, TaskVerb};
use crate::git::landing::{Trunk, landed_as};
use crate::graph::sqlite::SqliteStore;
use crate::graph::{Changes, Landing, NewTask, Standing, Store, Task};
use crate::job::workspace::secrets_in;
use crate::platform::mark::Carried;
use crate::text::count;
use crate::text::redact::Redactor;

pub(super) use look::{Look, glance, look};

/// The most of a description that is read from stdin, in bytes: enough to see that it is too long.
const MOST: u64 = 2 << 20;

/// `ralph task`.
pub(super) fn run(verb: &TaskVerb) -> anyhow::Result<u8> {
    match verb {
        TaskVerb::Add(args) => add(args),
        TaskVerb::Create(args) => author::task(args),
        TaskVerb::Show(args) => show::show(args),
        TaskVerb::List(args) => show::list(args),
        TaskVerb::Update(args) => update(args),
        TaskVerb::Done(args) => {
            let id = &args.task.id;
            withdraw(&args.task.graph, id, |store| store.force_done(id, args.force))
        }
        TaskVerb::Fail(args) => {
            let id = &args.task.id;
            let reason = secrets(&args.task.graph)?.word(&args.reason);
            withdraw(&args.task.graph, id, |store| store.force_fail(id, &reason))
        }
        TaskVerb::Reset(args) => withdraw(&args.graph, &args.id, |store| store.reset(&args.id)),
        TaskVerb::Delete(args) => {
            let mut store = open(&args.task.graph)?;
            refuse_landed(&args.task.graph, &*store, &args.task.id)?;
            let before = store.landings()?;
            let count = store.delete(&args.task.id, args.recursive)?;
            tell_withdrawn(&*store, &before)?;
            answer(
                &args.task.graph,
                &json!({ "deleted": count }),
                &format!("deleted {}", count::of(count as u64, "task")),
            )
        }
        TaskVerb::Log(args) => match &args.message {
            Some(message) => {
                let message = secrets(&args.task.graph)?.word(message);
                let mut store = open(&args.task.graph)?;
                store.log(&args.task.id, &message)?;
                if args.task.graph.json { show::log(&*store, &args.task) } else { Ok(0) }
            }
            None => show::log(&*look(&args.task.graph)?, &args.task),
        },
        TaskVerb::Deps { verb: DepsVerb::Add(args) } => {
            depend(args, |store| store.add_dependency(&args.blocker, &args.blocked))
        }
        TaskVerb::Deps { verb: DepsVerb::Rm(args) } => {
            depend(args, |store| store.remove_dependency(&args.blocker, &args.blocked))
        }
        TaskVerb::Deps { verb: DepsVerb::List(args) } => show::dependencies(args),
        TaskVerb::Tree(args) => tree::tree(args),
        TaskVerb::Graph(args) => graph::graph(args),
        TaskVerb::Import(args) => import::import(args),
        TaskVerb::Export(args) => import::export(args),
    }
}

fn add(args: &TaskAddArgs) -> anyhow::Result<u8> {
    let secrets = secrets(&args.graph)?;
    let description = description(args.description.as_deref())?.unwrap_or_default();
    let task = NewTask {
        title: secrets.word(&args.title),
        description: secrets.word(&description),
        parent: args.parent.clone(),
        feature: args.feature.clone().or_else(|| feature_at_work(args)),
        after: args.after.clone(),
        priority: args.priority,
        max_retries: args.max_retries,
    };
    if !is_on_server(&args.graph)? && !place(&args.graph)?.graph().exists() {
        // A refused call makes no graph either.
        SqliteStore::nowhere()?.add(&task)?;
    }
    let mut store = create(&args.graph)?;
    if let Some(parent) = &task.parent {
        require_own(&args.graph, &*store, parent)?;
    }
    let id = store.add(&task)?;
    answer(&args.graph, &json!({ "id": id }), &id)
}

/// Refuses parts of other tasks: inside an attempt parts are only added below the current task. A draft belongs to the agents.
fn require_own(args: &GraphArgs, store: &dyn Store, parent: &str) -> anyhow::Result<()> {
    if is_draft(&place(args)?) || !attempt::is_inside(args.ralph_dir.as_ref()) {
        return Ok(());
    }
    let carried = Carried::by_us();
    let is_ours = |run: &String| carried.as_ref().is_some_and(|carried| carried.is_of_run(run));
    if store.with_above(parent)?.iter().any(|task| task.claimed_by.as_ref().is_some_and(is_ours)) {
        return Ok(());
    }
    bail!(
        "agents at work add parts only below their own task, and {parent} is none of these: leave --parent out, or say with \
         --after what it waits for"
    )
}

/// Takes the secrets out of words on their way into the graph, which is kept and becomes prompts.
pub(super) fn secrets(args: &GraphArgs) -> anyhow::Result<Redactor> {
    secrets_in(&PlaceArgs { ralph_dir: args.ralph_dir.clone(), ..PlaceArgs::default() })
}

/// The feature to which an agent adds tasks, if it names none.
fn feature_at_work(args: &TaskAddArgs) -> Option<String> {
    let name = std::env::var(FEATURE_VARIABLE).ok().filter(|name| !name.is_empty());
    name.filter(|_| args.parent.is_none())
}

fn update(args: &TaskUpdateArgs) -> anyhow::Result<u8> {
    let secrets = secrets(&args.graph)?;
    let without = |text: String| secrets.word(&text);
    let changes = Changes {
        title: args.title.clone().map(without),
        description: description(args.description.as_deref())?.map(without),
        feature: args.feature.clone(),
        priority: args.priority,
        max_retries: args.max_retries,
    };
    if changes == Changes::default() {
        bail!("nothing to change: say what, as in 'ralph task update {} --priority 1'", args.id);
    }
    change(&args.graph, |store| {
        store.update(&args.id, &changes)?;
        Ok(store.task(&args.id)?.id)
    })
}

/// Changes a task, and shows its new state.
fn change(
    args: &GraphArgs,
    change: impl FnOnce(&mut dyn Store) -> Result<String, crate::graph::GraphError>,
) -> anyhow::Result<u8> {
    change_in(args, open(args)?, change)
}

fn change_in(
    args: &GraphArgs,
    mut store: Opened,
    change: impl FnOnce(&mut dyn Store) -> Result<String, crate::graph::GraphError>,
) -> anyhow::Result<u8> {
    let before = store.landings()?;
    let id = change(&mut *store)?;
    tell_withdrawn(&*store, &before)?;
    let task = store.task(&id)?;
    answer(args, &json!(task), &line(&task))
}

/// [`change`] where a landing is taken back.
fn withdraw(
    args: &GraphArgs,
    id: &str,
    withdraw: impl FnOnce(&mut dyn Store) -> Result<String, crate::graph::GraphError>,
) -> anyhow::Result<u8> {
    let store = open(args)?;
    refuse_landed(args, &*store, id)?;
    change_in(args, store, withdraw)
}

/// Refuses to take the landing of a task or one of its parts back that is on its trunk already, and is only not booked yet.
fn refuse_landed(args: &GraphArgs, store: &dyn Store, id: &str) -> anyhow::Result<()> {
    let (waiting, project) = (store.landings()?, place(args)?);
    // An unknown one is refused by what follows.
    let Ok(id) = store.task(id).map(|task| task.id) else { return Ok(()) };
    let root = project.root();
    let landed = |landing: &Landing| {
        let tip = Trunk::new(root, &landing.made.trunk).tip()?;
        landed_as(root, &landing.reference(), &landing.made.head, &tip)
    };
    let is_meant = |landing: &Landing| {
        let above = store.with_above(&landing.task);
        landing.standing == Standing::Waiting
            && above.is_ok_and(|above| above.iter().any(|task| task.id == id))
    };
    let mut meant = waiting.into_iter().filter(is_meant);
    let Some((commit, landing)) = meant.find_map(|landing| Some((landed(&landing)?, landing))) else {
        return Ok(());
    };
    bail!(
        "{task} has landed on {trunk} as {commit:.10}, which is not booked yet: the next 'ralph run' that lands on {trunk} books it, \
         and 'ralph revert {task}' takes it back then",
        task = landing.task,
        trunk = landing.made.trunk
    )
}

/// Says of which landings nothing lands any more, and where their commits are.
fn tell_withdrawn(store: &dyn Store, before: &[Landing]) -> anyhow::Result<()> {
    if before.is_empty() {
        return Ok(());
    }
    let now = store.landings()?;
    for gone in before.iter().filter(|one| !now.iter().any(|other| other.task == one.task)) {
        remark(&format!(
            "{} was to land on {}: nothing of it is landed, and its commits are kept as {}",
            gone.task,
            gone.made.trunk,
            gone.reference()
        ));
    }
    Ok(())
}

fn depend(
    args: &DependencyArgs,
    change: impl FnOnce(&mut dyn Store) -> Result<(), crate::graph::GraphError>,
) -> anyhow::Result<u8> {
    let mut store = open(&args.graph)?;
    change(&mut *store)?;
    let task = store.task(&args.blocked)?;
    answer(&args.graph, &json!(task), &line(&task))
}

/// A task on a line: its id, state and title.
fn line(task: &Task) -> String {
    format!("{}  {:11}  {:>3}  {}", task.id, task.status.word(), task.priority, task.title)
}

pub(super) fn answer(args: &GraphArgs, json: &serde_json::Value, text: &str) -> anyhow::Result<u8> {
    if args.json {
        print(|out| writeln!(out, "{json}"))
    } else {
        print_for_people(|out| writeln!(out, "{text}"))
    }
}

/// The given text, or with `-` that of stdin.
fn description(given: Option<&str>) -> anyhow::Result<Option<String>> {
    if given != Some("-") {
        return Ok(given.map(str::to_owned));
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MOST)
        .read_to_end(&mut bytes)
        .context("cannot read the description from stdin")?;
    let text = String::from_utf8(bytes).context("the description on stdin is no UTF-8 text")?;
    Ok(Some(text.trim_end().to_owned()))
}
