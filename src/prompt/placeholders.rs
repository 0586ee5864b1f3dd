//! Placeholders in a RALPH.md: `{{ commands.NAME }}`, `{{ args.NAME }}` and `{{ ralph.NAME }}`.

use std::sync::LazyLock;

use regex::{Captures, Regex};

static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    // A constant that every test of this file compiles: it cannot fail at run time.
    Regex::new(r"\{\{[ \t]*(commands|args|ralph)\.([A-Za-z0-9_-]+)[ \t]*\}\}").expect("constant pattern")
});

/// The source of a placeholder's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// The output of a command.
    Commands,
    /// An argument of the user.
    Args,
    /// The state of the loop.
    Ralph,
}

impl Namespace {
    fn of(word: &str) -> Self {
        match word {
            "commands" => Self::Commands,
            "args" => Self::Args,
            _ => Self::Ralph,
        }
    }
}

/// `template` with every placeholder replaced by its value from `lookup`; one without a value becomes empty.
///
/// One pass: values are never expanded again. Other text in braces stays.
pub fn resolve<'v>(template: &str, lookup: &dyn Fn(Namespace, &str) -> Option<&'v str>) -> String {
    let value = |found: &Captures| lookup(Namespace::of(&found[1]), &found[2]).unwrap_or_default();
    PLACEHOLDER.replace_all(template, value).into_owned()
}

/// The placeholders in `template`, in order.
pub fn used(template: &str) -> impl Iterator<Item = (Namespace, &str)> {
    PLACEHOLDER.captures_iter(template).map(|found| {
        let (_, [namespace, name]) = found.extract();
        (Namespace::of(namespace), name)
    })
}

/// The name of the argument, if a word is only its placeholder.
#[must_use]
pub fn only_arg(word: &str) -> Option<&str> {
    let found = PLACEHOLDER.captures(word).filter(|found| found.get_match().as_str() == word)?;
    let (_, [namespace, name]) = found.extract();
    (Namespace::of(namespace) == Namespace::Args).then_some(name)
}

/// `line` split into words like a shell, without expansion; a placeholder is one piece of a word, including blanks in
/// its braces. `None` if a quote is not closed.
#[must_use]
pub fn split_words(line: &str) -> Option<Vec<String>> {
    shlex::split(&PLACEHOLDER.replace_all(line, "{{$1.$2}}"))
}

/// `markdown` without its HTML comments, except in code fences. A comment on a line of its own is removed with the
/// line; an unclosed one is text.
#[must_use]
pub fn without_comments(markdown: &str) -> String {
    let mut kept = String::with_capacity(markdown.len());
    let mut rest = markdown;
    let mut fence = None;
    let mut line_start = true;
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.find('\n').map_or(rest.len(), |end| end + 1));
        if let Some(open) = fence {
            fence = Some(open).filter(|open| !closes(line, *open));
        } else if line_start && let Some(opened) = opened_fence(line) {
            fence = Some(opened);
        } else if let Some(at) = line.find("<!--")
            // From the third byte, so that `<!-->` is complete.
            && let Some(end) = rest[at + 2..].find("-->")
        {
            kept.push_str(&line[..at]);
            rest = &rest[at + 2 + end + 3..];
            let whole_line = if line_start && at == 0 { rest.strip_prefix('\n') } else { None };
            line_start = whole_line.is_some();
            rest = whole_line.unwrap_or(rest);
            continue;
        }
        kept.push_str(line);
        rest = after;
        line_start = true;
    }
    kept
}

/// The mark and length of the code fence that `line` opens.
fn opened_fence(line: &str) -> Option<(char, usize)> {
    let text = line.trim_start_matches(' ');
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = text.chars().take_while(|char| *char == mark).count();
    let indented = line.len() - text.len() > 3;
    let inline = mark == '`' && text[length..].contains('`');
    (length >= 3 && !indented && !inline).then_some((mark, length))
}

