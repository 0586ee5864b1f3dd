//! Publishes a branch's commits: on the remote, and in a pull request.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::Facts;
use crate::engine::context::Context;
use crate::engine::fact::Fact;
use crate::engine::outcome::End;
use crate::engine::validation::Evidence;
use crate::git;
use crate::git::identity::CommitIdentity;
use crate::git::remote::Remote;
use crate::plan::Task;
use crate::process::capture::Captured;
use crate::process::launch::Launch;
use crate::process::supervised::StartError;
use crate::project::BRANCH_PLAN;
use crate::side_command;
use crate::source::pushing::{Unpublished, bounds, outcome, push_branch};
use crate::text::line;

/// The time limit for opening a pull request.
const PULL_REQUEST_LIMIT: Duration = Duration::from_mins(2);
/// The exit code of `gh` if the user is not logged in.
const GH_LOGIN: i32 = 4;

/// How to publish a branch's commits, and what was published.
#[derive(Debug)]
pub struct Publisher {
    /// The work tree.
    pub tree: PathBuf,
    /// The branch.
    pub branch: String,
    /// The commit that it starts from.
    pub base: String,
    /// The target branch of a pull request; `None` if the base is not a branch.
    pub base_branch: Option<String>,
    /// The remote; `None` if there is none.
    pub remote: Option<Remote>,
    /// The identity for pushing.
    pub identity: CommitIdentity,
    /// Whether to push at all.
    pub auto_push: bool,
    /// Whether to open a pull request.
    pub auto_pr: bool,
    /// Whether it is a protected branch, which is never pushed.
    pub is_protected: bool,
    /// The run mark of the loop.
    pub mark: String,
    /// What was published, and what was not.
    pub made: Made,
}

/// The results of a publisher.
#[derive(Debug, Default)]
pub struct Made {
    /// The commit that was last pushed.
    pushed: Option<String>,
    /// The address of the pull request.
    pub pull_request: Option<String>,
    /// What was not done and why, one line each.
    pub notes: Vec<String>,
}

impl Publisher {
    /// How many commits the branch is ahead of its base; `None` if git fails.
    #[must_use]
    pub fn commits(&self) -> Option<u64> {
        git::refs::ahead(&self.tree, &self.base, &self.branch_ref())
    }

    /// The address of the pull request, if there is one.
    #[must_use]
    pub fn pull_request(&self) -> Option<&str> {
        self.made.pull_request.as_deref()
    }

