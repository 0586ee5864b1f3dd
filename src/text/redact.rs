//! Removes secrets from records and output. A value is found in the forms in which programs write it ([`forms`]),
//! even if its bytes arrive in pieces: a possible beginning of one is held back until more is known.
//!
//! Values have no newlines (a value of several lines counts as several values), so nothing is held back beyond the
//! end of a line.

mod begins;
mod forms;
mod fragments;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use anstream::adapter::strip_str;

use self::begins::Begins;
use self::fragments::Fragments;
use super::texts::Texts;

/// Shorter values are not searched, in bytes: there would be false matches.
pub const SHORTEST: usize = 8;
/// The beginning of the mark that replaces a value.
pub const MARK: &str = "[redacted:";

/// Knows the secrets and removes them. The default has none.
#[derive(Clone, Default)]
pub struct Redactor(Option<Arc<Known>>);

struct Known {
    automaton: AhoCorasick,
    fragments: Option<Fragments>,
    /// Each form with the index of its name, sorted by bytes like the automaton.
    forms: Vec<(Vec<u8>, usize)>,
    /// The mark for a value, by the index of its name.
    marks: Vec<String>,
    names: Vec<String>,
    values: Vec<String>,
    longest: usize,
    begins: Begins,
}

/// Removes secrets from one stream of bytes, cut anywhere.
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    redactor: Redactor,
    /// The last bytes, which may be the beginning of a secret.
    held: Vec<u8>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: &[String] = self.0.as_ref().map_or(&[], |known| &known.names);
        f.debug_tuple("Redactor").field(&names).finish()
    }
}

impl Redactor {
    /// Removes these values, each with its name; values under [`SHORTEST`] bytes are ignored. A value with two names
    /// gets the first.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut names, mut values, mut of_values) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = BTreeMap::new();
        for (name, value) in secrets {
            for line in value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST) {
                let place = names.len();
                names.push(name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect());
                values.push(line.to_owned());
                let forms = forms::of(line);
                for form in &forms {
                    all.entry(form.clone().into_bytes()).or_insert(place);
                }
                of_values.push(forms);
            }
        }
        let forms: Vec<(Vec<u8>, usize)> = all.into_iter().collect();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(forms.iter().map(|(form, _)| form));
        // It fails only if all values together have gigabytes.
        let Some(automaton) = automaton.ok().filter(|_| !forms.is_empty()) else { return Self(None) };
        let begins = Begins::of(forms.iter().map(|(form, _)| form));
        let fragments = Fragments::of(values.iter().map(String::as_str).zip(&of_values));
        let longest = forms.iter().map(|(form, _)| form.len()).max().unwrap_or_default();
        let marks = names.iter().map(|name: &String| format!("{MARK}{name}]")).collect();
        Self(Some(Arc::new(Known { automaton, fragments, forms, marks, names, values, longest, begins })))
    }

    /// Whether there are no secrets.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// A new stream.
    #[must_use]
    pub fn stream(&self) -> Redaction {
        Redaction { redactor: self.clone(), held: Vec::new() }
    }

    /// A whole text without its secrets, including those that were cut off at its end, or where `…` says so.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // A value with colours inside is still readable, and other code removes the colours.
        if text.contains('\x1b') && !self.is_idle() {
            let bare: String = strip_str(text).collect();
            if let Cow::Owned(kept) = self.uncoloured(&bare) {
                return Cow::Owned(kept);
            }
        }
        self.uncoloured(text)
    }

    /// Removes secrets from all texts of a value.
    pub fn clean(&self, texts: &mut impl Texts) {
        if self.is_idle() {
            return;
        }
        texts.replace_texts(&|text| match self.text(text) {
            Cow::Owned(kept) => Some(kept),
            Cow::Borrowed(_) => None,
        });
    }

    fn uncoloured<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(known) = &self.0 else { return Cow::Borrowed(text) };
        if !text.contains('…') && known.certain(text.as_bytes()) == Some(text.len()) {
            return Cow::Borrowed(text);
        }
        let mut out = String::new();
        for (number, piece) in text.split_inclusive('…').enumerate() {
            let piece = if number > 0 { known.without_rest(piece) } else { Cow::Borrowed(piece) };
            let (piece, end) = split_off_cut(&piece);
            let mut stream = self.stream();
            out.push_str(&String::from_utf8_lossy(&stream.push(piece.as_bytes())));
            out.push_str(&String::from_utf8_lossy(&stream.finish()));
            out.push_str(end);
        }
        if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
    }

    /// A complete text without its secrets: [`Redactor::restore`] puts them back.
    #[must_use]
    pub fn word(&self, text: &str) -> String {
        let Some(known) = &self.0 else { return text.to_owned() };
        let mut out = String::new();
        known.automaton.replace_all_with(text, &mut out, |found, _, out| {
            out.push_str(&known.marks[known.forms[found.pattern().as_usize()].1]);
            true
        });
        out
    }

    /// Restores the values in a [`Redactor::word`]. `None` if it names an unknown one, or one of several lines.
    #[must_use]
    pub fn restore(&self, text: &str) -> Option<String> {
        let mut out = text.to_owned();
        if let Some(known) = &self.0 {
            let is_single = |mark: &&String| known.marks.iter().filter(|other| other == mark).count() == 1;
            let marks = known.marks.iter().zip(&known.values).filter(|(mark, _)| is_single(mark));
            marks.for_each(|(mark, value)| out = out.replace(mark, value));
        }
        (!out.contains(MARK)).then_some(out)
    }
}

