//! `ralph task`: the graph as people and agents use it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use rusqlite::Connection;
use serde_json::Value;

use crate::scratch::{Run, Scratch};
use crate::terminal::Terminal;

/// A project with a graph.
pub(crate) struct Graph(pub(crate) Scratch);

impl Graph {
    pub(crate) fn new() -> Self {
        Self(Scratch::new())
    }

    /// Runs `ralph task` with these words.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Scratch::finish(self.0.ralph("task").args(args))
    }

    pub(crate) fn good(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}: {run:?}");
        run.stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.good(&[args, &["--json"]].concat())).unwrap()
    }

    /// What was refused, in one line, and nothing has changed.
    fn refused(&self, args: &[&str]) -> String {
        let before = self.everything();
        let run = self.run(args);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{args:?}: {run:?}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.lines().count() == 1, "{run:?}");
        assert_eq!(self.everything(), before);
        run.stderr
    }

    /// Every row of every table of the database.
    pub(crate) fn everything(&self) -> Vec<String> {
        let path = self.0.path(".ralph/progress.db");
        if !path.exists() {
            return Vec::new();
        }
        let database = Connection::open(path).unwrap();
        let names = |query: &str| -> Vec<String> {
            let mut statement = database.prepare(query).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let mut all = Vec::new();
        for table in names("SELECT name FROM sqlite_schema WHERE type = 'table'") {
            let mut statement = database.prepare(&format!("SELECT * FROM {table}")).unwrap();
            let count = statement.column_count();
            let mut rows = statement.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                let cells: Vec<rusqlite::types::Value> = (0..count).map(|at| row.get(at).unwrap()).collect();
                all.push(format!("{table}: {cells:?}"));
            }
        }
        all
    }

    pub(crate) fn add(&self, args: &[&str]) -> String {
        let id = self.good(&[&["add"], args].concat()).trim_end().to_owned();
        assert!(id.starts_with("t-") && id.len() == 8, "{id}");
        id
    }

    fn status(&self, id: &str) -> String {
        self.json(&["show", id])["status"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_graph_grows_and_is_worked_off() {
    let graph = Graph::new();
    let parse = graph.add(&["Parse: a-b \"dates\" 日本", "-d", "RFC 3339\nonly", "--priority", "-5"]);
    let test = graph.add(&["Test it", "--after", &parse]);
    let part = graph.add(&["Bad months", "--parent", &parse, "--max-retries", "0"]);
    let shown = graph.json(&["show", &parse]);
    for (key, value) in [
        ("title", "Parse: a-b \"dates\" 日本"),
        ("description", "RFC 3339\nonly"),
        ("status", "pending"),
        ("task_type", "standalone"),
        ("verification_status", "pending"),
    ] {
        assert_eq!(shown[key], value, "{key}");
    }
    assert_eq!((&shown["priority"], &shown["max_retries"]), (&(-5).into(), &3.into()));
    assert_eq!(shown["blocks"][0], test.as_str());
    assert_eq!(shown["children"][0], part.as_str());
    assert_eq!(graph.status(&test), "blocked");

    let ready = graph.json(&["list", "--ready"]);
    assert_eq!(ready.as_array().unwrap().len(), 1);
    assert_eq!(ready[0]["id"], part.as_str());
    assert!(graph.good(&["done", &part]).starts_with(&format!("{part}  done")));
    assert_eq!((graph.status(&parse), graph.status(&test)), ("pending".into(), "blocked".into()));
    assert_eq!(graph.json(&["list", "--ready"])[0]["id"], parse.as_str(), "it comes after its parts");
    graph.good(&["done", &parse]);
    assert_eq!((graph.status(&parse), graph.status(&test)), ("done".into(), "pending".into()));
    graph.good(&["fail", &test, "-r", "- no time"]);
    graph.good(&["log", &test, "-m", "- tomorrow"]);
    let log = graph.good(&["log", &test]);
    assert!(log.contains("failed: - no time") && log.contains("  - tomorrow\n"), "{log}");
    graph.good(&["reset", &part]);
    assert_eq!((graph.status(&parse), graph.status(&test)), ("pending".into(), "failed".into()));
    graph.good(&["deps", "rm", &parse, &test]);
    graph.good(&["delete", &parse, "--recursive"]);
    assert_eq!(graph.json(&["list", "--all"]).as_array().unwrap().len(), 1);
}

#[test]
fn the_tree_and_the_graph_are_drawn() {
    let graph = Graph::new();
    let top = graph.add(&["Top"]);
    let first = graph.add(&["First \"x\"", "--parent", &top]);
    let below = graph.add(&["Below", "--parent", &first]);
    let last = graph.add(&["Last", "--parent", &top, "--after", &first]);
    graph.good(&["done", &below]);
    graph.good(&["done", &first]);
    assert_eq!(
        graph.good(&["tree"]),
        format!("○ {top}  Top\n├─ ✓ {first}  First \"x\"\n│  └─ ✓ {below}  Below\n└─ ○ {last}  Last\n")
    );
    assert_eq!(graph.good(&["tree", &first]), format!("✓ {first}  First \"x\"\n└─ ✓ {below}  Below\n"));
    let dot = graph.good(&["graph"]);
    assert!(dot.starts_with("digraph tasks {\n") && dot.ends_with("}\n"), "{dot}");
    assert!(dot.contains(&format!("\"{first}\" [label=\"First \\\"x\\\"\\ndone\"];")), "{dot}");
    assert!(dot.contains(&format!("\"{first}\" -> \"{last}\";")), "{dot}");
    let mermaid = graph.good(&["graph", "--format", "mermaid"]);
    assert!(mermaid.starts_with("graph TD\n") && mermaid.contains("First #quot;x#quot;"), "{mermaid}");
    let whole = graph.json(&["graph"]);
    assert_eq!(whole["tasks"].as_array().unwrap().len(), 4);
    assert_eq!(whole["dependencies"][0]["blocked"], last.as_str());
    assert_eq!(graph.json(&["tree"])[2]["depth"], 2);
}

#[test]
fn the_beginning_of_an_id_is_enough_and_the_nearest_is_named() {
    let graph = Graph::new();
    let ids: Vec<String> = (0..40).map(|number| graph.add(&[&number.to_string()])).collect();
    assert_eq!(graph.json(&["show", &ids[7][..7]])["id"], ids[7].as_str());
    assert!(graph.refused(&["show", "t-"]).contains("several tasks begin with 't-'"));
    let mut slip = ids[3].clone();
    slip.replace_range(7.., "x");
    assert!(graph.refused(&["done", &slip]).contains(&format!("no task '{slip}'; '{}", &ids[3][..4])));
    assert!(graph.refused(&["show", ""]).contains("no task ''"));
}

#[test]
fn what_a_new_task_waits_for_is_another_one() {
    let graph = Graph::new();
    let first = graph.add(&["first"]);
    let second = graph.add(&["second", "--after", "t"]);
    assert_eq!(graph.json(&["deps", "list", &second])["blockers"][0], first.as_str());
    assert!(graph.refused(&["add", "third", "--after", "t"]).contains("several tasks begin with 't'"));
}

#[test]
fn bad_input_is_refused_in_a_line() {
    let graph = Graph::new();
    assert!(graph.refused(&["add", ""]).contains("the title is empty"));
    assert!(graph.refused(&["add", "x", "--parent", "t-123456"]).contains("no task 't-123456'"));
    assert!(!graph.0.path(".ralph/progress.db").exists(), "what is refused makes no graph");
    let (a, b) = (graph.add(&["a"]), graph.add(&["b"]));
    graph.good(&["deps", "add", &a, &b]);
    let long = "x".repeat(100_000);
    for (args, what) in [
        (&["add", &long] as &[&str], "has 100000 characters"),
        (&["add", "a\nb"], "control character, \\n"),
        (&["add", "a\u{202e}b"], "control character, \\u{202e}"),
        (&["add", "\u{200b} "], "nothing of the title can be seen"),
        (&["add", "x", "--priority", "1000001"], "from -1000000 to 1000000"),
        (&["add", "x", "--priority", "high"], "invalid value 'high'"),
        (&["add", "x", "--max-retries", "-1"], "'-1'"),
        (&["add", "x", "--feature", "../etc"], "no feature '../etc'"),
        (&["add"], "<TITLE>"),
        (&["list", "--status", "dune"], "'done' is one"),
        (&["deps", "add", &a, &a], "cannot wait for itself"),
        (&["deps", "add", &a, &b], "already"),
        (&["deps", "add", &b, &a], "that is a cycle"),
        (&["deps", "rm", &b, &a], "does not wait for"),
        (&["delete", &a], "blocks"),
        (&["show", "t-a\nb\u{1b}[2J"], "no task 't-a b"),
        (&["show", &long[..2000]], "no task 'xxx"),
        (&["update", &a, "--priority", "-1000001"], "from -1000000 to 1000000"),
        (&["update", &a, "--description", "a\u{7}"], "control character"),
        (&["update", &a, "--feature", "none"], "no feature 'none'"),
        (&["list", "--feature", "../etc"], "no feature '../etc'"),
        (&["update", &a], "nothing to change"),
        (&["update", &a, "--title", ""], "the title is empty"),
        (&["log", &a, "-m", " "], "the message is empty"),
        (&["fail", &a, "-r", "a\u{1b}"], "control character"),
        (&["add", "x", "--after", &a, "--after", &a], &format!("error: the new task waits for {a} already")),
        (
            &["add", "x", "--parent", &a, "--after", &a],
            &format!("error: the new task cannot wait for {a}: one is"),
        ),
        (&["add", "x", "--parent", &a, "--after", &b], "error: the new task cannot wait for"),
        (&["list", "--feature", "none", "--json"], "no feature 'none'"),
        (&["tree", "t-999999", "--json"], "no task 't-999999'"),
        (&["graph", "--format", "png"], "'png'"),
    ] {
        let said = graph.refused(args);
        assert!(said.contains(what), "{args:?}: {said}");
    }
    assert!(graph.refused(&["deps", "add", &b, &a]).contains(&format!("{a} → {b} → {a}")));

    // Features may wait for each other.
    for name in ["one", "two"] {
        graph.0.run(&format!("feature add {name}"));
    }
    let first = graph.add(&["first", "--feature", "one"]);
    let second = graph.add(&["second", "--feature", "two", "--after", &first]);
    assert_eq!(graph.status(&second), "blocked");
}

#[test]
fn a_description_comes_from_stdin() {
    let graph = Graph::new();
    fs::write(graph.0.outside().join("guide"), "Long\n\n- text\n").unwrap();
    let mut command = graph.0.ralph("task add Guide -d -");
    command.stdin(fs::File::open(graph.0.outside().join("guide")).unwrap());
    let id = Scratch::finish(&mut command).stdout.trim_end().to_owned();
    assert_eq!(graph.json(&["show", &id])["description"], "Long\n\n- text");
    let mut endless = graph.0.ralph("task add Guide -d -");
    endless.stdin(Stdio::from(fs::File::open("/dev/zero").unwrap()));
    let run = Scratch::finish(&mut endless);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("error: the description has"), "{run:?}");
}

#[test]
fn features_hold_tasks_together() {
    let graph = Graph::new();
    let feature = |args: &str| graph.0.run(&format!("feature {args}"));
    let status = |name: &str| -> String {
        let shown: Value = serde_json::from_str(&feature(&format!("show {name} --json")).stdout).unwrap();
        shown["status"].as_str().unwrap().to_owned()
    };
    graph.0.write("empty.md", " \n");
    graph.0.write("spec.md", "Export everything\n");
    for (args, what) in [
        ("add ../up", "no path"),
        ("add a/b", "no path"),
        ("add .hidden", "no path"),
        ("add x --spec none.md", "cannot read the spec none.md"),
        ("add x --plan empty.md", "the plan empty.md is empty"),
        ("show x", "no feature 'x'"),
        ("delete x", "no feature 'x'"),
    ] {
        let run = feature(args);
        assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 1), "{args}: {run:?}");
        assert!(run.stderr.contains(what), "{args}: {run:?}");
    }
    assert!(!graph.0.path(".ralph/progress.db").exists() && !graph.0.path(".ralph/features").exists());

    assert_eq!(feature("add export --spec spec.md").code, Some(0));
    assert_eq!(graph.0.read(".ralph/features/export/spec.md"), "Export everything\n");
    assert_eq!(status("export"), "draft");
    assert!(feature("add export").stderr.contains("is there already"));
    assert_eq!(feature("add export --plan spec.md").code, Some(0));
    assert_eq!(status("export"), "planned");
    let id = graph.add(&["header", "--feature", "export"]);
    let part = graph.add(&["part", "--parent", &id]);
    graph.add(&["standalone"]);
    assert_eq!(status("export"), "ready");
    assert_eq!(graph.json(&["list", "--feature", "export", "--ready"])[0]["id"], part.as_str());
    assert_eq!(graph.json(&["list"]).as_array().unwrap().len(), 1, "those of no feature");
    assert!(graph.refused(&["list", "--feature", "exprt"]).contains("'export' is there"));
    graph.good(&["done", &part]);
    graph.good(&["done", &id]);
    assert_eq!(status("export"), "done");
    graph.good(&["reset", &part]);
    assert_eq!(feature("delete export").code, Some(0));
    assert_eq!(graph.json(&["list", "--ready"]).as_array().unwrap().len(), 2);
    assert!(graph.0.path(".ralph/features/export/spec.md").exists());
}

