//! Keeps the newest runs, up to a number and a size, and compresses the session logs of older ones.

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

use super::newer;
use super::run_folder::{self, RunStart};
use crate::files::own;
use crate::project::Project;
use crate::threads;

/// How many of the newest runs keep their session logs uncompressed.
const PLAIN: usize = 10;
/// How long a run is left alone that has no end and whose process cannot be checked.
const UNCLEAR: Duration = Duration::from_hours(24);
/// The extension of a compressed log.
const COMPRESSED: &str = "gz";

/// The limits for the runs of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The most runs; `None`: no limit.
    pub runs: Option<u64>,
    /// The most bytes; `None`: no limit.
    pub bytes: Option<u64>,
}

/// Housekeeping beside a run; dropping it waits for the steps that have to finish.
#[derive(Debug)]
#[must_use = "it is cut short when it is dropped"]
pub struct Housekeeping {
    thread: Option<JoinHandle<()>>,
    /// The run has ended: no more logs are compressed.
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

/// Removes runs over the limits and compresses the logs of older ones, beside the current run, which is not touched.
/// What cannot be removed, and logs not compressed by the end of the run, are left to the next run.
pub fn tidy(project: &Project, current: &str, kept: Kept) -> Housekeeping {
    let (project, current) = (project.clone(), current.to_owned());
    let is_over = Arc::new(AtomicBool::new(false));
    let run_is_over = Arc::clone(&is_over);
    let thread = threads::start(move || {
        let Ok(runs) = project.all_runs() else { return };
        let mut runs: Vec<PathBuf> = runs.into_iter().filter(|run| !run.ends_with(&current)).collect();
        let links = project.links_to_logs();
        // Before compressing, so that no removed run is compressed.
        remove(&runs, Kept { bytes: None, ..kept });
        runs.retain(|run| run.exists());
        let goes_on = || !run_is_over.load(Ordering::Relaxed);
        for run in runs.iter().skip(PLAIN).take_while(|_| goes_on()).filter(|run| is_ended(run)) {
            for folder in [run.clone()].into_iter().chain(own::entries(run).unwrap_or_default()) {
                if !goes_on() {
                    break;
                }
                compress_logs(&folder, &links);
            }
        }
        // After compressing, which frees space.
        remove(&runs, kept);
        remove_dangling(&links);
    });
    Housekeeping { thread: thread.ok(), is_over }
}

/// Removes the runs over the limits, the oldest first, but never the newest. `runs`: newest first, without the
/// current one.
fn remove(runs: &[PathBuf], kept: Kept) {
    let most = kept.runs.map_or(usize::MAX, |runs| usize::try_from(runs).unwrap_or(usize::MAX));
    let mut room = kept.bytes.unwrap_or(u64::MAX);
    // The current run counts as one.
    for (place, run) in (1..).zip(runs) {
        let size = size(run);
        let fits = place < most && size <= room;
        // A run that does not fit leaves no space for older ones.
        room = if fits { room - size } else { 0 };
        if !fits && place > 1 && is_ended(run) {
            // The next run tries again.
            let _ = fs::remove_dir_all(run);
        }
    }
}

/// The size of a run's files in bytes.
fn size(run: &Path) -> u64 {
    let entries = own::entries(run).unwrap_or_default();
    let sizes = entries.into_iter().filter_map(|path| {
        let found = path.symlink_metadata().ok()?;
        Some(if found.is_dir() { size(&path) } else { found.size() })
    });
    sizes.sum()
}

/// Whether no process writes into the folder of a run any more.
fn is_ended(run: &Path) -> bool {
    if newer::of_run(run).is_some() {
        // What it says of its end may mean something else.
        return false;
    }
    if run_folder::read_end(run).is_some() {
        return true;
    }
    if RunStart::read(run).is_some_and(|start| start.process.is_alive()) {
        return false;
    }
    // A process of another machine or container cannot be checked.
    let newest = newest(run);
    newest.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > UNCLEAR)
}

/// The time of the last write in the folder.
fn newest(run: &Path) -> Option<SystemTime> {
    let entries = own::entries(run).ok()?;
    let changed = |path: &Path| path.symlink_metadata().and_then(|found| found.modified()).ok();
    let within =
        entries.iter().filter(|path| !path.is_symlink() && path.is_dir()).filter_map(|path| newest(path));
    entries.iter().filter_map(|path| changed(path)).chain(within).chain(changed(run)).max()
}

/// Removes links to missing logs.
fn remove_dangling(links: &Path) {
    for link in own::entries(links).unwrap_or_default() {
        let is_ours = fs::read_link(&link).is_ok_and(|target| target.starts_with("../runs"));
        if is_ours && !link.exists() {
            let _ = fs::remove_file(&link);
        }
    }
}

/// Compresses the session logs in a folder, and updates the links.
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

/// The path of a log after compression.
pub(super) fn compressed(log: &Path) -> PathBuf {
    log.with_added_extension(COMPRESSED)
}

/// Replaces a log with a compressed file.
fn compress(log: &Path) -> io::Result<PathBuf> {
    let compressed = compressed(log);
    let written = own::create_filled(&compressed, |path| {
        let mut encoder = GzEncoder::new(File::create(path)?, Compression::default());
        io::copy(&mut own::open_to_read(log)?, &mut encoder)?;
        encoder.finish().map(drop)
    });
    match written {
        // A killed process has left a complete file.
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

/// Opens a session log, also if it has been compressed since: then it is unpacked into an unnamed file.
///
/// # Errors
/// If it cannot be read, or is damaged.
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
        // It has no end, and was written to just now.
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
        // A truncated file is not a log.
        fs::write(&compressed, &fs::read(&compressed).unwrap()[..20]).unwrap();
        assert!(open_log(&compressed).is_err());
    }
}
