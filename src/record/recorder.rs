//! All records of one loop: opened, written and closed together.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use chrono::{DateTime, Local, Utc};

use super::event_line::line_of;
use super::iterations_log::IterationsLog;
use super::lock::{Holder, Lock, LockError};
use super::newer;
use super::raw_output::RawOutput;
use super::registry::{self, LoopEntry};
use super::requests::{self, Requests, Signer};
use super::run_folder::{self, RunStart};
use super::session::Session;
use super::state::{Setup, State};
use super::state_file::StateFile;
use super::state_read::{self, Extent, Found};
use super::state_seal::SealKey;
use crate::engine::context::Listener;
use crate::engine::event::{LoopIdentity, Stamped, Stream};
use crate::engine::fact::{Asked, Fact, ProofRecord, Word};
use crate::engine::outcome::{End, Outcome};
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, own, temporary};
use crate::platform::identity::ProcessIdentity;
use crate::process::sweep::sweep;
use crate::project::{Project, ProjectError};
use crate::text::timestamp;

/// All records of one loop.
#[derive(Debug)]
pub struct Recorder {
    session: Session,
    raw: RawOutput,
    iterations: IterationsLog,
    state: StateFile,
    requests: Arc<Requests>,
    warnings: Vec<String>,
    project: Project,
    /// Held as long as the records are written.
    lock: Lock,
    /// Another loop has the lock, and the records are now its own.
    is_displaced: bool,
}

impl Recorder {
    /// Takes the lock, ends processes that a dead owner has left behind, and opens every file. `max_iterations` is
    /// how many iterations the loop may begin; `argv` is the command line that resumes it.
    ///
    /// # Errors
    /// If another loop holds the lock, or a file cannot be opened; then no session log is left.
    pub fn open(
        project: &Project,
        identity: &LoopIdentity,
        setup: Setup,
        max_iterations: Option<u64>,
        argv: &[String],
    ) -> anyhow::Result<Self> {
        let process = ProcessIdentity::of_self().context("cannot read our own process information")?;
        newer::refuse(project)?;
        project.create_run_dir()?;
        let holder =
            Holder { run_id: identity.run.clone(), mode: identity.mode.clone(), identity: process.clone() };
        let lock = Lock::acquire(&project.lock(), &holder)?;

        let mut warnings: Vec<String> = sweep_after(&lock).into_iter().collect();
        make_folders(&project.records())?;
        remove_litter(project, &lock);
        warnings.extend(set_unknown_state_aside(&project.state())?);
        requests::clear(&project.requests())?;
        let iterations = IterationsLog::open(&project.iterations_log())?;
        // A branch belongs to the run of its build, which has created it.
        let project = if project.is_of_branch() { project.clone() } else { project.in_run(&identity.run) };
        let start = RunStart::now(&identity.run, &setup.verb, argv, process.clone());
        let start = start.of_loop(identity, &setup, max_iterations);
        if project.is_of_branch() {
            start.write_into(&project.logs(), Durability::Synced)?;
        } else {
            start.write(&project)?;
        }
        let session = Session::open(&project)?;
        let session_log = Some(session.log.path().to_owned());
        let records = Some(project.records());
        let argv = argv.to_vec();
        let state = State { session_log, records, setup, argv, ..State::begun(identity, process) };
        // Until now the last run is the newest one and can still be resumed.
        warnings.extend(register(&project, &state));
        let keys = Signer::of(&project).and_then(|signer| Ok((signer, SealKey::of(&project)?)));
        let (signer, seal_key) = keys.unwrap_or_else(|error| {
            warnings.push(format!(
                "requests to this loop and its state have no signature, so that an agent could write them itself: {error}"
            ));
            (None, None)
        });
        Ok(Self {
            session,
            raw: RawOutput::new(&project.last_agent_output()),
            iterations,
            state: StateFile::new(&project.state(), state).sealed_with(seal_key),
            requests: Arc::new(Requests::new(project.requests(), &identity.run, signer)),
            warnings,
            project,
            lock,
            is_displaced: false,
        })
    }

    /// Warnings from opening the records.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The path of the session log as the user sees it.
    #[must_use]
    pub fn session_log(&self) -> &Path {
        self.session.shown_path()
    }

    /// Sets the time at which the loop began in an earlier process.
    pub fn began(&mut self, started: DateTime<Utc>) {
        self.state.set_started(started);
    }

    /// Adds a warning.
    pub fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Adds the line of a step to the iterations log that an earlier process could not write, unless it is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_step(&mut self, line: &str) -> Result<(), FileError> {
        self.iterations.add_missing(line)
    }

    /// The requests to this loop. A request is settled once the state with it is written.
    #[must_use]
    pub fn requests(&self) -> Arc<Requests> {
        Arc::clone(&self.requests)
    }

