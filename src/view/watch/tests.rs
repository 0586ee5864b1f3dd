//! The screen at the sizes that people have, as text; `UPDATE=1 cargo test --lib watch` writes the texts anew.

use std::path::PathBuf;

use anstyle::Style;
use chrono::{DateTime, Local, TimeDelta, TimeZone as _};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};

use super::draw;
use super::keys::{Deed, Key, Sight, Wish};
use super::model::Model;
use super::plan::{Plan, Standing, Task};
use super::row::Row;
use super::scroll::Paragraph;
use crate::engine::fact::TaskCounts;
use crate::tell::group::Group;
use crate::text::palette::{FAINT, GOOD};

fn now() -> DateTime<Local> {
    Local.with_ymd_and_hms(2026, 11, 22, 19, 0, 0).unwrap()
}

fn row(name: &str, word: &'static str, progress: &str, minutes: i64) -> Row {
    let started = now().to_utc() - TimeDelta::minutes(minutes);
    let is_alive = matches!(word, "running" | "waiting" | "paused" | "queued" | "needs_attention");
    Row {
        key: PathBuf::from("/p").join(name),
        name: name.to_owned(),
        run: "r".to_owned(),
        project: "export".to_owned(),
        word,
        is_alive,
        is_worker: word == "needs_attention",
        events_log: None,
        iterations_log: PathBuf::from("/p/iterations.log"),
        started: Some(started),
        cost: Some(f64::from(u32::try_from(minutes).unwrap()) / 10.0),
        tasks: progress.strip_suffix(" tasks").map(|of| {
            let (done, total) = of.split_once('/').unwrap();
            TaskCounts { done: done.parse().unwrap(), failed: 0, total: total.parse().unwrap() }
        }),
        iteration: if progress.ends_with("tasks") { "5/20" } else { progress }.to_owned(),
        next: (!is_alive).then(|| format!("ralph logs {name} --agent")),
        ended: (!is_alive).then(|| started + TimeDelta::minutes(5)),
        heard: is_alive.then(|| now().to_utc() - TimeDelta::seconds(minutes)),
        until: None,
        pending: "",
        facts: vec!["loop build with claude · opus-4 · 2.1M tokens read, 40k written".to_owned()],
        group: (!is_alive).then_some(Group::Over),
        proof: None,
        trouble: None,
    }
}

fn model() -> Model {
    let mut model = Model::new("export", false);
    let mut waiting = row("feature/import-of-tables", "waiting", "4/20", 70);
    waiting.until = Some(now().to_utc() + TimeDelta::minutes(12));
    waiting.trouble = Some("usage limit reached\u{1b}[2J, resets at 19:12".to_owned());
    let mut working = row("feature/export", "running", "3/8 tasks", 41);
    working.facts.insert(0, "t-1a2b3c Parse dates of all kinds that people write".to_owned());
    working.facts.push("at most $5.00 · 2h".to_owned());
    let rows = vec![
        working,
        waiting,
        row("fix/日本語のなまえ", "paused", "7/20", 12),
        row("docs", "done", "9/20", 30),
        row("refactor", "failed", "2/20", 200),
        row("reviewer", "needs_attention", "1/5", 3),
        row("later", "queued", "0/20", 1),
    ];
    model.see(rows);
    model.select(PathBuf::from("/p/feature/export"));
    let standings = [Standing::Done, Standing::Done, Standing::AtWork, Standing::Failed];
    let task = |number: usize| Task {
        standing: standings.get(number).copied().unwrap_or(Standing::Open),
        text: format!("Task {number}: read dates of all kinds that people write, 日本語 among them"),
    };
    model.plans(Plan { what: "tasks", tasks: (0..8).map(task).collect() });
    let steps = [(1, "✓ "), (2, "✗ "), (3, "▶ ")];
    model.has_been(
        steps
            .map(|(number, sign)| Paragraph {
                style: GOOD,
                sign: sign.to_owned(),
                text: format!("18:5{number} Iteration {number} completed in 5m42s"),
            })
            .into(),
    );
    for number in 1..=30 {
        let text = format!(
            "Step {number}: I read the module and its tests, עברית, 👩‍👩‍👧, \u{1b}[31mred\u{1b}[0m, then I go on."
        );
        model.add(Paragraph { style: Style::new(), sign: String::new(), text });
        model.add(Paragraph {
            style: FAINT,
            sign: "▸ ".to_owned(),
            text: format!("Bash cargo test --all -- {number}"),
        });
    }
    model
}

