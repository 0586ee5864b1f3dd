//! Everything that is checked and compiled before a loop starts: mistakes are refused here.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{anyhow, bail};
use regex::Regex;

use super::agent_choice::{self, check_installed, ours, reports_cost, timeouts, wishes_of_call};
use super::launch::launch_behind_walls;
use super::ready::Ready;
use super::variables::agent_env;
use super::workspace::{Call, Workspace};
use crate::agent::Reading;
use crate::agent::factory::Factory;
use crate::agent::pipe::{Ground, PipeAgent};
use crate::agent::spec::AgentSpec;
use crate::engine::agent::{Choice, CommandLine, Inspects};
use crate::engine::budget::{Budget, Limit};
use crate::engine::outcome::Outcome;
use crate::engine::policy::{Limits, OUTAGE_PAUSE, OnFailure};
use crate::inspection;
use crate::presets::Preset;
use crate::project::Project;
use crate::settings::proof_level::{OnProtected, ProofLevel};
use crate::settings::{Account, Origin, Phase, Resolved, Settings, Verb};
use crate::text::digest::sha256_of_words;

/// What a loop needs besides its work, checked and compiled.
pub(crate) struct Preflight<'a> {
    /// The verb, its project and its flags.
    pub(crate) call: Call<'a>,
    /// The limits.
    pub(crate) limits: Limits,
    /// The assistant's text that ends it.
    pub(crate) done_pattern: Option<Regex>,
    agent: Chosen,
    /// The agents that go on in its place, the one that is wanted most first.
    stand_ins: Vec<Chosen>,
    /// The agents that look at the work of others, where those are other ones.
    inspectors: Vec<(Inspects, Chosen)>,
    /// The command line of `agent`, if a RALPH.md names it.
    command: Option<CommandLine>,
}

/// An agent that was checked, and what reads it.
struct Chosen {
    spec: AgentSpec,
    reading: Reading,
    choice: Choice,
    /// The variables of its account.
    env: Vec<(OsString, OsString)>,
}

impl<'a> Preflight<'a> {
    /// A loop with the agent of the settings. `limit` is the number on the command line.
    ///
    /// # Errors
    /// When the agent is not installed, a budget cannot be kept, or something does not compile.
    pub(crate) fn of_settings(call: Call<'a>, limit: Option<u64>) -> anyhow::Result<Self> {
        let Workspace { project, settings } = call.workspace;
        let mut agent = checked(settings, project)?;
        let stand_ins = settings.stand_ins()?;
        let wishes = |settings: &Settings| [settings.agent_model.clone(), settings.agent_effort.clone()];
        let wishes: Vec<_> = [settings].into_iter().chain(&stand_ins).map(wishes).collect();
        let stand_ins = stand_ins.iter().map(|settings| checked(settings, project));
        let mut stand_ins: Vec<Chosen> = stand_ins.collect::<anyhow::Result<_>>()?;
        if !stand_ins.is_empty() {
            // Two of them may differ in these alone.
            for (chosen, wishes) in [&mut agent].into_iter().chain(&mut stand_ins).zip(wishes) {
                chosen.choice.name.extend(wishes.iter().flatten().flat_map(|wish| [":", wish]));
            }
        }
        let done_pattern = done_pattern(settings)?;
        let limits = limits(call.flags.resume_limit.or(limit), settings);
        let inspectors = inspectors(call)?;
        Ok(Self { call, limits, done_pattern, agent, stand_ins, inspectors, command: None })
    }

    /// A loop whose agent is a command line.
    ///
    /// # Errors
    /// As with [`Preflight::of_settings`].
    pub(crate) fn of_command(
        call: Call<'a>,
        limit: Option<u64>,
        command: CommandLine,
    ) -> anyhow::Result<Self> {
        let Workspace { project, settings } = call.workspace;
        if settings.account_named(command.program()).is_some() && !agent_choice::is_there(&command, settings)
        {
            bail!(
                "the line 'agent:' names the account '{}', and takes none: write the command line of an agent there, and start \
                 ralph with the variables of that account",
                command.program()
            );
        }
        let spec = agent_choice::of_call(&command, settings)?;
        check_installed(&spec, "the line 'agent:'", settings, project)?;
        check_budget(settings, &spec.name, spec.preset.reports_cost)?;
        let done_pattern = done_pattern(settings)?;
        let reading = Reading::of(spec.preset)?;
        let limits = limits(call.flags.resume_limit.or(limit), settings);
        let model = wishes_of_call(settings).model;
        let agent = Chosen::new(spec, reading, model.as_deref(), None)?;
        let command = Some(command);
        Ok(Self {
            call,
            limits,
            done_pattern,
            agent,
            stand_ins: Vec::new(),
            inspectors: inspectors(call)?,
            command,
        })
    }

