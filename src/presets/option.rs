//! Options of an agent's command line, and those that keep it from changing anything.
//!
//! The read-only options were measured: each agent was asked to change files with its own tool, and in seven ways with the shell.

use std::ffi::{OsStr, OsString};

/// An option of an agent's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CliOption {
    /// All its spellings; the first one is written.
    pub names: &'static [&'static str],
    /// The next word is its value, unless there is one after a `=`.
    pub has_value: bool,
    /// The beginning of its value; with another beginning the option is about something else.
    pub key: &'static str,
}

/// How an agent is made read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOnly {
    /// Options that are removed, because they allow something.
    pub without: &'static [CliOption],
    /// Arguments that are added.
    pub args: &'static [&'static str],
    /// Variables that are added.
    pub env: &'static [(&'static str, &'static str)],
}

// A verifying agent runs the project's tests, which write build products. An option that forbids that as well is of no use:
// codex's sandbox (`-s read-only`), gemini's plan mode, which has no shell, and cline's `--auto-approve false`.

impl ReadOnly {
    /// Over the protocol an agent asks for permission, and its mode is chosen.
    pub(super) const ASKED_FOR: Self = Self { without: &[], args: &[], env: &[] };
}

impl CliOption {
    /// An option with these spellings and a value.
    pub(super) const fn with_value(names: &'static [&'static str]) -> Self {
        Self { names, has_value: true, key: "" }
    }

    /// `args` without this option, wherever it stands before a `--`.
    pub(super) fn strip(self, args: Vec<OsString>) -> Vec<OsString> {
        let is_meant = |value: &str| value.starts_with(self.key);
        let is_it = |arg: &OsStr, next: Option<&OsString>| {
            let has_key = self.key.is_empty() || next.is_some_and(|next| is_meant(&next.to_string_lossy()));
            has_key && self.names.iter().any(|name| arg == *name)
        };
        let is_with_value = |arg: &OsStr| {
            let text = arg.to_string_lossy();
            let (name, value) = text.split_once('=').unwrap_or_default();
            self.has_value && self.names.contains(&name) && is_meant(value)
        };
        let mut kept = Vec::with_capacity(args.len());
        let mut args = args.into_iter().peekable();
        while let Some(arg) = args.next() {
            if arg == "--" {
                kept.push(arg);
                break;
            } else if is_it(&arg, args.peek()) {
                let _value = if self.has_value { args.next() } else { None };
            } else if !is_with_value(&arg) {
                kept.push(arg);
            }
        }
        kept.extend(args);
        kept
    }
}
