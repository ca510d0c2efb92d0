//! Agents change: PATCH, update, mode, model, identity and config (spec 1, Agents).

use agentsvc_components::AgentId;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::Manifest;
use agentsvc_systems::agent::{AgentPatch, AgentView, GetAgent, SetMode, UpdateAgent};
use agentsvc_systems::manifest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::model_field::ModelField;
use crate::agent::frozen_skills::FrozenSkills;
use crate::agent::routes::check_name;
use crate::agent::shape::{AgentDetail, Mode};
use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::json::given;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// Bytes of one text of an agent, such as its system prompt.
const TEXT_BYTES_MAX: usize = limit::MANIFEST_BYTES_MAX;
/// Bytes of an avatar, which may be a small picture as a data URI.
const AVATAR_BYTES_MAX: usize = 64 << 10;
/// Words of one list, such as tags.
const WORDS_MAX: usize = 1_000;
/// Bytes of one word of a list, and of a provider's or model's name.
const WORD_BYTES_MAX: usize = 256;

const DETAIL: &[Reply] = &[
    Reply::json::<AgentDetail<'_>>(200, "the updated agent"),
    Reply::error(409, "the name is already taken, or the agent's mode is Stable"),
];

pub(crate) const ROUTES: &[Route] = &[
    Route::patch("/api/agents/{id}", "Update an agent", |call| Box::pin(change(call)))
        .body::<ChangeBody>()
        .replies(DETAIL),
    Route::patch("/api/agents/{id}/config", "Update the configuration of an agent", |call| Box::pin(change(call)))
        .body::<ChangeBody>()
        .replies(DETAIL),
    Route::patch("/api/agents/{id}/identity", "Update the identity of an agent", |call| Box::pin(identify(call)))
        .body::<IdentityBody>()
        .replies(DETAIL),
    Route::put("/api/agents/{id}/update", "Update the description, prompt and tags of an agent", |call| {
        Box::pin(update(call))
    })
    .body::<UpdateBody>()
    .replies(&[Reply::json::<Updated>(200, "updated")]),
    Route::put("/api/agents/{id}/mode", "Set the mode of an agent", |call| Box::pin(mode(call)))
        .body::<ModeBody>()
        .replies(&[Reply::json::<ModeSet>(200, "updated")]),
    Route::put("/api/agents/{id}/model", "Set the model of an agent", |call| Box::pin(model(call)))
        .body::<ModelBody>()
        .replies(&[Reply::json::<ModelSet>(200, "updated"), Reply::error(409, "the agent's mode is Stable")]),
];

/// Fields to change; omitted or null fields are unchanged, except that null clears numbers.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ChangeBody {
    /// New name; not in use by another agent.
    name: Option<String>,
    /// What the agent is for, in a sentence.
    description: Option<String>,
    /// Instructions that the model gets before every conversation.
    system_prompt: Option<String>,
    /// Tags to find the agent by.
    tags: Option<Vec<String>>,
    /// Provider of its model, such as `openai`.
    provider: Option<String>,
    /// Model id or alias, or an object with `provider`, `model`, `temperature` and `max_tokens`.
    model: Option<ModelField>,
    /// Randomness of the answers, from 0 to 2.
    #[serde(deserialize_with = "given")]
    temperature: Option<Option<f32>>,
    /// Most tokens of one answer of the model.
    #[serde(deserialize_with = "given")]
    max_tokens: Option<Option<u32>>,
    /// Most messages of the conversation that the model gets.
    #[serde(deserialize_with = "given")]
    max_history_messages: Option<Option<u32>>,
    /// Tools that the agent has: names, or globs such as `file_*`.
    tools: Option<Vec<String>>,
    /// Only these of its tools; empty for all of them.
    tool_allowlist: Option<Vec<String>>,
    /// Tools that the agent never gets.
    tool_blocklist: Option<Vec<String>>,
    /// Skills that the agent may use; empty for all.
    skills: Option<Vec<String>>,
    /// MCP servers whose tools the agent may use; `*` for all.
    mcp_servers: Option<Vec<String>>,
    /// What the agent may reach and run: an object with `tools`, `network`, `shell`, `agent_spawn` and `file_system`.
    capabilities: Option<CapabilitiesBody>,
    /// How the agent appears: an object with `name`, `avatar` and `persona`.
    identity: Option<IdentityBody>,
}

