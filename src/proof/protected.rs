//! What the work of an agent is measured by: tests, and what the validation command reads. Which of these files differ
//! from the base, and how. Pure.

use std::collections::BTreeMap;
use std::path::Path;

use super::named::Named;
use crate::text::list::some_of;

/// What a protected file is, which decides about one that an agent has added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A test, or a part of one.
    Test,
    /// It says which tests run, and how.
    Runner,
}

use Role::{Runner, Test};

/// Files that are protected, by language or tool. A pattern with a `/` at its end is a folder anywhere in the project, one
/// with another `/` a path from the project's top, any other the name of a file; `*` stands for any letters but `/`.
const TABLE: &[(&str, Role, &[&str])] = &[
    ("any language", Test, &["test/", "tests/", "spec/", "specs/", "__tests__/", "e2e/"]),
    ("data of tests", Test, DATA),
    ("Python", Test, &["test_*.py", "*_test.py"]),
    (
        "Python",
        Runner,
        &[
            "conftest.py",
            "sitecustomize.py",
            "usercustomize.py",
            "pytest.ini",
            ".pytest.ini",
            "pytest.toml",
            ".pytest.toml",
            ".venv/",
            "venv/",
            "tox.ini",
            "noxfile.py",
            ".coveragerc",
            // Bytecode can be taken for that of any source.
            "*.pyc",
            // Found before the modules of these names.
            "pytest.py",
            "pytest/",
            "_pytest/",
            "unittest.py",
            "unittest/",
        ],
    ),
    ("JavaScript", Test, &["*.test.*", "*.spec.*"]),
    (
        "JavaScript",
        Runner,
        &[
            "jest.config.*",
            "jest.setup.*",
            "setupTests.*",
            "vite.config.*",
            "vitest.config.*",
            "vitest.setup.*",
            "vitest.workspace.*",
            "playwright.config.*",
            "cypress.config.*",
            "ava.config.*",
            ".mocharc.*",
            ".taprc",
            "karma.conf.*",
            "node.config.json",
            "node_modules/",
            "bunfig.toml",
            "deno.json*",
            ".npmrc",
            ".yarnrc*",
            ".pnpmfile.cjs",
        ],
    ),
    ("Rust", Test, &["tests.rs", "*_test.rs", "*_tests.rs"]),
    ("Rust", Runner, &["nextest.toml", "build.rs", ".cargo/"]),
    ("Go", Test, &["*_test.go"]),
    ("JVM", Test, &["*Test.java", "*Tests.java", "*IT.java", "*Test.kt", "*Tests.kt", "*Spec.scala"]),
    ("JVM", Runner, &["junit-platform.properties"]),
    ("Ruby", Test, &["*_spec.rb", "*_test.rb"]),
    ("Ruby", Runner, &[".rspec", "spec_helper.rb", "rails_helper.rb", "test_helper.rb", "Rakefile"]),
    ("others", Test, &["*Test.cs", "*Tests.cs", "*Test.php", "*_test.exs", "*Tests.swift", "*_test.dart"]),
    ("others", Runner, &["phpunit.xml*", "*.runsettings", "test_helper.exs", "dart_test.yaml"]),
    (
        "what runs tests",
        Runner,
        &[
            "Makefile",
            "makefile",
            "GNUmakefile",
            "justfile",
            "Justfile",
            ".justfile",
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
    ("ralph", Runner, &[".ralph/", "ralph.toml", "RALPH.md", "PROMPT*.md"]),
];

/// Data that tests read. An added one changes no other test, and sources may need it.
const DATA: &[&str] = &["testdata/", "fixtures/", "__snapshots__/", "*.snap"];

/// The ends of files that are programs.
const CODE: [&str; 16] = [
    "cjs", "cts", "ex", "exs", "go", "java", "js", "jsx", "kt", "mjs", "mts", "php", "py", "rb", "ts", "tsx",
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

/// A file that differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: String,
    pub(super) change: Change,
    /// The names of its contents in git; of zeros where there is none.
    pub(super) contents: [String; 2],
    /// Whether it is a regular file now.
    pub(super) is_file: bool,
}

/// What differs, from the output of `git diff -z --no-renames --raw --no-abbrev --numstat`.
pub(super) fn differences(diff: &[u8]) -> Vec<Difference> {
    let mut found: BTreeMap<String, Difference> = BTreeMap::new();
    let mut fields = diff.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    while let Some(field) = fields.next() {
        if let Some(about) = field.strip_prefix(':') {
            let Some(path) = fields.next() else { break };
            found.extend(difference(about, &path).map(|difference| (path.into_owned(), difference)));
            continue;
        }
        let mut parts = field.splitn(3, '\t');
        if let (Some(_), Some("0"), Some(path)) = (parts.next(), parts.next(), parts.next())
            && let Some(Difference { change: change @ Change::Changed, .. }) = found.get_mut(path)
        {
            *change = Change::Grown;
        }
    }
    found.into_values().collect()
}

/// What a raw line says: `100644 100755 ID ID M`.
fn difference(about: &str, path: &str) -> Option<Difference> {
    let [_, mode, old, new, status] = about.split(' ').collect::<Vec<_>>()[..] else { return None };
    let change = match status {
        "A" => Change::Added,
        "D" => Change::Removed,
        _ => Change::Changed,
    };
    let contents = [old, new].map(str::to_owned);
    Some(Difference { path: path.to_owned(), change, contents, is_file: mode.starts_with("100") })
}

/// A file by which work is measured, and which differs from the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Protected {
    pub(super) change: Change,
    pub(super) role: Role,
    /// The names of its contents in git, as in [`Difference`].
    pub(super) contents: [String; 2],
    /// Its text with the base's parts, where only parts of it are protected.
    pub(super) mixed: Option<String>,
}

/// All of them, by path.
pub(super) type AllProtected = BTreeMap<String, Protected>;

/// What is protected.
#[derive(Debug, Clone, Default)]
pub(super) struct Patterns {
    /// Patterns of the user's.
    pub(super) more: Vec<String>,
    /// What the validation command runs.
    pub(super) run: Named,
}

impl Patterns {
    /// The protected files among those that differ. An added one counts if it could change how other tests run.
    pub(super) fn among(&self, differences: &[Difference]) -> AllProtected {
        let protected = differences.iter().filter_map(|Difference { path, change, contents, .. }| {
            let role = self.role(path)?;
            let is_new = *change == Change::Added;
            // A test in Rust is a program of its own, or a module that sources may name.
            let is_harmless = role == Test && (is_rust(path) || any_matches(DATA, path) && !is_code(path));
            (!is_new || !is_harmless).then(|| {
                (path.clone(), Protected { change: *change, role, contents: contents.clone(), mixed: None })
            })
        });
        protected.collect()
    }

    /// What a file is; `None` if it is not protected.
    pub(super) fn role(&self, path: &str) -> Option<Role> {
        let is =
            |wanted| TABLE.iter().any(|(_, role, patterns)| *role == wanted && any_matches(patterns, path));
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_run = self.run.scripts.contains(path) || self.run.programs.contains(name);
        if is_run || self.more.iter().any(|pattern| matches(pattern, path)) || is(Runner) {
            return Some(Runner);
        }
        is(Test).then_some(Test)
    }
}

/// The changes of protected files in words, and how many there are of each is limited.
pub(super) fn named(protected: &AllProtected, most: usize) -> String {
    some_of(protected.iter().map(|(path, found)| format!("{path} ({})", found.change.word())), most)
}

/// Whether a file is a test by its name.
pub(super) fn is_test(path: &str) -> bool {
    Patterns::default().role(path) == Some(Test)
}

/// Whether a file is code in Rust.
pub(super) fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// Whether a file is written for people: no test depends on it.
pub(super) fn is_prose(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}

/// Whether a runner of tests could load a file as a program.
fn is_code(path: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| CODE.contains(&extension))
}

