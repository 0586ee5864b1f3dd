//! A fast reader for the TOML that ralph itself writes: lists read thousands of small files.

use std::vec;

use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, Error, MapDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// A value on one line, or a table with such values.
enum Plain<'a> {
    Text(&'a str),
    Whole(i64),
    Number(f64),
    Truth(bool),
    Table(Pairs<'a>),
}

/// The section of a line.
#[derive(Clone, Copy)]
enum Section {
    Top,
    /// The last table.
    Table,
    /// A table of an array.
    Passed,
}

type Pairs<'a> = Vec<(&'a str, Plain<'a>)>;

/// Reads lines `key = value` and tables of them. Arrays, including arrays of tables, are skipped. `None` for anything
/// else, such as an escape in a string, or if `T` lacks a field: then the full TOML reader decides, and reports
/// errors.
pub(super) fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
    let mut pairs: Pairs<'de> = Vec::new();
    let mut place = Section::Top;
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("[[") {
            bare(name.strip_suffix("]]")?)?;
            place = Section::Passed;
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            pairs.push((bare(name.strip_suffix(']')?)?, Plain::Table(Vec::new())));
            place = Section::Table;
            continue;
        }
        let (key, value) = line.split_once(" = ")?;
        if value.starts_with('[') && value.ends_with(']') {
            continue;
        }
        let pair = (bare(key)?, plain(value)?);
        match (place, pairs.last_mut()) {
            (Section::Table, Some((_, Plain::Table(table)))) => table.push(pair),
            (Section::Passed, _) => {}
            _ => pairs.push(pair),
        }
    }
    T::deserialize(Plain::Table(pairs)).ok()
}

/// A key without quotes or dots.
fn bare(key: &str) -> Option<&str> {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (!key.is_empty() && key.bytes().all(is_bare)).then_some(key)
}

fn plain(value: &str) -> Option<Plain<'_>> {
    if let Some(text) = value.strip_prefix('"') {
        let text = text.strip_suffix('"')?;
        let is_plain = |byte: u8| !matches!(byte, b'"' | b'\\') && !byte.is_ascii_control();
        return text.bytes().all(is_plain).then_some(Plain::Text(text));
    }
    match value {
        "true" => Some(Plain::Truth(true)),
        "false" => Some(Plain::Truth(false)),
        // Only plain decimal numbers: no dates, separators or other bases.
        _ if !value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.')) => None,
        _ => value.parse().map(Plain::Whole).or_else(|_| value.parse().map(Plain::Number)).ok(),
    }
}

impl<'de> IntoDeserializer<'de, Error> for Plain<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Plain<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Text(text) => visitor.visit_borrowed_str(text),
            Self::Whole(number) => visitor.visit_i64(number),
            Self::Number(number) => visitor.visit_f64(number),
            Self::Truth(truth) => visitor.visit_bool(truth),
            Self::Table(pairs) => visitor
                .visit_map(MapDeserializer::<vec::IntoIter<(&str, Self)>, Error>::new(pairs.into_iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Text(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            other => other.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde::Serialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Example {
        path: PathBuf,
        count: u64,
        cost: Option<f64>,
        is_so: bool,
        kind: Kind,
        #[serde(default)]
        inner: Option<Inner>,
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        #[default]
        OneOf,
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Inner {
        pid: u32,
    }

    #[test]
    fn it_reads_what_the_toml_reader_reads_or_leaves_it_to_that() {
        let inner = || Some(Inner { pid: 7 });
        for (example, is_plain) in [
            (Example::default(), true),
            (
                Example {
                    path: "/a b".into(),
                    count: 3,
                    cost: Some(0.5),
                    is_so: true,
                    inner: inner(),
                    ..Example::default()
                },
                true,
            ),
            (Example { cost: Some(2.0), inner: inner(), ..Example::default() }, true),
            (Example { path: "ü = [x]".into(), ..Example::default() }, true),
            (Example { path: "a\"b".into(), ..Example::default() }, false),
            (Example { path: "a\\b".into(), ..Example::default() }, false),
            (Example { path: "two\nlines".into(), ..Example::default() }, false),
        ] {
            let text = toml::to_string(&example).unwrap();
            let read = read::<Example>(&text);
            assert_eq!(read.is_some(), is_plain, "{text}");
            assert_eq!(read.unwrap_or_else(|| toml::from_str(&text).unwrap()), example);
        }
    }

    #[test]
    fn what_it_does_not_know_it_does_not_guess() {
        let good = "path = \"a\"\ncount = 1\nis_so = true\nkind = \"one_of\"\nwords = [\"b\", \"c\"]\n\n[[others]]\npid = 1\n";
        assert!(read::<Example>(good).is_some());
        for (from, to) in [
            ("count = 1", "count = -1"),
            ("count = 1", "count = 0x1"),
            ("count = 1", "count = 1 # one"),
            ("count = 1", "count = 2026-11-22"),
            ("count = 1", "count=1"),
            ("count = 1", "\"count\" = 1"),
            ("count = 1\n", ""),
            ("count = 1", "count = 1\ncount = 2"),
            ("\"a\"", "'a'"),
            ("\"a\"", "\"\"\"a\"\"\""),
            ("\"a\"", "\"a"),
            ("true", "yes"),
            ("one_of", "another"),
            ("[\"b\", \"c\"]", "[\n\"b\"\n]"),
            ("[[others]]", "[[others.inner]]"),
            ("pid = 1", "pid = \"\"\"\n[inner]\n\"\"\""),
        ] {
            assert!(read::<Example>(&good.replace(from, to)).is_none(), "{to}");
        }
    }
}
