//! `ralph journal` and `ralph knowledge`: what agents have left for others.

use std::io::Write as _;

use anyhow::bail;
use serde_json::json;

use super::output::{Array, Stream, print_for_people, remark};
use super::target::count;
use super::task::{answer, look};
use crate::cli::{GraphArgs, JournalArgs, KnowledgeVerb};
use crate::graph::{JournalQuery, Store as _, Words};
use crate::job::workspace::locate_records;
use crate::memory::journal::JournalEntry;
use crate::memory::knowledge::{self, Knowledge};
use crate::text::line::one_line;
use crate::text::nearest::nearest;
use crate::text::timestamp::local;

/// `ralph journal`.
pub(super) fn journal(args: &JournalArgs) -> anyhow::Result<u8> {
    let limit = args.lines.as_deref().map(|word| count(word, "--lines")).transpose()?;
    let store = look(&args.graph)?;
    let query = JournalQuery {
        run: args.run.clone(),
        but_run: None,
        // Of a task that was deleted the whole id is known.
        task: args.task.as_ref().map(|id| store.task(id).map_or_else(|_| id.clone(), |task| task.id)),
        words: args.search.clone().map(Words::All),
        limit,
    };
    let mut stream = Stream::new();
    if args.graph.json {
        let mut array = Array::new(&mut stream);
        store.journal(&query, &mut |entry| array.item(&json!(entry)))?;
        array.end();
    } else {
        store.journal(&query, &mut |entry| text(&entry).lines().all(|line| stream.line_for_people(line)))?;
    }
    stream.end()
}

/// An attempt, for people.
fn text(entry: &JournalEntry) -> String {
    let model = entry.model.as_deref().unwrap_or("-");
    let cost = entry.cost_usd.map_or_else(String::new, |cost| format!("  ${cost:.4}"));
    let mut text = format!(
        "{}  {}  iteration {}  {:11}  {}  {model}  {:.1}s{cost}\n    {}",
        local(&entry.created_at),
        entry.run_id,
        entry.iteration,
        entry.outcome.word(),
        entry.task_id,
        entry.duration_secs,
        one_line(&entry.title)
    );
    let files = entry.files_modified.join(", ");
    for words in [&entry.reason, &entry.notes, &files] {
        for line in words.lines().filter(|line| !line.trim().is_empty()) {
            text.push_str("\n    ");
            text.push_str(line);
        }
    }
    text
}

/// `ralph knowledge`.
pub(super) fn knowledge(verb: &KnowledgeVerb) -> anyhow::Result<u8> {
    match verb {
        KnowledgeVerb::List(args) => list(args, &read(args)?.iter().collect::<Vec<_>>()),
        KnowledgeVerb::Search(args) => {
            list(&args.graph, &knowledge::search(&read(&args.graph)?, &args.words))
        }
        KnowledgeVerb::Show(args) => {
            let all = read(&args.graph)?;
            let Some(one) = all.iter().find(|one| one.slug == args.name) else {
                let meant = nearest(&args.name, all.iter().map(|one| one.slug.as_str()));
                let meant = meant.map_or_else(String::new, |name| format!("did you mean '{name}'? "));
                bail!(
                    "nothing is known by the name '{}': {meant}'ralph knowledge list' shows all",
                    args.name
                );
            };
            let text = format!("{}\n{}\n\n{}", one.title, about(one), one.body);
            answer(&args.graph, &json!(one), &text)
        }
    }
}

fn read(args: &GraphArgs) -> anyhow::Result<Vec<Knowledge>> {
    let folder = locate_records(args.ralph_dir.as_ref())?.graph_dir().join("knowledge");
    let (all, notices) = knowledge::read(&folder);
    for notice in &notices {
        remark(notice);
    }
    Ok(all)
}

fn list(args: &GraphArgs, all: &[&Knowledge]) -> anyhow::Result<u8> {
    if args.json {
        return answer(args, &json!(all), "");
    }
    print_for_people(|out| {
        all.iter().try_for_each(|one| writeln!(out, "{}  {}  ({})", one.slug, one.title, about(one)))
    })
}

/// What it is about, and since when it is known.
fn about(one: &Knowledge) -> String {
    let tags = one.tags.join(", ");
    let since = local(&one.created_at);
    if tags.is_empty() { since } else { format!("{tags}; {since}") }
}
