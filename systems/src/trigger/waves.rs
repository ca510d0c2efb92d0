//! What has matched and waits to be delivered, in order.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bevy_ecs::prelude::{Entity, Mut, Resource, World};

use agentsvc_components::agent::{Agent, OwnedBy};
use agentsvc_components::event::{Event, EventEnvelope, EventKind};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::trigger::record::WaveRecord;
use agentsvc_components::trigger::{FireOutcome, Trigger};
use agentsvc_components::{Actor, SessionId, Timestamp, TriggerId};

use super::index::{Found, Triggers};
use super::{TriggerTotals, rows};
use crate::agent::limit_of;
use crate::config::Settings;
use crate::event::told::{self, Events};
use crate::injection::{Shielded, shield};
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::kernel::share::Shares;
use crate::taint;

/// What happened, as far as a fire needs it.
#[derive(Debug)]
pub(super) struct Occurrence {
    pub(super) kind: EventKind,
    pub(super) at: Timestamp,
    pub(super) depth: u8,
    /// What stood behind the event before anybody read it.
    taint: Taint,
    /// The session in which strangers began what the event comes from.
    pub(super) began_in: Option<SessionId>,
    /// Which event of its step it is; read from there, when it is to be shown or stored, and never in a later step.
    place: usize,
    shown: OnceLock<Shown>,
}

/// An event as the agents of its triggers read it.
#[derive(Debug)]
pub(super) struct Shown {
    /// Its compact JSON.
    pub(super) event: Box<str>,
    /// Untrusted content behind it, that included which it shows.
    pub(super) taint: Taint,
}

/// Matches of one event.
#[derive(Debug)]
pub(super) struct PendingBatch {
    pub(super) what: Arc<Occurrence>,
    pub(super) triggers: Vec<(TriggerId, Entity)>,
    /// Whose share of all that waits they take until all of them are delivered.
    holders: Vec<(Holder, usize)>,
    /// How many of them are delivered.
    pub(super) delivered: usize,
    /// Orders the records.
    number: u64,
    /// How many of them were delivered when its record was written; `None` when it has none.
    stored: Option<usize>,
}

impl PendingBatch {
    /// The number of its record, if it has one.
    pub(super) fn stored_as(&self) -> Option<u64> {
        self.stored.map(|_| self.number)
    }

    /// Of a wave whose event has been shown, which at the end of a step all have.
    fn record(&self) -> WaveRecord {
        let (event, taint) =
            self.what.shown.get().map_or_else(Default::default, |shown| (shown.event.clone(), shown.taint));
        WaveRecord {
            number: self.number,
            kind: self.what.kind,
            event,
            at: self.what.at,
            depth: self.what.depth,
            taint,
            began_in: self.what.began_in,
            triggers: self.triggers[self.delivered..].iter().map(|(id, _)| *id).collect(),
        }
    }
}

/// All that waits.
#[derive(Resource, Default)]
pub(crate) struct Waves {
    pub(super) queue: VecDeque<PendingBatch>,
    waiting: usize,
    /// What waits of each holder of triggers. Those of a wave count until it has gone.
    shares: Shares,
    next_number: u64,
    /// Matches without a turn that may still end on the last fire that was taken for them.
    pub(super) allowance: u32,
}

impl Waves {
    /// Matches that wait.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// The matches that wait, counted one by one.
    pub(super) fn count(&self) -> usize {
        self.queue.iter().map(|wave| wave.triggers.len() - wave.delivered).sum()
    }

    /// The records of the waves.
    pub(crate) fn records(&self) -> impl Iterator<Item = WaveRecord> {
        self.queue.iter().map(PendingBatch::record)
    }

    /// Adds matches of one event, sorted, which count for their holders already.
    fn push(
        &mut self,
        world: &World,
        what: &Arc<Occurrence>,
        triggers: Vec<(TriggerId, Entity)>,
        stored: Option<usize>,
    ) {
        self.waiting += triggers.len();
        let number = self.next_number;
        self.next_number += 1;
        let holders = holders(world, &triggers);
        self.queue.push_back(PendingBatch { what: Arc::clone(what), triggers, holders, delivered: 0, number, stored });
    }

    /// All matches of a wave that was taken out have been delivered.
    pub(super) fn gone(&mut self, wave: &PendingBatch) {
        wave.holders.iter().for_each(|(holder, count)| self.shares.remove(Some(*holder), *count, 0));
    }

