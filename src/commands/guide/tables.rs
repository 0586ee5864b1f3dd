//! The tables of the guide that are made from the code. `UPDATE=1 cargo test --lib guide` writes them into the pages.

use std::collections::{BTreeMap, BTreeSet};
use std::{env, fs};

use serde_json::Value;

use super::{TOPICS, Topic};
use crate::agent::pane::programs::Program;
use crate::cli::Cli;
use crate::engine::outcome::Outcome;
use crate::platform::backend::{TIERS, Tier};
use crate::presets::{self, CliOption, Preset, Protocol};
use crate::settings::setting::Setting;
use crate::settings::table::TABLE;

fn path(relative: &str) -> String {
    format!("{}/{relative}", env!("CARGO_MANIFEST_DIR"))
}

/// Makes a table.
type Made = fn() -> String;

/// Pages with the tables between marks of their name.
const TABLES: [(&str, &str, Made); 11] = [
    ("README.md", "agents", agents_by_title),
    ("README.md", "tiers", tiers_in_words),
    ("README.md", "pages", pages),
    ("docs/agents.md", "agents", agents),
    ("docs/agents.md", "options", options),
    ("docs/workers.md", "screens", screens),
    ("docs/commands.md", "flags", flags),
    ("docs/settings.md", "settings", settings),
    ("docs/exit-codes.md", "ends", ends),
    ("docs/events.md", "events", events),
    ("docs/installing.md", "tiers", tiers),
];

#[test]
fn the_tables_are_what_the_code_says() {
    for (page, name, table) in TABLES {
        let text = fs::read_to_string(path(page)).unwrap();
        let begin = format!("<!-- {name}: made by `UPDATE=1 cargo test --lib guide` -->\n");
        let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{page}: no {begin}"));
        let end = format!("<!-- end of {name} -->");
        let (_, behind) = rest.split_once(&end).unwrap_or_else(|| panic!("{page}: no {end}"));
        let made = format!("{before}{begin}\n{}\n{end}{behind}", table());
        if env::var_os("UPDATE").is_some() {
            fs::write(path(page), &made).unwrap();
        } else {
            assert!(text == made, "the {name} in {page} are stale; run `UPDATE=1 cargo test --lib guide`");
        }
    }
}

#[test]
fn every_page_is_a_topic_and_no_topic_is_a_verb() {
    let files = fs::read_dir(path("docs")).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> =
        files.filter_map(|name| Some(name.strip_suffix(".md")?.to_owned())).collect();
    assert_eq!(TOPICS.iter().map(|topic| topic.name.to_owned()).collect::<BTreeSet<_>>(), files);
    let verbs = verbs();
    for Topic { name, text, .. } in TOPICS {
        assert!(!verbs.iter().any(|(verb, _)| verb.split(' ').next() == Some(name)), "{name}");
        assert!(text.starts_with("# "), "{name}");
    }
    let help = <Cli as clap::CommandFactory>::command().get_after_help().map(ToString::to_string).unwrap();
    let names: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
    assert!(help.replace('\n', " ").contains(&format!(": {} ", names.join(", "))), "{help}");
}

fn tiers() -> String {
    let row = |tier: &Tier| vec![tier.number.to_string(), tier.machines.to_owned(), tier.tested.to_owned()];
    table(&["tier", "machines", "what has been done there"], TIERS.iter().map(row))
}

fn tiers_in_words() -> String {
    let words = |tier: &Tier| format!("Tier {}, {}: {}.", tier.number, tier.machines, tier.tested);
    TIERS.iter().map(words).collect::<Vec<_>>().join(" ")
}

