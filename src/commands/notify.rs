//! `ralph notify test`: checks that notices arrive.

use std::io::Write as _;

use anyhow::bail;
use serde::Serialize;

use super::output;
use crate::cli::{NotifyTestArgs, NotifyVerb, PlaceArgs};
use crate::job::launch::launch;
use crate::job::workspace::{Workspace, open_with_secrets};
use crate::notify::{self, Tested};
use crate::settings::notify::Target;

/// `ralph notify`.
pub(super) fn run(verb: &NotifyVerb) -> anyhow::Result<u8> {
    match verb {
        NotifyVerb::Test(args) => test(args),
    }
}

/// The line of one target.
#[derive(Serialize)]
struct Row<'a> {
    target: &'static str,
    name: &'a str,
    ok: bool,
    error: Option<&'a str>,
}

fn test(args: &NotifyTestArgs) -> anyhow::Result<u8> {
    let (config, ralph_dir) = (args.config.clone(), args.ralph_dir.clone());
    let place = PlaceArgs { config, ralph_dir, ..PlaceArgs::default() };
    let Workspace { project, settings } = open_with_secrets(&place)?;
    settings.warnings.iter().for_each(|warning| output::warn(warning));
    let launch = launch(&project, &settings, Vec::new(), "");
    let mut tested = notify::test(&settings.notify, &settings.secrets, &project, &launch);
    if settings.notify.has(Target::Bell) {
        tested.push(Tested { target: Target::Bell, name: "the terminal".to_owned(), result: ring() });
    }
    if tested.is_empty() {
        bail!(
            "no notices are set up: name a command or a webhook, or switch desktop or bell on, in the section [notify] of \
             ~/.config/ralph/ralph.toml; 'ralph help notices' tells how"
        );
    }
    let rows: Vec<Row<'_>> = tested
        .iter()
        .map(|Tested { target, name, result }| Row {
            target: target.word(),
            name,
            ok: result.is_ok(),
            error: result.as_ref().err().map(String::as_str),
        })
        .collect();
    output::print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &rows)?;
            return writeln!(out);
        }
        for Row { target, name, error, .. } in &rows {
            match error {
                None => writeln!(out, "✓ {target:<8} {name}")?,
                Some(error) => writeln!(out, "✗ {target:<8} {name}: {error}")?,
            }
        }
        Ok(())
    })?;
    Ok(u8::from(rows.iter().any(|row| !row.ok)))
}

/// Rings the bell that a loop would ring.
fn ring() -> Result<(), String> {
    match output::ring() {
        Ok(true) => Ok(()),
        Ok(false) => Err("standard error is no terminal".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
