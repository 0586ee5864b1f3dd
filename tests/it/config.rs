//! `ralph config` on real terminals, slips in the files that people write, and what `init` makes of a project.

use serde_json::Value;

use crate::scratch::Scratch;
use crate::terminal::Terminal;

/// What is told of the names in the config.
const NEAR_MISS: &str = "MAX_CSOT is no setting, and no prompt uses it: did you mean MAX_COST?";

#[test]
fn config_fits_the_terminal_and_is_whole_in_a_pipe() {
    let scratch = Scratch::new();
    let filter = ".text ".repeat(60);
    scratch.write(".ralph/config", format!("AGENT_TYPE=codex\nAGENT_RESPONSE_FILTER='{filter}'\n"));
    let piped = scratch.run("config").stdout;
    assert!(piped.contains(&filter) && !piped.contains('…'), "{piped}");
    for columns in [45, 60, 80, 200] {
        let terminal = Terminal::start(&scratch.ralph("config"), 50, columns);
        let end = terminal.end();
        // As it was written: what is too wide would be broken on the screen.
        let text = anstream::adapter::strip_str(&end.bytes).to_string();
        for line in text.lines() {
            assert!(line.trim_end().chars().count() <= usize::from(columns), "{columns}: {line}");
        }
        assert_eq!(end.code, Some(0));
        assert!(text.contains(".ralph/config line 2") && text.contains('…'), "{columns}: {text}");
        assert!(text.contains("The agent is started as:"), "{columns}: {text}");
    }
}

#[test]
fn a_name_that_is_close_to_a_setting_is_warned_of_everywhere_once() {
    let scratch = Scratch::new();
    scratch.agent("claude", "exit 1");
    scratch.write("specs/a.md", "x");
    scratch.write(".ralph/config", "MY_OWN=1\nMAX_CSOT=5\nMAX_RETRIES=0\n");
    let expected = format!("warning: .ralph/config line 2: {NEAR_MISS}");
    for args in ["config", "config --json", "plan 1"] {
        let run = scratch.run(args);
        assert_eq!(run.stderr.matches(NEAR_MISS).count(), 1, "{args}: {run:?}");
        assert!(run.stderr.contains(&expected), "{args}: {run:?}");
    }
    let run = scratch.run("doctor");
    assert!(run.stdout.contains(&format!("settings      .ralph/config line 2: {NEAR_MISS}")), "{run:?}");
}

#[test]
fn a_name_that_something_uses_is_no_slip() {
    for (file, text) in [
        (".ralph/prompts/build.md", "Spend ${MAX_CSOT} and say <promise>COMPLETE</promise>"),
        ("PROMPT_build.md", "Spend $MAX_CSOT"),
        (".ralph/config", "MAX_CSOT=5\nMAX_COST=$MAX_CSOT\n"),
    ] {
        let scratch = Scratch::new();
        scratch.write(".ralph/config", "MAX_CSOT=5\n");
        scratch.write(file, text);
        let run = scratch.run("config");
        assert!(run.code == Some(0) && run.stderr.is_empty(), "{file}: {run:?}");
        assert!(!scratch.run("doctor").stdout.contains("MAX_CSOT"), "{file}");
    }
}

#[test]
fn init_enters_the_tests_of_the_project_and_keeps_what_it_replaces() {
    let scratch = Scratch::new();
    scratch.write("Makefile", "test:\n\ttouch ran\n");
    scratch.write("Cargo.toml", "[package]\nname = \"a\"\n");
    let run = scratch.run("init --agent script");
    assert!(run.code == Some(0) && run.stdout.contains("Tests: make test, as Makefile says."), "{run:?}");
    let json: Value = serde_json::from_str(&scratch.run("config --json").stdout).unwrap();
    let row = json.as_array().unwrap().iter().find(|row| row["shell"] == "VALIDATION_COMMAND").unwrap();
    assert_eq!(row["value"], "make test");
    assert!(scratch.read("AGENTS.md").contains("All tests: `make test`\nOne test: `cargo test NAME`\n"));
    assert!(!scratch.path("ran").exists());

    scratch.write("AGENTS.md", "mine");
    scratch.write(".ralph/config", "AGENT_TYPE=codex\n");
    let run = scratch.run("init --agent script --force");
    let said = "  replaced  .ralph/config (what it was is in .ralph/config.bak)\n";
    assert!(run.stdout.contains(said), "{run:?}");
    assert!(run.stdout.contains("  unchanged .ralph/prompts/plan.md\n"), "{run:?}");
    assert_eq!(scratch.read(".ralph/config.bak"), "AGENT_TYPE=codex\n");
    assert_eq!(scratch.read("AGENTS.md"), "mine");

    let fresh = scratch.run("init RALPH.md --agent claude");
    scratch.write("RALPH.md", "mine");
    let run = scratch.run("init RALPH.md --agent claude --force");
    assert_eq!(run.stderr, "what RALPH.md was is in RALPH.md.bak\n", "{fresh:?}");
    assert_eq!(scratch.read("RALPH.md.bak"), "mine");
    let run = scratch.run("init RALPH.md --agent claude --force");
    assert!(run.stdout.starts_with("RALPH.md is already what would be written.\n"), "{run:?}");
    assert!(!scratch.path("RALPH.md.bak.1").exists());
}

