//! Reads HEAD before and after each iteration from the events logs.

use std::borrow::Cow;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::event_line::{EventLine, is_events_log};
use crate::engine::fact::Fact;
use crate::files::own;

/// One iteration that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iteration {
    /// Its number.
    pub number: u64,
    /// HEAD before and after each of its attempts that changed HEAD, oldest first. `None`: before the first commit.
    pub heads: Vec<(Option<String>, String)>,
}

/// An attempt that began.
struct Begun {
    run: String,
    iteration: u64,
    head: Option<String>,
}

/// The iterations in the events logs of these folders that changed HEAD, newest first. Interrupted ones are left out:
/// HEAD at their end is unknown.
pub fn newest_first(folders: &[PathBuf]) -> std::io::Result<impl Iterator<Item = Iteration>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in folders {
        paths.extend(own::entries(folder)?.into_iter().filter(|path| is_events_log(path)));
    }
    // Names are made of local time, which goes back in autumn and when the user travels, so they order only logs of
    // the same moment, by their number.
    paths.sort_by_cached_key(|path| {
        let name = path.file_name().unwrap_or_default().to_owned();
        (begun_at(path), name.len(), name)
    });
    Ok(paths.into_iter().rev().flat_map(|path| read(&path).into_iter().rev()))
}

/// When a session began: the time of its first event, else that of its file.
fn begun_at(path: &Path) -> Option<DateTime<Utc>> {
    let file = own::open_to_read(path).ok()?;
    let written = file.metadata().and_then(|found| found.modified()).ok().map(DateTime::from);
    let first = BufReader::new(file).split(b'\n').next().and_then(Result::ok).unwrap_or_default();
    let line = std::str::from_utf8(&first).ok().and_then(|line| EventLine::read(line).ok());
    line.map(|line| line.at.to_utc()).or(written)
}

/// The iterations of one session, oldest first. Unreadable lines are skipped.
fn read(path: &Path) -> Vec<Iteration> {
    let Ok(file) = own::open_to_read(path) else { return Vec::new() };
    let mut iterations: Vec<Iteration> = Vec::new();
    let mut begun: Option<Begun> = None;
    let mut lines = BufReader::new(file);
    let mut bytes = Vec::new();
    while lines.read_until(b'\n', &mut bytes).is_ok_and(|length| length > 0) {
        // Most lines are agents' output and need not be parsed.
        let line = std::str::from_utf8(&bytes).ok().filter(|line| line.contains("\"attempt_"));
        match line.and_then(|line| EventLine::read(line).ok()) {
            Some(EventLine { run, fact: Fact::AttemptStarted { head, iteration, .. }, .. }) => {
                begun = Some(Begun { run: run.into_owned(), iteration, head: head.map(Cow::into_owned) });
            }
            Some(EventLine { run, fact: Fact::AttemptEnded(ended), .. }) => {
                let begun =
                    begun.take().filter(|begun| begun.run == run && begun.iteration == ended.iteration);
                if let Some((begun, after)) = begun.zip(ended.head)
                    && begun.head.as_deref() != Some(&*after)
                {
                    book(&mut iterations, ended.iteration, (begun.head, after.into_owned()));
                }
            }
            _ => {}
        }
        bytes.clear();
    }
    iterations
}

fn book(iterations: &mut Vec<Iteration>, number: u64, heads: (Option<String>, String)) {
    match iterations.last_mut() {
        Some(last) if last.number == number => last.heads.push(heads),
        _ => iterations.push(Iteration { number, heads: vec![heads] }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attempts_that_changed_head_are_paired_across_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let line_at = |at: &str, event: &str, iteration: u64, head: &str| {
            let head = (!head.is_empty()).then_some(head);
            // The fields that both events need, and a word that no release knows yet.
            let line = json!({
                "agent": "a", "at": at, "loop": "l", "mode": "m", "run": "r", "v": 1,
                "event": event, "head": head, "iteration": iteration, "retry": 0, "text": "t",
                "balance": null, "changed": null, "complete": false, "duration_s": 1.5, "exit_code": 0,
                "failure": null, "replan": false, "signal": null, "skipped_lines": 0, "status": "new", "usage": {}
            });
            format!("{line}\n")
        };
        let line = |event: &str, iteration: u64, head: &str| {
            line_at("2026-01-01T00:00:00.000+00:00", event, iteration, head)
        };
        let (begin, end) = ("attempt_started", "attempt_ended");
        let first = [
            line(begin, 1, ""),
            line("text", 1, "x"),
            line(end, 1, "a"),
            line(begin, 1, "a"),
            line(end, 1, "b"),
            line(begin, 2, "b"),
            line(end, 2, "b"),
            line(begin, 3, "b"),
        ];
        std::fs::write(dir.path().join("session-20260101-000000.events.jsonl"), first.concat()).unwrap();
        let second = [line(begin, 3, "c"), line(end, 3, "d"), "{\"event\":\"attempt_en".to_owned()];
        std::fs::write(dir.path().join("session-20260101-000000-2.events.jsonl"), second.concat()).unwrap();

        let found: Vec<Iteration> = newest_first(&[dir.path().to_owned()]).unwrap().collect();
        let heads = |before: &str, after: &str| (Some(before.to_owned()), after.to_owned());
        let expected = [
            Iteration { number: 3, heads: vec![heads("c", "d")] },
            Iteration { number: 1, heads: vec![(None, "a".into()), heads("a", "b")] },
        ];
        assert_eq!(found, expected);

        // In autumn, and from another folder.
        let later = tempfile::tempdir().unwrap();
        let at = "2026-01-01T00:30:00.000+02:00";
        let third = [line_at(at, begin, 7, "x"), line_at(at, end, 7, "y")].concat();
        std::fs::write(later.path().join("session-20260101-003000.events.jsonl"), third).unwrap();
        let folders = [later.path().to_owned(), dir.path().to_owned()];
        let numbers: Vec<u64> = newest_first(&folders).unwrap().map(|found| found.number).collect();
        assert_eq!(numbers, [3, 1, 7]);
        assert_eq!(newest_first(&[dir.path().join("none")]).unwrap().count(), 0);
    }
}
