//! Random histories of several claimers.

use proptest::prelude::*;

use super::*;
use crate::graph::sql::rebuild;
use crate::graph::suite::RETRIES;

/// A step of a random history; numbers are indexes into what exists.
#[derive(Debug, Clone)]
enum Command {
    Add {
        parent: Option<usize>,
        after: Option<usize>,
        feature: Option<usize>,
        priority: i64,
    },
    Depend(usize, usize),
    Free(usize, usize),
    Claim {
        claimer: usize,
        below: Option<usize>,
        of_feature: bool,
        alive: bool,
    },
    Book {
        claimer: usize,
        how: usize,
    },
    Recover,
    ByHand {
        task: usize,
        how: usize,
    },
    Delete {
        task: usize,
        recursive: bool,
    },
    Prioritise(usize, i64),
    /// To a feature, or to none.
    Move {
        task: usize,
        feature: usize,
    },
    DeleteFeature,
}

/// The features of a history: one is never deleted, one may be.
const FEATURES: [&str; 2] = ["stays", "goes"];

fn command() -> impl Strategy<Value = Command> {
    let any = 0..64_usize;
    let maybe = || proptest::option::of(0..64_usize);
    prop_oneof![
        6 => (maybe(), maybe(), proptest::option::of(0..2_usize), -2..3_i64)
            .prop_map(|(parent, after, feature, priority)| Command::Add { parent, after, feature, priority }),
        3 => (any.clone(), any.clone()).prop_map(|(a, b)| Command::Depend(a, b)),
        1 => (any.clone(), any.clone()).prop_map(|(a, b)| Command::Free(a, b)),
        5 => (0..3_usize, maybe(), proptest::bool::weighted(0.3), proptest::bool::weighted(0.9)).prop_map(
            |(claimer, below, of_feature, alive)| Command::Claim { claimer, below, of_feature, alive }),
        5 => (0..3_usize, 0..6_usize).prop_map(|(claimer, how)| Command::Book { claimer, how }),
        1 => Just(Command::Recover),
        3 => (any.clone(), 0..3_usize).prop_map(|(task, how)| Command::ByHand { task, how }),
        1 => (any.clone(), proptest::bool::ANY).prop_map(|(task, recursive)| Command::Delete { task, recursive }),
        1 => (any.clone(), -2..3_i64).prop_map(|(task, priority)| Command::Prioritise(task, priority)),
        1 => (any, 0..3_usize).prop_map(|(task, feature)| Command::Move { task, feature }),
        1 => Just(Command::DeleteFeature),
    ]
}

/// A graph with the claims that its claimers believe to hold.
struct History {
    store: SqliteStore,
    ids: Vec<String>,
    claims: [Vec<Claim>; 3],
}

impl History {
    fn id(&self, number: usize) -> String {
        self.ids.get(number % self.ids.len().max(1)).cloned().unwrap_or_default()
    }