#[test]
fn a_setting_is_set_where_the_project_has_it() {
    let scratch = Scratch::new();
    let set = |args: &str| scratch.run(&format!("config set {args}"));
    let run = set("MAX_RETRIES 5");
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "loop.max_retries is set in ralph.toml\n"),
        "{run:?}"
    );
    scratch.write("ralph.toml", "# mine\n[loop]\nmax_retries = 5 # few\n");
    set("loop.max_retries 7");
    assert_eq!(scratch.read("ralph.toml"), "# mine\n[loop]\nmax_retries = 7 # few\n");
    // What counts more is named.
    scratch.write(".ralph/config", "# all\nAGENT_TYPE=claude # ours\n");
    let run = set("agent.provider codex");
    assert_eq!(run.stdout, "AGENT_TYPE is set in .ralph/config\n", "{run:?}");
    assert_eq!(scratch.read(".ralph/config"), "# all\nAGENT_TYPE=codex # ours\n");
    let run = scratch.run("config set --user agent.provider gemini");
    assert!(run.code == Some(0) && run.stderr.contains(".ralph/config line 2 counts more"), "{run:?}");
    let config = scratch.read(".ralph/config");
    for (args, said) in [
        ("loop.max_retrys 5", "unknown setting `loop.max_retrys`; did you mean `loop.max_retries`?"),
        ("loop.max_retries many", "`many` is not a whole number of 0 or more"),
        ("loop.timeout", "no value for loop.timeout"),
        ("", "no setting named"),
        ("loop.timeout 5 m", "a setting and its value in one word"),
    ] {
        let run = set(args);
        assert!(run.code == Some(1) && run.stderr.contains(said), "{args}: {run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{args}: {run:?}");
    }
    assert_eq!(scratch.read(".ralph/config"), config);
}

#[test]
fn a_starter_has_the_agent_of_the_config() {
    let scratch = Scratch::new();
    scratch.write(".ralph/config", "AGENT_TYPE=codex\n");
    scratch.run("init RALPH.md");
    assert!(scratch.read("RALPH.md").contains("\nagent: codex exec "), "{}", scratch.read("RALPH.md"));
    scratch.write(".ralph/config", "AGENT_TYPE=custom\nAGENT_CLI=my-agent\nAGENT_ARGS='-x -'\n");
    scratch.run("init other/RALPH.md");
    assert!(scratch.read("other/RALPH.md").contains("\nagent: my-agent -x -\n"));
}

#[test]
fn names_that_are_not_known_get_the_nearest_one() {
    let scratch = Scratch::new();
    scratch.write("specs/a.md", "x");
    for (args, said) in [
        (
            "stauts",
            "unrecognized subcommand 'stauts'; a similar subcommand exists: 'status'; see 'ralph --help'",
        ),
        ("build --agent cluade", "did you mean 'claude'? set AGENT_TYPE"),
        ("init --agent cluade", "did you mean 'claude'? use one of"),
        ("build --yolo", "unexpected argument '--yolo' found; see 'ralph build --help'"),
    ] {
        let run = scratch.run(args);
        assert!(run.code == Some(1) && run.stderr.contains(said), "{args}: {run:?}");
    }
}

#[test]
fn a_mistake_in_a_file_is_one_line_with_its_place_and_what_belongs_there() {
    let scratch = Scratch::new();
    for (file, text, args, said) in [
        (
            "fix/RALPH.md",
            "---\nagent: @claude\n---\nDo it.\n",
            "run fix",
            "fix/RALPH.md line 2, column 8: a value that begins with @",
        ),
        (
            "fix/RALPH.md",
            "---\nagent: x\ncommands: ls\n---\nDo it.\n",
            "run fix",
            "line 3, column 11: 'commands' is 'ls': there belongs a list",
        ),
        (
            "ralph.toml",
            "[agent]\nprovider = codex\n",
            "config",
            "ralph.toml line 2, column 12: `agent.provider` is codex without quotes; write provider = \"codex\"",
        ),
        (
            "prd.json",
            "{\"userStories\": {}}",
            "task import prd.json",
            "prd.json: line 1, column 16: no prd.json: 'userStories' is an object: there belongs a list",
        ),
    ] {
        scratch.write(file, text);
        let run = scratch.run(args);
        let error = run.stderr.trim_end();
        assert!(run.code == Some(1) && error.starts_with("error: "), "{file}: {run:?}");
        assert!(error.contains(said) && !error.contains('\n'), "{file}: {error}");
        std::fs::remove_file(scratch.path(file)).unwrap();
    }
}

