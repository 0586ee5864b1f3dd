//! `ralph proof`: the record of a proof, and the same proof once more.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};

use super::output::{print, print_for_people, remark};
use crate::cli::{PlaceArgs, ProofArgs};
use crate::engine::context::Context;
use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::fact::{Fact, ProofRecord};
use crate::engine::inbox::Inbox;
use crate::engine::outcome::Outcome;
use crate::files::own;
use crate::job::ready::{prover, run_id};
use crate::job::signals::Signals;
use crate::job::workspace::{Workspace, locate_records, open_with_secrets};
use crate::project::Project;
use crate::record::event_line::EventLine;
use crate::text::line::one_line;
use crate::text::timestamp;
use crate::view::proof;

/// The longest record, in bytes.
const LONGEST: u64 = 4 << 20;
/// The shortest beginning of a commit's name.
const LEAST_OF_COMMIT: usize = 4;

/// `ralph proof`.
pub(super) fn run(args: &ProofArgs) -> anyhow::Result<u8> {
    let here = locate_records(args.ralph_dir.as_ref())?;
    let Some(line) = newest(&here, args.target.as_deref())? else {
        let of = args.target.as_ref().map(|target| format!(" of '{target}'")).unwrap_or_default();
        bail!(
            "no proof{of} is kept in {}: a claim leaves one if its loop has proof.level clean, base or strict ('ralph help validation')",
            here.root().display()
        );
    };
    let event = EventLine::read(&line).context("cannot read the record of a proof")?;
    let Fact::Proof(record) = &event.fact else { bail!("the record of a proof is of another version") };
    if args.again {
        return again(args, record);
    }
    if args.json {
        return print(|out| out.write_all(line.as_bytes()));
    }
    let of = format!("loop {}, {}, run {}", event.name, timestamp::local(&event.at), event.run);
    print_for_people(|out| out.write_all(proof::text(record, &of).as_bytes()))
}

/// The line of the newest record of a commit, a task, a loop or a run.
fn newest(here: &Project, target: Option<&str>) -> anyhow::Result<Option<String>> {
    let runs = here.all_runs().with_context(|| format!("cannot read {}", here.runs().display()))?;
    let mut best = None;
    for run in runs {
        let lines = Project::proof_records_in(&run).into_iter().filter_map(|path| text(&path));
        for line in lines {
            let Ok(event) = EventLine::read(&line) else { continue };
            let Fact::Proof(record) = &event.fact else { continue };
            let is_newer = best.as_ref().is_none_or(|(at, _)| event.at > *at);
            if is_newer && target.is_none_or(|target| is_about(&event, record, target)) {
                best = Some((event.at, line));
            }
        }
        // Runs come in their order, the newest first.
        if best.is_some() {
            break;
        }
    }
    Ok(best.map(|(_, line)| line))
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(own::read(path, LONGEST).ok()?).ok()
}

fn is_about(event: &EventLine<'_>, record: &ProofRecord, target: &str) -> bool {
    let is_commit = target.len() >= LEAST_OF_COMMIT
        && record.commit.as_ref().is_some_and(|commit| commit.starts_with(target));
    is_commit || record.about.as_deref() == Some(target) || event.name == target || event.run == target
}

/// Proves the commit once more: exit code 0 if the verdict is the same.
fn again(args: &ProofArgs, record: &ProofRecord) -> anyhow::Result<u8> {
    if record.commit.is_none() {
        bail!(
            "the claim was not looked at, so that there is nothing to look at again: {}",
            one_line(&record.by)
        );
    }
    let place = PlaceArgs { ralph_dir: args.ralph_dir.clone(), ..PlaceArgs::default() };
    let Workspace { project, settings } = open_with_secrets(&place)?;
    let run = run_id();
    let Some(command) = record.runs.last().map(|run| run.command.clone()) else {
        bail!("the record names no command");
    };
    let mut prover = prover(&settings, &project, &command, &run, record)?;
    let inbox = Arc::new(Inbox::default());
    let signals = Signals::listen()?;
    signals.join(&inbox);
    let made = RefCell::new(None);
    let identity =
        LoopIdentity { run, name: "proof".to_owned(), mode: "proof".to_owned(), agent: String::new() };
    let listen = |stamped: &Stamped<'_>| {
        match stamped.fact {
            Fact::Proof(record) => *made.borrow_mut() = Some((**record).clone()),
            Fact::Notice { message } => remark(message),
            _ => {}
        }
        Ok(())
    };
    let mut context = Context::new(identity, inbox, vec![Box::new(listen)]).without(&settings.secrets);
    let verdict = prover.again(record, &mut context);
    drop(context);
    verdict.map_err(|end| {
        anyhow::anyhow!("{}", end.detail.unwrap_or_else(|| end.outcome.reason().to_owned()))
    })?;
    let Some(new) = made.into_inner() else { return Ok(Outcome::Interrupted.code()) };
    if args.json {
        let line = serde_json::to_string(&new)? + "\n";
        print(|out| out.write_all(line.as_bytes()))?;
    } else {
        print_for_people(|out| out.write_all(proof::text(&new, "once more, from nothing").as_bytes()))?;
    }
    if new.ok == record.ok {
        return Ok(0);
    }
    remark(&format!("it was another verdict: {}", one_line(&record.by)));
    Ok(Outcome::Unproven.code())
}
