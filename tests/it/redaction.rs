//! Values of secret variables reach the agent, but not ralph's records and output.

use std::fs;
use std::process::Command;

use crate::branch_project::{BranchProject, plan};
use crate::run_tasks;
use crate::scratch::{
    CLAUDE_RESULT, Run, Scratch, agent_on_screen, agent_over_acp, claude_says, claude_text, finish,
};
use crate::workers::Tmux;

/// Of the environment, known by its name.
const TOKEN: &str = "canary-of-the-token-1";
/// Every writer encodes it differently.
const ODD: &str = "p\"a\\ss/wörd<42>";
/// Recognised by its form alone.
const LOOKS: &str = "ghp_Canary0Canary1Canary2Canary3";
/// Exported by the config.
const EXPORTED: &str = "canary-of-the-config-1";
/// In a `.env` file.
const FILED: &str = "canary-of-the-file-1";
/// Named by the user.
const NAMED: &str = "canaryinaword";

const ALL: [&str; 6] = [TOKEN, ODD, LOOKS, EXPORTED, FILED, NAMED];

/// An agent's own way to print a value in the pieces of single bytes.
const BYTE_BY_BYTE: &str = r#"
slowly() { local LC_ALL=C text=$1 at; for ((at = 0; at < ${#text}; at++)); do printf %s "${text:at:1}"; done; }
"#;

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write(
        ".ralph/config",
        format!("export CONFIG_TOKEN={EXPORTED}\nREDACT_NAMES=NAMED\nREDACT_ENV_FILES=.env\n"),
    );
    scratch.write(".env", format!("# theirs\nFILE_SECRET='{FILED}'\nPLAIN=value\n"));
    scratch.write("p.md", format!("Do it with {}, then say <promise>COMPLETE</promise>.\n", ALL.join(" ")));
    scratch
}

fn with_secrets(command: &mut Command) -> &mut Command {
    command.env("MY_TOKEN", TOKEN).env("ODD_PASSWORD", ODD).env("LOOKS", LOOKS).env("NAMED", NAMED)
}

fn run(scratch: &Scratch, args: &str) -> Run {
    Scratch::finish(with_secrets(&mut scratch.ralph(args)))
}

/// JSON forms of a value.
fn forms(value: &str) -> [String; 3] {
    let json = serde_json::to_string(value).unwrap();
    let json = json.trim_matches('"').to_owned();
    [value.to_owned(), json.replace('/', "\\/").replace('ö', "\\u00f6"), json]
}

#[track_caller]
fn assert_silent(what: &str, text: &str) {
    for form in ALL.iter().flat_map(|value| forms(value)) {
        assert!(!text.contains(&form), "{what} tells {form}: {text}");
    }
}

/// Neither ralph's files nor its output contain a value.
#[track_caller]
fn assert_none_is_kept(scratch: &Scratch, run: &Run) {
    assert_silent("stdout", &run.stdout);
    assert_silent("stderr", &run.stderr);
    let state = scratch.home().join("state");
    let mut folders = vec![scratch.path(".ralph"), state];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path != scratch.path(".ralph/config")
                && let Ok(bytes) = fs::read(&path)
            {
                files += 1;
                assert_silent(&path.display().to_string(), &String::from_utf8_lossy(&bytes));
            }
        }
    }
    assert!(files > 5, "only {files} files were found");
}

/// An agent that tells all values on both of its pipes, in a tool's output, and in what it says.
fn chatty() -> String {
    let all = ALL.join(" and ");
    let tool = serde_json::json!({ "type": "user", "message": { "content": [
        { "type": "tool_result", "tool_use_id": "t", "content": serde_json::json!({ "env": all }).to_string() },
    ] } });
    let call = serde_json::json!({ "type": "assistant", "message": { "model": "m", "content": [
        { "type": "tool_use", "id": "t", "name": "Bash", "input": { "command": format!("curl -H '{all}'") } },
    ] } });
    let said = claude_text(&format!("I saw {all}."));
    // As PHP and Python write it.
    let other = said.replace('/', "\\/").replace('ö', "\\u00f6");
    let lines = [call.to_string(), tool.to_string(), said, other];
    let cat = lines.map(|line| format!("read -r line <<'LINE'\n{line}\nLINE\nslowly \"$line\"; echo"));
    format!(
        "{BYTE_BY_BYTE}\ncat > \"$HOME/prompt\"\nenv > \"$HOME/env\"\n\
         slowly \"$MY_TOKEN $ODD_PASSWORD\" >&2; echo \"$LOOKS $CONFIG_TOKEN $NAMED {FILED}\" >&2\n{}\n",
        cat.join("\n").replace("read -r line", "IFS= read -r line")
    )
}

#[test]
fn the_agent_has_them_and_nothing_that_is_kept_or_shown() {
    let scratch = scratch();
    let claim = claude_text("<promise>COMPLETE</promise>");
    scratch.agent("claude", &format!("{}\ncat <<'LINE'\n{claim}\n{CLAUDE_RESULT}\nLINE", chatty()));
    for args in ["prompt p.md 1", "prompt p.md 1 --json", "prompt p.md 1 --quiet"] {
        let run = run(&scratch, args);
        assert_eq!(run.code, Some(0), "a claim is a claim, and the cost is read: {run:?}");
        assert_none_is_kept(&scratch, &run);
        let shown = run.stdout.clone() + &run.stderr;
        let told = [&shown, &scratch.session_log(), &scratch.read(".ralph/last_agent_output")];
        let told = if args.ends_with("quiet") { &told[1..] } else { &told[..] };
        for text in told {
            for name in ["MY_TOKEN", "ODD_PASSWORD", "LOOKS", "CONFIG_TOKEN", "FILE_SECRET", "NAMED"] {
                assert!(text.contains(&format!("[redacted:{name}]")), "{name}: {text}");
            }
        }
        for line in scratch.read(".ralph/last_agent_output").lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        }
        assert_eq!(scratch.state()["cost_usd"].as_float(), Some(0.01), "{:?}", scratch.state());
    }
    let prompt = fs::read_to_string(scratch.home().join("prompt")).unwrap();
    assert_eq!(prompt, scratch.read("p.md"));
    let env = fs::read_to_string(scratch.home().join("env")).unwrap();
    for (name, value) in
        [("MY_TOKEN", TOKEN), ("ODD_PASSWORD", ODD), ("CONFIG_TOKEN", EXPORTED), ("NAMED", NAMED)]
    {
        assert!(env.contains(&format!("{name}={value}\n")), "{env}");
    }
    for args in ["status", "status --json", "report", "history --json", "logs"] {
        assert_none_is_kept(&scratch, &run(&scratch, args));
    }
}

