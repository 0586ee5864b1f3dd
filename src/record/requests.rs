//! Requests to a running loop from another terminal: one small file each, in the run dir's `requests/`.
//!
//! A request names its run, so that the request to a dead run never reaches the next one. Its file is removed when
//! the loop's state has it, which confirms it to the sender: a loop that is killed at any time has lost no confirmed
//! request.
//!
//! A request is signed with this user's key, over its file's name (which has the time), the run and the request: an
//! agent can write files, and must not end or steer the loop that judges it. A request without that signature is
//! dropped, and a file beside it reports that to the sender. If the key's file is removed while a loop runs, the loop
//! writes it back.

use std::collections::{HashSet, VecDeque};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::stop::Request;
use crate::files::atomic::{self, Durability};
use crate::files::key::{self, LENGTH};
use crate::files::{FileError, own, temporary};
use crate::project::Project;
use crate::text::digest::hmac_sha256;
use crate::text::list::and_more;
use crate::text::timestamp;

/// Larger files are not requests, in bytes.
const LARGEST: u64 = 4 << 20;
/// The extension of the file that reports a refused request.
const REFUSED: &str = "json.refused";
/// How long a running loop may take to write the user's key back.
const KEY_IS_BACK: Duration = Duration::from_secs(1);

#[derive(Serialize, Deserialize)]
struct Addressed {
    run: String,
    request: Request,
    /// `None` if the sender has no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

/// Signs requests.
#[derive(Clone)]
pub struct Signer {
    path: PathBuf,
    user: [u8; LENGTH],
    key: String,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// A signer with the key of this project's user; `None` without a home directory.
    ///
    /// # Errors
    /// If the key can be neither read nor created.
    pub fn of(project: &Project) -> Result<Option<Self>, FileError> {
        project.user_key().map(|path| Self::at(&path)).transpose()
    }

    /// A signer with the key in the file at `path`.
    ///
    /// # Errors
    /// If it can be neither read nor created.
    pub fn at(path: &Path) -> Result<Self, FileError> {
        let user = key::at(path)?;
        // A derived key, so that no other seal can serve as the signature of a request.
        Ok(Self { path: path.to_owned(), user, key: hmac_sha256(&user, b"requests to running loops") })
    }

    /// As [`of`](Self::of), for a request to a running loop. The loop has the key, so it is never created here, only
    /// awaited for a moment. `None` if there is none, or if it cannot be read: the loop has reported that, or refuses
    /// the request.
    #[must_use]
    pub fn of_running(project: &Project) -> Option<Self> {
        let path = project.user_key()?;
        let deadline = Instant::now() + KEY_IS_BACK;
        while !path.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        path.exists().then(|| Self::at(&path).ok()).flatten()
    }

    /// The signature of a request in this file.
    fn sign(&self, path: &Path, run: &str, request: &Request) -> serde_json::Result<String> {
        let name = path.file_name().map(|name| name.to_string_lossy());
        Ok(hmac_sha256(self.key.as_bytes(), &serde_json::to_vec(&(name, run, request))?))
    }
}

/// Leaves a request for the run, and returns its file, which the run removes when it has taken it.
pub fn send(
    folder: &Path,
    signer: Option<&Signer>,
    run: &str,
    request: Request,
) -> Result<PathBuf, FileError> {
    // The name sorts by time, so requests are taken in the order they were made.
    let now = timestamp::exact(chrono::Utc::now());
    let path = folder.join(format!("{now}-{}.json", std::process::id()));
    let text = signer
        .map(|signer| signer.sign(&path, run, &request))
        .transpose()
        .and_then(|signature| serde_json::to_vec(&Addressed { run: run.to_owned(), request, signature }))
        .map_err(|error| FileError { path: path.clone(), reason: error.into() })?;
    atomic::write_own(&path, &text, Durability::Atomic)?;
    Ok(path)
}

/// Whether the loop has refused the request in this file.
#[must_use]
pub fn is_refused(path: &Path) -> bool {
    path.with_extension(REFUSED).exists()
}

/// Withdraws the request in this file, and its refusal; returns whether it was still there.
#[must_use]
pub fn withdraw(path: &Path) -> bool {
    let was_there = std::fs::remove_file(path).is_ok();
    let _ = std::fs::remove_file(path.with_extension(REFUSED));
    was_there
}

/// The requests to one run.
#[derive(Debug)]
pub struct Requests {
    folder: PathBuf,
    run: String,
    /// `None` if there is no key; then every request counts.
    signer: Option<Signer>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The files of all requests handed out: one that cannot be removed must not be handed out again.
    seen: HashSet<PathBuf>,
    /// Those that the state does not have yet, in the order in which they were handed out.
    open: VecDeque<PathBuf>,
    /// Those that were dropped and not yet reported.
    dropped: Vec<PathBuf>,
    /// A message about the key's file, not yet reported.
    key: Option<String>,
    /// Whether that was reported: an agent may remove it repeatedly.
    is_key_reported: bool,
}

impl Requests {
    /// The requests in this folder for this run.
    #[must_use]
    pub fn new(folder: PathBuf, run: &str, signer: Option<Signer>) -> Self {
        Self { folder, run: run.to_owned(), signer, known: Mutex::default() }
    }

