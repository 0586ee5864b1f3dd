//! Programs on a terminal opened by another process (tmux opens panes), which outlive their monitors.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use ralph::process::ladder::Ladder;
use ralph::process::launch::Launch;
use ralph::process::note::SupervisorNote;
use ralph::process::pane::{self, Pane, PaneError, PaneNotes};
use rustix::process::Signal;

use crate::processes::send;
use crate::scratch::{PATIENCE, Scratch, wait_for};
use crate::terminal::Terminal;

const MARK: &str = "the mark of this pane";

/// One program on its terminal, and a monitor of it.
struct Opened {
    terminal: Terminal,
    program: Pane,
    notes: PaneNotes,
}

fn launch(scratch: &Scratch, words: &[&str]) -> Launch {
    let wait = Duration::from_millis(300);
    let (program, args) = words.split_first().unwrap();
    let command = scratch.command("env");
    let env = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    Launch {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        wrapper: ["env", "IN_A_BOX=yes"].map(Into::into).into(),
        env: env.chain([("RALPH_RUN".into(), "of another loop".into())]).collect(),
        mark: mark(scratch),
        ladder: Ladder { interrupt: wait, terminate: wait },
        ..Launch::default()
    }
}

fn mark(scratch: &Scratch) -> String {
    format!("{MARK} in {}", scratch.home().display())
}

