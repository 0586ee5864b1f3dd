//! Finds the loops that a verb is about.

use crate::cli::TargetArgs;
use crate::job::workspace::locate_records;
use crate::project::Project;
use crate::record::lookup::{self, LookupError, Loop};
use crate::record::state_read::Extent;

/// The loops that the arguments select: the one of that name, else all of this project. With `--ralph-dir`, the one
/// there.
pub(super) fn loops(args: &TargetArgs) -> anyhow::Result<(Project, Vec<Loop>)> {
    listed(args, Extent::Whole)
}

/// The loops of [`loops`], with this extent of the states of all loops of this project.
pub(super) fn listed(args: &TargetArgs, extent: Extent) -> anyhow::Result<(Project, Vec<Loop>)> {
    let here = locate_records(args.ralph_dir.as_ref())?;
    let mut loops = match &args.name {
        Some(name) => vec![lookup::named(&here, name)?],
        None => lookup::of_project(&here, extent),
    };
    if args.ralph_dir.is_some() {
        loops.retain(|found| found.project.run_dir() == here.run_dir());
    }
    Ok((here, loops))
}

/// The project around the current directory.
pub(super) fn place(ralph_dir: Option<&std::path::PathBuf>) -> anyhow::Result<Project> {
    locate_records(ralph_dir)
}

/// Finds the loops for a verb that needs records; without any of that name, the error has the words for workers.
pub(super) fn recorded(args: &TargetArgs) -> anyhow::Result<(Project, Vec<Loop>)> {
    loops(args).map_err(|error| match error.downcast_ref() {
        Some(LookupError::Unknown { name, .. }) => {
            let said = format!("no ralph state found for worker '{name}'");
            error.context(said)
        }
        _ => error,
    })
}

/// A positive number from the command line.
pub(super) fn count(word: &str, flag: &str) -> anyhow::Result<usize> {
    match word.parse() {
        Ok(0) | Err(_) => anyhow::bail!("{flag} {word}: give a whole number from 1"),
        Ok(count) => Ok(count),
    }
}
