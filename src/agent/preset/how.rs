//! How presets express what a piece of work wants of its agent: a model, and that nothing is changed.
//!
//! What keeps an agent from writing was measured: each of these was asked to change files by its own tool and in seven ways by
//! the shell.

use std::ffi::{OsStr, OsString};

use super::{Preset, Prompt};

/// An option of an agent's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CliOption {
    /// All its spellings, the one to write first.
    pub names: &'static [&'static str],
    /// The next word is its value, unless it comes behind a `=`.
    pub has_value: bool,
}

/// How an agent is kept from changing anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOnly {
    /// Options that have to go, because they allow something.
    pub without: &'static [CliOption],
    /// Arguments that have to be there.
    pub args: &'static [&'static str],
    /// Variables that have to be there.
    pub env: &'static [(&'static str, &'static str)],
}

const fn switch(names: &'static [&'static str]) -> CliOption {
    CliOption { names, has_value: false }
}

const fn option(names: &'static [&'static str]) -> CliOption {
    CliOption { names, has_value: true }
}

pub(super) const LONG_MODEL: CliOption = option(&["--model"]);
pub(super) const SHORT_MODEL: CliOption = option(&["-m", "--model"]);

/// Its plan mode refuses the shell only sometimes; what is not among its tools it cannot use at all.
pub(super) const CLAUDE: ReadOnly =
    ReadOnly { without: &[option(&["--tools"])], args: &["--tools", "Read,Grep,Glob"], env: &[] };
pub(super) const CLINE: ReadOnly =
    ReadOnly { without: &[option(&["--auto-approve"])], args: &["--auto-approve", "false"], env: &[] };
