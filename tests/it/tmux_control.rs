//! Connections to real tmux that hear what happens to a pane.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use ralph::platform::stat::Stat;
use ralph::tmux::control::Event;
use ralph::tmux::paste::{self, Key};
use ralph::tmux::screen::{self, Extent};
use ralph::tmux::{Asks as _, Control, Window, Words, window};
use rustix::process::Signal;

use crate::processes::send;
use crate::scratch::{PATIENCE, await_end, finish, wait_for};
use crate::tmux::{Tmux, is_alone};

fn attach(window: &Window) -> (Control, Receiver<Event>) {
    let (send, events) = mpsc::channel();
    let control = Control::attach(window, None, move |event| drop(send.send(event))).unwrap();
    (control, events)
}

/// Waits for output on the screen.
#[track_caller]
fn await_paint(events: &Receiver<Event>) {
    let event = events.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(event, Event::Painted(_)), "{event:?}");
}

/// Waits until nothing was painted for a while.
#[track_caller]
fn await_rest(events: &Receiver<Event>) {
    let started = Instant::now();
    while let Ok(event) = events.recv_timeout(Duration::from_secs(3)) {
        assert!(matches!(event, Event::Painted(_)), "{event:?}");
        assert!(started.elapsed() < PATIENCE, "it never rests");
    }
}

/// Waits for the end of the connection, and what it says.
#[track_caller]
fn await_closed(events: &Receiver<Event>) -> String {
    loop {
        if let Event::Closed(why) = events.recv_timeout(PATIENCE).unwrap() {
            assert!(events.recv_timeout(PATIENCE).is_err(), "nothing follows");
            return why;
        }
    }
}

/// The client's process, which is our child.
fn client(tmux: &Tmux) -> u32 {
    tmux.user(&["list-clients", "-F", "#{client_pid}"]).1.parse().unwrap()
}

#[track_caller]
fn await_no_client(pid: u32) {
    wait_for("the client's end", || Stat::read(pid).is_none_or(|stat| stat.is_dead()).then_some(()));
}

#[test]
fn what_is_painted_is_told_and_answers_come_in_order() {
    let tmux = Tmux::new();
    let window = tmux.script("worker", "while read -r line; do echo \"é $line\"; done");
    let (control, events) = attach(&window);
    await_rest(&events);
    paste::type_text(&window, "more").unwrap();
    paste::press(&window, Key::Enter).unwrap();
    await_paint(&events);
    tmux.await_line(&window, "é more");
    let screen = screen::look(&control, &window, Extent::Visible, false).unwrap();
    assert_eq!(screen, tmux.look(&window), "a connection sees what a process sees");
    let joined = screen::look(&control, &window, Extent::Whole, true).unwrap();
    assert_eq!(joined.lines, screen.lines);
    await_rest(&events);

    std::thread::scope(|scope| {
        for number in 0..20 {
            let control = &control;
            scope.spawn(move || {
                let say = |text: String| Words::new(["display-message", "-p", &text]);
                let commands = [say(format!("{number} a; 'b'")), say(format!("{number} #{{pane_id}}"))];
                let answer = control.ask(&commands).unwrap();
                assert_eq!(answer, [format!("{number} a; 'b'"), format!("{number} %0")]);
            });
        }
    });
    let failing =
        [["display-message", "-p", "a"], ["kill-pane", "-t", "%99"], ["display-message", "-p", "b"]];
    let error = control.ask(&failing.map(Words::new)).unwrap_err();
    assert!(error.is_gone(), "{error}");
    let error = control.ask(&[Words::new(["no-such-command", "\""])]).unwrap_err();
    assert!(error.to_string().contains("unknown command"), "{error}");
    assert!(control.ask(&[Words::new(["display-message", "a\nb"])]).is_err());
    assert_eq!(control.ask(&[Words::new(["display-message", "-p", "still"])]).unwrap(), ["still"]);

    let pid = client(&tmux);
    drop(control);
    await_closed(&events);
    await_no_client(pid);
    assert_eq!(tmux.look(&window).dead, None, "the worker lives on");
}

#[test]
fn a_spinner_is_told_now_and_then() {
    let tmux = Tmux::new();
    let window = tmux.script("worker", "while sleep 0.01; do printf '\\r%s' $SECONDS; done");
    let (_control, events) = attach(&window);
    await_paint(&events);
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < Duration::from_secs(3) {
        await_paint(&events);
        count += 1;
    }
    assert!((2..=6).contains(&count), "{count}");
}

