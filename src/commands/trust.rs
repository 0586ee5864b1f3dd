//! `ralph trust`: a project's own hooks and notices count only when the user has approved them.

use std::io::Write as _;
use std::path::Path;

use anyhow::{anyhow, bail};

use super::output::{ask, print};
use crate::cli::{PlaceArgs, TrustArgs};
use crate::job::workspace::{Workspace, locate, open_with_secrets};
use crate::record::trust::{self, ProjectSetting, Trusted};
use crate::settings::notify::host;
use crate::settings::setting::ValueKind;
use crate::settings::{OfProject, Origin, Settings};
use crate::text::line::escaped;
use crate::text::timestamp;

/// `ralph trust`.
pub(super) fn run(args: &TrustArgs) -> anyhow::Result<u8> {
    let here = locate(args.ralph_dir.as_ref())?;
    let folder = here.trust().ok_or_else(|| {
        anyhow!("there is no home directory to keep what you trust in: set HOME or XDG_STATE_HOME")
    })?;
    if args.list {
        return list(&folder);
    }
    let root = shown(here.root());
    if args.remove {
        let was = trust::forget(&folder, here.root())?;
        return say(&if was {
            format!("no longer trusted: {root}")
        } else {
            format!("{root} was not trusted")
        });
    }
    let (config, ralph_dir) = (args.config.clone(), args.ralph_dir.clone());
    let place = PlaceArgs { config, ralph_dir, ..PlaceArgs::default() };
    let Workspace { project, settings } = open_with_secrets(&place)?;
    let wanted: Vec<ProjectSetting<'_>> =
        settings.of_project.iter().map(|one| (one.setting.key, &*one.value)).collect();
    if wanted.is_empty() {
        return say(&format!("{root} has no settings of its own that need trust"));
    }
    show(&settings, &|path| project.relative(path).display().to_string())?;
    if trust::is_trusted(&project, &wanted) {
        return say("this is trusted already; 'ralph trust --remove' trusts it no more");
    }
    if !args.yes && !is_agreed()? {
        return say("not trusted");
    }
    trust::trust(&project, &folder, &wanted)?;
    say(&format!("trusted: {root}; when one of these settings changes, you are asked again"))
}

fn say(text: &str) -> anyhow::Result<u8> {
    print(|out| writeln!(out, "{text}"))
}

fn list(folder: &Path) -> anyhow::Result<u8> {
    let all = trust::list(folder)?;
    if all.is_empty() {
        return say("no project is trusted");
    }
    print(|out| {
        for Trusted { root, settings, at, .. } in &all {
            let gone = if root.is_dir() { "" } else { "  (gone)" };
            writeln!(out, "{}  {}  {}{gone}", shown(root), timestamp::minute(at), settings.join(" "))?;
        }
        Ok(())
    })
}

/// A folder, whose name may come from a clone.
fn shown(folder: &Path) -> String {
    escaped(&folder.to_string_lossy())
}

/// The programs that the project wants to run, and where it wants to send data.
fn show(settings: &Settings, place: &dyn Fn(&Path) -> String) -> anyhow::Result<u8> {
    print(|out| {
        writeln!(out, "This project wants to run these programs with your rights, or to send data there:")?;
        for OfProject { setting, value, origin } in &settings.of_project {
            let value = match setting.kind {
                // The part after the host may be a secret; the host is not.
                ValueKind::Secret => host(value).map_or("(set)".to_owned(), |host| format!("{host}, …")),
                _ => escaped(&settings.secrets.word(value)),
            };
            let origin = match origin {
                Origin::ProjectToml { path, line } | Origin::ShellConfig { path, line } => {
                    format!("{} line {line}", place(path))
                }
                other => other.to_string(),
            };
            writeln!(out, "  {} = {value}  ({})", setting.key, escaped(&origin))?;
        }
        Ok(())
    })
}

/// Asks the person at the terminal.
fn is_agreed() -> anyhow::Result<bool> {
    let Some(answer) = ask("Trust this? [y/N]")? else {
        bail!("there is no terminal to ask you at: 'ralph trust --yes' trusts what is shown above");
    };
    Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}
