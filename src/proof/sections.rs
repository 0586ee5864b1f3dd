//! Parts of files by which work is measured although the rest of the file is the work itself: what a manifest says about tests,
//! and tests within a source file. Pure.

use serde_json::Value;

use super::protected::is_rust;

/// What a manifest for npm says about tests.
const OF_PACKAGE: [&str; 8] = ["scripts", "jest", "mocha", "ava", "vitest", "tap", "nyc", "c8"];
/// The tools below `[tool]` of a manifest for Python that run tests, or say how.
const OF_PYPROJECT: [&str; 9] =
    ["coverage", "hatch", "nox", "pdm", "poe", "pytest", "taskipy", "tox", "unittest"];
/// Sections of a `setup.cfg` about tests, as beginnings.
const OF_SETUP: [&str; 5] = ["[aliases", "[coverage", "[pytest", "[tool:", "[unittest"];

/// Whether a file may have such parts.
pub(super) fn has_some(path: &str) -> bool {
    reader(path).is_some()
}

/// The text of a file with its parts as they were at the base, where that makes a difference. `base` is empty for a new file.
pub(super) fn with_those_of_base(path: &str, base: &str, now: &str) -> Option<String> {
    reader(path)?(base, now)
}

type Reader = fn(&str, &str) -> Option<String>;

fn reader(path: &str) -> Option<Reader> {
    let name = path.rsplit('/').next().unwrap_or(path);
    Some(match name {
        "package.json" => package,
        "pyproject.toml" => pyproject,
        "Cargo.toml" => cargo,
        "setup.cfg" => setup,
        _ if is_rust(name) => rust,
        _ => return None,
    })
}

fn package(base: &str, now: &str) -> Option<String> {
    let mut new: serde_json::Map<String, Value> = serde_json::from_str(now).ok()?;
    let mut old: serde_json::Map<String, Value> = serde_json::from_str(base).unwrap_or_default();
    let mut is_changed = false;
    for key in OF_PACKAGE {
        let was = old.remove(key);
        is_changed |= was.as_ref() != new.get(key);
        match was {
            Some(was) => drop(new.insert(key.to_owned(), was)),
            None => drop(new.remove(key)),
        }
    }
    is_changed.then(|| serde_json::to_string_pretty(&new).ok())?
}

fn pyproject(base: &str, now: &str) -> Option<String> {
    let parts = OF_PYPROJECT.map(|tool| ["tool", tool]);
    toml_parts(base, now, &parts.each_ref().map(|part| &part[..]))
}

fn cargo(base: &str, now: &str) -> Option<String> {
    let parts: [&[&str]; 7] = [
        &["test"],
        &["profile"],
        &["package", "autotests"],
        &["package", "build"],
        &["lib", "test"],
        &["lib", "doctest"],
        &["lib", "harness"],
    ];
    toml_parts(base, now, &parts)
}

fn toml_parts(base: &str, now: &str, parts: &[&[&str]]) -> Option<String> {
    let mut new: toml::Table = now.parse().ok()?;
    let old: toml::Table = base.parse().unwrap_or_default();
    let mut is_changed = false;
    for part in parts {
        let was = at(&old, part);
        if was == at(&new, part) {
            continue;
        }
        is_changed = true;
        let was = was.cloned();
        let Some((key, above)) = part.split_last() else { continue };
        let mut table = &mut new;
        for name in above {
            let inner = table.entry(*name).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            table = inner.as_table_mut()?;
        }
        match was {
            Some(was) => drop(table.insert((*key).to_owned(), was)),
            None => drop(table.remove(*key)),
        }
    }
    is_changed.then(|| new.to_string())
}

fn at<'a>(table: &'a toml::Table, part: &[&str]) -> Option<&'a toml::Value> {
    let (first, rest) = part.split_first()?;
    let found = table.get(*first)?;
    if rest.is_empty() { Some(found) } else { at(found.as_table()?, rest) }
}

fn setup(base: &str, now: &str) -> Option<String> {
    let is_begin = |line: &str| line.starts_with('[');
    let is_of_tests = |line: &str| OF_SETUP.iter().any(|begin| line.starts_with(begin));
    let split = |text: &str| {
        let mut is_in = false;
        let (inner, outer): (Vec<_>, Vec<_>) =
            text.split_inclusive('\n').map(str::to_owned).partition(|line| {
                is_in = if is_begin(line) { is_of_tests(line) } else { is_in };
                is_in
            });
        (inner.concat(), outer.concat())
    };
    parts_of_base(split(base), split(now), true)
}

/// The tests of a source file, in a module `#[cfg(test)]` at its top.
fn rust(base: &str, now: &str) -> Option<String> {
    let split = |text: &str| {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (mut inner, mut outer, mut at) = (String::new(), String::new(), 0);
        while at < lines.len() {
            let length = module_of_tests(&lines[at..]).unwrap_or_default();
            if length == 0 {
                outer.push_str(lines[at]);
            }
            inner.extend(lines[at..at + length].iter().copied());
            at += length.max(1);
        }
        (inner, outer)
    };
    parts_of_base(split(base), split(now), false)
}

