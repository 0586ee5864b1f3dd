//! `ralph init FILE`: one file to start from.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::bail;

use super::init::place::{Placed, place};
use super::init::{choose_agent, installed, quoted};
use super::output::{remark, say};
use super::worker::TEMPLATE;
use crate::agent::spec::ACP;
use crate::cli::{InitArgs, PlaceArgs};
use crate::job::workspace::{locate, open};
use crate::presets::{self, Protocol};
use crate::settings::Origin;

const RALPH_MD: &str = include_str!("starter/RALPH.md");
const RALPH_TOML: &str = include_str!("starter/ralph.toml");

/// Writes the starter for the name of `file`, and says what to do with it.
pub(super) fn write(file: &Path, args: &InitArgs) -> anyhow::Result<u8> {
    let project = locate(args.ralph_dir.as_ref())?;
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let installed = installed(&search_path);
    let configured = if args.agent.is_none() { configured(args)? } else { None };
    let agent = match &configured {
        Some(Configured { agent, .. }) => agent,
        None => choose_agent(args.agent.as_deref(), &installed)?.unwrap_or("claude"),
    };
    let word = quoted(file);
    let (content, next) = match file.file_name().and_then(|name| name.to_str()) {
        Some("RALPH.md") => {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            let target = folder.map_or_else(|| word.clone(), as_target);
            let next = format!("ralph run {target} --dry-run' shows its prompt, 'ralph run {target} -n 3");
            let line = configured.as_ref().and_then(|configured| configured.line.clone());
            let line = line.map_or_else(|| command_line(agent), Ok)?;
            (RALPH_MD.replace("@AGENT@", &line), next)
        }
        Some("PROMPT.md") => (TEMPLATE.to_owned(), String::new()),
        // A JSON string is a valid TOML string.
        Some("ralph.toml") => {
            let agent = serde_json::to_string(agent)?;
            (RALPH_TOML.replace("\"@AGENT@\"", &agent), "ralph config".to_owned())
        }
        _ => bail!(
            "there is no starter for {word}: the name must be RALPH.md, NAME/RALPH.md, PROMPT.md or ralph.toml"
        ),
    };
    let path = project.cwd().join(file);
    let is_prompt = file.file_name().is_some_and(|name| name == "PROMPT.md");
    let is_there = path.symlink_metadata().is_ok();
    if is_there && !args.force {
        if is_prompt {
            bail!("{word} already exists (use --force to overwrite)");
        }
        bail!("{word} exists already: edit it, or replace it with --force");
    }
    let placed = place(project.root(), &path, &content, args.force)?;
    if let Some(copy) = placed.copy() {
        remark(&format!("what {word} was is in {}", quoted(&project.relative(copy))));
    }
    if is_prompt {
        say(&format!("created {}{}", file.display(), if is_there { " (overwritten)" } else { "" }));
        return Ok(0);
    }
    let done = if placed == Placed::Same { "is already what would be written" } else { "is written" };
    say(&format!("{} {done}.", file.display()));
    say(&format!("Edit it; then: '{next}'"));
    Ok(0)
}

/// The agent that the project or its user has chosen.
struct Configured {
    agent: String,
    /// Its command line, where that is not the one of its preset.
    line: Option<String>,
}

