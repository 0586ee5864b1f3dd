//! The model of the screen: a fold over snapshots of loops, over lines of their logs, and over keys.

use super::filter::{Sort, listed};
use super::keys::{Deed, Key, Sight, Wish};
use super::plan::Plan;
use super::row::{Key as LoopKey, Row};
use super::scroll::{Pages, Paragraph};
use crate::text::line::shell_word;

/// The longest note, in characters.
const LONGEST_NOTE: usize = 2000;

/// The current mode of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Choosing,
    /// A filter is typed.
    Filtering,
    /// A note to this loop is typed.
    Noting(LoopKey, String),
    /// A request to a loop needs to be confirmed.
    Confirming(LoopKey, Deed),
    Help,
}

/// The page of the selected loop that is shown if there is no room for both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Side {
    #[default]
    Transcript,
    History,
}

/// A message in the last row, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) text: String,
    pub(super) is_trouble: bool,
}

/// The model.
#[derive(Debug)]
pub(crate) struct Model {
    /// The heading: a project's name, or the machine's.
    pub(super) of: String,
    pub(super) whole_machine: bool,
    pub(super) rows: Vec<Row>,
    pub(super) selected: Option<LoopKey>,
    pub(super) filter: String,
    pub(super) sort: Sort,
    pub(super) mode: Mode,
    pub(super) side: Side,
    pub(super) told: Option<Told>,
    pub(super) transcript: Pages,
    pub(super) history: Pages,
    /// Its tasks; empty where it has none.
    pub(super) plan: Plan,
    /// Why there is no transcript.
    pub(super) missing: Option<String>,
    /// The number of visible rows of the list.
    pub(super) list_height: usize,
}

impl Model {
    /// The model before the first snapshot.
    #[must_use]
    pub(crate) fn new(of: &str, whole_machine: bool) -> Self {
        Self {
            of: of.to_owned(),
            whole_machine,
            rows: Vec::new(),
            selected: None,
            filter: String::new(),
            sort: Sort::default(),
            mode: Mode::Choosing,
            side: Side::default(),
            told: None,
            transcript: Pages::default(),
            history: Pages::default(),
            plan: Plan::default(),
            missing: None,
            list_height: 1,
        }
    }

    /// Takes snapshots of all loops, newest start first. If the selected one is gone, its neighbour is selected.
    pub(crate) fn see(&mut self, rows: Vec<Row>) {
        let at = self.at();
        let was = self.selected().map(|row| row.name.clone());
        self.rows = rows;
        let is_gone = |key: &LoopKey| !self.rows.iter().any(|row| row.key == *key);
        if self.selected.as_ref().is_some_and(is_gone) {
            self.selected = None;
            if let Some(name) = was {
                self.tell(format!("{name} is not there any more"), true);
            }
        }
        if self.selected().is_none() {
            self.select_at(at.unwrap_or_default());
        }
        self.drop_questions();
    }

    /// Text that was typed for a loop that is gone is dropped.
    fn drop_questions(&mut self) {
        if let Mode::Noting(key, _) | Mode::Confirming(key, _) = &self.mode
            && !self.rows.iter().any(|row| row.key == *key)
        {
            self.mode = Mode::Choosing;
        }
    }

    /// The loops in the list.
    pub(super) fn listed(&self) -> Vec<&Row> {
        listed(&self.rows, &self.filter, self.sort)
    }

    /// The selected one, if it is listed.
    #[must_use]
    pub(crate) fn selected(&self) -> Option<&Row> {
        let key = self.selected.as_ref()?;
        self.rows.iter().find(|row| row.key == *key).filter(|row| row.is_meant(&self.filter))
    }

    /// Selects the loop of this place.
    pub(crate) fn select(&mut self, key: LoopKey) {
        self.selected = Some(key);
    }

    /// The place of the selected loop in the list.
    pub(super) fn at(&self) -> Option<usize> {
        let key = self.selected.as_ref()?;
        self.listed().iter().position(|row| row.key == *key)
    }

