//! `ralph task show`, `list`, `log`, `deps list`.

use std::io::Write as _;
use std::path::Path;

use anyhow::bail;
use serde::Serialize;
use serde_json::json;

use super::{answer, line, look};
use crate::cli::{TaskIdArgs, TaskListArgs};
use crate::commands::output::{Array, Stream, print_for_people};
use crate::git::refs::ahead;
use crate::graph::{Details, Landing, Made, Selection, Status, Store};
use crate::job::workspace::locate;
use crate::text::count;
use crate::text::nearest::nearest;
use crate::text::timestamp::local;

pub(super) fn show(args: &TaskIdArgs) -> anyhow::Result<u8> {
    let details = look(&args.graph)?.details(&args.id)?;
    let shown = |landing| {
        let project = locate(args.graph.ralph_dir.as_ref())?;
        anyhow::Ok(Shown::of(landing, project.root()))
    };
    let landing = details.landing.as_ref().map(shown).transpose()?;
    let mut json = json!(details);
    if let (Some(landing), Some(object)) = (&landing, json.as_object_mut()) {
        object.insert("landing".to_owned(), json!(landing));
    }
    answer(&args.graph, &json, text(&details, landing.as_ref()).trim_end())
}

/// What agents have committed for a task in a work tree of their own, and what came of it.
#[derive(Serialize)]
struct Shown {
    /// The branch that it lands on.
    onto: String,
    /// kept, waiting, returned or landed.
    standing: &'static str,
    /// The ref that keeps its commits.
    #[serde(rename = "ref")]
    reference: String,
    /// Where they begin: the tip that they were put on, of what has landed.
    base: String,
    /// The last one.
    head: String,
    /// The commit that brought them; null before.
    landed: Option<String>,
    /// How many there are.
    commits: Option<u64>,
    /// How often the gate has run for it.
    gates: u32,
    /// How often it was returned.
    returned: u32,
}

impl Shown {
    fn of(landing: &Landing, root: &Path) -> Self {
        let Made { trunk, base, head } = landing.made.clone();
        let commits = ahead(root, &base, &head);
        Self {
            onto: trunk,
            standing: landing.standing.word(),
            reference: landing.reference(),
            base,
            head,
            landed: landing.landed.clone(),
            commits,
            gates: landing.gates,
            returned: landing.returned,
        }
    }

    fn line(&self) -> String {
        let of = self.landed.as_ref().unwrap_or(&self.head);
        let mut parts =
            vec![format!("{} on {}", self.standing, self.onto), format!("{:.10}..{of:.10}", self.base)];
        parts.extend(self.commits.map(|commits| count::of(commits, "commit")));
        parts.push(count::of(self.gates.into(), "gate run"));
        if self.returned > 0 {
            parts.push(format!("returned {}", count::of(self.returned.into(), "time")));
        }
        if self.landed.is_none() {
            parts.push(self.reference.clone());
        }
        parts.join(", ")
    }
}

fn text(details: &Details, landing: Option<&Shown>) -> String {
    let task = &details.task;
    let mut lines = vec![line(task), String::new()];
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            lines.push(format!("{name:10} {value}"));
        }
    };
    field("parent", task.parent_id.as_deref().unwrap_or_default());
    field("feature", details.feature.as_deref().unwrap_or_default());
    field("claimed by", task.claimed_by.as_deref().unwrap_or_default());
    field("waits for", &details.blockers.join(", "));
    field("blocks", &details.blocks.join(", "));
    field("parts", &details.children.join(", "));
    field("landing", &landing.map(Shown::line).unwrap_or_default());
    field("retries", &format!("{} of {}", task.retry_count, task.max_retries));
    field("added", &local(&task.created_at));
    field("changed", &local(&task.updated_at));
    if !task.description.is_empty() {
        lines.extend([String::new(), task.description.clone()]);
    }
    if !details.log.is_empty() {
        lines.push(String::new());
        lines.extend(details.log.iter().map(|line| format!("{}  {}", local(&line.timestamp), line.message)));
    }
    lines.join("\n")
}

pub(super) fn list(args: &TaskListArgs) -> anyhow::Result<u8> {
    let selection = Selection {
        feature: args.feature.clone(),
        standalone: args.feature.is_none() && !args.all,
        status: args.status.as_deref().map(status).transpose()?,
        ready: args.ready,
    };
    let store = look(&args.graph)?;
    let mut stream = Stream::new();
    if args.graph.json {
        let mut array = Array::new(&mut stream);
        store.list(&selection, &mut |task| array.item(&json!(task)))?;
        array.end();
    } else {
        store.list(&selection, &mut |task| stream.line_for_people(&line(&task)))?;
    }
    stream.end()
}

fn status(word: &str) -> anyhow::Result<Status> {
    if let Some(status) = Status::ALL.into_iter().find(|status| status.word() == word) {
        return Ok(status);
    }
    let words = Status::ALL.map(Status::word);
    let meant = nearest(word, words).map(|near| format!("; '{near}' is one")).unwrap_or_default();
    bail!("--status {word}: no such state{meant}: give one of {}", words.join(", "))
}

pub(super) fn log(store: &dyn Store, args: &TaskIdArgs) -> anyhow::Result<u8> {
    let logs = store.logs(&args.id)?;
    if args.graph.json {
        return answer(&args.graph, &json!(logs), "");
    }
    print_for_people(|out| {
        logs.iter().try_for_each(|line| writeln!(out, "{}  {}", local(&line.timestamp), line.message))
    })
}

pub(super) fn dependencies(args: &TaskIdArgs) -> anyhow::Result<u8> {
    let store = look(&args.graph)?;
    let Details { blockers, blocks, .. } = store.details(&args.id)?;
    if args.graph.json {
        return answer(&args.graph, &json!({ "blockers": blockers, "blocks": blocks }), "");
    }
    let mut lines = Vec::new();
    for (heading, ids) in [("waits for", blockers), ("blocks", blocks)] {
        for id in ids {
            lines.push(format!("{heading:9}  {}", line(&store.task(&id)?)));
        }
    }
    print_for_people(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))
}
