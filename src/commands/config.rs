//! `ralph config`: every setting with its value and where it came from.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::cli::ConfigArgs;
use crate::job::agent_choice::Choice;
use crate::job::workspace::{Workspace, open};
use crate::settings::setting::Setting;
use crate::settings::{Origin, Resolved, Settings, Verb};
use crate::text::line::escaped;

const HEAD: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const CHOSEN: Style = AnsiColor::Green.on_default();

/// `ralph config`.
pub(super) fn run(args: &ConfigArgs) -> anyhow::Result<u8> {
    let Workspace { project, settings } = open(&args.place)?;
    super::print(|out| {
        if args.json {
            return write_json(&settings, out);
        }
        write_table(&settings, out)?;
        match Choice::of(&settings, &project) {
            Ok(choice) => writeln!(out, "\nThe agent is started as: {}", escaped(&choice.command_line())),
            Err(error) => writeln!(out, "\nNo agent can be started: {}", escaped(&format!("{error:#}"))),
        }
    })
}

/// Writes one aligned line per setting: key, name in the shell config, origin, value. Only the settings of the
/// table are shown, never other variables of the config, which may be secrets.
///
/// Colours are always written; the caller passes a stream of `anstream`, which removes them where they do not
/// belong.
pub fn write_table(settings: &Settings, out: &mut dyn Write) -> io::Result<()> {
    let cells = |row: &Resolved| {
        [row.setting.key.to_owned(), row.setting.shell.to_owned(), escaped(&row.origin.to_string())]
    };
    let head = ["SETTING", "SHELL NAME", "ORIGIN"].map(str::to_owned);
    let mut widths = head.each_ref().map(String::len);
    for row in settings.rows() {
        for (width, cell) in widths.iter_mut().zip(cells(row)) {
            *width = cell.chars().count().max(*width);
        }
    }
    let [key_width, shell_width, origin_width] = widths;
    let [key, shell, origin] = head;
    writeln!(out, "{HEAD}{key:key_width$}  {shell:shell_width$}  {origin:origin_width$}  VALUE{HEAD:#}")?;
    for row in settings.rows() {
        let [key, shell, origin] = cells(row);
        let style = if row.origin == Origin::Default { QUIET } else { CHOSEN };
        write!(out, "{key:key_width$}  {shell:shell_width$}  {style}{origin:origin_width$}{style:#}  ")?;
        let value = value(row);
        if value.is_empty() {
            writeln!(out, "{QUIET}({}){QUIET:#}", row.setting.empty)?;
        } else {
            writeln!(out, "{}", escaped(&value))?;
        }
    }
    Ok(())
}

/// What was decided; the default with all that verbs make of it.
fn value(row: &Resolved) -> Cow<'_, str> {
    if row.origin == Origin::Default { default(row.setting) } else { Cow::Borrowed(&row.value) }
}

/// The default as one would write it, and where verbs differ in words: `3; 0 with run, loop`.
fn default(setting: &Setting) -> Cow<'static, str> {
    if setting.except.is_empty() {
        Cow::Borrowed(setting.default)
    } else {
        Cow::Owned(setting.defaults_in_words())
    }
}

/// Writes a JSON array with one object per setting, in the table's order:
///
/// - `key`: path in `ralph.toml`; `shell`: name in the shell config; `env`: names in the environment, strongest
///   first; `flag`: with its dashes, or null; `doc`: one line
/// - `default`: text as one would write it; where verbs differ, that of most
/// - `defaults`: an object with the default of each verb as one would write it where verbs differ, else null
/// - `empty`: what an empty value means, in words, or null where a value is never empty
/// - `value`: text as it was written, or that of `default`
/// - `origin`: `kind` is `default`, `user_toml`, `project_toml`, `shell_config`, `env` or `flag`; `path` and `line`
///   (from 1) are set for the three files, `name` for the last two, and null otherwise
pub fn write_json(settings: &Settings, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<JsonRow> = settings.rows().map(JsonRow::from).collect();
    serde_json::to_writer_pretty(&mut *out, &rows)?;
    writeln!(out)
}

#[derive(Serialize)]
struct JsonRow<'a> {
    key: &'a str,
    shell: &'a str,
    env: &'a [&'a str],
    flag: Option<&'a str>,
    value: &'a str,
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

impl<'a> From<&'a Resolved> for JsonRow<'a> {
    fn from(row: &'a Resolved) -> Self {
        let setting = row.setting;
        let by_verb = Verb::ALL.into_iter().map(|verb| (verb.words(), setting.default_of(Some(verb))));
        Self {
            key: setting.key,
            shell: setting.shell,
            env: setting.env,
            flag: setting.flag.as_ref().map(|flag| flag.long),
            value: &row.value,
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

    /// Settings from a config, the environment and a flag; the config's path is returned too.
    fn settings() -> (Settings, String) {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        fs::write(&config, "MY_TOKEN=hush\nAGENT_RESPONSE_FILTER=$'.a\\n| \\e[31m.b'\n").unwrap();
        let path = config.display().to_string();
        let sources = Sources {
            verb: None,
            flags: vec![("loop.timeout", "90".to_owned())],
            env: &|name| (name == "RALPH_PROVIDER").then(|| "codex".to_owned()),
            shell_config: Some(config),
            shell_config_explicit: true,
            older_toml: None,
            project_toml: None,
            user_toml: None,
        };
        (Settings::load(&sources).unwrap(), path)
    }

    #[test]
    fn the_table_is_aligned_and_holds_no_other_variables() {
        let (settings, path) = settings();
        let mut out = anstream::StripStream::new(Vec::new());
        write_table(&settings, &mut out).unwrap();
        let text = String::from_utf8(out.into_inner()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + settings.rows().count());
        let value_column = lines[0].find("VALUE").unwrap();
        let line =
            |key: &str| lines.iter().find(|line| line.starts_with(key)).unwrap().split_at(value_column);
        assert_eq!(line("agent.provider").1, "codex");
        assert!(
            line("agent.provider").0.contains("  AGENT_TYPE  ")
                && line("agent.provider").0.contains("RALPH_PROVIDER")
        );
        assert_eq!(line("agent.cli").1, "(the agent preset's own)");
        assert_eq!(line("agent.response_filter").1, "$'.a\\n| \\u{1b}[31m.b'".trim_matches(['$', '\'']));
        assert!(line("agent.response_filter").0.contains(&format!("{path} line 2")));
        assert_eq!(line("loop.timeout").1, "90");
        assert!(!text.contains("hush"));
    }

    #[test]
    fn the_json_has_its_documented_shape() {
        let (settings, path) = settings();
        let mut out = Vec::new();
        write_json(&settings, &mut out).unwrap();
        let rows: Vec<Value> = serde_json::from_slice(&out).unwrap();
        let row = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap();
        assert_eq!(rows.len(), settings.rows().count());
        assert_eq!(
            row("agent.provider"),
            &json!({
                "key": "agent.provider",
                "shell": "AGENT_TYPE",
                "env": ["RALPH_AGENT_TYPE", "RALPH_PROVIDER", "RALPH_AGENT"],
                "flag": "--agent",
                "value": "codex",
                "default": "claude",
                "defaults": null,
                "empty": null,
                "origin": { "kind": "env", "path": null, "line": null, "name": "RALPH_PROVIDER" },
                "doc": "Which agent to run: amp, claude, cline, codex, gemini, opencode, one of claude, codex, gemini, opencode with -acp, script, custom, or a command line of your own",
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
        assert!(row("agent.cli")["flag"].is_null() && !String::from_utf8(out).unwrap().contains("hush"));
    }
}