#[test]
fn files_of_a_feature_are_not_lost() {
    let graph = Graph::new();
    let feature = |args: &str| graph.0.run(&format!("feature {args}"));
    let shown = |name: &str| -> Value {
        serde_json::from_str(&feature(&format!("show {name} --json")).stdout).unwrap()
    };
    let spec = ".ralph/features/x/spec.md";
    graph.0.write(spec, "committed\n");
    graph.0.write("other.md", "another\n");
    let before = graph.0.snapshot();
    let run = feature("add x --spec other.md");
    assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 1), "{run:?}");
    assert!(
        run.stderr.contains("features/x/spec.md is there already, and is not what other.md is: --force"),
        "{run:?}"
    );
    assert_eq!(graph.0.snapshot(), before);
    assert_eq!(feature("add x").code, Some(0));
    assert_eq!(
        (&shown("x")["spec_path"], &shown("x")["status"]),
        (&"features/x/spec.md".into(), &"draft".into())
    );
    graph.0.write(".ralph/features/x/plan.md", "a plan\n");
    assert_eq!(feature("add x").code, Some(0), "a plan has come");
    assert_eq!(shown("x")["status"], "planned");
    assert!(feature("add x").stderr.contains("is there already"));
    assert_eq!(feature("add x --spec other.md --force").code, Some(0));
    assert_eq!(graph.0.read(spec), "another\n");

    graph.0.write(".ralph/features/y/spec.md", "");
    assert!(feature("add y").stderr.contains("features/y/spec.md is empty: write it first"));
    // What is refused at the very end takes back what was written: the plan's place is no file.
    fs::create_dir_all(graph.0.path(".ralph/features/z")).unwrap();
    std::os::unix::fs::symlink("nowhere/at/all", graph.0.path(".ralph/features/z/plan.md")).unwrap();
    let before = graph.0.snapshot();
    let run = feature("add z --spec other.md --plan other.md");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(feature("show z").code, Some(1));
    assert_eq!(graph.0.snapshot(), before);
}