#[test]
fn nor_have_failures_validations_notes_and_command_lines() {
    let scratch = scratch();
    let all = serde_json::to_string(&ALL.join(" and ")).unwrap();
    let error = format!(r#"{{"type":"result","subtype":"success","is_error":true,"result":{all}}}"#);
    scratch.agent("claude", &format!("cat > \"$HOME/prompt\"\ncat <<'LINE'\n{error}\nLINE\nexit 1"));
    let failed = run(&scratch, "prompt p.md 1 --max-retries 1");
    assert_eq!(failed.code, Some(4), "{failed:?}");
    assert!(
        failed.stderr.contains("[redacted:MY_TOKEN]") || failed.stdout.contains("[redacted:MY_TOKEN]"),
        "{failed:?}"
    );
    assert_none_is_kept(&scratch, &failed);

    scratch.agent("claude", &format!("cat >> \"$HOME/prompts\"\n{}", claude_says("done")));
    let mut command = scratch.ralph("prompt p.md 2");
    command.args(["--validate", "echo \"not with $ODD_PASSWORD\" $MY_TOKEN; false"]);
    // A value on our own command line.
    command.args(["--done-pattern", "never", "--agent", &format!("claude --header {TOKEN}")]);
    let unproven = Scratch::finish(with_secrets(&mut command));
    assert_eq!(unproven.code, Some(4), "{unproven:?}");
    assert_none_is_kept(&scratch, &unproven);
    assert!(scratch.session_log().contains("not with [redacted:ODD_PASSWORD] [redacted:MY_TOKEN]"));
    let events = scratch.events();
    assert!(events.contains("--header [redacted:MY_TOKEN]"), "{events}");
    // The agent gets the failure unchanged.
    let prompts = fs::read_to_string(scratch.home().join("prompts")).unwrap();
    assert!(prompts.contains(&format!("not with {ODD} {TOKEN}")), "{prompts}");
}

#[test]
fn resume_puts_back_what_the_command_line_held() {
    let scratch = scratch();
    scratch.agent(
        "claude",
        "echo \"$@\" >> \"$HOME/args\"\nkill -9 $RALPH_PID 2> /dev/null; kill -9 $(ps -o ppid= -p $PPID)",
    );
    let mut command = scratch.ralph("prompt p.md 1");
    command.args(["--agent", &format!("claude --header {TOKEN}")]);
    let killed = Scratch::finish(with_secrets(&mut command));
    assert_eq!(killed.code, None, "{killed:?}");
    assert_none_is_kept(&scratch, &killed);
    scratch.agent(
        "claude",
        &format!("echo \"$@\" >> \"$HOME/args\"\n{}", claude_says("<promise>COMPLETE</promise>")),
    );
    let lost = scratch.run("resume");
    assert_eq!(lost.code, Some(1), "{lost:?}");
    assert!(lost.stderr.contains("stands for a secret that is not in the environment any more"), "{lost:?}");
    let resumed = run(&scratch, "resume");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_none_is_kept(&scratch, &resumed);
    let args = fs::read_to_string(scratch.home().join("args")).unwrap();
    assert_eq!(args.matches(&format!("--header {TOKEN}")).count(), 2, "{args}");
    // With the mark unchanged, the agent would get the mark.
    let ended = run(&scratch, "resume");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("--header [redacted:"), "{ended:?}");
    assert!(ended.stderr.trim_end().ends_with("', and the secrets in the place of their marks"), "{ended:?}");
}

