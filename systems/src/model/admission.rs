//! The lines in front of providers, and their slots. Slots are given out fairly over agents, so that one agent with ten
//! thousand messages delays the others by one call, not by ten thousand. Turns stand in line, and compactions: a summary is
//! a model call too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bevy_ecs::prelude::{Entity, Resource, World};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::limit;

use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::lane::{Lane, Place};

/// The lanes of all providers, and which attempt holds a slot of which lane.
#[derive(Resource, Default)]
pub(crate) struct Admission {
    /// In order of names, so that the same inputs admit the same turns.
    lanes: BTreeMap<Arc<str>, ProviderLane>,
    /// Who waits, and where. Nobody stands in line twice.
    places: HashMap<Entity, (Arc<str>, Place)>,
    out: HashMap<Attempt, Arc<str>>,
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

/// One provider's turns: those that wait, and how many calls are out.
#[derive(Default)]
struct ProviderLane {
    out: u32,
    turns: Lane<Entity>,
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
        self.lanes.get(provider).map_or((0, 0), |lane| (lane.out, lane.turns.agents()))
    }

    /// The bounds of the lanes may have changed: whoever waits is looked at again.
    pub(crate) const fn look_again(&mut self) {
        self.free = true;
    }

    /// Puts a turn or compaction in line at its provider. One that stands in line keeps its place.
    fn push(&mut self, provider: &str, agent: Entity, turn: Entity) {
        self.free = true;
        if self.places.contains_key(&turn) {
            return;
        }
        let known = self.lanes.get_key_value(provider).map(|(name, _)| Arc::clone(name));
        let provider = known.unwrap_or_else(|| provider.into());
        let place = self.lane(&provider).turns.push(agent, turn);
        self.places.insert(turn, (provider, place));
    }

    /// Takes a turn or compaction out of its line, if it stands in one.
    pub(crate) fn leave(&mut self, turn: Entity) {
        let Some((provider, place)) = self.places.remove(&turn) else { return };
        if let Some(lane) = self.lanes.get_mut(&provider) {
            lane.turns.take_out(place);
        }
    }

    fn lane(&mut self, provider: &Arc<str>) -> &mut ProviderLane {
        self.lanes.entry(Arc::clone(provider)).or_default()
    }

    /// Who waits for a slot.
    pub(crate) fn in_line(&self) -> impl Iterator<Item = Entity> {
        self.lanes.values().flat_map(|lane| lane.turns.items().copied())
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
            let out = self.out.values().filter(|of| *of == provider).count();
            faults
                .that(lane.out as usize == out, || format!("{provider}: {out} calls are active, {} counted", lane.out));
        }
        let lost = self.out.values().filter(|provider| !self.lanes.contains_key(*provider)).count();
        faults.that(lost == 0, || format!("{lost} calls are active at providers without a queue"));
    }

    /// The slot that `attempt` held is free again, whatever became of the turn.
    pub(crate) fn give_back(&mut self, attempt: Attempt) {
        let Some(provider) = self.out.remove(&attempt) else { return };
        if let Some(lane) = self.lanes.get_mut(&provider) {
            lane.out -= 1;
            self.free = true;
        }
    }

    /// `attempt` goes out and holds a slot of `provider`.
    pub(crate) fn take(&mut self, attempt: Attempt, provider: Arc<str>) {
        self.lane(&provider).out += 1;
        self.out.insert(attempt, provider);
    }

    /// All slots are given out, or all that could take one have.
    pub(crate) fn end_round(&mut self) {
        self.free = false;
        // A lane goes with its last call, and with the last who stood in it without a call coming of it.
        self.lanes.retain(|_, lane| lane.out > 0 || !lane.turns.is_empty());
    }

    /// The next turn or compaction that may call, if any lane has both one that waits and a slot.
    pub(crate) fn next(&mut self, settings: &Settings) -> Option<(Arc<str>, Entity)> {
        if self.out.len() >= limit::EFFECTS_OUT_MAX || self.drain == Drain::All {
            return None;
        }
        for (provider, lane) in &mut self.lanes {
            if lane.out < settings.calls_max(provider)
                && let Some(turn) = lane.turns.pop()
            {
                self.places.remove(&turn);
                return Some((Arc::clone(provider), turn));
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
    world.resource_mut::<Admission>().push(&provider, agent, entity);
    true
}