#[test]
fn a_feature_that_is_refused_changes_no_file() {
    let graph = Graph::new();
    graph.0.write("old.md", "old\n");
    graph.0.write("new.md", "new\n");
    assert_eq!(graph.0.run("feature add x --spec old.md").code, Some(0));
    let other = Connection::open(graph.0.path(".ralph/progress.db")).unwrap();
    let last: i64 = other.query_row("SELECT max(updated_at) FROM features", [], |row| row.get(0)).unwrap();
    // No feature may be written from now on.
    let check = format!("ALTER TABLE features ADD COLUMN no INTEGER CHECK (updated_at <= {last})");
    other.execute_batch(&check).unwrap();
    drop(other);
    for args in ["feature add x --spec new.md --force", "feature add y --spec new.md"] {
        let run = graph.0.run(args);
        assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 1), "{run:?}");
    }
    assert_eq!(graph.0.read(".ralph/features/x/spec.md"), "old\n");
    assert!(!graph.0.path(".ralph/features/y").exists());
}

#[test]
fn files_of_features_are_beside_the_graph() {
    let graph = Graph::new();
    let scratch = &graph.0;
    scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    scratch.git(&["worktree", "add", "--quiet", "../tree"]);
    scratch.git(&["clone", "--quiet", "--bare", ".", "../bare"]);
    scratch.git(&["-C", "../bare", "worktree", "add", "--quiet", "../of-bare"]);
    fs::write(scratch.outside().join("spec.md"), "A spec\n").unwrap();
    for (folder, place) in [("tree", "project/.ralph"), ("of-bare", "bare/ralph"), ("bare", "bare/ralph")] {
        let args = format!("feature add of-{folder} --spec ../spec.md");
        let run = Scratch::finish(scratch.ralph(&args).current_dir(scratch.outside().join(folder)));
        assert_eq!(run.code, Some(0), "{run:?}");
        let spec = scratch.outside().join(place).join(format!("features/of-{folder}/spec.md"));
        assert_eq!(fs::read_to_string(spec).unwrap(), "A spec\n", "{folder}");
        assert!(!scratch.outside().join(folder).join(".ralph").exists(), "{folder}");
    }
    let args = "feature add named --spec ../spec.md --ralph-dir mine";
    assert_eq!(scratch.run(args).code, Some(0));
    for file in ["progress.db", "features/named/spec.md"] {
        assert!(scratch.path("mine/.ralph").join(file).exists(), "{file}");
    }
}

