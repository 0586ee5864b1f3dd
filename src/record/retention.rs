//! Which runs are kept: the newest ones, up to a number and a size. The session logs of older ones are compressed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::run_folder::{self, RunStart};
use crate::files::own;
use crate::project::Project;
use crate::threads;

/// The session logs of so many runs stay as they are: those are what people open.
const PLAIN: usize = 10;
/// One that nobody has ended, and whose process cannot be looked at, is left alone for so long.
const UNCLEAR: Duration = Duration::from_hours(24);
/// What the name of a compressed log ends with.
const COMPRESSED: &str = "gz";

/// What is kept of the runs of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// At most so many; `None`: no limit.
    pub runs: Option<u64>,
    /// At most so many bytes; `None`: no limit.
    pub bytes: Option<u64>,
}

/// Housekeeping beside a run: until this is dropped, which waits for what has to be done.
#[derive(Debug)]
#[must_use = "it is cut short when it is dropped"]
pub struct Housekeeping {
    thread: Option<JoinHandle<()>>,
    /// The run is over: no more logs are compressed.
    is_over: Arc<AtomicBool>,
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Removes what is not kept and compresses the logs of older runs, beside the run that has just begun and is not looked at. What
/// cannot be removed now, and logs that are not compressed when the run ends, wait for the start of another one.
pub fn tidy(project: &Project, current: &str, kept: Kept) -> Housekeeping {
    let (project, current) = (project.clone(), current.to_owned());
    let is_over = Arc::new(AtomicBool::new(false));
    let run_is_over = Arc::clone(&is_over);
    let thread = threads::start(move || {
        let Ok(runs) = project.all_runs() else { return };
        let mut runs: Vec<PathBuf> = runs.into_iter().filter(|run| !run.ends_with(&current)).collect();
        let links = project.links_to_logs();
        // What is removed need not be compressed.
        remove(&runs, Kept { bytes: None, ..kept });
        runs.retain(|run| run.exists());
        for run in runs.iter().skip(PLAIN).filter(|run| is_ended(run)) {
            for folder in [run.clone()].into_iter().chain(own::entries(run).unwrap_or_default()) {
                if run_is_over.load(Ordering::Relaxed) {
                    break;
                }
                compress_logs(&folder, &links);
            }
        }
        // What is compressed takes less room.
        remove(&runs, kept);
        remove_dangling(&links);
    });
    Housekeeping { thread: thread.ok(), is_over }
}

/// Removes the runs that are too many or too much, the oldest first, but never the newest. `runs`: newest first, without the one
/// that has just begun.
fn remove(runs: &[PathBuf], kept: Kept) {
    let most = kept.runs.map_or(usize::MAX, |runs| usize::try_from(runs).unwrap_or(usize::MAX));
    let mut room = kept.bytes.unwrap_or(u64::MAX);
    // The run that has just begun is one of them.
    for (place, run) in (1..).zip(runs) {
        let size = size(run);
        let fits = place < most && size <= room;
        // What does not fit makes no room for older ones.
        room = if fits { room - size } else { 0 };
        if !fits && place > 1 && is_ended(run) {
            // What cannot be removed now is tried again the next time.
            let _ = fs::remove_dir_all(run);
        }
    }
}

/// The bytes of all files of a run.
fn size(run: &Path) -> u64 {
    let entries = own::entries(run).unwrap_or_default();
    let sizes = entries.into_iter().filter_map(|path| {
        let found = path.symlink_metadata().ok()?;
        Some(if found.is_dir() { size(&path) } else { found.size() })
    });
    sizes.sum()
}

/// Whether nobody writes into the folder of a run any more.
fn is_ended(run: &Path) -> bool {
    if run_folder::read_end(run).is_some() {
        return true;
    }
    if RunStart::read(run).is_some_and(|start| start.process.is_alive()) {
        return false;
    }
    // A process of another machine or container cannot be looked at.
    let newest = newest(run);
    newest.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > UNCLEAR)
}

/// When something in the folder was last written.
fn newest(run: &Path) -> Option<SystemTime> {
    let entries = own::entries(run).ok()?;
    let changed = |path: &Path| path.symlink_metadata().and_then(|found| found.modified()).ok();
    let within =
        entries.iter().filter(|path| !path.is_symlink() && path.is_dir()).filter_map(|path| newest(path));
    entries.iter().filter_map(|path| changed(path)).chain(within).chain(changed(run)).max()
}

/// Removes links to logs that are gone.
fn remove_dangling(links: &Path) {
    for link in own::entries(links).unwrap_or_default() {
        let is_ours = fs::read_link(&link).is_ok_and(|target| target.starts_with("../runs"));
        if is_ours && !link.exists() {
            let _ = fs::remove_file(&link);
        }
    }
}

