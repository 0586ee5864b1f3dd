//! The lines of a plan and their kinds. The only errors found here are those that hide following lines.

use super::{PlanError, Task};

/// The whole file, line by line and section by section.
pub(super) struct Outline<'t> {
    pub(super) lines: Vec<PlanLine<'t>>,
    pub(super) sections: Vec<Block>,
    /// A code fence or a comment that is never closed.
    pub(super) unclosed: Option<PlanError>,
    /// Headings that look like a branch's, and are not.
    pub(super) strays: Vec<PlanError>,
}

/// One line of the file.
pub(super) struct PlanLine<'t> {
    /// Its text with its line end.
    pub(super) raw: &'t str,
    /// Its position in bytes.
    pub(super) start: usize,
    /// Its text without its line end, with blanks for comments; every byte has its position in `raw`.
    pub(super) visible: String,
    /// Columns of blanks before the text; a code fence counts as one piece.
    pub(super) indent: usize,
    /// Part of a code fence.
    pub(super) fenced: bool,
    /// Whether its first byte is in a code fence or comment that began on an earlier line.
    pub(super) inside: bool,
}

/// One section. Lines are indices into [`Outline::lines`].
#[derive(Debug)]
pub(super) struct Block {
    pub(super) name: String,
    pub(super) heading: usize,
    pub(super) fields: Vec<Field>,
    pub(super) tasks: Vec<TaskLines>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) label: Label,
    pub(super) value: String,
    pub(super) line: usize,
    /// Its last line.
    pub(super) end: usize,
    /// Blanks and list dash in front of the label.
    pub(super) prefix: String,
    /// The bytes of the file from the label to the end of the text.
    pub(super) bytes: std::ops::Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Goal,
    Base,
    Status,
    PullRequest,
}

impl Label {
    pub(super) const ALL: [Self; 4] = [Self::Goal, Self::Base, Self::Status, Self::PullRequest];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Goal => "Goal",
            Self::Base => "Base",
            Self::Status => "Status",
            Self::PullRequest => "PR",
        }
    }
}

#[derive(Debug)]
pub(super) struct TaskLines {
    pub(super) text: String,
    pub(super) ticked: bool,
    /// The position of the tick in the file.
    pub(super) tick: usize,
    pub(super) line: usize,
    /// Its last line.
    pub(super) end: usize,
}

impl TaskLines {
    pub(super) fn task(&self) -> Task {
        Task { text: self.text.clone(), ticked: self.ticked, line: self.line + 1 }
    }
}

impl PlanLine<'_> {
    pub(super) fn is_heading(&self) -> bool {
        !self.fenced && heading(&self.visible).is_some()
    }
}

impl<'t> Outline<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let (lines, unclosed) = lines(text);
        let mut outline = Self { lines, sections: Vec::new(), unclosed, strays: Vec::new() };
        outline.find_sections();
        outline
    }

    fn find_sections(&mut self) {
        let mut in_section = false;
        let mut owner = Owner::None;
        for (index, line) in self.lines.iter().enumerate() {
            match heading(&line.visible).filter(|_| !line.fenced) {
                Some(Heading::Branch(name)) => {
                    let (fields, tasks) = Default::default();
                    self.sections.push(Block { name, heading: index, fields, tasks });
                    (in_section, owner) = (true, Owner::None);
                    continue;
                }
                Some(Heading::Stray(name)) => {
                    let problem =
                        format!("this heading begins no branch: write '## Branch: {name}', exactly so");
                    self.strays.push(PlanError { line: index + 1, problem });
                    (in_section, owner) = (false, Owner::None);
                    continue;
                }
                Some(Heading::Other(level)) => {
                    in_section &= level > 2;
                    owner = Owner::None;
                    continue;
                }
                None => {}
            }
            if let Some(block) = self.sections.last_mut().filter(|_| in_section) {
                owner = block.take(index, line, owner);
            }
        }
    }
}

/// The owner of an indented line, and the indent that the line has to exceed.
#[derive(Clone, Copy)]
enum Owner {
    None,
    Goal(usize),
    Task(usize),
}

