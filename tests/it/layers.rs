//! Compares the code with the layers of ARCHITECTURE.md: no module knows one above it, nor one that the table does
//! not name; and inside a module, no two files know each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");
/// The data modules of `reply`.
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

/// The code of a file without its own tests and comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Where a file stands: `agent/pane/done.rs` is `[agent, pane, done]`.
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

/// The modules of the house, each a file: its place below `src`, and its code.
fn modules() -> BTreeMap<Vec<String>, &'static str> {
    let placed = SOURCES.iter().map(|(file, text)| (module_path(file), text.as_str()));
    placed
        .filter(|(place, _)| *place != ["main"])
        .map(|(place, text)| match place[..] {
            [ref name] if name == "lib" => (Vec::new(), text),
            _ => (place, text),
        })
        .collect()
}

/// The paths of a `use`, each with the name that it gives: `a::{b, c as d}` is `a::b` and `a::c`, by `b` and `d`.
fn paths_of(tree: &str) -> Vec<(String, String)> {
    let tree = tree.trim();
    let Some((before, inside)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree.rsplit("::").next().unwrap()));
        return vec![(path.trim().to_owned(), name.trim().to_owned())];
    };
    let (mut depth, mut parts) = (0_usize, vec![String::new()]);
    for char in inside.strip_suffix('}').expect("one group at the end").chars() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(char);
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| paths_of(&format!("{before}{}", part.trim()))).collect()
}

/// What a file's paths mean: the file that has the thing, wherever it is shown by `pub use`.
struct Paths {
    modules: BTreeMap<Vec<String>, &'static str>,
    /// By the module that shows it and the name that it has there.
    shown: BTreeMap<(Vec<String>, String), String>,
}

impl Paths {
    fn read() -> Self {
        let public = Regex::new(r"(?m)^ *pub(?:\([^)]*\))? use ([^;]+);").unwrap();
        let modules = modules();
        let of = |(place, text): (&Vec<String>, &&str)| {
            let uses = public.captures_iter(text).flat_map(|tree| paths_of(&tree[1])).collect::<Vec<_>>();
            let place = place.clone();
            uses.into_iter().map(move |(path, name)| ((place.clone(), name), path))
        };
        let shown = modules.iter().flat_map(of).collect();
        Self { modules, shown }
    }

    /// The file that a path in the file of `place` leads to; `None`: to none of ours.
    fn file(&self, place: &[String], path: &str) -> Option<Vec<String>> {
        let mut names = path.split("::").peekable();
        let mut at = place.to_vec();
        match *names.peek()? {
            "crate" => at.clear(),
            "self" | "super" => {}
            child => drop(self.modules.get(&[place, &[child.to_owned()]].concat())?),
        }
        while let Some(name) = names.next_if(|name| matches!(*name, "crate" | "self" | "super")) {
            if name == "super" {
                at.pop();
            }
        }
        for name in names {
            let inside = [&at[..], &[name.to_owned()]].concat();
            if self.modules.contains_key(&inside) {
                at = inside;
                continue;
            }
            let shown = self.shown.get(&(at.clone(), name.to_owned())).filter(|shown| *shown != path);
            return shown.and_then(|shown| self.file(&at, shown)).or(Some(at));
        }
        Some(at)
    }

    /// The files that each file knows, but those that it is a part of: a parent is there for its children.
    fn arrows(&self) -> BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> {
        let imports = Regex::new(r"(?m)^ *(pub(?:\([^)]*\))? )?use ([^;]+);").unwrap();
        let named = Regex::new(r"\b\w+(?:::\w+)+").unwrap();
        let of = |place: &Vec<String>, text: &str| {
            let trees = imports.captures_iter(text).filter(|tree| tree.get(1).is_none());
            let uses = trees.flat_map(|tree| paths_of(&tree[2])).map(|(path, _)| path);
            let body = imports.replace_all(text, "");
            let paths = uses.chain(named.find_iter(&body).map(|path| path.as_str().to_owned()));
            let files = paths.filter_map(|path| self.file(place, &path));
            files.filter(|file| !place.starts_with(file)).collect()
        };
        self.modules.iter().map(|(place, text)| (place, of(place, text))).collect()
    }
}

/// Two files that know each other can only be read, tested and changed together.
#[test]
fn no_files_know_each_other_in_a_circle() {
    let paths = Paths::read();
    let arrows = paths.arrows();
    let count: usize = arrows.values().map(BTreeSet::len).sum();
    assert!(count > 1000, "only {count} arrows were found");
    let reached: BTreeMap<&Vec<String>, BTreeSet<&Vec<String>>> =
        arrows.keys().map(|&place| (place, reached(&arrows, place))).collect();
    let circle = |place: &Vec<String>| {
        let others = reached[place].iter().filter(|file| reached[**file].contains(place));
        others.map(|file| file.join("/")).collect::<Vec<_>>().join(", ")
    };
    let circles: BTreeSet<String> = arrows.keys().map(|place| circle(place)).collect();
    let circles: Vec<&String> = circles.iter().filter(|circle| !circle.is_empty()).collect();
    assert!(circles.is_empty(), "{} circles of files: {circles:#?}", circles.len());
}

/// All files that a file knows, by others as well.
fn reached<'a>(
    arrows: &'a BTreeMap<&Vec<String>, BTreeSet<Vec<String>>>,
    from: &'a Vec<String>,
) -> BTreeSet<&'a Vec<String>> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(place) = next.pop() {
        next.extend(arrows[place].iter().filter(|file| reached.insert(*file)));
    }
    reached
}

/// Closing a database of ours opened by other means than `SQLite` drops the locks of the process on it: only `files`
/// opens paths, and refuses that. Other opened files do not belong to a project.
#[test]
fn files_are_opened_in_one_place() {
    const OPENS: &str = r"\b(File::(open|create|create_new|options)|fs::(read|read_to_string|write|copy))\(";
    /// Our own executable, a folder, one of the machine, and a file that is not at its place yet.
    const OTHERS: [&str; 4] =
        ["commands/demo.rs", "git/exclude.rs", "graph/holder.rs", "record/retention.rs"];
    let opens = Regex::new(OPENS).unwrap();
    let mut opening = BTreeSet::new();
    for (place, code) in &*SOURCES {
        let is_of_floor = ["files", "platform"].iter().any(|room| place.starts_with(room));
        if is_of_floor || place.iter().any(|part| part == "tests") {
            continue;
        }
        if code.lines().any(|line| opens.is_match(line)) {
            opening.insert(place.to_str().unwrap().to_owned());
        }
    }
    assert_eq!(opening, OTHERS.map(str::to_owned).into(), "open files by 'files::own' or 'files::theirs'");
}

/// What only one kernel has is called in one room, so that another kernel needs one more file there.
#[test]
fn kernels_are_known_in_one_place() {
    let only_there =
        Regex::new(r"/proc\b|(?i:subreaper|inotify|pidfd)|O_PATH|OFlags::PATH|death_signal").unwrap();
    let is_outside =
        |place: &Path| !place.starts_with("platform") && !place.iter().any(|part| part == "tests");
    let outside = SOURCES.iter().filter(|(place, _)| is_outside(place));
    let naming: Vec<_> = outside
        .flat_map(|(place, code)| code.lines().map(move |line| (place, line)))
        .filter(|(_, line)| only_there.is_match(line))
        .collect();
    assert_eq!(naming, [], "call the kernel in 'platform'");
    let calls = SOURCES.iter().find(|(place, _)| place.ends_with("calls/linux.rs"));
    assert!(calls.is_some_and(|(_, code)| only_there.is_match(code)), "what is searched for is there");
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
