//! Pushes and pull requests: their command lines, and what became of them.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::forge::{Home, Request, Row};
use super::remote::why_refused;
use crate::process::OUT_OF_SIGHT;
use crate::process::capture::{Captured, Ended, Kept};
use crate::process::launch::Launch;
use crate::process::supervised::StartError;
use crate::text::halves::without_halves;
use crate::text::{duration, line};

/// The time limit of a push.
pub(crate) const PUSH_LIMIT: Duration = Duration::from_mins(5);
/// The time limit for opening a pull request.
pub(crate) const PULL_REQUEST_LIMIT: Duration = Duration::from_mins(2);
/// How many bytes of each output of a program are kept.
pub(crate) const ROOM: usize = 64 * 1024;
/// How many bytes of an answer about a pull request are kept.
pub(crate) const ANSWER_ROOM: usize = 8 * 1024 * 1024;

/// Why something was not published.
#[derive(Debug)]
pub(crate) enum Unpublished {
    /// It is not possible here; the branch counts as built all the same.
    Impossible(String),
    /// The remote does not take this branch as it is.
    Refused(String),
    /// The branch has commits there that are not here.
    Behind(String),
    /// It failed.
    Wrong(String),
    /// It was interrupted, because the loop has to end now.
    Cut,
}

impl Unpublished {
    /// The reason; `None` if it was interrupted.
    pub(crate) fn why(self) -> Option<String> {
        match self {
            Self::Impossible(why) | Self::Refused(why) | Self::Behind(why) | Self::Wrong(why) => Some(why),
            Self::Cut => None,
        }
    }
}

/// What became of a push.
///
/// # Errors
/// Why nothing was pushed.
pub(crate) fn pushed(captured: Result<Captured, StartError>) -> Result<(), Unpublished> {
    let (code, stdout, stderr) = outcome(captured, PUSH_LIMIT)?;
    let why = || why_refused(&stdout, &stderr);
    match code {
        0 => Ok(()),
        _ => Err(match stdout.lines().find(|line| line.starts_with('!')) {
            Some(line) if line.contains("[rejected]") => Unpublished::Behind(why()),
            Some(_) => Unpublished::Refused(why()),
            None => Unpublished::Wrong(why()),
        }),
    }
}

/// What a remote has answered to a question.
///
/// # Errors
/// Why it has not.
pub(crate) fn answered(captured: Result<Captured, StartError>) -> Result<String, Unpublished> {
    let (code, stdout, stderr) = outcome(captured, PUSH_LIMIT)?;
    if code == 0 { Ok(stdout) } else { Err(Unpublished::Wrong(why_refused("", &stderr))) }
}

/// The result of a command line of a forge, or why the caller cannot go on.
type Ran<E> = Result<Result<Captured, StartError>, E>;

/// A pull request that was opened, or found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Its address.
    pub(crate) address: String,
    /// It was opened now, with the description that was given.
    pub(crate) is_new: bool,
}

/// Opens a pull request from the work tree `tree`, with the run mark of a loop, or finds the one that is there.
///
/// # Errors
/// The outer one is that of `run`.
pub(crate) fn open<E>(
    home: &Home,
    request: &Request<'_>,
    (tree, mark): (&Path, &str),
    run: &mut dyn FnMut(&Launch) -> Ran<E>,
) -> Result<Result<Opened, Unpublished>, E> {
    let row = home.forge().row();
    let head = home.head(request.head);
    let request = Request { head: &head, ..*request };
    let captured = run(&home.ask(tree, (row.create)(&request), mark))?;
    let is_new = !is_there_already(&captured);
    if is_new || row.names_known {
        return Ok(opened(row, captured).map(|address| Opened { address, is_new }));
    }
    let found = answered_by(home, run(&home.ask(tree, (row.find)(&head), mark))?);
    Ok(found.and_then(|found| {
        let unknown = || Unpublished::Impossible(format!("there is one already; see '{}'", row.list));
        let found = value(&found);
        let address = found.pointer(row.shape.address).and_then(Value::as_str).ok_or_else(unknown)?;
        Ok(Opened { address: address.to_owned(), is_new })
    }))
}

