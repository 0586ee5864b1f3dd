//! The status of a loop, for people and for programs: a pure render of its state.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use chrono::Utc;
use serde_json::{Value, json};

use super::next_step::{Ending, goes_on};
use super::snapshot::LoopSnapshot;
use super::worker_status;
use crate::engine::budget::{Budget, Limit, Unit};
use crate::engine::fact::TaskCounts;
use crate::record::state::{AtTask, State};
use crate::tell::words::{self, tries_now};
use crate::text::line::shell_word;
use crate::text::terminal::message;
use crate::text::{count, duration, line, timestamp};

impl LoopSnapshot<'_> {
    /// The object of `--json`.
    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let project = self.found.project.root().to_string_lossy();
        let ralph_dir = self.found.project.ralph_dir().to_string_lossy();
        let state = match &self.found.state {
            Ok(state) => state,
            Err(why) => {
                return json!({
                    "name": self.found.name, "status": self.word(), "error": why,
                    "project": project, "ralph_dir": ralph_dir,
                });
            }
        };
        let (tally, setup) = (&state.tally, &state.setup);
        let mut object = json!({
            "name": state.name,
            "mode": state.mode,
            "agent": state.agent,
            "agent_command": state.agent_command,
            "run": state.run,
            "status": self.word(),
            "pending": state.pending.filter(|_| self.alive),
            "pid": self.alive.then_some(state.process.pid),
            "current_iteration": tally.iteration,
            "max_iterations": state.last_iteration(),
            "consecutive_failures": tally.consecutive_errors,
            "total_failures": tally.failed,
            "timeouts": tally.timeouts,
            "exit_reason": self.exit_reason(state),
            "exit_code": state.exit_code,
            "started": state.started_at,
            "ended": state.ended_at,
            "last_iteration_started": state.last_iteration_at,
            "last_iteration_ended": state.last_iteration_ended_at,
            "waiting_until": state.waiting_until.filter(|_| self.alive),
            "waiting_for": state.waiting_for.as_ref().filter(|_| self.alive),
            "iteration_durations": tally.durations.last,
            "average_duration": Self::average(state),
            "remaining": self.remaining(state),
            "prompt_file": setup.prompt_file.as_ref().map(|path| path.to_string_lossy()),
            "done_pattern": setup.done_pattern,
            "inactivity_timeout": setup.inactivity_timeout,
            "last_commit": tally.last_commit,
            "last_error": tally.last_error,
            "cost_usd": tally.spent.cost_usd,
            "input_tokens": tally.spent.input_tokens,
            "output_tokens": tally.spent.output_tokens,
            "agent_model": state.agent_model,
            "agent_session": state.agent_session,
            "context_tokens": state.agent_context.map(|context| context.tokens),
            "context_window": state.agent_context.map(|context| context.window),
            "session_log": state.session_log.as_ref().map(|path| path.to_string_lossy()),
            "argv": state.argv,
            "cwd": state.cwd.to_string_lossy(),
            "project": project,
            "ralph_dir": ralph_dir,
        });
        for (name, amount) in state.budget.json() {
            object[name] = amount;
        }
        object["agent_instead"] = json!(state.agent_instead);
        object["attempts"] = tally.durations.count.into();
        object["failed_attempts"] = tally.error_count.into();
        object["validation_error"] = tally.last_validation_error().into();
        object["proof"] = json!(state.proof);
        self.add_worker(state, &mut object);
        object["task"] = state.at_task.as_ref().map_or(Value::Null, task_json);
        object["tasks"] = json!(self.tasks);
        object
    }
}

fn task_json(at: &AtTask) -> Value {
    json!({
        "id": at.task,
        "title": at.task_title,
        "feature": at.task_feature,
        "model": at.task_model,
        "verifies": at.task_verifies,
        "outcome": at.task_became,
    })
}

