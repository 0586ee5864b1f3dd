//! Changes texts, names and ids that the earlier program allowed and ralph does not. The copy of its database keeps
//! the originals.

use rusqlite::{Connection, params};

use crate::graph::import::is_id;
use crate::graph::limits;
use crate::graph::sql::edits::new_id;
use crate::graph::sql::task_log::write_log;
use crate::graph::sqlite::{Fallible, now};

/// The title of a task without one.
const UNTITLED: &str = "(untitled)";
/// The name of a feature without one.
const UNNAMED: &str = "feature";

pub(super) fn tidy(graph: &Connection) -> Fallible<()> {
    tidy_column(graph, "tasks", "title", title)?;
    tidy_column(graph, "descriptions", "text", text)?;
    tidy_column(graph, "task_logs", "message", text)?;
    tidy_column(graph, "features", "spec_path", path)?;
    tidy_column(graph, "features", "plan_path", path)?;
    for (seq, id) in column(graph, "tasks", "id")? {
        if !is_id("t-", &id) {
            let update = "UPDATE tasks SET id = ?2 WHERE seq = ?1";
            graph.execute(update, params![seq, new_id(graph)?])?;
            write_log(graph, seq, &text(&format!("the older program called it '{id}'")))?;
        }
    }
    for (seq, id) in column(graph, "features", "id")? {
        if !is_id("f-", &id) {
            let update = "UPDATE features SET id = 'f-' || lower(hex(randomblob(4))) WHERE seq = ?1";
            graph.execute(update, [seq])?;
        }
    }
    for (seq, name) in column(graph, "features", "name")? {
        if limits::feature(&name).is_err() {
            let update = "UPDATE features SET name = ?2, updated_at = ?3 WHERE seq = ?1";
            graph.execute(update, params![seq, free_name(graph, &name)?, now()])?;
        }
    }
    Ok(())
}

/// Each number with its text; invalid UTF-8 is replaced, and null is empty.
fn column(graph: &Connection, table: &str, column: &str) -> Fallible<Vec<(i64, String)>> {
    let mut all = Vec::new();
    each(graph, table, column, |seq, text, _| all.push((seq, text)))?;
    Ok(all)
}

fn tidy_column(graph: &Connection, table: &str, column: &str, tidy: fn(&str) -> String) -> Fallible<()> {
    let mut changed = Vec::new();
    each(graph, table, column, |seq, text, is_utf8| {
        let tidied = tidy(&text);
        if !is_utf8 || tidied != text {
            changed.push((seq, tidied));
        }
    })?;
    let update = format!("UPDATE {table} SET {column} = nullif(?2, '') WHERE rowid = ?1");
    let mut update = graph.prepare(&update)?;
    for (seq, text) in changed {
        update.execute(params![seq, text])?;
    }
    Ok(())
}

fn each(
    graph: &Connection,
    table: &str,
    column: &str,
    mut take: impl FnMut(i64, String, bool),
) -> Fallible<()> {
    let mut rows = graph.prepare(&format!("SELECT rowid, coalesce({column}, '') FROM {table}"))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
        take(row.get(0)?, String::from_utf8_lossy(bytes).into_owned(), std::str::from_utf8(bytes).is_ok());
    }
    Ok(())
}

fn title(title: &str) -> String {
    let plain = title.replace(char::is_control, " ");
    let plain: String = plain.trim().chars().take(limits::TITLE).collect();
    if plain.is_empty() { UNTITLED.to_owned() } else { plain }
}

fn text(text: &str) -> String {
    let mut plain = text.replace(|char: char| char.is_control() && !limits::is_of_text(char), " ");
    if plain.len() > limits::TEXT {
        plain.truncate(plain.floor_char_boundary(limits::TEXT));
    }
    // A log line is never empty.
    if plain.is_empty() { " ".to_owned() } else { plain }
}

/// The path, or nothing if it leads out of the ralph dir.
fn path(path: &str) -> String {
    if limits::path(path).is_ok() { path.to_owned() } else { String::new() }
}

/// A name like this one that no other feature has.
fn free_name(graph: &Connection, name: &str) -> Fallible<String> {
    let plain = name.replace(|char: char| !limits::is_of_name(char), "-");
    let plain = plain.trim_start_matches(['.', '-', ' ']).trim_end();
    // Leaves space for a number.
    let plain = &plain[..plain.floor_char_boundary(limits::NAME - 10)];
    let plain = if plain.is_empty() { UNNAMED } else { plain.trim_end() };
    let mut free = plain.to_owned();
    let mut number = 1;
    while graph.prepare_cached("SELECT 1 FROM features WHERE name = ?1")?.exists([&free])? {
        number += 1;
        free = format!("{plain}-{number}");
    }
    Ok(free)
}
