//! What stands below the options in `--help`: examples, exit codes, and what a verb does with what is there. `layout.rs` says
//! how these texts are written, and breaks them into lines.

/// The verbs by what they are for, for the list of all of them.
pub(super) const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["plan", "build", "prompt", "run", "loop"]),
    ("Look", &["status", "ls", "watch", "logs", "report", "history", "diff", "proof", "replay"]),
    ("Steer", &["pause", "resume", "cancel", "note", "revert", "clean"]),
    ("Tasks", &["task", "feature", "journal", "knowledge"]),
    ("Agents in tmux", &["spawn", "send", "interrupt", "attach", "peek", "wait", "kill", "template"]),
    (
        "Set up",
        &["init", "config", "doctor", "demo", "notify", "trust", "sandbox", "completions", "help", "man"],
    ),
];

/// `--store`.
pub(super) const STORE: &str = "Graph on a PostgreSQL server, postgres://USER@HOST/DATABASE, instead of the project's file [env: RALPH_STORE]";

/// `--store` of the verbs that show and steer.
pub(super) const FLEET_STORE: &str =
    "Graph on a PostgreSQL server, whose workers are meant [env: RALPH_STORE]";

pub(super) const SANDBOX_EXAMPLES: &str = "\
Examples:
  ralph sandbox                            What an agent could write, read and connect to
  ralph sandbox --agent codex --json       For codex, for programs
  ralph sandbox -- sh                      A shell behind these walls, to try them
  RALPH_SANDBOX_NETWORK=none ralph sandbox -- make test
                                           Whether the tests need the network";

pub(super) const CONFIG_EXAMPLES: &str = "\
Examples:
  ralph config                             Every setting, its value and where it comes from
  ralph config set loop.max_retries 5      Into ralph.toml, or the config of the ralph dir
  ralph config set VALIDATION_COMMAND 'cargo test'
                                           By the name that it has there
  ralph config set --user agent.provider codex
                                           For all projects";

pub(super) const ROOT_EXAMPLES: &str = "\
The first loop:
  ralph init                  Set this project up
  ralph plan                  Turn the specs into an implementation plan
  ralph build 20              Work on the plan, at most 20 iterations

Examples:
  ralph demo                  Watch a whole loop: no agent, no key, no network needed
  ralph prompt review.md 3    Run a prompt of your own, at most 3 iterations
  ralph run fix               Run fix/RALPH.md: agent, commands and prompt in one file
  ralph loop build            Build the branches of a plan side by side
  ralph                       Where the loops of this project stand, and what to type next

Pages of the guide ('ralph help' says what each is about, 'ralph help PAGE' prints it):
prompts, ralph-md, branches, tasks, landing, many-machines, features, workers, agents, acp, filters, scripted-agent,
limits, validation, stopping, failures, watching, control, reports, notices, commands, settings, installing, exit-codes,
files, events, walls, safety, troubleshooting

Exit codes:
  0    done, or a limit reached
  1    usage or configuration
  2    plan missing
  3    new plan wanted
  4    the agent failed, or its work is not proven
  5    git failed
  130  interrupted";

pub(super) const PLAN_EXAMPLES: &str = "\
Examples:
  ralph plan                  Until the agent says COMPLETE, at most 10 iterations
  ralph plan 1                A single one
  ralph plan --agent codex    With another agent than the configured one";

pub(super) const BUILD_EXAMPLES: &str = "\
Examples:
  ralph build 20                        At most 20 iterations
  ralph build --timeout 30m             No attempt longer than half an hour
  ralph build 5 --json > events.jsonl   For a program: events as JSON lines";

pub(super) const PROMPT_EXAMPLES: &str = "\
Examples:
  ralph prompt prompts/refactor.md      Until the agent says COMPLETE
  ralph prompt review.md 3 --quiet      At most 3 iterations, only the summary shown

The file must mention <promise>COMPLETE</promise>: it tells the agent how to end the loop.";

