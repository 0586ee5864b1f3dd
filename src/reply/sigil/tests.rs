use proptest::prelude::*;

use super::kind::Shape;
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

/// Texts with `@` for the marker, and whether it is claimed.
const PLACES: &[(&str, bool)] = &[
    ("@", true),
    ("All done.\n\n@", true),
    ("@\n", true),
    ("@\n\nThat was the last task.", true),
    ("  @  \r\n", true),
    ("**@**", true),
    ("__@__ ", true),
    ("`@`", true),
    ("``` @ ```", true),
    ("(@)", true),
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
    ("Status: **`@`**", true),
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
    ("-> @", true),
    // Quoted.
    ("\"@\"", false),
    ("'@'", false),
    ("«@»", false),
    ("- **\"@\"**", false),
    ("Final status: \"@\"", false),
    ("“Status: @”", false),
    ("> @", false),
    ("> > **@**", false),
    ("- > @", false),
    // In a block of code.
    ("```\n@\n```\n", false),
    ("```\n@", false),
    ("```text\r\n@\r\n```\r\n", false),
    ("  ~~~~\n```\n~~~\n@\n~~~~\n", false),
    ("1\n- ```\n  @\n  ```\n", false),
    ("``` @\n", false),
    ("```\nx\n``` x\n@", false),
    ("```sh\nmake\n```\n@", true),
    ("```sh\nmake\n````\n\n@", true),
    ("~~~ a ` b\nx\n~~~\n@", true),
    ("``` a ` b\n@", true),
    ("``\n@", true),
    ("~~done~~\n@", true),
    // In a list or a quotation.
    ("1. ```sh\n   make\n   ```\n@", true),
    ("1. ```sh\n   @\n   ```\n", false),
    ("2) ~~~\n   make\n   ~~~\n@", true),
    ("10. - ```\n@\n```", false),
    ("1 ```\n@", true),
    ("> ```\n> make\n> ```\n@", true),
    ("> ```\n> make\n\n@", true),
    ("```\n> ```\n@\n", false),
    // Nested blocks.
    ("```md\n```sh\nmake\n```\n@\n```\n", false),
    ("```md\n```sh\nmake\n```\n```\n@", true),
    ("```md\n~~~sh\nmake\n~~~\n```\n@", true),
    ("````md\n```sh\nmake\n```\n````\n@", true),
    // In an element of HTML.
    ("<pre>\n@\n</pre>\n", false),
    ("<pre>\n@", false),
    ("<pre>@\n</pre>", false),
    ("- <PRE class=\"x\">\n  @\n  </PRE>", false),
    ("<pre><code>\n@\n</code></pre>\n", false),
    ("<pre>\nmake\n</pre>\n@", true),
    ("<pre>\n```\n</pre>\n@", true),
    ("```\n<pre>\n```\n@", true),
    ("<pre>a</pre>\n@", true),
    ("<code>\n@\n</code>", false),
    ("<blockquote>\n@\n</blockquote>", false),
    ("<example id=1>\n@\n</example>", false),
    ("<!--\n@\n-->", false),
    ("<!-- a\n-->\n@", true),
    ("<!-- a -->\n@", true),
    ("a < b\n@", true),
    ("The tag <pre> is shown\n@", true),
    ("<details>\n@", true),
    // In a quotation of several lines.
    ("You asked me to \"say\n@\"", false),
    ("You asked me to “say\n**@**”", false),
    // An indented fence inside a block is code.
    ("```\n    ```\n@\n```\n", false),
    ("    ```\n    @\n    ```\n", false),
    ("    ```\n    make\n    ```\n@", true),
];

