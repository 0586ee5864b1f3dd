//! What to start, and the message with it for a supervisor.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::ladder::Ladder;
use super::walls::{Enclosure, Inside};
use crate::platform::mark::{PANE_MARK, RUN_MARK, SUPERVISOR_MARK};
use crate::platform::passing;

/// The shell for the user's commands, by its path: an agent can put another `sh` into a folder of `PATH`.
pub const SHELL: &str = "/bin/sh";

/// What to start, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Program name (looked up on `PATH`) or path (relative to `cwd`).
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Words before the program that start it in a sandbox; empty without one.
    pub wrapper: Vec<OsString>,
    /// The walls around it; `None`: it may do what its user may.
    pub enclosure: Option<Arc<Enclosure>>,
    /// Its working directory; empty means ours.
    pub cwd: PathBuf,
    /// Variables set on top of our own environment, which is passed without those that point git at another
    /// repository. In a [pane](super::pane) they are the whole environment, with `TERM` and the other variables of
    /// the terminal.
    pub env: Vec<(OsString, OsString)>,
    /// The run mark of the loop, or the mark of the pane, see [`super::sweep`]; without it, processes that hide from
    /// their supervisor cannot be swept.
    pub mark: String,
    /// How it is ended.
    pub ladder: Ladder,
    /// Daemons that it starts in sessions of their own are the user's (a gpg agent, an ssh master), and are not ended
    /// with it. Such a program has no mark, which the daemons would inherit. It changes a repository, and has a second
    /// to finish that if ralph dies.
    pub spares_daemons: bool,
}

impl Launch {
    /// A launch of `sh -c` with this command, otherwise unchanged.
    #[must_use]
    pub fn shell(&self, command: impl Into<OsString>) -> Self {
        Self { program: SHELL.into(), args: vec!["-c".into(), command.into()], ..self.clone() }
    }

    /// The launch behind its walls, if it has any, and what has to be kept until nothing of the program is left.
    ///
    /// # Errors
    /// If what the walls need cannot be made.
    pub fn enclosed(&self) -> io::Result<Option<(Self, Inside)>> {
        let Some(enclosure) = &self.enclosure else { return Ok(None) };
        let inside = enclosure.enter(&self.cwd, &|name| self.variable(name))?;
        let wrapper = inside.wrapper().into_iter().chain(self.wrapper.iter().cloned()).collect();
        Ok(Some((Self { wrapper, enclosure: None, ..self.clone() }, inside)))
    }

    /// A variable as the program sees it.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<OsString> {
        let own = self.env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        own.or_else(|| std::env::var_os(name))
    }

    /// Sets a variable for the program.
    pub fn set_variable(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.into()));
    }

    /// The words that are executed: the wrapper, the program and its arguments.
    pub fn command_line(&self) -> impl Iterator<Item = &OsString> {
        self.wrapper.iter().chain([&self.program]).chain(&self.args)
    }

    /// The message: a length of eight bytes, then NUL-terminated words: mark, waits of the ladder, working directory,
    /// whether daemons are spared, walls that are still to be built, number of variables, the variables, and the command line.
    pub(super) fn to_message(&self) -> io::Result<Vec<u8>> {
        let mut message = vec![0; LENGTH];
        let mut push = |pieces: &[&OsStr]| {
            let word = pieces.join(OsStr::new(""));
            if word.as_bytes().contains(&0) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is a NUL byte in it"));
            }
            message.extend_from_slice(word.as_bytes());
            message.push(0);
            Ok(())
        };
        push(&[self.mark.as_ref()])?;
        for wait in self.ladder.to_words() {
            push(&[wait.as_ref()])?;
        }
        // The supervisor's working directory is another one.
        let cwd =
            if self.cwd.is_absolute() { self.cwd.clone() } else { std::env::current_dir()?.join(&self.cwd) };
        push(&[cwd.as_ref()])?;
        push(&[self.spares_daemons.to_string().as_ref()])?;
        let walls = self.enclosure.as_ref().map(serde_json::to_string).transpose()?;
        push(&[walls.unwrap_or_default().as_ref()])?;
        push(&[self.env.len().to_string().as_ref()])?;
        for (name, value) in &self.env {
            push(&[name, "=".as_ref(), value])?;
        }
        for word in self.command_line() {
            push(&[word])?;
        }
        let length = (message.len() - LENGTH) as u64;
        message[..LENGTH].copy_from_slice(&length.to_ne_bytes());
        Ok(message)
    }
}

