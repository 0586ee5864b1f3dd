//! What goes into the record of a proof. Pure.

use std::time::Duration;

use super::judgement::tests_in;
use super::protected::AllProtected;
use crate::engine::fact::{ProofChange, ProofRun, ProofTests};
use crate::engine::validation::Validation;
use crate::text::digest::sha256;
use crate::text::line::last_lines;

/// How many lines of an output are kept, and how many of their last bytes at most.
const LINES: usize = 40;
const BYTES: usize = 8 * 1024;

/// One run of a command.
pub(super) fn ran(of: &str, command: &str, found: &Validation, took: Duration) -> ProofRun {
    let tests = tests_in(&found.output).map(|tests| ProofTests { ran: tests.ran, skipped: tests.skipped });
    let last = last_lines(&found.output, LINES).join("\n");
    let begin = last.ceil_char_boundary(last.len().saturating_sub(BYTES));
    ProofRun {
        command: command.to_owned(),
        digest: sha256(found.output.as_bytes()),
        duration_s: took.as_secs_f64(),
        of: of.to_owned(),
        ok: found.ok,
        output: last[begin..].to_owned(),
        tests,
    }
}

/// The protected files that differ.
pub(super) fn changes(protected: &AllProtected) -> Vec<ProofChange> {
    let change = |(path, protected): (&String, &super::protected::Protected)| {
        let [before, after] = protected.contents.clone();
        ProofChange { after, before, change: protected.change.word().to_owned(), path: path.clone() }
    };
    protected.iter().map(change).collect()
}