    fn all(&self, status: Status) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let selection = Selection { status: Some(status), ..Selection::default() };
        let mut each = |task: Task| all.insert(task.id);
        self.store.list(&selection, &mut each).unwrap();
        all
    }

    /// Every task with its state and whether it has parts.
    fn states(&self) -> HashMap<String, (Status, bool)> {
        let mut states = HashMap::new();
        let mut each = |task: Task, _| states.insert(task.id, (task.status, task.parent_id)).is_none();
        self.store.tree(None, &mut each).unwrap();
        let parents: BTreeSet<String> = states.values().filter_map(|(_, parent)| parent.clone()).collect();
        states.into_iter().map(|(id, (status, _))| (id.clone(), (status, parents.contains(&id)))).collect()
    }

    /// Runs a command and checks that all its steps are legal.
    fn run(&mut self, command: &Command) {
        let before = self.states();
        self.perform(command);
        for (id, (to, has_parts)) in self.states() {
            let Some(&(from, had_parts)) = before.get(&id) else { continue };
            let by_hand = matches!(command, Command::ByHand { .. });
            // These follow from other tasks: a parent's state from its parts, and a pending task may become held.
            let is_parent = (has_parts || had_parts) && to != Status::InProgress;
            let is_held = to == Status::Blocked && transitions::is_legal(from, Status::Pending);
            let is_by_hand = by_hand && transitions::steps(from, to).is_some();
            let is_legal = from == to || transitions::is_legal(from, to);
            assert!(
                is_legal || is_parent || is_held || is_by_hand,
                "{id}: {from:?} to {to:?} by {command:?}"
            );
        }
    }

    /// Runs a command, which may be refused.
    fn perform(&mut self, command: &Command) {
        let before = self.all(Status::Done);
        match *command {
            Command::Add { parent, after, feature, priority } => {
                let feature = feature.map(|at| FEATURES[at].to_owned());
                let (parent, after) = (parent.map(|at| self.id(at)), after.map(|at| self.id(at)));
                let max_retries = Some(1);
                let after = after.into_iter().collect();
                let task = NewTask { parent, feature, after, priority, max_retries, ..new_task("x") };
                self.ids.extend(self.store.add(&task).ok());
            }
            Command::Depend(a, b) => drop(self.store.add_dependency(&self.id(a), &self.id(b))),
            Command::Free(a, b) => drop(self.store.remove_dependency(&self.id(a), &self.id(b))),
            Command::Claim { claimer, below, of_feature, alive } => {
                let mut holder = us(&format!("run-{claimer}"));
                holder.process.start_ticks += u64::from(!alive);
                let scope = match below {
                    Some(_) if of_feature => Scope::Feature(FEATURES[0].into()),
                    Some(at) => Scope::Subtree(self.id(at)),
                    None => Scope::All,
                };
                self.claims[claimer].extend(self.store.claim(&scope, &holder, LEASE).ok().flatten());
            }
            Command::Book { claimer, how } => self.book(claimer, how),
            Command::Recover => drop(self.store.recover().unwrap()),
            Command::ByHand { task, how } => {
                let id = self.id(task);
                let _ = match how {
                    0 => self.store.force_done(&id, true),
                    1 => self.store.force_fail(&id, "x"),
                    _ => self.store.reset(&id),
                };
            }
            Command::Delete { task, recursive } => {
                let id = self.id(task);
                let _ = self.store.delete(&id, recursive);
                self.ids.retain(|id| self.store.task(id).is_ok());
            }
            Command::Prioritise(task, priority) => {
                let changes = Changes { priority: Some(priority), ..Changes::default() };
                let _ = self.store.update(&self.id(task), &changes);
            }
            Command::Move { task, feature } => {
                let feature = Some((*FEATURES.get(feature).unwrap_or(&"")).to_owned());
                let _ = self.store.update(&self.id(task), &Changes { feature, ..Changes::default() });
            }
            Command::DeleteFeature => drop(self.store.delete_feature(FEATURES[1])),
        }
        let may_reopen = matches!(command, Command::Add { .. } | Command::ByHand { how: 2, .. });
        let gone = |id: &String| !self.ids.contains(id);
        let after = self.all(Status::Done);
        assert!(may_reopen || before.iter().all(|id| after.contains(id) || gone(id)), "done stays done");
    }

    /// A claim is booked once: a lost claim changes nothing.
    fn book(&mut self, claimer: usize, how: usize) {
        let Some(claim) = self.claims[claimer].pop() else { return };
        let details = self.store.details(&claim.task).ok();
        let store = &mut self.store;
        let lost = match how {
            0 | 1 => store.complete(&claim, HowDone::default()).is_err(),
            2 => store.fail(&claim, "x").is_err(),
            3 => store.retry(&claim, "x", RETRIES).is_err(),
            4 => store.release(&claim, "x").is_err(),
            _ => store.renew(&claim, LEASE).is_err(),
        };
        if lost {
            assert_eq!(store.details(&claim.task).ok(), details);
        } else {
            let was = details.unwrap().task;
            assert_eq!((was.status, was.claimed_by), (Status::InProgress, Some(format!("run-{claimer}"))));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_history_breaks_the_rules(commands in proptest::collection::vec(command(), 1..80)) {
        let claims = [Vec::new(), Vec::new(), Vec::new()];
        let mut history = History { store: SqliteStore::nowhere().unwrap(), ids: Vec::new(), claims };
        for name in FEATURES {
            history.store.put_feature(name, Some("spec.md"), None).unwrap();
        }
        for command in &commands {
            history.run(command);
            oracle(&history.store.connection);
        }
        let graph = &history.store.connection;
        let before = derived(graph);
        rebuild::rebuild(graph, &|_| unreachable!()).unwrap();
        prop_assert_eq!(derived(graph), before, "at once the same comes out");

        // An export keeps everything but claims, which processes hold.
        for id in history.all(Status::InProgress) {
            history.store.reset(&id).unwrap();
        }
        let mut copy = SqliteStore::nowhere().unwrap();
        let text = export(&history.store);
        take(&mut copy, &text).unwrap();
        prop_assert_eq!(export(&copy), text);
        oracle(&copy.connection);
    }
}
