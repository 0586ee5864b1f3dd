//! Asks other programs, and never waits long for an answer.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use std::{fmt, io};

use super::DoctorOptions;
use crate::files::theirs;
use crate::git::trees;
use crate::process::short::output_within;
use crate::project::Project;
use crate::text::duration;

/// How long a program may think about its answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a program has not answered.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// It took too long.
    InTime,
    /// It has answered nothing that can be used, and why.
    Because(String),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InTime => write!(f, "no answer within {}", duration::format(LIMIT)),
            Self::Because(why) => f.write_str(why),
        }
    }
}

/// Whether a program is part of the project. Then who wrote the project chose it, and looking at a project runs nothing of it.
pub(super) fn is_of_project(program: &Path, project: &Project) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // Its other work trees may lie anywhere. Where git's files cannot be read, git would only wait.
    let trees = project.require_readable_git().ok().and_then(|()| trees::list(project.root()).ok());
    let trees = trees.unwrap_or_default().into_iter().map(|tree| tree.path);
    let roots: Vec<PathBuf> = trees.chain([project.root().to_owned()]).map(|root| real(&root)).collect();
    // A link in the project is part of it, wherever it leads.
    let places: Vec<PathBuf> = [Some(program), program.parent()].into_iter().flatten().map(real).collect();
    places.iter().any(|place| roots.iter().any(|root| place.starts_with(root)))
}

/// What is said of a program that is part of the project.
pub(super) fn not_started(program: &Path) -> String {
    format!("{} is part of the project, and not started", program.display())
}

/// What a program that is no part of the project answers to these arguments where agents work.
pub(super) fn ask<S: AsRef<OsStr>>(
    program: &Path,
    args: &[S],
    project: &Project,
) -> Result<Output, Unanswered> {
    if is_of_project(program, project) {
        return Err(Unanswered::Because(not_started(program)));
    }
    let mut command = Command::new(program);
    command.args(args).current_dir(project.root());
    output_within(&mut command, LIMIT).map_err(|error| {
        if error.kind() == io::ErrorKind::TimedOut {
            Unanswered::InTime
        } else {
            Unanswered::Because(error.to_string())
        }
    })
}

/// A variable as agents see it; an empty one is none.
pub(super) fn variable(name: &str, options: &DoctorOptions) -> Option<OsString> {
    let exported = options.env.iter().rev().find(|(set, _)| set == name).map(|(_, value)| value.clone());
    exported.or_else(|| std::env::var_os(name)).filter(|value| !value.is_empty())
}

/// Where a file of an agent's is: below the home folder (`~/…`) or the project.
pub(super) fn path(place: &str, project: &Project, options: &DoctorOptions) -> Option<PathBuf> {
    match place.strip_prefix("~/") {
        Some(rest) => Some(PathBuf::from(variable("HOME", options)?).join(rest)),
        None => Some(project.root().join(place)),
    }
}

/// A JSON file of an agent's; `None` where there is none, or it cannot be read.
pub(super) fn json(place: &str, project: &Project, options: &DoctorOptions) -> Option<serde_json::Value> {
    let text = theirs::read(&path(place, project, options)?, theirs::MAX_TEXT).ok()?;
    serde_json::from_slice(&text).ok()
}
