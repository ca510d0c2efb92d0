//! A hand is activated: its agents are spawned together, or none of them.

use std::collections::BTreeMap;

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use agentsvc_components::Refusal;
use agentsvc_components::hand::{HandInstance, HandInstanceId, HandMember, HandVariable};
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::slot::Slot;

use super::index::{Instances, QUOTA, change_instance};
use super::list::HandView;
use super::prepare::{NewMember, team};
use super::values::Config;
use super::{audit_kinds, note};
use crate::agent::{SpawnAgent, check_together, spawn_all};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::View;
use crate::kernel::id_generator::mint;
use crate::manifest;

/// Activates a hand: a new running instance with agents of its own. The names of the agents of all instances but the first end
/// with `#` and the number of the instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ActivateHand {
    /// The hand's id.
    pub hand: Box<str>,
    /// Its version.
    pub version: Box<str>,
    /// Its agents.
    pub members: Vec<NewMember>,
    /// Index of the coordinator among them.
    pub coordinator: u32,
    /// Values of settings.
    pub config: Config,
    /// Variables of its commands.
    pub environment: Vec<HandVariable>,
    /// The section of the agents' prompts that says the settings; they have it already.
    pub settings_text: Box<str>,
}

command! {
    /// Refused: no agent is the coordinator (400), an agent of such a name exists (409), or no room (429).
    write "activate_hand" ActivateHand => HandView, All, |it, world| Answer::stored(activate(world, it))
}

fn activate(world: &mut World, command: ActivateHand) -> Result<HandView, Refusal> {
    let ActivateHand { hand, version, members, coordinator, config, environment, settings_text } = command;
    let number = world.resource::<Instances>().free_number(&hand);
    let named: Vec<(Box<str>, &NewMember)> =
        members.iter().map(|member| (numbered(&member.name, number), member)).collect();
    // Before anything is minted: a refusal changes nothing.
    check_names(&named)?;
    if members.get(coordinator as usize).is_none() {
        return Err(Refusal::bad_field("coordinator", "coordinator: it is none of the agents"));
    }
    let now = world.resource::<Now>().0;
    let instance = HandInstance {
        hand,
        version,
        number,
        coordinator,
        config,
        environment,
        settings_text,
        activated_at: now,
        updated_at: now,
        ..HandInstance::default()
    };
    let names: usize = named.iter().map(|(name, member)| name.len() + member.role.len()).sum();
    QUOTA.admit(world.resource::<Instances>().used, 1, instance.bytes() + names)?;
    let mut commands = (0..named.len()).map(|at| spawn_command(&named, at)).collect::<Result<Vec<_>, _>>()?;
    check_together(world, &commands)?;
    let id: HandInstanceId = mint(world, Slot::ROOT);
    commands.iter_mut().for_each(|command| tag(command, id));
    let spawned = spawn_all(world, commands)?;
    let entity = world.spawn((id, instance)).id();
    let roles = members.iter().map(|member| member.role.clone());
    let members: Vec<HandMember> = std::iter::zip(roles, spawned)
        .map(|(role, agent)| HandMember { role, agent: agent.agent, name: agent.name, is_gone: false })
        .collect();
    change_instance(world, entity, |instance| instance.members = members);
    note(world, audit_kinds::HAND_ACTIVATED, id, json!({}));
    HandView::seen(world, id)
}

/// The name of an agent in the instance of this number.
fn numbered(name: &str, number: u32) -> Box<str> {
    if number == 1 { name.into() } else { format!("{name}#{number}").into() }
}

fn check_names(named: &[(Box<str>, &NewMember)]) -> Result<(), Refusal> {
    for (name, member) in named {
        let field = format!("agents.{}.name", member.role);
        manifest::validate_name(name).map_err(|why| Refusal::bad_field(&field, format!("{field}: {why}")))?;
    }
    Ok(())
}

/// Names the instance in the last tag of an agent.
fn tag(command: &mut SpawnAgent, id: HandInstanceId) {
    if let Some(tag) = command.manifest.tags.last_mut() {
        *tag = instance_tag(id);
    }
    command.hash = manifest::hash(&command.manifest);
}

fn instance_tag(id: HandInstanceId) -> Box<str> {
    format!("hand_instance:{id}").into()
}

/// The agent at place `at`, with what an instance adds to its manifest; its tag names none yet.
fn spawn_command(named: &[(Box<str>, &NewMember)], at: usize) -> Result<SpawnAgent, Refusal> {
    let (name, member) = &named[at];
    let mut own = member.manifest.clone();
    own.tags.push(instance_tag(HandInstanceId(Uuid::nil())));
    own.system_prompt = format!("{}{}", own.system_prompt, team(named, at)).into();
    if own.bytes() > limit::MANIFEST_BYTES_MAX {
        let (field, most) = (format!("agents.{}", member.role), limit::MANIFEST_BYTES_MAX);
        return Err(Refusal::bad_field(&field, format!("{field}: the agent's texts are longer than {most} bytes")));
    }
    // The text is kept as written; what differs is put into it when it is shown.
    Ok(SpawnAgent { name: name.clone(), hash: manifest::hash(&own), manifest: own, text: member.text.clone() })
}

/// Roles and agents, for the audit log.
pub(super) fn agents(instance: &HandInstance) -> BTreeMap<&str, &str> {
    instance.members.iter().map(|member| (&*member.role, &*member.name)).collect()
}
