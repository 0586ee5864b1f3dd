//! `ralph watch` on a real terminal, with real loops.

use std::fs;

use rustix::process::Signal;

use crate::processes::send;
use crate::scratch::{Scratch, Started, wait_for};
use crate::terminal::{Modes, Terminal};

/// An agent that says whose prompt it has, and works until a file beside the project lets it go.
pub(crate) const AGENT: &str = r#"prompt=$(cat); name=${prompt%% *}
say "this is $name"; echo "$prompt" > "../prompt-$name"
while [ ! -e "../go-$name" ]; do sleep 0.02; done; rm -f "../go-$name"
echo '{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.5,"usage":{"input_tokens":10,"output_tokens":5}}'"#;

/// A project with a loop at work for each of these names, in this order, each in a ralph dir of its own.
pub(crate) fn at_work(names: &[&str]) -> (Scratch, Vec<Started>) {
    let scratch = Scratch::new();
    scratch.agent("claude", AGENT);
    let started = names.iter().map(|name| start_loop(&scratch, name)).collect();
    (scratch, started)
}

fn start_loop(scratch: &Scratch, name: &str) -> Started {
    scratch.write(&format!("{name}.md"), format!("{name} says <promise>COMPLETE</promise>.\n"));
    let started = Started::new(
        scratch,
        &format!(
            "prompt {name}.md 5 --agent claude --name {name} --ralph-dir .ralph-{name} --max-duration 3h"
        ),
    );
    wait_for("a loop at work", || scratch.outside().join(format!("prompt-{name}")).exists().then_some(()));
    started
}

/// Lets the agent of a loop go on.
fn go(scratch: &Scratch, name: &str) {
    fs::write(scratch.outside().join(format!("go-{name}")), "").unwrap();
}

pub(crate) fn watch(scratch: &Scratch, args: &str, rows: u16, columns: u16) -> Terminal {
    let mut command = scratch.ralph(&format!("watch {args}"));
    command.env("TERM", "xterm-256color");
    Terminal::start(&command, rows, columns)
}

pub(crate) fn last_row(screen: &str) -> &str {
    screen.lines().last().unwrap_or_default()
}

/// The row of a loop in the list.
fn row<'a>(screen: &'a str, name: &str) -> &'a str {
    // The name of the selected one may stand beside the heads as well.
    let mut rows = screen.lines().filter(|line| !line.starts_with("   NAME"));
    rows.find(|line| line.contains(&format!(" {name} "))).unwrap_or_default()
}

fn is_selected(screen: &str, name: &str) -> bool {
    row(screen, name).starts_with('>')
}

#[test]
fn an_agent_at_work_sees_loops_and_steers_none() {
    let (scratch, _loops) = at_work(&["one"]);
    let mut command = scratch.ralph("watch");
    // A worker's agent has this variable in its pane.
    command.env("TERM", "xterm-256color").env("RALPH_PANE", "1");
    let mut terminal = Terminal::start(&command, 24, 120);
    terminal.wait_for("its loop", |screen| screen.contains("this is one"));
    terminal.press("p");
    terminal.wait_for("a refusal", |screen| {
        last_row(screen).contains("'ralph pause' is not for agents at work: say in your answer")
    });
    assert!(!scratch.read(".ralph-one/.ralph/state.toml").contains("paus"));
    go(&scratch, "one");
}