    /// The models to choose from for tasks, the smallest first; none if neither settings nor preset name any.
    pub(crate) fn ladder(&self) -> &'static [&'static str] {
        self.preset().ladder
    }

    /// This loop, without retries of a failed attempt with the same prompt.
    #[must_use]
    pub(crate) fn without_retries(mut self) -> Self {
        self.limits.max_retries = 0;
        self
    }

    /// Whether the agent has an option for its model.
    pub(crate) fn can_choose_model(&self) -> bool {
        self.preset().takes_model()
    }

    /// Whether each agent that may look at the work of others can be kept from changing anything.
    pub(crate) fn can_look_only(&self) -> bool {
        let looks_only = |chosen: &Chosen| chosen.spec.preset.read_only.is_some();
        let own = looks_only(&self.agent) && self.stand_ins.iter().all(looks_only);
        let settings = &self.call.workspace.settings;
        let kinds = [Inspects::Verifies, Inspects::Reviews].into_iter();
        kinds.filter(|inspects| may_inspect(self.call.verb, *inspects, settings)).all(|inspects| {
            let other = self.inspectors.iter().find(|(own, _)| *own == inspects);
            other.map_or(own, |(_, inspector)| looks_only(inspector))
        })
    }

    /// What is known of the agent.
    pub(crate) fn preset(&self) -> &'static Preset {
        self.agent.spec.preset
    }

    /// What tells the agent's login from others.
    pub(crate) fn login(&self) -> &str {
        &self.agent.choice.login
    }

    /// The agent's name.
    pub(crate) fn agent_name(&self) -> &str {
        &self.agent.choice.name
    }

    /// A loop in `project`, which may be a work tree of the workspace. `run` is its id, `env` its agent's variables besides those
    /// of all agents.
    ///
    /// # Errors
    /// If walls around the agent are wanted and cannot be built.
    pub(crate) fn ready(
        &self,
        project: &'a Project,
        run: &str,
        env: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> anyhow::Result<Ready<'a>> {
        let Workspace { project: own, settings } = self.call.workspace;
        let env: Vec<_> = agent_env(self.call, &self.limits, project).into_iter().chain(env).collect();
        let pipe = |Chosen { spec, reading, env: own_env, .. }: &Chosen| {
            let env = env.iter().chain(own_env).cloned().collect();
            let (launch, warning) = launch_behind_walls((project, settings), spec.preset, env, run)?;
            let elsewhere = project.root() != own.root();
            let spec = if elsewhere { spec.clone().rooted_at(own.root()) } else { spec.clone() };
            let ground = Ground { launch, ours: ours(project), timeouts: timeouts(settings) };
            anyhow::Ok((PipeAgent::new(spec, reading.clone(), ground), warning))
        };
        let (agent, warning) = pipe(&self.agent)?;
        let (name, mut launch) = (self.agent_name().to_owned(), agent.launch());
        // What proves the work is no agent: it gets no login.
        launch.env.retain(|variable| !self.agent.env.contains(variable));
        let (mut inspectors, mut warnings) = (Vec::new(), Vec::from_iter(warning));
        for (inspects, chosen) in &self.inspectors {
            let (agent, warning) = pipe(chosen)?;
            warnings.extend(warning);
            inspectors.push((*inspects, chosen.choice.clone(), agent));
        }
        let mut own = vec![(self.agent.choice.clone(), agent)];
        for chosen in &self.stand_ins {
            let (agent, warning) = pipe(chosen)?;
            warnings.extend(warning);
            own.push((chosen.choice.clone(), agent));
        }
        warnings.dedup();
        let agent = match &self.command {
            Some(command) => Factory::of_command(command.clone(), wishes_of_call(settings), own.remove(0)),
            None => Factory::new(own),
        };
        let agent = agent.with_inspectors(inspectors);
        let judge = inspection::Ground {
            root: project.root().to_owned(),
            in_git: project.in_git(),
            looks_only: self.can_look_only(),
        };
        Ok(Ready {
            done_pattern: self.done_pattern.clone(),
            reviewed_from: reviews(self.call.verb, settings).then(|| judge.clone()),
            warning: (!warnings.is_empty()).then(|| warnings.join("; ")),
            ..Ready::new(self.call, project, self.limits.clone(), (name, &launch), agent, Some(judge))
        })
    }
}

