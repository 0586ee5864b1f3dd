//! `ralph resume`: lets a loop that holds or waits go on, and restarts one whose process is gone.

use std::collections::HashSet;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::control::{Answer, ask, give, keep, not_yet, noun, see_status};
use super::fleet;
use super::output::{Said, remark};
use super::plain_loop::count as number;
use super::target;
use super::worker;
use crate::agent::pane::done::DonePattern;
use crate::cli::{PlaceArgs, ResumeArgs};
use crate::engine::outcome::{Outcome, Status};
use crate::engine::stop::{Change, Request};
use crate::job::detached::DETACHED;
use crate::job::resume::ACCEPT_CONFIG;
use crate::job::resume::RESUME;
use crate::job::workspace::open_with_secrets;
use crate::record::lookup::{Loop, NOT_OWN};
use crate::record::newer;
use crate::record::run_folder::RunStart;
use crate::record::state::{Pending, State};
use crate::text::redact::Redactor;
use crate::text::{count, redact};
use crate::view::next_step::{Ending, goes_on};

/// The beginning of words after [`RESUME`], which replace limits of the rest of the command line.
const RESUME_MORE: &str = "--resume-";

/// The one of these words that names a branch, for one start.
const ONLY: &str = "--resume-only=";

/// The new limits of a loop.
#[derive(Debug, Clone, Copy, Default)]
struct More<'a> {
    iterations: Option<u64>,
    /// Limits of money, tokens and time, by their flags.
    budgets: &'a [(&'static str, &'a str)],
    /// Only this branch of its command line, and those that it starts from.
    only: Option<&'a str>,
    /// Its process has no terminal.
    is_detached: bool,
    /// Whether changed settings are accepted, from the user or an agent.
    accepts_config: bool,
}

impl More<'_> {
    /// The flags for these limits.
    fn words(self) -> Vec<String> {
        let iterations = self.iterations.map(|limit| format!("--resume-limit={limit}"));
        let budgets = self.budgets.iter().map(|(flag, value)| format!("--resume-with={flag}={value}"));
        let only = self.only.map(|branch| format!("{ONLY}{branch}"));
        let accepts = self.accepts_config.then(|| ACCEPT_CONFIG.to_owned());
        let detached = self.is_detached.then(|| DETACHED.to_owned());
        iterations.into_iter().chain(budgets).chain(only).chain(accepts).chain(detached).collect()
    }
}

