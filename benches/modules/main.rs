//! Benchmarks of the modules that every byte or every prompt passes, in one program because linking takes longer than
//! measuring. `cargo bench` measures; `cargo bench -- --test` only shows that they run.

mod decode;
mod event_lines;
mod redact;
mod session_log;
mod substitute;

fn main() {
    divan::main();
}
