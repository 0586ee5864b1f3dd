use super::*;
use proptest::prelude::*;

const PLAN: &str = "\
# Implementation plan

Words.

## Branch: fix-image
Goal: Update the image
Base: master

- [ ] Delete the file, because
  nobody needs it
- [x] Update it

### Notes
- [X] Third

## Branch: `watch/flag`
- **Goal:** `Stream` what it says
- Base: `fix-image`
- Status: in-progress

1. [ ] Add it

## Later
- [ ] no task of ours
Goal: nor a goal
";

fn parse(text: &str) -> Result<Plan, PlanError> {
    Plan::parse(text, &|name| !name.contains(' ') && !name.contains(".."))
}

fn fault(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

fn one(text: &str) -> Section {
    let mut plan = parse(&format!("## Branch: a\n{text}")).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(plan.sections.len(), 1);
    plan.sections.remove(0)
}

fn task(text: &str, ticked: bool, line: usize) -> Task {
    Task { text: text.to_owned(), ticked, line }
}

#[test]
fn reads_a_plan() {
    let plan = parse(PLAN).unwrap();
    let first = Section {
        name: "fix-image".into(),
        line: 5,
        goal: "Update the image".into(),
        base: Some(("master".into(), 7)),
        tasks: vec![
            task("Delete the file, because nobody needs it", false, 9),
            task("Update it", true, 11),
            task("Third", true, 14),
        ],
        is_done: false,
        pull_request: None,
    };
    let second = Section {
        name: "watch/flag".into(),
        line: 16,
        goal: "`Stream` what it says".into(),
        base: Some(("fix-image".into(), 18)),
        tasks: vec![task("Add it", false, 21)],
        is_done: false,
        pull_request: None,
    };
    assert_eq!(plan.sections, [first, second]);
    assert_eq!(parse("").unwrap().sections, []);
    assert_eq!(parse("# Plan\n- [ ] x\nGoal: y\n").unwrap().sections, []);
    let windows = parse(&PLAN.replace('\n', "\r\n")).unwrap();
    assert_eq!(windows, plan);
    assert_eq!(parse("\u{feff}## Branch: a ##\nGoal: g\n* [ ] t").unwrap().sections[0].name, "a");
}

#[test]
fn fields_in_many_dresses() {
    for line in [
        "Goal: g",
        "  Goal:g  ",
        "- Goal: g",
        "* Goal:  `g`",
        "**Goal:** g",
        "**Goal**: g",
        "**Goal: g**",
        "Goal: **g**",
        "Goal: **`g`** <!-- really? -->",
        "<!-- now: --> Goal: g",
    ] {
        assert_eq!(one(&format!("{line}\n- [ ] t\n")).goal, "g", "{line}");
    }
    let wrapped = one("Goal: one\n  two\n  Base: b\nStatus: DONE\nPR: <x>\n\n    three\n- [ ] t\n");
    assert_eq!((wrapped.goal.as_str(), wrapped.base), ("one two", Some(("b".into(), 4))));
    assert_eq!((wrapped.is_done, wrapped.pull_request.as_deref()), (true, Some("<x>")));
    for word in OPEN {
        assert!(!one(&format!("Goal: g\nStatus: {}\n- [ ] t\n", word.to_uppercase())).is_done);
    }
    assert_eq!(one("Goal: `a` and `b`\nPR:\n- [ ] t\n").goal, "`a` and `b`");
}

#[test]
fn what_is_a_task() {
    for (text, expected) in [
        ("- [ ] a\n\t- [x] b\n", vec![task("a", false, 3), task("b", true, 4)]),
        ("- [ ] a\n  - why\n    more\n\n  later\nnot\n  nor\n", vec![task("a - why more later", false, 3)]),
        ("- [ ] a\n  Status: done is said\n", vec![task("a Status: done is said", false, 3)]),
        (
            "- []\n- [-] b\n- [ ]c\n-[ ] d\n[ ] e\n+ [ ] f\n2) [x] g",
            vec![task("f", false, 8), task("g", true, 9)],
        ),
        ("- [ ] a\n  ```\n  - [ ] no\n  ```\n  b\n", vec![task("a b", false, 3)]),
        ("~~~ x\n- [ ] no\n## Branch: no\n```\n~~~\n- [ ] a\n", vec![task("a", false, 8)]),
        ("- ```\n  - [ ] no\n  ```\n- [ ] a\n", vec![task("a", false, 6)]),
        ("<!--\n- [ ] no\n```\n--> - [ ] no\n- [ ] a <!-- b\n c --> d\n  e", vec![task("a e", false, 7)]),
        ("- [ ] a `<!--` b <!-- c --> d\n", vec![task("a `<!--` b            d", false, 3)]),
        (
            "- [ ] ``a ` <!--`` <!--> b\n- [ ] c ` <!-- d -->",
            vec![task("``a ` <!--``       b", false, 3), task("c `", false, 4)],
        ),
    ] {
        assert_eq!(one(&format!("Goal: g\n{text}")).tasks, expected, "{text}");
    }
}

#[test]
fn every_fault_is_told_with_its_line() {
    for (text, expected) in [
        ("## Branch: a\n- [ ] t", "line 1: branch 'a' has no goal: write 'Goal: "),
        ("## Branch: a\nGoal:\n- [ ] t", "line 2: branch 'a' has no goal"),
        ("## Branch: a\nGoal: g\n## B\n- [ ] t", "line 1: branch 'a' has no task: write '- [ ] "),
        ("## Branch: a\nGoal: g\n- [ ]\n", "line 3: the task is empty"),
        ("## Branch: a\nGoal: g\nGoal: h\n- [ ] t", "line 3: branch 'a' has a second 'Goal:': keep one"),
        ("## Branch: a\nGoal: g\nBase: g\n- [ ] t\n- Base: h\n", "line 5: branch 'a' has a second 'Base:'"),
        ("## Branch: a\nGoal: g\nBase:\n- [ ] t", "line 3: 'Base:' names nothing"),
        (
            "## Branch: a\nGoal: g\nStatus: finished\n- [ ] t",
            "line 3: 'finished' is no status: use done, or for open work planned, in-progress, todo, open, blocked",
        ),
        ("## Branch:\nGoal: g\n- [ ] t", "line 1: the branch has no name"),
        ("## Branch: a b\nGoal: g\n- [ ] t", "line 1: 'a b' is no name for a branch in git"),
        ("# Branch: a\nGoal: g\n- [ ] t", "line 1: this heading begins no branch: write '## Branch: a'"),
        ("\n### **Branch:** `a`\n", "line 2: this heading begins no branch: write '## Branch: a', exactly"),
        ("##branch: a\n", "line 1: this heading begins no branch"),
        ("## Branch: a\nGoal: g\n\n```\n- [ ] t", "line 4: the code fence that begins here is never closed"),
        ("## Branch: a\n- [ ] t <!-- x --> <!--\n", "line 2: the comment that begins here is never closed"),
        ("## Branch: a\n\n## Branch: b\n\n```", "line 1: branch 'a' has no goal"),
    ] {
        assert!(fault(text).starts_with(expected), "{text:?}: {}", fault(text));
    }
}

#[test]
fn names_that_git_cannot_have_together() {
    let plan = |names: &[&str]| -> String {
        let section = |name: &&str| format!("## Branch: {name}\nGoal: g\n- [ ] t\n");
        names.iter().map(section).collect::<Vec<_>>().concat()
    };
    for (names, expected) in [
        (&["a", "b", "a"], "line 7: branch 'a' stands in line 1 already: rename one or join them"),
        (&["b", "foo", "foo/bar"], "line 7: git cannot have 'foo/bar' beside 'foo' (line 4): rename one"),
        (&["foo/bar", "b", "foo"], "line 7: git cannot have 'foo' beside 'foo/bar' (line 1): rename one"),
    ] {
        assert_eq!(fault(&plan(names)), expected);
    }
    assert_eq!(parse(&plan(&["foo", "foo-bar", "fo", "foo-bar2/x", "A", "a"])).unwrap().sections.len(), 6);
}

fn based(bases: &[(&str, &str, &str)]) -> Plan {
    let section = |(name, base, status): &(&str, &str, &str)| {
        format!("## Branch: {name}\nGoal: g\nBase: {base}\nStatus: {status}\n- [ ] t\n")
    };
    parse(&bases.iter().map(section).collect::<Vec<_>>().concat()).unwrap()
}

#[test]
fn branches_wait_for_unfinished_ones() {
    let plan = based(&[
        ("c", "b", "open"),
        ("b", "a", "open"),
        ("a", "old", "open"),
        ("old", "old", "done"),
        ("d", "b-2", "open"),
        ("e", "master", "open"),
    ]);
    assert_eq!(plan.order().unwrap(), [Some(1), Some(2), None, None, None, None]);
    let error = |bases: &[(&str, &str, &str)]| based(bases).order().unwrap_err().to_string();
    assert_eq!(
        error(&[("a", "a", "open")]),
        "line 3: branch 'a' cannot start from itself: give it another 'Base:'"
    );
    assert_eq!(
        error(&[("x", "b", "open"), ("b", "c", "open"), ("c", "b", "open")]),
        "line 8: branch 'b' waits for 'c' waits for 'b': give one of them a 'Base:' outside of this circle"
    );
}

#[test]
fn ticks_travel_and_nothing_else() {
    let from = PLAN
        .replace("- [ ] Delete the file, because\n  nobody", "- [x] Delete the file,\n  because nobody")
        .replace("- [x] Update", "- [ ] Update")
        .replace("### Notes", "- [ ] New\n  because\n\n### Notes")
        .replace("1. [ ] Add", "1. [x] Add");
    let merged = merge_tasks(&from, PLAN, "fix-image", Ticks::From, &[]).unwrap();
    let expected = PLAN
        .replace("- [ ] Delete", "- [x] Delete")
        .replace("- [x] Update", "- [ ] Update")
        .replace("- [X] Third\n", "- [X] Third\n- [ ] New\n  because\n");
    assert_eq!(merged, expected);
    assert_eq!(merge_tasks(&from, &merged, "fix-image", Ticks::From, &[]).unwrap(), merged);
    let either = merge_tasks(&from, PLAN, "fix-image", Ticks::Either, &[]).unwrap();
    assert_eq!(either, expected.replace("- [ ] Update", "- [x] Update"));
    let windows = PLAN.replace('\n', "\r\n");
    let merged = merge_tasks(&from, &windows, "fix-image", Ticks::From, &[]).unwrap();
    assert_eq!(merged, expected.replace('\n', "\r\n"));
}

#[test]
fn new_tasks_find_a_safe_place() {
    let section = |body: &str| format!("## Branch: a\nGoal: g\n{body}");
    for (from, into, expected) in [
        ("- [ ] n", "- [ ] a", "- [ ] a\n- [ ] n"),
        ("- [ ] n", "  - [ ] a\n  not its\n\ntext\n", "  - [ ] a\n  not its\n- [ ] n\n\ntext\n"),
        (
            "- [ ] n\n  ```\nraw\n  ```\n",
            "- [ ] a\n\n## B\n",
            "- [ ] a\n- [ ] n\n  ```\nraw\n  ```\n\n## B\n",
        ),
        (
            "- [x] n <!-- x\ny -->\n",
            "- [ ] a <!--\n-->\n  b\n",
            "- [ ] a <!--\n-->\n  b\n- [x] n <!-- x\ny -->\n",
        ),
        ("- [ ] t\n- [x] t\n- [x] t", "- [ ] t\n- [ ] t\n", "- [ ] t\n- [x] t\n- [x] t\n"),
        ("- [ ] n\n", "", "- [ ] n\n"),
        ("- [ ] n\n", "- [ ] a\n ## Branch: b", "- [ ] a\n- [ ] n\n ## Branch: b"),
    ] {
        let merged = merge_tasks(&section(from), &section(into), "a", Ticks::From, &[]).unwrap();
        assert_eq!(merged, section(expected));
        assert_eq!(merge_tasks(&section(from), &merged, "a", Ticks::From, &[]).unwrap(), merged);
    }
}

#[test]
fn done_is_written_once() {
    let url = Some("https://host/pull/1");
    for (before, pull_request, after) in [
        ("Goal: g\n\n- [ ] t", None, "Goal: g\nStatus: done\n\n- [ ] t"),
        (
            "Goal: g\nBase: b\n- [ ] t",
            url,
            "Goal: g\nBase: b\nStatus: done\nPR: https://host/pull/1\n- [ ] t",
        ),
        ("- Goal: g\r\n  h\r\n", url, "- Goal: g\r\n  h\r\n- Status: done\r\n- PR: https://host/pull/1\r\n"),
        ("- [ ] t\nGoal: g", None, "- [ ] t\nGoal: g\nStatus: done"),
        ("Goal: g\n**Status: open** <!-- x\n -->\n", None, "Goal: g\nStatus: done <!-- x\n -->\n"),
        ("Goal: g <!-- x\n\n-->\n", None, "Goal: g <!-- x\n\n-->\nStatus: done\n"),
        ("PR: old\nGoal: g\n", url, "PR: https://host/pull/1\nGoal: g\nStatus: done\n"),
        ("PR: old\nGoal: g\n**Status:** `Done`\n", None, "PR: old\nGoal: g\n**Status:** `Done`\n"),
        ("Status: open\n", url, "PR: https://host/pull/1\nStatus: done\n"),
        ("- [ ] t\n", Some("  "), "Status: done\n- [ ] t\n"),
    ] {
        let text = |body: &str| format!("# Plan\n\n## Branch: a-b\nGoal: h\n## Branch: a\n{body}");
        let done = mark_done(&text(before), "a", pull_request).unwrap();
        assert_eq!(done, text(after));
        assert_eq!(mark_done(&done, "a", pull_request).unwrap(), done);
    }
}

#[test]
fn what_is_claimed_to_be_done_since_is_open_again() {
    let text = |status: &str, ticks: [&str; 4]| {
        let [a, b, twice, last] = ticks;
        format!(
            "## Branch: a\nGoal: g\n- **Status:** `Done`\n- [{a}] t\n## Branch: b\nGoal: g\n{status}- [{b}] t\n- [{twice}] u\n\
             - [{last}] u\n## Branch: c\nGoal: g\nStatus: open\n```\nStatus: done\n```\n- [ ] t\n"
        )
    };
    let claimed = text("Status: done\nStatus: done\n", ["x", "x", "x", "X"]);
    let before = text("", [" ", "x", " ", "x"]);
    let b = || vec!["b".to_owned()];
    let open = text("Status: planned\n", ["x", "x", "x", " "]);
    let cleared = Cleared { text: open.clone(), claimed: b(), doubled: b() };
    assert_eq!(without_claims(&claimed, &before, &|_| true), cleared);
    assert_eq!(without_claims(&open, &before, &|_| true), Cleared { text: open, ..Cleared::default() });
    let once = text("Status: done\n", ["x", "x", "x", "X"]);
    let cleared = Cleared { text: once, doubled: b(), ..Cleared::default() };
    assert_eq!(without_claims(&claimed, &before, &|name| name == "a"), cleared);
    assert_eq!(without_claims(&claimed, "", &|_| true).claimed, ["a", "b"]);
}

#[test]
fn labels_that_were_added_since_are_taken_out_and_those_of_before_stay() {
    let section =
        |fields: &str| format!("## Branch: a\n{fields}\n- [ ] t\n\n## Branch: b\nGoal: g\n- [ ] t\n");
    for (before, now, then) in [
        (
            "Goal: g\nStatus: planned\n",
            "Status: done\nGoal: g\nStatus: planned\n",
            "Goal: g\nStatus: planned\n",
        ),
        ("Goal: g\nStatus: done\n", "Status: done\nGoal: g\n- Status: done\n", "Status: done\nGoal: g\n"),
        (
            "- Goal: g\r\n- Base: m\r\n",
            "- Goal: x\r\n- Goal: g\r\n- Base: m\r\n- Base: n\r\n",
            "- Goal: g\r\n- Base: m\r\n",
        ),
        // It was there before, and parsing reports it to the user.
        ("Goal: g\nGoal: h\n", "Goal: g\nGoal: h\n", "Goal: g\nGoal: h\n"),
    ] {
        let cleared = without_claims(&section(now), &section(before), &|_| true);
        assert_eq!(cleared.text, section(then), "{now}");
        assert_eq!(cleared.claimed, [""; 0]);
    }
}

#[test]
fn a_section_that_cannot_be_found_is_an_error() {
    let twice = "## Branch: a\nx\n## Branch: a\n";
    for (text, expected) in [
        ("## Branch: a-b\n\n", "line 2: the plan ends without a section '## Branch: a': put it back"),
        ("", "line 1: the plan ends without a section"),
        (twice, "line 3: branch 'a' has a second section"),
        ("## Branch: a\n```\n", "line 2: the code fence that begins here is never closed"),
    ] {
        let error = mark_done(text, "a", None).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        let error = merge_tasks("## Branch: a\n", text, "a", Ticks::From, &[]).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        let error = merge_tasks(text, "## Branch: a\n", "a", Ticks::From, &[]).unwrap_err().to_string();
        assert!(error.ends_with("(in the plan that ticks come from)"), "{error}");
    }
}

/// Renders a plan and sets its line numbers.
fn render(plan: &mut Plan, end: &str) -> String {
    let mut lines = vec!["# Plan".to_owned(), String::new()];
    for section in &mut plan.sections {
        section.line = lines.len() + 1;
        lines.extend([format!("## Branch: {}", section.name), format!("Goal: {}", section.goal)]);
        if let Some((base, line)) = &mut section.base {
            *line = lines.len() + 1;
            lines.push(format!("Base: {base}"));
        }
        lines.extend(section.is_done.then(|| "Status: done".to_owned()));
        lines.extend(section.pull_request.as_ref().map(|address| format!("PR: {address}")));
        lines.push(String::new());
        for task in &mut section.tasks {
            task.line = lines.len() + 1;
            let mark = if task.ticked { 'x' } else { ' ' };
            let (first, rest) = task.text.split_once(' ').unwrap_or((&task.text, ""));
            lines.push(format!("- [{mark}] {first}"));
            lines.extend((!rest.is_empty()).then(|| format!("  {rest}")));
        }
        lines.push(String::new());
    }
    lines.join(end) + end
}

fn plans() -> impl Strategy<Value = Plan> {
    let words = "[a-zé]{1,5}( [a-z]{1,4}){0,2}";
    let task = (words, any::<bool>()).prop_map(|(text, ticked)| Task { text, ticked, line: 0 });
    let base = proptest::option::of("[a-z]{1,3}".prop_map(|base| (base, 0)));
    let section =
        (words, base, proptest::collection::vec(task, 1..5), any::<bool>(), proptest::option::of("[a-z]{3}"));
    proptest::collection::vec(section, 0..4).prop_map(|sections| {
        let named = sections.into_iter().enumerate();
        let section = named.map(|(number, (goal, base, tasks, is_done, pull_request))| Section {
            name: format!("branch-{number}"),
            line: 0,
            goal,
            base,
            tasks,
            is_done,
            pull_request,
        });
        Plan { sections: section.collect() }
    })
}

/// Text with many of the parser's special characters.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => proptest::sample::select(vec![
            "## Branch: a", "## Branch: b", "Goal: g", "Base: b", "Status: open", "PR: u", "- [ ] t", "- [x] t",
            "* [ ] u", "## ", "### ", "```", "~~~", "<!--", "-->", "`", "**", "\r\n", " ", "  ", "\t", "\u{feff}", "é",
        ]).prop_map(str::to_owned),
        2 => Just("\n".to_owned()),
        1 => "\\PC{0,3}",
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn section_of<'p>(plan: &'p Plan, name: &str) -> &'p Section {
    plan.sections.iter().find(|section| section.name == name).unwrap()
}

