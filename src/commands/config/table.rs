//! The settings as a table for people. On a terminal it fits its width.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::of_preset;
use crate::presets::Preset;
use crate::settings::setting::BUILT_IN;
use crate::settings::{Origin, Resolved, Settings};
use crate::text::line::escaped;
use crate::text::palette::{FAINT, GOOD, STRONG};
use crate::text::wrap::wrapped;

/// The space between two columns, in cells.
const GAP: usize = 2;
/// The least room for values beside other columns; with less, longer ones are below their setting.
const LEAST_ROOM: usize = 40;
/// The longest key, in cells, that has its value beside it on a narrow terminal.
const WIDEST_KEY: usize = 33;
/// The indentation of text below its setting.
const INDENT: usize = 4;
/// The most lines of a value on a terminal: a filter may be as long as a page.
const MOST_LINES: usize = 3;
/// The explanation of `by verb` in a value.
const BY_VERB: &str = "by verb: the first value is for every verb that is not named";

/// One setting, in words.
struct Row {
    key: &'static str,
    shell: &'static str,
    origin: String,
    value: String,
    /// Whether the user has set it.
    is_chosen: bool,
    /// Whether it has a value, from any origin.
    is_something: bool,
}

/// Writes the settings, without other variables of the config, which may be secrets. `place` shortens names of files.
///
/// Without a width, one aligned line for each: key, name in the shell config, origin, value. A terminal of this width has the same
/// lines if values have enough room, else key and value, with the origin of values that are not defaults.
///
/// Colours are always written; the caller passes a stream of `anstream`, which removes them where they do not belong.
pub(super) fn write(
    settings: &Settings,
    preset: Option<&Preset>,
    place: &dyn Fn(&Path) -> PathBuf,
    width: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows: Vec<Row> = settings.rows().map(|row| in_words(row, preset, settings, place)).collect();
    let widest = |cell: fn(&Row) -> &str| rows.iter().map(|row| cell(row).width()).max().unwrap_or_default();
    let [key, shell, origin] = [widest(|row| row.key), widest(|row| row.shell), widest(|row| &row.origin)];
    let before = key + shell + origin + 3 * GAP;
    match width {
        Some(width) if width < before + LEAST_ROOM => write_narrow(&rows, key, width, out)?,
        _ => write_wide(&rows, [key, shell, origin], width.map(|width| width - before), out)?,
    }
    write_note(BY_VERB, width, out)
}

/// Writes a paragraph below the table.
pub(super) fn write_note(text: &str, width: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    for line in wrapped(text, width.unwrap_or(usize::MAX), usize::MAX) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn in_words(
    row: &Resolved,
    preset: Option<&Preset>,
    settings: &Settings,
    place: &dyn Fn(&Path) -> PathBuf,
) -> Row {
    let setting = row.setting;
    let is_default = row.origin == Origin::Default;
    let of_preset = preset
        .filter(|_| row.value.is_empty())
        .map(|preset| (preset.name, of_preset(setting.key, preset, settings)))
        .filter(|(_, given)| !given.is_empty());
    let named = |origin: String, value: String, is_chosen, is_something| Row {
        key: setting.key,
        shell: setting.shell,
        origin: escaped(&origin),
        value: escaped(&value),
        is_chosen,
        is_something,
    };
    match of_preset {
        Some((name, given)) => {
            // A jq program may be as long as a page; `--json` has all of it.
            let is_filter = setting.key.ends_with("_filter");
            named(format!("preset {name}"), if is_filter { BUILT_IN.into() } else { given }, false, true)
        }
        None if is_default && !setting.except.is_empty() => {
            named("default".into(), setting.defaults_by_verb(), false, true)
        }
        None if row.value.is_empty() => {
            named(in_place(&row.origin, place), setting.no_value().into_owned(), !is_default, false)
        }
        None => named(in_place(&row.origin, place), settings.secrets.word(row.shown()), !is_default, true),
    }
}

fn in_place(origin: &Origin, place: &dyn Fn(&Path) -> PathBuf) -> String {
    let mut origin = origin.clone();
    if let Origin::UserToml { path, .. }
    | Origin::ProjectToml { path, .. }
    | Origin::ShellConfig { path, .. } = &mut origin
    {
        *path = place(path);
    }
    origin.to_string()
}

impl Row {
    fn origin_style(&self) -> Style {
        if self.is_chosen { GOOD } else { FAINT }
    }

    fn value_style(&self) -> Style {
        if self.is_something { Style::new() } else { FAINT }
    }
}

/// Writes all columns; a long value goes on below itself.
fn write_wide(rows: &[Row], widths: [usize; 3], room: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
    let [key_width, shell_width, origin_width] = widths;
    let before = widths.iter().sum::<usize>() + 3 * GAP;
    writeln!(
        out,
        "{STRONG}{}  {}  {}  VALUE{STRONG:#}",
        pad("SETTING", key_width),
        pad("SHELL NAME", shell_width),
        pad("ORIGIN", origin_width)
    )?;
    for row in rows {
        let style = row.origin_style();
        let (key, shell) = (pad(row.key, key_width), pad(row.shell, shell_width));
        write!(out, "{key}  {shell}  {style}{}{style:#}  ", pad(&row.origin, origin_width))?;
        write_lines(&row.value, row.value_style(), room.unwrap_or(usize::MAX), before, out)?;
    }
    Ok(())
}

/// Writes key and value, and below them the origin.
fn write_narrow(rows: &[Row], key_width: usize, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let key_width = key_width.min(WIDEST_KEY);
    let beside = key_width + GAP;
    writeln!(out, "{STRONG}{}  VALUE{STRONG:#}", pad("SETTING", key_width))?;
    for row in rows {
        write!(out, "{}", row.key)?;
        let chosen = row.is_chosen.then_some((&row.origin, row.origin_style()));
        let mut at = row.key.width();
        for (text, style) in [(&row.value, row.value_style())].into_iter().chain(chosen) {
            let room = width.saturating_sub(beside);
            let column = if text.width() <= room || room >= LEAST_ROOM { beside } else { INDENT };
            // Below the key, or below the value.
            if at > column {
                writeln!(out)?;
                at = 0;
            }
            write!(out, "{}", " ".repeat(column - at))?;
            write_lines(text, style, width.saturating_sub(column).max(1), column, out)?;
            at = 0;
        }
    }
    Ok(())
}

/// Writes a text from `column` on, which the line has reached.
fn write_lines(text: &str, style: Style, room: usize, column: usize, out: &mut dyn Write) -> io::Result<()> {
    for (at, line) in wrapped(text, room, MOST_LINES).iter().enumerate() {
        let before = if at == 0 { 0 } else { column };
        writeln!(out, "{}{style}{line}{style:#}", " ".repeat(before))?;
    }
    Ok(())
}

fn pad(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(text.width()))
}

#[cfg(test)]
mod tests;
