use proptest::prelude::*;

use super::*;

fn scan<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Sigils {
    let mut scanner = SigilScanner::default();
    pieces.into_iter().for_each(|piece| scanner.push(piece));
    scanner.sigils()
}

#[test]
fn finds_exact_sigils_only() {
    let both = scan([format!("a {REPLAN}\nb {COMPLETE}").as_str()]);
    assert!(both.complete() && both.replan());
    for near in ["<promise>complete</promise>", "<promise> COMPLETE </promise>", "COMPLETE", "<promise>"] {
        let found = scan([near]);
        assert!(!found.complete() && !found.replan(), "{near}");
    }
}

/// Texts in which `@` stands for the marker, and whether it is claimed.
const PLACES: [(&str, bool); 60] = [
    ("@", true),
    ("All done.\n\n@", true),
    ("@\n", true),
    ("@\n\nThat was the last task.", true),
    ("  @  \r\n", true),
    ("**@**", true),
    ("__@__ ", true),
    ("`@`", true),
    ("```\n@\n```\n", true),
    ("``` @ ```", true),
    ("\"@\"", true),
    ("(@)", true),
    ("> @", true),
    ("- @", true),
    ("- `@`", true),
    ("## @", true),
    ("I am done. @", true),
    ("I am done: @", true),
    ("It's done @", true),
    ("it is `done` @", true),
    ("He said \"no\", I say @", true),
    ("The tests' results are good @", true),
    ("Status: `@`", true),
    ("**Status:** `@`", true),
    ("Final status: \"@\"", true),
    ("Status: **`@`**", true),
    ("“Status: @”", true),
    ("@.", false),
    ("@!", false),
    ("@ only when all is done", false),
    ("@, then", false),
    ("`@`.", false),
    ("I will not output @ yet", false),
    ("I should answer @ only when all is done; it is not.", false),
    ("I will end with `@`", false),
    ("I will end with ``@``", false),
    ("I will end with ` @ `", false),
    ("I will say \"@\"", false),
    ("I will say “@”", false),
    ("I will say „@“", false),
    ("I will say «@»", false),
    ("I will say '@'", false),
    ("I will say ‘@’", false),
    ("I said 'I don't @'", false),
    ("I said \"it is done @\"", false),
    ("You asked for \"the marker: @\"", false),
    ("It is not done, so not yet: `@`", false),
    ("It is not done. Later: `@`", false),
    ("When every task is ticked I will write: `@`", false),
    ("1. `@`", false),
    ("@ @x", false),
    ("@x", false),
    ("@</b>", false),
    ("@ <pro", false),
    ("@ 🎉", false),
    ("say `\n@", true),
    ("`a` and `@`", false),
    ("`a` and @", true),
    ("\t@\u{a0}", true),
    ("<<@>>", true),
];

#[test]
fn a_claim_ends_its_line_and_is_not_quoted() {
    for (text, claimed) in PLACES {
        for marker in [COMPLETE, REPLAN, "<promise>FAILURE</promise>"] {
            let text = text.replace('@', marker);
            let sigils = scan([text.as_str()]);
            assert_eq!(sigils.mentions().count() == 0, claimed, "{text:?}");
            assert_eq!(sigils.complete(), claimed && marker == COMPLETE, "{text:?}");
            assert_eq!(sigils.replan(), claimed && marker == REPLAN, "{text:?}");
        }
    }
}

#[test]
fn one_claim_is_enough_whatever_else_is_said() {
    let text = format!("Not yet {COMPLETE}, but\n{COMPLETE}\nas {COMPLETE} says. Or {REPLAN} {COMPLETE}");
    let sigils = scan([text.as_str()]);
    assert!(sigils.complete() && !sigils.replan());
    assert_eq!(sigils.mentions().map(ToString::to_string).collect::<Vec<_>>(), [REPLAN]);
}

#[test]
fn a_line_for_itself_is_told_apart() {
    for (text, alone) in [
        ("@", true),
        (" **`@`** ", true),
        ("- @", true),
        ("no\n@\nyet", true),
        ("done @", false),
        ("Status: `@`", false),
        ("@.", false),
    ] {
        let sigils = scan([text.replace('@', COMPLETE).as_str()]);
        assert_eq!(sigils.alone().count() == 1, alone, "{text:?}");
    }
}

#[test]
fn a_mention_can_be_taken_for_a_claim() {
    let mut sigils = scan([format!("I say {COMPLETE} later").as_str()]);
    let sigil = sigils.mentions().next().unwrap().clone();
    assert!(!sigils.complete());
    sigils.claim(&sigil);
    assert!(sigils.complete());
}

#[test]
fn several_kinds_come_in_order_and_bodies_are_bounded() {
    const KINDS: &[SigilKind] =
        &[SigilKind { name: "task", longest: 5 }, SigilKind { name: "task-done", longest: 3 }];
    let mut scanner = SigilScanner::new(KINDS);
    let text =
        "<task>é <b</task>\n<task-done>1.2</task-done>\n<task>too long</task><task-done>long</task-done>";
    text.split_inclusive(|_: char| true).for_each(|piece| scanner.push(piece));
    let sigil = |name, body: &str| Sigil { name, body: body.to_owned() };
    let found: Vec<Sigil> = scanner.sigils().into_iter().map(|said| said.sigil).collect();
    assert_eq!(found, [sigil("task", "é <b"), sigil("task-done", "1.2")]);
    assert!(scanner.open.len() <= "<task-done>".len() + 3 + "</task-done>".len());
}

proptest! {
    #[test]
    fn any_split_finds_what_the_whole_finds(
        parts in prop::collection::vec(
            prop_oneof![
                Just(COMPLETE), Just(REPLAN), Just("<promise>COMP"), Just("LETE</promise>"), Just("<promise>RE"),
                Just("PLAN</promise>"), Just("<"), Just("é"), Just("\n"), Just("x long text that is longer than a sigil"),
                Just("`"), Just("\""), Just("'"), Just("’"), Just(" "), Just("."), Just(": "), Just("Status: "), Just("*"),
                Just("\r\n"), Just("don't"),
            ],
            0..12,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let text = parts.concat();
        let mut cuts: Vec<usize> = cuts
            .iter()
            .map(|cut| cut.index(text.len() + 1))
            .filter(|cut| text.is_char_boundary(*cut))
            .chain([0, text.len()])
            .collect();
        cuts.sort_unstable();
        let found = scan(cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]));
        prop_assert_eq!(&found, &scan([text.as_str()]));
        let said: Vec<String> = found.clone().into_iter().map(|said| said.sigil.to_string()).collect();
        for marker in [COMPLETE, REPLAN] {
            prop_assert_eq!(said.iter().any(|said| said == marker), text.contains(marker));
        }
        // The rule, told by looking at whole lines: nothing but decoration follows the last marker of some line.
        let ends_a_line = |marker: &str| text.lines().any(|line| {
            line.rsplit_once(marker).is_some_and(|(_, rest)| rest.chars().all(is_decoration))
        });
        prop_assert!(!found.complete() || ends_a_line(COMPLETE));
        prop_assert!(!found.replan() || ends_a_line(REPLAN));
        let alone = |marker: &str| text.lines().any(|line| line.trim() == marker);
        prop_assert!(!alone(COMPLETE) || found.complete());
        prop_assert!(!alone(REPLAN) || found.replan());
    }
}
