//! What agents have learned about the project: one file each, with a title and tags, to be committed with the code.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use crate::files::atomic;
use crate::files::{FileError, own};
use crate::prompt::front_matter;
use crate::prompt::quote::{CHARS_PER_TOKEN, NOT_INSTRUCTIONS, cut, quoted, quoted_line};

/// Larger files are not knowledge, in bytes.
const LARGEST: u64 = 64 << 10;
/// Longer texts of an agent are cut, in words.
const MOST_WORDS: usize = 500;
/// The limit in characters, far below that of a file.
const LONGEST_BODY: usize = 8000;
const MOST_TAGS: usize = 20;
/// The most characters of knowledge in a prompt.
const ROOM: usize = 2000 * CHARS_PER_TOKEN;
const LINE: usize = 120;

/// A piece of knowledge. Its JSON is stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knowledge {
    /// Its file name without `.md`.
    pub slug: String,
    /// One line.
    pub title: String,
    /// Its tags in lower case.
    pub tags: Vec<String>,
    /// The feature that it was found in.
    pub feature: Option<String>,
    /// When it was added.
    pub created_at: DateTime<Utc>,
    /// Markdown.
    pub body: String,
}

/// The subject of a search.
#[derive(Debug, Clone, Copy, Default)]
pub struct Topic<'a> {
    /// The task.
    pub text: &'a str,
    /// The name of the feature.
    pub feature: Option<&'a str>,
    /// The recently changed files.
    pub files: &'a [String],
}

#[derive(Deserialize)]
struct Front {
    title: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    feature: Option<String>,
    #[serde(default)]
    created_at: Option<DateTime<Utc>>,
}

impl Knowledge {
    /// An agent's finding within the limits. It gets its file name when it is kept. `None` without a title or text.
    #[must_use]
    pub fn new(
        title: &str,
        tags: &str,
        feature: Option<&str>,
        body: &str,
        now: DateTime<Utc>,
    ) -> Option<Self> {
        let title = quoted_line(title, LINE);
        let words: Vec<&str> = body.split_inclusive(char::is_whitespace).collect();
        let mut counted = words.iter().enumerate().filter(|(_, piece)| !piece.trim().is_empty());
        let body = match counted.nth(MOST_WORDS) {
            Some((at, _)) => format!("{} …", words[..at].concat().trim()),
            None => body.trim().to_owned(),
        };
        // Some scripts have no blanks.
        let body = cut(&body, LONGEST_BODY);
        let known = !title.is_empty() && !body.is_empty();
        known.then(|| Self {
            slug: String::new(),
            title,
            tags: tags_of(tags.split(',')),
            feature: feature.map(str::to_owned),
            created_at: now,
            body,
        })
    }

    fn parse(slug: &str, text: &str) -> Result<Self, String> {
        if !text.starts_with("---") {
            return Err("it has no front matter".to_owned());
        }
        let (yaml, body) = front_matter::split(text).map_err(|problem| problem.to_string())?;
        let front: Front = serde_saphyr::from_str(yaml)
            .map_err(|error| front_matter::yaml_problem(yaml, &error).to_string())?;
        Ok(Self {
            slug: slug.to_owned(),
            title: front.title,
            tags: tags_of(front.tags.iter().map(String::as_str)),
            feature: front.feature,
            created_at: front.created_at.unwrap_or_default(),
            body: body.trim().to_owned(),
        })
    }

    /// The file's content.
    fn text(&self) -> String {
        // A JSON string is a YAML string.
        let string = |text: &str| serde_json::Value::from(text).to_string();
        let feature =
            self.feature.as_ref().map_or_else(String::new, |name| format!("feature: {}\n", string(name)));
        let created = self.created_at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let tags: Vec<String> = self.tags.iter().map(|tag| string(tag)).collect();
        format!(
            "---\ntitle: {}\ntags: [{}]\n{feature}created_at: {created}\n---\n\n{}\n",
            string(&self.title),
            tags.join(", "),
            self.body
        )
    }

    /// Whether both are about the same subject.
    fn is_about_the_same(&self, other: &Self) -> bool {
        let (a, b) = (self.title.to_lowercase(), other.title.to_lowercase());
        let common = self.tags.iter().filter(|tag| other.tags.contains(tag)).count();
        let many = self.tags.len().max(other.tags.len());
        a == b || common * 2 > many && (a.contains(&b) || b.contains(&a))
    }

    fn score(&self, topic: &Topic<'_>) -> usize {
        let words = words(topic.text);
        let pieces: BTreeSet<String> = topic.files.iter().flat_map(|file| path_pieces(file)).collect();
        let score = |tag: &String| {
            let is_feature = topic.feature.is_some_and(|feature| feature.to_lowercase() == *tag);
            2 * usize::from(words.contains(tag))
                + 2 * usize::from(is_feature)
                + usize::from(pieces.contains(tag))
        };
        self.tags.iter().map(score).sum()
    }
}

