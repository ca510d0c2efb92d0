//! A command of the chat over plain HTTP, for pages (spec 1, Events, chat commands).

use agentsvc_components::SessionId;
use agentsvc_systems::session::GetSession;
use agentsvc_systems::turn::ResolveSession;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::chat::command;
use crate::chat::command::Chat;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};

/// What a command costs the client's rate budget: some ask a model.
const COST: u32 = 2;

pub(crate) const ROUTES: &[Route] =
    &[Route::post("/api/agents/{id}/command", "Type a command of the chat", |call| Box::pin(run(call)))
        .cost(COST)
        .body::<CommandBody>()
        .replies(&[
            Reply::json::<CommandAnswer>(200, "what the command has to say"),
            Reply::error(403, "the session belongs to another agent"),
        ])];

/// What is typed.
#[derive(Deserialize, JsonSchema)]
struct CommandBody {
    /// The command and what follows it, such as `/model gpt-4o`.
    command: String,
    /// The session in which it is typed; the current one when left out.
    #[serde(default)]
    session_id: Option<Uuid>,
    /// The messages of this chat ask for extended thinking, which `/think` turns over.
    #[serde(default)]
    thinking: bool,
}

/// What the command has to say.
#[derive(Serialize, JsonSchema)]
struct CommandAnswer {
    response: String,
    /// Whether the messages that follow should ask for extended thinking (`thinking` of a message).
    thinking: bool,
}

async fn run(call: Call) -> Result<Response, Error> {
    let agent = call.id("id")?;
    let CommandBody { command, session_id, thinking } = call.json()?;
    if !command::is_command(&command) {
        return Err(Error::bad_field("command", "command: must begin with a slash, such as /help"));
    }
    let sessions = match session_id.map(SessionId) {
        Some(session) => vec![call.ask(GetSession::Of(agent, session)).await?.id],
        None => {
            call.ask(ResolveSession { agent, session: None }).await?;
            Vec::new()
        }
    };
    let chat = Chat { api: call.api.clone(), agent, sessions, thinking };
    let outcome = command::run(chat, &command).await?;
    reply::ok(&CommandAnswer { response: outcome.text, thinking: outcome.thinking.unwrap_or(thinking) })
}
