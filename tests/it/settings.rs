//! Every row of the table of settings can be set in every possible way: each check uses the user's way.
//! `commands/guide/tables.rs` compares the guide with the table.

use std::path::{Path, PathBuf};
use std::process::Command as Process;

use ralph::cli::{Cli, Command, FeatureVerb, Late, LoopFlags, LoopVerb};
use ralph::settings::setting::{Setting, ValueKind};
use ralph::settings::table::TABLE;
use ralph::settings::{Origin, Settings, Sources, Verb};
use serde_json::Value;
use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../../config.example");

/// A value that is no default of the setting.
fn sample(setting: &Setting) -> &'static str {
    match setting.key {
        "agent.format" => return "claude",
        "proof.level" => return "clean",
        "proof.on_protected" => return "tell",
        "landing.style" => return "rebase",
        "git.forge" => return "gitlab",
        "sandbox.mode" => return "try",
        "sandbox.network" => return "none",
        "sandbox.tripwire" => return "stop",
        "notify.on" => return "failure waiting",
        "notify.webhook" => return "https://example.org/x",
        "notify.webhook_format" => return "slack",
        "monitoring.notifications.on_complete" | "monitoring.notifications.on_error" => {
            return "bell, desktop";
        }
        _ => {}
    }
    match setting.kind {
        ValueKind::Name | ValueKind::Text | ValueKind::Secret | ValueKind::Override => "sample",
        ValueKind::Count { .. } => "77",
        ValueKind::Duration(_) | ValueKind::Pauses => "77s",
        ValueKind::Room | ValueKind::Size => "77 MB",
        ValueKind::Money => "7.5",
        ValueKind::Switch if setting.default == "true" => "false",
        ValueKind::Switch => "true",
        ValueKind::Words => "one two",
        // The first is the agent.
        ValueKind::Names => "sample, two words",
    }
}

/// [`sample`] in TOML.
fn toml_sample(setting: &Setting) -> String {
    let text = sample(setting);
    match setting.kind {
        ValueKind::Name
        | ValueKind::Text
        | ValueKind::Secret
        | ValueKind::Override
        | ValueKind::Duration(_)
        | ValueKind::Pauses
        | ValueKind::Room
        | ValueKind::Size => {
            format!("'{text}'")
        }
        ValueKind::Count { .. } | ValueKind::Money | ValueKind::Switch => text.to_owned(),
        ValueKind::Words => format!("{:?}", text.split(' ').collect::<Vec<_>>()),
        ValueKind::Names => format!("{:?}", text.split(", ").collect::<Vec<_>>()),
    }
}

/// Files, environment and flags; nothing is set at first.
struct Scene {
    dir: TempDir,
    verb: Option<Verb>,
    flags: Vec<(&'static str, String)>,
    env: Vec<(&'static str, &'static str)>,
}

impl Scene {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), verb: None, flags: Vec::new(), env: Vec::new() }
    }

    fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn load(&self) -> Settings {
        let env = |name: &str| {
            let found = self.env.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let sources = Sources {
            verb: self.verb,
            flags: self.flags.clone(),
            env: &env,
            shell_config: Some(self.path("config")),
            shell_config_explicit: false,
            older_toml: None,
            project_toml: Some(self.path("ralph.toml")),
            user_toml: None,
            trusts: &|_| true,
        };
        Settings::load(&sources).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The sample has arrived from that source: in the setting's row and in a field.
    fn check(&self, setting: &Setting, expected: &Origin) {
        let settings = self.load();
        let found = settings.rows().find(|row| row.setting.key == setting.key).expect("a row");
        assert_eq!((found.value.as_str(), &found.origin), (sample(setting), expected), "{}", setting.key);
        let is_its_own = |key: &str| key == setting.key || setting.key == "agents" && key == "agent.provider";
        let others = settings.rows().filter(|row| !is_its_own(row.setting.key));
        assert!(others.into_iter().all(|row| row.origin == Origin::Default), "{}", setting.key);
        let defaults = Self { verb: self.verb, ..Self::new() }.load();
        assert_ne!(fields(&settings), fields(&defaults), "{} sets no field", setting.key);
    }
}

/// What settings hold in typed fields, which come first.
fn fields(settings: &Settings) -> String {
    let text = format!("{settings:?}");
    let (fields, rest) = text.split_once(", variables: ").expect("the variables of the config");
    assert!(rest.contains("Resolved"), "rows are no fields");
    fields.to_owned()
}

#[test]
fn every_setting_is_read_from_files_and_environment() {
    for setting in TABLE {
        let Setting { key, shell, .. } = setting;
        let toml = format!("\n{key} = {}\n", toml_sample(setting));
        let scene = Scene::new().file("ralph.toml", &toml);
        scene.check(setting, &Origin::ProjectToml { path: scene.path("ralph.toml"), line: 2 });

        let scene = Scene::new().file("config", &format!("{shell}='{}'\n", sample(setting)));
        scene.check(setting, &Origin::ShellConfig { path: scene.path("config"), line: 1 });

        for name in setting.env {
            let scene = Scene { env: vec![(name, sample(setting))], ..Scene::new() };
            scene.check(setting, &Origin::Env(name));
        }
    }
}

/// What stands on a command line; of the verbs whose agents write, the first.
fn command_words(verb: Verb) -> Vec<&'static str> {
    let more = if verb == Verb::Feature { Some("spec") } else { None };
    verb.words().split(' ').chain(more).collect()
}

