//! `ralph task tree`: tasks and their parts, drawn with lines.

use anstyle::Style;
use serde_json::json;

use super::look;
use crate::cli::TaskTreeArgs;
use crate::commands::output::{Array, Stream, warn};
use crate::graph::{Status, Task, TreePosition};
use crate::text::palette::{ERROR, GOOD, NOTE, STRONG};

pub(super) fn tree(args: &TaskTreeArgs) -> anyhow::Result<u8> {
    let store = look(&args.graph)?;
    let mut stream = Stream::new();
    let is_whole = args.id.is_none();
    let mut own_parts = Vec::new();
    let mut note = |task: &Task, place: TreePosition| {
        if is_whole && place.depth == 0 && task.parent_id.is_some() {
            own_parts.push(task.id.clone());
        }
    };
    if args.graph.json {
        let mut array = Array::new(&mut stream);
        store.tree(args.id.as_deref(), &mut |task, place| {
            note(&task, place);
            let mut item = json!(task);
            item["depth"] = json!(place.depth);
            array.item(&item)
        })?;
        array.end();
    } else {
        let mut drawing = Drawing::default();
        store.tree(args.id.as_deref(), &mut |task, place| {
            note(&task, place);
            stream.line_for_people(&drawing.line(&task, place))
        })?;
    }
    for id in own_parts {
        warn(&format!(
            "{id} is a part of itself, over the tasks below it: another program has changed the graph. 'ralph task export' prints all \
             tasks: correct its parent_id there, move the graph away, and import them"
        ));
    }
    stream.end()
}

/// For each level below the top, the text before its lines.
#[derive(Default)]
struct Drawing {
    levels: Vec<&'static str>,
}

impl Drawing {
    fn line(&mut self, task: &Task, place: TreePosition) -> String {
        let mut drawn = String::new();
        if let Some(above) = place.depth.checked_sub(1) {
            self.levels.truncate(above);
            drawn.extend(self.levels.iter().copied());
            drawn.push_str(if place.is_last { "└─ " } else { "├─ " });
            self.levels.push(if place.is_last { "   " } else { "│  " });
        }
        let (sign, style) = sign(task.status);
        format!("{drawn}{style}{sign}{style:#} {}  {}", task.id, task.title)
    }
}

fn sign(status: Status) -> (char, Style) {
    match status {
        Status::Pending => ('○', Style::new()),
        Status::InProgress => ('▶', STRONG),
        Status::Landing => ('↷', STRONG),
        Status::Done => ('✓', GOOD),
        Status::Blocked => ('⊘', NOTE),
        Status::Failed => ('✗', ERROR),
    }
}