#[test]
fn who_wants_to_see_them_sees_them() {
    let scratch = scratch();
    scratch.agent("claude", &chatty());
    let mut command = scratch.ralph("prompt p.md 1 --max-retries 0");
    let seen = Scratch::finish(with_secrets(&mut command).env("RALPH_REDACT", "false"));
    assert!(seen.stderr.contains(TOKEN) && scratch.session_log().contains(LOOKS), "{seen:?}");
    for kept in ["runs", "logs"] {
        fs::remove_dir_all(scratch.path(".ralph").join(kept)).unwrap();
    }
    // A missing or incomplete file is reported; the readable part applies.
    scratch.write(".env", format!("FILE_SECRET={FILED}\nthis is no variable\n"));
    let odd = run(&scratch, "prompt p.md 1 --max-retries 0");
    assert!(odd.stderr.contains("redact.env_files: .env has 1 line that cannot be read"), "{odd:?}");
    assert_none_is_kept(&scratch, &odd);
    fs::remove_file(scratch.path(".env")).unwrap();
    let none = run(&scratch, "prompt p.md 1 --max-retries 0");
    assert!(none.stderr.contains("redact.env_files: .env cannot be read"), "{none:?}");
}

#[test]
fn over_acp_the_agent_gets_what_it_asks_for_and_the_records_do_not() {
    let scratch = scratch();
    let root = scratch.root().canonicalize().unwrap();
    scratch.write("mine.txt", format!("{TOKEN} {ODD}\n"));
    for play in [
        format!("write {}/theirs.txt {TOKEN} {LOOKS}", root.display()),
        format!("read {}/mine.txt", root.display()),
        format!("terminal echo {TOKEN} {LOOKS}"),
        "terminal cat mine.txt".to_owned(),
        "terminal printenv MY_TOKEN".to_owned(),
        format!("terminal no-such-{TOKEN}"),
    ] {
        let mut command = scratch.ralph("prompt p.md 1 --max-retries 0");
        command.arg("--agent").arg(agent_over_acp());
        let run = Scratch::finish(with_secrets(command.env("RALPH_SCRIPT_PLAY", &play)));
        assert_none_is_kept(&scratch, &run);
        let told = format!("{}{}{}", run.stdout, run.stderr, scratch.session_log());
        assert!(told.contains("[redacted:MY_TOKEN]"), "{play}: {told}");
    }
    assert_eq!(scratch.read("theirs.txt"), format!("{TOKEN} {LOOKS}\n"));
}