/// A table with these rows.
fn table(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let heading: Vec<String> = heading.iter().map(|&cell| cell.to_owned()).collect();
    let ruler = format!("|{}\n", "---|".repeat(heading.len()));
    line(&heading) + &ruler + &rows.into_iter().map(|row| line(&row)).collect::<String>()
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn pages() -> String {
    let row = |topic: &Topic| vec![format!("[{0}](docs/{0}.md)", topic.name), topic.about.to_owned()];
    table(&["page", "about"], TOPICS.iter().map(row))
}

/// The products' names.
fn agents_by_title() -> String {
    let titles: Vec<&str> = presets::named().map(|preset| preset.title).collect();
    format!("ralph knows {} and any agent that speaks the Agent Client Protocol.\n", titles.join(", "))
}

fn agents() -> String {
    let row = |preset: &Preset| {
        let command = [&[preset.cli], preset.args].concat().join(" ");
        let argument = preset.prompt.argument().map_or("", |_| " and a one-line argument");
        let started = match (preset.cli, preset.args) {
            ("", []) => "what `AGENT_CLI` and `AGENT_ARGS` say".to_owned(),
            ("", _) => "ralph itself".to_owned(),
            _ => code(&command) + argument,
        };
        vec![code(preset.name), started, preset.needs.to_owned()]
    };
    let presets = presets::names().into_iter().filter_map(presets::preset);
    table(&["type", "started as", "to run without a person it needs"], presets.map(row))
}

/// The options of agents that read their prompt on stdin: model, effort, read-only.
fn options() -> String {
    let row = |preset: &Preset| {
        let option = |option: Option<CliOption>| match option {
            Some(CliOption { names, key: "", .. }) => code(names[0]),
            Some(CliOption { names, key, .. }) => code(&format!("{} {key}…", names[0])),
            None => String::new(),
        };
        let longest = preset.longest_prompt.map_or_else(String::new, |limit| limit.to_string());
        let kept = preset.read_only.map_or("", |_| "yes").to_owned();
        vec![code(preset.name), option(preset.model), option(preset.effort), longest, kept]
    };
    let on_stdin = presets::named().filter(|preset| preset.protocol == Protocol::Lines);
    let presets = presets::sorted(on_stdin).into_iter().filter_map(presets::preset);
    table(&["type", "model", "effort", "longest prompt", "edits nothing while it verifies"], presets.map(row))
}

fn screens() -> String {
    let seen = |is_known: bool| if is_known { "yes" } else { "" }.to_owned();
    let row = |program: &Program| {
        vec![code(program.name), seen(!program.asks.is_empty()), seen(!program.error.is_empty())]
    };
    let programs = Program::known().filter_map(Program::named);
    table(&["agent", "what it asks while it works", "errors that end its turn"], programs.map(row))
}

fn settings() -> String {
    let row = |setting: &Setting| {
        let env: Vec<String> = setting.env.iter().map(|name| code(name)).collect();
        let default = match setting.defaults_in_words() {
            words if words == setting.default => code(&words),
            words => words,
        };
        vec![
            code(setting.shell),
            code(setting.key),
            env.join(", "),
            code(setting.flag.as_ref().map_or("", |flag| flag.long)),
            default,
            setting.doc.to_owned(),
        ]
    };
    let heading =
        ["in `.ralph/config`", "in `ralph.toml`", "in the environment", "flag", "default", "meaning"];
    table(&heading, TABLE.iter().map(row))
}

fn ends() -> String {
    let row = |outcome: Outcome| {
        let told = [code(outcome.word()), outcome.code().to_string(), code(outcome.ended().word())];
        [outcome.reason().to_owned()].into_iter().chain(told).collect()
    };
    let heading = ["reason in the summary", "`exit_reason`", "code", "in one word"];
    table(&heading, Outcome::ALL.into_iter().map(row))
}

/// Every verb that is no group of verbs, with its definition.
fn verbs() -> Vec<(String, clap::Command)> {
    fn collect(above: &str, command: &clap::Command, verbs: &mut Vec<(String, clap::Command)>) {
        for verb in command.get_subcommands() {
            let name = format!("{above}{}", verb.get_name());
            if verb.has_subcommands() {
                collect(&format!("{name} "), verb, verbs);
            } else {
                verbs.push((name, verb.clone()));
            }
        }
    }
    let mut verbs = Vec::new();
    collect("", &Cli::documented(), &mut verbs);
    verbs
}

/// The verbs whose agents write specs, plans or tasks.
const AUTHOR: [&str; 5] = ["feature spec", "feature plan", "feature build", "feature create", "task create"];

/// Verbs for people, in the order of the help; a group stands for all its verbs.
fn named(mut verbs: Vec<String>, all: &[(String, clap::Command)]) -> String {
    for group in ["loop", "task", "feature", "knowledge", "author"] {
        let is_in = |verb: &str| {
            if group == "author" {
                AUTHOR.contains(&verb)
            } else {
                verb.strip_prefix(group).is_some_and(|rest| rest.starts_with(' '))
            }
        };
        if all.iter().filter(|(verb, _)| is_in(verb)).all(|(verb, _)| verbs.contains(verb)) {
            let at = verbs.iter().position(|verb| is_in(verb)).unwrap_or_default();
            verbs.insert(at, group.to_owned());
            verbs.retain(|verb| !is_in(verb));
        }
    }
    verbs.join(", ")
}

/// How a flag is written: `--lines N`, `-n`.
fn spelling(arg: &clap::Arg) -> String {
    let value = match arg.get_value_names() {
        Some([name, ..]) if arg.get_action().takes_values() => format!(" {name}"),
        _ => String::new(),
    };
    let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
    let shorts = arg.get_short_and_visible_aliases().unwrap_or_default();
    let longs = longs.iter().enumerate().map(|(at, long)| match at {
        0 => format!("`--{long}{value}`"),
        _ => format!("`--{long}`"),
    });
    longs.chain(shorts.iter().map(|short| format!("`-{short}`"))).collect::<Vec<_>>().join(", ")
}

/// The text of a flag in `--help`.
fn meaning(arg: &clap::Arg) -> String {
    let setting = TABLE.iter().find(|setting| setting.key == arg.get_id().as_str());
    let help = match setting.and_then(|setting| setting.flag.as_ref()) {
        // Its default differs from verb to verb.
        Some(flag) => flag.help.to_owned(),
        None => arg.get_help().map(ToString::to_string).unwrap_or_default(),
    };
    let takes_values = arg.get_action().takes_values() && setting.is_none();
    let values = if takes_values { arg.get_possible_values() } else { Vec::new() };
    let values: Vec<String> =
        values.iter().filter(|value| !value.is_hide_set()).map(|value| code(value.get_name())).collect();
    let help = if values.is_empty() { help } else { format!("{help} ({})", values.join(", ")) };
    let defaults = if takes_values { arg.get_default_values() } else { &[] };
    let defaults: Vec<_> = defaults.iter().map(|value| value.to_string_lossy()).collect();
    let help = if defaults.is_empty() { help } else { format!("{help} [default: {}]", defaults.join(" ")) };
    help.replace('|', "\\|")
}

fn flags() -> String {
    let all = verbs();
    let mut rows: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (name, verb) in &all {
        for arg in verb.get_arguments() {
            if !arg.is_hide_set() && !arg.is_positional() && arg.get_id() != "help" {
                rows.entry((spelling(arg), meaning(arg))).or_default().push(name.clone());
            }
        }
    }
    let row = |((flag, meaning), verbs)| vec![flag, named(verbs, &all), meaning];
    table(&["flag", "of", "meaning"], rows.into_iter().map(row))
}

/// The events from their JSON Schema, which a test of its own compares with the types.
fn events() -> String {
    let schema = fs::read_to_string(path("schemas/events.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let common = members(&schema, &schema).into_iter();
    let common = table(&["in every line", "meaning"], common.map(|(name, told)| vec![code(&name), told]));
    let events = schema["oneOf"].as_array().unwrap().iter().map(|event| {
        let name = event["properties"]["event"]["const"].as_str().unwrap();
        let own = members(&schema, event).into_iter().filter(|(member, _)| member != "event");
        let own: Vec<String> = own.map(|(member, told)| format!("{}: {told}.", code(&member))).collect();
        vec![code(name), sentence(&schema, event), own.join(" ")]
    });
    format!("{common}\n{}", table(&["event", "meaning", "fields"], events))
}

/// The target of a `$ref`.
fn resolved<'a>(schema: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
    reference.map_or(value, |name| &schema["$defs"][name])
}

/// The description, without the full stop at its end.
fn sentence(schema: &Value, value: &Value) -> String {
    let told = value["description"].as_str().or_else(|| resolved(schema, value)["description"].as_str());
    told.unwrap_or_default().trim_end_matches('.').replace('\n', " ").replace('|', "\\|")
}

/// The members of an object, with their meanings, words and members of their own.
fn members(schema: &Value, object: &Value) -> Vec<(String, String)> {
    let own = object["properties"].as_object().into_iter().flatten();
    let more = resolved(schema, object)["properties"].as_object().filter(|_| object.get("$ref").is_some());
    let told = |(name, value): (&String, &Value)| {
        let inside = inside(schema, value);
        let inside = if inside.is_empty() { String::new() } else { format!(" ({})", inside.join(", ")) };
        (name.clone(), sentence(schema, value) + &inside)
    };
    own.chain(more.into_iter().flatten()).map(told).collect()
}

/// The words of a member, or the names of its own members.
fn inside(schema: &Value, value: &Value) -> Vec<String> {
    let list = value["anyOf"].as_array();
    let inner = list.and_then(|list| list.iter().find(|one| one.get("$ref").is_some())).unwrap_or(value);
    let inner = if value.get("items").is_some() { &value["items"] } else { inner };
    let inner = resolved(schema, inner);
    let words = inner["oneOf"].as_array().into_iter().flatten().filter_map(|word| word["const"].as_str());
    let more = inner["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names = inner["properties"].as_object().into_iter().flat_map(|members| members.keys());
    words.chain(more).chain(names.map(String::as_str)).map(code).collect()
}
