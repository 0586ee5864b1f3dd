//! Tests that every store has to pass.

use std::time::Duration;

use super::task::Verification;
use super::{
    Changes, Claim, Counts, Ended, FeatureStatus, GraphError, Holder, HowDone, Imported, JournalQuery,
    Landing, Lead, Made, NewTask, Retries, Scope, Selection, Standing, Status, Store, Unbooked, Words,
    import,
};
use crate::memory::journal::{Became, JournalEntry};

type Test = fn(&mut dyn Store);

pub(super) const RETRIES: Retries = Retries { of_run: None, usual: 3 };

pub(super) const TESTS: [Test; 26] = [
    who_has_another_nonce_books_nothing,
    a_task_that_only_groups_parts_is_what_they_make_it,
    next_is_the_lowest_priority_then_the_oldest,
    what_waits_is_claimed_when_the_last_blocker_is_done,
    a_child_of_a_blocked_task_is_blocked,
    parents_come_after_their_children,
    nothing_below_a_failed_parent_is_ready,
    a_child_of_a_claimed_task_releases_it_and_one_of_a_done_task_reopens_it,
    who_lost_a_claim_books_nothing,
    retries_are_counted_and_end,
    who_says_how_often_a_task_is_tried_again,
    an_unverified_task_stays_so_until_it_is_verified,
    a_scope_is_counted_and_says_what_holds_it_up,
    the_journal_is_found_by_words,
    steps_by_hand_are_legal_ones,
    dependencies_that_cannot_be_are_refused,
    what_is_too_deep_is_refused,
    deleting_leaves_no_holes,
    claims_of_the_dead_come_back,
    features_are_what_their_tasks_make_them,
    an_import_is_all_or_nothing_and_an_export_can_be_imported,
    what_was_decided_here_about_an_issue_stays,
    what_is_handed_in_is_done_when_it_has_landed,
    what_cannot_land_comes_back_before_all_others_and_fails_in_the_end,
    a_landing_that_was_withdrawn_is_not_booked,
    one_process_lands_on_a_trunk_at_a_time,
];

pub(super) const LEASE: Duration = Duration::from_mins(5);

pub(super) fn us(run: &str) -> Holder {
    Holder::of_self(run).unwrap()
}

fn add(store: &mut dyn Store, title: &str) -> String {
    store.add(&NewTask { title: title.into(), ..NewTask::default() }).unwrap()
}

fn add_below(store: &mut dyn Store, parent: &str, title: &str) -> String {
    let task = NewTask { title: title.into(), parent: Some(parent.into()), ..NewTask::default() };
    store.add(&task).unwrap()
}

fn add_after(store: &mut dyn Store, after: &[&String], title: &str) -> String {
    let after = after.iter().map(|id| (*id).clone()).collect();
    store.add(&NewTask { title: title.into(), after, ..NewTask::default() }).unwrap()
}

fn claim(store: &mut dyn Store) -> Option<Claim> {
    store.claim(&Scope::All, &us("run-1"), LEASE).unwrap()
}

fn finish(store: &mut dyn Store, id: &str) {
    let claim = store.claim(&Scope::Subtree(id.into()), &us("run-1"), LEASE).unwrap().unwrap();
    assert_eq!(claim.task, id);
    assert_eq!(store.complete(&claim, HowDone::default()).unwrap(), Ended::Done);
}

fn status(store: &dyn Store, id: &str) -> Status {
    store.task(id).unwrap().status
}

fn refused<T: std::fmt::Debug>(result: Result<T, GraphError>) -> String {
    result.unwrap_err().to_string()
}

fn ready(store: &dyn Store) -> Vec<String> {
    let mut titles = Vec::new();
    let selection = Selection { ready: true, ..Selection::default() };
    store
        .list(&selection, &mut |task| {
            titles.push(task.title);
            true
        })
        .unwrap();
    titles
}

fn made(head: &str) -> Made {
    Made { trunk: "main".into(), base: "base".into(), head: head.into() }
}

fn lead(store: &mut dyn Store) -> Lead {
    store.lead("main", &us("lander"), LEASE).unwrap().unwrap()
}

/// Hands the next task in, and answers its landing.
fn hand_in(store: &mut dyn Store, head: &str) -> Landing {
    let claim = claim(store).unwrap();
    assert_eq!(store.queue(&claim, &made(head), HowDone::default()).unwrap(), Ended::Queued);
    store.landing(&claim.task).unwrap().unwrap()
}

