//! Finds the build and test tools of a project, as far as its top files are unambiguous. Nothing is run.

use std::path::Path;

use crate::files::theirs;

/// A larger file is no manifest.
const MAX_BYTES: u64 = 1 << 20;

/// The commands of one kind of project.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tool {
    /// The file that names them.
    file: &'static str,
    build: Option<String>,
    test: Option<String>,
    /// The command for a single test.
    one_test: Option<String>,
    lint: Option<String>,
}

/// All tools that were found. The test target of the project's Makefile comes before the tools of its parts.
pub(super) struct Tools(Vec<Tool>);

impl Tools {
    /// Reads the files in this folder.
    pub(super) fn of(root: &Path) -> Self {
        Self([make, cargo, node, python, go].into_iter().filter_map(|find| find(root)).collect())
    }

    /// The command that tests everything.
    pub(super) fn validation(&self) -> Option<String> {
        self.all(|tool| tool.test.as_deref())
    }

    /// The files behind [`Self::validation`]: `Cargo.toml and go.mod say`.
    pub(super) fn say_so(&self) -> String {
        let files: Vec<&str> = self.decides(|tool| tool.test.as_deref()).map(|(tool, _)| tool.file).collect();
        format!("{} {}", files.join(" and "), if files.len() == 1 { "says" } else { "say" })
    }

    /// The programs of [`Self::validation`].
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        self.decides(|tool| tool.test.as_deref()).filter_map(|(_, command)| command.split(' ').next())
    }

    /// The notes for agents with the known commands filled in.
    pub(super) fn agents_md(&self, template: &str) -> String {
        let commands = [
            ("The command that builds the project: ", self.all(|tool| tool.build.as_deref())),
            ("All tests: ", self.validation()),
            ("One test: ", self.all(|tool| tool.one_test.as_deref())),
            ("Format and lint: ", self.all(|tool| tool.lint.as_deref())),
        ];
        commands.into_iter().fold(template.to_owned(), |text, (label, command)| match command {
            Some(command) => text.replace(&format!("{label}(fill in)"), &format!("{label}`{command}`")),
            None => text,
        })
    }

    /// A command of all tools, or of the Makefile alone if it has it: that calls the others.
    fn all(&self, command: fn(&Tool) -> Option<&str>) -> Option<String> {
        let commands: Vec<&str> = self.decides(command).map(|(_, command)| command).collect();
        (!commands.is_empty()).then(|| commands.join(" && "))
    }

    fn decides<'a>(
        &'a self,
        command: fn(&Tool) -> Option<&str>,
    ) -> impl Iterator<Item = (&'a Tool, &'a str)> + use<'a> {
        let has = move |tool: &'a Tool| Some((tool, command(tool)?));
        let makefile = self.0.iter().filter(|tool| MAKEFILES.contains(&tool.file)).find_map(has);
        let others = self.0.iter().filter_map(has).filter(move |_| makefile.is_none());
        makefile.into_iter().chain(others)
    }
}

/// Where tests were looked for in vain, in words.
pub(super) fn without_tests(root: &Path) -> String {
    let all = MAKEFILES[2..].iter().chain(&["Cargo.toml", "package.json", "pyproject.toml", "go.mod"]);
    let (there, missing): (Vec<&str>, Vec<&str>) = all.partition(|file| is_there(root, file));
    if there.is_empty() {
        format!("there is no {} here", missing.join(", "))
    } else {
        format!("{} {} nothing of them", there.join(", "), if there.len() == 1 { "says" } else { "say" })
    }
}

/// In the order of make.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

