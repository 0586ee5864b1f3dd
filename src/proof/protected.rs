//! What the work of an agent is measured by: tests, and what the validation command reads. Which of these files differ
//! from the base, and how. Pure.

use std::collections::BTreeMap;

/// Files that are protected, by language or tool. A pattern with a `/` at its end is a folder anywhere in the project, one
/// with another `/` a path from the project's top, any other the name of a file; `*` stands for any letters but `/`.
const TABLE: &[(&str, &[&str])] = &[
    (
        "any language",
        &[
            "test/",
            "tests/",
            "spec/",
            "specs/",
            "__tests__/",
            "testdata/",
            "fixtures/",
            "__snapshots__/",
            "e2e/",
            "*.snap",
        ],
    ),
    (
        "Python",
        &[
            "test_*.py",
            "*_test.py",
            "conftest.py",
            "sitecustomize.py",
            "usercustomize.py",
            "pytest.ini",
            "tox.ini",
            "noxfile.py",
            ".coveragerc",
        ],
    ),
    (
        "JavaScript",
        &[
            "*.test.*",
            "*.spec.*",
            "jest.config.*",
            "jest.setup.*",
            "vitest.config.*",
            "vitest.setup.*",
            "playwright.config.*",
            "cypress.config.*",
            ".mocharc.*",
            "karma.conf.*",
        ],
    ),
    ("Rust", &["tests.rs", "*_test.rs", "*_tests.rs", "nextest.toml", "build.rs", ".cargo/"]),
    ("Go", &["*_test.go"]),
    ("JVM", &["*Test.java", "*Tests.java", "*IT.java", "*Test.kt", "*Tests.kt", "*Spec.scala"]),
    ("Ruby", &["*_spec.rb", "*_test.rb", ".rspec"]),
    (
        "others",
        &["*Test.cs", "*Tests.cs", "*Test.php", "phpunit.xml*", "*_test.exs", "*Tests.swift", "*_test.dart"],
    ),
    (
        "what runs tests",
        &[
            "Makefile",
            "makefile",
            "GNUmakefile",
            "justfile",
            "Justfile",
            "Taskfile.y*ml",
            "scripts/",
            "ci/",
            ".ci/",
            ".github/",
            ".gitlab-ci.yml",
            ".circleci/",
            ".gitattributes",
            ".gitmodules",
            ".husky/",
            ".githooks/",
        ],
    ),
    ("ralph", &[".ralph/", "ralph.toml", "RALPH.md", "PROMPT*.md"]),
];

/// How a protected file differs from the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// It is new.
    Added,
    /// Only lines came.
    Grown,
    /// Lines were changed or removed, or its kind or mode.
    Changed,
    /// It is gone, or has another name.
    Removed,
}

impl Change {
    /// Its word.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Grown => "grown",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// The protected files among those that differ, by path. `diff` is what `git diff -z --no-renames --raw --numstat` prints,
/// `more` are patterns of the user's.
pub(super) fn protected(diff: &[u8], more: &[String]) -> BTreeMap<String, Change> {
    let mut found = BTreeMap::new();
    let mut fields = diff.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    while let Some(field) = fields.next() {
        if let Some(about) = field.strip_prefix(':') {
            let Some(path) = fields.next() else { break };
            if is_protected(&path, more) {
                found.insert(path.into_owned(), change_of(about));
            }
            continue;
        }
        let mut parts = field.splitn(3, '\t');
        if let (Some(_), Some(deleted), Some(path)) = (parts.next(), parts.next(), parts.next())
            && let Some(change) = found.get_mut(path)
            && *change == Change::Changed
            && deleted == "0"
        {
            *change = Change::Grown;
        }
    }
    found
}

/// What a raw line says: `100644 100755 ID ID M`.
fn change_of(about: &str) -> Change {
    match about.as_bytes().last() {
        Some(b'A') => Change::Added,
        Some(b'D') => Change::Removed,
        _ => Change::Changed,
    }
}

/// Whether a file is protected, by the table or by patterns of the user's.
pub(super) fn is_protected(path: &str, more: &[String]) -> bool {
    let table = TABLE.iter().flat_map(|(_, patterns)| patterns.iter().copied());
    table.chain(more.iter().map(String::as_str)).any(|pattern| matches(pattern, path))
}

fn matches(pattern: &str, path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    match pattern.strip_suffix('/') {
        Some(folder) if folder.contains('/') => {
            let folder = folder.trim_start_matches('/');
            path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        }
        Some(folder) => folders.split('/').any(|part| is_like(folder, part)),
        None if pattern.contains('/') => is_like_path(pattern.trim_start_matches('/'), path),
        None => is_like(pattern, name),
    }
}

fn is_like_path(pattern: &str, path: &str) -> bool {
    let (patterns, parts): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    patterns.len() == parts.len() && patterns.iter().zip(&parts).all(|(pattern, part)| is_like(pattern, part))
}

/// Whether a name has the letters of a pattern, in which `*` stands for any.
fn is_like(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(begin) else { return false };
    name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| is_like(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_what_runs_them_are_protected_and_sources_are_not() {
        for path in [
            "tests/it/a.rs",
            "a/b/tests/x",
            "src/test_a.py",
            "pkg/a_test.go",
            "a.test.ts",
            "web/__tests__/a.js",
            "Makefile",
            "sub/Makefile",
            "scripts/check",
            ".github/workflows/ci.yml",
            ".ralph/config",
            "conftest.py",
            "src/a/tests.rs",
            "A/FooTest.java",
        ] {
            assert!(is_protected(path, &[]), "{path}");
        }
        for path in [
            "src/main.rs",
            "src/testing.rs",
            "latest/a",
            "contest.py",
            "a/attest.go",
            "src/scripts.rs",
            "Make",
        ] {
            assert!(!is_protected(path, &[]), "{path}");
        }
        let more = ["check/*.sh".to_owned(), "golden/".to_owned(), "/a/b/".to_owned()];
        for path in ["check/a.sh", "x/golden/y", "a/b/c"] {
            assert!(is_protected(path, &more) && !is_protected(path, &[]), "{path}");
        }
        assert!(!is_protected("x/check/a.sh", &more) && !is_protected("x/a/b/c", &more));
    }

    #[test]
    fn each_change_is_classified() {
        let diff = b":000000 100644 0 1 A\0tests/new.py\0:100644 100644 1 2 M\0tests/grown.py\0:100644 100644 1 2 M\0\
                     tests/other.py\0:100644 000000 1 0 D\0tests/gone.py\0:100644 100644 1 2 M\0src/a.py\0\
                     :100644 100644 1 2 M\0tests/image.png\0\
                     3\t0\ttests/new.py\x002\t0\ttests/grown.py\x002\t1\ttests/other.py\x000\t4\ttests/gone.py\x001\t1\tsrc/a.py\0\
                     -\t-\ttests/image.png\0";
        let found = protected(diff, &[]);
        let found: Vec<_> = found.iter().map(|(path, change)| (path.as_str(), change.word())).collect();
        assert_eq!(
            found,
            [
                ("tests/gone.py", "removed"),
                ("tests/grown.py", "grown"),
                ("tests/image.png", "changed"),
                ("tests/new.py", "added"),
                ("tests/other.py", "changed"),
            ]
        );
    }
}