/// What the command line of a loop gives.
fn loop_flags(verb: Verb, words: &[&str]) -> LoopFlags {
    let target: &[&str] = if matches!(verb, Verb::Prompt | Verb::Run | Verb::Feature) { &["x"] } else { &[] };
    let verb = command_words(verb);
    let line = if verb == ["spawn"] {
        [&["ralph", "spawn", "--name", "x", "--prompt-file", "x", "-n", "1"], words, &["--", "x"]].concat()
    } else {
        [&["ralph"], &*verb, target, words].concat()
    };
    let cli = Cli::read(line.iter().map(Into::into).collect()).unwrap_or_else(|error| panic!("{error}"));
    match cli.command {
        Command::Plan(Late(args)) | Command::Build(Late(args)) => args.flags,
        Command::Prompt(Late(args)) => args.flags,
        Command::Run(Late(args)) => args.flags,
        Command::Spawn(args) => args.0.flags,
        Command::Feature { verb: Late(FeatureVerb::Spec(args)) } => args.flags,
        Command::Loop { verb: Some(Late(LoopVerb::Plan(args))), .. } => args.flags,
        Command::Loop { verb: Some(Late(LoopVerb::Build { args, .. })), .. } => args.shared.flags,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_loop_has_the_flags_of_settings() {
    for (setting, flag) in TABLE.iter().filter_map(|setting| Some((setting, setting.flag.as_ref()?))) {
        // A switch can only be switched on, and where that is the default nothing changes.
        let is_switch = setting.kind == ValueKind::Switch;
        for verb in Verb::ALL {
            for name in [flag.long.to_owned()].into_iter().chain(flag.short.map(|short| format!("-{short}")))
            {
                let words = [name.as_str(), sample(setting)];
                let flags = loop_flags(verb, if is_switch { &words[..1] } else { &words });
                let given = [flags.place.agent.given, flags.settings.given].concat();
                if is_switch {
                    assert_eq!(given, [(setting.key, "true".to_owned())], "{name} of {verb:?}");
                    continue;
                }
                let scene = Scene { verb: Some(verb), flags: given, ..Scene::new() };
                scene.check(setting, &Origin::Flag(flag.long));
            }
        }
    }
}

#[test]
fn the_agent_can_be_chosen_wherever_it_matters() {
    let read = |line: &str| Cli::read(line.split(' ').map(Into::into).collect());
    let given = |verb: &str| match read(&format!("ralph {verb} --agent codex")).unwrap().command {
        Command::Config(Late(args)) => args.place.agent.given,
        Command::Doctor(Late(args)) => args.place.agent.given,
        other => panic!("{other:?}"),
    };
    let expected = [("agent.provider", "codex".to_owned())];
    assert_eq!((given("config").as_slice(), given("doctor").as_slice()), (&expected[..], &expected[..]));
    assert!(read("ralph config --timeout 5m").is_err());
}

/// `--help` of a verb, with single blanks.
fn help(verb: Verb) -> String {
    let mut command = Cli::documented();
    command.build();
    let verb = command_words(verb)
        .into_iter()
        .fold(&mut command, |command, word| command.find_subcommand_mut(word).expect("the verb"));
    let text = verb.render_long_help().to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_help_of_every_loop_tells_what_holds_there() {
    // Tasks have no help of their own: that of a RALPH.md's run names the differences.
    for verb in Verb::ALL.into_iter().filter(|verb| *verb != Verb::Tasks) {
        let help = help(verb);
        for row in (Scene { verb: Some(verb), ..Scene::new() }).load().rows() {
            let Some(flag) = &row.setting.flag else { continue };
            let short = flag.short.map_or_else(String::new, |short| format!("-{short}, "));
            let value = if flag.value.is_empty() { String::new() } else { format!(" <{}>", flag.value) };
            let default = row.setting.in_words(&row.value);
            let entry = format!("{short}{}{value} {} [default: {default}]", flag.long, flag.help);
            // The agent of a run comes from its RALPH.md, that of a worker is its command line.
            let is_hidden = matches!(verb, Verb::Run | Verb::Spawn) && row.setting.key == "agent.provider"
                || flag.without.contains(&verb);
            assert_eq!(help.contains(&entry), !is_hidden, "{entry} of {verb:?} in {help}");
        }
    }
    let says = |verb, text: &str| assert!(help(verb).contains(text), "{text} of {verb:?}");
    for (verb, iterations, retries, errors, idle) in [
        (Verb::Plan, "10", "3", "0", "0"),
        (Verb::Build, "10", "3", "0", "0"),
        (Verb::Prompt, "10", "3", "0", "0"),
        (Verb::Run, "no limit", "0", "0", "0"),
        (Verb::LoopPlan, "10", "0", "3", "2"),
        (Verb::LoopBuild, "20", "0", "3", "2"),
    ] {
        says(
            verb,
            &format!(
                "iterations{} [default: {iterations}]",
                match verb {
                    Verb::LoopBuild => " of each branch",
                    Verb::Run => "; 0: no limit",
                    _ => "",
                }
            ),
        );
        says(verb, &format!("is tried again [default: {retries}]"));
        says(verb, &format!("failed iterations in a row, 0 for never [default: {errors}]"));
        says(verb, &format!("changed nothing, 0 for never [default: {idle}]"));
    }
}

/// What `ralph config` prints in a folder with this config.
fn config(dir: &Path, flag: Option<&str>) -> String {
    ralph(dir, "config", flag)
}

/// What a verb prints there.
fn ralph(dir: &Path, verb: &str, flag: Option<&str>) -> String {
    let mut ralph = Process::new(env!("CARGO_BIN_EXE_ralph"));
    ralph.args([verb, "--config", "config"]).args(flag).current_dir(dir);
    let output = ralph.env_clear().env("HOME", dir).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn ralph_config_shows_every_setting() {
    let line = |setting: &Setting| format!("{}='{}'\n", setting.shell, sample(setting));
    let samples: String = TABLE.iter().map(line).collect();
    for (text, is_set) in [("", false), (samples.as_str(), true)] {
        let scene = Scene::new().file("config", text);
        ralph(scene.dir.path(), "trust", Some("--yes"));
        let table = config(scene.dir.path(), None);
        let rows: Vec<Value> = serde_json::from_str(&config(scene.dir.path(), Some("--json"))).unwrap();
        // Below the table stands what `by verb` means, and how the agent is started.
        assert_eq!((table.lines().count(), rows.len()), (TABLE.len() + 5, TABLE.len()));
        for (at, setting) in TABLE.iter().enumerate() {
            let line = table.lines().nth(at + 1).unwrap();
            let default = match setting {
                Setting { except: [_, ..], .. } => setting.defaults_by_verb(),
                Setting { default: "", empty: "none", .. } => "none".to_owned(),
                Setting { default: "", empty, .. } => format!("none ({empty})"),
                _ => setting.default.to_owned(),
            };
            let of_preset = rows[at]["preset"].as_str();
            let (origin, value) = match (is_set, of_preset) {
                (true, _) if setting.kind == ValueKind::Secret => {
                    (format!("config line {}", at + 1), "(set)".to_owned())
                }
                (true, _) => (format!("config line {}", at + 1), sample(setting).to_owned()),
                (false, Some(_)) if setting.key.ends_with("_filter") => {
                    ("preset claude".to_owned(), "built in".into())
                }
                (false, Some(given)) => ("preset claude".to_owned(), given.to_owned()),
                (false, None) => ("default".to_owned(), default.replace(" (the agent preset's own)", "")),
            };
            assert!(line.starts_with(&format!("{} ", setting.key)), "{line}");
            assert!(line.contains(&format!(" {} ", setting.shell)), "{line}");
            assert!(line.contains(&format!(" {origin} ")) && line.ends_with(&format!(" {value}")), "{line}");

            let row = &rows[at];
            let flag = setting.flag.as_ref().map(|flag| flag.long);
            assert_eq!((&row["key"], &row["shell"]), (&setting.key.into(), &setting.shell.into()));
            assert_eq!((&row["doc"], &row["flag"]), (&setting.doc.into(), &flag.into()));
            assert_eq!(row["env"], Value::from(setting.env.to_vec()));
            // For programs: a value and no words.
            assert_eq!(row["default"], setting.default, "{row}");
            assert_eq!(row["value"], if is_set { value.as_str() } else { setting.default });
            let verbs = row["defaults"].as_object().map_or(0, serde_json::Map::len);
            assert_eq!(verbs, if setting.except.is_empty() { 0 } else { Verb::ALL.len() }, "{row}");
            for verb in Verb::ALL {
                let default = if verbs == 0 { &row["default"] } else { &row["defaults"][verb.words()] };
                assert_eq!(default, setting.default_of(Some(verb)), "{row}");
            }
        }
    }
}

/// Lines of a config that give each setting this value.
fn written_back<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let line = |(setting, value): (&Setting, &str)| {
        format!("{}='{}'\n", setting.shell, value.replace('\'', "'\\''"))
    };
    TABLE.iter().zip(values).map(line).collect()
}

#[test]
fn what_ralph_config_shows_can_be_written_back() {
    let is_secret = |setting: &Setting| setting.kind == ValueKind::Secret;
    let samples: Vec<String> = TABLE
        .iter()
        .filter(|setting| !is_secret(setting))
        .map(|setting| format!("{}='{}'\n", setting.shell, sample(setting)))
        .collect();
    let none: Vec<String> = TABLE
        .iter()
        .filter(|setting| !setting.empty.is_empty())
        .map(|setting| format!("{}=none\n", setting.shell))
        .collect();
    for text in ["", &samples.concat(), &none.concat()] {
        let scene = Scene::new().file("config", text);
        let shown = |text: &str| {
            std::fs::write(scene.path("config"), text).unwrap();
            ralph(scene.dir.path(), "trust", Some("--yes"));
            let table = config(scene.dir.path(), None);
            let at = table.lines().next().unwrap().find("VALUE").expect("the column of values");
            let cells: Vec<String> =
                table.lines().skip(1).take(TABLE.len()).map(|line| line[at..].to_owned()).collect();
            let rows: Vec<Value> = serde_json::from_str(&config(scene.dir.path(), Some("--json"))).unwrap();
            (cells, rows)
        };
        let (cells, rows) = shown(text);
        let (cells_again, _) = shown(&written_back(cells.iter().map(String::as_str)));
        assert_eq!(cells_again, cells, "{text}");

        // It is not only shown alike; what the preset gives is none of the user's.
        let own = cells
            .iter()
            .zip(&rows)
            .map(|(cell, row)| if row["preset"].is_null() { cell.as_str() } else { "" });
        let own = written_back(own);
        for verb in Verb::ALL {
            let of = |text: &str| {
                let scene = Scene { verb: Some(verb), ..Scene::new() }.file("config", text);
                fields(&scene.load()).replace(scene.dir.path().to_str().unwrap(), "")
            };
            assert_eq!(of(&own), of(text), "{verb:?}");
        }
    }
}

#[test]
fn a_setting_that_can_be_empty_can_be_none_in_every_place() {
    for setting in TABLE.iter().filter(|setting| !setting.empty.is_empty()) {
        let none = |scene: &Scene| {
            let settings = scene.load();
            let row = settings.rows().find(|row| row.setting.key == setting.key).expect("a row").clone();
            assert_eq!(row.value, "", "{}", setting.key);
            assert_ne!(row.origin, Origin::Default, "{}", setting.key);
        };
        none(&Scene::new().file("ralph.toml", &format!("{} = 'none'\n", setting.key)));
        none(&Scene::new().file("config", &format!("{}=none\n", setting.shell)));
        none(&Scene { env: vec![(setting.env[0], "none")], ..Scene::new() });
        none(&Scene { flags: vec![(setting.key, "none".to_owned())], ..Scene::new() });
    }
}

#[test]
fn every_setting_can_be_set_in_the_example() {
    for setting in TABLE {
        let entry = format!("# {}=", setting.shell);
        let lines: Vec<&str> = EXAMPLE.lines().collect();
        let places: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].starts_with(&entry)).collect();
        let [at] = places[..] else { panic!("{entry} stands at {places:?}") };
        assert!(lines[at - 1].starts_with(&format!("# {}", setting.doc)), "{}", lines[at - 1]);
        let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
        lines[at] = format!("{}\"{}\"", entry.trim_start_matches("# "), sample(setting));
        let scene = Scene::new().file("config", &lines.join("\n"));
        scene.check(setting, &Origin::ShellConfig { path: scene.path("config"), line: at + 1 });
    }
}
