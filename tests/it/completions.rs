//! Completion in real shells: what Tab makes of a line.

use std::process::Command;

use crate::scratch::{Scratch, claude_says};
use crate::terminal::Terminal;

/// A project with a loop that has ended and a file, and ralph on PATH.
fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    let run = scratch.run("build --name night-shift");
    assert_eq!(run.code, Some(0), "{run:?}");
    scratch.write("my prompt.md", "Do it\n");
    assert_eq!(scratch.run("feature add export").code, Some(0));
    let added = scratch.run("task add Count:_all --feature export");
    scratch.write("task.id", added.stdout.trim());
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ralph"), scratch.outside().join("bin/ralph")).unwrap();
    scratch
}

/// Lines, and what they are when Tab has been pressed behind them.
/// `ID` is that of the one task.
const LINES: [(&str, &str); 10] = [
    ("ralph compl", "ralph completions "),
    ("ralph status ni", "ralph status night-shift "),
    ("ralph resume ", "ralph resume night-shift "),
    ("ralph build --agent gemini-", "ralph build --agent gemini-acp "),
    ("ralph build --agent=gemini-", "ralph build --agent=gemini-acp "),
    ("ralph prompt my", "ralph prompt my\\ prompt.md "),
    ("ralph loop build --seq", "ralph loop build --sequential "),
    ("ralph task show t-", "ralph task show ID "),
    ("ralph run ex", "ralph run export "),
    ("ralph help troub", "ralph help troubleshooting "),
];

/// Types the lines into an interactive shell that has read its script.
fn tab_completes(mut shell: Command, script: &str, id: &str) {
    shell.env("PS1", "$ ").env("TERM", "xterm").env("HISTFILE", "");
    let mut terminal = Terminal::start(&shell, 50, 150);
    terminal.press(&format!("{script}; echo rea''dy\n"));
    terminal.wait_for("a shell that is ready", |screen| screen.contains("\nready\n"));
    for (line, expected) in LINES {
        let expected = expected.replace("ID", id);
        terminal.press(&format!("{line}\t"));
        let word = format!("$ {}", expected.trim_end());
        terminal.wait_for(&word, |screen| screen.ends_with(&word));
        // What stands behind a blank is seen.
        terminal.press("#");
        let whole = format!("$ {expected}#");
        terminal.wait_for(&whole, |screen| screen.ends_with(&whole));
        // Ctrl+U throws the line away.
        terminal.press("\x15");
    }
    terminal.press("exit\n");
    terminal.end();
}

/// Calls the function as bash does at Tab: with its words, of which a `=` is a separate one.
#[test]
fn bash_completes() {
    let scratch = project();
    for (words, expected) in [
        ("ralph compl", "completions\n"),
        ("ralph status ni", "night-shift\n"),
        ("ralph resume ''", "night-shift\n"),
        ("ralph build --agent gemini-", "gemini-acp\n"),
        ("ralph build --agent = gemini-", "gemini-acp\n"),
        ("ralph prompt my", "my prompt.md\n"),
        ("ralph loop build --seq", "--sequential\n"),
        ("ralph task show t-", "ID\n"),
        ("ralph task deps add t-", "ID\n"),
        ("ralph task list --feature ''", "export\n"),
        ("ralph feature show ''", "export\n"),
        ("ralph run ex", "export\n"),
        ("ralph help troub", "troubleshooting\n"),
    ] {
        let expected = expected.replace("ID", &scratch.read("task.id"));
        let at_tab = format!(
            "source <(ralph completions bash); complete -p ralph > /dev/null || exit 1
             COMP_WORDS=({words})
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _ralph ralph \"${{COMP_WORDS[COMP_CWORD]}}\"
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let run = Scratch::finish(scratch.command("bash").args(["--norc", "-c", &at_tab]));
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), (&*expected, ""), "{words}");
    }
}

#[test]
fn zsh_completes_whichever_way_it_got_the_script() {
    let scratch = project();
    let zsh = || {
        let mut zsh = scratch.command("zsh");
        zsh.args(["-f", "-i"]);
        zsh
    };
    let begin = "autoload -U compinit; compinit -u -D";
    tab_completes(zsh(), &format!("{begin}; source <(ralph completions zsh)"), &scratch.read("task.id"));
    let place = "mkdir ~/functions; ralph completions zsh > ~/functions/_ralph; fpath=(~/functions $fpath)";
    tab_completes(zsh(), &format!("{place}; {begin}"), &scratch.read("task.id"));
}

