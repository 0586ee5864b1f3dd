//! `ralph man`: the manual page, with all verbs and their options. Options that many verbs share are described once.

use std::io::{self, Write};

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::Cli;
use crate::cli::layout::{Block, blocks};
use crate::settings::table::TABLE;

/// How many verbs with an option count as many.
const MANY: usize = 4;
const SHARED: &str = "OPTIONS OF MANY VERBS";

/// Writes the page as roff.
pub(super) fn render(out: &mut Vec<u8>) -> io::Result<()> {
    let mut root = Cli::documented();
    root.build();
    let shared = shared(&root);
    let page = Man::new(root.clone());
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    render_below(&root, "SH", out)?;
    render_verbs(&root, "RALPH", &shared, out)?;
    render_shared(&shared, out)?;
    page.render_version_section(out)
}

/// The options that many verbs have with the same text, each as the first verb has it.
fn shared(root: &Command) -> Vec<Arg> {
    fn count<'a>(command: &'a Command, counts: &mut Vec<(&'a Arg, usize)>) {
        for verb in verbs(command) {
            for arg in verb.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional()) {
                match counts.iter_mut().find(|(known, _)| is_same(known, arg)) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((arg, 1)),
                }
            }
            count(verb, counts);
        }
    }
    let mut counts = Vec::new();
    count(root, &mut counts);
    counts.retain(|(_, count)| *count >= MANY);
    // Of several texts for one name, the one that most verbs have.
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut shared: Vec<Arg> = Vec::new();
    for (arg, _) in counts {
        if shared.iter().all(|known| known.get_long() != arg.get_long()) {
            shared.push(arg.clone());
        }
    }
    shared
}

fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    // Below a group of verbs it is clap's own.
    let is_ours = command.get_name() == "ralph";
    command.get_subcommands().filter(move |verb| is_ours || verb.get_name() != "help")
}

/// Whether two verbs have the same option, perhaps with different defaults.
fn is_same(one: &Arg, other: &Arg) -> bool {
    let names = |arg: &Arg| (arg.get_long().map(str::to_owned), arg.get_short());
    names(one) == names(other) && without_default(one) == without_default(other)
}

fn without_default(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    help.split(" [default: ").next().unwrap_or_default().to_owned()
}

/// The verbs of a command, and theirs.
fn render_verbs(command: &Command, name: &str, shared: &[Arg], out: &mut Vec<u8>) -> io::Result<()> {
    for verb in verbs(command) {
        let name = format!("{name} {}", verb.get_name().to_uppercase());
        writeln!(out, ".SH {name}")?;
        writeln!(out, "{}", verb.get_about().cloned().unwrap_or_default())?;
        render_verb(verb, shared, out)?;
        render_verbs(verb, &name, shared, out)?;
    }
    Ok(())
}

/// A verb's sections, as parts of one.
fn render_verb(verb: &Command, shared: &[Arg], out: &mut Vec<u8>) -> io::Result<()> {
    let is_shared = |arg: &Arg| shared.iter().any(|shared| is_same(shared, arg));
    let of_many: Vec<String> = verb
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && arg.get_id() != "help" && is_shared(arg))
        .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
        .collect();
    let own = verb.clone().mut_args(|arg| {
        let hide = arg.is_hide_set() || is_shared(&arg);
        arg.hide(hide)
    });
    let page = Man::new(own);
    let mut sections = Vec::new();
    page.render_synopsis_section(&mut sections)?;
    page.render_options_section(&mut sections)?;
    put_as_parts(&sections, out)?;
    if !of_many.is_empty() {
        let mut roff = Roff::new();
        // Names of options are not hyphenated.
        roff.control("PP", []).control("nh", []);
        roff.text([roman(format!("Also, as told in {SHARED}: ")), bold(of_many.join(" "))]).control("hy", []);
        roff.to_writer(out)?;
    }
    render_below(verb, "SS", out)
}

/// The sections of a page as parts of one.
fn put_as_parts(sections: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    for line in String::from_utf8_lossy(sections).lines() {
        match line.strip_prefix(".SH ") {
            Some(heading) => writeln!(out, ".SS {heading}")?,
            None => writeln!(out, "{line}")?,
        }
    }
    Ok(())
}

/// The text below the options in `--help`; a line that ends with a colon is a heading of this kind.
fn render_below(command: &Command, heading: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let Some(text) = command.get_after_help() else { return Ok(()) };
    let mut roff = Roff::new();
    for (at, block) in blocks(&text.to_string()).into_iter().enumerate() {
        match block {
            Block::Prose(text) => {
                if let Some(title) = text.strip_suffix(':') {
                    roff.control(heading, [title]);
                    continue;
                }
                if at == 0 {
                    roff.control(heading, ["Notes"]);
                } else {
                    roff.control("PP", []);
                }
                roff.text([roman(text)]);
            }
            Block::Terms(terms) => {
                for (term, meaning) in terms {
                    roff.control("TP", []).text([bold(term)]).text([roman(meaning)]);
                }
            }
            Block::Gap => {}
        }
    }
    roff.to_writer(out)
}

/// The options of many verbs, with the default in each.
fn render_shared(shared: &[Arg], out: &mut Vec<u8>) -> io::Result<()> {
    let told = shared.iter().map(|arg| {
        let setting = TABLE.iter().find(|setting| setting.key == arg.get_id().as_str());
        let default =
            setting.map(|setting| format!(" [default: {}]", setting.defaults_in_words())).unwrap_or_default();
        arg.clone().help(without_default(arg) + &default)
    });
    let command = Command::new("ralph").disable_help_flag(true).args(told);
    let mut sections = Vec::new();
    Man::new(command).render_options_section(&mut sections)?;
    writeln!(out, ".SH {SHARED}")?;
    let sections = String::from_utf8_lossy(&sections).replace(".SH OPTIONS\n", "");
    put_as_parts(sections.as_bytes(), out)
}
