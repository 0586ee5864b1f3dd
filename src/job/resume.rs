//! Whether and where a loop that was cut off goes on.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::engine::budget::Budget;
use crate::engine::event::LoopIdentity;
use crate::engine::fact::Fact;
use crate::engine::outcome::Outcome;
use crate::engine::tally::{Last, Tally};
use crate::project::Project;
use crate::record::config_watch::{Difference, WatchedConfig};
use crate::record::lookup;
use crate::record::recovery::ReadOn;
use crate::record::state::{Setup, State};
use crate::record::state_read::Found;
use crate::record::state_seal::is_sealed;
use crate::view::next_step::{Ending, next_step};

/// The flag by which a loop goes on although its settings were changed.
pub(crate) const ACCEPT_CONFIG: &str = "--accept-config";

/// The flag that asks for it.
pub(crate) const RESUME: &str = "--resume";

/// Whether a loop goes on where the last one in its ralph dir was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// The loop starts afresh.
    No,
    /// The user has asked for it, so an obstacle is an error.
    Asked,
    /// The loop goes on by itself if it can.
    ByItself,
}

/// A loop that goes on.
pub(super) struct Resumed {
    /// The tally to go on from.
    pub(super) tally: Tally,
    /// What the log had and the state did not.
    pub(super) recovered: Option<Fact<'static>>,
    /// Where it goes on, in words.
    pub(super) from: String,
    /// Warnings about its settings.
    pub(super) warnings: Vec<String>,
}

/// The last records of the loop in a ralph dir, and what of them its state did not have.
pub(super) type Before = (Found, Option<ReadOn>);

/// The loop that goes on; `None` to start afresh. A state file that cannot be understood is
/// put aside when the records are opened.
pub(super) fn resume(
    how: Resume,
    before: io::Result<Before>,
    project: &Project,
    identity: &LoopIdentity,
    (setup, budget): (&Setup, Budget),
    accepts_config: bool,
) -> anyhow::Result<Option<Resumed>> {
    if how == Resume::No {
        return Ok(None);
    }
    let (found, read_on) = before.with_context(|| format!("cannot read {}", project.state().display()))?;
    let (state, why_not) = match found {
        Found::State(state) => {
            // A loop that goes on by itself may have another prompt.
            let same_prompt = how == Resume::ByItself
                || is_same_prompt(&state, setup)
                || !lookup::is_own(project, &state) && is_same_name(&state, setup);
            let why_not = another_loop(&state, identity, setup, same_prompt);
            (Some(state), why_not)
        }
        Found::Nothing | Found::Damaged(_) | Found::Unknown(_) | Found::Newer(_) => (None, None),
    };
    let state = match (state, why_not, how) {
        (_, Some(why_not), Resume::Asked) => bail!("{why_not}: resume that one, or start without --resume"),
        (None, _, Resume::Asked) => {
            let from = "there is nothing to resume; starting afresh".to_owned();
            return Ok(Some(Resumed {
                tally: Tally::default(),
                recovered: None,
                from,
                warnings: Vec::new(),
            }));
        }
        (Some(state), None, _) => state,
        _ => return Ok(None),
    };
    let names = [&*state.name, &*identity.name];
    if !lookup::is_own(project, &state)
        && names.iter().any(|name| lookup::is_known(project, name))
        && !accepts_config
    {
        // The records of a clone or a copy are of no loop that was started here: others have written this state.
        bail!("{}: look at them, and go on with {ACCEPT_CONFIG}, or start without {RESUME}", not_own(&state));
    }
    let trust = Trust::of(&state, read_on.as_ref(), project);
    let warnings = config_warnings(&state, setup, project, trust, accepts_config)?;
    let interrupted = state.was_interrupted();
    let never_began = state.outcome() == Some(Outcome::AgentMissing);
    let mut tally = state.tally.resumed(!interrupted, chrono::Utc::now());
    if never_began {
        // Its iteration has failed, and runs now that the agent may be installed.
        tally.last = Last::Waited;
    }
    if state.agent != identity.agent {
        // What the other agent was waited for says nothing of this one.
        tally.waits_no_more();
    }
    require_budget(&tally, budget, &setup.verb, &identity.name)?;
    let from = match (interrupted, tally.last) {
        (false, _) => "the last loop had ended; a new one goes on after",
        (true, Last::Nothing | Last::Settled(_)) => "resuming after",
        (true, _) => "resuming at",
    };
    let from = format!("{from} iteration {}", tally.iteration);
    let recovered = read_on.and_then(ReadOn::into_fact);
    Ok(Some(Resumed { tally, recovered, from, warnings }))
}

/// Checks that something is left of a loop's budget: it would begin nothing.
///
/// # Errors
/// Otherwise, with the command that raises it.
fn require_budget(tally: &Tally, budget: Budget, verb: &str, name: &str) -> anyhow::Result<()> {
    let Some(limit) = budget.reached(&tally.used()) else { return Ok(()) };
    let (outcome, spent) = (Some(limit.outcome()), Some((tally, budget)));
    let how = next_step(&Ending { verb, name, outcome, spent, ..Ending::default() });
    let how = how.map(|command| format!(", as in '{command}'")).unwrap_or_default();
    bail!("loop '{name}' has used up what it may: raise {}{how}", limit.row().flag)
}

/// How far the state of a loop can be trusted about what its attempts have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// It can be trusted; its latest attempt has ended.
    Whole,
    /// It can be trusted; its latest attempt may have made all changes since it began.
    InAttempt,
    /// Another program has written it, or it was lost: an attempt may have changed anything.
    Nothing,
}