pub(super) const WATCH_HELP: &str = "\
Examples:
  ralph watch                  The loops of this project
  ralph watch feature/export   The same, with this one selected
  ralph watch --all            Every loop of this machine

Keys: arrows select, p pauses, r resumes, c cancels, C cancels now, n is for a note, d shows the diff, l the log,
R the report, a attaches to a worker's window, / filters, s sorts, ? lists all keys, q leaves. Loops go on, whether
they are watched or not.";

pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  ralph status                       Every loop of this project
  ralph status build                 The loop 'build', here or elsewhere on this machine
  ralph status build --json | jq .status

One word says where a loop stands: running, waiting, paused, queued, needs_attention; or how it has ended: done,
unproven (what should prove it does not), limit, budget, idle, interrupted, cancelled, replan, blocked, empty,
failed (the agent), error (something around it), killed.

--json prints an object, and of several loops an array of them: name, mode, agent, status (that word, or
unknown with an error), pending, current_iteration, max_iterations, consecutive_failures, total_failures
(iterations), attempts, failed_attempts, timeouts, validation_error, exit_reason, exit_code, started, ended,
last_iteration_started, last_iteration_ended, waiting_until (RFC 3339), waiting_for, iteration_durations,
average_duration, remaining (seconds), prompt_file, done_pattern, inactivity_timeout (seconds), proof,
last_commit, last_error, cost_usd, input_tokens, output_tokens, max_cost_usd, max_tokens, max_duration (seconds),
task, tasks, agent_instead, agent_command, agent_model, agent_session, context_tokens, context_window,
session_log, pid, run, argv, cwd, project, ralph_dir. What is not known is null.
Of a worker also worker_status (running, stopped), cmd, tags, tmux (session, window, socket), worktree (path,
branch) and metadata (ralph, ralph_iteration).";

pub(super) const LS_HELP: &str = "\
Examples:
  ralph ls --status running          Only those that run
  ralph ls --format names            For a shell: for name in $(ralph ls --format names)
  ralph ls --json | jq '.[] | select(.metadata.ralph == true)'

--json prints an array of the objects that 'ralph status --json' prints. Where there are workers, the table shows
of the loop as RALPH_STATUS and of the program in the pane as WORKER_STATUS.";

pub(super) const LOGS_EXAMPLES: &str = "\
Examples:
  ralph logs                     The newest loop of this project
  ralph logs build --lines 5     The last five lines
  ralph logs build --follow      And what comes, until the loop ends
  ralph logs --agent --follow    What its agents say and do, or what the pane of a worker shows, as it comes
  ralph logs feature/export --agent --attempt 3
                                 Only the third attempt of its newest run
  ralph logs --raw               Everything that they wrote, byte by byte";

pub(super) const RESUME_HELP: &str = "\
Examples:
  ralph resume                            Every loop of this project that holds or waits
  ralph resume build --max-iterations 30  The loop 'build', which ends after its 30th iteration now
  ralph resume build --max-cost 20        It may spend five dollars more, after $15 were used up

A loop whose process is gone is started again here, with the command line it had and --resume. Without NAME:
every loop of this project that holds or waits; if none is running, the one that was cut off. With --max-iterations
also one that has reached its limit goes on, and one that is at work takes the new limit. One that has used up its
money, tokens or time goes on with more of it; what it has used counts. What was changed by hand
in the state.json of a worker that is paused takes effect.";

pub(super) const NOTE_EXAMPLES: &str = "\
Examples:
  ralph note \"The tests need the database: run make db first\"
  ralph note build \"Skip the Windows part\"
  ralph note build --file src/main.rs:12 \"This may be empty\"

Without NAME: every running loop of this project.";

pub(super) const CLEAN_HELP: &str = "\
Forgets state, pending requests and the entry in the list of loops; logs and iterations.log are kept.
A running loop is left alone. Without NAME: the loops of this project.
Of a worker named, or with --all, logs go as well, also while it runs: its loop ends then, and its agent works on
for 'ralph attach' and 'ralph kill'.

