//! The picture in the README: what `ralph` shows in the morning after a night of branches, as an SVG.
//!
//! `scripts/picture` creates it again; without `UPDATE` the run is compared with the picture.

use std::fmt::Write as _;
use std::num::NonZero;
use std::os::unix::fs::symlink;
use std::{env, fs};

use regex::Regex;
use vt100::Color;

use crate::scratch::Scratch;
use crate::terminal::Terminal;

const ROWS: u16 = 60;
const COLUMNS: u16 = 84;
/// A cell, and the border around all of them, in units of the picture.
const CELL: (f64, f64) = (8.4, 18.0);
const BORDER: f64 = 16.0;

const PLAN: &str = "\
# Plan of branches

## Branch: greeting
Goal: Greet the world

- [ ] Greet: `greet.sh` prints `Hello, world!`

## Branch: export
Goal: Export the names

- [ ] Export: `export.sh` prints `name,age`

## Branch: search
Goal: Find a name

- [ ] Search: `search.sh NAME` prints `found NAME`
";
/// The scripted agent writes no header.
const TESTS: &str = "\
[ ! -e export.sh ] || { echo 'not ok 3 - export.sh: the header is missing'; exit 1; }
";
/// The night, and what is typed afterwards, with a prompt before it.
const SESSION: &str = "\
ralph loop build 2 > \"$HOME/night.log\" 2>&1
printf '\\033[1m$ ralph\\033[0m\\n'
ralph";

#[test]
fn the_picture_shows_a_real_run() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/picture.svg");
    let made = picture(&run());
    if env::var_os("UPDATE").is_some() {
        fs::write(path, &made).unwrap();
    }
    let there = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(words(&there), words(&made), "the picture is stale: run scripts/picture");
    assert!(made.len() < 60_000, "{} bytes", made.len());
    for text in
        ["To merge (proven)", "proven: clean tree ", "Needs you", "? export  unproven", "Next: git merge"]
    {
        assert!(words(&made).iter().any(|line| line.starts_with(text)), "no {text}");
    }
}

/// What is on the screen when all is done.
fn run() -> vt100::Parser {
    let scratch = Scratch::new();
    scratch.write("IMPLEMENTATION_PLAN.md", PLAN);
    scratch.write("tests.sh", TESTS);
    scratch.write(".ralph/config", "AGENT_TYPE=script\nVALIDATION_COMMAND='sh tests.sh'\n");
    scratch.git(&["add", "--all"]);
    scratch.git(&["commit", "--quiet", "--message", "What is wanted"]);
    symlink(env!("CARGO_BIN_EXE_ralph"), scratch.outside().join("bin/ralph")).unwrap();
    let mut shell = scratch.command("sh");
    // Slowly enough for durations to be shown.
    shell.args(["-c", SESSION]).env("TERM", "xterm-256color").env("RALPH_SCRIPT_PACE", "150");
    let end = Terminal::start(&shell, ROWS, COLUMNS).end();
    assert_eq!(end.code, Some(0), "{}", end.history);
    let size = |cells| NonZero::new(cells).unwrap();
    let mut screen = vt100::Parser::new(size(ROWS), size(COLUMNS), 0);
    screen.process(end.bytes.as_bytes());
    screen
}

/// Cells next to each other that look the same.
struct Run {
    column: u16,
    cells: u16,
    text: String,
    class: String,
}

fn runs(screen: &vt100::Screen, row: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..COLUMNS {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.contents().is_empty()) else {
            continue;
        };
        let mut class = Vec::new();
        match cell.fgcolor() {
            Color::Default => {}
            Color::Idx(1) => class.push("bad"),
            Color::Idx(2) => class.push("good"),
            Color::Idx(5) => class.push("note"),
            other => panic!("the picture has no colour for {other:?}"),
        }
        class.extend(cell.bold().then_some("bold"));
        class.extend(cell.dim().then_some("faint"));
        let class = class.join(" ");
        match runs.last_mut().filter(|run| run.class == class && run.column + run.cells == column) {
            Some(run) => {
                run.cells += 1;
                run.text += cell.contents();
            }
            None => runs.push(Run { column, cells: 1, text: cell.contents().to_owned(), class }),
        }
    }
    runs.retain(|run| !run.text.trim().is_empty());
    runs
}

fn picture(parser: &vt100::Parser) -> String {
    let screen = parser.screen();
    let last = (0..ROWS).rev().find(|row| !runs(screen, *row).is_empty()).unwrap();
    let width = f64::from(COLUMNS).mul_add(CELL.0, 2.0 * BORDER);
    let height = f64::from(last + 1).mul_add(CELL.1, 2.0 * BORDER);
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img">
<title>A terminal in the morning: two branches to merge, one that needs a person</title>
<style>
text {{ font: 14px ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #e6edf3; white-space: pre }}
.good {{ fill: #3fb950 }} .bad {{ fill: #f85149 }} .note {{ fill: #bc8cff }} .faint {{ fill: #9198a1 }} .bold {{ font-weight: bold }}
</style>
<rect x="0.5" y="0.5" width="{:.0}" height="{:.0}" rx="8" fill="#0d1117" stroke="#3d444d"/>
"##,
        width - 1.0,
        height - 1.0,
    );
    for row in 0..=last {
        let y = f64::from(row).mul_add(CELL.1, BORDER) + 13.0;
        let runs = runs(screen, row);
        if runs.is_empty() {
            continue;
        }
        // One line of text for each row, so that it can be read, searched and copied.
        write!(svg, r#"<text xml:space="preserve" y="{y:.0}">"#).unwrap();
        for Run { column, cells, text, class } in runs {
            let x = f64::from(column).mul_add(CELL.0, BORDER);
            let length = f64::from(cells) * CELL.0;
            let class = if class.is_empty() { class } else { format!(r#" class="{class}""#) };
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            write!(svg, r#"<tspan x="{x:.1}" textLength="{length:.1}"{class}>{text}</tspan>"#).unwrap();
        }
        svg.push_str("</text>\n");
    }
    svg + "</svg>\n"
}

/// The lines of a picture, without what differs from run to run: times and commits.
fn words(svg: &str) -> Vec<String> {
    let mark = Regex::new("<[^>]*>").unwrap();
    let differs = Regex::new(r"\d+(\.\d+)?s\b|session-[0-9-]+|\b[0-9a-f]{7}\b|\b[0-9a-f]{12}\b").unwrap();
    let lines = svg.lines().filter(|line| line.starts_with("<text"));
    lines.map(|line| differs.replace_all(&mark.replace_all(line, ""), "…").trim_end().to_owned()).collect()
}
