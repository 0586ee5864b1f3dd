//! The scripts and programs that a command line runs, as far as its text says so. Pure.

use std::collections::BTreeSet;

use crate::process::programs::interpreters_in;

/// Programs, and a word of make, that run the script which is their first argument, whatever its name.
const SHELLS: [&str; 8] = [".", "bash", "dash", "include", "ksh", "sh", "source", "zsh"];
/// Programs that run a program of the project. It counts only if its name says that it checks something: often it is the work
/// itself.
const INTERPRETERS: [&str; 9] = ["bun", "deno", "node", "perl", "php", "python", "ruby", "ts-node", "tsx"];
/// What such names have in them.
const CHECKING: [&str; 6] = ["check", "lint", "spec", "test", "valid", "verif"];
/// Words before a command that run it.
const PREFIXES: [&str; 16] = [
    "!", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup", "sudo", "then", "time",
    "timeout", "until", "while",
];
/// Those of them that are programs.
const RUNNING: [&str; 5] = ["env", "nice", "nohup", "sudo", "timeout"];
/// Where the scripts of programs are that run the project's own.
const RUNNERS: [(&str, &[&str]); 6] = [
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("npm", &[PACKAGE]),
    ("pnpm", &[PACKAGE]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("yarn", &[PACKAGE]),
];
/// Commands of the shell itself that are programs as well.
const BUILT_IN: [&str; 7] = ["echo", "false", "kill", "printf", "pwd", "test", "true"];
/// A manifest whose commands another program may read and run.
const PACKAGE: &str = "package.json";
/// The most files that are read.
const MOST: usize = 32;

/// What a command line runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// Scripts of the project, as paths from its top.
    pub(super) scripts: BTreeSet<String>,
    /// Programs, as names or absolute paths. Not each of them need exist.
    pub(super) programs: BTreeSet<String>,
}

/// What `command` runs in the project's top, and what is run by the scripts that it runs. `read` returns the text of a file of the
/// project.
pub(super) fn run_by(command: &str, mut read: impl FnMut(&str) -> Option<String>) -> Named {
    let (mut found, mut texts) = (Named::default(), vec![command.to_owned()]);
    let mut seen = BTreeSet::new();
    while let Some(text) = texts.pop() {
        let first = text.strip_prefix("#!").and_then(|text| interpreters_in(text.lines().next()?));
        let interpreters = first.into_iter().flat_map(|(one, other)| [Some(one), other]).flatten();
        found.programs.extend(interpreters.filter(|name| is_program(name)).map(str::to_owned));
        // What reads a manifest may run what it says, in ways that only a shell knows.
        let package = text.contains(PACKAGE).then(|| Run { path: PACKAGE.to_owned(), is_script: false });
        for Run { path, is_script } in runs(&text, &mut found.programs).into_iter().chain(package) {
            if seen.len() == MOST || !seen.insert(path.clone()) {
                continue;
            }
            let Some(text) = read(&path) else { continue };
            texts.push(if path.ends_with(PACKAGE) { scripts_of_package(&text) } else { text });
            if is_script {
                found.scripts.insert(path);
            }
        }
    }
    found
}

/// Whether a word can be the name of a program outside of the project.
fn is_program(word: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._+-/".contains(char);
    let is_outside = word.starts_with('/') || !word.contains('/');
    let is_word = word.starts_with('/') || word.starts_with(|char: char| char.is_ascii_alphanumeric());
    is_word && is_outside && word.chars().all(is_plain) && !BUILT_IN.contains(&word)
}

