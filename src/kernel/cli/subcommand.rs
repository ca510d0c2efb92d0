//! A subcommand of the command line, as its domain writes it.

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::help::{with_examples, with_headings, with_notes};
use super::resource::{self, Routes};
use super::{Context, Error, Example, Heading, Note, Resource};

/// What a subcommand does once its options are read.
pub(crate) trait Run: FromArgMatches {
    /// Does it.
    fn run(self, context: &Context) -> Result<(), Error>;
}

agentsvc_components::enum_words! {
    /// Where `--help` lists a subcommand.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Group [ALL, as_str] {
        /// The daemon itself.
        Daemon = "Daemon",
        /// Agents, and talking to them.
        Agents = "Agents",
        /// What makes agents act.
        Automation = "Automation",
        /// What agents know and can do.
        Abilities = "Abilities",
        /// What agents are connected with.
        Connections = "Connections",
        /// Looking after all of it.
        Operations = "Operations",
        /// Who may use it.
        Access = "Users and keys",
        /// All others.
        More = "More",
    }
}

/// Adds its options to a command.
type Augment = fn(Command) -> Command;

/// Runs it with what was typed.
type RunTyped = fn(&ArgMatches, &Context) -> Result<(), Error>;

/// One subcommand.
#[derive(Clone, Copy)]
pub struct Subcommand {
    /// A chat command.
    pub(crate) name: &'static str,
    /// What it does, in one sentence of `--help`.
    pub(crate) about: &'static str,
    /// Its place in `--help`, within its group.
    pub(crate) order: u8,
    /// Its group in `--help`.
    pub(crate) group: Group,
    pub(crate) is_hidden: bool,
    /// Another name that is understood.
    alias: Option<&'static str>,
    resources: &'static [Resource],
    /// The groups of its subcommands in its own help; empty: one list.
    headings: &'static [Heading],
    examples: &'static [Example],
    notes: &'static [Note],
    /// The subcommand that the noun alone means.
    alone: Option<&'static str>,
    options: Augment,
    /// `None`: all of its subcommands are made from routes.
    run: Option<RunTyped>,
}

impl Subcommand {
    /// A subcommand with the options of `T`.
    pub(crate) const fn new<T: Args + Run>(order: u8, name: &'static str, about: &'static str) -> Self {
        Self::made(order, name, about, T::augment_args, Some(run::<T>))
    }

    /// A subcommand that has the subcommands of `T`.
    pub(crate) const fn group<T: clap::Subcommand + Run>(order: u8, name: &'static str, about: &'static str) -> Self {
        Self::made(order, name, about, group::<T>, Some(run::<T>))
    }

    /// A subcommand whose subcommands are made from routes.
    pub(crate) const fn of(order: u8, name: &'static str, about: &'static str, resources: &'static [Resource]) -> Self {
        Self::made(order, name, about, needs_one, None).with(resources)
    }

    const fn made(order: u8, name: &'static str, about: &'static str, options: Augment, run: Option<RunTyped>) -> Self {
        Self {
            name,
            about,
            order,
            group: Group::More,
            is_hidden: false,
            alias: None,
            resources: &[],
            headings: &[],
            examples: &[],
            notes: &[],
            alone: None,
            options,
            run,
        }
    }

    /// Has the routes of `resources` as subcommands, beside its own.
    pub(crate) const fn with(mut self, resources: &'static [Resource]) -> Self {
        self.resources = resources;
        self
    }

    /// Lists its subcommands under these headings in its own help.
    pub(crate) const fn headed(mut self, headings: &'static [Heading]) -> Self {
        self.headings = headings;
        self
    }

    /// Shows these examples in its help and in that of its subcommands.
    pub(crate) const fn examples(mut self, examples: &'static [Example]) -> Self {
        self.examples = examples;
        self
    }

    /// Says more below the examples of its subcommands.
    pub(crate) const fn noting(mut self, notes: &'static [Note]) -> Self {
        self.notes = notes;
        self
    }