    /// Hands out the new requests, oldest first.
    #[must_use]
    pub fn look(&self) -> Vec<Request> {
        let mut paths = own::entries(&self.folder).unwrap_or_default();
        paths.retain(|path| is_request(path));
        paths.sort();
        let mut known = self.lock();
        self.keep_key(&mut known);
        let mut requests = Vec::new();
        for path in paths {
            if known.seen.contains(&path) {
                continue;
            }
            let text = own::read(&path, LARGEST).ok();
            let addressed = text.and_then(|text| serde_json::from_slice::<Addressed>(&text).ok());
            let Some(addressed) = addressed.filter(|addressed| addressed.run == self.run) else { continue };
            known.seen.insert(path.clone());
            if self.is_signed(&path, &addressed) {
                requests.push(addressed.request);
                known.open.push_back(path);
            } else {
                // The request stays, because its removal would confirm it. If the refusal cannot be written, the
                // sender reports that the loop has not reacted.
                let new = path.with_extension(REFUSED);
                let _ = own::open(&new, OpenOptions::new().write(true).create_new(true));
                known.dropped.push(path);
            }
        }
        requests
    }

    /// Writes the key back if its file was removed: otherwise the user's own requests would be refused.
    fn keep_key(&self, known: &mut Known) {
        let Some(Signer { path, user, .. }) = &self.signer else { return };
        let said = match key::keep(path, user) {
            Ok(false) => return,
            Ok(true) => format!("{} was removed while the loop runs, and is written back", path.display()),
            Err(error) => format!(
                "removed while the loop runs, and cannot be written back, so that this loop refuses all requests: {error}"
            ),
        };
        if !std::mem::replace(&mut known.is_key_reported, true) {
            known.key = Some(said);
        }
    }

    fn is_signed(&self, path: &Path, addressed: &Addressed) -> bool {
        let Some(signer) = &self.signer else { return true };
        let Addressed { run, request, signature } = addressed;
        signature.is_some() && signer.sign(path, run, request).ok() == *signature
    }

    /// A message about dropped requests and the key, since the last call.
    #[must_use]
    pub fn news(&self) -> Option<String> {
        let mut known = self.lock();
        if let Some(said) = known.key.take() {
            return Some(said);
        }
        let dropped = std::mem::take(&mut known.dropped);
        let (first, more) = dropped.split_first()?;
        let more = and_more(more.len());
        Some(format!(
            "dropped {}{more}: no ralph of this user has signed it; where it was your own ralph that sent it, of another version or \
             with another home, use this one",
            first.display()
        ))
    }

    /// Confirms the oldest request handed out: the state has it.
    pub fn settle(&self) {
        if let Some(path) = self.lock().open.pop_front() {
            // On failure its sender believes it pending, although the loop has it.
            let _ = std::fs::remove_file(path);
        }
    }