/// It says by itself what Tab would offer.
#[test]
fn fish_completes() {
    let scratch = project();
    for (line, expected) in [
        ("ralph compl", "completions\tPrint the completion script for a shell\n"),
        ("ralph status ", "night-shift\n"),
        ("ralph build --agent gemini-", "gemini-acp\n"),
        ("ralph build --agent=gemini-", "--agent=gemini-acp\n"),
        ("ralph prompt my", "my prompt.md\n"),
        ("ralph build --config=my", "--config=my prompt.md\n"),
        ("ralph task show t-", "ID\tCount:_all\n"),
        ("ralph feature show ", "export\tready\n"),
    ] {
        let expected = expected.replace("ID", &scratch.read("task.id"));
        let mut fish = scratch.command("fish");
        fish.args(["--no-config", "-c"])
            .arg(format!("ralph completions fish | source; complete -C '{line}'"));
        let run = Scratch::finish(&mut fish);
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), (&*expected, ""), "{line}");
    }
}

/// Names that a shell would run, expand or cut in two; what is typed of each, and in which quote.
const NAMES: [(&str, &str); 12] = [
    ("ev", "ev$(touch ran)"),
    ("'ev", "ev$(touch ran)"),
    ("ba", "ba`touch ran`"),
    ("se", "se;touch ran"),
    ("tw", "two  words"),
    ("\"tw", "two  words"),
    ("'tw", "two  words"),
    ("qu", "qu'o\"te\\"),
    ("st", "st*r?[a]{b,c}"),
    ("ti", "ti~de!x$HOME"),
    ("an", "an&touch ran"),
    ("co", "co:lon=x#y"),
];
/// Names that are not offered: invisible, or mistaken for an option.
const HIDDEN: [&str; 4] = ["hi\u{202e}dden", "ze\u{200b}ro", "nl\ntouch ran", "-n$(touch ran)"];

/// A project that came with records of these names, and a ralph that says which words it gets.
fn of_hostile_names() -> Scratch {
    let scratch = project();
    let state = scratch.read(".ralph/state.toml");
    assert_eq!(state.matches("name = \"night-shift\"").count(), 1, "{state}");
    let names: std::collections::BTreeSet<&str> = NAMES.iter().map(|(_, name)| *name).chain(HIDDEN).collect();
    for (number, name) in names.into_iter().enumerate() {
        let name = format!("name = {}", toml::Value::from(name));
        scratch.write(
            &format!(".ralph/runs/branches/b{number}/state.toml"),
            state.replace("name = \"night-shift\"", &name),
        );
    }
    let ralph = scratch.outside().join("bin/ralph");
    std::fs::remove_file(&ralph).unwrap();
    let real = env!("CARGO_BIN_EXE_ralph");
    let shows =
        format!("case $1 in __complete|completions) exec {real} \"$@\";; esac\nprintf '<%s>' \"$@\"; echo\n");
    crate::scratch::executable(&ralph, &format!("#!/bin/sh\n{shows}"));
    scratch
}

/// Presses Tab and Enter behind the beginning of each name.
fn tab_quotes(mut shell: Command, script: &str, scratch: &Scratch) {
    shell.env("PS1", "$ ").env("TERM", "xterm").env("HISTFILE", "");
    let mut terminal = Terminal::start(&shell, 100, 150);
    terminal.press(&format!("{script}; echo rea''dy\n"));
    terminal.wait_for("a shell that is ready", |screen| screen.contains("\nready"));
    for (number, (typed, name)) in NAMES.iter().enumerate() {
        let times = NAMES[..=number].iter().filter(|(_, earlier)| earlier == name).count();
        terminal.press(&format!("ralph logs {typed}\t\n"));
        terminal.wait_for(name, |screen| screen.matches(&format!("<logs><{name}>")).count() == times);
    }
    for name in HIDDEN {
        let typed = &name[..2];
        terminal.press(&format!("ralph logs {typed}\t\n"));
        terminal.wait_for(typed, |screen| screen.contains(&format!("<logs><{typed}>")));
    }
    terminal.press("exit\n");
    terminal.end();
    assert!(!scratch.path("ran").exists());
}

#[test]
fn bash_runs_no_name() {
    let scratch = of_hostile_names();
    let mut bash = scratch.command("bash");
    bash.args(["--norc", "-i"]);
    tab_quotes(bash, "source <(ralph completions bash)", &scratch);
}

#[test]
fn zsh_runs_no_name() {
    let scratch = of_hostile_names();
    let mut zsh = scratch.command("zsh");
    zsh.args(["-f", "-i"]);
    tab_quotes(zsh, "autoload -U compinit; compinit -u -D; source <(ralph completions zsh)", &scratch);
}

#[test]
fn fish_runs_no_name() {
    let scratch = of_hostile_names();
    let mut fish = scratch.command("fish");
    fish.args(["--no-config", "-i"]);
    tab_quotes(fish, "ralph completions fish | source", &scratch);
}

/// Tab never prints a message.
#[test]
fn where_nothing_is_known_nothing_is_said() {
    let scratch = Scratch::new();
    for words in ["2 ralph attach", "2 ralph build --agent=nobody", "x", "", "1"] {
        let run = scratch.run(&format!("__complete {words}"));
        let is_no_option = |line: &&str| !line.starts_with('-');
        assert_eq!((run.stdout.lines().find(is_no_option), run.stderr.as_str()), (None, ""), "{words}");
    }
}
