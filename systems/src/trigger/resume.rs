//! Stored triggers come back, and what waited to be delivered goes on.

use bevy_ecs::prelude::{Entity, World};
use hashbrown::HashMap;

use agentsvc_components::trigger::record::{TriggerRecord, TriggerStateRecord, WaveRecord};
use agentsvc_components::trigger::{FireLog, Trigger, TriggerState};
use agentsvc_components::{AgentId, TriggerId};

use super::index::{Member, Triggers};
use super::waves::Waves;
use crate::event::pattern::from_text;
use crate::kernel::index;
use crate::kernel::record::Error;
use crate::kernel::restore::{Records, dangling};
use crate::kernel::share::Shares;

/// Fills the index and the waves of a new world (restore).
pub(crate) fn load(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let mut triggers = records.take::<TriggerRecord>();
    let states = records.take::<TriggerStateRecord>();
    let mut waves = records.take::<WaveRecord>();
    triggers.sort_by_key(|record| record.id);
    let mut logs: HashMap<TriggerId, Box<FireLog>> =
        states.into_iter().map(|state| (state.id, Box::new(state.log))).collect();
    let mut bundles = Vec::with_capacity(triggers.len());
    let mut places = Vec::with_capacity(triggers.len());
    let (mut bytes, mut shares) = (0, Shares::default());
    for record in triggers {
        let owner = index::agent(world, record.agent).map_err(|_| dangling(record.id, "agent"))?;
        let target = record.target.map(|target| index::agent(world, target)).transpose();
        let trigger = Trigger {
            agent: owner,
            target: target.map_err(|_| dangling(record.id, "target agent"))?,
            pattern: from_text(&record.pattern)
                .map_err(|reason| Error::Corrupt { key: record.id.to_string(), reason })?,
            prompt_template: record.prompt_template,
            max_fires: record.max_fires,
            cooldown_secs: record.cooldown_secs,
            session_mode: record.session_mode,
            enabled: record.enabled,
            created_at: record.created_at,
            holder: record.holder,
            is_in_nobodys_line: record.is_in_nobodys_line,
        };
        bytes += trigger.bytes();
        shares.add(trigger.holder, 1, trigger.bytes());
        places.push(((record.id, trigger.line()), (owner, record.agent), trigger.target, trigger.pattern.clone()));
        bundles.push((record.id, trigger, TriggerState(logs.remove(&record.id))));
    }
    let entities: Vec<Entity> = world.spawn_batch(bundles).collect();
    let mut triggers = world.resource_mut::<Triggers>();
    (triggers.used.count, triggers.used.bytes) = (entities.len(), bytes);
    triggers.shares = shares;
    for (((id, line), owner, target, pattern), entity) in places.into_iter().zip(entities) {
        let owner: (Entity, AgentId) = owner;
        triggers.insert(Member { id, entity, line }, owner, &pattern);
        triggers.set_target(id, None, target);
    }
    waves.sort_by_key(|wave| wave.number);
    world.resource_scope(|world, mut waiting: bevy_ecs::prelude::Mut<'_, Waves>| {
        let triggers = world.resource::<Triggers>();
        for mut wave in waves {
            let ids = std::mem::take(&mut wave.triggers);
            waiting.restore(wave, ids.into_iter().filter_map(|id| Some((id, triggers.get(id)?))).collect());
        }
    });
    Ok(())
}
