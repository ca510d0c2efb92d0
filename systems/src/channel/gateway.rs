//! Messages that a gateway passes on over the API: the policies of the agent hold for them as for those of channels.

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::manifest::channel::{DmPolicy, GroupPolicy};
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::prelude::World;

use super::rules;
use crate::agent::reached;
use crate::kernel::command::{Answer, command};
use crate::people;

/// Does an agent answer a message that a gateway passes on? Its channels, its `[channel_overrides]` and the role of the sender
/// say so. A gateway lets people in itself: where no policy is set, all are.
#[derive(Clone, Debug)]
pub struct AnswersGateway {
    /// Which agent.
    pub agent: AgentId,
    /// The kind of the chat's platform, such as `whatsapp`.
    pub channel_type: Box<str>,
    /// The id of the sender; empty where none is named.
    pub sender: Box<str>,
    /// Is the chat a group?
    pub is_group: bool,
    /// Does the message name the agent?
    pub was_mentioned: bool,
    /// What it says.
    pub text: String,
}

command! {
    read "answers_gateway" AnswersGateway => bool, Id(|it| it.agent.0), |it, world| Answer::Now(answers(world, &it))
}

fn answers(world: &mut World, it: &AnswersGateway) -> Result<bool, Refusal> {
    let entity = reached(world, it.agent)?;
    let Some(manifest) = world.get::<Agent>(entity).map(|agent| &agent.manifest.manifest) else { return Ok(true) };
    let (channels, of) = (&manifest.channels, manifest.channel_overrides.clone());
    if !channels.is_empty() && !channels.contains(&it.channel_type) {
        return Ok(false);
    }
    let users = people::bound_to(world, &it.channel_type);
    let role = users.into_iter().find(|(sender, _)| *sender == it.sender && !sender.is_empty()).map(|(_, role)| role);
    if role == Some(Role::Viewer) {
        return Ok(false);
    }
    Ok(match it.is_group {
        false => match of.dm_policy {
            None | Some(DmPolicy::Respond) => true,
            Some(DmPolicy::AllowedOnly) => role.is_some(),
            Some(DmPolicy::Ignore) => false,
        },
        true => match of.group_policy() {
            GroupPolicy::All => true,
            GroupPolicy::MentionOnly => it.was_mentioned || rules::triggers(world, &of, &it.text),
            GroupPolicy::CommandsOnly => it.text.trim_start().starts_with('/'),
            GroupPolicy::Ignore => false,
        },
    })
}
