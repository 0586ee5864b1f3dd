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
    let mut head = Vec::new();
    theirs::open(script).ok()?.take(FIRST_LINE).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = str::from_utf8(line).ok()?;
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let interpreter = words.next()?;
    // Otherwise a carriage return at the end of the line would not be visible.
    let visible = |word: &str| word.escape_debug().to_string();
    if interpreter.starts_with('/') && !Path::new(interpreter).exists() {
        return Some(format!("'#!{}', and '{}' does not exist", visible(line), visible(interpreter)));
    }
    let is_name = |word: &&str| !word.starts_with('-') && !word.contains(['/', '=']);
    let program = words.next().filter(is_name).filter(|_| interpreter.ends_with("/env"))?;
    let is_missing = find_program(program, search_path).is_none();
    is_missing.then(|| format!("'#!{}', and '{}' is not on PATH", visible(line), visible(program)))
}
