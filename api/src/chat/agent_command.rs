//! A command of the chat over plain HTTP, for pages (spec 1, Events, chat commands).

use agentsvc_components::SessionId;
use agentsvc_components::kernel::scope::Scope;
use agentsvc_components::session::message::Block;
use agentsvc_systems::session::GetSession;
use agentsvc_systems::turn::{NewMessage, ResolveSession, SendMessage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::chat::command::{self, Chat};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::skill::invoke;

/// What a command costs the client's rate budget: some ask a model.
const COST: u32 = 2;

pub(crate) const ROUTES: &[Route] =
    &[Route::post("/api/agents/{id}/command", "Run a chat command", |call| Box::pin(run(call)))
        .scoped(Scope::Chat)
        .cost(COST)
        .body::<CommandBody>()
        .replies(&[
            Reply::json::<CommandAnswer>(200, "the output of the command"),
            Reply::error(403, "the session belongs to another agent"),
        ])];

/// A chat command.
#[derive(Deserialize, JsonSchema)]
struct CommandBody {
    /// The command with its arguments, such as `/model gpt-4o`.
    command: String,
    /// Session. Default: the current session.
    #[serde(default)]
    session_id: Option<Uuid>,
    /// Whether extended thinking is on; `/think` toggles it.
    #[serde(default)]
    thinking: bool,
}

/// Output of the command.
#[derive(Serialize, JsonSchema)]
struct CommandAnswer {
    response: String,
    /// Whether extended thinking is on for the following messages (`thinking` of a message).
    thinking: bool,
}

async fn run(call: Call) -> Result<Response, Error> {
    let agent = call.id("id")?;
    let CommandBody { command, session_id, thinking } = call.json()?;
    if !command::is_command(&command) {
        return Err(Error::bad_field("command", "command: must start with a slash, such as /help"));
    }
    let skill = if command::is_known(&command) { None } else { invoke::message_of(&call.api, agent, &command).await? };
    if let Some(text) = skill {
        let message = NewMessage { blocks: vec![Block::Text { text }], ..NewMessage::default() };
        let answer = call.ask(SendMessage { agent, session: session_id.map(SessionId), message }).await?;
        return reply::ok(&CommandAnswer { response: answer.response, thinking });
    }
    let sessions = match session_id.map(SessionId) {
        Some(session) => vec![call.ask(GetSession::Of(agent, session)).await?.id],
        None => {
            call.ask(ResolveSession { agent, session: None }).await?;
            Vec::new()
        }
    };
    let may_write = call.principal.has(Scope::Write);
    let chat = Chat { api: call.api.clone(), agent, sessions, thinking, may_write };
    let outcome = command::run(chat, &command).await?;
    reply::ok(&CommandAnswer { response: outcome.text, thinking: outcome.thinking.unwrap_or(thinking) })
}
