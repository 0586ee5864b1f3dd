//! An agent as it is started: the one place that makes one of settings or a command line.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::engine::agent::CommandLine;
use crate::platform::calls::own_executable;
use crate::presets::{self, Preset, ReadOnly, Structured, Unable, Wishes};
use crate::text::line::shell_words;

/// The prefix of a program that speaks the Agent Client Protocol.
pub const ACP: &str = "acp:";

/// An agent as it is started, in any folder.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// Its name.
    pub name: String,
    /// The preset of its kind.
    pub preset: &'static Preset,
    /// Its program: a name to be looked up on `PATH`, or a path. `None`: our own executable, which holds the scripted agent.
    pub program: Option<String>,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The wanted model.
    pub model: Option<String>,
}

impl AgentSpec {
    /// An agent of this kind; `program`, with arguments of its own, and `args` replace those of the preset. `None`: it has no
    /// program.
    #[must_use]
    pub fn of_preset(
        preset: &'static Preset,
        cli: Option<Vec<String>>,
        args: Option<Vec<String>>,
    ) -> Option<Self> {
        let own = || (!preset.cli.is_empty()).then(|| preset.cli.to_owned()).into_iter().collect();
        let mut words = cli.unwrap_or_else(own);
        if words.is_empty() && preset.args.is_empty() {
            return None;
        }
        let program = (!words.is_empty()).then(|| words.remove(0));
        words.extend(args.unwrap_or_else(|| preset.args.iter().map(|&arg| arg.to_owned()).collect()));
        words.extend(preset.prompt.argument().map(str::to_owned));
        Some(Self::new(preset.name, preset, program, words))
    }

    /// The agent of a command line, with the arguments that make it read a prompt and print the format of its preset. A program
    /// without a preset, or with an option for another format, runs unchanged, and its output is not parsed.
    #[must_use]
    pub fn of_command(command: &CommandLine) -> Self {
        // A type of agent without a program of its own is that agent, whatever program has its name: `script`.
        let own = presets::preset(command.program()).filter(|preset| preset.cli.is_empty());
        let own = own.filter(|_| command.args().is_empty());
        if let Some(spec) = own.and_then(|preset| Self::of_preset(preset, None, None)) {
            return spec;
        }
        let (preset, args) = resolve(command);
        Self::new(command.name(), preset, Some(program(command).to_owned()), args)
    }

    fn new(name: &str, preset: &'static Preset, program: Option<String>, args: Vec<String>) -> Self {
        let args = args.into_iter().map(OsString::from).collect();
        Self { name: name.to_owned(), preset, program, args, model: None }
    }

    /// The agent with further arguments.
    #[must_use]
    pub fn with(self, args: &[String]) -> Self {
        Self { args: self.preset.with(self.args, args), ..self }
    }

    /// The agent with the options for these wishes.
    ///
    /// # Errors
    /// When it has no option for one.
    pub fn with_wishes(self, wishes: &Wishes) -> Result<Self, Unable> {
        let args = self.preset.with_wishes(self.args, wishes)?;
        Ok(Self { args, model: wishes.model.clone().or(self.model), ..self })
    }

    /// The agent with the arguments that make it read-only.
    #[must_use]
    pub fn with_read_only(self, how: &ReadOnly) -> Self {
        Self { args: self.preset.with_read_only(self.args, how), ..self }
    }

    /// Makes a relative path to the program absolute, from `root`.
    #[must_use]
    pub fn rooted_at(self, root: &Path) -> Self {
        let program = self.program.map(|program| {
            if program.contains('/') { root.join(program).to_string_lossy().into_owned() } else { program }
        });
        Self { program, ..self }
    }

    /// Its program, or our own executable.
    #[must_use]
    pub fn executable(&self) -> OsString {
        self.program.as_deref().map_or_else(|| own_executable().into(), OsString::from)
    }

    /// Its command line, for people and for a shell.
    #[must_use]
    pub fn command_line(&self) -> String {
        shell_words([&self.executable()].into_iter().chain(&self.args))
    }
}

/// The program of a command line: what follows `acp:` speaks the Agent Client Protocol.
#[must_use]
pub fn program(command: &CommandLine) -> &str {
    command.program().strip_prefix(ACP).unwrap_or(command.program())
}

/// The preset that reads a command line's output, and the arguments with which it is started.
fn resolve(command: &CommandLine) -> (&'static Preset, Vec<String>) {
    if command.program() != program(command) {
        let name = Path::new(program(command)).file_name().and_then(OsStr::to_str).unwrap_or_default();
        return (presets::speaking_acp(name), command.args().to_vec());
    }
    presets::for_command(command.name())
        .and_then(|preset| {
            let mut args = structured(command.args(), &preset.structured)?;
            args.extend(preset.prompt.missing_argument(command.args()).map(str::to_owned));
            Some((preset, args))
        })
        .unwrap_or_else(|| (presets::unknown(), command.args().to_vec()))
}

