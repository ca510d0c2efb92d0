//! `/name` at the beginning of a message: the person who writes it wants that skill.

use agentsvc_components::AgentId;
use agentsvc_systems::agent::GetAgent;

use super::library::Skills;
use crate::http::api::Api;
use crate::http::blocking::spawn_blocking;
use crate::http::error::Error;

/// The message that `text` stands for, if it begins with the name of a skill that the agent has; `None` otherwise.
///
/// # Errors
/// As the world refuses, for an agent that is not there.
pub(crate) async fn message_of(api: &Api, agent: AgentId, text: &str) -> Result<Option<String>, Error> {
    let Some(typed) = text.trim_start().strip_prefix('/') else { return Ok(None) };
    let (name, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let Some(skills) = api.services.get::<dyn Skills>().filter(|_| !name.is_empty()) else { return Ok(None) };
    let manifest = api.bridge.ask(GetAgent(agent)).await?.manifest;
    let (name, rest) = (name.to_owned(), rest.trim().to_owned());
    let found = spawn_blocking(move || skills.invoked(&name, &rest, &manifest.manifest)).await;
    found.map_err(|_| Error::internal("the skills could not be read"))
}
