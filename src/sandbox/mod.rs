//! The sandbox: which walls stand around the agents of a loop, their tools and the validation command. `process/walls` builds them.

mod hidden;
mod hosts;
mod places;
mod repository;
mod ssh;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::platform::calls::kernel_setting;
use crate::presets::Preset;
use crate::process::capture::{Ended, capture};
use crate::process::launch::Launch;
use crate::process::walls::{Enclosure, Layer, Plan, Reach, depth};
use crate::project::Project;
use crate::settings::sandbox::{Mode, Network};
use crate::settings::{RedactSettings, SandboxSettings};
use crate::text::line;
use crate::text::secret::{is_listed, secrets};

/// How long a trial of the walls may take.
const TRIAL: Duration = Duration::from_secs(10);
/// How long a trial of other words may take, which may start a container.
const LONG_TRIAL: Duration = Duration::from_mins(1);
/// How a reason begins for which no namespace can be entered.
const NAMESPACES: &str = "user namespaces";
/// What does not hold without them.
const ALONE: &str = "Landlock and seccomp stand alone, so that git's hooks and config, ralph's files and .env files in the project can \
    be changed, modes and times of all your files too, folders of temporary files are shared, sockets (docker, D-Bus, ssh-agent) and \
    your terminals are there, and names of hidden files can be seen; sandbox.tripwire looks after some of that";
/// What a trial says that is shown, in bytes.
const SAID: usize = 4 << 10;

/// What the walls of a loop depend on.
pub(crate) struct Grounds<'a> {
    /// The settings of the sandbox.
    pub(crate) settings: &'a SandboxSettings,
    /// Which variables and files are secret.
    pub(crate) redact: &'a RedactSettings,
    /// Where the agents work.
    pub(crate) project: &'a Project,
    /// The agent.
    pub(crate) preset: &'a Preset,
    /// Variables that it is given besides ours.
    pub(crate) given: &'a [(OsString, OsString)],
    /// The folders of logins that it may have to keep out of, its own among them.
    pub(crate) logins: &'a [PathBuf],
}

/// Why there are no walls.
#[derive(Debug, thiserror::Error)]
#[error(
    "the walls of the sandbox cannot be built here: {0}; --sandbox off works without them, and 'ralph doctor' says what is missing"
)]
pub(crate) struct NoWalls(pub(crate) String);

/// What stands around the programs of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Walls {
    /// Ours.
    Ours(Box<Enclosure>),
    /// What these words make, of which nothing else is known.
    Theirs(Vec<OsString>),
}

impl Walls {
    /// A launch behind them.
    pub(crate) fn around(self, launch: Launch) -> Launch {
        match self {
            Self::Ours(enclosure) => Launch { enclosure: Some(Arc::new(*enclosure)), ..launch },
            Self::Theirs(wrapper) => Launch { wrapper, ..launch },
        }
    }
}

