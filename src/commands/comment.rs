//! The place in a loop's work tree that a note is about: `--file src/main.rs:12`.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};

use crate::files::theirs;
use crate::text::count;
use crate::text::place::{CodeLine, Place, around};

/// The place that a word names in a work tree, with the code around it.
pub(super) fn place(tree: &Path, word: &str) -> anyhow::Result<Place> {
    let parts = word.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<usize>().ok()?)));
    let Some((file, line)) = parts.filter(|(file, line)| !file.is_empty() && *line > 0) else {
        bail!("--file {word}: give a file and the number of a line, as in --file src/main.rs:12");
    };
    let tree = tree
        .canonicalize()
        .with_context(|| format!("--file {word}: the loop's work tree {} cannot be read", tree.display()))?;
    let path = tree.join(file);
    let real = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!(
            "--file {word}: there is no file '{file}' in {}: {}give its path below that folder",
            tree.display(),
            theirs::meant(&path)
        ),
        _ => anyhow!("--file {word}: {error}"),
    })?;
    let Ok(below) = real.strip_prefix(&tree) else {
        bail!("--file {word}: {} is outside of the loop's work tree {}", real.display(), tree.display());
    };
    let text = theirs::text(&real)
        .and_then(|text| if text.contains('\0') { Err(ErrorKind::InvalidData.into()) } else { Ok(text) });
    let text = text.map_err(|error| match error.kind() {
        ErrorKind::InvalidData => anyhow!("--file {word}: {file} is no text: give the note without --file"),
        _ => anyhow!("--file {word}: {error}"),
    })?;
    let lines: Vec<&str> = text.lines().collect();
    if line > lines.len() {
        bail!("--file {word}: {file} has {}", count::of(lines.len() as u64, "line"));
    }
    let index = line - 1;
    let (first, last) = around(index, lines.len());
    let code = (first..=last).map(|at| CodeLine::new(at as u64 + 1, ' ', lines[at], at == index));
    let file = below.to_string_lossy().into_owned();
    Ok(Place { file, line: Some(line as u64), is_removed: false, code: code.collect() })
}