/// `ralph resume`.
pub(super) fn run(args: &ResumeArgs) -> anyhow::Result<u8> {
    let limit = args.max_iterations.as_deref().map(number).transpose()?;
    let budgets = args.raised.by_flag();
    if fleet::steer(&args.fleet, &args.target, Request::Resume)? {
        return Ok(0);
    }
    let (here, loops) = target::loops(&args.target)?;
    // The name of a branch selects that one alone.
    let only = loops.iter().find(|found| args.target.name.is_some() && found.project.is_of_branch());
    let only = only.map(|found| found.name.as_str());
    let more = More {
        iterations: limit,
        budgets: &budgets,
        only,
        accepts_config: args.accept_config,
        is_detached: args.detached,
    };
    let running: Vec<&Loop> = loops.iter().filter(|found| found.alive().is_some()).collect();
    if let ([found, ..], [(flag, _), ..]) = (&*running, &*budgets) {
        bail!("loop '{}' has not ended: {flag} is for one that has", found.name);
    }
    if !running.is_empty() {
        for found in running {
            if let Some(note) = &args.note {
                give(found, note)?.iter().for_each(Said::print);
            }
            go_on(found, limit)?.iter().for_each(Said::print);
        }
        return Ok(0);
    }
    loops.iter().try_for_each(|found| newer::refuse(&found.project))?;
    let (own, others): (Vec<&Loop>, Vec<&Loop>) = loops.iter().partition(|found| found.is_own());
    let states = || own.iter().filter_map(|found| Some((*found, found.state.as_deref().ok()?)));
    let mut cut_off: Vec<(&Loop, &State)> = states().filter(|(_, state)| state.was_interrupted()).collect();
    // Branches of one command line are resumed by that one.
    let mut commands = HashSet::new();
    cut_off
        .retain(|(_, state)| commands.insert((of_all(&state.argv), &state.cwd, &state.setup.started_from)));
    match (cut_off.as_slice(), states().next()) {
        ([(found, state)], _) => {
            let iterations =
                limit.map(|limit| of_allowance(limit, state)).or_else(|| given_meanwhile(found, state));
            keep_note(found, args)?;
            start_again(found, state, More { iterations, ..more })
        }
        ([_, _, ..], _) => {
            let names: Vec<&str> = cut_off.iter().map(|(found, _)| found.name.as_str()).collect();
            bail!("several loops were cut off here: {}: name the one to resume", names.join(", "))
        }
        ([], Some((found, state))) => {
            let Some(limit) = limit.filter(|_| has_reached_its_limit(state)) else {
                if found.project.is_of_worker() {
                    worker::close_left(found)?;
                }
                let line = new_allowance(&found.name, state);
                bail!(
                    "loop '{}' has come to its end ({}): start it again, or give it a new allowance with '{line}'{}",
                    found.name,
                    state.word(),
                    about_marks(&line)
                )
            };
            let left = left_of(limit, &found.name, state)?;
            keep_note(found, args)?;
            start_again(found, state, More { iterations: Some(left), ..more })
        }
        ([], None) => match others.first().map(|found| (found, &found.state)) {
            Some((_, Err(why))) => bail!("nothing to resume: {why}"),
            Some((found, Ok(_))) => bail!("{}", of_another(found)),
            None => bail!("nothing to resume in {}: there is no loop", here.root().display()),
        },
    }
}

/// Keeps the user's note for the first prompt.
fn keep_note(found: &Loop, args: &ResumeArgs) -> anyhow::Result<()> {
    args.note.as_ref().map_or(Ok(()), |note| keep(found, note).map(|said| said.print()))
}

/// A command line, without the branch that it was last for.
fn of_all(argv: &[String]) -> Vec<&String> {
    argv.iter().filter(|word| !word.starts_with(ONLY)).collect()
}

/// Why a loop with records that this user's ralph has not written here is not started.
fn of_another(found: &Loop) -> String {
    format!(
        "the records of loop '{}', {}: {NOT_OWN}: what \
         they say is not run. Start the loop by its own command line; with {RESUME} it goes on counting",
        found.name,
        found.project.state().display()
    )
}

/// Whether a loop has ended at its limit of iterations, with its work proven or not.
fn has_reached_its_limit(state: &State) -> bool {
    state.outcome().is_some_and(Outcome::wants_more_iterations)
}

/// The limit that a loop got while it ran, which its command line does not have; `None`: it is that of the start.
fn given_meanwhile(found: &Loop, state: &State) -> Option<u64> {
    let start = RunStart::read(&found.project.run(&state.run))?;
    state.max_iterations.filter(|_| start.identity.is_some() && start.max_iterations != state.max_iterations)
}

/// The number of the last iteration, counted from where a resumed loop began.
fn of_allowance(limit: u64, state: &State) -> u64 {
    limit.saturating_sub(state.tally.allowance_from)
}

/// The remaining iterations of a loop at its limit, under a new one.
fn left_of(limit: u64, name: &str, state: &State) -> anyhow::Result<u64> {
    let begun = state.tally.iteration;
    match limit.checked_sub(begun) {
        None | Some(0) => bail!("loop '{name}' has run {begun} iterations: --max-iterations has to be more"),
        Some(left) => Ok(left),
    }
}

/// The command with which a loop that has ended runs as often again.
fn new_allowance(name: &str, state: &State) -> String {
    goes_on(&Ending::of_state(name, state)).unwrap_or_else(|| {
        // Without the words that we have added.
        let is_ours = |word: &String| word.starts_with(RESUME_MORE);
        let own: Vec<String> = state.argv.iter().filter(|word| !is_ours(word)).cloned().collect();
        shown(&with_resume(&own, More::default()))
    })
}