With --worktrees, worktrees below .worktrees/ are removed, and branches never: the one of branch NAME, or all.
A tree stays, and the reason is reported (exit code 1), while its loop runs, where something is not committed,
where a merge or the like is in progress, where HEAD is on no branch, where git has it locked, and where
another repository is inside. ralph's own files and the copy of the plan do not count. Ignored files go and
are named. Commits that only the tree knows are saved first, as refs/ralph/keep/BRANCH/TIME.

With --force what is not committed (untracked files too, ignored ones not) is saved there as well, and the
tree goes. How to get it back is printed; 'git for-each-ref refs/ralph/keep' lists all that was saved.";

pub(super) const SEND_EXAMPLES: &str = "\
Examples:
  ralph send agent \"skip that, try the other parser\"
  ralph send agent - < message.txt       Several lines, pasted as one text
  ralph send agent --no-enter \"draft\"    Without Enter
  ralph send --all \"wrap up and commit\"  To every worker that runs

A text has at most 64 KB and no control characters but line ends and tabs. A paused worker gets it, too; one
that waits for an answer on its screen (needs_attention) does not: 'ralph attach' is for that.";

pub(super) const INTERRUPT_EXAMPLES: &str = "\
Example:
  ralph interrupt agent    As if Ctrl+C were pressed in its pane, once

Tools that the agent has started since its prompt, in process groups of their own, are ended if they still run
after 3 s. Servers in the agent's own process group (MCP, LSP) are left alone.";

pub(super) const ATTACH_EXAMPLES: &str = "\
Example:
  ralph attach agent    Works inside another tmux, too; Ctrl+B d leaves it as it is

The worker goes on as before, watched or not.";

pub(super) const PEEK_EXAMPLES: &str = "\
Examples:
  ralph peek agent               What can be seen
  ralph peek agent --lines 200   The last 200 lines, also of what has scrolled by";

pub(super) const WAIT_EXAMPLES: &str = "\
Examples:
  ralph wait agent                 Until its loop and its program have ended
  ralph wait a b --timeout 30m     Both, at most half an hour

Exit codes: 0 all ended well, 1 one has failed, is not known, or still runs after the timeout.";

pub(super) const KILL_EXAMPLES: &str = "\
Examples:
  ralph kill agent                               Its state, its logs and its worktree stay
  ralph kill agent --rm-worktree                 The worktree goes; refused where work would be lost
  ralph kill agent --rm-worktree --force-dirty   What is not committed is saved first

What is refused is refused before anything is ended. The branch always stays.";

pub(super) const TEMPLATE_EXAMPLES: &str = "\
Examples:
  ralph template > my-prompt.md   A file of another name
  ralph init PROMPT.md            The same text as PROMPT.md";

pub(super) const REVERT_HELP: &str = "\
Iterations that committed nothing do not count, nor do those that are undone already: 'ralph revert' a
second time undoes the iteration before. A task's id takes back what its work has brought here. Refused, with nothing changed, while a loop runs here, where a
merge or the like is in progress, where something is staged, where a file to be reverted has uncommitted
changes, and where reverting would conflict.";

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  ralph run --all                       Every ready task of the graph, one after the other
  ralph run t-1a2b3c                    One task, with the tasks that are parts of it
  ralph run export -n 20                At most 20 iterations on the tasks of a feature
  ralph run --all --jobs 4              Four agents side by side; their work lands on this branch
  ralph init fix/RALPH.md               Write a starter
  ralph run fix -n 5                    At most 5 iterations of fix/RALPH.md
  ralph run fix --dry-run               Only show the prompt of the first iteration
  ralph run fix --dir src -t 30m        With an argument of the RALPH.md's own, and a timeout
  ralph run fix src 'the parser'        With its arguments by position, in the order of its 'args'

Without -n the loop goes on until the agent says COMPLETE or the tasks are through, or you stop it. With tasks, --max-retries
is how often a task that is not done well is given out again, and three failures in a row end the loop.";

