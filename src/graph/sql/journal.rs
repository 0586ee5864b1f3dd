//! The journal of attempts, and its search.

use std::cmp::Reverse;

use super::values::{Row, Value, values};
use super::{Dialect, Sql, first};
use super::{Fallible, moment};
use crate::graph::error::GraphError;
use crate::graph::store::{JournalQuery, Words};
use crate::memory::journal::{Became, JournalEntry};

/// Shorter words are not in the index, which is made of trigrams.
const TRIGRAM: usize = 3;
/// At most this many words of a text are searched.
const MOST_WORDS: usize = 50;
/// At most this many are where there is no table of words.
const MOST_LIKE: usize = 12;
/// So many characters of a word are searched. `SQLite` reads the positions of each trigram of a word at once: for a
/// megabyte of base64, that took all memory of the machine.
const LONGEST_WORD: usize = 64;

pub(in crate::graph) fn note(graph: &dyn Sql, entry: &JournalEntry) -> Fallible<()> {
    let files = serde_json::to_string(&entry.files_modified)
        .map_err(|error| GraphError::BadValue(format!("the files of an attempt: {error}")))?;
    let outcome = Became::ALL.iter().position(|became| *became == entry.outcome);
    let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let insert =
        "INSERT INTO journal (run, iteration, task, title, feature, outcome, model, duration_secs, cost_usd,
        input_tokens, output_tokens, files, notes, reason, at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) RETURNING seq";
    let seq: i64 = graph.one(
        insert,
        values![
            entry.run_id,
            tokens(entry.iteration),
            entry.task_id,
            entry.title,
            entry.feature,
            outcome.and_then(|at| i64::try_from(at).ok()).unwrap_or_default(),
            entry.model,
            entry.duration_secs,
            entry.cost_usd,
            tokens(entry.input_tokens),
            tokens(entry.output_tokens),
            files,
            entry.notes,
            entry.reason,
            entry.created_at.timestamp_millis(),
        ],
        first,
    )?;
    if graph.dialect().has_word_table {
        let words = "INSERT INTO journal_words (rowid, title, notes, reason) VALUES (?1, ?2, ?3, ?4)";
        graph.execute(words, values![seq, entry.title, entry.notes, entry.reason])?;
    }
    Ok(())
}

/// Adds an attempt that was exported, unless it is there.
pub(in crate::graph) fn note_once(graph: &dyn Sql, entry: &JournalEntry) -> Fallible<()> {
    let query = "SELECT 1 FROM journal WHERE task = ?1 AND run = ?2 AND iteration = ?3 AND at = ?4";
    let iteration = i64::try_from(entry.iteration).unwrap_or(i64::MAX);
    let at = entry.created_at.timestamp_millis();
    if graph.exists(query, values![entry.task_id, entry.run_id, iteration, at])? {
        return Ok(());
    }
    note(graph, entry)
}

/// Shows all attempts to `each` until it returns `false`, the oldest first.
pub(in crate::graph) fn oldest_first(
    graph: &dyn Sql,
    each: &mut dyn FnMut(JournalEntry) -> Fallible<bool>,
) -> Fallible<()> {
    graph.each(&format!("{ENTRY} ORDER BY j.seq"), values![], &mut |row| each(of_row(row)?))
}

const ENTRY: &str =
    "SELECT j.run, j.iteration, j.task, j.title, j.feature, j.outcome, j.model, j.duration_secs, j.cost_usd,
    j.input_tokens, j.output_tokens, j.files, j.notes, j.reason, j.at FROM journal j";

/// What words are searched in.
const TEXT: &str = "j.title || ' ' || j.notes || ' ' || j.reason";

fn of_row(row: &dyn Row) -> Fallible<JournalEntry> {
    let count = |at| row.get(at).map(|count: i64| u64::try_from(count).unwrap_or_default());
    let files: String = row.get(11)?;
    let outcome: usize = row.get(5)?;
    Ok(JournalEntry {
        run_id: row.get(0)?,
        iteration: count(1)?,
        task_id: row.get(2)?,
        title: row.get(3)?,
        feature: row.get(4)?,
        outcome: Became::ALL.get(outcome).copied().unwrap_or(Became::Blocked),
        model: row.get(6)?,
        duration_secs: row.get(7)?,
        cost_usd: row.get(8)?,
        input_tokens: count(9)?,
        output_tokens: count(10)?,
        files_modified: serde_json::from_str(&files).unwrap_or_default(),
        notes: row.get(12)?,
        reason: row.get(13)?,
        created_at: moment(row.get(14)?),
    })
}