fn drawn(model: &mut Model, width: u16, height: u16, colour: bool) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(model, colour, now(), frame)).unwrap();
    terminal
}

fn text(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in 0..buffer.area.height {
        let mut line = String::new();
        let mut column = 0;
        while column < buffer.area.width {
            let symbol = buffer[(column, row)].symbol();
            line.push_str(symbol);
            column += u16::try_from(unicode_width::UnicodeWidthStr::width(symbol)).unwrap().max(1);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn screen(model: &mut Model, width: u16, height: u16) -> String {
    text(&drawn(model, width, height, true))
}

#[track_caller]
fn assert_screen(name: &str, screen: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("src/view/watch/screens/{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, screen).unwrap();
    }
    assert_eq!(screen, std::fs::read_to_string(&path).unwrap_or_default(), "{name}");
}

fn press(model: &mut Model, keys: &str) -> Vec<Option<Wish>> {
    keys.chars().map(|key| model.press(Key::Char(key))).collect()
}

#[test]
fn the_screen_is_what_it_is_at_each_size() {
    for (width, height) in [(60, 20), (80, 24), (120, 30), (160, 40), (200, 50)] {
        let name = format!("{width}x{height}");
        assert_screen(&name, &screen(&mut model(), width, height));
        if matches!(width, 120 | 160) {
            continue;
        }
        let mut model = model();
        press(&mut model, "?");
        assert_screen(&format!("{name}-help"), &screen(&mut model, width, height));
    }
    let mut model = model();
    model.press(Key::Tab);
    assert_screen("80x24-history", &screen(&mut model, 80, 24));
}

#[test]
fn without_colour_there_is_none() {
    for colour in [true, false] {
        let terminal = drawn(&mut model(), 80, 24, colour);
        let cells = &terminal.backend().buffer().content;
        let has_colour = cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert_eq!(has_colour, colour);
        assert!(
            cells.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)),
            "the selected one shows"
        );
    }
}

#[test]
fn any_size_does_no_harm() {
    for width in [0, 1, 2, 59, 60, 61, 109, 110, 5000] {
        for height in [0, 1, 19, 20, 21, 300] {
            let mut model = model();
            let shown = screen(&mut model, width, height);
            let is_small = width < 60 || height < 20;
            assert_eq!(shown.contains("feature/export"), !is_small, "{width}×{height}: {shown}");
            for key in ["?", "q", "/", "\u{1b}[31m日", "n"] {
                press(&mut model, key);
                screen(&mut model, width, height);
            }
        }
    }
    assert!(screen(&mut model(), 40, 10).contains("too small: 40×10\n60×20 are needed"));
}

#[test]
fn nothing_that_drives_a_terminal_gets_into_a_cell() {
    for (width, height) in [(60, 20), (200, 50)] {
        let terminal = drawn(&mut model(), width, height, true);
        let cells = &terminal.backend().buffer().content;
        let bad = cells.iter().find(|cell| {
            let drives = |char: char| matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
            cell.symbol().chars().any(|char| char.is_control() || drives(char))
        });
        assert_eq!(bad.map(ratatui::buffer::Cell::symbol), None);
    }
}

#[test]
fn the_selection_follows_the_loop_and_not_the_place() {
    let mut model = model();
    assert_eq!(model.selected().unwrap().name, "feature/export");
    model.press(Key::Down);
    assert_eq!(
        model.selected().unwrap().name,
        "feature/import-of-tables",
        "what is at work, then what waits"
    );
    press(&mut model, "ss");
    assert_eq!(model.selected().unwrap().name, "feature/import-of-tables");
    assert_eq!(model.listed()[0].name, "refactor", "the dearest one first");
    // It vanishes: its neighbour is selected, and that is told.
    let rows = model.rows.iter().filter(|row| row.name != "feature/import-of-tables").cloned().collect();
    model.see(rows);
    assert!(model.selected().is_some());
    assert!(screen(&mut model, 80, 24).contains("feature/import-of-tables is not there any more"));
    model.see(Vec::new());
    assert_eq!(model.selected(), None);
    assert!(screen(&mut model, 80, 24).contains("no loop in this project yet"));
    assert_eq!(press(&mut model, "pjk"), [None, None, None]);
}

#[test]
fn a_filter_means_what_has_all_its_words() {
    let mut model = model();
    press(&mut model, "/feature wait");
    assert!(screen(&mut model, 80, 24).lines().last().unwrap().starts_with("/feature wait"));
    let names = |model: &Model| model.listed().iter().map(|row| row.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&model), ["feature/import-of-tables"]);
    assert_eq!(model.selected().unwrap().name, "feature/import-of-tables");
    model.press(Key::Enter);
    assert!(screen(&mut model, 80, 24).contains("filter: feature wait"));
    press(&mut model, "/x");
    assert_eq!((names(&model).len(), model.selected()), (0, None));
    assert!(screen(&mut model, 80, 24).contains("no loop is meant by this filter"));
    model.press(Key::Escape);
    assert_eq!(names(&model).len(), 7);
    assert!(model.selected().is_some());
}

