//! Which programs the machine has.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::files::theirs;

/// The longest first line of a script that is read, in bytes.
const FIRST_LINE: u64 = 256;

/// The program of this name on a search path.
#[must_use]
pub fn find_program(name: &str, search_path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(search_path)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}

/// The first line of a script whose interpreter is missing, and what is missing, in words.
#[must_use]
pub fn missing_interpreter(script: &Path, search_path: &OsStr) -> Option<String> {
    let line = first_line(script)?;
    let (interpreter, program) = interpreters_in(&line)?;
    // Otherwise a carriage return at the end of the line would not be visible.
    let visible = |word: &str| word.escape_debug().to_string();
    if interpreter.starts_with('/') && !Path::new(interpreter).exists() {
        return Some(format!("'#!{}', and '{}' does not exist", visible(&line), visible(interpreter)));
    }
    let program = program?;
    let is_missing = find_program(program, search_path).is_none();
    is_missing.then(|| format!("'#!{}', and '{}' is not on PATH", visible(&line), visible(program)))
}

/// The interpreter of a script, and the program that `env` starts for it, as far as its first line names them.
#[must_use]
pub fn interpreters(script: &Path) -> Vec<String> {
    let line = first_line(script).unwrap_or_default();
    let found = interpreters_in(&line).into_iter();
    found
        .flat_map(|(interpreter, program)| std::iter::once(interpreter).chain(program))
        .map(str::to_owned)
        .collect()
}

/// What follows `#!` in the first line of a file.
fn first_line(script: &Path) -> Option<String> {
    let mut head = Vec::new();
    theirs::open(script).ok()?.take(FIRST_LINE).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    str::from_utf8(line).ok().map(str::to_owned)
}

/// The interpreter that such a line names, and the program behind `env`.
#[must_use]
pub fn interpreters_in(line: &str) -> Option<(&str, Option<&str>)> {
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let interpreter = words.next()?;
    let is_name = |word: &&str| !word.starts_with('-') && !word.contains(['/', '=']);
    let program = words.next().filter(is_name).filter(|_| interpreter.ends_with("/env"));
    Some((interpreter, program))
}