    fn select_at(&mut self, at: usize) {
        let listed = self.listed();
        let at = at.min(listed.len().saturating_sub(1));
        let key = listed.get(at).map(|row| row.key.clone());
        self.selected = key.or(self.selected.take());
    }

    fn step(&mut self, by: isize) {
        self.select_at(self.at().map_or(0, |at| at.saturating_add_signed(by)));
    }

    /// Shows a message in the last row.
    pub(crate) fn tell(&mut self, text: impl Into<String>, is_trouble: bool) {
        self.told = Some(Told { text: text.into(), is_trouble });
    }

    /// Another loop is selected: clears the pages of the last one.
    pub(crate) fn forget(&mut self) {
        self.transcript.clear();
        self.transcript.go_to_end();
        self.history.clear();
        self.history.go_to_end();
        self.plan = Plan::default();
        self.missing = None;
    }

    /// What its tasks are now; answers whether that is news.
    pub(crate) fn plans(&mut self, plan: Plan) -> bool {
        let is_news = self.plan != plan;
        self.plan = plan;
        is_news
    }

    /// Its log begins anew.
    pub(crate) fn forget_transcript(&mut self) {
        self.transcript.clear();
    }

    /// Sets why there is no transcript, if there is none.
    pub(crate) fn misses(&mut self, why: Option<String>) {
        self.missing = why;
    }

    /// Adds to the transcript.
    pub(crate) fn add(&mut self, paragraph: Paragraph) {
        self.transcript.push(paragraph);
    }

    /// Removes the last paragraph of the transcript, which goes on.
    pub(crate) fn take_last(&mut self) -> Option<Paragraph> {
        self.transcript.pop()
    }

    /// Sets the history.
    pub(crate) fn has_been(&mut self, steps: Vec<Paragraph>) {
        self.history.replace(steps);
    }

    /// Takes a key.
    pub(crate) fn press(&mut self, key: Key) -> Option<Wish> {
        self.told = None;
        match key {
            Key::Ctrl('c') => Some(Wish::Leave { interrupted: true }),
            Key::Ctrl('z') => Some(Wish::Suspend),
            Key::Ctrl('l') => Some(Wish::Redraw),
            key => match std::mem::replace(&mut self.mode, Mode::Choosing) {
                Mode::Choosing => self.choose(&key),
                Mode::Help => self.leave_help(&key),
                Mode::Filtering => {
                    self.type_filter(key);
                    None
                }
                Mode::Noting(to, text) => self.type_note(key, to, text),
                Mode::Confirming(of, deed) => self.confirm(&key, of, deed),
            },
        }
    }

    fn choose(&mut self, key: &Key) -> Option<Wish> {
        match key {
            Key::Char('q') => return Some(Wish::Leave { interrupted: false }),
            Key::Char('?' | 'h') => self.mode = Mode::Help,
            Key::Char('/') => self.mode = Mode::Filtering,
            Key::Escape => {
                self.filter.clear();
                self.go_to_end();
            }
            Key::Char('s') => {
                self.sort = self.sort.next();
                self.tell(format!("sorted by {}", self.sort.word()), false);
            }
            Key::Up | Key::Char('k') => self.step(-1),
            Key::Down | Key::Char('j') => self.step(1),
            Key::PageUp | Key::Char('b') => self.pages().page(-1),
            Key::PageDown | Key::Char(' ') => self.pages().page(1),
            Key::Home | Key::Char('g') => self.pages().go_to_begin(),
            Key::End | Key::Char('G') => self.go_to_end(),
            Key::Tab => {
                self.side = if self.side == Side::Transcript { Side::History } else { Side::Transcript };
            }
            Key::Char(char) => return self.act(*char),
            Key::Paste(_) => self.tell("text was pasted where none is wanted; n begins a note", true),
            Key::Enter | Key::Backspace | Key::Ctrl(_) => {}
        }
        None
    }

