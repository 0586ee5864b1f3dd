//! The text that a pane shows.

use super::error::TmuxError;
use super::window::Window;
use super::{Asks, Words};

/// How often the position of a mark is searched again in a pane that scrolls meanwhile.
const TRIES: usize = 5;
/// How many lines above a mark have to match.
const ABOVE: usize = 5;

/// The facts that tmux reports about a pane, in this order.
const FACTS: &str = "#{pid},#{pane_id},#{pane_dead},#{pane_dead_status},#{alternate_on},#{cursor_x},#{cursor_y},#{pane_width},#{pane_height},#{history_size},#{pane_in_mode}";

/// The state of a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    /// Its lines from top to bottom without escape sequences and trailing blanks, and without the empty ones at the
    /// end. The scrollback comes first if it was requested.
    pub lines: Vec<String>,
    /// Column and row of the cursor on the visible screen, from 0.
    pub cursor: (usize, usize),
    /// Columns and rows.
    pub size: (usize, usize),
    /// How many lines the scrollback has.
    pub scrolled: usize,
    /// Whether the program uses its alternate screen, which has no scrollback.
    pub is_alternate: bool,
    /// Whether a user is scrolling back; the lines are those of the program all the same.
    pub is_in_mode: bool,
    /// Set if the program of the pane has ended: our wrapper, not what it runs.
    pub dead: Option<Dead>,
}

/// How the first program of a pane has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dead {
    /// Its exit code, if tmux knows it.
    pub status: Option<i32>,
}

impl Mark {
    /// The length of the scrollback.
    #[must_use]
    pub fn scrolled(&self) -> usize {
        self.scrolled
    }
}

/// How much of a pane to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The visible screen.
    Visible,
    /// The visible screen and the scrollback.
    Whole,
}

/// A position in the output of a pane: later output is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The length of the scrollback.
    scrolled: usize,
    /// Its last lines: if they are not found again, lines were lost, or wrapped to another width.
    above: Vec<String>,
}

/// Reads a pane, by `tmux` for the visible screen; the whole scrollback is too much for a connection, so it always
/// takes a process. `joined`: a line that the terminal has wrapped is one line.
///
/// # Errors
/// If it is gone, or tmux does not answer.
pub fn look(tmux: &impl Asks, window: &Window, extent: Extent, joined: bool) -> Result<Screen, TmuxError> {
    let from = match extent {
        Extent::Visible => None,
        Extent::Whole => Some("-"),
    };
    look_from(tmux, window, from, joined)
}

/// Marks the position between the scrollback and the visible screen.
///
/// # Errors
/// As above.
pub fn mark(tmux: &impl Asks, window: &Window) -> Result<Mark, TmuxError> {
    let screen = look_from(tmux, window, Some(&format!("-{ABOVE}")), false)?;
    Ok(Mark { scrolled: screen.scrolled, above: first(&screen, screen.scrolled.min(ABOVE)) })
}

/// All lines since `mark`, beginning with the top of the screen at that time. If the position is lost (too much
/// output, a cleared scrollback, another width), all existing lines.
///
/// # Errors
/// As above.
pub fn since(tmux: &impl Asks, window: &Window, mark: &Mark, joined: bool) -> Result<Screen, TmuxError> {
    if mark.scrolled == 0 {
        return look(tmux, window, Extent::Whole, joined);
    }
    let mut scrolled = look(tmux, window, Extent::Visible, false)?.scrolled;
    for _ in 0..TRIES {
        let Some(lines) = scrolled.checked_sub(mark.scrolled) else { break };
        let check = look_from(tmux, window, Some(&format!("-{}", lines + mark.above.len())), false)?;
        if check.scrolled == scrolled && first(&check, mark.above.len()) != mark.above {
            break;
        }
        // Line 0 is the first visible one.
        let from = if lines == 0 { "0".to_owned() } else { format!("-{lines}") };
        let screen = look_from(tmux, window, Some(&from), joined)?;
        if check.scrolled == scrolled && screen.scrolled == scrolled {
            return Ok(screen);
        }
        scrolled = screen.scrolled;
    }
    look(tmux, window, Extent::Whole, joined)
}