pub(super) const LOOP_HELP: &str = "\
Examples:
  ralph loop plan              Write IMPLEMENTATION_PLAN.md: branches, and their tasks
  ralph loop build --dry-run   See what would be built
  ralph loop build             Build all branches, each in .worktrees/BRANCH
  ralph loop                   Go on with what was cut off, planning or building; else build
  ralph status                 Where each branch stands

Without a verb it takes the options of 'ralph loop build'; those that only building has mean building.";

pub(super) const LOOP_PLAN_EXAMPLES: &str = "\
Examples:
  ralph loop plan                    Until the agent says COMPLETE and the plan can be built
  ralph loop plan -m 3 -p my.md      At most 3 iterations, with a prompt of your own

The plan is IMPLEMENTATION_PLAN.md. The prompt is PROMPT_plan.md at the project root, else a built-in one.
A plan that cannot be built goes back to the agent with the reason. A planning that was cut off goes on.";

pub(super) const LOOP_BUILD_EXAMPLES: &str = "\
Examples:
  ralph loop build                   All branches at once, at most 8
  ralph loop build fix-a docs        Only these two, and what they start from
  ralph loop build --sequential      One after the other
  ralph loop build -m 5 --jobs 3     At most 5 iterations of each, three at once
  ralph loop build --dry-run         Only read the plan, and show what would be built

Each branch has its work tree, its state and its logs in .worktrees/BRANCH; your own checkout is left alone.
A branch that is done is pushed, gets a pull request (with gh; on GitLab with glab) and the line 'Status: done' in
IMPLEMENTATION_PLAN.md. Called again, the command goes on with those that are not done.
The prompt is PROMPT_build.md at the project root, else a built-in one; it may name {{BRANCH_NAME}},
{{BRANCH_GOAL}} and {{BASE_BRANCH}}.
A line 'Base: pr/12' in the plan starts a branch from that pull request; its review is in the prompts.

Limits of money and tokens hold for all branches together.

Exit codes: the worst of all branches: 130, 5 git failed, 4 the agent failed, 3 a new plan wanted, 1;
a branch at its limit is 0.";

pub(super) const INIT_EXAMPLES: &str = "\
Examples:
  ralph init                  Set this project up
  ralph init fix/RALPH.md     Write a RALPH.md to start from, for 'ralph run fix'
  ralph init PROMPT.md        Write a prompt to start from, for 'ralph prompt PROMPT.md'
  ralph init ralph.toml       Write settings to start from";

pub(super) const SPAWN_EXAMPLES: &str = "\
Examples:
  ralph spawn --name fix --prompt-file PROMPT.md --max-iterations 10 -- claude
  ralph spawn --name fix --prompt-file p.md -n 5 --done-pattern 'ALL DONE' --worktree -- codex
  ralph spawn --name fix --prompt-file p.md -n 5 --no-run -- claude && ralph attach fix

The agent gets the prompt as if you had pasted it. Its turn is over when it exits, or when its screen stands still for so
long as --inactivity-timeout says. Five failures in a row end the loop with code 1.";

pub(super) const TASK_EXAMPLES: &str = "\
Examples:
  id=$(ralph task add 'Parse the dates')
  ralph task add 'Test the parser' --after $id    It waits until the first is done
  ralph task list --ready                         What can be done now
  ralph task tree                                 Tasks and their parts

The unique beginning of an id is enough: 't-3f'. An agent at work may add tasks, let them wait for others,
write into logs and read everything; what ends or changes a task is for people.";

pub(super) const TASK_ADD_EXAMPLES: &str = "\
Examples:
  ralph task add 'Parse the dates' -d 'RFC 3339 only'
  ralph task add 'Test the parser' --parent t-3f9a01 --after t-77b2c4 --priority -1
  ralph task add 'Write the guide' -d - < guide.md

A part of a task that is done opens it again. --json prints an object with the id.";

pub(super) const TASK_SHOW_EXAMPLES: &str = "\
Examples:
  ralph task show t-3f9a01
  ralph task show t-3f --json | jq .log