fn text(root: &Path, file: &str) -> Option<String> {
    let text = String::from_utf8(theirs::read(&root.join(file), MAX_BYTES).ok()?).ok()?;
    // The tools ignore a byte order mark.
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn is_there(root: &Path, file: &str) -> bool {
    root.join(file).is_file()
}

fn make(root: &Path) -> Option<Tool> {
    let (file, text) = MAKEFILES.into_iter().find_map(|file| Some((file, text(root, file)?)))?;
    // `test lint: deps` names two; `a := b` none, and a recipe is indented.
    let is_target = |line: &&str| !line.starts_with(['\t', ' ', '#', '.']);
    let targets: Vec<&str> = text
        .lines()
        .filter(is_target)
        .filter_map(|line| {
            line.split_once(':').filter(|(_, behind)| !behind.trim_start_matches(':').starts_with('='))
        })
        .flat_map(|(names, _)| names.split_whitespace())
        .collect();
    let target =
        |names: &[&str]| names.iter().find(|name| targets.contains(*name)).map(|name| format!("make {name}"));
    let tool = Tool {
        file,
        build: target(&["build"]),
        test: target(&["test", "check"]),
        lint: target(&["lint"]),
        ..Tool::default()
    };
    (tool != Tool { file, ..Tool::default() }).then_some(tool)
}

fn cargo(root: &Path) -> Option<Tool> {
    let manifest: toml::Table = text(root, "Cargo.toml")?.parse().ok()?;
    let has = |section: &str| manifest.contains_key(section);
    if !has("package") && !has("workspace") {
        return None;
    }
    // Otherwise only the package at the top of a workspace is tested.
    let all = if has("package") && has("workspace") { " --workspace" } else { "" };
    Some(Tool {
        file: "Cargo.toml",
        build: Some(format!("cargo build{all}")),
        test: Some(format!("cargo test{all}")),
        one_test: Some(format!("cargo test{all} NAME")),
        lint: Some("cargo fmt && cargo clippy".to_owned()),
    })
}

fn node(root: &Path) -> Option<Tool> {
    let package: serde_json::Value = serde_json::from_str(&text(root, "package.json")?).ok()?;
    let manager = manager(root, &package);
    let script = |name: &str| package["scripts"][name].as_str();
    // npm's placeholder, and watch modes, which never end.
    let is_test = |script: &&str| !script.contains("no test specified") && !script.contains("--watch");
    let run = |name: &str| script(name).map(|_| format!("{manager} run {name}"));
    let test = script("test").filter(is_test);
    let tool = Tool {
        file: "package.json",
        build: run("build"),
        // `bun test` is bun's own runner, not the script.
        test: test
            .map(|_| if manager == "bun" { "bun run test".to_owned() } else { format!("{manager} test") }),
        lint: run("lint"),
        ..Tool::default()
    };
    (tool != Tool { file: "package.json", ..Tool::default() }).then_some(tool)
}

/// The program that runs the scripts of a package: the one that it names, else by its lock file.
fn manager(root: &Path, package: &serde_json::Value) -> &'static str {
    let known = [
        ("pnpm", &["pnpm-lock.yaml"][..]),
        ("yarn", &["yarn.lock"]),
        ("bun", &["bun.lock", "bun.lockb"]),
        ("npm", &["package-lock.json"]),
    ];
    let said = package["packageManager"].as_str().and_then(|said| said.split('@').next());
    let by_name = known.iter().find(|(name, _)| Some(*name) == said);
    let by_lock = || known.iter().find(|(_, locks)| locks.iter().any(|lock| is_there(root, lock)));
    by_name.or_else(by_lock).map_or("npm", |(name, _)| name)
}

fn python(root: &Path) -> Option<Tool> {
    let project: toml::Value = toml::Value::Table(text(root, "pyproject.toml")?.parse().ok()?);
    let tool = |name: &str| project.get("tool").and_then(|tools| tools.get(name));
    let runner = if is_there(root, "uv.lock") || tool("uv").is_some() {
        "uv run "
    } else if is_there(root, "poetry.lock") || tool("poetry").is_some() {
        "poetry run "
    } else if is_there(root, "pdm.lock") || tool("pdm").is_some() {
        "pdm run "
    } else {
        ""
    };
    let own_script =
        tool("hatch").and_then(|hatch| hatch.get("envs")?.get("default")?.get("scripts")?.get("test"));
    if own_script.is_some() {
        let test = Some("hatch run test".to_owned());
        return Some(Tool { file: "pyproject.toml", test, ..Tool::default() });
    }
    let configured =
        ["pytest.ini", "conftest.py", "tests/conftest.py"].iter().any(|file| is_there(root, file));
    (configured || names_pytest(&project)).then(|| Tool {
        file: "pyproject.toml",
        test: Some(format!("{runner}pytest")),
        one_test: Some(format!("{runner}pytest -k NAME")),
        lint: tool("ruff").map(|_| format!("{runner}ruff check")),
        ..Tool::default()
    })
}

/// Whether pytest or a part of it is configured, or among the dependencies of any tool.
fn names_pytest(value: &toml::Value) -> bool {
    let is_pytest = |name: &str| {
        name.strip_prefix("pytest")
            .is_some_and(|rest| !rest.starts_with(|char: char| char.is_ascii_alphanumeric()))
    };
    match value {
        toml::Value::Table(table) => table.iter().any(|(key, value)| is_pytest(key) || names_pytest(value)),
        // A dependency is in a list; other text may mention it for any reason.
        toml::Value::Array(list) => {
            list.iter().any(|item| item.as_str().map_or_else(|| names_pytest(item), is_pytest))
        }
        _ => false,
    }
}