    /// Without a word behind it, it is this subcommand, which is made from a route.
    pub(crate) const fn alone(mut self, verb: &'static str) -> Self {
        self.alone = Some(verb);
        self
    }

    /// Is understood by this name as well.
    pub(crate) const fn also(mut self, name: &'static str) -> Self {
        self.alias = Some(name);
        self
    }

    /// Stands in this group of `--help`.
    pub(crate) const fn under(mut self, group: Group) -> Self {
        self.group = group;
        self
    }

    /// No help names it.
    pub(crate) const fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    /// The routes that are its subcommands.
    #[cfg(test)]
    pub(crate) fn resources(&self) -> &'static [Resource] {
        self.resources
    }

    /// The groups of its subcommands.
    #[cfg(test)]
    pub(crate) fn headings(&self) -> &'static [Heading] {
        self.headings
    }

    /// What its help shows of how it is used.
    #[cfg(test)]
    pub(crate) fn shown_examples(&self) -> &'static [Example] {
        self.examples
    }

    /// What the parser is told of it. With `routes`, the subcommands that are made from them are there, which takes a while.
    pub(crate) fn command(&self, routes: Option<Routes>) -> Command {
        let command = (self.options)(Command::new(self.name));
        let taken: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        let command = command.mut_subcommands(|command| short(command, &taken));
        let command = match routes {
            Some(routes) => resource::alone(resource::added(command, routes, self.resources), self.alone),
            None => command,
        };
        let command = with_notes(with_examples(command, self.examples), self.notes);
        let command = with_headings(command, self.headings);
        let command = if let Some(alias) = self.alias { command.alias(alias) } else { command };
        command.about(self.about).long_about(None::<&str>).hide(self.is_hidden)
    }

    /// Does nothing happen without a word behind it?
    pub(crate) fn is_noun(&self) -> bool {
        (self.options)(Command::new(self.name)).is_subcommand_required_set()
    }

    /// Is it called so?
    pub(crate) fn is_called(&self, typed: &str) -> bool {
        typed == self.name || Some(typed) == self.alias
    }

    /// Runs it with what was typed.
    pub(crate) fn run(&self, typed: &ArgMatches, context: &Context) -> Result<(), Error> {
        let own = (self.options)(Command::new(self.name));
        match (typed.subcommand(), self.run) {
            (Some((name, typed)), _) if own.find_subcommand(name).is_none() => {
                resource::run(self.name, Some(name), typed, context, self.resources)
            }
            (_, Some(run)) => run(typed, context),
            (_, None) => resource::run(self.name, self.alone, typed, context, self.resources),
        }
    }
}

/// Subcommands of these names are understood by other usual ones, unless those are `taken`.
fn short(command: Command, taken: &[String]) -> Command {
    let (shown, hidden): (&[&'static str], &[&'static str]) = match command.get_name() {
        "list" => (&["ls"], &[]),
        "show" => (&["get"], &["info"]),
        "info" => (&[], &["show", "get"]),
        "create" => (&["new"], &["add"]),
        "add" => (&[], &["create", "new"]),
        "delete" => (&["rm"], &["remove"]),
        "remove" => (&["rm"], &["delete"]),
        "revoke" => (&[], &["delete", "remove", "rm"]),
        _ => (&[], &[]),
    };
    let is_free = |name: &&&str| !taken.iter().any(|taken| taken == **name);
    let command = command.visible_aliases(shown.iter().filter(is_free).copied());
    command.aliases(hidden.iter().filter(is_free).copied())
}

fn needs_one(command: Command) -> Command {
    command.subcommand_required(true).arg_required_else_help(true)
}

fn group<T: clap::Subcommand>(command: Command) -> Command {
    needs_one(T::augment_subcommands(command))
}

fn run<T: Run>(typed: &ArgMatches, context: &Context) -> Result<(), Error> {
    let command = T::from_arg_matches(typed).map_err(|error| Error::Usage(error.to_string()))?;
    command.run(context)
}
