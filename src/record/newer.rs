//! Records of a newer ralph: this one starts no loop in their place, and changes nothing of them.

use std::fmt::Display;
use std::iter::once;
use std::path::{Path, PathBuf};

use anyhow::bail;
use serde::Deserialize;

use super::event_lines::Lines;
use super::run_folder::{END, LARGEST, START, event_logs, loop_folders};
use super::state_read::{self, Extent, Found};
use super::{event_line, registry, run_folder};
use crate::files::own;
use crate::project::Project;
use crate::version;

/// What every version of a file of JSON has.
#[derive(Debug, Deserialize)]
struct Head {
    v: u32,
    /// The ralph that has written it.
    #[serde(default)]
    ralph: String,
}

/// Refuses to begin a loop in the place of one of a newer ralph, to resume that one, or to forget it.
///
/// # Errors
/// If one of its records is of a newer ralph.
pub fn refuse(project: &Project) -> anyhow::Result<()> {
    match of_loop(project) {
        Some(newer) => bail!(newer),
        None => Ok(()),
    }
}

/// Which record of the loop here a newer ralph has written, and which ralph reads it: its state, its entries in the registry, and what
/// is in the folder of the newest run.
#[must_use]
pub fn of_loop(project: &Project) -> Option<String> {
    let state = match state_read::read(&project.state(), Extent::Head) {
        Ok(Found::Newer(why)) => Some(told(&project.state(), &why)),
        _ => None,
    };
    let entry = || registry::newer(&project.registry()?, project.ralph_dir());
    let newest = || of_run(project.all_runs().ok()?.first()?);
    state.or_else(entry).or_else(newest)
}

/// Which file in the folder of a run a newer ralph has written, and which ralph reads it.
#[must_use]
pub fn of_run(run: &Path) -> Option<String> {
    let folders = loop_folders(run).unwrap_or_default();
    let mut writer = String::new();
    for folder in once(run.to_owned()).chain(folders.into_iter().filter(|folder| folder != run)) {
        let whole = |name: &str| own::read(&folder.join(name), LARGEST).ok();
        let start = whole(START).and_then(|text| serde_json::from_slice::<Head>(&text).ok());
        if let Some(start) = start {
            writer.clone_from(&start.ralph);
            if start.v > run_folder::VERSION {
                return Some(read_by(&folder.join(START), &start, run_folder::VERSION, &writer));
            }
        }
        let lines =
            once((folder.join(END), whole(END))).chain(event_logs(&folder).into_iter().map(first_line));
        for (path, line) in lines {
            let head = line.and_then(|line| serde_json::from_slice::<Head>(&line).ok());
            if let Some(head) = head.filter(|head| head.v > event_line::VERSION) {
                return Some(read_by(&path, &head, event_line::VERSION, &writer));
            }
        }
    }
    None
}

fn first_line(log: PathBuf) -> (PathBuf, Option<Vec<u8>>) {
    let mut lines = Lines::of(vec![log.clone()]);
    let line = lines.read_next().ok().flatten().map(<[u8]>::to_vec);
    (log, line)
}

/// Lines of events do not name the ralph that has written them: the start of their run does.
fn read_by(path: &Path, head: &Head, known: u32, writer: &str) -> String {
    let ralph = if head.ralph.is_empty() { writer } else { &head.ralph };
    told(path, &version::newer(head.v.into(), known.into(), ralph))
}

fn told(path: &Path, why: &dyn Display) -> String {
    format!("{}: {why}", path.display())
}
