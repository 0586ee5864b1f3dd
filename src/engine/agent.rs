//! The seam to agents: how a prompt reaches a coding agent and what comes back.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::context::Context;
use super::outcome::End;
use super::report::Report;
use super::stop::Change;

/// How a prompt reaches a coding agent and what comes back.
pub trait Agent {
    /// Runs one attempt to its end. Whatever the agent started is gone when this returns.
    ///
    /// # Errors
    /// Only for what ends the loop: [`Outcome::AgentMissing`](super::outcome::Outcome::AgentMissing) when the agent cannot be
    /// started, else what the context answered. An agent that fails is a [`Report`].
    fn run(&mut self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, End>;

    /// The agents that may do such work, the one that is wanted most first; none: the work has an agent of its own.
    fn choices(&self, _how: &How) -> &[Choice] {
        &[]
    }

    /// From the next attempt on, this one of the choices works.
    fn turn_to(&mut self, _choice: usize) {}

    /// Takes a change of the loop, from the next attempt on; returns whether it makes a difference.
    fn change(&mut self, _change: &Change) -> bool {
        false
    }
}

/// One try at an iteration.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The number of the iteration, from 1.
    pub iteration: u64,
    /// The prompt, ready to be sent.
    pub prompt: &'a str,
    /// Which agent, and how.
    pub how: &'a How,
    /// The end of the loop's own time, at which the agent is ended.
    pub deadline: Option<Instant>,
}

/// One of the agents that may work in a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its name, for people: `claude`, `claude:opus`.
    pub name: String,
    /// What tells its login from others, without any key: those who share it share its usage limits.
    pub login: String,
}

/// Which agent does a piece of work, and how. A `None` means: as the loop was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct How {
    /// The agent's command line.
    pub command: Option<CommandLine>,
    /// The model, by the agent's name for it.
    pub model: Option<String>,
    /// The folder where it works.
    pub folder: Option<PathBuf>,
    /// How it looks at the work of another agent, which the settings may name an agent of its own for: it may read everything and run
    /// commands, but edit no file, as far as it can be started so. `None`: it does the work.
    pub inspects: Option<Inspects>,
}

/// How an agent looks at the work of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inspects {
    /// It finds out whether it is done, and by honest means.
    Verifies,
    /// It finds out whether it is good.
    Reviews,
}

/// An agent as a command line that reads a prompt on stdin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    program: String,
    args: Vec<String>,
}

impl CommandLine {
    /// The command line of these words; `None` without a program.
    #[must_use]
    pub fn new(mut words: Vec<String>) -> Option<Self> {
        let has_program = words.first().is_some_and(|program| !program.trim().is_empty());
        has_program.then(|| Self { program: words.remove(0), args: words })
    }

    /// The program: a name to be looked up on `PATH`, or a path.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Its arguments.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// Its name: the file name of its program.
    #[must_use]
    pub fn name(&self) -> &str {
        Path::new(&self.program).file_name().and_then(|name| name.to_str()).unwrap_or(&self.program)
    }
}
