//! The rules of instances come with the configuration.

use std::collections::BTreeSet;

use agentsvc_components::Refusal;
use agentsvc_components::channel::ChannelId;
use agentsvc_components::channel::rules::{ChannelInstance, InstanceRules};
use agentsvc_components::kernel::slot::Slot;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::index::Instances;
use super::metrics::ChannelCounts;
use super::{audit_kinds, limits};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::change;
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;
use crate::manifest::channels::check_overrides;

/// The instances of the configuration, all of them: sent at the start and at each reload. Rules of instances that are not
/// among them go; their conversations stay. Refused as a whole (400) when one of them is wrong.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SetInstances(pub Vec<InstanceRules>);

command! {
    write "set_channel_instances" SetInstances => (), Root, |it, world| Answer::stored(set(world, it.0))
}

fn set(world: &mut World, rules: Vec<InstanceRules>) -> Result<(), Refusal> {
    check(&rules)?;
    let is_kept = |name: &str| rules.iter().any(|it| *it.name == *name);
    let gone: Vec<Entity> = world.resource::<Instances>().after(None).map(|(_, entity)| entity).collect();
    let (mut removed, mut changed) = (Vec::new(), Vec::new());
    for entity in gone {
        let name = world.get::<ChannelInstance>(entity).map(|it| it.rules.name.clone()).unwrap_or_default();
        if !is_kept(&name) {
            world.despawn(entity);
            removed.push(name);
        }
    }
    world.resource_mut::<ChannelCounts>().keep(is_kept);
    for rules in rules {
        let known = world.resource::<Instances>().named(&rules.name);
        let known = known.and_then(|id| world.resource::<Instances>().get(id));
        if known.and_then(|at| world.get::<ChannelInstance>(at)).is_some_and(|it| it.rules == rules) {
            continue;
        }
        changed.push(rules.name.clone());
        match known {
            Some(entity) => change(world, entity, |it: &mut ChannelInstance| it.rules = rules),
            None => {
                let id: ChannelId = mint(world, Slot::ROOT);
                let entity = world.spawn((id, ChannelInstance { rules, minute: (0, 0) })).id();
                world.mark(entity);
            }
        }
    }
    if !removed.is_empty() || !changed.is_empty() {
        world.audit(audit_kinds::CHANNELS_SET, None, json!({ "set": changed, "removed": removed }));
    }
    Ok(())
}

/// Refuses rules that are wrong; the refusal names the instance.
fn check(all: &[InstanceRules]) -> Result<(), Refusal> {
    let bad = |field: String, text: String| Err(Refusal::bad_field(field, text));
    let bytes: usize = all.iter().map(InstanceRules::bytes).sum();
    if all.len() > limits::CHANNELS_MAX || bytes > limits::CHANNELS_BYTES_MAX {
        let text = format!(
            "there are {} channels with {bytes} bytes of rules; the limits are {} and {}",
            all.len(),
            limits::CHANNELS_MAX,
            limits::CHANNELS_BYTES_MAX
        );
        return bad("sidecar_channels".to_owned(), text);
    }
    let mut names = BTreeSet::new();
    for of in all {
        if of.name.is_empty() || of.name.len() > limits::CHAT_ID_BYTES_MAX || of.name.chars().any(char::is_control) {
            return bad(
                "sidecar_channels.name".to_owned(),
                "a channel has no name, or one that is too long".to_owned(),
            );
        }
        if !names.insert(&of.name) {
            return bad("sidecar_channels.name".to_owned(), format!("two channels are named {:?}", of.name));
        }
        if let Err((key, text)) = check_overrides(&of.overrides) {
            return bad(format!("sidecar_channels.{key}"), format!("channel {:?}: {key}: {text}", of.name));
        }
    }
    Ok(())
}
