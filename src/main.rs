//! Entry point: parse, run, exit code.

fn main() -> std::process::ExitCode {
    let mut argv = std::env::args_os().skip(1);
    if argv.next().is_some_and(|verb| verb == "__supervise") {
        let code = ralph::process::supervisor::main(&argv.collect::<Vec<_>>());
        return std::process::ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    std::process::ExitCode::SUCCESS
}
