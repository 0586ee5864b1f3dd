//! What the lander tells of the run that lands instead.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::Lander;
use crate::engine::fact::Fact;
use crate::graph::Holder;
use crate::text::digest::sha256;
use crate::text::line::one_line_within;
use crate::text::timestamp;

/// How long the lead of a run that lives stays as it is while something waits: longer than until its lander looks again.
const STALLED: Duration = Duration::from_secs(45);
/// The longest command of a gate that is shown, in characters.
const SHOWN: usize = 80;

/// The name of a gate with this command, which no other one has.
pub(super) fn named(command: &str) -> String {
    let shown = one_line_within(command, SHOWN);
    if shown == command { shown } else { format!("{shown} ({})", &sha256(command.as_bytes())[..8]) }
}

impl Lander {
    /// Says so where the run that has the lead has not prolonged it for long, while something waits to land.
    pub(super) fn tell_stalled(&mut self, leader: Option<&(Holder, DateTime<Utc>)>) {
        let known = leader.filter(|(leader, _)| *leader != self.holder && self.exchange.is_some());
        let Some((leader, until)) = known else {
            self.stalled = None;
            return;
        };
        match &self.stalled {
            Some((seen, since)) if seen == until && since.elapsed() > STALLED => {
                let why = format!(
                    "run {} lands on {} and has not been heard of for a while: if it is gone, another one does so from {} on",
                    leader.run,
                    self.trunk.name(),
                    timestamp::local(until)
                );
                self.tell_once(&why);
            }
            Some((seen, _)) if seen == until => {}
            _ => self.stalled = Some((*until, Instant::now())),
        }
    }

    /// Says so where the run that has the lead gates by another command than this one would.
    pub(super) fn tell_other_gate(&mut self, leader: Option<&Holder>) {
        let others = leader.filter(|leader| leader.gate.is_some() && leader.gate != self.holder.gate);
        let Some(leader) = others.filter(|leader| self.other_gate.as_ref() != Some(&leader.run)) else {
            return;
        };
        self.other_gate = Some(leader.run.clone());
        let gate_of = |holder: &Holder| match holder.gate.as_deref() {
            None | Some("") => "no gate".to_owned(),
            Some(gate) => format!("the gate '{gate}'"),
        };
        self.tell(&format!(
            "run {} lands on {} with {}, and this run has {}: while that one lands, its gate tries what is done here, too",
            leader.run,
            self.trunk.name(),
            gate_of(leader),
            gate_of(&self.holder)
        ));
    }

    /// Tells something, unless it was told last.
    pub(super) fn tell_once(&mut self, what: &str) {
        if self.told.as_deref() != Some(what) {
            self.told = Some(what.to_owned());
            self.tell(what);
        }
    }

    fn tell(&self, what: &str) {
        self.team.tell(Fact::Notice { message: what.to_owned().into() });
    }
}
