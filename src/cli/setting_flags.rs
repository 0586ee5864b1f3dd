//! The flags of settings, made from the rows of the table.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::settings::Verb;
use crate::settings::setting::{Flag, Setting, ValueKind};
use crate::settings::table::TABLE;

/// The flags of every verb that looks at a project.
pub(super) const EVERYWHERE: u8 = 0;
/// The flags of the verbs that run loops.
pub(super) const LOOPS: u8 = 1;
/// The flags by which `resume` changes what a loop may use up, and its model.
pub(super) const RAISED: u8 = 2;

/// Flags of settings with what the user gave: [`EVERYWHERE`], [`LOOPS`] or [`RAISED`].
#[derive(Debug, Clone, Default)]
pub struct SettingFlags<const WHICH: u8> {
    /// Values by the setting's key.
    pub given: Vec<(&'static str, String)>,
}

impl<const WHICH: u8> SettingFlags<WHICH> {
    fn rows() -> impl Iterator<Item = (&'static Setting, &'static Flag)> {
        let rows = TABLE.iter().filter_map(|setting| Some((setting, setting.flag.as_ref()?)));
        rows.filter(|(setting, flag)| match WHICH {
            EVERYWHERE => flag.everywhere,
            RAISED => setting.can_be_raised(),
            _ => !flag.everywhere,
        })
    }

    /// What was given, each by its flag.
    #[must_use]
    pub fn by_flag(&self) -> Vec<(&'static str, &str)> {
        let rows = Self::rows().filter_map(|(setting, flag)| {
            let (_, value) = self.given.iter().find(|(key, _)| *key == setting.key)?;
            Some((flag.long, &**value))
        });
        rows.collect()
    }
}

impl<const WHICH: u8> Args for SettingFlags<WHICH> {
    fn augment_args(command: Command) -> Command {
        let arg: fn(&'static Setting, &'static Flag) -> Arg = if WHICH == RAISED { raised } else { arg };
        command.args(Self::rows().map(|(setting, flag)| arg(setting, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const WHICH: u8> FromArgMatches for SettingFlags<WHICH> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::rows().filter_map(|(setting, flag)| {
            let id = if WHICH == RAISED { flag.long } else { setting.key };
            Some((setting.key, value(id, setting.kind, matches)?))
        });
        let mut given: Vec<(&'static str, String)> = given.collect();
        for (setting, flag) in Self::rows().filter(|(_, flag)| WHICH != RAISED && !flag.several.is_empty()) {
            let all = several(setting.key, flag.long, matches)?;
            given.extend(all.map(|all| (flag.several, all)));
        }
        Ok(Self { given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag of a row; the setting's key is its id.
fn arg(setting: &'static Setting, flag: &'static Flag) -> Arg {
    let arg = Arg::new(setting.key).long(flag.long.trim_start_matches('-')).short(flag.short).help(flag.help);
    let arg = match flag.heading {
        Some(heading) => arg.help_heading(heading),
        None => arg,
    };
    let arg = if flag.several.is_empty() { arg } else { arg.action(ArgAction::Append) };
    match setting.kind {
        ValueKind::Switch => arg.action(ArgAction::SetTrue),
        ValueKind::Name | ValueKind::Override => arg.value_name(flag.value),
        // A negative number is refused by its setting, which knows what to write instead.
        _ => arg.value_name(flag.value).allow_hyphen_values(true),
    }
}

/// The flag of a row that `resume` has. Its id is its own: it does not mean the same as the setting's.
fn raised(_: &'static Setting, flag: &'static Flag) -> Arg {
    let arg = Arg::new(flag.long).long(flag.long.trim_start_matches('-')).help(flag.raised);
    arg.value_name(flag.value).requires("name").allow_negative_numbers(true)
}

fn value(id: &str, kind: ValueKind, matches: &ArgMatches) -> Option<String> {
    match kind {
        ValueKind::Switch => matches.get_flag(id).then(|| "true".to_owned()),
        _ => matches.get_one::<String>(id).cloned(),
    }
}

/// All values of a flag that was given more than once, with commas between them.
fn several(id: &str, long: &str, matches: &ArgMatches) -> Result<Option<String>, clap::Error> {
    let all: Vec<&str> = matches.get_many::<String>(id).into_iter().flatten().map(String::as_str).collect();
    if all.len() < 2 {
        return Ok(None);
    }
    if let Some(one) = all.iter().find(|one| one.contains(',') || one.trim().is_empty()) {
        let why = format!("{long} '{one}': beside another {long} it needs a name, and has no comma in it\n");
        return Err(clap::Error::raw(clap::error::ErrorKind::ValueValidation, why));
    }
    Ok(Some(all.join(", ")))
}

/// For the arguments of a verb: those that have the key of a setting as their id say what holds there without them.
pub(super) fn defaults_of(verb: Verb) -> impl Fn(Arg) -> Arg {
    move |arg| {
        let Some(setting) = TABLE.iter().find(|setting| setting.key == arg.get_id().as_str()) else {
            return arg;
        };
        if setting.flag.as_ref().is_some_and(|flag| flag.without.contains(&verb)) {
            return arg.hide(true);
        }
        // What has to be given has no default; a word that has to be there is more than the setting.
        if arg.is_required_set() && !arg.is_positional() {
            return arg;
        }
        let default = setting.in_words(setting.default_of(Some(verb)));
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.help(format!("{help} [default: {default}]"))
    }
}