--json prints one object: id, parent_id, title, description, status (pending, in_progress, landing,
done, blocked, failed), priority, created_at, updated_at (RFC 3339), claimed_by, feature_id, task_type (feature, standalone),
retry_count, max_retries, verification_status (pending, passed, failed), feature (its name), blockers, blocks,
children (ids), log (objects with message and timestamp). What is not known is null. landing, where agents have
committed in a work tree of their own: onto, standing (kept, waiting, returned, landed), ref, base, head, landed
(the commit), commits, gates (how often the gate has run), returned (how often).";

pub(super) const TASK_LIST_EXAMPLES: &str = "\
Examples:
  ralph task list                    Tasks that belong to no feature
  ralph task list --all --ready      All that can be done now
  ralph task list --status failed
  ralph task list --all --json | jq -r '.[].title'

--json prints an array of the objects that 'ralph task show --json' prints, without feature, blockers,
blocks, children and log.";

pub(super) const TASK_DONE_EXAMPLES: &str = "\
Examples:
  ralph task done t-3f9a01
  ralph task done t-3f9a01 --force    Also when a run is at work on it, or it waits to land: nothing of it lands then

A task with parts is done when they are.";

pub(super) const TASK_IMPORT_EXAMPLES: &str = "\
Examples:
  ralph task import prd.json --dry-run      Only show what would change
  ralph task import TODO.md                 A list of '- [ ] task'; nesting makes parts
  ralph task import .beads/issues.jsonl
  ralph task import IMPLEMENTATION_PLAN.md  The plan of 'ralph loop'
  ralph task export | ralph task import - --ralph-dir ../copy/.ralph
  ralph task import github:OWNER/REPO             Its open issues
  ralph task import 'gitlab:GROUP/PROJECT#bug'    Those with this label
  ralph task import linear:TEAM
  ralph task import jira:HOST/PROJECT --report    Comments once on each whose task is done; closes none
  gh issue list --json number,title,body,labels,url | ralph task import -

All tasks of the file are taken in, or none. A task that comes a second time is known again: by its id, in a
list by its text and what it is below. What is gone from the file stays. --json prints added, updated, unchanged, closed (tasks
whose issues are closed there: told, not deleted) and reported.

Tokens are read from GITHUB_TOKEN or GH_TOKEN, GITLAB_TOKEN, LINEAR_API_KEY, JIRA_API_TOKEN (with JIRA_USER in
the cloud), or from the variable that the setting tracker.token_env names; without one, gh and glab are used. The
setting tracker.urls says where a server of your own is.";

pub(super) const JOURNAL_EXAMPLES: &str = "\
Examples:
  ralph journal -n 20                   The latest twenty attempts
  ralph journal --task t-1a2b3c         All attempts at a task
  ralph journal --search 'parser date'  With both words in title, notes or reason

--json prints objects: run_id, iteration, task_id, title, feature, outcome (done, failed, retried, blocked, interrupted),
model, duration_secs, cost_usd, input_tokens, output_tokens, files_modified, notes, reason, created_at.";

pub(super) const KNOWLEDGE_EXAMPLES: &str = "\
Examples:
  ralph knowledge list
  ralph knowledge search parser dates
  ralph knowledge show build-it

Agents write it while they work on tasks; the files in .ralph/knowledge/ are yours, to be changed and committed.
--json prints objects: slug, title, tags, feature, created_at, body.";

pub(super) const FEATURE_SPEC_EXAMPLES: &str = "\
Examples:
  ralph feature spec export                                 The agent asks, you answer
  ralph feature spec export 'The table as CSV, RFC 4180'
  ralph feature spec export - < idea.md

On a terminal the agent asks one question after the other; an empty answer ends that. Without one it
writes from the brief alone. A second agent reviews what it wrote, up to five times. A spec that is there
is revised. The file is .ralph/features/NAME/spec.md.";

pub(super) const FEATURE_BUILD_EXAMPLES: &str = "\
Example:
  ralph feature build export && ralph run export

