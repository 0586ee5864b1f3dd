//! The user's comments in the text of a diff: lines that begin with `#>`, each about the line above it.

use crate::text::place::{CodeLine, Place, around};

/// What a comment begins with.
const COMMENT: &str = "#>";
/// What all lines begin with that are no part of the diff.
const ASIDE: char = '#';
/// How many lines in a row have to be alike for a part of the diff to be found again.
const ALIKE: usize = 3;

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// What it is about; `None` for the whole diff.
    pub place: Option<Place>,
    /// Its text, without the signs.
    pub text: String,
}

/// The comments of an edited diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// In their order.
    pub comments: Vec<Comment>,
    /// How many lines were written into the diff that are no comments.
    pub strays: usize,
}

/// The comments in `edited`, which was `diff` before the user edited it. Parts of the diff may have been removed.
#[must_use]
pub fn in_diff(diff: &str, edited: &str) -> Found {
    let diff = Diff::read(diff);
    let edited: Vec<&str> = edited.lines().collect();
    let mut walk = Walk { diff: &diff, next: 0 };
    let (mut comments, mut strays): (Vec<Comment>, usize) = (Vec::new(), 0);
    let mut goes_on = false;
    for (index, line) in edited.iter().enumerate() {
        // Editors indent a new line as the one above it.
        let indented = || line.trim_start().strip_prefix(COMMENT).filter(|_| !walk.is_next(line));
        if let Some(text) = line.strip_prefix(COMMENT).or_else(indented) {
            let text = text.strip_prefix(' ').unwrap_or(text).trim_end();
            match comments.last_mut().filter(|_| goes_on) {
                Some(comment) => comment.text.extend(["\n", text]),
                None => comments.push(Comment { place: walk.place(), text: text.to_owned() }),
            }
            goes_on = true;
            continue;
        }
        goes_on = false;
        if !line.starts_with(ASIDE) && !walk.meets(&edited[index..]) && !line.trim().is_empty() {
            strays += 1;
        }
    }
    for comment in &mut comments {
        comment.text = comment.text.trim().to_owned();
    }
    comments.retain(|comment| !comment.text.is_empty());
    Found { comments, strays }
}

/// Follows the edited text through the diff.
struct Walk<'a> {
    diff: &'a Diff<'a>,
    /// The index of the line that should come next.
    next: usize,
}

impl Walk<'_> {
    /// Whether the diff goes on with this line.
    fn is_next(&self, line: &str) -> bool {
        self.diff.lines.get(self.next).is_some_and(|(next, _)| next.trim_end() == line.trim_end())
    }

    /// Whether the first of these lines is one of the diff, here or, if a part was removed, further below.
    fn meets(&mut self, edited: &[&str]) -> bool {
        let lines = &self.diff.lines;
        let is_like =
            |at: usize| lines.get(at).is_some_and(|(line, _)| line.trim_end() == edited[0].trim_end());
        let found = if is_like(self.next) {
            Some(self.next)
        } else {
            let follow: Vec<&str> =
                edited.iter().filter(|line| !line.starts_with(ASIDE)).take(ALIKE).copied().collect();
            let is_found = |at: &usize| {
                let there = lines[*at..].iter().map(|(line, _)| line.trim_end());
                is_like(*at) && there.zip(&follow).all(|(there, line)| there == line.trim_end())
            };
            (self.next..lines.len()).find(is_found)
        };
        self.next = found.map_or(self.next, |at| at + 1);
        found.is_some()
    }

    /// The place of the last line that was met.
    fn place(&self) -> Option<Place> {
        self.diff.place(self.next.checked_sub(1)?)
    }
}

/// A diff of git.
struct Diff<'a> {
    /// Its lines, each with what it is.
    lines: Vec<(&'a str, Row)>,
    /// The files, by their numbers.
    files: Vec<String>,
}

/// What a line of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Row {
    /// The number of its file.
    file: Option<usize>,
    /// The number of its hunk.
    hunk: usize,
    /// The number of the line in its file; `None` for a line above the hunks.
    number: Option<u64>,
    /// The first character of a line of code; `None` for the heading of a hunk.
    sign: Option<char>,
    is_removed: bool,
}

/// How much of a hunk is still to come, and the numbers of its next lines.
#[derive(Debug, Clone, Copy, Default)]
struct Hunk {
    old: u64,
    new: u64,
    old_left: u64,
    new_left: u64,
}

