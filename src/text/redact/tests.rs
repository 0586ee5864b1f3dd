use proptest::prelude::*;

use super::*;

fn known() -> Redactor {
    Redactor::new([
        ("TOKEN", "sk-canary-0123456789"),
        ("LONGER", "sk-canary-0123456789-and-more"),
        ("ODD", "p\"q\\r/s é\tt"),
        ("KEY", "-----BEGIN X-----\nMIIEabcdefgh\nxyz\n-----END X-----\n"),
        ("SHORT", "1234567"),
    ])
}

fn pieces<'a>(redactor: &Redactor, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut stream = redactor.stream();
    let mut out: Vec<u8> = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&stream.push(piece));
    }
    out.extend(stream.finish());
    String::from_utf8(out).unwrap()
}

#[test]
fn a_value_cut_at_every_byte_is_found_in_all_its_forms() {
    let redactor = known();
    let (json, deeper) = (r#"p\"q\\r\/s \u00e9\tt"#, r#"p\\\"q\\\\r/s é\\tt"#);
    for (text, expected) in [
        ("a sk-canary-0123456789 b", "a [redacted:TOKEN] b"),
        ("a sk-canary-0123456789-and-more b", "a [redacted:LONGER] b"),
        ("a sk-canary-0123456789", "a [redacted:TOKEN]"),
        ("a sk-canary-0123456789-and-mo", "a [redacted:LONGER]"),
        ("sk-canary-0123456789sk-canary-0123456789\n", "[redacted:TOKEN][redacted:TOKEN]\n"),
        ("sk-canary-sk-canary-0123456789-and\n", "sk-canary-[redacted:TOKEN]-and\n"),
        (&format!("{{\"a\":\"{json}\"}}\n"), "{\"a\":\"[redacted:ODD]\"}\n"),
        (&format!("{{\"a\":\"{deeper}\"}}\n"), "{\"a\":\"[redacted:ODD]\"}\n"),
        ("-----BEGIN X-----\nMIIEabcdefgh\n", "[redacted:KEY]\n[redacted:KEY]\n"),
        (r"-----BEGIN X-----\nMIIEabcdefgh\n", r"[redacted:KEY]\n[redacted:KEY]\n"),
        ("1234567 sk-canary-012345678\n", "1234567 sk-canary-012345678\n"),
    ] {
        let bytes = text.as_bytes();
        for at in 0..=bytes.len() {
            assert_eq!(pieces(&redactor, [&bytes[..at], &bytes[at..]]), expected, "{text:?} at {at}");
        }
        assert_eq!(pieces(&redactor, bytes.chunks(1)), expected, "{text:?} byte by byte");
    }
}

#[test]
fn no_more_is_held_back_than_the_beginning_of_a_value() {
    let mut stream = known().stream();
    assert_eq!(&*stream.push(b"$ sk-can"), b"$ ");
    assert_eq!(&*stream.push(b"ned\nfish s"), b"sk-canned\nfish ");
    assert_eq!(&*stream.push(b"k-canary-0123456789"), b"");
    assert_eq!(&*stream.push(b"\n"), b"[redacted:TOKEN]\n");
    assert_eq!(&*stream.push(b"sk-canary-0"), b"");
    assert_eq!(stream.finish(), b"[redacted:TOKEN]", "an agent that is killed may leave a part of one");
    assert_eq!(&*stream.push(b"sk-"), b"");
    assert_eq!(stream.finish(), b"sk-");
}

#[test]
fn a_value_that_was_shortened_is_found() {
    let redactor = known();
    assert_eq!(redactor.text("curl sk-canary-0123…"), "curl [redacted:TOKEN]…");
    assert_eq!(
        redactor.text("a sk-canary-01234\n[… 16 bytes left out …]\n-0123456789 b"),
        "a [redacted:TOKEN]\n[… 16 bytes left out …]\n[redacted:TOKEN] b"
    );
    assert!(matches!(redactor.text("what is no secret … stays"), Cow::Borrowed(_)));
}

#[test]
fn what_was_taken_out_can_be_put_back_by_who_knows_it() {
    let redactor = known();
    for line in ["--header sk-canary-0123456789", "sk-canary-0123456789-and-more", "--cut sk-canary-01234567"]
    {
        let word = redactor.word(line);
        assert!(!word.contains("0123456789"), "{word}");
        assert_eq!(redactor.restore(&word).as_deref(), Some(line));
    }
    assert_eq!(redactor.restore(&redactor.word("MIIEabcdefgh")), None, "which of its lines?");
    assert_eq!(redactor.restore("plain").as_deref(), Some("plain"));
    assert_eq!(redactor.restore("[redacted:OTHER]"), None);
}

#[test]
fn without_secrets_everything_passes_and_no_value_is_shown_by_accident() {
    assert!(Redactor::new([("A", "short")]).is_idle());
    assert!(matches!(Redactor::default().stream().push(b"abc"), Cow::Borrowed(b"abc")));
    assert!(!format!("{:?}", known()).contains("canary"));
}

proptest! {
    #[test]
    fn cuts_make_no_difference_and_no_value_is_left(
        parts in prop::collection::vec(prop::sample::select(vec![
            "sk-canary-0123456789", "sk-canary-", "-and-more", "-and", "x", "\n", "\"", "é", "p\"q", "\\r/s é\tt", " ",
            "MIIEabcdefgh", "MIIEabc", r#"p\"q\\r\/s \u00e9\tt"#,
        ]), 0..20),
        cuts in prop::collection::vec(1_usize..40, 1..30),
    ) {
        let redactor = known();
        let text = parts.concat();
        let whole = pieces(&redactor, [text.as_bytes()]);
        let (mut rest, mut cut) = (text.as_bytes(), Vec::new());
        for size in cuts.iter().cycle() {
            let (first, last) = rest.split_at((*size).min(rest.len()));
            cut.push(first);
            rest = last;
            if rest.is_empty() { break; }
        }
        prop_assert_eq!(&pieces(&redactor, cut), &whole);
        for value in ["sk-canary-0123456789", "MIIEabcdefgh", "p\"q\\r/s é\tt"] {
            prop_assert!(!whole.contains(value), "{}", whole);
        }
    }

    #[test]
    fn any_value_is_found_in_what_serde_writes(value in "[ -~éß🦀]{8,40}", before in "[a-z]{0,9}") {
        let value = value.trim();
        prop_assume!(value.len() >= SHORTEST);
        let redactor = Redactor::new([("V", value)]);
        let line = serde_json::json!({ "a": format!("{before}{value}") }).to_string();
        let deeper = serde_json::json!({ "b": line }).to_string();
        for text in [format!("{before}{value}"), line, deeper] {
            let redacted = pieces(&redactor, text.as_bytes().chunks(3));
            prop_assert!(redacted.contains("[redacted:V]"), "{} in {}", redacted, text);
            prop_assert!(!redacted.contains(value) || "[redacted:V]".contains(value), "{}", redacted);
        }
    }
}

#[test]
fn a_value_with_a_colour_in_it_is_found_in_a_whole_text() {
    let redactor = known();
    let coloured = "KEY=\x1b[01;31m\x1b[Ksk-canary\x1b[m\x1b[K-0123456789 \x1b[2mend\x1b[0m";
    assert_eq!(redactor.text(coloured), "KEY=[redacted:TOKEN] end");
    let harmless = "\x1b[31mred\x1b[0m and nothing else";
    assert_eq!(redactor.text(harmless), harmless);
}
