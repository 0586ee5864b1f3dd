//! Desktop notices through `notify-send`. A test machine has no desktop, so this one records its arguments.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::policies::project;
use crate::scratch::Scratch;

/// A `notify-send` that writes down its arguments, each with a NUL behind it, and a further NUL behind the last one.
const WRITES: &str = r#"{ printf '%s\0' "$@"; printf '\0'; } >> "$HOME/shown""#;

/// A project with this agent and this `notify-send`.
fn desktop(agent: &str, notify_send: &str) -> Scratch {
    let scratch = project(agent);
    scratch.agent("notify-send", notify_send);
    scratch
}

fn ralph(scratch: &Scratch, args: &str) -> Command {
    let mut command = scratch.ralph(args);
    command.env("RALPH_NOTIFY_DESKTOP", "true");
    command
}

/// The arguments of each call.
fn shown(scratch: &Scratch) -> Vec<Vec<String>> {
    let shown = fs::read_to_string(scratch.outside().join("home/shown")).unwrap_or_default();
    let calls = shown.split_terminator("\0\0");
    calls.map(|call| call.split('\0').map(str::to_owned).collect()).collect()
}

#[test]
fn the_desktop_shows_how_loops_end() {
    let scratch = desktop(r"[ $n = 1 ] && { complete; exit; }; bad 1 x '<b>C:\\no</b>'", WRITES);
    let mut command = ralph(&scratch, "prompt p.md 1 --max-retries 0");
    let run = Scratch::finish(&mut command);
    assert!(run.code == Some(0) && !run.stderr.contains("desktop"), "{run:?}");
    let run = Scratch::finish(&mut command);
    assert_eq!(run.code, Some(4), "{run:?}");
    let calls = shown(&scratch);
    let [done, failed] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(done[..4], ["--app-name=ralph", "--urgency=normal", "--", "ralph in project"]);
    assert!(done.len() == 5 && done[4].starts_with("✓ prompt done: 1 iteration"), "{done:?}");
    assert_eq!(failed[..4], ["--app-name=ralph", "--urgency=critical", "--", "ralph in project"]);
    // It is neither markup nor an escape.
    assert!(failed.len() == 5 && failed[4].contains(r"&lt;b&gt;C:\\no&lt;/b&gt;"), "{failed:?}");

    let test = Scratch::finish(&mut ralph(&scratch, "notify test"));
    assert!(test.code == Some(0) && test.stdout.starts_with("✓ desktop  notify-send"), "{test:?}");
    let doctor = Scratch::finish(&mut ralph(&scratch, "doctor"));
    assert!(doctor.stdout.contains("bin/notify-send; 'ralph notify test' tries it"), "{doctor:?}");
    assert!(!scratch.run("doctor").stdout.contains("notify-send"), "nobody has asked for it");
}

/// A failing desktop is reported once, and does not affect the loop.
#[test]
fn a_desktop_that_shows_nothing_is_reported_once() {
    let scratch = desktop("complete", "echo 'no bus' >&2; exit 1");
    let run = Scratch::finish(&mut ralph(&scratch, "prompt p.md 1"));
    let word = "the desktop shows no notices: exit code 1: no bus: run 'ralph doctor'";
    assert!(run.code == Some(0) && run.stderr.matches(word).count() == 1, "{run:?}");
    let test = Scratch::finish(&mut ralph(&scratch, "notify test"));
    assert!(
        test.code == Some(1) && test.stdout.starts_with("✗ desktop  notify-send: exit code 1"),
        "{test:?}"
    );
}

/// A `PATH` with every program of this machine but `notify-send`, and with the project's agents.
fn path_without(scratch: &Scratch) -> String {
    let folder = scratch.outside().join("without");
    fs::create_dir(&folder).unwrap();
    for programs in
        ["/usr/local/bin", "/usr/bin", "/bin"].map(Path::new).into_iter().filter(|all| all.is_dir())
    {
        for program in fs::read_dir(programs).unwrap().map(|entry| entry.unwrap()) {
            if program.file_name() != "notify-send" {
                let _ = symlink(program.path(), folder.join(program.file_name()));
            }
        }
    }
    format!("{}:{}", scratch.outside().join("bin").display(), folder.display())
}

#[test]
fn without_notify_send_the_loop_and_the_doctor_report_it() {
    let scratch = project("complete");
    let path = path_without(&scratch);
    let run = Scratch::finish(ralph(&scratch, "prompt p.md 1").env("PATH", &path));
    let word = "the desktop shows no notices: cannot start 'notify-send': No such file or directory";
    assert!(run.code == Some(0) && run.stderr.matches(word).count() == 1, "{run:?}");
    let doctor = Scratch::finish(ralph(&scratch, "doctor").env("PATH", &path));
    let word = "notify-send is not on PATH: the desktop shows no notices";
    assert!(doctor.stdout.contains(word) && doctor.stdout.contains("libnotify-bin"), "{doctor:?}");
}

#[test]
fn a_desktop_that_hangs_holds_no_loop_up() {
    let scratch = desktop("complete", "sleep 600");
    let run = Scratch::finish(&mut ralph(&scratch, "prompt p.md 1"));
    assert!(run.code == Some(0) && run.elapsed.as_secs() < 30, "{run:?}");
    // By its own limit, or because the run ends just then.
    assert!(run.stderr.contains("the desktop shows no notices: it "), "{run:?}");
    scratch.assert_nothing_left();
}
