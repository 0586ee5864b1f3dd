//! `ralph doctor` reports correctly about agents, commits and publishing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::scratch::{Run, Scratch, agent_over_acp, side_by_side};

/// The answers of claude, as bash: help, and the login status.
const CLAUDE: &str = r#"case "$*" in
  --version) echo '9.9.9 (Claude Code)';;
  --help) echo '  -p, --print  Print'; echo '  --dangerously-skip-permissions'; echo '  --output-format <format>'; echo '  --verbose';;
  'auth status') cat "$HOME/login"; exit "$(cat "$HOME/login-code")";;
  *) echo "unexpected: $*" >&2; exit 9;;
esac"#;

/// A healthy project with a claude that is logged in.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("claude", CLAUDE);
    login(&scratch, r#"{"loggedIn": true, "authMethod": "api_key"}"#, 0);
    scratch.write("specs/a.md", "x");
    scratch
}

fn login(scratch: &Scratch, says: &str, code: i32) {
    fs::write(scratch.outside().join("home/login"), says).unwrap();
    fs::write(scratch.outside().join("home/login-code"), code.to_string()).unwrap();
}

/// The doctor, independent of the user who runs the tests.
fn doctor(scratch: &Scratch, args: &str) -> Command {
    let mut command = scratch.ralph(&format!("doctor --json {args}"));
    command.env("IS_SANDBOX", "1");
    command
}

/// A finding as `status: detail → fix`; empty where there is none.
fn finding(run: &Run, check: &str) -> String {
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    let findings = report["findings"].as_array().unwrap();
    let fails = findings.iter().any(|finding| finding["status"] == "fail");
    assert_eq!((report["ok"].as_bool(), run.code), (Some(!fails), Some(i32::from(fails))), "{run:?}");
    let mut found = findings.iter().filter(|finding| finding["check"] == check);
    let said = found.next().map(|finding| {
        let fix = finding["fix"].as_str().map_or_else(String::new, |fix| format!(" → {fix}"));
        format!("{}: {}{fix}", finding["status"].as_str().unwrap(), finding["detail"].as_str().unwrap())
    });
    assert!(found.next().is_none(), "{check} twice: {run:?}");
    said.unwrap_or_default()
}

