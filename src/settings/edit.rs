//! Puts a setting into the text of a file. Everything else in it stays as its user wrote it, comments too.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::setting::{Setting, ValueKind};
use super::table::TABLE;
use super::{shell, toml};

/// The setting of this name: its key, or what it is called in the shell config, in the environment or as a flag.
///
/// # Errors
/// When there is none: a message that has the nearest name.
pub(crate) fn named(name: &str) -> Result<&'static Setting, String> {
    let is_meant = |setting: &&Setting| {
        let flag = setting.flag.as_ref().map(|flag| flag.long);
        [setting.key, setting.shell].contains(&name) || setting.env.contains(&name) || flag == Some(name)
    };
    TABLE.iter().find(is_meant).ok_or_else(|| toml::unknown(name))
}

/// The text of a `ralph.toml` with this value.
///
/// # Errors
/// When the text, or what would become of it, cannot be read: a message that says why.
pub(crate) fn in_toml(text: &str, setting: &Setting, value: &str) -> Result<String, String> {
    let problem = |toml::Problem { line, message, .. }| format!("line {line}: {message}");
    let before = toml::parse(text).map_err(problem)?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let is_set = before.values.iter().any(|value| value.setting.key == setting.key);
    let mut key = setting.key;
    if is_set && setting.key == toml::ALSO.1 && !has(document.as_table(), key) {
        key = toml::ALSO.0;
    }
    put(document.as_table_mut(), key, of_kind(setting.kind, value))?;
    let text = document.to_string();
    toml::parse(&text).map_err(problem)?;
    Ok(text)
}

/// A value in the type that its setting has in TOML.
fn of_kind(kind: ValueKind, value: &str) -> Value {
    let value = value.trim();
    match kind {
        ValueKind::Switch => match value.to_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => true.into(),
            "false" | "0" | "no" | "off" => false.into(),
            _ => value.into(),
        },
        ValueKind::Words => value.split_whitespace().collect::<Array>().into(),
        ValueKind::Names => {
            value.split(',').map(str::trim).filter(|name| !name.is_empty()).collect::<Array>().into()
        }
        ValueKind::Count { .. } | ValueKind::Duration(_) => {
            value.parse::<i64>().map_or_else(|_| value.into(), Value::from)
        }
        ValueKind::Money => {
            let amount = value.trim_start_matches('$');
            let whole = amount.parse::<i64>().map(Value::from).ok();
            whole.or_else(|| amount.parse::<f64>().map(Value::from).ok()).unwrap_or_else(|| value.into())
        }
        _ => value.into(),
    }
}

fn has(table: &dyn TableLike, key: &str) -> bool {
    match key.split_once('.') {
        None => table.contains_key(key),
        Some((section, rest)) => {
            table.get(section).and_then(Item::as_table_like).is_some_and(|table| has(table, rest))
        }
    }
}

/// Puts a value at a path; what stood there gives it its blanks and its comment.
fn put(table: &mut dyn TableLike, key: &str, mut value: Value) -> Result<(), String> {
    if let Some((section, rest)) = key.split_once('.') {
        if !table.contains_key(section) {
            let mut new = Table::new();
            // Of a section that only has sections, no heading is written.
            new.set_implicit(rest.contains('.'));
            // A table within braces makes one within braces of it.
            table.insert(section, Item::Table(new));
        }
        let inner = table.get_mut(section).and_then(Item::as_table_like_mut);
        let inner = inner.ok_or_else(|| format!("`{section}` is no section there"))?;
        return put(inner, rest, value);
    }
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
    Ok(())
}

