//! The registry, the user's list of loops: one small file per loop that points to the ralph dir with its state.
//!
//! A loop works without it, so every error here is a [`RegistryWarning`], which is shown and does not stop anything.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Local};
use serde::{Deserialize, Serialize};

use super::plain_toml;
use crate::files::atomic::{self, Durability};
use crate::files::own;
use crate::parallel;
use crate::project::Project;
use crate::project::file_name::{encoded, fnv1a};
use crate::version::{self, Newer};

/// The version of the entries that this ralph writes.
const VERSION: u32 = 1;
/// The mode of workers: the verb that starts one.
pub(super) const WORKER: &str = "spawn";
/// Larger files are not entries, in bytes.
const LARGEST: u64 = 1 << 20;

/// The entry of a running or ended loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopEntry {
    /// The version of this file's layout: 1.
    version: u32,
    /// The ralph that has written it; empty in files of the first versions.
    #[serde(default)]
    ralph: String,
    /// The loop's name as its user wrote it.
    pub name: String,
    /// `plan`, `build`, `prompt` …
    pub mode: String,
    /// Absolute path of the loop's ralph dir, with its lock and, unless another field says otherwise, its state and
    /// logs.
    pub ralph_dir: PathBuf,
    /// Absolute path of its run-time files.
    pub run_dir: PathBuf,
    /// Absolute path of its state, if that is not in the ralph dir.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<PathBuf>,
    /// Absolute path of the folder of a worker's runs, which are among those of its project. Missing in entries of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<PathBuf>,
    /// Absolute path of the agents' working directory.
    pub project_root: PathBuf,
    /// The id of the newest run.
    pub run_id: String,
    /// The digest of what started the newest run, see [`State::command_digest`](super::state::State::command_digest).
    pub command: String,
    /// The digest of the run before it, whose state stays until the newest run has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The process of the newest run; it may have ended long ago.
    pub pid: u32,
    /// When the newest run started.
    pub started: DateTime<Local>,
}

impl LoopEntry {
    /// An entry for a run that starts now in the calling process, by a command with this digest.
    #[must_use]
    pub fn new(name: &str, mode: &str, places: &Project, run_id: &str, command: String) -> Self {
        Self {
            version: VERSION,
            ralph: version::NUMBER.to_owned(),
            name: name.to_owned(),
            mode: mode.to_owned(),
            ralph_dir: places.ralph_dir().to_owned(),
            run_dir: places.run_dir().to_owned(),
            records: places.is_of_branch().then(|| places.records()),
            runs: places.is_of_worker().then(|| places.runs()),
            project_root: places.root().to_owned(),
            run_id: run_id.to_owned(),
            command,
            before: None,
            pid: std::process::id(),
            started: Local::now(),
        }
    }
}

impl LoopEntry {
    /// The paths of the loop; `here` is any project of the same user.
    #[must_use]
    pub fn places(&self, here: &Project) -> Project {
        let places = here.elsewhere_with(&self.project_root, &self.ralph_dir, self.run_dir.clone());
        match &self.records {
            Some(records) => places.recorded_in(records),
            None if self.mode == WORKER => match &self.runs {
                Some(runs) => places.for_worker().with_runs_in(runs, &self.project_root),
                None => places.for_worker(),
            },
            None => places,
        }
    }
}

/// The registry could not be read or written; loops go on without it.
#[derive(Debug, thiserror::Error)]
#[error("registry of loops, {path}: {reason}: the loop is missing in lists until this is fixed", path = .path.display())]
pub struct RegistryWarning {
    /// The file or folder in question.
    pub path: PathBuf,
    /// The error.
    pub reason: String,
}

