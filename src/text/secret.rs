//! Detects variables that hold a secret, by their names and the form of their values. `docs/safety.md` documents the
//! rules.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::redact::SHORTEST;

/// A name with one of these words has a secret value.
pub(crate) const TELLING: [&str; 31] = [
    "KEY",
    "KEYS",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "SECRETKEY",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "PWD",
    "PW",
    "CREDENTIAL",
    "CREDENTIALS",
    "CRED",
    "CREDS",
    "AUTH",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
    "COOKIES",
    "PAT",
    "JWT",
    "DSN",
    "WEBHOOK",
    "PRIVATE",
];
/// A name with one of these as its last word has a value that only describes a secret.
pub(crate) const ABOUT: [&str; 29] = [
    "FILE",
    "PATH",
    "DIR",
    "NAME",
    "TYPE",
    "METHOD",
    "MODE",
    "USER",
    "USERNAME",
    "HOST",
    "PORT",
    "ENDPOINT",
    "REGION",
    "VERSION",
    "SOCK",
    "SOCKET",
    "PID",
    "TTL",
    "TIMEOUT",
    "LENGTH",
    "SIZE",
    "COUNT",
    "ALGORITHM",
    "FORMAT",
    "ENABLED",
    "ISSUER",
    "SCOPE",
    "SCOPES",
    "DOMAIN",
];
/// The prefixes of tokens of well-known services.
pub(crate) const BEGINNINGS: [&str; 30] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "hf_",
    "eyJ",
    "dop_v1_",
    "shpat_",
    "SG.",
    "AGE-SECRET-KEY-",
    "whsec_",
];
/// The shortest token that is recognised by its form.
const SHORTEST_TOKEN: usize = 20;
/// The least entropy of a token in bits per character.
const LEAST_ENTROPY: f64 = 3.5;

/// The secret parts of a variable's value; `is_wanted` if the user has named it.
#[must_use]
pub(crate) fn secrets<'a>(name: &str, value: &'a str, is_wanted: bool) -> Vec<Cow<'a, str>> {
    let value = value.trim();
    if value.len() < SHORTEST {
        return Vec::new();
    }
    let address = value.split_once("://").filter(|(scheme, _)| is_scheme(scheme));
    let parts = address.map_or_else(Vec::new, |(_, address)| of_address(address));
    let is_secret = || is_token(value) || has_telling_name(name) && !is_dull(value);
    let whole = is_wanted || address.is_none() && is_secret();
    whole.then_some(value.into()).into_iter().chain(parts).collect()
}

/// Whether a name is on a list; `*` at its beginning or end matches anything.
#[must_use]
pub(crate) fn is_listed(name: &str, list: &[String]) -> bool {
    list.iter().any(|known| match (known.strip_prefix('*'), known.strip_suffix('*')) {
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (Some(end), Some(_)) => name.contains(end.trim_end_matches('*')),
        (None, None) => name == known,
    })
}

fn has_telling_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let is_public = words.contains(&"PUBLIC");
    let is_about = words.last().is_some_and(|word| ABOUT.contains(word));
    !is_public && !is_about && words.iter().any(|word| TELLING.contains(word))
}

/// Numbers, a word, a path: redacting them would make output unreadable, and hide nothing.
fn is_dull(value: &str) -> bool {
    let is_number = value.chars().all(|c| c.is_ascii_digit() || ".,:+-_/ ".contains(c));
    let is_path = ["/", "~/", "./", "../"].iter().any(|start| value.starts_with(start))
        // A password may begin with a slash.
        && value.chars().all(|c| c.is_alphanumeric() || "/._-~+@:, ".contains(c));
    is_number || is_path || is_word(value)
}

/// Only letters in the usual case, such as `true`, `PRODUCTION`, `Enabled`.
fn is_word(value: &str) -> bool {
    let rest = value.get(1..).unwrap_or_default();
    let is_all = |is: fn(&u8) -> bool, text: &str| text.as_bytes().iter().all(is);
    is_all(u8::is_ascii_alphabetic, value)
        && (is_all(u8::is_ascii_lowercase, rest) || is_all(u8::is_ascii_uppercase, value))
}