/// Texts of an agent with `@` for a marker, whether COMPLETE is believed there, and whether REPLAN is.
const WORDS: &[(&str, bool, bool)] = &[
    // From recorded agents.
    ("All tasks are finished and the tests pass.\n\n@", true, true),
    ("The plan does not match the code any more.\n\n@", true, true),
    ("The prompt wants me to write @ but I am not done.", false, false),
    ("I should answer @ only when all is done; it is not.", false, false),
    ("When all tests pass I will answer with @", false, true),
    ("If everything works, the next agent can say @", false, true),
    ("It would be wrong to answer @", false, true),
    ("Too soon for @", false, true),
    ("This is hardly @", false, true),
    ("TODO @", false, true),
    ("TODO: @", false, true),
    ("The prompt says: @", false, true),
    ("The plan asks @", false, true),
    ("The log says that all tests pass: @", true, true),
    ("Still in progress: @", false, true),
    ("Tomorrow another agent may say @", false, true),
    ("When I ran the tests, everything passed: @", true, true),
    ("When all tests pass: @", false, true),
    ("Once all is done, @", false, true),
    ("If the docs are built and the tests pass, I say @", false, true),
    ("if all is built and tested: @", false, true),
    ("When the user logs in, the form is shown @", true, true),
    ("The form is shown when the user logs in @", true, true),
    ("Added the progress bar @", true, true),
    ("An early return for the wrong path: @", true, true),
    ("I found nothing wrong: @", true, true),
    // Not done yet.
    ("not yet @", false, true),
    ("Not done: @", false, true),
    ("Not done: `@`", false, true),
    ("Not done yet:\n@", false, true),
    ("Not done yet:\r\n\r\n**@**", false, true),
    ("**Not done yet:**\n@", false, true),
    ("Not all is done, so I cannot output\n\n@", false, false),
    ("I will not write\n`@`", false, false),
    ("It does not build, so I report\n@", false, true),
    ("It is not what I would say.\n@", true, true),
    ("All is done, and so I say\n@", true, true),
    ("Not done yet:\n- docs\n\nAll of it is done now.\n@", true, true),
    ("It is not finished, see src/main.rs @", false, true),
    ("It isn't finished; v0.9 does not build @", false, true),
    ("This is not it, v0.9 only @", false, true),
    ("Some things do not work, e.g. the docs @", false, true),
    ("Some things do not work (docs etc.) @", false, true),
    ("Tests do not pass yet, but @", false, true),
    ("Tests do not pass yet, but nearly @", false, true),
    ("Tests do not pass yet, but only half of them fail @", false, true),
    ("Tests do not pass, but all of them are almost done @", false, true),
    ("The tests do not pass, so it is too early for @", false, true),
    ("It is too early for @", false, true),
    ("This is far from @", false, true),
    ("I am nearly done @", false, true),
    ("The parser is incomplete @", false, true),
    ("There is work left instead of @", false, true),
    ("Nothing works @", false, true),
    ("No test passes @", false, true),
    ("Only half is done @", false, true),
    ("Not one test passes @", false, true),
    ("It does not even compile @", false, true),
    ("Not everything is done @", false, true),
    ("All of it remains to be done, but not much @", false, true),
    ("It is not done, all of it remains to be done @", false, true),
    ("It is not done and all is not fixed @", false, true),
    ("I can't say that all tests pass @", false, true),
    ("It should be more than @", false, true),
    // Done.
    ("No tasks are left: @", true, true),
    ("No tasks are left: all is done @", true, true),
    ("No tasks are left and all tests pass @", true, true),
    ("All tests pass with no warnings @", true, true),
    ("Nothing is left to do @", true, true),
    ("Nothing remains to be done @", true, true),
    ("There are no unfinished tasks left @", true, true),
    ("There are no failing tests and the plan is complete @", true, true),
    ("The tests do not fail any more. @", true, true),
    ("**The tests do not fail any more.** @", true, true),
    ("Nothing \"does not work\" any more! @", true, true),
    ("It did not work at first, but now it does @", true, true),
    ("not one is left open! @", true, true),
    ("Not a single test fails: @", true, true),
    ("Not one test fails @", true, true),
    ("(docs not needed) @", true, true),
    ("A new test was not really necessary @", true, true),
    ("not only the parser but also the docs @", true, true),
    ("The app does not panic any more, all tests pass @", true, true),
    ("I found no open task and did not edit, everything is done @", true, true),
    ("It could not be built (a header); now everything is fixed — @", true, true),
    ("notable, knotty @", true, true),
    ("It is not done?\n@", true, true),
    ("It did not build.\n\nIt does: v0.9 works @", true, true),
    // Disbelieved although it may be true: that costs an iteration.
    ("Nothing is left, not even docs @", false, true),
    ("The app does not panic any more @", false, true),
    ("All tests pass (I did not touch the docs) @", false, true),
    ("I did not find an open task, so I stop @", false, true),
    // Failures.
    ("The plan does not fit any more, so I answer @", false, true),
    ("The plan does not fit any more so I answer @", false, true),
    ("The plan doesn't fit: I answer @", false, true),
    ("I cannot go on without credentials, so I report @", false, true),
    ("I cannot go on without credentials and report @", false, true),
    ("I can't go on — with @", false, true),
    ("I have no choice but to say @", true, true),
    ("The server does not respond @", false, true),
    ("The script does not print: @", false, true),
    ("I see that the tests do not report @", false, true),
    ("Does it work? No: @", false, true),
    ("Does it work? It does not, @", false, true),
    ("I do not see a way other than @", false, true),
    ("It never worked, therefore @", false, true),
    // Refusals to say it.
    ("They don’t pass; this is not @", false, false),
    ("I cannot claim @", false, false),
    ("I can't honestly say **@**", false, false),
    ("I will NOT emit @", false, false),
    ("I will not say @", false, false),
    ("I do not output @", false, false),
    ("I do not want to say @", false, false),
    ("We won't answer with @", false, false),
    ("I'm not going to report @", false, false),
    ("The plan fits, so I will not say @", false, false),
    ("I am unable to answer @", false, false),
    ("I refuse to send @", false, false),
    ("Never @", false, false),
    ("So no @", false, false),
    ("I leave without @", false, false),
];

