//! Programs on a terminal that somebody else has opened (tmux opens panes), under the same supervisor as all others.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ralph::process::ladder::Ladder;
use ralph::process::launch::Launch;
use ralph::process::note::SupervisorNote;
use ralph::process::supervised::{Notes, StartError, Supervised};
use rustix::process::Signal;

use crate::processes::send;
use crate::scratch::{Scratch, finish};
use crate::terminal::Terminal;

/// One program on its terminal, and ralph's end of it.
struct Pane {
    terminal: Terminal,
    program: Supervised,
    notes: Notes,
}

fn launch(scratch: &Scratch, words: &[&str]) -> Launch {
    let wait = Duration::from_millis(300);
    let (program, args) = words.split_first().unwrap();
    Launch {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        wrapper: ["env", "IN_A_BOX=yes"].map(Into::into).into(),
        mark: scratch.home().display().to_string(),
        ladder: Ladder { interrupt: wait, terminate: wait },
        ..Launch::default()
    }
}

fn socket(scratch: &Scratch) -> PathBuf {
    scratch.outside().join("socket")
}

/// A terminal on which a supervisor is the first program, as tmux starts it.
fn terminal(scratch: &Scratch) -> Terminal {
    let args = Launch::args_at(&socket(scratch));
    Terminal::start(scratch.ralph("").args(args).env("TERM", "xterm"), 24, 80)
}

fn open(scratch: &Scratch, words: &[&str]) -> Pane {
    let launch = launch(scratch, words);
    let listener = UnixListener::bind(socket(scratch)).unwrap();
    let terminal = terminal(scratch);
    let (program, notes) = Supervised::accept(&listener, &launch).unwrap();
    Pane { terminal, program, notes }
}

impl Pane {
    /// The notes up to the last; there must be one that nothing is left.
    #[track_caller]
    fn end(mut self, scratch: &Scratch) -> (Vec<SupervisorNote>, String) {
        let mut notes: Vec<SupervisorNote> = self.notes.by_ref().collect();
        assert_eq!(notes.pop(), Some(SupervisorNote::Gone(0)), "{notes:?}");
        self.program.finish(Some(0));
        let end = self.terminal.end();
        assert_eq!(end.code, Some(0), "{end:?}");
        scratch.assert_nothing_left();
        (notes, end.history)
    }
}

/// The agent's script alone, so that it is the whole command line.
fn script(scratch: &Scratch, body: &str) -> String {
    scratch.agent("claude", body);
    scratch.outside().join("bin/claude").display().to_string()
}

#[test]
fn the_program_has_the_terminal_for_itself() {
    let scratch = Scratch::new();
    let script = script(
        &scratch,
        "trap 'echo interrupted' INT; test -t 0 && test -t 1 && test -t 2 && echo box: $IN_A_BOX, mark: $RALPH_RUN
        while read -r line; do [ $line = bye ] && exit 3; echo read: $line; done",
    );
    let mut pane = open(&scratch, &[&script]);
    let told = format!("box: yes, mark: {}", scratch.home().display());
    pane.terminal.wait_for("a terminal", |screen| screen.replace('\n', "").contains(&told));
    pane.terminal.press_ctrl_c();
    pane.terminal.wait_for("an interrupt", |screen| screen.contains("interrupted"));
    // Nobody could continue it, so that it is not stopped.
    pane.terminal.press("\x1a");
    pane.terminal.press("more\n");
    pane.terminal.wait_for("its input", |screen| screen.contains("read: more"));
    pane.terminal.press("bye\n");
    let (notes, history) = pane.end(&scratch);
    assert_eq!(notes, [SupervisorNote::Exited(3)]);
    assert_eq!(history.matches("interrupted").count(), 1, "{history}");
}

#[test]
fn a_shell_has_job_control() {
    let scratch = Scratch::new();
    scratch.agent("job", "trap 'echo goes on' CONT; echo began; while :; do sleep 0.05; done");
    let mut pane = open(&scratch, &["bash", "--norc", "--noprofile", "-i"]);
    pane.terminal.wait_for("a prompt", |screen| screen.starts_with("bash-"));
    pane.terminal.press("job\n");
    pane.terminal.wait_for("a job", |screen| screen.contains("began"));
    pane.terminal.press("\x1a");
    pane.terminal.wait_for("a stopped job", |screen| screen.contains("[1]+  Stopped"));
    pane.terminal.press("fg; echo ended: $?\n");
    pane.terminal.wait_for("the job", |screen| screen.contains("goes on"));
    pane.terminal.press_ctrl_c();
    pane.terminal.press("echo interrupted: $?; setsid sleep 600 & sleep 600 & exit 7\n");
    let (notes, history) = pane.end(&scratch);
    assert_eq!(notes, [SupervisorNote::Exited(7)], "{history}");
    assert!(history.contains("interrupted: 130") && !history.contains("no job control"), "{history}");
}

