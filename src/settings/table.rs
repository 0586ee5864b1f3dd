//! The one table of settings. Loaders, flags, `ralph config` and `config.example` all read it: a new setting is one row
//! here and one field of [`Settings`](super::Settings).

use super::setting::{Flag, Setting, ValueKind, Verb};
use crate::presets::Listing;

static AGENT_HELP: Listing =
    Listing::new("Agent to run: ").agents().then(", the same with -acp, script, custom or a command line");
static AGENT_DOC: Listing = Listing::new("Which agent to run: ")
    .agents()
    .then(", one of ")
    .agents_with_acp()
    .then(" with -acp, script, custom, or a command line of your own");

/// Every setting, in the order in which people should meet them; `--help` has the flags in this order.
pub const TABLE: &[Setting] = &[
    Setting {
        key: "agent.provider",
        shell: "AGENT_TYPE",
        env: &["RALPH_AGENT_TYPE"],
        flag: Some(Flag {
            long: "--agent",
            value: "TYPE",
            help: AGENT_HELP.text(),
            everywhere: true,
            ..Flag::GENERAL
        }),
        default: "claude",
        kind: ValueKind::Name,
        doc: AGENT_DOC.text(),
        ..Setting::ROW
    },
    Setting {
        key: "agent.model",
        shell: "AGENT_MODEL",
        env: &["RALPH_AGENT_MODEL", "RALPH_MODEL"],
        flag: Some(Flag {
            long: "--model",
            value: "NAME",
            help: "Model to use, by a name that the agent knows",
            everywhere: true,
            ..Flag::GENERAL
        }),
        empty: "the agent's own choice",
        doc: "Which model the agent uses, by a name that it knows",
        ..Setting::OVERRIDE
    },
    Setting {
        key: "agent.effort",
        shell: "AGENT_EFFORT",
        env: &["RALPH_AGENT_EFFORT", "RALPH_EFFORT"],
        flag: Some(Flag {
            long: "--effort",
            value: "LEVEL",
            help: "How hard the model thinks, by a word that the agent knows, such as low or high",
            everywhere: true,
            ..Flag::GENERAL
        }),
        empty: "the agent's own choice",
        doc: "How hard the model thinks, by a word that the agent knows",
        ..Setting::OVERRIDE
    },
    Setting {
        key: "agent.cli",
        shell: "AGENT_CLI",
        env: &["RALPH_AGENT_CLI"],
        doc: "The agent's program: a name on PATH or a path",
        ..Setting::OVERRIDE
    },
    Setting {
        key: "agent.args",
        shell: "AGENT_ARGS",
        env: &["RALPH_AGENT_ARGS"],
        doc: "The agent's arguments, split into words as a shell would split them",
        ..Setting::OVERRIDE
    },
    Setting {
        key: "agent.extra_args",
        shell: "AGENT_EXTRA_ARGS",
        env: &["RALPH_AGENT_EXTRA_ARGS"],
        empty: "none",
        doc: "More arguments, behind those that the agent has anyway",
        ..Setting::OVERRIDE
    },
    Setting {
        key: "agent.response_filter",
        shell: "AGENT_RESPONSE_FILTER",
        env: &["RALPH_AGENT_RESPONSE_FILTER"],
        doc: "jq program that picks the assistant's own text, where signals are looked for",
        ..Setting::OVERRIDE
    },
    Setting {
        key: "agent.display_filter",
        shell: "AGENT_DISPLAY_FILTER",
        env: &["RALPH_AGENT_DISPLAY_FILTER"],
        doc: "jq program or shell pipeline that makes the live display",
        ..Setting::OVERRIDE
    },
    Setting {
        key: "agent.result_filter",
        shell: "AGENT_RESULT_FILTER",
        env: &["RALPH_AGENT_RESULT_FILTER"],
        doc: "jq program that picks error, cost, tokens, model and session from the stream",
        ..Setting::OVERRIDE
    },
    Setting {
        key: "agent.usage_cmd",
        shell: "AGENT_USAGE_CMD",
        env: &["RALPH_AGENT_USAGE_CMD"],
        doc: "Command that prints the account's balance",
        ..Setting::OVERRIDE
    },
    Setting {
        key: "agent.usage_parser",
        shell: "AGENT_USAGE_PARSER",
        env: &["RALPH_AGENT_USAGE_PARSER"],
        doc: "Pipeline that finds the dollars in what the usage command prints",
        ..Setting::OVERRIDE
    },
    Setting {
        key: "agent.grace",
        shell: "AGENT_GRACE",
        env: &["RALPH_AGENT_GRACE"],
        default: "10s",
        kind: ValueKind::Duration,
        doc: "How long an agent may live on after its final event",
        ..Setting::ROW
    },
    Setting {
        key: "agent.background_wait",
        shell: "BACKGROUND_WAIT",
        env: &["RALPH_BACKGROUND_WAIT"],
        default: "30m",
        kind: ValueKind::Duration,
        doc: "How long an agent's work in the background is waited for after its final event",
        ..Setting::ROW
    },
    Setting {
        key: "agent.interrupt_wait",
        shell: "AGENT_INTERRUPT_WAIT",
        env: &["RALPH_AGENT_INTERRUPT_WAIT"],
        default: "3s",
        kind: ValueKind::Duration,
        doc: "How long an agent that is ended has after SIGINT, before SIGTERM; at most 5m",
        ..Setting::ROW
    },
    Setting {
        key: "agent.terminate_wait",
        shell: "AGENT_TERMINATE_WAIT",
        env: &["RALPH_AGENT_TERMINATE_WAIT"],
        default: "2s",
        kind: ValueKind::Duration,
        doc: "How long it has after SIGTERM, before SIGKILL; at most 5m",
        ..Setting::ROW
    },
    Setting {
        key: "loop.max_iterations",
        shell: "DEFAULT_MAX_ITERATIONS",
        env: &["RALPH_DEFAULT_MAX_ITERATIONS"],
        default: "10",
        except: &[(&[Verb::Run, Verb::Tasks, Verb::Feature], ""), (&[Verb::LoopBuild], "20")],
        empty: "no limit",
        kind: ValueKind::Count { least: 1 },
        doc: "Most iterations when the command line names no number",
        ..Setting::ROW
    },
    Setting {
        key: "loop.timeout",
        shell: "AGENT_TIMEOUT",
        env: &["RALPH_AGENT_TIMEOUT"],
        flag: Some(Flag {
            long: "--timeout",
            short: Some('t'),
            value: "D",
            help: "Longest time for one attempt, such as 90s, 30m or 2h",
            ..Flag::GENERAL
        }),
        default: "2h",
        kind: ValueKind::Duration,
        doc: "Longest time for one attempt",
        ..Setting::ROW
    },
    Setting {
        key: "loop.inactivity_timeout",
        shell: "INACTIVITY_TIMEOUT",
        env: &["RALPH_INACTIVITY_TIMEOUT"],
        flag: Some(Flag {
            long: "--inactivity-timeout",
            value: "D",
            help: "Longest time without a sign of life",
            ..Flag::GENERAL
        }),
        default: "15m",
        except: &[(&[Verb::Spawn], "3m")],
        kind: ValueKind::Duration,
        doc: "Longest time without output or another sign of life",
        ..Setting::ROW
    },
    Setting {
        key: "loop.max_retries",
        shell: "MAX_RETRIES",
        env: &["RALPH_MAX_RETRIES"],
        flag: Some(Flag {
            long: "--max-retries",
            value: "N",
            help: "How often a failed iteration is tried again",
            ..Flag::GENERAL
        }),
        default: "3",
        except: &[(&[Verb::Run, Verb::Tasks, Verb::Spawn, Verb::LoopPlan, Verb::LoopBuild], "0")],
        kind: ValueKind::Count { least: 0 },
        doc: "How often a failed iteration is tried again",
        ..Setting::ROW
    },
    Setting {
        key: "loop.backoff",
        shell: "RETRY_BACKOFF",
        env: &["RALPH_RETRY_BACKOFF"],
        flag: Some(Flag {
            long: "--backoff",
            value: "D",
            help: "Pause before a first retry, doubled before every further one",
            ..Flag::STOPPING
        }),
        empty: "none",
        kind: ValueKind::Duration,
        doc: "Pause before a first retry, doubled before every further one; also the first pause for an overloaded provider",
        ..Setting::ROW
    },
    Setting {
        key: "loop.stop_on_error",
        shell: "STOP_ON_ERROR",
        env: &["RALPH_STOP_ON_ERROR"],
        flag: Some(Flag {
            long: "--stop-on-error",
            short: Some('s'),
            help: "End the loop when an iteration has failed for good",
            ..Flag::STOPPING
        }),
        default: "true",
        except: &[(&[Verb::Run, Verb::Tasks, Verb::Spawn, Verb::LoopPlan, Verb::LoopBuild], "false")],
        kind: ValueKind::Switch,
        doc: "Whether an iteration that failed for good ends the loop; where only MAX_CONSECUTIVE_ERRORS is set, it does not",
        ..Setting::ROW
    },
    Setting {
        key: "monitoring.max_consecutive_errors",
        shell: "MAX_CONSECUTIVE_ERRORS",
        env: &["RALPH_MAX_CONSECUTIVE_ERRORS"],
        flag: Some(Flag {
            long: "--max-errors",
            value: "N",
            help: "End the loop after this many failed iterations in a row, 0 for never",
            ..Flag::STOPPING
        }),
        default: "0",
        except: &[(&[Verb::Spawn], "5"), (&[Verb::Tasks, Verb::LoopPlan, Verb::LoopBuild], "3")],
        kind: ValueKind::Count { least: 0 },
        doc: "Failed iterations in a row that end the loop, 0 for never",
        ..Setting::ROW
    },
    Setting {
        key: "completion.idle_threshold",
        shell: "IDLE_THRESHOLD",
        env: &["RALPH_IDLE_THRESHOLD"],
        flag: Some(Flag {
            long: "--idle",
            value: "N",
            help: "End the loop after this many iterations in a row that changed nothing, 0 for never",
            ..Flag::STOPPING
        }),
        default: "0",
        except: &[(&[Verb::LoopPlan, Verb::LoopBuild], "2")],
        kind: ValueKind::Count { least: 0 },
        doc: "Iterations in a row without a change that end the loop, 0 for never",
        ..Setting::ROW
    },
    Setting {
        key: "loop.max_duration",
        shell: "MAX_DURATION",
        env: &["RALPH_MAX_DURATION"],
        flag: Some(Flag {
            long: "--max-duration",
            value: "D",
            help: "End the loop after this much time",
            raised: "For a loop that has ended: as much time in all",
            ..Flag::STOPPING
        }),
        empty: "no limit",
        kind: ValueKind::Duration,
        doc: "Longest time for the loop as a whole",
        ..Setting::ROW
    },
    Setting {
        key: "loop.max_cost",
        shell: "MAX_COST",
        env: &["RALPH_MAX_COST"],
        flag: Some(Flag {
            long: "--max-cost",
            value: "USD",
            help: "Begin no iteration when this much money is spent, in US dollars",
            raised: "For a loop that has ended: as much money in all, in US dollars",
            ..Flag::STOPPING
        }),
        empty: "no limit",
        kind: ValueKind::Money,
        doc: "No iteration begins when this much is spent, in US dollars",
        ..Setting::ROW
    },
    Setting {
        key: "loop.max_tokens",
        shell: "MAX_TOKENS",
        env: &["RALPH_MAX_TOKENS"],
        flag: Some(Flag {
            long: "--max-tokens",
            value: "N",
            help: "Begin no iteration when this many tokens are used",
            raised: "For a loop that has ended: as many tokens in all",
            ..Flag::STOPPING
        }),
        empty: "no limit",
        kind: ValueKind::Count { least: 1 },
        doc: "No iteration begins when this many tokens are used",
        ..Setting::ROW
    },
    Setting {
        key: "loop.max_limit_wait",
        shell: "MAX_LIMIT_WAIT",
        env: &["RALPH_MAX_LIMIT_WAIT"],
        flag: Some(Flag {
            long: "--max-limit-wait",
            value: "D",
            help: "Longest wait for a usage limit to pass, or for an overloaded provider",
            raised: "For a loop that has ended: wait so long at most for a usage limit",
            ..Flag::STOPPING
        }),
        default: "6h",
        kind: ValueKind::Duration,
        doc: "Longest time waited in a row for usage limits to reset or for an overloaded provider; then the loop ends",
        ..Setting::ROW
    },
    Setting {
        key: "loop.done_pattern",
        shell: "DONE_PATTERN",
        env: &["RALPH_DONE_PATTERN"],
        flag: Some(Flag {
            long: "--done-pattern",
            value: "RE",
            help: "End the loop when the assistant's text matches this regular expression",
            ..Flag::STOPPING
        }),
        empty: "none",
        kind: ValueKind::Text,
        doc: "Regular expression that ends the loop when the assistant's text matches",
        ..Setting::ROW
    },
    Setting {
        key: "validation.enabled",
        shell: "VALIDATION_ENABLED",
        env: &["RALPH_VALIDATION_ENABLED"],
        default: "true",
        kind: ValueKind::Switch,
        doc: "Whether the validation command is run",
        ..Setting::ROW
    },
    Setting {
        key: "validation.command",
        shell: "VALIDATION_COMMAND",
        env: &["RALPH_VALIDATION_COMMAND"],
        flag: Some(Flag {
            long: "--validate",
            value: "CMD",
            help: "Command that proves the work after each iteration; its failure goes into the next prompt",
            ..Flag::STOPPING
        }),
        empty: "none",
        kind: ValueKind::Text,
        doc: "Command for sh that proves the work after each iteration",
        ..Setting::ROW
    },
    Setting {
        key: "validation.timeout",
        shell: "VALIDATION_TIMEOUT",
        env: &["RALPH_VALIDATION_TIMEOUT"],
        default: "10m",
        kind: ValueKind::Duration,
        doc: "Longest time for the validation command",
        ..Setting::ROW
    },
    Setting {
        key: "execution.verify",
        shell: "TASK_VERIFY",
        env: &["RALPH_TASK_VERIFY"],
        default: "true",
        kind: ValueKind::Switch,
        doc: "Whether a fresh agent looks whether a task is done before it counts",
        ..Setting::ROW
    },
    Setting {
        key: "execution.max_retries",
        shell: "TASK_RETRIES",
        env: &["RALPH_TASK_RETRIES"],
        default: "3",
        kind: ValueKind::Count { least: 0 },
        doc: "How often a task that is not done well is given out again, where it does not say so itself",
        ..Setting::ROW
    },
    Setting {
        key: "model.strategy",
        shell: "MODEL_STRATEGY",
        env: &["RALPH_MODEL_STRATEGY"],
        empty: "cost-optimized, where there is a ladder",
        kind: ValueKind::Text,
        doc: "How the model of each iteration over tasks is chosen: fixed, cost-optimized, escalate or plan-then-execute",
        ..Setting::ROW
    },
    Setting {
        key: "model.ladder",
        shell: "MODEL_LADDER",
        env: &["RALPH_MODEL_LADDER"],
        empty: "the agent preset's own",
        kind: ValueKind::Words,
        doc: "Models to choose from for tasks, the smallest first",
        ..Setting::ROW
    },
    Setting {
        key: "loop.delay",
        shell: "LOOP_DELAY",
        env: &["RALPH_LOOP_DELAY"],
        flag: Some(Flag {
            long: "--delay",
            short: Some('d'),
            value: "D",
            help: "Pause between two iterations",
            ..Flag::STOPPING
        }),
        empty: "none",
        kind: ValueKind::Duration,
        doc: "Pause between two iterations",
        ..Setting::ROW
    },
    Setting {
        key: "loop.free_space_floor",
        shell: "FREE_SPACE_FLOOR",
        env: &["RALPH_FREE_SPACE_FLOOR"],
        empty: "the smaller one of 1 GB and 5%",
        kind: ValueKind::Room,
        doc: "Room that the file systems of the project and of the ralph dir must have before an attempt, which waits for it",
        ..Setting::ROW
    },
    Setting {
        key: "records.keep_runs",
        shell: "KEEP_RUNS",
        env: &["RALPH_KEEP_RUNS"],
        default: "100",
        kind: ValueKind::Count { least: 0 },
        doc: "How many runs are kept in runs/, 0 for all; the oldest are removed when another one begins",
        ..Setting::ROW
    },
    Setting {
        key: "records.keep_size",
        shell: "KEEP_SIZE",
        env: &["RALPH_KEEP_SIZE"],
        default: "2 GB",
        kind: ValueKind::Size,
        doc: "How much room the runs that are kept may take; the oldest are removed when another one begins",
        ..Setting::ROW
    },
    Setting {
        key: "paths.specs",
        shell: "SPECS_DIR",
        env: &["RALPH_SPECS_DIR"],
        default: "specs",
        kind: ValueKind::Name,
        doc: "Folder of the specifications, from the project root",
        ..Setting::ROW
    },
    Setting {
        key: "git.auto_push",
        shell: "GIT_AUTO_PUSH",
        env: &["RALPH_GIT_AUTO_PUSH"],
        default: "true",
        kind: ValueKind::Switch,
        doc: "Whether 'loop build' pushes a branch after each iteration with new commits",
        ..Setting::ROW
    },
    Setting {
        key: "git.auto_pr",
        shell: "GIT_AUTO_PR",
        env: &["RALPH_GIT_AUTO_PR"],
        default: "true",
        kind: ValueKind::Switch,
        doc: "Whether 'loop build' opens a pull request, with gh, for a branch that is done and pushed",
        ..Setting::ROW
    },
    Setting {
        key: "git.pr_base",
        shell: "GIT_PR_BASE",
        env: &["RALPH_GIT_PR_BASE"],
        empty: "master, else the remote's HEAD, else the current one",
        kind: ValueKind::Text,
        doc: "Branch that branches without a 'Base:' start from",
        ..Setting::ROW
    },
    Setting {
        key: "git.protected_branches",
        shell: "GIT_PROTECTED_BRANCHES",
        env: &["RALPH_GIT_PROTECTED_BRANCHES"],
        default: "main master production",
        empty: "none",
        kind: ValueKind::Words,
        doc: "Branches that are never pushed to",
        ..Setting::ROW
    },
    Setting {
        key: "git.worktree.name",
        shell: "GIT_WORKTREE_NAME",
        env: &["RALPH_GIT_WORKTREE_NAME"],
        empty: "your own",
        kind: ValueKind::Text,
        doc: "Name of the author of commits in the work trees of branches",
        ..Setting::ROW
    },
    Setting {
        key: "git.worktree.email",
        shell: "GIT_WORKTREE_EMAIL",
        env: &["RALPH_GIT_WORKTREE_EMAIL"],
        empty: "your own",
        kind: ValueKind::Text,
        doc: "That author's address",
        ..Setting::ROW
    },
    Setting {
        key: "git.worktree.signing_key",
        shell: "GIT_WORKTREE_SIGNING_KEY",
        env: &["RALPH_GIT_WORKTREE_SIGNING_KEY"],
        empty: "signed as your own are",
        kind: ValueKind::Text,
        doc: "Key that signs those commits",
        ..Setting::ROW
    },
    Setting {
        key: "git.worktree.ssh_key",
        shell: "GIT_WORKTREE_SSH_KEY",
        env: &["RALPH_GIT_WORKTREE_SSH_KEY"],
        empty: "your own",
        kind: ValueKind::Text,
        doc: "File of the key that those work trees push with, from the project root",
        ..Setting::ROW
    },
    Setting {
        key: "redact.enabled",
        shell: "REDACT",
        env: &["RALPH_REDACT"],
        default: "true",
        kind: ValueKind::Switch,
        doc: "Whether values of secret variables are taken out of all that is kept and shown",
        ..Setting::ROW
    },
    Setting {
        key: "redact.names",
        shell: "REDACT_NAMES",
        env: &["RALPH_REDACT_NAMES"],
        empty: "those whose name says so",
        kind: ValueKind::Words,
        doc: "More variables whose values are taken out; '*' at an end of a name stands for anything",
        ..Setting::ROW
    },
    Setting {
        key: "redact.env_files",
        shell: "REDACT_ENV_FILES",
        env: &["RALPH_REDACT_ENV_FILES"],
        empty: "none",
        kind: ValueKind::Words,
        doc: "Files such as .env whose variables are looked at, too, from the project root",
        ..Setting::ROW
    },
    Setting {
        key: "notify.on",
        shell: "NOTIFY_ON",
        env: &["RALPH_NOTIFY_ON"],
        default: "end failure waiting attention",
        empty: "nothing",
        kind: ValueKind::Words,
        doc: "Which events send a notice: end (of any kind), failure, waiting (for a usage limit), attention (a person is asked)",
        ..Setting::ROW
    },
    Setting {
        key: "notify.command",
        shell: "NOTIFY_COMMAND",
        env: &["RALPH_NOTIFY_COMMAND"],
        empty: "none",
        doc: "Command for sh that gets each such event as a line of JSON on stdin; ended after 10 seconds",
        ..Setting::TRUSTED
    },
    Setting {
        key: "notify.webhook",
        shell: "NOTIFY_WEBHOOK",
        env: &["RALPH_NOTIFY_WEBHOOK"],
        empty: "none",
        kind: ValueKind::Secret,
        doc: "URL that each such event is posted to",
        ..Setting::TRUSTED
    },
    Setting {
        key: "notify.webhook_format",
        shell: "NOTIFY_WEBHOOK_FORMAT",
        env: &["RALPH_NOTIFY_WEBHOOK_FORMAT"],
        empty: "as the URL's host wants it, else json",
        doc: "What is posted: json (the event), slack, discord or ntfy (a short text)",
        ..Setting::TRUSTED
    },
    Setting {
        key: "notify.webhook_secret",
        shell: "NOTIFY_WEBHOOK_SECRET",
        env: &["RALPH_NOTIFY_WEBHOOK_SECRET"],
        empty: "not signed",
        kind: ValueKind::Secret,
        doc: "Shared secret that signs what is posted",
        ..Setting::TRUSTED
    },
    Setting {
        key: "notify.webhook_secret_env",
        shell: "NOTIFY_WEBHOOK_SECRET_ENV",
        env: &["RALPH_NOTIFY_WEBHOOK_SECRET_ENV"],
        empty: "none",
        doc: "Variable of the environment that holds that secret; better than a secret in a file",
        ..Setting::TRUSTED
    },
    Setting {
        key: "notify.desktop",
        shell: "NOTIFY_DESKTOP",
        env: &["RALPH_NOTIFY_DESKTOP"],
        default: "false",
        kind: ValueKind::Switch,
        doc: "Whether the desktop shows each such event",
        ..Setting::ROW
    },
    Setting {
        key: "notify.bell",
        shell: "NOTIFY_BELL",
        env: &["RALPH_NOTIFY_BELL"],
        default: "false",
        kind: ValueKind::Switch,
        doc: "Whether the terminal's bell rings at each such event",
        ..Setting::ROW
    },
    Setting {
        key: "monitoring.notifications.on_complete",
        shell: "NOTIFY_ON_COMPLETE",
        env: &["RALPH_NOTIFY_ON_COMPLETE"],
        empty: "none",
        doc: "Which targets are notified of an end that is no failure, whatever notify.on says: none, bell, desktop, command, webhook",
        ..Setting::ROW
    },
    Setting {
        key: "monitoring.notifications.on_error",
        shell: "NOTIFY_ON_ERROR",
        env: &["RALPH_NOTIFY_ON_ERROR"],
        empty: "none",
        doc: "Which targets are notified of a failure, whatever notify.on says",
        ..Setting::ROW
    },
    Setting {
        key: "hooks.on_loop_start",
        shell: "HOOK_ON_LOOP_START",
        env: &["RALPH_HOOK_ON_LOOP_START"],
        empty: "none",
        doc: "Command for sh when a loop starts, with the event as a line of JSON on stdin",
        ..Setting::TRUSTED
    },
    Setting {
        key: "hooks.on_iteration",
        shell: "HOOK_ON_ITERATION",
        env: &["RALPH_HOOK_ON_ITERATION"],
        empty: "none",
        doc: "Command for sh after each attempt at an iteration, with the event as a line of JSON on stdin",
        ..Setting::TRUSTED
    },
    Setting {
        key: "hooks.on_end",
        shell: "HOOK_ON_END",
        env: &["RALPH_HOOK_ON_END"],
        empty: "none",
        doc: "Command for sh at the end of a loop, with the event as a line of JSON on stdin",
        ..Setting::TRUSTED
    },
    Setting {
        key: "hooks.timeout",
        shell: "HOOK_TIMEOUT",
        env: &["RALPH_HOOK_TIMEOUT"],
        default: "10s",
        kind: ValueKind::Duration,
        doc: "Longest time for one of these commands",
        ..Setting::ROW
    },
];

#[cfg(test)]
mod tests;