fn what_is_handed_in_is_done_when_it_has_landed(store: &mut dyn Store) {
    let a = add(store, "a");
    let b = add_after(store, &[&a], "b");
    let landing = hand_in(store, "head");
    assert_eq!(
        (status(store, &a), status(store, &b), claim(store)),
        (Status::Landing, Status::Blocked, None)
    );
    assert_eq!(store.counts(&Scope::All).unwrap(), Counts { total: 2, landing: 1, ..Counts::default() });
    assert_eq!((landing.made.clone(), landing.standing), (made("head"), Standing::Waiting));
    assert_eq!(landing.reference(), format!("refs/ralph/tasks/{a}/1-{}", landing.nonce));
    assert_eq!(store.landings().unwrap(), std::slice::from_ref(&landing));
    let lead = lead(store);
    store.gate_begins(&lead, &[&landing]).unwrap();
    assert_eq!(store.gates().unwrap()[0].tasks, std::slice::from_ref(&a));
    store.gate_ends(&lead).unwrap();
    assert_eq!(store.gates().unwrap(), []);
    assert!(store.land(&lead, &landing, "tip", "merge").unwrap());
    assert!(!store.land(&lead, &landing, "tip", "again").unwrap(), "it lands once");
    assert_eq!((status(store, &a), ready(store)), (Status::Done, vec!["b".to_owned()]));
    let landed = store.landing(&a).unwrap().unwrap();
    assert_eq!((landed.landed.as_deref(), &*landed.made.base, landed.gates), (Some("merge"), "tip", 1));
    assert_eq!(store.commits_before(&b).unwrap(), [(a, "merge".to_owned())]);
    assert_eq!(store.landings().unwrap(), []);
}

fn what_cannot_land_comes_back_before_all_others_and_fails_in_the_end(store: &mut dyn Store) {
    let a = store.add(&NewTask { title: "a".into(), priority: 9, ..NewTask::default() }).unwrap();
    let landing = hand_in(store, "head");
    add(store, "b");
    let lead = lead(store);
    assert_eq!(store.give_back(&lead, &landing, "red", 1).unwrap(), Some(Ended::Returned));
    assert_eq!(store.give_back(&lead, &landing, "red", 1).unwrap(), None, "it does not wait any more");
    assert_eq!(status(store, &a), Status::Pending);
    let claim = store.claim_returned(&Scope::All, &us("run-1"), LEASE).unwrap().unwrap();
    assert_eq!((&claim.task, store.task(&a).unwrap().retry_count), (&a, 0));
    assert_eq!(store.claim_returned(&Scope::All, &us("run-1"), LEASE).unwrap(), None);
    let kept = store.landing(&a).unwrap().unwrap();
    assert_eq!((kept.standing, kept.returned, &*kept.reason), (Standing::Returned, 1, "red"));
    // A release keeps its turn.
    store.release(&claim, "").unwrap();
    let claim = store.claim_returned(&Scope::Subtree(a.clone()), &us("run-1"), LEASE).unwrap().unwrap();
    store.queue(&claim, &made("fixed"), HowDone::default()).unwrap();
    let landing = store.landing(&a).unwrap().unwrap();
    assert_eq!(landing.made.head, "fixed");
    assert_eq!(store.give_back(&lead, &landing, "red again", 1).unwrap(), Some(Ended::Failed));
    let last = store.logs(&a).unwrap().pop().unwrap().message;
    assert!(
        last.starts_with("failed: it could not land after it was returned 1 time")
            && last.contains("red again"),
        "{last}"
    );
    assert_eq!((status(store, &a), ready(store)), (Status::Failed, vec!["b".to_owned()]));
}

fn a_landing_that_was_withdrawn_is_not_booked(store: &mut dyn Store) {
    let a = add(store, "a");
    let lead = lead(store);
    let landing = hand_in(store, "one");
    store.reset(&a).unwrap();
    assert!(!store.land(&lead, &landing, "tip", "x").unwrap());
    assert_eq!((status(store, &a), store.landing(&a).unwrap()), (Status::Pending, None));
    let landing = hand_in(store, "two");
    assert!(refused(store.force_done(&a, false)).contains("--force"));
    store.force_done(&a, true).unwrap();
    assert_eq!((status(store, &a), store.give_back(&lead, &landing, "x", 3).unwrap()), (Status::Done, None));
    store.reset(&a).unwrap();
    hand_in(store, "three");
    store.force_fail(&a, "no").unwrap();
    assert_eq!(status(store, &a), Status::Failed);
    let b = add(store, "b");
    let landing = hand_in(store, "four");
    // A part makes it open again.
    let part = add_below(store, &b, "part");
    assert_eq!((status(store, &b), ready(store)), (Status::Pending, vec!["part".to_owned()]));
    assert!(!store.land(&lead, &landing, "tip", "x").unwrap());
    store.delete(&part, false).unwrap();
    hand_in(store, "five");
    store.delete(&b, false).unwrap();
    assert_eq!(store.landings().unwrap(), []);
}

fn one_process_lands_on_a_trunk_at_a_time(store: &mut dyn Store) {
    add(store, "a");
    let landing = hand_in(store, "head");
    let first = lead(store);
    assert_eq!(lead(store), first, "it is prolonged");
    let mut other = us("other");
    assert_eq!(store.lead("main", &other, LEASE).unwrap(), None);
    assert!(store.lead("side", &other, LEASE).unwrap().is_some());
    assert_eq!(store.leader("main").unwrap().map(|(leader, _)| leader), Some(us("lander")));
    store.give_up_lead(&first).unwrap();
    // One that is gone, on this machine.
    other.process.start_ticks += 1;
    let second = store.lead("main", &other, Duration::ZERO).unwrap().unwrap();
    let third = lead(store);
    assert!(first.fence < second.fence && second.fence < third.fence);
    let same_number = Lead { holder: second.holder.clone(), ..third.clone() };
    for stale in [first, second, same_number] {
        assert!(refused(store.land(&stale, &landing, "tip", "x")).contains("lead on main is lost"));
        assert!(refused(store.give_back(&stale, &landing, "x", 3)).contains("nothing is booked"));
    }
    assert!(store.land(&third, &landing, "tip", "x").unwrap());
}

