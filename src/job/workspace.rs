//! Finds the project and its settings.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::secrets;
use crate::cli::{LoopFlags, PlaceArgs};
use crate::files::theirs;
use crate::git;
use crate::graph::postgres::PASSWORDS;
use crate::presets::preset;
use crate::process;
use crate::project::{Project, ProjectError};
use crate::prompt::substitute;
use crate::record::trust;
use crate::settings::forge::ForgeChoice;
use crate::settings::setting::Setting;
use crate::settings::table::TABLE;
use crate::settings::{NearMiss, Resolved, Settings, Sources, Verb};
use crate::text::nearest::slip;
use crate::text::redact::Redactor;

/// A project and its settings.
pub(crate) struct Workspace {
    /// The project: where things are.
    pub(crate) project: Project,
    /// The settings of the project.
    pub(crate) settings: Settings,
}

/// A verb that runs a loop: which one, where, and with which flags.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The project and its settings.
    pub(crate) workspace: &'a Workspace,
    /// The verb.
    pub(crate) verb: Verb,
    /// Its flags.
    pub(crate) flags: &'a LoopFlags,
}

impl Call<'_> {
    /// The loop's mode, as prompts and records call it.
    pub(crate) fn mode(self) -> &'static str {
        self.verb.words().rsplit(' ').next().unwrap_or_default()
    }
}

/// Finds the project around the current directory.
pub(crate) fn locate(ralph_dir: Option<&PathBuf>) -> anyhow::Result<Project> {
    let cwd = std::env::current_dir()
        .map_err(|error| anyhow::anyhow!("the current directory is gone ({error}); change to another one"))?;
    let exe = std::env::current_exe().ok();
    let env = |name: &str| std::env::var_os(name);
    Ok(Project::locate(&cwd, &env, ralph_dir.map(PathBuf::as_path), exe.as_deref())?)
}

/// Finds the project around the current directory for a verb that reads records.
pub(crate) fn locate_records(ralph_dir: Option<&PathBuf>) -> anyhow::Result<Project> {
    let project = locate(ralph_dir)?;
    project.require_readable()?;
    if ralph_dir.is_some() && !project.ralph_dir().exists() {
        return Err(ProjectError::NoRalphDir { path: project.ralph_dir().to_owned() }.into());
    }
    Ok(project)
}

/// Finds the project and reads its settings, for a verb that runs no loop.
pub(crate) fn open(place: &PlaceArgs) -> anyhow::Result<Workspace> {
    open_for(None, place, &[])
}

/// Finds the project and reads the settings of a loop.
pub(crate) fn open_loop(verb: Verb, flags: &LoopFlags) -> anyhow::Result<Workspace> {
    let mut given = flags.settings.given.clone();
    for (key, _) in &given {
        let flag = TABLE.iter().find(|setting| setting.key == *key).and_then(|setting| setting.flag.as_ref());
        if let Some(flag) = flag.filter(|flag| flag.without.contains(&verb)) {
            let (long, verb_words) = (flag.long, verb.words());
            if Verb::PLANNING.contains(&verb) {
                anyhow::bail!("{long} is about code, and 'ralph {verb_words}' writes none: leave it out");
            }
            anyhow::bail!(
                "{long} is not for 'ralph {verb_words}', which looks at its work in its own way: leave it out"
            );
        }
    }
    for raised in &flags.resume_with {
        let Some((key, value)) = setting_of(raised) else {
            anyhow::bail!("--resume-with {raised} is no flag of a setting with a value");
        };
        given.retain(|(other, _)| *other != key);
        given.push((key, value.to_owned()));
    }
    open_for(Some(verb), &flags.place, &given)
}

/// The setting and the value of `FLAG=VALUE`.
fn setting_of(raised: &str) -> Option<(&'static str, &str)> {
    let (flag, value) = raised.split_once('=')?;
    let is_meant = |setting: &&Setting| setting.flag.as_ref().is_some_and(|known| known.long == flag);
    Some((TABLE.iter().find(is_meant)?.key, value))
}

/// Reads the settings with the secrets that a loop of the project would know.
pub(crate) fn open_with_secrets(place: &PlaceArgs) -> anyhow::Result<Workspace> {
    let mut workspace = open(place)?;
    workspace.find_secrets();
    Ok(workspace)
}