    /// Records one fact. The session log comes first, because users read it. All records are written, even if one
    /// fails.
    ///
    /// # Errors
    /// If a record cannot be written.
    pub fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), FileError> {
        // For the crash sweep, which has to detect this wrong order.
        let is_reversed = cfg!(debug_assertions) && std::env::var_os("TESTS_OF_RALPH_STATE_FIRST").is_some();
        let mut taken = self.session.log.take(stamped);
        if !is_reversed {
            taken = taken.and(self.session.events.take(stamped));
        }
        if stamped.outcome().is_some_and(|outcome| outcome != Outcome::Detached) {
            // After a power cut, no record of the end counts what the log has lost.
            taken = taken.and(self.session.events.sync());
            if !self.project.is_of_branch() {
                let end = run_folder::write_end(&self.project, &stamped.identity.run, &line_of(stamped));
                taken = taken.and(end);
            }
        }
        if let Fact::Proof(proof) = stamped.fact {
            taken = taken.and(self.keep_proof(stamped, proof));
        }
        if !self.is_displaced {
            taken = taken.and(self.raw.take(stamped)).and(self.iterations.take(stamped));
            taken = taken.and(self.state.take(stamped, self.session.events.length()));
        }
        if is_reversed {
            taken = taken.and(self.session.events.take(stamped));
        }
        taken?;
        if let Fact::Asked { what: Word::Known(what), .. } = stamped.fact
            && !matches!(what, Asked::Interrupt | Asked::Terminate | Asked::HangUp | Asked::GraceOver)
            && !self.is_displaced
        {
            self.requests.settle();
        }
        Ok(())
    }

    /// Keeps the line of a proof in a file of its own, by which `ralph proof` finds it.
    fn keep_proof(&self, stamped: &Stamped<'_>, proof: &ProofRecord) -> Result<(), FileError> {
        let commit =
            proof.commit.as_deref().map_or("uncommitted", |commit| commit.get(..12).unwrap_or(commit));
        let name = format!("{:04}-{commit}.json", stamped.tally.iteration);
        let path = self.project.proof_records().join(name);
        atomic::write_own(&path, line_of(stamped).as_bytes(), Durability::Atomic).map(drop)
    }

    /// Records bytes of the agent.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn take_raw(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), FileError> {
        let taken = self.session.log.take_raw(stream, bytes);
        if self.is_displaced { taken } else { taken.and(self.raw.take_raw(stream, bytes)) }
    }

    /// Adds text that follows the end of the loop, to the session log only.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn take_afterwards(
        &mut self,
        at: DateTime<Local>,
        identity: &LoopIdentity,
        fact: &Fact<'_>,
    ) -> Result<(), FileError> {
        self.session.log.take(&Stamped::new(at, identity, self.state.tally(), fact))
    }

    /// Checks that the records are in place, restores them, and returns what was lost. Agents clean up (`git clean
    /// -fdx`), users restore backups: then the lock excludes no other loop, the loop is invisible, and records are
    /// written to deleted files.
    ///
    /// # Errors
    /// If that cannot be fixed, or another loop was started here meanwhile.
    pub fn keep(&mut self) -> Result<Option<String>, End> {
        let has_records_elsewhere = self.project.is_of_branch() || self.project.is_of_worker();
        let is_tree_gone = has_records_elsewhere && !self.project.root().is_dir();
        // A missing work tree is reported elsewhere.
        if self.is_displaced || is_tree_gone {
            return Ok(None);
        }
        let kept = keep_lock(&mut self.lock, &self.project);
        self.is_displaced = matches!(kept, Err(Unkept::Lock(LockError::Held { .. })));
        // The lock creates the other loops' folders again, and never the folders above them.
        if self.project.is_of_branch() || self.project.run_dir().is_dir() {
            make_folders(&self.project.records())?;
            make_folders(&self.project.logs())?;
        }
        // A loop that has to end still reports why.
        let mut lost = self.session.keep()?;
        if kept.map_err(|why| End::because(Outcome::RecordFailed, why.to_string()))? {
            lost.push(self.project.lock());
        }
        if self.iterations.keep()? {
            lost.push(self.project.iterations_log());
        }
        if self.state.keep()? {
            lost.push(self.project.state());
        }
        Ok(said_of(&lost, self.project.ralph_dir()))
    }

    /// Releases the lock.
    pub fn close(self) {}
}

impl Listener for &RefCell<Recorder> {
    fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), End> {
        Ok(self.borrow_mut().take(stamped)?)
    }

    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), End> {
        Ok(self.borrow_mut().take_raw(stream, bytes)?)
    }
}

/// Excludes loops from a ralph dir during other work, and cleans up after a dead loop.
///
/// # Errors
/// If the records are of a newer ralph, a loop holds the lock, or it cannot be taken.
pub fn hold(project: &Project, why: &str) -> anyhow::Result<Lock> {
    newer::refuse(project)?;
    let identity = ProcessIdentity::of_self().context("cannot read our own process information")?;
    let holder = Holder { run_id: String::new(), mode: why.to_owned(), identity };
    let path = project.lock();
    // An agent may have removed the folder.
    path.parent().map_or(Ok(()), make_folders)?;
    project.require_no_link()?;
    let lock = Lock::acquire(&path, &holder)?;
    let _ = sweep_after(&lock);
    remove_litter(project, &lock);
    Ok(lock)
}