fn who_has_another_nonce_books_nothing(store: &mut dyn Store) {
    add(store, "a");
    let ours = claim(store).unwrap();
    let theirs = Claim { nonce: "0123456789abcdef".into(), ..ours.clone() };
    assert!(refused(store.complete(&theirs, HowDone::default())).contains("is lost"));
    assert!(refused(store.renew(&theirs, LEASE)).contains("is lost"));
    assert_eq!(store.complete(&ours, HowDone::default()).unwrap(), Ended::Done);
}

fn next_is_the_lowest_priority_then_the_oldest(store: &mut dyn Store) {
    for (title, priority) in [("c", 1), ("b", 0), ("d", 1), ("a", -1)] {
        store.add(&NewTask { title: title.into(), priority, ..NewTask::default() }).unwrap();
    }
    assert_eq!(ready(store), ["a", "b", "c", "d"]);
    let mut titles = Vec::new();
    while let Some(claim) = claim(store) {
        titles.push(store.task(&claim.task).unwrap().title);
    }
    assert_eq!(titles, ["a", "b", "c", "d"]);
    assert_eq!(ready(store), [""; 0]);
}

fn what_waits_is_claimed_when_the_last_blocker_is_done(store: &mut dyn Store) {
    let (a, b) = (add(store, "a"), add(store, "b"));
    let c = add_after(store, &[&a, &b], "c");
    assert_eq!(status(store, &c), Status::Blocked);
    finish(store, &a);
    assert_eq!((status(store, &c), ready(store)), (Status::Blocked, vec!["b".to_owned()]));
    store.remove_dependency(&b, &c).unwrap();
    assert_eq!(status(store, &c), Status::Pending);
    store.add_dependency(&b, &c).unwrap();
    finish(store, &b);
    assert_eq!(ready(store), ["c"]);
    store.reset(&a).unwrap();
    assert_eq!((status(store, &c), ready(store)), (Status::Blocked, vec!["a".to_owned()]));
}

fn a_child_of_a_blocked_task_is_blocked(store: &mut dyn Store) {
    let (a, top) = (add(store, "a"), add(store, "top"));
    let middle = add_below(store, &top, "middle");
    let leaf = add_below(store, &middle, "leaf");
    store.add_dependency(&a, &top).unwrap();
    for id in [&top, &middle, &leaf] {
        assert_eq!(status(store, id), Status::Blocked);
    }
    let late = add_below(store, &middle, "late");
    assert_eq!(status(store, &late), Status::Blocked);
    finish(store, &a);
    for id in [&top, &middle, &leaf, &late] {
        assert_eq!(status(store, id), Status::Pending);
    }
    assert_eq!(ready(store), ["leaf", "late"]);
}

fn parents_come_after_their_children(store: &mut dyn Store) {
    let top = add(store, "top");
    let middle = add_below(store, &top, "middle");
    let (a, b) = (add_below(store, &middle, "a"), add_below(store, &middle, "b"));
    finish(store, &a);
    assert_eq!((status(store, &middle), ready(store)), (Status::Pending, vec!["b".to_owned()]));
    assert!(refused(store.force_done(&middle, true)).contains("it has parts"));
    finish(store, &b);
    // Each has work of its own, which comes after its parts.
    assert_eq!((status(store, &middle), ready(store)), (Status::Pending, vec!["middle".to_owned()]));
    finish(store, &middle);
    assert_eq!((status(store, &middle), status(store, &top)), (Status::Done, Status::Pending));
    finish(store, &top);
    assert_eq!(status(store, &top), Status::Done);
    store.reset(&a).unwrap();
    assert_eq!((status(store, &middle), status(store, &top)), (Status::Pending, Status::Pending));
    store.force_fail(&a, "no way").unwrap();
    assert_eq!((status(store, &middle), status(store, &top)), (Status::Failed, Status::Failed));
    store.reset(&top).unwrap();
    for id in [&top, &middle, &a, &b] {
        assert_eq!(status(store, id), Status::Pending);
    }
}

fn nothing_below_a_failed_parent_is_ready(store: &mut dyn Store) {
    let top = add(store, "top");
    let (a, b) = (add_below(store, &top, "a"), add_below(store, &top, "b"));
    store.force_fail(&a, "").unwrap();
    assert_eq!((status(store, &b), ready(store)), (Status::Pending, Vec::new()));
    store.delete(&a, false).unwrap();
    assert_eq!((status(store, &top), ready(store)), (Status::Pending, vec!["b".to_owned()]));
    store.force_fail(&b, "").unwrap();
    store.delete(&b, false).unwrap();
    assert_eq!((status(store, &top), ready(store)), (Status::Pending, vec!["top".to_owned()]));
}