/// Tags in lower case, each once.
fn tags_of<'a>(tags: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for tag in tags {
        let tag = quoted_line(tag, LINE).to_lowercase();
        if !tag.is_empty() && !all.contains(&tag) && all.len() < MOST_TAGS {
            all.push(tag);
        }
    }
    all
}

/// The words of a text in lower case, including the parts of hyphenated ones.
fn words(text: &str) -> BTreeSet<String> {
    let text = text.to_lowercase();
    let joined = text.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
    let single = text.split(|c: char| !c.is_alphanumeric());
    joined.chain(single).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn path_pieces(path: &str) -> Vec<String> {
    let pieces = path.split(|c: char| !c.is_alphanumeric()).filter(|piece| piece.chars().count() > 2);
    pieces.map(str::to_lowercase).collect()
}

/// All knowledge in a folder, by file name, and one line for each unreadable file.
#[must_use]
pub fn read(folder: &Path) -> (Vec<Knowledge>, Vec<String>) {
    let passed_over = |path: &Path, reason: &dyn std::fmt::Display| {
        format!("knowledge, {}: {reason}: it is passed over", path.display())
    };
    let mut paths = match own::entries(folder) {
        Ok(paths) => paths,
        Err(error) => return (Vec::new(), vec![passed_over(folder, &error)]),
    };
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    let (mut all, mut notices) = (Vec::new(), Vec::new());
    for path in paths {
        let read = own::read(&path, LARGEST).map_err(|error| error.to_string());
        let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is no UTF-8".to_owned()));
        let slug = path.file_stem().unwrap_or_default().to_string_lossy();
        match text.and_then(|text| Knowledge::parse(&slug, &text)) {
            Ok(knowledge) => all.push(knowledge),
            Err(reason) => notices.push(passed_over(&path, &reason)),
        }
    }
    (all, notices)
}

/// The knowledge that fits a topic, the best first.
#[must_use]
pub fn matching<'a>(all: &'a [Knowledge], topic: &Topic<'_>) -> Vec<&'a Knowledge> {
    let mut found: Vec<(usize, &Knowledge)> = all.iter().map(|one| (one.score(topic), one)).collect();
    found.retain(|(score, _)| *score > 0);
    found.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| other.created_at.cmp(&one.created_at)));
    found.into_iter().map(|(_, one)| one).collect()
}

/// Knowledge that has one of these words in its title, tags or body.
#[must_use]
pub fn search<'a>(all: &'a [Knowledge], words: &[String]) -> Vec<&'a Knowledge> {
    let has = |one: &Knowledge, word: &String| {
        let text = [&one.title, "\n", &one.tags.join("\n"), "\n", &one.body].concat().to_lowercase();
        text.contains(&word.to_lowercase())
    };
    all.iter().filter(|one| words.iter().all(|word| has(one, word))).collect()
}

/// Writes a finding, replacing one about the same subject, whose tags are merged. Returns the file.
///
/// # Errors
/// If it cannot be written.
pub fn keep(folder: &Path, new: Knowledge) -> Result<PathBuf, FileError> {
    // The target of a link is not ours.
    own::entries(folder).map_err(FileError::at(folder))?;
    fs::create_dir_all(folder).map_err(FileError::at(folder))?;
    let known = read(folder).0.into_iter().find(|known| known.is_about_the_same(&new));
    let (slug, tags) = match known {
        Some(known) => (known.slug, known.tags),
        None => (free_slug(folder, &new.title).map_err(FileError::at(folder))?, Vec::new()),
    };
    let tags = tags_of(tags.iter().chain(&new.tags).map(String::as_str));
    let path = folder.join(format!("{slug}.md"));
    let new = Knowledge { slug, tags, ..new };
    atomic::write_theirs(&path, new.text().as_bytes())?;
    Ok(path)
}