/// What the agent may reach and run.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CapabilitiesBody {
    /// Tools that the agent has: names, or globs such as `file_*`.
    tools: Option<Vec<String>>,
    /// Hosts that it may reach; `*` for all.
    network: Option<Vec<String>>,
    /// Commands that it may run, as far as `[exec_policy]` allows them; `*` for all.
    shell: Option<Vec<String>>,
    /// Whether it may create agents.
    agent_spawn: Option<bool>,
    /// Whether it may use the files of its workspace.
    file_system: Option<bool>,
}

/// How the agent appears.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct IdentityBody {
    /// New name of the agent.
    name: Option<String>,
    /// A URL, an emoji or a data URI.
    avatar: Option<String>,
    /// A short description of its tone.
    persona: Option<String>,
}

impl ChangeBody {
    fn into_patch(self) -> Result<AgentPatch, Error> {
        let nested = self.model.map(ModelField::into_table).unwrap_or_default();
        let identity = self.identity.unwrap_or_default();
        let temperature = self.temperature.or(nested.temperature);
        // Minus zero equals zero and would yet make another manifest.
        let temperature = temperature.map(|value| value.map(|t| if t == 0.0 { 0.0 } else { t }));
        let capabilities = self.capabilities.unwrap_or_default();
        let tools = self.tools.or(capabilities.tools);
        let patch = AgentPatch {
            name: name(self.name.or(identity.name))?,
            description: text("description", self.description, TEXT_BYTES_MAX)?,
            system_prompt: text("system_prompt", self.system_prompt, TEXT_BYTES_MAX)?,
            tags: words("tags", self.tags)?,
            provider: word("provider", self.provider.or(nested.provider))?,
            model: word("model", nested.model)?,
            temperature,
            max_tokens: self.max_tokens.or(nested.max_tokens),
            max_history_messages: self.max_history_messages,
            tools: words("tools", tools)?,
            network: words("capabilities.network", capabilities.network)?,
            shell: words("capabilities.shell", capabilities.shell)?,
            agent_spawn: capabilities.agent_spawn,
            file_system: capabilities.file_system,
            tool_allowlist: words("tool_allowlist", self.tool_allowlist)?,
            tool_blocklist: words("tool_blocklist", self.tool_blocklist)?,
            skills: words("skills", self.skills)?,
            mcp_servers: words("mcp_servers", self.mcp_servers)?,
            avatar: text("avatar", identity.avatar, AVATAR_BYTES_MAX)?,
            persona: text("persona", identity.persona, TEXT_BYTES_MAX)?,
        };
        check_numbers(&patch)?;
        Ok(patch)
    }
}

/// The numbers obey the rules of a manifest's.
fn check_numbers(patch: &AgentPatch) -> Result<(), Error> {
    let mut probe = Manifest::default();
    probe.model.temperature = patch.temperature.flatten();
    probe.model.max_tokens = patch.max_tokens.flatten();
    Ok(manifest::validate(&probe)?)
}

fn name(name: Option<String>) -> Result<Option<Box<str>>, Error> {
    if let Some(name) = &name {
        check_name(name)?;
    }
    Ok(name.map(Into::into))
}

fn text(field: &str, text: Option<String>, bytes_max: usize) -> Result<Option<Box<str>>, Error> {
    match text {
        Some(long) if long.len() > bytes_max => {
            let bytes = long.len();
            let message = format!("{field} is {bytes} bytes long; the limit is {bytes_max}");
            Err(Error::bad_field(field, message))
        }
        fits => Ok(fits.map(Into::into)),
    }
}

/// A provider's or model's name; empty means the daemon's default.
fn word(field: &str, word: Option<String>) -> Result<Option<Box<str>>, Error> {
    if word.as_ref().is_some_and(|word| word.chars().any(char::is_control)) {
        return Err(Error::bad_field(field, format!("{field} must not contain control characters")));
    }
    text(field, word, WORD_BYTES_MAX)
}

/// A word list as the world keeps it.
///
/// # Errors
/// 400 naming the list, or the item such as `tags[3]`: too many, too long, empty or with control characters.
pub(crate) fn words(field: &str, words: Option<Vec<String>>) -> Result<Option<Vec<Box<str>>>, Error> {
    let Some(words) = words else { return Ok(None) };
    if words.len() > WORDS_MAX {
        return Err(Error::bad_field(field, format!("{field} has more than {WORDS_MAX} items")));
    }
    for (index, word) in words.iter().enumerate() {
        let fault = match word {
            empty if empty.trim().is_empty() => "must not be empty",
            long if long.len() > WORD_BYTES_MAX => "is longer than 256 bytes",
            odd if odd.chars().any(char::is_control) => "must not contain control characters",
            _ => continue,
        };
        let place = format!("{field}[{index}]");
        return Err(Error::bad_field(&place, format!("{place} {fault}")));
    }
    Ok(Some(words.into_iter().map(Into::into).collect()))
}

