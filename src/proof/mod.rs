//! Proves a claim in a clean checkout of the claimed commit instead of the files that its agent has left.
//!
//! [`prover`] is the validator: without a claim the user's command runs in place, with one in the [`tree`], a work tree
//! of ralph's own, whose state is kept under a seal between two proofs ([`listing`]) and which [`removal`] removes;
//! [`laying`] puts there what a run needs. [`environment`] says what the command sees there, [`baseline`] what it finds
//! at the commit where the work began, also with what lay beside that ([`carry`]), [`fitness`] what the tree is worth
//! then, and [`judgement`] what follows for a claim. Where the agent has changed what its work is measured by
//! ([`measure`]), the command runs once more with the base's version of that: of files that are [`protected`] or that
//! the command runs ([`named`]), and of parts of files ([`sections`]). [`counts`] says how many tests have run, where
//! need be from reports ([`junit`]). Tests that agents do not get are laid over it ([`held_out`]). [`programs`] says
//! whether the command runs the programs of the loop's start. Changes of the work that its tests do not notice are
//! reported ([`mutants`], [`mutating`]). A claim that is doubtful then is judged by a second agent ([`voice`]).
//! Behind all that, and where there is no command, a fresh agent may review the work ([`review`]).

mod baseline;
mod carry;
mod counts;
mod environment;
mod fitness;
mod held_out;
mod judgement;
mod junit;
mod laying;
mod listing;
mod measure;
mod mutants;
mod mutating;
mod named;
mod programs;
mod protected;
mod prover;
mod record;
mod removal;
mod review;
mod sections;
mod step;
mod tree;
mod voice;

pub(crate) use held_out::problem as held_out_problem;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use junit::reads as reads_junit;
pub(crate) use measure::Measures;
pub(crate) use prover::Prover;
pub(crate) use removal::{remove_all, remove_orphans, trees};
pub(crate) use review::{Reviewed, Terms};
