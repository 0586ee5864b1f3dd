//! `config.example`: every setting with its default, for people to copy.

use super::setting::{Setting, ValueKind};
use super::table::TABLE;

/// The text above the settings.
const HEAD: &str = "\
# Settings of ralph. Copy this file to .ralph/config and remove the # before what you change; what stands
# here are the defaults. `ralph config` shows every setting with its value and where it came from.
#
# The file looks like a shell script but is only read, never run: NAME=value with the shell's quotes,
# $NAME, ${NAME:-default}, comments, export. $(commands) are refused.
#
# Stronger than this file: flags, then the environment (RALPH_ before the name, as in RALPH_AGENT_TYPE).
# Weaker: ralph.toml at the project root, then ~/.config/ralph/ralph.toml, then the defaults.
#
# Other names are yours: prompts use them as ${NAME}, and those you export reach the agent's environment.
";

/// The text of `config.example`.
#[must_use]
pub fn example() -> String {
    HEAD.to_owned() + &TABLE.iter().map(entry).collect::<String>()
}

fn entry(setting: &Setting) -> String {
    let Setting { shell, default, except, empty, kind, doc, flag, .. } = setting;
    let unit = match kind {
        ValueKind::Duration(_) => " (30s, 5m, 1h30m, or seconds)",
        ValueKind::Pauses => " (such as 10s, or several separated by blanks)",
        ValueKind::Room => " (1 GB, 500 MB, 5%, or 0 for none)",
        ValueKind::Size => " (2 GB, 500 MB, or 0 for no limit)",
        ValueKind::Switch => " (true or false)",
        ValueKind::Words => " (separated by blanks)",
        ValueKind::Names => " (separated by commas)",
        ValueKind::Name
        | ValueKind::Text
        | ValueKind::Secret
        | ValueKind::Override
        | ValueKind::Count { .. }
        | ValueKind::Money => "",
    };
    // Verbs have different defaults; an empty value keeps them.
    let (value, empty) =
        if except.is_empty() { (*default, (*empty).to_owned()) } else { ("", setting.defaults_in_words()) };
    let value = if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() };
    let empty = if empty.is_empty() { String::new() } else { format!(" (empty: {empty})") };
    let flag = flag.as_ref().map_or_else(String::new, |flag| format!(" ({})", flag.long));
    format!("\n# {doc}{unit}{empty}{flag}\n# {shell}={value}\n")
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    #[test]
    fn config_example_is_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/config.example");
        if env::var_os("UPDATE").is_some() {
            fs::write(path, example()).unwrap();
        }
        let committed = fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == example(),
            "config.example is not what the table of settings says; run `UPDATE=1 cargo test --lib config_example`"
        );
    }
}
