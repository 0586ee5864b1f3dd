//! Lays the sources of settings over each other, the weakest first.

use std::path::{Path, PathBuf};

use super::account::Account;
use super::setting::{Setting, ValueKind};
use super::table::TABLE;
use super::{Origin, Resolved, SettingsError, Verb, read, resolved, shell, toml};

/// Where to look for settings. A path that does not exist is no error, except `shell_config` when it was named.
pub struct Sources<'a> {
    /// The verb that runs a loop, with its own defaults; `None` for the defaults of most verbs.
    pub verb: Option<Verb>,
    /// Values of flags by the setting's key, such as `loop.timeout`; the last of a key wins.
    pub flags: Vec<(&'static str, String)>,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The shell-style config.
    pub shell_config: Option<PathBuf>,
    /// Whether the user named the shell config, so that it must exist.
    pub shell_config_explicit: bool,
    /// `ralph.toml` at the project root.
    pub project_toml: Option<PathBuf>,
    /// `.ralph.toml` at the project root, of an older program.
    pub older_toml: Option<PathBuf>,
    /// The user's `ralph.toml`, see [`user_toml`].
    pub user_toml: Option<PathBuf>,
    /// Whether the user trusts the project's own values of settings that need trust.
    pub trusts: &'a dyn Fn(&[OfProject]) -> bool,
}

impl Sources<'static> {
    /// No source at all, in a project that is trusted: the defaults.
    #[must_use]
    pub fn none() -> Self {
        Self {
            verb: None,
            flags: Vec::new(),
            env: &|_| None,
            shell_config: None,
            shell_config_explicit: false,
            project_toml: None,
            older_toml: None,
            user_toml: None,
            trusts: &|_| true,
        }
    }
}

impl Sources<'_> {
    /// The files, existing or not; absolute.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let files = [&self.user_toml, &self.older_toml, &self.project_toml, &self.shell_config];
        files.into_iter().flatten().filter_map(|path| std::path::absolute(path).ok()).collect()
    }
}

/// The project's own value of a setting that needs trust.
#[derive(Debug, Clone)]
pub struct OfProject {
    /// The row of the table.
    pub setting: &'static Setting,
    /// The value.
    pub value: String,
    /// Where it is set.
    pub origin: Origin,
}

/// Path of the user's `ralph.toml`: `${XDG_CONFIG_HOME:-~/.config}/ralph/ralph.toml`. A relative `XDG_CONFIG_HOME`
/// is ignored, as its specification asks. None without a home.
pub fn user_toml(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(config.join("ralph/ralph.toml"))
}

/// The values of all sources.
pub(super) struct Loaded {
    /// The settings, not yet parsed by their types.
    pub(super) rows: Vec<Resolved>,
    /// Logins of agents; of those with the same name the first one counts, which is the user's own.
    pub(super) accounts: Vec<Account>,
    /// All that the shell config assigns.
    pub(super) assignments: Vec<shell::Assignment>,
    /// The file of an older program, if it was read.
    pub(super) older: Option<PathBuf>,
    /// Keys that have no effect yet, with their files.
    pub(super) without_effect: Vec<(PathBuf, &'static str)>,
    /// The project's own values of settings that need trust, in the table's order.
    pub(super) of_project: Vec<OfProject>,
    /// Those of them that would apply if the user trusted the project.
    pub(super) ignored: Vec<OfProject>,
}

/// Reads all sources and merges them. The first problem ends it.
pub(super) fn load(sources: &Sources<'_>) -> Result<Loaded, SettingsError> {
    let mut rows = Rows::defaults(sources.verb);
    let (mut without_effect, mut accounts) = (Vec::new(), Vec::new());
    let mut keep = |mut found: InToml| {
        without_effect.append(&mut found.without_effect);
        accounts.append(&mut found.accounts);
    };
    if let Some(path) = &sources.user_toml {
        keep(rows.toml(path, |path, line| Origin::UserToml { path, line })?);
    }
    let of_user = rows.needing_trust();
    let older = sources.older_toml.clone().filter(|path| path.symlink_metadata().is_ok());
    for path in older.iter().chain(&sources.project_toml) {
        keep(rows.toml(path, |path, line| Origin::ProjectToml { path, line })?);
    }
    let assignments = shell_config(sources)?;
    if let Some(path) = &sources.shell_config {
        rows.shell(path, &assignments);
    }
    let of_project = rows.of_project(&of_user);
    let is_trusted = of_project.is_empty() || (sources.trusts)(&of_project);
    if !is_trusted {
        rows.restore(of_user, &of_project);
    }
    rows.environment(sources.env);
    rows.flags(&sources.flags)?;
    let is_missing = |one: &&OfProject| {
        !matches!(resolved::row(&rows.0, one.setting.key).origin, Origin::Env(_) | Origin::Flag(_))
            && !is_trusted
    };
    let ignored = of_project.iter().filter(is_missing).cloned().collect();
    Ok(Loaded { rows: rows.0, accounts, assignments, older, without_effect, of_project, ignored })
}

/// What a `ralph.toml` has besides values of settings.
struct InToml {
    accounts: Vec<Account>,
    /// Keys without effect, with the file.
    without_effect: Vec<(PathBuf, &'static str)>,
}

/// Reads the shell config, which may be missing unless it was named.
fn shell_config(sources: &Sources<'_>) -> Result<Vec<shell::Assignment>, SettingsError> {
    let Some(path) = &sources.shell_config else { return Ok(Vec::new()) };
    match read::text(path)? {
        Some(text) => shell::parse(&text, sources.env)
            .map_err(|error| SettingsError::Shell { path: path.clone(), error }),
        None if sources.shell_config_explicit => Err(SettingsError::NotFound(path.clone())),
        None => Ok(Vec::new()),
    }
}

/// One value for each row of the table, in its order.
struct Rows(Vec<Resolved>);

impl Rows {
    /// The default.
    fn defaults(verb: Option<Verb>) -> Self {
        let row = |setting: &'static Setting| Resolved {
            setting,
            value: setting.default_of(verb).to_owned(),
            origin: Origin::Default,
        };
        Self(TABLE.iter().map(row).collect())
    }