/// The first lines, even if they and all following ones are empty.
fn first(screen: &Screen, count: usize) -> Vec<String> {
    screen.lines.iter().cloned().chain(std::iter::repeat(String::new())).take(count).collect()
}

/// Asks for facts and lines together. `from`: the first line, counted from the top of the screen.
fn look_from(
    tmux: &impl Asks,
    window: &Window,
    from: Option<&str>,
    joined: bool,
) -> Result<Screen, TmuxError> {
    window.require_server()?;
    let facts = Words::new(["display-message", "-p", "-t", &window.pane, FACTS]);
    let mut capture = Words::new(["capture-pane", "-p", "-t", &window.pane]);
    if let Some(from) = from {
        capture = capture.and(["-S", from]);
    }
    if joined {
        capture = capture.and(["-J"]);
    }
    let commands = [facts, capture];
    let answer = if from.is_some() { window.server().ask(&commands) } else { tmux.ask(&commands) }?;
    let (facts, lines) = answer.split_first().ok_or_else(|| TmuxError::Gone("no answer".to_owned()))?;
    Facts::parse(facts)
        .filter(|facts| facts.server == window.server.pid && facts.pane == window.pane)
        .map(|facts| facts.screen(lines))
        .ok_or_else(|| TmuxError::Gone(format!("can't find pane: {}", window.pane)))
}

/// The values of a line with [`FACTS`].
struct Facts {
    server: u32,
    pane: String,
    /// The screen without its lines.
    screen: Screen,
}

impl Facts {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(',');
        let mut word = || words.next();
        let (server, pane) = (word()?.parse().ok()?, word()?.to_owned());
        let (is_dead, status) = (word()? == "1", word()?.parse().ok());
        let is_alternate = word()? == "1";
        let mut number = || word()?.parse().ok();
        let (cursor, size) = ((number()?, number()?), (number()?, number()?));
        let scrolled = number()?;
        let is_in_mode = word()? != "0";
        let dead = is_dead.then_some(Dead { status });
        let screen = Screen { lines: Vec::new(), cursor, size, scrolled, is_alternate, is_in_mode, dead };
        Some(Self { server, pane, screen })
    }

    fn screen(self, lines: &[String]) -> Screen {
        let mut lines: Vec<String> = lines.iter().map(|line| line.trim_end().to_owned()).collect();
        drop_empty(&mut lines);
        // tmux 3.2 writes this line below a dead program's output.
        if self.screen.dead.is_some() && lines.last().is_some_and(|line| line.starts_with("Pane is dead (")) {
            lines.pop();
            drop_empty(&mut lines);
        }
        Screen { lines, ..self.screen }
    }
}

fn drop_empty(lines: &mut Vec<String>) {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read() {
        let facts = Facts::parse("12,%3,1,7,0,5,6,200,50,9,0").unwrap();
        assert_eq!((facts.server, facts.pane.as_str()), (12, "%3"));
        let lines = ["a  ", "", " b", "", "Pane is dead (status 7, now)", ""].map(str::to_owned);
        let screen = facts.screen(&lines);
        assert_eq!(screen.lines, ["a", "", " b"]);
        assert_eq!((screen.cursor, screen.size, screen.scrolled), ((5, 6), (200, 50), 9));
        assert_eq!(screen.dead, Some(Dead { status: Some(7) }));
        assert_eq!((screen.is_alternate, screen.is_in_mode), (false, false));

        let living = Facts::parse("12,%3,0,,1,5,6,200,50,9,1").unwrap();
        let screen = living.screen(&lines);
        assert_eq!(
            (screen.dead, screen.is_alternate, screen.is_in_mode, screen.lines.len()),
            (None, true, true, 5)
        );
        for nonsense in ["", ",,,,,,,,,,", "12,%3,0,,1,5,6,200,50", "x"] {
            assert!(Facts::parse(nonsense).is_none(), "{nonsense}");
        }
    }
}
