//! `ralph template`: a prompt to begin with.

use crate::commands::output::print_as_it_is;

/// The prompt; also what `ralph init PROMPT.md` writes.
pub(in crate::commands) const TEMPLATE: &str = include_str!("../starter/PROMPT.md");

/// `ralph template`.
pub(in crate::commands) fn template() -> anyhow::Result<u8> {
    print_as_it_is(TEMPLATE)
}