/// The sections without line numbers.
fn without_lines(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for section in &mut plan.sections {
        section.line = 0;
        section.base.iter_mut().for_each(|(_, line)| *line = 0);
        section.tasks.iter_mut().for_each(|task| task.line = 0);
    }
    plan
}

proptest! {
    #[test]
    fn any_text_is_read(text in texts()) {
        if let Err(error) = parse(&text) {
            prop_assert!((1..=text.lines().count().max(1)).contains(&error.line), "{}", error);
        }
        let _ = mark_done(&text, "a", Some("u"));
        let _ = merge_tasks(&text, &text, "a", Ticks::Either, &[]);
    }

    #[test]
    fn what_is_written_is_read(mut plan in plans(), end in proptest::sample::select(vec!["\n", "\r\n"])) {
        let text = render(&mut plan, end);
        prop_assert_eq!(parse(&text).unwrap(), plan, "{}", text);
    }

    #[test]
    fn done_changes_one_section_once(text in texts(), address in proptest::option::of("https://[a-z]{1,4}")) {
        let text = format!("{text}\n## Branch: x\nGoal: g\n- [ ] t");
        let Ok(plan) = parse(&text) else { return Ok(()) };
        for name in ["a", "x"] {
            let Ok(done) = mark_done(&text, name, address.as_deref()) else { continue };
            prop_assert_eq!(&mark_done(&done, name, address.as_deref()).unwrap(), &done);
            let mut expected = without_lines(&plan);
            let section = expected.sections.iter_mut().find(|section| section.name == name).unwrap();
            section.is_done = true;
            section.pull_request = address.clone().or(section.pull_request.take());
            prop_assert_eq!(without_lines(&parse(&done).unwrap()), expected, "{}", done);
            let kept: Vec<&str> = text.lines().filter(|line| !line.contains(['S', 'P'])).collect();
            let mut left = done.lines();
            prop_assert!(kept.iter().all(|line| left.any(|other| other == *line)), "{}", done);
        }
    }

    #[test]
    fn a_merge_changes_one_section_once(from in texts(), into in texts(), either in any::<bool>()) {
        let section = "\n## Branch: x\nGoal: g\n- [ ] t\n";
        let (from, into) = (from.replace("## Branch: b", "## Branch: x") + section, into + section);
        let rule = if either { Ticks::Either } else { Ticks::From };
        for name in ["a", "x"] {
            let Ok(merged) = merge_tasks(&from, &into, name, rule, &[]) else { continue };
            prop_assert_eq!(&merge_tasks(&from, &merged, name, rule, &[]).unwrap(), &merged, "{:?} {:?}", from, into);
            let (Ok(old), Ok(new)) = (parse(&into), parse(&merged)) else { continue };
            let (mut old, mut new) = (without_lines(&old), without_lines(&new));
            let texts = |plan: &Plan| -> Vec<String> {
                section_of(plan, name).tasks.iter().map(|task| task.text.clone()).collect()
            };
            prop_assert!(texts(&new).starts_with(&texts(&old)), "{:?}", merged);
            if let Ok(given) = parse(&from) {
                prop_assert!(texts(&given).iter().all(|text| texts(&new).contains(text)), "{:?}", merged);
            }
            for plan in [&mut old, &mut new] {
                plan.sections.iter_mut().find(|section| section.name == name).unwrap().tasks.clear();
            }
            prop_assert_eq!(old, new, "{:?}", merged);
        }
    }
}