fn a_child_of_a_claimed_task_releases_it_and_one_of_a_done_task_reopens_it(store: &mut dyn Store) {
    let task = add(store, "task");
    let ours = claim(store).unwrap();
    let child = add_below(store, &task, "child");
    assert_eq!((status(store, &task), ready(store)), (Status::InProgress, vec!["child".to_owned()]));
    assert_eq!(store.complete(&ours, HowDone::default()).unwrap(), Ended::Released);
    assert_eq!(status(store, &task), Status::Pending);
    finish(store, &child);
    assert_eq!((status(store, &task), ready(store)), (Status::Pending, vec!["task".to_owned()]));
    finish(store, &task);
    assert_eq!(status(store, &task), Status::Done);
    let waits = add_after(store, &[&task], "waits");
    assert_eq!(status(store, &waits), Status::Pending);
    add_below(store, &task, "another");
    assert_eq!((status(store, &task), status(store, &waits)), (Status::Pending, Status::Blocked));
}

fn a_task_that_only_groups_parts_is_what_they_make_it(store: &mut dyn Store) {
    let text = "- [ ] top\n  - [ ] a\n  - [ ] b\n";
    store.import(&mut import::read(text.as_bytes(), &|_| true).unwrap(), false).unwrap();
    let id = |store: &dyn Store, title: &str| {
        let mut found = String::new();
        let mut each = |task: super::Task| {
            if task.title == title {
                found = task.id;
            }
            true
        };
        store.list(&Selection::default(), &mut each).unwrap();
        found
    };
    let [top, a, b] = ["top", "a", "b"].map(|title| id(store, title));
    assert_eq!(store.counts(&Scope::All).unwrap().total, 2);
    finish(store, &a);
    // A part that is added later keeps the task's own work.
    let part = add_below(store, &b, "part of b");
    finish(store, &part);
    assert_eq!((status(store, &top), ready(store)), (Status::Pending, vec!["b".to_owned()]));
    finish(store, &b);
    assert_eq!(status(store, &top), Status::Done);
    // A task that has lost its parts is like any other.
    for id in [&part, &b, &a] {
        store.delete(id, true).unwrap_or_default();
    }
    assert_eq!(status(store, &top), Status::Done);
    assert_eq!(store.reopen_unbooked("run-1").unwrap(), Unbooked::default());
    let late = add_below(store, &top, "late");
    finish(store, &late);
    assert_eq!(ready(store), ["top"]);
}

fn who_lost_a_claim_books_nothing(store: &mut dyn Store) {
    let task = add(store, "task");
    let lost = claim(store).unwrap();
    store.reset(&task).unwrap();
    let held = store.claim(&Scope::All, &us("run-2"), LEASE).unwrap().unwrap();
    assert!(held.fence > lost.fence);
    let before = store.details(&task).unwrap();
    for said in [
        refused(store.complete(&lost, HowDone::default())),
        refused(store.fail(&lost, "x")),
        refused(store.release(&lost, "x")),
        refused(store.retry(&lost, "x", RETRIES)),
        refused(store.renew(&lost, LEASE)),
    ] {
        assert_eq!(said, format!("the claim on {task} is lost: it was taken back, and nothing is booked"));
    }
    assert_eq!(store.details(&task).unwrap(), before);
    assert_eq!(before.task.claimed_by.as_deref(), Some("run-2"));
    store.renew(&held, LEASE).unwrap();
    assert_eq!(store.complete(&held, HowDone::default()).unwrap(), Ended::Done);
    assert_eq!(store.task(&task).unwrap().claimed_by, None);
}

fn retries_are_counted_and_end(store: &mut dyn Store) {
    let task = NewTask { title: "task".into(), max_retries: Some(2), ..NewTask::default() };
    let task = store.add(&task).unwrap();
    for expected in [Ended::Retried, Ended::Retried, Ended::Failed] {
        let ours = claim(store).unwrap();
        assert_eq!(store.retry(&ours, "the tests fail", RETRIES).unwrap(), expected);
    }
    let details = store.details(&task).unwrap();
    assert_eq!((details.task.retry_count, details.task.status), (2, Status::Failed));
    let log: Vec<&str> = details.log.iter().map(|line| line.message.as_str()).collect();
    let last = "failed: the tests fail (after 2 of 2 retries)";
    assert_eq!(log, ["retry 1 of 2: the tests fail", "retry 2 of 2: the tests fail", last]);
    store.reset(&task).unwrap();
    assert_eq!(store.task(&task).unwrap().retry_count, 0);
}

