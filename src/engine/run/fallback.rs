//! Which of its agents works in a loop: the first of them that can.

use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Job, Loop};
use crate::engine::agent::{Choice, How};
use crate::engine::fact::{ChangeReason, Fact};
use crate::engine::outcome::End;
use crate::engine::report::{AttemptStatus, Report};
use crate::engine::tally::named_reset;
use crate::reply::usage::Class;

/// After how long an agent is tried again if it is not known when it can work.
const LATER: TimeDelta = TimeDelta::minutes(15);

/// The agents of a loop, as far as the choice between them depends on it.
#[derive(Debug, Default)]
pub(in crate::engine) struct Fallback {
    /// The place of the one that works.
    at: usize,
    /// When those that could not work may be tried again, by their place; `None`: not in this process.
    away: Vec<Option<DateTime<Utc>>>,
    /// Since when the provider of the one that works has been out of order, or out of reach.
    outage: Option<Instant>,
}

/// Another agent takes over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Takeover {
    to: usize,
    reason: ChangeReason,
    until: Option<DateTime<Utc>>,
}

impl Fallback {
    /// The first agent that can work; else the one that can at first, whose time is this. `None`: none can any more. `closed` is what
    /// is known of usage limits.
    fn wanted(
        &self,
        choices: &[Choice],
        now: DateTime<Utc>,
        closed: impl Fn(&Choice) -> Option<DateTime<Utc>>,
    ) -> Option<(usize, DateTime<Utc>)> {
        let free = choices.iter().enumerate().filter_map(|(place, choice)| {
            let away = self.away.get(place).copied().unwrap_or(Some(now))?;
            Some((place, away.max(closed(choice).unwrap_or(now)).max(now)))
        });
        free.min_by_key(|(_, at)| *at)
    }

    fn set_away(&mut self, until: Option<DateTime<Utc>>, now: DateTime<Utc>) {
        let places = self.away.len().max(self.at + 1);
        self.away.resize(places, Some(now));
        self.away[self.at] = until;
    }
}

impl Loop<'_> {
    /// The login of the agent that works; empty where the work names an agent of its own.
    pub(super) fn login(&self) -> &str {
        let how = self.work.as_ref().map(|work| &work.how);
        let choices =
            how.map_or_else(|| self.job.agent.choices(&How::default()), |how| self.job.agent.choices(how));
        choices.get(self.fallback.at).map_or("", |choice| &choice.login)
    }

    /// Until when the agent that works should not be started.
    pub(in crate::engine) fn closed_until(
        &self,
        time: DateTime<Utc>,
        clock: Instant,
    ) -> Option<DateTime<Utc>> {
        let away = self.fallback.away.get(self.fallback.at).copied().flatten();
        self.job.board.closed_until(self.login(), time, clock).max(away.filter(|until| *until > time))
    }

    /// The user wants an attempt now.
    pub(in crate::engine) fn open(&mut self) {
        self.job.board.open(self.login());
        self.fallback.set_away(Some(Utc::now()), Utc::now());
    }

    /// Whether another agent takes the iteration over, because this one cannot work on it.
    pub(super) fn takeover(&mut self, report: &Report, how: &How) -> Option<Takeover> {
        let (now, clock) = (Utc::now(), Instant::now());
        let Job { agent, board, fallback_after, .. } = &self.job;
        let Fallback { outage, .. } = &mut self.fallback;
        let began = clock.checked_sub(report.duration).unwrap_or(clock);
        *outage = report.has_met_outage().then(|| outage.unwrap_or(began));
        let choices = agent.choices(how);
        if choices.len() < 2 {
            return None;
        }
        let is_long = || outage.is_some_and(|since| since.elapsed() >= *fallback_after);
        let failure = report.failure.as_ref()?;
        let (reason, until) = match (report.status, failure.class) {
            (AttemptStatus::UsageLimit, _) => {
                (ChangeReason::UsageLimit, Some(named_reset(failure.reset_at, now).unwrap_or(now + LATER)))
            }
            (_, Class::Auth) => (ChangeReason::Login, None),
            (_, Class::Billing) => (ChangeReason::Credit, None),
            (_, Class::Network) if is_long() => (ChangeReason::Network, Some(now + LATER)),
            (_, Class::Overload) if is_long() => (ChangeReason::Overload, Some(now + LATER)),
            _ => return None,
        };
        self.fallback.set_away(until, now);
        let (to, _) =
            self.fallback.wanted(choices, now, |choice| board.closed_until(&choice.login, now, clock))?;
        (to != self.fallback.at).then_some(Takeover { to, reason, until })
    }

    /// Turns to another agent if it is wanted more and can work, or can earlier than this one; returns whether it has.
    pub(super) fn turns_back(&mut self) -> Result<bool, End> {
        let (now, clock) = (Utc::now(), Instant::now());
        let Job { agent, board, .. } = &self.job;
        let wanted = self.fallback.wanted(agent.choices(&How::default()), now, |choice| {
            board.closed_until(&choice.login, now, clock)
        });
        match wanted.filter(|(to, _)| *to != self.fallback.at) {
            Some((to, _)) => {
                let until = self.closed_until(now, clock);
                let reason = if until.is_some() { ChangeReason::UsageLimit } else { ChangeReason::Back };
                self.turn_to(Takeover { to, reason, until }).map(|()| true)
            }
            None => Ok(false),
        }
    }

    /// Has another agent go on.
    pub(super) fn turn_to(&mut self, takeover: Takeover) -> Result<(), End> {
        let Takeover { to, reason, until } = takeover;
        let Job { context, tally, agent, .. } = &mut self.job;
        let name = |place: usize| {
            agent.choices(&How::default()).get(place).map(|choice| choice.name.clone()).unwrap_or_default()
        };
        let (from, name) = (name(self.fallback.at), name(to));
        agent.turn_to(to);
        self.fallback.at = to;
        self.fallback.outage = None;
        tally.agent_changed();
        context.works_with(&name);
        context.count(tally).tell(Fact::agent_changed(&from, &name, reason, until))
    }
}
