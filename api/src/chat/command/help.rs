//! `/help`: what can be typed.

use super::{COMMANDS, Command};

pub(super) const COMMAND: Command = Command {
    name: "help",
    argument: "",
    summary: "list the commands",
    is_slow: false,
    run: |_, _| {
        let line = |command: &Command| {
            let space = if command.argument.is_empty() { "" } else { " " };
            format!("/{}{space}{}: {}", command.name, command.argument, command.summary)
        };
        let lines: Vec<String> = COMMANDS.iter().map(line).collect();
        Box::pin(async move { Ok(lines.join("\n").into()) })
    },
};