impl<'a> Diff<'a> {
    fn read(text: &'a str) -> Self {
        let mut diff = Self { lines: Vec::new(), files: Vec::new() };
        let (mut row, mut hunk) = (Row::default(), Hunk::default());
        for line in text.lines() {
            // That the last line has no end.
            if !line.starts_with('\\') {
                row = if hunk.old_left + hunk.new_left > 0 {
                    hunk.code(row, line)
                } else {
                    diff.heading(row, line, &mut hunk)
                };
            }
            diff.lines.push((line, row));
        }
        diff
    }

    /// A line outside of the code.
    fn heading(&mut self, before: Row, line: &str, hunk: &mut Hunk) -> Row {
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.files.push(of_both(names));
            return Row { file: Some(self.files.len() - 1), hunk: before.hunk, ..Row::default() };
        }
        if let Some(found) = Hunk::of(line) {
            *hunk = found;
            let is_removed = hunk.new_left == 0;
            let number = Some(if is_removed { hunk.old } else { hunk.new });
            return Row { file: before.file, hunk: before.hunk + 1, number, sign: None, is_removed };
        }
        let name = line.strip_prefix("rename to ").map(unquoted).or_else(|| {
            let side = line.strip_prefix("--- ").or_else(|| line.strip_prefix("+++ "))?;
            let name = unquoted(side.strip_suffix('\t').unwrap_or(side));
            name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).map(str::to_owned)
        });
        if let (Some(name), Some(file)) = (name, self.files.last_mut()) {
            *file = name;
        }
        Row { file: before.file, hunk: before.hunk, ..Row::default() }
    }

    fn place(&self, index: usize) -> Option<Place> {
        let row = self.lines[index].1;
        let file = self.files.get(row.file?)?.clone();
        Some(Place { file, line: row.number, is_removed: row.is_removed, code: self.code(index) })
    }

    /// The lines around that one in its hunk.
    fn code(&self, index: usize) -> Vec<CodeLine> {
        let meant = self.lines[index].1;
        if meant.number.is_none() {
            return Vec::new();
        }
        let (first, last) = around(index, self.lines.len());
        let lines = self.lines[first..=last]
            .iter()
            .filter(|(line, row)| row.hunk == meant.hunk && !line.starts_with('\\'));
        let code = lines.filter_map(|(line, row)| {
            let (number, sign) = (row.number?, row.sign?);
            let mut text = line.chars();
            text.next();
            Some(CodeLine::new(number, sign, text.as_str(), *row == meant))
        });
        code.collect()
    }
}

impl Hunk {
    /// The one that a line such as `@@ -1,2 +3,4 @@ fn a` begins.
    fn of(line: &str) -> Option<Self> {
        let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        let range = |range: &str| -> Option<(u64, u64)> {
            let (first, count) = range.split_once(',').unwrap_or((range, "1"));
            Some((first.parse().ok()?, count.parse().ok()?))
        };
        let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
        Some(Self { old, new, old_left, new_left })
    }

    /// The next line of code.
    fn code(&mut self, before: Row, line: &str) -> Row {
        // Git may leave out the blank of an empty line.
        let sign = line.chars().next().filter(|sign| matches!(sign, '+' | '-')).unwrap_or(' ');
        let number = if sign == '-' { self.old } else { self.new };
        if sign != '+' {
            self.old += 1;
            self.old_left = self.old_left.saturating_sub(1);
        }
        if sign != '-' {
            self.new += 1;
            self.new_left = self.new_left.saturating_sub(1);
        }
        Row { number: Some(number), sign: Some(sign), is_removed: sign == '-', ..before }
    }
}

/// The name in `a/NAME b/NAME`; where the two differ, other lines have it.
fn of_both(names: &str) -> String {
    if let Some(rest) = names.strip_prefix('"') {
        let end = rest.find("\" ").map_or(names.len(), |end| end + 2);
        return unquoted(&names[..end]).trim_start_matches("a/").to_owned();
    }
    let half = names.len().saturating_sub(1) / 2;
    let (first, second) = (names.get(..half), names.get(half + 1..));
    match (first.and_then(|name| name.strip_prefix("a/")), second.and_then(|name| name.strip_prefix("b/"))) {
        (Some(name), Some(same)) if name == same => name.to_owned(),
        _ => names.to_owned(),
    }
}

