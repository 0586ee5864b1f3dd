//! Opens and closes the panes of workers, each in a session of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::TmuxError;
use super::server::Server;
use super::{Asks as _, Words, words};
use crate::process::identity::ProcessIdentity;

/// How many lines can be scrolled back to in our windows: most of what an agent prints in one iteration.
const HISTORY: &str = "50000";
/// What a server without a configuration has.
const USUAL_HISTORY: &str = "2000";
/// How many sessions of one name are reckoned with.
const MOST_OF_A_NAME: u32 = 1000;
/// What tmux tells of a new window. The path comes last, as it may have blanks in it.
const IDS: &str = "#{session_id} #{window_id} #{pane_id} #{pid} #{session_name} #{socket_path}";

/// Where a pane is.
const PLACE: &str = "#{session_id} #{window_id} #{session_name}";

/// What to open.
#[derive(Debug, Clone)]
pub struct Opening<'a> {
    /// What the session and the window are called; other characters than letters, digits, `-` and `_` become `_`, and a name
    /// that is taken gets a number.
    pub name: &'a str,
    /// The program and its arguments: two words or more, as tmux would hand a single one to a shell.
    pub argv: &'a [OsString],
    /// Where windows that a user opens beside ours begin.
    pub cwd: &'a Path,
    /// Columns and rows, as long as nobody attaches from a terminal of another size.
    pub size: (u16, u16),
}

impl Opening<'_> {
    /// The size where nothing says otherwise.
    pub const SIZE: (u16, u16) = (200, 50);
}

/// A window of ours with one pane. All of it stays true until the pane is gone: ids are never used again in one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The path of the server's socket.
    pub socket: PathBuf,
    /// The server's process.
    pub server: ProcessIdentity,
    /// The session as people see it.
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

    /// `command` if this is still the server in which the window was opened, else one that answers [`STRANGER`].
    pub(super) fn guarded(&self, command: &Words) -> Words {
        self.guarded_by(&self.is_same(), command)
    }

    /// The same for a command that needs a living program in the pane: tmux 3.3a crashes when it pastes to a dead one.
    pub(super) fn guarded_alive(&self, command: &Words) -> Words {
        self.guarded_by(&format!("#{{&&:{},#{{!=:#{{pane_dead}},1}}}}", self.is_same()), command)
    }

    /// The same pane with the session and the window that it is in now: a user may have moved it.
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

    /// The pid of the program that was started in it last, which may have ended.
    ///
    /// # Errors
    /// If it is gone, or tmux does not answer.
    pub fn process(&self) -> Result<u32, TmuxError> {
        let line = self.told("#{pane_pid}")?;
        line.parse().map_err(|_| TmuxError::Gone(line))
    }

    /// What tmux makes of this format for it, and [`STRANGER`] where it is another server's.
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

    /// An error where the server is not that in which the window was opened, as far as can be seen from here.
    pub(super) fn require_server(&self) -> Result<(), TmuxError> {
        if self.server.is_alive() { Ok(()) } else { Err(TmuxError::Gone(format!("pid {}", self.server.pid))) }
    }
}

/// What a guarded command answers where it is not run.
pub(super) const STRANGER: &str = "ralph: its program has ended, or this is another server";

/// Has a command run that is [guarded](Window::guarded).
pub(super) fn guarded(window: &Window, commands: &[Words], input: Option<Vec<u8>>) -> Result<(), TmuxError> {
    window.require_server()?;
    let answer = window.server().ask_with(commands, input)?;
    if answer.iter().any(|line| line == STRANGER) {
        return Err(TmuxError::Gone(STRANGER.to_owned()));
    }
    Ok(())
}

impl Server {
    /// Opens a session with one window, and starts the server where there is none.
    ///
    /// # Errors
    /// If tmux is missing, too old or refuses.
    pub fn open(&self, opening: &Opening<'_>) -> Result<Window, TmuxError> {
        Self::check()?;
        if opening.argv.len() < 2 {
            return Err(TmuxError::Input("a program without arguments would be run by a shell".to_owned()));
        }
        // What another server has for the user's own windows is kept: the user may have named one.
        let usual = self.ask(&[Words::new(["show-options", "-gv", "history-limit"])]);
        let usual = usual.ok().and_then(|lines| lines.into_iter().next()).unwrap_or(USUAL_HISTORY.to_owned());
        let base = session_name(opening.name);
        let mut count = 1;
        loop {
            let name = if count == 1 { base.clone() } else { format!("{base}-{count}") };
            let made = self.ask_to_start(&commands(opening, &name, &usual));
            if made.is_err() {
                // The commands after the one that was refused were not run.
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

    /// Starts another program in a window of ours, in place of what is there: who is attached to it stays.
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
    /// Closes all panes that were started with this word in their command line, which nobody else may use: whoever made them may
    /// not have come to write down that they are there. The one of `but` stays. How many there were.
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
                // It, or with the last one the server, has gone meanwhile.
                Err(error) if !error.is_gone() => return Err(error),
                _ => count += 1,
            }
        }
        Ok(count)
    }
}

/// Closes our pane, and nothing else: the window, the session and the server go with it when nobody else has anything there.
/// One that is gone already is as good.
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

/// The command that shows a window to the user whose terminal we have, also inside of another tmux.
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

/// All that makes a window of ours, at one go: nothing can happen to it in between.
fn commands(opening: &Opening<'_>, name: &str, usual: &str) -> Vec<Words> {
    let (columns, rows) = opening.size;
    let target = format!("={name}:");
    let new = Words::new(["new-session", "-d", "-P", "-F", IDS, "-s", name, "-n", name])
        // Variables of ours would become the session's.
        .and(["-E", "-x", &columns.to_string(), "-y", &rows.to_string(), "-c"])
        .and([words::literal(opening.cwd.as_os_str()), "--".into()])
        .and(opening.argv);
    let pane = |flags, option, value| Words::new(["set-option", flags, "-t", &target, option, value]);
    let status = format!(" {} ", words::literal(opening.name.as_ref()).to_string_lossy().replace('%', "%%"));
    vec![
        // A pane takes it on when it is opened.
        set_history(HISTORY),
        new,
        set_history(usual),
        // The last screen is looked at after the program has ended.
        pane("-p", "remain-on-exit", "on"),
        // No line about that on it; tmux 3.2 does not know this option.
        pane("-pq", "remain-on-exit-format", ""),
        pane("-q", "destroy-unattached", "off"),
        pane("-q", "status-left", &status),
        pane("-q", "status-left-length", "60"),
    ]
}

fn set_history(lines: &str) -> Words {
    Words::new(["set-option", "-g", "history-limit", lines])
}

/// A name that tmux takes as it is: neither a format nor an id, and without what ends a name.
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
