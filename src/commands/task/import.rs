//! `ralph task import` and `ralph task export`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::json;

use super::tracked::Tracked;
use super::{answer, look, secrets};
use crate::cli::{GraphArgs, TaskImportArgs};
use crate::commands::graph_file::{Opened, create, is_on_server, make_room, open, place};
use crate::commands::output::Stream;
use crate::files::theirs;
use crate::git::refs::is_valid_branch;
use crate::graph::import::{ImportEntries, ImportEntry, Item, Skipped};
use crate::graph::{GraphError, Imported, IssueTask, Status, Store, import};

/// What is imported.
enum Work {
    /// A file; `-` is stdin.
    File(PathBuf),
    /// The issues of a tracker, fetched before the graph is changed.
    Issues(Vec<ImportEntry>),
}

/// What an import has done.
#[derive(Serialize)]
struct Taken {
    #[serde(flatten)]
    imported: Imported,
    /// Entries of a list of issues that became no tasks.
    skipped: Counts,
    /// Tasks that are not done here, and whose issues are closed.
    closed: Vec<String>,
    /// Tasks whose issues were told that they are done.
    reported: Vec<String>,
}

/// How many entries of a list of issues became no tasks, and why.
#[derive(Default, Serialize)]
struct Counts {
    /// They are closed, and no task here is about them.
    closed: usize,
    /// They are pull requests.
    pull_requests: usize,
    /// The list has them twice.
    twice: usize,
}

pub(super) fn import(args: &TaskImportArgs) -> anyhow::Result<u8> {
    let shown = if args.file == Path::new("-") { "stdin".into() } else { args.file.display().to_string() };
    let taken = imported(args).with_context(|| format!("cannot import {shown}"))?;
    answer(&args.graph, &json!(taken), &words(&taken, args.dry_run))
}

fn imported(args: &TaskImportArgs) -> anyhow::Result<Taken> {
    let tracked = args.file.to_str().and_then(|text| Tracked::read(text, &args.graph)).transpose()?;
    if args.report && tracked.is_none() {
        bail!("--report is for the issues of a tracker: name them, as in github:OWNER/REPO");
    }
    let makes = !args.dry_run && is_on_server(&args.graph)?;
    let mut store = if makes { create(&args.graph)? } else { open(&args.graph)? };
    let from = match &tracked {
        Some(tracked) => Work::Issues(tracked.entries(&store.imported()?).context("nothing was changed")?),
        None => Work::File(args.file.clone()),
    };
    let mut taken = take(&mut *store, &from, args)?;
    if let Opened::File(store) = &store
        && !store.has_place()
        && !args.dry_run
    {
        // Only now: a refused file makes no graph.
        let project = place(&args.graph)?;
        make_room(&project)?;
        let is_stdin = args.file == Path::new("-");
        match store.save(&project.graph()) {
            // Another process has made a graph meanwhile. A file can be read again.
            Err(_) if project.graph().exists() && !is_stdin => {
                taken = take(&mut *open(&args.graph)?, &from, args)?;
            }
            saved => saved?,
        }
    }
    if let Some(tracked) = tracked.filter(|_| args.report) {
        let told = tracked.report(&*look(&args.graph)?, &secrets(&args.graph)?, args.dry_run);
        taken.reported =
            told.context("the issues are imported, and not all could be told of what is done")?;
    }
    Ok(taken)
}

fn words(taken: &Taken, dry_run: bool) -> String {
    let Taken { imported: Imported { added, updated, unchanged, left_deleted }, skipped, closed, reported } =
        taken;
    let would = if dry_run { "would be " } else { "" };
    let mut text = format!("{would}{added} added, {updated} updated, {unchanged} unchanged");
    if *left_deleted > 0 {
        let _ = write!(text, ", {left_deleted} left deleted ('--again' adds them)");
    }
    let Counts { closed: over, pull_requests, twice } = skipped;
    for (count, what) in
        [(over, "closed there"), (pull_requests, "pull requests"), (twice, "twice in the list")]
    {
        if *count > 0 {
            let _ = write!(text, ", {count} skipped ({what})");
        }
    }
    if !reported.is_empty() {
        let _ = write!(text, "\n{would}told there as done: {}", reported.join(", "));
    }
    if !closed.is_empty() {
        let closed = closed.join(", ");
        let _ = write!(
            text,
            "\nclosed there, and kept here: {closed}; 'ralph task done ID' or 'ralph task delete ID' follows"
        );
    }
    text
}

fn take(store: &mut dyn Store, from: &Work, args: &TaskImportArgs) -> anyhow::Result<Taken> {
    let items: ImportEntries<'_> = match from {
        Work::Issues(entries) => Box::new(entries.iter().cloned().map(Ok)),
        Work::File(path) => {
            let file: Box<dyn Read> = if path == Path::new("-") {
                Box::new(io::stdin().lock())
            } else {
                Box::new(theirs::open(path).context("name a file that can be read")?)
            };
            import::read(file, &is_valid_branch)?
        }
    };
    let (mut closed, mut skipped) = (BTreeSet::new(), Counts::default());
    let mut open = items.filter_map(|entry| match entry {
        Ok(ImportEntry::Task(item)) if item.is_closed => {
            closed.extend(item.key.origin().map(str::to_owned));
            None
        }
        Ok(ImportEntry::Skipped(why)) => {
            let count = match why {
                Skipped::PullRequest => &mut skipped.pull_requests,
                Skipped::Twice => &mut skipped.twice,
            };
            *count += 1;
            None
        }
        Ok(ImportEntry::Task(item)) if args.again => Some(again(item)),
        entry => Some(entry),
    });
    let imported = store.import(&mut open, args.dry_run)?;
    drop(open);
    let is_meant = |task: &IssueTask| task.status != Status::Done && closed.contains(&task.origin);
    let known = if closed.is_empty() { Vec::new() } else { store.imported()? };
    skipped.closed = closed.len() - known.iter().filter(|task| closed.contains(&task.origin)).count();
    let closed = known.into_iter().filter(is_meant).map(|task| task.id).collect();
    Ok(Taken { imported, skipped, closed, reported: Vec::new() })
}

/// The entry of an issue that becomes a task also if that was deleted here.
fn again(mut item: Box<Item>) -> Result<ImportEntry, GraphError> {
    match &mut item.issue {
        Some(issue) if item.key.origin().is_some() => issue.again = true,
        _ => {
            let why = "--again is for issues of a tracker, and this file has other tasks, of which each import adds what is missing: \
                       leave --again out";
            return Err(GraphError::BadValue(why.to_owned()));
        }
    }
    Ok(ImportEntry::Task(item))
}

pub(super) fn export(args: &GraphArgs) -> anyhow::Result<u8> {
    let store = look(args)?;
    let mut stream = Stream::new();
    store.export(&mut |line| stream.line(line))?;
    stream.end()
}