/// The agents that look at the work of others, where the settings name other ones for that.
fn inspectors(call: Call<'_>) -> anyhow::Result<Vec<(Inspects, Chosen)>> {
    let Workspace { project, settings } = call.workspace;
    let mut inspectors = Vec::new();
    for (inspects, phase) in [(Inspects::Verifies, Phase::Verify), (Inspects::Reviews, Phase::Review)] {
        if may_inspect(call.verb, inspects, settings)
            && let Some(settings) = settings.in_phase(phase)?
        {
            inspectors.push((inspects, checked(&settings, project)?));
        }
    }
    Ok(inspectors)
}

/// Whether a loop of this verb may have its work looked at in this way by another agent.
fn may_inspect(verb: Verb, inspects: Inspects, settings: &Settings) -> bool {
    match (verb, inspects) {
        (_, Inspects::Reviews) => verb == Verb::Feature || reviews(verb, settings),
        (Verb::Feature, _) => false,
        (Verb::Tasks, _) => true,
        _ if Verb::PLANNING.contains(&verb) => false,
        _ => {
            settings.validation_command.is_some()
                && settings.proof_level != ProofLevel::Place
                && settings.proof_on_protected == OnProtected::Voice
        }
    }
}

/// Whether a fresh agent reviews what loops of this verb do, before it counts.
fn reviews(verb: Verb, settings: &Settings) -> bool {
    !matches!(verb, Verb::Tasks | Verb::Feature | Verb::Spawn)
        && settings.review_work.unwrap_or(settings.review_agent.is_some())
}

impl Chosen {
    /// The agent with this model and this account, each if it is not the usual one.
    fn new(
        spec: AgentSpec,
        reading: Reading,
        model: Option<&str>,
        account: Option<&Account>,
    ) -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        let env = account.map(|account| account.variables(variable)).transpose();
        let env = env.map_err(anyhow::Error::msg)?.unwrap_or_default();
        let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_default();
        let of_account = |name: &str| env.iter().find(|(set, _)| set == name).map(|(_, value)| value.clone());
        let login = spec.preset.login_of(&user, |name| of_account(name).or_else(|| variable(name)));
        // Of a command line nothing else is known.
        let words = spec
            .program
            .iter()
            .cloned()
            .chain(spec.args.iter().map(|arg| arg.to_string_lossy().into_owned()));
        let command = sha256_of_words(words.collect::<Vec<_>>().iter().map(String::as_str));
        let login = if spec.preset.cli.is_empty() { format!("{login}/{}", &command[..16]) } else { login };
        // Its variables may be others than those by which logins of this agent are told apart.
        let digest = sha256_of_words(env.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]));
        let login = if env.is_empty() { login } else { format!("{login}/{}", &digest[..16]) };
        // Providers have limits for single models, too.
        let login = model.map_or_else(|| login.clone(), |model| format!("{login}/{model}"));
        let name =
            account.map_or_else(|| spec.name.clone(), |account| format!("{}@{}", spec.name, account.name));
        let env = env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Ok(Self { spec, reading, choice: Choice { name, login }, env })
    }
}

/// The agent of these settings, and what reads it.
fn checked(settings: &Settings, project: &Project) -> anyhow::Result<Chosen> {
    let spec = agent_choice::of_settings(settings, project)?;
    check_installed(&spec, &agent_choice::chosen_by(settings), settings, project)?;
    check_budget(settings, &spec.name, reports_cost(spec.preset, settings))?;
    let reading = agent_choice::reading(&spec, settings, project)?;
    Chosen::new(spec, reading, settings.agent_model.as_deref(), settings.account.as_ref())
}

