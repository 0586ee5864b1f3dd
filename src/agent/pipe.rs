//! The pipe: a prompt on an agent's stdin, JSON lines on its stdout.

use std::time::{Duration, Instant};

use super::balance::BalanceQuery;
use super::display::DisplayRoute;
use super::preset;
use super::readers::ReaderPlan;
use super::session::{Limits, Session};
use super::threads::serve;
use super::{Agent, AgentCommand, AgentError, Attempt, Context};
use crate::engine::event::Event;
use crate::engine::report::{Balance, Report};
use crate::process::supervised::{Launch, Supervised};
use crate::reply::decode::Decoder;
use crate::reply::filter::CompileError;
use crate::reply::usage::Class;

/// An agent behind a pipe, with everything about it resolved.
#[derive(Debug)]
pub struct PipeAgent {
    /// What to call it.
    pub name: String,
    /// How its user logs in, as the second half of a message; empty where that is not needed.
    pub login: &'static str,
    /// How it is started.
    pub launch: Launch,
    /// Who reads its stream.
    pub readers: ReaderPlan,
    /// Who renders it for the live display.
    pub display: DisplayRoute,
    /// How its account's balance is asked for.
    pub balance: Option<BalanceQuery>,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How long it may show no sign of life.
    pub inactivity_timeout: Duration,
    /// How long it may live on after its own final event.
    pub grace: Duration,
    /// The command line that it was taken from, when that was one.
    pub command: Option<AgentCommand>,
}

impl Agent for PipeAgent {
    fn run(&mut self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, AgentError> {
        if let Some(command) = attempt.agent
            && self.command.as_ref() != Some(command)
        {
            let tells_cost = |command: &AgentCommand| command.resolve().0.reports_cost;
            let told_cost = self.command.as_ref().is_some_and(tells_cost);
            self.adopt(command)?;
            if told_cost && !tells_cost(command) {
                let name = command.name();
                (context.emit)(Event::Notice(&format!(
                    "agent '{name}' does not report what it costs: from here on no limit in money is kept"
                )))?;
            }
        }
        let before = self.ask_balance(context)?;
        let mut report = self.attempt(attempt, context)?;
        if let Some(left) = self.ask_balance(context)? {
            let spent = before.map(|before| before - left).filter(|spent| *spent >= 0.0);
            report.balance = Some(Balance { spent, left });
        }
        Ok(report)
    }
}

impl PipeAgent {
    /// The agent that `command` starts; `launch` says where and with what environment.
    pub fn of_command(
        command: &AgentCommand,
        launch: Launch,
        timeout: Duration,
        inactivity_timeout: Duration,
        grace: Duration,
    ) -> Result<Self, CompileError> {
        let mut agent = Self {
            name: String::new(),
            launch,
            readers: ReaderPlan::of(preset::unknown())?,
            display: DisplayRoute::Raw,
            balance: None,
            login: "",
            timeout,
            inactivity_timeout,
            grace,
            command: None,
        };
        agent.adopt(command)?;
        Ok(agent)
    }

    /// Becomes the agent that `command` starts; where and how long it runs stays as it is.
    fn adopt(&mut self, command: &AgentCommand) -> Result<(), CompileError> {
        let (preset, args) = command.resolve();
        self.readers = ReaderPlan::of(preset)?;
        command.name().clone_into(&mut self.name);
        self.login = preset.login;
        self.launch.program = command.program().into();
        self.launch.args = args.into_iter().map(Into::into).collect();
        self.display = if self.readers.preset_displays { DisplayRoute::Preset } else { DisplayRoute::Raw };
        let asks = !preset.usage_cmd.is_empty();
        self.balance = asks.then(|| BalanceQuery::new(preset.usage_cmd, preset.usage_parser, &self.launch));
        self.command = Some(command.clone());
        Ok(())
    }

    fn ask_balance(&self, context: &mut Context<'_>) -> Result<Option<f64>, AgentError> {
        self.balance.as_ref().map_or(Ok(None), |query| query.ask(context))
    }

    fn attempt(&self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, AgentError> {
        let mut launch = self.launch.clone();
        launch.env.push(("RALPH_ITERATION".into(), attempt.iteration.to_string().into()));

        let started = Instant::now();
        let port = context.inbox.open();
        let (supervised, pipes) = Supervised::start(&launch)?;
        let decoder = Decoder::new(self.readers.filters());
        let hold = serve(pipes, attempt.prompt, decoder, &self.display, &port).map_err(|source| {
            let program = launch.program.to_string_lossy().into_owned();
            crate::process::supervised::StartError::Supervisor { program, source }
        })?;

        let limits = Limits {
            attempt: self.timeout,
            inactivity: self.inactivity_timeout,
            after_final: self.grace,
            loop_over: attempt.deadline,
        };
        let mut session = Session::new(supervised, hold, &launch.cwd, limits, &self.display);
        let watched = session.watch(context);
        context.inbox.close();
        let left = session.finish();
        watched?;
        let mut report = left.report(&self.name, &self.readers, started.elapsed());
        if let Some(failure) = report.failure.as_mut().filter(|failure| failure.class == Class::Auth)
            && !self.login.is_empty()
        {
            failure.message = format!("{}; to log in, {}", failure.message, self.login);
        }
        Ok(report)
    }
}
