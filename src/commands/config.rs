//! `ralph config`: every setting with its value and where it came from.

mod set;
mod table;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::output;
use crate::cli::ConfigArgs;
use crate::job::agent_choice;
use crate::job::workspace::{Workspace, open_with_secrets};
use crate::presets::{self, Preset};
use crate::settings::setting::NONE;
use crate::settings::{Origin, Resolved, Settings, Verb};
use crate::text::line::{escaped, joined};

/// `ralph config`.
pub(super) fn run(args: &ConfigArgs) -> anyhow::Result<u8> {
    match args.words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] if args.user => anyhow::bail!("--user is for 'ralph config set KEY VALUE'"),
        [] => show(args),
        ["set", key, value] => set::run(args, key, value),
        ["set", key] => anyhow::bail!("no value for {key}: write 'ralph config set {key} VALUE'"),
        ["set"] => anyhow::bail!("no setting named: write 'ralph config set KEY VALUE'"),
        _ => anyhow::bail!(
            "'ralph config' takes no words, or set, a setting and its value in one word, as in 'ralph config set \
             agent.provider codex'"
        ),
    }
}

/// Prints all settings.
fn show(args: &ConfigArgs) -> anyhow::Result<u8> {
    let Workspace { project, settings } = open_with_secrets(&args.place)?;
    settings.warnings.iter().for_each(|warning| output::warn(warning));
    let agent = agent_choice::of_settings(&settings, &project);
    let preset =
        agent.as_ref().ok().map(|agent| agent.preset).or_else(|| presets::preset(&settings.agent_type));
    super::print(|out| {
        if args.json {
            return write_json(&settings, preset, out);
        }
        let width = output::width();
        table::write(&settings, preset, &|path| project.relative(path), width, out)?;
        let agent = match &agent {
            Ok(agent) => format!("The agent is started as: {}", agent.command_line()),
            Err(error) => format!("No agent can be started: {}", joined(&format!("{error:#}"), " ")),
        };
        table::write_note(&escaped(&settings.secrets.word(&agent)), width, out)
    })
}

/// The preset's value for a setting without one, as one would write it; empty if the preset has none.
fn of_preset(setting: &str, preset: &Preset, settings: &Settings) -> String {
    // A command line of the user contains both.
    let has_words = presets::preset(&settings.agent_type).is_some();
    match setting {
        "agent.cli" if has_words => preset.cli.to_owned(),
        "agent.args" if has_words => shlex::try_join(preset.args.iter().copied()).unwrap_or_default(),
        "agent.response_filter" => preset.response.to_owned(),
        "agent.display_filter" => preset.display.to_owned(),
        "agent.result_filter" => preset.result.to_owned(),
        "agent.usage_cmd" => preset.usage_cmd.to_owned(),
        "agent.usage_parser" => preset.usage_parser.to_owned(),
        "model.ladder" => preset.ladder.join(" "),
        _ => String::new(),
    }
}

/// Writes a JSON array with one object per setting, in the table's order:
///
/// - `key`: path in `ralph.toml`; `shell`: name in the shell config; `env`: names in the environment, strongest
///   first; `flag`: with its dashes, or null; `doc`: one line
/// - `default`: text as one would write it; where verbs differ, that of most
/// - `defaults`: an object with the default of each verb as one would write it where verbs differ, else null
/// - `empty`: what an empty value means, in words, or null where a value is never empty
/// - `value`: text as it was written, or that of `default`, with a mark for each secret in it; of a secret `(set)`; `none` where
///   the user has chosen to have none
/// - `preset`: what the agent's preset gives, where there is no value and it gives one, else null
/// - `origin`: `kind` is `default`, `user_toml`, `project_toml`, `shell_config`, `env` or `flag`; `path` and `line`
///   (from 1) are set for the three files, `name` for the last two, and null otherwise
fn write_json(settings: &Settings, preset: Option<&Preset>, out: &mut dyn Write) -> io::Result<()> {
    let of_preset = |row: &Resolved| {
        let preset = preset.filter(|_| row.value.is_empty())?;
        Some(of_preset(row.setting.key, preset, settings)).filter(|given| !given.is_empty())
    };
    let is_chosen = |row: &Resolved| row.origin != Origin::Default && !row.setting.empty.is_empty();
    let value = |row: &Resolved| match row.shown() {
        "" if is_chosen(row) => NONE.to_owned(),
        shown => settings.secrets.word(shown),
    };
    let rows: Vec<JsonRow> =
        settings.rows().map(|row| JsonRow::new(row, value(row), of_preset(row))).collect();
    serde_json::to_writer_pretty(&mut *out, &rows)?;
    writeln!(out)
}