/// The redactor for what a verb without a loop keeps in a project: that of a loop there, or one without settings if these cannot
/// be read.
pub(crate) fn secrets_in(place: &PlaceArgs) -> anyhow::Result<Redactor> {
    if let Ok(workspace) = open_with_secrets(place) {
        return Ok(workspace.settings.secrets);
    }
    let project = locate(place.ralph_dir.as_ref())?;
    Ok(secrets::redactor(&Settings::load(&Sources::none())?, &BTreeMap::new(), &project).0)
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
        if project.in_git() {
            git::require_version(git::OLDEST)?;
        }
    }
    let settings = load(&project, verb, place, flags)?;
    let own = verb.and_then(Verb::phase).map(|phase| settings.in_phase(phase)).transpose()?.flatten();
    let mut settings = own.unwrap_or(settings);
    warn_of_near_misses(&mut settings, &project);
    let warning = warning_of_model(&settings);
    settings.warnings.extend(warning);
    let mut workspace = Workspace { project, settings };
    if verb.is_some() {
        workspace.find_secrets();
        if workspace.settings.store.is_some() {
            // Those are for the graph, whatever this loop does.
            process::withhold(&PASSWORDS);
        }
    }
    Ok(workspace)
}

/// The forge that the settings of a project choose for its remote; that of its host where they cannot be read.
pub(crate) fn forge(project: &Project) -> ForgeChoice {
    let settings = load(project, None, &PlaceArgs::default(), &[]);
    settings.map_or(ForgeChoice::default(), |settings| settings.git.forge)
}

/// Reads the settings of a project.
fn load(
    project: &Project,
    verb: Option<Verb>,
    place: &PlaceArgs,
    flags: &[(&'static str, String)],
) -> anyhow::Result<Settings> {
    Ok(Settings::load(&Sources {
        verb,
        flags: [&place.agent.given, flags].concat(),
        // A value that is not text is refused rather than ignored.
        env: &|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()),
        shell_config: Some(place.config.clone().unwrap_or_else(|| project.config())),
        shell_config_explicit: place.config.is_some(),
        project_toml: Some(project.project_settings()),
        older_toml: Some(project.older_settings()),
        user_toml: project.user_settings(),
        trusts: &|settings| {
            let entries: Vec<_> = settings.iter().map(|one| (one.setting.key, &*one.value)).collect();
            trust::is_trusted(project, &entries)
        },
    })?)
}

impl Workspace {
    /// The call of this verb, for which the workspace was opened.
    pub(crate) fn called<'a>(&'a self, verb: Verb, flags: &'a LoopFlags) -> Call<'a> {
        Call { workspace: self, verb, flags }
    }

    fn find_secrets(&mut self) {
        let (secrets, warnings) = secrets::redactor(&self.settings, &BTreeMap::new(), &self.project);
        self.settings.secrets = secrets;
        self.settings.warnings.extend(warnings);
    }

    /// The further variables of an agent may be secrets as well.
    pub(crate) fn knows_secrets_of(&mut self, given: &BTreeMap<String, String>) {
        // A file that cannot be read was reported the first time.
        self.settings.secrets = secrets::redactor(&self.settings, given, &self.project).0;
    }
}

/// A warning about a model that is nearly one of those that are known of the agent. It may have others.
fn warning_of_model(settings: &Settings) -> Option<String> {
    let model = settings.agent_model.as_deref()?;
    let known = preset(&settings.agent_type)?.ladder;
    let meant = slip(model, known.iter().copied()).filter(|_| !known.contains(&model))?;
    let place = settings.row("agent.model").map(Resolved::place)?;
    Some(format!("{place}: '{model}' may be no model of {}: did you mean '{meant}'?", settings.agent_type))
}

/// Adds a warning for each unused name in the shell config that is probably meant to be a setting's.
fn warn_of_near_misses(settings: &mut Settings, project: &Project) {
    let Some(first) = settings.near_misses.first() else { return };
    let prompts = project.prompts().into_iter().chain([first.path.clone()]);
    let used: HashSet<String> = prompts.flat_map(|file| names_used_in(&file)).collect();
    let unused = settings.near_misses.iter().filter(|near_miss| !used.contains(&near_miss.name));
    let warnings = unused.map(|near_miss| {
        NearMiss { path: project.relative(&near_miss.path), ..near_miss.clone() }.to_string()
    });
    settings.warnings.extend(warnings);
}

/// The variables that a file refers to; none if it cannot be read, which its reader reports.
fn names_used_in(file: &Path) -> Vec<String> {
    let names = RefCell::new(Vec::new());
    if let Ok(text) = theirs::read(file, theirs::MAX_TEXT) {
        substitute(&String::from_utf8_lossy(&text), &|name| {
            names.borrow_mut().push(name.to_owned());
            None
        });
    }
    names.into_inner()
}

/// The agent's `PATH`: the config may export another one.
pub(crate) fn search_path(settings: &Settings) -> OsString {
    match settings.exports.get("PATH") {
        Some(path) => path.into(),
        None => std::env::var_os("PATH").unwrap_or_default(),
    }
}