#[test]
fn a_worker_shows_them_on_its_own_screen_alone() {
    let tmux = Tmux::new();
    let mut command =
        tmux.worker(&format!("say {TOKEN} and more"), "--max-iterations 1 --inactivity-timeout 2s");
    let run = finish(with_secrets(command.stdout(std::process::Stdio::piped())).spawn().unwrap());
    assert_none_is_kept(&tmux.scratch, &run);
    let seen = fs::read_to_string(tmux.folder().join("last_agent_output")).unwrap();
    assert!(seen.contains("[redacted:MY_TOKEN] and more"), "{seen}");
}

#[test]
fn nor_have_the_records_of_branches() {
    let project = BranchProject::new(&plan(&[("one", 1), ("two", 1)]));
    let scratch = &project.scratch;
    let agent = scratch.outside().join("bin/claude");
    let body = fs::read_to_string(&agent).unwrap();
    let body = body.replacen(
        "note\n",
        &format!("note\necho \"$MY_TOKEN $ODD_PASSWORD\" >&2\n{}\n", "say \"I have $MY_TOKEN.\""),
        1,
    );
    crate::scratch::executable(&agent, &body);
    // git says what it could not push to.
    scratch.git(&["remote", "set-url", "origin", &format!("https://me:{TOKEN}@127.0.0.1:9/x.git")]);
    let run = run(scratch, "loop build --verbose");
    assert_none_is_kept(scratch, &run);
    let told = format!("{}{}", run.stdout, run.stderr);
    assert!(told.contains("[redacted:MY_TOKEN]"), "{told}");
}

#[test]
fn nor_has_a_pull_request_what_an_agent_wrote_into_the_plan() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    project.agent(
        "work; echo \"- [x] Call it with $MY_TOKEN and $ODD_PASSWORD\" >> IMPLEMENTATION_PLAN.md; end",
    );
    let run = run(&project.scratch, "loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    let opened = project.home("gh");
    assert_silent("the pull request", &opened);
    assert!(
        opened.contains("- [x] Call it with [redacted:MY_TOKEN] and [redacted:ODD_PASSWORD]\n"),
        "{opened}"
    );
}

#[test]
fn reports_tell_no_secret_of_a_commit_message() {
    let scratch = scratch();
    let commits = "echo more >> made; git add made; git commit -qm \"use $MY_TOKEN\"";
    let says = claude_says("<promise>COMPLETE</promise>");
    scratch.agent("claude", &format!("cat > /dev/null\n{commits}\n{says}"));
    assert_eq!(run(&scratch, "prompt p.md 1").code, Some(0));
    for args in ["report", "report --md", "report --json", "report --html -"] {
        let told = run(&scratch, args);
        assert_eq!(told.code, Some(0), "{told:?}");
        assert_silent(args, &told.stdout);
    }
    assert!(run(&scratch, "report --json").stdout.contains("\"subject\": \"use [redacted:MY_TOKEN]\""));
}

#[test]
fn nor_does_a_notice_that_fails_or_is_tried() {
    let scratch = scratch();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    let failing = format!("echo \"no: $MY_TOKEN {LOOKS}\" >&2; exit 3");
    let mut command = scratch.ralph("prompt p.md 1");
    let told = Scratch::finish(with_secrets(&mut command).env("RALPH_NOTIFY_COMMAND", &failing));
    assert!(told.stderr.contains("exit code 3: no: [redacted:MY_TOKEN]"), "{told:?}");
    assert_none_is_kept(&scratch, &told);
    for args in ["notify test", "notify test --json"] {
        let mut command = scratch.ralph(args);
        let tried = Scratch::finish(with_secrets(&mut command).env("RALPH_NOTIFY_COMMAND", &failing));
        assert!(tried.stdout.contains("exit code 3: no: [redacted:MY_TOKEN]"), "{tried:?}");
        assert_none_is_kept(&scratch, &tried);
    }
}

#[test]
fn nor_has_the_graph_what_agents_put_into_it() {
    let scratch = scratch();
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let words = "\"use $MY_TOKEN\"";
    let task = format!("id=$({ralph} task add {words} -d \"with $ODD_PASSWORD\")");
    let log = format!(
        "{ralph} task log \"$id\" -m \"saw $CONFIG_TOKEN\"; echo \"by $NAMED\" | {ralph} task add more -d -"
    );
    let says = claude_says("<promise>COMPLETE</promise>");
    scratch
        .agent("claude", &format!("cat > /dev/null\n{task}; {log}; {ralph} task list > ../listed\n{says}"));
    let told = run(&scratch, "prompt p.md 1");
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_none_is_kept(&scratch, &told);
    let listed = fs::read_to_string(scratch.outside().join("listed")).unwrap();
    assert!(listed.contains("use [redacted:MY_TOKEN]"), "{listed}");
    // Without any readable settings, variables of the environment are redacted.
    scratch.write(".ralph/config", "no config\n");
    let added = Scratch::finish(with_secrets(&mut scratch.ralph("task add")).arg(format!("of {TOKEN}")));
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_none_is_kept(&scratch, &run(&scratch, "task export"));
}

