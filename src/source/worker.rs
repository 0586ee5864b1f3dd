//! The prompt of a worker: a file that is read again for each iteration, and typed unchanged.

use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

use super::with_given;
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::source::{Source, Work};
use crate::engine::stop::{Change, Watching};
use crate::engine::tally::Given;
use crate::files::theirs::PromptText;

/// Why a prompt cannot be typed.
pub(crate) const TOO_LONG: &str = "it has more than 1 MB; shorten it";

/// The longest prompt that a pane accepts, in bytes.
const LONGEST: usize = 1 << 20;

/// Whether a prompt is too long to be typed.
pub(crate) fn is_too_long(prompt: &str) -> bool {
    prompt.len() > LONGEST
}

/// Prompts from a file; an empty file means Enter alone.
#[derive(Debug)]
pub(crate) struct WorkerPrompt {
    file: PromptText,
    /// The path as the user wrote it.
    shown: String,
}

impl WorkerPrompt {
    /// A source for `file`, an absolute path, which messages call `shown`.
    pub(crate) fn new(file: PathBuf, shown: String) -> Self {
        Self { file: PromptText::at(file), shown }
    }

    /// The prompt as it is on disk now.
    ///
    /// # Errors
    /// If it cannot be read, is not text, or is not a regular file.
    pub(crate) fn read(&self) -> Result<String, End> {
        let text = self.file.text().and_then(|text| {
            if is_too_long(&text) { Err(std::io::Error::other(TOO_LONG)) } else { Ok(text) }
        });
        text.map_err(|error| {
            let file = &self.shown;
            End::because(
                Outcome::PromptLost,
                if error.kind() == NotFound {
                    format!("prompt file not found: {file}")
                } else {
                    format!("cannot read prompt file: {file}: {error}")
                },
            )
        })
    }
}

impl Source for WorkerPrompt {
    fn next(&mut self, _: u64, given: &Given, _: &mut Context<'_>) -> Result<Work, End> {
        let prompt = with_given(self.read()?, given);
        Ok(Work { prompt, ..Work::default() })
    }

    fn change(&mut self, change: &Change) -> bool {
        match &change.watching {
            Some(Watching { prompt_file, .. }) if prompt_file != self.file.path() => {
                *self = Self::new(prompt_file.clone(), prompt_file.display().to_string());
                true
            }
            _ => false,
        }
    }

    fn file(&self) -> Option<&Path> {
        Some(self.file.path())
    }
}
