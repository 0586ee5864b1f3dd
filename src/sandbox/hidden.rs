//! What a program behind walls cannot read.

use std::path::{Path, PathBuf};

use super::{Grounds, NoWalls, path_in, places, resolved, ssh, where_it_is};
use crate::git;
use crate::presets;
use crate::process::launch::Launch;
use crate::process::walls::Plan;

impl Grounds<'_> {
    /// Adds it.
    ///
    /// # Errors
    /// If the work is in it.
    pub(super) fn hide(&self, home: Option<&Path>, env: &Launch, plan: &mut Plan) -> Result<(), NoWalls> {
        let mut hidden: Vec<PathBuf> = places::SOCKETS.iter().map(PathBuf::from).collect();
        hidden.extend(home.into_iter().flat_map(|home| self.of_home(home, env)));
        // One that is above the work keeps neither a secret nor a socket.
        let is_beside = |path: &PathBuf| !plan.writable.iter().any(|needed| needed.starts_with(path));
        hidden.extend(logins(env).chain(sockets(env)).filter(is_beside));
        hidden.extend(self.env_files());
        hidden.extend(self.settings.hide.iter().map(|place| self.resolved(place, home)));
        for place in hidden {
            // Where it leads. What is not there may be when an attempt begins.
            let meant = resolved(&place);
            let is_needed = |needed: &PathBuf| needed.starts_with(&meant);
            if plan.writable.iter().any(is_needed) {
                return Err(NoWalls(format!("{} is to be hidden, and the work is in it", meant.display())));
            }
            plan.hidden.push(meant);
        }
        Ok(())
    }

    /// Secrets in the home directory, logins of other agents, and what ssh's configuration names.
    fn of_home(&self, home: &Path, env: &Launch) -> Vec<PathBuf> {
        let real = std::env::var_os("HOME").map(PathBuf::from);
        let homes = [Some(home.to_owned()), real].into_iter().flatten();
        let secrets =
            |home: PathBuf| places::SECRETS.iter().flat_map(move |place| where_it_is(&home, place, env));
        let own = self.preset.state;
        let of_agents =
            presets::all().flat_map(|preset| preset.state.folders.iter().chain(preset.state.beside));
        let is_own = |place: &&&str| own.folders.contains(place) || own.beside.contains(place);
        let of_others = of_agents.filter(|place| !is_own(place));
        let named = presets::all().filter_map(|preset| preset.state.variable);
        let is_given =
            |folder: &&PathBuf| own.variable.and_then(|name| path_in(env, name)).as_ref() != Some(folder);
        homes
            .flat_map(secrets)
            .chain([self.project.user_key(), self.project.outboxes()].into_iter().flatten())
            .chain(ssh::named_in_config(home))
            .chain(of_others.flat_map(|place| where_it_is(home, place, env)))
            .chain(self.logins.iter().filter(is_given).cloned())
            .chain(named.filter(|name| own.variable != Some(name)).filter_map(|name| path_in(env, name)))
            .collect()
    }

    /// Files of variables in each work tree. What is in git is known to every clone, and would seem to be changed.
    fn env_files(&self) -> Vec<PathBuf> {
        let root = self.project.root();
        let is_secret = |file: &&String| !git::is_tracked(root, "HEAD", file);
        let files: Vec<&String> = self.redact.env_files.iter().filter(is_secret).collect();
        let trees =
            if self.project.in_git() { git::trees::list(root).unwrap_or_default() } else { Vec::new() };
        let trees = [root.to_owned()].into_iter().chain(trees.into_iter().map(|tree| tree.path));
        trees.flat_map(|tree| files.iter().map(move |file| tree.join(file)).collect::<Vec<_>>()).collect()
    }
}

/// What variables name as keepers of secrets: files and folders (`/dev/null` keeps none), also those that are not there yet.
fn logins(env: &Launch) -> impl Iterator<Item = PathBuf> {
    let values = places::OF_SECRETS.iter().filter_map(|name| env.variable(name));
    let paths = values.flat_map(|value| std::env::split_paths(&value).collect::<Vec<_>>());
    paths.filter(|path| path.is_absolute() && (path.is_dir() || path.is_file() || !path.exists()))
}

/// What variables name as sockets, or folders of them.
fn sockets(env: &Launch) -> impl Iterator<Item = PathBuf> {
    let values = places::OF_SOCKETS.iter().filter_map(|name| env.variable(name)?.into_string().ok());
    let paths = values.map(|value| {
        // An address, or a path with something behind it.
        let path =
            value.split_once("://").or_else(|| value.split_once("path=")).map_or(&*value, |(_, path)| path);
        PathBuf::from(path.split([',', ':', ';']).next().unwrap_or_default())
    });
    paths.filter(|path| path.is_absolute())
}