#[test]
fn an_order_to_stop_climbs_the_ladder() {
    let scratch = Scratch::new();
    let stubborn = "trap 'echo int' INT; trap 'echo term' TERM
        setsid bash -c \"$(declare -f note); note; trap '' TERM HUP; while :; do sleep 600; done\" &
        ( trap '' TERM HUP; note; exec sleep 600 ) &
        while :; do sleep 0.05; done";
    let script = script(&scratch, stubborn);
    let mut pane = open(&scratch, &[&script]);
    scratch.await_noted(3);
    pane.program.stop();
    let (notes, history) = pane.end(&scratch);
    assert_eq!(notes, [SupervisorNote::Signaled(9)]);
    // Bash also tells of what was ended below it.
    let said = history.lines().filter(|line| ["int", "term"].contains(line));
    assert_eq!(said.collect::<Vec<_>>(), ["int", "term"], "{history}");
}

#[test]
fn an_order_to_kill_leaves_nothing() {
    let scratch = Scratch::new();
    let script = script(&scratch, "trap 'echo int' INT TERM; while :; do sleep 0.05; done");
    let mut pane = open(&scratch, &[&script]);
    scratch.await_noted(1);
    pane.program.kill();
    let (notes, history) = pane.end(&scratch);
    assert_eq!((notes.as_slice(), history.as_str()), ([SupervisorNote::Signaled(9)].as_slice(), ""));
}

#[test]
fn the_loss_of_a_supervisor_on_a_terminal_leaves_nothing() {
    let scratch = Scratch::new();
    let script = script(&scratch, "trap '' INT TERM HUP; setsid sleep 600 & while :; do sleep 600; done");
    let pane = open(&scratch, &[&script]);
    scratch.await_noted(1);
    send(pane.program.supervisor_pid(), Signal::KILL);
    assert_eq!(pane.notes.last(), None);
    pane.program.finish(None);
    scratch.assert_nothing_left();
    assert_eq!(pane.terminal.end().code, None);
}

#[test]
fn a_program_that_is_not_there_is_said_on_both_sides() {
    let scratch = Scratch::new();
    let launch = Launch { wrapper: Vec::new(), ..launch(&scratch, &["no-such-program"]) };
    let listener = UnixListener::bind(socket(&scratch)).unwrap();
    let terminal = terminal(&scratch);
    let error = Supervised::accept(&listener, &launch).unwrap_err();
    assert!(matches!(error, StartError::Program { .. }), "{error}");
    assert!(error.to_string().starts_with("cannot start 'no-such-program': No such file"), "{error}");
    let end = terminal.end();
    assert!(end.history.contains("error: ralph cannot run its program here: No such file"), "{end:?}");
}

/// The test below starts this one as a process of its own that listens until it is killed; by itself it does nothing.
#[test]
fn listen_until_killed() {
    let Some(socket) = std::env::var_os("RALPH_TEST_SOCKET") else { return };
    let listener = UnixListener::bind(Path::new(&socket)).unwrap();
    println!("listening");
    let program = std::env::var_os("RALPH_TEST_PROGRAM").unwrap();
    let launch = Launch { program, ..Launch::default() };
    let (_program, notes) = Supervised::accept(&listener, &launch).unwrap();
    notes.for_each(drop);
}

#[test]
fn a_listener_that_is_killed_takes_everything_along() {
    let scratch = Scratch::new();
    let script = script(&scratch, "trap '' INT TERM HUP; setsid sleep 600 & while :; do sleep 600; done");
    let mut listener = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "pane::listen_until_killed"])
        .env("RALPH_TEST_SOCKET", socket(&scratch))
        .env("RALPH_TEST_PROGRAM", &script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(listener.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("listening")));
    let terminal = terminal(&scratch);
    scratch.await_noted(1);
    send(listener.id(), Signal::KILL);
    finish(listener);
    scratch.await_nothing_left();
    assert_eq!(terminal.end().code, Some(0));
}
