//! The README names everything that a user can set, call or choose, and says about settings what the code says.

use clap::CommandFactory as _;
use ralph::agent::preset;
use ralph::cli::Cli;
use ralph::git::refs::is_valid_branch;
use ralph::plan::Plan;
use ralph::settings::setting::Setting;
use ralph::settings::table::TABLE;
use ralph::settings::{Settings, Sources};

const README: &str = include_str!("../README.md");

/// A setting's row in the configuration table.
fn row(setting: &Setting) -> String {
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let env: Vec<String> = setting.env.iter().map(|name| code(name)).collect();
    let default = match setting.defaults_in_words() {
        words if words == setting.default => code(&words),
        words => words,
    };
    let cells = [
        code(setting.shell),
        code(setting.key),
        env.join(", "),
        code(setting.flag.as_ref().map_or("", |flag| flag.long)),
        default,
        setting.doc.to_owned(),
    ];
    format!("| {} |", cells.join(" | "))
}

#[test]
fn every_setting_has_its_row() {
    let rows: Vec<String> = TABLE.iter().map(row).collect();
    assert!(README.contains(&rows.join("\n")), "the configuration table has to be:\n{}", rows.join("\n"));
}

#[test]
fn every_verb_and_flag_is_there() {
    check_verbs(&Cli::command(), "ralph");
}

/// The verbs of a command, and theirs. A verb that only has verbs of its own needs no row.
fn check_verbs(command: &clap::Command, name: &str) {
    for verb in command.get_subcommands() {
        let name = format!("{name} {}", verb.get_name());
        check_verbs(verb, &name);
        assert!(
            verb.has_subcommands() || README.contains(&format!("| `{name}")),
            "the verb {name} is missing"
        );
        for flag in verb.get_arguments().filter_map(clap::Arg::get_long_and_visible_aliases).flatten() {
            let is_there = ["| `", "`, `"].iter().any(|before| README.contains(&format!("{before}--{flag}")));
            assert!(is_there, "--{flag} of {name} is missing");
        }
    }
}

#[test]
fn every_agent_is_there_with_its_command() {
    for preset in preset::known().filter_map(preset::preset) {
        let row = format!("| `{}` |", preset.name);
        let row = README.lines().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("no {row}"));
        let command = [&[preset.cli], preset.args].concat().join(" ");
        assert!(preset.cli.is_empty() || row.contains(&format!("`{command}`")), "{row}: not `{command}`");
    }
}

/// The first example in this language behind a heading.
fn example(heading: &str, language: &str) -> &'static str {
    let (_, section) = README.split_once(heading).expect("the heading");
    let (_, example) = section.split_once(&format!("```{language}\n")).expect("the example");
    example.split("```\n").next().unwrap_or_default()
}

#[test]
fn the_plan_can_be_built() {
    let text = example("## Branches in parallel", "markdown");
    let plan = Plan::parse(text, &is_valid_branch).unwrap();
    assert_eq!(plan.order().unwrap(), [None, Some(0)]);
    assert_eq!(plan.sections[0].tasks.len(), 2);
}

#[test]
fn the_settings_are_good_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ralph.toml");
    std::fs::write(&path, example("## Branches in parallel", "toml")).unwrap();
    let settings = Settings::load(&Sources {
        verb: None,
        flags: Vec::new(),
        env: &|_| None,
        shell_config: None,
        shell_config_explicit: false,
        project_toml: Some(path),
        user_toml: None,
    });
    let settings = settings.unwrap();
    assert_eq!(settings.warnings, [""; 0]);
    assert_eq!(settings.git.protected_branches, ["main", "production"]);
    assert_eq!(settings.git.name.as_deref(), Some("Build Agent"));
}
