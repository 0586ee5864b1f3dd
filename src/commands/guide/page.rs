//! Renders a page of the guide for a terminal: markdown as text of a given width.
//!
//! It supports what our pages use: headings, paragraphs, lists, tables, fenced code, links, bold.

use unicode_width::UnicodeWidthStr as _;

use crate::text::palette::STRONG;
use crate::text::wrap::wrapped;

/// The longest line, on any terminal.
const WIDEST: usize = 100;
/// Marks where bold begins or ends; it has no width.
const TURN: char = '\u{200b}';
/// The space between two columns.
const GAP: usize = 2;
/// The widest first column of two.
const FIRST_COLUMN: usize = 28;
/// The indentation of code.
const INDENT: &str = "    ";

/// The page in lines of at most `width` cells; code is not broken, except for comments after it.
pub(super) fn render(markdown: &str, width: usize) -> String {
    let width = width.clamp(20, WIDEST);
    let mut page = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(heading) =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        {
            page += &bold(&format!("{TURN}{}{TURN}\n", inline(heading)));
        } else if line.starts_with("```") {
            let code: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            page += &block(&code, width);
        } else if line.starts_with("<!--") {
            // A mark for the generator of tables, with the blank line after it.
            lines.next_if(|next| next.is_empty());
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(row) = lines.next_if(|next| next.starts_with('|')) {
                rows.push(cells(row));
            }
            page += &table(&rows, width);
        } else if line.is_empty() {
            page.push('\n');
        } else {
            let mut text = line.to_owned();
            while let Some(next) = lines.next_if(|next| goes_on(next)) {
                text = text + " " + next.trim_start();
            }
            let (first, behind) = if text.starts_with("- ") { ("- ", "  ") } else { ("", "") };
            page += &hanging(&inline(&text[first.len()..]), first, behind, width);
        }
    }
    page
}

/// Code, indented. Comments that do not fit after its lines are above them.
fn block(code: &[&str], width: usize) -> String {
    let is_too_wide = |line: &&str| INDENT.len() + line.width() > width;
    let stands_above = code.iter().any(|line| commented(line).is_some() && is_too_wide(line));
    let mut text = String::new();
    for line in code {
        let (line, comment) =
            commented(line).filter(|_| stands_above).map_or((*line, None), |(line, said)| (line, Some(said)));
        if let Some(said) = comment {
            text += &hanging(said, &format!("{INDENT}# "), &format!("{INDENT}# "), width);
        }
        text.extend([if line.is_empty() { "" } else { INDENT }, line, "\n"]);
    }
    text
}

/// Code with comments in a column of their own.
fn commented(line: &str) -> Option<(&str, &str)> {
    let (code, said) = line.split_once("  # ")?;
    Some((code.trim_end(), said)).filter(|(code, _)| !code.is_empty())
}

/// Whether a line belongs to the paragraph or the item before it.
fn goes_on(line: &str) -> bool {
    !line.is_empty() && !["#", "- ", "|", "```", "<!--"].iter().any(|begin| line.starts_with(begin))
}

/// Names with their meanings, in two columns.
pub(super) fn rows(rows: &[[String; 2]], width: usize) -> String {
    let first = rows.iter().map(|[name, _]| name.width()).max().unwrap_or_default() + GAP;
    let row = |[name, meaning]: &[String; 2]| {
        hanging(meaning, &format!("  {name:first$}"), &" ".repeat(first + 2), width)
    };
    rows.iter().map(row).collect()
}

/// A table: in columns if it fits, else one row after the other.
fn table(rows: &[Vec<String>], width: usize) -> String {
    let Some((heading, rows)) = rows.split_first() else { return String::new() };
    // The second line only divides.
    let rows = rows.get(1..).unwrap_or_default();
    let columns = heading.len();
    let widest = |column: usize| {
        let cells = rows.iter().chain([heading]).filter_map(|row| row.get(column));
        cells.map(|cell| cells_of(cell)).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let fits = widths.iter().sum::<usize>() + GAP * columns.saturating_sub(1) <= width;
    let mut text = String::new();
    if fits || (columns == 2 && widths[0] <= FIRST_COLUMN) {
        for (at, row) in [heading].into_iter().chain(rows).enumerate() {
            let (last, before) =
                row.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
            let mut line = String::new();
            for (cell, width) in before.iter().zip(&widths) {
                line += cell;
                line += &" ".repeat(width - cells_of(cell).min(*width) + GAP);
            }
            let (last, line) = if at == 0 && !line.trim().is_empty() {
                (format!("{last}{TURN}"), format!("{TURN}{line}"))
            } else {
                (last.to_owned(), line)
            };
            let behind = " ".repeat(cells_of(&line));
            text += &hanging(&last, &line, &behind, width);
        }
        return text;
    }
    for row in rows {
        let Some((name, told)) = row.split_first() else { continue };
        text += &hanging(&format!("{TURN}{name}{TURN}"), "", "  ", width);
        for (what, cell) in heading.iter().skip(1).zip(told).filter(|(_, cell)| !cell.is_empty()) {
            let what = if columns == 2 || what.is_empty() { String::new() } else { format!("{what}: ") };
            text += &hanging(&format!("{what}{cell}"), "    ", "      ", width);
        }
    }
    text
}

/// The cells of a row, without their markup.
fn cells(row: &str) -> Vec<String> {
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').unwrap_or(row).replace("\\|", "\u{1}");
    row.split('|').map(|cell| inline(&cell.trim().replace('\u{1}', "|"))).collect()
}

/// The width of a text, in cells.
fn cells_of(text: &str) -> usize {
    text.replace(TURN, "").width()
}

/// `text` in lines, the first one after `first` and the others after `behind`.
fn hanging(text: &str, first: &str, behind: &str, width: usize) -> String {
    let room = width.saturating_sub(cells_of(behind)).max(1);
    let mut lines = String::new();
    for (at, line) in wrapped(text, room, usize::MAX).iter().enumerate() {
        lines += if at == 0 { first } else { behind };
        lines += line;
        lines.truncate(lines.trim_end_matches(' ').len());
        lines.push('\n');
    }
    bold(&lines)
}

/// Text with bold in place of the marks; bold ends with each line and begins again in the next one.
fn bold(text: &str) -> String {
    let (on, off) = (STRONG.render().to_string(), STRONG.render_reset().to_string());
    let mut is_bold = false;
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            TURN => {
                is_bold = !is_bold;
                shown.push_str(if is_bold { &on } else { &off });
            }
            '\n' if is_bold => shown.extend([off.as_str(), "\n", &on]),
            char => shown.push(char),
        }
    }
    shown
}

