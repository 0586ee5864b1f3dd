//! `ralph` alone: the loops of this project and what to type next, or how to begin.

use std::fmt::Write as _;
use std::io::Write as _;

use super::output::{print, width};
use super::report::ended;
use super::status::sight;
use super::worker::snapshot;
use crate::cli::{Cli, layout};
use crate::job::workspace::locate;
use crate::project::Project;
use crate::record::lookup::{self, Loop};
use crate::record::report::LoopReport;
use crate::record::state::State;
use crate::record::state_read::Extent;
use crate::text::line::joined;
use crate::text::terminal::message;
use crate::text::timestamp;
use crate::view::report::text;
use crate::view::status_table;

/// How many loops are shown.
const SHOWN: usize = 10;

const NOT_SET_UP: &str = "\
ralph runs a coding agent in a loop: fresh context every iteration, memory in files and git, until the work is proven done.

This project is not set up yet. To begin:
  ralph init    Set it up
  ralph demo    Watch a whole loop first: no agent, no key, no network needed
";

const NO_LOOP_YET: &str = "\
This project is set up, and no loop has run here yet. To begin:
  ralph plan    Turn the specs into an implementation plan
  ralph build   Work on that plan
  ralph doctor  Check that everything a loop needs is there
";

const BRANCHES_PLANNED: &str = "\
This project has a plan of branches, and no loop has run here yet. To begin:
  ralph loop build  Build the branches of the plan, side by side
  ralph doctor      Check that everything a loop needs is there
";

const EVERY_VERB: &str = "\n'ralph --help' lists every command.";

/// `ralph`.
pub fn overview() -> anyhow::Result<u8> {
    let here = locate(None)?;
    let loops = lookup::of_project(&here, Extent::Whole);
    let ended = ended(&here, &loops)?;
    if loops.iter().any(|found| found.alive().is_some()) || !ended.is_empty() {
        return told(&morning(&here, &loops, &ended));
    }
    match loops.as_slice() {
        [] if here.branch_plan().is_file() => {
            told(&layout::on_terminal(&format!("{BRANCHES_PLANNED}{EVERY_VERB}")))
        }
        [] if is_set_up(&here) => told(&layout::on_terminal(&format!("{NO_LOOP_YET}{EVERY_VERB}"))),
        [] if here.in_git() => told(&layout::on_terminal(&format!("{NOT_SET_UP}{EVERY_VERB}"))),
        [] => print(|out| out.write_all(Cli::short_help().as_bytes())),
        loops => told(&standing(loops)),
    }
}

fn told(text: &str) -> anyhow::Result<u8> {
    print(|out| writeln!(out, "{}", text.trim_end()))
}

/// What runs, what has ended in its groups, and how to look at more.
fn morning(here: &Project, loops: &[Loop], ended: &[LoopReport]) -> String {
    let alive = loops.iter().filter(|found| found.alive().is_some());
    let mut rows: Vec<_> = alive.map(|found| (snapshot(found), sight(here, found))).collect();
    rows.sort_by(|(one, _), (other, _)| one.place().cmp(&other.place()));
    let mut parts = Vec::new();
    let mut verbs = vec!["  ralph report  Why, what was proven, and how each ended"];
    if !rows.is_empty() {
        parts.push(status_table::table(&rows, loops, width()));
        verbs.insert(0, "  ralph watch   What runs, live");
    }
    if !ended.is_empty() {
        let next = ended.iter().find_map(|one| one.next.as_deref());
        parts.push(text::groups(ended, SHOWN, width()) + &text::next(next));
        verbs.push("  ralph status  All loops of this project");
    }
    parts.push(layout::on_terminal(&verbs.join("\n")));
    parts.join("\n")
}

/// Whether the project has any file that users write for ralph.
fn is_set_up(here: &Project) -> bool {
    let files = [here.config(), here.project_settings(), here.implementation_plan(), here.branch_plan()];
    files.iter().chain(&here.prompts()).any(|file| file.exists())
}

/// Loops of which nothing but their state is known, the newest first.
fn standing(loops: &[Loop]) -> String {
    let names: Vec<String> =
        loops.iter().take(SHOWN).map(|found| message(&joined(&found.name, " "))).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (found, name) in loops.iter().zip(&names) {
        let word = snapshot(found).word();
        let facts = found.state.as_deref().map(facts).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", format!("{name:width$}  {word:<15}  {facts}").trim_end());
    }
    if let Some(more) = loops.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(text, "and {more} more");
    }
    text + "\n" + &layout::on_terminal("  ralph status  All about these loops\n  ralph --help  Every command")
}

/// The progress of a loop, and its start.
fn facts(state: &State) -> String {
    let iteration = format!("iteration {}", state.progress());
    format!("{iteration:<16}  {}", timestamp::local(&state.started_at))
}
