//! Opens and closes the panes of workers, each in its own session.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::TmuxError;
use super::server::Server;
use super::{Asks as _, Words, words};
use crate::platform::identity::ProcessIdentity;

/// The scrollback of our windows in lines: most of an agent's output in one iteration.
const HISTORY: &str = "50000";
/// The default of a server without a configuration.
const USUAL_HISTORY: &str = "2000";
/// The most sessions of one name.
const MOST_OF_A_NAME: u32 = 1000;
/// The facts about a new window. The path comes last, because it may have blanks in it.
const IDS: &str = "#{session_id} #{window_id} #{pane_id} #{pid} #{session_name} #{socket_path}";

/// The position of a pane.
const PLACE: &str = "#{session_id} #{window_id} #{session_name}";

/// The pane to open.
#[derive(Debug, Clone)]
pub struct Opening<'a> {
    /// The name of the session and the window; characters other than letters, digits, `-` and `_` become `_`, and a
    /// name that is taken gets a number.
    pub name: &'a str,
    /// The program and its arguments: two words or more, as tmux would pass a single one to a shell.
    pub argv: &'a [OsString],
    /// The working directory for further windows that a user opens in the session.
    pub cwd: &'a Path,
    /// Columns and rows, until a terminal of another size is attached.
    pub size: (u16, u16),
}

impl Opening<'_> {
    /// The default size.
    pub const SIZE: (u16, u16) = (200, 50);
}

/// A window of ours with one pane. All fields stay valid until the pane is gone: a server never reuses ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The path of the server's socket.
    pub socket: PathBuf,
    /// The server's process.
    pub server: ProcessIdentity,
    /// The name of the session.
    pub name: String,
    /// The session, as `$3`.
    pub session: String,
    /// The window, as `@5`.
    pub window: String,
    /// The pane, as `%7`.
    pub pane: String,
}

impl Window {
    /// Its server.
    #[must_use]
    pub fn server(&self) -> Server {
        Server::new(&self.socket)
    }

    /// `command` if this is still the server in which the window was opened, else one that prints [`STRANGER`].
    pub(super) fn guarded(&self, command: &Words) -> Words {
        self.guarded_by(&self.is_same(), command)
    }

    /// A command that needs a living program in the pane, or one that prints [`STRANGER`]: tmux 3.3a crashes when it
    /// pastes to a dead one.
    pub(super) fn guarded_alive(&self, command: &Words) -> Words {
        self.guarded_by(&format!("#{{&&:{},#{{!=:#{{pane_dead}},1}}}}", self.is_same()), command)
    }

    /// This pane with its current session and window: a user may have moved it.
    ///
    /// # Errors
    /// If it is gone, or tmux does not answer.
    pub fn where_it_is(&self) -> Result<Self, TmuxError> {
        let line = self.told(PLACE)?;
        match line.splitn(3, ' ').collect::<Vec<_>>()[..] {
            [session, window, name] if session.starts_with('$') => Ok(Self {
                session: session.to_owned(),
                window: window.to_owned(),
                name: name.to_owned(),
                ..self.clone()
            }),
            _ => Err(TmuxError::Gone(line)),
        }
    }

    /// The pid of the program that was last started in it, which may have ended.
    ///
    /// # Errors
    /// If it is gone, or tmux does not answer.
    pub fn process(&self) -> Result<u32, TmuxError> {
        let line = self.told("#{pane_pid}")?;
        line.parse().map_err(|_| TmuxError::Gone(line))
    }

    /// Expands a tmux format for it, or [`STRANGER`] if it is in another server.
    fn told(&self, format: &str) -> Result<String, TmuxError> {
        let show = Words::new(["display-message", "-p", "-t", &self.pane, format]);
        self.require_server()?;
        let answer = self.server().ask(&[self.guarded(&show)])?;
        Ok(answer.into_iter().next().unwrap_or_default())
    }

    fn is_same(&self) -> String {
        format!("#{{==:#{{pid}},{}}}", self.server.pid)
    }

    fn guarded_by(&self, condition: &str, command: &Words) -> Words {
        let stranger = Words::new(["display-message", "-p", STRANGER]);
        Words::new(["if-shell", "-F", "-t", &self.pane, condition])
            .and([command.to_line(), stranger.to_line()])
    }

