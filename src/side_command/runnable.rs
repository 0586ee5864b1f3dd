//! Whether a command for `sh` can be started at all: as far as that is known without running it, and after it has ended.
//!
//! Before it runs, only its first command is checked, and the folders in which that is started: a later one may exist because an
//! earlier one has made it. Where the shell would have to compute a word, or where the whole may succeed without its first part,
//! nothing is claimed: a command that runs is never refused.
//!
//! After it has ended, only a program is claimed to be missing that the command itself names, that the shell could not start, and
//! that was missing from the beginning. A script that is removed, and a tool that a script calls, are the work of agents.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::launch::{Launch, SHELL};
use crate::process::programs::{find_program, missing_interpreter};
use crate::process::short::output_within;

/// How long the shell may take to look a program up.
const LIMIT: Duration = Duration::from_secs(10);
/// Words before a command that run it.
const PREFIXES: [&str; 4] = ["exec", "command", "time", "env"];
/// Characters with which the shell computes words, or with which a command may succeed although a part of it cannot run.
const UNCLEAR: [char; 10] = ['$', '`', '(', ')', '{', '}', ';', '|', '!', '\n'];
/// Shells, whose first argument is a script.
const SHELLS: [&str; 3] = ["sh", "bash", "dash"];
/// Commands that make no program.
const HARMLESS: [&str; 7] = ["true", ":", "test", "[", "echo", "export", "set"];
/// Programs that start the one that they are given, and report under their own name if they cannot.
const STARTERS: [&str; 5] = [SHELL, "env", "timeout", "nice", "nohup"];
/// How many of the last lines of its errors can name the program that the shell could not start.
const LAST_LINES: usize = 5;
/// The beginnings of compound commands.
const COMPOUND: [&str; 6] = ["if", "for", "while", "until", "case", "{"];

/// Why a command cannot be started, in words that follow a colon, and what the user can do besides changing it.
#[derive(Debug)]
pub(crate) struct Obstacle {
    pub(super) what: String,
    pub(super) remedy: &'static str,
}

impl From<String> for Obstacle {
    fn from(what: String) -> Self {
        Self { what, remedy: "install what is missing" }
    }
}

impl Obstacle {
    /// A file or a folder of the project that does not exist: agents may be meant to write it.
    fn unwritten(what: String) -> Self {
        Self { what, remedy: "begin with one that fails ('exit 1'), if agents are to write it" }
    }
}

/// Why this command cannot be started where `launch` is; `None`: nothing is known against it.
pub(crate) fn obstacle(command: &str, launch: &Launch) -> Option<Obstacle> {
    // A sandbox has programs and folders of its own.
    if !launch.wrapper.is_empty() {
        return None;
    }
    let mut folder = launch.cwd.clone();
    let commands = simple_commands(command)?;
    if !folder.is_dir() {
        return Some(format!("the folder '{}' does not exist", folder.display()).into());
    }
    for words in commands {
        let words = without_prefixes(words)?;
        let (program, arguments) = words.split_first()?;
        if HARMLESS.contains(&program.as_str()) {
            continue;
        }
        if program != "cd" {
            return missing_program(program, arguments, folder, launch);
        }
        let [into] = arguments else { return None };
        if is_computed(into) || into == "-" {
            return None;
        }
        folder.push(into);
        if !folder.is_dir() {
            return Some(format!("the folder '{into}' does not exist").into());
        }
    }
    None
}

/// The simple commands that all have to succeed, one after the other, in words; `None` if the command is anything else than such
/// commands with `&&` between them.
fn simple_commands(command: &str) -> Option<Vec<Vec<String>>> {
    let is_clear = !command.contains(UNCLEAR) && !command.replace("&&", "").contains('&');
    is_clear.then(|| command.split("&&").map(shlex::split).collect())?
}

/// The words without assignments and prefixes; `None` if the program is searched on another `PATH`.
fn without_prefixes(words: Vec<String>) -> Option<Vec<String>> {
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|char| char == '_' || char.is_ascii_alphanumeric())
        })
    };
    let is_before = |word: &String| is_assignment(word) || PREFIXES.contains(&word.as_str());
    let has_path = words.iter().take_while(|word| is_before(word)).any(|word| word.starts_with("PATH="));
    (!has_path).then(|| words.into_iter().skip_while(is_before).collect())
}

/// Whether only the shell knows what a word is.
fn is_computed(word: &str) -> bool {
    word.contains(['$', '`', '*', '?', '[', '~', '<', '>'])
}

