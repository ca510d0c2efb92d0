//! Chat commands: what a person types to the daemon instead of to the agent (spec 1, Events, chat commands). One file
//! and one line in [`COMMANDS`] each. They belong to no protocol: a chat of any kind can offer them.

mod compact;
mod help;
mod model;
mod models;
mod new;
mod providers;
mod stop;
mod think;
mod usage;

use std::sync::Arc;

use agentsvc_components::{AgentId, SessionId};
use futures_util::future::BoxFuture;

use crate::http::api::Api;
use crate::http::error::Error;

/// Every command, in the order in which `/help` shows them.
const COMMANDS: &[Command] = &[
    new::COMMAND,
    compact::COMMAND,
    model::COMMAND,
    stop::COMMAND,
    usage::COMMAND,
    think::COMMAND,
    models::COMMAND,
    providers::COMMAND,
    help::COMMAND,
];

/// Longest part of an unknown command that is said back, in characters.
const SHOWN_CHARS: usize = 32;

/// One command.
struct Command {
    /// Its name, without the slash.
    name: &'static str,
    /// What may follow the name, for `/help`; empty when nothing may.
    argument: &'static str,
    /// What it does, in a few words.
    summary: &'static str,
    /// It asks a model and may take long; what is typed next need not wait for it.
    is_slow: bool,
    /// Carries it out. The text is what followed the name, trimmed.
    run: fn(Chat, String) -> BoxFuture<'static, Result<Outcome, Error>>,
}

/// Where a command was typed.
pub(crate) struct Chat {
    /// The front.
    pub(crate) api: Arc<Api>,
    /// The agent that is talked to.
    pub(crate) agent: AgentId,
    /// Sessions in which this chat waits for an answer.
    pub(crate) sessions: Vec<SessionId>,
    /// Its messages ask for extended thinking.
    pub(crate) thinking: bool,
    /// Whoever types may change the agent, not only talk to it.
    pub(crate) may_write: bool,
}

/// What a command has to say.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The answer.
    pub(crate) text: String,
    /// Whether the chat's messages ask for extended thinking from here on; `None` leaves that as it is.
    pub(crate) thinking: Option<bool>,
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        Self { text, thinking: None }
    }
}

/// A command as lists show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandLine {
    /// Its name, without the slash.
    pub(crate) name: &'static str,
    /// What may follow the name; empty when nothing may.
    pub(crate) argument: &'static str,
    /// What it does, in a few words.
    pub(crate) summary: &'static str,
    /// Whether it calls a model and can take long.
    pub(crate) is_slow: bool,
}

/// Every command, in the order of `/help`.
pub(crate) fn lines() -> impl Iterator<Item = CommandLine> {
    COMMANDS.iter().map(|command| {
        let Command { name, argument, summary, is_slow, .. } = *command;
        CommandLine { name, argument, summary, is_slow }
    })
}

/// Is what was typed a command?
pub(crate) fn is_command(content: &str) -> bool {
    content.trim_start().starts_with('/')
}

/// Is it a command of the daemon? Others may be skills of the agent.
pub(crate) fn is_known(content: &str) -> bool {
    find(split(content).0).is_some()
}

/// Does what was typed ask a model, so that it may take long?
pub(crate) fn is_slow(content: &str) -> bool {
    is_command(content) && find(split(content).0).is_some_and(|command| command.is_slow)
}

/// The name of a command and what follows it.
fn split(content: &str) -> (&str, &str) {
    let typed = content.trim().trim_start_matches('/');
    typed.split_once(char::is_whitespace).unwrap_or((typed, ""))
}

fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name))
}

/// Carries out a command such as `/model gpt-4o`.
///
/// # Errors
/// 400 for an unknown command, listing the known ones, or for an argument that is not taken; else as the world refuses.
pub(crate) async fn run(chat: Chat, content: &str) -> Result<Outcome, Error> {
    let (name, rest) = split(content);
    let Some(command) = find(name) else {
        let shown: String = name.chars().take(SHOWN_CHARS).collect();
        let known: Vec<String> = COMMANDS.iter().map(|command| format!("/{}", command.name)).collect();
        return Err(Error::bad_request(format!("unknown command /{shown}; available commands: {}", known.join(", "))));
    };
    let rest = rest.trim();
    if command.argument.is_empty() && !rest.is_empty() {
        return Err(Error::bad_request(format!("/{} takes no arguments", command.name)));
    }
    (command.run)(chat, rest.to_owned()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::settings::ApiSettings;
    use crate::testing;

    async fn typed(content: &str) -> Result<Outcome, Error> {
        typed_by(true, content).await
    }

    async fn typed_by(may_write: bool, content: &str) -> Result<Outcome, Error> {
        let api = testing::front(ApiSettings::default());
        let agent = AgentId(uuid::Uuid::nil());
        run(Chat { api, agent, sessions: Vec::new(), thinking: false, may_write }, content).await
    }

    #[tokio::test]
    async fn who_may_only_talk_does_not_change_the_agent() {
        for content in ["/model gpt-4o", "/model openai gpt-4o"] {
            let refused = typed_by(false, content).await.unwrap_err();
            assert!(refused.status() == 403 && refused.message().contains("scope write"), "{refused}");
        }
    }

    #[tokio::test]
    async fn help_lists_every_command() {
        let help = typed("/HELP").await.unwrap().text;
        for command in COMMANDS {
            assert!(help.contains(&format!("/{}", command.name)) && help.contains(command.summary), "{help}");
        }
    }

    #[tokio::test]
    async fn an_unknown_command_is_told_the_known_ones() {
        for unknown in ["/nonsense", "/", "/ help", "/étrange x"] {
            let error = typed(unknown).await.unwrap_err();
            assert!(error.message().contains("/providers"), "{error}");
        }
        assert!(typed("/stop now").await.unwrap_err().message().contains("/stop takes no arguments"));
    }

    #[tokio::test]
    async fn think_turns_over_and_takes_a_word() {
        assert_eq!(typed("/think").await.unwrap().thinking, Some(true));
        assert_eq!(typed("/think off").await.unwrap().thinking, Some(false));
        assert!(typed("/think maybe").await.is_err());
    }

    #[tokio::test]
    async fn an_agent_that_is_not_there_is_said() {
        for command in ["/new", "/compact", "/model", "/model x", "/stop", "/usage"] {
            assert_eq!(typed(command).await.unwrap_err().status(), 404, "{command}");
        }
    }
}
