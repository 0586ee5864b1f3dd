//! What the loops of one run and its lander know of each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::engine::context::News;
use crate::engine::fact::Fact;
use crate::engine::inbox::Inbox;
use crate::engine::outcome::End;
use crate::graph::Claim;
use crate::memory::knowledge::Knowledge;

/// How long a lander has to end that the user does not want to wait for.
const LEAVE: Duration = Duration::from_millis(500);

/// How long a loop waits for news of other machines.
const NEWS: Duration = Duration::from_secs(2);

/// What a job works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AtWork {
    /// Its work tree.
    pub(crate) tree: PathBuf,
    /// Its claim.
    pub(crate) claim: Claim,
    /// The commit where it began.
    pub(crate) base: String,
}

/// The loops of one run, and its lander.
#[derive(Debug, Default)]
pub(crate) struct Team {
    known: Mutex<Known>,
    stirred: Condvar,
    /// The user wants to leave now: what is handed in is left to the next run.
    hurries: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Known {
    /// The loops by their places, while they run.
    inboxes: BTreeMap<usize, Weak<Inbox>>,
    /// What they work on, by their places.
    at_work: BTreeMap<usize, AtWork>,
    /// What the lander has done, until a loop has told it.
    news: VecDeque<News>,
    /// Why no task begins any more.
    end: Option<End>,
    /// Iterations that have begun.
    begun: u64,
    /// Failed iterations in a row.
    failures: u64,
    /// How often a loop has asked for news of other machines, and up to which of these there is an answer.
    reports: (u64, u64),
    /// What agents have found out and other machines do not know.
    found: Vec<Knowledge>,
    /// What was handed in and is not known to have landed: the refs of claims.
    handed_in: BTreeSet<String>,
    /// Trees of files that an agent's own validation has found good.
    green: Vec<String>,
    lander: Standstill,
    /// A gate runs.
    is_at_gate: bool,
    push: Push,
    /// Something was handed in since the lander has looked.
    is_stirred: bool,
    /// All loops have ended.
    is_over: bool,
}

/// What is to be pushed.
#[derive(Debug, Default)]
struct Push {
    /// The tip has moved since the last push began.
    is_due: bool,
    /// One is on its way.
    runs: bool,
}

/// What the lander is at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Standstill {
    /// It lands, or has not looked yet.
    #[default]
    None,
    /// Nothing waits.
    Idle,
    /// Nothing can land for now, for this reason.
    Paused(String),
    /// Nothing lands any more in this run.
    Ended,
}

impl Team {
    /// Wakes the loop at this place from now on when something has changed for it.
    pub(crate) fn join(&self, place: usize, inbox: &Arc<Inbox>) {
        self.lock().inboxes.insert(place, Arc::downgrade(inbox));
    }

    /// The loop at this place has ended.
    pub(crate) fn leave(&self, place: usize) {
        self.works_on(place, None);
        self.lock().inboxes.remove(&place);
    }

    /// The loop at this place works on this now, or on nothing.
    pub(crate) fn works_on(&self, place: usize, what: Option<AtWork>) {
        let mut known = self.lock();
        match what {
            Some(what) => drop(known.at_work.insert(place, what)),
            None => drop(known.at_work.remove(&place)),
        }
    }

    /// What the loops work on, with their places.
    pub(super) fn all_at_work(&self) -> Vec<(usize, AtWork)> {
        self.lock().at_work.iter().map(|(place, what)| (*place, what.clone())).collect()
    }

    /// The ids of the tasks that are worked on.
    pub(crate) fn tasks(&self) -> Vec<String> {
        self.lock().at_work.values().map(|what| what.claim.task.clone()).collect()
    }

    /// Whether the loop at this place still works on this.
    pub(super) fn is_at_work(&self, place: usize, what: &AtWork) -> bool {
        self.lock().at_work.get(&place) == Some(what)
    }

