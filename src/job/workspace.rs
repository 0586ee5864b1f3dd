//! Where things are, and which settings hold.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use rustix::fs::{Access, access};

use crate::cli::{LoopFlags, PlaceArgs};
use crate::project::Project;
use crate::settings::{Settings, Sources, Verb};

/// A project and its settings.
pub(crate) struct Workspace {
    /// Where things are.
    pub(crate) project: Project,
    /// Which settings hold.
    pub(crate) settings: Settings,
}

/// Finds the project around the current directory.
pub(crate) fn locate(ralph_dir: Option<&PathBuf>) -> anyhow::Result<Project> {
    let cwd = std::env::current_dir()
        .map_err(|error| anyhow::anyhow!("the current directory is gone ({error}); change to another one"))?;
    let exe = std::env::current_exe().ok();
    let env = |name: &str| std::env::var_os(name);
    Ok(Project::locate(&cwd, &env, ralph_dir.map(PathBuf::as_path), exe.as_deref())?)
}

/// Finds the project and reads its settings, for a verb that runs no loop.
pub(crate) fn open(place: &PlaceArgs) -> anyhow::Result<Workspace> {
    open_for(None, place, &[])
}

/// Finds the project and reads the settings of a loop.
pub(crate) fn open_loop(verb: Verb, flags: &LoopFlags) -> anyhow::Result<Workspace> {
    open_for(Some(verb), &flags.place, &flags.settings.given)
}

fn open_for(
    verb: Option<Verb>,
    place: &PlaceArgs,
    flags: &[(&'static str, String)],
) -> anyhow::Result<Workspace> {
    let project = locate(place.ralph_dir.as_ref())?;
    project.require_room()?;
    if verb.is_some() {
        project.require_readable_git()?;
    }
    let sources = Sources {
        verb,
        flags: [&place.agent.given, flags].concat(),
        // What is no text is no good value either; ignored in silence it would be worse.
        env: &|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()),
        shell_config: Some(place.config.clone().unwrap_or_else(|| project.config())),
        shell_config_explicit: place.config.is_some(),
        project_toml: Some(project.project_settings()),
        older_toml: Some(project.older_settings()),
        user_toml: project.user_settings(),
    };
    let settings = Settings::load(&sources)?;
    Ok(Workspace { project, settings })
}

/// `PATH` as an agent will see it: the config may export another one.
pub(crate) fn search_path(settings: &Settings) -> OsString {
    match settings.exports.get("PATH") {
        Some(path) => path.into(),
        None => std::env::var_os("PATH").unwrap_or_default(),
    }
}

/// The program of this name on a search path.
#[must_use]
pub(crate) fn find_program(name: &str, search_path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(search_path)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}
