//! Programs under our wrapper in panes of real tmux: how they end, and that nothing of them is left.

use std::path::PathBuf;
use std::time::Duration;

use ralph::platform::stat::Stat;
use ralph::process::ladder::Ladder;
use ralph::process::launch::Launch;
use ralph::process::note::SupervisorNote::{Exited, Gone, Signaled, Started};
use ralph::process::pane::{self, Pane, PaneNotes};
use ralph::tmux::paste::{self, Key};
use ralph::tmux::{Opening, Window, window};
use rustix::process::Signal;

use crate::processes::send;
use crate::scratch::{PATIENCE, await_end, wait_for};
use crate::tmux::Tmux;

/// A program in a pane, and a monitor of it.
struct Worker {
    tmux: Tmux,
    window: Window,
    pane: Pane,
    notes: PaneNotes,
}

impl Tmux {
    fn folder(&self) -> PathBuf {
        self.scratch.outside().join("worker")
    }

    fn mark(&self) -> String {
        format!("pane in {}", self.scratch.outside().display())
    }

    /// Writes down that this script is to be started.
    fn prepare(&self, body: &str) {
        self.scratch.agent("claude", body);
        let _ = std::fs::create_dir(self.folder());
        let command = self.scratch.command("env");
        let env = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let wait = Duration::from_millis(300);
        let launch = Launch {
            program: self.scratch.outside().join("bin/claude").into(),
            cwd: self.scratch.root(),
            env: env.collect(),
            mark: self.mark(),
            ladder: Ladder { interrupt: wait, terminate: wait },
            ..Launch::default()
        };
        pane::prepare(&self.folder(), &launch).unwrap();
    }

    fn argv(&self) -> Vec<std::ffi::OsString> {
        let mut argv = vec![env!("CARGO_BIN_EXE_ralph").into()];
        argv.extend(pane::wrapper_args(&self.folder()));
        argv
    }
}

fn start(body: &str) -> Worker {
    let tmux = Tmux::new();
    tmux.prepare(body);
    let opening =
        Opening { name: "worker", argv: &tmux.argv(), cwd: &tmux.scratch.root(), size: Opening::SIZE };
    let window = tmux.server.open(&opening).unwrap();
    let (pane, mut notes) = Pane::await_start(&tmux.folder(), None, PATIENCE).unwrap();
    assert!(matches!(notes.next(), Some(Started(_))));
    Worker { tmux, window, pane: pane.unwrap(), notes }
}

/// Heeds no signal but KILL, and has children that do not either, one in a session of its own.
const STUBBORN: &str = "trap '' INT TERM HUP
    setsid bash -c \"$(declare -f note); note; while :; do sleep 600; done\" & ( note; exec sleep 600 ) &
    echo works; while :; do sleep 600; done";

#[test]
fn its_exit_code_and_last_screen_are_known() {
    let mut worker = start("echo works in $PWD on $TERM; read -r code; setsid sleep 600 & exit $code");
    let tmux = &worker.tmux;
    let shown = format!("works in {} on ", tmux.scratch.root().display());
    tmux.await_screen(&worker.window, &shown, |screen| {
        screen.lines.iter().any(|line| line.starts_with(&shown))
    });
    paste::type_text(&worker.window, "3").unwrap();
    paste::press(&worker.window, Key::Enter).unwrap();
    assert_eq!(worker.notes.by_ref().collect::<Vec<_>>(), [Exited(3), Gone(0)]);
    worker.pane.finish(true, &tmux.mark());
    let last = tmux.await_screen(&worker.window, "its end", |screen| screen.dead.is_some());
    assert_eq!(last.lines.last().unwrap(), "3");
    tmux.scratch.assert_nothing_left();

    // The next one in the same window.
    tmux.prepare("kill -9 $$");
    tmux.server.renew(&worker.window, &tmux.argv(), &tmux.scratch.root()).unwrap();
    let (_, notes) = Pane::await_start(&tmux.folder(), None, PATIENCE).unwrap();
    assert_eq!(notes.skip(1).collect::<Vec<_>>(), [Signaled(9), Gone(0)]);
    window::close(&worker.window).unwrap();
    await_end(&worker.window.server);
    tmux.scratch.await_nothing_left();
}