    /// Waits some time; returns whether the run goes on after it.
    pub(crate) fn goes_on_for(&self, span: Duration) -> bool {
        let goes_on = |known: &mut Known| !known.is_over && !self.hurries.load(Ordering::Relaxed);
        let waited = self.stirred.wait_timeout_while(self.lock(), span, goes_on);
        goes_on(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Waits some time, or until a loop asks for news of other machines; returns up to which question, `None` where the run is over.
    pub(crate) fn next_report(&self, span: Duration) -> Option<u64> {
        let goes_on = |known: &mut Known| !known.is_over && !self.hurries.load(Ordering::Relaxed);
        let is_quiet = |known: &mut Known| goes_on(known) && known.reports.0 == known.reports.1;
        let waited = self.stirred.wait_timeout_while(self.lock(), span, is_quiet);
        let mut known = waited.unwrap_or_else(PoisonError::into_inner).0;
        goes_on(&mut known).then_some(known.reports.0)
    }

    /// There is an answer up to this question.
    pub(crate) fn has_reported(&self, question: u64) {
        self.lock().reports.1 = question;
        self.stirred.notify_all();
    }

    /// Asks for news of other machines, and waits a moment for it.
    pub(crate) fn ask_report(&self) {
        let mut known = self.lock();
        known.reports.0 += 1;
        let question = known.reports.0;
        self.stirred.notify_all();
        let is_open = |known: &mut Known| {
            known.reports.1 < question && !known.is_over && !self.hurries.load(Ordering::Relaxed)
        };
        drop(self.stirred.wait_timeout_while(known, NEWS, is_open));
    }

    /// The next thing that the lander has done and that the loop at this place is to tell: the first one that runs tells all, so
    /// that they stay in order.
    pub(crate) fn news(&self, place: usize) -> Option<News> {
        let mut known = self.lock();
        let is_first = known.inboxes.keys().next().is_none_or(|first| *first == place);
        if is_first { known.news.pop_front() } else { None }
    }

    /// Why no task begins any more; `None`: they do.
    pub(crate) fn ended(&self) -> Option<End> {
        self.lock().end.clone()
    }

    /// No task begins any more, for this reason. The first one counts.
    pub(crate) fn end(&self, end: &End) {
        self.lock().end.get_or_insert_with(|| end.clone());
        self.wake();
    }

    /// Whether another iteration may begin within this limit of the run; it is counted.
    pub(crate) fn begin(&self, limit: Option<u64>) -> bool {
        let mut known = self.lock();
        let may = limit.is_none_or(|limit| known.begun < limit);
        known.begun += u64::from(may);
        may
    }

    /// An iteration that was counted has not begun.
    pub(crate) fn begin_not(&self) {
        let mut known = self.lock();
        known.begun = known.begun.saturating_sub(1);
    }

    /// An iteration has failed, or not; returns how many in a row have.
    pub(crate) fn count(&self, failed: bool) -> u64 {
        let mut known = self.lock();
        known.failures = if failed { known.failures + 1 } else { 0 };
        known.failures
    }

    /// What this claim has made is about to be handed in.
    pub(crate) fn hands_in(&self, reference: String) {
        self.lock().handed_in.insert(reference);
    }

    /// A task was handed in. `green`: the tree of its files, where its agent's own validation has passed.
    pub(crate) fn hand_in(&self, green: Option<String>) {
        let mut known = self.lock();
        known.green.extend(green);
        if known.lander != Standstill::Ended {
            known.lander = Standstill::None;
        }
        known.is_stirred = true;
        drop(known);
        self.stirred.notify_all();
    }

    /// What this run has handed in and what is not known to have landed.
    pub(crate) fn handed_in(&self) -> Vec<String> {
        self.lock().handed_in.iter().cloned().collect()
    }

    /// What was handed in by this claim waits no more; returns whether that was not known.
    pub(crate) fn waits_no_more(&self, reference: &str) -> bool {
        self.lock().handed_in.remove(reference)
    }

    /// What the lander is at; it does not stand still as long as something is to be pushed.
    pub(crate) fn standstill(&self) -> Standstill {
        let known = self.lock();
        if known.push.is_due || known.push.runs { Standstill::None } else { known.lander.clone() }
    }

    /// The tip has moved, and is to be pushed.
    pub(super) fn landed(&self) {
        self.lock().push.is_due = true;
        self.stirred.notify_all();
    }

    /// Waits until something is to be pushed, after what was pushed last; returns whether there will be anything.
    pub(super) fn next_push(&self) -> bool {
        self.lock().push.runs = false;
        self.wake();
        let is_quiet = |known: &mut Known| !known.push.is_due && known.lander != Standstill::Ended;
        let waited = self.stirred.wait_while(self.lock(), is_quiet);
        let mut known = waited.unwrap_or_else(PoisonError::into_inner);
        let runs = known.push.is_due && !self.hurries.load(Ordering::Relaxed);
        known.push = Push { is_due: false, runs };
        runs
    }

    /// The user wants to leave now.
    pub(crate) fn hurry(&self) {
        // Under the lock, so that nothing that is about to wait misses it.
        let known = self.lock();
        self.hurries.store(true, Ordering::Relaxed);
        drop(known);
        self.stirred.notify_all();
    }

    /// Set when the user wants to leave now.
    pub(crate) fn hurries(&self) -> &Arc<AtomicBool> {
        &self.hurries
    }

    /// A gate runs from now on, or has ended.
    pub(super) fn at_gate(&self, is_at_gate: bool) {
        self.lock().is_at_gate = is_at_gate;
    }

    /// All loops have ended. Waits for the lander, or, where the user wants to leave now, at least for the gate that it runs: the
    /// graph may be held by another program for long.
    pub(crate) fn finish(&self) {
        self.lock().is_over = true;
        self.stirred.notify_all();
        loop {
            let is_busy = |known: &mut Known| known.lander != Standstill::Ended;
            let waited = self.stirred.wait_timeout_while(self.lock(), LEAVE, is_busy);
            let (known, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            let may_leave = self.hurries.load(Ordering::Relaxed) && !known.is_at_gate;
            if !timeout.timed_out() || may_leave {
                break;
            }
        }
        self.stands(Standstill::Ended);
    }

    /// Whether nothing is to land any more.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over || self.hurries.load(Ordering::Relaxed)
    }

    /// Tells what the lander has done, through one of the loops.
    pub(super) fn tell(&self, fact: Fact<'static>) {
        self.lock().news.push_back(News::Fact(Box::new(fact)));
        self.wake();
    }

    /// The lander is at this now; something that was handed in meanwhile stirs it again.
    pub(super) fn stands(&self, at: Standstill) {
        let mut known = self.lock();
        let is_news = (!known.is_stirred || at == Standstill::Ended) && known.lander != at;
        if is_news {
            known.lander = at;
        }
        drop(known);
        if is_news {
            self.stirred.notify_all();
            self.wake();
        }
    }

    /// Waits until something was handed in, all is over, or some time has passed.
    pub(super) fn wait(&self, at_most: Duration) {
        let known = self.lock();
        let is_quiet = |known: &mut Known| !known.is_stirred && !known.is_over;
        let waited = self.stirred.wait_timeout_while(known, at_most, |known| {
            is_quiet(known) && !self.hurries.load(Ordering::Relaxed)
        });
        waited.unwrap_or_else(PoisonError::into_inner).0.is_stirred = false;
    }

    /// An agent has found something out.
    pub(crate) fn has_found(&self, what: Knowledge) {
        self.lock().found.push(what);
    }

    /// What agents have found out since the last call.
    pub(crate) fn take_found(&self) -> Vec<Knowledge> {
        std::mem::take(&mut self.lock().found)
    }

    /// The trees of files that were found good since the last call.
    pub(super) fn take_green(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().green)
    }

    fn wake(&self) {
        let known = self.lock();
        known.inboxes.values().filter_map(Weak::upgrade).for_each(|inbox| inbox.poke());
    }

    /// A panic of another thread cannot leave it half-changed.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::outcome::Outcome;

    #[test]
    fn a_limit_and_an_end_hold_for_all_loops() {
        let team = Team::default();
        assert!(team.begin(Some(2)) && team.begin(Some(2)) && !team.begin(Some(2)));
        team.begin_not();
        assert!(team.begin(Some(2)) && team.begin(None));
        assert_eq!((team.count(true), team.count(true), team.count(false)), (1, 2, 0));
        assert_eq!(team.ended(), None);
        team.end(&Outcome::Interrupted.into());
        team.end(&Outcome::AllDone.into());
        assert_eq!(team.ended().map(|end| end.outcome), Some(Outcome::Interrupted));
    }

    #[test]
    fn what_is_handed_in_while_the_lander_looks_is_seen_by_it() {
        let team = Team::default();
        team.stands(Standstill::Idle);
        assert_eq!(team.standstill(), Standstill::Idle);
        team.hand_in(Some("tree".into()));
        assert_eq!(team.standstill(), Standstill::None);
        team.stands(Standstill::Idle);
        assert_eq!(team.standstill(), Standstill::None, "it has not looked since");
        team.wait(Duration::from_hours(1));
        team.stands(Standstill::Idle);
        assert_eq!((team.standstill(), team.take_green()), (Standstill::Idle, vec!["tree".to_owned()]));
        // After its end nothing is waited for.
        team.stands(Standstill::Ended);
        team.hand_in(None);
        assert_eq!(team.standstill(), Standstill::Ended);
    }
}
