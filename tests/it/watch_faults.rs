//! `ralph watch` where things are not as they should be.

use std::fs;
use std::path::PathBuf;

use crate::scratch::{Scratch, wait_for};
use crate::terminal::{Modes, Terminal};
use crate::watch::{at_work, last_row, watch};

/// The events log of the loop in this ralph dir.
fn events_log(scratch: &Scratch, name: &str) -> PathBuf {
    let state: toml::Table = scratch.read(&format!(".ralph-{name}/.ralph/state.toml")).parse().unwrap();
    PathBuf::from(state["session_log"].as_str().unwrap()).with_extension("events.jsonl")
}

#[test]
fn without_a_terminal_it_says_what_does_the_same() {
    let scratch = Scratch::new();
    let run = scratch.run("watch");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.starts_with("error: watch needs a terminal") && run.stderr.contains("'ralph status'"));
    for term in ["dumb", ""] {
        let mut command = scratch.ralph("watch");
        command.env("TERM", term);
        let end = Terminal::start(&command, 24, 200).end();
        assert_eq!((end.code, end.modes), (Some(1), Modes::USUAL), "{term}: {}", end.history);
        assert!(end.history.contains("'ralph status'") && !end.bytes.contains("\x1b["), "{}", end.history);
    }
    let mut command = scratch.ralph("watch nobody");
    command.env("TERM", "xterm");
    let end = Terminal::start(&command, 24, 200).end();
    assert_eq!(end.code, Some(1));
    assert!(end.history.contains("no loop is called 'nobody'"), "{}", end.history);
}

#[test]
fn a_project_without_loops_is_waited_with() {
    let scratch = Scratch::new();
    let mut terminal = watch(&scratch, "", 24, 80);
    terminal.wait_for("a word about that", |screen| screen.contains("no loop in this project yet"));
    for key in ["p", "d", "l", "n", "\t", "s", "j"] {
        terminal.press(key);
    }
    let run = scratch
        .agent("claude", "cat > /dev/null; say '<promise>COMPLETE</promise>'; result")
        .run("prompt p.md 1 --agent claude");
    assert_eq!(run.code, Some(0), "{run:?}");
    terminal.wait_for("a loop", |screen| screen.contains("✓ prompt"));
    terminal.press("q");
    assert_eq!(terminal.end().code, Some(0));
}

#[test]
fn states_that_cannot_be_read_are_told_as_that() {
    let (scratch, mut loops) = at_work(&["one", "two", "three", "four"]);
    let mut terminal = watch(&scratch, "one", 30, 100);
    let row = |screen: &str, name: &str| {
        screen.lines().find(|line| line.contains(&format!(" {name} "))).unwrap_or_default().to_owned()
    };
    terminal.wait_for("the loops", |screen| row(screen, "four").contains("running"));
    let state = |name: &str| scratch.path(&format!(".ralph-{name}/.ralph/state.toml"));
    let newer = fs::read_to_string(state("one")).unwrap().replace("version = 1\n", "version = 99\n");
    // What a damaged one should say is in the events log.
    fs::write(state("two"), "version = 1\nrun = ").unwrap();
    fs::write(state("three"), b"\xff\x1b[2Jnot ours\n").unwrap();
    fs::write(state("one"), newer).unwrap();
    terminal.wait_for("what is not known", |screen| {
        row(screen, "one").contains("unknown")
            && ["two", "three", "four"].iter().all(|name| row(screen, name).contains("running"))
    });
    assert!(terminal.screen().contains("state.toml"), "{}", terminal.screen());
    terminal.press("p");
    terminal.wait_for("no answer", |screen| last_row(screen).contains("one does not run (unknown)"));
    // The one that is selected goes, with all it has left.
    drop(loops.remove(0));
    fs::remove_dir_all(scratch.path(".ralph-one")).unwrap();
    terminal.wait_for("another one", |screen| {
        last_row(screen).contains("one is not there any more") && screen.contains('>')
    });
    terminal.press("q");
    assert_eq!(terminal.end().code, Some(0));
}

