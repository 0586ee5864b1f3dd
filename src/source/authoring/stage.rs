//! One piece that is written: what it is, what was said about it, how far it has come.

use std::fs;
use std::path::{Path, PathBuf};

use super::Commission;
use super::draft::Draft;
use super::talk::Talk;
use crate::engine::outcome::{End, Outcome};
use crate::files::atomic;
use crate::files::{FileError, theirs};
use crate::graph::{GraphError, Store};
use crate::prompt::authoring::{Facts, Piece, Turn};
use crate::text::line::one_line;

/// So much of what an agent says is kept in a talk, in characters.
const LONGEST_TURN: usize = 6000;
/// What the user is asked, besides what the agent asks.
const QUESTION: &str = "Your answer (empty: that is all, write it now):";

/// A file that an agent writes.
pub(super) struct Document {
    /// Below the folder of the graph.
    name: String,
    pub(super) path: PathBuf,
    /// As the agent and the user read it.
    pub(super) shown: String,
    piece: Piece,
}

impl Document {
    fn new(piece: Piece, feature: &str, commission: &Commission) -> Self {
        let name = format!("features/{feature}/{}.md", piece.word());
        let path = commission.documents.join(&name);
        let relative = path.strip_prefix(&commission.ground.root).unwrap_or(&path);
        Self { shown: relative.display().to_string(), name, path, piece }
    }

    /// What is in it; `None` if it is not there, or is no text.
    pub(super) fn text(&self) -> Option<String> {
        theirs::text(&self.path).ok()
    }

    /// Tells the graph that it is there.
    pub(super) fn enter(&self, graph: &mut dyn Store, feature: &str) -> Result<(), GraphError> {
        let name = Some(self.name.as_str());
        let (spec, plan) = if self.piece == Piece::Spec { (name, None) } else { (None, name) };
        graph.put_feature(feature, spec, plan)
    }
}

/// What an agent works from.
#[derive(Default)]
pub(super) struct Sources {
    spec: Option<String>,
    plan: Option<String>,
}

/// A piece at hand.
pub(super) struct Stage {
    pub(super) piece: Piece,
    /// Spec and plan are files; tasks are made in the draft.
    pub(super) document: Option<Document>,
    pub(super) draft: Draft,
    pub(super) talk: Talk,
    /// Nobody is asked any more.
    pub(super) closed: bool,
    /// Reviews that wanted changes.
    pub(super) rounds: u32,
    /// Attempts in a row that wrote nothing, or nothing sound.
    pub(super) misses: u32,
    /// What was in the document when it was judged last, or when it was begun; empty where it was not there. `None`: it is not
    /// begun.
    before: Option<String>,
    /// What was in it when the stage began.
    original: Option<String>,
}

impl Stage {
    /// `known` are the documents that the graph knows of.
    pub(super) fn new(piece: Piece, commission: &Commission, known: &[String]) -> Self {
        let is_file = matches!(piece, Piece::Spec | Piece::Plan);
        let document = commission.feature.as_deref().filter(|_| is_file);
        let document = document.map(|feature| Document::new(piece, feature, commission));
        // What an agent has written that was cut off counts as written, and has to be looked at.
        let is_left = document.as_ref().is_some_and(|document| !known.contains(&document.name));
        let name = commission.feature.as_deref().unwrap_or("task");
        Self {
            piece,
            original: document.as_ref().and_then(Document::text),
            document,
            draft: Draft::new(commission.draft.clone()),
            talk: Talk::open(commission.talks.join(format!("{name}.{}.json", piece.word()))),
            closed: false,
            rounds: 0,
            misses: 0,
            before: (commission.goes_on && is_left).then(String::new),
        }
    }

    /// Makes ready for an attempt.
    pub(super) fn begin(&mut self, commission: &Commission, graph: &dyn Store) -> Result<(), End> {
        if let Some(document) = &self.document {
            make_room(&document.path)?;
            self.before.get_or_insert_with(|| document.text().unwrap_or_default());
            return Ok(());
        }
        let feature = commission.feature.as_deref().map(|name| graph.feature(name)).transpose();
        self.draft.begin(feature?.as_ref()).map_err(End::from)
    }

