//! Whether a command for `sh` can be started at all, as far as that is known without running it.
//!
//! Only the first command is checked, and the folders in which it is started: a later one may exist because an earlier one has
//! made it. Where the shell would have to compute a word, or where the whole may succeed without its first part, nothing is
//! claimed: a command that runs is never refused.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::process::launch::{Launch, SHELL};
use crate::process::short::output_within;

/// How long the shell may take to look a program up.
const LIMIT: Duration = Duration::from_secs(10);
/// Words before a command that run it.
const PREFIXES: [&str; 4] = ["exec", "command", "time", "env"];
/// Characters with which the shell computes words, or with which a command may succeed although a part of it cannot run.
const UNCLEAR: [char; 10] = ['$', '`', '(', ')', '{', '}', ';', '|', '!', '\n'];
/// Shells, whose first argument is a script.
const SHELLS: [&str; 3] = ["sh", "bash", "dash"];
/// The beginnings of compound commands.
const COMPOUND: [&str; 6] = ["if", "for", "while", "until", "case", "{"];

/// Why this command cannot be started where `launch` is, in words that follow a colon; `None`: nothing is known against it.
pub(crate) fn obstacle(command: &str, launch: &Launch) -> Option<String> {
    // A sandbox has programs and folders of its own.
    if !launch.wrapper.is_empty() {
        return None;
    }
    let mut folder = launch.cwd.clone();
    for words in simple_commands(command)? {
        let words = without_prefixes(words)?;
        let (program, arguments) = words.split_first()?;
        if program != "cd" {
            return missing_program(program, arguments, folder, launch);
        }
        let [into] = arguments else { return None };
        if is_computed(into) || into == "-" {
            return None;
        }
        folder.push(into);
        if !folder.is_dir() {
            return Some(format!("the folder '{into}' does not exist"));
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

fn missing_program(program: &str, arguments: &[String], folder: PathBuf, launch: &Launch) -> Option<String> {
    if program.starts_with('-') || COMPOUND.contains(&program) || is_computed(program) {
        return None;
    }
    if !folder.is_dir() {
        return Some(format!("the folder '{}' does not exist", folder.display()));
    }
    let is_script =
        |word: &&String| SHELLS.contains(&program) && !word.starts_with('-') && !is_computed(word);
    if let Some(script) = arguments.first().filter(is_script) {
        return (!folder.join(script).exists()).then(|| format!("'{script}' does not exist"));
    }
    if program.contains('/') {
        let Ok(metadata) = fs::metadata(folder.join(program)) else {
            return Some(format!("'{program}' does not exist"));
        };
        let is_executable = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        return (!is_executable).then(|| format!("'{program}' is not executable"));
    }
    // The shell knows its own commands, and where programs are.
    let mut shell = Command::new(SHELL);
    shell.args(["-c", "command -v \"$1\"", SHELL, program]).current_dir(folder);
    // Other variables of a project's config could have another program run.
    shell.envs(launch.variable("PATH").map(|path| ("PATH", path)));
    let found = output_within(&mut shell, LIMIT).ok()?;
    (!found.status.success()).then(|| format!("'{program}' is not on PATH"))
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

    #[test]
    fn what_is_missing_is_named() {
        let (_folder, launch) = launch();
        for (command, words) in [
            ("no-such-program --all", "'no-such-program' is not on PATH"),
            ("A=1 exec no-such-program", "'no-such-program' is not on PATH"),
            ("cd web && no-such-program", "'no-such-program' is not on PATH"),
            ("cd nowhere && make", "the folder 'nowhere' does not exist"),
            ("./nothing", "'./nothing' does not exist"),
            ("./check", "'./check' is not executable"),
            ("cd web && ./run", "'./run' is not executable"),
            ("sh nothing.sh", "'nothing.sh' does not exist"),
            ("'no such program'", "'no such program' is not on PATH"),
        ] {
            assert_eq!(obstacle(command, &launch).as_deref(), Some(words), "{command}");
        }
        let gone = Launch { cwd: launch.cwd.join("gone"), ..launch };
        assert!(obstacle("true", &gone).unwrap().ends_with("gone' does not exist"));
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
            "cd web && true && no-such-program",
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
            assert_eq!(obstacle(command, &launch), None, "{command}");
        }
        let boxed = Launch { wrapper: vec!["box".into()], ..launch };
        assert_eq!(obstacle("no-such-program", &boxed), None);
    }
}
