//! What must hold when a history has ended.

use std::collections::{BTreeMap, BTreeSet};

use super::{Shared, TASKS, claim_of, head};
use crate::graph::postgres::PostgresStore;
use crate::graph::sql::rebuild;
use crate::graph::sql::store::Database as _;
use crate::graph::{Claim, Standing, Store as _};

/// How often each of these is there.
fn counted<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts
}

/// Checks the answers against each other, and against what the store and the trunk have at the end.
pub(super) fn check(store: &PostgresStore, tasks: &[String], shared: &Shared) {
    let (answers, trunk) = (shared.answers(), shared.trunk());
    let landed: BTreeMap<&str, (&Claim, &str)> =
        answers.landed.iter().map(|(claim, commit)| (&*claim.task, (claim, &**commit))).collect();
    let completed: BTreeMap<&str, &Claim> =
        answers.completed.iter().map(|claim| (&*claim.task, claim)).collect();
    assert_eq!(landed.len(), answers.landed.len(), "a task has landed once");
    assert_eq!(completed.len(), answers.completed.len(), "a task is done once");
    let numbers = counted(answers.claimed.iter().map(|claim| (&claim.task, claim.fence)));
    assert!(numbers.values().all(|times| *times == 1), "a number is given to one claim");
    let ended = answers.released.iter().chain(&answers.completed).chain(&answers.handed_in);
    assert!(counted(ended.map(head)).values().all(|times| *times == 1), "a claim is ended once");

    let booked: BTreeSet<String> = answers.landed.iter().map(|(claim, _)| head(claim)).collect();
    let returned: BTreeSet<String> = answers.returned.iter().map(head).collect();
    assert!(booked.is_disjoint(&returned), "what has landed was not given back");
    let handed_in: BTreeSet<String> = answers.handed_in.iter().map(head).collect();
    assert_eq!(&booked | &returned, handed_in, "what was handed in has landed or was given back");
    let on_trunk = counted(trunk.landed.iter().map(|(claim, _)| head(claim)));
    assert!(on_trunk.values().all(|times| *times == 1), "nothing is on the trunk twice");
    // Another lander may give back what is about to be pushed.
    let on_trunk: BTreeSet<String> = on_trunk.into_keys().filter(|head| !returned.contains(head)).collect();
    assert_eq!(on_trunk, booked, "what is on the trunk is booked, and what is booked is there");

    for task in tasks {
        let last = numbers.keys().filter(|(of, _)| *of == task).map(|(_, fence)| *fence).max();
        let landing = store.landing(task).unwrap();
        match (landed.get(&**task), completed.get(&**task)) {
            (Some((claim, commit)), None) => {
                let landing = landing.unwrap();
                assert_eq!((landing.standing, &claim_of(&landing)), (Standing::Landed, *claim));
                assert_eq!((landing.landed.as_deref(), Some(claim.fence)), (Some(*commit), last));
            }
            (None, Some(claim)) => {
                assert_eq!((landing, Some(claim.fence)), (None, last));
            }
            both => panic!("{task} is done twice, or never: {both:?}"),
        }
    }
    let name = |seq: i64| Ok(seq.to_string());
    assert!(store.read(|graph| rebuild::is_up_to_date(graph, &name)).unwrap());
    // The history was one in which all of that happens.
    assert!(answers.refused > 0 && !answers.returned.is_empty() && answers.claimed.len() > TASKS);
}