#[test]
fn what_the_words_before_it_deny_is_a_mention() {
    for (text, success, trouble) in WORDS.iter().copied() {
        for (marker, believed) in [(COMPLETE, success), (REPLAN, trouble), (FAILURE, trouble)] {
            let text = text.replace('@', marker);
            let sigils = scan([text.as_str()]);
            assert_eq!(sigils.mentions().count() == 0, believed, "{text:?}");
            assert_eq!(scan(text.split_inclusive(|_: char| true)), sigils, "{text:?}");
        }
    }
    assert!(
        scan(["It does not build: <verify-fail>make: error</verify-fail>"]).verification().unwrap().is_err()
    );
    assert_eq!(scan(["I cannot give it <verify-pass/>"]).verification(), None);
    assert!(!scan(["not <task-done>t-1</task-done>"]).names(TASK_DONE, "t-1"));
    for both in [
        ["<task-done>t-1</task-done>\n", "<task-failed>t-1</task-failed>"],
        ["<task-failed>t-1</task-failed>\n", "<task-done>t-1</task-done>"],
    ] {
        assert!(!scan(both).claims_done("t-1"), "in doubt it has failed");
    }
    assert!(scan(["It does not work here <task-failed>t-1</task-failed>"]).names(TASK_FAILED, "t-1"));
}

#[test]
fn a_mention_says_why_it_is_none_that_counts() {
    for (text, objection) in [
        ("Say @ later", Objection::Place),
        ("> @", Objection::Quoted),
        ("The prompt says: \"@\"", Objection::Quoted),
        ("I end with `@`", Objection::Quoted),
        ("> @ later", Objection::Place),
        ("not @", Objection::Denied),
        ("not @ yet", Objection::Place),
        ("```\n@", Objection::Code),
        ("<pre>\n@", Objection::Code),
        ("He says \"a\n@\"", Objection::Quoted),
        ("not @\n```\n@\n```", Objection::Code),
        ("```\n@\n```\nnot @", Objection::Denied),
    ] {
        let sigils = scan([text.replace('@', COMPLETE).as_str()]);
        let said: Vec<_> = sigils.mentions().map(|said| said.objection).collect();
        assert_eq!(said, [Some(objection)], "{text:?}");
    }
}