#[test]
fn a_log_that_is_cut_removed_or_foreign_does_no_harm() {
    let (scratch, _loops) = at_work(&["one"]);
    let log = events_log(&scratch, "one");
    let mut terminal = watch(&scratch, "one", 24, 80);
    terminal.wait_for("what it says", |screen| screen.contains("this is one"));
    let lines = fs::read_to_string(&log).unwrap();
    let text = lines.lines().find(|line| line.contains("this is one")).unwrap();
    // In place: the loop has it open.
    fs::write(&log, format!("{}\n", text.replace("this is one", "cut"))).unwrap();
    terminal.wait_for("the log that was cut", |screen| {
        screen.lines().any(|line| line.trim_end() == "cut") && !screen.contains("this is one")
    });
    let unknown = text.replace("\"event\":\"text\"", "\"event\":\"of_a_later_release\"");
    let hostile = text.replace("this is one", r"\u001b]0;title\u0007\u001b[31mred\u001b[2J\u202e日本 <b>");
    let newer = text.replace("\"v\":1", "\"v\":2").replace("this is one", "of another version");
    let nothing = "\0".repeat(9000);
    let before = fs::read_to_string(&log).unwrap();
    fs::write(&log, format!("{before}torn {{\n{nothing}\n{unknown}\n{newer}\n{hostile}\n")).unwrap();
    terminal.wait_for("the rest", |screen| screen.contains("red") && screen.contains("日本 <b>"));
    assert!(!terminal.screen().contains("of another version"));
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &log).unwrap();
    terminal.press("\t");
    terminal.wait_for("its history", |screen| screen.contains("Iteration 1") && screen.contains("history"));
    assert!(!terminal.screen().contains("root:"));
    terminal.press("q");
    let end = terminal.end();
    assert_eq!((end.code, end.modes), (Some(0), Modes::USUAL));
    assert!(!end.bytes.contains("\x1b]0;") && !end.bytes.contains('\u{202e}'), "{:?}", end.bytes);
}

#[test]
fn no_colour_is_none() {
    let (scratch, _loops) = at_work(&["one"]);
    let mut command = scratch.ralph("watch");
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let mut terminal = Terminal::start(&command, 24, 80);
    terminal.wait_for("the loop", |screen| screen.contains("this is one"));
    terminal.press("q");
    let bytes = terminal.end().bytes;
    let colours = regex::Regex::new("\x1b\\[(3|4|9|10)[0-8][;m]").unwrap();
    assert_eq!(colours.find(&bytes).map(|found| found.as_str().to_owned()), None);
}

#[test]
fn a_terminal_that_is_closed_ends_it_without_a_word() {
    let (scratch, _loops) = at_work(&["one"]);
    let home = scratch.outside().join("home");
    for errors in ["", "2> \"$HOME/said\""] {
        let socket = tempfile::tempdir().unwrap();
        let tmux = |args: &[&str]| {
            let mut command = scratch.command("tmux");
            command
                .env("TERM", "xterm-256color")
                .args(["-f", "/dev/null", "-S"])
                .arg(socket.path().join("s"));
            Scratch::finish(command.args(args))
        };
        // The signal that comes with it would end it by itself.
        let ralph = env!("CARGO_BIN_EXE_ralph");
        let shell = format!(
            "trap '' HUP; \"{ralph}\" watch {errors}; echo $? > \"$HOME/code.new\"; mv \"$HOME/code.new\" \"$HOME/code\""
        );
        assert_eq!(tmux(&["new-session", "-d", "-x", "80", "-y", "24", &shell]).code, Some(0));
        wait_for("the loop", || tmux(&["capture-pane", "-p"]).stdout.contains("this is one").then_some(()));
        assert_eq!(tmux(&["kill-server"]).code, Some(0));
        let code = wait_for("its end", || fs::read_to_string(home.join("code")).ok());
        assert_eq!(code.trim(), "1", "{errors}");
        fs::remove_file(home.join("code")).unwrap();
    }
    assert_eq!(fs::read_to_string(home.join("said")).unwrap(), "");
}
