//! What `--help` says beside the options: subcommands under headings, and examples.

use clap::Command;

/// What a help with headings consists of. The headings stand where clap puts `before_help`.
pub(crate) const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}\n{before-help}Options:\n{options}{after-help}";

/// A heading, and the subcommands under it.
pub(crate) type Heading = (&'static str, &'static [&'static str]);

/// What the help of a subcommand says below its examples: the subcommand, and the text.
pub(crate) type Note = (&'static str, fn() -> String);

/// A command line that a help shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Example {
    /// The subcommand whose help shows it; empty: the command itself.
    verb: &'static str,
    /// What is typed after `agentsvc`.
    pub(crate) line: &'static str,
    /// What it does.
    about: &'static str,
}

impl Example {
    /// Shown by the command itself.
    pub(crate) const fn new(line: &'static str, about: &'static str) -> Self {
        Self { verb: "", line, about }
    }

    /// Shown by the subcommand `verb`.
    pub(crate) const fn of(verb: &'static str, line: &'static str, about: &'static str) -> Self {
        Self { verb, line, about }
    }
}

/// The command with the examples in its help and in that of its subcommands. A subcommand that is not there yet has none.
pub(super) fn with_examples(mut command: Command, examples: &[Example]) -> Command {
    for verb in examples.iter().map(|example| example.verb) {
        if verb.is_empty() {
            command = command.after_help(shown(examples, verb));
        } else if command.find_subcommand(verb).is_some() {
            command = command.mut_subcommand(verb, |command| command.after_help(shown(examples, verb)));
        }
    }
    command
}

/// The command with the notes in the help of its subcommands, below the examples.
pub(super) fn with_notes(mut command: Command, notes: &[Note]) -> Command {
    for (verb, text) in notes {
        if command.find_subcommand(verb).is_some() {
            command = command.mut_subcommand(verb, |command| {
                let above = command.get_after_help().map(|shown| format!("{shown}\n\n")).unwrap_or_default();
                command.after_help(format!("{above}{}", text()))
            });
        }
    }
    command
}

fn shown(examples: &[Example], verb: &str) -> String {
    let mut text = "Examples:".to_owned();
    for example in examples.iter().filter(|example| example.verb == verb) {
        text.push_str(&format!("\n  # {}\n  agentsvc {}", example.about, example.line));
    }
    text
}

/// The command with its subcommands under headings, below the examples that it has. Those that no heading names come last.
pub(super) fn with_headings(command: Command, headings: &[Heading]) -> Command {
    if headings.is_empty() {
        return command;
    }
    let name = command.get_name().to_owned();
    let rows = |names: &[&str]| -> Vec<(String, String)> {
        names.iter().filter_map(|name| command.find_subcommand(name)).map(row).collect()
    };
    let mut groups: Vec<(&str, Vec<(String, String)>)> =
        headings.iter().map(|(heading, names)| (*heading, rows(names))).collect();
    let is_named = |name: &str| headings.iter().any(|(_, names)| names.contains(&name));
    let others = command.get_subcommands().filter(|command| !is_named(command.get_name()) && !command.is_hide_set());
    groups.push(("Other", others.map(row).collect()));
    let text = listing(&groups);
    let mut end = command.get_after_help().map(|shown| format!("{shown}\n\n")).unwrap_or_default();
    end.push_str(&format!("Run `agentsvc {name} <command> --help` for the options of a command."));
    command.help_template(TEMPLATE).before_help(text).after_help(end)
}

fn row(command: &Command) -> (String, String) {
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = match aliases.as_slice() {
        [] => about,
        [alias] => format!("{about} [alias: {alias}]"),
        several => format!("{about} [aliases: {}]", several.join(", ")),
    };
    (command.get_name().to_owned(), about)
}

/// Headings with rows of names and what they mean, in one column of names.
pub(crate) fn listing(groups: &[(&str, Vec<(String, String)>)]) -> String {
    let names = groups.iter().flat_map(|(_, rows)| rows);
    let width = names.map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (heading, rows) in groups.iter().filter(|(_, rows)| !rows.is_empty()) {
        text.push_str(&format!("\n{heading}:\n"));
        for (name, about) in rows {
            text.push_str(&format!("  {name:width$}  {about}\n"));
        }
    }
    text.trim_end().to_owned()
}
