//! The graph, as the loop asks it: on a thread of its own, because a store may hang.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::lease::{Held, Lease};
use crate::engine::context::{Context, Renewed};
use crate::engine::desk::{Away, Desk};
use crate::engine::outcome::End;
use crate::engine::stop::Urgency;
use crate::engine::uptime::Uptime;
use crate::graph::{Claim, Store};

/// How often it is looked whether a claim still holds.
const LOOK: Duration = Duration::from_secs(1);

/// A store that a source and its validator share.
#[derive(Clone)]
pub(crate) struct Graph {
    desk: Rc<Desk<Box<dyn Store + Send>>>,
    lease: Lease,
}

impl Graph {
    /// The graph in this store, whose claims hold for this lease.
    ///
    /// # Errors
    /// If the system has no room for another thread.
    pub(crate) fn new(store: Box<dyn Store + Send>, lease: Lease) -> io::Result<Self> {
        Ok(Self { desk: Rc::new(Desk::open("the graph of tasks", store)?), lease })
    }

    /// The graph in a store that waits itself, at most this long, while its server is away.
    ///
    /// # Errors
    /// If the system has no room for another thread.
    pub(crate) fn waiting(
        store: Box<dyn Store + Send>,
        lease: Lease,
        (longest, away): (Duration, Away),
    ) -> io::Result<Self> {
        let desk = Desk::open("the graph of tasks", store)?.waiting(longest, away);
        Ok(Self { desk: Rc::new(desk), lease })
    }

    /// How long claims hold.
    pub(super) fn lease(&self) -> Lease {
        self.lease
    }

    /// Asks what the next agent needs: a request to stop ends that.
    pub(super) fn look<T: Send + 'static>(
        &self,
        context: &mut Context<'_>,
        order: impl FnOnce(&mut dyn Store) -> T + Send + 'static,
    ) -> Result<T, End> {
        self.desk.ask(context, Urgency::AfterAttempt, |store| order(&mut **store))
    }

    /// Books what an agent has done: only an urgent request to stop ends that.
    pub(super) fn book<T: Send + 'static>(
        &self,
        context: &mut Context<'_>,
        order: impl FnOnce(&mut dyn Store) -> T + Send + 'static,
    ) -> Result<T, End> {
        self.desk.ask(context, Urgency::Now, |store| order(&mut **store))
    }

    /// Asks where no loop runs.
    pub(super) fn look_before<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut dyn Store) -> T + Send + 'static,
    ) -> Result<T, End> {
        self.desk.ask_before(|store| order(&mut **store))
    }

    /// Renews a claim while the result of its agent is booked, until what is returned is dropped: its commits may be on their way for
    /// longer than it holds. If it is lost, the booking says so.
    pub(super) fn keep_while_booked(&self, claim: &Claim) -> EndsDuty {
        let (claim, length) = (claim.clone(), self.lease.length);
        self.desk.begin_duty(self.lease.renewal(), move |store| {
            let _ = store.renew(&claim, length);
        });
        EndsDuty(Rc::clone(&self.desk))
    }

    /// Renews a claim that was asked for at this moment, on the thread of the store: no agent can hold that up. The attempt ends
    /// when it does not hold any more.
    pub(super) fn keep(&self, claim: &Claim, sent: Uptime, context: &mut Context<'_>) {
        // Its duty would end the new one.
        context.renew_no_more();
        let held = Arc::new(Held::new(self.lease, sent));
        let (renewed, claim, length) = (Arc::clone(&held), claim.clone(), self.lease.length);
        self.desk.begin_duty(self.lease.renewal(), move |store| {
            let sent = Uptime::now();
            renewed.renewed(sent, store.renew(&claim, length));
        });
        let duty = EndsDuty(Rc::clone(&self.desk));
        context.renew(LOOK, move || {
            let looked = held.look(Uptime::now());
            if !matches!(looked, Ok(Renewed::After(_))) {
                duty.0.end_duty();
            }
            looked
        });
    }
}

/// Ends the duty of a desk with what it is kept in.
pub(super) struct EndsDuty(Rc<Desk<Box<dyn Store + Send>>>);

impl Drop for EndsDuty {
    fn drop(&mut self) {
        self.0.end_duty();
    }
}
