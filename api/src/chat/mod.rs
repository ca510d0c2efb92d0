//! The WebSocket chat, its commands and bindings.

pub(crate) mod agent_command;
pub mod agent_feed;
pub mod audit_kinds;
pub(crate) mod binding_routes;
pub mod bindings;
pub(crate) mod command;
pub(crate) mod commands;
pub mod error_codes;
#[doc(hidden)]
pub mod fuzzing;
pub(crate) mod routes;
pub(crate) mod socket;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use agentsvc_components::{AgentId, SessionId};

use crate::http::api::Api;
use crate::http::domain::HttpDomain;
use crate::provider::catalog::{KeyStatus, providers};

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("chat")
    .audit_kinds(audit_kinds::ALL)
    .error_codes(error_codes::ALL)
    .uses(&["agent", "audit", "compaction", "model", "provider", "session", "skill", "turn", "upload", "event"])
    .routes(&[routes::ROUTES, binding_routes::ROUTES, commands::ROUTES, agent_command::ROUTES])
    .metrics(agent_feed::gather)
    .queues(agent_feed::queues);

/// Carries out a command of the chat for another kind of chat, such as `/model gpt-4o`: what it has to say. The other kind has
/// decided who may use it.
///
/// # Errors
/// Why it was not carried out, for people.
pub async fn run_command(
    api: &Arc<Api>,
    agent: AgentId,
    session: Option<SessionId>,
    typed: &str,
) -> Result<String, String> {
    let chat = command::Chat {
        api: Arc::clone(api),
        agent,
        sessions: session.into_iter().collect(),
        thinking: false,
        may_write: true,
    };
    let outcome = command::run(chat, typed).await.map_err(|error| error.message().to_owned())?;
    Ok(outcome.text)
}

/// The providers that can be asked, and the models that each has, for other kinds of chats.
pub fn provider_models(api: &Api) -> Vec<(String, Vec<String>)> {
    let usable = providers(api).into_iter().filter(|line| line.key != KeyStatus::Missing);
    usable.map(|line| (line.name, line.models)).collect()
}

/// The commands of the chat: the name of each, and a line of help.
pub fn command_lines() -> impl Iterator<Item = (&'static str, String)> {
    command::lines().map(|line| {
        let gap = if line.argument.is_empty() { "" } else { " " };
        (line.name, format!("/{}{gap}{} - {}", line.name, line.argument, line.summary))
    })
}