/// Compresses the session logs in a folder, and has the links lead to them.
fn compress_logs(folder: &Path, links: &Path) {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log") && !path.is_symlink();
    for log in own::entries(folder).unwrap_or_default().into_iter().filter(is_log) {
        if let Ok(compressed) = compress(&log) {
            let _ = move_link(links, &log, &compressed);
        }
    }
}

/// Whether this is the name of a session log, compressed or not.
#[must_use]
pub fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "log" || end == COMPRESSED)
}

/// Where a log is once it was compressed.
pub(super) fn compressed(log: &Path) -> PathBuf {
    log.with_added_extension(COMPRESSED)
}

/// Puts a compressed file in the place of a log.
fn compress(log: &Path) -> io::Result<PathBuf> {
    let compressed = compressed(log);
    let written = own::create_filled(&compressed, |path| {
        let mut encoder = GzEncoder::new(File::create(path)?, Compression::default());
        io::copy(&mut own::open_to_read(log)?, &mut encoder)?;
        encoder.finish().map(drop)
    });
    match written {
        // Whoever was cut off had written all of it.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs::remove_file(log)?;
    Ok(compressed)
}

fn move_link(links: &Path, log: &Path, compressed: &Path) -> io::Result<()> {
    let (Some(name), Some(new_name)) = (log.file_name(), compressed.file_name()) else { return Ok(()) };
    let link = links.join(name);
    let target = fs::read_link(&link)?.with_file_name(new_name);
    symlink(target, links.join(new_name))?;
    fs::remove_file(link)
}

/// Opens a session log to be read, also one that was compressed since: then it is unpacked into a nameless file.
///
/// # Errors
/// When it cannot be read, or is not what was written.
pub fn open_log(log: &Path) -> io::Result<File> {
    if log.extension().is_none_or(|end| end != COMPRESSED) {
        return own::open_to_read(log);
    }
    let mut file = tempfile::tempfile()?;
    io::copy(&mut MultiGzDecoder::new(own::open_to_read(log)?), &mut file)?;
    io::Seek::rewind(&mut file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that has ended, with logs of this size.
    fn run(folder: &Path, name: &str, size: usize) -> PathBuf {
        let run = folder.join(name);
        fs::create_dir_all(run.join("branch")).unwrap();
        fs::write(run.join("end.json"), "{}").unwrap();
        fs::write(run.join("branch/session.log"), "x".repeat(size)).unwrap();
        run
    }

    fn left(folder: &Path, runs: &[PathBuf], kept: Kept) -> Vec<String> {
        let runs: Vec<PathBuf> = runs.iter().filter(|run| run.exists()).cloned().collect();
        remove(&runs, kept);
        let name = |run: &PathBuf| run.strip_prefix(folder).unwrap().display().to_string();
        runs.iter().filter(|run| run.exists()).map(name).collect()
    }

    #[test]
    fn the_oldest_runs_go_and_none_that_may_be_running_nor_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let runs: Vec<PathBuf> = (0..6).map(|n| run(dir.path(), &format!("run-{n}"), 1000)).collect();
        // Nobody has ended it, and it was written to just now.
        fs::remove_file(runs[4].join("end.json")).unwrap();
        let kept = |runs, bytes| Kept { runs, bytes };
        assert_eq!(left(dir.path(), &runs, kept(None, None)).len(), 6);
        assert_eq!(
            left(dir.path(), &runs, kept(Some(6), Some(10_000))),
            ["run-0", "run-1", "run-2", "run-3", "run-4"]
        );
        assert_eq!(left(dir.path(), &runs, kept(None, Some(2_100))), ["run-0", "run-1", "run-4"]);
        assert_eq!(left(dir.path(), &runs[..2], kept(Some(1), Some(10))), ["run-0"]);
    }

    #[test]
    fn logs_are_compressed_and_read_as_before() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path(), "runs/1", 100_000);
        let links = dir.path().join("logs");
        fs::create_dir(&links).unwrap();
        symlink("../runs/1/branch/session.log", links.join("session.log")).unwrap();
        symlink("../runs/2/gone.log", links.join("gone.log")).unwrap();
        symlink("/nowhere", links.join("theirs")).unwrap();
        compress_logs(&run.join("branch"), &links);
        remove_dangling(&links);
        let mut names: Vec<_> =
            own::entries(&links).unwrap().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        names.sort();
        assert_eq!(names, ["session.log.gz", "theirs"]);
        let compressed = run.join("branch/session.log.gz");
        assert!(!run.join("branch/session.log").exists());
        assert!(compressed.metadata().unwrap().len() < 1000);
        assert_eq!(io::read_to_string(open_log(&compressed).unwrap()).unwrap(), "x".repeat(100_000));
        // A torn one is no log.
        fs::write(&compressed, &fs::read(&compressed).unwrap()[..20]).unwrap();
        assert!(open_log(&compressed).is_err());
    }
}
