//! Requests to a running loop from another terminal: one small file each, in the run dir's `requests/`.
//!
//! A request names the run it is for, so that one for a run that has died never reaches the next. Its file is removed when the
//! loop's state holds it, and that is what tells the sender: a loop that is killed at any moment has lost no request that
//! it has taken.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::engine::stop::Request;
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, own, temporary};
use crate::text::timestamp;

/// A larger file is no request, in bytes.
const LARGEST: u64 = 4 << 20;

#[derive(Serialize, Deserialize)]
struct Addressed {
    run: String,
    request: Request,
}

/// Leaves a request for the run, and answers the file that is there until the run has taken it.
pub fn send(folder: &Path, run: &str, request: Request) -> Result<PathBuf, FileError> {
    // The name sorts by time, so that requests are taken in the order they were made.
    let now = timestamp::exact(chrono::Utc::now());
    let path = folder.join(format!("{now}-{}.json", std::process::id()));
    let text = serde_json::to_vec(&Addressed { run: run.to_owned(), request })
        .map_err(|error| FileError { path: path.clone(), reason: error.into() })?;
    atomic::write_own(&path, &text, Durability::Atomic)?;
    Ok(path)
}

/// The requests that are left for one run.
#[derive(Debug)]
pub struct Requests {
    folder: PathBuf,
    run: String,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The files of all that were handed out: one that cannot be removed must not be handed out again.
    seen: HashSet<PathBuf>,
    /// Those that the state does not hold yet, in the order in which they were handed out.
    open: VecDeque<PathBuf>,
}

impl Requests {
    /// Those in this folder for this run.
    #[must_use]
    pub fn new(folder: PathBuf, run: &str) -> Self {
        Self { folder, run: run.to_owned(), known: Mutex::default() }
    }

    /// Hands out those that came since the last look, oldest first.
    #[must_use]
    pub fn look(&self) -> Vec<Request> {
        let mut paths = own::entries(&self.folder).unwrap_or_default();
        paths.retain(|path| is_request(path));
        paths.sort();
        let mut known = self.lock();
        let mut requests = Vec::new();
        for path in paths {
            if known.seen.contains(&path) {
                continue;
            }
            let text = own::read(&path, LARGEST).ok();
            let addressed = text.and_then(|text| serde_json::from_slice::<Addressed>(&text).ok());
            if let Some(addressed) = addressed.filter(|addressed| addressed.run == self.run) {
                requests.push(addressed.request);
                known.seen.insert(path.clone());
                known.open.push_back(path);
            }
        }
        requests
    }

    /// The state holds the oldest one that was handed out.
    pub fn settle(&self) {
        if let Some(path) = self.lock().open.pop_front() {
            // Its sender believes it pending then; the loop has it all the same.
            let _ = std::fs::remove_file(path);
        }
    }

    /// A panic of another thread cannot leave the lists half-changed.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Throws away all requests: no loop runs here, and they were for one that is over. What is no request of ours stays.
pub fn clear(folder: &Path) -> Result<(), FileError> {
    let paths = own::entries(folder).map_err(FileError::at(folder))?;
    for path in paths.iter().filter(|path| is_request(path)) {
        std::fs::remove_file(path).map_err(FileError::at(path))?;
    }
    temporary::sweep(folder);
    Ok(())
}

/// Whether a file has the name of a request, `TIME-PID.json`.
fn is_request(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.and_then(|name| name.split_once('-')).is_some_and(|(time, pid)| {
        is_number(pid) && time.split_once('T').is_some_and(|(day, time)| is_number(day) && is_number(time))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn note(text: &str) -> Request {
        Request::Note(text.into())
    }

    #[test]
    fn a_request_reaches_its_run_once_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("requests");
        let [a, b] = ["a", "b"].map(|run| Requests::new(folder.clone(), run));
        assert_eq!(a.look(), []);
        let first = send(&folder, "a", note("first")).unwrap();
        let other = send(&folder, "b", Request::Cancel).unwrap();
        let second = send(&folder, "a", Request::Pause).unwrap();
        assert_eq!(a.look(), [note("first"), Request::Pause]);
        assert_eq!(a.look(), [], "handed out once");
        a.settle();
        assert!(!first.exists() && second.exists() && other.exists(), "each goes when the state holds it");
        a.settle();
        a.settle();
        assert!(!second.exists() && other.exists());
        assert_eq!(b.look(), [Request::Cancel]);
    }

    #[test]
    fn only_requests_are_taken_and_thrown_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = send(folder.path(), "a", note("old")).unwrap();
        let half = folder.path().join(".ralph-0123abcd-1-x1y2z3.tmp");
        fs::write(&half, "").unwrap();
        let mine = ["note.json", "20260101T1-x.json", "1-1.json", "x.json.y.tmp", "20260101T1-1.txt"];
        for name in mine {
            fs::write(folder.path().join(name), "{\"run\":\"a\",\"request\":\"cancel\"}").unwrap();
        }
        fs::write(folder.path().join("20260101T1-1.json"), "torn").unwrap();
        std::os::unix::fs::symlink(&path, folder.path().join("20260101T2-1.json")).unwrap();
        assert_eq!(Requests::new(folder.path().to_owned(), "a").look(), [note("old")]);
        clear(folder.path()).unwrap();
        let mut left: Vec<_> = own::entries(folder.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        left.sort();
        let mut expected = mine.map(std::ffi::OsString::from);
        expected.sort();
        assert_eq!(left, expected);
        clear(&folder.path().join("none")).unwrap();
    }
}
