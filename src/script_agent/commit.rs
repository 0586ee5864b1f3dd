//! Commits of the scripted agent: exactly the files it changed, whatever else is dirty or staged.

use super::Place;
use anyhow::{Context as _, bail};
use std::path::Path;
use std::process::{Command, Output};

/// A `*` in a file name is a star. (`check-ignore` does not know this option.)
const LITERAL: &str = "--literal-pathspecs";

/// Commits `paths` (relative to the root) and nothing else. Files that git ignores are left out; false when there was
/// nothing to commit.
pub(super) fn commit(place: &Place, paths: &[&Path], message: &str) -> anyhow::Result<bool> {
    let mut wanted = Vec::new();
    for path in paths {
        let path = path.to_str().with_context(|| format!("{}: not a UTF-8 file name", path.display()))?;
        if git(place, &["check-ignore", "--quiet", "--", path])?.status.code() != Some(0) {
            wanted.push(path);
        }
    }
    if wanted.is_empty() {
        return Ok(false);
    }
    run(place, &[&[LITERAL, "add", "--"], &wanted[..]].concat())?;
    if git(place, &[&[LITERAL, "diff", "--cached", "--quiet", "--"], &wanted[..]].concat())?.status.code()
        == Some(0)
    {
        return Ok(false);
    }
    let identity = identity(place)?;
    let mut arguments: Vec<&str> = identity.iter().flat_map(|setting| ["-c", *setting]).collect();
    arguments.extend([LITERAL, "commit", "--quiet", "--message", message, "--"]);
    run(place, &[&arguments[..], &wanted[..]].concat())?;
    Ok(true)
}

/// A name and an address for machines where nobody has told git who they are.
fn identity(place: &Place) -> anyhow::Result<Vec<&'static str>> {
    let mut settings = Vec::new();
    for (key, ours) in
        [("user.name", "user.name=Ralph's scripted agent"), ("user.email", "user.email=script@ralph.invalid")]
    {
        if !git(place, &["config", key])?.status.success() {
            settings.push(ours);
        }
    }
    Ok(settings)
}

fn run(place: &Place, arguments: &[&str]) -> anyhow::Result<()> {
    let output = git(place, arguments)?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    let reason = told.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    let verb = ["add", "commit"].into_iter().find(|verb| arguments.contains(verb)).unwrap_or("git");
    bail!("git {verb} failed: {}", reason.trim())
}

fn git(place: &Place, arguments: &[&str]) -> anyhow::Result<Output> {
    Command::new("git")
        .args(arguments)
        .current_dir(&place.root)
        .stdin(std::process::Stdio::null())
        .output()
        .context("cannot start git")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scratch, git};
    use super::*;

    #[test]
    fn only_the_named_files_are_committed() {
        let scratch = Scratch::new();
        for name in ["ours", "staged", "dirty", ".gitignore", "hidden"] {
            scratch.write(name, "hidden\n");
        }
        git(&scratch.place.root, &["add", "staged"]);
        let paths = ["ours", "hidden"].map(Path::new);
        assert!(commit(&scratch.place, &paths, "First\n\nBecause.").unwrap());
        assert_eq!(git(&scratch.place.root, &["ls-tree", "--name-only", "HEAD"]), "ours\n");
        let status = git(&scratch.place.root, &["status", "--porcelain"]);
        assert_eq!(status, "A  staged\n?? .gitignore\n?? dirty\n");
        assert!(!commit(&scratch.place, &paths, "Second").unwrap(), "nothing changed");
    }

    #[test]
    fn a_folder_without_git_is_told_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { root: folder.path().to_owned(), ..Scratch::new().place };
        place.write(Path::new("file"), "text").unwrap();
        let error = commit(&place, &[Path::new("file")], "Message").unwrap_err().to_string();
        assert!(error.starts_with("git add failed: fatal: not a git repository"), "{error}");
    }
}
