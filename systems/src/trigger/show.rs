//! Triggers are read.

use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::trigger::{FireLog, Pattern, Trigger, TriggerState};
use agentsvc_components::{AgentId, Refusal, Timestamp, TriggerId};
use bevy_ecs::prelude::{Entity, World};

use super::index::Triggers;
use crate::agent::{is_limited, own_agents, reached};
use crate::kernel::command::{Answer, command};
use crate::kernel::index::id_of;
use crate::kernel::page::{Page, merged};

/// Bytes of prompts after which a page ends.
const PAGE_BYTES: usize = 1 << 20;

/// A trigger as the API shows it (spec 1, Trigger).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerView {
    /// Its id.
    pub id: TriggerId,
    /// Agent that owns it.
    pub agent: AgentId,
    /// What it waits for.
    pub pattern: Pattern,
    /// The message.
    pub prompt_template: Box<str>,
    /// Switched on or off.
    pub enabled: bool,
    /// How often it fired.
    pub fire_count: u64,
    /// Fires it has in all; 0 is without bound.
    pub max_fires: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// Seconds between two fires, unless the daemon's default.
    pub cooldown_secs: Option<u32>,
    /// Where its turns run, unless as the manifest says.
    pub session_mode: Option<SessionMode>,
    /// Agent that receives the message instead of the owner.
    pub target: Option<AgentId>,
}

impl TriggerView {
    pub(super) fn of(world: &World, entity: Entity) -> Option<Self> {
        let trigger = world.get::<Trigger>(entity)?;
        let log = world.get::<TriggerState>(entity).and_then(|state| state.0.as_deref());
        Some(Self {
            id: id_of(world, entity),
            agent: id_of(world, trigger.agent),
            pattern: trigger.pattern.clone(),
            prompt_template: trigger.prompt_template.clone(),
            enabled: trigger.enabled,
            fire_count: log.map_or(0, |log| log.begun()),
            max_fires: trigger.max_fires,
            created_at: trigger.created_at,
            cooldown_secs: trigger.cooldown_secs,
            session_mode: trigger.session_mode,
            target: trigger.target.map(|target| id_of(world, target)),
        })
    }
}

/// Reads a trigger.
#[derive(Clone, Copy, Debug)]
pub struct GetTrigger(pub TriggerId);

command! {
    quick "get_trigger" GetTrigger => TriggerView, Id(|it| it.0.0), |it, world| {
        let missing = || Refusal::not_found("trigger", it.0);
        Answer::Now(super::find(world, it.0).and_then(|e| TriggerView::of(world, e).ok_or_else(missing)))
    }
}

/// History of a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerFires {
    /// Which.
    pub id: TriggerId,
    /// Outcomes and the last fires.
    pub log: FireLog,
}

/// Reads how the matches of a trigger ended, and its last fires.
#[derive(Clone, Copy, Debug)]
pub struct GetTriggerFires(pub TriggerId);

command! {
    quick "get_trigger_fires" GetTriggerFires => TriggerFires, Id(|it| it.0.0), |it, world| {
        Answer::Now(super::find(world, it.0).map(|entity| {
            let log = world.get::<TriggerState>(entity).and_then(|state| state.0.as_deref().cloned());
            TriggerFires { id: it.0, log: log.unwrap_or_default() }
        }))
    }
}

/// Reads a page of triggers, in the order of their creation.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListTriggers {
    /// Only those of this owner. An owner that does not live has none.
    pub agent: Option<AgentId>,
    /// Go on after this trigger; it need not be there any more.
    pub after: Option<TriggerId>,
    /// At most this many; cut to [`limit::PAGE_ITEMS_MAX`].
    pub limit: usize,
}

command! {
    read "list_triggers" ListTriggers => Page<TriggerView, TriggerId, Option<usize>>,
        IdOrAll(|it| it.agent.map(|id| id.0)), |it, world|
        Answer::read(page(world, it))
}

fn page(world: &World, command: ListTriggers) -> Page<TriggerView, TriggerId, Option<usize>> {
    let triggers = world.resource::<Triggers>();
    let most = command.limit.clamp(1, limit::PAGE_ITEMS_MAX);
    // One more than asked for tells whether there is a next page.
    let found: Vec<(TriggerId, Entity)> = match command.agent {
        None => match own_agents(world) {
            None => triggers.after(command.after).take(most + 1).collect(),
            Some(agents) => {
                let own = agents.into_iter().map(|agent| triggers.of_owner(agent, command.after));
                merged(own).take(most + 1).collect()
            }
        },
        Some(agent) => match reached(world, agent) {
            Ok(owner) => triggers.of_owner(owner, command.after).take(most + 1).collect(),
            Err(_) => Vec::new(),
        },
    };
    let (mut items, mut bytes) = (Vec::with_capacity(most.min(found.len())), 0);
    for (_, entity) in found.iter().take(most) {
        let Some(view) = TriggerView::of(world, *entity) else { continue };
        bytes += view.prompt_template.len();
        items.push(view);
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    let next = if items.len() < found.len() { items.last().map(|view| view.id) } else { None };
    Page { items, next, total: (command.agent.is_none() && !is_limited(world)).then_some(triggers.len()) }
}