#[test]
fn loops_are_seen_and_steered() {
    let (scratch, _loops) = at_work(&["one", "two", "three"]);
    let mut terminal = watch(&scratch, "", 24, 80);
    terminal.wait_for("three loops", |screen| {
        ["one", "two", "three"].iter().all(|name| row(screen, name).contains("running"))
            && screen.starts_with(" ralph watch · project · 3 running")
            && is_selected(screen, "three")
            && screen.contains("this is three")
            && screen.contains(" at most 3h\n")
    });
    assert!(terminal.modes().is_alternate && !terminal.modes().has_lines, "{:?}", terminal.modes());
    terminal.press("\x1b[B");
    terminal.wait_for("the next one", |screen| is_selected(screen, "two") && screen.contains("this is two"));
    terminal.press("j");
    terminal.wait_for("the last one", |screen| is_selected(screen, "one") && screen.contains("this is one"));
    terminal.press("k");
    terminal.wait_for("the one before", |screen| is_selected(screen, "two"));

    terminal.press("p");
    terminal.wait_for("an answer", |screen| {
        last_row(screen).contains("paused ralph loop for two; two holds after the current attempt")
            && screen.contains("pausing after the current attempt")
    });
    go(&scratch, "two");
    terminal.wait_for("a loop that holds", |screen| {
        row(screen, "two").contains("paused") && is_selected(screen, "two")
    });
    terminal.press("r");
    terminal.wait_for("a loop that goes on", |screen| {
        last_row(screen).contains("resumed ralph loop for two") && row(screen, "two").contains("running")
    });
    wait_for("the second attempt", || {
        scratch.read_if_there(".ralph-two/.ralph/state.toml").contains("iteration = 2").then_some(())
    });

    terminal.press("n");
    terminal.wait_for("a line to type in", |screen| last_row(screen).starts_with("note to two:"));
    terminal.press("use the \x1b[200~dátabase\n\x1b[201~\r");
    terminal.wait_for("an answer", |screen| last_row(screen).contains("noted for the next prompt of two"));
    go(&scratch, "two");
    wait_for("the note in the prompt", || {
        let prompt = fs::read_to_string(scratch.outside().join("prompt-two")).ok()?;
        prompt.contains("use the dátabase").then_some(())
    });

    terminal.press("\t");
    terminal.wait_for("its history", |screen| {
        screen.contains(" Iteration 1 completed in ") && screen.contains(" Iteration 3 of 5")
    });
    terminal.press("c");
    terminal.wait_for("a question", |screen| {
        last_row(screen).contains("two: cancel it after the current attempt?")
    });
    terminal.press("n");
    terminal.wait_for("nothing", |screen| last_row(screen) == "nothing was done");
    terminal.press("C");
    terminal
        .wait_for("a question", |screen| last_row(screen).contains("two: cancel it now and end its agent?"));
    terminal.press("y");
    terminal.wait_for("the end of a loop", |screen| {
        last_row(screen).contains("two: cancelled (was at iteration 3)")
            && row(screen, "two").contains("cancelled")
    });
    terminal.press("q");
    let end = terminal.end();
    assert_eq!((end.code, end.modes), (Some(0), Modes::USUAL), "{}", end.history);
    assert_eq!(end.history.trim(), "", "nothing is left on the screen that was there before");
}

#[test]
fn the_list_is_filtered_and_sorted_and_one_is_selected_by_name() {
    let (scratch, _loops) = at_work(&["one", "two", "three"]);
    let mut terminal = watch(&scratch, "two", 24, 80);
    terminal.wait_for("the one that was named", |screen| is_selected(screen, "two"));
    terminal.press("/th");
    terminal.wait_for("one loop", |screen| {
        last_row(screen) == "/th" && is_selected(screen, "three") && row(screen, "one").is_empty()
    });
    terminal.press("\r");
    terminal.wait_for("the filter", |screen| screen.lines().next().unwrap().contains("filter: th"));
    terminal.press("\x1b");
    terminal.wait_for("all loops", |screen| !row(screen, "one").is_empty() && !screen.contains("filter: "));
    terminal.press("s");
    terminal.wait_for("another order", |screen| {
        let at = |name: &str| screen.find(&format!(" {name} "));
        last_row(screen) == "sorted by name" && at("one") < at("three") && at("three") < at("two")
    });
    terminal.press("?");
    terminal.wait_for("the keys", |screen| screen.contains("pause after the current attempt"));
    terminal.press("q");
    terminal.wait_for("the list", |screen| screen.contains("this is"));
    terminal.press("z");
    terminal.wait_for("a word about that", |screen| last_row(screen).contains("'z' is no key here"));
    terminal.press("\x03");
    let end = terminal.end();
    assert_eq!((end.code, end.modes), (Some(130), Modes::USUAL));
}