/// A piece of text, and its end if something was cut off there.
fn split_off_cut(piece: &str) -> (&str, &str) {
    let Some(before) = piece.strip_suffix('…') else { return (piece, "") };
    piece.split_at(before.trim_end_matches([' ', '\n', '[']).len())
}

impl Known {
    /// How many of these bytes certainly hold no secret; `None` if there is one among them.
    fn certain(&self, bytes: &[u8]) -> Option<usize> {
        let held = self.held_from(bytes, 0);
        let may_be_in = self.fragments.as_ref().is_none_or(|fragments| fragments.may_be_in(bytes));
        let found = may_be_in.then(|| self.automaton.find(bytes)).flatten();
        found.is_none_or(|found| found.start() >= held).then_some(held)
    }

    /// The bytes without secrets, and from which position on they may hold the beginning of one.
    fn replaced(&self, bytes: &[u8]) -> (Vec<u8>, usize) {
        let (mut out, mut at, mut held) = (Vec::with_capacity(bytes.len()), 0, self.held_from(bytes, 0));
        for found in self.automaton.find_iter(bytes) {
            // More bytes may make it another one.
            if found.start() >= held {
                break;
            }
            out.extend_from_slice(&bytes[at..found.start()]);
            out.extend_from_slice(self.mark(found.pattern().as_usize()));
            at = found.end();
            if at > held {
                held = self.held_from(bytes, at);
            }
        }
        out.extend_from_slice(&bytes[at..held]);
        (out, held)
    }

    fn mark(&self, form: usize) -> &[u8] {
        self.marks[self.forms[form].1].as_bytes()
    }

    /// The position from which `bytes` are an unfinished form; their end if there is none.
    fn held_from(&self, bytes: &[u8], from: usize) -> usize {
        let from = from.max(bytes.len().saturating_sub(self.longest - 1));
        let line = bytes[from..].iter().rposition(|byte| *byte == b'\n').map_or(from, |at| from + at + 1);
        let begins = |at: &usize| self.begins.may_begin(&bytes[*at..]) && self.begun(&bytes[*at..]).is_some();
        (line..bytes.len()).find(begins).unwrap_or(bytes.len())
    }

    /// The first form that goes on behind these bytes.
    fn begun(&self, bytes: &[u8]) -> Option<usize> {
        let first = self.forms.partition_point(|(form, _)| form.as_slice() < bytes);
        let goes_on = |place: &usize| {
            self.forms
                .get(*place)
                .is_some_and(|(form, _)| form.len() > bytes.len() && form.starts_with(bytes))
        };
        // The first one may be nothing but these bytes.
        [first, first + 1].into_iter().find(goes_on)
    }

    /// Text behind a cut, less what it begins with of a secret whose beginning was cut off.
    fn without_rest<'a>(&self, piece: &'a str) -> Cow<'a, str> {
        let start = piece.len() - piece.trim_start_matches([']', '\n', ' ']).len();
        let rest = |(form, name): &(Vec<u8>, usize)| {
            let lengths = (SHORTEST..form.len()).rev();
            let length = { lengths }
                .find(|length| piece.as_bytes()[start..].starts_with(&form[form.len() - length..]))?;
            piece.is_char_boundary(start + length).then_some((length, *name))
        };
        match self.forms.iter().filter_map(rest).max() {
            Some((length, name)) => {
                format!("{}{}{}", &piece[..start], self.marks[name], &piece[start + length..]).into()
            }
            None => piece.into(),
        }
    }
}

impl Redaction {
    /// Takes the next bytes, and returns what is certain by now.
    #[must_use]
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(known) = &self.redactor.0 else { return Cow::Borrowed(bytes) };
        if self.held.is_empty()
            && let Some(held) = known.certain(bytes)
        {
            self.held.extend_from_slice(&bytes[held..]);
            return Cow::Borrowed(&bytes[..held]);
        }
        self.held.extend_from_slice(bytes);
        if let Some(held) = known.certain(&self.held) {
            let rest = self.held.split_off(held);
            return Cow::Owned(mem::replace(&mut self.held, rest));
        }
        let (out, held) = known.replaced(&self.held);
        self.held.drain(..held);
        Cow::Owned(out)
    }

    /// Nothing more comes. What was held back is no secret as a whole; where it is a good part of one, it is taken out all the same.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        let held = mem::take(&mut self.held);
        let Some(known) = self.redactor.0.as_ref().filter(|_| held.len() >= SHORTEST) else { return held };
        if let Ok(place) = known.forms.binary_search_by(|(form, _)| form.as_slice().cmp(&held)) {
            return known.mark(place).to_vec();
        }
        let begun = known.begun(&held).map(|place| &known.forms[place]);
        match begun {
            Some((form, name)) if held.len() * 4 >= form.len() || self.holds_one(&held) => {
                known.marks[*name].clone().into_bytes()
            }
            _ => held,
        }
    }

    /// Whether something is held back.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether a whole secret stands in these bytes.
    fn holds_one(&self, bytes: &[u8]) -> bool {
        self.redactor.0.as_ref().is_some_and(|known| known.automaton.is_match(bytes))
    }
}

#[cfg(test)]
mod tests;
