//! Entry point: parse, run, exit code.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use ralph::{cli, commands, process, reply, script_agent};

fn main() -> ExitCode {
    // A limit of the size of files is an error of the write that meets it; children have the usual handling again.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let argv: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = hidden_verb(&argv) {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    commands::watch::hint();
    let result = match argv.len() {
        ..2 => commands::overview(),
        _ => commands::version::answer(&argv[1..]).unwrap_or_else(|| match cli::Cli::read(argv) {
            Ok(cli) => commands::run(cli.command),
            Err(help) if !help.use_stderr() => commands::print_help(&help),
            Err(error) => Err(anyhow::anyhow!(cli::one_line(&error))),
        }),
    };
    let code = match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => commands::report_error(&error),
    };
    process::pool::end_idle();
    code
}

/// Our own executable is also what it starts beside itself. These verbs have no flags and no help, and they are
/// on the way of every iteration, so they go past the command line parser.
fn hidden_verb(argv: &[OsString]) -> Option<i32> {
    let (verb, rest) = argv.get(1..)?.split_first()?;
    match verb.to_str()? {
        process::supervisor::VERB => Some(process::supervisor::main(rest)),
        process::actor::VERB => Some(process::actor::main(rest)),
        process::walls::VERB => Some(process::walls::main(rest)),
        reply::child::VERB => Some(reply::child::main(rest)),
        commands::sandbox::VERB => Some(commands::sandbox::keep(rest)),
        commands::completions::VERB => Some(commands::completions::answer(rest)),
        script_agent::VERB => Some(script_agent::script_main()),
        _ => None,
    }
}
