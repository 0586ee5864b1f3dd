//! Makes the agent that a piece of work asks for.

use std::ffi::OsString;

use super::balance::BalanceQuery;
use super::command::{program, resolve};
use super::display::DisplayRoute;
use super::pipe::PipeAgent;
use super::readers::ReaderPlan;
use super::{Timeouts, cannot_start, tell_total};
use crate::engine::agent::{Agent, Attempt, CommandLine, How};
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::report::Report;
use crate::engine::stop::Change;
use crate::presets::{self, Unable, Wishes};
use crate::process::launch::Launch;

/// How many agents are kept ready besides the one that the loop was started with.
const KEPT: usize = 4;

/// The agents of one loop: the one that it was started with, and what work asks for in its place.
#[derive(Debug)]
pub struct Factory {
    /// The agent that the loop was started with.
    own: PipeAgent,
    /// What is wanted of every agent whose command line comes with its work.
    wishes: Wishes,
    /// Those that work has asked for, the latest last.
    made: Vec<(How, PipeAgent)>,
    /// What the agents cost has been known so far.
    cost_is_known: bool,
}

impl Factory {
    /// For a loop that was started with `own`. `reports_cost`: what it costs can be known.
    #[must_use]
    pub fn new(own: PipeAgent, reports_cost: bool) -> Self {
        Self { own, wishes: Wishes::default(), made: Vec::new(), cost_is_known: reports_cost }
    }

    /// For a loop whose agents are command lines; `launch` says where and with what environment they run, `wishes` what is
    /// wanted of each.
    ///
    /// # Errors
    /// When a filter of the agent's preset does not compile, or it has no way for a wish.
    pub fn of_command(
        command: &CommandLine,
        wishes: Wishes,
        launch: Launch,
        ours: Vec<OsString>,
        timeouts: Timeouts,
    ) -> Result<Self, End> {
        let unread = PipeAgent {
            name: String::new(),
            preset: presets::unknown(),
            launch,
            readers: ReaderPlan::of(presets::unknown()).map_err(cannot_start)?,
            display: DisplayRoute::Raw,
            wishes: Wishes::default(),
            read_only: false,
            ours,
            balance: None,
            timeouts,
            has_told_unread: false,
        };
        let own = of_command(command, &wishes, unread)?;
        let how = How { command: Some(command.clone()), ..How::default() };
        let reports_cost = own.preset.reports_cost;
        Ok(Self { wishes, made: vec![(how, own.clone())], ..Self::new(own, reports_cost) })
    }

    /// What to call the agent that the loop was started with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.own.name
    }

    /// How and where the agent that the loop was started with is started.
    #[must_use]
    pub fn launch(&self) -> &Launch {
        &self.own.launch
    }

    fn make(&self, how: &How) -> Result<PipeAgent, End> {
        let mut agent = match &how.command {
            Some(command) => of_command(command, &self.wishes, self.own.clone())?,
            None => self.own.clone(),
        };
        let preset = agent.preset;
        // What the work wants comes before what its user wants of every agent.
        let wishes = Wishes { model: how.model.clone(), effort: None };
        grant(&mut agent, &wishes)?;
        agent.read_only = how.read_only;
        if how.read_only {
            let read_only = preset.read_only.as_ref();
            let read_only = read_only.ok_or_else(|| unable(&agent.name, Unable::READ_ONLY))?;
            agent.launch.args = preset.with_read_only(std::mem::take(&mut agent.launch.args), read_only);
            agent.launch.env.extend(read_only.env.iter().map(|(name, value)| (name.into(), value.into())));
        }
        Ok(agent)
    }

    /// The agent for work that is to be done like this.
    fn agent_for(&mut self, how: &How, context: &mut Context<'_>) -> Result<&mut PipeAgent, End> {
        if *how == How::default() {
            return Ok(&mut self.own);
        }
        self.note_cost(how, context)?;
        let at = if let Some(at) = self.made.iter().position(|(known, _)| known == how) {
            at
        } else {
            let agent = self.make(how)?;
            if self.made.len() == KEPT {
                self.made.remove(0);
            }
            self.made.push((how.clone(), agent));
            self.made.len() - 1
        };
        Ok(&mut self.made[at].1)
    }

    /// Tells when what the agents cost is known no more.
    fn note_cost(&mut self, how: &How, context: &mut Context<'_>) -> Result<(), End> {
        let Some(command) = &how.command else { return Ok(()) };
        let reports_cost = resolve(command).0.reports_cost;
        if std::mem::replace(&mut self.cost_is_known, reports_cost) && !reports_cost {
            let name = command.name();
            context.notice(&format!(
                "agent '{name}' does not report what it costs: from here on no limit in money is kept"
            ))?;
        }
        Ok(())
    }
}

impl Agent for Factory {
    fn run(&mut self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, End> {
        self.agent_for(attempt.how, context)?.run(attempt, context)
    }

    fn change(&mut self, change: &Change) -> bool {
        for agent in self.made.iter_mut().map(|(_, agent)| agent).chain([&mut self.own]) {
            tell_total(&mut agent.launch, change);
        }
        false
    }
}

/// The agent that `command` starts; where and how long it runs is as with `agent`.
fn of_command(command: &CommandLine, wishes: &Wishes, mut agent: PipeAgent) -> Result<PipeAgent, End> {
    let (preset, args) = resolve(command);
    agent.readers = ReaderPlan::of(preset).map_err(cannot_start)?;
    command.name().clone_into(&mut agent.name);
    agent.preset = preset;
    agent.has_told_unread = false;
    agent.launch.program = program(command).into();
    agent.launch.args = args.into_iter().map(Into::into).collect();
    agent.display = if agent.readers.preset_displays { DisplayRoute::Preset } else { DisplayRoute::Raw };
    let asks = !preset.usage_cmd.is_empty();
    agent.balance = asks.then(|| BalanceQuery::new(preset.usage_cmd, preset.usage_parser, &agent.launch));
    grant(&mut agent, wishes)?;
    Ok(agent)
}

/// Puts the options for what is wanted of an agent into its command line.
fn grant(agent: &mut PipeAgent, wishes: &Wishes) -> Result<(), End> {
    let args = agent.preset.with_wishes(std::mem::take(&mut agent.launch.args), wishes);
    agent.launch.args = args.map_err(|why| unable(&agent.name, why))?;
    if let Some(model) = &wishes.model {
        agent.wishes.model = Some(model.clone());
    }
    Ok(())
}

fn unable(agent: &str, what: Unable) -> End {
    cannot_start(format!("agent '{agent}' cannot be {what}: choose another agent for this"))
}