pub(in crate::graph) fn search(
    graph: &dyn Sql,
    query: &JournalQuery,
    each: &mut dyn FnMut(JournalEntry) -> bool,
) -> Fallible<()> {
    let mut values: Vec<String> = Vec::new();
    let mut wheres: Vec<String> = Vec::new();
    let Dialect { has_word_table, like: is_like, .. } = graph.dialect();
    let (mut from, mut order) = ("", "j.seq DESC".to_owned());
    let mut add = |condition: &str, value: &str| {
        values.push(value.to_owned());
        wheres.push(condition.replace('?', &format!("?{}", values.len())));
    };
    if let Some(run) = &query.run {
        add("j.run = ?", run);
    }
    if let Some(run) = &query.but_run {
        add("j.run <> ?", run);
    }
    if let Some(task) = &query.task {
        add("j.task = ?", task);
    }
    match &query.words {
        None => {}
        Some(Words::All(text)) => {
            for word in words(text) {
                if *has_word_table && is_indexed(&word) {
                    let found = "j.seq IN (SELECT rowid FROM journal_words WHERE journal_words MATCH ?)";
                    add(found, &phrase(&word));
                } else {
                    add(&format!("{TEXT} {is_like} ? ESCAPE '\\'"), &like(&word));
                }
            }
        }
        Some(Words::Any(text)) => {
            let terms: Vec<String> =
                words(text).iter().flat_map(|word| terms(word)).take(MOST_WORDS).collect();
            if terms.is_empty() {
                return Ok(());
            }
            if *has_word_table {
                from = " JOIN journal_words w ON w.rowid = j.seq";
                "w.rank".clone_into(&mut order);
                let any = terms.iter().map(|term| phrase(term)).collect::<Vec<_>>().join(" OR ");
                add("journal_words MATCH ?", &any);
            } else {
                // The longest ones tell most. Each alone, so that an index may serve it.
                let mut terms = terms;
                terms.sort_by_key(|term| Reverse(term.chars().count()));
                let first = values.len() + 1;
                values.extend(terms.iter().take(MOST_LIKE).map(|term| like(term)));
                let found: Vec<String> =
                    (first..=values.len()).map(|at| format!("{TEXT} {is_like} ?{at} ESCAPE '\\'")).collect();
                wheres.push(format!("({})", found.join(" OR ")));
                // What has most of them comes first.
                let count = found.iter().map(|one| format!("CASE WHEN {one} THEN 1 ELSE 0 END"));
                order = format!("{} DESC, j.seq DESC", count.collect::<Vec<_>>().join(" + "));
            }
        }
    }
    let wheres = if wheres.is_empty() { String::new() } else { format!(" WHERE {}", wheres.join(" AND ")) };
    let limit = query.limit.map_or(String::new(), |limit| format!(" LIMIT {limit}"));
    let query = format!("{ENTRY}{from}{wheres} ORDER BY {order}{limit}");
    let values: Vec<Value<'_>> = values.iter().map(Value::from).collect();
    graph.each(&query, &values, &mut |row| Ok(each(of_row(row)?)))
}

/// The words of a text, so that no title is parsed as a query.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let cut = |word: &str| word.chars().take(LONGEST_WORD).flat_map(char::to_lowercase).collect();
    words.filter(|word| !word.is_empty()).take(MOST_WORDS).map(cut).collect()
}

fn is_indexed(word: &str) -> bool {
    word.chars().count() >= TRIGRAM
}

/// The search terms of a word. A script without blanks has whole sentences as words.
fn terms(word: &str) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    if word.is_ascii() {
        let is_telling = chars.len() > TRIGRAM;
        return if is_telling { vec![word.to_owned()] } else { Vec::new() };
    }
    chars.windows(TRIGRAM).map(|window| window.iter().collect()).collect()
}

fn phrase(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

fn like(word: &str) -> String {
    let plain = word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{plain}%")
}
