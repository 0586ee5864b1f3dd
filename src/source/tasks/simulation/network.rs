//! Questions of machines to the store and to the remote, which may be lost, doubled or late, as their answers may.

use std::cell::RefCell;
use std::rc::Rc;

use super::events::Millis;
use super::world::World;

/// What machines ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Store,
    Remote,
}

impl Server {
    /// How long an answer is waited for.
    fn limit(self) -> Millis {
        match self {
            Self::Store => 15_000,
            Self::Remote => 60_000,
        }
    }
}

/// What a question does where it arrives. It may arrive twice.
type Act<T> = Rc<dyn Fn(&Rc<World>) -> T>;

impl World {
    /// Asks once; `None`: no answer came in time, and it may or may not have been done.
    pub(super) async fn question<T: 'static>(
        self: &Rc<Self>,
        machine: usize,
        server: Server,
        act: impl Fn(&Rc<Self>) -> T + 'static,
    ) -> Option<T> {
        let answer = Rc::new(RefCell::new(None));
        let act: Act<T> = Rc::new(act);
        let times = if self.chance.hits(self.faults.doubled) { 2 } else { 1 };
        for _ in 0..times {
            self.send((machine, server), Rc::clone(&act), Rc::clone(&answer));
        }
        let limit = self.now() + server.limit();
        self.events.until(limit, || answer.borrow().is_some()).await;
        answer.take()
    }

    fn send<T: 'static>(
        self: &Rc<Self>,
        (machine, server): (usize, Server),
        act: Act<T>,
        answer: Rc<RefCell<Option<T>>>,
    ) {
        if self.is_lost(machine, server) {
            return;
        }
        let (world, program) = (Rc::clone(self), self.events.current());
        self.events.after(self.way(server), move || {
            if world.is_down(machine, server) {
                return;
            }
            let given = act(&world);
            if let Some(strike) = world.machines[machine].strike.take() {
                world.strike(machine, strike);
            }
            if world.is_lost(machine, server) {
                return;
            }
            let then = Rc::clone(&world);
            world.events.after(world.way(server), move || {
                if !then.is_down(machine, server) {
                    answer.replace(Some(given));
                    then.events.wake(program);
                }
            });
        });
    }

    /// Whether something gets lost on its way.
    fn is_lost(&self, machine: usize, server: Server) -> bool {
        self.is_down(machine, server) || self.chance.hits(self.faults.lost)
    }

    fn is_down(&self, machine: usize, server: Server) -> bool {
        let at = server as usize;
        self.down[at].get() > self.now() || self.machines[machine].cut[at].get() > self.now()
    }

    /// How long something is on its way.
    fn way(&self, server: Server) -> Millis {
        if self.chance.hits(self.faults.late) {
            return self.chance.between(0, 2 * server.limit());
        }
        match server {
            Server::Store => self.chance.between(1, 40),
            Server::Remote => self.chance.between(10, 100),
        }
    }
}
