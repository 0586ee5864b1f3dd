//! Requests to a running loop from another terminal: one small file each, in the ralph dir's `requests/`.
//!
//! A request names the run it is for, so that one for a run that has died never reaches the next.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::engine::stop::Request;
use crate::files::FileError;
use crate::files::atomic::{self, Durability};
use crate::text::timestamp;

#[derive(Serialize, Deserialize)]
struct Addressed {
    run: String,
    request: Request,
}

/// Leaves a request for the run, and answers the file that is there until the run takes it.
pub fn send(folder: &Path, run: &str, request: Request) -> Result<PathBuf, FileError> {
    std::fs::create_dir_all(folder).map_err(|reason| FileError { path: folder.to_owned(), reason })?;
    // The name sorts by time, so that requests are taken in the order they were made.
    let now = timestamp::exact(chrono::Utc::now());
    let path = folder.join(format!("{now}-{}.json", std::process::id()));
    let text = serde_json::to_vec(&Addressed { run: run.to_owned(), request })
        .map_err(|error| FileError { path: path.clone(), reason: error.into() })?;
    atomic::write(&path, &text, Durability::Atomic)?;
    Ok(path)
}

/// Takes the requests for the run, oldest first. Those for other runs, which are over, are thrown away.
#[must_use]
pub fn take(folder: &Path, run: &str) -> Vec<Request> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_request = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_request).collect();
    paths.sort();
    let mut requests = Vec::new();
    for path in paths {
        let addressed = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        // What cannot be removed would be taken again and again.
        if std::fs::remove_file(&path).is_ok()
            && let Some(Addressed { run: wanted, request }) = addressed
            && wanted == run
        {
            requests.push(request);
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reaches_its_run_once_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("requests");
        assert_eq!(take(&folder, "a"), []);
        send(&folder, "a", Request::Note("first".into())).unwrap();
        send(&folder, "b", Request::Cancel).unwrap();
        send(&folder, "a", Request::Pause).unwrap();
        std::fs::write(folder.join("0.json"), "torn").unwrap();
        assert_eq!(take(&folder, "a"), [Request::Note("first".into()), Request::Pause]);
        assert_eq!(take(&folder, "a"), []);
        assert_eq!(take(&folder, "b"), [], "a request for a run that was over when it was looked at");
    }
}
