//! A trigger changes (spec 1, Triggers, rules 1 and 2).

use crate::trigger::audit_kinds;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::trigger::Trigger;
use agentsvc_components::{AgentId, Refusal, TriggerId};
use serde_json::json;

use super::create::{check_template, store, target_of};
use super::index::{QUOTA, SHARED, Triggers};
use super::show::TriggerView;
use crate::agent::acting_holder;
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::patch::set;

/// The fields to change; `None` leaves a field as it is, `Some(None)` takes the override away (rules 1 and 2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerPatch {
    /// The message.
    pub prompt_template: Option<Box<str>>,
    /// Switched on or off.
    pub enabled: Option<bool>,
    /// Fires it has in all, those before included; 0 is without bound.
    pub max_fires: Option<u64>,
    /// Seconds between two fires.
    #[serde(with = "crate::kernel::patch")]
    pub cooldown_secs: Option<Option<u32>>,
    /// Where its turns run.
    #[serde(with = "crate::kernel::patch")]
    pub session_mode: Option<Option<SessionMode>>,
    /// Agent that receives the message instead of the owner.
    #[serde(with = "crate::kernel::patch")]
    pub target: Option<Option<AgentId>>,
}

/// Changes some fields of a trigger. All of them are taken, or none. Refused with 429 when its message becomes longer and
/// there is no room for that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateTrigger {
    /// Which.
    pub trigger: TriggerId,
    /// What.
    pub patch: TriggerPatch,
}

command! {
    /// The trigger as it is now.
    write "update_trigger" UpdateTrigger => TriggerView, Id(|it| it.trigger.0), |it, world|
        Answer::stored(update(world, it))
}

fn update(world: &mut World, command: UpdateTrigger) -> Result<TriggerView, Refusal> {
    let UpdateTrigger { trigger: id, patch } = command;
    let missing = || Refusal::not_found("trigger", id);
    let entity = super::find(world, id)?;
    if let Some(template) = &patch.prompt_template {
        check_template(template)?;
    }
    let target = match patch.target {
        Some(Some(target)) => Some(Some(target_of(world, target)?)),
        Some(None) => Some(None),
        None => None,
    };
    let holder = check_room(world, entity, &patch)?;
    let mut trigger = world.get_mut::<Trigger>(entity).ok_or_else(missing)?;
    let (was, was_bytes, was_of) = (trigger.target, trigger.bytes(), trigger.holder);
    let TriggerPatch { prompt_template, enabled, max_fires, cooldown_secs, session_mode, .. } = patch;
    let trigger = &mut *trigger;
    set(&mut trigger.prompt_template, prompt_template);
    set(&mut trigger.enabled, enabled);
    set(&mut trigger.max_fires, max_fires);
    set(&mut trigger.cooldown_secs, cooldown_secs);
    set(&mut trigger.session_mode, session_mode);
    set(&mut trigger.target, target);
    trigger.is_in_nobodys_line |= was_of.is_none() && holder.is_some();
    trigger.holder = holder;
    let (now, bytes) = (trigger.target, trigger.bytes());
    let mut triggers = world.resource_mut::<Triggers>();
    triggers.set_target(id, was, now);
    triggers.used.bytes = triggers.used.bytes - was_bytes + bytes;
    triggers.shares.remove(was_of, 1, was_bytes);
    triggers.shares.add(holder, 1, bytes);
    store(world, entity);
    let view = TriggerView::of(world, entity).ok_or_else(missing)?;
    world.audit(audit_kinds::TRIGGER_UPDATED, view.agent, json!({ "trigger": id, "enabled": view.enabled }));
    Ok(view)
}

/// Refuses a longer message where there is no room for it; gives whose share the trigger takes then.
fn check_room(world: &World, at: Entity, patch: &TriggerPatch) -> Result<Option<Holder>, Refusal> {
    let Some(trigger) = world.get::<Trigger>(at) else { return Ok(None) };
    let (triggers, longer) = (world.resource::<Triggers>(), growth(trigger, patch));
    QUOTA.admit(triggers.used, 0, longer)?;
    triggers.shares.grown(&SHARED, (trigger.holder, acting_holder(world)), (trigger.bytes(), longer))
}

/// By how many bytes the texts of a trigger become longer.
fn growth(trigger: &Trigger, patch: &TriggerPatch) -> usize {
    let new = patch.prompt_template.as_deref().map_or(0, str::len);
    new.saturating_sub(trigger.prompt_template.len())
}