impl Grounds<'_> {
    /// The walls for the programs of a loop, which have been tried, and what does not hold here; `None` where the settings want none.
    ///
    /// # Errors
    /// If they cannot be built.
    pub(crate) fn wanted(&self) -> Result<Option<(Walls, Option<String>)>, NoWalls> {
        if self.settings.mode == Mode::Off {
            return Ok(None);
        }
        self.tried().map(Some)
    }

    /// The walls that would be built, which have been tried, and what does not hold here.
    ///
    /// # Errors
    /// If they cannot be built.
    pub(crate) fn tried(&self) -> Result<(Walls, Option<String>), NoWalls> {
        let launch = Launch { cwd: self.project.root().to_owned(), ..Launch::default() };
        let walls = self.walls()?;
        let Walls::Ours(enclosure) = walls else {
            try_theirs(&walls.clone().around(launch))?;
            return Ok((walls, None));
        };
        match try_out(&enclosure, &launch) {
            Ok(partly) => Ok((Walls::Ours(enclosure), partly)),
            Err(NoWalls(why)) if why.starts_with(NAMESPACES) => {
                let advice = closed_by().map(|closed| format!(" ({closed})")).unwrap_or_default();
                self.alone(&enclosure, &launch, &(why + &advice))
            }
            Err(why) => Err(why),
        }
    }

    /// The walls without namespaces, as these cannot be entered for this reason, and what does not hold then.
    fn alone(
        &self,
        enclosure: &Enclosure,
        launch: &Launch,
        why: &str,
    ) -> Result<(Walls, Option<String>), NoWalls> {
        if self.settings.network != Network::All {
            let network = self.settings.network.word();
            return Err(NoWalls(format!("{why}; sandbox.network = \"{network}\" needs them")));
        }
        let alone = enclosure.with(enclosure.plan.clone().alone(), enclosure.place.clone());
        let missing = try_out(&alone, launch).map_err(|NoWalls(other)| NoWalls(format!("{why}; {other}")))?;
        let missing = missing.map(|missing| format!("; {missing}")).unwrap_or_default();
        Ok((Walls::Ours(Box::new(alone)), Some(format!("{why}: {ALONE}{missing}"))))
    }

    /// The walls that would be built.
    ///
    /// # Errors
    /// If they cannot be planned.
    pub(crate) fn walls(&self) -> Result<Walls, NoWalls> {
        let wrapper = &self.settings.wrapper;
        if !wrapper.is_empty() {
            return Ok(Walls::Theirs(wrapper.iter().map(Into::into).collect()));
        }
        let place = self.project.run_dir().join(FOLDERS);
        let env = self.env();
        Ok(Walls::Ours(Box::new(Enclosure::new(self.plan(&env)?, place, &|name| env.variable(name)))))
    }

    /// A launch with the variables of the agent.
    fn env(&self) -> Launch {
        Launch { env: self.given.to_vec(), ..Launch::default() }
    }

    /// What holds for each of them.
    fn plan(&self, env: &Launch) -> Result<Plan, NoWalls> {
        let home = path_in(env, "HOME").and_then(|home| home.canonicalize().ok());
        if let Some(home) = home.as_ref().filter(|home| home.starts_with(self.project.root())) {
            return Err(NoWalls(format!("the home directory {} is in the project", home.display())));
        }
        let reach = match self.settings.network {
            Network::All => Reach::All,
            Network::None => Reach::None,
            Network::Allow => Reach::Hosts(hosts::of(self, env).map_err(NoWalls)?),
        };
        let mut plan = Plan { reach, ..Plan::default() };
        self.work(&mut plan)?;
        if let Some(home) = &home {
            self.home(home, env, &mut plan);
        }
        self.temporary(env, &mut plan);
        self.hide(home.as_deref(), env, &mut plan)?;
        for place in &self.settings.write {
            let path = self.resolved(place, home.as_deref());
            if !path.exists() {
                return Err(NoWalls(format!(
                    "sandbox.write: {} does not exist: make it first",
                    path.display()
                )));
            }
            plan.writable.push(path);
        }
        for place in &self.settings.show {
            let shown = self.resolved(place, home.as_deref());
            if let Some(above) =
                plan.hidden.iter().find(|hidden| shown.starts_with(hidden) && **hidden != shown)
            {
                let (shown, above) = (shown.display(), above.display());
                return Err(NoWalls(format!(
                    "sandbox.show: {shown} is hidden as a part of {above}: name that"
                )));
            }
            plan.hidden.retain(|hidden| *hidden != shown);
            plan.kept.push(shown);
        }
        pin(&mut plan);
        plan.unset = self.secret_variables();
        plan.unset.extend(
            places::OF_SOCKETS.iter().filter(|name| !self.passes(name)).map(|name| (*name).to_owned()),
        );
        plan.set = variables(env, self.preset);
        plan.kept.extend(plan.writable.clone());
        for list in [&mut plan.writable, &mut plan.read_only, &mut plan.hidden, &mut plan.kept] {
            list.sort();
            list.dedup();
        }
        Ok(plan)
    }

    /// The work tree, its part of git, and ralph's own files.
    fn work(&self, plan: &mut Plan) -> Result<(), NoWalls> {
        let project = self.project;
        let root = project.root().canonicalize().map_err(|error| NoWalls(error.to_string()))?;
        plan.writable.push(root.clone());
        if project.in_git() {
            repository::add(&root, plan).map_err(NoWalls)?;
        }
        plan.read_only.extend([
            project.worktrees(),
            project.project_settings(),
            resolved(&project.project_settings()),
        ]);
        if project.ralph_dir().is_symlink() {
            return Err(NoWalls(repository::is_a_link(project.ralph_dir())));
        }
        // Others would read it as the user's.
        plan.absent.extend([project.project_settings(), project.config()]);
        // It has what was in hidden files.
        plan.hidden.push(project.tripwire());
        plan.kept.extend([project.run_dir().to_owned(), project.ralph_dir().to_owned(), root.clone()]);
        let ralph_dir = project.ralph_dir();
        let ours = [project.config(), ralph_dir.join("prompts"), project.run_dir().to_owned()];
        if ralph_dir == project.run_dir() && ralph_dir != root {
            let plans = project.implementation_plan();
            let copied =
                plans.file_name().map(|name| name.to_string_lossy().into_owned()).into_iter().collect();
            plan.made.push(ralph_dir.to_owned());
            plan.layers.push(Layer { path: ralph_dir.to_owned(), copied });
        } else {
            plan.read_only.extend(ours);
        }
        plan.made.extend(["features", "knowledge"].map(|name| ralph_dir.join(name)));
        Ok(())
    }

    /// The agent's own state, and caches.
    fn home(&self, home: &Path, env: &Launch, plan: &mut Plan) {
        let state = self.preset.state;
        let copied = state.beside.iter().map(|name| (*name).to_owned()).collect();
        plan.layers.push(Layer { path: home.to_owned(), copied });
        let folders = state.folders.iter().flat_map(|place| where_it_is(home, place, env));
        // What it makes when it is started first would be lost, or refused.
        plan.made.extend(folders.clone());
        plan.writable.extend(folders.filter_map(|place| place.canonicalize().ok()));
        for place in places::CACHES.iter().map(|place| home.join(place)) {
            let is_file = place.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
            if !is_file && place.parent().is_some_and(|above| above != home && above.is_dir()) {
                plan.made.push(place.clone());
            }
            plan.writable.extend(place.canonicalize());
        }
        let state = state.variable.and_then(|name| path_in(env, name));
        plan.writable.extend(state.and_then(|place| place.canonicalize().ok()));
        plan.kept.push(home.to_owned());
    }

    /// Folders of temporary files, and what has to be there all the same: programs, and what is below the work.
    fn temporary(&self, env: &Launch, plan: &mut Plan) {
        let named = places::TEMPORARY.iter().map(PathBuf::from).chain(path_in(env, "TMPDIR"));
        for place in named.filter_map(|place| place.canonicalize().ok()) {
            let is_above =
                [Some(self.project.root().to_owned()), path_in(env, "HOME")].contains(&Some(place.clone()));
            if !plan.fresh.contains(&place) && !is_above {
                plan.fresh.push(place);
            }
        }
        // One below another one is not needed.
        let all = plan.fresh.clone();
        plan.fresh.retain(|place| !all.iter().any(|other| other != place && place.starts_with(other)));
        let path = env.variable("PATH").unwrap_or_default();
        plan.kept.extend(std::env::split_paths(&path).filter_map(|folder| folder.canonicalize().ok()));
        let own = std::env::current_exe().ok();
        plan.kept.extend(own.and_then(|exe| exe.parent().map(Path::to_owned)));
        // By this path agents call it.
        plan.kept.extend(self.project.programs());
    }

    /// A path of the settings: from the home, or from the project root.
    fn resolved(&self, place: &str, home: Option<&Path>) -> PathBuf {
        let path = match (place.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.project.root().join(place),
        };
        resolved(&path)
    }

    /// The variables whose values are secret, but for the agent's own.
    fn secret_variables(&self) -> Vec<String> {
        let ours = std::env::vars_os().chain(self.given.iter().cloned());
        let all: BTreeMap<String, String> = ours
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let is_secret = |(name, value): &(String, String)| {
            !self.passes(name) && !secrets(name, value, is_listed(name, &self.redact.names)).is_empty()
        };
        all.into_iter().filter(is_secret).map(|(name, _)| name).collect()
    }

    /// Whether a variable is passed on whatever it is.
    fn passes(&self, name: &str) -> bool {
        self.preset.keys.contains(&name) || is_listed(name, &self.settings.env)
    }
}