/// `args` with the options for the structured format, each once; `None` if they ask for another format.
fn structured(args: &[String], wanted: &Structured) -> Option<Vec<String>> {
    if !wanted.subcommand.is_empty() && !args.iter().any(|arg| arg == wanted.subcommand) {
        return None;
    }
    let mut args = args.to_vec();
    // Words after `--` are no options.
    let mut end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let mut add = |args: &mut Vec<String>, word: &str| {
        args.insert(end, word.to_owned());
        end += 1;
    };
    match chosen(&args, wanted) {
        Some(value) if value == wanted.value => {}
        Some(_) => return None,
        None => [wanted.option[0], wanted.value]
            .into_iter()
            .filter(|word| !word.is_empty())
            .for_each(|word| add(&mut args, word)),
    }
    for also in wanted.also {
        if !args.iter().any(|arg| arg == also) {
            add(&mut args, also);
        }
    }
    Some(args)
}

/// The format that `args` choose, empty for a bare switch; `None` if they choose none.
fn chosen<'a>(args: &'a [String], wanted: &Structured) -> Option<&'a str> {
    let options = args.iter().take_while(|arg| *arg != "--").enumerate();
    options
        .filter_map(|(at, arg)| {
            let (name, value) = arg.split_once('=').map_or((arg.as_str(), None), |(n, v)| (n, Some(v)));
            if !wanted.option.contains(&name) {
                return None;
            }
            let next = || if wanted.value.is_empty() { None } else { args.get(at + 1).map(String::as_str) };
            Some(value.or_else(next).unwrap_or_default())
        })
        .last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(line: &str) -> (&'static str, String) {
        let command = CommandLine::new(shlex::split(line).unwrap()).unwrap();
        let AgentSpec { preset, args, .. } = AgentSpec::of_command(&command);
        (preset.name, args.join(OsStr::new(" ")).into_string().unwrap())
    }

    #[test]
    fn known_programs_get_their_format_once() {
        for (line, preset, args) in [
            ("claude -p", "claude", "-p --output-format stream-json --verbose"),
            ("claude -p --verbose", "claude", "-p --verbose --output-format stream-json"),
            (
                "/opt/bin/claude --output-format=stream-json",
                "claude",
                "--output-format=stream-json --verbose",
            ),
            (
                "claude --output-format stream-json --verbose",
                "claude",
                "--output-format stream-json --verbose",
            ),
            ("claude -p -- x", "claude", "-p --output-format stream-json --verbose -- x"),
            ("codex exec -", "codex", "exec - --json"),
            ("codex exec --json -", "codex", "exec --json -"),
            ("gemini -o stream-json", "gemini", "-o stream-json"),
            ("opencode run", "opencode", "run --format json"),
            ("cline", "cline", "--json Follow the instructions given on standard input."),
            (
                "cline --json -m gpt --thinking low",
                "cline",
                "--json -m gpt --thinking low Follow the instructions given on standard input.",
            ),
            ("cline -m gpt 'Do it.'", "cline", "-m gpt Do it. --json"),
            ("cline --model=gpt -- -x", "cline", "--model=gpt --json -- -x"),
            ("amp -x", "amp", "-x --stream-json"),
        ] {
            assert_eq!(resolved(line), (preset, args.to_owned()), "{line}");
        }
    }

    #[test]
    fn everything_else_runs_as_it_is() {
        for line in [
            "aider --yes",
            "claude -p --output-format text",
            "claude --output-format",
            "gemini --output-format=json",
            "codex review",
            "env claude",
        ] {
            let args = line.split_once(' ').unwrap().1;
            assert_eq!(resolved(line), ("custom", args.to_owned()), "{line}");
        }
    }

    #[test]
    fn the_scripted_agent_is_ours_and_no_program_of_its_name() {
        let of = |line: &str| {
            let command = CommandLine::new(shlex::split(line).unwrap()).unwrap();
            let AgentSpec { preset, program, .. } = AgentSpec::of_command(&command);
            (preset.name, program)
        };
        assert_eq!(of("script"), ("script", None));
        assert_eq!(of("script -qc x"), ("custom", Some("script".to_owned())));
        assert_eq!(of("custom"), ("custom", Some("custom".to_owned())));
    }

    #[test]
    fn a_command_needs_a_program() {
        assert_eq!(CommandLine::new(Vec::new()), None);
        assert_eq!(CommandLine::new(vec!["  ".into(), "x".into()]), None);
        let command = CommandLine::new(vec!["/opt/my agent".into()]).unwrap();
        assert_eq!((command.program(), command.name()), ("/opt/my agent", "my agent"));
    }
}