impl RegistryWarning {
    fn new(path: &Path, reason: &dyn std::fmt::Display) -> Self {
        Self { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

/// Writes the entry of a loop into the registry folder `dir`, replacing that of its earlier run.
pub fn register(dir: &Path, entry: &LoopEntry) -> Result<(), RegistryWarning> {
    let path = dir.join(file_name(&entry.name, &entry.ralph_dir));
    let content = toml::to_string(entry).map_err(|error| RegistryWarning::new(&path, &error))?;
    own::make_folders(dir).map_err(|error| RegistryWarning::new(dir, &error))?;
    atomic::write_own(&path, content.as_bytes(), Durability::Synced)
        .map(drop)
        .map_err(|error| RegistryWarning::new(&error.path, &error.reason))
}

/// The entry of the loop with this name and ralph dir in the registry folder `dir`; `None` if there is none, or if it
/// cannot be read.
#[must_use]
pub fn find(dir: &Path, name: &str, ralph_dir: &Path) -> Option<LoopEntry> {
    read(&dir.join(file_name(name, ralph_dir))).ok()?
}

/// All entries of the registry folder `dir`, newest start first, and errors of those that cannot be read.
#[must_use]
pub fn list(dir: &Path) -> (Vec<LoopEntry>, Vec<RegistryWarning>) {
    let files = match own::entries(dir) {
        Ok(files) => files,
        Err(error) => return (Vec::new(), vec![RegistryWarning::new(dir, &error)]),
    };
    let paths: Vec<PathBuf> = files.into_iter().filter(|path| is_entry(path)).collect();
    let mut entries = Vec::new();
    let mut warnings = Vec::new();
    for found in parallel::each(&paths, &|path| read(path)) {
        match found {
            Ok(Some(entry)) => entries.push(entry),
            Ok(None) => {}
            Err(warning) => warnings.push(warning),
        }
    }
    entries.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| a.name.cmp(&b.name)));
    (entries, warnings)
}

/// Removes the entry of a loop from the registry folder `dir`, unless a later run has replaced it since `entry` was
/// read. A missing file is no error.
pub fn remove(dir: &Path, entry: &LoopEntry) -> Result<(), RegistryWarning> {
    let path = dir.join(file_name(&entry.name, &entry.ralph_dir));
    if read(&path)?.is_some_and(|there| there.run_id != entry.run_id) {
        return Ok(());
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(RegistryWarning::new(&path, &error)),
        _ => Ok(()),
    }
}

/// `None` if the file was removed between listing and reading.
fn read(path: &Path) -> Result<Option<LoopEntry>, RegistryWarning> {
    let content = match own::read(path, LARGEST) {
        Ok(content) => String::from_utf8_lossy(&content).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RegistryWarning::new(path, &error)),
    };
    let entry = plain_toml::read(&content).map_or_else(|| toml::from_str::<LoopEntry>(&content), Ok);
    let newer = || written_by_newer(&content).map(|newer| RegistryWarning::new(path, &newer));
    match entry {
        Ok(entry) if entry.version <= VERSION => Ok(Some(entry)),
        Ok(entry) => newer().map_or(Ok(Some(entry)), Err),
        Err(error) => Err(newer().unwrap_or_else(|| RegistryWarning::new(path, &error.message()))),
    }
}

/// The message about an entry with this content if a newer ralph has written it; its other fields may be other ones.
fn written_by_newer(content: &str) -> Option<Newer> {
    #[derive(Deserialize)]
    struct Head {
        version: u32,
        #[serde(default)]
        ralph: String,
    }
    let head = plain_toml::read(content).or_else(|| toml::from_str::<Head>(content).ok())?;
    (head.version > VERSION).then(|| version::newer(head.version.into(), VERSION.into(), &head.ralph))
}

/// The first entry of a loop with this ralph dir that a newer ralph has written, in the registry folder `dir`, and which ralph reads it.
pub(super) fn newer(dir: &Path, ralph_dir: &Path) -> Option<String> {
    let suffix = suffix(ralph_dir);
    let files = own::entries(dir).ok()?;
    files.into_iter().filter(|path| path.to_string_lossy().ends_with(&suffix)).find_map(|path| {
        let newer = written_by_newer(&String::from_utf8_lossy(&own::read(&path, LARGEST).ok()?))?;
        Some(format!("{}: {newer}", path.display()))
    })
}