#[derive(Serialize)]
struct JsonRow<'a> {
    key: &'a str,
    shell: &'a str,
    env: &'a [&'a str],
    flag: Option<&'a str>,
    value: String,
    preset: Option<String>,
    default: &'a str,
    defaults: Option<BTreeMap<&'a str, &'a str>>,
    empty: Option<&'a str>,
    origin: JsonOrigin<'a>,
    doc: &'a str,
}

#[derive(Serialize)]
struct JsonOrigin<'a> {
    kind: &'a str,
    path: Option<String>,
    line: Option<usize>,
    name: Option<&'a str>,
}

impl<'a> JsonRow<'a> {
    fn new(row: &'a Resolved, value: String, preset: Option<String>) -> Self {
        let setting = row.setting;
        let by_verb = Verb::ALL.into_iter().map(|verb| (verb.words(), setting.default_of(Some(verb))));
        Self {
            key: setting.key,
            shell: setting.shell,
            env: setting.env,
            flag: setting.flag.as_ref().map(|flag| flag.long),
            value,
            preset,
            default: setting.default,
            defaults: (!setting.except.is_empty()).then(|| by_verb.collect()),
            empty: Some(setting.empty).filter(|empty| !empty.is_empty()),
            origin: JsonOrigin::from(&row.origin),
            doc: setting.doc,
        }
    }
}

impl<'a> From<&'a Origin> for JsonOrigin<'a> {
    fn from(origin: &'a Origin) -> Self {
        let file = |kind, path: &Path, line| {
            // A path that is not UTF-8 is shown with replacement characters rather than refused.
            JsonOrigin { kind, path: Some(path.to_string_lossy().into_owned()), line: Some(line), name: None }
        };
        let named = |kind, name| JsonOrigin { kind, path: None, line: None, name };
        match origin {
            Origin::Default => named("default", None),
            Origin::UserToml { path, line } => file("user_toml", path, *line),
            Origin::ProjectToml { path, line } => file("project_toml", path, *line),
            Origin::ShellConfig { path, line } => file("shell_config", path, *line),
            Origin::Env(name) => named("env", Some(name)),
            Origin::Flag(name) => named("flag", Some(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use crate::settings::Sources;
    use crate::settings::table::TABLE;

    /// Settings from a config, the environment and a flag; the config's path is returned too.
    fn settings() -> (Settings, String) {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        fs::write(&config, "MY_TOKEN=hush\nAGENT_RESPONSE_FILTER=$'.a\\n| \\e[31m.b'\n").unwrap();
        let path = config.display().to_string();
        let sources = Sources {
            verb: None,
            flags: vec![("loop.timeout", "90".to_owned())],
            env: &|name| (name == "RALPH_AGENT_TYPE").then(|| "codex".to_owned()),
            shell_config: Some(config),
            shell_config_explicit: true,
            older_toml: None,
            project_toml: None,
            user_toml: None,
            trusts: &|_| true,
        };
        (Settings::load(&sources).unwrap(), path)
    }

    #[test]
    fn the_json_has_its_documented_shape() {
        let (settings, path) = settings();
        let mut out = Vec::new();
        write_json(&settings, presets::preset("codex"), &mut out).unwrap();
        let rows: Vec<Value> = serde_json::from_slice(&out).unwrap();
        let row = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap();
        assert_eq!(rows.len(), settings.rows().count());
        assert_eq!(
            row("agent.provider"),
            &json!({
                "key": "agent.provider",
                "shell": "AGENT_TYPE",
                "env": ["RALPH_AGENT_TYPE"],
                "flag": "--agent",
                "value": "codex",
                "preset": null,
                "default": "claude",
                "defaults": null,
                "empty": null,
                "origin": { "kind": "env", "path": null, "line": null, "name": "RALPH_AGENT_TYPE" },
                "doc": TABLE[0].doc,
            })
        );
        let origin = |key: &str| row(key)["origin"].clone();
        let config = json!({ "kind": "shell_config", "path": path, "line": 2, "name": null });
        assert_eq!(origin("agent.response_filter"), config);
        assert_eq!(
            origin("loop.timeout"),
            json!({ "kind": "flag", "path": null, "line": null, "name": "--timeout" })
        );
        assert_eq!(
            origin("paths.specs"),
            json!({ "kind": "default", "path": null, "line": null, "name": null })
        );
        assert_eq!(row("agent.cli")["preset"], "codex");
        // A value that is set counts, and so does one that has no default.
        assert_eq!(
            (&row("agent.response_filter")["preset"], &row("agent.model")["preset"]),
            (&Value::Null, &Value::Null)
        );
        assert!(row("agent.cli")["flag"].is_null() && !String::from_utf8(out).unwrap().contains("hush"));
    }
}
