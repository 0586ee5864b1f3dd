//! The wording of facts: the one place that words an attempt, a wait, a validation or an end. Only lines that scripts
//! know from earlier programs differ (`blocks.rs`, and the lines of runs and of workers).

use std::fmt::Write as _;
use std::path::Path;

use anstyle::Style;
use chrono::{DateTime, FixedOffset, Local, TimeZone};
use unicode_width::UnicodeWidthStr as _;

use crate::engine::fact::{Asked, AttemptEnded, ChangeReason, Fact, LoopEnded, WaitReason, Word};
use crate::engine::outcome::{Ended, Outcome, Phase, Stand};
use crate::engine::report::AttemptStatus;
use crate::engine::stop::Urgency;
use crate::engine::validation::{Evidence, Standing, reason};
use crate::reply::show::Leave;
use crate::text::duration::of_seconds;
use crate::text::line::{one_line_within, shell_word};
use crate::text::palette::{ERROR, FAINT, GOOD, NOTE, QUESTION, STRONG};
use crate::text::terminal::message;
use crate::text::wrap::wrapped;
use crate::text::{count, duration, timestamp};

/// The longest reason in a line, in characters.
const REASON: usize = 300;
/// With less space than this beside a line's mark, in cells, wrapping is left to the terminal.
const LEAST_ROOM: usize = 16;
/// The separator between two figures of a line.
pub(crate) const GAP: &str = " · ";

/// The kind of an entry, which decides its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An attempt begins.
    Begin,
    /// A whole block of the assistant's text.
    Text,
    /// A piece of the assistant's text, which continues the last piece.
    Piece,
    /// A piece of the agent's thoughts, which continues the last one.
    Thought,
    /// A tool call: `mark` is the tool's name, the text the most informative part of its input.
    Tool,
    /// Success.
    Good,
    /// An error.
    Error,
    /// A notice.
    Note,
    /// A question.
    Question,
    /// Less important text.
    Faint,
}

impl Kind {
    /// The style of its line.
    pub(crate) fn style(self) -> Style {
        match self {
            Self::Begin | Self::Tool => STRONG,
            Self::Good => GOOD,
            Self::Error => ERROR,
            Self::Note => NOTE,
            Self::Question => QUESTION,
            Self::Faint | Self::Thought => FAINT,
            Self::Text | Self::Piece => Style::new(),
        }
    }
}

/// A fact in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// The first word of its line: a sign, or the name of a tool. Empty for the agent's text.
    pub(crate) mark: String,
    /// The agents' original text: it may hold anything, including terminal escapes.
    pub(crate) text: String,
}

impl Entry {
    pub(crate) fn new(kind: Kind, mark: &str, text: impl Into<String>) -> Self {
        Self { kind, mark: mark.to_owned(), text: text.into() }
    }

    /// Its line, wrapped between words to the width; further lines are indented below the text after the mark.
    pub(crate) fn line(&self, width: Option<usize>) -> String {
        let (style, text) = (self.kind.style(), message(&self.text));
        let head = format!("{} ", self.mark);
        let indent = head.width();
        let lines = match width.and_then(|width| width.checked_sub(indent)) {
            Some(room) if room >= LEAST_ROOM => wrapped(&text, room, usize::MAX),
            _ => vec![text],
        };
        let mut broken = String::new();
        for (at, line) in lines.iter().enumerate() {
            let head = if at == 0 { &head } else { &" ".repeat(indent) };
            // Writing to a String cannot fail.
            let _ = writeln!(broken, "{style}{head}{line}{style:#}");
        }
        broken
    }

    /// The lines of a command's output that are shown below it: all but the line that it quotes.
    pub(crate) fn below<'a>(&self, output: &'a str) -> &'a str {
        output.strip_prefix(&self.text).map_or(output, |rest| rest.trim_start_matches(['\r', '\n']))
    }
}

