use std::fs;

use super::*;
use crate::presets;
use crate::settings::Sources;

/// What is printed in so many cells, without colours, with a config in the folder `/p`.
fn table(config: &str, width: Option<usize>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, config).unwrap();
    let sources = Sources {
        verb: None,
        flags: vec![("loop.timeout", "90".to_owned())],
        env: &|name| (name == "RALPH_AGENT_TYPE").then(|| "codex".to_owned()),
        shell_config: Some(path),
        shell_config_explicit: true,
        older_toml: None,
        project_toml: None,
        user_toml: None,
        trusts: &|_| true,
    };
    let settings = Settings::load(&sources).unwrap();
    let place = |path: &Path| path.strip_prefix(folder.path()).unwrap().to_owned();
    let mut out = anstream::StripStream::new(Vec::new());
    write(&settings, presets::preset("codex"), &place, width, &mut out).unwrap();
    String::from_utf8(out.into_inner()).unwrap().lines().map(str::to_owned).collect()
}

/// The cells of a setting's row where there is no width.
#[track_caller]
fn row<'a>(lines: &'a [String], key: &str) -> (&'a str, &'a str) {
    let line = lines.iter().find(|line| line.starts_with(key)).unwrap();
    let (before, value) = line.split_at(lines[0].find("VALUE").unwrap());
    (before.trim_end(), value)
}

const FILTER: &str = "MY_TOKEN=hush\nAGENT_RESPONSE_FILTER=$'.a\\n| \\e[31m.b'\nMAX_COST=2\nAGENT_CLI=\n";

#[test]
fn without_a_width_each_setting_is_one_aligned_line() {
    let lines = table(FILTER, None);
    assert_eq!(lines.len(), 1 + crate::settings::table::TABLE.len() + 2);
    for (key, origin, value) in [
        ("agent.provider", "RALPH_AGENT_TYPE in the environment", "codex"),
        ("agent.response_filter", "config line 2", ".a\\n| \\u{1b}[31m.b"),
        ("loop.max_cost", "config line 3", "2"),
        ("loop.timeout", "--timeout", "90"),
        ("loop.max_tokens", "default", "none (no limit)"),
        ("loop.delay", "default", "none"),
        ("loop.max_retries", "default", "by verb (3, run 0, spawn 0, loop 0)"),
        ("loop.max_iterations", "default", "by verb (10, run none, feature none, loop build 20)"),
        ("loop.inactivity_timeout", "default", "by verb (15m, spawn 3m)"),
        ("monitoring.max_consecutive_errors", "default", "by verb (0, spawn 5, run tasks 3, loop 3)"),
        ("agent.cli", "preset codex", "codex"),
        ("agent.display_filter", "preset codex", "built in"),
        ("agent.usage_cmd", "default", "none"),
    ] {
        let (before, found) = row(&lines, key);
        assert!(found == value && before.ends_with(&format!("  {origin}")), "{key}: {before} | {found}");
    }
    assert_eq!(lines.last().unwrap(), BY_VERB);
    assert!(!lines.concat().contains("hush"));
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let filter =
        format!("AGENT_RESPONSE_FILTER='{}'\nDONE_PATTERN={}\n", ".abc ".repeat(100), "x".repeat(300));
    for width in [20, 45, 60, 80, 100, 120, 200, 1000] {
        let lines = table(&filter, Some(width));
        for line in &lines {
            // The head is that wide.
            assert!(line.width() <= width.max(40), "{width}: {line}");
        }
        let text = lines.join("\n");
        for shown in ["agent.provider", "codex", "RALPH_AGENT_TYPE", "config line 1", "--timeout"] {
            assert!(text.contains(shown), "{width}: {shown}: {text}");
        }
        assert_eq!(text.contains('…'), width < 1000, "{width}: {text}");
        assert_eq!(text.contains("SHELL NAME"), width > 120, "{width}: {text}");
    }
}

#[test]
fn on_a_narrow_terminal_what_fits_stands_beside_its_setting() {
    let lines = table("MAX_RETRIES=7\n", Some(60));
    let at = |text: &str| {
        lines.iter().position(|line| line == text).unwrap_or_else(|| panic!("{text}: {lines:#?}"))
    };
    at("agent.grace                        10s");
    let retries = at("loop.max_retries                   7");
    assert_eq!(lines[retries + 1], "                                   config line 1");
    let errors = at("monitoring.max_consecutive_errors");
    assert_eq!(lines[errors + 1], "    by verb (0, spawn 5, run tasks 3, loop 3)");
}