/// Sends a message to a supervisor, with the program's stdin, stdout and stderr.
pub(super) fn send(control: &UnixStream, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let sent = passing::send(control, message, descriptors)?;
    (&*control).write_all(&message[sent..])
}

/// The variables that tmux sets for programs in its panes.
const OF_TERMINAL: [&str; 5] = ["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE"];
/// Variables of other terminals: programs would believe their sizes.
const OF_OTHER_TERMINALS: [&str; 3] = ["COLUMNS", "LINES", "WINDOWID"];
/// The marks of a loop or a pane around us.
const OF_RUNS: [&str; 3] = [RUN_MARK, SUPERVISOR_MARK, PANE_MARK];

/// The size of a message's length in bytes.
const LENGTH: usize = size_of::<u64>();

/// A launch as a supervisor receives it.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) launch: Launch,
    /// The program's stdin, stdout and stderr; `None` for the supervisor's own.
    descriptors: Option<[OwnedFd; 3]>,
}

impl Received {
    /// Reads the next launch; `None` if the other end is closed.
    pub(super) fn from(control: &UnixStream) -> io::Result<Option<Self>> {
        let mut length = [0; LENGTH];
        let (received, descriptors) = passing::receive(control, &mut length)?;
        if received == 0 {
            return Ok(None);
        }
        let descriptors = <[OwnedFd; 3]>::try_from(descriptors).ok();
        (&*control).read_exact(&mut length[received..])?;
        let mut message = Vec::new();
        let length = u64::from_ne_bytes(length);
        if control.take(length).read_to_end(&mut message)? as u64 != length {
            return Ok(None);
        }
        let launch = parse(&message).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some(Self { launch, descriptors }))
    }

    /// The launch in a whole message, for a program on our own terminal.
    pub(super) fn from_message(message: &[u8]) -> io::Result<Self> {
        let whole = || {
            let (length, words) = message.split_first_chunk()?;
            (u64::from_ne_bytes(*length) == words.len() as u64).then(|| parse(words))?
        };
        let launch = whole().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "what was to be started was not written whole")
        })?;
        Ok(Self { launch, descriptors: None })
    }

    /// It behind its walls, if it has any that are still to be built, and what has to be kept until nothing of the program is left.
    ///
    /// # Errors
    /// If what the walls need cannot be made.
    pub(super) fn enclosed(self) -> io::Result<(Self, Option<Inside>)> {
        let Some((launch, inside)) = self.launch.enclosed()? else { return Ok((self, None)) };
        let mut words: Vec<OsString> = launch.command_line().cloned().collect();
        let program = words.remove(0);
        let launch = Launch { program, args: words, wrapper: Vec::new(), ..launch };
        Ok((Self { launch, ..self }, Some(inside)))
    }

    /// The command that starts it on our terminal: only in the environment of the launch, as ours is the tmux
    /// server's, plus our variables of the terminal.
    pub(super) fn into_pane(self) -> (Launch, Command) {
        let is_of_another = |name: &OsStr| {
            OF_TERMINAL.iter().chain(&OF_OTHER_TERMINALS).chain(&OF_RUNS).any(|other| name == *other)
        };
        let (launch, mut command) = self.into_command();
        command.env_clear().envs(
            launch.env.iter().map(|(name, value)| (name, value)).filter(|(name, _)| !is_of_another(name)),
        );
        command.envs(OF_TERMINAL.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        (launch, command)
    }

    /// The command that starts it.
    pub(super) fn into_command(self) -> (Launch, Command) {
        let mut command = Command::new(&self.launch.program);
        let variables = self.launch.env.iter().map(|(name, value)| (name, value));
        command.args(&self.launch.args).envs(variables).current_dir(&self.launch.cwd);
        if let Some([stdin, stdout, stderr]) = self.descriptors {
            command.stdin(Stdio::from(stdin)).stdout(stdout).stderr(stderr);
        }
        (self.launch, command)
    }
}