/// Writes the output of `ralph status` about one loop.
pub(crate) fn write_text(snapshot: &LoopSnapshot<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut line = |name: &str, value: &dyn Display| writeln!(out, "{name}: {}", shown(&value.to_string()));
    line("Ralph Loop", &snapshot.found.name)?;
    let state = match &snapshot.found.state {
        Ok(state) => state,
        Err(why) => return line("Status", &format_args!("unknown ({why})")),
    };
    if let Some(worker) = &snapshot.worker {
        return worker_status::write_block(snapshot, state, worker, &mut line);
    }
    let pending = snapshot.pending(state);
    line("Status", &format_args!("{}{pending}", snapshot.word()))?;
    line("Mode", &format_args!("{}, agent {}", state.mode, state.agent))?;
    if let Some(why) = &state.agent_instead {
        line("Agent changed", why)?;
    }
    if let Some(command) = &state.agent_command {
        line("Agent command", command)?;
    }
    if let Some(model) = &state.agent_model {
        line("Model", model)?;
    }
    if let Some(context) = state.agent_context {
        line("Context", &context)?;
    }
    if let Some(TaskCounts { done, failed, total }) = snapshot.tasks {
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        line("Tasks", &format_args!("{done}/{total} done{failed}"))?;
    }
    if let Some(at) = &state.at_task {
        write_task(at, &mut line)?;
    }
    line("Iteration", &snapshot.iteration(state))?;
    line("Started", &timestamp::local(&state.started_at))?;
    match (state.tally.in_attempt && snapshot.alive, state.last_iteration_at, state.last_iteration_ended_at) {
        (true, Some(at), _) => line("Current iteration started", &timestamp::local(&at))?,
        (false, _, Some(at)) => line("Last iteration ended", &timestamp::local(&at))?,
        _ => {}
    }
    if let Some(until) = state.waiting_until.filter(|_| snapshot.alive) {
        let left = duration::rough((until - Utc::now()).to_std().unwrap_or_default());
        let now = tries_now(&shell_word(&state.name));
        line("Waiting until", &format_args!("{} ({left} left; {now})", timestamp::local(&until)))?;
    }
    if let Some(what) = state.waiting_for.as_ref().filter(|_| snapshot.alive) {
        if words::is_for_store(what) {
            line("Waits", what)?;
        } else {
            line("Waiting for", &format_args!("{what} ({})", tries_now(&shell_word(&state.name))))?;
        }
    }
    if state.ended_at.is_some() {
        // That of all its processes, as in reports.
        line("Total duration", &duration::rough(duration::of_seconds(state.tally.elapsed_seconds)))?;
    }
    write_counts(state, snapshot.found.project.is_of_branch(), &mut line)?;
    if snapshot.alive {
        line("Process", &state.process.pid)?;
    }
    if let Some(next) =
        snapshot.advice().and_then(|advice| advice.command).filter(|_| snapshot.found.is_own())
    {
        line("Next", &next)?;
    }
    match (snapshot.exit_reason(state), state.exit_code) {
        (None, _) => line("Exit reason", &"(none - still running)"),
        (Some(word), Some(code)) => {
            let next = if state.was_interrupted() { how(state) } else { String::new() };
            line("Exit reason", &format_args!("{word} (exit code {code}{next})"))?;
            let is_told = |detail: &&String| state.proof.as_ref().is_some_and(|proof| proof.by == **detail);
            let detail = state.exit_detail.as_ref().filter(|detail| !is_told(detail));
            detail.map_or(Ok(()), |detail| line("Exit detail", detail))
        }
        (Some(word), None) => line("Exit reason", &format_args!("{word} (ralph was killed{})", how(state))),
    }
}

/// The command for a loop that was cut off.
fn how(state: &State) -> String {
    let command = goes_on(&Ending::of_state(&state.name, state));
    command.map(|command| format!("; '{command}' goes on")).unwrap_or_default()
}

fn write_task(at: &AtTask, line: &mut dyn FnMut(&str, &dyn Display) -> io::Result<()>) -> io::Result<()> {
    let became = match &at.task_became {
        Some(word) => format!(" ({word})"),
        None if at.task_verifies => " (is verified)".to_owned(),
        None => String::new(),
    };
    line("Task", &format_args!("{} {}{became}", at.task, at.task_title))?;
    if let Some(feature) = &at.task_feature {
        line("Feature", feature)?;
    }
    if let Some(model) = &at.task_model {
        line("Task model", model)?;
    }
    Ok(())
}