/// Text without markup: bold is marked, and a link is its text, with the command for its page.
fn inline(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut in_code = false;
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("**").filter(|_| !in_code) {
            plain.push(TURN);
            rest = behind;
            continue;
        }
        if char == '['
            && !in_code
            && let Some((text, behind)) = rest[1..].split_once("](")
            && let Some((target, behind)) = behind.split_once(')')
            && !text.contains(']')
        {
            plain += &link(text, target);
            rest = behind;
            continue;
        }
        in_code ^= char == '`';
        plain.push(char);
        rest = &rest[char.len_utf8()..];
    }
    plain
}

fn link(text: &str, target: &str) -> String {
    let page = target.split('#').next().unwrap_or_default().strip_suffix(".md");
    match page.filter(|page| !page.contains('/')) {
        Some(page) if text.eq_ignore_ascii_case(page) => text.to_owned(),
        Some(page) => format!("{text} ('ralph help {page}')"),
        None if target.starts_with("http") => format!("{text} ({target})"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn plain(markdown: &str, width: usize) -> String {
        strip_str(&render(markdown, width)).to_string()
    }

    #[test]
    fn paragraphs_and_lists_are_wrapped_and_code_is_not() {
        let page = "# A *page*\n\nSome words that\ngo on here.\n- **One**: is\n  an item\n- two\n\n```sh\nralph build 20 # as it is | here\n```\n";
        assert_eq!(
            plain(page, 20),
            "A *page*\n\nSome words that go\non here.\n- One: is an item\n- two\n\n    ralph build 20 # as it is | here\n"
        );
        let page = "```sh\nralph plan     # writes the plan\nralph build\nralph loop     # goes on\n```\n";
        assert_eq!(
            plain(page, 36),
            "    ralph plan     # writes the plan\n    ralph build\n    ralph loop     # goes on\n"
        );
        assert_eq!(
            plain(page, 20),
            "    # writes the\n    # plan\n    ralph plan\n    ralph build\n    # goes on\n    ralph loop\n"
        );
        let page = "# A *page*\n";
        assert!(render(page, 20).starts_with("\u{1b}[1mA *page*\u{1b}[0m\n"));
    }

    #[test]
    fn links_tell_what_to_call() {
        let page =
            "[safety](safety.md), [work](a.md#b), [rule](../specs/loop.md), [X](https://x.org), `[a](b)`";
        assert_eq!(plain(page, 100), "safety, work ('ralph help a'), rule, X (https://x.org), `[a](b)`\n");
    }

    #[test]
    fn tables_stand_in_columns_where_they_fit() {
        let table = "<!-- x -->\n| a | meaning |\n|---|---|\n| `b` | one \\| two |\n<!-- end -->\n";
        assert_eq!(plain(table, 60), "a    meaning\n`b`  one | two\n");
        let table = "| flag | of | meaning |\n|---|---|---|\n| `--all` | clean | every loop of it |\n";
        assert_eq!(plain(table, 20), "`--all`\n    of: clean\n    meaning: every\n      loop of it\n");
    }

    #[test]
    fn no_line_of_any_page_is_too_wide() {
        for topic in super::super::TOPICS {
            for width in [45, 60, 80, 200] {
                // Code is for terminals that are wide enough, and recipes are files that are copied as they are.
                let is_of_file = |line: &str| topic.name == "many-machines" && line.starts_with(INDENT);
                let has_room = |line: &&str| !is_of_file(line) && (width >= 80 || !line.starts_with(INDENT));
                for line in plain(topic.text, width).lines().filter(has_room) {
                    assert!(line.width() <= width.min(WIDEST), "{}, {width}: {line}", topic.name);
                    assert!(!line.contains("**") && !line.contains("](") && !line.contains(TURN), "{line}");
                }
            }
        }
    }
}
