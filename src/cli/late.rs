//! Arguments that are only defined when their verb is asked for: most of a start would go into the verbs that were not typed.

use std::ops::{Deref, DerefMut};

use clap::builder::StyledStr;
use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

/// The arguments of a verb, or the verbs below it.
#[derive(Debug)]
pub struct Late<T>(pub T);

/// The definition of a verb; what the verb itself says counts, not what its arguments say.
fn defined(verb: Command, define: fn(Command) -> Command) -> Command {
    let said = verb.clone();
    let mut verb = define(verb);
    for (says, set) in [
        (said.get_about(), Command::about as fn(Command, StyledStr) -> Command),
        (said.get_long_about(), Command::long_about),
        (said.get_after_help(), Command::after_help),
        (said.get_overridden_usage(), Command::override_usage),
    ] {
        verb = says.cloned().into_iter().fold(verb, set);
    }
    verb
}

impl<T: Args> Args for Late<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| defined(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: Subcommand> Subcommand for Late<T> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(|command| defined(command, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        T::augment_subcommands_for_update(command)
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

impl<T: FromArgMatches> FromArgMatches for Late<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}

impl<T> Deref for Late<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Late<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
