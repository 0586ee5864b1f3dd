//! The flags of settings, made from the rows of the table.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::settings::Verb;
use crate::settings::setting::{Flag, Setting, ValueKind};
use crate::settings::table::TABLE;

/// The flags of every verb that looks at a project.
pub(super) const EVERYWHERE: bool = true;
/// The flags of the verbs that run loops.
pub(super) const LOOPS: bool = false;

/// Flags of settings with what the user gave; which of them is said by [`Flag::everywhere`].
#[derive(Debug, Clone, Default)]
pub struct SettingFlags<const EVERYWHERE: bool> {
    /// Values by the setting's key.
    pub given: Vec<(&'static str, String)>,
}

impl<const EVERYWHERE: bool> SettingFlags<EVERYWHERE> {
    fn rows() -> impl Iterator<Item = (&'static Setting, &'static Flag)> {
        let rows = TABLE.iter().filter_map(|setting| Some((setting, setting.flag.as_ref()?)));
        rows.filter(|(_, flag)| flag.everywhere == EVERYWHERE)
    }
}

impl<const EVERYWHERE: bool> Args for SettingFlags<EVERYWHERE> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::rows().map(|(setting, flag)| arg(setting, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const EVERYWHERE: bool> FromArgMatches for SettingFlags<EVERYWHERE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::rows().filter_map(|(setting, _)| Some((setting.key, value(setting, matches)?)));
        Ok(Self { given: given.collect() })
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
    match setting.kind {
        ValueKind::Switch => arg.action(ArgAction::SetTrue),
        ValueKind::Name | ValueKind::Override => arg.value_name(flag.value),
        // A negative number is refused by its setting, which knows what to write instead.
        _ => arg.value_name(flag.value).allow_hyphen_values(true),
    }
}

fn value(setting: &Setting, matches: &ArgMatches) -> Option<String> {
    match setting.kind {
        ValueKind::Switch => matches.get_flag(setting.key).then(|| "true".to_owned()),
        _ => matches.get_one::<String>(setting.key).cloned(),
    }
}

/// For the arguments of a verb: those that have the key of a setting as their id say what holds there without them.
pub(super) fn defaults_of(verb: Verb) -> impl Fn(Arg) -> Arg {
    move |arg| {
        let Some(setting) = TABLE.iter().find(|setting| setting.key == arg.get_id().as_str()) else {
            return arg;
        };
        // What has to be given has no default; a word that has to be there is more than the setting.
        if arg.is_required_set() && !arg.is_positional() {
            return arg;
        }
        let default = setting.in_words(setting.default_of(Some(verb)));
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.help(format!("{help} [default: {default}]"))
    }
}