/// Whether `line` closes the code fence of this mark and length.
fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    let text = line.trim();
    line.len() - line.trim_start_matches(' ').len() <= 3
        && text.chars().all(|char| char == mark)
        && text.len() >= length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lookup(namespace: Namespace, name: &str) -> Option<&'static str> {
        match (namespace, name) {
            (Namespace::Commands, "tests") => Some("5 passed"),
            (Namespace::Args, "dir") => Some("src"),
            (Namespace::Args, "tricky") => Some("{{ args.dir }} $1 ${dir} <!-- x -->"),
            (Namespace::Ralph, "iteration") => Some("3"),
            _ => None,
        }
    }

    #[test]
    fn a_word_may_be_nothing_but_an_argument() {
        for (word, name) in [("{{args.a-b}}", Some("a-b")), ("{{ args.a }}", Some("a"))] {
            assert_eq!(only_arg(word), name);
        }
        for word in ["x{{args.a}}", "{{args.a}}{{args.b}}", "{{ralph.name}}", "", "a"] {
            assert_eq!(only_arg(word), None, "{word}");
        }
    }

    #[test]
    fn only_three_namespaces_are_placeholders() {
        for (template, expected) in [
            ("{{ commands.tests }}", "5 passed"),
            ("{{commands.tests}}/{{  args.dir\t}}/{{ ralph.iteration }}", "5 passed/src/3"),
            ("[{{ commands.nope }}{{ args.nope }}{{ ralph.nope }}]", "[]"),
            ("{{ args.tricky }}", "{{ args.dir }} $1 ${dir} <!-- x -->"),
            ("{{{ args.dir }}}", "{src}"),
            ("{{ {{ args.dir }} }}", "{{ src }}"),
        ] {
            assert_eq!(resolve(template, &lookup), expected, "{template}");
        }
        for text in [
            "{{ x }}",
            "{{ env.HOME }}",
            "{{ args.a b }}",
            "{{ args. }}",
            "{{ args.dir",
            "{ args.dir }",
            "{{ args\n.dir }}",
            "{{ args.é }}",
            "${{ secrets.KEY }}",
            "{{ xargs.dir }}",
        ] {
            assert_eq!(resolve(text, &lookup), text);
        }
    }

    #[test]
    fn a_placeholder_is_one_piece_of_a_word() {
        let words = |line| split_words(line).unwrap();
        assert_eq!(words("ls {{ args.dir }}/x 'a b'"), ["ls", "{{args.dir}}/x", "a b"]);
        assert_eq!(words("ls \"{{ args.dir }} x\""), ["ls", "{{args.dir}} x"]);
        assert_eq!(words("ls {{ x }}"), ["ls", "{{", "x", "}}"]);
        assert_eq!(split_words("ls 'open"), None);
    }

    #[test]
    fn comments_go_and_fences_stay() {
        for (markdown, expected) in [
            ("a <!-- x --> b", "a  b"),
            ("a\n<!-- x\ny -->\nb\n", "a\nb\n"),
            ("<!-- x --> b\n", " b\n"),
            ("<!-- x -->\n<!-- y -->\n```\n<!-- z -->\n```\n", "```\n<!-- z -->\n```\n"),
            ("<!-- ```\n --><!-- x -->a", "a"),
            (
                "~~~ html\n<!-- x -->\n```\n<!-- y -->\n~~~\n<!-- z -->",
                "~~~ html\n<!-- x -->\n```\n<!-- y -->\n~~~\n",
            ),
            ("````\n```\n<!-- x -->\n````\n<!-- y -->", "````\n```\n<!-- x -->\n````\n"),
            ("    ```\n<!-- x -->a", "    ```\na"),
            ("``` a ` b\n<!-- x -->a", "``` a ` b\na"),
            ("<!-- x -->```\n<!-- y -->", "```\n"),
            ("a <!-- open\nb", "a <!-- open\nb"),
            ("<!-->a-->", "a-->"),
            ("<!-- é -->é", "é"),
        ] {
            assert_eq!(without_comments(markdown), expected, "{markdown:?}");
        }
    }

    #[test]
    fn what_a_template_uses() {
        let found: Vec<_> = used("{{ args.dir }} {{ x }} {{commands.tests}}").collect();
        assert_eq!(found, [(Namespace::Args, "dir"), (Namespace::Commands, "tests")]);
    }

    proptest! {
        #[test]
        fn a_value_arrives_as_it_is(value in r"(\{|\}|args\.a|commands\.a| |\$|[a-c]|\PC){0,30}") {
            let found = resolve("<{{ args.a }}|{{commands.a}}>", &|_, _| Some(&value));
            prop_assert_eq!(found, format!("<{value}|{value}>"));
        }

        #[test]
        fn without_our_namespaces_nothing_changes(template in r"(\{\{|\}\}| |x\.y|args|\.|[a-c]|\PC){0,40}") {
            prop_assume!(used(&template).next().is_none());
            prop_assert_eq!(resolve(&template, &|_, _| Some("value")), template);
        }

        #[test]
        fn a_fence_protects_everything(body in r"(<!--|-->|\n|`|a| ){0,40}") {
            let body = body.replace("```", "");
            let markdown = format!("````\n{body}\n````\n");
            prop_assume!(!body.contains("````"));
            prop_assert_eq!(without_comments(&markdown), markdown);
        }

        #[test]
        fn comments_never_panic_and_never_grow(markdown in r"(<!--|-->|\n|```|~~~|é|\PC){0,40}") {
            let kept = without_comments(&markdown);
            prop_assert!(kept.len() <= markdown.len());
        }

        #[test]
        fn each_value_stays_one_word(value in r"\PC{0,20}") {
            let words = split_words("run {{ args.a }} 'x {{args.a}}'").unwrap();
            let resolved: Vec<_> = words.iter().map(|word| resolve(word, &|_, _| Some(&value))).collect();
            prop_assert_eq!(resolved, ["run".to_owned(), value.clone(), format!("x {value}")]);
        }
    }
}
