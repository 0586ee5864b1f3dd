//! Lists of agents in constant texts: the rows of settings are constants.

use super::AGENTS;

/// A text that is built at compile time.
pub(crate) struct Listing {
    bytes: [u8; 512],
    length: usize,
}

impl Listing {
    /// A text with this beginning.
    pub(crate) const fn new(start: &str) -> Self {
        Self { bytes: [0; 512], length: 0 }.then(start)
    }

    /// The text, followed by this.
    pub(crate) const fn then(mut self, text: &str) -> Self {
        let mut at = 0;
        while at < text.len() {
            self.bytes[self.length] = text.as_bytes()[at];
            self.length += 1;
            at += 1;
        }
        self
    }

    /// The text, followed by the names of all agents.
    pub(crate) const fn agents(self) -> Self {
        self.names(false)
    }

    /// The text, followed by the names of those that also speak the Agent Client Protocol.
    pub(crate) const fn agents_with_acp(self) -> Self {
        self.names(true)
    }

    /// The text.
    pub(crate) const fn text(&self) -> &str {
        match str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => unreachable!(),
        }
    }

    /// Names in alphabetical order, with commas between them.
    const fn names(mut self, with_acp: bool) -> Self {
        let mut before = "";
        while let Some(name) = next(before, with_acp) {
            if !before.is_empty() {
                self = self.then(", ");
            }
            self = self.then(name);
            before = name;
        }
        self
    }
}

/// The first name after this one.
const fn next(before: &str, with_acp: bool) -> Option<&'static str> {
    let (mut first, mut at): (Option<&str>, usize) = (None, 0);
    while at < AGENTS.len() {
        if let [preset, others @ ..] = AGENTS[at].presets
            && preset.is_named()
            && (!with_acp || !others.is_empty())
            && is_less(before, preset.name)
            && (first.is_none() || matches!(first, Some(first) if is_less(preset.name, first)))
        {
            first = Some(preset.name);
        }
        at += 1;
    }
    first
}

/// Whether a text comes before another one.
const fn is_less(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at < other.len() && (at == one.len() || one[at] < other[at])
}

#[cfg(test)]
mod tests {
    use super::super::{Protocol, named, preset, sorted};
    use super::Listing;

    #[test]
    fn agents_are_listed_by_their_names() {
        let speaks_acp = |name: &str| {
            preset(&format!("{name}-acp")).is_some_and(|preset| preset.protocol == Protocol::Acp)
        };
        let speaking = named().filter(|preset| speaks_acp(preset.name));
        let expected = format!("a: {}; b: {}.", sorted(named()).join(", "), sorted(speaking).join(", "));
        let text = Listing::new("a: ").agents().then("; b: ").agents_with_acp().then(".");
        assert_eq!(text.text(), expected);
    }
}