    /// What waits of each holder, as it is kept and as it is counted wave by wave.
    pub(super) fn shares(&self) -> (&Shares, Shares) {
        let mut scan = Shares::default();
        let all = self.queue.iter().flat_map(|wave| &wave.holders);
        all.for_each(|(holder, count)| scan.add(Some(*holder), *count, 0));
        (&self.shares, scan)
    }

    /// Takes a match in where its holder has room among so many; says whether it has.
    fn admit(&mut self, holder: Option<Holder>, pool: usize) -> bool {
        let has_room = self.shares.has_place(pool, holder);
        if has_room {
            self.shares.add(holder, 1, 0);
        }
        has_room
    }

    /// Goes on as if so many matches of a holder waited, for tests.
    #[cfg(test)]
    pub(super) fn pretend_of(&mut self, holder: Holder, count: usize) {
        self.shares.add(Some(holder), count, 0);
    }

    /// Adds what is stored; called in the order of numbers (restore).
    pub(super) fn restore(&mut self, world: &World, record: WaveRecord, triggers: Vec<(TriggerId, Entity)>) {
        let WaveRecord { number, kind, event, at, depth, taint, began_in, .. } = record;
        self.next_number = number;
        let shown = OnceLock::from(Shown { event, taint });
        let what = Arc::new(Occurrence { kind, at, depth, taint, began_in, place: 0, shown });
        triggers.iter().for_each(|(_, trigger)| self.shares.add(holder(world, *trigger), 1, 0));
        self.push(world, &what, triggers, Some(0));
    }

    /// Goes on as if so many matches waited, for tests of what a crowd comes to.
    #[cfg(test)]
    pub(super) const fn pretend(&mut self, waiting: usize) {
        self.waiting = waiting;
    }

    /// Takes the first wave out.
    pub(super) fn pop(&mut self) -> Option<PendingBatch> {
        self.queue.pop_front()
    }

    /// So many matches of a wave that was taken out have been delivered.
    pub(super) const fn delivered(&mut self, count: usize) {
        self.waiting -= count;
    }

    /// Puts a wave back that was taken out.
    pub(super) fn put_back(&mut self, wave: PendingBatch) {
        self.queue.push_front(wave);
    }
}

/// The event as agents read it, made when it is first asked for: what nobody reads is neither written nor scanned.
pub(super) fn show<'o>(world: &mut World, what: &'o Occurrence) -> &'o Shown {
    if let Some(shown) = what.shown.get() {
        return shown;
    }
    let Some(happened) = world.resource::<Events>().get(what.place) else {
        return what.shown.get_or_init(|| Shown { event: Box::default(), taint: what.taint });
    };
    let (agent, Shielded { text, found }) = (happened.event.agent(), shielded(world, &happened.event));
    let mut taint = what.taint;
    if let Some(found) = found {
        taint = taint.with(Taint::INJECTION);
        taint::note_injection(world, Actor::System, agent, "event", &found);
    }
    what.shown.get_or_init(|| Shown { event: text.into(), taint })
}

/// Do matches wait to be delivered?
pub(crate) fn has_waiting(world: &World) -> bool {
    !world.resource::<Waves>().queue.is_empty()
}

/// Shows the triggers what happened since they looked last.
// &mut World: matching reads agents, settings and the index of triggers, and may tell events.
pub(crate) fn meet(world: &mut World) {
    if world.resource::<Events>().has_unmatched() {
        told::unmatched(world, match_events);
    }
}

/// Events meet the triggers that wait for them. Each event comes here once, in the step in which it happened; `from` is
/// which event of the step the first of them is.
fn match_events(world: &mut World, events: &[EventEnvelope], from: usize) {
    if world.resource::<Triggers>().len() == 0 {
        return;
    }
    world.resource_scope(|world, mut waves: Mut<'_, Waves>| {
        let (mut refused, mut limited) = (0, 0);
        let matcher = world.resource::<Triggers>().matcher();
        let mut found = Found::new();
        for (place, happened) in (from..).zip(events) {
            found.clear();
            matcher.find(&happened.event, || name_of(world, &happened.event), &mut found);
            let count: usize = found.iter().map(|set| set.len()).sum();
            if count == 0 {
                continue;
            }
            if happened.depth > 0 && waves.waiting + count > limit::CASCADE_WAITING_MAX {
                limited += count as u64;
            } else if waves.waiting + count > limit::MATCHES_WAITING_MAX {
                refused += count as u64;
            } else {
                let over = if happened.depth > 0 { &mut limited } else { &mut refused };
                *over += enqueue(world, &mut waves, happened, place, &found);
            }
        }
        let totals = &mut world.resource_mut::<TriggerTotals>().outcomes;
        totals.add(FireOutcome::RateLimited, limited);
        totals.add(FireOutcome::Refused, refused);
    });
}