fn go(root: &Path) -> Option<Tool> {
    is_there(root, "go.mod").then(|| Tool {
        file: "go.mod",
        build: Some("go build ./...".to_owned()),
        test: Some("go test ./...".to_owned()),
        one_test: Some("go test ./... -run NAME".to_owned()),
        lint: Some("gofmt -l . && go vet ./...".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The validation command of a folder with these files.
    fn found(files: &[(&str, &str)]) -> Tools {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Tools::of(folder.path())
    }

    #[test]
    fn each_kind_of_project_is_tested_its_own_way() {
        const TEST: &str = r#"{"scripts": {"test": "vitest run"}}"#;
        const PYTEST: &str = "[project]\ndependencies = ['pytest>=8']\n";
        for (files, expected) in [
            (&[][..], None),
            (&[("Cargo.toml", "[package]\nname = 'a'")][..], Some("cargo test")),
            (&[("Cargo.toml", "[workspace]\nmembers = ['a']")], Some("cargo test")),
            (&[("Cargo.toml", "[package]\nname = 'a'\n[workspace]")], Some("cargo test --workspace")),
            (&[("Cargo.toml", "[package")], None),
            (&[("package.json", TEST)], Some("npm test")),
            (&[("package.json", TEST), ("pnpm-lock.yaml", "")], Some("pnpm test")),
            (&[("package.json", TEST), ("yarn.lock", "")], Some("yarn test")),
            (&[("package.json", TEST), ("bun.lock", "")], Some("bun run test")),
            (
                &[("package.json", r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "x"}}"#)],
                Some("pnpm test"),
            ),
            (
                &[(
                    "package.json",
                    r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
                )],
                None,
            ),
            (&[("package.json", r#"{"scripts": {"test": "jest --watch"}}"#)], None),
            (&[("package.json", r#"{"name": "x"}"#)], None),
            (&[("package.json", "[]")], None),
            (&[("package.json", &format!("\u{feff}{TEST}"))], Some("npm test")),
            (&[("pyproject.toml", PYTEST)], Some("pytest")),
            (&[("pyproject.toml", PYTEST), ("uv.lock", "")], Some("uv run pytest")),
            (
                &[("pyproject.toml", "[tool.poetry.group.dev.dependencies]\npytest = '^8'")],
                Some("poetry run pytest"),
            ),
            (&[("pyproject.toml", "[tool.pytest.ini_options]\n")], Some("pytest")),
            (&[("pyproject.toml", "[project]\nname = 'x'\n"), ("pytest.ini", "")], Some("pytest")),
            (&[("pyproject.toml", "[project]\ndescription = 'pytest'\n")], None),
            (&[("pyproject.toml", "[project]\ndependencies = ['pytester']\n")], None),
            (
                &[("pyproject.toml", "[tool.hatch.envs.default.scripts]\ntest = 'pytest'")],
                Some("hatch run test"),
            ),
            (&[("go.mod", "module x")], Some("go test ./...")),
            (&[("Makefile", "all:\n\ttest:\n.PHONY: test\nTEST := x\ntest := y\n")], None),
            (&[("Makefile", "build check: deps\n\ttrue\n")], Some("make check")),
            (&[("makefile", "check:\ntest: build\n")], Some("make test")),
            (&[("Makefile", "test:\n"), ("Cargo.toml", "[package]")], Some("make test")),
            (
                &[("Makefile", "build:\n"), ("go.mod", ""), ("package.json", TEST)],
                Some("npm test && go test ./..."),
            ),
        ] {
            assert_eq!(found(files).validation().as_deref(), expected, "{files:?}");
        }
    }

    #[test]
    fn notes_say_what_is_known() {
        let template = super::super::AGENTS_MD;
        assert_eq!(found(&[]).agents_md(template), template);
        let notes = found(&[("Makefile", "test:\n"), ("go.mod", "")]).agents_md(template);
        for line in [
            "The command that builds the project: `go build ./...`",
            "All tests: `make test`",
            "One test: `go test ./... -run NAME`",
            "Format and lint: `gofmt -l . && go vet ./...`",
            "What the code does not show by itself: (fill in)",
        ] {
            assert!(notes.lines().any(|found| found == line), "{line}: {notes}");
        }
    }
}
