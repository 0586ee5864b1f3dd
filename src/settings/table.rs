//! The one table of settings. Loaders, `ralph config` and `config.example` all read it: a new setting is one row
//! here and one field of [`Settings`](super::Settings).

/// What a setting's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text that may not be empty.
    Text,
    /// Text that takes the place of an agent preset's own; empty means the preset's.
    Override,
    /// A whole number, `least` or more.
    Count {
        /// The smallest number that makes sense.
        least: u32,
    },
    /// A duration above zero, see [`duration`](crate::text::duration).
    Duration,
    /// An amount of money above zero, in US dollars.
    Money,
    /// On or off: `true` or `false`.
    Switch,
    /// Words; a list in TOML, separated by blanks elsewhere. May be none.
    Words,
}

/// One row of the table.
#[derive(Debug)]
pub struct Setting {
    /// Path in `ralph.toml`, `section.name`.
    pub key: &'static str,
    /// Name in the shell-style config.
    pub shell: &'static str,
    /// Names in the environment, the first that is set wins.
    pub env: &'static [&'static str],
    /// The flag that sets it, with its dashes.
    pub flag: Option<&'static str>,
    /// The default, as one would write it.
    pub default: &'static str,
    /// What the value is.
    pub kind: Kind,
    /// What it does, in one line.
    pub doc: &'static str,
}

