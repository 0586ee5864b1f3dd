//! `ralph status` and `ralph ls`: the state of loops.

use std::collections::HashMap;
use std::io::{self, Write as _};

use serde_json::Value;

use super::fleet::Fleet;
use super::landings::Queue;
use super::output::{print, print_for_people, remark, warn, width};
use super::report::{merges_of, tasks_of_branch};
use super::target;
use super::worker::snapshot;
use crate::cli::{ListArgs, ListFormat, StatusArgs};
use crate::engine::fact::TaskCounts;
use crate::engine::outcome::Status;
use crate::files::theirs;
use crate::job::workspace::locate;
use crate::parallel;
use crate::plan;
use crate::project::Project;
use crate::record::event_line::EventLine;
use crate::record::event_lines::Follower;
use crate::record::lookup::{self, Loop};
use crate::record::newer;
use crate::record::run_folder::{self, is_job};
use crate::record::state::AtTask;
use crate::record::state_read::Extent;
use crate::settings::Verb;
use crate::tell::words::{Entry, Kind};
use crate::text::line;
use crate::view::loop_list;
use crate::view::next_step::Merges;
use crate::view::snapshot::LoopSnapshot;
use crate::view::status::write_text;
use crate::view::status_table::{self, Sight};
use crate::view::transcript::Transcript;

/// How much of the end of an events log is read for the last action of an agent, in bytes.
const TAIL: u64 = 64 << 10;

/// The jobs of a run get the largest counts that one of them knows: each hears what has landed only as long as it runs.
fn agree(loops: &mut [LoopSnapshot<'_>]) {
    let mut largest: HashMap<String, TaskCounts> = HashMap::new();
    let ended = |counts: TaskCounts| (counts.done + counts.failed, counts.total);
    let jobs = |one: &LoopSnapshot<'_>| is_job(one.name()).then(|| one.found.run().to_owned());
    for (run, counts) in loops.iter().filter_map(|one| Some((jobs(one)?, one.tasks()?))) {
        let known = largest.entry(run).or_insert(counts);
        if ended(counts) > ended(*known) {
            *known = counts;
        }
    }
    for one in loops {
        if let Some(counts) = jobs(one).and_then(|run| largest.get(&run)) {
            one.catch_up(*counts);
        }
    }
}

/// `ralph status`.
pub(super) fn status(args: &StatusArgs) -> anyhow::Result<u8> {
    let extent = if args.json { Extent::Whole } else { Extent::Head };
    let mut is_away = false;
    let fleet = match args.target.name {
        None => match Fleet::of(args.store.as_deref(), &args.target) {
            // What is here is shown all the same.
            Err(error) if args.store.is_none() => {
                warn(&format!("the workers of other machines are not shown: {error:#}"));
                is_away = true;
                None
            }
            fleet => fleet?,
        },
        Some(_) => None,
    };
    let (here, loops) = target::listed(&args.target, extent)?;
    // The line of a loop reports its state.
    let are_known = loops.iter().all(|found| found.state.is_ok());
    if let Some(newer) = newer::of_loop(&here).filter(|_| are_known) {
        warn(&newer);
    }
    let of_fleet = fleet.is_some() || is_away;
    if loops.is_empty() && fleet.is_none() {
        // On stderr, so that `--json` prints nothing but objects.
        remark(&format!("no loop in {}", here.root().display()));
    }
    let is_told = args.json || args.target.name.is_some();
    let merges = if args.json { Merges::default() } else { merges_of(&here, &loops) };
    let tasks = |found: &Loop| if is_told { of_branch(&here, found) } else { None };
    let mut snapshots: Vec<LoopSnapshot<'_>> =
        loops.iter().map(|found| snapshot(found).with_tasks(tasks(found)).with_merges(&merges)).collect();
    agree(&mut snapshots);
    if let (false, [one], Some(_)) = (args.json, snapshots.as_slice(), &args.target.name) {
        return print_for_people(|out| write_text(one, out));
    }
    let queue = if args.target.name.is_none() { Queue::of(&here) } else { None };
    // Of the loops that work on the graph.
    let with_queue = |one: &LoopSnapshot<'_>| {
        let mut json = one.json();
        if let (Some(queue), Some(object), true) = (&queue, json.as_object_mut(), is_job(one.name())) {
            object.insert("landing".to_owned(), queue.json());
        }
        json
    };
    print(|out| match (args.json, snapshots.as_slice()) {
        (true, several) if of_fleet => {
            let unknown = || serde_json::json!({ "fleet": null, "landing": null });
            let mut json = fleet.as_ref().map_or_else(unknown, Fleet::json);
            json["loops"] = several.iter().map(LoopSnapshot::json).collect();
            write_json(&json, out)
        }
        (true, [one]) => write_json(&with_queue(one), out),
        (true, several) => write_json(&several.iter().map(with_queue).collect(), out),
        (false, []) => fleet.as_ref().map_or(Ok(()), |fleet| fleet.write(out)),
        (false, _) => {
            let sights = parallel::each(&loops, &|found| sight(&here, found));
            let mut rows: Vec<_> = snapshots.into_iter().zip(sights).collect();
            for (one, sight) in &mut rows {
                sight.tasks = one.tasks().or(sight.tasks);
            }
            rows.sort_by(|(one, _), (other, _)| one.place().cmp(&other.place()));
            write!(out, "{}", status_table::table(&rows, &loops, width()))?;
            match (&fleet, &queue) {
                (Some(fleet), _) => {
                    writeln!(out)?;
                    fleet.write(out)
                }
                (None, Some(queue)) => writeln!(out, "{}", queue.line()),
                (None, None) => Ok(()),
            }
        }
    })
}