#[test]
fn nor_do_settings_into_which_one_was_expanded() {
    let scratch = scratch();
    let settings =
        format!("export CONFIG_TOKEN={EXPORTED}\nAGENT_ARGS=\"--key $CONFIG_TOKEN --mine $MY_TOKEN\"\n");
    let hooks = "NOTIFY_COMMAND=\"curl -H '$MY_TOKEN'\"\n";
    scratch.write(".ralph/config", format!("{settings}{hooks}REDACT_NAMES=NAMED\n"));
    for args in ["config", "config --json", "trust"] {
        let shown = run(&scratch, args);
        assert!(shown.stdout.contains("[redacted:MY_TOKEN]"), "{shown:?}");
        assert_silent(args, &format!("{}{}", shown.stdout, shown.stderr));
    }
}

#[test]
fn nor_has_the_state_of_a_worker_and_it_goes_on_with_them() {
    const GIVEN: &str = "canary-that-was-given-1";
    let tmux = Tmux::new();
    let agent = agent_on_screen().join(" ");
    tmux.scratch.write("agent.sh", format!("echo \"$@ $API_KEY\" >> \"$HOME/args\"; exec {agent}\n"));
    let mut command =
        tmux.ralph("spawn --name w --prompt-file prompt.md -n 2 --no-run --ready-pattern . --env");
    command.arg(format!("API_KEY={GIVEN}")).args(["--", "sh", "agent.sh", "--header", TOKEN]);
    let plays = "keep first; exit 0,keep second; exit 0";
    command.env("RALPH_SCRIPT_PLAY", plays);
    let spawned = finish(with_secrets(&mut command).spawn().unwrap());
    assert_eq!(spawned.code, Some(0), "{spawned:?}");
    let silent = |run: &Run| {
        assert_none_is_kept(&tmux.scratch, run);
        let state = fs::read_to_string(tmux.folder().join("state.json")).unwrap();
        assert!(state.contains("[redacted:API_KEY]") && !state.contains(GIVEN), "{state}");
    };
    silent(&spawned);
    silent(&run(&tmux.scratch, "status w --json"));
    let lost = finish(tmux.ralph("run w").spawn().unwrap());
    assert!(lost.code == Some(1) && lost.stderr.contains("stands for a secret"), "{lost:?}");
    let mut command = tmux.ralph("run w");
    let run = finish(
        with_secrets(&mut command).env("API_KEY", GIVEN).env("RALPH_SCRIPT_PLAY", plays).spawn().unwrap(),
    );
    assert_eq!(run.code, Some(0), "{run:?}");
    silent(&run);
    let args = fs::read_to_string(tmux.scratch.home().join("args")).unwrap();
    let whole = format!("--header {TOKEN} {GIVEN}\n");
    assert!(!args.is_empty() && args == whole.repeat(args.lines().count()), "{args}");
}