pub(super) const CODEX: ReadOnly = ReadOnly {
    without: &[
        switch(&["--dangerously-bypass-approvals-and-sandbox", "--yolo", "--full-auto"]),
        option(&["-s", "--sandbox"]),
    ],
    args: &["-s", "read-only"],
    env: &[],
};
pub(super) const GEMINI: ReadOnly = ReadOnly {
    without: &[switch(&["--yolo", "-y"]), option(&["--approval-mode"])],
    args: &["--approval-mode", "plan"],
    env: &[],
};
/// Its plan mode keeps the file tools from writing, but not the shell.
pub(super) const OPENCODE: ReadOnly = ReadOnly {
    without: &[switch(&["--auto"])],
    args: &[],
    env: &[("OPENCODE_PERMISSION", r#"{"edit":"deny","bash":"deny"}"#)],
};

impl CliOption {
    /// `args` without this option, wherever it stands before a `--`.
    fn strip(self, args: Vec<OsString>) -> Vec<OsString> {
        let is_it = |arg: &OsStr| self.names.iter().any(|name| arg == *name);
        let is_with_value = |arg: &OsStr| {
            let text = arg.to_string_lossy();
            self.has_value && text.split_once('=').is_some_and(|(name, _)| self.names.contains(&name))
        };
        let mut kept = Vec::with_capacity(args.len());
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            if arg == "--" {
                kept.push(arg);
                break;
            } else if is_it(&arg) {
                let _value = if self.has_value { args.next() } else { None };
            } else if !is_with_value(&arg) {
                kept.push(arg);
            }
        }
        kept.extend(args);
        kept
    }
}

impl Preset {
    /// `args` with the option for this model, in place of another one; `None` when the agent has no such option.
    #[must_use]
    pub fn with_model(&self, args: &[OsString], model: &str) -> Option<Vec<OsString>> {
        let option = self.model?;
        Some(self.with(option.strip(args.to_vec()), &[option.names[0], model]))
    }

    /// `args` with what keeps the agent from changing anything.
    #[must_use]
    pub fn with_read_only(&self, args: &[OsString], read_only: &ReadOnly) -> Vec<OsString> {
        let kept = read_only.without.iter().fold(args.to_vec(), |args, option| option.strip(args));
        self.with(kept, read_only.args)
    }

    /// `args` with these options behind the others: before what is no option any more.
    fn with(&self, mut args: Vec<OsString>, options: &[&str]) -> Vec<OsString> {
        let is_prompt = |last: &OsString| match self.prompt {
            Prompt::StdinAndArgument(argument) => last == argument,
            Prompt::Stdin => last == "-",
        };
        let end = args
            .iter()
            .position(|arg| arg == "--")
            .unwrap_or_else(|| args.len() - usize::from(args.last().is_some_and(is_prompt)));
        args.splice(end..end, options.iter().map(OsString::from));
        args
    }
}

#[cfg(test)]
mod tests {
    use super::super::preset;
    use super::*;

    fn shown(args: &[OsString]) -> String {
        args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    fn own_args(preset: &Preset) -> Vec<OsString> {
        let argument = match preset.prompt {
            Prompt::Stdin => None,
            Prompt::StdinAndArgument(_) => Some("Follow the instructions given on standard input."),
        };
        preset.args.iter().copied().chain(argument).map(OsString::from).collect()
    }

    #[test]
    fn every_preset_says_what_it_can() {
        for (name, model, read_only) in [
            (
                "claude",
                "--dangerously-skip-permissions --output-format stream-json --verbose -p --model M",
                "--dangerously-skip-permissions --output-format stream-json --verbose -p --tools Read,Grep,Glob",
            ),
            (
                "codex",
                "exec --json --dangerously-bypass-approvals-and-sandbox -m M -",
                "exec --json -s read-only -",
            ),
            (
                "gemini",
                "--output-format stream-json --yolo --skip-trust -m M",
                "--output-format stream-json --skip-trust --approval-mode plan",
            ),
            (
                "cline",
                "--json -m M Follow the instructions given on standard input.",
                "--json --auto-approve false Follow the instructions given on standard input.",
            ),
            ("opencode", "run --format json --auto -m M", "run --format json"),
        ] {
            let preset = preset(name).unwrap();
            let args = own_args(preset);
            assert_eq!(shown(&preset.with_model(&args, "M").unwrap()), model, "{name}");
            let as_read_only = preset.with_read_only(&args, &preset.read_only.unwrap());
            assert_eq!(shown(&as_read_only), read_only, "{name}");
        }
        let custom = preset("custom").unwrap();
        assert_eq!((custom.with_model(&[], "M"), custom.read_only), (None, None));
    }

    #[test]
    fn options_of_the_users_own_are_replaced_in_every_spelling() {
        for (name, own, model, read_only) in [
            (
                "claude",
                "-p --model=a --tools Bash -- --model x",
                "-p --tools Bash --model M -- --model x",
                "-p --model=a --tools Read,Grep,Glob -- --model x",
            ),
            (
                "codex",
                "exec --model a -s workspace-write --yolo -",
                "exec -s workspace-write --yolo -m M -",
                "exec --model a -s read-only -",
            ),
            (
                "gemini",
                "-y --approval-mode=yolo -m a",
                "-y --approval-mode=yolo -m M",
                "-m a --approval-mode plan",
            ),
            (
                "cline",
                "--auto-approve true --json",
                "--auto-approve true --json -m M",
                "--json --auto-approve false",
            ),
        ] {
            let preset = preset(name).unwrap();
            let args: Vec<OsString> = own.split(' ').map(OsString::from).collect();
            assert_eq!(shown(&preset.with_model(&args, "M").unwrap()), model, "{name}");
            assert_eq!(shown(&preset.with_read_only(&args, &preset.read_only.unwrap())), read_only, "{name}");
        }
    }

    #[test]
    fn options_come_before_what_is_none() {
        let claude = preset("claude").unwrap();
        let args: Vec<OsString> = ["-p", "--", "x"].map(OsString::from).into();
        assert_eq!(shown(&claude.with_model(&args, "M").unwrap()), "-p --model M -- x");
    }
}