#[test]
fn it_follows_the_size_of_the_terminal() {
    let (scratch, _loops) = at_work(&["one"]);
    let mut terminal = watch(&scratch, "", 20, 60);
    let is_there = |screen: &str| is_selected(screen, "one") && screen.contains("this is one");
    terminal.wait_for("the smallest one", is_there);
    for (rows, columns) in [(50, 200), (24, 80), (10, 40), (1, 1), (20, 60), (200, 500)] {
        terminal.resize(rows, columns);
        if rows < 20 {
            terminal.wait_for("few words", |screen| {
                !is_there(screen) && (columns < 9 || screen.starts_with("too small"))
            });
        } else {
            terminal
                .wait_for("all of it", |screen| is_there(screen) && last_row(screen).starts_with("? help"));
        }
        assert!(terminal.screen().lines().all(|line| line.chars().count() <= columns.into()));
    }
    terminal.press("q");
    assert_eq!(terminal.end().modes, Modes::USUAL);
}

#[test]
fn a_size_that_no_terminal_has_takes_no_more_memory_than_there_is() {
    let (scratch, _loops) = at_work(&["one"]);
    let mut terminal = watch(&scratch, "", 24, 80);
    terminal.wait_for("the loop", |screen| is_selected(screen, "one"));
    terminal.claim_size(u16::MAX, u16::MAX);
    // It draws as soon as it is another size again.
    terminal.resize(20, 60);
    terminal.wait_for("all of it", |screen| last_row(screen).starts_with("? help"));
    terminal.claim_size(u16::MAX, u16::MAX);
    terminal.press("q");
    let end = terminal.end();
    assert_eq!((end.code, end.modes), (Some(0), Modes::USUAL));
}

#[test]
fn every_end_gives_the_terminal_back() {
    let (scratch, _loops) = at_work(&["one"]);
    for (signal, code) in [(Signal::TERM, 130), (Signal::HUP, 130), (Signal::INT, 130), (Signal::QUIT, 130)] {
        let terminal = watch(&scratch, "", 24, 80);
        terminal.wait_for("the loop", |screen| is_selected(screen, "one"));
        send(terminal.pid(), signal);
        let end = terminal.end();
        assert_eq!((end.code, end.modes), (Some(code), Modes::USUAL), "{signal:?}: {}", end.history);
        assert_eq!(marks(&scratch), 0, "{signal:?}");
    }
}

/// How many terminals are marked as taken over.
fn marks(scratch: &Scratch) -> usize {
    let folder = scratch.outside().join("home/state/ralph/watch");
    fs::read_dir(folder).map(Iterator::count).unwrap_or_default()
}

#[test]
fn after_a_kill_the_next_command_tells_of_reset_once() {
    let (scratch, _loops) = at_work(&["one"]);
    let mut command = scratch.command("bash");
    command
        .args([
            "-c",
            "\"$0\" watch; stty sane; printf '\\e[?1049l'; \"$0\" ls; echo first; \"$0\" ls; echo second",
        ])
        .arg(env!("CARGO_BIN_EXE_ralph"))
        .env("TERM", "xterm");
    let terminal = Terminal::start(&command, 24, 120);
    terminal.wait_for("the loop", |screen| is_selected(screen, "one"));
    let mark = wait_for("a mark", || {
        let folder = fs::read_dir(scratch.outside().join("home/state/ralph/watch")).ok()?;
        fs::read_to_string(folder.flatten().next()?.path()).ok()
    });
    let mark: toml::Table = mark.parse().unwrap();
    send(u32::try_from(mark["pid"].as_integer().unwrap()).unwrap(), Signal::KILL);
    let end = terminal.end();
    let (first, rest) = end.history.split_once("first\n").expect("the first command");
    assert!(first.contains("was killed: if the terminal behaves oddly, type 'reset'"), "{}", end.history);
    assert!(!rest.contains("reset") && rest.contains("second"), "{}", end.history);
    assert_eq!(marks(&scratch), 0);
}

