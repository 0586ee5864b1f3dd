//! Which of its agents works in a loop: the first of them that can.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

use super::{Job, Loop};
use crate::engine::agent::{Choice, How};
use crate::engine::board::Board;
use crate::engine::fact::{ChangeReason, Fact};
use crate::engine::outcome::End;
use crate::engine::policy::limit_until;
use crate::engine::report::{AttemptStatus, Report};
use crate::engine::tally::{may_retry, named_reset};
use crate::reply::usage::Class;

/// After how long an agent is tried again if it is not known when it can work.
const LATER: TimeDelta = TimeDelta::minutes(15);
/// After how long one is tried again that has no login or no credit, which the user may have fixed by then.
const MUCH_LATER: TimeDelta = TimeDelta::hours(1);

/// The agents of a loop, as far as the choice between them depends on it.
#[derive(Debug, Default)]
pub(in crate::engine) struct Fallback {
    /// The place of the one that works.
    at: usize,
    /// What is known of each, by its place.
    known: Vec<Known>,
}

/// What is known of one agent.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    away: Away,
    /// Since when its provider has been out of order, or out of reach.
    outage: Option<Instant>,
}

/// Whether an agent can work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Away {
    #[default]
    No,
    /// Its limit ends then.
    Until(DateTime<Utc>),
    /// It is tried again then, as it is not known when it can work.
    Perhaps(DateTime<Utc>),
    /// It has no login or no credit; it is tried again then, but not waited for.
    Broken(DateTime<Utc>),
}

/// Another agent takes over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Takeover {
    to: usize,
    reason: ChangeReason,
    until: Option<DateTime<Utc>>,
}

impl Fallback {
    fn of(&mut self, place: usize) -> &mut Known {
        if self.known.len() <= place {
            self.known.resize(place + 1, Known::default());
        }
        &mut self.known[place]
    }

    fn away(&self, place: usize) -> Away {
        self.known.get(place).map_or(Away::No, |known| known.away)
    }

    /// How long the provider of the one that works has been out of order, if it is.
    fn outage(&self) -> Option<Duration> {
        Some(self.known.get(self.at)?.outage?.elapsed())
    }

    /// Until when an agent cannot work.
    fn closed_until(
        &self,
        place: usize,
        choice: &Choice,
        board: &Board,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let closed = board.closed_until(&choice.login, now, Instant::now());
        until(self.away(place)).max(closed).filter(|until| *until > now)
    }

    /// The first agent that can work; else the one that can at first. One without login or credit is not waited for, and no
    /// other one while it is not known how long the one that works has to be waited for.
    fn wanted(&self, choices: &[Choice], board: &Board, now: DateTime<Utc>) -> Option<usize> {
        let own = self.away(self.at);
        let free = choices.iter().enumerate().filter_map(|(place, choice)| {
            let at = self.closed_until(place, choice, board, now).unwrap_or(now);
            let is_broken = matches!(self.away(place), Away::Broken(_));
            let is_waited_for = place == self.at || !matches!(own, Away::Perhaps(_));
            (at == now || !is_broken && is_waited_for).then_some((place, at))
        });
        free.min_by_key(|(_, at)| *at).map(|(place, _)| place)
    }
}

