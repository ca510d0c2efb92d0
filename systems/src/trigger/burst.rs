//! Bursts: fires whose turns wait unchanged share a record, so that one event that fires very many triggers writes little.
//!
//! A burst stands for the records of its turns and for what its fires added to the logs of their triggers. Three rules keep
//! it exact:
//!
//! - A burst is written once, in the commit of its fires, and holds only turns that wait and are like each other.
//! - A turn that changes or ends leaves: in that commit it has its own record, or none any more, its trigger's log is
//!   written, and the burst's left-record says that it is gone.
//! - The record of a log says how many bursts it knows of ([`TriggerStateRecord::bursts`]): a restart adds the fires of
//!   the younger ones to it, and none of the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use bevy_ecs::prelude::{Entity, Resource, World};
use bevy_ecs::world::DeferredWorld;
use hashbrown::{HashMap, HashSet};

use agentsvc_components::kernel::limit;
use agentsvc_components::trigger::record::{
    BurstFire, BurstLeftRecord, BurstRecord, TriggerRecord, TriggerStateRecord,
};
use agentsvc_components::trigger::{Fire, FireLog};
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::turn::{BurstPlace, Origin, Turn, TurnState};
use agentsvc_components::{AgentId, SessionId, TriggerId, TurnId};

use super::deliver::add_fire;
use super::index::Triggers;
use super::rows;
use super::waves::Occurrence;
use crate::kernel::outbox::{Emit, Outbox};
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::turn::rows as rows_of_turns;

/// The bursts that are stored, and the fires of this step.
#[derive(Resource, Default)]
pub(crate) struct Bursts {
    fresh: Vec<Fresh>,
    open: HashMap<u64, Open>,
    /// Bursts that a fire has left in this step.
    changed: BTreeSet<u64>,
    next_number: u64,
}

/// A fire of this step.
struct Fresh {
    trigger: Entity,
    turn: Entity,
    ids: FireIds,
    what: Arc<Occurrence>,
}

/// The durable ids of a fire.
#[derive(Clone, Copy)]
pub(super) struct FireIds {
    pub(super) trigger: TriggerId,
    pub(super) turn: TurnId,
    pub(super) agent: AgentId,
    pub(super) session: SessionId,
}

/// A stored burst: how many fires it was written with, and the bits of those that have left.
struct Open {
    count: usize,
    left: u64,
}

impl Bursts {
    /// A trigger has fired.
    pub(super) fn fired(&mut self, (trigger, turn): (Entity, Entity), ids: FireIds, what: &Arc<Occurrence>) {
        self.fresh.push(Fresh { trigger, turn, ids, what: Arc::clone(what) });
    }

    fn open(&mut self, count: usize) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.open.insert(number, Open { count, left: 0 });
        number
    }

    fn leave(&mut self, place: BurstPlace) {
        if let Some(open) = self.open.get_mut(&place.number) {
            open.left |= 1 << place.at;
            self.changed.insert(place.number);
        }
    }
}

/// The number that the next burst gets: a log that is written now knows of all smaller ones.
pub(crate) fn bursts_so_far(world: &World) -> u64 {
    world.resource::<Bursts>().next_number
}

/// Is this a turn whose burst has been written in this step? Asked behind [`keep_bursts`], of marked entities only: one
/// that an older burst holds has left it by then.
pub(crate) fn is_in_burst(world: &World, entity: Entity) -> bool {
    world.get::<Turn>(entity).is_some_and(|turn| turn.burst.is_some())
}

/// At the end of a step, before the records of what is marked: turns that changed leave their bursts, and the fires of the
/// step become bursts where there are enough of them.
// &mut World: reads turns and writes their records and those of their triggers.
pub(crate) fn keep_bursts(world: &mut World) {
    let bursts = world.resource::<Bursts>();
    if bursts.fresh.is_empty() && bursts.open.is_empty() {
        return;
    }
    leave_changed(world);
    let fresh = std::mem::take(&mut world.resource_mut::<Bursts>().fresh);
    for fires in fresh.chunk_by(|one, other| Arc::ptr_eq(&one.what, &other.what)) {
        keep(world, fires);
    }
    store_left(world);
}

