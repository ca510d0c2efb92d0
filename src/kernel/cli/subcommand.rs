//! A subcommand of the command line, as its domain writes it.

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::{Context, Error};

/// What a subcommand does once its options are read.
pub(crate) trait Run: FromArgMatches {
    /// Does it.
    fn run(self, context: &Context) -> Result<(), Error>;
}

/// One subcommand.
#[derive(Clone, Copy)]
pub struct Subcommand {
    /// A chat command.
    pub(crate) name: &'static str,
    /// What it does, in one sentence of `--help`.
    about: &'static str,
    /// Its place in `--help`.
    pub(crate) order: u8,
    is_hidden: bool,
    options: fn(Command) -> Command,
    run: fn(&ArgMatches, &Context) -> Result<(), Error>,
}

impl Subcommand {
    /// A subcommand with the options of `T`.
    pub(crate) const fn new<T: Args + Run>(order: u8, name: &'static str, about: &'static str) -> Self {
        Self { name, about, order, is_hidden: false, options: T::augment_args, run: run::<T> }
    }

    /// A subcommand that has the subcommands of `T`.
    pub(crate) const fn group<T: clap::Subcommand + Run>(order: u8, name: &'static str, about: &'static str) -> Self {
        Self { name, about, order, is_hidden: false, options: group::<T>, run: run::<T> }
    }

    /// No help names it.
    pub(crate) const fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    /// What the parser is told of it.
    pub(crate) fn command(&self) -> Command {
        let options = (self.options)(Command::new(self.name));
        options.about(self.about).long_about(None::<&str>).hide(self.is_hidden)
    }

    /// Runs it with what was typed.
    pub(crate) fn run(&self, typed: &ArgMatches, context: &Context) -> Result<(), Error> {
        (self.run)(typed, context)
    }
}

fn group<T: clap::Subcommand>(command: Command) -> Command {
    T::augment_subcommands(command).subcommand_required(true).arg_required_else_help(true)
}

fn run<T: Run>(typed: &ArgMatches, context: &Context) -> Result<(), Error> {
    let command = T::from_arg_matches(typed).map_err(|error| Error::Usage(error.to_string()))?;
    command.run(context)
}
