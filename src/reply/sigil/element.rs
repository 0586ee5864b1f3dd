//! HTML elements whose content is an example or a quotation, if their tag begins a line.

/// An element that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element(&'static str);

/// The elements, by name.
const NAMES: [&str; 6] = ["pre", "code", "samp", "blockquote", "q", "example"];
/// Not an element, but treated as one: `<!-- … -->`.
const COMMENT: Element = Element("!--");
/// So many characters of a tag are kept: the longest name and a slash.
const LONGEST: usize = 11;

/// The state of a line with regard to elements.
#[derive(Clone, Debug)]
pub(super) struct ElementLine {
    /// The tag that is being read, without its `<`, and cut.
    tag: Option<String>,
    /// The hyphens directly before.
    hyphens: u32,
    /// Whether there are only tags, blanks, list signs and quotation signs so far.
    begins: bool,
    /// The first element that was opened and not closed since.
    opened: Option<Element>,
    /// The elements that were closed.
    closed: Vec<Element>,
}

impl Default for ElementLine {
    fn default() -> Self {
        Self { tag: None, hyphens: 0, begins: true, opened: None, closed: Vec::new() }
    }
}

impl ElementLine {
    pub(super) fn take(&mut self, char: char) {
        if char == '>' && self.hyphens >= 2 {
            self.close(COMMENT);
            self.tag = None;
        }
        self.hyphens = if char == '-' { self.hyphens.saturating_add(1) } else { 0 };
        match (&mut self.tag, char) {
            (tag, '<') => {
                self.begins &= tag.is_none();
                *tag = Some(String::new());
            }
            (Some(_), '>') => self.end_tag(),
            (Some(tag), _) => {
                if tag.len() < LONGEST {
                    tag.push(char.to_ascii_lowercase());
                }
                if tag == COMMENT.0 {
                    self.open(COMMENT);
                    self.tag = None;
                }
            }
            (None, _) => self.begins &= char.is_whitespace() || matches!(char, '-' | '*' | '+' | '>'),
        }
    }

    /// The open element after this line; `open` is the one before it.
    pub(super) fn behind(&self, open: Option<Element>) -> Option<Element> {
        match open {
            Some(open) => (!self.closed.contains(&open)).then_some(open),
            None => self.opened,
        }
    }

    fn end_tag(&mut self) {
        let tag = self.tag.take().unwrap_or_default();
        let (name, is_end) = tag.strip_prefix('/').map_or((tag.as_str(), false), |name| (name, true));
        let name = name.split(char::is_whitespace).next().unwrap_or_default();
        let Some(name) = NAMES.into_iter().find(|known| *known == name) else { return };
        if is_end { self.close(Element(name)) } else { self.open(Element(name)) }
    }

    fn open(&mut self, element: Element) {
        if self.begins && self.opened.is_none() {
            self.opened = Some(element);
        }
    }

    fn close(&mut self, element: Element) {
        if self.opened == Some(element) {
            self.opened = None;
        }
        // So many at most as there are names.
        if !self.closed.contains(&element) {
            self.closed.push(element);
        }
    }
}