fn steps_by_hand_are_legal_ones(store: &mut dyn Store) {
    let (a, b) = (add(store, "a"), add(store, "b"));
    store.force_done(&a, false).unwrap();
    assert_eq!(
        refused(store.force_fail(&a, "")),
        format!("{a} is done and cannot become failed: 'ralph task reset' it first")
    );
    assert!(refused(store.force_done(&a, true)).contains("is done and cannot become done"));
    let ours = claim(store).unwrap();
    assert_eq!(ours.task, b);
    assert!(refused(store.force_done(&b, false)).contains("claimed by run-1"));
    store.force_done(&b, true).unwrap();
    assert!(refused(store.complete(&ours, HowDone::default())).contains("is lost"));

    let parent = add(store, "parent");
    add_below(store, &parent, "child");
    for said in [refused(store.force_done(&parent, true)), refused(store.force_fail(&parent, ""))] {
        assert!(said.contains("it has parts"), "{said}");
    }
    let waits = add_after(store, &[&parent], "waits");
    store.force_done(&waits, false).unwrap();
    assert_eq!(status(store, &waits), Status::Done);
    store.reset(&waits).unwrap();
    assert_eq!(status(store, &waits), Status::Blocked);
}

fn dependencies_that_cannot_be_are_refused(store: &mut dyn Store) {
    let top = add(store, "top");
    let below = add_below(store, &top, "below");
    let waits = add_after(store, &[&top], "waits");
    let other = add(store, "other");
    for (blocker, blocked, what) in [
        (&top, &top, "cannot wait for itself"),
        (&top, &waits, "waits for"),
        (&top, &below, "part of the other"),
        (&below, &top, "part of the other"),
        (&waits, &top, "that is a cycle"),
        // Via a part: `below` ends before `top` does, and `waits` waits for that.
        (&waits, &below, "that is a cycle"),
    ] {
        let said = refused(store.add_dependency(blocker, blocked));
        assert!(said.contains(what), "{said}");
    }
    let said = refused(store.add_dependency(&waits, &below));
    assert!(said.contains(&format!("{below} → {top} → {waits} → {below}")), "{said}");
    let task = NewTask {
        title: "x".into(),
        parent: Some(top.clone()),
        after: vec![waits.clone()],
        ..NewTask::default()
    };
    assert!(refused(store.add(&task)).contains("cycle"));
    store.force_done(&other, false).unwrap();
    assert!(refused(store.add_dependency(&below, &other)).contains("is done and cannot become blocked"));
    store.reset(&other).unwrap();
    store.claim(&Scope::Subtree(other.clone()), &us("run-1"), LEASE).unwrap().unwrap();
    assert!(refused(store.add_dependency(&below, &other)).contains("is in_progress and cannot become"));
    assert!(refused(store.remove_dependency(&below, &other)).contains("does not wait for"));
    assert_eq!(store.details(&top).unwrap().children, [below]);
}

fn what_is_too_deep_is_refused(store: &mut dyn Store) {
    let mut ids = vec![add(store, "top")];
    for level in 2..=100 {
        ids.push(add_below(store, &ids[level - 2], "x"));
    }
    let task = NewTask { title: "x".into(), parent: ids.last().cloned(), ..NewTask::default() };
    let said = refused(store.add(&task));
    assert_eq!(said, "the task would stand on level 101, 100 is the deepest: put it below a task further up");
    let line =
        |id: &str, parent: &str| format!("{{\"id\":\"{id}\",\"title\":\"a\",\"parent_id\":\"{parent}\"}}");
    let lines = [import::header(), line("t-aaaaaa", &ids[98]), line("t-bbbbbb", "t-aaaaaa")];
    let mut import = |lines: &[String]| {
        store.import(&mut import::read(lines.join("\n").as_bytes(), &|_| true).unwrap(), false)
    };
    assert!(refused(import(&lines)).starts_with("a (line 3) would stand on level 101"));
    import(&lines[..2]).unwrap();
    // A moved parent takes its parts to a deeper level, too.
    let moved = line(&ids[0], "t-cccccc");
    let above = "{\"id\":\"t-cccccc\",\"title\":\"above\"}".to_owned();
    assert!(refused(import(&[import::header(), above, moved])).contains("would stand on level 101"));
}

fn deleting_leaves_no_holes(store: &mut dyn Store) {
    let top = add(store, "top");
    let child = add_below(store, &top, "child");
    let waits = add_after(store, &[&child], "waits");
    assert!(refused(store.delete(&top, false)).contains("--recursive"));
    for said in [refused(store.delete(&top, true)), refused(store.delete(&child, false))] {
        assert!(said.contains(&format!("{child} blocks {waits}")), "{said}");
    }
    let ours = claim(store).unwrap();
    assert!(refused(store.delete(&child, false)).contains("claimed by run-1"));
    store.release(&ours, "x").unwrap();
    store.delete(&waits, false).unwrap();
    assert_eq!(store.delete(&top[..7], true).unwrap(), 2);
    assert_eq!(ready(store), [""; 0]);
    assert!(refused(store.task(&child)).starts_with(&format!("no task '{child}'")));
    let fresh = add(store, "fresh");
    store.update(&fresh, &Changes { priority: Some(3), ..Changes::default() }).unwrap();
    assert_eq!((ready(store), store.task(&fresh).unwrap().priority), (vec!["fresh".to_owned()], 3));
    assert!(claim(store).is_some());
}

