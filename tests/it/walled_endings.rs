//! However an agent behind walls ends: nothing of it is left, no folder, mount or process, and nothing of others is touched.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::processes::{send, supervisors_of};
use crate::scratch::{Scratch, finish, wait_for};

/// What ends it.
enum By {
    Itself,
    Timeout,
    /// These signals to ralph.
    Signals(&'static [Signal]),
    LossOfItsSupervisor,
}

const DONE: &str = "cat > /dev/null; say '<promise>COMPLETE</promise>'; result";
const STAYS: &str = "trap '' INT TERM HUP; while :; do sleep 600; done";
const BEHIND: &str = "until [ \"$(wc -l < \"$HOME/pids\")\" -ge 2 ]; do sleep 0.01; done";

/// What an agent does, and what ends it.
const ENDINGS: &[(&str, &str, By)] = &[
    ("it is done", DONE, By::Itself),
    ("it fails", "exit 7", By::Itself),
    ("it is killed", "kill -9 $$", By::Itself),
    ("it crashes", "kill -SEGV $$", By::Itself),
    (
        "it leaves a child that hears nothing",
        "( note; trap '' INT TERM HUP; while :; do sleep 600; done ) &\nDONE",
        By::Itself,
    ),
    (
        "it leaves one in a session of its own",
        "setsid bash -c \"$(declare -f note); note; sleep 600; :\" &\nBEHIND\nDONE",
        By::Itself,
    ),
    (
        "it leaves one without a parent",
        "( ( setsid bash -c \"$(declare -f note); note; sleep 600; :\" & ) & )\nBEHIND\nDONE",
        By::Itself,
    ),
    (
        "it leaves one without our environment",
        "env -i HOME=\"$HOME\" PATH=\"$PATH\" setsid bash -c \"$(declare -f note); note; sleep 600; :\" &\nBEHIND\nDONE",
        By::Itself,
    ),
    (
        "it leaves one behind walls of its own",
        "( note; exec unshare -Umpf --mount-proc sleep 600 ) &\nBEHIND\nDONE",
        By::Itself,
    ),
    (
        "it closes its temporary files",
        "mkdir -p /tmp/a/b && touch /tmp/a/b/c && chmod 000 /tmp/a/b /tmp/a\nDONE",
        By::Itself,
    ),
    (
        "its temporary files lead out",
        "ln -s \"$OUT\" /tmp/out; ln -s / /tmp/root; mkdir /tmp/d; ln -s ../out /tmp/d/o\nDONE",
        By::Itself,
    ),
    ("it goes to where nothing is", "mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone\nDONE", By::Itself),
    ("it takes too long", STAYS, By::Timeout),
    ("it is stopped", "kill -STOP $$", By::Timeout),
    ("it stops those around it", "kill -STOP $PPID; kill -STOP -1; STAYS", By::Timeout),
    ("it forks for ever", "trap '' INT TERM\nwalk() { ( walk ) & }\nwalk; walk; exec sleep 600", By::Timeout),
    ("ralph is interrupted", "sleep 600", By::Signals(&[Signal::INT, Signal::INT])),
    (
        "ralph is interrupted, and it does not care",
        STAYS,
        By::Signals(&[Signal::INT, Signal::INT, Signal::INT]),
    ),
    ("ralph is terminated", STAYS, By::Signals(&[Signal::TERM])),
    ("ralph's terminal goes away", STAYS, By::Signals(&[Signal::HUP])),
    ("ralph is killed", STAYS, By::Signals(&[Signal::KILL])),
    ("its supervisor is killed", STAYS, By::LossOfItsSupervisor),
];

#[test]
fn however_an_agent_behind_walls_ends_nothing_of_it_is_left() {
    for (what, body, by) in ENDINGS {
        let scratch = Scratch::new();
        let home = scratch.home();
        let precious = scratch.outside().join("precious");
        fs::write(home.join("pids"), "").unwrap();
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "mine").unwrap();
        let body = body.replace("BEHIND", BEHIND).replace("DONE", DONE).replace("STAYS", STAYS);
        scratch.agent("claude", &body);
        let mut stranger = scratch.look_alike("claude");
        let limit = if matches!(by, By::Timeout) { "--timeout 1s" } else { "" };
        let args = format!("prompt p.md 1 --max-retries 0 --sandbox on {limit}");
        let walled = |args: &str| {
            let mut ralph = scratch.ralph(args);
            ralph.env("RALPH_SANDBOX_WRITE", "~/pids").env("OUT", &precious).env("RALPH_TERM_GRACE", "1s");
            ralph
        };
        let ralph = walled(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = ralph.id();
        match by {
            By::Itself | By::Timeout => {}
            By::Signals([Signal::KILL]) => {
                scratch.await_noted(1);
                send(id, Signal::KILL);
            }
            By::Signals(signals) => {
                scratch.await_noted(1);
                signals.iter().for_each(|signal| scratch.ask_to_stop(id, *signal));
            }
            By::LossOfItsSupervisor => {
                scratch.await_noted(1);
                send(wait_for("its supervisor", || supervisors_of(id).pop()), Signal::KILL);
            }
        }
        let run = finish(ralph);
        scratch.await_nothing_left();
        assert!(!fs::read(home.join("pids")).unwrap().is_empty(), "{what}: it did not start: {run:?}");
        let folder = scratch.path(".ralph/sandbox");
        let left = || fs::read_dir(&folder).map_or(0, Iterator::count);
        if matches!(by, By::Signals([Signal::KILL])) {
            // The next start clears up.
            scratch.agent("claude", DONE);
            assert_eq!(Scratch::finish(&mut walled("prompt p.md 1 --sandbox on")).code, Some(0), "{what}");
        }
        assert_eq!(left(), 0, "{what}: {run:?}");
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(scratch.outside().to_str().unwrap()), "{what}: {mounts}");
        assert_eq!(fs::read_to_string(precious.join("file")).unwrap(), "mine", "{what}");
        stranger.assert_alive();
    }
}