    /// Fails if the server is not the one in which the window was opened, as far as can be seen from here.
    pub(super) fn require_server(&self) -> Result<(), TmuxError> {
        if self.server.is_alive() { Ok(()) } else { Err(TmuxError::Gone(format!("pid {}", self.server.pid))) }
    }
}

/// The output of a guarded command that is not run.
pub(super) const STRANGER: &str = "ralph: its program has ended, or this is another server";

/// Runs commands that are [guarded](Window::guarded).
pub(super) fn guarded(window: &Window, commands: &[Words], input: Option<Vec<u8>>) -> Result<(), TmuxError> {
    window.require_server()?;
    let answer = window.server().ask_with(commands, input)?;
    if answer.iter().any(|line| line == STRANGER) {
        return Err(TmuxError::Gone(STRANGER.to_owned()));
    }
    Ok(())
}

impl Server {
    /// Opens a session with one window, and starts the server if it does not run.
    ///
    /// # Errors
    /// If tmux is missing, too old or refuses.
    pub fn open(&self, opening: &Opening<'_>) -> Result<Window, TmuxError> {
        Self::check()?;
        if opening.argv.len() < 2 {
            return Err(TmuxError::Input("a program without arguments would be run by a shell".to_owned()));
        }
        // The user's own windows in this server keep its setting: the user may have named the server.
        let usual = self.ask(&[Words::new(["show-options", "-gv", "history-limit"])]);
        let usual = usual.ok().and_then(|lines| lines.into_iter().next()).unwrap_or(USUAL_HISTORY.to_owned());
        let base = session_name(opening.name);
        let mut count = 1;
        loop {
            let name = if count == 1 { base.clone() } else { format!("{base}-{count}") };
            let made = self.ask_to_start(&commands(opening, &name, &usual));
            if made.is_err() {
                // The commands after the refused one were not run.
                let _ = self.ask(&[set_history(&usual)]);
            }
            match made {
                Err(TmuxError::Refused { said, .. })
                    if said.starts_with("duplicate session") && count < MOST_OF_A_NAME =>
                {
                    count += 1;
                }
                made => return window(&made?, self),
            }
        }
    }

    /// Starts another program in a window of ours, replacing the current one: attached clients stay.
    ///
    /// # Errors
    /// If it is gone.
    pub fn renew(&self, window: &Window, argv: &[OsString], cwd: &Path) -> Result<(), TmuxError> {
        if argv.len() < 2 {
            return Err(TmuxError::Input("a program without arguments would be run by a shell".to_owned()));
        }
        let respawn = Words::new(["respawn-pane", "-k", "-t", &window.pane, "-c"]);
        let respawn = respawn.and([words::literal(cwd.as_os_str()), "--".into()]).and(argv);
        let clear = Words::new(["clear-history", "-t", &window.pane]);
        guarded(window, &[window.guarded(&respawn), window.guarded(&clear)], None)
    }
}

impl Server {
    /// Closes all panes that were started with this unique word in their command line, except the one of `but`: a
    /// process may have died before it recorded them. Returns how many there were.
    ///
    /// # Errors
    /// If tmux does not answer.
    pub fn close_strays(&self, word: &str, but: Option<&Window>) -> Result<usize, TmuxError> {
        let is_one = format!("#{{m:*{word}*,#{{pane_start_command}}}}");
        let list = Words::new(["list-panes", "-a", "-f", &is_one, "-F", "#{pid} #{pane_id}"]);
        let listed = match self.ask(&[list]) {
            Ok(listed) => listed,
            // There is no server.
            Err(error) if error.is_gone() || matches!(error, TmuxError::Missing) => return Ok(0),
            Err(error) => return Err(error),
        };
        let kept = but.map(|but| format!("{} {}", but.server.pid, but.pane));
        let mut count = 0;
        for line in listed.iter().filter(|line| Some(*line) != kept.as_ref()) {
            let Some((_, pane)) = line.split_once(' ') else { continue };
            let kill = Words::new(["kill-pane", "-t", pane]).to_line();
            let guarded = Words::new(["if-shell", "-F", "-t", pane, &is_one]).and([kill]);
            match self.ask(&[guarded]) {
                // The pane, or with the last one the server, has ended meanwhile.
                Err(error) if !error.is_gone() => return Err(error),
                _ => count += 1,
            }
        }
        Ok(count)
    }
}