fn claims_of_the_dead_come_back(store: &mut dyn Store) {
    let task = add(store, "task");
    let mut dead = us("run-dead");
    dead.process.start_ticks += 1;
    let lost = store.claim(&Scope::All, &dead, Duration::ZERO).unwrap().unwrap();
    let held = claim(store).unwrap();
    assert_eq!((&held.task, held.fence), (&task, lost.fence + 1));
    assert_eq!(store.logs(&task).unwrap()[0].message, "released: run-dead, which had claimed it, is gone");
    assert_eq!(store.recover().unwrap(), 0, "ours lives");
    store.complete(&held, HowDone::default()).unwrap();

    let far = Holder { machine: "far away".into(), ..dead };
    let other = add(store, "other");
    store.claim(&Scope::All, &far, LEASE).unwrap().unwrap();
    assert_eq!((store.recover().unwrap(), claim(store)), (0, None), "its lease still runs");
    store.reset(&other).unwrap();
    store.claim(&Scope::All, &far, Duration::ZERO).unwrap().unwrap();
    assert_eq!(store.recover().unwrap(), 1);
    assert_eq!(claim(store).unwrap().task, other);
}

fn features_are_what_their_tasks_make_them(store: &mut dyn Store) {
    let status = |store: &dyn Store| store.feature("f").unwrap().status;
    store.put_feature("f", None, None).unwrap();
    assert_eq!(status(store), FeatureStatus::Draft);
    store.put_feature("f", None, Some("features/f/plan.md")).unwrap();
    assert_eq!(status(store), FeatureStatus::Planned);
    add(store, "of none");
    let task = NewTask { title: "a".into(), feature: Some("f".into()), ..NewTask::default() };
    let a = store.add(&task).unwrap();
    let part = add_below(store, &a, "part");
    assert_eq!(status(store), FeatureStatus::Ready);
    let scope = Scope::Feature("f".into());
    let claim = store.claim(&scope, &us("run-1"), LEASE).unwrap().unwrap();
    assert_eq!((claim.task.as_str(), status(store)), (part.as_str(), FeatureStatus::Running));
    assert_eq!(store.claim(&scope, &us("run-2"), LEASE).unwrap(), None, "the other task is of no feature");
    assert!(refused(store.delete_feature("f")).contains("'f' is running, 1 of its tasks"));
    store.fail(&claim, "x").unwrap();
    assert_eq!(status(store), FeatureStatus::Failed);
    store.reset(&part).unwrap();
    finish(store, &part);
    finish(store, &a);
    assert_eq!(status(store), FeatureStatus::Done);
    store.delete_feature("f").unwrap();
    assert_eq!((store.features().unwrap().len(), store.details(&part).unwrap().feature), (0, None));
    assert!(refused(store.claim(&scope, &us("run-1"), LEASE)).contains("no feature 'f'"));
    assert!(
        refused(store.claim(&Scope::Subtree("t-x".into()), &us("run-1"), LEASE)).contains("no task 't-x'")
    );
}

fn import(store: &mut dyn Store, text: &str) -> Result<Imported, GraphError> {
    store.import(&mut import::read(text.as_bytes(), &|_| true).unwrap(), false)
}

fn export(store: &dyn Store) -> String {
    let mut lines = Vec::new();
    let mut each = |line: &str| {
        lines.push(line.to_owned());
        true
    };
    store.export(&mut each).unwrap();
    lines.join("\n")
}

fn an_import_is_all_or_nothing_and_an_export_can_be_imported(store: &mut dyn Store) {
    store.put_feature("f", Some("features/f/spec.md"), None).unwrap();
    let before = export(store);
    assert!(refused(import(store, "- [ ] a\n- [ ] b\n- [ ] a\n")).contains("'a' is there twice"));
    assert_eq!(export(store), before);
    let list = "- [ ] a\n  - [x] b\n  - [ ] c\n";
    assert_eq!(
        import(store, list).unwrap(),
        Imported { added: 3, updated: 0, unchanged: 0, left_deleted: 0 }
    );
    assert_eq!(
        import(store, list).unwrap(),
        Imported { added: 0, updated: 0, unchanged: 3, left_deleted: 0 }
    );
    let whole = export(store);
    assert_eq!(
        import(store, &whole).unwrap(),
        Imported { added: 0, updated: 0, unchanged: 3, left_deleted: 0 }
    );
    assert_eq!(export(store), whole);
    assert_eq!(ready(store), ["c"]);
}

/// Imports an issue with these labels; returns the counts.
fn issue(store: &mut dyn Store, title: &str, labels: &[&str], again: bool) -> Imported {
    let issue = import::Issue {
        number: 7,
        address: "https://github.com/a/b/issues/7".into(),
        title: title.into(),
        labels: labels.iter().map(|&label| label.into()).collect(),
        ..import::Issue::default()
    };
    let mut entry = issue.into_entry(1, "github:a/b#7".into());
    if let import::ImportEntry::Task(item) = &mut entry {
        item.issue.as_mut().unwrap().again = again;
    }
    store.import(&mut std::iter::once(Ok(entry)), false).unwrap()
}

