//! The agent card, which says how the daemon is reached over A2A and what its agents can do; and the list of these agents.

use agentsvc_components::AgentId;
use agentsvc_systems::a2a::limits;
use hyper::header::HOST;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::host::Policy;
use super::{gate, offer};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What the card costs the client's rate budget: it looks at all agents that are offered.
const COST: u32 = 10;

/// Where JSON-RPC requests go.
pub(crate) const RPC_PATH: &str = "/a2a";

const CARD: &[Reply] = &[Reply::json::<AgentCard>(200, "the agent card"), Reply::error(404, "A2A is off")];

const fn card_at(path: &'static str) -> Route {
    Route::get(path, "Get the agent card", |call| Box::pin(card(call))).public().cost(COST).replies(CARD)
}

pub(crate) const ROUTES: &[Route] = &[
    card_at("/.well-known/agent.json"),
    card_at("/.well-known/agent-card.json"),
    card_at("/a2a/.well-known/agent.json"),
    card_at("/a2a/.well-known/agent-card.json"),
    Route::get("/a2a/agents", "List the agents that are offered over A2A", |call| Box::pin(agents(call)))
        .public()
        .cost(COST)
        .replies(&[Reply::json::<A2aAgentList>(200, "the agents"), Reply::error(404, "A2A is off")]),
];

/// The agent card: the keys of versions 0.3 and 1.0 of the protocol together.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AgentCard {
    name: Box<str>,
    description: Box<str>,
    /// Where JSON-RPC requests go.
    url: String,
    /// Version of the daemon.
    version: String,
    /// `0.3.0`; `supportedInterfaces` has all versions.
    protocol_version: &'static str,
    /// `JSONRPC`
    preferred_transport: &'static str,
    capabilities: AgentCardCapabilities,
    default_input_modes: [&'static str; 2],
    default_output_modes: [&'static str; 2],
    /// Each offered agent.
    skills: Vec<AgentCardSkill>,
    /// The same URL in the form of version 0.3.
    additional_interfaces: Vec<Value>,
    /// The same URL in the form of version 1.0.
    supported_interfaces: Vec<Value>,
    /// `false`
    supports_authenticated_extended_card: bool,
}

/// What the daemon does of the protocol.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AgentCardCapabilities {
    streaming: bool,
    push_notifications: bool,
    state_transition_history: bool,
}

/// An offered agent.
#[derive(Serialize, JsonSchema)]
struct AgentCardSkill {
    /// Id of the agent; names it in requests.
    id: A2aAgentIdText,
    name: Box<str>,
    description: String,
    tags: Vec<Box<str>>,
    examples: Vec<String>,
}

/// An id as text.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
struct A2aAgentIdText(String);

impl From<AgentId> for A2aAgentIdText {
    fn from(id: AgentId) -> Self {
        Self(id.to_string())
    }
}

/// The agents that are offered.
#[derive(Serialize, JsonSchema)]
struct A2aAgentList {
    agents: Vec<A2aAgentItem>,
    total: usize,
}

/// An offered agent.
#[derive(Serialize, JsonSchema)]
struct A2aAgentItem {
    id: A2aAgentIdText,
    name: Box<str>,
    description: String,
    tags: Vec<Box<str>>,
    /// Where JSON-RPC requests go; they name the agent.
    url: String,
}

/// The URL under which the client reached the daemon, or that the operator set.
pub(crate) fn base(call: &Call, policy: &Policy) -> String {
    if let Some(url) = &policy.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let host = call.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| call.parts.uri.authority().map(|authority| authority.as_str()));
    format!("http://{}", host.unwrap_or("localhost"))
}

async fn skills(call: &Call, policy: &Policy) -> Result<Vec<AgentCardSkill>, Error> {
    let mut skills = Vec::new();
    for agent in offer::list(call, policy, limits::A2A_AGENTS_MAX).await? {
        let Some(detail) = offer::detail(call, agent.id).await? else { continue };
        let manifest = &detail.manifest.manifest;
        let description = match &*manifest.description {
            "" => format!("The agent {:?}.", agent.name),
            text => text.to_owned(),
        };
        let tags = if manifest.tags.is_empty() { vec!["agent".into()] } else { manifest.tags.clone() };
        skills.push(AgentCardSkill { id: agent.id.into(), name: agent.name, description, tags, examples: Vec::new() });
    }
    Ok(skills)
}

async fn card(call: Call) -> Result<Response, Error> {
    let (_, policy) = gate::open(&call)?;
    let url = format!("{}{RPC_PATH}", base(&call, &policy));
    let interface = |version: &str| json!({ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": version });
    reply::ok(&AgentCard {
        name: policy.name.clone(),
        description: policy.description.clone(),
        version: call.api.settings.build.version.to_string(),
        protocol_version: "0.3.0",
        preferred_transport: "JSONRPC",
        capabilities: AgentCardCapabilities {
            streaming: true,
            push_notifications: true,
            state_transition_history: false,
        },
        default_input_modes: ["text", "text/plain"],
        default_output_modes: ["text", "text/plain"],
        skills: skills(&call, &policy).await?,
        additional_interfaces: vec![json!({ "url": url, "transport": "JSONRPC" })],
        supported_interfaces: vec![interface("1.0"), interface("0.3")],
        supports_authenticated_extended_card: false,
        url,
    })
}

async fn agents(call: Call) -> Result<Response, Error> {
    let (_, policy) = gate::open(&call)?;
    let url = format!("{}{RPC_PATH}", base(&call, &policy));
    let skills = skills(&call, &policy).await?.into_iter();
    let agents: Vec<A2aAgentItem> = skills
        .map(|AgentCardSkill { id, name, description, tags, .. }| A2aAgentItem {
            id,
            name,
            description,
            tags,
            url: url.clone(),
        })
        .collect();
    reply::ok(&A2aAgentList { total: agents.len(), agents })
}