#[test]
fn the_end_of_everything_is_told() {
    let tmux = Tmux::new();
    let beside = tmux.open("beside", &["sleep", "600"]);
    let window = tmux.open("worker", &["sleep", "600"]);

    let (control, events) = attach(&window);
    send(client(&tmux), Signal::KILL);
    await_closed(&events);
    let error = control.ask(&[Words::new(["display-message", "-p", "x"])]).unwrap_err();
    assert!(error.to_string().starts_with("the connection to tmux was closed"), "{error}");
    assert_eq!(tmux.user(&["list-clients"]).1, "");

    let (_control, events) = attach(&window);
    tmux.user(&["new-window", "-d", "-t", &window.session, "sleep", "600"]);
    window::close(&window).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), Event::WindowClosed);
    tmux.user(&["kill-session", "-t", &window.session]);
    await_closed(&events);

    let error = Control::attach(&window, None, drop).unwrap_err();
    assert!(error.is_gone(), "{error}");
    let (control, events) = attach(&beside);
    let pid = client(&tmux);
    send(beside.server.pid, Signal::KILL);
    await_closed(&events);
    await_no_client(pid);
    assert!(control.ask(&[Words::new(["display-message", "-p", "x"])]).is_err());
    assert!(Control::attach(&beside, None, drop).unwrap_err().is_gone());
}

#[test]
fn it_has_no_say_about_sizes() {
    let tmux = Tmux::new();
    let window = tmux.open("worker", &["sleep", "600"]);
    let (_control, _events) = attach(&window);
    tmux.user(&["resize-window", "-t", &window.window, "-x", "111", "-y", "22"]);
    let (_second, _more) = attach(&window);
    assert_eq!(tmux.look(&window).size, (111, 22));
}

/// Prints a lot on request.
const LOUD: &str = "read -r; while :; do timeout 2 yes 'a line that is neither long nor short'; echo; echo rests; read -r; done";

#[test]
fn a_loud_pane_fills_no_memory_and_is_not_blocked() {
    if !is_alone("tmux_control::a_loud_pane_fills_no_memory_and_is_not_blocked", |_| ()) {
        return;
    }
    let tmux = Tmux::new();
    let window = tmux.script("worker", LOUD);
    let (control, events) = attach(&window);
    await_rest(&events);
    let memory = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    let before = memory(std::process::id());
    paste::press(&window, Key::Enter).unwrap();
    // Another pane of the user in our session causes no events.
    tmux.user(&["new-window", "-d", "-t", &window.session, "timeout", "2", "yes", "other"]);
    let rests = |screen: &ralph::tmux::Screen| screen.lines.last().is_some_and(|line| line == "rests");
    let mut count = 0;
    while !rests(&screen::look(&control, &window, Extent::Visible, false).unwrap()) {
        await_paint(&events);
        count += 1;
    }
    assert!(count < 100, "{count}");
    await_rest(&events);
    let (ours, theirs) = (memory(std::process::id()) - before, memory(window.server.pid));
    // 50,000 lines of history are in it.
    assert!(ours < 10 && theirs < 150, "{ours} MB more, tmux {theirs} MB");
}

/// The tests below start this one as a process of its own, which connects until it is killed; by itself it does nothing.
#[test]
fn connect_until_killed() {
    let Some(window) = std::env::var_os("RALPH_TEST_WINDOW") else { return };
    let window: Window = serde_json::from_str(window.to_str().unwrap()).unwrap();
    let (_control, events) = attach(&window);
    println!("connected");
    drop(events);
    std::thread::park();
}

#[test]
fn a_killed_monitor_does_not_block() {
    let tmux = Tmux::new();
    let window = tmux.script("worker", LOUD);
    let mut monitor = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "tmux_control::connect_until_killed"])
        .env("RALPH_TEST_WINDOW", serde_json::to_string(&window).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(monitor.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("connected")));
    let pid = client(&tmux);
    // It does not read, then it is killed, while the agent is loud.
    send(monitor.id(), Signal::STOP);
    paste::press(&window, Key::Enter).unwrap();
    tmux.await_line(&window, "rests");
    paste::press(&window, Key::Enter).unwrap();
    tmux.await_screen(&window, "more", |screen| !screen.lines.contains(&"rests".to_owned()));
    send(monitor.id(), Signal::KILL);
    finish(monitor);
    await_no_client(pid);
    tmux.await_line(&window, "rests");
    let (_control, events) = attach(&window);
    await_paint(&events);
    window::close(&window).unwrap();
    await_end(&window.server);
}