#[test]
fn ctrl_z_goes_to_the_shell_and_back() {
    let (scratch, _loops) = at_work(&["one"]);
    let mut command = scratch.command("bash");
    command
        .args(["--norc", "--noprofile", "-i"])
        .env("TERM", "xterm")
        .env("PS1", "shell> ")
        .env("R", env!("CARGO_BIN_EXE_ralph"));
    let mut terminal = Terminal::start(&command, 24, 80);
    terminal.wait_for("a shell", |screen| last_row(screen).starts_with("shell>"));
    terminal.press("$R watch\r");
    terminal.wait_for("the loop", |screen| is_selected(screen, "one"));
    terminal.press("\x1a");
    terminal
        .wait_for("the shell", |screen| screen.contains("Stopped") && last_row(screen).starts_with("shell>"));
    assert!(!terminal.modes().is_alternate && !terminal.modes().hides_cursor, "{:?}", terminal.modes());
    assert_eq!(marks(&scratch), 0, "it has given it back");
    terminal.press("echo hel''lo\r");
    terminal.wait_for("a shell that works", |screen| screen.contains("hello\n"));
    terminal.press("fg\r");
    terminal
        .wait_for("the loop again", |screen| is_selected(screen, "one") && screen.contains("this is one"));
    assert!(terminal.modes().is_alternate && !terminal.modes().has_lines);
    terminal.press("q");
    terminal.wait_for("the shell", |screen| last_row(screen).starts_with("shell>"));
    terminal.press("exit 3\r");
    assert_eq!(terminal.end().code, Some(3));
}

#[test]
fn without_a_shell_ctrl_z_does_not_freeze_it() {
    let (scratch, _loops) = at_work(&["one"]);
    let mut terminal = watch(&scratch, "", 24, 80);
    terminal.wait_for("the loop", |screen| is_selected(screen, "one"));
    terminal.press("\x1a");
    terminal.wait_for("a word about that", |screen| last_row(screen).contains("no shell"));
    terminal.press("q");
    assert_eq!(terminal.end().code, Some(0));
}

/// In this namespace, neither our group nor the terminal's has a number.
#[test]
fn in_a_container_it_works_as_anywhere() {
    let (scratch, _loops) = at_work(&["one"]);
    let mut command = scratch.container();
    // The shell is the first process there, which signals spare.
    command.env("TERM", "xterm").args(["bash", "-c", "\"$0\" watch; exit $?", env!("CARGO_BIN_EXE_ralph")]);
    let mut terminal = Terminal::start(&command, 24, 80);
    terminal.wait_for("the loop", |screen| is_selected(screen, "one"));
    terminal.press("\x1a");
    terminal.wait_for("a word about that", |screen| last_row(screen).contains("no shell"));
    terminal.press("q");
    let end = terminal.end();
    assert_eq!((end.code, end.modes), (Some(0), Modes::USUAL), "{}", end.history);
}

#[test]
fn several_watch_at_once_and_loops_come_and_go() {
    let (scratch, mut loops) = at_work(&["one"]);
    let [mut first, mut second] = [24, 30].map(|rows| watch(&scratch, "", rows, 80));
    for terminal in [&first, &second] {
        terminal.wait_for("the loop", |screen| is_selected(screen, "one"));
    }
    loops.push(start_loop(&scratch, "two"));
    for terminal in [&first, &second] {
        terminal.wait_for("a new loop", |screen| row(screen, "two").contains("running"));
    }
    first.press("q");
    assert_eq!(first.end().modes, Modes::USUAL);
    second.press("p");
    second.wait_for("an answer", |screen| last_row(screen).contains("paused ralph loop for one"));
    send(loops[0].pid(), Signal::KILL);
    second.wait_for("that it was killed", |screen| row(screen, "one").contains("killed"));
    second.press("p");
    second.wait_for("what to do", |screen| {
        last_row(screen).contains("one does not run (killed): 'ralph report one'")
    });
    second.press("q");
    assert_eq!(second.end().code, Some(0));
}

