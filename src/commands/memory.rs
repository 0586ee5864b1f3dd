//! `ralph journal` and `ralph knowledge`: notes that agents have left for others.

use std::io::Write as _;

use anyhow::bail;
use serde_json::json;

use super::graph_file::{Opened, on_server};
use super::output::{Array, Stream, print_for_people, remark};
use super::target::count;
use super::task::{answer, look, secrets};
use crate::cli::{GraphArgs, JournalArgs, KnowledgeVerb};
use crate::graph::{JournalQuery, Words};
use crate::job::workspace::locate_records;
use crate::memory::journal::JournalEntry;
use crate::memory::knowledge::{self, Knowledge};
use crate::text::line::one_line;
use crate::text::nearest::meant;
use crate::text::redact::Redactor;
use crate::text::timestamp::local;

/// `ralph journal`.
pub(super) fn journal(args: &JournalArgs) -> anyhow::Result<u8> {
    let limit = args.lines.as_deref().map(|word| count(word, "--lines")).transpose()?;
    let store = look(&args.graph)?;
    let query = JournalQuery {
        run: args.run.clone(),
        but_run: None,
        // For a deleted task only the whole id is found.
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

/// `ralph knowledge`. Agents have written the texts, and named the files.
pub(super) fn knowledge(verb: &KnowledgeVerb) -> anyhow::Result<u8> {
    match verb {
        KnowledgeVerb::List(args) => {
            let (all, secrets) = read(args)?;
            list(args, all.iter(), &secrets)
        }
        KnowledgeVerb::Search(args) => {
            let (all, secrets) = read(&args.graph)?;
            list(&args.graph, knowledge::search(&all, &args.words).into_iter(), &secrets)
        }
        KnowledgeVerb::Show(args) => {
            let (all, secrets) = read(&args.graph)?;
            let Some(one) = all.iter().find(|one| one.slug == args.name) else {
                let meant = meant(&args.name, all.iter().map(|one| one.slug.as_str()));
                let said = format!("nothing is known by the name '{}': {meant}", args.name);
                bail!("{}'ralph knowledge list' shows all", secrets.word(&said));
            };
            let one = told(one, &secrets);
            let text = format!("{}\n{}\n\n{}", one.title, about(&one), one.body);
            answer(&args.graph, &json!(one), &text)
        }
    }
}

fn read(args: &GraphArgs) -> anyhow::Result<(Vec<Knowledge>, Redactor)> {
    let secrets = secrets(args)?;
    // On a server it is kept one by one: here it is put together as each worker does it.
    let together = tempfile::tempdir()?;
    let folder = match on_server(args)? {
        Some(store) => {
            if let Opened::Server(store) = store {
                for found in store.knowledge()? {
                    knowledge::keep(together.path(), found)?;
                }
            }
            together.path().to_owned()
        }
        None => locate_records(args.ralph_dir.as_ref())?.graph_dir().join("knowledge"),
    };
    let (all, notices) = knowledge::read(&folder);
    for notice in &notices {
        remark(&secrets.word(notice));
    }
    Ok((all, secrets))
}

/// Redacts secrets.
fn told(one: &Knowledge, secrets: &Redactor) -> Knowledge {
    let Knowledge { slug, title, tags, feature, created_at, body } = one;
    let without = |text: &String| secrets.word(text);
    Knowledge {
        slug: without(slug),
        title: without(title),
        tags: tags.iter().map(without).collect(),
        feature: feature.as_ref().map(without),
        created_at: *created_at,
        body: without(body),
    }
}

fn list<'a>(
    args: &GraphArgs,
    all: impl Iterator<Item = &'a Knowledge>,
    secrets: &Redactor,
) -> anyhow::Result<u8> {
    let all: Vec<Knowledge> = all.map(|one| told(one, secrets)).collect();
    if args.json {
        return answer(args, &json!(all), "");
    }
    print_for_people(|out| {
        all.iter().try_for_each(|one| writeln!(out, "{}  {}  ({})", one.slug, one.title, about(one)))
    })
}

/// Its tags and its date.
fn about(one: &Knowledge) -> String {
    let tags = one.tags.join(", ");
    let since = local(&one.created_at);
    if tags.is_empty() { since } else { format!("{tags}; {since}") }
}