fn any_matches(patterns: &[&str], path: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, path))
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
pub(super) fn is_like(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(begin) else { return false };
    name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| is_like(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(more: &[&str]) -> Patterns {
        Patterns { more: more.iter().map(|&pattern| pattern.to_owned()).collect(), ..Patterns::default() }
    }

    #[test]
    fn tests_and_what_runs_them_are_protected_and_sources_are_not() {
        for (path, role) in [
            ("tests/it/a.rs", Test),
            ("a/b/tests/x", Test),
            ("src/test_a.py", Test),
            ("pkg/a_test.go", Test),
            ("a.test.ts", Test),
            ("web/__tests__/a.js", Test),
            ("Makefile", Runner),
            ("sub/GNUmakefile", Runner),
            ("scripts/check", Runner),
            (".github/workflows/ci.yml", Runner),
            (".ralph/config", Runner),
            ("conftest.py", Runner),
            ("tests/conftest.py", Runner),
            ("unittest/__init__.py", Runner),
            (".cargo/config.toml", Runner),
            ("build.rs", Runner),
            ("src/a/tests.rs", Test),
            ("A/FooTest.java", Test),
        ] {
            assert_eq!(Patterns::default().role(path), Some(role), "{path}");
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
            assert_eq!(Patterns::default().role(path), None, "{path}");
        }
        let more = patterns(&["check/*.sh", "golden/", "/a/b/"]);
        for path in ["check/a.sh", "x/golden/y", "a/b/c"] {
            assert_eq!((more.role(path), Patterns::default().role(path)), (Some(Runner), None), "{path}");
        }
        assert!(more.role("x/check/a.sh").is_none() && more.role("x/a/b/c").is_none());
        let run = Named { scripts: ["check.sh".to_owned()].into(), ..Named::default() };
        let scripts = Patterns { run, ..Patterns::default() };
        assert_eq!((scripts.role("check.sh"), scripts.role("sub/check.sh")), (Some(Runner), None));
    }

    fn words(diff: &[u8]) -> Vec<String> {
        let found = Patterns::default().among(&differences(diff));
        found.iter().map(|(path, found)| format!("{path} {}", found.change.word())).collect()
    }

    #[test]
    fn each_change_is_classified() {
        let diff = b":000000 100644 0 1 A\0tests/new.py\0:100644 100644 1 2 M\0tests/grown.py\0:100644 100644 1 2 M\0\
                     tests/other.py\0:100644 000000 1 0 D\0tests/gone.py\0:100644 100644 1 2 M\0src/a.py\0\
                     :100644 100644 1 2 M\0tests/image.png\0\
                     3\t0\ttests/new.py\x002\t0\ttests/grown.py\x002\t1\ttests/other.py\x000\t4\ttests/gone.py\x001\t1\tsrc/a.py\0\
                     -\t-\ttests/image.png\0";
        let expected = [
            "tests/gone.py removed",
            "tests/grown.py grown",
            "tests/image.png changed",
            "tests/new.py added",
            "tests/other.py changed",
        ];
        assert_eq!(words(diff), expected);
        let source = differences(diff).into_iter().find(|found| found.path == "src/a.py").unwrap();
        assert_eq!((source.contents, source.is_file), (["1".to_owned(), "2".to_owned()], true));
    }

    #[test]
    fn what_is_new_counts_if_other_tests_could_run_in_another_way() {
        let added = |path: &str| words(format!(":000000 100644 0 1 A\0{path}\0").as_bytes()).len() == 1;
        for path in [
            "tests/fixtures/test_a.py",
            "node_modules/.bin/jest",
            "conftest.py",
            "tests/__init__.py",
            "a_test.go",
            "build.rs",
            "tests/build.rs",
            "a.test.js",
        ] {
            assert!(added(path), "{path}");
        }
        for path in
            ["tests/new.rs", "src/tests.rs", "tests/fixtures/a.json", "a/testdata/x", "x.snap", "src/a.py"]
        {
            assert!(!added(path), "{path}");
        }
    }
}
