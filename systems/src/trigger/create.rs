//! A trigger is made: by a request, or with the agent whose manifest has it.

use crate::kernel::text::{check_filled, check_length};
use crate::trigger::audit_kinds;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::{ManifestTrigger, SessionMode};
use agentsvc_components::trigger::record::TriggerRecord;
use agentsvc_components::trigger::{Pattern, Trigger, TriggerState};
use agentsvc_components::{AgentId, Refusal, TriggerId};
use serde_json::json;

use super::index::{Member, QUOTA, SHARED, Triggers};
use super::show::TriggerView;
use crate::agent::{acting_holder, reached};
use crate::audit::Audit;
use crate::event::pattern::{from_text, text_of};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::id_generator::mint_for;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::kernel::record;
use crate::taint;

/// What a new trigger is (spec 1, POST /api/triggers).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTrigger {
    /// What it waits for.
    pub pattern: Pattern,
    /// The message; not empty. `{{event}}` in it stands for the event's compact JSON.
    pub prompt_template: Box<str>,
    /// Default: true.
    pub enabled: bool,
    /// Fires it has in all; 0 is without bound.
    pub max_fires: u64,
    /// Seconds between two fires; `None` is the daemon's default.
    pub cooldown_secs: Option<u32>,
    /// Where its turns run; `None` is as the manifest says.
    pub session_mode: Option<SessionMode>,
    /// Agent that receives the message instead of the owner.
    pub target: Option<AgentId>,
}

/// Makes a trigger. It sees what happens from here on, nothing that happened before.
///
/// Refused with 404 when the owner or the target does not live, 400 naming `prompt_template` when that is empty or too
/// long, 429 when the world has too many or there is no room for its texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateTrigger {
    /// Agent that owns it.
    pub agent: AgentId,
    /// What it is.
    pub trigger: NewTrigger,
}

command! {
    write "create_trigger" CreateTrigger => TriggerView, Id(|it| it.agent.0), |it, world|
        Answer::stored(create(world, it))
}

fn create(world: &mut World, command: CreateTrigger) -> Result<TriggerView, Refusal> {
    let CreateTrigger { agent, trigger: new } = command;
    let owner = reached(world, agent)?;
    taint::check_lasting(world)?;
    check_template(&new.prompt_template)?;
    let target = new.target.map(|target| target_of(world, target)).transpose()?;
    let trigger = Trigger {
        agent: owner,
        target,
        pattern: new.pattern,
        prompt_template: new.prompt_template,
        max_fires: new.max_fires,
        cooldown_secs: new.cooldown_secs,
        session_mode: new.session_mode,
        enabled: new.enabled,
        created_at: world.resource::<Now>().0,
        holder: acting_holder(world),
        is_in_nobodys_line: false,
    };
    check_room(world, trigger.holder, 1, trigger.bytes())?;
    let (id, entity) = place(world, trigger);
    world.audit(audit_kinds::TRIGGER_CREATED, agent, json!({ "trigger": id, "target": new.target }));
    TriggerView::of(world, entity).ok_or_else(|| Refusal::not_found("trigger", id))
}

/// Refuses so many further triggers, of so many bytes, where there is no room for them: for all, or for the holder.
fn check_room(world: &World, holder: Option<Holder>, more: usize, bytes: usize) -> Result<(), Refusal> {
    let triggers = world.resource::<Triggers>();
    QUOTA.admit(triggers.used, more, bytes)?;
    triggers.shares.admit(&SHARED, holder, more, bytes)
}

/// Refuses a message that is empty or too long.
pub(super) fn check_template(template: &str) -> Result<(), Refusal> {
    check_filled("prompt_template", template.trim())?;
    check_length("prompt_template", template, limit::PROMPT_TEMPLATE_BYTES_MAX)
}

/// The agent that a trigger is to route to.
pub(super) fn target_of(world: &World, target: AgentId) -> Result<Entity, Refusal> {
    let field = Some("target_agent_id".to_owned());
    reached(world, target).map_err(|refusal| Refusal { field, ..refusal })
}

