//! Tasks that are issues of a tracker: fetched for `ralph task import`, and told about below their issues.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::cli::{GraphArgs, PlaceArgs};
use crate::commands::output::remark;
use crate::graph::import::{ImportEntry, Issue};
use crate::graph::{GraphError, IssueTask, JournalQuery, LogLine, Status, Store};
use crate::job::workspace;
use crate::memory::journal::Became;
use crate::text::foreign;
use crate::text::redact::Redactor;
use crate::tracker::{Access, Address, Session};

/// The way to the issues of an address.
pub(super) struct Tracked {
    pub(super) address: Address,
    session: RefCell<Session<'static>>,
    /// The open issues, when they have been fetched.
    open: RefCell<BTreeSet<u64>>,
}

impl Tracked {
    /// What is meant, if it is the address of issues.
    pub(super) fn read(text: &str, graph: &GraphArgs) -> Option<anyhow::Result<Self>> {
        let address = Address::read(text)?;
        Some(address.map_err(Into::into).and_then(|address| Self::open(address, graph)))
    }

    fn open(address: Address, graph: &GraphArgs) -> anyhow::Result<Self> {
        let place = PlaceArgs { ralph_dir: graph.ralph_dir.clone(), ..PlaceArgs::default() };
        let settings = workspace::open(&place)?.settings;
        let env = |name: &str| std::env::var(name).ok();
        let access =
            Access { urls: &settings.tracker.urls, token_env: &settings.tracker.token_env, env: &env };
        let session = address.session(&access, &remark)?.into();
        Ok(Self { address, session, open: RefCell::default() })
    }

    /// The open issues, and those of known tasks that are closed there by now.
    pub(super) fn entries(&self, known: &[IssueTask]) -> anyhow::Result<Vec<ImportEntry>> {
        let session = &mut *self.session.borrow_mut();
        let mut issues = self.address.open(session)?;
        let mut open = self.open.borrow_mut();
        *open = issues.iter().map(|issue| issue.number).collect();
        let here = known.iter().filter(|task| task.status != Status::Done);
        let here = here.filter_map(|task| self.address.number(&task.origin));
        for number in here.filter(|number| !open.contains(number)) {
            if self.address.is_closed(session, number)? {
                issues.push(Issue { number, is_closed: true, ..Issue::default() });
            }
        }
        let entry = |(at, issue): (usize, Issue)| {
            let origin = self.address.origin(issue.number);
            issue.into_entry(at + 1, origin)
        };
        Ok(issues.into_iter().enumerate().map(entry).collect())
    }

    /// Tells below each open issue of a done task that it is done, if that is not told there; returns these tasks.
    pub(super) fn report(
        &self,
        store: &dyn Store,
        secrets: &Redactor,
        dry_run: bool,
    ) -> anyhow::Result<Vec<String>> {
        let session = &mut *self.session.borrow_mut();
        let mut reported = Vec::new();
        for task in store.imported()?.into_iter().filter(|task| task.status == Status::Done) {
            let number = self.address.number(&task.origin);
            let Some(number) = number.filter(|number| self.open.borrow().contains(number)) else { continue };
            if self.address.is_reported(session, number)? {
                continue;
            }
            if !dry_run {
                let words = secrets.word(&words(&task, &store.logs(&task.id)?, &proof(store, &task.id)?));
                self.address.report(session, number, &words)?;
            }
            reported.push(task.id);
        }
        Ok(reported)
    }
}

/// What the last attempt at a task rests on, in a line; may be empty.
fn proof(store: &dyn Store, id: &str) -> Result<String, GraphError> {
    let query = JournalQuery { task: Some(id.to_owned()), limit: Some(1), ..JournalQuery::default() };
    let mut proof = String::new();
    store.journal(&query, &mut |entry| {
        if entry.outcome == Became::Done {
            proof = foreign::line(&entry.reason);
        }
        true
    })?;
    Ok(proof)
}

/// What is told about a done task: how that is known, and where the work is.
fn words(task: &IssueTask, log: &[LogLine], proof: &str) -> String {
    let how = log.iter().rev().find(|line| !line.said).map_or("done", |line| line.message.as_str());
    let proof = if proof.is_empty() { String::new() } else { format!("\n\nProof: {proof}") };
    let commit = task.commit.as_ref().map(|commit| format!("\n\nCommit: {commit}")).unwrap_or_default();
    format!("Task {} of ralph: {how}{proof}{commit}\n\nralph does not close it.", task.id)
}