    /// A panic of another thread cannot leave the lists half-changed.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes all requests: no loop runs here, and they were for one that has ended. Other files stay.
pub fn clear(folder: &Path) -> Result<(), FileError> {
    let paths = own::entries(folder).map_err(FileError::at(folder))?;
    for path in paths.iter().filter(|path| is_request(path) || is_refusal(path)) {
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

/// Whether a file has the name of a refusal: a request's name and an extension.
fn is_refusal(path: &Path) -> bool {
    let name = path.to_str().and_then(|name| name.strip_suffix(".refused"));
    name.is_some_and(|request| is_request(Path::new(request)))
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
        let [a, b] = ["a", "b"].map(|run| Requests::new(folder.clone(), run, None));
        assert_eq!(a.look(), []);
        let first = send(&folder, None, "a", note("first")).unwrap();
        let other = send(&folder, None, "b", Request::Cancel).unwrap();
        let second = send(&folder, None, "a", Request::Pause).unwrap();
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
        let path = send(folder.path(), None, "a", note("old")).unwrap();
        let half = folder.path().join(".ralph-0123abcd-1-x1y2z3.tmp");
        fs::write(&half, "").unwrap();
        let mine = ["note.json", "20260101T1-x.json", "1-1.json", "x.json.y.tmp", "20260101T1-1.txt"];
        for name in mine {
            fs::write(folder.path().join(name), "{\"run\":\"a\",\"request\":\"cancel\"}").unwrap();
        }
        fs::write(folder.path().join("20260101T1-1.json"), "torn").unwrap();
        std::os::unix::fs::symlink(&path, folder.path().join("20260101T2-1.json")).unwrap();
        assert_eq!(Requests::new(folder.path().to_owned(), "a", None).look(), [note("old")]);
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

    #[test]
    fn a_request_that_this_user_has_not_signed_is_dropped_and_reported() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("requests");
        let [own, other] = ["own", "other"].map(|key| Signer::at(&scratch.path().join(key)).unwrap());
        let requests = Requests::new(folder.clone(), "a", Some(own.clone()));
        let signed = send(&folder, Some(&own), "a", Request::Pause).unwrap();
        assert_eq!((requests.look(), requests.news()), (vec![Request::Pause], None));

        let named = |time: u32| folder.join(format!("2099010{time}T1-1.json"));
        // A signed request, copied to another time, another run, another request.
        let text = fs::read_to_string(&signed).unwrap();
        fs::write(named(1), &text).unwrap();
        fs::write(&signed, text.replace("pause", "cancel")).unwrap();
        fs::write(named(2), "{\"run\":\"a\",\"request\":\"cancel\"}").unwrap();
        let foreign = send(&folder, Some(&other), "a", Request::Cancel).unwrap();
        let unsigned = send(&folder, None, "a", Request::Cancel).unwrap();
        assert_eq!(requests.look(), []);
        let said = requests.news().unwrap();
        assert!(said.contains("and 3 more: no ralph of this user has signed it"), "{said}");
        assert_eq!((requests.look(), requests.news()), (vec![], None), "reported once");
        assert!(foreign.exists() && unsigned.exists());
        assert!(is_refused(&foreign) && is_refused(&unsigned) && !is_refused(&signed));
        assert!(withdraw(&foreign) && !withdraw(&foreign) && !is_refused(&foreign));
        clear(&folder).unwrap();
        assert_eq!(own::entries(&folder).unwrap(), [] as [PathBuf; 0]);
        // A request to another run never counts.
        send(&folder, Some(&own), "b", Request::Cancel).unwrap();
        assert_eq!((requests.look(), requests.news()), (vec![], None));
    }

    #[test]
    fn a_key_that_is_removed_while_the_loop_runs_is_written_back() {
        let scratch = tempfile::tempdir().unwrap();
        let key = scratch.path().join("state/key");
        let requests = Requests::new(scratch.path().join("requests"), "a", Signer::at(&key).ok());
        let before = fs::read(&key).unwrap();
        for said in [Some("state/key was removed while the loop runs, and is written back"), None] {
            fs::remove_file(&key).unwrap();
            assert_eq!(requests.look(), []);
            assert_eq!(fs::read(&key).unwrap(), before);
            let news = requests.news();
            assert!(said.map_or(news.is_none(), |said| news.as_ref().unwrap().ends_with(said)), "{news:?}");
        }
    }
}
