//! The lines of `chat` that go to no agent, and their completion.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper, Result};

/// The commands, and what `/help` says of each.
const COMMANDS: [(&str, &str); 4] =
    [("/help", "show these commands"), ("/new", "start a new session"), ("/exit", "leave"), ("/quit", "leave")];

/// What a line asks of `chat` itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    New,
    Exit,
}

impl Command {
    /// The command that a line is; other lines, also others with a slash, are messages.
    pub(crate) fn of(line: &str) -> Option<Self> {
        match line.trim() {
            "/help" => Some(Self::Help),
            "/new" => Some(Self::New),
            "/exit" | "/quit" => Some(Self::Exit),
            _ => None,
        }
    }
}

/// What `/help` shows.
pub(crate) fn help() -> String {
    let commands = COMMANDS.iter().map(|(name, about)| format!("{name:6}  {about}\n"));
    commands.collect::<String>() + "Everything else goes to the agent. Ctrl-C stops a response, Ctrl-D leaves."
}

/// Completes the commands.
#[derive(Debug)]
pub(crate) struct Commands;

impl Completer for Commands {
    type Candidate = &'static str;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> Result<(usize, Vec<&'static str>)> {
        Ok((0, completed(line.get(..at).unwrap_or_default())))
    }
}

fn completed(typed: &str) -> Vec<&'static str> {
    let names = COMMANDS.iter().map(|(name, _)| *name);
    names.filter(|name| typed.starts_with('/') && name.starts_with(typed)).collect()
}

impl Hinter for Commands {
    type Hint = String;
}

impl Highlighter for Commands {}
impl Validator for Commands {}
impl Helper for Commands {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_and_completed() {
        assert_eq!((Command::of(" /help "), Command::of("/new")), (Some(Command::Help), Some(Command::New)));
        assert_eq!((Command::of("/exit"), Command::of("/quit")), (Some(Command::Exit), Some(Command::Exit)));
        assert_eq!((Command::of("/tool system_time {}"), Command::of("help")), (None, None));
        assert_eq!((completed("/h"), completed("/")[0]), (vec!["/help"], "/help"));
        assert_eq!((completed(""), completed("x /h")), (Vec::new(), Vec::new()));
    }

    #[test]
    fn the_help_names_each_command() {
        assert!(COMMANDS.iter().all(|(name, _)| help().contains(name) && Command::of(name).is_some()));
    }
}
