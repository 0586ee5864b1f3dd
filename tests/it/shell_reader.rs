//! Compares the reader of the shell-style config with a real `bash`: files with supported syntax have to mean the
//! same in both, and no text may make the reader panic.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use ralph::settings::shell;

const ENVIRONMENT: [(&str, &str); 4] = [
    ("HOME", "/home/user"),
    ("IN_ENV", "from  the 'environment'"),
    ("EMPTY_IN_ENV", ""),
    ("LC_ALL", "C.UTF-8"),
];

/// The variables that generated files use and the test compares.
const NAMES: [&str; 8] = ["A", "B", "C1", "_D", "AGENT_TYPE", "HOME", "IN_ENV", "EMPTY_IN_ENV"];

/// A variable's value and whether programs see it.
type Variables = BTreeMap<String, (String, bool)>;

fn environment(name: &str) -> Option<String> {
    ENVIRONMENT.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
}

/// Has bash source the file. Fails when bash is missing or says anything, since a generated file has to be valid.
fn by_bash(text: &str) -> Variables {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("config");
    fs::write(&file, text).expect("writing the config");
    let script = r#"
        . "$1" || exit 9
        shift
        for __name; do
            if [ -n "${!__name+set}" ]; then
                case ${!__name@a} in *x*) __x=exported ;; *) __x= ;; esac
                printf '%s\0%s\0%s\0' "$__name" "${!__name}" "$__x"
            fi
        done"#;
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", script, "bash"])
        .arg(&file)
        .args(NAMES)
        .env_clear()
        .envs(ENVIRONMENT)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .expect("this test needs bash on PATH; install it");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "bash refuses the file: {errors}");
    let stdout = String::from_utf8(output.stdout).expect("bash to print UTF-8");
    let fields: Vec<&str> = stdout.split_terminator('\0').collect();
    let triples = fields.chunks_exact(3);
    triples.map(|field| (field[0].to_owned(), (field[1].to_owned(), !field[2].is_empty()))).collect()
}

/// What the reader makes of the file, on top of the environment.
fn by_ralph(text: &str) -> Variables {
    let inherited = NAMES.iter().filter_map(|name| Some(((*name).to_owned(), (environment(name)?, true))));
    let mut variables: Variables = inherited.collect();
    let assignments =
        shell::parse(text, &environment).unwrap_or_else(|error| panic!("ralph refuses the file: {error}"));
    for shell::Assignment { name, value, exported, .. } in assignments {
        variables.insert(name, (value, exported));
    }
    variables.retain(|name, _| NAMES.contains(&name.as_str()));
    variables
}

/// The strategies are boxed to keep their types, and with them compile time and failure reports, short.
type Text = BoxedStrategy<String>;

fn pattern(pattern: &'static str) -> Text {
    pattern.boxed()
}

fn one_of(fixed: &'static [&'static str]) -> Text {
    select(fixed).prop_map(str::to_owned).boxed()
}

/// Up to `most` pieces in a row.
fn joined(piece: Text, most: usize) -> Text {
    vec(piece, 0..=most).prop_map(|pieces| pieces.concat()).boxed()
}

fn between(open: &'static str, text: Text, close: &'static str) -> Text {
    text.prop_map(move |text| format!("{open}{text}{close}")).boxed()
}

fn pair(first: Text, second: Text) -> Text {
    (first, second).prop_map(|(first, second)| first + &second).boxed()
}

fn name() -> Text {
    one_of(&NAMES)
}

fn single_quoted() -> Text {
    pattern("'[a-z $\"`\\\\#~{};|&()<>!\n\té]{0,6}'")
}