#[test]
fn what_cannot_be_taken_back_is_asked_first() {
    let key = PathBuf::from("/p/feature/export");
    let mut model = model();
    assert_eq!(press(&mut model, "p"), [Some(Wish::Ask(key.clone(), Deed::Pause))]);
    assert_eq!(press(&mut model, "r"), [Some(Wish::Ask(key.clone(), Deed::Resume))]);
    assert_eq!(press(&mut model, "cx"), [None, None]);
    assert!(screen(&mut model, 80, 24).contains("nothing was done"));
    assert_eq!(press(&mut model, "Cy"), [None, Some(Wish::Ask(key.clone(), Deed::CancelNow))]);
    press(&mut model, "c");
    assert!(screen(&mut model, 80, 24).contains("cancel it after the current attempt? y does"));
    assert_eq!(model.press(Key::Paste("y".to_owned())), None, "nobody has pressed it");
    assert_eq!(press(&mut model, "y"), [Some(Wish::Ask(key.clone(), Deed::Cancel))]);
    assert_eq!(press(&mut model, "d"), [Some(Wish::Show(key, Sight::Diff))]);
    assert_eq!(press(&mut model, "a"), [None]);
    assert!(screen(&mut model, 80, 24).contains("has no window"));
}

#[test]
fn a_note_is_typed_and_goes_to_the_loop_it_was_begun_for() {
    let key = PathBuf::from("/p/feature/export");
    let mut model = model();
    press(&mut model, "nuse the");
    model.press(Key::Paste(" dátabase\n".to_owned()));
    model.press(Key::Char('x'));
    model.press(Key::Backspace);
    assert!(screen(&mut model, 80, 24).contains("note to feature/export: use the dátabase"));
    // Whatever happens meanwhile, short of its end.
    model.select(PathBuf::from("/p/docs"));
    assert_eq!(model.press(Key::Enter), Some(Wish::Ask(key, Deed::Note("use the dátabase".to_owned()))));
    press(&mut model, "n");
    assert!(screen(&mut model, 80, 24).contains("docs does not run (done)"), "it has ended");
    assert_eq!(model.press(Key::Paste("cy".to_owned())), None);
    assert_eq!(press(&mut model, "q"), [Some(Wish::Leave { interrupted: false })]);
}

#[test]
fn a_note_for_a_loop_that_has_gone_goes_nowhere() {
    let mut model = model();
    press(&mut model, "nuse the");
    let rows = model.rows.iter().filter(|row| row.name != "feature/export").cloned().collect();
    model.see(rows);
    assert_eq!(model.press(Key::Enter), None);
}
