//! The lines in front of providers, and their slots. Slots are given out fairly over users and families of agents, and within
//! each over agents, so that one agent with ten thousand messages delays the others by one call, not by ten thousand. Nor may
//! one of them have all slots, for a call may last long. Turns stand in line, and compactions: a summary is a model call too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bevy_ecs::prelude::{Entity, Resource, World};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::limit;

use crate::agent::holder_of;
use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::lane::{Lane, Place};

/// The lanes of all providers, and which attempt holds a slot of which lane.
#[derive(Resource, Default)]
pub(crate) struct Admission {
    /// In order of names, so that the same inputs admit the same turns.
    lanes: BTreeMap<Arc<str>, ProviderLane>,
    /// Who waits, and where. Nobody stands in line twice.
    places: HashMap<Entity, Standing>,
    out: HashMap<Attempt, (Arc<str>, Holder)>,
    free: bool,
    drain: Drain,
}

/// Which calls begin no more, because the daemon is about to end. Not stored: every start begins without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Drain {
    /// All calls may begin.
    #[default]
    Off,
    /// Those of turns that a trigger or a schedule began do not.
    Fired,
    /// None begins.
    All,
}

/// Where a turn stands in line.
#[derive(Clone)]
struct Standing {
    provider: Arc<str>,
    holder: Holder,
    place: Place,
}

/// One provider's turns: those that wait, and how many calls are out.
#[derive(Default)]
struct ProviderLane {
    out: u32,
    /// How many of them each holder has. Those without have no entry.
    held: HashMap<Holder, u32>,
    /// Whose turn it is: as many of each holder as wait in its line.
    holders: Lane<Holder, Holder>,
    /// The turns of each holder that has some.
    turns: HashMap<Holder, Lane<Entity>>,
}

impl ProviderLane {
    fn push(&mut self, holder: Holder, agent: Entity, turn: Entity) -> Place {
        self.holders.push(holder, holder);
        self.turns.entry(holder).or_default().push(agent, turn)
    }

    /// The next turn of a holder that may have another of so many slots.
    fn pop(&mut self, slots: u32) -> Option<(Holder, Entity)> {
        let held = &self.held;
        let has_room = |holder| held.get(&holder).is_none_or(|held| *held < share(slots, holder));
        let holder = self.holders.pop_of(has_room)?;
        let lane = self.turns.get_mut(&holder)?;
        let turn = lane.pop();
        if lane.is_empty() {
            self.turns.remove(&holder);
        }
        turn.map(|turn| (holder, turn))
    }

    fn take_out(&mut self, holder: Holder, place: Place) {
        let Some(lane) = self.turns.get_mut(&holder) else { return };
        lane.take_out(place);
        if lane.is_empty() {
            self.turns.remove(&holder);
        }
        self.holders.take_last(holder);
    }

    fn items(&self) -> impl Iterator<Item = Entity> {
        self.turns.values().flat_map(|lane| lane.items().copied())
    }
}

/// How many of a provider's slots one holder may have at once: a user with a limited role one in [`limit::POOL_SHARES`]; a family
/// leaves as many to the others, where there are enough for that.
fn share(slots: u32, holder: Holder) -> u32 {
    let part = slots / limit::POOL_SHARES as u32;
    match holder {
        Holder::User(_) => part.max(1),
        Holder::Family(_) if slots >= limit::PROVIDER_CALLS_SHARED_MIN => slots - part,
        Holder::Family(_) => slots,
    }
}

impl Admission {
    /// Turns that wait for a slot.
    pub(crate) fn waiting(&self) -> usize {
        self.places.len()
    }

    /// Active model calls.
    pub(crate) fn out(&self) -> usize {
        self.out.len()
    }

    /// May a further round admit someone?
    pub(crate) fn can_admit(&self) -> bool {
        self.free && !self.places.is_empty() && self.drain != Drain::All
    }

    /// From now on these calls begin no more.
    pub(crate) const fn drain(&mut self, drain: Drain) {
        self.drain = drain;
    }

    /// Which calls begin no more.
    pub(crate) const fn drains(&self) -> Drain {
        self.drain
    }

