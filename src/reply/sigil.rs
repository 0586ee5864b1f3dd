//! Sigils: markers in the assistant's own text, found as the text streams by.
//!
//! A sigil is a name in angle brackets, a short body, and the name again: `<promise>COMPLETE</promise>`.

/// The assistant claims that everything is done.
pub const COMPLETE: &str = "<promise>COMPLETE</promise>";
/// The assistant says that the plan no longer fits.
pub const REPLAN: &str = "<promise>REPLAN</promise>";

/// How many sigils of one attempt are kept; an agent that says more is talking about them.
const MOST: usize = 1000;

/// A kind of sigil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigilKind {
    /// The name between the brackets.
    pub name: &'static str,
    /// The longest body, in bytes; what is longer is none.
    pub longest: usize,
}

/// What the assistant has to say about the work as a whole.
pub const PROMISE: SigilKind = SigilKind { name: "promise", longest: 32 };
/// The kinds that every agent's text is scanned for.
pub const KINDS: &[SigilKind] = &[PROMISE];

/// One sigil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sigil {
    /// The name of its kind.
    pub name: &'static str,
    /// What stands between the names.
    pub body: String,
}

/// The sigils of one attempt, in the order in which they were said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sigils(Vec<Sigil>);

impl Sigils {
    /// Whether [`COMPLETE`] was said.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.has(PROMISE, "COMPLETE")
    }

    /// Whether [`REPLAN`] was said.
    #[must_use]
    pub fn replan(&self) -> bool {
        self.has(PROMISE, "REPLAN")
    }

    fn has(&self, kind: SigilKind, body: &str) -> bool {
        self.0.iter().any(|sigil| sigil.name == kind.name && sigil.body == body)
    }
}

impl FromIterator<Sigil> for Sigils {
    fn from_iter<I: IntoIterator<Item = Sigil>>(sigils: I) -> Self {
        Self(sigils.into_iter().take(MOST).collect())
    }
}

/// Finds sigils in text that arrives in pieces, as if the pieces were one text without anything between them.
#[derive(Clone, Debug)]
pub struct SigilScanner {
    kinds: &'static [SigilKind],
    found: Vec<Sigil>,
    /// The end of the text so far, from where a sigil may have begun.
    open: String,
}

impl Default for SigilScanner {
    /// Looks for [`KINDS`].
    fn default() -> Self {
        Self::new(KINDS)
    }
}

/// What begins at a `<`.
enum Start {
    /// Nothing of ours.
    Nothing,
    /// It takes more text to tell.
    Unknown,
    /// A sigil that ends after so many bytes.
    Sigil(Sigil, usize),
}

impl SigilScanner {
    /// A scanner for sigils of these kinds.
    #[must_use]
    pub fn new(kinds: &'static [SigilKind]) -> Self {
        Self { kinds, found: Vec::new(), open: String::new() }
    }

    /// Scans the next piece of the text.
    pub fn push(&mut self, piece: &str) {
        if self.open.is_empty() {
            self.scan(piece);
        } else {
            let mut text = std::mem::take(&mut self.open);
            text.push_str(piece);
            self.scan(&text);
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn sigils(&self) -> Sigils {
        self.found.iter().cloned().collect()
    }

    fn scan(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find('<') {
            rest = &rest[at..];
            match self.start(rest) {
                Start::Nothing => rest = &rest[1..],
                Start::Unknown => return rest.clone_into(&mut self.open),
                Start::Sigil(sigil, end) => {
                    if self.found.len() < MOST {
                        self.found.push(sigil);
                    }
                    rest = &rest[end..];
                }
            }
        }
    }

    /// What begins with `text`, which begins with a `<`.
    fn start(&self, text: &str) -> Start {
        let mut start = Start::Nothing;
        for kind in self.kinds {
            match kind.start(text) {
                Start::Nothing => {}
                Start::Unknown => start = Start::Unknown,
                sigil @ Start::Sigil(..) => return sigil,
            }
        }
        start
    }
}

impl SigilKind {
    fn start(self, text: &str) -> Start {
        let Self { name, longest } = self;
        let begun = &text[1..];
        let Some(inside) = begun.strip_prefix(name).and_then(|rest| rest.strip_prefix('>')) else {
            let may_come = name.starts_with(begun);
            return if may_come { Start::Unknown } else { Start::Nothing };
        };
        let (opening, closing) = (format!("<{name}>"), format!("</{name}>"));
        let most = longest + closing.len();
        let window = &inside[..inside.floor_char_boundary(most)];
        match (window.find(&closing), window.find(&opening)) {
            // One that begins again begins there.
            (Some(end), again) if end <= longest && again.is_none_or(|again| end < again) => {
                let sigil = Sigil { name, body: inside[..end].to_owned() };
                Start::Sigil(sigil, opening.len() + end + closing.len())
            }
            (None, None) if inside.len() < most => Start::Unknown,
            _ => Start::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Sigils {
        let mut scanner = SigilScanner::default();
        pieces.into_iter().for_each(|piece| scanner.push(piece));
        scanner.sigils()
    }

    #[test]
    fn finds_exact_sigils_only() {
        let both = scan([format!("a{REPLAN}b{COMPLETE}").as_str()]);
        assert!(both.complete() && both.replan());
        for near in ["<promise>complete</promise>", "<promise> COMPLETE </promise>", "COMPLETE", "<promise>"]
        {
            let found = scan([near]);
            assert!(!found.complete() && !found.replan(), "{near}");
        }
    }

    #[test]
    fn several_kinds_come_in_order_and_bodies_are_bounded() {
        const KINDS: &[SigilKind] =
            &[SigilKind { name: "task", longest: 5 }, SigilKind { name: "task-done", longest: 3 }];
        let mut scanner = SigilScanner::new(KINDS);
        let text =
            "<task>é <b</task> <task-done>1.2</task-done><task>too long</task><task-done>long</task-done>";
        text.split_inclusive(|_: char| true).for_each(|piece| scanner.push(piece));
        let sigil = |name, body: &str| Sigil { name, body: body.to_owned() };
        assert_eq!(
            scanner.sigils(),
            [sigil("task", "é <b"), sigil("task-done", "1.2")].into_iter().collect()
        );
        assert!(scanner.open.len() <= "<task-done>".len() + 3 + "</task-done>".len());
    }

    proptest! {
        #[test]
        fn any_split_finds_what_contains_finds(
            parts in prop::collection::vec(
                prop_oneof![
                    Just(COMPLETE), Just(REPLAN), Just("<promise>COMP"), Just("LETE</promise>"), Just("<promise>RE"),
                    Just("PLAN</promise>"), Just("<"), Just("é"), Just("\n"), Just("x long text that is longer than a sigil"),
                ],
                0..8,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let text = parts.concat();
            let mut cuts: Vec<usize> = cuts
                .iter()
                .map(|cut| cut.index(text.len() + 1))
                .filter(|cut| text.is_char_boundary(*cut))
                .chain([0, text.len()])
                .collect();
            cuts.sort_unstable();
            let found = scan(cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]));
            prop_assert_eq!(found.complete(), text.contains(COMPLETE));
            prop_assert_eq!(found.replan(), text.contains(REPLAN));
        }
    }
}