#[test]
fn open_tasks_are_boxes_and_statuses_of_list_items_outside_of_code_and_comments() {
    let plan = "# Plan\nStatus: a draft\n- Status is one of planned, complete\n## 1. A\n- Status: complete\n## 2. B ##\n\
                - Status: planned\n- [ ] a box\n  * [ ] another\n- [x] done\n```\n- [ ] in code\n```\n~~~\n- [ ] in code\n\
                ~~~\n<!-- - [ ] later -->\n1. [ ] numbered\n- **Status:** complete ✓\n- **Status**: open\n- Status:\n";
    let open = [
        "2. B (Status: planned)",
        "[ ] a box",
        "[ ] another",
        "[ ] numbered",
        "2. B (Status: open)",
        "2. B (Status: )",
    ];
    assert_eq!(open_tasks(plan), open);
    assert_eq!(open_tasks("- Status: blocked by B"), ["(Status: blocked by B)"]);
    let listed =
        listed_tasks("## 1. Flag\n- Status: complete\n## 2. Docs\n- Status: open\n- [x] Read\n- [ ] Write\n");
    let listed: Vec<(&str, bool)> = listed.iter().map(|(text, done)| (text.as_str(), *done)).collect();
    assert_eq!(listed, [("1. Flag", true), ("2. Docs", false), ("Read", true), ("Write", false)]);
    assert!(open_tasks("").is_empty());
}

