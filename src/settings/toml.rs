//! Reads a `ralph.toml`.

mod syntax;

use ::toml::Spanned;
use ::toml::de::{DeArray, DeTable, DeValue};

use super::account::{self, Account};
use super::setting::{Setting, ValueKind};
use super::table::TABLE;
use crate::text::nearest::nearest;

/// Keys of `ralph.toml` without effect yet, which are accepted so that existing files load. They have text, except the last one.
pub(super) const WITHOUT_EFFECT: &[&str] =
    &["monitoring.log_file", "monitoring.log_format", "monitoring.log_rotation", LEARN];
/// The key among them that is a switch.
const LEARN: &str = "execution.learn";
/// What a key is called in files of an older program, and here.
pub(super) const ALSO: (&str, &str) = ("agent.command", "agent.provider");

const TEXT: &str = "a string in quotes";
const LIST: &str = "a list of strings";

/// The contents of one file.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) values: Vec<Value>,
    /// Logins of agents.
    pub(super) accounts: Vec<Account>,
    /// Keys without effect yet.
    pub(super) without_effect: Vec<&'static str>,
}

/// One setting with its value as text.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) setting: &'static Setting,
    pub(super) text: String,
    /// Counted from 1.
    pub(super) line: usize,
}

/// An error in a file, with its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Counted from 1.
    pub(super) line: usize,
    /// In characters, from 1.
    pub(super) column: usize,
    /// What is wrong and what to do, on one line.
    pub(super) message: String,
}

/// Reads the text of a file.
pub(super) fn parse(text: &str) -> Result<Document, Problem> {
    let table = DeTable::parse(text).map_err(|error| syntax::explain(text, &error))?;
    let mut document = Document::default();
    collect(text, "", table.get_ref(), &mut document)?;
    Ok(document)
}

/// Whether a text is a settings file.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn reads(text: &str) -> bool {
    parse(text).is_ok()
}

fn collect(text: &str, section: &str, table: &DeTable, document: &mut Document) -> Result<(), Problem> {
    for (name, value) in table {
        let key = match section {
            "" => name.get_ref().to_string(),
            _ => format!("{section}.{}", name.get_ref()),
        };
        let key = if key == ALSO.0 { ALSO.1.to_owned() } else { key };
        let line = line(text, name.span().start);
        let problem = |message| Problem { line, column: syntax::column(text, name.span().start), message };
        if let Some(setting) = TABLE.iter().find(|setting| setting.key == key) {
            let text = scalar(setting, value.get_ref()).map_err(problem)?;
            document.values.push(Value { setting, text, line });
        } else if let Some(known) = WITHOUT_EFFECT.iter().find(|known| **known == key) {
            let is_switch = *known == LEARN && matches!(value.get_ref(), DeValue::Boolean(_));
            if !value.get_ref().is_str() && !is_switch {
                return Err(problem(wrong_type(known, value.get_ref(), TEXT)));
            }
            document.without_effect.push(known);
        } else if key == account::HEADING {
            let DeValue::Array(all) = value.get_ref() else {
                return Err(problem(
                    "accounts are written as [[account]], each with name, agent and env".to_owned(),
                ));
            };
            for one in all {
                let DeValue::Table(table) = one.get_ref() else {
                    return Err(problem("an account is written below [[account]]".to_owned()));
                };
                let account = account::read(table).map_err(|message| Problem {
                    line: self::line(text, one.span().start),
                    ..problem(message)
                })?;
                document.accounts.push(account);
            }
        } else if !is_section(&key) {
            return Err(problem(unknown(&key)));
        } else if let DeValue::Table(table) = value.get_ref() {
            collect(text, &key, table, document)?;
        } else {
            return Err(problem(format!("`{key}` is a section; write [{key}] and its settings below it")));
        }
    }
    Ok(())
}