    /// Brings back what was there where agents have left nothing in its place; returns whether they had.
    pub(super) fn bring_back(&self) -> Result<bool, End> {
        let (Some(document), Some(original)) = (&self.document, &self.original) else { return Ok(false) };
        if document.text().is_some_and(|text| !text.trim().is_empty()) || original.trim().is_empty() {
            return Ok(false);
        }
        atomic::write_theirs(&document.path, original.as_bytes())?;
        Ok(true)
    }

    /// What is in the document now has been judged: something else has to come.
    pub(super) fn is_judged(&mut self) {
        self.before = None;
    }

    /// Whether anything was written since it was begun, or judged last.
    pub(super) fn has_written(&self) -> bool {
        match &self.document {
            Some(document) => document
                .text()
                .is_some_and(|text| !text.trim().is_empty() && Some(&text) != self.before.as_ref()),
            None => self.draft.has_tasks(),
        }
    }

    /// What the user has to answer before it goes on; with the agent's words where they are not on the screen.
    pub(super) fn open_question(&self) -> Option<String> {
        let Some(Turn::Agent(text)) = self.talk.turns().last().filter(|_| !self.closed) else { return None };
        let words = if self.talk.is_old { format!("{} ", one_line(text)) } else { String::new() };
        Some(words + QUESTION)
    }

    /// The agent has said this instead of writing.
    pub(super) fn heard(&mut self, text: &str) -> Result<(), End> {
        if self.closed {
            return Ok(());
        }
        // The question is at its end.
        let text = text.trim();
        let start = text.char_indices().rev().nth(LONGEST_TURN).map_or(0, |(at, _)| at);
        self.talk.push(Turn::Agent(text[start..].to_owned()))
    }

    /// Reads what it is written from.
    pub(super) fn sources(&self, commission: &Commission) -> Result<Sources, End> {
        let Some(feature) = &commission.feature else { return Ok(Sources::default()) };
        let read = |piece: Piece| {
            let Document { path, shown, .. } = Document::new(piece, feature, commission);
            if piece == Piece::Spec && self.piece == Piece::Tasks && !path.exists() {
                return Ok(None);
            }
            theirs::text(&path).map(Some).map_err(|error| {
                End::because(Outcome::PromptLost, format!("{shown}: {error}: bring it back, and go on then"))
            })
        };
        Ok(match self.piece {
            Piece::Spec | Piece::Task => Sources::default(),
            Piece::Plan => Sources { spec: read(Piece::Spec)?, plan: None },
            Piece::Tasks => Sources { spec: read(Piece::Spec)?, plan: read(Piece::Plan)? },
        })
    }

    /// What a prompt is made of.
    pub(super) fn facts<'a>(
        &'a self,
        commission: &'a Commission,
        sources: &'a Sources,
        findings: Option<&'a str>,
        notes: &'a [String],
    ) -> Facts<'a> {
        Facts {
            piece: self.piece,
            feature: commission.feature.as_deref().unwrap_or_default(),
            document: self.document.as_ref().map_or("", |document| &document.shown),
            ralph: &commission.ralph,
            brief: commission.brief.as_deref(),
            spec: sources.spec.as_deref(),
            plan: sources.plan.as_deref(),
            talk: self.talk.turns(),
            may_ask: !self.closed,
            findings,
            notes,
        }
    }
}

/// Makes the folder for a document. These folders come with a repository: a link in it must not choose where agents write.
fn make_room(path: &Path) -> Result<(), End> {
    let is_link = |path: &&Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    if let Some(link) = path.ancestors().take(3).find(is_link) {
        let why = format!(
            "{} is a symbolic link: nothing is written where it leads; remove it first",
            link.display()
        );
        return Err(End::because(Outcome::PromptLost, why));
    }
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        let why = format!("{} is no file: move it away first", path.display());
        return Err(End::because(Outcome::PromptLost, why));
    }
    let folder = path.parent().unwrap_or(path);
    Ok(fs::create_dir_all(folder).map_err(FileError::at(folder))?)
}