/// The text of a shell config with this value: in the line that assigns it, else below its commented example, else at the end.
///
/// # Errors
/// When it is assigned in a way that only a person should change: the number of the line.
pub(crate) fn in_shell(text: &str, setting: &Setting, value: &str) -> Result<String, usize> {
    let name = setting.shell;
    let value_of = |text: &str| {
        let read = shell::parse(text, &|_| None).ok()?;
        read.into_iter().find(|assignment| assignment.name == name)
    };
    let quoted = shlex::try_quote(value).map_err(|_| 0_usize)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let assigned = value_of(text);
    if let Some(assignment) = &assigned {
        let at = assignment.line;
        let is_whole = |text: &str| {
            shell::parse(text, &|_| None).is_ok_and(|read| read.len() == 1)
                && value_of(text).is_some_and(|whole| whole.value == assignment.value)
        };
        // A value may have several lines.
        let ends = (at..=lines.len()).find(|end| is_whole(&lines[at - 1..*end].join("\n")));
        let end = ends.ok_or(at)?;
        let line = lines[at - 1..end].join("\n");
        let (before, _) = line.split_once('=').ok_or(at)?;
        let is_plain = before.trim().strip_prefix("export ").unwrap_or(before).trim() == name;
        let comment = line
            .find(" #")
            .filter(|&at| value_of(&line[..at]).is_some_and(|cut| cut.value == assignment.value));
        let comment = comment.map(|at| line[at..].to_owned()).unwrap_or_default();
        let new = format!("{before}={quoted}{comment}");
        if !is_plain {
            return Err(at);
        }
        lines.splice(at - 1..end, [new]);
    } else {
        let is_example = |line: &String| {
            line.trim_start()
                .strip_prefix('#')
                .is_some_and(|line| line.trim_start().starts_with(&format!("{name}=")))
        };
        let at = lines.iter().rposition(is_example).map_or(lines.len(), |at| at + 1);
        lines.insert(at, format!("{name}={quoted}"));
    }
    let new = lines.join("\n") + "\n";
    match value_of(&new) {
        Some(read) if read.value == value => Ok(new),
        read => Err(read.or(assigned).map_or(0, |assignment| assignment.line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_by_each_of_its_names() {
        for name in ["loop.max_retries", "MAX_RETRIES", "RALPH_MAX_RETRIES"] {
            assert_eq!(named(name).unwrap().key, "loop.max_retries", "{name}");
        }
        assert_eq!(named("--timeout").unwrap().key, "loop.timeout");
        let refused = named("loop.max_retrys").unwrap_err();
        assert_eq!(refused, "unknown setting `loop.max_retrys`; did you mean `loop.max_retries`?");
    }

    #[test]
    fn toml_keeps_everything_else() {
        let toml = |text: &str, name: &str, value: &str| in_toml(text, named(name).unwrap(), value).unwrap();
        for (text, name, value, expected) in [
            ("", "loop.max_retries", "5", "[loop]\nmax_retries = 5\n"),
            (
                "# mine\n[loop] # all\nmax_retries = 3  # few\ntimeout = \"5m\"\n",
                "loop.max_retries",
                "5",
                "# mine\n[loop] # all\nmax_retries = 5  # few\ntimeout = \"5m\"\n",
            ),
            (
                "[loop]\ntimeout = 5\n\n[git]\n",
                "loop.max_retries",
                "5",
                "[loop]\ntimeout = 5\nmax_retries = 5\n\n[git]\n",
            ),
            ("loop.timeout = 5\n", "loop.timeout", "30min", "loop.timeout = \"30min\"\n"),
            (
                "loop = { timeout = 5 }\n",
                "loop.max_retries",
                "1",
                "loop = { timeout = 5 , max_retries = 1 }\n",
            ),
            ("[agent]\ncommand = 'codex'\n", "agent.provider", "claude", "[agent]\ncommand = \"claude\"\n"),
            ("", "git.auto_push", "off", "[git]\nauto_push = false\n"),
            ("", "git.worktree.email", "a@b", "[git.worktree]\nemail = \"a@b\"\n"),
            ("", "git.protected_branches", "main dev", "[git]\nprotected_branches = [\"main\", \"dev\"]\n"),
            ("", "loop.max_cost", "2.50", "[loop]\nmax_cost = 2.5\n"),
        ] {
            if !TABLE.iter().any(|setting| setting.key == name) {
                continue;
            }
            assert_eq!(toml(text, name, value), expected);
        }
        assert!(in_toml("[loop", named("loop.timeout").unwrap(), "5m").unwrap_err().starts_with("line 1: "));
        assert!(
            in_toml("", named("loop.max_retries").unwrap(), "many").unwrap_err().contains("whole number")
        );
    }

    #[test]
    fn a_shell_config_keeps_everything_else() {
        let shell = |text: &str, value: &str| in_shell(text, named("AGENT_TYPE").unwrap(), value);
        for (text, expected) in [
            ("", "AGENT_TYPE=codex\n"),
            ("# x\nA=1\n", "# x\nA=1\nAGENT_TYPE=codex\n"),
            ("# AGENT_TYPE=claude\nA=1\n", "# AGENT_TYPE=claude\nAGENT_TYPE=codex\nA=1\n"),
            ("A=1\nAGENT_TYPE='cl aude'  # mine\nB=2", "A=1\nAGENT_TYPE=codex # mine\nB=2\n"),
            ("  export AGENT_TYPE=claude\n", "  export AGENT_TYPE=codex\n"),
            ("A=1\nAGENT_TYPE='a\n b' # c\nB=2\n", "A=1\nAGENT_TYPE=codex # c\nB=2\n"),
            ("AGENT_TYPE=a\\\nb\nB=2\n", "AGENT_TYPE=codex\nB=2\n"),
        ] {
            assert_eq!(shell(text, "codex").as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(shell("", "my agent -p").unwrap(), "AGENT_TYPE='my agent -p'\n");
        for text in ["A=1\nAGENT_TYPE=a B=b\n", "A=1\n: ${AGENT_TYPE:=a}\n"] {
            assert_eq!(shell(text, "codex"), Err(2), "{text}");
        }
    }
}
