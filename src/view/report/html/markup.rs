//! Mark-up into which foreign text only gets escaped.

use std::borrow::Cow;

use crate::text::hidden::revealed;

/// The name of an attribute and its value.
pub(super) type Attribute<'a> = (&'static str, &'a str);

/// A piece of a page. The names of its elements and attributes are in our code; everything else is text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Html(String);

impl Html {
    /// Mark-up from our code.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Foreign text: it is shown as it is, and has no effect.
    pub(super) fn text(&mut self, text: impl AsRef<str>) -> &mut Self {
        for char in shown(&revealed(text.as_ref())).chars() {
            match char {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                char => self.0.push(char),
            }
        }
        self
    }

    /// An element with the contents that `inner` adds.
    pub(super) fn element(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        inner: impl FnOnce(&mut Self),
    ) -> &mut Self {
        self.empty(name, attributes);
        inner(self);
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
        self
    }

    /// An element without an end tag.
    pub(super) fn empty(&mut self, name: &'static str, attributes: &[Attribute<'_>]) -> &mut Self {
        self.0.push('<');
        self.0.push_str(name);
        for (attribute, value) in attributes {
            self.0.push(' ');
            self.0.push_str(attribute);
            self.0.push_str("=\"");
            self.text(value);
            self.0.push('"');
        }
        self.0.push('>');
        self
    }

    /// An element with only text in it.
    pub(super) fn with(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        text: impl AsRef<str>,
    ) -> &mut Self {
        self.element(name, attributes, |html| {
            html.text(text);
        })
    }

    /// An element of a class with only text in it.
    pub(super) fn line(
        &mut self,
        name: &'static str,
        class: &'static str,
        text: impl AsRef<str>,
    ) -> &mut Self {
        let class = [("class", class)];
        let attributes = if class[0].1.is_empty() { &[] } else { &class[..] };
        self.with(name, attributes, text)
    }

    /// Foreign words within a line, isolated: their direction of writing does not change the words around them.
    pub(super) fn words(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.with("bdi", &[], text)
    }

    /// Another piece.
    pub(super) fn append(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Its size, in bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// `text` as a page can show it: without escape sequences of terminals; other control characters are replaced by pictures.
fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(|char| char != in_place(char)) {
        return Cow::Borrowed(text);
    }
    // A browser would drop some control characters silently.
    let text = text.replace("\r\n", "\n");
    let mut shown = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('\x1b') {
        shown.extend(rest[..at].chars().map(in_place));
        let length = sequence(&rest[at..]);
        if length == 1 {
            shown.push(in_place('\x1b'));
        }
        rest = &rest[at + length..];
    }
    shown.extend(rest.chars().map(in_place));
    Cow::Owned(shown)
}

/// The length of the escape sequence that `text` begins with: of a colour or the like (`ESC [ … letter`), or of a title
/// (`ESC ] … BEL`); 1 if it is none, or never ends.
fn sequence(text: &str) -> usize {
    let ends = |char: char| ('\x40'..='\x7e').contains(&char);
    if let Some(body) = text.strip_prefix("\x1b[") {
        let end = body.find(|char: char| !(' '..='?').contains(&char));
        return end.filter(|&end| body[end..].starts_with(ends)).map_or(1, |end| 2 + end + 1);
    }
    if let Some(body) = text.strip_prefix("\x1b]") {
        let line = body.split('\n').next().unwrap_or_default();
        let bell = line.find('\x07').map(|at| 2 + at + 1);
        let string = line.find("\x1b\\").map(|at| 2 + at + 2);
        return bell.into_iter().chain(string).min().unwrap_or(1);
    }
    1
}

fn in_place(char: char) -> char {
    match char {
        '\n' | '\t' => char,
        // Each control character of ASCII has a picture.
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(char)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '␡',
        // The last ones are noncharacters.
        '\u{fdd0}'..='\u{fdef}' => char::REPLACEMENT_CHARACTER,
        _ if char.is_control() || u32::from(char) & 0xfffe == 0xfffe => char::REPLACEMENT_CHARACTER,
        _ => char,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> String {
        let mut html = Html::default();
        html.text(text);
        html.finish()
    }

    #[test]
    fn text_is_escaped_wherever_it_stands() {
        let mut html = Html::default();
        html.with("a", &[("title", "\"><img onerror='x'>")], "</a><script>&");
        assert_eq!(
            html.finish(),
            "<a title=\"&quot;&gt;&lt;img onerror=&#39;x&#39;&gt;\">&lt;/a&gt;&lt;script&gt;&amp;</a>"
        );
    }

    #[test]
    fn what_cannot_be_seen_shows_or_is_gone() {
        assert_eq!(of("\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b]8;;x\x1b\\end"), "red end");
        assert_eq!(of("a\0b\x07c\x7fd\re\r\nf\tg"), "a␀b␇c␡d␍e\nf\tg");
        assert_eq!(of("\u{202e}a\u{ad}\u{9b}\u{fffe}"), "\\u{202e}a\\u{ad}\u{fffd}\u{fffd}");
        assert_eq!(of("\x1b"), "␛");
        assert_eq!(of("\x1b[31\n\x1b]0;never ends\nb"), "␛[31\n␛]0;never ends\nb");
        assert_eq!(of("שלום 🦀 👩‍👩‍👧"), "שלום 🦀 👩‍👩‍👧");
    }

    proptest! {
        #[test]
        fn no_text_opens_or_ends_anything(text in any::<String>()) {
            let text = of(&text);
            prop_assert!(!text.contains(['<', '>', '"', '\'']), "{text}");
            prop_assert!(text.chars().all(|char| char == '\n' || char == '\t' || !char.is_control()));
        }
    }
}