/// Takes the marked turns out of their bursts; they and the logs of their triggers get records of their own.
fn leave_changed(world: &mut World) {
    let marked = world.resource::<Outbox>().dirty();
    let leaving: Vec<Entity> = marked.iter().copied().filter(|entity| is_in_burst(world, *entity)).collect();
    for entity in leaving {
        let Some(mut turn) = world.get_mut::<Turn>(entity) else { continue };
        // A turn that is marked twice leaves once.
        let (Some(place), origin) = (turn.burst.take(), turn.origin) else { continue };
        world.resource_mut::<Bursts>().leave(place);
        if let Some(trigger) = trigger_of(world.resource(), origin) {
            world.mark(trigger);
        }
    }
}

/// A turn is about to leave the world, and with it its burst.
pub(crate) fn turn_goes(world: &mut DeferredWorld<'_>, entity: Entity) {
    let Some(turn) = world.get::<Turn>(entity) else { return };
    let (Some(place), origin) = (turn.burst, turn.origin) else { return };
    world.resource_mut::<Bursts>().leave(place);
    if let Some(trigger) = trigger_of(world.resource(), origin) {
        world.resource_mut::<Outbox>().mark(trigger);
    }
}

fn trigger_of(triggers: &Triggers, origin: Origin) -> Option<Entity> {
    if let Origin::Trigger { trigger } = origin { triggers.get(trigger) } else { None }
}

/// Writes the bursts of one event. A fire that comes into none has its log and its turn stored.
fn keep(world: &mut World, fires: &[Fresh]) {
    let mut waiting = Vec::with_capacity(fires.len());
    let (mut like, mut alone): (Option<Entity>, Vec<&Fresh>) = (None, Vec::new());
    for fire in fires {
        let found = world.get::<Turn>(fire.turn).and_then(|turn| {
            let like = like.and_then(|like| world.get::<Turn>(like)).unwrap_or(turn);
            fire_of(turn, fire.ids).filter(|_| is_like(turn, like))
        });
        match found {
            Some(found) => {
                like.get_or_insert(fire.turn);
                waiting.push((fire, found));
            }
            None => alone.push(fire),
        }
    }
    let like = like.and_then(|like| rows_of_turns::turn_record(world, like));
    for part in waiting.chunks(limit::BURST_FIRES_MAX) {
        let Some(like) = like.as_ref().filter(|_| part.len() >= limit::BURST_FIRES_MIN) else {
            alone.extend(part.iter().map(|(fire, _)| *fire));
            continue;
        };
        let number = world.resource_mut::<Bursts>().open(part.len());
        for (at, (fire, _)) in (0..).zip(part) {
            if let Some(mut turn) = world.get_mut::<Turn>(fire.turn) {
                turn.burst = Some(BurstPlace { number, at });
            }
        }
        let Occurrence { kind, at, depth, .. } = *part[0].0.what;
        let fires = part.iter().map(|(_, fire)| *fire).collect();
        let burst = BurstRecord { number, kind, at, depth, like: like.clone(), fires };
        world.late(Box::new(burst));
    }
    for fire in alone {
        world.mark(fire.trigger);
        world.mark(fire.turn);
    }
}

/// What a burst says of a fire with this turn; `None` when the turn does not wait.
const fn fire_of(turn: &Turn, ids: FireIds) -> Option<BurstFire> {
    let waits = match turn.state {
        TurnState::Queued => true,
        TurnState::Reserving => false,
        _ => return None,
    };
    Some(BurstFire(ids.trigger, ids.turn, ids.agent, ids.session, turn.ordinal, waits))
}