fn ansi_quoted() -> Text {
    let piece = prop_oneof![
        pattern("[a-z $\"`#~{};\né]{1,3}"),
        pattern(r#"\\[abeEfnrtv\\'"?qzZ89 ]"#),
        pattern(r"\\(1[0-7]{0,2}|[2-7][0-7]?z)"),
        pattern(r"\\x([1-7][0-9a-fA-F]|[1-9a-f]z)"),
        pattern(r"\\u(0?0[aAeE][0-9a-f]|[1-9a-c][0-9a-f]{3})"),
        pattern(r"\\U0001[fF]60[0-9a-f]"),
        pattern(r"\\c[a-zA-Z?\[\]_^]"),
        one_of(&[r"\xc3\xa9", r"\x ", r"\u ", r"\U "]),
    ];
    between("$'", joined(piece.boxed(), 5), "'")
}

/// Unquoted text that means itself, or `~`.
fn bare() -> Text {
    prop_oneof![
        4 => pattern(r"[a-zA-Z0-9_./,@%^:=+*?!é\[\]-]{1,5}"),
        1 => pattern("\\\\[ $\\\\'\"`;|&#~(){}<>a-z]"),
        1 => one_of(&["~/", ":~/", ":~:", "a~", ":", "x#", "\\\n", "~"]),
    ]
    .boxed()
}

/// What may stand between double quotes.
fn quoted() -> Text {
    prop_oneof![
        4 => pattern("[a-z '#~{};|&()<>*\n\té:/.!=-]{1,5}"),
        1 => pattern("\\\\[$\\\\\"`a-z']"),
        1 => one_of(&["$ ", "$.", "\\\n", "${A}"]),
    ]
    .boxed()
}

/// The word of `"${A:-word}"`, which has quoting rules of its own.
fn quoted_default() -> Text {
    let escaped = || pattern("\\\\[$\\\\\"`}a-z]");
    let fixed = || one_of(&["$ ", "$.", "\\\n", "${A}"]);
    let in_single = prop_oneof![pattern("[a-z #~{};|&()*]{1,4}"), escaped(), fixed()].boxed();
    let in_double = prop_oneof![pattern("[a-z '#~{};|&()*]{1,4}"), escaped(), fixed()].boxed();
    prop_oneof![
        4 => pattern("[a-z #~{;|&()*\n\té:/.!=-]{1,5}"),
        1 => escaped(),
        1 => fixed(),
        1 => between("'", joined(in_single, 3), "'"),
        1 => between("\"", joined(in_double, 3), "\""),
    ]
    .boxed()
}

fn braced(word: Text) -> Text {
    (name(), one_of(&[":-", ":=", ":+", "-", "=", "+"]), word)
        .prop_map(|(name, operator, word)| format!("${{{name}{operator}{word}}}"))
        .boxed()
}

fn reference(word: Text) -> Text {
    prop_oneof![
        1 => between("$", name(), ""),
        1 => between("${", name(), "}"),
        3 => braced(word),
    ]
    .boxed()
}

/// `${…}` between double quotes, nested up to three deep.
fn quoted_reference() -> Text {
    let inner = joined(quoted_default(), 3);
    let middle = prop_oneof![inner.clone(), pair(joined(quoted_default(), 2), braced(inner))].boxed();
    let outer = prop_oneof![middle.clone(), pair(joined(quoted_default(), 1), braced(middle))].boxed();
    reference(outer)
}

fn double_quoted() -> Text {
    let piece = prop_oneof![2 => quoted(), 1 => quoted_reference()].boxed();
    pair(one_of(&["", "", "$"]), between("\"", joined(piece, 4), "\""))
}

fn piece() -> Text {
    prop_oneof![4 => bare(), 1 => single_quoted(), 1 => ansi_quoted(), 2 => double_quoted()].boxed()
}

/// `${…}` outside quotes, nested up to three deep.
fn bare_reference() -> Text {
    let inner = joined(prop_oneof![3 => piece(), 1 => pattern("[ ;|&(#{\t\n]{1,3}")].boxed(), 3);
    let middle = prop_oneof![inner.clone(), pair(joined(piece(), 2), reference(inner))].boxed();
    let outer = prop_oneof![middle.clone(), pair(joined(piece(), 1), reference(middle))].boxed();
    reference(outer)
}

fn value() -> Text {
    joined(prop_oneof![3 => piece(), 1 => bare_reference()].boxed(), 4)
}

/// `NAME=value`, and with `free` what only an assignment that is no word of a command may start with.
fn assignment(free: bool) -> Text {
    let start = one_of(if free { &["", "", "", "~", "~/", "#", "{a,b}"] } else { &["", "", "~", "~/", "#"] });
    let target = pair(name(), one_of(&["=", "=", "=", "+="]));
    pair(target, pair(start, value()))
}

fn words(word: Text, most: usize) -> Text {
    let blank = one_of(&[" ", "  ", "\t", " \\\n "]);
    vec(pair(word, blank), 1..=most).prop_map(|words| words.concat()).boxed()
}

/// Some statements, each with its end.
fn file() -> Text {
    let exported = prop_oneof![name(), assignment(false)].boxed();
    let argument = prop_oneof![bare_reference(), between("\"", quoted_reference(), "\"")].boxed();
    let statement = prop_oneof![
        4 => words(assignment(true), 3),
        2 => between("export ", words(exported, 3), ""),
        2 => between(": ", words(argument, 2), ""),
    ];
    let end = one_of(&["\n", "\n", "\n\n", " # it's a \"comment\\\n", "\n\t# $(comment)\n", ";", " ; "]);
    vec(pair(statement.boxed(), end), 1..8).prop_map(|statements| statements.concat()).boxed()
}

/// Whether the reader refuses the text for a `~name`, where bash would look for that user's home.
fn deliberately_refused(text: &str) -> bool {
    let refusal = shell::parse(text, &environment).err().map(|error| error.message);
    refusal.is_some_and(|message| message.starts_with("`~"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn means_what_bash_says(text in file()) {
        prop_assume!(!deliberately_refused(&text));
        prop_assert_eq!(by_ralph(&text), by_bash(&text), "the file:\n{}", text);
    }

    #[test]
    fn garbage_never_panics(text in any::<String>()) {
        let _ = shell::parse(&text, &environment);
    }

    #[test]
    fn shell_like_garbage_never_panics(text in "[A-C=+:~$'\"{}\\\\()`#;|&<>\\[\\]!é0-9 \t\r\n-]{0,60}") {
        let _ = shell::parse(&text, &environment);
    }

    #[test]
    fn damaged_files_never_panic(text in file(), from in any::<prop::sample::Index>(), len in 0usize..9) {
        let mut chars: Vec<char> = text.chars().collect();
        let from = from.index(chars.len().max(1)).min(chars.len());
        let to = (from + len).min(chars.len());
        chars.drain(from..to);
        let _ = shell::parse(&chars.into_iter().collect::<String>(), &environment);
    }
}
