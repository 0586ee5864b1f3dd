use super::*;
use crate::graph::transitions::Own;

fn items(text: &str) -> Result<Vec<Item>, GraphError> {
    let task = |entry| match entry {
        ImportEntry::Task(item) => *item,
        other => panic!("{other:?}"),
    };
    read(text.as_bytes(), &|name| !name.contains(' '))?.map(|entry| entry.map(task)).collect()
}

/// Line, title, parent, blockers and state of each task.
fn shown(text: &str) -> Vec<String> {
    let show = |item: Item| {
        let after: Vec<&str> = item.after.iter().map(Key::name).collect();
        let parent = item.parent.as_ref().map_or("-", Key::name);
        format!("{} {} | {parent} | {} | {:?}", item.line, item.title, after.join(","), Own::of(item.status))
    };
    items(text).unwrap().into_iter().map(show).collect()
}

#[test]
fn nesting_makes_parts() {
    let text = "\u{feff}# Todo\r\n- [ ] a\r\n  * [x] b\n\t- [X] c\n1. [ ] d\n- no box\n```sh\n- [ ] code\n```\n- [ ]\n+ [ ] e\n";
    assert_eq!(
        shown(text),
        [
            "2 a | - |  | Open",
            "3 b | a |  | Done",
            "4 c | b |  | Done",
            "5 d | - |  | Open",
            "11 e | - |  | Open"
        ]
    );
    let text = "- [ ] a\n  more of it\n  - [ ] part\n- plain\n  - [ ] b\n## Next\n   - [ ] c\n";
    assert_eq!(
        shown(text),
        ["1 a | - |  | Open", "3 part | a |  | Open", "5 b | - |  | Open", "7 c | - |  | Open"],
        "what has no box is nothing to be a part of"
    );
}

#[test]
fn a_fence_ends_where_it_does() {
    let text = "````\n```\n- [ ] code\n```\n````\n- [ ] a\n~~~ sh\n```\n- [ ] code\n~~~ not yet\n~~~~  \n- [ ] b\n```in a line```\n- [ ] c\n```\n- [ ] code\n";
    assert_eq!(shown(text), ["6 a | - |  | Open", "12 b | - |  | Open", "14 c | - |  | Open"]);
}

#[test]
fn an_item_is_known_by_what_it_stands_below() {
    let keys = |text: &str| -> Vec<Key> { items(text).unwrap().into_iter().map(|item| item.key).collect() };
    for (one, other) in [
        (
            "# One\n- [ ] Test it\n# Two\n- [ ] Test it\n",
            "# One\n## Two\n- [ ] Test it\n### Two\n- [ ] Test it\n",
        ),
        ("- [ ] a\n  - [ ] b\n", "- [ ] a > b\n- [ ] b > a\n"),
        ("# a\n- [ ] b\n- [ ] # a\n", "- [ ] # a\n  - [ ] b\n"),
    ] {
        let keys = [keys(one), keys(other)].concat();
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{key:?}");
        }
    }
    assert_eq!(
        keys("# A\n## B\n# C\n- [x] d\n"),
        keys("# C\n\nText.\n\n* [ ]  d \n"),
        "only what is above it counts"
    );
}

#[test]
fn stories_become_tasks() {
    let text = r#"{
  "project": "p",
  "userStories": [
    {"id": "US-1", "title": "One", "description": "D", "acceptanceCriteria": ["x", "y"], "passes": true, "notes": "N"},
    {"title": "Two", "id": "US-2", "priority": 4, "dependsOn": ["US-1"], "unknown": 1, "notes": null, "description": null,
     "acceptanceCriteria": null, "passes": null}
  ]
}"#;
    assert_eq!(shown(text), ["4 One | - |  | Done", "5 Two | - | US-1 | Open"]);
    let stories = items(text).unwrap();
    assert_eq!(stories[0].description.as_deref(), Some("D\n\nAcceptance criteria:\n- x\n- y\n\nN"));
    assert_eq!((stories[0].priority, stories[1].priority), (None, Some(4)));
    let numbered = text.replace("\"US-1\"", "1").replace("\"US-2\"", "2");
    assert_eq!(shown(&numbered), ["4 One | - |  | Done", "5 Two | - | 1 | Open"]);
    assert_eq!(items(&numbered).unwrap()[0].key, items(&text.replace("US-", "")).unwrap()[0].key);
    let next = text.replace("\"p\"", "\"q\"");
    assert_ne!(items(&next).unwrap()[0].key, stories[0].key);
}