#[test]
fn it_works_in_tmux() {
    let (scratch, _loops) = at_work(&["one"]);
    let socket = tempfile::tempdir().unwrap();
    let mut command = scratch.command("tmux");
    command.env("TERM", "xterm-256color").args(["-f", "/dev/null", "-S"]).arg(socket.path().join("s"));
    command.args(["new-session", env!("CARGO_BIN_EXE_ralph"), "watch"]);
    let mut terminal = Terminal::start(&command, 30, 90);
    terminal.wait_for("the loop", |screen| is_selected(screen, "one") && screen.contains("this is one"));
    terminal.resize(24, 70);
    terminal.wait_for("another size", |screen| screen.contains("this is one") && screen.contains("? help"));
    terminal.press("p");
    terminal.wait_for("an answer", |screen| screen.contains("paused ralph loop for one"));
    terminal.press("q");
    let end = terminal.end();
    assert_eq!(end.code, Some(0), "{}", end.history);
}

#[test]
fn other_verbs_are_shown_in_its_place() {
    let (scratch, _loops) = at_work(&["one"]);
    let mut command = scratch.ralph("watch");
    command.env("TERM", "xterm").env("PAGER", "cat; echo; echo that is all; read line < /dev/tty");
    let mut terminal = Terminal::start(&command, 24, 80);
    terminal.wait_for("the loop", |screen| is_selected(screen, "one"));
    let is_back = |screen: &str| is_selected(screen, "one") && last_row(screen).starts_with("? help");
    // What was shown before stays on this screen.
    let asked = |screen: &str| screen.matches("Enter: back to ralph watch").count();
    for (key, times) in [("l", 1), ("R", 2)] {
        terminal.press(key);
        terminal.wait_for("the pager", |screen| screen.matches("that is all").count() == times);
        let modes = terminal.modes();
        assert!(modes.has_lines && !modes.is_alternate, "{modes:?}");
        // Ctrl+C is the pager's.
        terminal.press_ctrl_c();
        terminal.wait_for("the question", |screen| asked(screen) == times);
        // Typed before it is asked for, it would be thrown away.
        terminal.press("\r");
        terminal.wait_for("the loop", is_back);
    }
    terminal.press("q");
    let end = terminal.end();
    assert_eq!((end.code, end.modes), (Some(0), Modes::USUAL));
}

#[test]
fn it_ends_when_it_is_killed_while_something_else_is_shown() {
    let (scratch, _loops) = at_work(&["one"]);
    let stubborn =
        "cat; echo that is all; bash -c 'trap \"\" TERM; read -r line < /dev/tty'; read line < /dev/tty";
    // Nothing was committed yet, which is soon said.
    for (key, shown) in [("l", "that is all"), ("d", "Enter: back to ralph watch")] {
        for signal in [Signal::TERM, Signal::HUP] {
            let mut command = scratch.ralph("watch");
            command.env("TERM", "xterm").env("PAGER", stubborn).env("GIT_PAGER", "cat");
            let mut terminal = Terminal::start(&command, 24, 80);
            terminal.wait_for("the loop", |screen| is_selected(screen, "one"));
            terminal.press(key);
            terminal.wait_for(shown, |screen| screen.contains(shown));
            send(terminal.pid(), signal);
            let end = terminal.end();
            assert_eq!((end.code, end.modes), (Some(130), Modes::USUAL), "{key} {signal:?}: {}", end.history);
        }
    }
}
