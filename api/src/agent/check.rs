//! A manifest is looked at before it becomes an agent, while it is written.

use agentsvc_components::manifest::Manifest;
use agentsvc_systems::agent::{AgentFilter, ListAgents};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::agent::routes::{CreateBody, check_signature, spawn_command};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};

pub(crate) const ROUTES: &[Route] =
    &[Route::post("/api/agents/check", "Validate a manifest without creating an agent", |call| Box::pin(check(call)))
        .reaching(Reach::Shared)
        .without_room()
        .body::<CreateBody>()
        .replies(&[
            Reply::json::<Checked>(200, "the manifest is valid; nothing was created"),
            Reply::error(403, "the signature is missing or wrong"),
        ])];

/// Result of a validation.
#[derive(Serialize, JsonSchema)]
struct Checked {
    name: Box<str>,
    /// Whether the name is already taken.
    name_taken: bool,
    description: Box<str>,
    /// Provider and model of the manifest; empty for the daemon's default.
    provider: Box<str>,
    model: Box<str>,
    /// Granted tools, by name or glob.
    tools: Vec<Box<str>>,
    /// Triggers that would be created with the agent.
    triggers: usize,
    /// The manifest as it was read, with its defaults, but for the name.
    #[schemars(with = "Value")]
    manifest: Manifest,
}

async fn check(call: Call) -> Result<Response, Error> {
    let body: CreateBody = call.json()?;
    let command = spawn_command(&call.api, body.manifest_toml)?;
    check_signature(&call.api, &command.name, &command.text, body.manifest_signature.as_deref())?;
    let filter = AgentFilter { name: Some(command.name.clone()), ..AgentFilter::default() };
    let taken = call.ask(ListAgents { filter, after: None, limit: 1 }).await?;
    let manifest = command.manifest;
    reply::ok(&Checked {
        name: command.name,
        name_taken: !taken.items.is_empty(),
        description: manifest.description.clone(),
        provider: manifest.model.provider.clone(),
        model: manifest.model.model.clone(),
        tools: manifest.capabilities.tools.clone(),
        triggers: manifest.triggers.len(),
        manifest,
    })
}