/// Every setting, in the order in which people should meet them.
pub const TABLE: &[Setting] = &[
    Setting {
        key: "agent.provider",
        shell: "AGENT_TYPE",
        env: &["RALPH_AGENT_TYPE", "RALPH_PROVIDER"],
        flag: Some("--agent"),
        default: "claude",
        kind: Kind::Text,
        doc: "Which agent to run: amp, claude, cline, codex, gemini, opencode, script or custom",
    },
    Setting {
        key: "agent.cli",
        shell: "AGENT_CLI",
        env: &["RALPH_AGENT_CLI"],
        flag: None,
        default: "",
        kind: Kind::Override,
        doc: "The agent's program: a name on PATH or a path",
    },
    Setting {
        key: "agent.args",
        shell: "AGENT_ARGS",
        env: &["RALPH_AGENT_ARGS"],
        flag: None,
        default: "",
        kind: Kind::Override,
        doc: "The agent's arguments, split into words as a shell would split them",
    },
    Setting {
        key: "agent.response_filter",
        shell: "AGENT_RESPONSE_FILTER",
        env: &["RALPH_AGENT_RESPONSE_FILTER"],
        flag: None,
        default: "",
        kind: Kind::Override,
        doc: "jq program that picks the assistant's own text, where signals are looked for",
    },
    Setting {
        key: "agent.display_filter",
        shell: "AGENT_DISPLAY_FILTER",
        env: &["RALPH_AGENT_DISPLAY_FILTER"],
        flag: None,
        default: "",
        kind: Kind::Override,
        doc: "jq program or shell pipeline that makes the live display",
    },
    Setting {
        key: "agent.result_filter",
        shell: "AGENT_RESULT_FILTER",
        env: &["RALPH_AGENT_RESULT_FILTER"],
        flag: None,
        default: "",
        kind: Kind::Override,
        doc: "jq program that picks error, cost, tokens, model and session from the stream",
    },
    Setting {
        key: "agent.usage_cmd",
        shell: "AGENT_USAGE_CMD",
        env: &["RALPH_AGENT_USAGE_CMD"],
        flag: None,
        default: "",
        kind: Kind::Override,
        doc: "Command that prints the account's balance",
    },
    Setting {
        key: "agent.usage_parser",
        shell: "AGENT_USAGE_PARSER",
        env: &["RALPH_AGENT_USAGE_PARSER"],
        flag: None,
        default: "",
        kind: Kind::Override,
        doc: "Pipeline that finds the dollars in what the usage command prints",
    },
    Setting {
        key: "agent.grace",
        shell: "AGENT_GRACE",
        env: &["RALPH_AGENT_GRACE"],
        flag: None,
        default: "10s",
        kind: Kind::Duration,
        doc: "How long an agent may live on after its final event",
    },
    Setting {
        key: "agent.interrupt_wait",
        shell: "AGENT_INTERRUPT_WAIT",
        env: &["RALPH_AGENT_INTERRUPT_WAIT"],
        flag: None,
        default: "3s",
        kind: Kind::Duration,
        doc: "How long an agent that is ended has after SIGINT, before SIGTERM",
    },
    Setting {
        key: "agent.terminate_wait",
        shell: "AGENT_TERMINATE_WAIT",
        env: &["RALPH_AGENT_TERMINATE_WAIT"],
        flag: None,
        default: "2s",
        kind: Kind::Duration,
        doc: "How long it has after SIGTERM, before SIGKILL",
    },
    Setting {
        key: "loop.max_iterations",
        shell: "DEFAULT_MAX_ITERATIONS",
        env: &["RALPH_DEFAULT_MAX_ITERATIONS"],
        flag: None,
        default: "10",
        kind: Kind::Count { least: 1 },
        doc: "Most iterations of plan, build and prompt when the command line names no number",
    },
    Setting {
        key: "loop.max_retries",
        shell: "MAX_RETRIES",
        env: &["RALPH_MAX_RETRIES"],
        flag: Some("--max-retries"),
        default: "3",
        kind: Kind::Count { least: 0 },
        doc: "How often a failed iteration is tried again",
    },
    Setting {
        key: "loop.timeout",
        shell: "AGENT_TIMEOUT",
        env: &["RALPH_AGENT_TIMEOUT"],
        flag: Some("--timeout"),
        default: "2h",
        kind: Kind::Duration,
        doc: "Longest time for one attempt",
    },
    Setting {
        key: "loop.inactivity_timeout",
        shell: "INACTIVITY_TIMEOUT",
        env: &["RALPH_INACTIVITY_TIMEOUT"],
        flag: Some("--inactivity-timeout"),
        default: "15m",
        kind: Kind::Duration,
        doc: "Longest time without output or another sign of life",
    },
    Setting {
        key: "loop.max_limit_wait",
        shell: "MAX_LIMIT_WAIT",
        env: &["RALPH_MAX_LIMIT_WAIT"],
        flag: Some("--max-limit-wait"),
        default: "6h",
        kind: Kind::Duration,
        doc: "Longest wait for a usage limit to reset; a later reset ends the loop",
    },
    Setting {
        key: "loop.backoff",
        shell: "RETRY_BACKOFF",
        env: &["RALPH_RETRY_BACKOFF"],
        flag: Some("--backoff"),
        default: "",
        kind: Kind::Duration,
        doc: "Pause before a first retry, doubled before every further one; empty: none",
    },
    Setting {
        key: "loop.stop_on_error",
        shell: "STOP_ON_ERROR",
        env: &["RALPH_STOP_ON_ERROR"],
        flag: Some("--stop-on-error"),
        default: "",
        kind: Kind::Switch,
        doc: "Whether an iteration that failed for good ends the loop; empty: as the verb does",
    },
    Setting {
        key: "monitoring.max_consecutive_errors",
        shell: "MAX_CONSECUTIVE_ERRORS",
        env: &["RALPH_MAX_CONSECUTIVE_ERRORS"],
        flag: Some("--max-errors"),
        default: "",
        kind: Kind::Count { least: 0 },
        doc: "Failed iterations in a row that end the loop, 0 for never; empty: as the verb does",
    },
    Setting {
        key: "completion.idle_threshold",
        shell: "IDLE_THRESHOLD",
        env: &["RALPH_IDLE_THRESHOLD"],
        flag: Some("--idle"),
        default: "",
        kind: Kind::Count { least: 0 },
        doc: "Iterations in a row without a change that end the loop, 0 for never; empty: as the verb does",
    },
    Setting {
        key: "loop.max_duration",
        shell: "MAX_DURATION",
        env: &["RALPH_MAX_DURATION"],
        flag: Some("--max-duration"),
        default: "",
        kind: Kind::Duration,
        doc: "Longest time for the loop as a whole; empty: no limit",
    },
    Setting {
        key: "loop.max_cost",
        shell: "MAX_COST",
        env: &["RALPH_MAX_COST"],
        flag: Some("--max-cost"),
        default: "",
        kind: Kind::Money,
        doc: "No iteration begins when this much is spent, in US dollars; empty: no limit",
    },
    Setting {
        key: "loop.max_tokens",
        shell: "MAX_TOKENS",
        env: &["RALPH_MAX_TOKENS"],
        flag: Some("--max-tokens"),
        default: "",
        kind: Kind::Count { least: 1 },
        doc: "No iteration begins when this many tokens are used; empty: no limit",
    },
    Setting {
        key: "loop.done_pattern",
        shell: "DONE_PATTERN",
        env: &["RALPH_DONE_PATTERN"],
        flag: Some("--done-pattern"),
        default: "",
        kind: Kind::Text,
        doc: "Regular expression that ends the loop when the assistant's text matches; empty: none",
    },
    Setting {
        key: "loop.delay",
        shell: "LOOP_DELAY",
        env: &["RALPH_LOOP_DELAY"],
        flag: Some("--delay"),
        default: "",
        kind: Kind::Duration,
        doc: "Pause between two iterations; empty: none",
    },
    Setting {
        key: "validation.enabled",
        shell: "VALIDATION_ENABLED",
        env: &["RALPH_VALIDATION_ENABLED"],
        flag: None,
        default: "true",
        kind: Kind::Switch,
        doc: "Whether the validation command is run",
    },
    Setting {
        key: "validation.command",
        shell: "VALIDATION_COMMAND",
        env: &["RALPH_VALIDATION_COMMAND"],
        flag: Some("--validate"),
        default: "",
        kind: Kind::Text,
        doc: "Command for sh that proves the work after each iteration; empty: none",
    },
    Setting {
        key: "validation.timeout",
        shell: "VALIDATION_TIMEOUT",
        env: &["RALPH_VALIDATION_TIMEOUT"],
        flag: None,
        default: "10m",
        kind: Kind::Duration,
        doc: "Longest time for the validation command",
    },
    Setting {
        key: "paths.specs",
        shell: "SPECS_DIR",
        env: &["RALPH_SPECS_DIR"],
        flag: None,
        default: "specs",
        kind: Kind::Text,
        doc: "Folder of the specifications, from the project root",
    },
    Setting {
        key: "git.auto_push",
        shell: "GIT_AUTO_PUSH",
        env: &["RALPH_GIT_AUTO_PUSH"],
        flag: None,
        default: "true",
        kind: Kind::Switch,
        doc: "Whether 'loop build' pushes a branch after each iteration with new commits",
    },
    Setting {
        key: "git.auto_pr",
        shell: "GIT_AUTO_PR",
        env: &["RALPH_GIT_AUTO_PR"],
        flag: None,
        default: "true",
        kind: Kind::Switch,
        doc: "Whether 'loop build' opens a pull request, with gh, for a branch that is done and pushed",
    },
    Setting {
        key: "git.pr_base",
        shell: "GIT_PR_BASE",
        env: &["RALPH_GIT_PR_BASE"],
        flag: None,
        default: "",
        kind: Kind::Text,
        doc: "Branch that branches without a 'Base:' start from; empty: master, else the remote's HEAD, else the current one",
    },
    Setting {
        key: "git.protected_branches",
        shell: "GIT_PROTECTED_BRANCHES",
        env: &["RALPH_GIT_PROTECTED_BRANCHES"],
        flag: None,
        default: "main master production",
        kind: Kind::Words,
        doc: "Branches that are never pushed to",
    },
    Setting {
        key: "git.worktree.name",
        shell: "GIT_WORKTREE_NAME",
        env: &["RALPH_GIT_WORKTREE_NAME"],
        flag: None,
        default: "",
        kind: Kind::Text,
        doc: "Name of the author of commits in the work trees of branches; empty: your own",
    },
    Setting {
        key: "git.worktree.email",
        shell: "GIT_WORKTREE_EMAIL",
        env: &["RALPH_GIT_WORKTREE_EMAIL"],
        flag: None,
        default: "",
        kind: Kind::Text,
        doc: "That author's address; empty: your own",
    },
    Setting {
        key: "git.worktree.signing_key",
        shell: "GIT_WORKTREE_SIGNING_KEY",
        env: &["RALPH_GIT_WORKTREE_SIGNING_KEY"],
        flag: None,
        default: "",
        kind: Kind::Text,
        doc: "Key that signs those commits; empty: they are signed as yours are",
    },
    Setting {
        key: "git.worktree.ssh_key",
        shell: "GIT_WORKTREE_SSH_KEY",
        env: &["RALPH_GIT_WORKTREE_SSH_KEY"],
        flag: None,
        default: "",
        kind: Kind::Text,
        doc: "File of the key that those work trees push with, from the project root; empty: your own",
    },
];

