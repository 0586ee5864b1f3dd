//! Agents: how a prompt reaches a coding agent and what comes back.

mod balance;
pub(crate) mod beside;
pub mod command;
mod display;
pub mod message;
pub mod pipe;
pub mod preset;
mod readers;
mod session;
mod threads;
mod validation;
mod vital_signs;

use std::sync::Arc;
use std::time::Instant;

use crate::engine::event::Event;
use crate::engine::inbox::{Inbox, Wake};
use crate::engine::report::Report;
use crate::engine::stop::Stop;
use crate::files::FileError;
use crate::process::supervised::StartError;
use crate::reply::filter::CompileError;

pub use balance::BalanceQuery;
pub use command::AgentCommand;
pub use display::DisplayRoute;
pub use message::Message;
pub use readers::ReaderPlan;
pub use validation::ValidationCommand;

/// How a prompt reaches a coding agent and what comes back.
pub trait Agent {
    /// Runs one attempt to its end. Whatever the agent started is gone when this returns.
    ///
    /// # Errors
    /// Only for what ends the loop: the agent's program cannot be started, or our own records cannot be
    /// written. An agent that fails is a [`Report`].
    fn run(&mut self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, AgentError>;
}

/// One try at an iteration.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The number of the iteration, from 1.
    pub iteration: u64,
    /// The prompt, ready to be sent.
    pub prompt: &'a str,
    /// Who is to work on it, when not the agent that the loop was started with.
    pub agent: Option<&'a AgentCommand>,
    /// When the loop's own time is over: the agent is ended then.
    pub deadline: Option<Instant>,
}

/// Why an attempt left no report.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent's program cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A filter that reads the agent does not compile.
    #[error(transparent)]
    Filter(#[from] CompileError),
    /// A record cannot be written.
    #[error(transparent)]
    Record(#[from] FileError),
}

/// What an attempt may use of the loop around it.
pub struct Context<'a> {
    /// Where to wait, and where the attempt's threads put what they have.
    pub inbox: &'a Arc<Inbox<Message>>,
    /// What has been asked of the loop.
    pub stop: &'a mut Stop,
    /// Tells the world.
    pub emit: &'a mut dyn FnMut(Event<'_>) -> Result<(), FileError>,
}

impl Context<'_> {
    /// Waits for the next thing to happen, and books what was asked on the way.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<Wake<Message>, FileError> {
        let wake = self.inbox.wait(deadline);
        if let Wake::Asked(ask) = &wake {
            self.stop.book(ask.clone());
            (self.emit)(Event::Asked { ask, urgency: self.stop.urgency() })?;
        }
        Ok(wake)
    }
}
