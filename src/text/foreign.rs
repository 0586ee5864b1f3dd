//! Markdown that other people wrote on a forge or a tracker: what its page shows, and nothing that it hides.

use super::head_and_tail::around_gap;
use super::hidden::revealed;
use super::line::one_line_within;

const OPEN: &str = "<!--";
const CLOSE: &str = "-->";
/// The most characters that an image is written in.
const LONGEST_IMAGE: usize = 1000;
/// What an address begins with that is an image itself.
const DATA: &str = "data:";
/// The most characters of a line.
const LINE: usize = 300;

/// `text` as a reader of the page sees it: without HTML comments and the link definitions that serve as comments, without
/// control characters except newline and tab, with escapes for invisible characters, with the words and address of each image, and
/// with `\n` as its line end. Of more than `limit` bytes the beginning is kept, with a line about how much is left out.
///
/// A comment in a code block is left out as well: a block that only seems to be one must not let hidden words in.
#[must_use]
pub fn shown(text: &str, limit: usize) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text: String =
        text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect();
    let text = without_images(&without_definitions(&without_comments(&text)));
    let text = revealed(text.trim());
    if text.len() <= limit {
        return text.into_owned();
    }
    let head = text[..text.floor_char_boundary(limit)].trim_end();
    around_gap(head, text.len() - head.len(), "").trim_end().to_owned()
}

/// A text without its HTML comments. One that is never closed hides the rest of a page where it begins a line, and is text
/// elsewhere.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        kept.push_str(&rest[..at]);
        let comment = &rest[at..];
        let begins_line = kept.rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
        // `<!-->` is a whole comment.
        let Some(end) = comment[2..].find(CLOSE).map(|end| end + 2 + CLOSE.len()) else {
            if !begins_line {
                kept.push_str(comment);
            }
            return kept;
        };
        rest = &comment[end..];
        // The lines of a comment that stands alone are left out with it.
        if begins_line
            && let Some((after, next)) = rest.split_once('\n')
            && after.trim().is_empty()
        {
            rest = next;
        }
    }
    kept.push_str(rest);
    kept
}

/// A text without lines such as `[//]: # (words)`, which no page shows.
fn without_definitions(text: &str) -> String {
    let is_hidden = |line: &str| {
        let definition = line.trim_start().strip_prefix('[').and_then(|line| line.split_once("]:"));
        definition.is_some_and(|(_, target)| {
            let target = target.trim_start();
            target.starts_with("<>") || target.starts_with('#')
        })
    };
    let lines = text.split('\n').filter(|line| !is_hidden(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// A title, an address or a label, as one plain line.
#[must_use]
pub fn line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    one_line_within(&revealed(&plain), LINE)
}

/// With the words and the address of each image in its place.
fn without_images(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    // Each sign is met once, whatever follows it.
    while let Some(at) = rest.find(['!', '<']) {
        let (before, image) = rest.split_at(at);
        kept.push_str(before);
        let near = || image.char_indices().nth(LONGEST_IMAGE).map_or(image, |(end, _)| &image[..end]);
        let shown = match image {
            _ if image.starts_with("![") => markdown_image(near()),
            _ if is_image_tag(image) => html_image(near()),
            _ => None,
        };
        if let Some((words, address, length)) = shown.or_else(|| image_in_text(near(), image)) {
            let address = if address.starts_with(DATA) { "in the text itself" } else { address };
            let between = if words.is_empty() { "" } else { ", " };
            kept.extend(["(image: ", words, between, address, ")"]);
            rest = &image[length..];
        } else {
            kept.push_str(&image[..1]);
            rest = &image[1..];
        }
    }
    kept + rest
}

/// Words, address and length of `![words](address "title")`.
fn markdown_image(text: &str) -> Option<(&str, &str, usize)> {
    let line = text.lines().next()?;
    let (words, after) = line[2..].split_once("](")?;
    let (target, _) = after.split_once(')')?;
    let address = target.split_whitespace().next().unwrap_or_default();
    Some((words, address, 2 + words.len() + 2 + target.len() + 1))
}

/// Whether a tag of an image begins here.
fn is_image_tag(text: &str) -> bool {
    let is_named = text.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case("<img"));
    is_named && text[4..].starts_with(|c: char| c.is_whitespace())
}

/// Words, address and length of `<img alt="words" src="address">`, on one line or several.
fn html_image(text: &str) -> Option<(&str, &str, usize)> {
    let (tag, _) = text.split_once('>')?;
    Some((
        attribute(tag, "alt").unwrap_or_default(),
        attribute(tag, "src").unwrap_or_default(),
        tag.len() + 1,
    ))
}

/// The value of an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    // Of the same length, byte for byte.
    let small = tag.to_ascii_lowercase();
    let is_name = |(at, _): &(usize, &str)| small[..*at].ends_with(char::is_whitespace);
    let is_set = |(at, name): &(usize, &str)| small[at + name.len()..].starts_with('=');
    let (at, name) = small.match_indices(name).find(|found| is_name(found) && is_set(found))?;
    let value = &tag[at + name.len() + 1..];
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value[1..].split_once(quote).map(|(value, _)| value)
}

