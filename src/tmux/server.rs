//! A tmux server: how it is started, and how commands are run in it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::error::{self, TmuxError};
use super::{Asks, Words, version, words};
use crate::platform::mark::without_own;
use crate::process::launch::SHELL;
use crate::process::short;

/// How long tmux may take to answer. It has nothing to wait for.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// How long it may take if it also reads a megabyte of input.
const INPUT_LIMIT: Duration = Duration::from_secs(30);

/// The first words of each of our command lines. Agents' screens are UTF-8, whatever the locale says. The user's
/// configuration is for the user's servers: in this one, a plugin that restores sessions would start programs, a hook
/// or a default command would change our windows, and options could close them.
const ALONE: [&str; 3] = ["-u", "-f", "/dev/null"];

/// Whether ralph has started the server with this command line, rather than the user.
#[must_use]
pub fn is_ours(words: &[String]) -> bool {
    words.get(1..=ALONE.len()).is_some_and(|words| words == ALONE)
}

/// A tmux server, running or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// `-L` and a name, or `-S` and a path.
    options: [OsString; 2],
}

impl Server {
    /// The server by name, or by the path of its socket if there is a slash in it.
    #[must_use]
    pub fn new(socket: impl AsRef<OsStr>) -> Self {
        let socket = socket.as_ref();
        if socket.as_encoded_bytes().contains(&b'/') {
            // We start tmux in another folder.
            let path =
                std::path::absolute(socket).map_or_else(|_| socket.to_owned(), PathBuf::into_os_string);
            return Self { options: ["-S".into(), path] };
        }
        Self { options: ["-L".into(), socket.to_owned()] }
    }

    /// The options of tmux that name it, for messages.
    #[must_use]
    pub fn options(&self) -> String {
        self.options.join(OsStr::new(" ")).to_string_lossy().into_owned()
    }

    /// The folder of its socket. Source: `tmux.c`, `make_label`.
    pub(super) fn folder(&self) -> PathBuf {
        let [kind, place] = &self.options;
        if kind == "-S" {
            return Path::new(place).parent().unwrap_or(Path::new("/")).to_owned();
        }
        let parent = std::env::var_os("TMUX_TMPDIR").filter(|parent| !parent.is_empty());
        let own = format!("tmux-{}", rustix::process::getuid().as_raw());
        Path::new(parent.as_deref().unwrap_or(OsStr::new("/tmp"))).join(own)
    }

    /// Checks whether the installed tmux is new enough.
    ///
    /// # Errors
    /// If it is missing or too old.
    pub fn check() -> Result<(), TmuxError> {
        let output = run(Command::new("tmux").arg("-V"), None, LIMIT)?;
        version::check(&String::from_utf8_lossy(&output.stdout))
    }

    /// A tmux command for this server, in an environment without our variables: the server inherits it when it
    /// starts, and passes it on to everything started in it, including the user's own windows. A run's mark there
    /// would have them swept, and a foreign `TMUX` would be mistaken for the server's own.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        let is_ours = |name: &OsStr| {
            name.as_encoded_bytes().starts_with(b"RALPH_") || name == "TMUX" || name == "TMUX_PANE"
        };
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_ours(name)) {
            command.env_remove(name);
        }
        // Folders may be removed; `/` stays.
        command.current_dir("/");
        command.args(ALONE).args(&self.options);
        command
    }

    /// [`Asks::ask`] with input for a command that reads it.
    pub(super) fn ask_with(
        &self,
        commands: &[Words],
        input: Option<Vec<u8>>,
    ) -> Result<Vec<String>, TmuxError> {
        self.answer(self.command(), commands, input)
    }

    /// [`Asks::ask`] if it may start the server, which must not keep anything of ours: no mark of a run around us,
    /// and no open files of our parent, such as a script that holds a lock.
    pub(super) fn ask_to_start(&self, commands: &[Words]) -> Result<Vec<String>, TmuxError> {
        let tmux = self.command();
        let mut command = Command::new(SHELL);
        // The descriptors that every shell can close.
        command
            .args(["-c", "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec tmux \"$@\"", "sh"])
            .args(tmux.get_args());
        for (name, _) in tmux.get_envs() {
            command.env_remove(name);
        }
        command.current_dir("/");
        without_own(|| self.answer(command, commands, None))
    }

    fn answer(
        &self,
        mut command: Command,
        commands: &[Words],
        input: Option<Vec<u8>>,
    ) -> Result<Vec<String>, TmuxError> {
        let name = || commands.first().map(Words::name).unwrap_or_default();
        let limit = if input.is_some() { INPUT_LIMIT } else { LIMIT };
        command.args(words::to_args(commands));
        let _turn = self.turn();
        let output = run(&mut command, input, limit).map_err(|error| match error {
            TmuxError::System(error) if error.kind() == io::ErrorKind::TimedOut => {
                TmuxError::Silent { command: name(), limit, server: self.options() }
            }
            error => error,
        })?;
        // A server that cannot create its socket prints an error and exits successfully.
        let is_silent = output.stdout.is_empty() && !output.stderr.is_empty();
        if !output.status.success() || is_silent {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(error::refused(name(), &said, self.options()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
    }
}

impl Asks for Server {
    fn ask(&self, commands: &[Words]) -> Result<Vec<String>, TmuxError> {
        self.ask_with(commands, None)
    }
}

fn run(
    command: &mut Command,
    input: Option<Vec<u8>>,
    limit: Duration,
) -> Result<std::process::Output, TmuxError> {
    let output = match input {
        Some(input) => short::output_with(command, input, limit),
        None => short::output_within(command, limit),
    };
    output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => TmuxError::Missing,
        _ => TmuxError::System(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_slash_it_is_a_path() {
        let own = std::env::current_dir().unwrap().join("a").display().to_string();
        for (socket, options) in [("ralph", "-L ralph"), ("/a/b", "-S /a/b"), ("./a", &format!("-S {own}"))] {
            assert_eq!(Server::new(socket).options(), options);
        }
    }
}
