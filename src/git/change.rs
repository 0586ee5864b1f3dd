//! Calls of git that change a repository.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{REPOSITORY_VARIABLES, output_within};

/// The longest that one of them may take: hooks run, and files are written.
pub(super) const CHANGE_LIMIT: Duration = Duration::from_mins(5);

/// Runs a git command that changes the repository, without an editor and without a question.
pub(super) fn change(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(["-c", "core.fsmonitor=false"]).args(arguments);
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_EDITOR", "true").env("LC_ALL", "C");
    for name in REPOSITORY_VARIABLES {
        command.env_remove(name);
    }
    let output = output_within(&mut command, CHANGE_LIMIT).map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("hint:"));
    let line = lines.clone().find(|line| line.contains("error:") || line.contains("fatal:")).or(lines.next());
    Err(line.unwrap_or("no reason given").trim_start_matches("error: ").to_owned())
}
