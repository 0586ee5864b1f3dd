//! The programs outside of the project that the validation command runs: whether they are those of the loop's start.
//!
//! What lies in the project is protected itself, and none of it is looked at here.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::listing::Stamp;
use super::measure::text_at;
use super::named::run_by;
use crate::engine::fact::{ProofFile, ProofProgram};
use crate::files::{clock, theirs};
use crate::git;
use crate::process::launch::SHELL;
use crate::process::programs::{find_program, interpreters};
use crate::side_command::ValidationCommand;
use crate::text::digest::sha256_of;

/// The most programs that are looked at.
const MOST: usize = 64;

/// The programs of a command, and how they are looked up. Clones share what is known of them.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    command: String,
    /// `None` if nothing is known of the place where it runs.
    search_path: Option<OsString>,
    began: SystemTime,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// The words of the command and its scripts that may be programs.
    names: BTreeSet<String>,
    /// What they were when the loop began; `None` until that is known.
    then: Option<Found>,
    /// What they are at the current claim.
    now: Found,
}

/// Programs by their names. Names that lead to none are left out.
type Found = BTreeMap<String, Program>;

#[derive(Debug, Clone)]
struct Program {
    path: PathBuf,
    /// Empty if it cannot be read.
    digest: String,
    /// Those that it is run by, if it is a script.
    interpreters: Vec<String>,
    /// What shows that the rest is still true.
    stamp: Option<Stamp>,
}

impl Programs {
    /// Those of a command, whose text is this.
    pub(super) fn of(text: &str, command: &ValidationCommand) -> Self {
        Self {
            command: text.to_owned(),
            search_path: command.search_path(),
            began: clock::of_files(),
            known: Arc::default(),
        }
    }

    /// Notes what they are, unless that is known, where the command and its scripts are those of `base`. What was written since
    /// the loop began is an agent's, and counts as not there.
    pub(super) fn take(&self, root: &Path, base: &str) {
        if self.known().then.is_some() || self.search_path.is_none() {
            return;
        }
        let names = self.names(root, base);
        let mut then = self.find(root, &names, &Found::new());
        then.retain(|_, program| self.is_older(program));
        *self.known() = Known { names, then: Some(then), now: Found::new() };
    }

    /// Takes for those of the loop's start what a record says of them. Only where one was another then are they compared with it.
    pub(super) fn recall(&self, root: &Path, base: &str, recorded: &[ProofProgram]) {
        if self.search_path.is_none() {
            return;
        }
        let names = self.names(root, base);
        let mut then = self.find(root, &names, &Found::new());
        for ProofProgram { before, name, .. } in recorded {
            match before {
                None => {}
                Some(before) if before.path.is_empty() => drop(then.remove(name)),
                Some(ProofFile { digest, path }) => {
                    let (path, digest) = (path.into(), digest.clone());
                    let program = Program { path, digest, interpreters: Vec::new(), stamp: None };
                    then.insert(name.clone(), program);
                }
            }
        }
        *self.known() = Known { names, then: Some(then), now: Found::new() };
    }

    /// What they are now; `None` if it is not known what they were when the loop began.
    pub(super) fn now(&self, root: &Path) -> Option<Vec<ProofProgram>> {
        let mut known = self.known();
        let then = known.then.clone()?;
        known.now = self.find(root, &known.names, &then);
        let compared = known.now.iter().map(|(name, program)| {
            let before = then.get(name);
            let is_same = before.is_some_and(|before| program.is_same(before));
            let before = (!is_same).then(|| before.map(Program::file).unwrap_or_default());
            let ProofFile { digest, path } = program.file();
            ProofProgram { before, digest, name: name.clone(), path }
        });
        Some(compared.collect())
    }

