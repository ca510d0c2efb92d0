//! Events of the world become comms events.

use agentsvc_components::agent::{Agent, SpawnedBy};
use agentsvc_components::comms::{CommsEvent, CommsEventId, CommsKind};
use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::task::Task;
use agentsvc_components::turn::Turn;
use agentsvc_components::{AgentId, TurnId};
use bevy_ecs::prelude::{Resource, World};

use super::limits;
use crate::kernel::clock::Now;
use crate::kernel::engine::Told;
use crate::kernel::entities::{Entities, indexed, state};
use crate::kernel::id_generator::mint;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::{Emit, take_whole};

indexed!(CommsEvent: (), "comms event");

/// A comms event as listeners hear it.
pub type Noted = (CommsEventId, CommsEvent);

/// The comms events of the current step.
#[derive(Resource, Default)]
pub(super) struct Fresh(Vec<Noted>);

/// The comms events of the step, which ends with them.
pub(super) fn take(world: &mut World) -> Option<Told> {
    let fresh = &mut world.resource_mut::<Fresh>().0;
    if fresh.is_empty() { None } else { Some(Box::new(take_whole(fresh))) }
}

/// The comms events of what a step told.
///
/// # Errors
/// What was told, when it is something else.
pub fn noted_of(told: Told) -> Result<Vec<Noted>, Told> {
    told.downcast().map(|noted| *noted)
}

/// Something happened.
pub(super) fn happened(world: &mut World, EventEnvelope { event, at, .. }: &EventEnvelope) {
    let found = match event {
        Event::MessageReceived { agent, turn, text, .. } => {
            sender(world, *turn).map(|from| (CommsKind::AgentMessage, Some(from), Some(*agent), &**text))
        }
        Event::AgentSpawned { agent, .. } => {
            // What clients create and delete is no exchange between agents, and may be 100,000 of them at once.
            let parent = index::agent(world, *agent).ok().and_then(|agent| world.get::<SpawnedBy>(agent));
            parent.map(|by| (CommsKind::AgentSpawned, Some(*agent), Some(by.0), ""))
        }
        Event::AgentTerminated { agent, by, .. } => {
            let by = by.and_then(|turn| owner(world, turn));
            by.map(|by| (CommsKind::AgentTerminated, Some(*agent), Some(by), ""))
        }
        Event::TaskPosted { task, title, assignee_id, .. } => {
            let by = state::<Task>(world, *task).and_then(|task| task.posted_by);
            Some((CommsKind::TaskPosted, by, *assignee_id, title.as_str()))
        }
        Event::TaskClaimed { title, agent, .. } => Some((CommsKind::TaskClaimed, Some(*agent), None, title.as_str())),
        Event::TaskCompleted { title, agent, .. } => Some((CommsKind::TaskCompleted, *agent, None, title.as_str())),
        _ => None,
    };
    let Some((kind, source, target, text)) = found else { return };
    // Of an agent that is gone only its event has the name.
    let source_name = match event {
        Event::AgentSpawned { name, .. } | Event::AgentTerminated { name, .. } => name.as_str().into(),
        _ => name_of(world, source),
    };
    let target_name = name_of(world, target);
    let detail = cut(text);
    note(world, CommsEvent { at: *at, kind, source, source_name, target, target_name, detail });
}

/// A client has sent a message in the name of an agent.
pub(super) fn sent(world: &mut World, from: AgentId, to: AgentId, text: &str) {
    let (source_name, target_name) = (name_of(world, Some(from)), name_of(world, Some(to)));
    let (at, kind) = (world.resource::<Now>().0, CommsKind::AgentMessage);
    let (source, target) = (Some(from), Some(to));
    note(world, CommsEvent { at, kind, source, source_name, target, target_name, detail: cut(text) });
}

/// The agent whose turn began this one.
fn sender(world: &World, turn: TurnId) -> Option<AgentId> {
    let turn = world.get::<Turn>(index::turn(world, turn)?)?;
    turn.link.as_deref().map(|link| link.agent)
}

/// Whose turn it is.
fn owner(world: &World, turn: TurnId) -> Option<AgentId> {
    let turn = world.get::<Turn>(index::turn(world, turn)?)?;
    Some(id_of(world, turn.agent))
}

fn name_of(world: &World, agent: Option<AgentId>) -> Box<str> {
    let agent = agent.and_then(|agent| index::agent(world, agent).ok());
    agent.and_then(|agent| world.get::<Agent>(agent)).map(|agent| agent.name.clone()).unwrap_or_default()
}

fn cut(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(limits::COMMS_DETAIL_BYTES_MAX)].into()
}

/// Keeps an event in place of the oldest one.
fn note(world: &mut World, event: CommsEvent) {
    while world.resource::<Entities<CommsEvent>>().len() >= limits::COMMS_EVENTS_KEPT {
        let oldest = world.resource::<Entities<CommsEvent>>().after(None).next();
        let Some((_, oldest)) = oldest else { break };
        world.despawn(oldest);
    }
    let id: CommsEventId = mint(world, Slot::ROOT);
    world.resource_mut::<Fresh>().0.push((id, event.clone()));
    let entity = world.spawn((id, event)).id();
    world.mark(entity);
}
