//! Runs the command on mutants of a proven commit, in the proof tree.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::baseline::Look;
use super::measure::{Changes, Measures};
use super::mutants::{Mutant, mutants};
use super::tree::{Over, TreeError};
use crate::engine::fact::{ProofMutant, ProofMutants};

/// How often the time of the commit a mutant may take, and how much longer: one that takes longer is noticed.
const TIMES: u32 = 3;
const MORE: Duration = Duration::from_secs(10);

/// Makes mutants of a commit whose command took this long, and says which ones no test notices, and why others were not looked at.
/// The commit is laid out again afterwards.
pub(super) fn mutate(
    look: &Look,
    (commit, took): (&str, Duration),
    measures: &Measures,
    until: Option<Instant>,
    cancelled: &AtomicBool,
) -> Result<(ProofMutants, Option<String>), TreeError> {
    let root = look.tree.root();
    let sources = Changes::between(root, &look.base, commit, measures)?.sources(root)?;
    let all = mutants(commit, &sources, usize::try_from(measures.mutants).unwrap_or(usize::MAX));
    if all.is_empty() {
        return Ok((
            ProofMutants::default(),
            Some("no line of the work is one that can be changed".to_owned()),
        ));
    }
    let (planned, mut found) = (all.len(), ProofMutants::default());
    for mutant in all {
        let Some(is_noticed) = is_noticed(look, (commit, took), &mutant, until, cancelled)? else { break };
        found.made += 1;
        if !is_noticed {
            let Mutant { path, line, before, after, .. } = mutant;
            found.unnoticed.push(ProofMutant { after, before, line: line as u64, path });
        }
    }
    let laid = look.tree.lay(commit, &AtomicBool::new(false))?;
    look.tree.leave(&laid)?;
    let left = planned - usize::try_from(found.made).unwrap_or(planned);
    let missing = (left > 0).then(|| format!("there was no time for {left} of {planned}"));
    Ok((found, missing))
}

/// Whether the command fails on a mutant, or does not end; `None` if the time for all is over.
fn is_noticed(
    look: &Look,
    (commit, took): (&str, Duration),
    mutant: &Mutant,
    until: Option<Instant>,
    cancelled: &AtomicBool,
) -> Result<Option<bool>, TreeError> {
    let is_over = || cancelled.load(Ordering::Relaxed) || until.is_some_and(|until| until <= Instant::now());
    if is_over() {
        return Ok(None);
    }
    let over = Over::Text(&mutant.path, &mutant.text);
    let laid = look.tree.lay_with(commit, over, cancelled)?;
    let own = Instant::now().checked_add(took.saturating_mul(TIMES).saturating_add(MORE));
    let found = look.command.run_alone(until.into_iter().chain(own).min(), cancelled);
    look.tree.leave(&laid)?;
    Ok(match found {
        Some(found) => Some(!found.ok),
        None if is_over() => None,
        None => Some(true),
    })
}