impl Block {
    /// Adds a line that is no heading, and returns the owner of the next one if that is indented.
    fn take(&mut self, index: usize, line: &PlanLine, owner: Owner) -> Owner {
        let text = line.visible.trim();
        match owner {
            Owner::Task(indent) if line.fenced && line.indent > indent => {
                self.tasks.last_mut().into_iter().for_each(|task| task.end = index);
                return owner;
            }
            _ if line.fenced => return Owner::None,
            Owner::Goal(_) if text.is_empty() => return Owner::None,
            _ if text.is_empty() => return owner,
            _ => {}
        }
        if let Some(mut task) = task(line) {
            (task.line, task.end) = (index, index);
            self.tasks.push(task);
            return Owner::Task(line.indent);
        }
        let field = field(line);
        match (owner, field) {
            (Owner::Task(indent), _) if line.indent > indent => {
                if let Some(task) = self.tasks.last_mut() {
                    join(&mut task.text, text);
                    task.end = index;
                }
                owner
            }
            (Owner::Goal(indent), None) if line.indent > indent => {
                if let Some(goal) = self.fields.last_mut() {
                    join(&mut goal.value, text);
                    goal.end = index;
                }
                owner
            }
            (_, Some(mut field)) => {
                (field.line, field.end) = (index, index);
                let is_goal = field.label == Label::Goal;
                self.fields.push(field);
                if is_goal { Owner::Goal(line.indent) } else { Owner::None }
            }
            _ => Owner::None,
        }
    }
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

/// A region that hides lines.
enum Hidden {
    Comment,
    /// `item`: the column of the text of the list item that it is in.
    Fence {
        mark: char,
        length: usize,
        indent: usize,
        item: Option<usize>,
    },
}

impl Hidden {
    /// Whether the region has ended above this line without its end: a code fence ends with its list item, and that ends where the
    /// next one or a heading begins.
    fn ends_above(&self, line: &str) -> bool {
        let Self::Fence { item: Some(item), .. } = self else { return false };
        columns(line) < *item && (item_text(line.trim_start()).is_some() || heading(line).is_some())
    }
}

/// The lines, and the error for a region that is never closed.
fn lines(text: &str) -> (Vec<PlanLine<'_>>, Option<PlanError>) {
    let mut lines = Vec::new();
    let mut hidden: Option<(Hidden, usize)> = None;
    // The columns of the texts of the list items that the line is in.
    let mut items: Vec<usize> = Vec::new();
    let mut start = 0;
    for (index, raw) in text.split_inclusive('\n').enumerate() {
        let content = raw.strip_suffix('\n').unwrap_or(raw);
        let mut visible = content.strip_suffix('\r').unwrap_or(content).to_owned();
        if index == 0 && visible.starts_with('\u{feff}') {
            // A byte order mark, three invisible bytes.
            visible.replace_range(..3, "   ");
        }
        let mut indent = columns(&visible);
        if hidden.as_ref().is_some_and(|(hidden, _)| hidden.ends_above(&visible)) {
            hidden = None;
        }
        let inside = hidden.is_some();
        if !inside && !visible.trim().is_empty() {
            items.retain(|item| *item <= indent);
            let text = visible.trim_start();
            items.extend(item_text(text).map(|rest| indent + text.len() - rest.len()));
        }
        let mut fenced = false;
        match &hidden {
            Some((Hidden::Fence { mark, length, indent: opened, .. }, _)) => {
                (fenced, indent) = (true, *opened);
                if closes(&visible, *mark, *length) {
                    hidden = None;
                }
            }
            Some((Hidden::Comment, since)) => {
                let since = *since;
                let ended = visible.find("-->").map(|at| at + 3);
                let still_open = ended.is_none_or(|from| blank_comments(&mut visible, from));
                let since = if ended.is_some() { index } else { since };
                hidden = still_open.then_some((Hidden::Comment, since));
                // Text after a multi-line comment is still part of it, as in Markdown.
                visible.clear();
            }
            None => {
                if let Some((mark, length)) = opened_fence(&visible) {
                    fenced = true;
                    let item = items.last().copied();
                    hidden = Some((Hidden::Fence { mark, length, indent, item }, index));
                } else if blank_comments(&mut visible, 0) {
                    hidden = Some((Hidden::Comment, index));
                }
            }
        }
        lines.push(PlanLine { raw, start, visible, indent, fenced, inside });
        start += raw.len();
    }
    let unclosed = hidden.map(|(what, index)| {
        let problem = match what {
            Hidden::Comment => {
                "the comment that begins here is never closed: end it with '-->', or put '<!--' in backticks"
            }
            Hidden::Fence { .. } => "the code fence that begins here is never closed: close it",
        };
        PlanError { line: index + 1, problem: problem.to_owned() }
    });
    (lines, unclosed)
}

/// Replaces comments from byte `from` on with blanks; returns whether the last one continues on the next line.
fn blank_comments(line: &mut String, mut from: usize) -> bool {
    while let Some(start) = next_comment(line, from) {
        // From the third byte, so that `<!-->` is complete.
        let end = line[start + 2..].find("-->").map(|at| start + 2 + at + 3);
        let range = start..end.unwrap_or(line.len());
        line.replace_range(range.clone(), &" ".repeat(range.len()));
        match end {
            Some(end) => from = end,
            None => return true,
        }
    }
    false
}

/// The next comment at `from` or later; text in backticks does not count.
fn next_comment(line: &str, mut from: usize) -> Option<usize> {
    loop {
        let comment = from + line[from..].find("<!--")?;
        let Some(open) = line[from..comment].find('`').map(|at| from + at) else { return Some(comment) };
        let run = |at: usize| line[at..].bytes().take_while(|byte| *byte == b'`').count();
        let length = run(open);
        from = open + length;
        // The next run of the same length closes it.
        let mut at = from;
        while let Some(next) = line[at..].find('`').map(|found| at + found) {
            at = next + run(next);
            if at - next == length {
                from = at;
                break;
            }
        }
    }
}

/// The mark and length of the code fence that `line` opens, at any indent and also right after a list dash.
fn opened_fence(line: &str) -> Option<(char, usize)> {
    let text = line.trim_start();
    let text = without_dash(text).unwrap_or(text);
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = text.chars().take_while(|char| *char == mark).count();
    let inline = mark == '`' && text[length..].contains('`');
    (length >= 3 && !inline).then_some((mark, length))
}

fn closes(line: &str, mark: char, length: usize) -> bool {
    let text = line.trim();
    text.len() >= length && text.chars().all(|char| char == mark)
}

/// The column of the text; a tab advances to the next multiple of four.
fn columns(line: &str) -> usize {
    let blanks = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
    blanks.fold(0, |column, byte| if byte == b'\t' { column / 4 * 4 + 4 } else { column + 1 })
}

/// The text of a list item, after its dash or number.
fn item_text(text: &str) -> Option<&str> {
    let number = text.trim_start_matches(|char: char| char.is_ascii_digit());
    match number.strip_prefix(['.', ')']).filter(|_| number.len() < text.len()) {
        Some(after) => after.starts_with([' ', '\t']).then(|| after.trim_start()),
        None => without_dash(text),
    }
}

/// The text after a list dash and its blanks.
fn without_dash(text: &str) -> Option<&str> {
    let after = text.strip_prefix(['-', '*', '+'])?;
    after.starts_with([' ', '\t']).then(|| after.trim_start())
}

enum Heading {
    /// A branch, with its name.
    Branch(String),
    /// Looks like a branch, with its name.
    Stray(String),
    /// Another heading, with its level.
    Other(usize),
}

fn heading(line: &str) -> Option<Heading> {
    let marks = line.trim_start_matches(' ');
    let text = marks.trim_start_matches('#');
    let level = marks.len() - text.len();
    if columns(line) > 3 || !(1..=6).contains(&level) {
        return None;
    }
    let is_heading = text.is_empty() || text.starts_with([' ', '\t']);
    let text = text.trim();
    // `## Title ##` closes its heading.
    let open = text.trim_end_matches('#');
    let text = if open.is_empty() || open.ends_with([' ', '\t']) { open.trim_end() } else { text };
    if let Some(name) = text.strip_prefix("Branch:").filter(|_| is_heading && level == 2) {
        return Some(Heading::Branch(clean(name)));
    }
    let plain = text.trim_start_matches(['*', '`']);
    let is_meant = plain.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("branch"));
    let name = plain.get(6..).and_then(|rest| rest.trim_start_matches(['*', '`', ' ']).strip_prefix(':'));
    match name.filter(|_| is_meant) {
        Some(name) => Some(Heading::Stray(name.trim_matches(['*', '`', ' ', '\t']).to_owned())),
        None => is_heading.then_some(Heading::Other(level)),
    }
}