/// Whether the name ends in `@` and eight hexadecimal digits, unlike temporary files and workers' folders.
fn is_entry(path: &Path) -> bool {
    let suffix = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('@'));
    suffix.is_some_and(|(_, hash)| hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The loop's name, percent-encoded, and a hash of its ralph dir: two projects may both have a loop `build`.
fn file_name(name: &str, ralph_dir: &Path) -> String {
    encoded(name) + &suffix(ralph_dir)
}

/// The end of the names of all entries with a ralph dir.
fn suffix(ralph_dir: &Path) -> String {
    format!("@{:08x}", fnv1a(ralph_dir.as_os_str().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Project {
        Project::locate(Path::new("/"), &|_| None, None, None).unwrap()
    }

    fn entry(name: &str, project: &str) -> LoopEntry {
        let root = Path::new("/work").join(project);
        LoopEntry::new(name, "build", &here().elsewhere(&root, &root.join(".ralph")), "r1", String::new())
    }

    fn names(dir: &Path) -> Vec<String> {
        let (entries, warnings) = list(dir);
        assert!(warnings.is_empty(), "{warnings:?}");
        let mut names: Vec<_> = entries.into_iter().map(|entry| entry.name).collect();
        names.sort();
        names
    }

    #[test]
    fn entries_come_back_as_they_went_in() {
        let dir = tempfile::tempdir().unwrap();
        let loops = dir.path().join("ralph/loops");
        assert_eq!(list(&loops).0, []);
        let build = entry("build", "a");
        register(&loops, &build).unwrap();
        assert_eq!(list(&loops).0, [build]);
    }

    #[test]
    fn an_entry_leads_to_the_places_of_its_loop() {
        let tree = here().elsewhere(Path::new("/work/a"), Path::new("/work/a"));
        for places in [tree.clone(), tree.of_branch("x", None)] {
            let found = LoopEntry::new("x", "build", &places, "r1", String::new()).places(&here());
            assert_eq!((found.run_dir(), found.records()), (places.run_dir(), places.records()));
        }
    }

    #[test]
    fn two_projects_may_use_one_name_and_one_loop_keeps_one_entry() {
        let dir = tempfile::tempdir().unwrap();
        register(dir.path(), &entry("build", "a")).unwrap();
        register(dir.path(), &entry("build", "b")).unwrap();
        let newer = LoopEntry { run_id: "r2".into(), ..entry("build", "a") };
        register(dir.path(), &newer).unwrap();
        assert_eq!(names(dir.path()), ["build", "build"]);
        remove(dir.path(), &entry("build", "a")).unwrap();
        assert_eq!(names(dir.path()), ["build", "build"], "it has begun again");
        remove(dir.path(), &newer).unwrap();
        remove(dir.path(), &newer).unwrap();
        assert_eq!(list(dir.path()).0[0].project_root, Path::new("/work/b"));
    }

    #[test]
    fn no_name_escapes_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("loops");
        let odd = [
            "",
            ".",
            "..",
            "../x",
            "/etc/passwd",
            "a b",
            "a@12345678",
            "feature/x",
            "ü",
            "100%",
            ".hidden",
            "a\nb",
        ];
        for name in odd {
            register(&inner, &entry(name, "a")).unwrap();
        }
        let mut sorted = odd.map(str::to_owned);
        sorted.sort();
        assert_eq!(names(&inner), sorted);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn strangers_are_passed_over_and_damage_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        register(dir.path(), &entry("build", "a")).unwrap();
        fs::create_dir(dir.path().join("worker")).unwrap();
        fs::write(dir.path().join("notes.txt"), "").unwrap();
        fs::write(dir.path().join("x@00000000.abc.tmp"), "").unwrap();
        assert_eq!(names(dir.path()), ["build"]);

        fs::write(dir.path().join("bad@00000000"), "nonsense").unwrap();
        let newer = toml::to_string(&entry("new", "a")).unwrap().replace("version = 1", "version = 9");
        fs::write(dir.path().join("new@00000000"), newer).unwrap();
        let (entries, warnings) = list(dir.path());
        assert_eq!((entries.len(), warnings.len()), (1, 2));
        assert!(warnings.iter().all(|warning| !warning.to_string().contains('\n')), "{warnings:?}");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_only_a_warning() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let warning = register(&file, &entry("build", "a")).unwrap_err().to_string();
        assert!(warning.starts_with(&format!("registry of loops, {}", file.display())), "{warning}");
        assert_eq!(list(&file).1.len(), 1);
    }
}
