//! Saving what only one work tree knows under `refs/ralph/keep/`, before it is removed.

use std::collections::BTreeSet;

use std::fs::{self, File};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use chrono::Local;
use tempfile::TempDir;

use super::change::CHANGE_LIMIT;
use super::keep::{PLAN, tagged};
use super::remove::RemoveError;
use super::{GitError, LIMIT, REPOSITORY_VARIABLES, answer, output_of, run};

/// How many commits are asked about at once: all of them have to fit on a command line.
const AT_ONCE: usize = 1000;
/// Variables that change what a path on git's command line means, or when a commit was made.
const OTHER_VARIABLES: [&str; 6] = [
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
];
/// No hook has a say here, and what is saved is on disk before anything is removed.
const CONFIG: [&str; 12] = [
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.sparseCheckout=false",
    "-c",
    "core.splitIndex=false",
    "-c",
    "core.fsync=committed",
    "-c",
    "core.fsyncMethod=batch",
];

/// Something that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The ref that keeps it.
    pub reference: String,
    /// What it is.
    pub what: What,
}

/// What was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A commit that nothing else leads to.
    Commit {
        /// Its full id.
        id: String,
        /// The first line of its message.
        subject: String,
    },
    /// What was not committed, as a commit on top of HEAD.
    Files {
        /// What was staged differs from the files: it is the commit's second parent.
        is_staged_apart: bool,
    },
}

/// The newest of the commits that only the work tree with the git folder `git_dir` knows: its HEAD, the HEADs it had,
/// and what else git notes there. Whatever a ref or a reflog of the rest of the repository leads to is not among them.
pub(super) fn own_commits(root: &Path, git_dir: &Path) -> Result<Vec<String>, RemoveError> {
    let mut ids = BTreeSet::new();
    collect_ids(git_dir, &mut ids).map_err(|reason| RemoveError::Io { path: git_dir.to_owned(), reason })?;
    if git_dir.join("reftable").exists() {
        // No plain files then. Refs that stay do no harm here.
        let git_dir = format!("--git-dir={}", git_dir.display());
        let refs = ["for-each-ref", "--include-root-refs", "--format=%(objectname)"];
        let log = ["log", "--walk-reflogs", "--no-show-signature", "--format=%H", "HEAD"];
        for command in [&refs[..], &log] {
            let output = run(root, &[&[git_dir.as_str()], command].concat(), LIMIT)?;
            ids.extend(String::from_utf8_lossy(&output).lines().map(str::to_owned));
        }
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let (mut found, mut parents) = (BTreeSet::new(), BTreeSet::new());
    for some in ids.chunks(AT_ONCE) {
        // What is no commit, or not there any more, is passed over. Other work trees may be next to go.
        let begin = ["rev-list", "--parents", "--ignore-missing", "--single-worktree"];
        let arguments = [&begin, some, &["--not", "--all", "--reflog"]].concat();
        let output = run(root, &arguments, CHANGE_LIMIT)?;
        for line in String::from_utf8_lossy(&output).lines() {
            let mut words = line.split(' ').map(str::to_owned);
            found.extend(words.next());
            parents.extend(words);
        }
    }
    Ok(found.difference(&parents).cloned().collect())
}

/// Every word in git's files below `folder` that may be the id of an object.
fn collect_ids(folder: &Path, ids: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let name = name.to_string_lossy();
        // What was fetched is not this tree's work. Submodules have repositories of their own.
        if name.starts_with("index") || ["FETCH_HEAD", "modules", "reftable"].contains(&name.as_ref()) {
            continue;
        }
        if entry.symlink_metadata()?.is_dir() {
            collect_ids(&entry, ids)?;
        } else if entry.is_file() {
            let content = fs::read(&entry)?;
            let words = content.split(|byte| !byte.is_ascii_hexdigit());
            let words = words.filter(|word| matches!(word.len(), 40 | 64) && word.iter().any(|&b| b != b'0'));
            ids.extend(words.map(|word| String::from_utf8_lossy(word).into_owned()));
        }
    }
    Ok(())
}

/// Makes a ref that keeps the commit `id`; `name` says whose it was.
pub(super) fn keep(root: &Path, name: &str, id: &str, what: What) -> Result<Saved, GitError> {
    let folder = format!("refs/ralph/keep/{}", ref_name(name));
    let stamp = format!("{folder}/{}", Local::now().format("%Y%m%d-%H%M%S"));
    let output = run(root, &["for-each-ref", "--format=%(refname)", &folder], LIMIT)?;
    let taken = String::from_utf8_lossy(&output);
    let mut reference = stamp.clone();
    let mut number = 1;
    while taken.lines().any(|name| name == reference) {
        number += 1;
        reference = format!("{stamp}-{number}");
    }
    // The last word: it must not exist.
    write(root, &["update-ref", "-m", "ralph clean", &reference, id, ""], None, None)?;
    Ok(Saved { reference, what })
}

