//! Instances of hands are paused, resumed and set, and go.

use std::collections::BTreeSet;

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::agent::{Agent, WakesPaused};
use agentsvc_components::hand::{HandInstance, HandInstanceId, HandMember, HandState, HandVariable};
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, Refusal};

use super::error_codes::{HAND_CHANGED, HAND_STATE};
use super::index::{Instances, QUOTA, change_instance};
use super::list::HandView;
use super::values::Config;
use super::{audit_kinds, note};
use crate::agent::{remove, set_manifest};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Place, command};
use crate::kernel::entities::{Removable, Remove, View, find, state};
use crate::kernel::index;

/// Pauses an instance: its agents answer messages, and do nothing by themselves. Turns that are open go on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PauseHand(pub HandInstanceId);

command! {
    /// Refused when it is paused (409).
    write "pause_hand" PauseHand => HandView, All, |it, world| Answer::stored(set_state(world, it.0, HandState::Paused))
}

/// Resumes an instance. Slots that passed meanwhile do not fire.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ResumeHand(pub HandInstanceId);

command! {
    /// Refused when it runs (409).
    write "resume_hand" ResumeHand => HandView, All, |it, world| Answer::stored(set_state(world, it.0, HandState::Running))
}

fn set_state(world: &mut World, id: HandInstanceId, to: HandState) -> Result<HandView, Refusal> {
    let entity = find::<HandInstance>(world, id)?;
    let was = state::<HandInstance>(world, id).map(|instance| instance.state);
    if was == Some(to) {
        let text = format!("the instance is already {}", to.as_str());
        return Err(Refusal::conflict(text).with_code(HAND_STATE));
    }
    let now = world.resource::<Now>().0;
    change_instance(world, entity, |instance| (instance.state, instance.updated_at) = (to, now));
    hold(world, entity);
    let kind = if to == HandState::Paused { audit_kinds::HAND_PAUSED } else { audit_kinds::HAND_RESUMED };
    note(world, kind, id, json!({}));
    HandView::seen(world, id)
}

/// The agents of an instance, those that live.
fn living(world: &World, entity: Entity) -> Vec<Entity> {
    let Some(instance) = world.get::<HandInstance>(entity) else { return Vec::new() };
    instance.members.iter().filter_map(|member| index::agent(world, member.agent).ok()).collect()
}

/// Members whose agents do not live are gone.
pub(super) fn lose_agents(world: &mut World, entity: Entity) {
    let Some(instance) = world.get::<HandInstance>(entity) else { return };
    let is_lost = |member: &HandMember| !member.is_gone && index::agent(world, member.agent).is_err();
    let lost: Vec<AgentId> = instance.members.iter().filter(|it| is_lost(it)).map(|it| it.agent).collect();
    lost.into_iter().for_each(|agent| agent_removed(world, agent));
}

/// Lets the agents of an instance rest, or act, as its state says.
pub(super) fn hold(world: &mut World, entity: Entity) {
    let is_paused = world.get::<HandInstance>(entity).is_some_and(|instance| instance.state == HandState::Paused);
    for agent in living(world, entity) {
        if is_paused {
            world.entity_mut(agent).insert(WakesPaused);
        } else {
            world.entity_mut(agent).remove::<WakesPaused>();
        }
    }
}

/// Puts other values of settings in force, in the prompts of the agents too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetHandConfig {
    /// Which instance.
    pub instance: HandInstanceId,
    /// The values that it had when the others were chosen.
    pub was: Config,
    /// The values that it has from here on.
    pub config: Config,
    /// Variables of its commands.
    pub environment: Vec<HandVariable>,
    /// The section of prompts that says the settings.
    pub settings_text: Box<str>,
}

command! {
    /// Refused when the values changed meanwhile (409), or without room (429).
    write "set_hand_config" SetHandConfig => HandView, All, |it, world| Answer::stored(set_config(world, it))
}

fn set_config(world: &mut World, command: SetHandConfig) -> Result<HandView, Refusal> {
    let SetHandConfig { instance: id, was, config, environment, settings_text } = command;
    let entity = find::<HandInstance>(world, id)?;
    let Some(before) = state::<HandInstance>(world, id).cloned() else {
        return Err(Refusal::not_found("hand instance", id));
    };
    if before.config != was {
        let text = "the settings of the instance changed meanwhile; read them and try again";
        return Err(Refusal::conflict(text).with_code(HAND_CHANGED));
    }
    let after = HandInstance { config, environment, settings_text, ..before.clone() };
    QUOTA.admit(world.resource::<Instances>().used, 0, after.bytes().saturating_sub(before.bytes()))?;
    let agents = living(world, entity);
    check_room(world, &agents, before.settings_text.len(), after.settings_text.len())?;
    if before.settings_text != after.settings_text {
        for agent in agents {
            replace_section(world, agent, &before.settings_text, &after.settings_text);
        }
    }
    let all = before.config.keys().chain(after.config.keys());
    let keys: BTreeSet<Box<str>> =
        all.filter(|key| before.config.get(*key) != after.config.get(*key)).cloned().collect();
    let now = world.resource::<Now>().0;
    change_instance(world, entity, |instance| *instance = HandInstance { updated_at: now, ..after });
    note(world, audit_kinds::HAND_SETTINGS_CHANGED, id, json!({ "keys": keys }));
    HandView::seen(world, id)
}

/// Refuses a section that makes the manifest of an agent too long.
fn check_room(world: &World, agents: &[Entity], was: usize, now: usize) -> Result<(), Refusal> {
    let (more, most) = (now.saturating_sub(was), limit::MANIFEST_BYTES_MAX);
    let is_long =
        |agent: &Entity| world.get::<Agent>(*agent).is_some_and(|it| it.manifest.manifest.bytes() + more > most);
    if more > 0 && agents.iter().any(is_long) {
        let text = format!("config: the texts of an agent would be longer than {most} bytes");
        return Err(Refusal::bad_field("config", text));
    }
    Ok(())
}

/// Puts the section `now` in the place of `was` in an agent's prompt; behind the prompt where it is not there any more.
fn replace_section(world: &mut World, agent: Entity, was: &str, now: &str) {
    let Some(own) = world.get::<Agent>(agent) else { return };
    let mut manifest = own.manifest.manifest.clone();
    let prompt = &*manifest.system_prompt;
    let changed = match prompt.find(was).filter(|_| !was.is_empty()) {
        Some(at) => format!("{}{now}{}", &prompt[..at], &prompt[at + was.len()..]),
        None => format!("{prompt}{now}"),
    };
    manifest.system_prompt = changed.into();
    set_manifest(world, agent, manifest);
}

impl Removable for HandInstance {
    const REMOVE: &'static str = "deactivate_hand";
    const PLACE: Place<Remove<Self>> = Place::All;
    type Reply = ();

    fn removed(self, world: &mut World, id: HandInstanceId) {
        note(world, audit_kinds::HAND_DEACTIVATED, id, json!({}));
        for member in self.members.iter().filter(|member| !member.is_gone) {
            // One that is gone already has nothing to refuse.
            let _ = remove(world, member.agent, None);
        }
    }
}

/// An agent was deleted by itself: its instance says so.
pub(super) fn agent_removed(world: &mut World, agent: AgentId) {
    let Some(entity) =
        world.resource::<Instances>().instance_of(agent).and_then(|id| find::<HandInstance>(world, id).ok())
    else {
        return;
    };
    change_instance(world, entity, |instance| {
        instance.members.iter_mut().filter(|member| member.agent == agent).for_each(|member| member.is_gone = true);
    });
}