/// The value of a setting as text, its type checked.
fn scalar(setting: &Setting, value: &DeValue) -> Result<String, String> {
    if let DeValue::String(text) = value
        && setting.meant(text) != Some(text)
    {
        return Ok(text.to_string());
    }
    match (setting.kind, value) {
        (
            ValueKind::Name
            | ValueKind::Text
            | ValueKind::Secret
            | ValueKind::Override
            | ValueKind::Duration(_)
            | ValueKind::Pauses
            | ValueKind::Room
            | ValueKind::Size,
            DeValue::String(text),
        ) => Ok(text.to_string()),
        (
            ValueKind::Count { .. }
            | ValueKind::Duration(_)
            | ValueKind::Pauses
            | ValueKind::Money
            | ValueKind::Room
            | ValueKind::Size,
            DeValue::Integer(number),
        ) => i128::from_str_radix(number.as_str(), number.radix())
            .map(|number| number.to_string())
            .map_err(|_| format!("`{}` is too large; write a smaller number", setting.key)),
        (ValueKind::Duration(_) | ValueKind::Pauses | ValueKind::Money, DeValue::Float(number)) => {
            Ok(number.as_str().to_owned())
        }
        (ValueKind::Switch, DeValue::Boolean(on)) => Ok(on.to_string()),
        (ValueKind::Words | ValueKind::Pauses | ValueKind::Names, DeValue::Array(list)) => {
            words(setting, list)
        }
        (kind, _) => Err(wrong_type(setting.key, value, wanted(kind))),
    }
}

/// The expected kind of a value, in words.
fn wanted(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Words | ValueKind::Names => LIST,
        ValueKind::Name | ValueKind::Text | ValueKind::Secret | ValueKind::Override => TEXT,
        ValueKind::Count { .. } => "a whole number without quotes",
        ValueKind::Money => "a number without quotes",
        ValueKind::Switch => "true or false",
        ValueKind::Room => "an amount like \"1 GB\" or \"5%\", or 0",
        ValueKind::Size => "an amount like \"2 GB\", or 0",
        ValueKind::Pauses => "a list of durations like [\"10s\", \"1m\"], or one",
        ValueKind::Duration(_) => "a duration like \"30s\", \"5m\", \"2h\", or seconds",
    }
}

/// A list of strings as words.
fn words(setting: &Setting, list: &DeArray) -> Result<String, String> {
    let (between, blanks): (_, fn(char) -> bool) = match setting.kind {
        ValueKind::Names => (", ", |c| c == ','),
        _ => (" ", char::is_whitespace),
    };
    let word = |item: &Spanned<DeValue>| match item.get_ref() {
        DeValue::String(text) if text.trim().is_empty() || text.contains(blanks) => {
            let without = if between == " " { "blanks" } else { "commas" };
            Err(format!("`{}` has \"{text}\" in it; write words without {without}", setting.key))
        }
        DeValue::String(text) => Ok(text.to_string()),
        other => Err(format!("`{}` has {} in it; write {LIST}", setting.key, standing(other))),
    };
    Ok(list.iter().map(word).collect::<Result<Vec<_>, _>>()?.join(between))
}

fn wrong_type(key: &str, found: &DeValue, wanted: &str) -> String {
    format!("`{key}` is {} here; write {wanted}", standing(found))
}

/// The kind of a value, in words.
fn standing(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a string in quotes",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

fn known_keys() -> impl Iterator<Item = &'static str> + Clone {
    TABLE.iter().map(|setting| setting.key).chain(WITHOUT_EFFECT.iter().copied())
}