/// A fact at that time in words; `None` if it has no line of its own.
pub(crate) fn entry<Z: TimeZone>(fact: &Fact<'_>, at: &DateTime<Z>) -> Option<Entry> {
    Some(match fact {
        Fact::Text { text } => Entry::new(Kind::Text, "", &**text),
        Fact::TextDelta { text } => Entry::new(Kind::Piece, "", &**text),
        Fact::Thought { text } => Entry::new(Kind::Thought, "", &**text),
        Fact::Tool { input, name } => Entry::new(Kind::Tool, name, &**input),
        Fact::AgentError { message } => Entry::new(Kind::Error, "✗", &**message),
        Fact::AgentNotice { message } => Entry::new(Kind::Note, "↻", &**message),
        Fact::Permission { answer, what, .. } => {
            let (kind, mark, said) = match answer {
                Word::Known(Leave::Allowed) => (Kind::Faint, "✓", "allowed"),
                Word::Known(Leave::Refused) => (Kind::Note, "✗", "refused, it may only look"),
                Word::Known(Leave::Unanswered) | Word::Other(_) => {
                    (Kind::Note, "✗", "not answered, no answer fits")
                }
            };
            Entry::new(kind, mark, format!("{said}: {what}"))
        }
        Fact::Background { at_most_s, tasks } => {
            let at_most = duration::format(of_seconds(*at_most_s));
            let text =
                format!("the agent waits for what it has in the background: {tasks} (at most {at_most})");
            Entry::new(Kind::Faint, "⏸", text)
        }
        Fact::AttemptEnded(ended) => attempt_ended(ended, None, false),
        Fact::LoopEnded(ended) => loop_ended(ended, ended.outcome(), ended.detail.as_deref()),
        fact => {
            return task(fact)
                .or_else(|| validation(fact))
                .or_else(|| pause(fact, at))
                .or_else(|| remark(fact));
        }
    })
}

/// The begin of an attempt; `last` is the number of the last iteration that may begin: `Iteration 3 of 20, retry 1`.
pub(crate) fn attempt_begins(iteration: u64, last: Option<u64>, retry: u32) -> Entry {
    let of = last.map(|last| format!(" of {last}")).unwrap_or_default();
    let retry = if retry > 0 { format!(", retry {retry}") } else { String::new() };
    Entry::new(Kind::Begin, "▶", format!("Iteration {iteration}{of}{retry}"))
}