#[test]
fn a_claim_ends_its_line_and_is_not_quoted() {
    for (text, claimed) in PLACES.iter().copied() {
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
    assert_eq!(sigils.mentions().map(|said| said.sigil.to_string()).collect::<Vec<_>>(), [REPLAN]);
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
        ("> @", false),
        ("\"@\"", false),
        ("```\n@\n```", false),
        ("Not done yet:\n@", false),
    ] {
        let sigils = scan([text.replace('@', COMPLETE).as_str()]);
        assert_eq!(sigils.alone().count() == 1, alone, "{text:?}");
    }
}

#[test]
fn a_mention_can_be_taken_for_a_claim() {
    let mut sigils = scan([format!("I say {COMPLETE} later").as_str()]);
    let sigil = sigils.mentions().next().unwrap().sigil.clone();
    assert!(!sigils.complete());
    sigils.claim(&sigil);
    assert!(sigils.complete());
}

#[test]
fn several_kinds_come_in_order_and_bodies_are_bounded() {
    const TASK: SigilKind = SigilKind { name: "task", shape: Shape::Body(5) };
    const DONE: SigilKind = SigilKind { name: "task-done", shape: Shape::Body(3) };
    const KINDS: &[SigilKind] = &[TASK, DONE];
    let mut scanner = SigilScanner::new(KINDS);
    let text =
        "<task>é <b</task>\n<task-done>1.2</task-done>\n<task>too long</task><task-done>long</task-done>";
    text.split_inclusive(|_: char| true).for_each(|piece| scanner.push(piece));
    let found: Vec<Sigil> = scanner.sigils().into_iter().map(|said| said.sigil).collect();
    assert_eq!(found, [Sigil::new(TASK, "é <b"), Sigil::new(DONE, "1.2")]);
    assert!(scanner.open.len() <= "<task-done>".len() + 3 + "</task-done>".len());
}

#[test]
fn tasks_are_told_done_and_failed_by_their_ids() {
    let sigils = scan([
        "I will say <task-done>{id}</task-done> later.\n<task-done>t-1</task-done>\n<task-failed>t-2</task-failed>",
    ]);
    let ids = |kind| sigils.claimed(kind).map(|sigil| sigil.body.clone()).collect::<Vec<_>>();
    assert_eq!((ids(TASK_DONE), ids(TASK_FAILED)), (vec!["t-1".to_owned()], vec!["t-2".to_owned()]));
    assert_eq!(sigils.said(TASK_DONE).count(), 2);
}

#[test]
fn attributes_come_in_any_order_and_quotes() {
    for (opening, expected) in [
        ("<knowledge>", vec![]),
        ("<knowledge tags=\"a,b\" title=\"T > t\">", vec![("tags", "a,b"), ("title", "T > t")]),
        ("<knowledge\n  title='it is \"T\"'\n  tags=a >", vec![("title", "it is \"T\""), ("tags", "a")]),
        ("<knowledge tags=\"\">", vec![("tags", "")]),
    ] {
        let text = format!("so: {opening}\nline one\nline two\n</knowledge> and on");
        let sigils = scan([text.as_str()]);
        let found: Vec<&Sigil> = sigils.said(KNOWLEDGE).collect();
        assert_eq!(found.len(), 1, "{opening}");
        assert_eq!(found[0].body, "\nline one\nline two\n");
        for (name, value) in &expected {
            assert_eq!(found[0].attribute(name), Some(*value), "{opening}");
        }
        assert_eq!(found[0].attributes.len(), expected.len());
    }
    let long = format!("<knowledge title=\"{}\">x</knowledge>", "t".repeat(1024));
    for none in
        ["<knowledge =\"\">x</knowledge>", "<knowledges>x</knowledge>", "<knowledge a>x</knowledge>", &long]
    {
        assert_eq!(scan([none]).said(KNOWLEDGE).count(), 0, "{none}");
        assert_eq!(scan(none.split_inclusive(|_: char| true)), scan([none]));
    }
}

#[test]
fn one_that_never_ends_hides_nothing() {
    let text = format!("Use `<journal>` and <knowledge title='x'> for notes.\n{COMPLETE}");
    assert!(scan([text.as_str()]).complete());
    assert!(scan(text.split_inclusive(|_: char| true)).complete());
    let long = format!("<journal>{}</journal>\n{COMPLETE}", "é".repeat(64 << 10));
    assert!(scan([long.as_str()]).complete());
    let again = scan(["<journal> opens, and <journal>this is it</journal>"]);
    assert_eq!(again.said(JOURNAL).map(|sigil| sigil.body.as_str()).collect::<Vec<_>>(), ["this is it"]);
}