    /// The providers that are asked now, or that turns wait for.
    pub(crate) fn providers(&self) -> impl Iterator<Item = &str> + '_ {
        self.lanes.keys().map(|name| &**name)
    }

    /// Calls that are out at a provider, and agents whose turns wait for a place there.
    pub(crate) fn lane_of(&self, provider: &str) -> (u32, usize) {
        let agents = |lane: &ProviderLane| lane.turns.values().map(Lane::agents).sum();
        self.lanes.get(provider).map_or((0, 0), |lane| (lane.out, agents(lane)))
    }

    /// The bounds of the lanes may have changed: whoever waits is looked at again.
    pub(crate) const fn look_again(&mut self) {
        self.free = true;
    }

    /// Puts a turn or compaction in line at its provider. One that stands in line keeps its place.
    fn push(&mut self, provider: &str, (holder, agent): (Holder, Entity), turn: Entity) {
        self.free = true;
        if self.places.contains_key(&turn) {
            return;
        }
        let known = self.lanes.get_key_value(provider).map(|(name, _)| Arc::clone(name));
        let provider = known.unwrap_or_else(|| provider.into());
        let place = self.lane(&provider).push(holder, agent, turn);
        self.places.insert(turn, Standing { provider, holder, place });
    }

    /// Takes a turn or compaction out of its line, if it stands in one.
    pub(crate) fn leave(&mut self, turn: Entity) {
        let Some(Standing { provider, holder, place }) = self.places.remove(&turn) else { return };
        if let Some(lane) = self.lanes.get_mut(&provider) {
            lane.take_out(holder, place);
        }
    }

    fn lane(&mut self, provider: &Arc<str>) -> &mut ProviderLane {
        self.lanes.entry(Arc::clone(provider)).or_default()
    }

    /// Who waits for a slot.
    pub(crate) fn in_line(&self) -> impl Iterator<Item = Entity> {
        self.lanes.values().flat_map(ProviderLane::items)
    }

    /// Does `attempt` hold a slot?
    pub(crate) fn is_out(&self, attempt: Attempt) -> bool {
        self.out.contains_key(&attempt)
    }

    /// The attempts that hold a slot.
    pub(crate) fn attempts(&self) -> BTreeSet<(JobId, u32)> {
        self.out.keys().map(|attempt| (attempt.job, attempt.number)).collect()
    }

    /// Says where the counts are not what they count.
    pub(crate) fn check(&self, faults: &mut Faults) {
        let waiting = self.in_line().filter(|turn| self.places.contains_key(turn)).count();
        let counted = (self.in_line().count(), self.places.len());
        faults.same("turns that wait for a slot", &counted, &(waiting, waiting));
        for (provider, lane) in &self.lanes {
            let (out, held) =
                (self.out.values().filter(|(of, _)| of == provider).count(), lane.held.values().sum::<u32>());
            faults.that(held == lane.out, || format!("{provider}: {held} of {} active calls are held", lane.out));
            for (holder, held) in &lane.held {
                let theirs = self.out.values().filter(|(of, by)| of == provider && by == holder).count();
                faults.that(*held as usize == theirs, || {
                    format!("{provider}: {theirs} calls of {holder:?}, {held} held")
                });
            }
            let (turns, tokens) = (lane.items().count(), lane.holders.items().count());
            faults.that(turns == tokens, || format!("{provider}: {turns} turns wait, {tokens} of their holders"));
            faults
                .that(lane.out as usize == out, || format!("{provider}: {out} calls are active, {} counted", lane.out));
        }
        let lost = self.out.values().filter(|(provider, _)| !self.lanes.contains_key(provider)).count();
        faults.that(lost == 0, || format!("{lost} calls are active at providers without a queue"));
    }

    /// The slot that `attempt` held is free again, whatever became of the turn.
    pub(crate) fn give_back(&mut self, attempt: Attempt) {
        let Some((provider, holder)) = self.out.remove(&attempt) else { return };
        let Some(lane) = self.lanes.get_mut(&provider) else { return };
        lane.out -= 1;
        self.free = true;
        if let Some(held) = lane.held.get_mut(&holder) {
            *held -= 1;
            if *held == 0 {
                lane.held.remove(&holder);
            }
        }
    }

    /// `attempt` goes out and takes one of the holder's slots at `provider`.
    pub(crate) fn take(&mut self, attempt: Attempt, (provider, holder): (Arc<str>, Holder)) {
        let lane = self.lane(&provider);
        lane.out += 1;
        *lane.held.entry(holder).or_default() += 1;
        self.out.insert(attempt, (provider, holder));
    }

    /// All slots are given out, or all that could take one have.
    pub(crate) fn end_round(&mut self) {
        self.free = false;
        // A lane goes with its last call, and with the last who stood in it without a call coming of it.
        self.lanes.retain(|_, lane| lane.out > 0 || !lane.turns.is_empty());
    }

    /// The next turn or compaction that may call, if any lane has both one that waits and a slot.
    pub(crate) fn next(&mut self, settings: &Settings) -> Option<((Arc<str>, Holder), Entity)> {
        if self.out.len() >= limit::EFFECTS_OUT_MAX || self.drain == Drain::All {
            return None;
        }
        for (provider, lane) in &mut self.lanes {
            let slots = settings.calls_max(provider);
            if lane.out < slots
                && let Some((holder, turn)) = lane.pop(slots)
            {
                self.places.remove(&turn);
                return Some(((Arc::clone(provider), holder), turn));
            }
        }
        None
    }
}

/// Puts a turn or compaction of `agent` in line at the provider of its model, or at `asked`. False when the agent is gone.
pub(crate) fn stand_in_line(world: &mut World, agent: Entity, entity: Entity, asked: Option<&str>) -> bool {
    let Some(owner) = world.get::<Agent>(agent) else { return false };
    let own = || world.resource::<Settings>().provider_of(&owner.manifest.manifest.model);
    let provider = asked.unwrap_or_else(own).to_owned();
    let holder = holder_of(world, agent);
    world.resource_mut::<Admission>().push(&provider, (holder, agent), entity);
    true
}
