//! Pushes and pull requests: their command lines, and what became of them.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use super::remote::why_refused;
use crate::process::OUT_OF_SIGHT;
use crate::process::capture::{Captured, Ended};
use crate::process::launch::Launch;
use crate::process::supervised::StartError;
use crate::text::{duration, line};

/// The time limit of a push.
pub(crate) const PUSH_LIMIT: Duration = Duration::from_mins(5);
/// The time limit for opening a pull request.
pub(crate) const PULL_REQUEST_LIMIT: Duration = Duration::from_mins(2);
/// How many bytes of each output of a program are kept.
pub(crate) const ROOM: usize = 64 * 1024;
/// The exit code of `gh` if the user is not logged in.
const GH_LOGIN: i32 = 4;

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

/// A pull request to open.
pub(crate) struct Request<'a> {
    /// The branch that it is to be merged into.
    pub(crate) base: &'a str,
    /// The branch with the work.
    pub(crate) head: &'a str,
    pub(crate) title: &'a str,
    pub(crate) body: &'a str,
}

impl Request<'_> {
    /// The command that opens it from the work tree `tree`, with the run mark of a loop.
    pub(crate) fn call(&self, tree: &Path, mark: &str) -> Launch {
        let Self { base, head, title, body } = self;
        let args = ["pr", "create", "--base", base, "--head", head, "--title", title, "--body", body];
        // `gh` must not ask, advertise or colour.
        let env = [("GH_PROMPT_DISABLED", "1"), ("GH_NO_UPDATE_NOTIFIER", "1"), ("NO_COLOR", "1")];
        Launch {
            program: "gh".into(),
            args: args.into_iter().map(OsString::from).collect(),
            cwd: tree.to_owned(),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            mark: mark.to_owned(),
            ..Launch::default()
        }
    }
}

/// The address of the pull request that `gh` has opened or found.
pub(crate) fn opened(captured: Result<Captured, StartError>) -> Result<String, Unpublished> {
    if let Err(StartError::Program { source, .. }) = &captured
        && source.kind() == ErrorKind::NotFound
    {
        let why = "gh is not installed (https://cli.github.com); 'gh pr create --head BRANCH' does it later";
        return Err(Unpublished::Impossible(why.to_owned()));
    }
    let (code, stdout, stderr) = outcome(captured, PULL_REQUEST_LIMIT)?;
    let said = format!("{stdout}\n{stderr}");
    let address =
        said.split_whitespace().rfind(|word| word.starts_with("https://") || word.starts_with("http://"));
    match address {
        Some(address) if code == 0 || said.contains("already exists") => return Ok(address.to_owned()),
        None if code == 0 => {
            return Err(Unpublished::Impossible("gh printed no address; see 'gh pr list'".to_owned()));
        }
        _ => {}
    }
    let line = line::first(&stderr).or_else(|| line::first(&stdout));
    let line = line.map_or_else(|| format!("gh ended with exit code {code}"), |line| format!("gh: {line}"));
    if code == GH_LOGIN || said.contains("gh auth login") {
        Err(Unpublished::Impossible(
            "gh is not logged in; run 'gh auth login', then 'gh pr create --head BRANCH'".to_owned(),
        ))
    } else if said.contains("known GitHub host") || said.contains("no git remotes") {
        Err(Unpublished::Impossible(line))
    } else if said.contains("Base ref must be a branch") {
        Err(Unpublished::Impossible("the branch that it starts from is not on the remote".to_owned()))
    } else {
        Err(Unpublished::Wrong(line))
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
    use crate::process::capture::Kept;
    use crate::process::walls::TurnedAway;

    /// The result for this exit code and output of `gh`.
    fn answer(code: i32, stdout: &str, stderr: &str) -> String {
        let kept = |text: &str| {
            let mut kept = Kept::new(ROOM);
            kept.push(text.as_bytes());
            kept
        };
        let (stdout, stderr, end) = (kept(stdout), kept(stderr), Ended::Exited(code));
        let captured = Captured { stdout, stderr, end, turned_away: TurnedAway::default() };
        match opened(Ok(captured)) {
            Ok(address) => address,
            Err(Unpublished::Impossible(why)) => format!("impossible: {why}"),
            Err(Unpublished::Wrong(why)) => format!("wrong: {why}"),
            Err(Unpublished::Refused(why) | Unpublished::Behind(why)) => format!("refused: {why}"),
            Err(Unpublished::Cut) => "cut".to_owned(),
        }
    }

    #[test]
    fn what_gh_says_about_a_pull_request() {
        let address = "https://github.com/a/b/pull/7";
        let found = "a pull request for branch \"x\" into branch \"main\" already exists:\n";
        assert_eq!(answer(0, &format!("{address}\n"), "Creating pull request …\n"), address);
        assert_eq!(answer(1, "", &format!("{found}{address}\n")), address);
        assert!(answer(0, "done", "").starts_with("impossible: gh printed no address"));
        let login = "To get started with GitHub CLI, please run:  gh auth login\n";
        for code in [1, GH_LOGIN] {
            assert!(answer(code, "", login).starts_with("impossible: gh is not logged in"));
        }
        let host = "none of the git remotes configured for this repository point to a known GitHub host.";
        assert_eq!(answer(1, "", host), format!("impossible: gh: {host}"));
        let broken = "GraphQL: Something went wrong, see https://github.com/status";
        assert_eq!(answer(1, "", broken), format!("wrong: gh: {broken}"));
        assert_eq!(answer(3, "", ""), "wrong: gh ended with exit code 3");
    }
}
