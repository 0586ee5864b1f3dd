//! What came of finished tasks on their way to the trunk.

use std::collections::BTreeMap;

use chrono::{DateTime, FixedOffset};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LoopReport;
use crate::engine::fact::Fact;
use crate::record::run_folder::is_job;
use crate::record::state_fold::became;
use crate::text::line::one_line;

/// How much has landed in a run of many jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Landings {
    /// How many tasks have landed.
    pub landed: u64,
    /// How many could not land, and were returned or have failed.
    pub returned: u64,
    /// How often the gate has run.
    pub gates: u64,
    /// How long these runs took together, in seconds.
    pub gate_s: f64,
    /// What became of each task last, with the reason.
    #[serde(skip)]
    became: BTreeMap<String, Became>,
}

/// What became of a task, and when.
type Became = (DateTime<FixedOffset>, &'static str, Option<String>);

impl Landings {
    /// Takes one fact.
    pub(super) fn take(&mut self, at: DateTime<FixedOffset>, fact: &Fact<'_>) {
        match fact {
            Fact::GateEnded { duration_s, .. } => {
                self.gates += 1;
                self.gate_s += duration_s;
            }
            Fact::Landed { task, .. } => {
                self.landed += 1;
                self.became.insert(task.id.to_string(), (at, became(fact), None));
            }
            Fact::Returned { reason, task, .. } => {
                self.returned += 1;
                self.became.insert(task.id.to_string(), (at, became(fact), Some(one_line(reason))));
            }
            _ => {}
        }
    }

    /// Those of all loops together, which tell of each other's tasks: the tasks get what became of them.
    pub(super) fn of(loops: &mut [LoopReport]) -> Self {
        let mut all = Self::default();
        for one in loops.iter().filter_map(|one| one.landings.as_ref()) {
            all.landed += one.landed;
            all.returned += one.returned;
            all.gates += one.gates;
            all.gate_s += one.gate_s;
            for (task, became) in &one.became {
                if all.became.get(task).is_none_or(|last| last.0 <= became.0) {
                    all.became.insert(task.clone(), became.clone());
                }
            }
        }
        // Each loop only knows what was done when it told something.
        let are_jobs = |one: &&LoopReport| is_job(&one.name);
        let newest = loops.iter().filter(are_jobs).max_by_key(|one| one.counted_at).and_then(|one| one.tasks);
        for one in loops.iter_mut().filter(|one| is_job(&one.name)) {
            one.tasks = one.tasks.and(newest);
        }
        for task in loops.iter_mut().flat_map(|one| &mut one.task_list) {
            if task.outcome.as_deref() == Some("landing")
                && let Some((_, became, why)) = all.became.get(&task.id)
            {
                task.outcome = Some((*became).to_owned());
                task.reason.clone_from(why);
            }
        }
        all
    }
}
