//! The values of a `.env` file, in each way in which programs read it: they do not agree on what a quoted `\t` is, and whether a
//! `$name` is expanded.

/// All names with their values, a name once for each reading; and the number of unreadable lines.
pub(super) fn read(text: &str) -> (Vec<(String, String)>, u64) {
    let mut found: Vec<(String, String)> = dotenvy::from_read_iter(text.as_bytes()).flatten().collect();
    let (mut unread, mut at, mut quoted_until) = (0, 0, 0);
    for line in text.split_inclusive('\n') {
        let (rest, start) = (&text[at..], at);
        at += line.len();
        let Some((name, value)) = assigned(line) else {
            let is_empty = line.trim().is_empty() || line.trim_start().starts_with('#');
            unread += u64::from(!is_empty && start > quoted_until);
            continue;
        };
        let value = match value.strip_prefix(['"', '\'', '`']) {
            // It may go on below this line, up to its other quote.
            Some(inside) => {
                let quoted = &rest[line.len() - inside.len()..];
                match end_of(quoted, value.as_bytes()[0]) {
                    Some(end) => {
                        quoted_until = quoted_until.max(at - inside.len() + end);
                        &quoted[..end]
                    }
                    None => inside.trim_end(),
                }
            }
            None => value.split_whitespace().next().unwrap_or_default(),
        };
        found.extend([value.to_owned(), unescaped(value)].map(|value| (name.to_owned(), value)));
    }
    found.sort();
    found.dedup();
    (found, unread)
}

/// The name in `export NAME = value`, and all behind the blanks in front of the value.
fn assigned(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_start_matches('\u{feff}').trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim_start();
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    (!name.is_empty() && name.chars().all(is_of_name)).then_some((name, value.trim_start()))
}

/// Where the other quote is.
fn end_of(text: &str, quote: u8) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == quote && !is_escaped;
        // In single quotes nothing is.
        is_escaped = byte == b'\\' && !is_escaped && quote != b'\'';
        is_end
    })
}

/// What the escapes in a double-quoted value stand for.
fn unescaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some(other)) => out.push(other),
            (c, _) => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_in_every_reading() {
        let text = "# theirs\nA=\"ab\\tc\"\nB=\"has$tuff9\"\nexport C=un$quoted  # note\nD=\"x\\\"y\"\nE=\"one\ntwo\" # note\n\
                    F='a\\tb'\nG=plain\nH=\"pre${G}\"\r\nI=\"open\nthis is none\nJ = 'x y'\n";
        let (found, unread) = read(text);
        let of = |name: &str| -> Vec<&str> {
            found.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!(of("A"), ["ab\tc", "ab\\tc"]);
        assert!(of("B").contains(&"has$tuff9") && of("C").contains(&"un$quoted"), "{found:?}");
        assert!(of("D").contains(&"x\"y") && of("D").contains(&"x\\\"y"), "{found:?}");
        assert_eq!(of("E"), ["one\ntwo"]);
        assert!(of("F").contains(&"a\\tb") && of("G") == ["plain"], "{found:?}");
        assert!(of("H").contains(&"preplain") && of("H").contains(&"pre${G}"), "{found:?}");
        assert_eq!((of("I"), of("J"), unread), (vec!["open"], vec!["x y"], 1), "{found:?}");
    }
}