    fn pages(&mut self) -> &mut Pages {
        match self.side {
            Side::Transcript => &mut self.transcript,
            Side::History => &mut self.history,
        }
    }

    fn go_to_end(&mut self) {
        self.pages().go_to_end();
    }

    /// Keys that are about the selected loop.
    fn act(&mut self, char: char) -> Option<Wish> {
        let deed = match char {
            'p' => Some(Deed::Pause),
            'r' => Some(Deed::Resume),
            'c' => Some(Deed::Cancel),
            'C' => Some(Deed::CancelNow),
            'n' => Some(Deed::Note(String::new())),
            _ => None,
        };
        let sight = match char {
            'd' => Some(Sight::Diff),
            'l' => Some(Sight::Log),
            'a' => Some(Sight::Attach),
            'R' => Some(Sight::Report),
            _ => None,
        };
        if deed.is_none() && sight.is_none() {
            self.tell(format!("'{char}' is no key here, ? lists them"), true);
            return None;
        }
        let Some(row) = self.selected() else {
            self.tell("no loop is selected", true);
            return None;
        };
        let (key, name) = (row.key.clone(), row.name.clone());
        if let Some(sight) = sight {
            if sight == Sight::Attach && !row.is_worker {
                self.tell(format!("{name} has no window: only workers have one"), true);
                return None;
            }
            return Some(Wish::Show(key, sight));
        }
        if !row.is_alive {
            let word = row.word;
            let next = format!("'ralph report {}' says what is next", shell_word(&name));
            self.tell(format!("{name} does not run ({word}): {next}"), true);
            return None;
        }
        match deed? {
            Deed::Note(text) => self.mode = Mode::Noting(key, text),
            deed @ (Deed::Cancel | Deed::CancelNow) => self.mode = Mode::Confirming(key, deed),
            deed => return Some(Wish::Ask(key, deed)),
        }
        None
    }

    fn leave_help(&mut self, key: &Key) -> Option<Wish> {
        match key {
            Key::Escape | Key::Enter | Key::Char('q' | '?' | 'h' | ' ') => {}
            _ => self.mode = Mode::Help,
        }
        None
    }

    fn type_filter(&mut self, key: Key) {
        let at = self.at();
        match key {
            Key::Enter => return,
            Key::Escape => {
                self.filter.clear();
                return;
            }
            key => typed(&mut self.filter, key),
        }
        self.mode = Mode::Filtering;
        if self.selected().is_none() {
            self.select_at(at.unwrap_or_default());
        }
    }

    fn type_note(&mut self, key: Key, to: LoopKey, mut text: String) -> Option<Wish> {
        match key {
            Key::Enter if text.trim().is_empty() => None,
            Key::Enter => Some(Wish::Ask(to, Deed::Note(text))),
            Key::Escape => None,
            key => {
                typed(&mut text, key);
                self.mode = Mode::Noting(to, text);
                None
            }
        }
    }

    fn confirm(&mut self, key: &Key, of: LoopKey, deed: Deed) -> Option<Wish> {
        match key {
            Key::Char('y') => return Some(Wish::Ask(of, deed)),
            // Pasted text must not be an answer.
            Key::Paste(_) => self.mode = Mode::Confirming(of, deed),
            _ => self.tell("nothing was done", false),
        }
        None
    }
}

/// Adds what was typed or pasted to a line.
fn typed(line: &mut String, key: Key) {
    match key {
        Key::Char(char) => line.push(char),
        Key::Paste(text) => line.push_str(text.trim_end_matches('\n')),
        Key::Backspace => {
            line.pop();
        }
        Key::Ctrl('u') => line.clear(),
        Key::Ctrl('w') => {
            let end = line.trim_end().rfind(' ').map_or(0, |blank| blank + 1);
            line.truncate(end);
        }
        _ => {}
    }
    if let Some((end, _)) = line.char_indices().nth(LONGEST_NOTE) {
        line.truncate(end);
    }
}
