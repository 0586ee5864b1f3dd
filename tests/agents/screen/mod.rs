//! The agent on a terminal. It has an input line in a frame and takes pastes, as interactive agents do, and asks what they ask
//! at their start.
//!
//! The steps of one attempt stand with semicolons between them (`scene`). Those before the input line come first, the others
//! follow every prompt.

mod canvas;
mod keys;
mod scene;
mod steps;

use super::{Attempt, text};
use canvas::Canvas;
use keys::{Key, Keys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use scene::{Dialog, Step};
use serde_json::Value;
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// More lines than these, or more characters, are shown as a placeholder.
const LONGEST: (usize, usize) = (3, 800);
/// The next look, where only keys change anything.
const LONG: Duration = Duration::from_hours(1);
/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(120);

/// What an agent that ends by itself ends with.
type Ended = ControlFlow<u8>;

/// Shows its screen until it ends, and returns the exit code.
pub(super) fn show(attempt: &Attempt) -> anyhow::Result<u8> {
    let steps = &Step::read(&attempt.words)?[..];
    if let Some(code) =
        steps.iter().find_map(|step| if let Step::Gone(code) = step { Some(*code) } else { None })
    {
        eprintln!("I am gone before there is anything to see.");
        return Ok(code);
    }
    let has = |wanted: &Step| steps.contains(wanted);
    let (alternate, plain) = (has(&Step::Alternate), has(&Step::Plain));
    let canvas = Canvas::open(alternate)?;
    let mut screen =
        Screen { attempt, canvas, plain, keys: Keys::default(), input: Input::default(), spins: None };
    for step in steps {
        if let ControlFlow::Break(code) = screen.begin(step)? {
            return Ok(code);
        }
    }
    screen.canvas.say(&format!("Scripted agent v{}\n\n", env!("CARGO_PKG_VERSION")))?;
    loop {
        let prompt = match screen.prompt()? {
            ControlFlow::Break(code) => return Ok(code),
            ControlFlow::Continue(prompt) => prompt,
        };
        if let ControlFlow::Break(code) = screen.play(steps, &prompt)? {
            return Ok(code);
        }
    }
}

/// The terminal, and what is on it.
struct Screen<'a> {
    attempt: &'a Attempt,
    canvas: Canvas,
    plain: bool,
    keys: Keys,
    input: Input,
    /// Since when a spinner turns.
    spins: Option<Instant>,
}

/// What has been typed, and what of it is shown by its number of lines alone.
#[derive(Default)]
struct Input {
    text: String,
    shown: String,
    pastes: usize,
}

impl Input {
    fn add(&mut self, text: &str, is_paste: bool) {
        let text = &text.replace('\x1b', "");
        self.text.push_str(text);
        let lines = text.lines().count();
        if is_paste && (lines > LONGEST.0 || text.len() > LONGEST.1) {
            self.pastes += 1;
            let more = text.matches('\n').count();
            let placeholder = format!("[Pasted text #{} +{more} lines]", self.pastes);
            self.shown.push_str(&placeholder);
        } else {
            self.shown.push_str(text);
        }
    }
}

