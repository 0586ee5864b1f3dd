//! `ralph man`: the manual page, every verb with its options on the one page.

use std::io::{self, Write};

use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::cli::Cli;

/// Writes the page as roff.
pub(super) fn render(out: &mut Vec<u8>) -> io::Result<()> {
    let mut root = Cli::command();
    root.build();
    let page = Man::new(root.clone());
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    render_verbs(&root, "RALPH", out)?;
    page.render_extra_section(out)?;
    page.render_version_section(out)
}

/// The verbs of a command, and theirs.
fn render_verbs(command: &clap::Command, name: &str, out: &mut Vec<u8>) -> io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let name = format!("{name} {}", verb.get_name().to_uppercase());
        writeln!(out, ".SH {name}")?;
        writeln!(out, "{}", verb.get_about().cloned().unwrap_or_default())?;
        render_verb(verb, out)?;
        render_verbs(verb, &name, out)?;
    }
    Ok(())
}

/// A verb's own sections, as parts of one.
fn render_verb(verb: &clap::Command, out: &mut Vec<u8>) -> io::Result<()> {
    let page = Man::new(verb.clone());
    let mut sections = Vec::new();
    page.render_synopsis_section(&mut sections)?;
    page.render_options_section(&mut sections)?;
    page.render_extra_section(&mut sections)?;
    let sections = String::from_utf8_lossy(&sections);
    for line in sections.lines() {
        match line.strip_prefix(".SH ") {
            Some(heading) => writeln!(out, ".SS {heading}")?,
            None => writeln!(out, "{line}")?,
        }
    }
    Ok(())
}