#[track_caller]
fn says(command: &mut Command, check: &str, words: &[&str]) {
    let said = finding(&Scratch::finish(command), check);
    assert!(said.starts_with(words[0]) && words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
}

#[test]
fn an_agent_that_cannot_be_is_a_failure_and_not_built_in() {
    let scratch = scratch();
    says(&mut doctor(&scratch, "--agent cluade"), "agent", &["fail: ", "cluade", "claude"]);
    says(&mut doctor(&scratch, "--agent gemini --effort low"), "agent", &["fail: ", "--effort", "gemini"]);
}

#[test]
fn root_is_told_where_an_agent_refuses_it() {
    let scratch = scratch();
    let is_root = rustix::process::geteuid().is_root();
    let without = |args: &str| {
        let mut command = doctor(&scratch, args);
        command.env_remove("IS_SANDBOX");
        command
    };
    if is_root {
        says(&mut without(""), "root", &["fail: ", "--dangerously-skip-permissions", "IS_SANDBOX=1"]);
        says(without("").env("IS_SANDBOX", "yes"), "root", &["fail: "]);
    } else {
        says(&mut without(""), "root", &["ok: an ordinary user"]);
    }
    says(&mut doctor(&scratch, ""), "root", &["ok: "]);
    says(without("").env("RALPH_AGENT_ARGS", "-p --output-format stream-json --verbose"), "root", &["ok: "]);
    scratch.agent("codex", "exit 1");
    assert_eq!(finding(&Scratch::finish(&mut without("--agent codex")), "root"), "", "codex does not mind");
}

#[test]
fn a_login_is_told_by_what_the_agent_says_of_it() {
    let scratch = scratch();
    says(&mut doctor(&scratch, ""), "login", &["ok: ", "claude auth status", "api_key"]);
    login(&scratch, r#"{"loggedIn": false, "authMethod": "none"}"#, 1);
    says(
        &mut doctor(&scratch, ""),
        "login",
        &["fail: ", "no user is logged in", "→ run 'claude' and log in"],
    );
    login(&scratch, "error: unknown command 'auth'", 1);
    says(&mut doctor(&scratch, ""), "login", &["warn: unknown", "claude auth status"]);

    let answers = |name: &str, call: &str, answer: &str| {
        scratch.agent(name, &format!("[ \"$*\" = '{call}' ] || exit 0\n{answer}"));
    };
    answers("codex", "login status", "echo 'Logged in using ChatGPT' >&2");
    says(&mut doctor(&scratch, "--agent codex"), "login", &["ok: ", "codex login status"]);
    answers("codex", "login status", "echo 'Not logged in' >&2; exit 1");
    says(&mut doctor(&scratch, "--agent codex"), "login", &["warn: ", "a key of its own", "codex login"]);

    answers("opencode", "auth list", "printf '\\e[0m\\n└  2 credentials\\n\\n└  1 environment variable\\n'");
    says(&mut doctor(&scratch, "--agent opencode"), "login", &["ok: ", "knows 3"]);
    answers("opencode", "auth list", "printf '\\e[0m\\n└  0 credentials\\n'");
    says(&mut doctor(&scratch, "--agent opencode"), "login", &["warn: ", "knows no credentials"]);
    answers("opencode", "auth list", "echo nothing");
    says(&mut doctor(&scratch, "--agent opencode"), "login", &["warn: unknown"]);
    says(&mut doctor(&scratch, "--agent opencode"), "agent", &["warn: "]);
}

#[test]
fn a_login_without_a_verb_is_judged_by_its_traces() {
    let scratch = scratch();
    let home = scratch.outside().join("home");
    for agent in ["gemini", "cline", "amp"] {
        scratch.agent(agent, "exit 0");
    }
    says(&mut doctor(&scratch, "--agent gemini"), "login", &["warn: unknown", "~/.gemini/settings.json"]);
    // A key alone does not choose a login method.
    says(doctor(&scratch, "--agent gemini").env("GEMINI_API_KEY", "k"), "login", &["warn: "]);
    fs::create_dir_all(home.join(".gemini")).unwrap();
    fs::write(
        home.join(".gemini/settings.json"),
        r#"{"security":{"auth":{"selectedType":"oauth-personal"}}}"#,
    )
    .unwrap();
    says(&mut doctor(&scratch, "--agent gemini"), "login", &["ok: judged by", "oauth-personal"]);
    // Nor does the method without the key.
    let by_key = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#;
    fs::write(home.join(".gemini/settings.json"), by_key).unwrap();
    says(&mut doctor(&scratch, "--agent gemini"), "login", &["fail: ", "GEMINI_API_KEY is not set"]);
    says(doctor(&scratch, "--agent gemini").env("GEMINI_API_KEY", "k"), "login", &["ok: ", "gemini-api-key"]);
    fs::write(home.join(".gemini/settings.json"), "no JSON").unwrap();
    says(&mut doctor(&scratch, "--agent gemini"), "login", &["warn: "]);

    says(&mut doctor(&scratch, "--agent cline"), "login", &["warn: ", "providers.json", "cline auth"]);
    let settings = home.join(".cline/data/settings");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("providers.json"), r#"{"lastUsedProvider":"openai"}"#).unwrap();
    says(&mut doctor(&scratch, "--agent cline"), "login", &["ok: judged by", "openai"]);

    scratch.agent("droid", "exit 0");
    says(&mut doctor(&scratch, "--agent droid"), "login", &["warn: ", "auth.v2.file", "FACTORY_API_KEY"]);
    fs::create_dir_all(home.join(".factory")).unwrap();
    fs::write(home.join(".factory/auth.v2.file"), "no JSON").unwrap();
    says(
        &mut doctor(&scratch, "--agent droid"),
        "login",
        &["ok: judged by", "~/.factory/auth.v2.file is there"],
    );

    says(&mut doctor(&scratch, "--agent amp"), "login", &["warn: ", "AMP_API_KEY"]);
    scratch.write(".ralph/config", "export AMP_API_KEY=k\n");
    says(&mut doctor(&scratch, "--agent amp"), "login", &["ok: ", "AMP_API_KEY is set"]);
    assert_eq!(finding(&Scratch::finish(&mut doctor(&scratch, "--agent script")), "login"), "");
}

#[test]
fn gemini_has_to_trust_the_folder() {
    let scratch = scratch();
    let (home, root) = (scratch.outside().join("home/.gemini"), scratch.root().canonicalize().unwrap());
    scratch.agent("gemini", "exit 0");
    fs::create_dir_all(&home).unwrap();
    says(&mut doctor(&scratch, "--agent gemini"), "trust", &["ok: --skip-trust"]);
    let gemini = || {
        let mut doctor = doctor(&scratch, "--agent gemini");
        doctor.env("RALPH_AGENT_ARGS", "--output-format stream-json --yolo");
        doctor
    };
    says(&mut gemini(), "trust", &["fail: ", "GEMINI_CLI_TRUST_WORKSPACE=true", "--skip-trust"]);
    says(gemini().env("GEMINI_CLI_TRUST_WORKSPACE", "1"), "trust", &["fail: "]);
    says(gemini().env("GEMINI_CLI_TRUST_WORKSPACE", "true"), "trust", &["ok: "]);
    says(gemini().env("RALPH_AGENT_EXTRA_ARGS", "--skip-trust"), "trust", &["ok: "]);
    let folders = |path: &str, trust: &str| {
        fs::write(home.join("trustedFolders.json"), format!("{{\"{path}\":\"{trust}\"}}")).unwrap();
    };
    let parent = root.parent().unwrap();
    folders(parent.to_str().unwrap(), "TRUST_FOLDER");
    says(&mut gemini(), "trust", &["ok: "]);
    folders(root.to_str().unwrap(), "DO_NOT_TRUST");
    says(&mut gemini(), "trust", &["fail: "]);
    fs::write(home.join("settings.json"), r#"{"security":{"folderTrust":{"enabled":false}}}"#).unwrap();
    says(&mut gemini(), "trust", &["ok: "]);
    assert_eq!(finding(&Scratch::finish(&mut doctor(&scratch, "")), "trust"), "", "claude asks for none");
}

#[test]
fn flags_have_to_be_in_the_agents_help() {
    let scratch = scratch();
    says(&mut doctor(&scratch, ""), "flags", &["ok: ", "--dangerously-skip-permissions", "-p"]);
    says(&mut doctor(&scratch, "--model M"), "flags", &["warn: not in its help: --model ", "update claude"]);
    let mut odd = doctor(&scratch, "");
    says(
        odd.env("RALPH_AGENT_ARGS", "-p --verbos --output-format=x"),
        "flags",
        &["warn: not in its help: --verbos →"],
    );
    scratch.agent("claude", "echo hello");
    says(&mut doctor(&scratch, ""), "flags", &["warn: unknown"]);
    scratch.agent(
        "codex",
        "[ \"$*\" = 'exec --help' ] && echo '--json --dangerously-bypass-approvals-and-sandbox'",
    );
    says(&mut doctor(&scratch, "--agent codex"), "flags", &["ok: "]);
}

#[test]
fn an_agent_over_acp_introduces_itself() {
    let scratch = scratch();
    let run = Scratch::finish(doctor(&scratch, "").args(["--agent", &agent_over_acp()]));
    let said = |check| finding(&run, check);
    assert!(said("agent").starts_with("ok: scripted-agent, script "), "{}", said("agent"));
    let session = said("session");
    assert!(session.starts_with("ok: opened in "), "{session}");
    assert!(session.ends_with("; works in its mode 'yolo', only looks in 'plan'"), "{session}");
    assert_eq!(said("models"), "ok: it offers no choice: --model cannot be used");
    let login = said("login");
    assert!(login.starts_with("warn: unknown: it opens a session without asking for one"), "{login}");
    let verifying = said("verifying");
    assert!(verifying.starts_with("ok: scripted-agent verifies tasks in its mode 'plan'"), "{verifying}");
    assert_eq!(said("flags"), "");
    scratch.assert_nothing_left();
}

#[test]
fn an_agent_over_acp_that_opens_no_session_says_why() {
    let ours = agent_over_acp();
    let cases = [
        (&*ours, "login", "", "login", ["fail", "Authentication required", "→ log in"]),
        (&ours, "login", "canary", "login", ["ok", "by its method 'openai'", "a key of the environment"]),
        (
            &ours,
            "mute session/new",
            "",
            "session",
            ["fail", "no session within 3s: 'session/new' was not answered", "→ run"],
        ),
        (&ours, "status none", "", "login", ["fail", "the agent says that no user is logged in", "→ log in"]),
        (&ours, "status account", "", "login", ["ok", "the agent says: account", ""]),
        (&ours, "modeless", "", "verifying", ["ok", "no mode in which it only looks", "does not count"]),
        ("acp:true", "", "", "session", ["fail", "it ended before it answered 'initialize'", "→ run"]),
        ("acp:sh -c 'echo no key >&2; exit 3'", "", "", "session", ["fail", "'initialize': no key", "→ run"]),
        // It prints for ever, and not the protocol.
        (
            "acp:yes",
            "",
            "",
            "session",
            ["fail", "no session within 3s: 'initialize' was not answered", "→ run"],
        ),
    ];
    side_by_side(&cases, |(agent, play, key, check, words)| {
        let scratch = scratch();
        let mut command = doctor(&scratch, "");
        command.args(["--agent", agent]);
        if words.iter().any(|words| words.contains("within 3s")) {
            command.args(["--timeout", "3s"]);
        }
        says(command.env("RALPH_SCRIPT_PLAY", play).env("CODEX_API_KEY", key), check, words);
        scratch.assert_nothing_left();
    });
}

#[test]
fn the_version_is_reported_where_a_login_is_missing() {
    let scratch = scratch();
    let mut command = doctor(&scratch, "");
    command.args(["--agent", &agent_over_acp()]).env("RALPH_SCRIPT_PLAY", "login").env("CODEX_API_KEY", "");
    let run = Scratch::finish(&mut command);
    assert!(finding(&run, "login").starts_with("fail: "), "{run:?}");
    assert!(finding(&run, "agent").starts_with("ok: scripted-agent, script "), "{run:?}");
    assert!(finding(&run, "disk").contains("B free") && !finding(&run, "disk").contains("MiB"), "{run:?}");
}

#[test]
fn an_agent_that_does_not_answer_does_not_block() {
    let scratch = scratch();
    scratch.agent("claude", "[ \"$*\" = 'auth status' ] && exec sleep 600\nexit 0");
    let run = Scratch::finish(doctor(&scratch, "").args(["--timeout", "3s"]));
    let said = finding(&run, "login");
    assert!(said.starts_with("warn: unknown") && said.contains("no answer within 3s"), "{said}");
    assert!(run.elapsed < Duration::from_secs(40), "{run:?}");
}

/// Each question would take as long.
#[test]
fn an_agent_that_does_not_tell_its_version_is_asked_nothing_else() {
    let scratch = scratch();
    scratch.agent("claude", "exec sleep 600");
    let run = Scratch::finish(doctor(&scratch, "").args(["--timeout", "3s"]));
    let said = finding(&run, "agent");
    assert!(said.starts_with("warn: ") && said.contains("no version (no answer within 3s)"), "{said}");
    assert_eq!((finding(&run, "flags"), finding(&run, "login")), (String::new(), String::new()));
    assert!(run.elapsed < Duration::from_secs(20), "{run:?}");
}

#[test]
fn who_commits_and_whether_that_can_be_signed() {
    let scratch = scratch();
    says(&mut doctor(&scratch, ""), "identity", &["ok: Test <test@example.com>"]);
    scratch.git(&["config", "user.useConfigOnly", "true"]);
    let mut nobody = doctor(&scratch, "");
    for who in ["AUTHOR", "COMMITTER"] {
        nobody.env_remove(format!("GIT_{who}_NAME")).env_remove(format!("GIT_{who}_EMAIL"));
    }
    says(&mut nobody, "identity", &["warn: ", "user.name"]);

    says(&mut doctor(&scratch, ""), "signing", &["ok: commits are not signed"]);
    let key = |name: &str, passphrase: &str| {
        let path = scratch.outside().join(name);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", passphrase, "-f"])
            .arg(&path)
            .status()
            .unwrap();
        assert!(made.success());
        path.to_str().unwrap().to_owned()
    };
    let objects = || scratch.git(&["count-objects"]);
    let before = objects();
    for (name, value) in [("gpg.format", "ssh"), ("commit.gpgSign", "yes")] {
        scratch.git(&["config", name, value]);
    }
    scratch.git(&["config", "user.signingKey", &key("open", "")]);
    says(&mut doctor(&scratch, ""), "signing", &["ok: a trial signature"]);
    let locked = key("locked", "a passphrase");
    scratch.git(&["config", "user.signingKey", &locked]);
    says(&mut doctor(&scratch, ""), "signing", &["warn: commits cannot be signed", "unlock"]);
    // That of branches is tried, too.
    scratch.git(&["config", "commit.gpgSign", "false"]);
    says(doctor(&scratch, "").env("RALPH_GIT_WORKTREE_SIGNING_KEY", &locked), "signing", &["warn: "]);
    assert_eq!(objects(), before, "a doctor leaves no traces");
}

#[test]
fn no_program_of_the_project_is_started_to_sign() {
    let scratch = scratch();
    let signs = "#!/bin/sh\necho x >> ran\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho SIGNED\n";
    scratch.write("sign", signs);
    scratch.git(&["config", "commit.gpgSign", "yes"]);
    let program = scratch.path("sign");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let told = ["warn: ", "sign is part of the project, and not started"];
    for (format, name) in [("openpgp", "gpg.program"), ("ssh", "gpg.ssh.defaultKeyCommand")] {
        scratch.git(&["config", "gpg.format", format]);
        for value in ["./sign", program.to_str().unwrap()] {
            scratch.git(&["config", name, value]);
            says(&mut doctor(&scratch, ""), "signing", &told);
        }
        scratch.git(&["config", "--unset", name]);
    }
    assert!(!scratch.path("ran").exists());
    // A signing program outside of the project is run.
    let outside = scratch.outside().join("sign");
    fs::copy(&program, &outside).unwrap();
    for (name, value) in [("gpg.format", "openpgp"), ("gpg.program", outside.to_str().unwrap())] {
        scratch.git(&["config", name, value]);
    }
    says(&mut doctor(&scratch, ""), "signing", &["ok: a trial signature"]);
}

#[test]
fn remote_and_gh() {
    let scratch = scratch();
    // Without programs of the machine.
    let path = scratch.outside().join("path");
    fs::create_dir_all(&path).unwrap();
    for program in ["git", "bash", "env", "cat"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        std::os::unix::fs::symlink(found.trim(), path.join(program)).unwrap();
    }
    let path = format!("{}:{}", scratch.outside().join("bin").display(), path.display());
    let doctor = || {
        let mut command = doctor(&scratch, "");
        command.env("PATH", &path);
        command
    };
    says(&mut doctor(), "remote", &["warn: ", "git remote add"]);
    says(doctor().env("RALPH_GIT_AUTO_PUSH", "false"), "remote", &["ok: "]);
    scratch.git(&["remote", "add", "elsewhere", "/nowhere"]);
    says(&mut doctor(), "remote", &["ok: elsewhere"]);

    says(&mut doctor(), "gh", &["warn: not installed"]);
    says(doctor().env("RALPH_GIT_AUTO_PR", "false"), "gh", &["ok: not needed"]);
    scratch.agent(
        "gh",
        "[ \"$*\" = 'auth status' ] || exit 9; echo 'You are not logged into any GitHub hosts.' >&2; exit 1",
    );
    says(&mut doctor(), "gh", &["warn: not logged in: You are not logged", "gh auth login"]);
    scratch.agent("gh", "exit 0");
    says(&mut doctor(), "gh", &["ok: logged in"]);
}

#[test]
fn people_are_told_the_same() {
    let scratch = scratch();
    let run = Scratch::finish(scratch.ralph("doctor").env("IS_SANDBOX", "1"));
    assert_eq!(run.code, Some(0), "{run:?}");
    for line in ["✓ login ", "✓ flags ", "✓ identity ", "✓ signing ", "! remote ", "✓ disk "] {
        assert!(run.stdout.contains(line), "{line}: {run:?}");
    }
    login(&scratch, r#"{"loggedIn": false}"#, 1);
    let run = Scratch::finish(scratch.ralph("doctor").env("IS_SANDBOX", "1"));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("✗ login ") && run.stdout.contains("→ run 'claude'"), "{run:?}");
}

#[test]
fn the_agents_of_phases_and_of_the_list_are_checked_once_each() {
    let scratch = scratch();
    scratch.agent("gemini", "exit 0");
    let details = |run: &Run, check: &str| {
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().iter();
        let text = |finding: &Value| format!("{} → {}", finding["detail"], finding["fix"]);
        findings.filter(|finding| finding["check"] == check).map(text).collect::<Vec<_>>()
    };
    scratch.write(
        "ralph.toml",
        "agents = ['claude', 'gemini', 'claude:opus']\n[plan]\nagent = 'gemini'\nmodel = 'flash'\n\
         [build]\nmodel = 'sonnet'\n[verify]\nagent = 'codex'\n[review]\nagent = 'codx'\n",
    );
    let run = Scratch::finish(&mut doctor(&scratch, ""));
    let agents = details(&run, "agent");
    assert_eq!((run.code, agents.len()), (Some(1), 4), "{agents:?}");
    assert!(agents[1].contains("gemini: gemini, "), "{agents:?}");
    assert!(agents[2].contains("codex: codex: codex is not on PATH"), "{agents:?}");
    assert!(agents[2].contains("verify.agent in ") && agents[2].contains("ralph.toml line 8"), "{agents:?}");
    assert!(
        agents[3].contains("did you mean 'codex'?") && agents[3].contains("set review.agent in "),
        "{agents:?}"
    );
    for place in ["AGENT_CLI", "AGENT_TYPE", "--agent"] {
        assert!(!agents[1..].concat().contains(place), "{agents:?}");
    }
    // A loop says where that agent is named as well.
    assert_eq!(scratch.run("task add first").code, Some(0));
    let run = scratch.run("run --all");
    assert!(run.code == Some(1) && run.stderr.contains("or fix verify.agent in "), "{run:?}");
    // A check starts no command line of the project's choice.
    scratch.write("ralph.toml", "[verify]\nagent = 'acp:sh -c \"touch ran\"'\n");
    let run = Scratch::finish(&mut doctor(&scratch, ""));
    assert!(details(&run, "agent")[1].contains("not started, because the project says how"), "{run:?}");
    assert!(!scratch.path("ran").exists());
}