fn missing_program(
    program: &str,
    arguments: &[String],
    folder: PathBuf,
    launch: &Launch,
) -> Option<Obstacle> {
    let not_there = |path: &str| {
        let what = format!("'{path}' does not exist");
        if path.starts_with('/') { what.into() } else { Obstacle::unwritten(what) }
    };
    if program.starts_with('-') || COMPOUND.contains(&program) || is_computed(program) {
        return None;
    }
    let is_script =
        |word: &&String| SHELLS.contains(&program) && !word.starts_with('-') && !is_computed(word);
    if let Some(script) = arguments.first().filter(is_script) {
        return (!folder.join(script).exists()).then(|| not_there(script));
    }
    if program.contains('/') {
        let Ok(metadata) = fs::metadata(folder.join(program)) else {
            return Some(not_there(program));
        };
        let is_executable = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        if !is_executable {
            return Some(Obstacle {
                remedy: "run 'chmod +x' on it",
                what: format!("'{program}' is not executable"),
            });
        }
        return missing_interpreter(&folder.join(program), &search_path(launch))
            .map(|why| format!("'{program}' begins with {why}").into());
    }
    // The shell knows its own commands, and where programs are.
    let mut shell = Command::new(SHELL);
    shell.args(["-c", "command -v \"$1\"", SHELL, program]).current_dir(folder);
    // Other variables of a project's config could have another program run.
    shell.envs(launch.variable("PATH").map(|path| ("PATH", path)));
    let found = output_within(&mut shell, LIMIT).ok()?;
    (!found.status.success()).then(|| is_missing(program).into())
}

fn search_path(launch: &Launch) -> OsString {
    launch.variable("PATH").unwrap_or_default()
}

/// The words of a command that are no programs of the machine, and would have to be if it starts them. Those below its working
/// directory are not among them: agents write these.
pub(super) fn unknown_programs(command: &str, launch: &Launch) -> Vec<String> {
    // A sandbox has programs of its own.
    if !launch.wrapper.is_empty() {
        return Vec::new();
    }
    let words = command.split(|char: char| char.is_whitespace() || "|&;()<>{}$\"'`=".contains(char));
    words.filter(|word| !word.is_empty() && is_unknown(word, launch)).map(str::to_owned).collect()
}

fn is_unknown(word: &str, launch: &Launch) -> bool {
    if word.contains('/') {
        word.starts_with('/') && !Path::new(word).exists()
    } else {
        find_program(word, &search_path(launch)).is_none()
    }
}

/// Which of the `unknown` words a command could not start that has ended with a code that says so, and
/// has printed these errors; `None` if it is none of them, or can be started by now.
pub(super) fn not_started<'a>(unknown: &'a [String], errors: &str, launch: &Launch) -> Option<&'a str> {
    let of_starter = |line: &&str| {
        let speaker = line.split(':').next().unwrap_or_default();
        STARTERS.contains(&speaker)
    };
    let is_named = |line: &str, word: &str| {
        line.split([' ', ':', '\'', '"', '‘', '’', '`']).skip(1).any(|named| named == word)
    };
    let lines = errors.lines().rev().filter(|line| !line.trim().is_empty()).take(LAST_LINES);
    let named = lines.filter(of_starter).find_map(|line| unknown.iter().find(|word| is_named(line, word)))?;
    is_unknown(named, launch).then_some(named)
}

