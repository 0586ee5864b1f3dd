//! Clearing up a repository. git does that by itself after many of its commands, and cannot where walls close parts of it.

use std::fs;
use std::path::Path;

use super::change::change;

/// From so many loose objects with one beginning, and so many packs, git finds it worth while as well, unless it is set otherwise.
const LOOSE: usize = 27;
const PACKS: usize = 50;
/// The beginning of the objects that it counts: they are spread evenly.
const COUNTED: &str = "17";

/// Clears up a repository now and then.
#[derive(Debug, Default)]
pub struct Clearing {
    /// What was left the last time: git keeps new objects that nothing leads to for two weeks.
    left: (usize, usize),
}

impl Clearing {
    /// Has git clear up the repository with this common folder if there is much more to clear up than the last time.
    pub fn clear_up(&mut self, root: &Path, common: &Path) {
        let (loose, packs) = (loose(common), packs(common));
        if loose < self.left.0 + LOOSE && packs < self.left.1 + PACKS {
            return;
        }
        // What it cannot do now, it can the next time.
        let _ = change(root, &["-c", "gc.autoDetach=false", "gc", "--auto", "--quiet"]);
        self.left = (self::loose(common), self::packs(common));
    }
}

fn loose(common: &Path) -> usize {
    fs::read_dir(common.join("objects").join(COUNTED)).map_or(0, Iterator::count)
}

fn packs(common: &Path) -> usize {
    let entries = fs::read_dir(common.join("objects/pack")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "pack")).count()
}