/// How many lines the module of tests has that begins here, if one does.
fn module_of_tests(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?;
    if !first.starts_with("#[cfg(") || !first.contains("test") || first.contains("not(test") {
        return None;
    }
    let module = lines.iter().position(|line| !line.starts_with("#["))?;
    let line = lines[module];
    let is_module = ["mod ", "pub mod ", "pub(crate) mod "].iter().any(|begin| line.starts_with(begin));
    if !is_module || !line.trim_end().ends_with('{') {
        return None;
    }
    lines.iter().position(|line| line.trim_end() == "}").map(|end| end + 1)
}

/// A text with the inner parts of another one. `also_new`: also where the base had none.
fn parts_of_base(base: (String, String), now: (String, String), also_new: bool) -> Option<String> {
    let ((old, _), (new, outer)) = (base, now);
    let is_measured = old != new && (also_new || !old.is_empty());
    let gap = if outer.ends_with('\n') || outer.is_empty() { "" } else { "\n" };
    is_measured.then(|| outer + gap + &old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_of_a_package_are_the_bases_and_its_dependencies_are_not() {
        let base = r#"{"name": "a", "scripts": {"test": "node --test"}}"#;
        let now = r#"{"name": "a", "dependencies": {"x": "1"}, "scripts": {"test": "true"}, "jest": {}}"#;
        let mixed = with_those_of_base("web/package.json", base, now).unwrap();
        assert!(
            mixed.contains("node --test") && mixed.contains("dependencies") && !mixed.contains("jest"),
            "{mixed}"
        );
        let other = r#"{"scripts": {"test": "node --test"}, "version": "2"}"#;
        assert_eq!(with_those_of_base("package.json", base, other), None);
        assert!(with_those_of_base("package.json", "", base).is_some(), "new scripts");
        assert_eq!(with_those_of_base("package.json", base, "no JSON"), None);
    }

    #[test]
    fn the_tables_about_tests_are_the_bases() {
        let base = "[project]\nname = 'a'\n[tool.pytest.ini_options]\naddopts = '-q'\n";
        let now = "[project]\nname = 'b'\n[tool.pytest.ini_options]\naddopts = '--deselect x'\n[tool.black]\nx = 1\n";
        let mixed = with_those_of_base("pyproject.toml", base, now).unwrap();
        assert!(mixed.contains("\"-q\"") && mixed.contains("\"b\"") && mixed.contains("black"), "{mixed}");
        assert_eq!(with_those_of_base("pyproject.toml", base, &base.replace("'a'", "'c'")), None);

        let base = "[package]\nname = 'a'\n";
        let now = "[package]\nname = 'a'\nautotests = false\n[lib]\ntest = false\n[dependencies]\nx = '1'\n";
        let mixed = with_those_of_base("Cargo.toml", base, now).unwrap();
        assert!(
            !mixed.contains("autotests") && !mixed.contains("test = false") && mixed.contains("x = "),
            "{mixed}"
        );

        let now = "[metadata]\nname = a\n[tool:pytest]\naddopts = -k none\n[options]\nx = 1\n";
        let mixed = with_those_of_base("setup.cfg", "[metadata]\nname = a\n", now).unwrap();
        assert_eq!(mixed, "[metadata]\nname = a\n[options]\nx = 1\n");
    }

    #[test]
    fn tests_within_a_source_file_are_the_bases() {
        let tests =
            |check: &str| format!("\n#[cfg(test)]\nmod tests {{\n    use super::*;\n    {check}\n}}\n");
        let base = format!("fn a() -> u8 {{ 1 }}\n{}", tests("fn t() { assert_eq!(a(), 2); }"));
        let now = format!("fn a() -> u8 {{ 3 }}\n{}fn b() {{}}\n", tests("fn t() {}"));
        let mixed = with_those_of_base("src/lib.rs", &base, &now).unwrap();
        assert!(
            mixed.contains("a(), 2")
                && mixed.contains("{ 3 }")
                && mixed.contains("fn b")
                && !mixed.contains("fn t() {}")
        );
        assert_eq!(mixed.matches("mod tests").count(), 1);
        assert_eq!(with_those_of_base("src/lib.rs", "fn a() {}\n", &now), None, "only new tests");
        assert_eq!(with_those_of_base("src/lib.rs", &base, &base.replace("{ 1 }", "{ 2 }")), None);
        let gone = with_those_of_base("src/lib.rs", &base, "fn a() -> u8 { 3 }\n").unwrap();
        assert!(gone.contains("a(), 2"), "{gone}");
        assert!(!has_some("src/a.py") && has_some("a.rs"));
    }
}
