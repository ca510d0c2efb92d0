//! Compaction: the older messages of a session are replaced by a summary that its agent's model writes
//! (spec 1, States and transitions, Session; Limits, auto-compaction).
//!
//! | from      | what happens                                    | to        | leaves behind                            |
//! |-----------|-------------------------------------------------|-----------|------------------------------------------|
//! | (none)    | a turn ended and the session has too many messages | Reserving | compaction record                     |
//! | (none)    | a prompt had to leave messages out              | Reserving | compaction record                        |
//! | (none)    | asked for                                       | Reserving | compaction record                        |
//! | Reserving | a slot of its provider is free                  | Calling   | compaction record, `Summarize`           |
//! | Calling   | the summary came and makes the session shorter  | (ended)   | summary row, session record, reply       |
//! | Calling   | it failed, or makes nothing shorter             | (ended)   | reply, a pause before the next try       |
//! | Reserving | a budget has no room for it                     | (ended)   | reply, a pause before the next try       |
//! | any       | its history is cleared or its session removed   | (ended)   | `Abort` if out, reply                    |
//! | any       | restart                                         | Reserving | (the attempt grows with the next call)   |
//!
//! Only whole turns that have ended are summarised, so that a tool call and its results are never parted. Turns run on
//! meanwhile with the whole history. The summary, the session's new count and the end of the job are one commit; a
//! summary that comes for a history that is gone is dropped. The messages themselves stay in the store.

mod ask;
mod check;
pub mod error_codes;
mod metrics;
mod plan;
pub(crate) mod query;
mod resume;
mod settle;
mod start;

pub use ask::{CompactSession, CompactionReply};
pub(crate) use check::check;
pub use metrics::CompactionTotals;
pub(crate) use plan::{pressed, turn_ended};
pub(crate) use settle::refuse;
pub(crate) use start::call;

use std::collections::BTreeMap;

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, Resource, World};
use bevy_ecs::world::DeferredWorld;
use hashbrown::HashMap;

use agentsvc_components::CompactionId;
use agentsvc_components::compaction::Compaction;
use agentsvc_components::compaction::call::SummaryOutcome;
use agentsvc_components::kernel::limit;

use crate::kernel::command::ReplySlot;
use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase};
use crate::kernel::footprint::Measure;
use crate::kernel::inputs::table::{CommandDef, OutcomeDef};
use crate::kernel::outbox::{Exclusive, Outbox};
use crate::kernel::reaction::on;
use crate::kernel::record::{self, Kind};
use crate::session::HistoryEnding;
use agentsvc_components::compaction::record::CompactionRecord;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "budget", "config", "model", "session", "usage", "event", "turn", "taint"],
    measures: &[Measure::of::<CompactionId>("compactions", |_, _| 0, 40)],
    kinds: &[Kind::record::<CompactionRecord>().with_entities::<Compaction>(resume::row)],
    restore: &[(Phase::Jobs, resume::restore)],
    install,
    check,
    is_quiet,
    commands: &[CommandDef::of::<CompactSession>()],
    outcomes: &[OutcomeDef::of::<SummaryOutcome>()],
    error_codes: error_codes::ALL,
    totals: &[Totals::of::<metrics::CompactionTotals>()],
    metrics: metrics::ALL,
    ..Domain::named("compaction")
};

/// The compactions under way, and which sessions are to be left alone for a while.
#[derive(Resource, Default)]
pub(crate) struct Compactions {
    by_id: HashMap<CompactionId, Entity>,
    by_session: HashMap<Entity, Entity>,
    /// The number of messages that a session must have before an automatic compaction is tried again.
    /// In order, so that the same inputs leave out the same session when there are too many.
    paused: BTreeMap<Entity, u32>,
}

/// Who waits for which compaction.
#[derive(Resource, Default)]
pub(crate) struct CompactionWaiters(Exclusive<HashMap<Entity, Vec<ReplySlot<CompactionReply>>>>);

impl Compactions {
    /// Compactions under way.
    pub(crate) fn len(&self) -> usize {
        self.by_session.len()
    }

    /// Their ids, in no order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = CompactionId> + '_ {
        self.by_id.keys().copied()
    }

    /// The compaction `id`.
    pub(crate) fn get(&self, id: CompactionId) -> Option<Entity> {
        self.by_id.get(&id).copied()
    }

    fn of(&self, session: Entity) -> Option<Entity> {
        self.by_session.get(&session).copied()
    }

    /// Leaves `session` alone until it has so many messages.
    fn pause(&mut self, session: Entity, messages: u32) {
        if self.paused.len() >= limit::COMPACTION_PAUSES_MAX
            && let Some(other) = self.paused.keys().next().copied()
        {
            self.paused.remove(&other);
        }
        self.paused.insert(session, messages);
    }

    fn is_paused(&self, session: Entity, messages: u32) -> bool {
        self.paused.get(&session).is_some_and(|until| messages < *until)
    }
}

/// Is no compaction under way, and does no reply wait for one?
fn is_quiet(world: &mut World) -> bool {
    world.resource::<Compactions>().len() == 0 && nobody_waits(world)
}

/// Does no reply wait for a compaction?
fn nobody_waits(world: &mut World) -> bool {
    world.resource_mut::<CompactionWaiters>().0.get().is_empty()
}

/// Prepares a new world for compactions.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<Compactions>();
    world.init_resource::<CompactionWaiters>();
    world.register_component_hooks::<CompactionId>().on_insert(inserted).on_remove(removed);
    on(world, |world, of: &HistoryEnding| settle::end(world, of.session, of.why));
}

fn inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<CompactionId>(at.entity).copied() else { return };
    let session = world.get::<Compaction>(at.entity).map(|job| job.session);
    let mut compactions = world.resource_mut::<Compactions>();
    compactions.by_id.insert(id, at.entity);
    if let Some(session) = session {
        compactions.by_session.insert(session, at.entity);
    }
}

/// The entity goes: its record goes with it.
fn removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<CompactionId>(at.entity).copied() else { return };
    let session = world.get::<Compaction>(at.entity).map(|job| job.session);
    let mut compactions = world.resource_mut::<Compactions>();
    compactions.by_id.remove(&id);
    if let Some(session) = session {
        compactions.by_session.remove(&session);
    }
    world.resource_mut::<Outbox>().ops.push(record::remove::<CompactionRecord>(id));
}

#[cfg(test)]
mod tests;