/// A name that can stand in a ref. A branch's can; a folder's may not.
fn ref_name(name: &str) -> String {
    let is_fine = |character: char| character.is_alphanumeric() || "/_-".contains(character);
    let is_branch = !name.contains("..")
        && name
            .split('/')
            .all(|part| !part.starts_with(['.', '-']) && !part.ends_with('.') && !part.ends_with(".lock"))
        && name.chars().all(|character| is_fine(character) || ".+=#%,".contains(character));
    if is_branch {
        return name.to_owned();
    }
    name.chars().map(|character| if is_fine(character) { character } else { '-' }).collect()
}

/// The first line of a commit's message.
pub(super) fn subject(root: &Path, id: &str) -> Result<String, GitError> {
    let output = run(root, &["log", "-1", "--no-show-signature", "--format=%s", id], LIMIT)?;
    Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
}

/// What is not committed in a work tree, as objects of git: made through an index of our own, so that nothing of the
/// tree's changes.
pub(super) struct Uncommitted<'a> {
    path: &'a Path,
    git_dir: &'a Path,
    /// Our indexes; in the repository, so that no other file system gets in the way.
    folder: TempDir,
    trees: Trees,
}

/// The ids of three trees, and of the commit they belong to.
#[derive(Debug, PartialEq, Eq)]
struct Trees {
    head: Option<String>,
    committed: String,
    staged: String,
    files: String,
}

impl<'a> Uncommitted<'a> {
    /// Reads everything that git would see but the plan's copy, also files that it was told not to look at.
    pub(super) fn read(path: &'a Path, git_dir: &'a Path) -> Result<Self, RemoveError> {
        let folder = tempfile::Builder::new().prefix("index-ralph-").tempdir_in(git_dir);
        let folder = folder.map_err(|reason| RemoveError::Io { path: git_dir.to_owned(), reason })?;
        let none = String::new;
        let trees = Trees { head: None, committed: none(), staged: none(), files: none() };
        let mut uncommitted = Self { path, git_dir, folder, trees };
        uncommitted.trees = uncommitted.look(true)?;
        Ok(uncommitted)
    }

    /// Whether it is what it was when it was read.
    pub(super) fn is_still_so(&self) -> Result<bool, RemoveError> {
        Ok(self.look(false)? == self.trees)
    }

    fn look(&self, is_first: bool) -> Result<Trees, RemoveError> {
        let head = super::head(self.path);
        let staged = self.staged()?;
        let index = self.folder.path().join("index-files");
        let git = |arguments: &[&str], input: Option<&[u8]>| write(self.path, arguments, Some(&index), input);
        let committed = match &head {
            Some(head) => text(run(self.path, &["rev-parse", &format!("{head}^{{tree}}")], LIMIT)?),
            None => text(git(&["hash-object", "-w", "-t", "tree", "--stdin"], Some(b""))?),
        };
        if is_first {
            git(&["read-tree", &staged], None)?;
            // Files that a sparse checkout leaves out are not deleted.
            let is_left_out = |(tag, name): &(u8, Vec<u8>)| {
                let path = self.path.join(std::ffi::OsStr::from_bytes(name));
                tag.eq_ignore_ascii_case(&b'S') && path.symlink_metadata().is_err()
            };
            let left_out: Vec<Vec<u8>> =
                tagged(self.path)?.into_iter().filter(is_left_out).map(|(_, name)| name).collect();
            if !left_out.is_empty() {
                git(&["update-index", "-z", "--skip-worktree", "--stdin"], Some(&left_out.join(&0)))?;
            }
        }
        git(&["add", "--all", "--", ".", &format!(":(exclude,top){PLAN}")], None)?;
        let files = text(git(&["write-tree"], None)?);
        Ok(Trees { head, committed, staged, files })
    }