/// Adds those of these lines to the description of a branch's pull request that it lacks. What else stands there stays. Returns whether
/// it is open: one that was merged or closed gets none.
///
/// # Errors
/// The outer one is that of `run`.
pub(crate) fn add_lines<E>(
    home: &Home,
    (branch, lines): (&str, &[String]),
    (tree, mark): (&Path, &str),
    run: &mut dyn FnMut(&Launch) -> Ran<E>,
) -> Result<Result<bool, Unpublished>, E> {
    let (row, head) = (home.forge().row(), home.head(branch));
    let found = match answered_by(home, run(&home.ask(tree, (row.find)(&head), mark))?) {
        Ok(found) => value(&found),
        Err(failure) => return Ok(Err(failure)),
    };
    let state = found.pointer(row.shape.state).and_then(Value::as_str).unwrap_or_default();
    if ["closed", "merged"].contains(&&*state.to_lowercase()) {
        return Ok(Ok(false));
    }
    let body = match found.pointer(row.shape.body) {
        Some(Value::String(body)) => body.as_str(),
        Some(Value::Null) => "",
        // What cannot be read would be lost.
        _ => return Ok(Err(Unpublished::Wrong(format!("{} shows no description", row.program)))),
    };
    let is_there = |line: &&String| body.lines().any(|known| known.trim() == line.as_str());
    let missing: Vec<&str> = lines.iter().filter(|line| !is_there(line)).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(Ok(true));
    }
    let body = format!("{}\n\n{}\n", body.trim_end(), missing.join("\n")).trim_start().to_owned();
    let captured = run(&home.ask(tree, (row.describe)(&head, &body), mark))?;
    Ok(answered_by(home, captured).map(|_| true))
}

/// An answer as JSON; null if it is none.
fn value(answer: &str) -> Value {
    serde_json::from_str(&without_halves(answer)).unwrap_or_default()
}

/// Whether there is a pull request for the branch already.
fn is_there_already(captured: &Result<Captured, StartError>) -> bool {
    captured.as_ref().is_ok_and(|captured| {
        let has_failed = !matches!(captured.end, Ended::Exited(0));
        let is_said = |kept: &Kept| kept.text().contains("already exists");
        has_failed && (is_said(&captured.stdout) || is_said(&captured.stderr))
    })
}

/// What the program of a forge has printed, whole.
///
/// # Errors
/// Why it has not answered.
pub(crate) fn answered_by(
    home: &Home,
    captured: Result<Captured, StartError>,
) -> Result<String, Unpublished> {
    let row = home.forge().row();
    let whole = captured.as_ref().ok().and_then(|captured| captured.stdout.whole());
    let (code, stdout, stderr) = spoken(row, captured, "")?;
    if code != 0 {
        return Err(failure(row, (code, &stdout, &stderr), ""));
    }
    let whole = whole.ok_or_else(|| Unpublished::Wrong(format!("{} has printed too much", row.program)))?;
    Ok(String::from_utf8_lossy(&whole).into_owned())
}

/// The address of the pull request that the program has opened or found.
fn opened(row: &Row, captured: Result<Captured, StartError>) -> Result<String, Unpublished> {
    let hint = format!("; '{} BRANCH' does it later", row.create_by_hand);
    let (code, stdout, stderr) = spoken(row, captured, &hint)?;
    let said = format!("{stdout}\n{stderr}");
    let address =
        said.split_whitespace().rfind(|word| word.starts_with("https://") || word.starts_with("http://"));
    match address {
        Some(address) if code == 0 || said.contains("already exists") => Ok(address.to_owned()),
        None if code == 0 => {
            Err(Unpublished::Impossible(format!("{} printed no address; see '{}'", row.program, row.list)))
        }
        _ => Err(failure(row, (code, &stdout, &stderr), &hint)),
    }
}