    fn branch_ref(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// Pushes new commits, if that is enabled and possible.
    pub(super) fn push(&mut self, context: &mut Context<'_>) -> Result<Result<(), Unpublished>, End> {
        let Some(remote) = self.remote.clone().filter(|_| self.auto_push && !self.is_protected) else {
            return Ok(Ok(()));
        };
        let head = git::refs::branch_commit(&self.tree, &self.branch);
        if head.is_some() && head == self.made.pushed {
            return Ok(Ok(()));
        }
        match self.commits() {
            Some(0) => return Ok(Ok(())),
            Some(_) => {}
            None => return Ok(Err(Unpublished::Wrong(self.uncountable()))),
        }
        let pushed = push_branch(&self.tree, &remote, &self.branch, &self.identity, context)?;
        if pushed.is_ok() {
            self.made.pushed = head;
        }
        Ok(pushed)
    }

    fn uncountable(&self) -> String {
        format!("git cannot tell what {} has ahead of {:.10}", self.branch, self.base)
    }

    /// Opens the pull request of a finished branch, if that is enabled and possible.
    pub(super) fn open_pull_request(
        &mut self,
        facts: &Facts,
        tasks: &[Task],
        proof: Option<&Evidence>,
        context: &mut Context<'_>,
    ) -> Result<Result<(), Unpublished>, End> {
        let wanted = match self.pull_request_wanted() {
            Ok(base) => base,
            Err(note) => {
                self.made.notes.extend(note);
                return Ok(Ok(()));
            }
        };
        // Agents have written in the plan, and a pull request may be public.
        let (mut title, mut body) = (facts.goal.clone(), body(facts, tasks, proof));
        context.clean(&mut title);
        context.clean(&mut body);
        let launch = self.gh(&wanted, &title, &body);
        let captured = side_command::run(&launch, bounds(PULL_REQUEST_LIMIT), context)?;
        match pull_request(captured) {
            Ok(address) => {
                context.tell(Fact::Published { message: format!("pull request: {address}").into() })?;
                self.made.pull_request = Some(address);
                Ok(Ok(()))
            }
            Err(Unpublished::Impossible(why)) => {
                self.made.notes.push(format!("no pull request: {why}"));
                Ok(Ok(()))
            }
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Notes the uncommitted changes of a finished branch.
    pub(super) fn note_uncommitted(&mut self) {
        if let Some(paths) = git::revert::uncommitted_paths(&self.tree, BRANCH_PLAN) {
            self.made.notes.push(format!("uncommitted changes are left in its work tree: {paths}"));
        }
    }

    /// The target branch of the pull request, or the reason for none, if it needs to be said.
    fn pull_request_wanted(&self) -> Result<String, Option<String>> {
        let no = |why: &str| Err(Some(why.to_owned()));
        if self.commits() == Some(0) {
            return no("no commit ahead of its base: nothing to push, no pull request");
        }
        if self.is_protected {
            return no("not pushed, no pull request: the branch is protected (git.protected_branches)");
        }
        if !self.auto_push {
            // With both disabled, the user knows the reason.
            return if self.auto_pr {
                no("not pushed, no pull request: git.auto_push is off")
            } else {
                Err(None)
            };
        }
        if self.remote.is_none() {
            return no("not pushed, no pull request: the repository has no remote");
        }
        if !self.auto_pr {
            return Err(None);
        }
        self.base_branch.clone().ok_or_else(|| {
            Some("no pull request: its base is no branch that it could be merged into".to_owned())
        })
    }

    fn gh(&self, base: &str, title: &str, body: &str) -> Launch {
        let args = ["pr", "create", "--base", base, "--head", &self.branch, "--title", title, "--body", body];
        // `gh` must not ask, advertise or colour.
        let env = [("GH_PROMPT_DISABLED", "1"), ("GH_NO_UPDATE_NOTIFIER", "1"), ("NO_COLOR", "1")];
        Launch {
            program: "gh".into(),
            args: args.into_iter().map(OsString::from).collect(),
            cwd: self.tree.clone(),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            mark: self.mark.clone(),
            ..Launch::default()
        }
    }
}

fn body(facts: &Facts, tasks: &[Task], proof: Option<&Evidence>) -> String {
    let mut body = format!("{}\n", facts.goal);
    if !tasks.is_empty() {
        body.push('\n');
    }
    for Task { text, ticked, .. } in tasks {
        let tick = if *ticked { 'x' } else { ' ' };
        let _ = writeln!(body, "- [{tick}] {text}"); // writing to a String cannot fail
    }
    if let Some(proof) = proof {
        let _ = write!(body, "\n## Proof\n\n{proof}\n");
    }
    body
}

/// The address of the pull request that `gh` has opened or found.
fn pull_request(captured: Result<Captured, StartError>) -> Result<String, Unpublished> {
    if let Err(StartError::Program { source, .. }) = &captured
        && source.kind() == std::io::ErrorKind::NotFound
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::capture::Ended;
    use crate::process::capture::Kept;
    use crate::source::pushing::ROOM;

    /// The result for this exit code and output of `gh`.
    fn answer(code: i32, stdout: &str, stderr: &str) -> String {
        let kept = |text: &str| {
            let mut kept = Kept::new(ROOM);
            kept.push(text.as_bytes());
            kept
        };
        let captured = Captured { stdout: kept(stdout), stderr: kept(stderr), end: Ended::Exited(code) };
        match pull_request(Ok(captured)) {
            Ok(address) => address,
            Err(Unpublished::Impossible(why)) => format!("impossible: {why}"),
            Err(Unpublished::Wrong(why)) => format!("wrong: {why}"),
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