/// Keys of `ralph.toml` that are accepted, so that existing files load, but have no effect yet. They hold text.
pub(super) const WITHOUT_EFFECT: &[&str] = &[
    "monitoring.log_file",
    "monitoring.log_format",
    "monitoring.log_rotation",
    "monitoring.notifications.on_complete",
    "monitoring.notifications.on_error",
];

/// What stands above the settings in `config.example`.
const EXAMPLE_HEAD: &str = "\
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
    let entry = |Setting { shell, default, kind, doc, flag, .. }: &Setting| {
        let unit = match kind {
            Kind::Override => " (empty: the agent preset's own)",
            Kind::Duration => " (30s, 5m, 1h30m, or seconds)",
            Kind::Switch => " (true or false)",
            Kind::Words => " (separated by blanks)",
            Kind::Text | Kind::Count { .. } | Kind::Money => "",
        };
        let flag = flag.map_or_else(String::new, |flag| format!(" ({flag})"));
        let default = if default.contains(' ') { format!("\"{default}\"") } else { (*default).to_owned() };
        format!("\n# {doc}{unit}{flag}\n# {shell}={default}\n")
    };
    EXAMPLE_HEAD.to_owned() + &TABLE.iter().map(entry).collect::<String>()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
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

    #[test]
    fn names_follow_one_rule_and_are_unique() {
        let mut seen = HashSet::new();
        for setting in TABLE {
            assert_eq!(setting.env[0], format!("RALPH_{}", setting.shell));
            assert!(setting.key.contains('.'), "{}", setting.key);
            let names = [setting.key, setting.shell].into_iter().chain(setting.env.iter().copied());
            for name in names.chain(setting.flag) {
                assert!(seen.insert(name), "{name} stands twice");
            }
        }
        for key in WITHOUT_EFFECT {
            assert!(seen.insert(key), "{key} stands twice");
        }
    }
}
