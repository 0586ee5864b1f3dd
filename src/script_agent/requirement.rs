//! Requirements: the bullets of the spec files.

use super::Place;
use anyhow::Context as _;
use std::path::PathBuf;

/// One bullet of a spec, joined to one line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Requirement {
    pub(super) text: String,
    /// The file it stands in, as the plan names it.
    pub(super) spec: String,
}

impl Requirement {
    /// What stands before the first `: `, else the beginning of the text; at most 60 characters.
    pub(super) fn title(&self) -> String {
        let text = self.text.split_once(": ").map_or(self.text.as_str(), |(title, _)| title).replace('`', "");
        if text.chars().count() <= 60 {
            return text;
        }
        let mut short: String = text.chars().take(59).collect();
        short.truncate(short.rfind(' ').unwrap_or(short.len()));
        short + "…"
    }
}

/// The spec files in order of name; a `README.md` there is about the folder, not a spec.
pub(super) fn spec_files(place: &Place) -> anyhow::Result<Vec<PathBuf>> {
    let folder = place.root.join(&place.specs);
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", place.specs.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = PathBuf::from(entry?.file_name());
        let is_spec = name.extension().is_some_and(|extension| extension == "md")
            && !name.as_os_str().eq_ignore_ascii_case("README.md");
        if is_spec {
            names.push(place.specs.join(name));
        }
    }
    names.sort();
    Ok(names)
}

/// The bullets below a heading `Requirements`, or all of them where there are none below such a heading.
pub(super) fn bullets(markdown: &str) -> Vec<String> {
    // Each bullet with whether it is a requirement.
    let mut found: Vec<(bool, String)> = Vec::new();
    // The level of the heading `Requirements` we are below.
    let mut section: Option<usize> = None;
    let (mut in_fence, mut in_bullet) = (false, false);
    for line in markdown.lines() {
        let text = line.trim();
        let fence = text.starts_with("```") || text.starts_with("~~~");
        in_fence ^= fence;
        if in_fence || fence {
            in_bullet = false;
        } else if line.starts_with('#') {
            let title = text.trim_start_matches('#');
            let level = text.len() - title.len();
            let is_ours = title.trim().eq_ignore_ascii_case("requirements");
            section = if is_ours { Some(level) } else { section.filter(|outer| level > *outer) };
            in_bullet = false;
        } else if let Some(bullet) = text.strip_prefix("- ") {
            found.push((section.is_some(), without_box(bullet).to_owned()));
            in_bullet = true;
        } else if in_bullet && line.starts_with([' ', '\t']) && !text.is_empty() {
            found.last_mut().into_iter().for_each(|(_, bullet)| bullet.extend([" ", text]));
        } else {
            in_bullet = false;
        }
    }
    let any_required = found.iter().any(|(required, _)| *required);
    found.retain(|(required, _)| *required || !any_required);
    found.into_iter().map(|(_, bullet)| bullet).collect()
}

/// A bullet's text without the box of a task list.
fn without_box(bullet: &str) -> &str {
    ["[ ] ", "[x] ", "[X] "].into_iter().find_map(|mark| bullet.strip_prefix(mark)).unwrap_or(bullet).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bullets_of_the_requirements_win() {
        let spec = "# A\n- about\n\n## Requirements\n\n- one\n  goes on\n- [ ] two\n\n```\n- code\n```\n\n### More\n- three\n\n## Later\n- no\n";
        assert_eq!(bullets(spec), ["one goes on", "two", "three"]);
    }

    #[test]
    fn without_that_heading_every_bullet_counts() {
        assert_eq!(bullets("text\n- one\n\n  apart\n- two\nnot indented\n"), ["one", "two"]);
        assert!(bullets("").is_empty());
    }

    #[test]
    fn titles_are_short() {
        let title = |text: &str| Requirement { text: text.into(), spec: String::new() }.title();
        assert_eq!(title("Greet a person: `greet.sh NAME` prints"), "Greet a person");
        assert_eq!(title("`greet.sh` works"), "greet.sh works");
        assert_eq!(title(&"word ".repeat(30)), format!("{}…", ["word"; 11].join(" ")));
    }
}