/// Reads the words of a message back; the wrapper becomes the program.
fn parse(message: &[u8]) -> Option<Launch> {
    let words = message.strip_suffix(b"\0")?;
    let mut words = words.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
    let mark = words.next()?.into_string().ok()?;
    let ladder = Ladder::from_words([&words.next()?, &words.next()?])?;
    let cwd = words.next()?.into();
    let spares_daemons = words.next()?.to_str()?.parse().ok()?;
    let enclosure = words.next()?.into_string().ok().filter(|text| !text.is_empty());
    let enclosure = enclosure.map(|text| serde_json::from_str(&text)).transpose().ok()?;
    let variables = words.next()?.to_str()?.parse().ok()?;
    let mut env = Vec::new();
    for word in words.by_ref().take(variables) {
        let split = word.as_bytes().iter().position(|byte| *byte == b'=')?;
        let (name, value) = word.as_bytes().split_at(split);
        env.push((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(&value[1..]).to_owned()));
    }
    let program = words.next()?;
    Some(Launch {
        program,
        args: words.collect(),
        wrapper: Vec::new(),
        enclosure,
        cwd,
        env,
        mark,
        ladder,
        spares_daemons,
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;
    use crate::process::walls::Plan;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(Into::into).collect()
    }

    #[test]
    fn a_launch_for_a_pane_comes_whole_or_not_at_all() {
        let launch = Launch { program: "agent".into(), args: words(&["a"]), ..Launch::default() };
        let message = launch.to_message().unwrap();
        assert_eq!(Received::from_message(&message).unwrap().launch.args, words(&["a"]));
        for length in 0..message.len() {
            assert!(Received::from_message(&message[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn in_a_pane_there_is_the_environment_of_the_launch_and_no_other() {
        let env = ["A=1", "RALPH_RUN=r", "RALPH_PANE=p", "COLUMNS=7", "TERM=old"];
        let env = env.iter().map(|pair| pair.split_once('=').unwrap());
        let env = env.map(|(name, value)| (name.into(), value.into())).collect();
        let launch = Launch { program: "agent".into(), env, ..Launch::default() };
        let (_, command) = Received { launch, descriptors: None }.into_pane();
        let is_ours = |name: &OsStr| OF_TERMINAL.iter().any(|ours| name == *ours);
        let rest: Vec<_> = command.get_envs().filter(|(name, _)| !is_ours(name)).collect();
        assert_eq!(rest, [(OsStr::new("A"), Some(OsStr::new("1")))]);
        let term = command.get_envs().find(|(name, _)| *name == "TERM").and_then(|(_, value)| value);
        assert_eq!(term, std::env::var_os("TERM").as_deref());
    }

    fn received(launch: &Launch) -> Option<Launch> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        send(&ours, &launch.to_message().unwrap(), &[ours.as_fd(); 3]).unwrap();
        Received::from(&theirs).unwrap().map(|received| received.launch)
    }

    #[test]
    fn a_wrapper_stands_before_the_program() {
        let mut launch = Launch { program: "cat".into(), args: words(&["-n", "file"]), ..Launch::default() };
        assert!(launch.command_line().eq(&words(&["cat", "-n", "file"])));
        launch.wrapper = words(&["box", "--"]);
        assert!(launch.command_line().eq(&words(&["box", "--", "cat", "-n", "file"])));
        let received = received(&launch).unwrap();
        assert!(received.command_line().eq(launch.command_line()));
        assert_eq!(received.program, "box");
    }

    #[test]
    fn a_launch_survives_the_way() {
        let no_text = OsString::from_vec(b"\xff=\n".to_vec());
        let launch = Launch {
            program: "agent".into(),
            args: vec!["".into(), no_text.clone(), "".into()],
            wrapper: Vec::new(),
            enclosure: Some(Arc::new(Enclosure::new(Plan::default(), "/tmp/x".into(), &|_| None))),
            cwd: "/tmp/a b".into(),
            env: vec![("A".into(), "".into()), ("B".into(), "x=y".into()), ("C".into(), no_text)],
            mark: "run 7".into(),
            ladder: Ladder::default(),
            spares_daemons: true,
        };
        assert_eq!(received(&launch), Some(launch));
        let bare = Launch { program: "agent".into(), ..Launch::default() };
        assert_eq!(received(&bare).unwrap().cwd, std::env::current_dir().unwrap().join(""));
    }

    #[test]
    fn a_nul_byte_is_refused_and_a_torn_message_is_none() {
        let launch = Launch { program: "agent".into(), args: words(&["a\0b"]), ..Launch::default() };
        assert_eq!(launch.to_message().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let message = Launch { program: "agent".into(), ..Launch::default() }.to_message().unwrap();
        for length in 0..message.len() {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            ours.write_all(&message[..length]).unwrap();
            drop(ours);
            assert!(!matches!(Received::from(&theirs), Ok(Some(_))), "{length}");
        }
    }
}