fn is_section(name: &str) -> bool {
    known_keys().any(|key| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// The message for an unknown key, with the name that was probably meant.
pub(super) fn unknown(key: &str) -> String {
    let last = |key: &'static str| key.rsplit('.').next().unwrap_or(key);
    let written = key.rsplit('.').next().unwrap_or(key);
    let sections = known_keys().filter_map(|key| key.rsplit_once('.').map(|(section, _)| section));
    // AGENT_TYPE is agent.provider here; users who know the one write agent.type.
    let spelt = key.replace('.', "_").to_uppercase();
    let is_shell_name = |setting: &&Setting| setting.shell == written || setting.shell == spelt;
    let by_shell_name = TABLE.iter().find(is_shell_name).map(|setting| setting.key);
    let meant = by_shell_name
        .or_else(|| known_keys().find(|known| last(known) == written))
        .or_else(|| nearest(key, known_keys().chain(sections)))
        .or_else(|| {
            let name = nearest(written, known_keys().map(last))?;
            known_keys().find(|known| last(known) == name)
        });
    match meant {
        Some(meant) => format!("unknown setting `{key}`; did you mean `{meant}`?"),
        None => format!("unknown setting `{key}`; `ralph config` lists the known ones"),
    }
}

fn line(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(&'static str, String, usize)> {
        let document = parse(text).unwrap_or_else(|problem| panic!("{problem:?}"));
        document.values.into_iter().map(|value| (value.setting.key, value.text, value.line)).collect()
    }

    fn problem(text: &str) -> String {
        let Problem { line, message, .. } = parse(text).expect_err(text);
        format!("{line}: {message}")
    }

    #[test]
    fn reads_sections_and_dotted_keys() {
        let text = "agent.provider = 'codex'\n[loop]\nmax_retries = 0x10\ntimeout = 1_0.5\n\
                    inactivity_timeout = \"5m\"\nmax_limit_wait = 90\n";
        assert_eq!(
            values(text),
            [
                ("agent.provider", "codex".to_owned(), 1),
                ("loop.inactivity_timeout", "5m".to_owned(), 5),
                ("loop.max_limit_wait", "90".to_owned(), 6),
                ("loop.max_retries", "16".to_owned(), 3),
                ("loop.timeout", "10.5".to_owned(), 4),
            ]
        );
        assert_eq!(values(""), []);
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest() {
        for (text, expected) in [
            ("[agent]\nprovidr = 'x'", "2: unknown setting `agent.providr`; did you mean `agent.provider`?"),
            ("[agnet]\nprovider = 'x'", "1: unknown setting `agnet`; did you mean `agent`?"),
            ("\ntimeout = 3", "2: unknown setting `timeout`; did you mean `loop.timeout`?"),
            ("[agent]\ntimeout = 3", "2: unknown setting `agent.timeout`; did you mean `loop.timeout`?"),
            ("AGENT_TYPE = 'x'", "1: unknown setting `AGENT_TYPE`; did you mean `agent.provider`?"),
            ("[agent]\ntype = 'x'", "2: unknown setting `agent.type`; did you mean `agent.provider`?"),
            ("max_retrys = 1", "1: unknown setting `max_retrys`; did you mean `loop.max_retries`?"),
            (
                "[git.worktree]\nmail = 'x'",
                "2: unknown setting `git.worktree.mail`; did you mean `git.worktree.email`?",
            ),
            ("[zebra]", "1: unknown setting `zebra`; `ralph config` lists the known ones"),
        ] {
            assert_eq!(problem(text), expected);
        }
    }

    #[test]
    fn wrong_types_are_refused() {
        for (text, expected) in [
            (
                "loop.max_retries = '3'",
                "1: `loop.max_retries` is a string in quotes here; write a whole number",
            ),
            ("loop.max_retries = 1.5", "1: `loop.max_retries` is a number with a fraction here"),
            ("loop.timeout = true", "1: `loop.timeout` is true or false here; write a duration like"),
            ("[loop.timeout]\nx = 1", "1: `loop.timeout` is a section here"),
            ("[agent]\nargs = ['x']", "2: `agent.args` is a list here; write a string in quotes"),
            ("agent = 'claude'", "1: `agent` is a section; write [agent] and its settings below it"),
            ("git.auto_push = 'yes'", "1: `git.auto_push` is a string in quotes here; write true or false"),
            (
                "git.protected_branches = [1]",
                "1: `git.protected_branches` has a whole number in it; write a list of strings",
            ),
            ("completion.idle_threshold = '2'", "1: `completion.idle_threshold` is a string in quotes"),
            (
                "loop.max_retries = 99999999999999999999999999999999999999999",
                "1: `loop.max_retries` is too large",
            ),
        ] {
            assert!(problem(text).starts_with(expected), "{}", problem(text));
        }
    }

    #[test]
    fn broken_toml_is_told_in_words() {
        for (text, said) in [
            ("[loop]\nmax_retries 1", "2, 1: there is no = behind `max_retries`; write max_retries = 1"),
            ("[loop]\nmax_retries: 1", "2, 1: there is no = behind `max_retries`; write max_retries = 1"),
            (
                "[agent]\nprovider = codex # x",
                "2, 12: `agent.provider` is codex without quotes; write provider = \"codex\"",
            ),
            ("loop.timeout = 5m", "1, 16: `loop.timeout` is 5m without quotes; write loop.timeout = \"5m\""),
            ("[git]\nauto_push = yes", "2, 13: `git.auto_push` is yes; write true or false"),
            ("[git]\nauto_push = True", "2, 13: `git.auto_push` is True; write true or false"),
            (
                "[loop]\nmax_retries = none",
                "2, 15: `loop.max_retries` is none; write a whole number without quotes",
            ),
            ("[agent]\nprovider =", "2, 11: `agent.provider` has no value; write a string in quotes"),
            ("AGENT_TYPE=codex", "1, 12: `AGENT_TYPE` is codex without quotes; write AGENT_TYPE = \"codex\""),
            ("[agent]\nprovider = \"codex\n", "2, 12: this \" is never closed; add the missing \""),
            ("[agent]\nresponse_filter = '.a\n.b'\n", "2, 19: this ' is never closed; add the missing '"),
            ("[agent\nmodel = \"x\"", "1, 1: this [ is never closed; add the missing ]"),
            ("[git]\nprotected_branches = ['a'\n", "2, 22: this [ is never closed; add the missing ]"),
            ("[git]\nprotected_branches = ['a' 'b']", "2, 27: a comma is missing between two items"),
            ("[agent]\nmodel = 'a'\nmodel = 'b'", "3, 1: `model` stands here twice; remove one"),
            (
                "[agent]\nmodel = 'a'\n[agent]",
                "3, 2: the section [agent] stands here twice; put its settings below",
            ),
            ("[agent]\nmodel = \"a\\d\"", "2, 12: \\ has a meaning within double quotes"),
            (
                "[agent]\nmodel = 'a' 'b'",
                "2, 13: behind the value stands `'b'`; each setting stands on a line",
            ),
            ("[loop]\nmax_retries = 3,", "2, 16: behind the value stands `,`; each setting"),
            ("{\"loop\": 3}", "1, 1: `{\"loop\": 3}` is neither a setting nor a section; write NAME = VALUE"),
            ("[loop]\ntimeout = \"\"\"5m\n", "3, 1: not valid TOML: "),
            ("é", "1, 1: `é` is neither a setting nor a section"),
        ] {
            let Problem { line, column, message } = parse(text).expect_err(text);
            let found = format!("{line}, {column}: {message}");
            assert!(found.starts_with(said) && !found.contains('\n'), "{text}: {found}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in r"([a-z]{1,3}|=|\[|\]|\x22|'|\\|\n|#|,|\t| |é|\r|[0-9]|\PC){0,30}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        for text in ["a = ".to_owned() + &"[".repeat(100_000), "a.".repeat(100_000) + "a = 1"] {
            assert!(parse(&text).is_err());
        }
    }

    #[test]
    fn keys_without_effect_are_accepted_and_named() {
        let text = "[monitoring]\nlog_file = 'x'\nlog_format = 'y'\n";
        let document = parse(text).unwrap();
        assert!(document.values.is_empty());
        assert_eq!(document.without_effect, ["monitoring.log_file", "monitoring.log_format"]);
        assert!(
            problem("monitoring.log_file = 1").contains("is a whole number here; write a string in quotes")
        );
    }

    #[test]
    fn lists_are_words() {
        let text = "git.protected_branches = ['main', 'release/1']\n[git.worktree]\nname = 'A bot'\n";
        let expected = [
            ("git.protected_branches", "main release/1".to_owned(), 1),
            ("git.worktree.name", "A bot".to_owned(), 3),
        ];
        assert_eq!(values(text), expected);
        assert_eq!(values("git.protected_branches = []")[0].1, "");
        assert!(
            problem("git.protected_branches = ['a b']")
                .starts_with("1: `git.protected_branches` has \"a b\" in it")
        );
    }
}
