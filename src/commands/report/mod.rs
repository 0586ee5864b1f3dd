//! `ralph report` and `ralph history`: the results of runs, from their records.

mod browser;
mod gather;
mod history;
mod page;
pub(super) mod pick;

use std::io::Write as _;
use std::path::Path;

pub(super) use gather::{ended, gathered, measured, merges_of, tasks as tasks_of_branch};
pub(super) use history::history;

use super::fleet;
use super::output::{print, say, width};
use crate::cli::{ReportArgs, TargetArgs};
use crate::job::workspace::locate_records;
use crate::project::Project;
use crate::view::report::{markdown::markdown, text};

/// `ralph report`.
pub(super) fn report(args: &ReportArgs) -> anyhow::Result<u8> {
    let target = TargetArgs { name: args.target.clone(), ralph_dir: args.ralph_dir.clone() };
    if let Some(place) = fleet::logs(args.store.as_deref(), &target)? {
        say(&format!("{place}: 'ralph report' there"));
        return Ok(0);
    }
    let here = locate_records(args.ralph_dir.as_ref())?;
    let picked = pick::run(&here, args.target.as_deref())?;
    let mut report = gathered(&picked.project, &picked.folder, args.json || args.html.is_some())?;
    if let Some(name) = &picked.name {
        report.loops.retain(|one| one.name == *name);
    }
    if let Some(id) = &picked.task {
        report.loops.iter_mut().for_each(|one| one.task_list.retain(|task| task.id == *id));
        report.loops.retain(|one| !one.task_list.is_empty());
    }
    if let Some(file) = &args.html {
        return page::write(&report, picked.project.root(), file, args.open);
    }
    print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            return writeln!(out);
        }
        if args.md {
            return write!(out, "{}", markdown(&report));
        }
        write!(out, "{}{}", text::head(&report), text::body(&report, width()))
    })
}

/// The results of tasks at the end of a run of many jobs, as text; `None` if its records cannot be read.
pub(super) fn tasks_of_jobs(project: &Project, folder: &Path, width: Option<usize>) -> Option<String> {
    gathered(project, folder, false).ok().map(|report| text::tasks(&report, width))
}

/// The results of tasks at the end of a run, for a person at a terminal.
pub(super) fn tasks(project: &Project, folder: &Path) -> anyhow::Result<()> {
    let Some(width) = width() else { return Ok(()) };
    // The records are written; 'ralph report' can show them later.
    let Ok(report) = gathered(project, folder, false) else { return Ok(()) };
    print(|out| write!(out, "{}", text::tasks(&report, Some(width)))).map(drop)
}