/// A command line lacks secrets that were taken out.
fn about_marks(line: &str) -> &'static str {
    if line.contains(redact::MARK) { ", and the secrets in the place of their marks" } else { "" }
}

/// Gives a running loop a new limit, and lets it go on.
pub(super) fn go_on(found: &Loop, limit: Option<u64>) -> anyhow::Result<Vec<Said>> {
    let mut said = Vec::new();
    let Some(state) = found.alive() else { return Ok(said) };
    let name = &found.name;
    let holds = state.holds();
    if let Some(change) = change(name, state, limit)? {
        match ask(found, Request::Change(change), &|_| true)? {
            Answer::Taken(_) => {}
            Answer::Pending => said.push(not_yet(found)),
            Answer::Over => {
                bail!("loop '{name}' ended before it could be changed: {}", see_status(name))
            }
        }
    }
    if let Some(limit) = limit {
        said.push(Said::Answer(format!("loop '{name}' runs at most {} now", count::of(limit, "iteration"))));
        if state.status == Status::Running && !holds {
            return Ok(said);
        }
    }
    said.push(release(found, state, holds)?);
    Ok(said)
}

/// The change for a running loop; `None`: there is none.
fn change(name: &str, state: &State, limit: Option<u64>) -> anyhow::Result<Option<Change>> {
    // The user may change the file while the loop holds.
    let watching = state.watching().filter(|_| state.holds());
    if let Some(pattern) = watching.as_ref().and_then(|watching| watching.done_pattern.as_deref()) {
        DonePattern::new(pattern).with_context(|| format!("the state.json of worker '{name}'"))?;
    }
    let of_file = state.max_iterations.filter(|_| watching.is_some());
    let limit = limit.map(|limit| of_allowance(limit, state));
    let change = Change { max_iterations: limit.or(of_file), watching };
    Ok((change != Change::default()).then_some(change))
}

/// Lets a running loop go on.
fn release(found: &Loop, state: &State, holds: bool) -> anyhow::Result<Said> {
    let name = &found.name;
    if state.status == Status::Running && state.tally.in_attempt && !holds {
        return Ok(Said::Warning(format!("{} '{name}' is not paused", noun(state))));
    }
    if state.word() == "queued" && !holds {
        return Ok(Said::Warning(format!("loop '{name}' waits until fewer others are at work")));
    }
    let was = state.status;
    let is_done = |state: &State| {
        let goes_on = was == Status::Running || state.status != was;
        goes_on && state.pending != Some(Pending::Pause)
    };
    Ok(match ask(found, Request::Resume, &is_done)? {
        Answer::Taken(_) if was == Status::Waiting => {
            Said::Answer(format!("resumed ralph loop for {name}: it waits no longer"))
        }
        Answer::Taken(_) => Said::Answer(format!("resumed ralph loop for {name}")),
        Answer::Pending => not_yet(found),
        Answer::Over => bail!("loop '{name}' ended before it could go on: {}", see_status(name)),
    })
}

/// Becomes the loop: executes its command line, in its folder, with `--resume`.
fn start_again(found: &Loop, state: &State, more: More<'_>) -> anyhow::Result<u8> {
    let argv = with_resume(&state.argv, more);
    let [program, rest @ ..] = argv.as_slice() else {
        bail!("the command line of loop '{}' is not known: start it by hand with {RESUME}", found.name);
    };
    if !state.cwd.is_dir() {
        bail!("{} is gone, where loop '{}' was started: start it by hand", state.cwd.display(), found.name);
    }
    let typed: Vec<String> = argv.iter().filter(|word| *word != DETACHED).cloned().collect();
    let line = shown(&typed);
    remark(&format!("starting loop '{}' again in {}: {line}", found.name, state.cwd.display()));
    let exe = std::env::current_exe().context("cannot find our own executable")?;
    let ralph_dir = state.setup.started_from.as_deref().unwrap_or(found.project.ralph_dir());
    let error = Command::new(exe)
        .arg0(program)
        .args(with_secrets(rest, ralph_dir)?)
        .current_dir(&state.cwd)
        // The ralph dir may differ here if it was found by the environment or by the executable's place.
        .env("RALPH_DIR", ralph_dir)
        .exec();
    Err(error).with_context(|| format!("cannot run {line}"))
}

