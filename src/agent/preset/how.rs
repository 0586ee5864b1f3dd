//! How presets express what a piece of work wants of its agent: a model, and that nothing is changed.
//!
//! What keeps an agent from writing was measured: each of these was asked to change files by its own tool and in seven ways by
//! the shell.

use std::ffi::{OsStr, OsString};

use super::{Preset, Prompt};

/// How an agent is kept from changing anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOnly {
    /// Arguments that have to go, because they allow everything.
    pub without: &'static [&'static str],
    /// Arguments that have to be there.
    pub args: &'static [&'static str],
    /// Variables that have to be there.
    pub env: &'static [(&'static str, &'static str)],
}

pub(super) const CLAUDE: ReadOnly =
    ReadOnly { without: &["--dangerously-skip-permissions"], args: &["--permission-mode", "plan"], env: &[] };
pub(super) const CLINE: ReadOnly =
    ReadOnly { without: &["--auto-approve"], args: &["--auto-approve", "false"], env: &[] };
pub(super) const CODEX: ReadOnly = ReadOnly {
    without: &["--dangerously-bypass-approvals-and-sandbox", "--full-auto"],
    args: &["-s", "read-only"],
    env: &[],
};
pub(super) const GEMINI: ReadOnly =
    ReadOnly { without: &["--yolo", "-y"], args: &["--approval-mode", "plan"], env: &[] };
/// Its plan mode keeps the file tools from writing, but not the shell.
pub(super) const OPENCODE: ReadOnly =
    ReadOnly { without: &[], args: &[], env: &[("OPENCODE_PERMISSION", r#"{"edit":"deny","bash":"deny"}"#)] };

impl Preset {
    /// `args` with the option for this model; `None` when the agent has no such option.
    #[must_use]
    pub fn with_model(&self, args: &[OsString], model: &str) -> Option<Vec<OsString>> {
        (!self.model.is_empty()).then(|| self.with(args.to_vec(), &[self.model, model]))
    }

    /// `args` with what keeps the agent from changing anything.
    #[must_use]
    pub fn with_read_only(&self, args: &[OsString], read_only: &ReadOnly) -> Vec<OsString> {
        let kept = args.iter().filter(|arg| read_only.without.iter().all(|without| *arg != without));
        self.with(kept.cloned().collect(), read_only.args)
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
        args.splice(end..end, options.iter().map(|option| OsStr::new(option).to_owned()));
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
                "--output-format stream-json --verbose -p --permission-mode plan",
            ),
            (
                "codex",
                "exec --json --dangerously-bypass-approvals-and-sandbox -m M -",
                "exec --json -s read-only -",
            ),
            (
                "gemini",
                "--output-format stream-json --yolo -m M",
                "--output-format stream-json --approval-mode plan",
            ),
            (
                "cline",
                "--json -m M Follow the instructions given on standard input.",
                "--json --auto-approve false Follow the instructions given on standard input.",
            ),
            ("opencode", "run --format json --auto -m M", "run --format json --auto"),
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
    fn options_come_before_what_is_none() {
        let claude = preset("claude").unwrap();
        let args: Vec<OsString> = ["-p", "--", "x"].map(OsString::from).into();
        assert_eq!(shown(&claude.with_model(&args, "M").unwrap()), "-p --model M -- x");
    }
}