/// Are two turns the same but for what a burst says of each of its fires ([`turn_of`]), as far as they are stored? Every
/// field is named here, so that a new one is not forgotten.
fn is_like(turn: &Turn, like: &Turn) -> bool {
    #[rustfmt::skip]
    let Turn {
        agent: _, session: _, holder: _, ordinal: _, state: _, origin: _, next: _, called_at: _, streaming: _, burst: _,
        created_at, usage, request, link, journal, next_index, attempt, iteration, tool_calls, depth, taint, cancelled,
        pending,
    } = turn;
    *created_at == like.created_at
        && *usage == like.usage
        && *request == like.request
        && *link == like.link
        && *journal == like.journal
        && (*next_index, *attempt, *iteration, *tool_calls)
            == (like.next_index, like.attempt, like.iteration, like.tool_calls)
        && (*depth, *taint, *cancelled) == (like.depth, like.taint, like.cancelled)
        && *pending == like.pending
}

/// The record that a fire stands for in a burst of turns like this one.
fn turn_of(like: &TurnRecord, fire: BurstFire) -> TurnRecord {
    let BurstFire(trigger, id, agent, session, ordinal, waits) = fire;
    let state = if waits { TurnState::Queued } else { TurnState::Reserving };
    TurnRecord { id, agent, session, ordinal, state, origin: Origin::Trigger { trigger }, ..like.clone() }
}

/// Stores what has left which bursts; a burst that all have left goes.
fn store_left(world: &mut World) {
    let changed = std::mem::take(&mut world.resource_mut::<Bursts>().changed);
    for number in changed {
        let mut bursts = world.resource_mut::<Bursts>();
        let Some(&Open { count, left }) = bursts.open.get(&number) else { continue };
        if (left.count_ones() as usize) < count {
            world.op(rows::put_burst_left(&BurstLeftRecord { number, left }));
            continue;
        }
        bursts.open.remove(&number);
        world.op(rows::remove_burst(number));
        world.op(rows::remove_burst_left(number));
    }
}

/// Takes the stored bursts in: their turns and what their fires added to logs are among the records then, and each turn
/// knows where it is stored.
pub(crate) fn load_bursts(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let (bursts, places) = unfold(records);
    world.insert_resource(bursts);
    for turn in records.list::<TurnRecord>().iter_mut() {
        turn.burst = places.get(&turn.id).copied();
    }
    Ok(())
}

/// Adds the turns that bursts stand for to the records, and what their fires added to the logs of triggers.
pub(crate) fn unfold(records: &mut Records) -> (Bursts, HashMap<TurnId, BurstPlace>) {
    let mut stored = records.take::<BurstRecord>();
    stored.sort_by_key(|burst| burst.number);
    let next_number = records.iter::<TriggerStateRecord>().map(|state| state.bursts).max().unwrap_or(0);
    let mut bursts = Bursts { next_number, ..Bursts::default() };
    let mut places = HashMap::new();
    if stored.is_empty() {
        return (bursts, places);
    }
    let left: HashMap<u64, u64> =
        records.iter::<BurstLeftRecord>().map(|record| (record.number, record.left)).collect();
    let live: HashSet<TriggerId> = records.iter::<TriggerRecord>().map(|trigger| trigger.id).collect();
    let mut states: Vec<TriggerStateRecord> = records.take().into_iter().collect();
    let mut logs: HashMap<TriggerId, usize> = states.iter().enumerate().map(|(at, state)| (state.id, at)).collect();
    for burst in stored {
        let number = burst.number;
        let left = left.get(&number).copied().unwrap_or(0);
        bursts.next_number = bursts.next_number.max(number + 1);
        bursts.open.insert(number, Open { count: burst.fires.len(), left });
        for (at, fire) in (0..64_u8).zip(&burst.fires) {
            if left >> at & 1 == 0 {
                places.insert(fire.1, BurstPlace { number, at });
                records.push(turn_of(&burst.like, *fire));
            }
            let BurstFire(id, turn, agent, session, ..) = *fire;
            if !live.contains(&id) {
                continue;
            }
            let log = *logs.entry(id).or_insert_with(|| {
                states.push(TriggerStateRecord { id, log: FireLog::default(), bursts: 0 });
                states.len() - 1
            });
            if states[log].bursts <= number {
                let fire = Fire { at: burst.at, on: burst.kind, turn, agent, session, end: None };
                add_fire(&mut states[log].log, burst.depth, fire);
            }
        }
    }
    *records.list() = states.into_iter().collect();
    (bursts, places)
}
