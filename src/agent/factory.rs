//! Makes the agent that a piece of work asks for.

use super::pipe::PipeAgent;
use super::readers::Reading;
use super::spec::AgentSpec;
use super::{cannot_start, tell_total};
use crate::engine::agent::{Agent, Attempt, Choice, CommandLine, How, Inspects};
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::report::Report;
use crate::engine::stop::Change;
use crate::presets::{Unable, Wishes};

/// How many agents are kept ready besides the one that the loop was started with.
const KEPT: usize = 4;

/// The agents of one loop: those that it was started with, and those that work asks for instead.
#[derive(Debug)]
pub struct Factory {
    /// The agents that the loop was started with, the one that is wanted most first.
    own: Vec<PipeAgent>,
    /// What the engine knows of them.
    choices: Vec<Choice>,
    /// The one of them that works.
    at: usize,
    /// The command line of the only one of them, if a RALPH.md names it.
    command: Option<CommandLine>,
    /// The agents that look at the work of others, where those are other ones.
    inspectors: Vec<(Inspects, Choice, PipeAgent)>,
    /// The wishes for every agent whose command line comes with its work.
    wishes: Wishes,
    /// The agents that work has asked for, the latest last, each in the place of one of its own.
    made: Vec<((usize, How), PipeAgent)>,
    /// Whether the cost of all agents is known so far.
    cost_is_known: bool,
}

impl Factory {
    /// The agents of a loop that was started with these, the one that is wanted most first: the first of them that can works.
    #[must_use]
    pub fn new(own: Vec<(Choice, PipeAgent)>) -> Self {
        let cost_is_known = own.iter().all(|(_, agent)| agent.reports_cost());
        let (choices, own) = own.into_iter().unzip();
        Self {
            own,
            choices,
            at: 0,
            command: None,
            inspectors: Vec::new(),
            wishes: Wishes::default(),
            made: Vec::new(),
            cost_is_known,
        }
    }

    /// The agents of a loop whose work names command lines; `own` is that of the first, `command`. `wishes` are for each.
    #[must_use]
    pub fn of_command(command: CommandLine, wishes: Wishes, own: (Choice, PipeAgent)) -> Self {
        let how = How { command: Some(command.clone()), ..How::default() };
        let made = vec![((0, how), own.1.clone())];
        Self { wishes, made, command: Some(command), ..Self::new(vec![own]) }
    }

    /// The agents, of which these look at the work of the others.
    #[must_use]
    pub fn with_inspectors(self, inspectors: Vec<(Inspects, Choice, PipeAgent)>) -> Self {
        Self { inspectors, ..self }
    }

    /// The agent that looks at the work of others in this way, if that is another one.
    fn inspector(&self, how: &How) -> Option<(&Choice, &PipeAgent)> {
        let own = self.inspectors.iter().find(|(inspects, ..)| Some(*inspects) == how.inspects);
        own.map(|(_, choice, inspector)| (choice, inspector))
    }

    fn make(&self, how: &How) -> Result<PipeAgent, End> {
        let inspector = self.inspector(how);
        let mut agent = match (inspector, &how.command) {
            (Some((_, inspector)), _) => inspector.clone(),
            (None, Some(command)) => {
                let spec = granted(AgentSpec::of_command(command), &self.wishes)?;
                let reading = Reading::of(spec.preset).map_err(cannot_start)?;
                PipeAgent::new(spec, reading, self.own[self.at].ground.clone())
            }
            (None, None) => self.own[self.at].clone(),
        };
        // The wishes of the work come before those for every agent.
        let [first, own] = [0, self.at].map(|at| self.own[at].spec.preset.name);
        let is_meant = inspector.is_none() && (first == own || how.command.is_some());
        let model = how.model.clone().filter(|_| is_meant);
        agent.spec = granted(agent.spec, &Wishes { model, effort: None })?;
        agent.read_only = how.inspects.is_some();
        if let Some(folder) = &how.folder {
            agent.ground.launch.cwd.clone_from(folder);
        }
        if let Some(read_only) = agent.spec.preset.read_only.as_ref().filter(|_| how.inspects.is_some()) {
            agent.spec = agent.spec.with_read_only(read_only);
            let env = read_only.env.iter().map(|(name, value)| (name.into(), value.into()));
            agent.ground.launch.env.extend(env);
        }
        Ok(agent)
    }

    /// The agent for work with these wishes.
    fn agent_for(&mut self, how: &How, context: &mut Context<'_>) -> Result<&mut PipeAgent, End> {
        if *how == How::default() {
            return Ok(&mut self.own[self.at]);
        }
        self.note_cost(how, context)?;
        let wanted = (self.at, how.clone());
        let at = if let Some(at) = self.made.iter().position(|(known, _)| *known == wanted) {
            at
        } else {
            let agent = self.make(how)?;
            if self.made.len() == KEPT {
                self.made.remove(0);
            }
            self.made.push((wanted, agent));
            self.made.len() - 1
        };
        Ok(&mut self.made[at].1)
    }

    /// Reports when the cost of the agents is not known any more.
    fn note_cost(&mut self, how: &How, context: &mut Context<'_>) -> Result<(), End> {
        let Some(command) = &how.command else { return Ok(()) };
        let reports_cost = AgentSpec::of_command(command).preset.reports_cost;
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

    fn choices(&self, how: &How) -> &[Choice] {
        let is_other = how.command != self.command && how.command.is_some();
        match self.inspector(how) {
            Some((choice, _)) => std::slice::from_ref(choice),
            None if is_other => &[],
            None => &self.choices,
        }
    }

    fn turn_to(&mut self, choice: usize) {
        self.at = choice;
    }

    fn change(&mut self, change: &Change) -> bool {
        for agent in self.made.iter_mut().map(|(_, agent)| agent).chain(&mut self.own) {
            tell_total(&mut agent.ground.launch, change);
        }
        false
    }
}

/// The agent with the options for these wishes.
fn granted(spec: AgentSpec, wishes: &Wishes) -> Result<AgentSpec, End> {
    let name = spec.name.clone();
    spec.with_wishes(wishes).map_err(|why| unable(&name, why))
}

fn unable(agent: &str, what: Unable) -> End {
    cannot_start(format!("agent '{agent}' cannot be {what}: choose another agent for this"))
}