    /// The current values of settings that need trust.
    fn needing_trust(&self) -> Vec<Resolved> {
        self.0.iter().filter(|row| row.setting.needs_trust).cloned().collect()
    }

    /// The settings that the project itself has set, and that need trust beside what is the user's.
    fn of_project(&self, of_user: &[Resolved]) -> Vec<OfProject> {
        let usual = |row: &Resolved| of_user.iter().find(|user| user.setting.key == row.setting.key);
        let asks =
            |row: &Resolved| usual(row).is_none_or(|user| row.setting.asks_trust(&row.value, &user.value));
        let is_its = |row: &Resolved| {
            matches!(row.origin, Origin::ProjectToml { .. } | Origin::ShellConfig { .. }) && asks(row)
        };
        let rows = self.needing_trust().into_iter().filter(is_its);
        rows.map(|Resolved { setting, value, origin }| OfProject { setting, value, origin }).collect()
    }

    /// Restores earlier values of what the project has set.
    fn restore(&mut self, earlier: Vec<Resolved>, of_project: &[OfProject]) {
        for old in earlier {
            if !of_project.iter().any(|one| one.setting.key == old.setting.key) {
                continue;
            }
            if let Some(row) = self.0.iter_mut().find(|row| row.setting.key == old.setting.key) {
                *row = old;
            }
        }
    }

    /// Applies a `ralph.toml` to the rows and returns what else it has.
    fn toml(
        &mut self,
        path: &Path,
        origin: impl Fn(PathBuf, usize) -> Origin,
    ) -> Result<InToml, SettingsError> {
        let nothing = InToml { accounts: Vec::new(), without_effect: Vec::new() };
        let Some(text) = read::text(path)? else { return Ok(nothing) };
        let document = toml::parse(&text).map_err(|toml::Problem { line, column, message }| {
            SettingsError::Toml { path: path.to_owned(), line, column, problem: message }
        })?;
        for row in &mut self.0 {
            let found = document.values.iter().find(|value| value.setting.key == row.setting.key);
            if let Some(toml::Value { text, line, .. }) = found
                && let Some(value) = row.setting.meant(text)
            {
                value.clone_into(&mut row.value);
                row.origin = origin(path.to_owned(), *line);
            }
        }
        let without_effect = document.without_effect.into_iter().map(|key| (path.to_owned(), key)).collect();
        Ok(InToml { accounts: document.accounts, without_effect })
    }

    fn shell(&mut self, path: &Path, assignments: &[shell::Assignment]) {
        for row in &mut self.0 {
            let assigned = assignments.iter().find(|assignment| assignment.name == row.setting.shell);
            if let Some(assignment) = assigned
                && let Some(value) = decided(row.setting, &assignment.value)
            {
                value.clone_into(&mut row.value);
                row.origin = Origin::ShellConfig { path: path.to_owned(), line: assignment.line };
            }
        }
    }

    fn environment(&mut self, env: &dyn Fn(&str) -> Option<String>) {
        // An agent gets its model in a variable with the name of a setting; for a ralph that it runs, that is no wish.
        let is_told = |name: &str| name == "RALPH_MODEL" && env("RALPH_RUN").is_some();
        for row in &mut self.0 {
            let names = row.setting.env.iter().filter(|name| !is_told(name));
            let found = names
                .filter_map(|name| Some((*name, env(name)?)))
                .find_map(|(name, text)| Some((name, decided(row.setting, &text)?.to_owned())));
            if let Some((name, value)) = found {
                row.value = value;
                row.origin = Origin::Env(name);
            }
        }
    }

    fn flags(&mut self, flags: &[(&'static str, String)]) -> Result<(), SettingsError> {
        for (key, value) in flags {
            let Some(row) = self.0.iter_mut().find(|row| row.setting.key == *key) else {
                let problem = "there is no such setting; `ralph config` lists them".to_owned();
                return Err(SettingsError::Invalid { place: (*key).to_owned(), problem });
            };
            let Some(value) = row.setting.meant(value) else { continue };
            value.clone_into(&mut row.value);
            let flag = TABLE.iter().filter_map(|row| row.flag.as_ref()).find(|flag| flag.several == *key);
            row.origin = Origin::Flag(row.setting.flag.as_ref().or(flag).map_or(key, |flag| flag.long));
        }
        Ok(())
    }
}

/// What a text from the shell config or the environment decides. An empty one decides nothing, except that an empty override
/// asks for the preset's own, and an empty list of words is one.
fn decided<'a>(setting: &Setting, text: &'a str) -> Option<&'a str> {
    let decides =
        matches!(setting.kind, ValueKind::Override | ValueKind::Words | ValueKind::Names) || !text.is_empty();
    setting.meant(text).filter(|_| decides)
}
