//! Reads loops and their logs, as often as changes can be seen.

use std::time::{Duration, Instant};

use super::plan::PlanLook;
use crate::commands::report::merges_of;
use crate::commands::status::tasks;
use crate::commands::worker::snapshot;
use crate::project::Project;
use crate::record::lookout::Lookout;
use crate::record::lookup::Loop;
use crate::record::past::Step;
use crate::record::tail::Tail;
use crate::view::next_step::Merges;
use crate::view::watch::model::Model;
use crate::view::watch::row::{Beside, Key, Row};
use crate::view::watch::scroll::Paragraph;
use crate::view::watch::telling::Telling;

/// How often programs of workers are checked, which no file reports.
const WORKERS: Duration = Duration::from_secs(2);
/// How often git is asked for merged branches.
const MERGES: Duration = Duration::from_secs(5);
/// How many steps of the history are kept.
const STEPS: usize = 1000;

/// The loops to read.
pub(super) struct Looks {
    here: Project,
    lookout: Lookout,
    workers_seen: Instant,
    /// What git knows of branches, and since when.
    merges: (Merges, Option<Instant>),
    followed: Option<Followed>,
}

/// The loop whose logs are read.
struct Followed {
    key: Key,
    transcript: Option<(Tail, Telling)>,
    history: Tail,
    steps: Vec<Step>,
    plan: PlanLook,
}

impl Looks {
    pub(super) fn new(here: Project, whole_machine: bool) -> Self {
        let lookout = Lookout::new(here.clone(), whole_machine);
        Self { here, lookout, workers_seen: Instant::now(), merges: Default::default(), followed: None }
    }

    /// The current state of the loop in that folder.
    pub(super) fn find(&self, key: &Key) -> Option<Loop> {
        self.lookout.loops().into_iter().find(|found| found.project.records() == *key)?.again()
    }

    /// Reads all loops; returns whether anything has changed.
    pub(super) fn look(&mut self, model: &mut Model) -> bool {
        let is_news = self.lookout.look();
        let wants_workers = self.workers_seen.elapsed() >= WORKERS;
        if is_news || wants_workers {
            self.show(model);
        }
        is_news
    }

    /// A second has passed; returns whether that is visible.
    pub(super) fn tick(&mut self, model: &mut Model) -> bool {
        let is_at_work = self.lookout.loops().iter().any(|found| found.alive().is_some());
        if is_at_work {
            self.show(model);
        }
        is_at_work
    }

    fn show(&mut self, model: &mut Model) {
        self.workers_seen = Instant::now();
        let loops = self.lookout.loops();
        if self.merges.1.is_none_or(|seen| seen.elapsed() >= MERGES) {
            self.merges = (merges_of(&self.here, loops.iter().copied()), Some(Instant::now()));
        }
        let row = |found: &&Loop| {
            let heard = found.alive().and_then(|_| found.heard_at());
            Row::of(
                &snapshot(found).with_merges(&self.merges.0),
                &Beside { heard, tasks: tasks(&self.here, found) },
            )
        };
        model.see(loops.iter().map(row).collect());
    }

    /// Reads on in the logs of the selected loop; returns whether there was anything new.
    pub(super) fn follow(&mut self, model: &mut Model) -> bool {
        let Some(row) = model.selected().cloned() else { return self.followed.take().is_some() };
        let is_another = self.followed.as_ref().is_none_or(|followed| followed.key != row.key);
        if is_another {
            model.forget();
            let history = Tail::new(&row.iterations_log);
            self.followed = Some(Followed {
                key: row.key.clone(),
                transcript: None,
                history,
                steps: Vec::new(),
                plan: PlanLook::default(),
            });
        }
        let Some(followed) = &mut self.followed else { return is_another };
        let is_news = followed.read_transcript(&row, model) | followed.read_history(model);
        let found = self.lookout.loops().into_iter().find(|found| found.project.records() == row.key);
        let plan = found.and_then(|found| followed.plan.look(&self.here, found));
        let is_news = is_news | plan.is_some_and(|plan| model.plans(plan));
        is_another || is_news
    }
}

impl Followed {
    fn read_transcript(&mut self, row: &Row, model: &mut Model) -> bool {
        let Some(log) = &row.events_log else {
            model.misses(Some("it has no log that could be shown".to_owned()));
            return false;
        };
        // A restarted loop has another log.
        if self.transcript.as_ref().is_none_or(|(tail, _)| tail.path() != log) {
            model.forget_transcript();
            self.transcript = Some((Tail::new(log), Telling::default()));
        }
        let Some((tail, transcript)) = &mut self.transcript else { return false };
        let news = match tail.read() {
            Ok(news) => news,
            Err(error) => {
                model.misses(Some(format!("its log cannot be read: {error}")));
                return false;
            }
        };
        let is_there = log.exists();
        model.misses((!is_there).then(|| format!("its log is not there: {}", log.display())));
        if news.is_anew {
            model.forget_transcript();
            *transcript = Telling::default();
        }
        for line in &news.lines {
            transcript.take(line, model);
        }
        news.is_anew || !news.lines.is_empty()
    }

    fn read_history(&mut self, model: &mut Model) -> bool {
        let Ok(news) = self.history.read() else { return false };
        if news.is_anew {
            self.steps.clear();
        }
        if !news.is_anew && news.lines.is_empty() {
            return false;
        }
        for step in news.lines.iter().filter_map(|line| Step::read(line)) {
            step.add_to(&mut self.steps);
        }
        self.steps.drain(..self.steps.len().saturating_sub(STEPS));
        model.has_been(self.steps.iter().map(told).collect());
        true
    }
}

/// `✓ 18:05 Iteration 3 completed in 5m42s`
fn told(step: &Step) -> Paragraph {
    let entry = step.entry();
    let text = format!("{} {}", step.at.format("%H:%M"), entry.text);
    Paragraph { style: entry.kind.style(), sign: format!("{} ", entry.mark), text }
}