#[test]
fn the_last_word_of_a_verification_decides() {
    for (text, expected) in [
        ("", None),
        ("I could say <verify-pass/> now.", None),
        ("<verify-pass/>", Some(Ok(()))),
        ("Fine: <verify-pass />", Some(Ok(()))),
        ("<verify-pass></verify-pass>", Some(Ok(()))),
        ("<verify-pass>not</verify-pass>", None),
        ("<verify-fail>no tests</verify-fail>", Some(Err("no tests"))),
        ("<verify-fail>\n- a\n- b\n</verify-fail>", Some(Err("- a\n- b"))),
        ("<verify-fail>a</verify-fail>\nLooked again.\n<verify-pass/>", Some(Ok(()))),
        ("<verify-pass/>\nbut\n<verify-fail>b</verify-fail>", Some(Err("b"))),
        ("<verify-pass/> <verify-fail>c</verify-fail>", Some(Err("c"))),
        ("<verify-fail>d</verify-fail> <verify-pass/>", Some(Err("d"))),
        ("<verify-fail>e</verify-fail> would be wrong.\n<verify-pass/>", Some(Ok(()))),
        ("<verify-pass/>\n<verify-fail>f</verify-fail> is what I do not say.", Some(Ok(()))),
        ("<verify-fail>g</verify-fail>\n<verify-fail>h</verify-fail>", Some(Err("h"))),
    ] {
        assert_eq!(scan([text]).verification(), expected, "{text:?}");
        assert_eq!(scan(text.split_inclusive(|_: char| true)).verification(), expected, "{text:?}");
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let journal = |number: u32| format!("<journal>{number}{}</journal>\n", "x".repeat(60_000));
    let many: String = (0..50).map(journal).chain([COMPLETE.to_owned()]).collect();
    let sigils = scan([many.as_str()]);
    assert!(sigils.said(JOURNAL).count() < 20 && sigils.bytes <= MOST_BYTES);
}

proptest! {
    #[test]
    fn any_split_finds_what_the_whole_finds(
        parts in prop::collection::vec(
            prop_oneof![
                Just(COMPLETE), Just(REPLAN), Just("<promise>COMP"), Just("LETE</promise>"), Just("<promise>RE"),
                Just("PLAN</promise>"), Just("<"), Just("é"), Just("\n"), Just("x long text that is longer than a sigil"),
                Just("`"), Just("\""), Just("'"), Just("’"), Just(" "), Just("."), Just(": "), Just("Status: "), Just("*"),
                Just("\r\n"), Just("don't"), Just("<verify-pass"), Just("/>"), Just("<verify-fail>"),
                Just("```\n"), Just("\n~~~"), Just("<pre>\n"), Just("</pre>"), Just("> "), Just("not "),
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
        // The rule, checked on whole lines: only decoration follows the last marker of some line.
        let ends_a_line = |marker: &str| text.lines().any(|line| {
            line.rsplit_once(marker).is_some_and(|(_, rest)| rest.chars().all(is_decoration))
        });
        prop_assert!(!found.complete() || ends_a_line(COMPLETE));
        prop_assert!(!found.replan() || ends_a_line(REPLAN));
        let has_code = ["```", "~~~", "<pre>"].iter().any(|code| text.contains(code));
        let alone = |marker: &str| text.lines().any(|line| line.trim() == marker);
        let may_be_denied = text.contains(": ") && (text.contains("not") || text.contains("n't"));
        prop_assert!(!alone(COMPLETE) || found.complete() || has_code || may_be_denied);
        prop_assert!(!alone(REPLAN) || found.replan() || has_code);
        let quoted = |marker: &str| text.lines().all(|line| !line.contains(marker) || line.starts_with('>'));
        prop_assert!(!found.complete() || !quoted(COMPLETE));
    }
}