/// The event as text. What is published from outside is scanned, once for all who read it.
fn shielded(world: &World, event: &Event) -> Shielded {
    let text = serde_json::to_string(event).unwrap_or_default();
    match event {
        Event::Custom { .. } => shield(world.resource::<Settings>().security.prompt_injection, "a custom event", text),
        _ => Shielded { text, found: None },
    }
}

/// Adds the matches of an event; gives the number of those whose holders have no room for more.
fn enqueue(world: &World, waves: &mut Waves, happened: &EventEnvelope, place: usize, found: &Found<'_>) -> u64 {
    let about = happened.event.agent().and_then(|agent| index::agent(world, agent).ok());
    let sees = |(_, trigger): &(TriggerId, Entity)| may_see(world, *trigger, about);
    let pool = if happened.depth > 0 { limit::CASCADE_WAITING_MAX } else { limit::MATCHES_WAITING_MAX };
    let mut over = 0;
    let mut has_room = |(_, trigger): &(TriggerId, Entity)| {
        let has_room = waves.admit(holder(world, *trigger), pool);
        over += u64::from(!has_room);
        has_room
    };
    let seen = found.iter().flat_map(|set| set.iter().copied()).filter(sees);
    let mut all: Vec<_> = seen.filter(|found| has_room(found)).collect();
    if all.is_empty() {
        return over;
    }
    let what = Arc::new(Occurrence {
        kind: happened.event.kind(),
        at: happened.at,
        depth: happened.depth,
        taint: happened.taint,
        began_in: happened.began_in,
        place,
        shown: OnceLock::new(),
    });
    if found.len() > 1 {
        all.sort_unstable();
    }
    if all.len() <= limit::WAVE_TRIGGERS_MAX {
        waves.push(world, &what, all, None);
        return over;
    }
    for wave in all.chunks(limit::WAVE_TRIGGERS_MAX) {
        waves.push(world, &what, wave.to_vec(), None);
    }
    over
}

/// Whose share the matches of a trigger take: that of whoever made it. Those that nobody's share bounds are bounded with all others.
fn holder(world: &World, trigger: Entity) -> Option<Holder> {
    world.get::<Trigger>(trigger).and_then(|trigger| trigger.holder)
}

/// How many of the matches each holder has. Most have none, or are of few.
fn holders(world: &World, triggers: &[(TriggerId, Entity)]) -> Vec<(Holder, usize)> {
    let mut all: Vec<Holder> = triggers.iter().filter_map(|(_, trigger)| holder(world, *trigger)).collect();
    all.sort_unstable();
    all.chunk_by(|one, other| one == other).map(|own| (own[0], own.len())).collect()
}

/// May a trigger see an event about this agent? That of a user with a limited role sees those about agents of the user.
fn may_see(world: &World, trigger: Entity, about: Option<Entity>) -> bool {
    let owner = world.get::<Trigger>(trigger).and_then(|trigger| limit_of(world, trigger.agent));
    owner.is_none_or(|user| about.and_then(|agent| world.get::<OwnedBy>(agent)) == Some(&OwnedBy(user)))
}

/// The name of the agent that an event is about. An agent that is gone has one only in the event that says so.
fn name_of<'w>(world: &'w World, event: &'w Event) -> Option<Cow<'w, str>> {
    if let Event::AgentSpawned { name, .. } | Event::AgentTerminated { name, .. } = event {
        return Some(Cow::Borrowed(name));
    }
    let agent = index::agent(world, event.agent()?).ok()?;
    world.get::<Agent>(agent).map(|agent| Cow::Borrowed(&*agent.name))
}

/// At the end of a step: what waits and is not stored as it is gets its record.
// &mut World: shows an event's texts through the scanner, which counts what it finds.
pub(crate) fn keep_waiting(world: &mut World) {
    if world.resource::<Waves>().queue.is_empty() {
        return;
    }
    world.resource_scope(|world, mut waves: Mut<'_, Waves>| {
        // The new ones are the last; of the others only the first can have changed.
        let new = waves.queue.iter().rev().take_while(|wave| wave.stored.is_none()).count();
        let from = waves.queue.len() - new;
        for at in (0..from.min(1)).chain(from..from + new) {
            let wave = &mut waves.queue[at];
            if wave.stored != Some(wave.delivered) {
                wave.stored = Some(wave.delivered);
                show(world, &wave.what);
                world.op(rows::put_wave(&wave.record()));
            }
        }
    });
}