/// How an attempt has ended: the style of its line, its sign, the outcome, and the word before its duration.
pub(crate) type How = (Kind, &'static str, &'static str, &'static str);

/// How an attempt with this status has ended. `is_of_task`: the line of its task says how the work has ended.
pub(crate) fn how(status: AttemptStatus, is_of_task: bool) -> How {
    match status {
        AttemptStatus::Success | AttemptStatus::Still if is_of_task => (Kind::Faint, "·", "ended", " after"),
        AttemptStatus::Success | AttemptStatus::Still => (Kind::Good, "✓", "completed", " in"),
        AttemptStatus::CompleteUnproven => {
            (Kind::Note, "?", "says that all is done, which is not proven", ", after")
        }
        AttemptStatus::UsageLimit => (Kind::Note, "⏸", "met a usage limit", " after"),
        AttemptStatus::Interrupted => (Kind::Note, "■", "was interrupted", " after"),
        AttemptStatus::Timeout => (Kind::Error, "⏱", "timed out", " after"),
        AttemptStatus::AgentFailure => (Kind::Error, "✗", "failed", " after"),
    }
}

/// The end of an attempt, without the reason of a failure: `Iteration 3 completed in 1m5s · $0.12 · 12.3k tokens in,
/// 1.2k out`. `refuted`: why its work has not passed its validation, which follows.
pub(crate) fn attempt_ended(ended: &AttemptEnded<'_>, refuted: Option<&str>, is_of_task: bool) -> Entry {
    let took = duration::elapsed_tenths(ended.duration());
    let how = how(ended.status(), is_of_task);
    let entry = iteration_ended(ended.iteration, how, refuted.is_some(), &took);
    let why = refuted.map(|why| format!(": {}", one_line_within(why, REASON))).unwrap_or_default();
    Entry { text: spent(Some(entry.text), ended) + &why, ..entry }
}

/// The end of an iteration without cost and reason, for records without a cost; `took` is a duration in words, or empty.
pub(crate) fn iteration_ended(iteration: u64, how: How, is_refuted: bool, took: &str) -> Entry {
    let (kind, mark, how, after) = match how {
        (Kind::Good | Kind::Faint, ..) if is_refuted => (Kind::Note, "?", "is not valid", ", after"),
        how => how,
    };
    let took = if took.is_empty() { String::new() } else { format!("{after} {took}") };
    Entry::new(kind, mark, format!("Iteration {iteration} {how}{took}"))
}

/// The model of an attempt, and its cost: `haiku · $0.12 · 12.3k tokens in, 1.2k out`; empty if nothing is known.
pub(crate) fn cost(ended: &AttemptEnded<'_>) -> Entry {
    Entry::new(Kind::Faint, "Σ", spent(ended.usage.model.as_ref().map(ToString::to_string), ended))
}

fn spent(of: Option<String>, ended: &AttemptEnded<'_>) -> String {
    let tokens = ended.usage.input_tokens.zip(ended.usage.output_tokens).unwrap_or_default();
    figures([of, count::money(ended.cost_usd()), count::tokens(tokens)])
}

/// The known figures in a row.
pub(crate) fn figures(known: impl IntoIterator<Item = Option<String>>) -> String {
    known.into_iter().flatten().collect::<Vec<_>>().join(GAP)
}

/// The end of a loop, and why: `failed: too many failures in a row: claude exited with 3`.
pub(crate) fn loop_ended(ended: &LoopEnded<'_>, outcome: Option<Outcome>, detail: Option<&str>) -> Entry {
    let word = match (outcome, &ended.end) {
        (Some(outcome), _) => outcome.ended().word(),
        (None, Some(Word::Known(end))) => end.word(),
        (None, Some(Word::Other(word))) => word,
        (None, None) => "ended",
    };
    ended_by(word, outcome.map(Outcome::reason), detail)
}

/// The end of a loop in one word, its reason, and details.
pub(crate) fn ended_by(word: &str, reason: Option<&str>, detail: Option<&str>) -> Entry {
    let detail = detail.filter(|detail| !detail.is_empty());
    let is_told = |reason: &str| reason == word || detail.is_some_and(|detail| detail.starts_with(reason));
    let reason = reason.filter(|reason| !is_told(reason));
    let parts = [Some(word), reason, detail];
    let (kind, _) = kind_of(word);
    Entry::new(kind, "■", parts.into_iter().flatten().collect::<Vec<_>>().join(": "))
}

/// What shows that work is good: `proven: npm test`, `passed: npm test`, `unchecked: the agent's word`, `refuted: npm test failed …`.
pub(crate) fn proof(proof: &Evidence) -> Entry {
    let (kind, mark) = match proof.standing {
        Standing::Proven => (Kind::Good, "✓"),
        Standing::Passed => (Kind::Faint, "✓"),
        Standing::Unchecked => (Kind::Note, "?"),
        Standing::Refuted => (Kind::Error, "✗"),
    };
    Entry::new(kind, mark, proof.to_string())
}

/// The style for the state or the end of a loop in one word, and the sign before its name.
fn kind_of(end: &str) -> (Kind, &'static str) {
    let Some(stand) = Stand::of(end) else { return (Kind::Note, "■") };
    match stand {
        Stand::Live(Phase::Running) => (Kind::Begin, "▶"),
        Stand::Live(Phase::NeedsAttention) => (Kind::Question, "?"),
        Stand::Live(Phase::Queued) => (Kind::Faint, "·"),
        Stand::Live(Phase::Waiting) => (Kind::Note, "…"),
        Stand::Live(Phase::Paused) => (Kind::Note, "‖"),
        Stand::Ended(Ended::Done) => (Kind::Good, "✓"),
        Stand::Ended(Ended::Unproven) => (Kind::Error, "?"),
        Stand::Ended(Ended::Failed | Ended::Error | Ended::Empty | Ended::Killed) => (Kind::Error, "✗"),
        Stand::Ended(
            Ended::Limit
            | Ended::Budget
            | Ended::Idle
            | Ended::Interrupted
            | Ended::Cancelled
            | Ended::Replan
            | Ended::Blocked,
        ) => (Kind::Note, "■"),
    }
}

/// The sign before the name of a loop or a task with this state or end, and its colour: green is only what is proven.
pub(crate) fn sign(end: &str, proof: Option<&Evidence>) -> (Style, &'static str) {
    let (kind, mark) = match (kind_of(end), proof.map(|proof| proof.standing)) {
        ((Kind::Good, mark), Some(Standing::Unchecked | Standing::Refuted)) => (Kind::Note, mark),
        (known, _) => known,
    };
    (kind.style(), mark)
}

/// A fact about the task of an iteration.
fn task(fact: &Fact<'_>) -> Option<Entry> {
    Some(match fact {
        Fact::TaskStarted { task, verifies, .. } => {
            let what = if *verifies { "verifies" } else { "works on" };
            let model = task.model.as_ref().map(|model| format!(" with {model}")).unwrap_or_default();
            Entry::new(Kind::Faint, "▶", format!("{what} {}{model}: {}", task.id, task.title))
        }
        Fact::Verifying { task } => {
            Entry::new(Kind::Faint, "▶", format!("a fresh agent verifies {}", task.id))
        }
        Fact::Verified { task, ok: true, .. } => {
            Entry::new(Kind::Good, "✓", format!("{} has passed its verification", task.id))
        }
        Fact::Verified { task, ok: false, reason } => {
            let reason = one_line_within(reason, REASON);
            Entry::new(Kind::Error, "✗", format!("{} has not passed its verification: {reason}", task.id))
        }
        Fact::TaskEnded { outcome, reason, task, tasks } => {
            let (kind, mark, what) = match &**outcome {
                "done" => (Kind::Good, "✓", "is done"),
                // The next fact has more of it.
                "landing" => return None,
                "failed" => (Kind::Error, "✗", "has failed"),
                "retried" => (Kind::Note, "↻", "is to be done again"),
                _ => (Kind::Note, "↻", "goes back"),
            };
            let reason = one_line_within(reason, REASON);
            let why = if reason.is_empty() { reason } else { format!(": {reason}") };
            Entry::new(kind, mark, format!("{} {what} ({}/{} tasks){why}", task.id, tasks.done, tasks.total))
        }
        fact => return landing(fact),
    })
}

/// A fact about work on its way to the trunk.
fn landing(fact: &Fact<'_>) -> Option<Entry> {
    Some(match fact {
        Fact::LandingQueued { commit, task, trunk, .. } => Entry::new(
            Kind::Faint,
            "↷",
            format!("{} is finished, and waits to land on {trunk}: {commit:.10}", task.id),
        ),
        Fact::GateStarted { tasks, trunk, .. } => {
            Entry::new(Kind::Faint, "▶", format!("gate: {}", gated(tasks, trunk)))
        }
        Fact::GateEnded { duration_s, ok, output, tasks, trunk, .. } => {
            let took = duration::format(of_seconds(duration_s.round()));
            let gated = gated(tasks, trunk);
            if *ok {
                return Some(Entry::new(Kind::Faint, "✓", format!("gate passed in {took}: {gated}")));
            }
            let said = one_line_within(output, REASON);
            Entry::new(Kind::Error, "✗", format!("gate failed in {took}: {gated}: {said}"))
        }
        Fact::Landed { commit, task, tasks, trunk } => {
            let count = format!("{}/{} tasks", tasks.done, tasks.total);
            Entry::new(
                Kind::Good,
                "✓",
                format!("{} has landed on {trunk} as {commit:.10} ({count})", task.id),
            )
        }
        Fact::Returned { failed, reason, task, .. } => {
            let reason = one_line_within(reason, REASON);
            let (kind, mark, what) = match failed {
                true => (Kind::Error, "✗", "could not land, and has failed"),
                false => (Kind::Note, "↻", "could not land, and goes back"),
            };
            Entry::new(kind, mark, format!("{} {what}: {reason}", task.id))
        }
        _ => return None,
    })
}

/// What a gate is about: `t-3f9a01 with 3 others on main`, or the trunk itself.
pub(crate) fn gated(tasks: &[String], trunk: &str) -> String {
    match tasks {
        [] => format!("{trunk} itself"),
        [one] => format!("{one} on {trunk}"),
        [one, others @ ..] => format!("{one} with {} on {trunk}", count::of(others.len() as u64, "other")),
    }
}

/// The result of a command that ran beside the agent, without its output.
fn validation(fact: &Fact<'_>) -> Option<Entry> {
    Some(match fact {
        Fact::Validated { by, ok: true, .. } => {
            // Whether that proves a claim is known later.
            proof(&Evidence::passed(by.as_deref()))
        }
        Fact::Validated { by, output, undecided, .. } => {
            Entry::new(Kind::Error, "✗", reason(by.as_deref(), *undecided, output))
        }
        Fact::HookEnded { hook, ok: true, .. } => {
            Entry::new(Kind::Faint, "✓", format!("hook {hook} is through"))
        }
        Fact::HookEnded { hook, .. } => Entry::new(Kind::Error, "✗", format!("hook {hook} has failed")),
        _ => return None,
    })
}

/// A pause, or its end.
fn pause<Z: TimeZone>(fact: &Fact<'_>, at: &DateTime<Z>) -> Option<Entry> {
    Some(match fact {
        Fact::Retrying { max_retries, pause_s, retry, .. } => {
            let pause = Some(of_seconds(*pause_s)).filter(|pause| !pause.is_zero());
            let pause = pause.map(|pause| format!(" in {}", duration::format(pause))).unwrap_or_default();
            Entry::new(Kind::Note, "↻", format!("retry {retry}/{max_retries}{pause}"))
        }
        Fact::BackingOff { pause_s, .. } => {
            let pause = duration::format(of_seconds(*pause_s));
            Entry::new(Kind::Note, "⏸", format!("the next iteration begins in {pause}"))
        }
        Fact::Waiting { .. } => Entry::new(Kind::Note, "⏸", waiting(fact, at.with_timezone(&Local))?),
        Fact::Queued => Entry::new(Kind::Faint, "⏸", QUEUED),
        Fact::Paused => Entry::new(Kind::Note, "⏸", PAUSED),
        Fact::Resumed { .. } | Fact::AttentionOver => Entry::new(Kind::Note, "▶", "going on"),
        _ => return None,
    })
}

/// Messages between ralph and the user.
fn remark(fact: &Fact<'_>) -> Option<Entry> {
    Some(match fact {
        Fact::NeedsAttention { screen } => {
            Entry::new(Kind::Question, "?", format!("needs attention: {screen}"))
        }
        Fact::Question { text } => Entry::new(Kind::Question, "?", &**text),
        Fact::Answered { text } => Entry::new(Kind::Note, "›", text.as_deref().unwrap_or("no answer")),
        Fact::Asked { note: Some(note), .. } => Entry::new(Kind::Note, "✎", format!("note: {note}")),
        Fact::AgentChanged { from, reason, to, until, waits_until } => {
            let does = if waits_until.is_some() { "is next" } else { "goes on" };
            Entry::new(Kind::Note, "⇄", format!("{}: {to} {does}", away(from, reason, until.as_ref())))
        }
        Fact::LimitsChanged { .. } => {
            Entry::new(Kind::Note, "▶", "what was changed holds from the next iteration on")
        }
        Fact::Published { message } => Entry::new(Kind::Faint, "↑", &**message),
        Fact::Refused(refused) => Entry::new(Kind::Note, "⊘", refused.told()),
        Fact::Notice { message } => Entry::new(Kind::Note, "!", &**message),
        Fact::Recovered { attempts, cost_usd, .. } => {
            Entry::new(Kind::Note, "!", recovered(*attempts, *cost_usd))
        }
        _ => return None,
    })
}

/// Why another agent goes on in the place of `from`, which may be tried again at `until`.
fn away(from: &str, reason: &Word<ChangeReason>, until: Option<&DateTime<FixedOffset>>) -> String {
    let why = match reason.known() {
        Some(ChangeReason::UsageLimit) => {
            let until = until.map(|until| format!(" until {}", timestamp::local(until)));
            format!("has met its usage limit{}", until.unwrap_or_default())
        }
        Some(ChangeReason::Credit) => "is out of credit".to_owned(),
        Some(ChangeReason::Login) => "is not logged in".to_owned(),
        Some(ChangeReason::Overload) => "has an overloaded provider".to_owned(),
        Some(ChangeReason::Network) => "has no connection to its provider".to_owned(),
        Some(ChangeReason::Back) => return "it can work again".to_owned(),
        None => "cannot go on".to_owned(),
    };
    format!("{from} {why}")
}

/// A lock of git's that was removed.
pub(crate) fn left_lock(lock: &Path) -> String {
    let lock = lock.display();
    format!("removed {lock}: an agent that was ended inside of git left this lock, and no process holds it")
}

/// What a start has read about an earlier process that was killed, in one line.
pub(crate) fn recovered(attempts: u64, cost_usd: Option<f64>) -> String {
    let are = count::are(attempts);
    let cost = count::money(cost_usd).unwrap_or_default();
    if attempts == 0 {
        return format!("the last run was cut off: {cost} that it had not booked is counted");
    }
    let cost = if cost.is_empty() { cost } else { format!(" ({cost})") };
    let attempts = count::of(attempts, "attempt");
    format!("the last run was cut off: {attempts} that it had not booked {are} counted{cost}")
}

/// The effect of a signal, or of a request from another terminal; `None` if it has no line.
pub(crate) fn asked(what: Asked, urgency: Urgency, is_at_work: bool) -> Option<Entry> {
    let text = match (what, urgency) {
        (Asked::Note, _) => "a note was taken for the next prompt",
        (Asked::Pause, _) => "pausing after this attempt",
        (Asked::Detach, _) => "its state is cleaned away: the agent works on by itself",
        (Asked::Resume | Asked::Change, _) | (_, Urgency::None) => return None,
        (Asked::HangUp, Urgency::AfterAttempt) => "the terminal was closed: stopping after this attempt",
        (Asked::GraceOver, Urgency::Now) => "the attempt has had its time after the signal: ending the agent",
        (_, Urgency::AfterAttempt) if is_at_work => {
            "stopping after this attempt; press Ctrl+C again to end the agent now"
        }
        (_, Urgency::AfterAttempt) => "stopping",
        (_, Urgency::Now) => "ending the agent; press Ctrl+C again to kill it and leave",
        (_, Urgency::AtOnce) => "killing the agent",
    };
    Some(Entry::new(Kind::Note, "■", text))
}

/// Why a loop ended whose process is gone without a word.
pub(crate) const KILLED: &str = "ralph was killed, or the machine went down";
/// How a loop that runs in the background is found, by its name unless there are many, and where its lines are.
pub(crate) fn in_background(name: Option<&str>, lines: &Path) -> String {
    let called = name.unwrap_or("the build");
    let status = name.map_or_else(String::new, |name| format!(" {}", shell_word(name)));
    format!(
        "{called} runs in the background; its lines are in {}\n  ralph watch\n  ralph status{status}\n",
        lines.display()
    )
}

/// A branch waits for its turn, because there is a limit of parallel branches.
pub(crate) const QUEUED: &str = "waiting for a free place";
/// The loop is paused.
pub(crate) const PAUSED: &str = "paused, 'ralph resume' goes on";

/// The reason of a wait in a few words.
pub(crate) fn wait(reason: &Word<WaitReason>) -> &str {
    match reason {
        Word::Known(reason) => wait_for(*reason),
        Word::Other(word) => word,
    }
}

fn wait_for(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::UsageLimit => "usage limit",
        WaitReason::Overload => "provider overloaded",
        WaitReason::Network => "no connection to the provider",
        WaitReason::DiskSpace => "waiting for room on the disk",
        WaitReason::Store => "waiting for the store",
        WaitReason::Remote => "waiting for the remote",
    }
}

