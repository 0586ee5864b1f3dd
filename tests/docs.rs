//! The README names everything that a user can set, call or choose, and says about settings what the code says.

use clap::CommandFactory as _;
use ralph::agent::preset;
use ralph::cli::Cli;
use ralph::settings::table::{Setting, TABLE};

const README: &str = include_str!("../README.md");

/// A setting's row in the configuration table.
fn row(setting: &Setting) -> String {
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let env: Vec<String> = setting.env.iter().map(|name| code(name)).collect();
    let cells = [
        code(setting.shell),
        code(setting.key),
        env.join(", "),
        code(setting.flag.unwrap_or_default()),
        code(setting.default),
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