/// A free file name for a title; a dangling link also counts as taken.
fn free_slug(folder: &Path, title: &str) -> io::Result<String> {
    /// The longest file name that every file system accepts, in bytes.
    const LONGEST: usize = 80;
    let words: Vec<String> = title
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let slug = words.join("-");
    let slug = slug[..slug.floor_char_boundary(LONGEST)].trim_end_matches('-');
    let slug = if slug.is_empty() { "note" } else { slug };
    for number in 1..10_000 {
        let slug = if number == 1 { slug.to_owned() } else { format!("{slug}-{number}") };
        match folder.join(format!("{slug}.md")).symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(slug),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    Err(io::Error::other(format!("too many files are called {slug}")))
}

/// Knowledge as a section of a prompt, the most important first; what exceeds the limit is left out. Empty without
/// knowledge.
#[must_use]
pub fn rendered(all: &[&Knowledge]) -> String {
    let mut text = format!("## Project Knowledge\n\n{NOT_INSTRUCTIONS}\n");
    let (mut room, mut any) = (ROOM, false);
    for one in all {
        let tags = match one.tags.join(", ") {
            tags if tags.is_empty() => tags,
            tags => format!("_Tags: {}_\n\n", quoted_line(&tags, 2 * LINE)),
        };
        let head = format!("\n### {}\n\n{tags}", quoted_line(&one.title, LINE));
        let left = room.saturating_sub(head.chars().count());
        // Quoting makes it longer.
        let body = quoted(&one.body, left / 2);
        if left < 2 * LINE {
            break;
        }
        text.push_str(&head);
        text.push_str(&body);
        text.push('\n');
        room = left.saturating_sub(body.chars().count());
        any = true;
    }
    if any { text } else { String::new() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn knowledge(title: &str, tags: &str, body: &str) -> Knowledge {
        Knowledge::new(title, tags, Some("parser"), body, DateTime::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn what_is_kept_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/knowledge");
        assert_eq!(read(&folder), (Vec::new(), Vec::new()));
        let odd = knowledge("The \"build\": #1 ", "Build, CI,build", "- a: b\n---\nmore\n");
        let path = keep(&folder, odd.clone()).unwrap();
        assert_eq!(path, folder.join("the-build-1.md"));
        let (all, notices) = read(&folder);
        assert_eq!(all, [Knowledge { slug: "the-build-1".into(), ..odd }]);
        assert_eq!((all[0].tags.join(" "), notices.len()), ("build ci".to_owned(), 0));
        keep(&folder, knowledge("构建", "构建", "用 cargo")).unwrap();
        assert_eq!(read(&folder).0[1].slug, "构建");
    }

    #[test]
    fn the_same_is_replaced_and_tags_are_merged() {
        let dir = tempfile::tempdir().unwrap();
        let slugs = || read(dir.path()).0.iter().map(|one| one.slug.clone()).collect::<Vec<_>>();
        keep(dir.path(), knowledge("Running tests", "tests,ci", "old")).unwrap();
        keep(dir.path(), knowledge("RUNNING TESTS", "speed", "new")).unwrap();
        assert_eq!(slugs(), ["running-tests"]);
        let one = read(dir.path()).0.remove(0);
        assert_eq!((one.body.as_str(), one.tags.join(" ")), ("new", "tests ci speed".to_owned()));
        keep(dir.path(), knowledge("Running tests fast", "tests,ci", "newest")).unwrap();
        assert_eq!(slugs(), ["running-tests"]);
        keep(dir.path(), knowledge("Running tests twice", "other", "apart")).unwrap();
        keep(dir.path(), knowledge("Running tests, twice!", "another", "apart, too")).unwrap();
        assert_eq!(slugs(), ["running-tests", "running-tests-twice", "running-tests-twice-2"]);
    }

    #[test]
    fn what_is_no_knowledge_is_passed_over_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("secret"), "mine").unwrap();
        symlink(at("secret"), at("link.md")).unwrap();
        fs::write(at("bare.md"), "no front matter").unwrap();
        fs::write(at("large.md"), vec![b'x'; 70_000]).unwrap();
        fs::write(at("bytes.md"), b"---\ntitle: \xff\n---\n").unwrap();
        fs::create_dir(at("folder.md")).unwrap();
        let (all, notices) = read(dir.path());
        assert_eq!((all.len(), notices.len()), (0, 5), "{notices:?}");
        assert!(notices.iter().all(|notice| !notice.contains('\n') && notice.starts_with("knowledge, ")));
        assert_eq!(keep(dir.path(), knowledge("Link", "x", "y")).unwrap(), at("link-2.md"));
        assert_eq!(fs::read_to_string(at("secret")).unwrap(), "mine");
        assert!(Knowledge::new(" \n", "", None, "x", DateTime::UNIX_EPOCH).is_none());
        assert!(Knowledge::new("x", "", None, " \n", DateTime::UNIX_EPOCH).is_none());
    }

    #[test]
    fn what_fits_comes_first_and_the_rest_not_at_all() {
        let all = [
            knowledge("one", "cargo-test,unrelated", "1"),
            knowledge("two", "parser,header", "2"),
            knowledge("three", "lexer", "3"),
            knowledge("none", "weather", "4"),
        ];
        let files = ["src/lexer/mod.rs".to_owned()];
        let topic =
            Topic { text: "Parse the Header: run cargo-test", feature: Some("parser"), files: &files };
        let titles: Vec<&str> = matching(&all, &topic).iter().map(|one| one.title.as_str()).collect();
        assert_eq!(titles, ["two", "one", "three"]);
        assert_eq!(search(&all, &["LEX".to_owned()]).len(), 1);
        assert_eq!(matching(&all, &Topic::default()).len(), 0);
    }

    #[test]
    fn long_words_are_cut() {
        let long = knowledge("Long", "a", &"wort ".repeat(600));
        assert_eq!(long.body.split_whitespace().count(), MOST_WORDS + 1);
        let section = rendered(&vec![&long; 40]);
        assert!(section.chars().count() < ROOM + 200 && section.contains("### Long\n\n_Tags: a_\n\n> wort"));
        assert_eq!(rendered(&[]), "");
    }
}