impl Screen<'_> {
    /// The steps before the input line.
    fn begin(&mut self, step: &Step) -> anyhow::Result<Ended> {
        match step {
            Step::Slow(seconds) => {
                let until = Instant::now() + Duration::from_secs(*seconds);
                while let Some(left) = until.checked_duration_since(Instant::now()) {
                    self.hear(left)?;
                }
                Ok(Ended::Continue(()))
            }
            Step::Ask(dialog) => self.ask(*dialog),
            _ => Ok(Ended::Continue(())),
        }
    }

    /// A dialog, until it is answered.
    fn ask(&mut self, dialog: Dialog) -> anyhow::Result<Ended> {
        let (title, entries): (&str, &[&str]) = match dialog {
            Dialog::Theme => {
                ("Choose the text style that looks best with your terminal", &["Auto", "Dark mode"])
            }
            Dialog::Trust => {
                ("Do you trust the files in this folder?", &["No, exit", "Yes, I trust this folder"])
            }
            Dialog::Login => ("Select login method:", &["1. An account", "2. A key"]),
        };
        let mut at = 0;
        loop {
            let mut lines = vec![format!(" {title}"), String::new()];
            let mark = |entry: usize| if entry == at { '❯' } else { ' ' };
            lines.extend(entries.iter().enumerate().map(|(entry, text)| format!(" {} {text}", mark(entry))));
            lines.extend([String::new(), " Enter to confirm · Esc to cancel".to_owned()]);
            self.canvas.draw(&lines)?;
            for key in self.hear(LONG)? {
                match key {
                    Key::Up => at = at.saturating_sub(1),
                    Key::Down => at = (at + 1).min(entries.len() - 1),
                    Key::Interrupt | Key::Escape => return Ok(Ended::Break(1)),
                    Key::Enter => {
                        self.canvas.clear()?;
                        let refused = dialog == Dialog::Trust && at == 0;
                        return Ok(if refused { Ended::Break(1) } else { Ended::Continue(()) });
                    }
                    _ => {}
                }
            }
        }
    }

    /// The next prompt, or the end: Ctrl+C where nothing has been typed.
    fn prompt(&mut self) -> anyhow::Result<ControlFlow<u8, String>> {
        loop {
            self.draw()?;
            let mut keys = self.hear(LONG)?.into_iter();
            while let Some(key) = keys.next() {
                match key {
                    Key::Interrupt if self.input.text.is_empty() => return Ok(ControlFlow::Break(0)),
                    Key::Enter => {
                        let prompt = self.submit()?;
                        // What was typed behind it is the beginning of the next.
                        keys.for_each(|key| self.edit(key));
                        return Ok(ControlFlow::Continue(prompt));
                    }
                    key => self.edit(key),
                }
            }
        }
    }

    fn edit(&mut self, key: Key) {
        match key {
            Key::Text(text) => self.input.add(&text, false),
            Key::Paste(text) => self.input.add(&text, true),
            Key::Backspace => {
                self.input.text.pop();
                self.input.shown.pop();
            }
            Key::Interrupt | Key::Escape => self.input = Input::default(),
            Key::Enter | Key::Up | Key::Down => {}
        }
    }

    /// The prompt moves from the input line to what stays.
    fn submit(&mut self) -> anyhow::Result<String> {
        let prompt = std::mem::take(&mut self.input).text;
        self.canvas.say(&marked(&prompt))?;
        self.canvas.say("\n")?;
        Ok(prompt)
    }

    /// The lines at the bottom: a spinner, the input line, a hint.
    fn draw(&mut self) -> anyhow::Result<()> {
        let input = marked(&self.input.shown);
        if self.plain {
            // Nothing is drawn while it is at work.
            let lines = if self.spins.is_some() {
                vec![String::new()]
            } else {
                input.lines().map(str::to_owned).collect()
            };
            return self.canvas.draw(&lines);
        }
        let mut lines = Vec::new();
        let working = self.spins.map(|since| {
            let turn = since.elapsed().as_millis() / TICK.as_millis();
            let sign = ['✶', '✻', '✽', '·'][usize::try_from(turn % 4).unwrap_or(0)];
            format!("{sign} Working… ({}s · esc to interrupt)", since.elapsed().as_secs())
        });
        if let Some(working) = &working {
            lines.extend([working.clone(), String::new()]);
        }
        lines.push(Canvas::rule());
        lines.extend(input.lines().map(str::to_owned));
        let hint = if self.input.pastes > 0 { "  paste again to expand" } else { "  ? for shortcuts" };
        lines.extend([Canvas::rule(), hint.to_owned()]);
        self.canvas.draw(&lines)
    }

    /// What is typed within this time; nothing typed: none.
    fn hear(&mut self, time: Duration) -> anyhow::Result<Vec<Key>> {
        /// What follows an escape comes at once.
        const SOON: Duration = Duration::from_millis(50);
        let mut time = time;
        loop {
            let stdin = io::stdin();
            let timeout = Timespec::try_from(time)?;
            let ready = match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => continue,
                ready => ready?,
            };
            let mut bytes = [0; 8192];
            let length = if ready == 0 { 0 } else { stdin.lock().read(&mut bytes)? };
            anyhow::ensure!(ready == 0 || length > 0, "my terminal is gone");
            let keys = self.keys.take(&bytes[..length], ready == 0);
            if !keys.is_empty() || ready == 0 {
                return Ok(keys);
            }
            time = SOON;
        }
    }

    /// Shows what ralph's scripted agent has said.
    fn event(&mut self, event: &Value) -> anyhow::Result<()> {
        let of = |name| text(event, name);
        match of("type") {
            "text" => self.canvas.say(&format!("● {}\n\n", of("text").replace('\n', "\n  "))),
            "tool" => self.canvas.say(&format!("● {}({})\n\n", of("name"), of("input"))),
            "result" if of("status") != "ok" => self.canvas.say(&format!("● Error: {}\n\n", of("message"))),
            _ => Ok(()),
        }
    }
}

/// A prompt behind its mark.
fn marked(text: &str) -> String {
    format!("❯ {}", text.replace('\n', "\n  "))
}
