use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::*;

struct Scratch {
    _guard: tempfile::TempDir,
    root: PathBuf,
    bin: PathBuf,
}

/// A repository beside a folder with the named programs, which stands for `PATH`.
fn scratch(programs: &[&str]) -> Scratch {
    let guard = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(guard.path()).unwrap();
    let (root, bin) = (dir.join("project"), dir.join("bin"));
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir(&bin).unwrap();
    let git = Command::new("git").args(["init", "--quiet"]).env_remove("GIT_DIR").current_dir(&root).status();
    assert!(git.unwrap().success());
    for name in programs {
        fs::write(bin.join(name), "").unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    Scratch { _guard: guard, root, bin }
}

impl Scratch {
    fn init(&self, agent: Option<&str>, force: bool) -> anyhow::Result<String> {
        let project = Project::locate(&self.root.join("sub"), &|_| None, None, None).unwrap();
        let options = InitOptions {
            agent: agent.map(str::to_owned),
            force,
            validates: false,
            specs_dir: "specs".into(),
            search_path: self.bin.clone().into(),
        };
        let mut out = Vec::new();
        run(&project, &options, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }

    /// The assignments of the config, comments aside.
    fn assignments(&self) -> Vec<String> {
        let config = self.read(".ralph/config");
        let mut lines: Vec<String> = config
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .map(str::to_owned)
            .collect();
        // Walls stand where they can, whatever else is found.
        assert_eq!(lines.pop().as_deref(), Some("SANDBOX=try"));
        lines
    }
}

#[test]
fn sets_up_a_project_from_a_subfolder() {
    let scratch = scratch(&["amp", "codex", "gemini"]);
    let said = scratch.init(None, false).unwrap();
    assert_eq!(scratch.assignments(), ["AGENT_TYPE=codex"]);
    assert_eq!(scratch.read(".ralph/prompts/plan.md"), PLAN_PROMPT);
    assert_eq!(scratch.read(".ralph/prompts/build.md"), BUILD_PROMPT);
    assert_eq!(scratch.read("specs/README.md"), SPECS_README);
    assert_eq!(scratch.read("AGENTS.md"), AGENTS_MD);
    assert!(scratch.read(".git/info/exclude").contains("/.ralph/state.toml.*"));
    assert!(said.contains("codex; also installed: gemini, amp"), "{said}");
    assert!(said.contains("git add .ralph/config .ralph/prompts AGENTS.md specs && git commit"), "{said}");
    assert!(said.contains("ralph plan") && said.contains("ralph build"), "{said}");
}

#[test]
fn agents_over_acp_are_entered_as_they_are_started() {
    for (agent, entered, said) in [
        ("gemini-acp", "AGENT_TYPE=gemini-acp", "gemini is not on PATH yet"),
        ("claude-acp", "AGENT_TYPE=claude-acp", "npm install -g @agentclientprotocol/claude-agent-acp"),
        ("acp:goose acp", "AGENT_TYPE='acp:goose acp'", "Agent: acp:goose acp."),
        ("acp", "AGENT_TYPE=acp", "Agent: acp."),
    ] {
        let scratch = scratch(&[]);
        let told = scratch.init(Some(agent), false).unwrap();
        assert!(told.contains(said), "{told}");
        assert_eq!(scratch.assignments(), [entered]);
    }
    let refused = scratch(&[]).init(Some("acp:"), false).unwrap_err().to_string();
    assert!(
        refused.starts_with("unknown agent type, 'acp:'") && refused.ends_with("or acp:COMMAND"),
        "{refused}"
    );
}

#[test]
fn a_second_init_keeps_everything_and_says_so() {
    let scratch = scratch(&["claude"]);
    scratch.init(None, false).unwrap();
    let files = [
        ".ralph/config",
        ".ralph/prompts/plan.md",
        ".ralph/prompts/build.md",
        "specs/README.md",
        "AGENTS.md",
    ];
    for name in files {
        fs::write(scratch.root.join(name), "mine").unwrap();
    }
    let said = scratch.init(Some("amp"), false).unwrap();
    for name in files {
        assert_eq!(scratch.read(name), "mine");
        assert!(said.contains(&format!("  kept      {name}\n")), "{said}");
    }
    assert!(said.contains("set AGENT_TYPE=amp there"), "{said}");

    let said = scratch.init(Some("amp"), true).unwrap();
    assert_eq!(scratch.assignments(), ["AGENT_TYPE=amp"]);
    assert_eq!(scratch.read(".ralph/prompts/plan.md"), PLAN_PROMPT);
    assert_eq!(scratch.read("AGENTS.md"), "mine", "force is for ralph's own files");
    assert_eq!(scratch.read("specs/README.md"), "mine");
    assert!(said.contains("amp is not on PATH yet"), "{said}");
    for name in &files[..3] {
        assert_eq!(scratch.read(&format!("{name}.bak")), "mine");
        assert!(said.contains(&format!("  replaced  {name} (what it was is in {name}.bak)\n")), "{said}");
    }

    // What is as it would be written is left alone; each further copy has a name of its own.
    fs::write(scratch.root.join(".ralph/config"), "mine again").unwrap();
    let said = scratch.init(Some("amp"), true).unwrap();
    assert_eq!(scratch.read(".ralph/config.bak.1"), "mine again");
    assert!(said.contains("  replaced  .ralph/config (what it was is in .ralph/config.bak.1)\n"), "{said}");
    assert!(said.contains("  unchanged .ralph/prompts/plan.md\n"), "{said}");
    assert!(!scratch.root.join(".ralph/prompts/plan.md.bak.1").exists());
}

#[test]
fn what_the_project_is_tested_with_is_entered_and_not_run() {
    let scratch = scratch(&["claude", "make"]);
    fs::write(scratch.root.join("Makefile"), "$(shell touch ran)\ntest:\n\ttouch ran\n").unwrap();
    fs::write(scratch.root.join("go.mod"), "module x").unwrap();
    let said = scratch.init(None, false).unwrap();
    assert_eq!(scratch.assignments(), ["AGENT_TYPE=claude", "VALIDATION_COMMAND='make test'"]);
    assert!(scratch.read("AGENTS.md").contains("\nAll tests: `make test`\n"));
    assert!(said.contains("Tests: make test, as Makefile says.\n"), "{said}");
    assert!(said.contains("VALIDATION_COMMAND in .ralph/config"), "{said}");
    assert!(!said.contains("make is not on PATH") && !scratch.root.join("ran").exists(), "{said}");

    fs::remove_file(scratch.root.join("Makefile")).unwrap();
    let said = scratch.init(None, false).unwrap();
    assert!(said.contains("Tests: go test ./..., as go.mod says.\n"), "{said}");
    assert!(
        said.contains("set VALIDATION_COMMAND='go test ./...' in .ralph/config, which was kept"),
        "{said}"
    );
    assert!(said.contains("go is not on PATH yet"), "{said}");
    assert_eq!(scratch.assignments()[1], "VALIDATION_COMMAND='make test'");
}

#[test]
fn without_an_agent_none_is_chosen() {
    let scratch = scratch(&[]);
    fs::write(scratch.bin.join("claude"), "").unwrap(); // not executable
    fs::create_dir(scratch.bin.join("codex")).unwrap();
    let said = scratch.init(None, false).unwrap();
    assert_eq!(scratch.assignments(), Vec::<String>::new());
    assert!(scratch.read(".ralph/config").contains("# AGENT_TYPE=script"));
    assert!(said.contains("none found on PATH"), "{said}");
}

#[test]
fn a_wanted_agent_is_entered_or_refused_before_anything_is_written() {
    let scratch = scratch(&["claude"]);
    let message = scratch.init(Some("clade"), false).unwrap_err().to_string();
    assert!(message.contains("'clade'") && message.contains("amp, claude, claude-acp"), "{message}");
    assert!(!scratch.root.join(".ralph").exists());
    let said = scratch.init(Some("script"), false).unwrap();
    assert_eq!(scratch.assignments(), ["AGENT_TYPE=script"]);
    assert!(!said.contains("not on PATH"), "{said}");
}

#[test]
fn outside_a_repository_git_init_comes_first() {
    let scratch = scratch(&[]);
    fs::remove_dir_all(scratch.root.join(".git")).unwrap();
    let message = scratch.init(None, false).unwrap_err().to_string();
    assert!(message.contains("git init"), "{message}");
    assert_eq!(fs::read_dir(scratch.root.join("sub")).unwrap().count(), 0);
}

#[test]
fn an_unwritable_place_is_named() {
    let scratch = scratch(&[]);
    fs::write(scratch.root.join("specs"), "a file").unwrap();
    let message = scratch.init(None, false).unwrap_err().to_string();
    assert!(message.contains(scratch.root.join("specs").to_str().unwrap()), "{message}");
}
