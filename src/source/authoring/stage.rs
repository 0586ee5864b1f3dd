//! The state of one piece that is being written.

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

/// The longest text of an agent that is kept in a talk, in characters.
const LONGEST_TURN: usize = 6000;
/// The prompt for the user after the agent's question.
const QUESTION: &str = "Your answer (empty: that is all, write it now):";

/// A file that an agent writes.
pub(super) struct Document {
    /// Its path below the folder of the graph.
    name: String,
    pub(super) path: PathBuf,
    /// Its path for messages and prompts.
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

    /// Its content; `None` if it does not exist, or is not text.
    pub(super) fn text(&self) -> Option<String> {
        theirs::text(&self.path).ok()
    }

    /// Registers it in the graph.
    pub(super) fn enter(&self, graph: &mut dyn Store, feature: &str) -> Result<(), GraphError> {
        let name = Some(self.name.as_str());
        let (spec, plan) = if self.piece == Piece::Spec { (name, None) } else { (None, name) };
        graph.put_feature(feature, spec, plan)
    }
}

/// The documents that an agent works from.
#[derive(Default)]
pub(super) struct Sources {
    spec: Option<String>,
    plan: Option<String>,
}

/// The current piece.
pub(super) struct Stage {
    pub(super) piece: Piece,
    /// The file of a spec or a plan; `None` for tasks, which go into the draft.
    pub(super) document: Option<Document>,
    pub(super) draft: Draft,
    pub(super) talk: Talk,
    /// No more questions to the user.
    pub(super) closed: bool,
    /// The number of reviews that wanted changes.
    pub(super) rounds: u32,
    /// The number of attempts in a row that wrote nothing, or nothing sound.
    pub(super) misses: u32,
    /// The document when it was last judged, or when it was begun; empty if it did not exist. `None` if it is not
    /// begun.
    before: Option<String>,
    /// The document when the stage began.
    original: Option<String>,
}

impl Stage {
    /// `known` are the documents that the graph has.
    pub(super) fn new(piece: Piece, commission: &Commission, known: &[String]) -> Self {
        let is_file = matches!(piece, Piece::Spec | Piece::Plan);
        let document = commission.feature.as_deref().filter(|_| is_file);
        let document = document.map(|feature| Document::new(piece, feature, commission));
        // A document left by an interrupted agent counts as written, and has to be reviewed.
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

    /// Prepares an attempt.
    pub(super) fn begin(&mut self, commission: &Commission, graph: &dyn Store) -> Result<(), End> {
        if let Some(document) = &self.document {
            make_room(&document.path)?;
            self.before.get_or_insert_with(|| document.text().unwrap_or_default());
            return Ok(());
        }
        let feature = commission.feature.as_deref().map(|name| graph.feature(name)).transpose();
        self.draft.begin(feature?.as_ref()).map_err(End::from)
    }

    /// Restores the original document if agents have left nothing in its place; returns whether they had.
    pub(super) fn bring_back(&self) -> Result<bool, End> {
        let (Some(document), Some(original)) = (&self.document, &self.original) else { return Ok(false) };
        if document.text().is_some_and(|text| !text.trim().is_empty()) || original.trim().is_empty() {
            return Ok(false);
        }
        atomic::write_theirs(&document.path, original.as_bytes())?;
        Ok(true)
    }

    /// Marks the current content as judged: the next attempt has to change it.
    pub(super) fn is_judged(&mut self) {
        self.before = None;
    }

    /// Whether anything was written since it was begun or last judged.
    pub(super) fn has_written(&self) -> bool {
        match &self.document {
            Some(document) => document
                .text()
                .is_some_and(|text| !text.trim().is_empty() && Some(&text) != self.before.as_ref()),
            None => self.draft.has_tasks(),
        }
    }

    /// The question that the user has to answer first; with the agent's text if that is not on the screen.
    pub(super) fn open_question(&self) -> Option<String> {
        let Some(Turn::Agent(text)) = self.talk.turns().last().filter(|_| !self.closed) else { return None };
        let words = if self.talk.is_old { format!("{} ", one_line(text)) } else { String::new() };
        Some(words + QUESTION)
    }

    /// Keeps what the agent said instead of writing.
    pub(super) fn heard(&mut self, text: &str) -> Result<(), End> {
        if self.closed {
            return Ok(());
        }
        // The question is at the end.
        let text = text.trim();
        let start = text.char_indices().rev().nth(LONGEST_TURN).map_or(0, |(at, _)| at);
        self.talk.push(Turn::Agent(text[start..].to_owned()))
    }

    /// Reads the documents that it is written from.
    pub(super) fn sources(&self, commission: &Commission) -> Result<Sources, End> {
        let Some(feature) = &commission.feature else { return Ok(Sources::default()) };
        let read = |piece: Piece| {
            let Document { path, shown, .. } = Document::new(piece, feature, commission);
            if piece == Piece::Spec && self.piece == Piece::Tasks && !path.exists() {
                return Ok(None);
            }
            theirs::text(&path).map(Some).map_err(|error| {
                End::because(Outcome::PromptLost, format!("{shown}: {error}: restore it, and run again"))
            })
        };
        Ok(match self.piece {
            Piece::Spec | Piece::Task => Sources::default(),
            Piece::Plan => Sources { spec: read(Piece::Spec)?, plan: None },
            Piece::Tasks => Sources { spec: read(Piece::Spec)?, plan: read(Piece::Plan)? },
        })
    }

    /// The facts for a prompt.
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

/// Creates the folder of a document. Its parents may come with a repository: a link there must not choose where
/// agents write.
fn make_room(path: &Path) -> Result<(), End> {
    theirs::refuse_links(path).map_err(|why| End::because(Outcome::PromptLost, why))?;
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        let why = format!("{} is no file: move it away first", path.display());
        return Err(End::because(Outcome::PromptLost, why));
    }
    let folder = path.parent().unwrap_or(path);
    Ok(fs::create_dir_all(folder).map_err(FileError::at(folder))?)
}
