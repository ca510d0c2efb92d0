//! The commands of the chat, such as `/new` (spec 2, UI bindings and commands).

use schemars::JsonSchema;
use serde::Serialize;

use crate::chat::command::{self, CommandLine};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/commands", "List chat commands", |call| Box::pin(list(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<CommandList>(200, "the commands, in the order of /help")]),
    Route::get("/api/commands/{name}", "Get a chat command", |call| Box::pin(show(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<CommandItem>(200, "the command")]),
];

/// The commands.
#[derive(Serialize, JsonSchema)]
struct CommandList {
    commands: Vec<CommandItem>,
    total: usize,
}

/// One command.
#[derive(Serialize, JsonSchema)]
struct CommandItem {
    /// Without the slash.
    name: &'static str,
    /// As typed, such as `/new`.
    command: String,
    /// Arguments, such as `[label]`; empty if it takes none.
    argument: &'static str,
    description: &'static str,
    /// Whether it calls a model and can take long.
    slow: bool,
}

impl CommandItem {
    fn of(line: CommandLine) -> Self {
        let CommandLine { name, argument, summary, is_slow } = line;
        Self { name, command: format!("/{name}"), argument, description: summary, slow: is_slow }
    }
}

async fn list(_call: Call) -> Result<Response, Error> {
    let commands: Vec<CommandItem> = command::lines().map(CommandItem::of).collect();
    reply::ok(&CommandList { total: commands.len(), commands })
}

/// The name may come with its slash (`%2Fnew`), and in any case, as it may be typed.
async fn show(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?;
    let wanted = name.strip_prefix('/').unwrap_or(&name);
    let found = command::lines().find(|line| line.name.eq_ignore_ascii_case(wanted));
    let line = found.ok_or_else(|| {
        let shown: String = wanted.chars().take(64).collect();
        Error::not_found(format!("command not found: /{shown}"))
    })?;
    reply::ok(&CommandItem::of(line))
}