/// `None`: no setting says so.
fn configured(args: &InitArgs) -> anyhow::Result<Option<Configured>> {
    let place = PlaceArgs { ralph_dir: args.ralph_dir.clone(), ..PlaceArgs::default() };
    let settings = match open(&place) {
        Ok(workspace) => workspace.settings,
        // With --force the file that cannot be read may be the one that is written anew.
        Err(_) if args.force => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_set = |key: &str| {
        settings.row(key).is_some_and(|row| row.origin != Origin::Default && !row.value.is_empty())
    };
    if !is_set("agent.provider") && !is_set("agent.cli") {
        return Ok(None);
    }
    let agent = settings.agent_type.clone();
    let preset = presets::preset(&agent);
    let has_words = is_set("agent.cli") || is_set("agent.args");
    let line = match preset {
        None => Some(agent.clone()),
        Some(_) if !has_words => None,
        Some(preset) => {
            let cli = settings.agent_cli.clone().unwrap_or_else(|| preset.cli.to_owned());
            let of_preset = || shlex::try_join(preset.args.iter().copied());
            let words = settings.agent_args.clone().map_or_else(of_preset, Ok)?;
            Some(format!("{cli} {words}").trim().to_owned())
        }
    };
    Ok(Some(Configured { agent, line }))
}

/// A path as a word that does not look like a flag.
pub(super) fn as_target(path: &Path) -> String {
    let is_like_a_flag = path.as_os_str().as_bytes().starts_with(b"-");
    if is_like_a_flag { quoted(&Path::new(".").join(path)) } else { quoted(path) }
}

/// The agent's command line for a RALPH.md, without what ralph adds by itself.
fn command_line(agent: &str) -> anyhow::Result<String> {
    if agent.starts_with(ACP) {
        return Ok(agent.to_owned());
    }
    let Some(preset) = presets::preset(agent).filter(|preset| !preset.cli.is_empty()) else {
        bail!(
            "agent type '{agent}' has no command line of its own: write yours into the line 'agent:' of a RALPH.md"
        );
    };
    let added = preset.structured;
    let is_added =
        |word: &str| added.option.contains(&word) || added.value == word || added.also.contains(&word);
    let prefix = if preset.protocol == Protocol::Acp { ACP } else { "" };
    let program = format!("{prefix}{}", preset.cli);
    let mut words: Vec<&str> = [&*program].into_iter().chain(preset.args.iter().copied()).collect();
    words.retain(|word| !is_added(word));
    Ok(shlex::try_join(words)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::front_matter::Document;
    use crate::settings::{Settings, Sources};

    #[test]
    fn command_lines_leave_out_what_is_added_anyway() {
        let line = |agent| command_line(agent).unwrap();
        assert_eq!(line("claude"), "claude --dangerously-skip-permissions -p");
        assert_eq!(line("codex"), "codex exec --dangerously-bypass-approvals-and-sandbox -");
        assert_eq!(line("gemini"), "gemini --yolo --skip-trust");
        assert_eq!(line("opencode"), "opencode run --auto");
        assert_eq!(line("cline"), "cline");
        assert_eq!(line("gemini-acp"), "acp:gemini --acp --skip-trust");
        assert_eq!(line("acp:goose acp"), "acp:goose acp");
        assert!(command_line("custom").is_err());
    }

    #[test]
    fn the_starters_are_valid() {
        for agent in presets::named().map(|preset| preset.name) {
            let text = RALPH_MD.replace("@AGENT@", &command_line(agent).unwrap());
            let document = Document::parse(&text, &[]).unwrap_or_else(|problem| panic!("{agent}: {problem}"));
            assert_eq!(document.agent[0].trim_start_matches(ACP), presets::preset(agent).unwrap().cli);
            assert_eq!(document.commands.len(), 2);
        }
        assert!(TEMPLATE.contains("<promise>COMPLETE</promise>"));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ralph.toml");
        // Every commented line must be valid as well.
        let uncommented: String = RALPH_TOML
            .lines()
            .map(|line| {
                line.strip_prefix("# ").filter(|l| l.contains(" = ")).unwrap_or(line).to_owned() + "\n"
            })
            .collect();
        for text in [RALPH_TOML, &uncommented] {
            std::fs::write(&path, text.replace("@AGENT@", "codex")).unwrap();
            let sources = Sources {
                verb: None,
                flags: Vec::new(),
                env: &|_| None,
                shell_config: None,
                shell_config_explicit: false,
                older_toml: None,
                project_toml: Some(path.clone()),
                user_toml: None,
                trusts: &|_| true,
            };
            let settings = Settings::load(&sources).unwrap();
            assert_eq!((settings.agent_type.as_str(), settings.warnings.len()), ("codex", 0));
        }
    }
}
