//! The command that proves the work: whether it can run, and with `--validate` whether it does, and for how long.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::Command;
use std::time::Instant;

use super::Finding;
use crate::engine::validation::CANNOT_RUN;
use crate::job::launch::launch;
use crate::job::ready::{cannot_validate, validation};
use crate::process::launch::Launch;
use crate::process::short::output_within;
use crate::project::Project;
use crate::settings::Settings;
use crate::text::duration;
use crate::text::line::one_line_within;

const CHECK: &str = "validation";
/// The longest quotation of the command's output, in characters.
const MAX_QUOTE: usize = 200;

/// Looks at the validation command; `runs`: has it run.
pub(super) fn check(
    project: &Project,
    settings: &Settings,
    env: Vec<(OsString, OsString)>,
    runs: bool,
) -> Finding {
    let Some(command) = validation(settings) else {
        return Finding::warn(
            CHECK,
            "no command proves the work: COMPLETE is the agent's word",
            "set VALIDATION_COMMAND to what tests this project, such as 'make test'",
        );
    };
    let launch = launch(project, settings, env, "");
    let shown = settings.secrets.word(command);
    match cannot_validate(settings, &launch) {
        Some(why) => Finding::fail(CHECK, why, "no loop starts before that"),
        None if runs => run(command, &shown, settings, &launch),
        None => Finding::ok(CHECK, format!("'{shown}' is found; 'ralph doctor --validate' runs it")),
    }
}

fn run(command: &str, shown: &str, settings: &Settings, launch: &Launch) -> Finding {
    let Launch { program, args, cwd, env, .. } = launch.shell(command);
    let mut shell = Command::new(program);
    shell.args(args).current_dir(cwd).envs(env);
    let (limit, began) = (settings.validation_timeout, Instant::now());
    let output = match output_within(&mut shell, limit) {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            let limit = duration::format(limit);
            return Finding::warn(
                CHECK,
                format!("'{shown}' did not end within {limit}"),
                "make it faster, or raise VALIDATION_TIMEOUT",
            );
        }
        Err(error) => return Finding::fail(CHECK, format!("'{shown}': {error}"), "check the command"),
    };
    let took = duration::elapsed_tenths(began.elapsed());
    let printed = [output.stdout, output.stderr].concat();
    let printed = settings.secrets.word(&String::from_utf8_lossy(&printed));
    let last = printed.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map(|line| format!(": {}", one_line_within(line, MAX_QUOTE))).unwrap_or_default();
    match output.status.code() {
        Some(0) => Finding::ok(CHECK, format!("'{shown}' passes, in {took}")),
        Some(code) if CANNOT_RUN.contains(&code) => Finding::fail(
            CHECK,
            format!("'{shown}' cannot run (exit code {code}){last}"),
            "install what is missing, or change VALIDATION_COMMAND",
        ),
        code => {
            let code = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            Finding::warn(
                CHECK,
                format!("'{shown}' runs and fails ({code}, in {took}){last}"),
                "a loop begins with it failing, and each prompt says so",
            )
        }
    }
}