/// The folder of the pane: with a longer path than a socket may have.
fn folder(scratch: &Scratch) -> PathBuf {
    let folder = scratch.outside().join("x".repeat(120));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A terminal on which a wrapper is the first program, as tmux starts it.
fn terminal(scratch: &Scratch) -> Terminal {
    let args = pane::wrapper_args(&folder(scratch));
    Terminal::start(scratch.ralph("").args(args).env("TERM", "xterm").env("SERVERS", "own"), 24, 80)
}

fn open(scratch: &Scratch, words: &[&str]) -> Opened {
    pane::prepare(&folder(scratch), &launch(scratch, words)).unwrap();
    let terminal = terminal(scratch);
    let (program, notes) = Pane::await_start(&folder(scratch), None, PATIENCE).unwrap();
    Opened { terminal, program: program.unwrap(), notes }
}

/// A pane whose wrapper was killed: its program, and one outside its group, ignore every signal of the ladder but the
/// last.
fn open_without_wrapper(scratch: &Scratch) -> Opened {
    let ready = scratch.outside().join("ready");
    let other = format!("env -i setsid sh -c ': > {} && exec sleep 600'", ready.display());
    let script = script(scratch, &format!("trap '' INT TERM HUP; {other} & while :; do sleep 600; done"));
    let mut pane = open(scratch, &[&script]);
    assert!(matches!(pane.notes.next(), Some(SupervisorNote::Started(_))));
    // What comes before the trap ends at the loss of its terminal, which the wrapper's end brings.
    wait_for("the program's other process", || ready.exists().then_some(()));
    send(pane.program.wrapper_pid(), Signal::KILL);
    assert_eq!(pane.notes.next(), None);
    pane
}

fn connect(scratch: &Scratch) -> (Pane, PaneNotes) {
    Pane::connect(&folder(scratch)).unwrap().expect("a wrapper")
}

/// What lies in the pane's folder.
fn names(scratch: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(folder(scratch)).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The notes after the first, which must be that the program has started.
#[track_caller]
fn after_start(notes: PaneNotes) -> Vec<SupervisorNote> {
    let mut notes: Vec<SupervisorNote> = notes.collect();
    assert!(matches!(notes.first(), Some(SupervisorNote::Started(_))), "{notes:?}");
    notes.remove(0);
    notes
}

impl Opened {
    /// The notes between the first and the last; there must be one that nothing is left.
    #[track_caller]
    fn end(self, scratch: &Scratch) -> (Vec<SupervisorNote>, String) {
        let mut notes = after_start(self.notes);
        assert_eq!(notes.pop(), Some(SupervisorNote::Gone(0)), "{notes:?}");
        self.program.finish(true, &mark(scratch));
        let end = self.terminal.end();
        assert_eq!(end.code, Some(0), "{end:?}");
        scratch.assert_nothing_left();
        assert_eq!(names(scratch), ["end"]);
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
        "trap 'echo interrupted' INT; test -t 0 && test -t 1 && test -t 2 && echo box: $IN_A_BOX, of the server: $SERVERS,
        echo mark: $RALPH_PANE, of a run: $RALPH_RUN$RALPH_SUPERVISOR, on: $TERM
        while read -r line; do [ $line = bye ] && exit 3; echo read: $line; done",
    );
    let mut pane = open(&scratch, &[&script]);
    let told = format!("box: yes, of the server: ,mark: {}, of a run: , on: xterm", mark(&scratch));
    pane.terminal.wait_for("a terminal", |screen| screen.replace('\n', "").contains(&told));
    assert_eq!(names(&scratch), ["socket"], "what was to be started has been read");
    pane.terminal.press_ctrl_c();
    pane.terminal.wait_for("an interrupt", |screen| screen.contains("interrupted"));
    // No shell could continue it, so it is not stopped.
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

/// Ignores every signal but KILL, like its children, one of which has its own session.
const STUBBORN: &str = "trap 'echo int' INT; trap 'echo term' TERM; trap '' HUP
    setsid bash -c \"$(declare -f note); note; trap '' TERM HUP; while :; do sleep 600; done\" &
    ( trap '' TERM HUP; note; exec sleep 600 ) &
    while :; do sleep 0.05; done";

#[test]
fn an_order_to_stop_climbs_the_ladder() {
    let scratch = Scratch::new();
    let script = script(&scratch, STUBBORN);
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
fn a_terminal_that_is_closed_leaves_nothing() {
    let scratch = Scratch::new();
    let script = script(&scratch, STUBBORN);
    let pane = open(&scratch, &[&script]);
    scratch.await_noted(3);
    // As the kernel tells the first process of a session whose terminal is gone.
    send(pane.program.wrapper_pid(), Signal::HUP);
    assert_eq!(pane.end(&scratch).0, [SupervisorNote::Signaled(9)]);
}

#[test]
fn monitors_come_and_go() {
    let scratch = Scratch::new();
    let script = script(&scratch, "read -r line; setsid sleep 600 & exit 5");
    let mut first = open(&scratch, &[&script]);
    let started = first.notes.next();
    drop((first.program, first.notes));
    let (second, mut notes) = connect(&scratch);
    assert_eq!(notes.next(), started, "the notes begin with the first");
    let (third, more) = connect(&scratch);
    assert_eq!(third.wrapper_pid(), second.wrapper_pid());
    drop((second, notes));
    scratch.await_noted(1);
    assert!(matches!(
        pane::prepare(&folder(&scratch), &launch(&scratch, &["true"])),
        Err(PaneError::Runs(_))
    ));
    first.terminal.press("bye\n");
    let last = [SupervisorNote::Exited(5), SupervisorNote::Gone(0)];
    assert_eq!(after_start(more), last);
    third.finish(true, &mark(&scratch));
    assert_eq!(first.terminal.end().code, Some(0));
    scratch.assert_nothing_left();

    // A later monitor reads the same notes.
    assert!(Pane::connect(&folder(&scratch)).unwrap().is_none());
    assert_eq!(after_start_of(pane::ended(&folder(&scratch)).unwrap()), last);
    let (pane, notes) = Pane::await_start(&folder(&scratch), None, PATIENCE).unwrap();
    assert!(pane.is_none());
    assert_eq!(after_start(notes), last);
    // Until there is something new to start.
    pane::prepare(&folder(&scratch), &launch(&scratch, &["true"])).unwrap();
    assert_eq!(pane::ended(&folder(&scratch)).unwrap(), []);
    let launch = folder(&scratch).join("launch");
    assert_eq!(launch.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    pane::discard(&folder(&scratch)).unwrap();
    assert!(!launch.exists());
}

fn after_start_of(mut notes: Vec<SupervisorNote>) -> Vec<SupervisorNote> {
    notes.remove(0);
    notes
}

#[test]
fn a_monitor_that_does_not_read_does_not_block() {
    let scratch = Scratch::new();
    let script = script(&scratch, "read -r line");
    let pane = open(&scratch, &[&script]);
    let crowd: Vec<_> = (0..100).map(|_| connect(&scratch)).collect();
    let (mut last, notes) = connect(&scratch);
    // With too many monitors, the first ones were replaced; the last one is connected.
    last.stop();
    assert_eq!(after_start(notes), [SupervisorNote::Signaled(2), SupervisorNote::Gone(0)]);
    // A disconnected monitor reads the end from the folder.
    assert_eq!(pane.end(&scratch).0, [SupervisorNote::Signaled(2)]);
    drop(crowd);
}

#[test]
fn the_loss_of_a_wrapper_leaves_nothing_once_a_monitor_comes() {
    let scratch = Scratch::new();
    let pane = open_without_wrapper(&scratch);
    drop(pane.program);

    wait_for("the wrapper's end", || Pane::connect(&folder(&scratch)).unwrap().is_none().then_some(()));
    assert_eq!(pane::ended(&folder(&scratch)).unwrap(), []);
    assert_eq!(pane::sweep("the mark of another pane"), 0);
    assert_eq!(pane::sweep(""), 0);
    assert!(pane::sweep(&mark(&scratch)) >= 2);
    scratch.assert_nothing_left();
    assert_eq!(pane.terminal.end().code, None);
    assert_eq!(pane::sweep(&mark(&scratch)), 0);
    pane::prepare(&folder(&scratch), &launch(&scratch, &["true"])).unwrap();
    assert_eq!(names(&scratch), ["launch"]);
}

#[test]
fn a_monitor_that_sees_the_loss_of_a_wrapper_sweeps() {
    let scratch = Scratch::new();
    let pane = open_without_wrapper(&scratch);
    pane.program.finish(false, &mark(&scratch));
    scratch.assert_nothing_left();
}

#[test]
fn a_stopped_wrapper_obeys() {
    let scratch = Scratch::new();
    let script = script(&scratch, "kill -STOP $PPID; while :; do sleep 0.05; done");
    let mut pane = open(&scratch, &[&script]);
    scratch.await_noted(1);
    pane.program.stop();
    assert_eq!(pane.end(&scratch).0, [SupervisorNote::Signaled(2)]);
}

#[test]
fn a_program_that_is_not_there_is_said_on_both_sides() {
    let scratch = Scratch::new();
    let launch = Launch { wrapper: Vec::new(), ..launch(&scratch, &["no-such-program"]) };
    pane::prepare(&folder(&scratch), &launch).unwrap();
    let terminal = terminal(&scratch);
    let (_, notes) = Pane::await_start(&folder(&scratch), None, PATIENCE).unwrap();
    assert_eq!(notes.collect::<Vec<_>>(), [SupervisorNote::Refused(2)]);
    let end = terminal.end();
    assert!(end.history.contains("error: ralph cannot run its program here: No such file"), "{end:?}");
    assert_eq!(names(&scratch), ["end"]);
}

#[test]
fn a_wrapper_that_never_comes_is_given_up() {
    let scratch = Scratch::new();
    pane::prepare(&folder(&scratch), &launch(&scratch, &["true"])).unwrap();
    let error = Pane::await_start(&folder(&scratch), None, Duration::from_millis(100)).unwrap_err();
    assert!(matches!(error, PaneError::NeverCame { .. }), "{error}");
    assert_eq!(names(&scratch), [""; 0], "what was to be started is taken back");
    // It comes after all, and there is nothing to start.
    let end = terminal(&scratch).end();
    assert!(end.history.contains("error: ralph cannot run its program here: "), "{end:?}");
    let none = folder(&scratch).join("none");
    assert!(pane::prepare(&none, &Launch::default()).unwrap_err().to_string().contains("none: No such file"));
}

#[test]
fn a_folder_that_is_removed_is_survived_and_not_made_again() {
    let scratch = Scratch::new();
    let script = script(&scratch, "read -r line; exit 4");
    let mut pane = open(&scratch, &[&script]);
    let folder = folder(&scratch);
    std::fs::remove_dir_all(&folder).unwrap();
    pane.terminal.press("\n");
    assert_eq!(after_start(pane.notes), [SupervisorNote::Exited(4), SupervisorNote::Gone(0)]);
    assert_eq!(pane.terminal.end().code, Some(0));
    assert!(!folder.exists());
}