/// What the state of a loop does not have.
pub(super) fn sight(here: &Project, found: &Loop) -> Sight {
    let Ok(state) = &found.state else { return Sight::default() };
    let tasks = tasks(here, found);
    if found.alive().is_none() {
        return Sight { tasks, ..Sight::default() };
    }
    let is_at_work = state.tally.in_attempt && state.status == Status::Running;
    let log = if is_at_work { found.session_log().ok().flatten() } else { None };
    let silent = log.and_then(|log| log.metadata().ok()?.modified().ok()?.elapsed().ok());
    Sight { tasks, activity: last_activity(found), silent }
}

/// The tasks of a loop: of its target, its branch, or the plan that it builds.
pub(super) fn tasks(here: &Project, found: &Loop) -> Option<TaskCounts> {
    let of_target = found.state.as_ref().ok()?.at_task.as_ref().map(AtTask::counts);
    of_target.or_else(|| planned(here, found).map(|tasks| counted(&tasks)))
}

/// The tasks in the plan of a loop, each with its text and whether it is done; `None` for loops without one.
pub(super) fn planned(here: &Project, found: &Loop) -> Option<Vec<(String, bool)>> {
    if found.project.is_of_branch() {
        let text = plan_of_branch(here, found)?;
        let tasks = plan::tasks(&text, &found.name).ok()?;
        return Some(tasks.into_iter().map(|task| (task.text, task.ticked)).collect());
    }
    let mode = &found.state.as_ref().ok()?.mode;
    let builds = [Verb::Plan, Verb::Build].iter().any(|verb| verb.words() == mode);
    let text = builds.then(|| theirs::text(&found.project.implementation_plan()).ok()).flatten()?;
    Some(plan::listed_tasks(&text))
}

fn counted(tasks: &[(String, bool)]) -> TaskCounts {
    let done = tasks.iter().filter(|(_, is_done)| *is_done).count() as u64;
    TaskCounts { done, failed: 0, total: tasks.len() as u64 }
}

/// The tasks of a branch; `None` for other loops.
fn of_branch(here: &Project, found: &Loop) -> Option<TaskCounts> {
    if !found.project.is_of_branch() {
        return None;
    }
    tasks_of_branch(&plan_of_branch(here, found)?, &found.name)
}

/// The plan with the tasks of a branch: from its work tree if that exists, else the project's plan.
fn plan_of_branch(here: &Project, found: &Loop) -> Option<String> {
    let read = |places: &Project| theirs::read(&places.branch_plan(), theirs::MAX_TEXT).ok();
    String::from_utf8(read(&found.project).or_else(|| read(here))?).ok()
}

/// The last action of a loop's agent, from its transcript.
fn last_activity(found: &Loop) -> Option<String> {
    let log = run_folder::event_logs(&found.logs()?).pop()?;
    let mut transcript = Transcript::default();
    let mut last: Option<Entry> = None;
    let mut follower = Follower::near_end(&log, TAIL).ok()?;
    let read = follower.rest(|_, line| {
        let line = std::str::from_utf8(line).ok().and_then(|line| EventLine::read(line).ok());
        if let Some(entry) = line.and_then(|line| transcript.entry(&line)) {
            match &mut last {
                Some(before) if before.kind == Kind::Piece && entry.kind == Kind::Piece => {
                    before.text += &entry.text;
                }
                last => *last = Some(entry),
            }
        }
        true
    });
    read.ok()?;
    let last = last?;
    let words = line::last_lines(&last.text, 1).pop().unwrap_or_default().to_owned();
    Some(if last.kind == Kind::Tool { format!("{} {words}", last.mark) } else { words })
}

fn write_json(value: &Value, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::other)?;
    writeln!(out)
}

/// `ralph ls`.
pub(super) fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let format = if args.json { ListFormat::Json } else { args.format };
    let extent = if format == ListFormat::Json { Extent::Whole } else { Extent::Head };
    let here = locate(None)?;
    let loops = lookup::of_machine(&here, extent);
    let merges = if format == ListFormat::Table { merges_of(&here, &loops) } else { Merges::default() };
    let mut snapshots: Vec<LoopSnapshot<'_>> =
        loops.iter().map(|found| snapshot(found).with_merges(&merges)).collect();
    snapshots.retain(|snapshot| args.tag.iter().all(|tag| snapshot.has_tag(tag)));
    snapshots.retain(|snapshot| args.status.as_ref().is_none_or(|word| word == snapshot.word()));
    if format == ListFormat::Table {
        snapshots.sort_by(|one, other| one.place().cmp(&other.place()));
    }
    print(|out| match format {
        ListFormat::Json => {
            let objects = parallel::each(&snapshots, &LoopSnapshot::json);
            serde_json::to_writer_pretty(&mut *out, &objects).map_err(io::Error::other)?;
            writeln!(out)
        }
        ListFormat::Names => snapshots.iter().try_for_each(|snapshot| writeln!(out, "{}", snapshot.name())),
        ListFormat::Table if loops.is_empty() => writeln!(out, "no loops on this machine"),
        ListFormat::Table => write!(out, "{}", loop_list::table(&snapshots, width())),
    })
}

#[cfg(test)]
mod tests {
    use crate::cli::STATUS_WORDS;
    use crate::engine::outcome::{Ended, Phase, Status};
    use crate::tell::group::UNKNOWN;

    #[test]
    fn loops_are_selected_by_the_words_of_the_table() {
        let words = Phase::ALL.map(Phase::word).into_iter().chain(Ended::ALL.map(Ended::word));
        let all: Vec<_> = words.chain([UNKNOWN, Status::Stopped.word()]).collect();
        assert_eq!(STATUS_WORDS[..], all);
    }
}