/// Refuses the triggers of an agent's manifest when there is no room for them.
pub(super) fn room_for(world: &World, triggers: &[ManifestTrigger]) -> Result<(), Refusal> {
    if !triggers.is_empty() {
        taint::check_lasting(world)?;
    }
    let bytes = triggers.iter().map(ManifestTrigger::bytes).sum();
    check_room(world, acting_holder(world), triggers.len(), bytes)
}

/// Refuses to give an agent to a user while its triggers wake agents that may be others'.
pub(super) fn wakes_itself_only(world: &World, agent: Entity) -> Result<(), Refusal> {
    let triggers = world.resource::<Triggers>();
    let target = |entity| world.get::<Trigger>(entity).and_then(|trigger| trigger.target);
    let wakes_other = |(_, entity)| target(entity).is_some_and(|target| target != agent);
    if triggers.of_owner(agent, None).any(wakes_other) {
        let text = "the agent has triggers that wake other agents; delete them before you give it to a user";
        return Err(Refusal::conflict(text));
    }
    Ok(())
}

/// Makes the triggers of an agent's manifest; [`room_for`] must hold. One whose target does not live, or is not for whoever
/// makes the agent, is made as if the target had gone: switched off, and without it.
pub(super) fn register(world: &mut World, owner: Entity, triggers: &[ManifestTrigger]) {
    let (created_at, holder) = (world.resource::<Now>().0, acting_holder(world));
    for new in triggers {
        // It was found to be one when the manifest was read.
        let Ok(pattern) = from_text(&new.pattern) else { continue };
        let target = new.target_agent_id.and_then(|id| reached(world, id).ok());
        let trigger = Trigger {
            agent: owner,
            target,
            pattern,
            prompt_template: new.prompt_template.clone(),
            max_fires: new.max_fires,
            cooldown_secs: new.cooldown_secs,
            session_mode: new.session_mode,
            enabled: new.enabled && target.is_some() == new.target_agent_id.is_some(),
            created_at,
            holder,
            is_in_nobodys_line: false,
        };
        place(world, trigger);
    }
}

/// Brings a trigger into the world and stores it.
fn place(world: &mut World, trigger: Trigger) -> (TriggerId, Entity) {
    // What happened before in this step is not for it.
    super::meet(world);
    let id: TriggerId = mint_for(world, trigger.agent);
    let (owner, target, pattern, bytes) = (trigger.agent, trigger.target, trigger.pattern.clone(), trigger.bytes());
    let holder = trigger.holder;
    let owner = (owner, id_of::<AgentId>(world, owner));
    let entity = world.spawn((id, trigger, TriggerState::default())).id();
    let mut triggers = world.resource_mut::<Triggers>();
    triggers.insert(Member { id, entity, line: holder }, owner, &pattern);
    triggers.set_target(id, None, target);
    triggers.used.add(bytes);
    triggers.shares.add(holder, 1, bytes);
    store(world, entity);
    (id, entity)
}

/// Stores what a trigger is.
pub(super) fn store(world: &mut World, entity: Entity) {
    if let Some(record) = record_of(world, entity) {
        world.op(record::put(&record));
    }
}

/// What is stored of what a trigger is.
pub(crate) fn record_of(world: &World, entity: Entity) -> Option<TriggerRecord> {
    let trigger = world.get::<Trigger>(entity)?;
    Some(TriggerRecord {
        id: id_of(world, entity),
        agent: id_of(world, trigger.agent),
        pattern: text_of(&trigger.pattern),
        prompt_template: trigger.prompt_template.clone(),
        enabled: trigger.enabled,
        max_fires: trigger.max_fires,
        cooldown_secs: trigger.cooldown_secs,
        session_mode: trigger.session_mode,
        target: trigger.target.map(|target| id_of(world, target)),
        created_at: trigger.created_at,
        holder: trigger.holder,
        is_in_nobodys_line: trigger.is_in_nobodys_line,
    })
}
