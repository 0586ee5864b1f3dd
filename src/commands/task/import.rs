//! `ralph task import` and `ralph task export`.

use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;

use super::{answer, look};
use crate::cli::{GraphArgs, TaskImportArgs};
use crate::commands::graph_file::{Opened, create, is_on_server, make_room, open, place};
use crate::commands::output::Stream;
use crate::files::theirs;
use crate::git::refs::is_valid_branch;
use crate::graph::{Imported, Store, import};

pub(super) fn import(args: &TaskImportArgs) -> anyhow::Result<u8> {
    let makes = !args.dry_run && is_on_server(&args.graph)?;
    let mut store = if makes { create(&args.graph)? } else { open(&args.graph)? };
    let mut imported = take(&mut *store, &args.file, args.dry_run)?;
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
                imported = take(&mut *open(&args.graph)?, &args.file, false)?;
            }
            saved => saved?,
        }
    }
    let Imported { added, updated, unchanged } = imported;
    let would = if args.dry_run { "would be " } else { "" };
    let text = format!("{added} added, {updated} updated, {unchanged} unchanged");
    answer(&args.graph, &json!(imported), &format!("{would}{text}"))
}

fn take(store: &mut dyn Store, path: &Path, dry_run: bool) -> anyhow::Result<Imported> {
    let shown = if path == Path::new("-") { "stdin".into() } else { path.display().to_string() };
    let mut all = || {
        let file: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin().lock())
        } else {
            Box::new(theirs::open(path).context("name a file that can be read")?)
        };
        let mut items = import::read(file, &is_valid_branch)?;
        anyhow::Ok(store.import(&mut items, dry_run)?)
    };
    all().with_context(|| format!("cannot import {shown}"))
}

pub(super) fn export(args: &GraphArgs) -> anyhow::Result<u8> {
    let store = look(args)?;
    let mut stream = Stream::new();
    stream.line(&import::header());
    store.export(&mut |line| stream.line(line))?;
    stream.end()
}
