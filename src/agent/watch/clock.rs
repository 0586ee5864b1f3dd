//! The clocks of an attempt: what it waits for, until when, and what happens then.

use std::time::{Duration, Instant};

use super::{Program, Watch, Word};
use crate::agent::ended::Ending;
use crate::agent::tools::{SERVER_IDLE, SERVER_LOOK};
use crate::reply::decode::Item;
use crate::reply::usage::UsageNote;
use crate::text::duration;

/// How long the pipes of an agent that is gone may stay silent before we stop listening.
const DRAIN: Duration = Duration::from_secs(1);
/// How long our readers may work on output that came before they stopped listening; a user's filter has 10 s for
/// every line.
const DECODING: Duration = Duration::from_secs(15);

impl Watch {
    /// Whether there is nothing more to wait for. Output that our readers still hold is waited for; the end of the pipes
    /// is not, because another process may hold them open.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        match self.program {
            Program::Alive => self.closing.is_some_and(|since| now > since + self.ladder_limit),
            _ if self.served.open == 0 && !self.served.displaying => true,
            Program::Gone { .. } | Program::OutOfSight => {
                // Processes that a killed supervisor has left may print for ever.
                let is_silent = self.program == Program::OutOfSight || now >= self.last_message + DRAIN;
                if self.served.hold.is_some() && is_silent {
                    self.served.hold = None;
                    self.last_message = now;
                }
                self.served.hold.is_none() && now >= self.last_message + self.patience()
            }
        }
    }

    /// How long the readers of an ended agent may be silent. Its display is cosmetic.
    fn patience(&self) -> Duration {
        if self.served.patience.is_some() && self.served.hold.is_none() && self.served.open > 0 {
            DECODING
        } else {
            DRAIN
        }
    }

    pub(super) fn next_deadline(&self) -> Instant {
        if self.program != Program::Alive {
            return self.last_message + self.patience();
        }
        if let Some(since) = self.closing {
            return self.asked_until.unwrap_or(since + self.ladder_limit);
        }
        let next = match self.word {
            Word::AmongOthers => self.vital_signs.next_look(),
            Word::LastForNow { until } => until.min(self.next_server_look),
            Word::Last { until } => until,
        };
        self.at_most(self.handshake.until().map_or(next, |until| next.min(until)))
    }

    /// This time, or the end of the attempt or of the loop if that is earlier.
    fn at_most(&self, moment: Instant) -> Instant {
        let moment = moment.min(self.too_long);
        self.loop_over.map_or(moment, |deadline| moment.min(deadline))
    }

    pub(super) fn look_at_the_clock(&mut self, now: Instant) {
        if self.asked_until.is_some_and(|until| now >= until) {
            self.asked_until = None;
            self.supervised.stop();
        }
        if self.closing.is_some() || self.program != Program::Alive {
            return;
        }
        if let Word::Last { until } = self.word {
            // Its final event has come, good or bad; now it only has to exit.
            if now >= self.at_most(until) {
                self.end(Ending::AfterFinal);
            }
        } else if let Word::LastForNow { until } = self.word {
            self.look_at_the_background(until, now);
        } else if self.loop_over.is_some_and(|deadline| now >= deadline) {
            self.end(Ending::LoopOver);
        } else if now >= self.too_long {
            self.end(Ending::TimedOut);
        } else if let Some(why) = self.handshake.overdue(now) {
            let note = UsageNote { error: Some(why), hopeless: true, ..UsageNote::default() };
            self.item(Item::Note(Box::new(note)));
        } else if let Some(evidence) = self.vital_signs.look(now, &self.tools, &self.traces) {
            self.traces.evidence_of_death = evidence;
            self.end(Ending::Inactive);
        }
    }

    /// Ends the agent's background work when it takes too long, or is a server that was left behind, which looks like a test
    /// run in the stream.
    fn look_at_the_background(&mut self, until: Instant, now: Instant) {
        let tasks = self.traces.announced().unwrap_or_default();
        if now >= self.at_most(until) {
            let limit = duration::format(self.traces.timeouts.background);
            let over = |whose: &str, flag: &str| {
                format!("{whose} time was over while this went on in the background: {tasks} ({flag})")
            };
            self.notice = Some(if now >= self.too_long {
                over("the attempt's", "--timeout")
            } else if now < until {
                over("the loop's", "--max-duration")
            } else {
                format!("ended what went on in the background for {limit}: {tasks} (BACKGROUND_WAIT)")
            });
            return self.end(Ending::InBackground);
        }
        if now < self.next_server_look {
            return;
        }
        self.next_server_look = now + SERVER_LOOK;
        // Without tasks it waits for a time of day, and there is no server.
        let Some(count) = self.traces.background_tasks() else { return };
        if let Some(ports) = self.tools.idle_servers(count, now) {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            let (idle, ports) = (duration::format(SERVER_IDLE), ports.join(", "));
            self.notice = Some(format!(
                "ended a server that the agent has left on port {ports} ({tasks}): it did nothing for {idle}"
            ));
            self.end(Ending::InBackground);
        }
    }

    /// We were stopped for a while: moves all deadlines.
    pub(super) fn shift(&mut self, gap: Duration) {
        self.too_long += gap;
        self.last_message += gap;
        self.vital_signs.shift(gap);
        self.next_server_look += gap;
        self.handshake.shift(gap);
        match &mut self.word {
            Word::AmongOthers => {}
            Word::LastForNow { until } | Word::Last { until } => *until += gap,
        }
        self.closing = self.closing.map(|since| since + gap);
        self.asked_until = self.asked_until.map(|until| until + gap);
    }
}
