//! An external agent is discovered, discovered again, and removed.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use agentsvc_components::Refusal;
use agentsvc_components::a2a::outbound::{A2aAgent, A2aAgentId, A2aCard, A2aSecret, A2aSentState};
use agentsvc_components::kernel::slot::Slot;

use super::index::{ExternalAgents, QUOTA, SentTasks};
use super::list::A2aAgentView;
use super::settle;
use crate::a2a::{audit_kinds, error_codes, limits};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Place, command};
use crate::kernel::entities::{Removable, Remove, View, change, find};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;

/// Takes in what discovering an external agent brought: a new one, or what has become of one that is known by its URL.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RegisterA2aAgent {
    /// The URL that was discovered, without a slash at its end.
    pub url: String,
    /// The name by which it is to be known here. Default: as it is known already, else that of the card.
    pub name: Option<String>,
    /// What its card says.
    pub card: A2aCard,
    /// The header that requests carry; `Some(None)` takes it away, `None` keeps what there is.
    #[serde(with = "crate::kernel::patch")]
    pub secret: Option<Option<A2aSecret>>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredA2aAgent {
    /// The external agent.
    pub view: A2aAgentView,
    /// It was not known before.
    pub is_new: bool,
    /// Its card is another one than before.
    pub has_changed: bool,
}

command! {
    write "register_a2a_agent" RegisterA2aAgent => DiscoveredA2aAgent, Root, |it, world|
        Answer::stored(register(world, it))
}

fn register(world: &mut World, it: RegisterA2aAgent) -> Result<DiscoveredA2aAgent, Refusal> {
    check_lengths(&it)?;
    let known = world.resource::<ExternalAgents>().by_url(&it.url);
    let before = known.and_then(|id| A2aAgentView::seen(world, id).ok());
    let name = match (it.name.as_deref(), &before) {
        (None, Some(before)) => before.agent.name.clone(),
        (given, _) => checked_name(given.unwrap_or(&it.card.name))?,
    };
    if world.resource::<ExternalAgents>().by_name(&name).is_some_and(|id| Some(id) != known) {
        let text = format!("an external A2A agent named {name:?} with another URL exists; give it another `name`");
        return Err(Refusal::of(error_codes::A2A_EXTERNAL_AGENT_EXISTS, text));
    }
    let now = world.resource::<Now>().0;
    let has_changed = before.as_ref().is_some_and(|before| before.agent.card.digest != it.card.digest);
    let mut agent = before.as_ref().map_or_else(
        || A2aAgent { url: it.url.as_str().into(), created_at: now, ..A2aAgent::default() },
        |before| before.agent.clone(),
    );
    let bytes_before = before.as_ref().map_or(0, |before| before.agent.bytes());
    (agent.name, agent.updated_at) = (name, now);
    if has_changed {
        agent.changed_at = Some(now);
    }
    // A dialect that was found out by asking holds as long as the card is the same.
    if has_changed || before.is_none() {
        agent.card = it.card;
    }
    let has_new_secret = it.secret.is_some();
    if let Some(secret) = it.secret {
        agent.secret = secret;
    }
    let more = agent.bytes().saturating_sub(bytes_before);
    QUOTA.admit(world.resource::<ExternalAgents>().used, usize::from(before.is_none()), more)?;
    let details = json!({
        "name": agent.name, "url_origin": origin_of(&agent.url), "endpoint_origin": origin_of(&agent.card.endpoint),
        "card_changed": has_changed, "secret_changed": has_new_secret,
    });
    let id = match before {
        Some(before) => {
            let entity = find::<A2aAgent>(world, before.id)?;
            change(world, entity, |it: &mut A2aAgent| *it = agent);
            before.id
        }
        None => {
            let id: A2aAgentId = mint(world, Slot::ROOT);
            let entity = world.spawn((id, agent)).id();
            world.mark(entity);
            id
        }
    };
    note(world, id, details);
    Ok(DiscoveredA2aAgent { view: A2aAgentView::seen(world, id)?, is_new: known.is_none(), has_changed })
}

fn check_lengths(it: &RegisterA2aAgent) -> Result<(), Refusal> {
    if it.url.len() > limits::A2A_AGENT_URL_BYTES_MAX || it.card.endpoint.len() > limits::A2A_AGENT_URL_BYTES_MAX {
        let text = format!("a URL has more than {} bytes", limits::A2A_AGENT_URL_BYTES_MAX);
        return Err(Refusal::bad_field("url", text));
    }
    if it.card.bytes() > limits::A2A_CARD_BYTES_MAX {
        let text = format!("the agent card has more than {} bytes of text", limits::A2A_CARD_BYTES_MAX);
        return Err(Refusal::bad_field("url", text));
    }
    Ok(())
}

fn checked_name(name: &str) -> Result<Box<str>, Refusal> {
    let (name, most) = (name.trim(), limits::A2A_AGENT_NAME_BYTES_MAX);
    let bad = |text: String| Err(Refusal::bad_field("name", text));
    match name {
        "" => bad("the agent card has no name; give a `name`".to_owned()),
        name if name.len() > most => bad(format!("name is longer than {most} bytes")),
        name if name.chars().any(char::is_control) => bad("name must not contain control characters".to_owned()),
        name => Ok(name.into()),
    }
}

/// Scheme, host and port of a URL. The rest may hold a secret.
fn origin_of(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    &url[..end]
}

impl Removable for A2aAgent {
    const REMOVE: &'static str = "remove_a2a_agent";
    const PLACE: Place<Remove<Self>> = Place::Root;
    type Reply = ();

    /// Its open tasks end; the ended ones stay for those who read them.
    fn removed(self, world: &mut World, id: A2aAgentId) {
        settle::cancel_jobs(world, id);
        for task in world.resource::<SentTasks>().open_of(id) {
            settle::end(world, task, A2aSentState::Cancelled, None, Some("the external agent was removed".to_owned()));
        }
        let details = json!({ "a2a_agent": id, "name": self.name });
        world.audit(audit_kinds::A2A_AGENT_REMOVED, None, details);
    }
}

fn note(world: &mut World, id: A2aAgentId, mut details: Value) {
    details["a2a_agent"] = json!(id);
    world.audit(audit_kinds::A2A_AGENT_DISCOVERED, None, details);
}
