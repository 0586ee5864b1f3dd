//! `ralph task graph`: for programs that draw graphs.

use serde_json::json;

use super::look;
use crate::cli::{GraphFormat, TaskGraphArgs};
use crate::commands::output::{Array, Stream};
use crate::graph::sqlite::SqliteStore;
use crate::graph::{Selection, Store as _, Task};

pub(super) fn graph(args: &TaskGraphArgs) -> anyhow::Result<u8> {
    let store = look(&args.graph)?;
    let mut stream = Stream::new();
    if args.graph.json {
        json(&store, &mut stream)?;
        return stream.end();
    }
    let (head, foot) = match args.format {
        GraphFormat::Dot => ("digraph tasks {", "}"),
        GraphFormat::Mermaid => ("graph TD", ""),
    };
    stream.line(head);
    store.list(&Selection::default(), &mut |task| stream.line(&node(args.format, &task)))?;
    store.dependencies(&mut |blocker, blocked| {
        stream.line(&match args.format {
            GraphFormat::Dot => format!("  \"{blocker}\" -> \"{blocked}\";"),
            GraphFormat::Mermaid => format!("  {} --> {}", word(blocker), word(blocked)),
        })
    })?;
    if !foot.is_empty() {
        stream.line(foot);
    }
    stream.end()
}

/// A task, and the line to what it is a part of.
fn node(format: GraphFormat, task: &Task) -> String {
    let (id, status) = (&task.id, task.status.word());
    match format {
        GraphFormat::Dot => {
            let title = task.title.replace('\\', "\\\\").replace('"', "\\\"");
            let part =
                task.parent_id.iter().map(|parent| format!("\n  \"{parent}\" -> \"{id}\" [style=dashed];"));
            format!("  \"{id}\" [label=\"{title}\\n{status}\"];{}", part.collect::<String>())
        }
        GraphFormat::Mermaid => {
            let title = task
                .title
                .replace('#', "#35;")
                .replace('"', "#quot;")
                .replace('<', "#lt;")
                .replace('>', "#gt;");
            let part = task.parent_id.iter().map(|parent| format!("\n  {} -.- {}", word(parent), word(id)));
            format!("  {}[\"{title}<br>{status}\"]{}", word(id), part.collect::<String>())
        }
    }
}

/// An id as a word of Mermaid's, where dashes mean something.
fn word(id: &str) -> String {
    id.replace('-', "_")
}

fn json(store: &SqliteStore, stream: &mut Stream) -> anyhow::Result<()> {
    stream.line("{\"tasks\":");
    let mut tasks = Array::new(stream);
    store.list(&Selection::default(), &mut |task| tasks.item(&json!(task)))?;
    tasks.end();
    stream.line(",\"dependencies\":");
    let mut edges = Array::new(stream);
    store.dependencies(&mut |blocker, blocked| {
        edges.item(&json!({ "blocker": blocker, "blocked": blocked }))
    })?;
    edges.end();
    stream.line("}");
    Ok(())
}