impl Trust {
    fn of(state: &State, read_on: Option<&ReadOn>, project: &Project) -> Self {
        // A clone or a copy has no records here; a message says so.
        if lookup::is_own(project, state) && !is_sealed(project, state.seal.as_deref()) {
            Self::Nothing
        } else if state.tally.in_attempt || read_on.is_some_and(|read_on| read_on.was_in_attempt) {
            Self::InAttempt
        } else {
            Self::Whole
        }
    }

    fn difference(self, config: &WatchedConfig) -> Option<Difference> {
        match self {
            Self::Nothing => config.difference_in_doubt(),
            Self::InAttempt | Self::Whole => config.difference(self == Self::InAttempt),
        }
    }
}

/// Warnings about settings that differ from those that the loop began with.
///
/// # Errors
/// When one was or may have been changed inside an attempt, and the user has not accepted that.
fn config_warnings(
    state: &State,
    setup: &Setup,
    project: &Project,
    trust: Trust,
    accepts: bool,
) -> anyhow::Result<Vec<String>> {
    let name = &state.name;
    let mut warnings = Vec::new();
    if !lookup::is_own(project, state) {
        warnings.push(not_own(state));
    }
    let mut differing = Vec::new();
    let mut inside = Vec::new();
    for config in &state.setup.config {
        let Some(difference) = trust.difference(config) else { continue };
        let into = if difference == Difference::Inside { &mut inside } else { &mut differing };
        into.push(named(config, project));
    }
    // No agent can change flags and variables; but if nothing is known, those are not known either.
    let is_other = |began: &Option<String>, now: &Option<String>| {
        began.as_ref().zip(now.as_ref()).is_some_and(|(began, now)| began != now)
    };
    let into = if trust == Trust::Nothing { &mut inside } else { &mut differing };
    if is_other(&state.setup.validation_digest, &setup.validation_digest) {
        into.push("the validation command".to_owned());
    }
    if is_other(&state.setup.agent_digest, &setup.agent_digest) {
        into.push("the agent's command line".to_owned());
    }
    if let Some(what) = inside.first().filter(|_| !accepts) {
        let go_on = format!("look at it, and go on with {ACCEPT_CONFIG}, or take the change back");
        if trust == Trust::Nothing {
            let state = project.relative(&project.state()).display().to_string();
            bail!(
                "{what} is not as it was when loop '{name}' began, and {state} is not as ralph has written it, so that an agent may \
                 have changed both: {go_on}"
            );
        }
        bail!("{what} was changed inside an attempt of loop '{name}': {go_on}");
    }
    let told =
        |what: String| format!("{what} is not as it was when loop '{name}' began: it counts as it is now");
    warnings.extend(inside.into_iter().chain(differing).map(told));
    Ok(warnings)
}

/// The warning about a state that [`lookup::is_own`] does not recognise.
fn not_own(state: &State) -> String {
    format!(
        "the records of loop '{}': {}: whether its settings are those that it began with is not known",
        state.name,
        lookup::NOT_OWN
    )
}

/// A warning for a loop that starts afresh: which settings were changed inside an attempt of the last loop. They count now.
pub(super) fn changed_inside(before: &io::Result<Before>, project: &Project) -> Option<String> {
    let Ok((Found::State(state), read_on)) = before else { return None };
    let trust = Trust::of(state, read_on.as_ref(), project);
    let is_inside = |config: &&WatchedConfig| trust.difference(config) == Some(Difference::Inside);
    let changed: Vec<String> =
        state.setup.config.iter().filter(is_inside).map(|config| named(config, project)).collect();
    let was = if trust == Trust::Nothing { "may have been" } else { "was" };
    (!changed.is_empty()).then(|| {
        format!(
            "{} {was} changed inside an attempt of the last loop '{}', and counts from now on: check what it says",
            changed.join(" and "),
            state.name
        )
    })
}

/// What a loop that starts afresh has from its last run, see [`Tally::left_over`].
pub(super) fn left_over(
    before: &io::Result<Before>,
    project: &Project,
    identity: &LoopIdentity,
    setup: &Setup,
) -> Tally {
    let Ok((Found::State(state), read_on)) = before else { return Tally::default() };
    let is_it = another_loop(state, identity, setup, is_same_prompt(state, setup)).is_none();
    let is_ours =
        lookup::is_own(project, state) && Trust::of(state, read_on.as_ref(), project) != Trust::Nothing;
    if is_it && is_ours { state.tally.left_over() } else { Tally::default() }
}

/// The part of a settings file that counts, in words.
fn named(config: &WatchedConfig, project: &Project) -> String {
    let part = if config.front_matter { "the front matter of " } else { "" };
    format!("{part}{}", project.relative(&config.path).display())
}

/// Why a state belongs to another loop than the one to be started; `None` if it does not.
fn another_loop(state: &State, identity: &LoopIdentity, setup: &Setup, same_prompt: bool) -> Option<String> {
    let same_verb = state.setup.verb == setup.verb;
    if !same_verb || state.mode != identity.mode {
        let last = if same_verb { &state.mode } else { &state.setup.verb };
        let this = if same_verb { &identity.mode } else { &setup.verb };
        return Some(format!("the last loop here was '{last}', not '{this}'"));
    }
    let file = state.setup.prompt_file.as_ref().filter(|_| !same_prompt)?;
    Some(format!("the last loop here ran {}", file.display()))
}

/// Why a state belongs to another project, or to a copy of this one.
fn is_same_name(state: &State, setup: &Setup) -> bool {
    let name = |setup: &Setup| setup.prompt_file.as_deref().and_then(Path::file_name).map(OsStr::to_owned);
    name(&state.setup) == name(setup)
}

fn is_same_prompt(state: &State, setup: &Setup) -> bool {
    let files = state.setup.prompt_file.as_ref().zip(setup.prompt_file.as_ref());
    files.is_none_or(|(last, this)| last == this)
}
