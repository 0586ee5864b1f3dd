//! What the verbs have in common: where things are, and which settings hold.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use crate::cli::{ConfigArgs, DoctorArgs, InitArgs, LoopFlags, PlaceArgs};
use crate::project::Project;
use crate::settings::{Settings, Sources, Verb};

use super::{agent_choice, config as config_verb, doctor as doctor_verb, init as init_verb};

/// A project and its settings.
pub(super) struct House {
    pub(super) project: Project,
    pub(super) settings: Settings,
}

/// Finds the project around the current directory.
pub(super) fn locate(ralph_dir: Option<&PathBuf>) -> anyhow::Result<Project> {
    let cwd = std::env::current_dir()
        .map_err(|error| anyhow::anyhow!("the current directory is gone ({error}); change to another one"))?;
    let exe = std::env::current_exe().ok();
    let env = |name: &str| std::env::var_os(name);
    Ok(Project::locate(&cwd, &env, ralph_dir.map(PathBuf::as_path), exe.as_deref())?)
}

/// Finds the project and reads its settings, for a verb that runs no loop.
pub(super) fn open(place: &PlaceArgs) -> anyhow::Result<House> {
    open_for(None, place, &[])
}

/// Finds the project and reads the settings of a loop.
pub(super) fn open_loop(verb: Verb, flags: &LoopFlags) -> anyhow::Result<House> {
    open_for(Some(verb), &flags.place, &flags.settings.given)
}

fn open_for(
    verb: Option<Verb>,
    place: &PlaceArgs,
    flags: &[(&'static str, String)],
) -> anyhow::Result<House> {
    let project = locate(place.ralph_dir.as_ref())?;
    project.require_room()?;
    let sources = Sources {
        verb,
        flags: [&place.agent.given, flags].concat(),
        // What is no text is no good value either; ignored in silence it would be worse.
        env: &|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()),
        shell_config: Some(place.config.clone().unwrap_or_else(|| project.config())),
        shell_config_explicit: place.config.is_some(),
        project_toml: Some(project.project_settings()),
        user_toml: project.user_settings(),
    };
    let settings = Settings::load(&sources)?;
    Ok(House { project, settings })
}

/// `PATH` as an agent will see it: the config may export another one.
pub(super) fn search_path(settings: &Settings) -> OsString {
    match settings.exports.get("PATH") {
        Some(path) => path.into(),
        None => std::env::var_os("PATH").unwrap_or_default(),
    }
}

/// `ralph init`.
pub(super) fn init(args: InitArgs) -> anyhow::Result<u8> {
    let project = locate(args.ralph_dir.as_ref())?;
    let settings = open(&PlaceArgs { ralph_dir: args.ralph_dir, ..PlaceArgs::default() })?.settings;
    let options = init_verb::InitOptions {
        agent: args.agent,
        force: args.force,
        specs_dir: settings.specs_dir.into(),
        search_path: std::env::var_os("PATH").unwrap_or_default(),
    };
    // All is done before any of it is told: a reader that has seen enough does not stop the work half-way.
    let mut told = Vec::new();
    let done = init_verb::run(&project, &options, &mut told);
    super::print(|out| out.write_all(&told))?;
    done.map(|()| 0)
}

/// `ralph config`.
pub(super) fn config(args: &ConfigArgs) -> anyhow::Result<u8> {
    let house = open(&args.place)?;
    super::print(|out| {
        if args.json {
            config_verb::write_json(&house.settings, out)
        } else {
            config_verb::write_table(&house.settings, out)
        }
    })
}

/// `ralph doctor`.
pub(super) fn doctor(args: &DoctorArgs) -> anyhow::Result<u8> {
    let House { project, settings } = open(&args.place)?;
    let choice = agent_choice::Choice::of(&settings, &project);
    let options = doctor_verb::DoctorOptions {
        agent: settings.agent_type.clone(),
        program: choice.as_ref().ok().and_then(agent_choice::Choice::program_name),
        specs_dir: settings.specs_dir.clone().into(),
        search_path: search_path(&settings),
        json: args.json,
    };
    let filters = choice.and_then(|choice| choice.compile(&settings, &project).map(drop));
    let finding = match filters {
        Ok(()) => doctor_verb::Finding::ok("filters", "compile"),
        Err(error) => {
            doctor_verb::Finding::fail("filters", format!("{error:#}"), "mend the setting it names")
        }
    };
    let mut healthy = true;
    super::print(|out| {
        healthy = doctor_verb::run(&project, &options, vec![finding], out).map_err(std::io::Error::other)?;
        Ok(())
    })?;
    Ok(u8::from(!healthy))
}
