//! Runs other programs for an answer, with a time limit.

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

/// How long a program may take to answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a program gave no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// It took longer than this.
    InTime(Duration),
    /// Its answer cannot be used, for this reason.
    Because(String),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InTime(limit) => write!(f, "no answer within {}", duration::format(*limit)),
            Self::Because(why) => f.write_str(why),
        }
    }
}

/// Whether a program is part of the project. Then the project's authors chose it, and a check runs no program of the project.
pub(super) fn is_of_project(program: &Path, project: &Project) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // Its other work trees may be anywhere. If git's files cannot be read, git would only wait.
    let trees = project.require_readable_git().ok().and_then(|()| trees::list(project.root()).ok());
    let trees = trees.unwrap_or_default().into_iter().map(|tree| tree.path);
    let roots: Vec<PathBuf> = trees.chain([project.root().to_owned()]).map(|root| real(&root)).collect();
    // A link in the project is part of it, with any target.
    let places: Vec<PathBuf> = [Some(program), program.parent()].into_iter().flatten().map(real).collect();
    places.iter().any(|place| roots.iter().any(|root| place.starts_with(root)))
}

/// The message about a program that is part of the project.
pub(super) fn not_started(program: &Path) -> String {
    format!("{} is part of the project, and not started", program.display())
}

/// The answer of a program outside the project to these arguments, in the agents' folder.
pub(super) fn ask<S: AsRef<OsStr>>(
    program: &Path,
    args: &[S],
    project: &Project,
    options: &DoctorOptions,
) -> Result<Output, Unanswered> {
    let limit = options.timeout.unwrap_or(LIMIT);
    if is_of_project(program, project) {
        return Err(Unanswered::Because(not_started(program)));
    }
    let mut command = Command::new(program);
    command.args(args).current_dir(project.root());
    output_within(&mut command, limit).map_err(|error| {
        if error.kind() == io::ErrorKind::TimedOut {
            Unanswered::InTime(limit)
        } else {
            Unanswered::Because(error.to_string())
        }
    })
}

/// A variable of agents; an empty one counts as unset.
pub(super) fn variable(name: &str, options: &DoctorOptions) -> Option<OsString> {
    let exported = options.env.iter().rev().find(|(set, _)| set == name).map(|(_, value)| value.clone());
    exported.or_else(|| std::env::var_os(name)).filter(|value| !value.is_empty())
}

/// The path of an agent's file: below the home folder (`~/…`) or the project.
pub(super) fn path(place: &str, project: &Project, options: &DoctorOptions) -> Option<PathBuf> {
    match place.strip_prefix("~/") {
        Some(rest) => Some(PathBuf::from(variable("HOME", options)?).join(rest)),
        None => Some(project.root().join(place)),
    }
}

/// A JSON file of an agent; `None` if there is none, or it cannot be read.
pub(super) fn json(place: &str, project: &Project, options: &DoctorOptions) -> Option<serde_json::Value> {
    let text = theirs::read(&path(place, project, options)?, theirs::MAX_TEXT).ok()?;
    serde_json::from_slice(&text).ok()
}