fn is_scheme(scheme: &str) -> bool {
    !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// The secrets in an address after its scheme: the password, and any token, each also as a program decodes it.
fn of_address(address: &str) -> Vec<Cow<'_, str>> {
    let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    let password = user.split_once(':').map_or("", |(_, password)| password);
    let parts = address.split(['/', '?', '#', '&', '=', '@', ':']).filter(|part| is_token(part));
    let parts = parts.chain([password].into_iter().filter(|password| password.len() >= SHORTEST));
    parts.flat_map(|part| [Some(part.into()), decoded(part).map(Cow::Owned)]).flatten().collect()
}

/// A text whose addresses have lost what may be secret in them: user and password, also one with characters that should be escaped,
/// and the query.
#[must_use]
pub(crate) fn without_logins(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let ends = |c: char| c.is_whitespace() || c == '\'' || c == '"';
        let (address, rest) = part.split_at(part.find(ends).unwrap_or(part.len()));
        // Without a colon before it, a slash begins the path.
        let has_login = |user: &str| user.contains(':') || !user.contains('/');
        let login = address.rsplit_once('@').filter(|(user, _)| has_login(user));
        let (user, host) = login.map_or(("", address), |(_, host)| ("…@", host));
        let (host, query) = host.split_once('?').map_or((host, ""), |(host, _)| (host, "?…"));
        shown.extend(["://", user, host, query, rest]);
    }
    shown
}

/// A part of an address as a program decodes it, if that is text, another one, and not too short.
fn decoded(part: &str) -> Option<String> {
    let text = percent_decode_str(part).decode_utf8().ok()?;
    (text != part && text.len() >= SHORTEST).then(|| text.into_owned())
}

/// Whether a value is a token of a well-known service, or a long random one.
fn is_token(value: &str) -> bool {
    if value.len() < SHORTEST_TOKEN {
        return false;
    }
    let has_beginning = BEGINNINGS.iter().any(|start| value.starts_with(start));
    let is_lines = value.starts_with("-----BEGIN ") && value.contains("PRIVATE KEY");
    is_lines
        || !value.contains(char::is_whitespace) && (has_beginning && has_digit(value) || is_random(value))
}