/// Variables for a program behind walls: git signs nothing, as the keys are out of reach, and clears nothing up, as it cannot beside
/// linked work trees. What an agent wants to know before it works as root.
fn variables(env: &Launch, preset: &Preset) -> Vec<(String, String)> {
    const OF_GIT: [(&str, &str); 4] = [
        ("commit.gpgSign", "false"),
        ("tag.gpgSign", "false"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
    ];
    // Others may have set some in this way.
    let before = env
        .variable("GIT_CONFIG_COUNT")
        .and_then(|count| count.into_string().ok()?.parse().ok())
        .unwrap_or(0);
    let each = OF_GIT.into_iter().zip(before..).flat_map(|((key, value), at): (_, usize)| {
        [
            (format!("GIT_CONFIG_KEY_{at}"), key.to_owned()),
            (format!("GIT_CONFIG_VALUE_{at}"), value.to_owned()),
        ]
    });
    let count = ("GIT_CONFIG_COUNT".to_owned(), (before + OF_GIT.len()).to_string());
    let as_root =
        preset.asides.root.as_ref().map(|root| (root.unless.0.to_owned(), root.unless.1.to_owned()));
    each.chain([count]).chain(as_root).collect()
}

/// Makes each folder above what cannot be read, or written, a mount where it could be given another name otherwise.
fn pin(plan: &mut Plan) {
    let (writable, read_only) = (plan.writable.clone(), plan.read_only.clone());
    let is_open =
        |path: &&Path| depth(&writable, path).is_some_and(|open| depth(&read_only, path) < Some(open));
    let closed = plan.hidden.iter().chain(&read_only);
    let above = closed.flat_map(|path| path.ancestors().skip(1).filter(is_open).map(Path::to_owned));
    plan.writable.extend(above.collect::<Vec<_>>());
}

/// A place of the home directory, and where a variable puts it.
fn where_it_is(home: &Path, place: &str, env: &Launch) -> Vec<PathBuf> {
    let moved = places::XDG.iter().filter_map(|(name, folder)| {
        Some(path_in(env, name)?.join(Path::new(place).strip_prefix(folder).ok()?))
    });
    moved.chain([home.join(place)]).collect()
}

/// A path without links, as far as it is there.
fn resolved(path: &Path) -> PathBuf {
    let whole = |there: &Path| Some(there.canonicalize().ok()?.join(path.strip_prefix(there).ok()?));
    let found = path.ancestors().find_map(whole);
    // With nothing behind it, a path would end in a slash.
    found.map_or_else(|| path.to_owned(), |found| found.components().collect())
}

/// Where the folders of programs behind walls are made, in the run dir.
const FOLDERS: &str = "sandbox";

/// An absolute path in a variable of a program.
fn path_in(env: &Launch, name: &str) -> Option<PathBuf> {
    env.variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// What a trial runs: root has no rights of other users behind walls.
const TRIED: &str =
    "test -w . || { echo 'walls: the work tree cannot be written by this user' >&2; exit 1; }";

/// Settings of the kernel that close user namespaces to users, each with the value for that, and what opens them.
const CLOSING: [(&str, &str, &str); 3] = [
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "0, or give ralph a profile of AppArmor with 'userns,'",
    ),
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", "10000"),
];

/// Which of them does so here, and the way out.
fn closed_by() -> Option<String> {
    CLOSING.iter().find_map(|(name, closed, open)| {
        let value = kernel_setting(name)?;
        let shown = name.replace('/', ".");
        (value.trim() == *closed)
            .then(|| format!("{shown} is {closed}: an administrator can set it to {open}"))
    })
}

/// Starts a program by the words of `sandbox.wrapper` that does nothing.
fn try_theirs(launch: &Launch) -> Result<(), NoWalls> {
    let named = launch.wrapper.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let failed = |why: String| NoWalls(format!("sandbox.wrapper: a trial of '{named}' has failed: {why}"));
    let captured = capture(&launch.shell("exit 0"), Vec::new(), LONG_TRIAL, SAID, &false.into());
    let captured = captured.map_err(|error| failed(error.to_string()))?;
    match (captured.end, line::first(&captured.stderr.text())) {
        (Ended::Exited(0), _) => Ok(()),
        (_, Some(said)) => Err(failed(said.to_owned())),
        (end, None) => Err(failed(format!("{end:?}"))),
    }
}

/// Starts a program behind the walls that does nothing; returns what does not hold here.
///
/// # Errors
/// If they cannot be built.
pub(crate) fn try_out(enclosure: &Enclosure, launch: &Launch) -> Result<Option<String>, NoWalls> {
    let place = tempfile::tempdir().map_err(|error| NoWalls(error.to_string()))?;
    let mut trial = enclosure.with(enclosure.plan.clone(), place.path().to_owned());
    // It leaves nothing behind.
    trial.plan.made.clear();
    trial.plan.is_trial = true;
    trial.plan.layers.retain(|layer| layer.path.is_dir());
    let launch = Launch { enclosure: Some(trial.into()), ..launch.shell(TRIED) };
    let captured = capture(&launch, Vec::new(), TRIAL, SAID, &false.into());
    let captured = captured.map_err(|error| NoWalls(error.to_string()))?;
    let said = captured.stderr.text();
    if captured.end == Ended::Exited(0) {
        return Ok(Some(said.trim().to_owned()).filter(|said| !said.is_empty()));
    }
    let why = said.trim().rsplit_once("walls: ").map_or(said.trim(), |(_, why)| why);
    Err(NoWalls(if why.is_empty() { "a trial of them has failed".to_owned() } else { why.to_owned() }))
}