    /// The tree of the index. Of a file with a conflict, all versions are in it under names of their own.
    fn staged(&self) -> Result<String, RemoveError> {
        let index = self.folder.path().join("index-staged");
        match fs::copy(self.git_dir.join("index"), &index) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => {
                result.map_err(|reason| RemoveError::Io { path: self.git_dir.join("index"), reason })?;
            }
        }
        let git = |arguments: &[&str], input: Option<&[u8]>| write(self.path, arguments, Some(&index), input);
        let unmerged = git(&["ls-files", "--unmerged", "-z"], None)?;
        if !unmerged.is_empty() {
            git(&["update-index", "-z", "--index-info"], Some(&resolved(&unmerged)))?;
        }
        Ok(text(git(&["write-tree"], None)?))
    }

    /// Makes the commit; `None` where everything is committed.
    pub(super) fn commit(&self) -> Result<Option<(String, What)>, GitError> {
        let Trees { head, committed, staged, files } = &self.trees;
        if files == committed && staged == committed {
            return Ok(None);
        }
        let of = self.path.file_name().unwrap_or_default().to_string_lossy();
        let is_staged_apart = staged != committed && staged != files;
        let mut parents: Vec<String> = head.iter().cloned().collect();
        if is_staged_apart {
            parents.push(self.commit_tree(staged, &parents, &format!("ralph: what was staged in {of}"))?);
        }
        let message = format!("ralph: what was not committed in {of}");
        Ok(Some((self.commit_tree(files, &parents, &message)?, What::Files { is_staged_apart })))
    }

    fn commit_tree(&self, tree: &str, parents: &[String], message: &str) -> Result<String, GitError> {
        let parents = parents.iter().flat_map(|parent| ["-p", parent]);
        let arguments: Vec<&str> = ["commit-tree", "--no-gpg-sign", "-m", message]
            .into_iter()
            .chain(parents)
            .chain([tree])
            .collect();
        Ok(text(write(self.path, &arguments, None, None)?))
    }
}

/// Input for `update-index --index-info` that resolves every conflict of `ls-files --unmerged -z`: each version gets a
/// name of its own, and the file is our version, so that git knows it as tracked.
fn resolved(unmerged: &[u8]) -> Vec<u8> {
    let mut input = Vec::new();
    let mut previous: &[u8] = b"";
    for entry in unmerged.split(|&byte| byte == 0) {
        let Some(tab) = entry.iter().position(|&byte| byte == b'\t') else { continue };
        let (about, name) = (String::from_utf8_lossy(&entry[..tab]), &entry[tab + 1..]);
        let words: Vec<&str> = about.split(' ').collect();
        let [mode, id, stage] = words[..] else { continue };
        let mut line = |mode: &str, id: &str, suffix: &str| {
            input.extend_from_slice(format!("{mode} {id} 0\t").as_bytes());
            input.extend_from_slice(name);
            input.extend_from_slice(suffix.as_bytes());
            input.push(0);
        };
        if name != previous {
            line("0", &"0".repeat(id.len()), "");
        }
        if name != previous || stage == "2" {
            line(mode, id, "");
        }
        line(
            mode,
            id,
            match stage {
                "1" => "~base",
                "2" => "~ours",
                _ => "~theirs",
            },
        );
        previous = name;
    }
    input
}

fn text(output: Vec<u8>) -> String {
    String::from_utf8_lossy(&output).trim_end().to_owned()
}

/// Runs a git command that adds to the repository, with another index where one is given; answers what it printed.
fn write(
    path: &Path,
    arguments: &[&str],
    index: Option<&Path>,
    input: Option<&[u8]>,
) -> Result<Vec<u8>, GitError> {
    let mut command = Command::new("git");
    command.arg("-C").arg(path).args(CONFIG).args(arguments);
    for name in REPOSITORY_VARIABLES.iter().chain(&OTHER_VARIABLES) {
        command.env_remove(name);
    }
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "ralph").env(format!("GIT_{role}_EMAIL"), "ralph@localhost");
    }
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    let output =
        stdin_of(input.unwrap_or_default()).and_then(|stdin| output_of(command.stdin(stdin), CHANGE_LIMIT));
    answer(output, path, arguments)
}

/// A file and not a pipe: nobody has to write while git reads.
fn stdin_of(input: &[u8]) -> io::Result<Stdio> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file: File = tempfile::tempfile()?;
    file.write_all(input)?;
    file.rewind()?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches_stay_and_names_of_folders_become_fit() {
        for name in ["main", "feature/x", "fix-1.2", "ü"] {
            assert_eq!(ref_name(name), name);
        }
        for (name, fit) in [
            ("a b", "a-b"),
            ("x.lock", "x-lock"),
            ("..", "--"),
            ("a/.b", "a/-b"),
            ("a~1^:?*[\\", "a-1------"),
        ] {
            assert_eq!(ref_name(name), fit, "{name}");
        }
    }

    #[test]
    fn a_conflict_becomes_files() {
        let ids = ["1", "2", "3"].map(|digit| digit.repeat(40));
        let unmerged: String = (0..3).map(|at| format!("100644 {} {}\ta b\0", ids[at], at + 1)).collect();
        let input = String::from_utf8(resolved(unmerged.as_bytes())).unwrap();
        let lines: Vec<&str> = input.split_terminator('\0').collect();
        assert_eq!(lines[0], format!("0 {} 0\ta b", "0".repeat(40)));
        let last = lines.iter().rfind(|line| line.ends_with("\ta b")).unwrap();
        assert!(last.contains(&ids[1]), "ours is the file: {input}");
        for (id, name) in ids.iter().zip(["base", "ours", "theirs"]) {
            assert!(lines.contains(&format!("100644 {id} 0\ta b~{name}").as_str()), "{input}");
        }
    }
}
