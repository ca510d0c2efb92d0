//! When a session is compacted by itself, and how far.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::CompactionId;
use agentsvc_components::compaction::{Compaction, CompactionState};
use agentsvc_components::kernel::limit;
use agentsvc_components::session::Session;
use agentsvc_components::turn::Turn;

use super::Compactions;
use crate::kernel::id_generator::mint_for;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::model::admission::stand_in_line;
use crate::session;

/// A turn of `session` has ended: too many messages are summarised.
pub(crate) fn turn_ended(world: &mut World, session: Entity) {
    if world.get::<Session>(session).is_some_and(|home| home.message_count > limit::COMPACTION_MESSAGES) {
        automatic(world, session);
    }
}

/// The prompt of a turn had to leave earlier messages out.
pub(crate) fn pressed(world: &mut World, turn: Entity) {
    if let Some(session) = world.get::<Turn>(turn).map(|turn| turn.session) {
        automatic(world, session);
    }
}

/// Begins a compaction unless one is under way, there is nothing to gain, or the last one was not long ago.
pub(super) fn automatic(world: &mut World, session: Entity) {
    let Some(home) = world.get::<Session>(session) else { return };
    let compactions = world.resource::<Compactions>();
    if home.ephemeral || compactions.of(session).is_some() || compactions.is_paused(session, home.message_count) {
        return;
    }
    let ended = ended_turns(world, home);
    // Half stays, so that a few very long turns are shortened too.
    let kept = (ended / 2).clamp(1, limit::COMPACTION_KEPT_TURNS);
    if ended > kept && compactions.len() < limit::COMPACTIONS_MAX {
        begin(world, session, ended - kept);
    }
}

/// Turns of the session that have ended and are not summarised.
pub(super) fn ended_turns(world: &World, home: &Session) -> u32 {
    let running = home.head.and_then(|head| {
        let turn = world.get::<Turn>(head)?;
        // One of a history that was cleared still ends in front of the new one, of which none has.
        let is_past = session::ending_of(world, turn.session, id_of(world, head)).is_some();
        Some(if is_past { home.compacted } else { turn.ordinal })
    });
    running.unwrap_or(home.next_ordinal).saturating_sub(home.compacted)
}

/// Makes a compaction of the oldest `turns` turns of `session` that are not summarised, and puts it in line.
pub(super) fn begin(world: &mut World, session: Entity, turns: u32) -> Option<Entity> {
    let home = world.get::<Session>(session)?;
    let component = Compaction {
        agent: home.agent,
        session,
        log: home.log,
        from: home.compacted,
        upto: home.compacted + turns,
        attempt: 0,
        state: CompactionState::Reserving,
    };
    let agent = component.agent;
    let id: CompactionId = mint_for(world, agent);
    let entity = world.spawn((id, component)).id();
    enqueue(world, agent, entity);
    Some(entity)
}

/// Puts a compaction in line like a turn of its agent.
pub(super) fn enqueue(world: &mut World, agent: Entity, compaction: Entity) {
    world.mark(compaction);
    stand_in_line(world, agent, compaction, None);
}
