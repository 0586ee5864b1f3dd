//! `ralph` alone: where the loops of this project stand and what to type next, or how to begin.

use std::fmt::Write as _;

use super::output::print;
use super::worker::snapshot;
use crate::cli::{Cli, layout};
use crate::engine::outcome::Status;
use crate::job::workspace::locate;
use crate::project::Project;
use crate::record::lookup::{self, Loop};
use crate::record::state::State;
use crate::text::line::joined;
use crate::text::terminal::message;
use crate::text::timestamp;
use crate::view::next_step::{next_step, shell_word};

/// So many loops are told of.
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

const EVERY_VERB: &str = "\n'ralph --help' lists every command.";

/// `ralph`.
pub fn overview() -> anyhow::Result<u8> {
    let here = locate(None)?;
    let loops = lookup::of_project(&here);
    let text = match loops.as_slice() {
        [] if is_set_up(&here) => layout::on_terminal(&format!("{NO_LOOP_YET}{EVERY_VERB}")),
        [] if here.in_git() => layout::on_terminal(&format!("{NOT_SET_UP}{EVERY_VERB}")),
        [] => return print(|out| std::io::Write::write_all(out, Cli::short_help().as_bytes())),
        loops => standing(loops),
    };
    print(|out| std::io::Write::write_all(out, format!("{}\n", text.trim_end()).as_bytes()))
}

/// Whether there is anything that people write for ralph.
fn is_set_up(here: &Project) -> bool {
    let files = [here.config(), here.project_settings(), here.implementation_plan(), here.branch_plan()];
    files.iter().chain(&here.prompts()).any(|file| file.exists())
}

/// Loops, the newest first, and the next command.
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
    let next = loops.first().and_then(next);
    let next = next.map(|next| format!("  {next}  What comes next\n")).unwrap_or_default();
    let rest = "  ralph status  All about these loops\n  ralph --help  Every command";
    text + "\n" + &layout::on_terminal(&format!("{next}{rest}"))
}

/// How far a loop has come, and since when.
fn facts(state: &State) -> String {
    let of = state.last_iteration().map(|last| format!("/{last}")).unwrap_or_default();
    let iteration = format!("iteration {}{of}", state.tally.iteration);
    format!("{iteration:<16}  {}", timestamp::local(&state.started_at))
}

/// What to type next about a loop.
pub(super) fn next(found: &Loop) -> Option<String> {
    let state = found.state.as_deref().ok()?;
    let name = shell_word(&found.name);
    if state.is_alive() {
        return Some(match state.status {
            Status::Paused => format!("ralph resume {name}"),
            _ => format!("ralph logs {name} --follow"),
        });
    }
    match state.outcome() {
        Some(outcome) if !state.active => {
            next_step(&state.setup.verb, &found.name, outcome, (&state.tally, state.budget), None)
        }
        _ => Some(format!("ralph resume {name}")),
    }
}