/// What a wait without a known end is for; `None`: it has one.
pub(crate) fn endless(reason: &Word<WaitReason>) -> Option<&str> {
    (!reason.has_end()).then(|| wait(reason))
}

/// [`wait`] by the word of a report, which may be another pause.
pub(crate) fn wait_named(what: &str) -> &str {
    let known = WaitReason::ALL.into_iter().find(|reason| reason.word() == what);
    known.map_or(what, |reason| wait_for(reason))
}

/// [`endless`] by the word of a report.
pub(crate) fn endless_named(what: &str) -> Option<&'static str> {
    let known = WaitReason::ALL.into_iter().find(|reason| reason.word() == what)?;
    (!known.is_for_provider()).then(|| wait_for(known))
}

/// The reason and the end of a wait: `usage limit reached; waiting until 13:00:00 (12m)`. `None` for any other fact.
pub(crate) fn waiting(fact: &Fact<'_>, now: DateTime<Local>) -> Option<String> {
    let Fact::Waiting { reason, until, why, .. } = fact else { return None };
    if let Some(shortage) = fact.shortage() {
        return Some(format!("{shortage}: waiting for room"));
    }
    if let Some(words) = endless(reason) {
        return Some(why.as_ref().map_or_else(|| words.to_owned(), |why| format!("{words}: {why}")));
    }
    let reached = if *reason == WaitReason::UsageLimit.into() { " reached" } else { "" };
    let left = duration::rough((until.to_utc() - now.to_utc()).to_std().unwrap_or_default());
    let until = timestamp::nearby(until, now);
    Some(format!("{}{reached}; waiting until {until} ({left})", wait(reason)))
}

