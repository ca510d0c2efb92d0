//! A request of a hook becomes a command for the world.

use std::sync::Arc;

use agentsvc_components::hook::{HookCallId, HookKind, HookTarget};
use agentsvc_components::kernel::id::DurableId;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::turn::ModelName;
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::agent::{AgentFilter, FindSharedAgent, GetAgent, ListAgents};
use agentsvc_systems::hook::{SendHookCall, limits};
use agentsvc_systems::injection::{InjectionPolicy, Shielded};
use agentsvc_systems::kernel::record::{self, hex};

use super::error_codes::{HOOK_AGENT_UNNAMED, HOOK_RECIPIENT_DENIED};
use super::host::HookHost;
use crate::delivery::channel_out::ChannelOut;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::injection::shielded;
use crate::model::catalog::Models;

/// The header that names a call.
const KEY: &str = "idempotency-key";

/// A call whose form is right.
pub(crate) struct Incoming {
    pub(crate) kind: HookKind,
    pub(crate) agent: Option<String>,
    pub(crate) text: String,
    pub(crate) waits: bool,
    pub(crate) timeout_ms: u32,
    pub(crate) model: Option<ModelName>,
    pub(crate) target: Option<HookTarget>,
    /// What tells it apart from another call under the same key.
    pub(crate) digest: String,
}

/// The digest of a call.
pub(crate) fn digest(parts: &[&[u8]]) -> String {
    hex(&record::digest(parts))
}

/// The text of a field, neither empty nor longer than `most` bytes.
///
/// # Errors
/// 400 naming the field.
pub(crate) fn text(field: &str, given: Option<String>, most: usize) -> Result<String, Error> {
    let text = given.ok_or_else(|| Error::bad_field(field, format!("{field}: missing")))?;
    if text.trim().is_empty() {
        return Err(Error::bad_field(field, format!("{field} must not be empty")));
    }
    if text.len() > most {
        return Err(Error::bad_field(field, format!("{field} is longer than {most} bytes")));
    }
    Ok(text)
}

/// The model that a call asks for.
///
/// # Errors
/// 400 naming the field for one that is not known.
pub(crate) fn model(call: &Call, given: Option<String>) -> Result<Option<ModelName>, Error> {
    let Some(name) = given.filter(|name| !name.is_empty()) else { return Ok(None) };
    let models = call.api.service::<dyn Models>()?;
    let alias =
        models.alias(&name).map(|(provider, model)| ModelName { provider: provider.into(), model: model.into() });
    let known =
        || models.model(&name).map(|entry| ModelName { provider: entry.provider.into(), model: entry.id.into() });
    let unknown = || Error::bad_field("model", "model: no such model or alias; `GET /api/models` lists them");
    alias.or_else(known).ok_or_else(unknown).map(Some)
}

/// Where an answer goes beside the caller.
///
/// # Errors
/// 400 naming the field, also for a channel that there is not; 403 for a recipient that the configuration does not name.
pub(crate) fn target(
    call: &Call,
    deliver: bool,
    channel: Option<String>,
    recipient: Option<String>,
) -> Result<Option<HookTarget>, Error> {
    let most = limits::HOOK_CHANNEL_BYTES_MAX;
    let checked = |field: &str, given: Option<String>| match given.filter(|text| !text.is_empty()) {
        Some(text) if text.len() > most || text.chars().any(char::is_control) => {
            Err(Error::bad_field(field, format!("{field} must be one line of at most {most} bytes")))
        }
        given => Ok(given),
    };
    let (channel, recipient) = (checked("channel", channel)?, checked("recipient", recipient)?);
    let Some(channel) = channel else {
        return match (deliver, recipient) {
            (true, _) => Err(Error::bad_field("channel", "channel is missing; `deliver` needs the name of a channel")),
            (false, Some(_)) => Err(Error::bad_field("channel", "channel is missing; `recipient` is one of a channel")),
            (false, None) => Ok(None),
        };
    };
    let channels = call.api.services.get::<dyn ChannelOut>().filter(|channels| channels.has(&channel));
    let no_channel = || Error::bad_field("channel", format!("channel: there is no channel {channel:?}"));
    let channels = channels.ok_or_else(no_channel)?;
    if recipient.as_ref().is_some_and(|recipient| deliver && !channels.may_reach(&channel, recipient)) {
        let text = "recipient: callers of hooks may not have answers sent to this conversation";
        return Err(Error::of(HOOK_RECIPIENT_DENIED, text).with("field", "recipient"));
    }
    let target = HookTarget { channel: channel.into(), recipient: recipient.map(Into::into) };
    Ok(deliver.then_some(target))
}

/// The `Idempotency-Key` of the request; empty without one.
fn key(call: &Call, kind: HookKind) -> Result<String, Error> {
    let Some(given) = call.headers().get(KEY) else { return Ok(String::new()) };
    let most = limits::HOOK_KEY_BYTES_MAX;
    let text = given.to_str().ok().map(str::trim).filter(|text| !text.is_empty() && text.len() <= most);
    let bad =
        || Error::bad_field("Idempotency-Key", format!("Idempotency-Key must be 1 to {most} printable characters"));
    Ok(format!("{}:{}", kind.as_str(), text.ok_or_else(bad)?))
}

/// The agent that a call means: the named one, else the only one.
async fn agent(call: &Call, named: Option<&str>) -> Result<AgentId, Error> {
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        let found = match name.parse::<AgentId>() {
            Ok(id) => call.ask(GetAgent(id)).await.map(|agent| agent.id),
            Err(_) => call.ask(FindSharedAgent(name.into())).await.map(|agent| agent.id),
        };
        return found.map_err(|error| error.or_with("field", "agent"));
    }
    let page = call.ask(ListAgents { filter: AgentFilter::default(), after: None, limit: 2 }).await?;
    match &*page.items {
        [only] => Ok(only.id),
        [] => Err(Error::not_found("there is no agent; create one first").with("field", "agent")),
        _ => {
            let text = "there are several agents; name one in `agent`";
            Err(Error::of(HOOK_AGENT_UNNAMED, text).with("field", "agent"))
        }
    }
}

/// The session that hooks of an agent talk in. What callers write does not come into the user's conversation.
fn session_of(agent: AgentId) -> SessionId {
    let digest = record::digest([&b"hook session"[..], agent.to_string().as_bytes()]);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    SessionId(Slot::beside(agent.to_uuid(), bytes))
}

/// Makes the command of a call.
///
/// # Errors
/// 400 and 404 naming the field; 500 without randomness.
pub(crate) async fn command(call: &Call, host: &Arc<dyn HookHost>, it: Incoming) -> Result<SendHookCall, Error> {
    let key = key(call, it.kind)?;
    let agent = agent(call, it.agent.as_deref()).await?;
    let policy = *call.api.state::<InjectionPolicy>();
    let Shielded { text, found } = shielded(call.asker(), policy, "a hook", it.text).await?;
    let random = host.random().map_err(|why| Error::internal(format!("no random id: {why}")))?;
    Ok(SendHookCall {
        id: HookCallId(Slot::beside(agent.to_uuid(), random.into_bytes())),
        agent,
        kind: it.kind,
        waits: it.waits,
        session: (it.kind == HookKind::Agent).then(|| session_of(agent)),
        key,
        digest: digest(&[it.digest.as_bytes(), agent.to_string().as_bytes()]),
        message: text,
        taint: Taint::EVENT,
        found: found.map(|found| *found).into_iter().collect(),
        timeout_ms: it.timeout_ms,
        model: it.model,
        target: it.target,
        held: false,
        trace: call.trace.map(|trace| trace.to_string().into()),
    })
}
