//! A session is created, labelled or made current.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::Agent;
use agentsvc_components::session::Session;
use agentsvc_components::{AgentId, Refusal, SessionId};

use super::{admit, clean_label, existing, label_free, owned, spawn};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index, id_of};
use crate::kernel::outbox::Emit;

/// Creates a session; it does not become the current one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateSession {
    /// Whose.
    pub agent: AgentId,
    /// Label, unique within the agent.
    pub label: Option<String>,
}

command! {
    write "create_session" CreateSession => SessionId, Id(|it| it.agent.0), |it, world|
        Answer::stored(create(world, &it))
}

fn create(world: &mut World, command: &CreateSession) -> Result<SessionId, Refusal> {
    let owner = index::agent(world, command.agent)?;
    let label = clean_label(command.label.as_deref().unwrap_or_default())?;
    if let Some(label) = &label {
        label_free(world, owner, label, None)?;
    }
    admit(world, Some(owner))?;
    let entity = spawn(world, owner, None, label);
    Ok(id_of(world, entity))
}

/// Gives a session a label, or takes it away when the label is empty.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetLabel {
    /// Which session.
    pub session: SessionId,
    /// The label.
    pub label: String,
}

command! {
    /// The label as stored.
    write "set_label" SetLabel => Option<String>, Id(|it| it.session.0), |it, world|
        Answer::stored(set_label(world, &it))
}

fn set_label(world: &mut World, command: &SetLabel) -> Result<Option<String>, Refusal> {
    let entity = existing(world, command.session)?;
    let label = clean_label(&command.label)?;
    let now = world.resource::<Now>().0;
    let owner = world.get::<Session>(entity).map(|session| session.agent);
    let owner = owner.ok_or_else(|| Refusal::not_found("session", command.session))?;
    if let Some(label) = &label {
        label_free(world, owner, label, Some(entity))?;
    }
    let mut old = None;
    if let Some(mut session) = world.get_mut::<Session>(entity) {
        old = std::mem::replace(&mut session.label, label.clone().map(Box::new));
        session.updated_at = now;
    }
    let mut index = world.resource_mut::<Index>();
    if let Some(old) = old {
        index.remove_label(owner, &old);
    }
    if let Some(label) = &label {
        index.labels.insert((owner, label.clone()), entity);
    }
    world.mark(entity);
    Ok(label.map(String::from))
}

/// Makes a session the agent's current one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SwitchSession {
    /// Whose.
    pub agent: AgentId,
    /// To which.
    pub session: SessionId,
}

command! {
    write "switch_session" SwitchSession => SessionId, Id(|it| it.agent.0), |it, world|
        Answer::stored(switch(world, it))
}

fn switch(world: &mut World, command: SwitchSession) -> Result<SessionId, Refusal> {
    let owner = index::agent(world, command.agent)?;
    let session = owned(world, owner, command.session)?;
    let now = world.resource::<Now>().0;
    if let Some(mut agent) = world.get_mut::<Agent>(owner) {
        agent.current = session;
        agent.updated_at = now;
    }
    world.mark(owner);
    Ok(command.session)
}
