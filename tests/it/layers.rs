//! The layers of the code are those of ARCHITECTURE.md: no module knows one above it, nor one that the table does not name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");
/// What of `reply` is only data.
const REPLY_DATA: [&str; 4] = ["show", "sigil", "usage", "verdict"];

/// A row of the table: a module, and what it may know; `None`: everything below it.
type Row = (String, Option<BTreeSet<String>>);

/// The table, from top to bottom.
fn table() -> Vec<Row> {
    let (_, section) = ARCHITECTURE.split_once("\n## Layers\n").expect("the heading");
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let mut table = Vec::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [modules, _, known] = cells[..] else { panic!("{row}") };
        let known = match known {
            "all" | "all below" => None,
            "–" => Some(BTreeSet::new()),
            known => Some(known.split(", ").map(str::to_owned).collect()),
        };
        let names = modules.split(", ").map(|name| name.trim_matches('`').to_owned());
        table.extend(names.map(|name| (name, known.clone())));
    }
    table
}

/// The source files, but those that only tests see: each with its path below `src`, and its code.
static SOURCES: LazyLock<Vec<(PathBuf, String)>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut sources) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test_file(&path) {
                sources.push((path.strip_prefix(&root).unwrap().to_owned(), code(&path)));
            }
        }
    }
    assert!(sources.len() > 100, "only {} files were found", sources.len());
    sources
});

/// Whether the file is a module that its parent declares for tests only.
fn is_test_file(path: &Path) -> bool {
    let declaration = format!("mod {};", path.file_stem().unwrap().to_str().unwrap());
    let folder = path.parent().unwrap();
    let parents = [folder.join("mod.rs"), folder.with_extension("rs"), folder.join("lib.rs")];
    parents.iter().filter_map(|parent| fs::read_to_string(parent).ok()).any(|text| {
        let lines: Vec<&str> = text.lines().collect();
        lines.windows(2).any(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with(&declaration))
    })
}

/// What a file says to the compiler outside of its own tests and comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Where a file stands: `agent/preset/how.rs` is `[agent, preset, how]`.
fn module_path(relative: &Path) -> Vec<String> {
    let names = relative.with_extension("").iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    let mut names: Vec<String> = names;
    if names.len() > 1 && names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    names
}

/// What each module knows of others, as paths of one or two names, and a file that shows it.
fn arrows() -> BTreeMap<(String, String), PathBuf> {
    let absolute = Regex::new(r"\b(?:crate|ralph)::(\w+)(?:::(\w+))?").unwrap();
    let relative = Regex::new(r"\b((?:super::)+)(\w+)(?:::(\w+))?").unwrap();
    let grouped = Regex::new(r"\b(crate|super::super)::\{").unwrap();
    let mut arrows = BTreeMap::new();
    for (file, text) in &*SOURCES {
        let place = module_path(file);
        assert!(!grouped.is_match(text), "{}: one `use` for each module", file.display());
        let from_root = absolute.captures_iter(text).map(|path| (path[1].to_owned(), path.get(2)));
        let ups = relative.captures_iter(text).filter(|path| path[1].matches("super").count() >= place.len());
        let all = from_root.chain(ups.map(|path| (path[2].to_owned(), path.get(3))));
        for (module, part) in all.filter(|(module, _)| *module != place[0]) {
            let part = part.map(|part| part.as_str()).filter(|part| REPLY_DATA.contains(part));
            let of_reply = module == "reply" && part.is_some();
            let known = if of_reply { "reply (data)".to_owned() } else { module };
            arrows.insert((place[0].clone(), known), file.clone());
        }
    }
    arrows
}

#[test]
fn every_arrow_points_down_and_is_in_the_table() {
    let table = table();
    let at = |name: &str| table.iter().position(|(module, _)| module == name.trim_end_matches(" (data)"));
    for ((from, to), file) in arrows() {
        let shown = format!("{}: {from} knows {to}", file.display());
        let (Some(upper), Some(lower)) = (at(&from), at(&to)) else { panic!("{shown}, not in the table") };
        let is_main = matches!(from.as_str(), "main" | "lib");
        assert!(upper < lower || is_main, "{shown}, which stands above it");
        let may = table[upper].1.as_ref();
        let as_whole = to.trim_end_matches(" (data)");
        assert!(
            may.is_none_or(|may| may.contains(&to) || may.contains(as_whole)),
            "{shown}, not in the table"
        );
    }
}

#[test]
fn the_table_names_what_is_there_and_nothing_else() {
    let table = table();
    let listed: BTreeSet<&str> = table.iter().map(|(module, _)| module.as_str()).collect();
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let there: BTreeSet<String> = entries
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(listed, there.iter().map(String::as_str).collect());

    let arrows = arrows();
    let rows = table.iter().flat_map(|(module, may)| may.iter().flatten().map(move |known| (module, known)));
    let unused = rows.filter(|(module, known)| !arrows.contains_key(&((*module).clone(), (*known).clone())));
    assert_eq!(unused.collect::<Vec<_>>(), [], "these need not be known");
}

/// Opening and closing a database of ours by other means than `SQLite` drops the locks of the process on it: `files` alone
/// opens what has a path, and refuses that. What else is opened is no file of a project.
#[test]
fn files_are_opened_in_one_place() {
    const OPENS: &str = r"\b(File::(open|create|create_new|options)|fs::(read|read_to_string|write|copy))\(";
    /// Our own executable, a folder, one of the machine, a file that is not at its place yet, and those of a
    /// program of its own.
    const OTHERS: [&str; 5] =
        ["commands/demo.rs", "git.rs", "graph/holder.rs", "record/retention.rs", "script_agent/acp.rs"];
    let opens = Regex::new(OPENS).unwrap();
    let mut opening = BTreeSet::new();
    for (place, code) in &*SOURCES {
        if place.starts_with("files") || place.iter().any(|part| part == "tests") {
            continue;
        }
        if code.lines().any(|line| opens.is_match(line) && !line.contains("\"/proc/")) {
            opening.insert(place.to_str().unwrap().to_owned());
        }
    }
    assert_eq!(opening, OTHERS.map(str::to_owned).into(), "open files by 'files::own' or 'files::theirs'");
}

/// What is readable on black and on white is decided in one place; a whole screen shows agents' own colours, too.
#[test]
fn colours_are_those_of_the_palette() {
    let naming: BTreeMap<&Path, &String> = SOURCES
        .iter()
        .filter(|(_, code)| code.contains("AnsiColor::"))
        .map(|(file, code)| (file.as_path(), code))
        .collect();
    let palette = Path::new("text/palette.rs");
    assert!(naming.keys().copied().eq([palette, Path::new("view/watch/paint.rs")]), "{:?}", naming.keys());
    let palette = naming[palette];
    for colour in ["Yellow", "Cyan", "Blue", "White", "Bright"] {
        assert!(!palette.contains(colour), "{colour}");
    }
}