#[test]
fn set_refuses_what_no_loop_could_use_by_the_name_that_was_typed() {
    let scratch = Scratch::new();
    let set = |name: &str, value: &str| Scratch::finish(scratch.ralph("config set").args([name, value]));
    for value in [":::", ":opus", "claude:opus:high:low", "claude, ,codex", ","] {
        let run = set("agents", value);
        assert!(run.code == Some(1) && run.stderr.contains('`'), "{value}: {run:?}");
    }
    for (name, value, words) in [
        ("AGENT_TYPE", "cluade", "AGENT_TYPE: there is no agent 'cluade': did you mean 'claude'? they are "),
        ("agent.provider", "codx", "agent.provider: there is no agent 'codx': did you mean 'codex'?"),
        ("agents", "claude, codx:opus", "agents: there is no agent 'codx:opus': did you mean 'codex'?"),
        ("verify.agent", "cluade", "verify.agent: there is no agent 'cluade': did you mean 'claude'?"),
        ("agents", "claude, acp:", "agent 'acp:' lacks its command"),
        ("AGENTS", "claude, my 'agent", "AGENTS has a quote that is not closed"),
        ("MAX_RETRIES", "many", "MAX_RETRIES: `many` is not a whole number"),
        ("loop.max_retries", "many", "loop.max_retries: `many` is not a whole number"),
        ("RETRY_BACKOFF", "1,2", "RETRY_BACKOFF: `1,2` has commas; write blanks between the pauses: `1 2`"),
    ] {
        let run = set(name, value);
        assert_eq!(run.code, Some(1), "{name}: {run:?}");
        assert!(run.stderr.starts_with(&format!("error: {words}")), "{name}: {run:?}");
    }
    assert!(!scratch.path("ralph.toml").exists());
    scratch.agent("my-agent", "exit 0");
    scratch.write(
        "ralph.toml",
        "[[account]]\nname = 'night'\nagent = 'claude'\nenv = { CLAUDE_CONFIG_DIR = '~/n' }\n",
    );
    let run = set("agents", "claude, nihgt");
    assert!(run.code == Some(1) && run.stderr.contains("did you mean 'night'?"), "{run:?}");
    for (value, warned) in [
        ("night:opus, my-agent -p, script, acp", ""),
        ("claude, acp:none-such acp", "none-such is not on PATH"),
    ] {
        let run = set("agents", value);
        assert!(run.code == Some(0) && run.stderr.contains(warned), "{run:?}");
        assert_eq!(run.stderr.contains("PATH"), !warned.is_empty(), "{run:?}");
    }
    std::fs::remove_file(scratch.path("ralph.toml")).unwrap();
    for (name, value) in [
        ("AGENT_TYPE", "my-agent -p"),
        ("AGENT_TYPE", "codex"),
        ("MAX_RETRIES", "by verb (3, run 0, spawn 0, loop 0)"),
        ("AGENT_USAGE_CMD", "one\ntwo"),
        ("AGENT_USAGE_CMD", "three"),
    ] {
        for file in [".ralph/config", "ralph.toml"] {
            if file == ".ralph/config" {
                scratch.write(file, scratch.read_if_there(file));
            } else {
                let _ = std::fs::remove_file(scratch.path(".ralph/config"));
            }
            let run = set(name, value);
            assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{file}: {name}: {run:?}");
        }
    }
}

#[test]
fn a_model_that_is_nearly_a_known_one_is_warned_of() {
    let scratch = Scratch::new();
    scratch.agent("claude", "cat > /dev/null; say hello; result");
    let words = "--model: 'sonet' may be no model of claude: did you mean 'sonnet'?";
    assert!(scratch.run("prompt p.md 1 --model sonet").stderr.contains(words));
    for good in ["sonnet", "claude-sonnet-5"] {
        assert!(!scratch.run(&format!("prompt p.md 1 --model {good}")).stderr.contains("may be no model"));
    }
}

#[test]
fn what_is_not_there_is_refused_with_the_nearest_name() {
    let scratch = Scratch::new();
    scratch.agent("claude", "cat > /dev/null; say hello; result");
    scratch.write("IMPLEMENTATION_PLAN.md", "## Branch: feature/other\nGoal: g\n- [ ] t\n");
    scratch.write("greet/RALPH.md", "---\nagent: claude\n---\nDo it.\n");
    scratch.git(&["commit", "--quiet", "--allow-empty", "--message", "first"]);
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    for (typed, words) in [
        ("loop build feature/othr", "has no branch 'feature/othr': did you mean 'feature/other'?"),
        (
            "status pormpt",
            "no loop is called 'pormpt', here or elsewhere on this machine: did you mean 'prompt'?",
        ),
        ("logs promtp", "did you mean 'prompt'?"),
        ("report prompd", "no run and no loop is called 'prompd': did you mean 'prompt'?"),
        ("run gret", "no worker: did you mean 'greet'?"),
        ("run greet/RALHP.md", "RALHP.md not found; did you mean 'RALPH.md'?"),
        ("prompt pp.md", "pp.md not found; did you mean 'p.md'?"),
        ("run greet 3", "as a limit of iterations it is '-n 3'"),
    ] {
        let run = scratch.run(typed);
        assert!(run.code == Some(1) && run.stderr.contains(words), "{typed}: {run:?}");
    }
}