fn write_counts(
    state: &State,
    is_of_branch: bool,
    line: &mut dyn FnMut(&str, &dyn Display) -> io::Result<()>,
) -> io::Result<()> {
    let tally = &state.tally;
    line("Consecutive failures", &tally.consecutive_errors)?;
    line("Total failures", &tally.failed)?;
    if tally.durations.count > tally.iteration {
        let failed = tally.error_count;
        line("Attempts", &format_args!("{} ({failed} failed)", tally.durations.count))?;
    }
    line("Timeouts", &tally.timeouts)?;
    if let Some(seconds) = state.setup.inactivity_timeout {
        line("Inactivity timeout", &format_args!("{seconds}s"))?;
    }
    if let Some(pattern) = &state.setup.done_pattern {
        line("Done pattern", pattern)?;
    }
    if let Some(path) = &state.setup.prompt_file {
        line("Prompt file", &path.display())?;
    }
    if let Some(commit) = &tally.last_commit {
        line("Last commit", commit)?;
    }
    if let Some(error) = &tally.last_error {
        line("Last error", error)?;
    }
    // The proof of a loop that has ended says the same.
    match (&state.proof, tally.refutation()) {
        (Some(proof), _) => line("Proof", &words::proof(proof).text)?,
        (None, Some(why)) => line("Validation", &why)?,
        (None, None) => {}
    }
    if let Some(cost) = tally.spent.cost_usd.filter(|cost| *cost > 0.0) {
        line("Cost", &format_args!("${cost:.4}"))?;
    }
    if tally.spent.input_tokens.saturating_add(tally.spent.output_tokens) > 0 {
        line("Tokens", &format_args!("{} in, {} out", tally.spent.input_tokens, tally.spent.output_tokens))?;
    }
    if let Some(budget) = budget(&state.budget, is_of_branch) {
        line("Budget", &budget)?;
    }
    Ok(())
}

/// Its budget: `at most $5.00 · 2.0M tokens · 2h`; `None` without one. That of a branch is one for all branches that are built
/// together.
pub(in crate::view) fn budget(budget: &Budget, is_of_branch: bool) -> Option<String> {
    let amount = |limit: Limit| in_unit(limit.row().unit, budget.get(limit)?);
    let parts: Vec<String> = Limit::ALL.into_iter().filter_map(amount).collect();
    let shared = if is_of_branch { ", for all branches together" } else { "" };
    (!parts.is_empty()).then(|| format!("at most {}{shared}", parts.join(" · ")))
}

/// `$5.00`, `2.0M tokens`, `2h`; `None` for a time that cannot be represented.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn in_unit(unit: Unit, amount: f64) -> Option<String> {
    Some(match unit {
        Unit::Dollars => format!("${amount:.2}"),
        Unit::Count(what) => format!("{} {what}", count::short(amount as u64)),
        Unit::Seconds => duration::format(Duration::try_from_secs_f64(amount).ok()?),
    })
}

/// A value as it may be shown: one line, without escape sequences, with its own blanks.
pub(super) fn shown(value: &str) -> String {
    message(&line::joined(value, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_told_where_there_is_one() {
        let of = |amounts: &[(Limit, f64)]| {
            let amount = |limit| amounts.iter().find(|(known, _)| *known == limit).map(|(_, amount)| *amount);
            budget(&Budget::of(amount), false)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(Limit::Cost, 5.0)]).unwrap(), "at most $5.00");
        let shared = Budget { max_tokens: Some(2_000_000), ..Budget::default() };
        assert_eq!(budget(&shared, true).unwrap(), "at most 2.0M tokens, for all branches together");
        let all = [(Limit::Cost, 5.0), (Limit::Tokens, 2e6), (Limit::Duration, 5400.0)];
        assert_eq!(of(&all).unwrap(), "at most $5.00 · 2.0M tokens · 1h30m");
    }
}
