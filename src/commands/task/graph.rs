//! `ralph task graph`: for programs that draw graphs.

use serde_json::json;

use super::look;
use crate::cli::{GraphFormat, TaskGraphArgs};
use crate::commands::output::{Array, Stream};
use crate::graph::{Part, Store, Task};

pub(super) fn graph(args: &TaskGraphArgs) -> anyhow::Result<u8> {
    let store = look(&args.graph)?;
    let mut stream = Stream::new();
    if args.graph.json {
        json(&*store, &mut stream)?;
        return stream.end();
    }
    let (head, foot) = match args.format {
        GraphFormat::Dot => ("digraph tasks {", "}"),
        GraphFormat::Mermaid => ("graph TD", ""),
    };
    stream.line(head);
    store.graph(&mut |part| {
        stream.line(&match (part, args.format) {
            (Part::Task(task), format) => node(format, task),
            (Part::Dependency { blocker, blocked }, GraphFormat::Dot) => {
                format!("  \"{blocker}\" -> \"{blocked}\";")
            }
            (Part::Dependency { blocker, blocked }, GraphFormat::Mermaid) => {
                format!("  {} --> {}", word(blocker), word(blocked))
            }
        })
    })?;
    if !foot.is_empty() {
        stream.line(foot);
    }
    stream.end()
}

/// A task, and the line to its parent.
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

/// An id for Mermaid, where dashes have a meaning.
fn word(id: &str) -> String {
    id.replace('-', "_")
}

fn json(store: &dyn Store, stream: &mut Stream) -> anyhow::Result<()> {
    let mut array = Some(Array::behind("{\"tasks\":\n", stream));
    let mut is_at_tasks = true;
    store.graph(&mut |part| {
        let Some(mut items) = array.take() else { return false };
        let goes_on = match part {
            Part::Task(task) => items.item(&json!(task)),
            Part::Dependency { blocker, blocked } => {
                if std::mem::take(&mut is_at_tasks) {
                    items = dependencies(items);
                }
                items.item(&json!({ "blocker": blocker, "blocked": blocked }))
            }
        };
        array = Some(items);
        goes_on
    })?;
    if let Some(items) = array {
        let items = if is_at_tasks { dependencies(items) } else { items };
        items.end().line("}");
    }
    Ok(())
}

/// The array after that of the tasks.
fn dependencies(tasks: Array<'_>) -> Array<'_> {
    Array::behind(",\"dependencies\":\n", tasks.end())
}
