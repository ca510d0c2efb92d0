//! An event is published.

use crate::event::audit_kinds;
use crate::event::metrics::EventTotals;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, Refusal, TurnId};
use serde_json::json;
use uuid::Uuid;

use super::told::Tell;
use crate::audit::Audit;
use crate::kernel::acting::Acting;
use crate::kernel::command::{Answer, command};
use crate::kernel::index;
use crate::kernel::reaction::{check, react};

/// Publishes a custom event: triggers whose pattern is `custom` with this type, `all`, or the text of the payload match
/// it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PublishEvent {
    /// What kind of thing, in the publisher's words: `a` to `z`, digits, `_`, `.` and `-`.
    pub event_type: String,
    /// Any JSON, compact.
    pub payload: Box<str>,
    /// The agent that publishes it; `None` is a client.
    pub agent: Option<AgentId>,
    /// The turn that does it, if one does.
    pub by: Option<TurnId>,
}

command! {
    write "publish_event" PublishEvent => (), IdOrRoot(|it| it.agent.map(|id| id.0)), |it, world|
        Answer::stored(publish(world, it))
}

/// A custom event is to be published; it is told after the rules.
pub(crate) struct Publishing {
    /// Its type.
    pub(crate) event_type: String,
    /// Bytes of its payload.
    pub(crate) bytes: usize,
    /// The user, key or agent that publishes it, if it is one.
    pub(crate) who: Option<Uuid>,
}

fn publish(world: &mut World, command: PublishEvent) -> Result<(), Refusal> {
    let PublishEvent { event_type, payload, agent, by } = command;
    check_type(&event_type)?;
    if payload.len() > limit::EVENT_PAYLOAD_BYTES_MAX {
        let most = limit::EVENT_PAYLOAD_BYTES_MAX;
        return Err(Refusal::bad_field("payload", format!("payload is longer than {most} bytes of compact JSON")));
    }
    if let Some(agent) = agent {
        index::agent(world, agent).map_err(|refusal| Refusal { field: Some("agent_id".to_owned()), ..refusal })?;
    }
    let who = world.resource::<Acting>().0.user_or_key().or(agent.map(|agent| agent.0));
    let publishing = Publishing { event_type, bytes: payload.len(), who };
    check(world, &publishing)?;
    react(world, &publishing);
    let event_type = publishing.event_type;
    world.resource_mut::<EventTotals>().custom += 1;
    world.audit(audit_kinds::EVENT_PUBLISHED, agent, json!({ "event_type": event_type }));
    world.event(Event::Custom { event_type, agent, payload, by });
    Ok(())
}

/// Refuses what cannot be the type of a custom event.
fn check_type(event_type: &str) -> Result<(), Refusal> {
    let most = limit::EVENT_TYPE_BYTES_MAX;
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte);
    let bad = |text: String| Err(Refusal::bad_field("event_type", text));
    if event_type.is_empty() {
        bad("event_type must not be empty".to_owned())
    } else if event_type.len() > most {
        bad(format!("event_type is longer than {most} bytes"))
    } else if !event_type.bytes().all(fits) {
        bad("event_type must contain only a to z, digits, '_', '.' and '-'".to_owned())
    } else {
        Ok(())
    }
}
