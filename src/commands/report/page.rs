//! `ralph report --html FILE`: the page, written where it is wanted.

use std::path::Path;

use anyhow::Context as _;

use super::browser;
use crate::commands::output::{print_as_it_is, say, warn};
use crate::files::atomic::{self, Durability};
use crate::record::report::RunReport;
use crate::view::report::html::page;

/// Writes the page, or prints it where the file is `-`, and opens it.
pub(super) fn write(report: &RunReport, file: &Path, is_to_open: bool) -> anyhow::Result<u8> {
    let page = page(report);
    if file == Path::new("-") {
        return print_as_it_is(&page);
    }
    atomic::write_theirs(file, page.as_bytes(), Durability::Atomic).context("cannot write the page")?;
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    say(&whole.display().to_string());
    if is_to_open && let Err(error) = browser::open(&whole) {
        warn(&format!("{error:#}"));
    }
    Ok(0)
}
