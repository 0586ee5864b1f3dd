use std::fs;

use tempfile::TempDir;

use super::table::TABLE;
use super::*;

/// A folder with the three files and an environment.
struct Scene {
    folder: TempDir,
    env: Vec<(&'static str, &'static str)>,
    flags: Vec<(&'static str, String)>,
    explicit: bool,
    verb: Option<Verb>,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, env: Vec::new(), flags: Vec::new(), explicit: false, verb: None }
    }

    fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        fs::write(self.path(name), text).unwrap();
        self
    }

    fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    fn flag(mut self, key: &'static str, value: &str) -> Self {
        self.flags.push((key, value.to_owned()));
        self
    }

    fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn load(&self) -> Result<Settings, SettingsError> {
        let env = |name: &str| {
            let found = self.env.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::load(&Sources {
            verb: self.verb,
            flags: self.flags.clone(),
            env: &env,
            shell_config: Some(self.path("config")),
            shell_config_explicit: self.explicit,
            older_toml: None,
            project_toml: Some(self.path("ralph.toml")),
            user_toml: Some(self.path("user.toml")),
            trusts: &|_| true,
        })
    }

    fn settings(&self) -> Settings {
        self.load().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The message, with the folder's name taken out.
    fn refusal(&self) -> String {
        let message = self.load().expect_err("an error").to_string();
        assert!(!message.contains('\n'), "{message}");
        message.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

fn origin(settings: &Settings, key: &str) -> Origin {
    settings.rows().find(|row| row.setting.key == key).unwrap().origin.clone()
}

#[test]
fn without_sources_the_defaults_hold() {
    let settings = Scene::new().settings();
    assert_eq!(settings.agent_type, "claude");
    assert_eq!(settings.agent_cli, None);
    assert_eq!(settings.timeout, Duration::from_hours(2));
    assert_eq!(settings.inactivity_timeout, Duration::from_mins(15));
    assert_eq!(settings.max_limit_wait, Duration::from_hours(6));
    assert_eq!(settings.specs_dir, "specs");
    assert!(settings.rows().all(|row| row.origin == Origin::Default));
    assert!(settings.warnings.is_empty() && settings.variables.is_empty());
}

#[test]
fn defaults_depend_on_the_verb() {
    let defaults = |verb: Option<Verb>| {
        let settings = Scene { verb, ..Scene::new() }.settings();
        let Values { max_iterations, max_retries, max_consecutive_errors, .. } = *settings;
        (max_iterations, max_retries, max_consecutive_errors, settings.idle_threshold, settings.stop_on_error)
    };
    for verb in [None, Some(Verb::Plan), Some(Verb::Build), Some(Verb::Prompt)] {
        assert_eq!(defaults(verb), (Some(10), 3, 0, 0, true), "{verb:?}");
    }
    assert_eq!(defaults(Some(Verb::Run)), (None, 0, 0, 0, false));
    assert_eq!(defaults(Some(Verb::LoopPlan)), (Some(10), 0, 3, 2, false));
    assert_eq!(defaults(Some(Verb::LoopBuild)), (Some(20), 0, 3, 2, false));

    let scene = Scene::new().file("config", "DEFAULT_MAX_ITERATIONS=4\nMAX_RETRIES=5\nSTOP_ON_ERROR=true");
    let settings = scene.verb(Verb::LoopBuild).settings();
    assert_eq!((settings.max_iterations, settings.max_retries), (Some(4), 5));
    assert!(settings.stop_on_error);
}

#[test]
fn counting_failed_iterations_needs_more_than_one() {
    let stops = |text: &str| Scene::new().file("config", text).verb(Verb::Build).settings().stop_on_error;
    assert!(stops("MAX_CONSECUTIVE_ERRORS=0") && !stops("MAX_CONSECUTIVE_ERRORS=2"));
    assert!(stops("MAX_CONSECUTIVE_ERRORS=2\nSTOP_ON_ERROR=true"));
}

#[test]
fn the_waits_of_an_agent_that_is_ended() {
    let settings = Scene::new().settings();
    let waits =
        |settings: &Settings| [settings.agent_grace, settings.interrupt_wait, settings.terminate_wait];
    assert_eq!(waits(&settings), [10, 3, 2].map(Duration::from_secs));
    let scene = Scene::new()
        .file("config", "AGENT_GRACE=1m")
        .env("RALPH_AGENT_INTERRUPT_WAIT", "0.1")
        .file("ralph.toml", "agent.terminate_wait = '200ms'");
    assert!(scene.refusal().contains("`200ms` is not a duration"));
    let scene = scene.file("ralph.toml", "agent.terminate_wait = 0.2");
    assert_eq!(waits(&scene.settings()), [60_000, 100, 200].map(Duration::from_millis));
    for value in ["0", "-1"] {
        let scene = Scene::new().env("RALPH_AGENT_GRACE", value);
        assert!(scene.refusal().contains("RALPH_AGENT_GRACE"), "{value}");
    }
    let scene = Scene::new().env("RALPH_AGENT_TERMINATE_WAIT", "301");
    assert!(scene.refusal().contains("`301` is longer than five minutes"));
}

#[test]
fn every_source_beats_the_weaker_ones() {
    let mut scene = Scene::new();
    let check = |scene: &Scene, retries: u32, expected: Origin| {
        let settings = scene.settings();
        assert_eq!(settings.max_retries, retries);
        assert_eq!(origin(&settings, "loop.max_retries"), expected);
    };
    scene = scene.file("user.toml", "\n[loop]\nmax_retries = 11\n");
    check(&scene, 11, Origin::UserToml { path: scene.path("user.toml"), line: 3 });
    scene = scene.file("ralph.toml", "[loop]\nmax_retries = 12\n");
    check(&scene, 12, Origin::ProjectToml { path: scene.path("ralph.toml"), line: 2 });
    scene = scene.file("config", "A=1\nMAX_RETRIES=0\nMAX_RETRIES=13\n");
    check(&scene, 13, Origin::ShellConfig { path: scene.path("config"), line: 3 });
    scene = scene.env("RALPH_MAX_RETRIES", "14");
    check(&scene, 14, Origin::Env("RALPH_MAX_RETRIES"));
    scene = scene.flag("loop.max_retries", "15").flag("loop.max_retries", "16");
    check(&scene, 16, Origin::Flag("--max-retries"));
}

#[test]
fn a_setting_has_its_own_name_in_the_environment() {
    let scene = Scene::new().env("RALPH_AGENT_TYPE", "amp");
    assert_eq!(origin(&scene.settings(), "agent.provider"), Origin::Env("RALPH_AGENT_TYPE"));
    for other in ["RALPH_PROVIDER", "RALPH_AGENT"] {
        assert_eq!(Scene::new().env(other, "amp").settings().agent_type, "claude", "{other}");
    }
    // Without its prefix a name belongs to someone else, unless the config asks for it.
    assert_eq!(Scene::new().env("AGENT_TYPE", "amp").settings().agent_type, "claude");
    let asked = Scene::new().env("AGENT_TYPE", "amp").file("config", ": ${AGENT_TYPE:=codex}");
    assert_eq!(asked.settings().agent_type, "amp");
}

#[test]
fn what_an_agent_is_told_is_no_setting_of_a_ralph_that_it_starts() {
    let scene = Scene::new().env("RALPH_MODEL", "opus");
    assert_eq!(scene.settings().agent_model.as_deref(), Some("opus"));
    let scene = scene.env("RALPH_RUN", "a run");
    assert_eq!(scene.settings().agent_model, None);
    assert_eq!(scene.env("RALPH_AGENT_MODEL", "sonnet").settings().agent_model.as_deref(), Some("sonnet"));
}

#[test]
fn an_empty_override_asks_for_the_preset() {
    let scene = Scene::new().file("ralph.toml", "agent.cli = 'my-agent'").file("config", "AGENT_CLI=''");
    let settings = scene.settings();
    assert_eq!(settings.agent_cli, None);
    assert_eq!(origin(&settings, "agent.cli"), Origin::ShellConfig { path: scene.path("config"), line: 1 });
    let scene = scene.env("RALPH_AGENT_CLI", "other");
    assert_eq!(scene.settings().agent_cli.as_deref(), Some("other"));
}

#[test]
fn other_empty_values_are_no_decision() {
    let scene = Scene::new()
        .file("ralph.toml", "loop.max_retries = 7\nagent.provider = 'codex'")
        .file("config", "MAX_RETRIES=\nSPECS_DIR=''")
        .env("RALPH_MAX_RETRIES", "")
        .env("RALPH_AGENT_TYPE", "");
    let settings = scene.settings();
    assert_eq!((settings.max_retries, settings.specs_dir.as_str()), (7, "specs"));
    assert_eq!(settings.agent_type, "codex");
    assert_eq!(
        Scene::new().flag("agent.provider", "").refusal(),
        "--agent: this is empty; write a value or leave it out"
    );
}

#[test]
fn invalid_values_name_their_origin() {
    let duration = "is not a duration; write it like 30s, 5m, 2h, 1h30m, 1.5s or as seconds";
    let scene = Scene::new().file("user.toml", "[loop]\ntimeout = 'x'");
    assert_eq!(scene.refusal(), format!("loop.timeout in user.toml line 2: `x` {duration}"));
    let scene = scene.file("config", "\n\nAGENT_TIMEOUT=soon");
    assert_eq!(scene.refusal(), format!("AGENT_TIMEOUT in config line 3: `soon` {duration}"));
    let scene = scene.env("RALPH_AGENT_TIMEOUT", "later");
    assert_eq!(scene.refusal(), format!("RALPH_AGENT_TIMEOUT in the environment: `later` {duration}"));
    let scene = scene.flag("loop.timeout", "0");
    assert!(scene.refusal().starts_with("--timeout: `0` is no time at all"));
    // Only the value that counts is judged.
    assert_eq!(scene.flag("loop.timeout", "90").settings().timeout, Duration::from_secs(90));
}

#[test]
fn counts_are_whole_numbers() {
    for value in ["abc", "-1", "1.5", "99999999999", "0x3"] {
        let refusal = Scene::new().flag("loop.max_retries", value).refusal();
        assert_eq!(refusal, format!("--max-retries: `{value}` is not a whole number of 0 or more"));
    }
    assert_eq!(Scene::new().flag("loop.max_retries", "0").settings().max_retries, 0);
    let refusal = Scene::new().file("ralph.toml", "loop.max_iterations = 0").refusal();
    assert_eq!(refusal, "loop.max_iterations in ralph.toml line 1: `0` is not a whole number of 1 or more");
}

#[test]
fn the_variables_of_the_config_are_kept() {
    let scene = Scene::new()
        .env("PATH", "/bin")
        .file("config", "PRODUCT=door\nexport TOKEN=abc\nSPECS_DIR=docs\nPATH=~/x:$PATH")
        .env("HOME", "/home/u");
    let settings = scene.settings();
    let names: Vec<&str> = settings.variables.keys().map(String::as_str).collect();
    assert_eq!(names, ["PATH", "PRODUCT", "SPECS_DIR", "TOKEN"]);
    let exports: Vec<&str> = settings.exports.values().map(String::as_str).collect();
    assert_eq!(exports, ["/home/u/x:/bin", "abc"]);
    assert_eq!(settings.specs_dir, "docs");
}

#[test]
fn only_a_named_config_has_to_exist() {
    let mut scene = Scene::new();
    scene.explicit = true;
    assert_eq!(scene.refusal(), "config file not found: config; check the path given with --config");
}

#[test]
fn unreadable_files_are_errors() {
    for name in ["config", "ralph.toml", "user.toml"] {
        let scene = Scene::new();
        fs::create_dir(scene.path(name)).unwrap();
        assert_eq!(scene.refusal(), format!("cannot read {name}: it is a folder; name a file"));
        let scene = Scene::new();
        std::os::unix::fs::symlink("gone", scene.path(name)).unwrap();
        assert!(
            scene
                .refusal()
                .starts_with(&format!("cannot read {name}: it is a link to a file that is not there"))
        );
        let scene = Scene::new().file(name, b"# fine\n# \xff\n");
        assert_eq!(
            scene.refusal(),
            format!("cannot read {name}: line 2 is not valid UTF-8; save the file as UTF-8")
        );
        let scene = Scene::new().file(name, vec![b'\n'; (1 << 20) + 1]);
        assert!(scene.refusal().contains("larger than 1 MiB"));
    }
}

#[test]
fn problems_in_files_name_file_and_place() {
    let scene = Scene::new().file("config", "A=1\nB=$(x)");
    assert!(scene.refusal().starts_with("config line 2, column 3: `$(…)` would run a command"));
    let scene = Scene::new().file("ralph.toml", "[agent]\nprovidr = 'x'");
    let expected =
        "ralph.toml line 2, column 1: unknown setting `agent.providr`; did you mean `agent.provider`?";
    assert_eq!(scene.refusal(), expected);
}

#[test]
fn keys_without_effect_give_one_warning() {
    let scene = Scene::new()
        .file("user.toml", "monitoring.log_format = 'none'")
        .file("ralph.toml", "[monitoring]\nlog_file = 'x'");
    let settings = scene.settings();
    assert_eq!(settings.warnings.len(), 1);
    for expected in ["no effect yet", "monitoring.log_format", "monitoring.log_file", "user.toml"] {
        assert!(settings.warnings[0].contains(expected), "{}", settings.warnings[0]);
    }
}

#[test]
fn what_happens_to_branches() {
    let git = Scene::new().settings().git;
    assert!(git.auto_push && git.auto_pr && git.pr_base.is_none() && git.name.is_none());
    assert_eq!(git.protected_branches, ["main", "master", "production"]);
    let scene = Scene::new()
        .file(
            "ralph.toml",
            "[git]\nauto_push = false\nprotected_branches = []\n[git.worktree]\nname = 'A bot'",
        )
        .file("config", "GIT_PR_BASE=next");
    let git = scene.settings().git;
    assert!(!git.auto_push && git.protected_branches.is_empty());
    assert_eq!((git.pr_base.as_deref(), git.name.as_deref()), (Some("next"), Some("A bot")));
}

#[test]
fn a_flag_of_no_setting_is_an_error() {
    assert!(
        Scene::new()
            .flag("loop.nonsense", "1")
            .refusal()
            .starts_with("loop.nonsense: there is no such setting")
    );
}

#[test]
fn the_example_sets_every_default() {
    let assignments = example()
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| {
            line.split_once('=').is_some_and(|(name, _)| TABLE.iter().any(|row| row.shell == name))
        })
        .fold(String::new(), |text, line| text + line + "\n");
    for verb in Verb::ALL {
        let settings = Scene::new().verb(verb).file("config", &assignments).settings();
        assert_eq!(settings.variables.len(), TABLE.len());
        for row in settings.rows() {
            assert_eq!(row.value, row.setting.default_of(Some(verb)), "{}", row.setting.key);
        }
    }
}

#[test]
fn the_users_file_follows_xdg() {
    let path = |xdg: Option<&str>, home: Option<&str>| {
        let (xdg, home) = (xdg.map(str::to_owned), home.map(str::to_owned));
        user_toml(&move |name| if name == "HOME" { home.clone() } else { xdg.clone() })
    };
    assert_eq!(path(Some("/x"), Some("/h")), Some("/x/ralph/ralph.toml".into()));
    assert_eq!(path(None, Some("/h")), Some("/h/.config/ralph/ralph.toml".into()));
    assert_eq!(path(Some("relative"), Some("/h")), Some("/h/.config/ralph/ralph.toml".into()));
    assert_eq!(path(Some(""), None), None);
}