fn what_was_decided_here_about_an_issue_stays(store: &mut dyn Store) {
    let only = |store: &dyn Store| {
        let mut tasks = Vec::new();
        let selection = Selection::default();
        let mut each = |task| {
            tasks.push(task);
            true
        };
        store.list(&selection, &mut each).unwrap();
        let [task] = <[_; 1]>::try_from(tasks).unwrap();
        task
    };
    let nothing = Imported::default();
    assert_eq!(issue(store, "Do", &[], false), Imported { added: 1, ..nothing });
    assert_eq!(issue(store, "Do it", &["P1"], false), Imported { updated: 1, ..nothing });
    assert_eq!((only(store).title.as_str(), only(store).priority), ("Do it", 1));
    assert_eq!(issue(store, "Do it", &[], false).updated, 1);
    assert_eq!(only(store).priority, 0, "it goes with its label");
    let id = only(store).id;
    store.update(&id, &Changes { priority: Some(5), ..Changes::default() }).unwrap();
    issue(store, "Do it", &["P2"], false);
    assert_eq!(only(store).priority, 5, "set by hand");
    issue(store, "Do it", &[], false);
    assert_eq!(only(store).priority, 5);
    let known = store.imported().unwrap();
    assert_eq!(known[0].address.as_deref(), Some("https://github.com/a/b/issues/7"));

    let before = export(store);
    store.delete(&id, false).unwrap();
    assert_eq!(issue(store, "Do it", &[], false), Imported { left_deleted: 1, ..nothing });
    let deleted = export(store);
    assert!(deleted.contains("\"deleted\":\"github:a/b#7\""), "{deleted}");
    // A ralph that does not know these lines refuses it by its version.
    assert!(deleted.starts_with("{\"ralph_tasks\":2}\n"), "{deleted}");
    import(store, &deleted).unwrap();
    assert!(store.imported().unwrap().is_empty());
    assert_eq!(issue(store, "Do it", &["P3"], true), Imported { added: 1, ..nothing });
    let other = only(store).id;
    assert_ne!(other, id);
    // The earlier task is the one of the same issue.
    assert_eq!(import(store, &before).unwrap().added, 0);
    assert_eq!((only(store).id, only(store).priority), (other, 5));
    import(store, &deleted).unwrap();
    assert_eq!(issue(store, "Do it", &[], false), Imported { unchanged: 1, ..nothing }, "it is not deleted");
}

fn who_says_how_often_a_task_is_tried_again(store: &mut dyn Store) {
    for (own, of_run, usual, expected) in [
        (None, None, 0, 0),
        (None, None, 1, 1),
        (Some(1), None, 0, 1),
        (Some(3), None, 0, 3),
        (Some(5), Some(0), 2, 0),
        (Some(0), Some(2), 0, 2),
    ] {
        let task = NewTask { title: "task".into(), max_retries: own, ..NewTask::default() };
        let id = store.add(&task).unwrap();
        let mut retries = 0;
        let ended = loop {
            let ours = claim(store).unwrap();
            match store.retry(&ours, "no", Retries { of_run, usual }).unwrap() {
                Ended::Retried => retries += 1,
                ended => break ended,
            }
        };
        assert_eq!((retries, ended), (expected, Ended::Failed), "{own:?} {of_run:?} {usual}");
        let log = store.logs(&id).unwrap();
        let last = format!("failed: no (after {expected} of {expected} retries)");
        assert_eq!(log.last().unwrap().message, last);
    }
}

fn an_unverified_task_stays_so_until_it_is_verified(store: &mut dyn Store) {
    let id = add(store, "task");
    let ours = claim(store).unwrap();
    assert!(!store.is_unverified(&id).unwrap());
    store.mark_unverified(&ours, Some("c0ffee")).unwrap();
    assert!(store.is_unverified(&id).unwrap());
    assert_eq!(store.commits_before(&id).unwrap(), [(id.clone(), "c0ffee".to_owned())]);
    store.release(&ours, "interrupted in its verification").unwrap();
    assert!(store.is_unverified(&id).unwrap());
    assert!(store.mark_unverified(&ours, None).is_err(), "the claim is lost");
    claim(store).unwrap();
    assert!(store.is_unverified(&id).unwrap(), "it is known to whoever has it");
    store.reset(&id).unwrap();
    assert!(!store.is_unverified(&id).unwrap(), "it is done anew");
    let ours = claim(store).unwrap();
    store.mark_unverified(&ours, None).unwrap();
    store.retry(&ours, "not passed", Retries { of_run: None, usual: 3 }).unwrap();
    assert!(!store.is_unverified(&id).unwrap(), "a verdict has come");
    // The claim of a dead process.
    let mut dead = us("run-dead");
    dead.process.start_ticks += 1;
    let theirs = store.claim(&Scope::All, &dead, Duration::ZERO).unwrap().unwrap();
    store.mark_unverified(&theirs, None).unwrap();
    assert_eq!(store.recover().unwrap(), 1);
    assert!(store.is_unverified(&id).unwrap(), "the next run verifies first");
    let ours = claim(store).unwrap();
    store.complete(&ours, HowDone { commit: Some("c0ffee"), is_verified: true, attempt: None }).unwrap();
    assert_eq!(store.task(&ours.task).unwrap().verification_status, Verification::Passed);
    assert!(!store.is_unverified(&id).unwrap());
    let next =
        store.add(&NewTask { title: "next".into(), after: vec![id.clone()], ..NewTask::default() }).unwrap();
    assert_eq!(store.commits_before(&next).unwrap(), [(id.clone(), "c0ffee".to_owned())]);
    assert_eq!(store.commits_before(&id).unwrap(), []);
    assert!(store.reopen(&id, "it is not there").unwrap());
    assert!(store.is_unverified(&id).unwrap() && store.task(&id).unwrap().status == Status::Pending);
    assert_eq!(store.commits_before(&id).unwrap(), [(id.clone(), "c0ffee".to_owned())]);
    assert_eq!(store.logs(&id).unwrap().last().unwrap().message, "opened again: it is not there");
    assert!(!store.reopen(&id, "once more").unwrap(), "it is open");
}

