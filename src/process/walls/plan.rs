//! What is to hold for one program, as data.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::reach::Reach;

/// What one program may do. Paths are absolute; what is not there is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Where it can write, besides the tops of layers and fresh folders.
    pub writable: Vec<PathBuf>,
    /// Folders where it can write that are made if they are missing.
    pub made: Vec<PathBuf>,
    /// Where it cannot write, below those.
    pub read_only: Vec<PathBuf>,
    /// What it cannot read, nor see what is below it.
    pub hidden: Vec<PathBuf>,
    /// Folders with a top of their own.
    pub layers: Vec<Layer>,
    /// Folders of temporary files that are new, and empty but for what is kept.
    pub fresh: Vec<PathBuf>,
    /// What is there in fresh folders, too.
    pub kept: Vec<PathBuf>,
    /// Names that are not made in a folder that it can write: they are removed after the program.
    pub absent: Vec<PathBuf>,
    /// Folders in which it makes no links: those are removed after it.
    pub unlinked: Vec<PathBuf>,
    /// Whether the hidden verb prints what does not hold here.
    pub is_trial: bool,
    /// Whether it is killed when the one who has started it dies: nothing else would do that.
    pub is_bound: bool,
    /// Variables that it gets.
    pub set: Vec<(String, String)>,
    /// Variables that it does not get.
    pub unset: Vec<String>,
    /// Where it can connect to.
    pub reach: Reach,
    /// Whether no namespace can be entered here, so that Landlock and seccomp have to do alone.
    pub is_alone: bool,
}

/// A folder of which the top is thrown away: what is in it cannot be written but by other rules, and what is made in it is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The folder.
    pub path: PathBuf,
    /// Names of files in it that are copied, and copied back if the program has changed or made them. So that programs can put
    /// another file in the place of one.
    pub copied: Vec<String>,
}

impl Plan {
    /// What is left of it where no namespace can be entered: nothing is put in the place of anything else.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.is_alone = true;
        let files =
            self.layers.iter().flat_map(|layer| layer.copied.iter().map(|name| layer.path.join(name)));
        self.writable.extend(files);
        // All of it can be written then, whatever is in it.
        let has_others = |place: &PathBuf| {
            self.kept.iter().chain(&self.hidden).any(|other| other != place && other.starts_with(place))
        };
        let shared: Vec<PathBuf> = self.fresh.iter().filter(|place| !has_others(place)).cloned().collect();
        self.writable.extend(shared);
        self.fresh.clear();
        self.layers.clear();
        let (writable, made) = (&self.writable, &self.made);
        let is_open = |path: &PathBuf| writable.iter().chain(made).any(|place| path.starts_with(place));
        self.read_only.retain(|path| !is_open(path));
        self.hidden.retain(|path| !is_open(path));
        self
    }
}

/// How deep the nearest of these places is that a path is in; `None`: it is in none of them.
#[must_use]
pub fn depth(places: &[PathBuf], path: &Path) -> Option<usize> {
    places.iter().filter(|place| path.starts_with(place)).map(|place| place.components().count()).max()
}

/// How a path is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// It cannot be read.
    Hidden,
    /// It cannot be written.
    ReadOnly,
}
