//! How presets express wishes: that an agent takes its prompt, uses a model, thinks this hard, or changes nothing.

use std::ffi::{OsStr, OsString};

use super::option::ReadOnly;
use super::preset::{Preset, Prompt, Protocol};

/// A user's wishes for any agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The model, by the agent's name for it.
    pub model: Option<String>,
    /// How hard it thinks, by the agent's word for it.
    pub effort: Option<String>,
}

/// A wish for which an agent has no option, in words that follow "cannot be".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unable(pub &'static str);

impl Unable {
    /// It has no option for the model.
    pub const MODEL: Self = Self("told which model to use");
    /// It has no option for how hard it thinks.
    pub const EFFORT: Self = Self("told how hard to think");
}

impl Prompt {
    /// The argument that goes with the prompt.
    #[must_use]
    pub fn argument(self) -> Option<&'static str> {
        match self {
            Self::Stdin => None,
            Self::StdinAndArgument { argument, .. } => Some(argument),
        }
    }

    /// The argument that goes with the prompt, if `args` have none of their own.
    #[must_use]
    pub fn missing_argument(self, args: &[String]) -> Option<&'static str> {
        let Self::StdinAndArgument { argument, valued } = self else { return None };
        let mut before = "";
        let has_one = args.iter().any(|arg| {
            let is_value = valued.contains(&std::mem::replace(&mut before, arg));
            arg == "--" || !(is_value || arg.starts_with('-'))
        });
        (!has_one).then_some(argument)
    }
}

impl Preset {
    /// `args` with the options for what the user wants, in place of others of their kind.
    ///
    /// # Errors
    /// When the agent has no such option.
    pub fn with_wishes(&self, mut args: Vec<OsString>, wishes: &Wishes) -> Result<Vec<OsString>, Unable> {
        for (wish, option, unable) in
            [(&wishes.model, self.model, Unable::MODEL), (&wishes.effort, self.effort, Unable::EFFORT)]
        {
            // The model is chosen in the session.
            let is_of_session = self.protocol == Protocol::Acp && unable == Unable::MODEL;
            if let Some(wish) = wish.as_ref().filter(|_| !is_of_session) {
                let option = option.ok_or(unable)?;
                args = self.with(option.strip(args), &[option.names[0], &format!("{}{wish}", option.key)]);
            }
        }
        Ok(args)
    }

    /// `args` with what keeps the agent from changing anything.
    #[must_use]
    pub fn with_read_only(&self, args: Vec<OsString>, read_only: &ReadOnly) -> Vec<OsString> {
        let kept = read_only.without.iter().fold(args, |args, option| option.strip(args));
        self.with(kept, read_only.args)
    }

    /// `args` with these options behind the others: before what is no option any more.
    #[must_use]
    pub fn with<S: AsRef<OsStr>>(&self, mut args: Vec<OsString>, options: &[S]) -> Vec<OsString> {
        let is_prompt = |last: &OsString| match self.prompt {
            Prompt::StdinAndArgument { argument, .. } => last == argument,
            Prompt::Stdin => last == "-",
        };
        let end = args
            .iter()
            .position(|arg| arg == "--")
            .unwrap_or_else(|| args.len() - usize::from(args.last().is_some_and(is_prompt)));
        args.splice(end..end, options.iter().map(|option| option.as_ref().to_owned()));
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

    fn with_model(preset: &Preset, args: &[OsString]) -> Result<String, Unable> {
        let wishes = Wishes { model: Some("M".to_owned()), effort: None };
        preset.with_wishes(args.to_vec(), &wishes).map(|args| shown(&args))
    }

    fn own_args(preset: &Preset) -> Vec<OsString> {
        preset.args.iter().copied().chain(preset.prompt.argument()).map(OsString::from).collect()
    }

    #[test]
    fn every_preset_says_what_it_can() {
        for (name, model, read_only) in [
            (
                "claude",
                "--dangerously-skip-permissions --output-format stream-json --verbose -p --model M",
                "--dangerously-skip-permissions --output-format stream-json --verbose -p --tools Bash,Read,Grep,Glob",
            ),
            ("codex", "exec --json --dangerously-bypass-approvals-and-sandbox -m M -", ""),
            ("gemini", "--output-format stream-json --yolo --skip-trust -m M", ""),
            ("cline", "--json -m M Follow the instructions given on standard input.", ""),
            ("opencode", "run --format json --auto -m M", "run --format json --auto"),
        ] {
            let preset = preset(name).unwrap();
            let args = own_args(preset);
            assert_eq!(with_model(preset, &args).unwrap(), model, "{name}");
            let as_read_only = preset.read_only.map(|how| shown(&preset.with_read_only(args, &how)));
            assert_eq!(as_read_only.unwrap_or_default(), read_only, "{name}");
        }
        let custom = preset("custom").unwrap();
        assert_eq!((with_model(custom, &[]), custom.read_only), (Err(Unable::MODEL), None));
    }

    #[test]
    fn options_of_the_users_own_are_replaced_in_every_spelling() {
        for (name, own, model, read_only) in [
            (
                "claude",
                "-p --model=a --tools Bash -- --model x",
                "-p --tools Bash --model M -- --model x",
                "-p --model=a --tools Bash,Read,Grep,Glob -- --model x",
            ),
            (
                "codex",
                "exec --model a -s workspace-write --yolo -",
                "exec -s workspace-write --yolo -m M -",
                "",
            ),
            ("gemini", "-y --approval-mode=yolo -m a", "-y --approval-mode=yolo -m M", ""),
            ("cline", "--auto-approve true --json", "--auto-approve true --json -m M", ""),
        ] {
            let preset = preset(name).unwrap();
            let args: Vec<OsString> = own.split(' ').map(OsString::from).collect();
            assert_eq!(with_model(preset, &args).unwrap(), model, "{name}");
            let as_read_only = preset.read_only.map(|how| shown(&preset.with_read_only(args, &how)));
            assert_eq!(as_read_only.unwrap_or_default(), read_only, "{name}");
        }
    }

    #[test]
    fn options_come_before_what_is_none() {
        let claude = preset("claude").unwrap();
        let args: Vec<OsString> = ["-p", "--", "x"].map(OsString::from).into();
        assert_eq!(with_model(claude, &args).unwrap(), "-p --model M -- x");
    }

    #[test]
    fn an_option_with_a_key_is_told_from_its_namesakes() {
        let wishes = Wishes { model: None, effort: Some("low".to_owned()) };
        for (name, own, expected) in [
            (
                "codex",
                "exec -c a=b -c model_reasoning_effort=high --config=model_reasoning_effort=x -c -",
                "exec -c a=b -c -c model_reasoning_effort=low -",
            ),
            ("claude", "-p --effort=max", "-p --effort low"),
            ("cline", "--json --thinking high", "--json --thinking low"),
            ("opencode", "run --variant max", "run --variant low"),
        ] {
            let args = own.split(' ').map(OsString::from).collect();
            let with_effort = preset(name).unwrap().with_wishes(args, &wishes).unwrap();
            assert_eq!(shown(&with_effort), expected, "{name}");
        }
        for name in ["amp", "gemini", "custom", "script"] {
            assert_eq!(preset(name).unwrap().with_wishes(Vec::new(), &wishes), Err(Unable::EFFORT), "{name}");
        }
    }
}