/// Applies a patch; an empty one changes nothing and is a read.
pub(crate) async fn apply(call: &Call, agent: AgentId, patch: AgentPatch) -> Result<AgentView, Error> {
    if patch == AgentPatch::default() {
        call.ask(GetAgent(agent)).await
    } else {
        call.ask(UpdateAgent { agent, patch }).await
    }
}

async fn change(call: Call) -> Result<Response, Error> {
    let agent = call.id("id")?;
    let patch = call.json::<ChangeBody>()?.into_patch()?;
    reply::ok(&AgentDetail::of(&apply(&call, agent, patch).await?))
}

async fn identify(call: Call) -> Result<Response, Error> {
    let agent = call.id("id")?;
    let body = ChangeBody { identity: Some(call.json()?), ..ChangeBody::default() };
    reply::ok(&AgentDetail::of(&apply(&call, agent, body.into_patch()?).await?))
}

/// Fields of a runtime update.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct UpdateBody {
    /// What the agent is for, in a sentence.
    description: Option<String>,
    /// Instructions that the model gets before every conversation.
    system_prompt: Option<String>,
    /// Tags to find the agent by.
    tags: Option<Vec<String>>,
}

/// The agent was updated.
#[derive(Serialize, JsonSchema)]
struct Updated {
    status: &'static str,
    agent_id: Uuid,
}

async fn update(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let UpdateBody { description, system_prompt, tags } = call.json()?;
    let body = ChangeBody { description, system_prompt, tags, ..ChangeBody::default() };
    apply(&call, agent, body.into_patch()?).await?;
    reply::ok(&Updated { status: "updated", agent_id: agent.0 })
}

/// The mode to set.
#[derive(Deserialize, JsonSchema)]
struct ModeBody {
    // Text, because the error of an enum names the wrong word as if it were a key.
    #[schemars(with = "Mode")]
    mode: String,
}

/// The mode was set.
#[derive(Serialize, JsonSchema)]
struct ModeSet {
    status: &'static str,
    mode: Mode,
    agent_id: Uuid,
}

async fn mode(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let mode = match call.json::<ModeBody>()?.mode.as_str() {
        "Stable" => Mode::Stable,
        "Normal" => Mode::Normal,
        _ => return Err(Error::bad_field("mode", "mode must be Stable or Normal")),
    };
    let skills = match mode {
        Mode::Stable => frozen_skills(&call, agent).await?,
        Mode::Normal => None,
    };
    let view = call.ask(SetMode { agent, mode: mode.into(), skills }).await?;
    reply::ok(&ModeSet { status: "updated", mode: view.mode.into(), agent_id: agent.0 })
}

/// What Stable freezes of the skills that the agent has now; `None` for a daemon without skills.
async fn frozen_skills(call: &Call, agent: AgentId) -> Result<Option<Vec<Box<str>>>, Error> {
    let Some(skills) = call.api.services.get::<dyn FrozenSkills>() else { return Ok(None) };
    let view = call.ask(GetAgent(agent)).await?;
    let frozen = spawn_blocking(move || skills.of(&view.manifest.manifest)).await;
    frozen.map(Some).map_err(|_| Error::internal("the skills could not be read"))
}

/// The model to set.
#[derive(Deserialize, JsonSchema)]
struct ModelBody {
    /// Model id or alias.
    model: String,
    /// Provider. Default: the agent's provider.
    provider: Option<String>,
}

/// The model was set.
#[derive(Serialize, JsonSchema)]
struct ModelSet {
    status: &'static str,
    model: Box<str>,
    provider: Box<str>,
    agent_id: Uuid,
}

/// The change to another model, and to another provider where one is named.
///
/// # Errors
/// 400 naming the field: empty, too long or with control characters.
pub(crate) fn model_patch(model: String, provider: Option<String>) -> Result<AgentPatch, Error> {
    if model.trim().is_empty() {
        return Err(Error::bad_field("model", "model must not be empty"));
    }
    let model = Some(ModelField::Name(model));
    ChangeBody { model, provider, ..ChangeBody::default() }.into_patch()
}

async fn model(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let ModelBody { model, provider } = call.json()?;
    let view = apply(&call, agent, model_patch(model, provider)?).await?;
    reply::ok(&ModelSet { status: "updated", model: view.model, provider: view.provider, agent_id: agent.0 })
}
