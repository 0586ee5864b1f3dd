//! Pointers of the registry, with which loops are found from anywhere.

use std::path::Path;

use super::output::warn;
use crate::project::Project;
use crate::record::registry::{self, LoopEntry};

/// Removes the pointers to all loops with records below a folder that is gone.
pub(super) fn forget_below(here: &Project, folder: &Path) {
    if let Err(error) = forget(here, |_, places| places.records().starts_with(folder)) {
        warn(&format!("{error:#}"));
    }
}

/// Removes the selected pointers, and counts them.
pub(super) fn forget(
    here: &Project,
    is_meant: impl Fn(&LoopEntry, &Project) -> bool,
) -> anyhow::Result<usize> {
    let Some(folder) = here.registry() else { return Ok(0) };
    let mut count = 0;
    for entry in registry::list(&folder).0.iter().filter(|entry| is_meant(entry, &entry.places(here))) {
        registry::remove(&folder, entry)?;
        count += 1;
    }
    Ok(count)
}