#[test]
fn a_file_that_an_agent_names_after_a_secret_is_kept_without_it() {
    let scratch = run_tasks::tasks(
        "if [ $verifies = 1 ]; then pass; else touch \"x-$API_TOKEN\"; git add .; git commit -qm x; done_; fi",
    );
    run_tasks::add(&scratch, "task");
    let ended = Scratch::finish(scratch.ralph("run --all").env("API_TOKEN", TOKEN));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let journal = scratch.run("journal").stdout + &scratch.run("journal --json").stdout;
    assert!(journal.contains("x-[redacted:API_TOKEN]") && !journal.contains(TOKEN), "{journal}");
    let found = Command::new("grep").args(["-rlaF", TOKEN]).arg(scratch.path(".ralph")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

#[test]
fn neither_has_the_reason_why_nobody_could_verify_a_task() {
    let scratch = run_tasks::tasks(
        "if [ $verifies = 1 ]; then touch \"left-$API_TOKEN.txt\"; pass; else work; done_; fi",
    );
    let id = run_tasks::add(&scratch, "task");
    let ended = Scratch::finish(scratch.ralph("run --all --max-iterations 2").env("API_TOKEN", TOKEN));
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let shown = scratch.run("journal").stdout + &scratch.run(&format!("task show {id}")).stdout;
    assert!(shown.contains("left-[redacted:API_TOKEN].txt") && !shown.contains(TOKEN), "{shown}");
}

#[test]
fn a_value_is_known_as_others_read_it_and_write_it() {
    let scratch = Scratch::new();
    scratch.write("ralph.toml", "[redact]\nenv_files = ['.env']\n");
    let filed = "A_TOKEN=\"abcV4lue\\tWith9xx\"\nD_TOKEN=\"has$tuff9V4lueKK\"\nE_TOKEN=un$quoted9V4lue\n";
    scratch.write(".env", filed);
    let given = [
        ("X_PASSWORD", "correct horse 9 battery  staple"),
        ("S_SECRET", "it's4Gq'Zm8Lw2XnRt"),
        ("DB_URL", "postgres://u:Qw%40er%2FTy7Zx9@h/x"),
    ];
    let all = [
        "abcV4lue\tWith9xx",
        "abcV4lue\\tWith9xx",
        "has$tuff9V4lueKK",
        "un$quoted9V4lue",
        given[0].1,
        given[1].1,
        "Qw@er/Ty7Zx9",
    ];
    let input = serde_json::json!({ "command": all.join(" | ") });
    let calls = all.iter().map(|value| {
        let call = serde_json::json!({ "type": "tool_use", "id": "t", "name": value, "input": input });
        serde_json::json!({ "type": "assistant", "message": { "model": "m", "content": [call] } }).to_string()
    });
    let numbers: Vec<String> = given[1].1.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    let by_number = claude_text("I saw it, then NUMBERS.").replace("NUMBERS", &numbers.concat());
    let lines = calls.collect::<Vec<_>>().join("\n");
    scratch.agent(
        "claude",
        &format!("cat > /dev/null; cat <<'LINES'\n{lines}\n{by_number}\nLINES\n(set -x; : \"$S_SECRET\"); say x; result"),
    );
    let ended = Scratch::finish(scratch.ralph("prompt p.md 1").envs(given));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let page = Scratch::finish(scratch.ralph("report --html -").envs(given)).stdout;
    let shown = [&*ended.stdout, &ended.stderr, &page].concat();
    for part in ["V4lue", "horse 9", "Zm8L", "Ty7Zx9", "u005a"] {
        assert!(!shown.contains(part), "{part}: {ended:?}");
        let found = Command::new("grep").args(["-rlaF", part]).arg(scratch.path(".ralph")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{part}");
    }
    for name in ["A_TOKEN", "D_TOKEN", "E_TOKEN", "X_PASSWORD", "S_SECRET", "DB_URL"] {
        assert!(shown.contains(&format!("[redacted:{name}]")), "{name}: {ended:?}");
    }
}

#[test]
fn knowledge_that_an_agent_names_after_a_secret_is_shown_without_it() {
    let scratch = Scratch::new();
    scratch.write(
        &format!(".ralph/knowledge/x-{TOKEN}.md"),
        format!("---\ntitle: it is {TOKEN}\n---\n{TOKEN}\n"),
    );
    for args in [
        "knowledge list".to_owned(),
        "knowledge list --json".to_owned(),
        "knowledge search it".to_owned(),
        "knowledge show x-canary-of-the-token".to_owned(),
    ] {
        let shown = Scratch::finish(scratch.ralph(&args).env("API_TOKEN", TOKEN));
        let shown = shown.stdout + &shown.stderr;
        assert!(shown.contains("x-[redacted:API_TOKEN]") && !shown.contains(TOKEN), "{args}: {shown}");
    }
    let shown = Scratch::finish(scratch.ralph(&format!("knowledge show x-{TOKEN}")).env("API_TOKEN", TOKEN));
    assert!(
        shown.stdout.starts_with("it is [redacted:API_TOKEN]") && !shown.stdout.contains(TOKEN),
        "{shown:?}"
    );
}