/// What is missing, in words that follow a colon.
pub(super) fn is_missing(program: &str) -> String {
    let how = if program.contains('/') { "does not exist" } else { "is not on PATH" };
    format!("'{program}' {how}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch() -> (tempfile::TempDir, Launch) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("web")).unwrap();
        fs::write(folder.path().join("web/run"), "#!/bin/sh\n").unwrap();
        fs::write(folder.path().join("check"), "true\n").unwrap();
        let launch = Launch { cwd: folder.path().to_owned(), ..Launch::default() };
        (folder, launch)
    }

    fn found(command: &str, launch: &Launch) -> Option<String> {
        obstacle(command, launch).map(|found| found.what)
    }

    #[test]
    fn what_is_missing_is_named() {
        let (_folder, launch) = launch();
        for (command, words) in [
            ("no-such-program --all", "'no-such-program' is not on PATH"),
            ("A=1 exec no-such-program", "'no-such-program' is not on PATH"),
            ("cd web && no-such-program", "'no-such-program' is not on PATH"),
            ("true && no-such-program", "'no-such-program' is not on PATH"),
            ("cd nowhere && make", "the folder 'nowhere' does not exist"),
            ("./nothing", "'./nothing' does not exist"),
            ("./check", "'./check' is not executable"),
            ("cd web && ./run", "'./run' is not executable"),
            ("sh nothing.sh", "'nothing.sh' does not exist"),
            ("'no such program'", "'no such program' is not on PATH"),
        ] {
            assert_eq!(found(command, &launch).as_deref(), Some(words), "{command}");
        }
        let gone = Launch { cwd: launch.cwd.join("gone"), ..launch.clone() };
        assert!(found("true", &gone).unwrap().ends_with("gone' does not exist"));
        // Agents may be meant to write it.
        assert!(obstacle("./nothing", &launch).unwrap().remedy.starts_with("begin with one that fails"));
        assert_eq!(obstacle("no-such-program", &launch).unwrap().remedy, "install what is missing");
    }

    #[test]
    fn the_interpreter_of_a_script_has_to_exist() {
        let (folder, launch) = launch();
        for (line, words) in [
            ("#!/no/such -e", Some("'#!/no/such -e', and '/no/such' does not exist")),
            ("#! /bin/sh\r", Some("'#! /bin/sh\\r', and '/bin/sh\\r' does not exist")),
            ("#!/usr/bin/env no-such-program", Some("'no-such-program' is not on PATH")),
            ("#!/usr/bin/env -S no-such-program -e", None),
            ("#!/usr/bin/env sh", None),
            ("#!/bin/sh", None),
            ("#!", None),
            ("true", None),
        ] {
            let script = folder.path().join("script");
            fs::write(&script, format!("{line}\ntrue\n")).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
            let found = found("./script", &launch);
            match words {
                Some(words) => assert!(found.unwrap().ends_with(words), "{line}"),
                None => assert_eq!(found, None, "{line}"),
            }
            // The shell reads its first line as a comment.
            assert!(obstacle("sh script", &launch).is_none());
        }
    }

    #[test]
    fn only_a_program_that_the_command_names_and_the_machine_never_had_is_missing() {
        let (_folder, launch) = launch();
        let command = "make && (no-such-program --fast; ./run) && timeout 9 other-program";
        let unknown = unknown_programs(command, &launch);
        let missing = |errors: &str| not_started(&unknown, errors, &launch);
        for errors in [
            "/bin/sh: 1: no-such-program: not found",
            "/bin/sh: line 1: no-such-program: command not found\n\nreal 0m0.00s\n",
        ] {
            assert_eq!(missing(errors), Some("no-such-program"), "{errors}");
        }
        let by_timeout = "timeout: failed to run command ‘other-program’: No such file or directory";
        assert_eq!(missing(by_timeout), Some("other-program"));
        for errors in [
            "sh: 1: no-such-program: not found",
            "./run: 3: no-such-program: not found",
            "/bin/sh: 1: ./run: not found",
            "/bin/sh: 1: a-third-program: not found",
            "bundler: command not found: no-such-program",
            "",
        ] {
            assert_eq!(missing(errors), None, "{errors}");
        }
        // It was there when the loop began.
        assert_eq!(not_started(&[], "/bin/sh: 1: no-such-program: not found", &launch), None);
        assert_eq!(not_started(&["sh".to_owned()], "/bin/sh: 1: sh: not found", &launch), None);
        let boxed = Launch { wrapper: vec!["box".into()], ..launch };
        assert!(unknown_programs(command, &boxed).is_empty());
    }

    #[test]
    fn what_may_be_there_in_time_is_not_complained_about() {
        let (_folder, launch) = launch();
        for command in [
            "true",
            "test -f x",
            "[ -e x ]",
            "exit 3",
            ". ./nothing",
            "sh check",
            "sh -c 'no-such-program'",
            "cd web && make && no-such-program",
            "true || no-such-program",
            "no-such-program || true",
            "no-such-program; true",
            "no-such-program | true",
            "! no-such-program",
            "./check || sh check",
            "cd nowhere; true",
            "cd - && true",
            "VERSION=$(git describe --always) true",
            "A=`echo x y` true",
            "A=${B:-x y} true",
            "A=$((1 + 1)) true",
            "PATH=./bin:/usr/bin no-such-program",
            "env PATH=bin:/bin no-such-program",
            "check() { true; }; check",
            "(cd nowhere && make)",
            "$TOOL --all",
            "cd \"$HOME\" && no-such-program",
            "if true; then no-such-program; fi",
            "echo 'a; no-such-program'",
            "",
            "   ",
            "'unclosed",
            "cd a b && no-such-program",
        ] {
            assert_eq!(found(command, &launch), None, "{command}");
        }
        let boxed = Launch { wrapper: vec!["box".into()], ..launch };
        assert!(obstacle("no-such-program", &boxed).is_none());
    }
}