/// What a program of a forge has said; `hint` is for users who have to install it.
fn spoken(
    row: &Row,
    captured: Result<Captured, StartError>,
    hint: &str,
) -> Result<(i32, String, String), Unpublished> {
    if let Err(StartError::Program { source, .. }) = &captured
        && source.kind() == ErrorKind::NotFound
    {
        return Err(Unpublished::Impossible(format!(
            "{} is not installed ({}){hint}",
            row.program, row.site
        )));
    }
    outcome(captured, PULL_REQUEST_LIMIT)
}

/// Why such a program has failed; `hint` is for users who have to log in.
fn failure(row: &Row, (code, stdout, stderr): (i32, &str, &str), hint: &str) -> Unpublished {
    let program = row.program;
    let said = format!("{stdout}\n{stderr}");
    let line = line::first(stderr).or_else(|| line::first(stdout));
    let line = line.map_or_else(
        || format!("{program} ended with exit code {code}"),
        |line| format!("{program}: {line}"),
    );
    if Some(code) == row.login_code || row.login_words.iter().any(|words| said.contains(words)) {
        Unpublished::Impossible(format!("{program} is not logged in; run '{program} auth login'{hint}"))
    } else if said.contains("point to a known") || said.contains("no git remotes") {
        Unpublished::Impossible(line)
    } else if said.contains(row.no_base) {
        Unpublished::Impossible("the branch that it starts from is not on the remote".to_owned())
    } else {
        Unpublished::Wrong(line)
    }
}

