//! The graph, as the loop asks it: on a thread of its own, because a store may hang.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::engine::context::Context;
use crate::engine::desk::{Desk, Errand};
use crate::engine::outcome::End;
use crate::engine::stop::Urgency;
use crate::graph::{Claim, GraphError, Store};

/// How long a claim holds for processes that cannot see ours.
pub(super) const LEASE: Duration = Duration::from_mins(10);
/// The interval of its renewal.
const RENEWAL: Duration = Duration::from_mins(2);
/// How long a renewal may take: another one would come too late then.
const TOO_LATE: Duration = Duration::from_mins(6);
/// How often the result of a renewal is looked for.
const LOOK: Duration = Duration::from_secs(1);

/// A store that a source and its validator share.
#[derive(Clone)]
pub(crate) struct Graph(Rc<Desk<Box<dyn Store + Send>>>);

impl Graph {
    /// The graph in this store.
    ///
    /// # Errors
    /// If the system has no room for another thread.
    pub(crate) fn new(store: impl Store + Send + 'static) -> io::Result<Self> {
        let store: Box<dyn Store + Send> = Box::new(store);
        Ok(Self(Rc::new(Desk::open("the graph of tasks", store)?)))
    }

    /// Asks what the next agent needs: a request to stop ends that.
    pub(super) fn look<T: Send + 'static>(
        &self,
        context: &mut Context<'_>,
        order: impl FnOnce(&mut dyn Store) -> T + Send + 'static,
    ) -> Result<T, End> {
        self.0.ask(context, Urgency::AfterAttempt, |store| order(&mut **store))
    }

    /// Books what an agent has done: only an urgent request to stop ends that.
    pub(super) fn book<T: Send + 'static>(
        &self,
        context: &mut Context<'_>,
        order: impl FnOnce(&mut dyn Store) -> T + Send + 'static,
    ) -> Result<T, End> {
        self.0.ask(context, Urgency::Now, |store| order(&mut **store))
    }

    /// Asks where no loop runs.
    pub(super) fn look_before<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut dyn Store) -> T + Send + 'static,
    ) -> Result<T, End> {
        self.0.ask_before(|store| order(&mut **store))
    }

    /// Renews a claim while it is ours. The loop does not wait for that.
    pub(super) fn keep(&self, claim: &Claim, context: &mut Context<'_>) {
        let (desk, claim) = (Rc::clone(&self.0), claim.clone());
        let mut asked: Option<(Instant, Errand<Result<(), GraphError>>)> = None;
        context.renew(RENEWAL, move || {
            let Some((since, errand)) = &asked else {
                let claim = claim.clone();
                asked = Some((Instant::now(), desk.begin(move |store| store.renew(&claim, LEASE))));
                return Ok(LOOK);
            };
            match errand.result() {
                Some(renewed) => {
                    asked = None;
                    renewed.map(|()| RENEWAL).map_err(End::from)
                }
                None if since.elapsed() > TOO_LATE => Err(desk.given_up(None)),
                None => Ok(LOOK),
            }
        });
    }
}
