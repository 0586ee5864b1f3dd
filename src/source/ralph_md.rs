//! The RALPH.md loop: agent, commands and prompt in one file, which is read again for every iteration.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use super::with_given;
use crate::engine::agent::{CommandLine, How};
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::source::{Source, Work};
use crate::engine::stop::{Change, Urgency};
use crate::engine::tally::Given;
use crate::files::theirs;
use crate::process::OUT_OF_SIGHT;
use crate::process::capture::{Captured, Ended};
use crate::process::launch::Launch;
use crate::process::supervised::StartError;
use crate::prompt::front_matter::{Document, NamedCommand};
use crate::prompt::placeholders::{Namespace, only_arg, resolve, without_comments};
use crate::side_command::{self, Bounds};
use crate::text::duration;

/// How many bytes of each command's output are in the prompt.
const ROOM: usize = 1024 * 1024;
/// How long an unusable file is read again before the loop ends: editors save by writing a new file and renaming it.
const PATIENCE: Duration = Duration::from_secs(2);
/// The interval of these reads.
const LOOK: Duration = Duration::from_millis(100);

/// Prompts from a RALPH.md.
#[derive(Debug)]
pub(crate) struct RalphMd {
    /// The file.
    pub file: theirs::PromptText,
    /// The value of `{{ ralph.name }}`.
    pub name: String,
    /// The limit of iterations.
    pub max_iterations: Option<u64>,
    /// The user's arguments.
    pub args: BTreeMap<String, String>,
    /// Names that arguments cannot have.
    pub reserved: Vec<String>,
    /// The working directory, environment and run mark of commands.
    pub launch: Launch,
}

impl RalphMd {
    /// The file as it is on disk now, and its agent.
    ///
    /// # Errors
    /// One line: what is wrong, in which file and line, and what to do.
    pub(crate) fn read(
        file: &theirs::PromptText,
        reserved: &[String],
    ) -> Result<(Document, CommandLine), String> {
        let path = file.path();
        let shown = path.display();
        let bytes = file.read(theirs::MAX_TEXT).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let meant = theirs::meant(path);
                format!("{shown} not found; {meant}check the path, or write a starter with 'ralph init'")
            }
            ErrorKind::IsADirectory | ErrorKind::InvalidInput => {
                format!("{shown} is not a file; put a RALPH.md there")
            }
            _ => format!("cannot read {shown}: {error}"),
        })?;
        let text =
            String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8 text; save it as UTF-8"))?;
        let document = Document::parse(&text, reserved).map_err(|problem| format!("{shown} {problem}"))?;
        let agent = CommandLine::new(document.agent.clone())
            .ok_or_else(|| format!("{shown}: 'agent' names no program"))?;
        Ok((document, agent))
    }

    /// Reads the file, and retries for a while if it is unusable.
    fn read_patiently(&self, context: &mut Context<'_>) -> Result<(Document, CommandLine), End> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            match Self::read(&self.file, &self.reserved) {
                Ok(read) => return Ok(read),
                Err(message) if Instant::now() >= give_up || context.urgency() != Urgency::None => {
                    return Err(End::because(Outcome::PromptLost, message));
                }
                Err(_) => {
                    context.wait(Some(Instant::now() + LOOK))?;
                }
            }
        }
    }

    /// Runs one command and returns its output for the prompt.
    fn output(
        &self,
        command: &NamedCommand,
        loop_knows: &LoopKnows,
        context: &mut Context<'_>,
    ) -> Result<String, End> {
        // A missing argument is left out, and is not an empty word.
        let is_given = |word: &&String| only_arg(word).is_none_or(|name| self.args.contains_key(name));
        let words = command.run.iter().filter(is_given);
        let words = words.map(|word| resolve(word, &|space, name| self.value(space, name, loop_knows)));
        let launch = self.launch_of(words.collect());
        let bounds = Bounds { limit: command.timeout, room: ROOM, cut_at: Urgency::AfterAttempt };
        let captured = side_command::run(&launch, bounds, context)?;
        if let Some(notice) = notice(command, &captured) {
            context.notice(&notice)?;
        }
        Ok(text(command, captured))
    }

    /// `./` is relative to the folder of the file; all commands start in the project root.
    fn launch_of(&self, mut words: Vec<String>) -> Launch {
        let program = if words.is_empty() { String::new() } else { words.remove(0) };
        let mut launch = self.launch.clone();
        if program.starts_with("./")
            && let Some(folder) = self.file.path().parent()
        {
            folder.clone_into(&mut launch.cwd);
        }
        launch.program = program.into();
        launch.args = words.into_iter().map(Into::into).collect();
        launch
    }

    /// The value of a placeholder that is not a command.
    fn value<'a>(&'a self, namespace: Namespace, name: &str, loop_knows: &'a LoopKnows) -> Option<&'a str> {
        match (namespace, name) {
            (Namespace::Args, name) => self.args.get(name).map(String::as_str),
            (Namespace::Ralph, "name") => Some(&self.name),
            (Namespace::Ralph, "iteration") => Some(&loop_knows.iteration),
            (Namespace::Ralph, "max_iterations") => Some(&loop_knows.max_iterations),
            _ => None,
        }
    }
}

