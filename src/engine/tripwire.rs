//! Notices when an attempt has changed what no work needs to change.

/// What leads out of the work: settings and hooks of git, other checkouts, what shells run at their start.
pub trait Tripwire {
    /// An attempt begins.
    fn set(&mut self);

    /// What has changed since then, each in words.
    fn sprung(&mut self) -> Vec<String>;

    /// Whether that ends the loop.
    fn stops(&self) -> bool;
}
