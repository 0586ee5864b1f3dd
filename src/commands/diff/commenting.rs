//! `ralph diff --comment`: the diff in the user's editor, and the comments in it as notes for the loop.

use std::borrow::Cow;
use std::io::ErrorKind;

use anyhow::{Context as _, Error, anyhow, bail};
use serde_json::json;

use super::Piece;
use crate::cli::TargetArgs;
use crate::commands::control;
use crate::commands::editor::Editor;
use crate::commands::output::{Said, print, say, warn};
use crate::files::draft::{self, Draft};
use crate::files::theirs;
use crate::git::comments::{Comment, Found, in_diff};
use crate::git::range;
use crate::text::bytes;
use crate::text::count;

/// The largest diff that is opened, in bytes.
const LARGEST: u64 = theirs::MAX_TEXT;

/// Opens what a loop has changed, and sends it the comments.
pub(super) fn comment(piece: &Piece, args: &TargetArgs, is_json: bool) -> anyhow::Result<u8> {
    // Before the user writes anything.
    control::receivers(args)?;
    let editor = Editor::of_user()?;
    let output = range::plain_diff(&piece.tree, &piece.difference).output().context("cannot run git")?;
    if !output.status.success() {
        bail!(
            "git cannot show the diff of '{}': {}",
            piece.name,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let diff = output.stdout;
    if diff.is_empty() {
        bail!("'{}' has changed nothing yet: 'ralph note' sends a note without a place", piece.name);
    }
    if diff.len() as u64 > LARGEST {
        bail!(
            "the diff of '{}' is too large to edit ({}, at most {}): 'ralph note NAME --file F:LINE TEXT' sends one comment",
            piece.name,
            bytes::short(diff.len() as u64),
            bytes::short(LARGEST)
        );
    }
    for path in draft::take_left(2 * LARGEST, has_comments) {
        warn(&format!(
            "an earlier 'ralph diff --comment' was killed: what was written in it is in {}",
            path.display()
        ));
    }
    let initial = [help(&piece.name).as_bytes(), &diff].concat();
    let draft = Draft::new(&initial).context("the diff cannot be written for the editor")?;
    let edited = editor.edit(&draft).and_then(|()| {
        draft.read(2 * LARGEST).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                anyhow!("the editor has left no {}: nothing was sent", draft.path().display())
            }
            _ => Error::from(error).context("what the editor has left cannot be read: nothing was sent"),
        })
    });
    let found = edited.map(|edited| in_diff(&text(&diff), &text(&edited)));
    let strays = found.as_ref().map_or(0, |found| found.strays);
    let sent = found.and_then(|found| send(&found, piece, args, is_json));
    if sent.is_ok() && strays > 0 {
        warn(&format!("what you wrote is in {}", draft.keep().display()));
        return sent;
    }
    sent.map_err(|error| {
        // An editor that has failed may have written something.
        let is_file = draft.path().symlink_metadata().is_ok_and(|there| there.is_file());
        let is_lost =
            draft.has_more() || is_file && draft.read(2 * LARGEST).map_or(true, |now| now != initial);
        if !is_lost {
            return error;
        }
        error.context(format!("what you wrote is in {}", draft.keep().display()))
    })
}

/// Whether a user has written comments into a diff.
fn has_comments(draft: &[u8]) -> bool {
    draft.split(|&byte| byte == b'\n').any(|line| line.starts_with(b"#>"))
}

/// The lines above the diff.
fn help(name: &str) -> String {
    format!(
        "# What '{name}' has changed. Comments for its next attempt are lines that begin with '#>'. Each one is about the\n\
         # line above it; several in a row are one comment. One above the diff is about all of it.\n\
         # Save and close the file to send them. Without comments nothing is sent.\n"
    )
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Sends the comments and reports that.
fn send(found: &Found, piece: &Piece, args: &TargetArgs, is_json: bool) -> anyhow::Result<u8> {
    if found.strays > 0 {
        let lines = count::of(found.strays as u64, "line");
        let were = if found.strays == 1 { "was" } else { "were" };
        warn(&format!("{lines} in the diff without '#>' {were} not sent: a diff itself cannot be edited"));
    }
    // All of them, before the first is sent.
    found.comments.iter().try_for_each(|comment| control::fits_a_note(&note(comment)))?;
    let mut warnings = Vec::new();
    for (sent, comment) in found.comments.iter().enumerate() {
        let said = control::send_note(args, |_| Ok(note(comment))).with_context(|| {
            format!("{sent} of {} were sent", count::of(found.comments.len() as u64, "comment"))
        })?;
        warnings.extend(said.into_iter().filter(|said| matches!(said, Said::Warning(_))));
    }
    warnings.dedup();
    warnings.iter().for_each(Said::print);
    if is_json {
        let comments: Vec<_> = found.comments.iter().map(as_json).collect();
        return print(|out| {
            serde_json::to_writer_pretty(&mut *out, &json!({ "loop": piece.name, "comments": comments }))?;
            out.push(b'\n');
            Ok(())
        });
    }
    match found.comments.len() as u64 {
        0 => say("no comments: nothing was sent"),
        many => say(&format!("{} noted for the next prompt of {}", count::of(many, "comment"), piece.name)),
    }
    Ok(0)
}

fn note(comment: &Comment) -> String {
    comment.place.as_ref().map_or_else(|| comment.text.clone(), |place| place.note(&comment.text))
}

fn as_json(comment: &Comment) -> serde_json::Value {
    let place = comment.place.as_ref();
    json!({
        "file": place.map(|place| &place.file),
        "line": place.and_then(|place| place.line),
        "is_removed": place.is_some_and(|place| place.is_removed),
        "code": place.map_or(&[][..], |place| &place.code[..]),
        "text": comment.text,
    })
}