/// Words, address and length of an image whose bytes stand in the text, and are longer than an address: its beginning is `near`.
fn image_in_text<'a>(near: &'a str, whole: &'a str) -> Option<(&'a str, &'a str, usize)> {
    let is_tag = is_image_tag(near);
    if !is_tag && !near.starts_with("![") {
        return None;
    }
    let at = near.find(DATA)?;
    let before = &near[..at];
    let words = if is_tag {
        // In prose there may be other `data:` far behind.
        let address = before.strip_suffix(['"', '\''])?.to_ascii_lowercase();
        address.strip_suffix("src=")?.ends_with(char::is_whitespace).then_some(())?;
        attribute(before, "alt").unwrap_or_default()
    } else {
        before.lines().next()?[2..].strip_suffix("](")?
    };
    let is_of_data = |c: char| c.is_ascii_alphanumeric() || "+/=;:,%._-".contains(c);
    let data = whole[at..].split(|c| !is_of_data(c)).next().unwrap_or_default();
    let rest = &whole[at + data.len()..];
    let end = if is_tag {
        rest.bytes().take(LONGEST_IMAGE).position(|byte| byte == b'>')?
    } else {
        rest.starts_with(')').then_some(0)?
    };
    Some((words, DATA, at + data.len() + end + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> String {
        shown(text, 10_000)
    }

    #[test]
    fn what_a_page_hides_is_left_out() {
        assert_eq!(all("a <!-- do evil --> b"), "a  b");
        assert_eq!(all("a\n<!-- one\ntwo -->\nb\n"), "a\nb");
        assert_eq!(all("a <!--> b <!---> c"), "a  b  c");
        assert_eq!(all("```html\n<p>x</p> <!-- y -->\n```"), "```html\n<p>x</p> \n```");
        assert_eq!(all("a\n\n[//]: # (do evil)\n[note]: <> (do evil)\nb"), "a\n\nb");
        assert_eq!(all("see [it][1]\n\n[1]: https://example.org"), "see [it][1]\n\n[1]: https://example.org");
    }

    #[test]
    fn an_image_becomes_its_words_and_address() {
        for (body, shown) in [
            ("see ![a shot](https://h/x.png \"t\") there", "see (image: a shot, https://h/x.png) there"),
            ("<img width=\"9\" alt='it' src=\"https://h/y\" />!", "(image: it, https://h/y)!"),
            ("![](https://h/z)", "(image: https://h/z)"),
            ("what![ ever", "what![ ever"),
            ("a ![it](data:image/png;base64,AAAA) b", "a (image: it, in the text itself) b"),
            ("<IMG\n  alt=\"a\tshot\"\n  src='https://h/y'\n/> b", "(image: a\tshot, https://h/y) b"),
            ("<img data-alt=\"no\" src=\"https://h/y\">", "(image: https://h/y)"),
            ("<imgs src=\"https://h/y\">", "<imgs src=\"https://h/y\">"),
            ("<img ", "<img"),
        ] {
            assert_eq!(all(body), shown, "{body:?}");
        }
    }

    #[test]
    fn an_image_in_the_text_takes_no_space() {
        let data = format!("data:image/png;base64,{}==", "iVBORw0KGgo+/".repeat(2000));
        assert_eq!(all(&format!("a ![it]({data}) b")), "a (image: it, in the text itself) b");
        let tag = format!("a <img\nalt=\"it\" src=\"{data}\" width=\"9\"> b");
        assert_eq!(all(&tag), "a (image: it, in the text itself) b");
        let prose =
            format!("the <img tag{} data:x and more words{}-> b", " word".repeat(190), " more".repeat(20));
        assert_eq!(all(&prose), prose);
        let open = format!("![it]({data}");
        assert!(all(&open).starts_with("![it](data:image/png"));
    }

    #[test]
    fn a_comment_that_is_never_closed_hides_what_follows() {
        assert_eq!(all("a\n<!-- do evil\nb"), "a");
        assert_eq!(all("the sign `<!--` begins one\nb"), "the sign `<!--` begins one\nb");
    }

    #[test]
    fn nothing_drives_a_terminal_and_nothing_is_invisible() {
        assert_eq!(all("a\r\nb\rc\td\u{1b}[31me\0"), "a\nb\nc\td[31me");
        assert_eq!(all("a\u{200b}b\u{202e}c é 日本"), "a\\u{200b}b\\u{202e}c é 日本");
    }

    #[test]
    fn of_a_long_text_the_beginning_is_kept() {
        assert_eq!(shown("éééééé", 5), "éé\n[… 8 bytes left out …]");
        assert_eq!(shown("éé", 4), "éé");
    }

    proptest! {
        #[test]
        fn any_text_is_harmless_and_as_short_as_wanted(text in "(<!--|-->|[<!->a \n\r\u{1b}é]){0,24}", limit in 0_usize..40) {
            let shown = shown(&text, limit);
            prop_assert!(!shown.chars().any(|char| char.is_control() && char != '\n'));
            let head = shown.split("\n[… ").next().unwrap_or_default();
            prop_assert!(head.len() <= limit || head.starts_with("[… "));
        }
    }
}
