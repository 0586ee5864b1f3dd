//! ralph on a terminal: a real pseudo-terminal, and an emulation of the screen behind it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rexpect::process::{PtyProcess, WaitStatus};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcgetsid, tcsetwinsize};

use crate::scratch::wait_for;

/// A terminal with a program on it.
pub(crate) struct Terminal {
    process: PtyProcess,
    tty: File,
    seen: Arc<Mutex<Seen>>,
    reader: JoinHandle<()>,
}

struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// Starts the program on a terminal of this size.
    pub(crate) fn start(command: &Command, rows: u16, columns: u16) -> Self {
        // The size has to be there before the program looks; the shell waits until it is.
        let mut shell = Command::new("sh");
        shell.args(["-c", "while [ \"$(stty size)\" = '0 0' ]; do :; done; exec \"$@\"", "sh"]);
        shell.arg(command.get_program()).args(command.get_args()).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(command.get_current_dir().unwrap());

        let mut process = PtyProcess::new(shell).unwrap();
        // A shell for people heeds no TERM when a test that has failed drops it.
        process.set_kill_timeout(Some(2000));
        let tty = process.get_file_handle().unwrap();
        let size = |cells| NonZero::new(cells).unwrap();
        let screen = vt100::Parser::new(size(rows), size(columns), 10_000);
        let seen = Arc::new(Mutex::new(Seen { screen, bytes: Vec::new() }));
        let reader = std::thread::spawn({
            let (mut tty, seen) = (tty.try_clone().unwrap(), Arc::clone(&seen));
            move || {
                let mut buffer = [0; 4096];
                // The last writer is gone when reading fails.
                while let Ok(length @ 1..) = tty.read(&mut buffer) {
                    let mut seen = seen.lock().unwrap();
                    seen.screen.process(&buffer[..length]);
                    seen.bytes.extend(&buffer[..length]);
                }
            }
        });
        let terminal = Self { process, tty, seen, reader };
        terminal.resize(rows, columns);
        terminal
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = |cells| NonZero::new(cells).unwrap();
        self.seen.lock().unwrap().screen.screen_mut().set_size(size(rows), size(columns));
        self.claim_size(rows, columns);
    }

    /// Has the terminal say that it has this size.
    pub(crate) fn claim_size(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.tty, size).unwrap();
    }

    /// Types this.
    pub(crate) fn press(&mut self, keys: &str) {
        self.tty.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses Ctrl+C.
    pub(crate) fn press_ctrl_c(&mut self) {
        self.press("\x03");
    }

    /// What a person sees, without the empty rows at the end.
    pub(crate) fn screen(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents().trim_end().to_owned()
    }

    /// Row and column of the cursor, from 0.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.seen.lock().unwrap().screen.screen().cursor_position()
    }

    /// The program that the terminal was opened for.
    pub(crate) fn pid(&self) -> u32 {
        tcgetsid(&self.tty).unwrap().as_raw_nonzero().get().unsigned_abs()
    }

    /// How the terminal is set.
    pub(crate) fn modes(&self) -> Modes {
        let line = tcgetattr(&self.tty).unwrap().local_modes;
        let seen = self.seen.lock().unwrap();
        let screen = seen.screen.screen();
        Modes {
            has_lines: line.contains(LocalModes::ICANON),
            has_signals: line.contains(LocalModes::ISIG),
            is_alternate: screen.alternate_screen(),
            hides_cursor: screen.hide_cursor(),
            brackets_paste: screen.bracketed_paste(),
        }
    }

    /// Waits until the screen is as it should be.
    pub(crate) fn wait_for(&self, what: &str, is: impl Fn(&str) -> bool) {
        wait_for(&format!("{what} on the screen"), || {
            is(&self.screen()).then_some(()).or_else(|| {
                assert!(!self.reader.is_finished(), "ended without {what}: {}", self.screen());
                None
            })
        });
    }

    /// Waits for the program's end; its exit code, and all that scrolled by, as a person sees it.
    pub(crate) fn end(self) -> End {
        wait_for("the end of the program", || self.reader.is_finished().then_some(()));
        let code = match self.process.wait().unwrap() {
            WaitStatus::Exited(_, code) => Some(code),
            _ => None,
        };
        let (screen, cursor, modes) = (self.screen(), self.cursor(), self.modes());
        let mut seen = self.seen.lock().unwrap();
        let bytes = String::from_utf8_lossy(&seen.bytes).into_owned();
        End { code, cursor, modes, history: history(&mut seen.screen) + &screen, bytes }
    }
}

/// How a terminal is set: by its line discipline, and by what programs have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "that is how terminals are")]
pub(crate) struct Modes {
    pub has_lines: bool,
    pub has_signals: bool,
    pub is_alternate: bool,
    pub hides_cursor: bool,
    pub brackets_paste: bool,
}

impl Modes {
    /// As a shell finds it.
    pub(crate) const USUAL: Self = Self {
        has_lines: true,
        has_signals: true,
        is_alternate: false,
        hides_cursor: false,
        brackets_paste: false,
    };
}

/// What a program left on its terminal.
#[derive(Debug)]
pub(crate) struct End {
    pub code: Option<i32>,
    pub cursor: (u16, u16),
    pub modes: Modes,
    /// What can be read when one scrolls up, and the screen.
    pub history: String,
    /// As it was written.
    pub bytes: String,
}

/// The rows that have scrolled off the screen.
fn history(parser: &mut vt100::Parser) -> String {
    let screen = parser.screen_mut();
    let (_, columns) = screen.size();
    screen.set_scrollback(usize::MAX);
    let mut text = String::new();
    for row in (1..=screen.scrollback()).rev() {
        screen.set_scrollback(row);
        text += &screen.rows(0, columns.into()).next().unwrap_or_default();
        text.push('\n');
    }
    screen.set_scrollback(0);
    text
}