#[test]
fn a_fence_ends_with_its_list_item() {
    for (text, open) in [
        ("- [ ] a\n  ```\n  x\n- [ ] b\n", 2),
        ("- ```\n  x\n- [ ] b\n", 1),
        ("1. [ ] a\n   ~~~\n   x\n2. [ ] b\n", 2),
        ("- [ ] a\n  - x\n    ```\n    x\n  - [ ] b\n- [ ] c\n", 3),
        ("- [ ] a\n  ```\n  x\n\n## More\n- [ ] b\n", 2),
        // Two of them do not close each other.
        ("- [ ] a\n  ```\n  x\n- [ ] b\n  ```\n  y\n- [ ] c\n", 3),
        // What is code to everyone stays hidden, also where it is less indented.
        ("- [ ] a\n  ```\nx\n  ```\n- [ ] b\n", 2),
        ("- [ ] a\n  ```\n  - [ ] x\n  ```\n- [ ] b\n", 2),
        ("```\n- [ ] x\n```\n- [ ] b\n", 1),
        ("- a\n\n```\n- [ ] x\n```\n- [ ] b\n", 1),
    ] {
        assert_eq!(open_tasks(text).len(), open, "{text}");
    }
    assert!(parse("## Branch: a\nGoal: g\n- [ ] t\n  ```\n  x\n\n## Branch: b\nGoal: h\n- [ ] u\n").is_ok());
}

#[test]
fn a_box_in_a_quotation_is_a_task() {
    assert_eq!(open_tasks("> - [ ] a\n> > 1. [ ] b\n> - [x] c\n"), ["[ ] a", "[ ] b"]);
    let plan = "## Branch: a\nGoal: g\n\n> - [ ] one\n> - [x] two\n";
    let into = plan.replace("[ ] one", "[x] one");
    assert_eq!(merge_tasks(&into, plan, "a", Ticks::From, &[]).unwrap(), into);
}