#[test]
fn issues_of_beads_become_tasks() {
    let text = r#"
{"id":"bd-1","title":"One","status":"closed","issue_type":"epic","priority":0,"notes":null,"dependencies":null}

{"id":"bd-2","title":"Two","status":"in_progress","dependencies":[{"issue_id":"bd-2","depends_on_id":"bd-1","type":"parent-child"},{"issue_id":"bd-2","depends_on_id":"bd-3","type":"related"},{"issue_id":"bd-2","depends_on_id":"bd-4","type":"blocks"}]}
"#;
    assert_eq!(shown(text), ["2 One | - |  | Done", "4 Two | bd-1 | bd-4 | Open"]);
    let two = items(&text.replace("related", "parent-child")).unwrap_err().to_string();
    assert_eq!(two, "line 4: 'bd-2' is a part of 2 others: a task has one parent at most");
    let error = items(&text.replace("in_progress", "sleeping")).unwrap_err().to_string();
    assert!(error.starts_with("line 4: 'sleeping' is no status"), "{error}");
}

#[test]
fn a_plan_of_branches_becomes_tasks() {
    let text = "# Plan\n\n## Branch: a\nGoal: First\nBase: main\n- [x] one\n- [ ] two\n\n## Branch: b\nGoal: Second\nBase: a\n- [ ] three\n";
    assert_eq!(
        shown(text),
        [
            "3 a | - |  | Open",
            "6 one | a |  | Done",
            "7 two | a |  | Open",
            "9 b | - | a | Open",
            "12 three | b |  | Open"
        ]
    );
    let error = items(&text.replace("Goal: Second\n", "")).unwrap_err().to_string();
    assert!(error.starts_with("line "), "{error}");
}

#[test]
fn what_cannot_be_read_is_named_by_its_line() {
    let long = format!("{}\n{{\"id\":\"{}", header(), "x".repeat(17 << 20));
    let item = |level| format!("{}- [ ] {level}\n", " ".repeat(level));
    let deep = (0..101).map(item).collect::<Vec<String>>().concat();
    let twenty = "- [ ] a\n".repeat(3 << 20);
    for (text, what) in [
        ("", "there are no tasks in it"),
        ("nothing\n- here\n", "there are no tasks in it"),
        ("{\"userStories\": [", "line 1, column 17: no prd.json: it ends too early"),
        ("{\"userStories\": [{}]}", "line 1, column 19: no prd.json: the key 'id' is missing"),
        ("[{\"id\": 1}]", "it is a list: the stories of a prd.json stand in an object"),
        (
            "{\"userStories\": {}}",
            "line 1, column 16: no prd.json: 'userStories' is an object: there belongs a list",
        ),
        (
            "{\"userStories\":\n[{\"id\": \"a\", \"title\": 5}]}",
            "line 2, column 23: no prd.json: 'title' is 5: there belongs a text in quotes",
        ),
        ("{\"userStories\": [{\"id\": [], \"title\": \"x\"}]}", "'id' has to be a text or a whole number"),
        ("{'userStories': []}", "line 1, column 2: no prd.json: a key has to stand in double quotes"),
        (
            "{\"userStories\": [{\"id\": \"a\",}]}",
            "line 1, column 29: no prd.json: the comma before this is one too many",
        ),
        (
            "{\"userStories\": [{\"id\": \"a\" \"title\": 1}]}",
            "a comma or a closing } is missing before this",
        ),
        (
            "{\"id\":\"b\",\"status\":\"open\"}",
            "line 1, column 26: no issue of beads': the key 'title' is missing",
        ),
        (
            "{\"id\":\"b\",\"status\":\"open\",\"title\":\"x\",\"priority\":\"P1\"}",
            "'priority' is \"P1\": there belongs a whole number",
        ),
        (
            "{\"ralph_tasks\":1}\n{\"id\":\"t-123456\",\"title\":\"x\",\"status\":\"doing\"}",
            "'status' is 'doing': there belongs one of pending, in_progress, landing, done",
        ),
        (
            "{\"ralph_tasks\":1}\n{\"id\":\"t-123456\",\"title\":\"x\",\"created_at\":\"yesterday\"}",
            "'created_at' is no time, such as",
        ),
        ("{\"ralph_tasks\":1}\nfoo", "line 2, column 2: no task of an export: this is no JSON"),
        ("{\"ralph_tasks\":3}\n", "use the ralph that wrote it"),
        ("{\"ralph_tasks\":1}\n{}\n", "line 2, column 2: no task of an export: the key 'id' is missing"),
        (&long, "line 2: it is longer than 16777216 bytes"),
        (&deep, "line 101: '100' would stand on level 101, 100 is the deepest"),
        (&twenty, "the file is larger than"),
    ] {
        let error = items(text).unwrap_err().to_string();
        assert!(error.contains(what) && !error.contains('\n'), "{error}");
    }
    let bad = [header().into_bytes(), b"\n\xff\n".to_vec()].concat();
    let error = read(bad.as_slice(), &|_| true).unwrap().next().unwrap().unwrap_err().to_string();
    assert_eq!(error, "line 2: it is no UTF-8 text: convert the file");
}

#[test]
fn a_line_without_an_end_is_not_kept_in_memory() {
    struct Endless(u64);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += buffer.len() as u64;
            assert!(self.0 < 64 << 20, "it is read on and on");
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }
    let Err(error) = read(Endless(0), &|_| true) else { panic!("it is no list") };
    assert!(error.to_string().starts_with("line 1: it is longer"), "{error}");
}