/// The removed or replaced files, in one line.
fn said_of(lost: &[PathBuf], ralph_dir: &Path) -> Option<String> {
    let name = |path: &PathBuf| path.strip_prefix(ralph_dir).unwrap_or(path).display().to_string();
    let names: Vec<String> = lost.iter().map(name).collect();
    let names = names.join(", ");
    let folder = ralph_dir.display();
    (!lost.is_empty())
        .then(|| format!("removed or replaced while the loop runs, and made again in {folder}: {names}"))
}

/// Why a lock is not held any more.
#[derive(Debug, thiserror::Error)]
pub enum Unkept {
    /// Its folder cannot be created again.
    #[error(transparent)]
    Folder(#[from] ProjectError),
    /// It cannot be taken again.
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// Takes a lock again if its file was removed or replaced; returns whether it was.
///
/// # Errors
/// If that fails, for example because another loop was faster.
pub fn keep_lock(lock: &mut Lock, project: &Project) -> Result<bool, Unkept> {
    if !lock.is_lost() {
        return Ok(false);
    }
    project.restore_run_dir()?;
    lock.take_again()?;
    let _ = sweep_after(lock);
    Ok(true)
}

/// Ends the processes that the dead owner of a lock has left behind, and reports it.
fn sweep_after(lock: &Lock) -> Option<String> {
    let previous = lock.previous()?;
    let ended = sweep(&previous.run_id);
    (ended > 0).then(|| {
        let Holder { mode, identity, .. } = previous;
        format!("ended {ended} processes of a {mode} loop that was killed (pid {})", identity.pid)
    })
}

/// Removes temporary files of killed processes. Each process searches shared folders once: `ralph clean --all` locks
/// thousands of loops.
fn remove_litter(project: &Project, lock: &Lock) {
    static SHARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    for folder in own_litter(project, lock.previous()) {
        temporary::sweep(&folder);
    }
    for folder in shared_litter(project) {
        let mut known = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if known.insert(folder.clone()) {
            temporary::sweep(&folder);
        }
    }
}

/// The folders in which killed processes may have left temporary files, except the repository's, which the git module
/// knows.
#[must_use]
pub fn litter(project: &Project) -> Vec<PathBuf> {
    let mut folders = own_litter(project, None);
    folders.extend(shared_litter(project));
    folders.sort();
    folders.dedup();
    folders
}

/// The folders of the user's files for ralph, of feature drafts, of the project's clean checkouts, and of the user's list of loops.
fn shared_litter(project: &Project) -> Vec<PathBuf> {
    let documents = project.graph_dir();
    let features = own::entries(&documents.join("features")).unwrap_or_default();
    let mut folders = vec![project.ralph_dir().to_owned(), documents.join("knowledge"), documents];
    folders.extend(features);
    folders.push(project.proofs());
    folders.extend(project.registry());
    folders.extend(project.trust());
    folders.extend(project.user_key().and_then(|key| Some(key.parent()?.to_owned())));
    folders
}

/// The folders of the loop, and of its project's runs.
fn own_litter(project: &Project, previous: Option<&Holder>) -> Vec<PathBuf> {
    let mut folders = vec![project.run_dir().to_owned(), project.records(), project.root().to_owned()];
    // A worker writes to its project through a folder that is not its own.
    folders.extend(temporary::folder_for(project.root()));
    folders.extend(project.branches().into_iter().map(|(_, branch)| branch.records()));
    // The lock does not name the run of a build of branches; it is the newest run, or the last one before that.
    let newest = project.all_runs().unwrap_or_default().into_iter().take(2);
    for run in newest.chain(previous.map(|previous| project.run(&previous.run_id))) {
        // Including branches that have no logs yet.
        let of_branches = own::entries(&run).unwrap_or_default();
        folders.extend(of_branches.into_iter().filter(|path| !path.is_symlink() && path.is_dir()));
        folders.push(run);
    }
    folders.sort();
    folders.dedup();
    folders
}

/// Moves a state file that cannot be read out of the way; it is never overwritten.
fn set_unknown_state_aside(path: &Path) -> Result<Option<String>, FileError> {
    let failed = |reason| FileError { path: path.to_owned(), reason };
    let (Found::Damaged(why) | Found::Unknown(why)) =
        state_read::read(path, Extent::Whole).map_err(failed)?
    else {
        return Ok(None);
    };
    let now = Local::now();
    let stamp = format!("{}{:03}", timestamp::for_names(now), now.timestamp_subsec_millis());
    let aside = path.with_added_extension(stamp);
    std::fs::rename(path, &aside).map_err(failed)?;
    Ok(Some(format!("{} is set aside as {}: {why}", path.display(), aside.display())))
}

fn register(project: &Project, state: &State) -> Option<String> {
    let folder = project.registry()?;
    let mut entry = LoopEntry::new(&state.name, &state.mode, project, &state.run, state.command_digest());
    entry.before = registry::find(&folder, &state.name, project.ralph_dir()).map(|entry| entry.command);
    registry::register(&folder, &entry).err().map(|warning| warning.to_string())
}

fn make_folders(folder: &Path) -> Result<(), FileError> {
    own::make_folders(folder).map_err(FileError::at(folder))
}
