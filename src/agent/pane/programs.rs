//! Finds the interactive program of a command line ([`presets`] and `known` have the data about its screens).

use super::known::{SHELLS, UNKNOWN};
use crate::presets;
pub use crate::presets::screens::Program;

impl Program {
    /// The program of a command line, also behind `env`, a script, `docker run` or `bash -c`: the last word that names an
    /// agent by its file name or by an option that only it has, else a shell without a script. `None`: no known one.
    #[must_use]
    pub fn of(command: &[String]) -> Option<&'static Self> {
        let words = words(command);
        words.iter().rev().find_map(|word| agent(word)).or_else(|| shell(&words))
    }

    /// An unknown program.
    #[must_use]
    pub fn unknown() -> &'static Self {
        &UNKNOWN
    }

    /// The names of the agents, for messages.
    pub fn known() -> impl Iterator<Item = &'static str> {
        presets::programs().map(|program| program.name)
    }

    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = &'static Self> {
        presets::programs().chain(&SHELLS).chain([&UNKNOWN])
    }

    /// The program with this name in our data.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        presets::programs().chain(&SHELLS).find(|program| program.name == name)
    }
}

/// The words of a command line; a script after `-c` is replaced by its words. The word after an option for a model is left out.
fn words(command: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut before = "";
    for word in command {
        let is_option = before.starts_with('-') && !before.starts_with("--") && before.ends_with('c');
        let is_script = is_option
            && program_word(&words).is_some_and(|(_, word)| SHELLS[0].names.contains(&file_name(word)));
        match shlex::split(word).filter(|_| is_script && word.contains(char::is_whitespace)) {
            // The shell around a script is not the program.
            Some(script) => words = script,
            None if matches!(before, "-m" | "--model") => {}
            None => words.push(word.clone()),
        }
        before = word;
    }
    words
}

/// The part of a word that names a program, as in `@scope/name@1.2`, `image/name:tag`, `/path/to/name.exe`.
fn file_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let end = name.find(['@', ':']).unwrap_or(name.len());
    name[..end].trim_end_matches(".exe").trim_end_matches(".cmd")
}

/// The last word that is not an option, and its place.
fn program_word(words: &[String]) -> Option<(usize, &String)> {
    words.iter().enumerate().rfind(|(_, word)| !word.starts_with(['-', '+']))
}

fn agent(word: &str) -> Option<&'static Program> {
    presets::programs()
        .find(|program| program.names.contains(&file_name(word)) || program.options.contains(&word))
}

fn shell(words: &[String]) -> Option<&'static Program> {
    let (last, word) = program_word(words)?;
    let runs_something = words[last + 1..].iter().any(|word| !word.starts_with("--") && word.ends_with('c'));
    let name = file_name(word);
    // `python3.12` is python.
    let plain = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let is_named = |program: &&Program| program.names.contains(&name) || program.names.contains(&plain);
    SHELLS.iter().find(is_named).filter(|_| !runs_something)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Option<&'static str> {
        let command: Vec<String> = shlex::split(command).unwrap();
        Program::of(&command).map(|program| program.name)
    }

    #[test]
    fn agents_are_found_behind_what_starts_them() {
        for (command, name) in [
            ("claude", "claude"),
            ("/usr/local/bin/claude --model opus", "claude"),
            ("env -i A=b claude", "claude"),
            ("./sandbox.sh claude", "claude"),
            ("./sandbox.sh --dangerously-skip-permissions", "claude"),
            ("docker run --rm -it -v .:/work image claude", "claude"),
            ("docker run -it registry.example/claude:latest", "claude"),
            ("npx -y @anthropic-ai/claude-code@latest", "claude"),
            ("bash -lc 'cd sub && exec claude --dangerously-skip-permissions'", "claude"),
            ("sh -c codex", "codex"),
            ("codex -c 'model = \"claude\"'", "codex"),
            ("npx @openai/codex", "codex"),
            ("opencode -m openai/codex", "opencode"),
            ("timeout 60 gemini --yolo", "gemini"),
            ("cline", "cline"),
            ("amp", "amp"),
            ("aider --model openai/amp", "aider"),
            ("claude --append-system-prompt 'you are in bash'", "claude"),
        ] {
            assert_eq!(of(command), Some(name), "{command}");
        }
    }

    #[test]
    fn a_shell_counts_where_it_is_told_nothing() {
        for (command, name) in [
            ("bash", "a shell"),
            ("bash --norc -i", "a shell"),
            ("docker run -it debian sh", "a shell"),
            ("python3.12", "an interpreter"),
            ("python3 -q", "an interpreter"),
        ] {
            assert_eq!(of(command), Some(name), "{command}");
        }
        for command in
            ["bash run.sh", "python3 tool.py --fast", "sh -c 'vim x'", "python3 -c pass", "vim", ""]
        {
            assert_eq!(of(command), None, "{command}");
        }
    }
}