/// Exit code, stdout and stderr of a program that ended by itself; otherwise what happened.
fn outcome(
    captured: Result<Captured, StartError>,
    limit: Duration,
) -> Result<(i32, String, String), Unpublished> {
    let captured = captured.map_err(|error| Unpublished::Wrong(error.to_string()))?;
    match captured.end {
        Ended::Exited(code) => Ok((code, captured.stdout.text(), captured.stderr.text())),
        Ended::Signaled(signal) => Err(Unpublished::Wrong(format!("it was ended by signal {signal}"))),
        Ended::OutOfSight => Err(Unpublished::Wrong(format!("it was ended, because {OUT_OF_SIGHT}"))),
        Ended::TimedOut => {
            Err(Unpublished::Wrong(format!("it did not end within {}", duration::format(limit))))
        }
        Ended::Cancelled => Err(Unpublished::Cut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::forge::Forge;
    use crate::process::capture::Kept;
    use crate::process::walls::TurnedAway;

    /// The result of opening one, if the program answers this: exit code, stdout and stderr of each call.
    fn answers(forge: Forge, answers: &[(i32, &str, &str)]) -> String {
        let kept = |text: &str| {
            let mut kept = Kept::new(ROOM);
            kept.push(text.as_bytes());
            kept
        };
        let mut answers = answers.iter();
        let mut run = |_: &Launch| -> Ran<()> {
            let (code, stdout, stderr) = answers.next().unwrap();
            let (stdout, stderr, end) = (kept(stdout), kept(stderr), Ended::Exited(*code));
            Ok(Ok(Captured { stdout, stderr, end, turned_away: TurnedAway::default() }))
        };
        let request = Request { base: "main", head: "x", title: "t", body: "b" };
        let opened = open(&Home::unnamed(forge), &request, (Path::new("/"), ""), &mut run).unwrap();
        assert!(answers.next().is_none());
        match opened {
            Ok(opened) => opened.address,
            Err(Unpublished::Impossible(why)) => format!("impossible: {why}"),
            Err(Unpublished::Wrong(why)) => format!("wrong: {why}"),
            Err(Unpublished::Refused(why) | Unpublished::Behind(why)) => format!("refused: {why}"),
            Err(Unpublished::Cut) => "cut".to_owned(),
        }
    }

    fn answer(code: i32, stdout: &str, stderr: &str) -> String {
        answers(Forge::GitHub, &[(code, stdout, stderr)])
    }

    #[test]
    fn what_gh_says_about_a_pull_request() {
        let address = "https://github.com/a/b/pull/7";
        let found = "a pull request for branch \"x\" into branch \"main\" already exists:\n";
        assert_eq!(answer(0, &format!("{address}\n"), "Creating pull request …\n"), address);
        assert_eq!(answer(1, "", &format!("{found}{address}\n")), address);
        assert!(answer(0, "done", "").starts_with("impossible: gh printed no address"));
        let login = "To get started with GitHub CLI, please run:  gh auth login\n";
        for code in [1, 4] {
            let expected = "impossible: gh is not logged in; run 'gh auth login'; 'gh pr create --head BRANCH' does it later";
            assert_eq!(answer(code, "", login), expected);
        }
        let host = "none of the git remotes configured for this repository point to a known GitHub host.";
        assert_eq!(answer(1, "", host), format!("impossible: gh: {host}"));
        let broken = "GraphQL: Something went wrong, see https://github.com/status";
        assert_eq!(answer(1, "", broken), format!("wrong: gh: {broken}"));
        assert_eq!(answer(3, "", ""), "wrong: gh ended with exit code 3");
    }

    /// What is asked to add a line to a description that is shown like this, and the result.
    fn added(forge: Forge, shown: &str) -> (String, bool) {
        let mut asked = Vec::new();
        let mut run = |launch: &Launch| -> Ran<()> {
            asked.push(launch.args.last().unwrap().to_str().unwrap().to_owned());
            let (mut stdout, stderr) = (Kept::new(ROOM), Kept::new(ROOM));
            stdout.push(shown.as_bytes());
            Ok(Ok(Captured { stdout, stderr, end: Ended::Exited(0), turned_away: TurnedAway::default() }))
        };
        let lines = ["Closes #1".to_owned(), "Closes #2".to_owned()];
        let place = (Path::new("/"), "");
        let added = add_lines(&Home::unnamed(forge), ("x", &lines), place, &mut run).unwrap();
        (asked.split_off(1).concat(), added.unwrap_or(false))
    }

    #[test]
    fn a_description_keeps_its_words() {
        let both = "Closes #1\nCloses #2\n";
        for (forge, shown, body) in [
            (Forge::GitHub, r#"{"body":"Mine.\n"}"#, format!("Mine.\n\n{both}")),
            (Forge::GitHub, r#"{"body":"Closes #1\r\n"}"#, "Closes #1\n\nCloses #2\n".to_owned()),
            (Forge::GitHub, r#"{"body":"cut \ud83d"}"#, format!("cut \u{fffd}\n\n{both}")),
            (Forge::GitLab, r#"{"description":null}"#, both.to_owned()),
            (Forge::GitHub, r#"{"body":"Closes #1\nCloses #2"}"#, String::new()),
        ] {
            assert_eq!(added(forge, shown), (body, true), "{shown}");
        }
        for over in [r#"{"body":"Mine.","state":"MERGED"}"#, r#"{"body":"Mine.","state":"CLOSED"}"#] {
            assert_eq!(added(Forge::GitHub, over), (String::new(), false), "{over}");
        }
        for unreadable in ["<html>", "{}", ""] {
            assert_eq!(added(Forge::GitHub, unreadable), (String::new(), false), "{unreadable}");
        }
    }

    #[test]
    fn what_glab_says_about_a_merge_request() {
        let lab = |said: &[(i32, &str, &str)]| answers(Forge::GitLab, said);
        let address = "https://gitlab.com/a/b/-/merge_requests/7";
        assert_eq!(
            lab(&[(0, &format!("\n!7 t (x)\n {address}\n"), "Creating merge request for x into main\n")]),
            address
        );
        let there = "POST https://gitlab.com/api/v4/projects/1/merge_requests: 409 {message: [Another open merge request already \
                     exists for this source branch: !7]}";
        let view = format!(r#"{{"iid":7,"web_url":"{address}"}}"#);
        assert_eq!(lab(&[(1, "", there), (0, &view, "")]), address);
        assert_eq!(
            lab(&[(1, "", there), (0, "{}", "")]),
            "impossible: there is one already; see 'glab mr list'"
        );
        let login = "GET https://gitlab.com/api/v4/projects/a%2Fb: 401 {message: 401 Unauthorized}";
        let expected = "impossible: glab is not logged in; run 'glab auth login'; 'glab mr create --source-branch BRANCH' does it later";
        assert_eq!(lab(&[(1, "", login)]), expected);
    }
}