/// Closes only our pane: its window, session and server end with it if nothing else is in them. A missing pane is
/// fine.
///
/// # Errors
/// If tmux does not answer.
pub fn close(window: &Window) -> Result<(), TmuxError> {
    let kill = Words::new(["kill-pane", "-t", &window.pane]);
    match guarded(window, &[window.guarded(&kill)], None) {
        Err(error) if !error.is_gone() => Err(error),
        _ => Ok(()),
    }
}

/// The command that shows a window to the user in our terminal, also inside another tmux.
#[must_use]
pub fn attach(window: &Window) -> std::process::Command {
    let show = [
        Words::new(["select-window", "-t", &format!("{}:{}", window.session, window.window)]),
        Words::new(["select-pane", "-t", &window.pane]),
        Words::new(["attach-session", "-t", &window.session]),
    ];
    let mut command = window.server().command();
    command.args(words::to_args(&show));
    command
}

/// All commands for a window of ours, as one list, so that nothing can happen in between.
fn commands(opening: &Opening<'_>, name: &str, usual: &str) -> Vec<Words> {
    let (columns, rows) = opening.size;
    let target = format!("={name}:");
    let new = Words::new(["new-session", "-d", "-P", "-F", IDS, "-s", name, "-n", name])
        // The session would inherit our variables.
        .and(["-E", "-x", &columns.to_string(), "-y", &rows.to_string(), "-c"])
        .and([words::literal(opening.cwd.as_os_str()), "--".into()])
        .and(opening.argv);
    let pane = |flags, option, value| Words::new(["set-option", flags, "-t", &target, option, value]);
    let status = format!(" {} ", words::literal(opening.name.as_ref()).to_string_lossy().replace('%', "%%"));
    vec![
        // A pane takes the value when it is opened.
        set_history(HISTORY),
        new,
        set_history(usual),
        // The last screen is read after the program has ended.
        pane("-p", "remain-on-exit", "on"),
        // No line about that on the screen; tmux 3.2 does not know this option.
        pane("-pq", "remain-on-exit-format", ""),
        pane("-q", "destroy-unattached", "off"),
        pane("-q", "status-left", &status),
        pane("-q", "status-left-length", "60"),
    ]
}

fn set_history(lines: &str) -> Words {
    Words::new(["set-option", "-g", "history-limit", lines])
}

/// A name that tmux accepts unchanged: neither a format nor an id, and without characters that end a name.
fn session_name(name: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    let name: String = name.chars().map(|char| if is_plain(char) { char } else { '_' }).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

fn window(answer: &[String], server: &Server) -> Result<Window, TmuxError> {
    let read = || {
        let mut words = answer.first()?.splitn(6, ' ');
        let mut next = || words.next().map(str::to_owned);
        let (session, window, pane) = (next()?, next()?, next()?);
        let pid = next()?.parse().ok()?;
        let name = next()?;
        let socket = next()?.into();
        let server = ProcessIdentity::of(pid).ok()?;
        Some(Window { socket, server, name, session, window, pane })
    };
    read().ok_or_else(|| TmuxError::Refused {
        command: "new-session".to_owned(),
        said: answer.join(" "),
        server: server.options(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_they_are() {
        for (name, made) in
            [("a", "a"), ("a.b:c", "a_b_c"), ("=a", "_a"), ("", "_"), ("Ab-1", "Ab-1"), ("$1", "_1")]
        {
            assert_eq!(session_name(name), made);
        }
    }

    #[test]
    fn a_window_survives_being_written_down() {
        let server = ProcessIdentity::of_self().unwrap();
        let line = vec![format!("$1 @2 %3 {} a_b /tmp/a b/c", server.pid)];
        let window = window(&line, &Server::new("x")).unwrap();
        assert_eq!((window.pane.as_str(), window.name.as_str()), ("%3", "a_b"));
        assert_eq!(window.socket, Path::new("/tmp/a b/c"));
        let text = serde_json::to_string(&window).unwrap();
        assert_eq!(serde_json::from_str::<Window>(&text).unwrap(), window);
        assert!(super::window(&["nonsense".to_owned()], &Server::new("x")).is_err());
    }
}