    /// The current claim is proven: what they are now counts from now on.
    pub(super) fn accept(&self) {
        let known = &mut *self.known();
        if let Some(then) = &mut known.then {
            then.append(&mut known.now);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self, root: &Path, base: &str) -> BTreeSet<String> {
        let mut names = run_by(&self.command, |path| text_at(root, base, path)).programs;
        names.insert(SHELL.to_owned());
        names
    }

    /// Finds these and their interpreters. `known` is what need not be read again if nothing has written there.
    fn find(&self, root: &Path, names: &BTreeSet<String>, known: &Found) -> Found {
        let path = self.search_path.as_deref().unwrap_or_default();
        let folders =
            std::env::split_paths(path).filter(|folder| folder.is_absolute() && !folder.starts_with(root));
        let path = std::env::join_paths(folders).unwrap_or_default();
        let (mut found, mut seen) = (Found::new(), BTreeSet::new());
        let mut waiting: Vec<String> = names.iter().rev().cloned().collect();
        while let Some(name) = waiting.pop() {
            if found.len() == MOST || !seen.insert(name.clone()) {
                continue;
            }
            let absolute =
                || Some(PathBuf::from(&name)).filter(|path| !path.starts_with(root) && path.is_file());
            let at = if name.starts_with('/') { absolute() } else { find_program(&name, &path) };
            let Some(program) = at.and_then(|path| Program::at(path, known.get(&name))) else { continue };
            waiting.extend(program.interpreters.iter().cloned());
            found.insert(name, program);
        }
        found
    }

    fn is_older(&self, program: &Program) -> bool {
        let content = fs::canonicalize(&program.path).ok();
        [Some(&program.path), content.as_ref()]
            .into_iter()
            .flatten()
            .all(|path| git::touched(path).is_some_and(|touched| touched < self.began))
    }
}

impl Program {
    fn at(path: PathBuf, known: Option<&Self>) -> Option<Self> {
        let stamp = Some(Stamp::of(&fs::metadata(&path).ok()?));
        if let Some(known) = known.filter(|known| known.path == path && known.stamp == stamp) {
            return Some(known.clone());
        }
        let digest = theirs::open(&path).and_then(sha256_of).unwrap_or_default();
        Some(Self { digest, interpreters: interpreters(&path), path, stamp })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.path == other.path && self.digest == other.digest
    }

    fn file(&self) -> ProofFile {
        ProofFile { digest: self.digest.clone(), path: self.path.display().to_string() }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use super::*;

    /// Programs of the command `run x`, found in the folders `first` and `second`.
    struct Machine {
        dir: tempfile::TempDir,
        programs: Programs,
    }

    impl Machine {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for folder in ["first", "second", "root/bin"] {
                fs::create_dir_all(dir.path().join(folder)).unwrap();
            }
            let folders = ["root/bin", "first", "second"].map(|folder| dir.path().join(folder));
            let programs = Programs {
                command: "run x".to_owned(),
                search_path: Some(std::env::join_paths(folders).unwrap()),
                began: clock::of_files() + Duration::from_mins(1),
                known: Arc::default(),
            };
            Self { dir, programs }
        }

        fn add(&self, path: &str, text: &str) {
            let path = self.dir.path().join(path);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn take(&self) {
            self.programs.take(&self.dir.path().join("root"), "HEAD");
        }

        /// What differs now: the names, and the folders of the paths before.
        fn differs(&self) -> Vec<(String, String)> {
            let now = self.programs.now(&self.dir.path().join("root")).unwrap();
            let other = now.into_iter().filter_map(|program| Some((program.name, program.before?.path)));
            let folder = |path: String| path.split('/').rev().nth(1).unwrap_or_default().to_owned();
            other.map(|(name, before)| (name, folder(before))).collect()
        }
    }

    #[test]
    fn a_program_that_was_replaced_or_is_found_earlier_is_another() {
        let machine = Machine::new();
        machine.add("second/run", "#!/bin/sh\n");
        machine.add("root/bin/run", "of the project");
        machine.take();
        assert_eq!(machine.differs(), []);
        machine.add("first/run", "#!/bin/sh\n");
        assert_eq!(machine.differs(), [("run".to_owned(), "second".to_owned())]);
        fs::remove_file(machine.dir.path().join("first/run")).unwrap();
        assert_eq!(machine.differs(), []);
        machine.add("second/run", "#!/bin/sh\nexit\n");
        assert_eq!(machine.differs(), [("run".to_owned(), "second".to_owned())]);
        machine.programs.accept();
        assert_eq!(machine.differs(), []);
    }

    #[test]
    fn interpreters_of_programs_count_and_what_came_since_was_not_there() {
        let machine = Machine::new();
        machine.add("second/run", "#!/usr/bin/env engine\n");
        machine.add("second/engine", "1");
        machine.take();
        machine.add("first/engine", "2");
        assert_eq!(machine.differs(), [("engine".to_owned(), "second".to_owned())]);

        let mut machine = Machine::new();
        machine.add("second/run", "1");
        machine.programs.began = SystemTime::UNIX_EPOCH;
        machine.take();
        assert!(machine.differs().contains(&("run".to_owned(), String::new())));
    }
}