The tasks can be seen when all of them are sound: each says what is to be done, and how it is proven. What
is not sound is thrown away, and tried three times.";

pub(super) const FEATURE_CREATE_EXAMPLES: &str = "\
Examples:
  ralph feature create export 'The table as CSV, RFC 4180'
  ralph run export

With a brief it begins with the spec, also where there is one; without, with what is missing.";

pub(super) const TASK_CREATE_EXAMPLES: &str = "\
Examples:
  ralph task create                                         The agent asks, you answer
  ralph task create 'Reject dates before 1970' --feature export

On a terminal the agent asks what it has to know; an empty answer ends that.";

pub(super) const FEATURE_EXAMPLES: &str = "\
Examples:
  ralph feature create export 'The table as CSV, RFC 4180'
  ralph feature add export --spec specs/export.md
  ralph task add 'Write the header' --feature export
  ralph feature list

A feature is draft, planned (it has a plan), ready (it has tasks), running, done or failed.
--json prints objects: id, name, spec_path, plan_path, status, tasks (total, done, failed, in_progress, landing),
created_at, updated_at.";

pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  ralph report                   The newest run
  ralph report feature/export    The newest run with this loop, and only this loop
  ralph report 20261121T2310     A run, by the beginning of its id
  ralph report --html night.html --open
  ralph report --md | gh pr comment --body-file -
  ralph report --json | jq '.loops[] | select(.end != \"done\") | .name'";

pub(super) const REPLAY_HELP: &str = "\
Nothing is started or written. With --config, each step is decided once more, by the settings that FILE names in
place of the run's own, after what had happened until then: 'iteration 7: retry → stop, budget reached'. The exit
code is 0 if no step differs, else 3. How long the loop pauses before a step is not compared.

Examples:
  ralph replay                   The newest run, all at once
  ralph replay feature/export    The newest run with this loop, and only this loop
  ralph replay --speed 60        A minute of the run in a second
  ralph replay 20261121T2310 --config other.toml";

pub(super) const DIFF_EXAMPLES: &str = "\
Examples:
  ralph diff                     What the newest run has committed
  ralph diff feature/export      All that this branch has, in the newest of its runs and those before
  ralph diff t-3f9a01 --stat     How much the work on a task has changed
  ralph diff build               While it runs also what is not committed yet
  ralph diff build --comment     In your editor: a line '#> TEXT' below a line of code is a note about it

Comments reach the agent with file, line and the code around it: in the next prompt of a loop that runs, else
when it goes on. Several '#>' lines in a row are one comment; one above the diff is about all of it.";

pub(super) const PROOF_EXAMPLES: &str = "\
Examples:
  ralph proof                    The newest claim: what ran for it, and what it was measured by
  ralph proof 2f3a9c1            That of a commit; a task's, a loop's or a run's goes by its name
  ralph proof --again 2f3a9c1    Once more, in a new checkout

Exit codes of --again: 0 the same verdict, also that it is not proven; 4 another one";

pub(super) const HISTORY_EXAMPLES: &str = "\
Examples:
  ralph history                                 Every run that is kept
  ralph history -n 5                            The newest five
  ralph history --json | jq 'map(.cost_usd) | add'

A run is one start of a command with all its loops. What it leaves lies in .ralph/runs/RUN, and stays when loops are
forgotten and work trees removed.";

pub(super) const NOTIFY_EXAMPLES: &str = "\
Examples:
  ralph notify test          Does it arrive?
  ralph notify test --json   The same for programs

Who gets which notice is set in the section [notify] of a ralph.toml: see 'ralph help notices'.";

pub(super) const TRUST_EXAMPLES: &str = "\
Examples:
  ralph trust            Look at what this project wants to run, and trust it
  ralph trust --list     The projects that are trusted
  ralph trust --remove   Do not trust this one any more

A project's own settings about hooks, and about the command and the webhook of notices, are ignored until its user trusts
them, and again when they change. Your own ~/.config/ralph/ralph.toml needs no trust.";