/// The commands of a manifest for npm, one on each line.
fn scripts_of_package(text: &str) -> String {
    let package: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = package.get("scripts").and_then(serde_json::Value::as_object);
    scripts
        .into_iter()
        .flat_map(|scripts| scripts.values())
        .filter_map(|script| script.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

/// A file that a command line reads.
struct Run {
    path: String,
    /// It is run, and not only a list of what can be.
    is_script: bool,
}

/// The files that a text runs; the words at the places of programs are added to the `programs`.
fn runs(text: &str, programs: &mut BTreeSet<String>) -> Vec<Run> {
    let (mut folder, mut found) = (String::new(), Vec::new());
    let mut waiting: Vec<String> = simple_commands(text).into_iter().rev().collect();
    while let Some(command) = waiting.pop() {
        let words = shlex::split(&command).unwrap_or_default();
        let Some((program, arguments)) = program_of(&words) else { continue };
        let before = words[..words.len() - arguments.len() - 1].iter().map(String::as_str);
        let is_prefix = |word: &&str| RUNNING.contains(word);
        programs.extend(
            before.filter(is_prefix).chain([program]).filter(|word| is_program(word)).map(str::to_owned),
        );
        let name = program.rsplit('/').next().unwrap_or(program);
        let mut add = |path: &str, is_script| {
            found.extend(joined(&folder, path).map(|path| Run { path, is_script }));
        };
        let mut operands = arguments.iter().filter(|word| !word.starts_with('-'));
        match name {
            "cd" => folder = operands.next().and_then(|into| joined(&folder, into)).unwrap_or_default(),
            _ if SHELLS.contains(&name) => match arguments.iter().position(|word| word == "-c") {
                Some(at) => {
                    waiting.extend(arguments.get(at + 1).into_iter().flat_map(|text| simple_commands(text)));
                }
                None => operands.next().into_iter().for_each(|path| add(path, true)),
            },
            _ if INTERPRETERS
                .contains(&name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.')) =>
            {
                operands.filter(|path| is_checking(path)).take(1).for_each(|path| add(path, true));
            }
            _ if program.contains('/') => add(program, true),
            _ => {
                let files =
                    RUNNERS.iter().filter(|(runner, _)| *runner == name).flat_map(|(_, files)| *files);
                files.for_each(|file| add(file, false));
            }
        }
    }
    found
}

/// The program of a simple command and its arguments, behind words that only run it.
fn program_of(words: &[String]) -> Option<(&str, &[String])> {
    let is_assignment = |word: &str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| {
            !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        })
    };
    let is_number = |word: &str| word.starts_with(|char: char| char.is_ascii_digit());
    let at = words.iter().position(|word| {
        let word = word.trim_start_matches(['@', '+', '-']);
        !(word.is_empty() || is_assignment(word) || PREFIXES.contains(&word) || is_number(word))
    })?;
    // In a makefile, these say how a command is shown and whether it may fail.
    Some((words[at].trim_start_matches(['@', '+', '-']), &words[at + 1..]))
}

fn is_checking(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    name.contains('.') && CHECKING.iter().any(|part| name.contains(part))
}

/// A path in a folder, both from the project's top; `None` if it leads out, or only a shell knows it.
fn joined(folder: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~']) || path.contains(['$', '*', '`']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The simple commands of a text, as far as they can be told apart without being a shell.
fn simple_commands(text: &str) -> Vec<String> {
    let (mut commands, mut quote) = (vec![String::new()], None);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let last = commands.last_mut().map_or("", |last| last.as_str());
        match (quote, char) {
            (None, '\\') if chars.peek() == Some(&'\n') => drop(chars.next()),
            (None, '#') if last.is_empty() || last.ends_with([' ', '\t']) => {
                while chars.peek().is_some_and(|char| *char != '\n') {
                    chars.next();
                }
            }
            (None, ';' | '&' | '|' | '(' | ')' | '{' | '}' | '\n' | '`') => commands.push(String::new()),
            _ => {
                quote = match (quote, char) {
                    (None, '"' | '\'') => Some(char),
                    (Some(open), close) if open == close => None,
                    (quote, _) => quote,
                };
                commands.last_mut().into_iter().for_each(|last| last.push(char));
            }
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: &[&str]) {
        let files = [
            (
                "check.sh",
                "#!/bin/sh\n# ./never\nset -e\n. ./lib/common.sh\npython3 app.py | diff - expected\n",
            ),
            ("lib/common.sh", "retry() { \"$@\"; }\n"),
            ("scripts/test", "cd \"$(dirname \"$0\")/..\"; exec python -m pytest\n"),
            ("app.py", ""),
            ("tools/run_tests.py", ""),
            ("Makefile", "-include rules.mk\ntest: build\n\t@./check.sh --all\n"),
            ("rules.mk", "build:\n"),
            ("package.json", "{\"scripts\": {\"test\": \"sh ci.sh && node index.js\"}}"),
            ("ci.sh", "true\n"),
            ("index.js", ""),
            ("web/check.sh", ""),
        ];
        let read =
            |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        assert_eq!(run_by(command, read).scripts.into_iter().collect::<Vec<_>>(), expected, "{command}");
    }

    #[test]
    fn programs_are_found_in_scripts_as_well() {
        let script = "PATH=$PWD/bin:$PATH\nset -e; exec go test ./...\n\"$RUNNER\" x\n";
        let found =
            run_by("make -s check && ./check.sh", |path| (path == "check.sh").then(|| script.to_owned()));
        assert_eq!(found.programs.into_iter().collect::<Vec<_>>(), ["go", "make", "set"]);
    }

    #[test]
    fn scripts_are_found_by_what_runs_them() {
        let all = ["check.sh", "lib/common.sh"];
        check("./check.sh", &all);
        check("A=1 timeout 60 bash -e check.sh && echo ok", &all);
        check("bash scripts/test", &["scripts/test"]);
        check("cd web && ./check.sh | tee log", &["web/check.sh"]);
        check("sh -c './check.sh'", &all);
        check("if ! ./check.sh; then exit 1; fi", &all);
        check("make test", &["check.sh", "lib/common.sh", "rules.mk"]);
        check("npm test", &["ci.sh"]);
        check("python3.11 tools/run_tests.py -v", &["tools/run_tests.py"]);
    }

    #[test]
    fn programs_are_found_where_commands_begin() {
        let files = [
            (
                "check.sh",
                "#!/usr/bin/env bash\nset -e\nexec sh -c \"$(sed -n 's/.*\"a\": \"\\([^\"]*\\)\"/\\1/p' package.json)\"\n",
            ),
            ("Makefile", "check:\n\t@./check.sh\n"),
            (PACKAGE, "{\"scripts\": {\"test\": \"node tests/main.js\"}}"),
        ];
        let read =
            |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        let programs = |command: &str| run_by(command, read).programs.into_iter().collect::<Vec<_>>();
        let all = programs("make -s check");
        assert!(
            ["/usr/bin/env", "bash", "make", "node"].iter().all(|name| all.contains(&(*name).to_owned())),
            "{all:?}"
        );
        assert_eq!(programs("A=1 timeout 60 pytest -q | tee log"), ["pytest", "tee", "timeout"]);
        assert_eq!(programs("/opt/x/python3 a.py && ./run && echo ok && $RUN x"), ["/opt/x/python3"]);
    }

    #[test]
    fn the_work_itself_is_no_script() {
        for command in [
            "python3 app.py | diff - expected",
            "cat check.sh",
            "./missing",
            "/check.sh",
            "node index.js",
            "",
            "'",
        ] {
            check(command, &[]);
        }
    }
}