#[test]
fn it_is_stopped_as_usual() {
    let worker = start("grep SigIgn /proc/$$/status; read -r line; echo read: $line; read -r line");
    let screen = worker.tmux.await_screen(&worker.window, "its signals", |screen| !screen.lines.is_empty());
    let ignored = u64::from_str_radix(screen.lines[0].split_whitespace().last().unwrap(), 16).unwrap();
    for signal in [Signal::INT, Signal::TSTP, Signal::TTIN, Signal::TTOU] {
        assert_eq!(ignored >> (signal.as_raw() - 1) & 1, 0, "{signal:?} is ignored: {ignored:x}");
    }
    // What it reads comes in, however early it does.
    paste::paste(&worker.window, "text\n").unwrap();
    worker.tmux.await_line(&worker.window, "read: text");
}

#[test]
fn a_stop_climbs_the_ladder() {
    let mut worker = start(STUBBORN);
    worker.tmux.scratch.await_noted(3);
    worker.pane.stop();
    assert_eq!(worker.notes.by_ref().collect::<Vec<_>>(), [Signaled(9), Gone(0)]);
    worker.pane.finish(true, &worker.tmux.mark());
    worker.tmux.scratch.assert_nothing_left();
}

#[test]
fn a_window_that_the_user_closes_leaves_nothing() {
    let mut worker = start(STUBBORN);
    worker.tmux.scratch.await_noted(3);
    worker.tmux.user(&["kill-window", "-t", &worker.window.window]);
    assert_eq!(worker.notes.by_ref().collect::<Vec<_>>(), [Signaled(9), Gone(0)]);
    worker.tmux.scratch.await_nothing_left();
    await_end(&worker.window.server);
}

#[test]
fn a_server_that_is_killed_leaves_nothing() {
    let mut worker = start(STUBBORN);
    worker.tmux.scratch.await_noted(3);
    send(worker.window.server.pid, Signal::KILL);
    assert_eq!(worker.notes.by_ref().collect::<Vec<_>>(), [Signaled(9), Gone(0)]);
    worker.tmux.scratch.await_nothing_left();
    // Its socket is still there; a new server takes its place.
    let window = worker.tmux.open("worker", &["sleep", "600"]);
    assert_ne!(window.server, worker.window.server);
}

#[test]
fn a_wrapper_that_is_killed_leaves_nothing_once_a_monitor_comes() {
    let mut worker = start(&format!("env -i setsid sleep 600 &\n{STUBBORN}"));
    let tmux = &worker.tmux;
    tmux.await_line(&worker.window, "works");
    tmux.scratch.await_noted(3);
    send(worker.pane.wrapper_pid(), Signal::KILL);
    assert_eq!(worker.notes.next(), None);
    tmux.await_screen(&worker.window, "its end", |screen| screen.dead.is_some());
    assert!(!tmux.scratch.living().is_empty());
    wait_for("the wrapper's end", || Pane::connect(&tmux.folder()).unwrap().is_none().then_some(()));
    assert_eq!(pane::ended(&tmux.folder()).unwrap(), []);
    assert!(pane::sweep(&tmux.mark()) >= 3);
    tmux.scratch.assert_nothing_left();
    assert!(worker.window.server.is_alive(), "tmux was swept");
}

#[test]
fn the_wrapper_is_a_child_of_the_server() {
    let worker = start("read -r line");
    let wrapper = Stat::read(worker.pane.wrapper_pid()).unwrap();
    assert_eq!((wrapper.ppid, wrapper.session), (worker.window.server.pid, wrapper.pid));
    let environment = std::fs::read_to_string(format!("/proc/{}/environ", wrapper.pid)).unwrap();
    assert!(!environment.split('\0').any(|entry| entry.starts_with("RALPH_")), "{environment}");
    let own = worker
        .tmux
        .user(&["new-window", "-d", "-t", &worker.window.session, "-P", "-F", "#{pane_pid}", "sleep", "600"])
        .1;
    drop((worker.pane, worker.notes));
    window::close(&worker.window).unwrap();
    wait_for("the wrapper's end", || Stat::read(wrapper.pid).is_none_or(|stat| stat.is_dead()).then_some(()));
    worker.tmux.scratch.await_nothing_left();
    assert!(Stat::read(own.parse().unwrap()).is_some(), "the user's window was closed");
}
