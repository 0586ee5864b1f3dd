//! The seam to agents: how a prompt reaches a coding agent and what comes back.

use std::path::Path;
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

    /// Goes by what was changed, from the next attempt on; answers whether that is something else than before.
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
    /// By whom, and how.
    pub how: &'a How,
    /// When the loop's own time is over: the agent is ended then.
    pub deadline: Option<Instant>,
}

/// By whom a piece of work is to be done, and how. What is not said is as the loop was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct How {
    /// The agent's command line.
    pub command: Option<CommandLine>,
    /// The model, by a name that the agent knows.
    pub model: Option<String>,
    /// It may look at everything and run commands, and edit no file.
    pub read_only: bool,
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

    /// What to call it: the file name of its program.
    #[must_use]
    pub fn name(&self) -> &str {
        Path::new(&self.program).file_name().and_then(|name| name.to_str()).unwrap_or(&self.program)
    }
}