fn has_digit(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether letters of both cases and digits alternate as only random text does.
fn is_random(value: &str) -> bool {
    #[derive(PartialEq, Clone, Copy)]
    enum Class {
        Lower,
        Upper,
        Digit,
        Other,
    }
    let class = |byte: u8| match byte {
        b'a'..=b'z' => Some(Class::Lower),
        b'A'..=b'Z' => Some(Class::Upper),
        b'0'..=b'9' => Some(Class::Digit),
        b'-' | b'_' | b'+' | b'/' | b'=' | b'.' | b'~' => Some(Class::Other),
        _ => None,
    };
    let Some(classes) = value.bytes().map(class).collect::<Option<Vec<Class>>>() else { return false };
    let has_all = [Class::Lower, Class::Upper, Class::Digit].iter().all(|class| classes.contains(class));
    let changes =
        classes.windows(2).filter(|pair| pair[0] != pair[1] && !pair.contains(&Class::Other)).count();
    has_all && changes * 3 >= classes.len() && entropy(value.as_bytes()) >= LEAST_ENTROPY
}

/// Entropy in bits per byte, from the frequency of each byte.
#[expect(clippy::cast_precision_loss, reason = "no value has 2^52 bytes")]
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_usize; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let share = |count: &usize| *count as f64 / bytes.len() as f64;
    -counts.iter().filter(|count| **count > 0).map(|count| share(count) * share(count).log2()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of<'a>(name: &str, value: &'a str) -> Vec<Cow<'a, str>> {
        secrets(name, value, false)
    }

    #[test]
    fn names_tell() {
        for name in [
            "ANTHROPIC_API_KEY",
            "gh_token",
            "DB_PASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "npm.auth",
            "OPENAI_APIKEY",
        ] {
            assert_eq!(of(name, "correct-horse"), ["correct-horse"], "{name}");
        }
        for name in [
            "HOME_TOWN",
            "MONKEY",
            "KEYBOARD",
            "SSH_AUTH_SOCK",
            "TOKEN_FILE",
            "NEXT_PUBLIC_KEY",
            "GIT_AUTHOR_NAME",
        ] {
            assert!(of(name, "correct-horse").is_empty(), "{name}");
        }
    }

    #[test]
    fn dull_values_stay() {
        for value in [
            "true",
            "1234567",
            "123456789",
            "2026-11-22",
            "/home/me/key.pem",
            "~/.keys/x",
            "production",
            "ENABLED",
            "Disabled",
            "https://example.org/login",
            "./key-file-1",
        ] {
            assert!(of("API_KEY", value).is_empty(), "{value}");
        }
        for value in ["/=/<?}}]\"\"/}", "/horse!battery$", "./sta{ple}#"] {
            assert_eq!(of("API_KEY", value), [value], "no path");
        }
        assert_eq!(secrets("API_KEY", "production", true), ["production"], "the user knows better");
        assert!(secrets("API_KEY", "1234567", true).is_empty());
    }

    #[test]
    fn tokens_are_known_by_their_looks() {
        for value in [
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "sk-ant-api03-xxxxxxxxxxxxx0",
            "wJ4lrXUtnF3MI/K7MDx5G/bPxRfiC9dEq7mPkLe1",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        ] {
            assert_eq!(of("ANY_NAME", value), [value]);
        }
        for value in [
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
            "MyProject-Version-2.0-Release",
            "xterm-256color-with-Italics-1",
            "9b2c9be6f2d64ad6b1f2a8e2b0c9ab54",
            "d2acc3f4ba1be2b6f0a1b6a6d6f0d2acc3f4ba1b",
            "-----BEGIN PUBLIC KEY-----\nMIIE",
            "sk-learn-and-other-words",
        ] {
            assert!(of("ANY_NAME", value).is_empty(), "{value}");
        }
    }

    #[test]
    fn of_an_address_only_the_secret_part_is_taken() {
        assert_eq!(of("DATABASE_URL", "postgres://me:hunter2hunter2@db.example.org/x"), ["hunter2hunter2"]);
        assert_eq!(
            of("HOOK", "https://hooks.example.org/T0/B0/aB3dE5gH7jK9mN1pQ3sT5v"),
            ["aB3dE5gH7jK9mN1pQ3sT5v"]
        );
        assert_eq!(
            of("DB_URL", "postgres://u:Qw%40er%2FTy7Zx9@h/x"),
            ["Qw%40er%2FTy7Zx9", "Qw@er/Ty7Zx9"],
            "drivers decode it, and tell it so"
        );
        assert!(of("SERVER_AUTH", "http://me@example.org:8080/a/path?with=query").is_empty());
    }

    #[test]
    fn what_git_says_of_an_address_has_no_login() {
        for (said, shown) in [
            (
                "fatal: unable to access 'https://me:pa/ss?w@h/x.git/': no",
                "fatal: unable to access 'https://…@h/x.git/': no",
            ),
            ("at ssh://git@h:22/x and https://h/x?token=1", "at ssh://…@h:22/x and https://h/x?…"),
            ("https://h/x, a://b", "https://h/x, a://b"),
            ("https://h/@scope/x@v1", "https://h/@scope/x@v1"),
            ("git@h: Permission denied", "git@h: Permission denied"),
        ] {
            assert_eq!(without_logins(said), shown);
        }
    }

    #[test]
    fn lists_have_stars() {
        let list = ["ONE".to_owned(), "MY_*".to_owned(), "*_X".to_owned(), "*MID*".to_owned()];
        for (name, expected) in [
            ("ONE", true),
            ("ONES", false),
            ("MY_A", true),
            ("A_X", true),
            ("A_MID_B", true),
            ("OTHER", false),
        ] {
            assert_eq!(is_listed(name, &list), expected, "{name}");
        }
    }

    #[test]
    fn the_page_about_safety_lists_all_of_them() {
        let page = include_str!("../../docs/safety.md");
        for word in TELLING.iter().chain(&ABOUT).chain(&BEGINNINGS) {
            assert!(page.contains(&format!("`{}`", word.trim())), "{word}");
        }
    }

    proptest! {
        #[test]
        fn what_is_drawn_by_chance_is_nearly_always_known(values in prop::collection::vec("[a-zA-Z0-9]{32}", 100)) {
            let missed = values.iter().filter(|value| !is_random(value)).count();
            prop_assert!(missed <= 3, "{}", missed);
        }

        #[test]
        fn no_text_is_too_odd(name in ".{0,20}", value in ".{0,60}") {
            for part in secrets(&name, &value, false) {
                let is_whole = value.contains(&*part) || value.contains('%');
                prop_assert!(is_whole && part.len() >= SHORTEST);
            }
        }
    }
}