fn a_scope_is_counted_and_says_what_holds_it_up(store: &mut dyn Store) {
    let top = add(store, "top");
    let part = |store: &mut dyn Store, title: &str, after: &[&String]| {
        let after = after.iter().map(|id| (*id).clone()).collect();
        store
            .add(&NewTask { title: title.into(), parent: Some(top.clone()), after, ..NewTask::default() })
            .unwrap()
    };
    let other = add(store, "other");
    let done = part(store, "done", &[]);
    store.force_done(&done, false).unwrap();
    let failed = part(store, "failed", &[]);
    let waits = part(store, "waits", &[&other]);
    store.force_fail(&failed, "no").unwrap();
    let scope = Scope::Subtree(top.clone());
    assert_eq!(store.counts(&scope).unwrap(), Counts { total: 4, done: 1, failed: 2, ..Counts::default() });
    assert_eq!(store.counts(&Scope::All).unwrap().total, 5);
    let ids = |tasks: Vec<super::Task>| tasks.into_iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(ids(store.failed(&scope, 9).unwrap()), [failed, top.clone()], "its part comes first");
    let stuck = store.unresolved(&scope, 9).unwrap();
    assert_eq!((stuck.len(), &stuck[0].task.id), (1, &waits));
    assert_eq!(ids(stuck[0].waits_for.clone()), [other]);
    assert_eq!(stuck[0].failed_above, Some(top));
    assert!(refused(store.counts(&Scope::Feature("none".into()))).contains("none"));
}

fn the_journal_is_found_by_words(store: &mut dyn Store) {
    let note = |store: &mut dyn Store, run: &str, title: &str, notes: &str| {
        let entry = JournalEntry {
            run_id: run.into(),
            title: title.into(),
            notes: notes.into(),
            outcome: Became::Retried,
            ..JournalEntry::example()
        };
        store.note(&entry).unwrap();
        entry
    };
    let parser = note(store, "r1", "Parse \"the\" header: fast - or AND not", "es hängt");
    let chinese = note(store, "r1", "修复解析器错误", "");
    let lexer = note(store, "r2", "The lexer", "100% of tests_ok");
    let found = |store: &dyn Store, query: JournalQuery| {
        let mut found = Vec::new();
        store
            .journal(&query, &mut |entry| {
                found.push(entry);
                true
            })
            .unwrap();
        found
    };
    let all = |words: &str| JournalQuery { words: Some(Words::All(words.into())), ..JournalQuery::default() };
    let any = |words: &str| JournalQuery { words: Some(Words::Any(words.into())), ..JournalQuery::default() };
    assert_eq!(found(store, JournalQuery::default()), [lexer.clone(), chinese.clone(), parser.clone()]);
    let of_run = JournalQuery { run: Some("r1".into()), limit: Some(1), ..JournalQuery::default() };
    assert_eq!(found(store, of_run), std::slice::from_ref(&chinese));
    for (words, expected) in [
        ("parse header", Some(&parser)),
        ("PARSE: -header \"or\"", Some(&parser)),
        ("hängt", Some(&parser)),
        ("解析", Some(&chinese)),
        ("解析器", Some(&chinese)),
        ("100%", Some(&lexer)),
        ("tests_ok", Some(&lexer)),
        ("parse lexer", None),
    ] {
        assert_eq!(found(store, all(words)), expected.into_iter().cloned().collect::<Vec<_>>(), "{words}");
    }
    assert_eq!(found(store, any("Write the lexer and more")), std::slice::from_ref(&lexer));
    assert_eq!(found(store, any("新的解析器")), std::slice::from_ref(&chinese));
    assert_eq!(found(store, any("a - : \"")), []);
    let elsewhere = JournalQuery { but_run: Some("r1".into()), ..any("lexer header") };
    assert_eq!(found(store, elsewhere), [lexer]);
}