#[test]
fn looking_makes_nothing() {
    let graph = Graph::new();
    let before = graph.0.snapshot();
    for args in
        [&["list"] as &[&str], &["list", "--all", "--json"], &["tree"], &["graph"], &["tree", "--json"]]
    {
        graph.good(args);
    }
    assert!(graph.refused(&["done", "t-123456"]).contains("no task"));
    assert_eq!(graph.0.snapshot(), before);
}

#[test]
fn the_graph_is_ours_alone_and_git_does_not_see_it() {
    let graph = Graph::new();
    graph.add(&["a"]);
    let mode = fs::metadata(graph.0.path(".ralph/progress.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let everything = |folder: &str| graph.0.write(&format!(".ralph/{folder}/x.md"), "the user's");
    ["features/x", "knowledge"].into_iter().for_each(everything);
    let seen = graph.0.git(&["status", "--porcelain", "--untracked-files=all"]);
    assert!(!seen.contains("progress.db"), "{seen}");
    assert!(seen.contains(".ralph/features/x/x.md") && seen.contains(".ralph/knowledge/x.md"), "{seen}");
}

#[test]
fn states_have_colours_on_a_terminal_alone() {
    let graph = Graph::new();
    let id = graph.add(&["a"]);
    graph.good(&["done", &id]);
    assert_eq!(graph.good(&["tree"]), format!("✓ {id}  a\n"));
    let on_terminal = |no_color: &str| {
        let mut command = graph.0.ralph("task tree");
        Terminal::start(command.env("TERM", "xterm").env("NO_COLOR", no_color), 24, 80).end().bytes
    };
    assert!(on_terminal("").contains(&format!("\u{1b}[32m✓\u{1b}[0m {id}  a")), "{:?}", on_terminal(""));
    assert_eq!(on_terminal("1"), format!("✓ {id}  a\r\n"));
}

/// The keys of a task, in their order.
const TASK: &str = "id parent_id title description status priority created_at updated_at claimed_by feature_id task_type \
        retry_count max_retries verification_status";

#[test]
fn every_verb_answers_in_json() {
    let graph = Graph::new();
    graph.0.write("TODO.md", "- [ ] a\n");
    let id = |value: Value| value["id"].as_str().unwrap().to_owned();
    let (a, b) = (id(graph.json(&["add", "a"])), id(graph.json(&["add", "b"])));
    let keys = |args: &[&str]| -> String {
        let answer = graph.json(args);
        let one = if answer.is_array() { answer[0].clone() } else { answer };
        one.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>().join(" ")).unwrap_or_default()
    };
    for (args, expected) in [
        (&["list"] as &[&str], TASK),
        (&["list", "--status", "done"], ""),
        (&["update", &a, "--priority", "1"], TASK),
        (&["done", &a], TASK),
        (&["reset", &a], TASK),
        (&["fail", &a, "-r", "x"], TASK),
        (&["deps", "add", &a, &b], TASK),
        (&["deps", "list", &b], "blockers blocks"),
        (&["deps", "rm", &a, &b], TASK),
        (&["log", &a, "-m", "note"], "message said timestamp"),
        (&["log", &a], "message said timestamp"),
        (&["tree"], &format!("{TASK} depth")),
        (&["graph"], "tasks dependencies"),
        (&["import", "TODO.md"], "added updated unchanged left_deleted skipped closed reported"),
        (&["export"], "ralph_tasks"),
        (&["delete", &a], "deleted"),
    ] {
        if args[0] == "export" {
            assert!(graph.good(&["export", "--json"]).lines().all(|line| line.starts_with('{')));
        } else {
            assert_eq!(keys(args), expected, "{args:?}");
        }
    }
    let shown = keys(&["show", &b]);
    assert!(
        ["blockers", "blocks", "children", "feature", "log"].iter().all(|key| shown.contains(key)),
        "{shown}"
    );
    for args in
        ["feature add x --json", "feature list --json", "feature show x --json", "feature delete x --json"]
    {
        let run = graph.0.run(args);
        assert!(serde_json::from_str::<Value>(&run.stdout).is_ok(), "{run:?}");
    }
}

#[test]
fn all_work_trees_share_it() {
    let graph = Graph::new();
    let scratch = &graph.0;
    scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    scratch.git(&["worktree", "add", "--quiet", "../tree"]);
    let id = graph.add(&["a"]);
    let elsewhere = |folder: &str, args: &str| {
        Scratch::finish(scratch.ralph(args).current_dir(scratch.outside().join(folder)))
    };
    assert!(elsewhere("tree", "task list").stdout.starts_with(&id));
    assert_eq!(elsewhere("tree", "task add b").code, Some(0));
    assert_eq!(graph.json(&["list"]).as_array().unwrap().len(), 2);
    assert_eq!(elsewhere("tree", "task list --ralph-dir mine").stdout, "");

    scratch.git(&["clone", "--quiet", "--bare", ".", "../bare"]);
    scratch.git(&["-C", "../bare", "worktree", "add", "--quiet", "../of-bare"]);
    assert_eq!(elsewhere("of-bare", "task add c").code, Some(0));
    assert!(elsewhere("bare", "task list").stdout.ends_with("  c\n"));
    assert!(scratch.outside().join("bare/ralph/progress.db").is_file());

    scratch.git(&["init", "--quiet", "--separate-git-dir", "../apart.git", "../apart"]);
    scratch.git(&["-C", "../apart", "commit", "--quiet", "--allow-empty", "-m", "begin"]);
    scratch.git(&["-C", "../apart", "worktree", "add", "--quiet", "../of-apart"]);
    assert_eq!(elsewhere("apart", "task add x").code, Some(0));
    assert!(elsewhere("of-apart", "task list").stdout.ends_with("  x\n"));
    assert!(
        scratch.outside().join("apart.git/ralph/progress.db").is_file(),
        "nothing tells where the main checkout is"
    );

    scratch.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../tree", "sub"]);
    scratch.git(&["-C", "sub", "worktree", "add", "--quiet", "../../of-sub"]);
    assert_eq!(elsewhere("of-sub", "task add y").code, Some(0));
    assert!(elsewhere("project/sub", "task list").stdout.ends_with("  y\n"));
    assert!(scratch.path("sub/.ralph/progress.db").is_file(), "a submodule is a project of its own");
    assert_eq!(graph.json(&["list"]).as_array().unwrap().len(), 2);

    let mut named = scratch.ralph("task list");
    let named = Scratch::finish(named.current_dir(scratch.outside().join("tree")).env("RALPH_DIR", "mine"));
    assert_eq!(named.stdout, "");

    fs::create_dir(scratch.outside().join("plain")).unwrap();
    assert_eq!(elsewhere("plain", "task add d").code, Some(0));
    assert!(scratch.outside().join("plain/.ralph/progress.db").is_file());
}

#[test]
fn an_agent_in_a_pid_namespace_of_its_own_does_not_certify_either() {
    let graph = Graph::new();
    let scratch = &graph.0;
    let id = graph.add(&["a"]);
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let apart = "unshare --user --map-root-user --pid --fork --kill-child";
    let call = |mount: &str| {
        format!("{apart} {mount} \"{ralph}\" task done {id} 2>>\"$HOME/said\"; echo $? >> \"$HOME/codes\"\n")
    };
    let calls = call("--mount-proc") + &call("");
    scratch.agent("claude", &format!("cat >/dev/null\n{calls}say '<promise>COMPLETE</promise>'; result"));
    let run = scratch.run("prompt p.md 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    let home = |name: &str| fs::read_to_string(scratch.home().join(name)).unwrap();
    assert_eq!(home("codes"), "1\n1\n", "{}", home("said"));
    assert!(
        home("said")
            .lines()
            .all(|line| line.contains("'ralph task done' is not for agents at work: say in your answer")),
        "{}",
        home("said")
    );

    // The marks have outlived their run, or it is none of this machine.
    let ended = scratch.state()["run"].as_str().unwrap().to_owned();
    for (run, code) in [("unknown", 1), (ended.as_str(), 0)] {
        let mut command = scratch.container();
        command.args([ralph, "task", "done", &id]);
        let done = Scratch::finish(command.env("RALPH_RUN", run).env("RALPH_SUPERVISOR", "4194305"));
        assert_eq!(done.code, Some(code), "{run}: {done:?}");
        assert!(
            code == 0 || done.stderr.contains("a run that cannot be found: call it from another terminal"),
            "{done:?}"
        );
    }
}

#[test]
fn agents_add_and_read_but_do_not_certify() {
    let graph = Graph::new();
    let (a, b) = (graph.add(&["a"]), graph.add(&["b"]));
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let refused = [
        format!("task done {a}"),
        format!("task fail {a}"),
        format!("task reset {a}"),
        format!("task update {a} --priority 3"),
        format!("task delete {a}"),
        format!("task deps rm {a} {b}"),
        "task import p.md".to_owned(),
        "run p.md".to_owned(),
        "loop build".to_owned(),
        "build 1".to_owned(),
        "plan 1".to_owned(),
        "prompt p.md 1".to_owned(),
    ];
    let allowed = [
        "task add c".to_owned(),
        format!("task deps add {a} {b}"),
        format!("task log {a} -m found"),
        format!("task show {a}"),
        "task list --all".to_owned(),
        "task tree".to_owned(),
        "task graph".to_owned(),
        format!("task deps list {a}"),
        "task export".to_owned(),
        "feature list".to_owned(),
    ];
    let call = |args: &String| {
        format!("\"{ralph}\" {args} >/dev/null 2>>\"$HOME/said\"; echo $? >> \"$HOME/codes\"")
    };
    let calls: Vec<String> = refused.iter().chain(&allowed).map(call).collect();
    graph.0.agent(
        "claude",
        &format!("cat >/dev/null\n{}\nsay '<promise>COMPLETE</promise>'; result", calls.join("\n")),
    );
    let run = graph.0.run("prompt p.md 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    let home = |name: &str| fs::read_to_string(graph.0.outside().join("home").join(name)).unwrap();
    let expected = vec!["1"; refused.len()].into_iter().chain(vec!["0"; allowed.len()]).collect::<Vec<_>>();
    assert_eq!(home("codes").lines().collect::<Vec<_>>(), expected, "{}", home("said"));
    for (line, args) in home("said").lines().zip(&refused) {
        let verb = args
            .split([' '])
            .take(if args.starts_with("task") { 2 } else { 1 })
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            line.starts_with(&format!("error: 'ralph {verb}")) && line.contains("not for agents at work"),
            "{line}"
        );
    }
    assert_eq!((graph.status(&a), graph.status(&b)), ("pending".into(), "blocked".into()));

    // The marks of a run that is over say nothing. (In a container, the mark of an unknown run is doubted.)
    let over = graph.0.state()["run"].as_str().unwrap().to_owned();
    let mut after = graph.0.ralph(&format!("task done {a}"));
    let run = Scratch::finish(after.env("RALPH_RUN", over).env("RALPH_SUPERVISOR", "4194000"));
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn git_never_sees_the_graph_whenever_the_repository_came() {
    let graph = Graph::new();
    let scratch = &graph.0;
    graph.add(&["a"]);
    let unseen = || scratch.git(&["status", "--porcelain", "--untracked-files=all"]);
    assert!(!unseen().contains("progress.db"), "{}", unseen());
    scratch.write(".git/info/exclude", "");
    graph.add(&["b"]);
    assert!(!unseen().contains("progress.db"), "{}", unseen());
}

#[test]
fn a_work_tree_whose_main_checkout_was_moved_gets_no_graph_of_its_own() {
    let graph = Graph::new();
    let scratch = &graph.0;
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    graph.add(&["a"]);
    scratch.git(&["worktree", "add", "-q", "../tree"]);
    let moved = scratch.outside().join("moved");
    fs::rename(scratch.root(), &moved).unwrap();
    let mut add = scratch.command(env!("CARGO_BIN_EXE_ralph"));
    let run = Scratch::finish(add.args(["task", "add", "lost"]).current_dir(scratch.outside().join("tree")));
    assert!(run.code == Some(1) && run.stderr.contains("git worktree repair"), "{run:?}");
    assert!(!scratch.outside().join("tree/.ralph").exists());
    fs::rename(&moved, scratch.root()).unwrap();
}

#[test]
fn no_spec_is_written_where_a_link_of_the_repository_leads() {
    let graph = Graph::new();
    let scratch = &graph.0;
    graph.add(&["a"]);
    scratch.write("spec.md", "It exports.\n");
    scratch.write("mine", "mine\n");
    for link in ["features/x/spec.md", "features/x", "features"] {
        let path = scratch.path(&format!(".ralph/{link}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let target = if link.contains("spec") { scratch.path("mine") } else { scratch.root() };
        std::os::unix::fs::symlink(target, &path).unwrap();
        let run = scratch.run("feature add x --spec spec.md --force");
        assert!(run.code == Some(1) && run.stderr.contains("is a symbolic link"), "{link}: {run:?}");
        fs::remove_file(&path).unwrap();
        let _ = fs::remove_dir_all(scratch.path(".ralph/features"));
    }
    assert_eq!(scratch.read("mine"), "mine\n");
    assert!(!scratch.path("x").exists());
}