/// Whether these words are of a wait for the store, or the remote beside it, which no command ends.
pub(crate) fn is_for_store(what: &str) -> bool {
    [WaitReason::Store, WaitReason::Remote].into_iter().any(|reason| what.starts_with(wait_for(reason)))
}

/// The command that ends a wait at once; the name of a loop for a shell, or empty for all loops.
pub(crate) fn tries_now(name: &str) -> String {
    format!("'ralph resume{}{name}' tries now", if name.is_empty() { "" } else { " " })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_that_says_the_reason_is_told_alone() {
        let told = |detail| ended_by("idle", Some("nothing changes any more"), detail).text;
        let open = "nothing changes any more, and 2 tasks are open";
        assert_eq!(told(Some(open)), format!("idle: {open}"));
        assert_eq!(told(Some("more")), "idle: nothing changes any more: more");
        assert_eq!(told(None), "idle: nothing changes any more");
    }

    #[test]
    fn a_broken_line_goes_on_below_its_words() {
        let entry = Entry::new(Kind::Text, "✗", "one two three four five");
        assert_eq!(entry.line(Some(20)), "✗ one two three four\n  five\n");
        assert_eq!(entry.line(Some(80)), "✗ one two three four five\n");
        assert_eq!(entry.line(Some(10)), entry.line(None));
    }
}