impl Loop<'_> {
    /// The login of the agent that does such work; empty where that is not known.
    fn login_for(&self, how: &How) -> &str {
        let choices = self.job.agent.choices(how);
        choices.get(self.fallback.at).or(choices.first()).map_or("", |choice| &choice.login)
    }

    /// The login of the agent that works.
    fn login(&self) -> &str {
        self.work.as_ref().map_or_else(|| self.login_for(&How::default()), |work| self.login_for(&work.how))
    }

    /// Until when the agent that works should not be started.
    pub(in crate::engine) fn closed_until(
        &self,
        time: DateTime<Utc>,
        clock: Instant,
    ) -> Option<DateTime<Utc>> {
        let away = until(self.fallback.away(self.fallback.at)).filter(|until| *until > time);
        self.job.board.closed_until(self.login(), time, clock).max(away)
    }

    /// The user wants an attempt now, by whichever of the agents is wanted most.
    pub(in crate::engine) fn open(&mut self) {
        self.job.board.open(self.login());
        for choice in self.job.agent.choices(&How::default()) {
            self.job.board.open(&choice.login);
        }
        self.fallback.known.clear();
    }

    /// A process begins: what an earlier one has waited for may be over for the agent that is wanted most.
    pub(super) fn choose_anew(&mut self) {
        if self.job.agent.choices(&How::default()).len() > 1 {
            self.job.tally.agent_changed();
        }
    }

    /// Books what a report about such work says of its agent, before the report itself is booked: usage limits are shared with other
    /// loops. Returns whether another agent takes over, because this one cannot go on.
    pub(super) fn meet(&mut self, report: &Report, how: &How) -> Option<Takeover> {
        let now = Utc::now();
        if report.status == AttemptStatus::UsageLimit {
            self.share_limit(report, how, now);
        }
        let Job { agent, board, fallback_after, tally, limits, .. } = &self.job;
        let choices = agent.choices(how);
        if choices.len() < 2 {
            return None;
        }
        let at = self.fallback.at;
        let known = self.fallback.of(at);
        // What an agent did before it met it is no part of it.
        let began =
            if report.usage.called_tools { None } else { Instant::now().checked_sub(report.duration) };
        let began = began.unwrap_or_else(Instant::now);
        known.outage = report.has_met_outage().then(|| known.outage.unwrap_or(began));
        let failure = report.failure.as_ref()?;
        let is_last = !report.is_waited_for() && !may_retry(limits.max_retries, tally.retries, failure.class);
        let is_long = || is_last || self.fallback.outage().is_some_and(|outage| outage >= *fallback_after);
        let later = Away::Perhaps(now + LATER);
        let (reason, away) = match (report.status, failure.class) {
            (AttemptStatus::UsageLimit, _) => {
                let reset = named_reset(failure.reset_at, now);
                (ChangeReason::UsageLimit, reset.map_or(later, Away::Until))
            }
            (_, Class::Auth) => (ChangeReason::Login, Away::Broken(now + MUCH_LATER)),
            (_, Class::Billing) => (ChangeReason::Credit, Away::Broken(now + MUCH_LATER)),
            (_, Class::Network) if is_long() => (ChangeReason::Network, later),
            (_, Class::Overload) if is_long() => (ChangeReason::Overload, later),
            _ => return None,
        };
        let before = std::mem::replace(&mut self.fallback.of(at).away, away);
        let to = self.fallback.wanted(choices, board, now).filter(|to| *to != at);
        if to.is_none() {
            // The policy decides how this one is waited for, as where it is the only one.
            self.fallback.of(at).away = before;
        }
        to.map(|to| Takeover { to, reason, until: named(away) })
    }

    /// The agent has worked: what its provider was before is over.
    pub(super) fn met_no_outage(&mut self, report: &Report) {
        if !report.has_met_outage() {
            let at = self.fallback.at;
            self.fallback.of(at).outage = None;
        }
    }

    /// Tells other loops of a usage limit; of this process also one whose end is a guess.
    fn share_limit(&self, report: &Report, how: &How, now: DateTime<Utc>) {
        let (board, login) = (&self.job.board, self.login_for(how));
        let reset = report.failure.as_ref().and_then(|failure| failure.reset_at);
        board.close(login, limit_until(&self.job.tally, reset, now), now, Instant::now());
        if let Some(until) = named_reset(reset, now) {
            board.publish(login, until);
        }
    }

    /// Turns to another agent if it is wanted more and can work, or can earlier than this one, or if the provider of this one has been
    /// out of order for too long, or the loop `would_end` for that; returns whether it has.
    pub(super) fn turns(&mut self, would_end: bool) -> Result<bool, End> {
        let now = Utc::now();
        let at = self.fallback.at;
        if self.job.agent.choices(&How::default()).len() < 2 {
            return Ok(false);
        }
        let is_long = self.fallback.outage().is_some_and(|outage| outage >= self.job.fallback_after);
        let before = self.fallback.away(at);
        let outage = self.job.tally.outage().filter(|_| is_long || would_end);
        if outage.is_some() {
            self.fallback.of(at).away = Away::Perhaps(now + LATER);
        }
        let Job { agent, board, .. } = &self.job;
        let wanted = self.fallback.wanted(agent.choices(&How::default()), board, now);
        let Some(to) = wanted.filter(|to| *to != at) else {
            self.fallback.of(at).away = before;
            return Ok(false);
        };
        let closed = self.job.board.closed_until(self.login(), now, Instant::now());
        let (reason, until) = match (outage, closed) {
            (Some(Class::Network), _) => (ChangeReason::Network, None),
            (Some(_), _) => (ChangeReason::Overload, None),
            (None, Some(until)) => (ChangeReason::UsageLimit, Some(until)),
            (None, None) => (ChangeReason::Back, None),
        };
        self.turn_to(Takeover { to, reason, until }).map(|()| true)
    }

    /// The end of a wait for a provider that is out of order: no later than another agent takes over.
    pub(in crate::engine) fn unless_taken_over(&self, until: DateTime<Utc>) -> DateTime<Utc> {
        let has_others = self.job.agent.choices(&How::default()).len() > 1;
        let outage = self.fallback.outage().filter(|_| has_others && self.job.tally.outage().is_some());
        let left = outage.map(|outage| self.job.fallback_after.saturating_sub(outage));
        // Where it has taken that long, there is no other one that can work.
        left.filter(|left| !left.is_zero()).map_or(until, |left| until.min(Utc::now() + left))
    }

    /// Has another agent go on.
    pub(super) fn turn_to(&mut self, takeover: Takeover) -> Result<(), End> {
        let Takeover { to, reason, until } = takeover;
        let Job { context, tally, agent, board, .. } = &mut self.job;
        let choices = agent.choices(&How::default());
        let name = |place: usize| choices.get(place).map(|choice| choice.name.clone()).unwrap_or_default();
        let (from, name) = (name(self.fallback.at), name(to));
        let choice = choices.get(to);
        let waits_until = choice.and_then(|choice| self.fallback.closed_until(to, choice, board, Utc::now()));
        agent.turn_to(to);
        self.fallback.at = to;
        tally.agent_changed();
        context.works_with(&name);
        context.count(tally).tell(Fact::agent_changed(&from, &name, reason, until, waits_until))
    }
}

/// When the limit of an agent ends that is away, if it is known.
fn named(away: Away) -> Option<DateTime<Utc>> {
    if let Away::Until(until) = away { Some(until) } else { None }
}

/// When an agent that is away may be tried again.
fn until(away: Away) -> Option<DateTime<Utc>> {
    match away {
        Away::Until(until) | Away::Perhaps(until) | Away::Broken(until) => Some(until),
        Away::No => None,
    }
}