/// Words with the secrets put back that were taken out before they were kept.
fn with_secrets(words: &[String], ralph_dir: &Path) -> anyhow::Result<Vec<String>> {
    if !words.iter().any(|word| word.contains(redact::MARK)) {
        return Ok(words.to_vec());
    }
    let place = PlaceArgs { ralph_dir: Some(ralph_dir.to_owned()), ..PlaceArgs::default() };
    let settings = open_with_secrets(&place)?.settings;
    words.iter().map(|word| with_secret(word, &settings.secrets)).collect()
}

/// A word with its secrets put back.
pub(super) fn with_secret(word: &str, secrets: &Redactor) -> anyhow::Result<String> {
    secrets.restore(word).with_context(|| {
        format!("{word} stands for a secret that is not in the environment any more: set it, or start the loop by hand")
    })
}

/// The command line with `--resume` in front, where no `--` can come before it, and with new limits.
fn with_resume(argv: &[String], more: More<'_>) -> Vec<String> {
    let Some((program, rest)) = argv.split_first() else { return Vec::new() };
    // Words that an earlier call has added.
    let rest = rest.strip_prefix(&[RESUME.to_owned()]).unwrap_or(rest);
    let (earlier, rest) = rest.split_at(rest.iter().take_while(|word| word.starts_with(RESUME_MORE)).count());
    let new = more.words();
    let limit_of = |word: &str| word.rsplit_once('=').map(|(limit, _)| limit.to_owned());
    let earlier = earlier.iter().filter(|old| !old.starts_with(ONLY));
    let still = earlier.filter(|old| new.iter().all(|new| limit_of(new) != limit_of(old)));
    let is_there = rest.iter().take_while(|word| *word != "--").any(|word| word == RESUME);
    let resume = (!is_there).then(|| RESUME.to_owned());
    let resumed = [program.clone()].into_iter().chain(resume).chain(still.cloned());
    resumed.chain(new.iter().cloned()).chain(rest.iter().cloned()).collect()
}

/// A command line as one would type it.
fn shown(argv: &[String]) -> String {
    shlex::try_join(argv.iter().map(String::as_str)).unwrap_or_else(|_| argv.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_is_added_once_and_before_the_users_arguments() {
        let line = |text: &str| {
            let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
            shown(&with_resume(&argv, More::default()))
        };
        assert_eq!(line("ralph build 3"), "ralph --resume build 3");
        assert_eq!(line("ralph build --resume 3"), "ralph build --resume 3");
        assert_eq!(line("ralph run x -- --resume"), "ralph --resume run x -- --resume");
        assert!(with_resume(&[], More::default()).is_empty());
    }

    #[test]
    fn a_new_limit_takes_the_place_of_the_last_one() {
        let with = |more, text: &str| {
            let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
            with_resume(&argv, more).join(" ")
        };
        let line = |iterations, text: &str| with(More { iterations, ..More::default() }, text);
        let limited = "ralph --resume --resume-limit=30 build 3";
        assert_eq!(line(Some(30), "ralph build 3"), limited);
        assert_eq!(line(Some(30), "ralph --resume --resume-limit=9 build 3"), limited);
        assert_eq!(line(None, limited), limited);
        let cost = More { budgets: &[("--max-cost", "5")], ..More::default() };
        let both = "ralph --resume --resume-limit=30 --resume-with=--max-cost=5 build 3";
        assert_eq!(with(cost, limited), both);
        assert_eq!(with(cost, both), both);
        let tokens = More { budgets: &[("--max-tokens", "9")], ..More::default() };
        let all = "ralph --resume --resume-limit=30 --resume-with=--max-cost=5 --resume-with=--max-tokens=9 build 3";
        assert_eq!(with(tokens, both), all);
    }
}
