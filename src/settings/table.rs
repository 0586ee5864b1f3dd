//! The one table of settings. Loaders, flags, `ralph config`, `config.example`, the guide and the typed values all come from it: a new
//! setting is one row here.

use std::path::PathBuf;
use std::time::Duration;

use super::SettingsError;
use super::forge::ForgeChoice;
use super::notify::words::{Format, Moment, Secret, Target, Url};
use super::proof_level::{LandingStyle, OnProtected, ProofLevel};
use super::resolved::{self, Resolved};
use super::sandbox::{Mode, Network, Tripping};
use super::setting::{Flag, Setting, Span, ValueKind, Verb};
use super::types::SettingType;
use crate::files::room::Floor;
use crate::presets::Listing;
use crate::text::pauses::Pauses;

static AGENT_HELP: Listing =
    Listing::new("Agent to run: ").agents().then(", the same with -acp, script, custom or a command line; may be given several times: the next one goes on where one cannot");
static AGENT_DOC: Listing = Listing::new("Which agent to run: ")
    .agents()
    .then(", one of ")
    .agents_with_acp()
    .then(" with -acp, script, custom, or a command line of your own");

/// Declares the rows, and the fields with their values. The comment above a row is its text for users; the type of its field is the
/// kind of its value, unless `kind` is more precise.
macro_rules! settings {
    ($(
        #[doc = $about:literal]
        $fields:ident { $(
            #[doc = $doc:literal]
            $field:ident: $type:ty = Setting { key: $key:literal, shell: $shell:literal, $($cell:ident: $value:expr,)* }
        )* }
    )*) => {
        /// Every setting, in the order in which people should meet them; `--help` has the flags in this order.
        pub const TABLE: &[Setting] = &[$($(Setting {
            $($cell: $value,)*
            ..Setting {
                key: $key,
                shell: $shell,
                env: &[concat!("RALPH_", $shell)],
                kind: <$type as SettingType>::KIND,
                doc: $doc.trim_ascii(),
                ..Setting::ROW
            }
        },)*)*];

        $(
            #[doc = $about]
            #[derive(Debug, Clone, Default)]
            #[allow(clippy::doc_markdown, reason = "what rows say is shown as it is, without backticks")]
            pub struct $fields { $(#[doc = $doc] pub $field: $type,)* }

            impl $fields {
                /// Parses the values of resolved rows. The first problem ends it.
                pub(super) fn read(rows: &[Resolved]) -> Result<Self, SettingsError> {
                    Ok(Self { $($field: SettingType::read(resolved::row(rows, $key))?,)* })
                }
            }
        )*
    };
}

settings! {
    /// The general settings.
    Values {
        /// Which agent to run
        agent_type: String = Setting {
            key: "agent.provider",
            shell: "AGENT_TYPE",
            flag: Some(Flag {
                long: "--agent",
                value: "TYPE",
                help: AGENT_HELP.text(),
                several: "agents",
                everywhere: true,
                ..Flag::GENERAL
            }),
            default: "claude",
            doc: AGENT_DOC.text(),
        }
        /// Agents in the order in which they are wanted: each goes on where those before it cannot; with a model as in claude:opus
        agents: Option<String> = Setting {
            key: "agents",
            shell: "AGENTS",
            empty: "that of --agent alone",
            kind: ValueKind::Names,
        }
        /// Which model the agent uses, by a name that it knows
        agent_model: Option<String> = Setting {
            key: "agent.model",
            shell: "AGENT_MODEL",
            env: &["RALPH_AGENT_MODEL", "RALPH_MODEL"],
            flag: Some(Flag {
                long: "--model",
                value: "NAME",
                help: "Model to use, by a name that the agent knows",
                raised: "For a loop that has ended: go on with this model",
                everywhere: true,
                ..Flag::GENERAL
            }),
            empty: "the agent's own choice",
            kind: ValueKind::Override,
        }
        /// How hard the model thinks, by a word that the agent knows
        agent_effort: Option<String> = Setting {
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
            kind: ValueKind::Override,
        }
        /// How long an agent's provider may be overloaded or out of reach before the next of the agents goes on
        fallback_after: Duration = Setting {
            key: "loop.fallback_after",
            shell: "FALLBACK_AFTER",
            default: "2m",
            kind: ValueKind::Duration(Span::OrZero),
        }
        /// The agent's program: a name on PATH or a path
        agent_cli: Option<String> = Setting {
            key: "agent.cli",
            shell: "AGENT_CLI",
            empty: "the agent preset's own",
            kind: ValueKind::Override,
        }
        /// The agent's arguments, split into words as a shell would split them
        agent_args: Option<String> = Setting {
            key: "agent.args",
            shell: "AGENT_ARGS",
            empty: "the agent preset's own",
            kind: ValueKind::Override,
        }
        /// More arguments, behind those that the agent has anyway
        agent_extra_args: Option<String> = Setting {
            key: "agent.extra_args",
            shell: "AGENT_EXTRA_ARGS",
            empty: "none",
            kind: ValueKind::Override,
        }
        /// The agent whose output an unknown program prints, such as claude: that one's filters read it
        agent_format: Option<String> = Setting {
            key: "agent.format",
            shell: "AGENT_FORMAT",
            empty: "the agent preset's own",
            kind: ValueKind::Override,
        }
        /// jq program that picks the assistant's own text, where signals are looked for
        agent_response_filter: Option<String> = Setting {
            key: "agent.response_filter",
            shell: "AGENT_RESPONSE_FILTER",
            empty: "the agent preset's own",
            kind: ValueKind::Override,
        }
        /// jq program or shell pipeline that makes the live display
        agent_display_filter: Option<String> = Setting {
            key: "agent.display_filter",
            shell: "AGENT_DISPLAY_FILTER",
            empty: "the agent preset's own",
            kind: ValueKind::Override,
        }
        /// jq program that picks error, cost, tokens, model and session from the stream
        agent_result_filter: Option<String> = Setting {
            key: "agent.result_filter",
            shell: "AGENT_RESULT_FILTER",
            empty: "the agent preset's own",
            kind: ValueKind::Override,
        }
        /// Command that prints the account's balance
        agent_usage_cmd: Option<String> = Setting {
            key: "agent.usage_cmd",
            shell: "AGENT_USAGE_CMD",
            empty: "the agent preset's own",
            kind: ValueKind::Override,
        }
        /// Pipeline that finds the dollars in what the usage command prints
        agent_usage_parser: Option<String> = Setting {
            key: "agent.usage_parser",
            shell: "AGENT_USAGE_PARSER",
            empty: "the agent preset's own",
            kind: ValueKind::Override,
        }
        /// Which agent plans (plan, loop plan): as --agent
        plan_agent: Option<String> = Setting {
            key: "plan.agent",
            shell: "PLAN_AGENT",
            empty: "that of --agent",
        }
        /// Which model that agent uses
        plan_model: Option<String> = Setting {
            key: "plan.model",
            shell: "PLAN_MODEL",
            empty: "that of --model, for the same agent",
        }
        /// How hard its model thinks
        plan_effort: Option<String> = Setting {
            key: "plan.effort",
            shell: "PLAN_EFFORT",
            empty: "that of --effort, for the same agent",
        }
        /// Which agent builds (build, loop build, run over tasks): as --agent
        build_agent: Option<String> = Setting {
            key: "build.agent",
            shell: "BUILD_AGENT",
            empty: "that of --agent",
        }
        /// Which model that agent uses
        build_model: Option<String> = Setting {
            key: "build.model",
            shell: "BUILD_MODEL",
            empty: "that of --model, for the same agent",
        }
        /// How hard its model thinks
        build_effort: Option<String> = Setting {
            key: "build.effort",
            shell: "BUILD_EFFORT",
            empty: "that of --effort, for the same agent",
        }
        /// Which agent verifies tasks and changed tests: as --agent
        verify_agent: Option<String> = Setting {
            key: "verify.agent",
            shell: "VERIFY_AGENT",
            empty: "that of --agent",
        }
        /// Which model that agent uses
        verify_model: Option<String> = Setting {
            key: "verify.model",
            shell: "VERIFY_MODEL",
            empty: "that of --model, for the same agent",
        }
        /// How hard its model thinks
        verify_effort: Option<String> = Setting {
            key: "verify.effort",
            shell: "VERIFY_EFFORT",
            empty: "that of --effort, for the same agent",
        }
        /// Whether a fresh agent reviews work that is said to be done, before it counts (plan, build, prompt, run, loop)
        review_work: Option<bool> = Setting {
            key: "review.work",
            shell: "REVIEW",
            empty: "where review.agent is set",
            flag: Some(Flag {
                long: "--review",
                help: "Have a fresh agent review work that is said to be done, before it counts",
                without: &[Verb::Tasks, Verb::Feature, Verb::Spawn],
                ..Flag::GENERAL
            }),
        }
        /// How often such a review may want changes before the loop ends
        review_rounds: u32 = Setting {
            key: "review.rounds",
            shell: "REVIEW_ROUNDS",
            default: "3",
            kind: ValueKind::Count { least: 1 },
        }
        /// Which agent reviews such work, and documents of features: as --agent
        review_agent: Option<String> = Setting {
            key: "review.agent",
            shell: "REVIEW_AGENT",
            empty: "that of --agent",
        }
        /// Which model that agent uses
        review_model: Option<String> = Setting {
            key: "review.model",
            shell: "REVIEW_MODEL",
            empty: "that of --model, for the same agent",
        }
        /// How hard its model thinks
        review_effort: Option<String> = Setting {
            key: "review.effort",
            shell: "REVIEW_EFFORT",
            empty: "that of --effort, for the same agent",
        }
        /// Which agent writes documents and tasks of features: as --agent
        feature_agent: Option<String> = Setting {
            key: "feature.agent",
            shell: "FEATURE_AGENT",
            empty: "that of --agent",
        }
        /// Which model that agent uses
        feature_model: Option<String> = Setting {
            key: "feature.model",
            shell: "FEATURE_MODEL",
            empty: "that of --model, for the same agent",
        }
        /// How hard its model thinks
        feature_effort: Option<String> = Setting {
            key: "feature.effort",
            shell: "FEATURE_EFFORT",
            empty: "that of --effort, for the same agent",
        }
        /// How long an agent may live on after its final event
        agent_grace: Duration = Setting {
            key: "agent.grace",
            shell: "AGENT_GRACE",
            default: "10s",
        }
        /// How long an agent's work in the background is waited for after its final event
        background_wait: Duration = Setting {
            key: "agent.background_wait",
            shell: "BACKGROUND_WAIT",
            default: "30m",
        }
        /// How long an agent that is ended has after SIGINT, before SIGTERM; at most 5m
        interrupt_wait: Duration = Setting {
            key: "agent.interrupt_wait",
            shell: "AGENT_INTERRUPT_WAIT",
            default: "3s",
            kind: ValueKind::Duration(Span::UpToFiveMinutes),
        }
        /// How long it has after SIGTERM, before SIGKILL; at most 5m
        terminate_wait: Duration = Setting {
            key: "agent.terminate_wait",
            shell: "AGENT_TERMINATE_WAIT",
            default: "2s",
            kind: ValueKind::Duration(Span::UpToFiveMinutes),
        }
        /// Most iterations when the command line names no number
        max_iterations: Option<u32> = Setting {
            key: "loop.max_iterations",
            shell: "DEFAULT_MAX_ITERATIONS",
            default: "10",
            except: &[(&[Verb::Run, Verb::Tasks, Verb::Feature], ""), (&[Verb::LoopBuild], "20")],
            empty: "no limit",
            kind: ValueKind::Count { least: 1 },
        }
        /// Longest time for one attempt
        timeout: Duration = Setting {
            key: "loop.timeout",
            shell: "AGENT_TIMEOUT",
            flag: Some(Flag {
                long: "--timeout",
                short: Some('t'),
                value: "D",
                help: "Longest time for one attempt, such as 90s, 30m or 2h",
                ..Flag::GENERAL
            }),
            default: "2h",
        }
        /// Longest time without output or another sign of life
        inactivity_timeout: Duration = Setting {
            key: "loop.inactivity_timeout",
            shell: "INACTIVITY_TIMEOUT",
            flag: Some(Flag {
                long: "--inactivity-timeout",
                value: "D",
                help: "Longest time without a sign of life",
                ..Flag::GENERAL
            }),
            default: "15m",
            except: &[(&[Verb::Spawn], "3m")],
            kind: ValueKind::Duration(Span::OrZero),
        }
        /// How long an attempt may go on after SIGTERM, or after its terminal was closed, before it is ended
        term_grace: Duration = Setting {
            key: "loop.term_grace",
            shell: "TERM_GRACE",
            default: "60s",
        }
        /// How long an attempt may go on after SIGTERM; then its work is saved, and the loop ends within ten seconds more
        stop_within: Option<Duration> = Setting {
            key: "loop.stop_within",
            shell: "STOP_WITHIN",
            flag: Some(Flag {
                long: "--stop-within",
                value: "D",
                help: "How long an attempt may go on after SIGTERM; the loop ends within ten seconds more",
                ..Flag::STOPPING
            }),
            empty: "what term_grace says; 20s for a graph on a server",
        }
        /// How often a failed iteration is tried again
        max_retries: u32 = Setting {
            key: "loop.max_retries",
            shell: "MAX_RETRIES",
            flag: Some(Flag {
                long: "--max-retries",
                value: "N",
                help: "How often a failed iteration is tried again",
                ..Flag::GENERAL
            }),
            default: "3",
            except: &[(&[Verb::Run, Verb::Tasks, Verb::Spawn, Verb::LoopPlan, Verb::LoopBuild], "0")],
        }
        /// Pauses before the retries of an iteration, one after the other, the last one doubled up to 5m; the first also before an overloaded provider is tried again
        backoff: Pauses = Setting {
            key: "loop.backoff",
            shell: "RETRY_BACKOFF",
            flag: Some(Flag {
                long: "--backoff",
                value: "D",
                help: "Pauses before retries, such as 10s or '0 10s 1m'; the last one is doubled from there on",
                ..Flag::STOPPING
            }),
            default: "0 10s 1m 5m",
            empty: "none",
        }
        /// Whether an iteration that failed for good ends the loop; where only MAX_CONSECUTIVE_ERRORS is set, it does not
        stop_on_error: bool = Setting {
            key: "loop.stop_on_error",
            shell: "STOP_ON_ERROR",
            flag: Some(Flag {
                long: "--stop-on-error",
                short: Some('s'),
                help: "End the loop when an iteration has failed for good",
                ..Flag::STOPPING
            }),
            default: "true",
            except: &[(&[Verb::Run, Verb::Tasks, Verb::Spawn, Verb::LoopPlan, Verb::LoopBuild], "false")],
        }
        /// Failed iterations in a row that end the loop, 0 for never
        max_consecutive_errors: u32 = Setting {
            key: "monitoring.max_consecutive_errors",
            shell: "MAX_CONSECUTIVE_ERRORS",
            flag: Some(Flag {
                long: "--max-errors",
                value: "N",
                help: "End the loop after this many failed iterations in a row, 0 for never",
                ..Flag::STOPPING
            }),
            default: "0",
            except: &[(&[Verb::Spawn], "5"), (&[Verb::Tasks, Verb::LoopPlan, Verb::LoopBuild], "3")],
        }
        /// Iterations in a row without a change that end the loop, 0 for never
        idle_threshold: u32 = Setting {
            key: "completion.idle_threshold",
            shell: "IDLE_THRESHOLD",
            flag: Some(Flag {
                long: "--idle",
                value: "N",
                help: "End the loop after this many iterations in a row that changed nothing, 0 for never",
                ..Flag::STOPPING
            }),
            default: "0",
            except: &[(&[Verb::LoopPlan, Verb::LoopBuild], "2")],
        }
        /// Longest time for the loop as a whole
        max_duration: Option<Duration> = Setting {
            key: "loop.max_duration",
            shell: "MAX_DURATION",
            flag: Some(Flag {
                long: "--max-duration",
                value: "D",
                help: "End the loop after this much time",
                raised: "For a loop that has ended: as much time in all",
                ..Flag::STOPPING
            }),
            empty: "no limit",
        }
        /// No iteration begins when this much is spent, in US dollars
        max_cost: Option<f64> = Setting {
            key: "loop.max_cost",
            shell: "MAX_COST",
            flag: Some(Flag {
                long: "--max-cost",
                value: "USD",
                help: "Begin no iteration when this much money is spent, in US dollars",
                raised: "For a loop that has ended: as much money in all, in US dollars",
                ..Flag::STOPPING
            }),
            empty: "no limit",
        }
        /// No iteration begins when this many tokens are used
        max_tokens: Option<u64> = Setting {
            key: "loop.max_tokens",
            shell: "MAX_TOKENS",
            flag: Some(Flag {
                long: "--max-tokens",
                value: "N",
                help: "Begin no iteration when this many tokens are used",
                raised: "For a loop that has ended: as many tokens in all",
                ..Flag::STOPPING
            }),
            empty: "no limit",
            kind: ValueKind::Count { least: 1 },
        }
        /// Longest time waited in a row for usage limits to reset or for an overloaded provider; then the loop ends
        max_limit_wait: Duration = Setting {
            key: "loop.max_limit_wait",
            shell: "MAX_LIMIT_WAIT",
            flag: Some(Flag {
                long: "--max-limit-wait",
                value: "D",
                help: "Longest wait for a usage limit to pass, or for an overloaded provider",
                raised: "For a loop that has ended: wait so long at most for a usage limit",
                ..Flag::STOPPING
            }),
            default: "6h",
        }
        /// Regular expression that ends the loop when the assistant's text matches
        done_pattern: Option<String> = Setting {
            key: "loop.done_pattern",
            shell: "DONE_PATTERN",
            flag: Some(Flag {
                long: "--done-pattern",
                value: "RE",
                help: "End the loop when the assistant's text matches this regular expression",
                ..Flag::STOPPING
            }),
            empty: "none",
        }
        /// Whether the validation command is run
        validation_enabled: bool = Setting {
            key: "validation.enabled",
            shell: "VALIDATION_ENABLED",
            default: "true",
        }
        /// Command for sh that proves the work after each iteration
        validation_command: Option<String> = Setting {
            key: "validation.command",
            shell: "VALIDATION_COMMAND",
            flag: Some(Flag {
                long: "--validate",
                value: "CMD",
                help: "Command that proves the work after each iteration; its failure goes into the next prompt",
                without: Verb::PLANNING,
                ..Flag::STOPPING
            }),
            empty: "none",
        }
        /// Longest time for the validation command
        validation_timeout: Duration = Setting {
            key: "validation.timeout",
            shell: "VALIDATION_TIMEOUT",
            default: "10m",
        }
        /// How a claim of done is proven: place (where the agent works), clean (in a clean checkout of its commit), base (also with the tests and scripts of the commit where the work began), or strict (also twice, and with new tests that fail without the work)
        proof_level: ProofLevel = Setting {
            key: "proof.level",
            shell: "PROOF",
            flag: Some(Flag {
                long: "--proof",
                value: "LEVEL",
                help: "Where --validate proves that work is done: place, clean (a checkout of the commit), base (also with the base's tests), or strict (all checks)",
                without: Verb::PLANNING,
                ..Flag::STOPPING
            }),
            default: "base",
        }
        /// More files that work is measured by, besides tests and scripts: names, paths and folders, with * for any letters
        proof_protected: Vec<String> = Setting {
            key: "proof.protected",
            shell: "PROOF_PROTECTED",
            empty: "none",
        }
        /// What follows if work passes only with tests or scripts that its agent has changed: voice (a fresh agent judges whether that is honest), refuse, or tell
        proof_on_protected: OnProtected = Setting {
            key: "proof.on_protected",
            shell: "PROOF_ON_PROTECTED",
            default: "voice",
        }
        /// Command for sh that makes what a new checkout for proofs lacks, such as npm ci
        proof_prepare: Option<String> = Setting {
            key: "proof.prepare",
            shell: "PROOF_PREPARE",
            empty: "none",
        }
        /// Tests that agents do not get: a folder outside of the project, or a commit or tree of git, laid over a claimed commit for one more run
        proof_held_out: Option<String> = Setting {
            key: "proof.held_out",
            shell: "PROOF_HELD_OUT",
            empty: "none",
        }
        /// Ignored files and folders of the project, such as node_modules, to which a checkout for proofs has links; an agent can write there
        proof_carry: Vec<PathBuf> = Setting {
            key: "proof.carry",
            shell: "PROOF_CARRY",
            empty: "none",
        }
        /// Reports about tests in the XML of JUnit that the command writes, such as target/surefire-reports/*.xml; they count where its output counts no tests
        proof_junit: Option<String> = Setting {
            key: "proof.junit",
            shell: "PROOF_JUNIT",
            empty: "none",
        }
        /// How many lines that the work has added or changed are changed, one at a time, to tell which changes no test notices
        proof_mutants: u32 = Setting {
            key: "proof.mutants",
            shell: "PROOF_MUTANTS",
            default: "0",
        }
        /// Longest time for the proof of one claim, without what a second agent needs
        proof_limit: Duration = Setting {
            key: "proof.limit",
            shell: "PROOF_LIMIT",
            default: "30m",
        }
        /// Whether a fresh agent checks that a task is done before it counts
        verify: bool = Setting {
            key: "execution.verify",
            shell: "TASK_VERIFY",
            default: "true",
        }
        /// How often a task that is not done well is given out again, where it does not say so itself
        task_retries: u32 = Setting {
            key: "execution.max_retries",
            shell: "TASK_RETRIES",
            default: "3",
        }
        /// How many agents work on the tasks of one graph at once, at most 64; more than one work in trees of their own, and what they finish is landed
        task_jobs: u32 = Setting {
            key: "execution.jobs",
            shell: "TASK_JOBS",
            default: "1",
            kind: ValueKind::Count { least: 1 },
        }
        /// Address of a graph on a PostgreSQL server, which runs on many machines work on; see 'ralph help many-machines'
        store: Option<String> = Setting {
            key: "execution.store",
            shell: "STORE",
            empty: "none",
            needs_trust: true,
        }
        /// How long a claim on a task of a graph on a server holds when its machine is not heard of any more; at least 30s
        lease: Duration = Setting {
            key: "execution.lease",
            shell: "LEASE",
            default: "10m",
            kind: ValueKind::Duration(Span::AtLeast30Seconds),
        }
        /// Command for sh that makes what a new work tree for tasks lacks, such as npm ci
        task_prepare: Option<String> = Setting {
            key: "execution.prepare",
            shell: "TASK_PREPARE",
            empty: "none",
        }
        /// How the model of each iteration over tasks is chosen: fixed, cost-optimized, escalate or plan-then-execute
        model_strategy: Option<String> = Setting {
            key: "model.strategy",
            shell: "MODEL_STRATEGY",
            empty: "cost-optimized, where there is a ladder",
        }
        /// Models to choose from for tasks, the smallest first
        model_ladder: Vec<String> = Setting {
            key: "model.ladder",
            shell: "MODEL_LADDER",
            empty: "the agent preset's own",
        }
        /// Pause between two iterations
        delay: Option<Duration> = Setting {
            key: "loop.delay",
            shell: "LOOP_DELAY",
            flag: Some(Flag {
                long: "--delay",
                short: Some('d'),
                value: "D",
                help: "Pause between two iterations",
                ..Flag::STOPPING
            }),
            empty: "none",
            kind: ValueKind::Duration(Span::OrZero),
        }
        /// Room that the file systems of the project and of the ralph dir must have before an attempt, which waits for it
        free_space_floor: Option<Floor> = Setting {
            key: "loop.free_space_floor",
            shell: "FREE_SPACE_FLOOR",
            empty: "the smaller one of 1 GB and 5%",
        }
        /// How many runs are kept in runs/, 0 for all; the oldest are removed when another one begins
        keep_runs: u64 = Setting {
            key: "records.keep_runs",
            shell: "KEEP_RUNS",
            default: "100",
        }
        /// How much room the runs that are kept may take; the oldest are removed when another one begins
        keep_size: u64 = Setting {
            key: "records.keep_size",
            shell: "KEEP_SIZE",
            default: "2 GB",
            kind: ValueKind::Size,
        }
        /// Folder of the specifications, from the project root
        specs_dir: String = Setting {
            key: "paths.specs",
            shell: "SPECS_DIR",
            default: "specs",
        }
    }

    /// Settings of branches and their work trees.
    GitSettings {
        /// Whether 'loop build' pushes a branch after each iteration with new commits
        auto_push: bool = Setting {
            key: "git.auto_push",
            shell: "GIT_AUTO_PUSH",
            default: "true",
        }
        /// Whether 'loop build' opens a pull request, with gh or glab, for a branch that is done and pushed
        auto_pr: bool = Setting {
            key: "git.auto_pr",
            shell: "GIT_AUTO_PR",
            default: "true",
        }
        /// What serves the remote: github (gh), gitlab (glab), or auto, by the name of the host: gitlab if it has that in it, else github
        forge: ForgeChoice = Setting {
            key: "git.forge",
            shell: "GIT_FORGE",
            default: "auto",
        }
        /// Branch that branches without a 'Base:' start from
        pr_base: Option<String> = Setting {
            key: "git.pr_base",
            shell: "GIT_PR_BASE",
            empty: "master, else the remote's HEAD, else the current one",
        }
        /// Branches that are never pushed to
        protected_branches: Vec<String> = Setting {
            key: "git.protected_branches",
            shell: "GIT_PROTECTED_BRANCHES",
            default: "main master production",
            empty: "none",
        }
        /// Name of the author of commits in the work trees of branches
        name: Option<String> = Setting {
            key: "git.worktree.name",
            shell: "GIT_WORKTREE_NAME",
            empty: "your own",
        }
        /// That author's address
        email: Option<String> = Setting {
            key: "git.worktree.email",
            shell: "GIT_WORKTREE_EMAIL",
            empty: "your own",
        }
        /// Key that signs those commits
        signing_key: Option<String> = Setting {
            key: "git.worktree.signing_key",
            shell: "GIT_WORKTREE_SIGNING_KEY",
            empty: "signed as your own are",
        }
        /// File of the key that those work trees push with, from the project root
        ssh_key: Option<String> = Setting {
            key: "git.worktree.ssh_key",
            shell: "GIT_WORKTREE_SSH_KEY",
            empty: "your own",
        }
    }

    /// Settings of landing: how the work on tasks comes onto a branch.
    LandingSettings {
        /// Branch that finished tasks land on
        onto: Option<String> = Setting {
            key: "landing.onto",
            shell: "LANDING_ONTO",
            empty: "the current one",
        }
        /// How many finished tasks are tried together
        batch: u32 = Setting {
            key: "landing.batch",
            shell: "LANDING_BATCH",
            default: "8",
            kind: ValueKind::Count { least: 1 },
        }
        /// What lands: merge (a merge commit for each task, unless a fast-forward does) or rebase (a linear history)
        style: LandingStyle = Setting {
            key: "landing.style",
            shell: "LANDING_STYLE",
            default: "merge",
        }
        /// Command for sh that has to pass before anything lands
        command: Option<String> = Setting {
            key: "landing.command",
            shell: "LANDING_COMMAND",
            empty: "the validation command",
        }
        /// Whether what has landed is pushed: to the branch, or beside it with a pull request where that is protected
        push: bool = Setting {
            key: "landing.push",
            shell: "LANDING_PUSH",
            default: "false",
        }
        /// How often a task that could not land is given back to an agent
        retries: u32 = Setting {
            key: "landing.retries",
            shell: "LANDING_RETRIES",
            default: "3",
        }
    }

    /// Settings of redaction.
    RedactSettings {
        /// Whether values of secret variables are taken out of all that is kept and shown
        enabled: bool = Setting {
            key: "redact.enabled",
            shell: "REDACT",
            default: "true",
            needs_trust: true,
            loosest_first: &["false", "true"],
        }
        /// More variables whose values are taken out; '*' at an end of a name stands for anything
        names: Vec<String> = Setting {
            key: "redact.names",
            shell: "REDACT_NAMES",
            empty: "those whose name says so",
            needs_trust: true,
            more_is_tighter: true,
        }
        /// Files such as .env whose variables are looked at, too, from the project root
        env_files: Vec<String> = Setting {
            key: "redact.env_files",
            shell: "REDACT_ENV_FILES",
            empty: "none",
            needs_trust: true,
            more_is_tighter: true,
        }
    }

    /// Settings of the sandbox.
    SandboxSettings {
        /// Whether agents and the validation command work behind walls: off, try (where the machine can), or on (or not at all)
        mode: Mode = Setting {
            key: "sandbox.mode",
            shell: "SANDBOX",
            flag: Some(Flag {
                long: "--sandbox",
                value: "MODE",
                help: "Whether agents work behind walls, where they reach their work and little else: off, try (where the machine can), or on (or not at all)",
                ..Flag::GENERAL
            }),
            default: "off",
            needs_trust: true,
            loosest_first: &["off", "try", "on"],
        }
        /// Where a program behind walls can connect to: all, none (to its own loopback only), or allow (there, to its provider and to sandbox.hosts)
        network: Network = Setting {
            key: "sandbox.network",
            shell: "SANDBOX_NETWORK",
            default: "all",
            needs_trust: true,
            loosest_first: &["all", "allow", "none"],
        }
        /// Hosts that it can connect to with sandbox.network allow: host, *.host or host:port, or a registry such as crates, npm or pypi
        hosts: Vec<String> = Setting {
            key: "sandbox.hosts",
            shell: "SANDBOX_HOSTS",
            empty: "those of the agent",
            needs_trust: true,
        }
        /// More that it can write, from the project root or from ~/
        write: Vec<String> = Setting {
            key: "sandbox.write",
            shell: "SANDBOX_WRITE",
            empty: "none",
            needs_trust: true,
        }
        /// More that it cannot read, from the project root or from ~/
        hide: Vec<String> = Setting {
            key: "sandbox.hide",
            shell: "SANDBOX_HIDE",
            empty: "none",
            needs_trust: true,
            more_is_tighter: true,
        }
        /// What it can read although it is hidden usually, from the project root or from ~/
        show: Vec<String> = Setting {
            key: "sandbox.show",
            shell: "SANDBOX_SHOW",
            empty: "none",
            needs_trust: true,
        }
        /// What follows when an attempt has changed hooks or settings of git, another checkout, the shell's profiles or ssh's keys: off, tell, or stop
        tripwire: Tripping = Setting {
            key: "sandbox.tripwire",
            shell: "SANDBOX_TRIPWIRE",
            default: "tell",
            needs_trust: true,
            loosest_first: &["off", "tell", "stop"],
        }
        /// Words that start a program in a sandbox of yours, in the place of the walls: bwrap, firejail, srt, docker run or others
        wrapper: Vec<String> = Setting {
            key: "sandbox.wrapper",
            shell: "SANDBOX_WRAPPER",
            empty: "none",
            needs_trust: true,
        }
        /// Variables that it gets although their values are secret; '*' at an end of a name stands for anything
        env: Vec<String> = Setting {
            key: "sandbox.env",
            shell: "SANDBOX_ENV",
            empty: "the agent's own",
            needs_trust: true,
        }
    }

    /// Settings of notices.
    NotifySettings {
        /// Which events send a notice: end (of any kind), failure, waiting (for a usage limit), attention (a person is asked)
        on: Vec<Moment> = Setting {
            key: "notify.on",
            shell: "NOTIFY_ON",
            default: "end failure waiting attention",
            empty: "nothing",
        }
        /// Command for sh that gets each such event as a line of JSON on stdin; ended after 10 seconds
        command: Option<String> = Setting {
            key: "notify.command",
            shell: "NOTIFY_COMMAND",
            empty: "none",
            needs_trust: true,
        }
        /// URL that each such event is posted to
        url: Option<Url> = Setting {
            key: "notify.webhook",
            shell: "NOTIFY_WEBHOOK",
            empty: "none",
            needs_trust: true,
        }
        /// What is posted: json (the event), slack, discord or ntfy (a short text)
        format: Option<Format> = Setting {
            key: "notify.webhook_format",
            shell: "NOTIFY_WEBHOOK_FORMAT",
            empty: "as the URL's host wants it, else json",
            needs_trust: true,
        }
        /// Shared secret that signs what is posted
        secret: Option<Secret> = Setting {
            key: "notify.webhook_secret",
            shell: "NOTIFY_WEBHOOK_SECRET",
            empty: "not signed",
            needs_trust: true,
        }
        /// Variable of the environment that holds that secret; better than a secret in a file
        secret_env: Option<String> = Setting {
            key: "notify.webhook_secret_env",
            shell: "NOTIFY_WEBHOOK_SECRET_ENV",
            empty: "none",
            needs_trust: true,
        }
        /// Whether the desktop shows each such event
        desktop: bool = Setting {
            key: "notify.desktop",
            shell: "NOTIFY_DESKTOP",
            default: "false",
        }
        /// Whether the terminal's bell rings at each such event
        bell: bool = Setting {
            key: "notify.bell",
            shell: "NOTIFY_BELL",
            default: "false",
        }
        /// Which targets are notified of an end that is no failure, whatever notify.on says: none, bell, desktop, command, webhook
        on_complete: Vec<Target> = Setting {
            key: "monitoring.notifications.on_complete",
            shell: "NOTIFY_ON_COMPLETE",
            empty: "none",
        }
        /// Which targets are notified of a failure, whatever notify.on says
        on_error: Vec<Target> = Setting {
            key: "monitoring.notifications.on_error",
            shell: "NOTIFY_ON_ERROR",
            empty: "none",
        }
    }

    /// Settings of issue trackers.
    TrackerSettings {
        /// Where the API of a tracker is, if not at its usual place: github=https://git.example.org/api/v3, also for gitlab, linear and jira
        urls: Vec<String> = Setting {
            key: "tracker.urls",
            shell: "TRACKER_URLS",
            empty: "the usual ones",
            needs_trust: true,
        }
        /// Which variable of the environment holds the token of a tracker, if not its usual one: jira=WORK_JIRA_TOKEN
        token_env: Vec<String> = Setting {
            key: "tracker.token_env",
            shell: "TRACKER_TOKEN_ENV",
            empty: "the usual ones",
            needs_trust: true,
        }
    }

    /// The user's commands beside a loop.
    HookSettings {
        /// Command for sh when a loop starts, with the event as a line of JSON on stdin
        on_loop_start: Option<String> = Setting {
            key: "hooks.on_loop_start",
            shell: "HOOK_ON_LOOP_START",
            empty: "none",
            needs_trust: true,
        }
        /// Command for sh after each attempt at an iteration, with the event as a line of JSON on stdin
        on_iteration: Option<String> = Setting {
            key: "hooks.on_iteration",
            shell: "HOOK_ON_ITERATION",
            empty: "none",
            needs_trust: true,
        }
        /// Command for sh at the end of a loop, with the event as a line of JSON on stdin
        on_end: Option<String> = Setting {
            key: "hooks.on_end",
            shell: "HOOK_ON_END",
            empty: "none",
            needs_trust: true,
        }
        /// Longest time for one of these commands
        timeout: Duration = Setting {
            key: "hooks.timeout",
            shell: "HOOK_TIMEOUT",
            default: "10s",
        }
    }
}

#[cfg(test)]
mod tests;
