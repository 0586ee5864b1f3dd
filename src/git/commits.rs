//! Lists the commits between two commits.

use std::path::Path;

use chrono::{DateTime, FixedOffset};

use super::call::{LIMIT, run};
use super::range::of_stat;

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// Its time.
    pub at: DateTime<FixedOffset>,
    /// Its author's name.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
    /// How many files differ; 0 for a merge.
    pub files: u64,
    /// How many lines were added.
    pub insertions: u64,
    /// How many lines were deleted.
    pub deletions: u64,
}

/// Each field ends with a NUL, which no message can hold; the stat follows the last one.
const FORMAT: &str = "--format=%H%x00%cI%x00%an%x00%s%x00";
const FIELDS: usize = 4;

/// The newest `most` commits that `to` has and `from` has not, newest first; without `from`, of the whole history.
/// `None` if git fails.
#[must_use]
pub fn between(root: &Path, from: Option<&str>, to: &str, most: usize) -> Option<Vec<Commit>> {
    let range = from.map_or_else(|| to.to_owned(), |from| format!("{from}..{to}"));
    let most = format!("--max-count={most}");
    let fixed = ["--no-color", "--no-ext-diff", "--no-textconv", "--shortstat", "--diff-merges=off"];
    let args = ["log"].iter().chain(&fixed).copied().chain([FORMAT, &most, "--end-of-options", &range, "--"]);
    let text = run(root, &args.collect::<Vec<_>>(), LIMIT).ok()?;
    Some(read(&String::from_utf8_lossy(&text)))
}

fn read(text: &str) -> Vec<Commit> {
    let parts: Vec<&str> = text.split('\0').collect();
    let mut commits = Vec::new();
    for (place, fields) in parts.chunks_exact(FIELDS).enumerate() {
        // The text before a commit's id is the stat of the previous commit.
        let behind = parts.get((place + 1) * FIELDS).copied().unwrap_or_default();
        let stat = behind.lines().find(|line| line.starts_with(' ')).unwrap_or_default();
        let id = fields[0].lines().last().unwrap_or_default().to_owned();
        let Ok(at) = DateTime::parse_from_rfc3339(fields[1]) else { continue };
        let amount = of_stat(stat);
        commits.push(Commit {
            id,
            at,
            author: fields[2].to_owned(),
            subject: fields[3].to_owned(),
            files: amount.files,
            insertions: amount.insertions,
            deletions: amount.deletions,
        });
    }
    commits
}

#[cfg(test)]
mod tests {
    use super::super::tests::{git, repository};
    use super::*;

    fn commit(root: &Path, file: &str, text: &str, message: &str) {
        std::fs::write(root.join(file), text).unwrap();
        git(root, &["add", "."]);
        git(root, &["commit", "--quiet", "--allow-empty", "-m", message]);
    }

    #[test]
    fn each_commit_is_told_with_its_size() {
        let (_dir, root) = repository();
        assert_eq!(between(&root, None, "HEAD", 9), None, "there is nothing yet");
        commit(&root, "a", "1\n2\n", "first");
        let first = crate::git::head(&root);
        commit(&root, "a", "1\n2\n", "nothing new\n\n a body, 9 insertions(+)");
        commit(&root, "a", "1\n3\n4\n", "<b>\x1f\x1e third");
        let told = |from: Option<&str>, most| -> Vec<(String, u64, u64)> {
            let commits = between(&root, from, "HEAD", most).unwrap();
            commits.into_iter().map(|one| (one.subject, one.insertions, one.deletions)).collect()
        };
        let third = ("<b>\x1f\x1e third".to_owned(), 2, 1);
        let second = ("nothing new".to_owned(), 0, 0);
        assert_eq!(told(first.as_deref(), 9), [third.clone(), second.clone()]);
        assert_eq!(told(None, 9), [third.clone(), second, ("first".to_owned(), 2, 0)]);
        assert_eq!(told(None, 1), [third]);
        let all = between(&root, None, "HEAD", 9).unwrap();
        assert_eq!(Some(&all[2].id), first.as_ref());
        assert_eq!(between(&root, Some("0123456789012345678901234567890123456789"), "HEAD", 9), None);
    }
}