/// The numbers among the loop's placeholders.
struct LoopKnows {
    iteration: String,
    max_iterations: String,
}

impl Source for RalphMd {
    fn change(&mut self, change: &Change) -> bool {
        self.max_iterations = change.max_iterations.or(self.max_iterations);
        false
    }

    fn next(&mut self, iteration: u64, given: &Given, context: &mut Context<'_>) -> Result<Work, End> {
        let (document, agent) = self.read_patiently(context)?;
        let loop_knows = LoopKnows {
            iteration: iteration.to_string(),
            max_iterations: self
                .max_iterations
                .map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string()),
        };
        let mut outputs = BTreeMap::new();
        for command in &document.commands {
            if context.urgency() != Urgency::None {
                break;
            }
            outputs.insert(command.name.as_str(), self.output(command, &loop_knows, context)?);
        }
        let prompt = resolve(&without_comments(&document.body), &|namespace, name| match namespace {
            Namespace::Commands => outputs.get(name).map(String::as_str),
            _ => self.value(namespace, name, &loop_knows),
        });
        let prompt = with_given(prompt, given);
        Ok(Work { prompt, how: How { command: Some(agent), ..How::default() }, ..Work::default() })
    }

    fn file(&self) -> Option<&Path> {
        Some(self.file.path())
    }

    fn advice(&self, outcome: Outcome) -> Option<String> {
        let file = self.file.path().display();
        (outcome == Outcome::Replan)
            .then(|| format!("Agent requested re-planning. Change {file}, then run it again."))
    }
}

/// A notice about how a command ended. A failed command is only mentioned in the prompt.
fn notice(command: &NamedCommand, captured: &Result<Captured, StartError>) -> Option<String> {
    let name = &command.name;
    match captured {
        Err(error) => Some(format!("command '{name}': {error}; the prompt says so")),
        Ok(Captured { end: Ended::TimedOut, .. }) => {
            let limit = duration::format(command.timeout);
            Some(format!("command '{name}' did not end within {limit} and was ended; see its 'timeout'"))
        }
        Ok(_) => None,
    }
}

/// The output of a command: stdout, stderr, and how it ended if not by itself.
fn text(command: &NamedCommand, captured: Result<Captured, StartError>) -> String {
    let captured = match captured {
        Ok(captured) => captured,
        Err(error) => return format!("[ralph: command '{}' did not run: {error}]", command.name),
    };
    let ending = match captured.end {
        Ended::Exited(_) | Ended::Cancelled => None,
        Ended::Signaled(signal) => Some(format!("[ralph: ended by signal {signal}]")),
        Ended::OutOfSight => Some(format!("[ralph: ended, because {OUT_OF_SIGHT}]")),
        Ended::TimedOut => {
            Some(format!("[ralph: ended, because it took longer than {}]", duration::format(command.timeout)))
        }
    };
    let mut kept = captured.stdout;
    kept.append(&captured.stderr);
    let mut text = kept.text();
    if let Some(ending) = ending {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&ending);
    }
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    text
}