/// The limits of a loop. `limit` is the number on the command line.
#[must_use]
pub(crate) fn limits(limit: Option<u64>, settings: &Settings) -> Limits {
    let unless_zero = |value: u32| Some(u64::from(value)).filter(|value| *value > 0);
    Limits {
        max_iterations: limit.or(settings.max_iterations.map(u64::from)),
        max_retries: settings.max_retries,
        retry_pauses: settings.backoff.clone(),
        outage_pause: outage_pause(settings),
        on_failure: if settings.stop_on_error { OnFailure::End } else { OnFailure::Count },
        failed_end: Outcome::AgentFailed,
        last_counts: true,
        failure_pause: None,
        breaker_end: Outcome::Breaker,
        breaker: unless_zero(settings.max_consecutive_errors),
        idle: unless_zero(settings.idle_threshold),
        budget: Budget::of(|limit| settings.amount(limit.row().key)),
        max_limit_wait: settings.max_limit_wait,
        free_space_floor: settings.free_space_floor.unwrap_or_default(),
    }
}

/// The first pause for a provider: the user's own first pause before a retry, where they have chosen one.
fn outage_pause(settings: &Settings) -> Duration {
    let is_chosen = settings.row("loop.backoff").is_some_and(|row| row.origin != Origin::Default);
    settings.backoff.first().filter(|_| is_chosen).unwrap_or(OUTAGE_PAUSE)
}

/// The limits of a loop of this verb, with those that `settings` name in place of its own.
#[must_use]
pub(crate) fn limits_with(settings: &Settings, verb: Verb, own: &Limits) -> Limits {
    let named = limits(None, settings);
    let mut changed = own.clone();
    let is_named = |row: &&Resolved| row.origin != Origin::Default;
    changed.budget = Budget::of(|limit| {
        settings.row(limit.row().key).filter(is_named).map_or(&own.budget, |_| &named.budget).get(limit)
    });
    for row in settings.rows().filter(is_named) {
        match row.setting.key {
            "loop.max_iterations" => changed.max_iterations = named.max_iterations,
            // These retry the task, or nothing.
            "loop.max_retries" if !matches!(verb, Verb::Tasks | Verb::Spawn) => {
                changed.max_retries = named.max_retries;
            }
            "loop.backoff" => {
                changed.retry_pauses.clone_from(&named.retry_pauses);
                changed.outage_pause = named.outage_pause;
            }
            "loop.stop_on_error" => changed.on_failure = named.on_failure,
            "monitoring.max_consecutive_errors" => {
                (changed.breaker, changed.on_failure) = (named.breaker, named.on_failure);
            }
            "completion.idle_threshold" => changed.idle = named.idle,
            "loop.max_limit_wait" => changed.max_limit_wait = named.max_limit_wait,
            "loop.free_space_floor" => changed.free_space_floor = named.free_space_floor,
            _ => {}
        }
    }
    changed
}

/// A budget in money needs an agent that reports its cost.
fn check_budget(settings: &Settings, agent: &str, reports_cost: bool) -> anyhow::Result<()> {
    if settings.amount(Limit::Cost.row().key).is_some() && !reports_cost {
        bail!(
            "agent '{agent}' does not report what it costs, so --max-cost could never be reached: use --max-tokens, or \
             set AGENT_USAGE_CMD and AGENT_USAGE_PARSER"
        );
    }
    Ok(())
}

fn done_pattern(settings: &Settings) -> anyhow::Result<Option<Regex>> {
    let compile = |pattern: &String| {
        Regex::new(pattern).map_err(|error| {
            // Of several lines, the last one says what is wrong.
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let row = settings.rows().find(|row| row.setting.key == "loop.done_pattern");
            let place = row.map_or_else(|| "done pattern".to_owned(), |row| row.origin.to_string());
            anyhow!("{place}: `{pattern}` is no regular expression: {reason}; '\\' makes a special character a plain one")
        })
    };
    settings.done_pattern.as_ref().map(compile).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::table::TABLE;

    #[test]
    fn every_limit_has_a_setting_that_resume_can_raise_by_its_flag() {
        for limit in Limit::ALL {
            let setting = TABLE.iter().find(|setting| setting.key == limit.row().key).unwrap();
            assert!(setting.can_be_raised(), "{limit:?}");
            assert_eq!(setting.flag.as_ref().unwrap().long, limit.row().flag);
        }
    }
}