/// A name as it is, of one that git may have put in quotes.
fn unquoted(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
        return name.to_owned();
    };
    let (mut bytes, mut rest) = (Vec::new(), inner.bytes().peekable());
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|digit| matches!(digit, b'0'..=b'7')) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                }
                bytes.push(u8::try_from(value).unwrap_or(b'?'));
            }
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b'v') => bytes.push(11),
            Some(b'f') => bytes.push(12),
            other => bytes.extend(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "\
diff --git a/src/a b.rs b/src/a b.rs
index 1..2 100644
--- a/src/a b.rs\t
+++ b/src/a b.rs\t
@@ -1,4 +1,4 @@
 one
-two
+#> two
 three
 four
\\ No newline at end of file
@@ -10,2 +10,3 @@ fn x
 ten
+eleven
 twelve
diff --git a/pic b/pic
index 1..2 100644
Binary files a/pic and b/pic differ
diff --git \"a/\\303\\251\\\"\" \"b/\\303\\251\\\"\"
deleted file mode 100644
--- \"a/\\303\\251\\\"\"
+++ /dev/null
@@ -1,2 +0,0 @@
-x
--- y
diff --git a/old b/new
similarity index 100%
rename from old
rename to new
";

    /// The places of comments that stand below each of these lines, in words.
    fn below(lines: &[&str]) -> Vec<String> {
        let edited: Vec<String> = DIFF
            .lines()
            .map(|line| if lines.contains(&line) { format!("{line}\n#> c") } else { line.to_owned() })
            .collect();
        let found = in_diff(DIFF, &edited.join("\n"));
        assert_eq!(found.strays, 0);
        found
            .comments
            .iter()
            .map(|comment| comment.place.as_ref().map_or_else(String::new, Place::name))
            .collect()
    }

    #[test]
    fn a_comment_belongs_to_the_line_above_it() {
        assert_eq!(
            below(&["-two", "+#> two", " four", "\\ No newline at end of file"]),
            [
                "src/a b.rs, line 2 before the change, which was removed",
                "src/a b.rs, line 2",
                "src/a b.rs, line 4",
                "src/a b.rs, line 4",
            ]
        );
        assert_eq!(
            below(&["@@ -10,2 +10,3 @@ fn x", " twelve"]),
            ["src/a b.rs, line 10", "src/a b.rs, line 12"]
        );
        assert_eq!(
            below(&["Binary files a/pic and b/pic differ", "--- y", "rename to new"]),
            ["pic", "é\", line 2 before the change, which was removed", "new",]
        );
    }

    #[test]
    fn the_code_around_it_is_of_its_hunk() {
        let edited = DIFF.replace(" ten\n", " ten\n#> why\n#>  and\n#>\n#> so\n");
        let found = in_diff(DIFF, &edited);
        assert_eq!(found.comments.len(), 1);
        let comment = &found.comments[0];
        assert_eq!(comment.text, "why\n and\n\nso");
        let note = comment.place.as_ref().unwrap().note("why");
        assert_eq!(note, "src/a b.rs, line 10: why\n\n    → 10   ten\n      11 + eleven\n      12   twelve");
    }

    #[test]
    fn one_above_the_diff_is_about_all_of_it() {
        let found = in_diff(DIFF, &format!("# help\n#> all of it\n#>\n{DIFF}#>  \n"));
        assert_eq!(
            found,
            Found { comments: vec![Comment { place: None, text: "all of it".into() }], strays: 0 }
        );
    }

    #[test]
    fn parts_may_be_removed_and_other_lines_are_counted() {
        let (_, tail) = DIFF.split_once("@@ -10").unwrap();
        let edited = format!("@@ -10{tail}").replace("+eleven", "+eleven\nmy own words\n#> why");
        let found = in_diff(DIFF, &edited);
        assert_eq!(found.strays, 1);
        assert_eq!(found.comments[0].place.as_ref().unwrap().name(), "src/a b.rs, line 11");
        let changed = in_diff(DIFF, &DIFF.replace("+eleven", "+twelve, rather\n#> why"));
        assert_eq!((changed.strays, changed.comments[0].place.as_ref().unwrap().line), (1, Some(10)));
        assert_eq!(in_diff(DIFF, &DIFF.replace('\n', "\r\n")), Found { comments: Vec::new(), strays: 0 });
        assert_eq!(in_diff("", "").comments, []);
    }
}