pub(super) fn field(line: &PlanLine) -> Option<Field> {
    let text = line.visible.trim_start();
    let text = without_dash(text).unwrap_or(text);
    let at = line.visible.len() - text.len();
    let (is_bold, rest) = text.strip_prefix("**").map_or((false, text), |rest| (true, rest));
    let (label, after) =
        Label::ALL.into_iter().find_map(|label| Some((label, rest.strip_prefix(label.word())?)))?;
    // Bold may end before the colon, after it, or after the value.
    let value = if let Some(value) = after.strip_prefix("**:").filter(|_| is_bold) {
        value
    } else {
        let value = after.strip_prefix(':')?;
        let closed = value.strip_prefix("**").or_else(|| value.trim_end().strip_suffix("**"));
        closed.filter(|_| is_bold).unwrap_or(value)
    };
    let end = line.visible.trim_end().len();
    Some(Field {
        label,
        value: clean(value),
        line: 0,
        end: 0,
        prefix: line.visible[..at].to_owned(),
        bytes: line.start + at..line.start + end,
    })
}

pub(super) fn task(line: &PlanLine) -> Option<TaskLines> {
    // A task may stand in a quotation.
    let boxed = item_text(line.visible.trim_start_matches([' ', '\t', '>']))?;
    let tick = line.start + line.visible.len() - boxed.len() + 1;
    let [b'[', mark @ (b' ' | b'x' | b'X'), b']', after @ ..] = boxed.as_bytes() else { return None };
    if !after.first().is_none_or(|byte| matches!(byte, b' ' | b'\t')) {
        return None;
    }
    Some(TaskLines { text: boxed[3..].trim().to_owned(), ticked: *mark != b' ', tick, line: 0, end: 0 })
}

/// `value` without blanks, backticks and bold around it.
fn clean(value: &str) -> String {
    let mut value = value.trim();
    while let Some(inner) = ["**", "`"].into_iter().find_map(|mark| {
        let inner = value.strip_prefix(mark)?.strip_suffix(mark)?;
        (!inner.is_empty() && !inner.contains(mark)).then_some(inner)
    }) {
        value = inner.trim();
    }
    value.to_owned()
}
